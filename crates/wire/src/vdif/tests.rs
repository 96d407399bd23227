//! Tests the properties that VDIF learns from a stream, the packets that it refuses, and the frames that
//! replace missing ones.

use super::*;
use crate::{
    tests::{again, format, instrument, made, placed},
    time::epoch_begins,
};

/// 1 MB/s.
const TELESCOPE: &str = "shape = [40_000]\npixel = \"uint2\"\nframe_rate = \"100 Hz\"\n";
/// 125 frames per second.
const PLAIN: &str = "format.vdif = {}";
const NAMED: &str = "format.vdif = { threads = [0] }";
/// 25 frames per second of each thread.
const THREADS: &str = "format.vdif = { payload = \"5000 B\", threads = [1, 3, 5, 7, 0, 2, 4, 6] }";
/// The same stream, for a receiver that does not know the threads.
const UNNAMED: &str = "format.vdif = { payload = \"5000 B\" }";
const BEGINS: u64 = 838_252_799; // 2026-07-25, within a half-year.

/// Returns a packet with a changed header.
fn changed(packet: &(Vec<u8>, Vec<u8>), change: impl Fn(&mut VdifHeader)) -> (Vec<u8>, Vec<u8>) {
    let (prefix, mut body) = packet.clone();
    let mut header = VdifHeader::parse(&body).expect("it was made");
    change(&mut header);
    header.write(&mut body);
    (prefix, body)
}

fn header_of((_, body): &(Vec<u8>, Vec<u8>)) -> VdifHeader {
    VdifHeader::parse(body).expect("it was made")
}

/// Returns the frame that replaces the one `ahead` frames after `near`.
fn missing(format: &dyn WireFormat, near: &(Vec<u8>, Vec<u8>), ahead: i64) -> Vec<u8> {
    let mut into = vec![0; format.geometry().frame_size()];
    format.fill(Some(Near { bytes: &near.1, ahead }), 0, &mut into);
    into
}

#[test]
fn a_packet_is_what_fila10g_sends() {
    let mut vdif = format(TELESCOPE, NAMED, BEGINS, 0x0102_0304_0506_0708);
    assert_eq!((vdif.geometry().packet_size(), vdif.geometry().number_bits), (8040, 64));
    let packet = made(&*vdif, 130, 0);
    assert_eq!(packet.0, [0x8a, 7, 6, 5, 4, 3, 2, 1]);
    let header = header_of(&packet);
    assert_eq!(
        (header.second, header.frame, header.epoch),
        ((elapsed(BEGINS + 1) - epoch_elapsed(53)) as u32, 5, 53)
    );
    assert_eq!((header.length, header.edv(), header.bits, header.station), (8032, Some(0), 2, STATION.0));
    assert!(packet.1[32..].iter().all(|byte| *byte == 0xee), "samples are left alone");
    assert_eq!(placed(&mut *vdif, &packet), Ok(Part { frame: 0x0102_0304_0506_078a, part: 0 }));
}

#[test]
fn without_serial_numbers_time_and_thread_number_the_frames() {
    let packets = "serial = \"none\"\nformat.vdif = { payload = \"5000 B\", threads = [6, 2] }";
    let mut vdif = format(TELESCOPE, packets, BEGINS, 0);
    // 100 frames per second of two threads.
    for (number, thread) in [(0, 6), (1, 2), (199, 2), (200, 6)] {
        let packet = made(&*vdif, number, 0);
        assert_eq!(header_of(&packet).thread, thread);
        assert_eq!(placed(&mut *vdif, &packet), Ok(Part { frame: elapsed(BEGINS) * 200 + number, part: 0 }));
    }
    // The same second, counted from a later epoch.
    let later = format(TELESCOPE, packets, epoch_begins(54), 0);
    let packet = changed(&made(&*later, 3, 0), |header| {
        header.second += (epoch_begins(54) - epoch_begins(53)) as u32;
        header.epoch = 53;
    });
    assert_eq!(placed(&mut *vdif, &packet), Ok(Part { frame: epoch_elapsed(54) * 200 + 3, part: 0 }));
}

