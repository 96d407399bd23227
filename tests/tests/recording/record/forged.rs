//! Packets that somebody else sends into a stream, with its format: from another address, and from the stream's own.

use std::{thread, time::Duration};

use crate::record::{
    FRAME, Lab, assert_frames, count, ended_after,
    faults::{Gun, packet, send_from},
};

/// Numbers of packets far from those of a stream that begins with 77: two that follow each other.
const ELSEWHERE: [u64; 4] = [1 << 62, 62_000, 40_000, 5_000_000];

/// Somebody who sends packets that fit into the stream far from where it is.
struct Forger {
    gun: Gun,
    frame: Vec<u8>,
    sent: u64,
}

impl Forger {
    /// Sends a pair of packets to each of these places.
    fn forge(&mut self) {
        for serial in ELSEWHERE.into_iter().flat_map(|first| [first + self.sent, first + self.sent + 1]) {
            self.frame[..8].copy_from_slice(&serial.to_le_bytes());
            self.gun.send(&self.frame);
        }
        self.sent += 2 * ELSEWHERE.len() as u64;
    }
}

/// What comes before this packet of the stream is none of this: the recorder does not know the stream yet.
const KNOWN: u64 = 2500;

/// Records a stream while somebody else sends. What was said, and how many packets the other sent.
///
/// One thread sends both, so that no forged packet finds the stream standing still because its sender has no processor.
fn recorded(lab: &Lab, packets: u64, from: [u8; 4]) -> (nilometer_tests::Ended, u64) {
    let running = lab.record(&["--receive-buffer", "256 MiB"]);
    let stream = Gun::new([127, 0, 0, 1], lab);
    let mut forger = Forger { gun: Gun::new(from, lab), frame: packet(lab, 7), sent: 0 };
    send_from(&stream, lab, 0..packets, |number, _| {
        thread::sleep(Duration::from_micros(100));
        if number >= KNOWN && number.is_multiple_of(250) {
            forger.forge();
        }
    });
    (ended_after(running, packets + forger.sent), forger.sent)
}

/// Recordings until the stream did not stand still in one, since whoever sends had no processor between a forged packet and the next
/// of the stream: then what comes from elsewhere counts as a jump.
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
        ended.stdout.contains(
            "from other senders, such as 127.0.0.2: if they belong to the stream, name them with --allow"
        ),
        "{ended:?}"
    );
    // Until a second after the first is known, others are heard.
    let strangers = count(&ended, "discarded", "senders");
    let far =
        if ended.stdout.contains(" with a number far") { count(&ended, "discarded", "with") } else { 0 };
    assert!(strangers > 0 && strangers + far == sent, "{sent}: {ended:?}");
    assert_frames(&lab, &lab.file(), 20_000, &[].into());
}
