//! What `ls -lR` does, on 100 000 files in 1000 directories in memory.

use std::{fs::File, os::fd::AsRawFd, sync::Arc};

use nilometer_campaign::workload::{SLOTS, SourceTree, Unpack, Walk, WalkTask, WorkerPart, WorkerPlace};
use nilometer_model::Nanos;
use nilometer_plan::{TreeShape, WalkCommand};
use nilometer_storage::Buffer;

use crate::{
    bare::{self, Seen},
    contest::{Bound, Contest, Contestant, Cost, Limit, Outcome, Quantity, Stop},
    measure,
    ours::{Driving, Ours, SEED},
    place,
};

/// One directory with 999 in it, 100 files in each of the 1000.
const TREE: TreeShape = TreeShape::Regular { levels: 1, branching: 999, files: 100 };
const FOUND: Seen = Seen { files: 100_000, directories: 1000, bytes: 0 };
/// Of a listing.
const BUFFER: usize = 32 << 10;

const BARE: &str = "bare loop";
const OURS: &str = "nilometer, engine sync, recorded";

/// See the module.
pub(crate) fn run(stop: &Stop) -> anyhow::Result<Outcome> {
    let place = place::in_memory()?;
    let ours = Ours::at(place.path(), 1)?;
    let tree = Arc::new(SourceTree::of(TREE));
    let part = |buffers| WorkerPart::new(WorkerPlace::alone(0, 1), SEED, buffers);
    ours.drive(1.0, Driving::sync(BUFFER), |buffers| Unpack::new(tree, "n_tree", false, part(buffers)))?;
    let contest = Contest {
        title: format!(
            "walk: 100 000 files in 1000 directories on {}, an operation is a file",
            ours.file_system()
        ),
        quantity: Quantity::CpuPerOperation,
        phases: &["walk"],
        rounds: 21,
        contestants: vec![Contestant::new(BARE, || bare(&ours)), Contestant::new(OURS, || driven(&ours))],
        bounds: vec![Bound { subject: OURS, peer: BARE, limit: Limit::Times(1.15) }],
    };
    contest.run(stop)
}

fn bare(ours: &Ours) -> anyhow::Result<Vec<Cost>> {
    let root = File::open(ours.directory())?;
    let mut listings: Vec<Buffer> = (0..=1).map(|_| Buffer::alone(BUFFER)).collect();
    let mut seen = Seen::default();
    let cost = measure::here(FOUND.files as f64, || {
        bare::walk(root.as_raw_fd(), c"n_tree", &mut listings, &mut seen)?;
        Ok(())
    })?;
    assert_eq!(seen, FOUND, "the tree was laid out whole");
    Ok(vec![cost])
}

fn driven(ours: &Ours) -> anyhow::Result<Vec<Cost>> {
    let make = |buffers| Walk::new("n_tree", WalkTask::Look(WalkCommand::Ls), SLOTS, Nanos::MAX, buffers);
    let (cost, walk) = ours.drive(FOUND.files as f64, Driving::sync(BUFFER), make)?;
    let found = walk.found();
    let seen = Seen { files: found.files, directories: found.directories, bytes: found.bytes };
    assert_eq!((seen, found.errors), (FOUND, 0), "both see the same tree");
    Ok(vec![cost])
}
