//! `walk`, and the tree that it walks.

use nilometer_campaign::workload::{MakeTree, Walk, build};
use nilometer_model::{
    Nanos,
    plan::{Phase, Shift, WalkCell, WorkloadCell},
};
use nilometer_storage::{
    Arena, Buffer,
    clock::VirtualClock,
    testing::conformance::workload_suite,
    testing::{Cost, Device, Simulated},
};

use crate::{demands, part, run, run_phase};

const TREE: WalkCell = WalkCell { levels: 2, branching: 3, files: 7, shift: Shift::OWN };

#[test]
fn all_phases_pass_the_suite() {
    let tree = WorkloadCell::Walk(TREE);
    workload_suite(demands(512, 5), &|_| {}, &mut |buffers| build(&tree, Phase::LayOut, part(buffers)));
    for slots in [2, 4, 64] {
        let lay_out = |engine: &mut dyn nilometer_storage::Engine| run_phase(engine, &tree, Phase::LayOut);
        workload_suite(demands(300, slots), &lay_out, &mut |buffers| {
            Box::new(Walk::new("n_w0", slots, Nanos::MAX, buffers))
        });
    }
}

#[test]
fn a_walk_finds_all_that_was_made_at_any_depth() {
    for depth in [1, 2, 7, 32] {
        let device = Device { parallel: 4, ..Device::with_cost(Cost::fixed(Nanos(1000))) };
        let target = Simulated::new(device, VirtualClock::default());
        let mut engine = target.attach(depth, 64);
        run(&mut MakeTree::new("n_w0", &TREE, vec![Buffer::alone(512)]), &mut engine);
        let (_, buffers) = Arena::shared_out(depth, 300);
        let mut walk = Walk::new("n_w0", 64, Nanos::MAX, buffers);
        run(&mut walk, &mut engine);
        let found = walk.found();
        assert_eq!((found.files, found.directories, found.errors), (TREE.all_files(), TREE.directories(), 0));
    }
}

#[test]
fn a_walk_that_runs_out_of_slots_says_what_it_gave_up() {
    let target = Simulated::new(Device::default(), VirtualClock::default());
    let mut engine = target.attach(1, 64);
    run(&mut MakeTree::new("n_w0", &TREE, vec![Buffer::alone(512)]), &mut engine);
    // Room for the first level only: its three directories can't be entered.
    let mut walk = Walk::new("n_w0", 2, Nanos::MAX, vec![Buffer::alone(512)]);
    run(&mut walk, &mut engine);
    let found = walk.found();
    assert_eq!((found.files, found.directories, found.errors), (7, 1, 3));
}
