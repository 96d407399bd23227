//! Packets that come and are not recorded: a recording that threw away as many as this says so, and does not end well.

use nilometer_acquisition::transport::StreamCourse;
use nilometer_tests::Ended;

use super::{Gun, send_each};
use crate::record::{LIMIT, Lab, assert_frames, count};

const PACKETS: u64 = 1000;

/// Records what two boards send to one port in turn; the second board's packets are changed.
fn two_boards(changed: impl Fn(u64, &mut [u8])) -> (Lab, Ended) {
    let lab = Lab::new();
    let running = lab.record(&["--silence", "1 s", "--allow", "any"]);
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
    let ended = running.end(LIMIT);
    (lab, ended)
}

/// All that one board sent is recorded; that the other's is not is said with the cause, and no line says that nothing is lost.
fn says_what_is_lost(lab: &Lab, ended: &Ended, why: &str) {
    assert_eq!((ended.code, count(ended, "recorded", "packets")), (Some(1), PACKETS), "{ended:?}");
    assert!(ended.stderr.contains(why), "{ended:?}");
    assert!(
        ended.stderr.contains("2 senders, such as 127.0.0.") && ended.stderr.contains("--allow"),
        "{ended:?}"
    );
    assert!(
        !ended.stdout.contains("missing     none") && !ended.stdout.contains("discarded   none"),
        "{ended:?}"
    );
    assert_frames(lab, &lab.file(), PACKETS, &[].into());
    let summary = std::fs::read_to_string(lab.to.join("scan/scan.summary.json")).expect("a summary");
    assert!(summary.contains(why), "{summary}");
}

#[test]
fn a_second_board_with_numbers_of_its_own_is_named() {
    let (lab, ended) = two_boards(|number, packet| {
        packet[..8].copy_from_slice(&(9_000_000 + number).to_le_bytes());
    });
    says_what_is_lost(&lab, &ended, "1000 packets came and are not recorded: their numbers are far");
    assert_eq!(count(&ended, "discarded", "with"), PACKETS, "{ended:?}");
}

#[test]
fn a_second_board_with_the_same_numbers_is_named() {
    let (lab, ended) = two_boards(|_, packet| packet[4000] ^= 1);
    says_what_is_lost(
        &lab,
        &ended,
        "1000 packets came and are not recorded: another packet came with the same number",
    );
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
    let running = lab.record(&["--silence", "1 s"]);
    send_each(&lab, 0..PACKETS, |number, packet| {
        packet[..8].copy_from_slice(&(1_700_000_000_000 + 7813 * number).to_le_bytes());
    });
    let ended = running.end(LIMIT);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let kept = count(&ended, "recorded", "packets");
    let thrown = format!("{} packets came and are not recorded", PACKETS - kept);
    assert!(ended.stderr.contains(&thrown) && ended.stderr.contains("time stamp"), "{ended:?}");
}