#[test]
fn what_is_of_another_stream_is_none_of_this() {
    type HeaderChange = fn(&mut VdifHeader);
    let mut vdif = format(TELESCOPE, NAMED, BEGINS, 0);
    for number in 0..10 {
        assert!(again(&mut *vdif, number, 0).is_ok());
    }
    let good = made(&*vdif, 10, 0);
    let changes: [(HeaderChange, Ignored); 3] = [
        (|header| header.length -= 8, Ignored::Foreign),
        (|header| header.version = 2, Ignored::OtherStream),
        // The instrument names its threads.
        (|header| header.thread = 1, Ignored::Foreign),
    ];
    for (change, why) in changes {
        let packet = changed(&good, change);
        assert!((0..100).all(|_| placed(&mut *vdif, &packet) == Err(why)), "{:?}", header_of(&packet));
    }
    assert!(placed(&mut *vdif, &good).is_ok());
    let packets = "serial = \"none\"\nformat.vdif = { payload = \"5000 B\", threads = [0] }";
    let mut vdif = format(TELESCOPE, packets, BEGINS, 0);
    for number in 0..10 {
        assert!(again(&mut *vdif, number, 0).is_ok());
    }
    let stray = changed(&made(&*vdif, 10, 0), |header| header.station = 7);
    assert_eq!(placed(&mut *vdif, &stray), Err(Ignored::OtherStream), "its time would put it in the way");
}

#[test]
fn stations_with_common_serial_numbers_are_lanes_of_one_stream() {
    let sender = format(TELESCOPE, UNNAMED, BEGINS, 0);
    let mut vdif = format(TELESCOPE, UNNAMED, 0, 0);
    let of = |number: u64| {
        changed(&made(&*sender, number / 2, 0), |header| header.station = 7 + (number % 2) as u16)
    };
    let with_serial = |number: u64| (made(&*sender, number, 0).0, of(number).1);
    for number in (0..500).filter(|number| ![30, 31].contains(number)) {
        assert_eq!(placed(&mut *vdif, &with_serial(number)), Ok(Part { frame: number, part: 0 }));
    }
    let threads: Vec<_> =
        vdif.threads().iter().map(|thread| (thread.station, thread.thread, thread.came)).collect();
    assert_eq!(threads, [(Some(7), 0, 249), (Some(8), 0, 249)]);
    let header = VdifHeader::parse(&missing(&*vdif, &of(29), 1)).expect("a header");
    assert_eq!((header.station, header.frame, header.invalid), (7, 15, true));
}

#[test]
fn invalid_frames_without_time_and_thread_are_no_thread_of_their_own() {
    let sender = format(TELESCOPE, UNNAMED, BEGINS, 0);
    let mut vdif = format(TELESCOPE, UNNAMED, 0, 0);
    for number in 0..400 {
        let good = made(&*sender, number, 0);
        let packet = match number {
            0 | 1 | 30 | 31 => changed(&good, |header| {
                *header = VdifHeader { invalid: true, second: 0, frame: 0, station: 0, thread: 5, ..*header };
            }),
            // A board that marks all its frames, and knows the time.
            40.. if number % 2 == 1 => changed(&good, |header| {
                *header = VdifHeader { invalid: true, thread: 9, ..*header };
            }),
            _ => good,
        };
        assert_eq!(placed(&mut *vdif, &packet), Ok(Part { frame: number, part: 0 }));
    }
    let threads: Vec<_> = vdif.threads().iter().map(|thread| (thread.thread, thread.came)).collect();
    assert_eq!(threads, [(0, 216), (9, 180)]);
}

#[test]
fn stations_that_were_named_are_not_learned() {
    let packets = "format.vdif = { payload = \"5000 B\", threads = [0], stations = [\"Mc\", \"On\"] }";
    let mut vdif = format(TELESCOPE, packets, BEGINS, 0);
    let stray = changed(&made(&*vdif, 0, 0), |header| header.station = STATION.0);
    assert_eq!(placed(&mut *vdif, &stray), Err(Ignored::Foreign), "though it comes first");
    for (number, station) in [(0, *b"Mc"), (1, *b"On"), (2, *b"Mc")] {
        let packet = made(&*vdif, number, 0);
        assert_eq!(header_of(&packet).station.to_be_bytes(), station);
        assert_eq!(placed(&mut *vdif, &packet), Ok(Part { frame: number, part: 0 }));
    }
}

