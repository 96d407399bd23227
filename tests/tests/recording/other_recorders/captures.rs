//! Captured packets.

use std::fs;

use super::{FRAME, Station, about, assert_read_by_all, json};

#[test]
fn frames_in_captured_packets_are_a_recording() {
    let station = Station::new();
    let (path, bytes) = station.vdif("600", &["2"]);
    for (kind, prefix) in [("pcap", "8"), ("pcapng", "8"), ("pcap", "0")] {
        let capture = station.path("captured");
        station.write(&[kind, "all.vdif", &FRAME.to_string(), prefix, "captured"]);
        assert_read_by_all(std::slice::from_ref(&capture), "captured.vdif", &bytes, &station);
        let scanned = json("scan", &[capture], &[]);
        assert_eq!(
            (&scanned["without_journal"]["kind"], &scanned["frames"]),
            (&"capture".into(), &600.into())
        );
    }
    fs::remove_file(path).expect("it is ours");
}

#[test]
fn halves_of_mark5b_frames_are_joined() {
    let station = Station::new();
    station.write(&["mark5b", "all.m5b", "150"]);
    let bytes = fs::read(station.path("all.m5b")).expect("it was written");
    station.write(&["pcapng", "all.m5b", "5008", "8", "captured.pcapng"]);
    assert_read_by_all(&[station.path("captured.pcapng")], "captured.m5b", &bytes, &station);
}

#[test]
fn a_capture_that_ends_in_a_packet_says_so() {
    let station = Station::new();
    station.vdif("50", &[]);
    station.write(&["pcap", "all.vdif", &FRAME.to_string(), "8", "captured.pcap"]);
    let path = station.path("captured.pcap");
    let bytes = fs::read(&path).expect("it was written");
    fs::write(&path, &bytes[..bytes.len() - 10]).expect("space");
    let verified = about("verify", &[&path], &[]);
    assert!(
        verified.code == Some(1) && verified.stdout.contains("the capture ends in a packet"),
        "{verified:?}"
    );
    assert!(verified.stdout.contains("frames      49 of"), "{verified:?}");
}
