//! Packets that somebody else sends into a stream, with its format: from another address, and from the stream's own.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use nilometer_acquisition::transport::{StreamCourse, faults::Faults};

use crate::record::{FRAME, LIMIT, Lab, assert_frames, count, faults::Gun, faults::packet};

/// Numbers of packets far from those of a stream that begins with 77: two that follow each other.
const ELSEWHERE: [u64; 4] = [1 << 62, 62_000, 40_000, 5_000_000];

/// Sends pairs of packets that fit into the stream far from where it is, until it is over. How many packets.
fn forge(lab: &Lab, from: [u8; 4], over: &AtomicBool) -> u64 {
    let gun = Gun::new(from, lab);
    let mut frame = packet(lab, 7);
    let mut sent = 0;
    while !over.load(Ordering::Relaxed) {
        for serial in ELSEWHERE.into_iter().flat_map(|first| [first + sent, first + sent + 1]) {
            frame[..8].copy_from_slice(&serial.to_le_bytes());
            gun.send(&frame);
        }
        sent += 2 * ELSEWHERE.len() as u64;
        thread::sleep(Duration::from_millis(50));
    }
    sent
}

/// Records a stream while somebody else sends. What was said, and how many packets the other sent.
fn recorded(lab: &Lab, packets: u64, from: [u8; 4]) -> (nilometer_tests::Ended, u64) {
    let running = lab.record(&["--silence", "2 s", "--receive-buffer", "256 MiB"]);
    let over = AtomicBool::new(false);
    let sent = thread::scope(|scope| {
        let stream = scope.spawn(|| {
            lab.send(packets, 5000.0, Faults::default(), StreamCourse::default());
            over.store(true, Ordering::Relaxed);
        });
        // What comes before the stream is known is none of this.
        thread::sleep(Duration::from_millis(500));
        let sent = forge(lab, from, &over);
        stream.join().expect("it only sends");
        sent
    });
    (running.end(LIMIT), sent)
}

/// Recordings until the stream did not stand still in one, since its sender had no processor: then what comes from elsewhere counts as a
/// jump of the stream.
const TRIES: usize = 4;

#[test]
fn forged_packets_from_the_address_of_the_stream_cost_none_of_it_and_are_no_loss() {
    let mut tries = (0..TRIES).map(|_| {
        let lab = Lab::new();
        let (ended, sent) = recorded(&lab, 15_000, [127, 0, 0, 1]);
        (lab, ended, sent)
    });
    let stood_still = |ended: &nilometer_tests::Ended| ended.stdout.contains("jumps  ");
    let (lab, ended, sent) = tries.find(|(_, ended, _)| !stood_still(ended)).expect("a stream that goes on");
    assert!(sent > 0);
    assert_eq!((ended.code, count(&ended, "recorded", "packets")), (Some(0), 15_000), "{ended:?}");
    assert!(ended.stdout.contains("missing     none"), "{ended:?}");
    assert!(!ended.stdout.contains("jumps  ") && !ended.stdout.contains("restarts"), "{ended:?}");
    assert_eq!(count(&ended, "discarded", "with"), sent, "{ended:?}");
    assert_eq!(lab.file().len(), 15_000 * FRAME);
    assert_frames(&lab, &lab.file(), 15_000, &[].into());
}

#[test]
fn packets_of_others_than_those_that_sent_first_are_none_of_the_stream() {
    let lab = Lab::new();
    let (ended, sent) = recorded(&lab, 20_000, [127, 0, 0, 2]);
    assert_eq!((ended.code, count(&ended, "recorded", "packets")), (Some(0), 20_000), "{ended:?}");
    assert!(
        ended.stdout.contains("of other senders, such as 127.0.0.2: name them with --allow"),
        "{ended:?}"
    );
    // Until a second after the first is known, others are heard.
    let (strangers, far) = (count(&ended, "discarded", "of"), count(&ended, "discarded", "with"));
    assert!(strangers > 0 && strangers + far == sent, "{sent}: {ended:?}");
    assert_frames(&lab, &lab.file(), 20_000, &[].into());
}