#[test]
fn what_can_not_be_is_corrupt() {
    let mut vdif = format(TELESCOPE, NAMED, BEGINS, 0);
    for number in 0..10 {
        assert!(again(&mut *vdif, number, 0).is_ok());
    }
    let good = made(&*vdif, 10, 0);
    let late = changed(&good, |header| header.frame = 125);
    assert_eq!(placed(&mut *vdif, &late), Err(Ignored::Corrupt), "there are 125 a second, from 0");
    let early = changed(&good, |header| header.epoch = 52);
    assert_eq!(placed(&mut *vdif, &early), Ok(Part { frame: 10, part: 0 }), "its serial number is its place");
    assert!(placed(&mut *vdif, &changed(&good, |header| header.frame = 124)).is_ok());
    let packets = "serial = \"none\"\nformat.vdif = { payload = \"5000 B\", threads = [0] }";
    let mut vdif = format(TELESCOPE, packets, BEGINS, 0);
    for number in 0..10 {
        assert!(again(&mut *vdif, number, 0).is_ok());
    }
    let early = changed(&made(&*vdif, 10, 0), |header| header.epoch = 52);
    assert_eq!(placed(&mut *vdif, &early), Err(Ignored::Corrupt), "before the epoch, and time is its place");
}

#[test]
fn a_missing_frame_has_the_header_it_would_have_had() {
    for packets in [
        NAMED,
        THREADS,
        "serial = \"none\"\nformat.vdif = { payload = \"1000 B\", edv = 3, threads = [4, 2], stations = [3, \"On\"] }",
    ] {
        let mut vdif = format(TELESCOPE, packets, BEGINS, 99);
        for number in 0..300 {
            assert!(again(&mut *vdif, number, 0).is_ok());
        }
        for number in [0_u64, 120, 250, 299] {
            for ahead in [-100_i64, -9, -1, 1, 2, 9, 1000] {
                let Some(there) = number.checked_add_signed(ahead) else { continue };
                let filled = missing(&*vdif, &made(&*vdif, number, 0), ahead);
                let expected = changed(&made(&*vdif, there, 0), |header| header.invalid = true);
                assert_eq!(filled[..32], expected.1[..32], "{packets}: frame {number}, {ahead} ahead");
                assert!(
                    filled[32..].as_chunks().0.iter().all(|word| u32::from_le_bytes(*word) == 0x1122_3344)
                );
            }
        }
    }
}

#[test]
fn a_frame_before_the_epoch_is_told_from_the_one_before() {
    let vdif = format(TELESCOPE, NAMED, epoch_begins(53), 0);
    let mut receiver = format(TELESCOPE, NAMED, 0, 0);
    let first = made(&*vdif, 0, 0);
    assert!(placed(&mut *receiver, &first).is_ok());
    let header = VdifHeader::parse(&missing(&*receiver, &first, -1)).expect("a header");
    let last = (epoch_begins(53) - epoch_begins(52) - 1) as u32;
    assert_eq!((header.epoch, header.second, header.frame, header.invalid), (52, last, 124, true));
    let header = VdifHeader::parse(&missing(&*receiver, &first, 125 * 86_400 * 200)).expect("a header");
    assert_eq!((header.epoch, header.second), (53, 86_400 * 200), "the epoch of a stream stays");
}

#[test]
fn threads_and_rate_are_learned_where_they_are_not_named() {
    let short = "serial = { at = { offset = 0, bytes = 4 } }\n";
    // Serial numbers of 32 bits wrap between the losses.
    for (front, first) in [("", 5000), (short, 5000), (short, (1 << 32) - 309)] {
        let sender = format(TELESCOPE, &format!("{front}{THREADS}"), BEGINS, first);
        let mut vdif = format(TELESCOPE, &format!("{front}{UNNAMED}"), 0, 0);
        // Start in the middle of a frame's threads, cover a second, and lose some packets.
        for number in (3..312).filter(|number| ![7, 8, 9, 310].contains(number)) {
            let placed = placed(&mut *vdif, &made(&*sender, number, 0));
            assert_eq!(placed, Ok(Part { frame: (first + number) % (1 << 32), part: 0 }));
        }
        for (number, ahead) in [(6, 1), (6, 2), (309, 1), (311, -1), (199, 1), (200, -1), (299, 30)] {
            let filled = missing(&*vdif, &made(&*sender, number, 0), ahead);
            let expected = made(&*sender, number.wrapping_add_signed(ahead), 0);
            let expected = changed(&expected, |header| header.invalid = true);
            assert_eq!(filled[..32], expected.1[..32], "frame {number}, {ahead} ahead, from {first}");
        }
    }
}

