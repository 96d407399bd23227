//! One dataset that three nodes write and read, on the `MooseFS` that each of them has mounted by itself.

use std::{collections::BTreeSet, fs, time::Duration};

use nilometer_model::Phase;
use nilometer_tests::{Mpi, MpiKind, Running, Testbed, run_directories};

const NODES: [u32; 3] = [1, 2, 3];
const LIMIT: Duration = Duration::from_mins(5);
/// Frames of 10 kB.
const CAMERA: &str = "name = \"camera\"\ntitle = \"t\"\nsource = \"none\"\nshape = [50, 100]\npixel = \"uint16\"\n\
                      frame_rate = \"100 Hz\"\ndata = \"diffraction\"\n";
const PLAN: &str = r#"
title = "one dataset of three nodes"
repeats = 1
reserve = "0 B"
[[stage]]
name = "along each axis"
[stage.ingest]
instrument = "camera.toml"
format = "hdf5"
storing = "shared"
chunk = "10x50"
goal = "pace"
duration = "500 ms"
buffer = "32 MiB"
keep = "20 MB"
read = ["frames", "rows", "blocks"]
"#;

#[test]
fn three_nodes_read_the_dataset_that_they_wrote_along_each_axis() {
    let Some(testbed) = Testbed::of(&["moosefs", "nodes"]) else { return };
    let Some(mpi) = Mpi::of(MpiKind::OpenMpi) else { return };
    let home = tempfile::tempdir().expect("a temporary directory");
    fs::write(home.path().join("camera.toml"), CAMERA).expect("space");
    fs::write(home.path().join("plan.toml"), PLAN).expect("space");
    let mount = testbed.folder().join("nodes/mount/moosefs/goal-2");
    let target = mount.to_str().expect("plain letters");
    let evaluate = ["evaluate", target, "--plan", "plan.toml", "--record", "r.sqlite"];
    let ended = Running::of(mpi.command_on(&testbed, &NODES, home.path(), &evaluate)).end(LIMIT);
    assert!(ended.has_answered(), "{ended:?}");
    let results = nilometer_record::read(&home.path().join("r.sqlite")).expect("a record");
    let of_phase = |phase| results.samples.iter().filter(move |measured| measured.key.phase == phase);
    let wanted: BTreeSet<_> = NODES.into_iter().map(|node| format!("node-{node}")).collect();
    for read in of_phase(Phase::Read) {
        let cell = &results.cells[read.key.cell];
        let recorded = of_phase(Phase::Ingest).find(|recorded| recorded.key.cell == read.key.cell);
        let stored =
            recorded.and_then(|recorded| recorded.sample.ingest.as_ref()).expect("a recording").stored;
        let nodes: BTreeSet<_> = read.sample.parts.iter().map(|part| part.node.clone()).collect();
        assert_eq!(nodes, wanted, "{cell}");
        // All pixels of all frames, whichever process read them.
        assert!(stored > 0 && read.sample.bytes == stored * 50 * 100 * 2, "{cell}: {:?}", read.sample);
        assert!(read.sample.errors.is_empty(), "{cell}: {:?}", read.sample.errors);
        assert!(read.sample.parts.iter().all(|part| part.bytes > 0), "{cell}: {:?}", read.sample.parts);
    }
    assert_eq!(of_phase(Phase::Read).count(), 3, "{ended:?}");
    assert!(run_directories(&testbed.folder().join("moosefs/mount/goal-2")).is_empty());
}
