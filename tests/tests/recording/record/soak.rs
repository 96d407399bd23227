//! A recorder that runs for long: its memory, descriptors, threads and files stay as they were.

use std::{fs, path::Path};

use nilometer_intake::transport::{StreamCourse, faults::Faults};
use nilometer_tests::{Footprint, address, assert_flat, await_packets, soak_seconds};

use crate::record::{LIMIT, Lab, RATE};

/// Looks at the recorder, one after each part of the stream.
const LOOKS: u64 = 16;
/// Packets in a second.
const PACE: u64 = 10 * RATE;
/// Growth of memory that counts as none: pages that the allocator keeps.
const GROWTH: u64 = 4 << 20;
const KEPT: u64 = 64_000_000;

/// Packets between two looks: half a second of them, or as many as `NILOMETER_SOAK_SECONDS` has in all.
fn packets_of_a_part() -> u64 {
    soak_seconds().map_or(PACE / 2, |seconds| seconds * PACE / LOOKS)
}

fn bytes_below(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).expect("the recording");
    entries.map(|entry| entry.expect("readable").metadata().map_or(0, |file| file.len())).sum()
}

#[test]
fn a_recorder_that_runs_for_long_holds_no_more_than_at_first() {
    let lab = Lab::new();
    let running = lab.record(&["--keep", "64 MB"]);
    let http = address(&running, "http");
    let (part, faults) = (packets_of_a_part(), Faults { loss: 0.001, ..Faults::default() });
    let packets = LOOKS * part;
    // One in a thousand is lost on the way.
    let missing = packets / 500;
    let (mut found, mut files) = (vec![], vec![]);
    std::thread::scope(|scope| {
        scope.spawn(|| lab.send(packets, PACE as f64, faults, StreamCourse::default()));
        for look in 1..=LOOKS {
            await_packets(http, look * part - missing);
            found.push(Footprint::of(&running));
            files.push(bytes_below(&lab.to.join("scan")));
        }
    });
    assert_flat("a ring of packets", &running, &found, GROWTH);
    running.signal(rustix::process::Signal::INT);
    let ended = running.end(LIMIT);
    assert!(ended.code.is_some(), "{ended:?}");
    println!("bytes of files: {files:?}");
    let most = files.iter().max().copied().unwrap_or_default();
    assert!(most < KEPT + KEPT / 4, "the files grew: {files:?}");
}
