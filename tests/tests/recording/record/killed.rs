//! A recorder that is killed: what it had acknowledged is there, and what it says afterwards is true.

use std::{fs, net::UdpSocket, time::Duration};

use nilometer_intake::transport::{StreamCourse, faults::Faults};
use nilometer_model::Seed;
use nilometer_recording::reader::{Index, Trust};
use nilometer_tests::{await_some, kills, undamaged};
use rustix::process::Signal;

use crate::record::{FRAME, LIMIT, Lab, assert_frames_from, not_sent};

/// What its journal says is in a recording.
fn journal(lab: &Lab) -> Index {
    let journal = fs::read(lab.to.join("scan/scan.0.journal")).unwrap_or_default();
    Index::unite([journal.as_slice()], Trust::Acknowledged)
}

/// The recorder is killed at a random moment of the stream, what is there is verified: what it had acknowledged just before,
/// and what it says afterwards. None if it had acknowledged nothing.
fn killed(lab: &Lab, more: &[&str], after: Duration) -> Option<[Index; 2]> {
    let running = lab.record(more);
    let before = std::thread::scope(|scope| {
        let faults = Faults { loss: 0.01, ..Faults::default() };
        scope.spawn(move || lab.send(KILLED_PACKETS, 20_000.0, faults, StreamCourse::default()));
        std::thread::sleep(after);
        let before = journal(lab);
        running.signal(Signal::KILL);
        running.end(LIMIT);
        before
    });
    // The process that records dies a moment after the one that was started.
    await_some("the port", || UdpSocket::bind(("127.0.0.1", lab.port)).ok());
    let verified = lab.verify();
    // Without the first record of its journal a lane has acknowledged nothing.
    if verified.code == Some(2) {
        let journal = fs::metadata(lab.to.join("scan/scan.0.journal"));
        assert!(journal.map_or(0, |journal| journal.len()) < 64, "{verified:?}");
        return None;
    }
    assert_eq!(verified.code, Some(1), "it did not end in order: {verified:?}");
    let after = journal(lab);
    assert_eq!(undamaged(&verified), after.frames.len() as u64, "{verified:?}");
    assert!(!verified.stdout.contains("damaged"), "{verified:?}");
    Some([before, after])
}

const KILLED_PACKETS: u64 = 5000;
/// A block of packets.
const BLOCK: usize = 128 * FRAME;
/// Blocks that a lane writes at once, at the most.
const IN_FLIGHT: u64 = 4;

#[test]
fn what_was_acknowledged_before_it_was_killed_is_there() {
    let seed = u64::from(std::process::id());
    let (mut moments, mut found) = (Seed(seed).stream(), 0);
    let missing = not_sent(KILLED_PACKETS, Faults { loss: 0.01, ..Faults::default() });
    for _ in 0..kills(10, 100) {
        let lab = Lab::new();
        let after = Duration::from_millis(moments.below(300));
        let Some([before, after]) = killed(&lab, &[], after) else { continue };
        let gone: Vec<_> =
            before.frames.numbers(0..u64::MAX).filter(|number| !after.frames.contains(*number)).collect();
        assert!(gone.is_empty(), "seed {seed}: {gone:?} were acknowledged");
        // Those that were being written are in no order: one that was acknowledged may be behind one that was not.
        let holes: u64 = after.missing().iter().map(|(_, count)| count).sum();
        assert!(holes < IN_FLIGHT, "seed {seed}: {:?} are missing", after.missing());
        let file = lab.file();
        for (number, place) in after.frames.iter() {
            let block = &file[place.extent.offset as usize..][..BLOCK];
            assert_frames_from(&lab, number * 128, block, 128, &missing);
        }
        found += after.frames.len();
    }
    assert!(found > 0, "seed {seed}: not a block was ever acknowledged");
}

#[test]
fn a_recorder_that_keeps_the_latest_and_is_killed_has_overwritten_nothing_that_it_still_knows() {
    let seed = u64::from(std::process::id());
    let (mut moments, mut found) = (Seed(seed).named("kept").stream(), 0);
    for _ in 0..kills(10, 100) {
        let lab = Lab::new();
        let after = Duration::from_millis(moments.below(300));
        let Some([_, after]) = killed(&lab, &["--keep", "4 MB", "--checksums"], after) else { continue };
        // Five that stay, and those of the two parts that are being overwritten.
        let blocks = after.frames.len();
        assert!(blocks <= 7, "seed {seed}: {blocks} blocks");
        found += blocks;
    }
    assert!(found > 0, "seed {seed}: not a block was ever acknowledged");
}
