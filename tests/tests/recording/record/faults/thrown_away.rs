//! Packets that come and are not recorded: a recording that threw away as many as this says so, and does not end well.

use nilometer_intake::transport::StreamCourse;
use nilometer_tests::Ended;

use super::{Gun, send_each};
use crate::record::{FRAME, Lab, assert_frames, count, ended_after};

const PACKETS: u64 = 1000;

/// Records what two boards send to one port in turn; the second board's packets are changed.
fn two_boards(changed: impl Fn(u64, &mut [u8])) -> (Lab, Ended) {
    let lab = Lab::new();
    let running = lab.record(&["--allow", "any"]);
    let boards = [Gun::new([127, 0, 0, 2], &lab), Gun::new([127, 0, 0, 3], &lab)];
    let mut flow = lab.flow(StreamCourse::default(), 1);
    for number in 0..PACKETS {
        let made = flow.make(number);
        let packet = flow.packet(made);
        let mut packet = [packet.prefix, packet.body].concat();
        boards[0].send(&packet);
        changed(number, &mut packet);
        boards[1].send(&packet);
        std::thread::sleep(std::time::Duration::from_micros(20));
    }
    let ended = ended_after(running, 2 * PACKETS);
    (lab, ended)
}

/// All that both boards sent is recorded, and each has a line.
fn says_what_came_of_each(lab: &Lab, ended: &Ended) {
    assert_eq!((ended.code, count(ended, "recorded", "packets")), (Some(0), 2 * PACKETS), "{ended:?}");
    assert!(ended.stdout.contains("discarded   none"), "{ended:?}");
    for board in ["127.0.0.2:", "127.0.0.3:"] {
        let begins = format!("sender      {board}");
        let line = ended.stdout.lines().find(|line| line.starts_with(&begins)).unwrap_or_default();
        assert!(line.ends_with(": 1000 packets, none missing"), "{ended:?}");
    }
    assert_eq!(lab.file().len() as u64, 2 * PACKETS * FRAME as u64);
}

#[test]
fn a_second_board_with_numbers_of_its_own_is_recorded() {
    let (lab, ended) = two_boards(|number, packet| {
        packet[..8].copy_from_slice(&(9_000_000 + number).to_le_bytes());
    });
    says_what_came_of_each(&lab, &ended);
}

#[test]
fn a_second_board_with_the_same_numbers_is_recorded() {
    let (lab, ended) = two_boards(|_, packet| packet[4000] ^= 1);
    says_what_came_of_each(&lab, &ended);
}

#[test]
fn what_a_network_delivers_twice_is_no_loss() {
    let (lab, ended) = two_boards(|_, _| {});
    assert_eq!((ended.code, count(&ended, "discarded", "twice")), (Some(0), PACKETS), "{ended:?}");
    assert!(ended.stdout.contains("missing     none"), "{ended:?}");
    assert_frames(&lab, &lab.file(), PACKETS, &[].into());
}

#[test]
fn numbers_that_are_times_are_named() {
    let lab = Lab::new();
    let running = lab.record(&[]);
    send_each(&lab, 0..PACKETS, |number, packet| {
        packet[..8].copy_from_slice(&(1_700_000_000_000 + 7813 * number).to_le_bytes());
    });
    let ended = ended_after(running, PACKETS);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let kept = count(&ended, "recorded", "packets");
    let thrown = format!("{} packets came and are not recorded", PACKETS - kept);
    assert!(ended.stderr.contains(&thrown) && ended.stderr.contains("time stamp"), "{ended:?}");
}
