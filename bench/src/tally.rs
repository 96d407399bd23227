//! What recording costs: the same workload on an engine that does nothing, with and without the tally of a worker.
//!
//! The clock is read in both: the engine does that for the workload's sake.

use std::ops::ControlFlow;

use nilometer_campaign::workload::{Direction, Order, Transfer, WorkerPart, WorkerPlace};
use nilometer_model::{Bytes, Nanos};
use nilometer_storage::{
    Arena, Clock, Completion, Drive, Tally,
    engine::{Engine, Null},
};

use crate::{
    contest::{Bound, Contest, Contestant, Cost, Limit, Outcome, Quantity, Stop},
    measure,
    ours::SEED,
};

const OPERATIONS: u64 = 5_000_000;
const BLOCK: u64 = 4096;

const ALONE: &str = "workload, loop and clock";
const RECORDED: &str = "the same, recorded";

/// 1 % of a processor at 500 000 operations a second.
const AT_MOST: f64 = 20.0;

/// See the module.
pub(crate) fn run(stop: &Stop) -> anyhow::Result<Outcome> {
    let contest = Contest {
        title: format!("tally: random reads of 4 KiB that do nothing; {AT_MOST} ns are 1 % at 500 000/s"),
        quantity: Quantity::CpuPerOperation,
        phases: &["read"],
        rounds: 21,
        contestants: vec![
            Contestant::new(ALONE, || drive(|_| ControlFlow::Continue(()))),
            Contestant::new(RECORDED, recorded),
        ],
        bounds: vec![Bound { subject: RECORDED, peer: ALONE, limit: Limit::More(AT_MOST) }],
    };
    contest.run(stop)
}

fn recorded() -> anyhow::Result<Vec<Cost>> {
    let mut tally = Tally::new(Nanos(0));
    let cost = drive(|completion| {
        tally.observe(completion);
        ControlFlow::Continue(())
    })?;
    // Opening and closing the file are operations too.
    anyhow::ensure!(tally.totals().operations == OPERATIONS + 2, "{:?}", tally.totals());
    Ok(cost)
}

fn drive(observe: impl FnMut(&Completion) -> ControlFlow<()>) -> anyhow::Result<Vec<Cost>> {
    let mut engine = Null::new(1, Clock::start());
    let (arena, buffers) = Arena::shared_out(1, BLOCK as usize);
    engine.register(&arena)?;
    let order = Order::uniform(Bytes(1 << 30), Bytes(BLOCK), OPERATIONS, SEED.stream());
    let part = WorkerPart::new(WorkerPlace::alone(0, 1), SEED, buffers);
    let mut workload = Transfer::new("n_none", order, Direction::Read, part);
    let work = || {
        Drive::new(&mut workload, &mut engine).run_while(observe);
        Ok(())
    };
    Ok(vec![measure::here(OPERATIONS as f64, work)?])
}
