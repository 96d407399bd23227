//! How long the `nilometer` command takes to start and end, beside `true`.

use std::{path::Path, process::Command};

use crate::{
    contest::{Bound, Contest, Contestant, Cost, Limit, Outcome, Quantity, Stop},
    measure, place,
};

const STARTS: u32 = 20;

const TRUE: &str = "true";
const OURS: &str = "nilometer --version";

/// See the module.
pub(crate) fn run(stop: &Stop) -> anyhow::Result<Outcome> {
    let program = place::program()?;
    let contest = Contest {
        title: "start-up: from the call to the end of the process".into(),
        quantity: Quantity::WallPerStart,
        phases: &["start"],
        rounds: 15,
        contestants: vec![
            Contestant::new(TRUE, || starts(Path::new("true"), &[])),
            Contestant::new(OURS, || starts(&program, &["--version"])),
        ],
        bounds: vec![Bound { subject: OURS, peer: TRUE, limit: Limit::More(10.0) }],
    };
    contest.run(stop)
}

fn starts(program: &Path, arguments: &[&str]) -> anyhow::Result<Vec<Cost>> {
    let mut sum = Cost { amount: 0.0, cpu: 0.0, wall: 0.0 };
    for _ in 0..STARTS {
        let (cost, _) = measure::child(1.0, Command::new(program).args(arguments))?;
        sum = Cost { amount: sum.amount + 1.0, cpu: sum.cpu + cost.cpu, wall: sum.wall + cost.wall };
    }
    Ok(vec![sum])
}