#[test]
fn extended_words_are_true_too() {
    for (packets, number) in [
        ("format.vdif = { payload = \"10000 B\", edv = 171, threads = [0] }", 170),
        ("format.vdif = { payload = \"8000 B\", edv = 2, threads = [0] }", 0x1_2345_6789),
    ] {
        let mut vdif = format(TELESCOPE, packets, BEGINS, 0);
        let near = made(&*vdif, number, 0);
        assert!(placed(&mut *vdif, &near).is_ok());
        let filled = missing(&*vdif, &near, 31);
        let expected = changed(&made(&*vdif, number + 31, 0), |header| header.invalid = true);
        assert_eq!(filled[..32], expected.1[..32], "{packets}");
    }
    let mut vdif = format(TELESCOPE, "format.vdif = { edv = 4, threads = [0], channels = 4 }", BEGINS, 0);
    let near = made(&*vdif, 0, 0);
    assert_eq!(
        header_of(&near).extended,
        Some([0x0404_0000, 0xacab_feed, 0xf, 0]),
        "four channels are there"
    );
    assert!(placed(&mut *vdif, &near).is_ok());
    let header = VdifHeader::parse(&missing(&*vdif, &near, 1)).expect("a header");
    assert_eq!(header.extended, Some([0x0404_0000, 0xacab_feed, 0, 0]), "no channel is there");
}

#[test]
fn without_a_neighbour_the_stream_is_named() {
    let mut vdif = format(TELESCOPE, PLAIN, BEGINS, 0);
    let packet = changed(&made(&*vdif, 0, 0), |header| header.station = 0x4d63);
    assert!(placed(&mut *vdif, &packet).is_ok());
    let mut into = vec![0; 8032];
    vdif.fill(None, 0, &mut into);
    let header = VdifHeader::parse(&into).expect("a header");
    assert_eq!((header.invalid, header.station, header.epoch, header.length), (true, 0x4d63, 53, 8032));
}

#[test]
fn a_rate_that_was_not_said_does_not_refuse_frames() {
    let packets = instrument(TELESCOPE, PLAIN).packets.expect("it has some");
    let mut vdif = crate::of(&packets, &Known::default()).expect("it can be made");
    let sender = format(TELESCOPE, PLAIN, BEGINS, 0);
    for number in (100..260).filter(|number| *number != 124) {
        assert!(placed(&mut *vdif, &made(&*sender, number, 0)).is_ok(), "frame {number}");
    }
    // The stream lost the last frame of the first second, but not that of the next.
    let header = VdifHeader::parse(&missing(&*vdif, &made(&*sender, 249, 0), 1)).expect("a header");
    assert_eq!((header.frame, u64::from(header.second) + epoch_elapsed(53)), (0, elapsed(BEGINS + 2)));
}

#[test]
fn a_stream_counts_on_over_a_leap_second() {
    // 125 frames a second from 2016-12-31T23:59:59 on, which is second 15897599 of epoch 33.
    let begins = epoch_begins(34) - 1;
    let sender = format(TELESCOPE, NAMED, begins, 0);
    let mut vdif = format(TELESCOPE, NAMED, 0, 0);
    for (number, second, frame) in [(0, 15_897_599, 0), (130, 15_897_600, 5), (250, 15_897_601, 0)] {
        let header = header_of(&made(&*sender, number, 0));
        assert_eq!((header.epoch, header.second, header.frame), (33, second, frame), "frame {number}");
        assert!(placed(&mut *vdif, &made(&*sender, number, 0)).is_ok());
    }
    let filled = missing(&*vdif, &made(&*sender, 120, 0), 10);
    let expected = changed(&made(&*sender, 130, 0), |header| header.invalid = true);
    assert_eq!(filled[..32], expected.1[..32], "a missing frame in the leap second");
    // Sixteen years later than its epoch, the stream is 5 s ahead of the same number of UTC seconds.
    let header = VdifHeader { epoch: 0, second: 514_629_935, ..header_of(&made(&*sender, 0, 0)) };
    assert_eq!(header.since_2000() + 946_684_800, 1_461_314_731, "2016-04-22T08:45:31, by baseband");
}
