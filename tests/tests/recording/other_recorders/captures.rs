//! Captured packets.

use std::fs;

use super::{FRAME, Station, about, assert_read_by_all, json, text};

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

/// Bytes of a CODIF frame of 1000 B of samples, and its mode.
const CODIF: (usize, &str) = (1064, "CODIF_1000-64-1-8");

#[test]
fn the_user_names_frames_that_no_header_describes() {
    let station = Station::new();
    let (size, mode) = CODIF;
    let bytes: Vec<u8> = (0..40 * size).map(|at| (at / size * 3 + at % 11) as u8 | 0x80).collect();
    fs::write(station.path("all.codif"), &bytes).expect("space");
    station.write(&["pcapng", "all.codif", &size.to_string(), "8", "captured.pcapng"]);
    for name in ["captured.pcapng", "all.codif"] {
        let path = station.path(name);
        let to = station.path(&format!("of-{name}.raw"));
        let exported =
            about("export", &[&path], &["--mode", mode, "--to", to.to_str().expect("plain names")]);
        assert_eq!(exported.code, Some(0), "{exported:?}");
        assert_eq!(fs::read(&to).expect("it was exported"), bytes, "{name}");
        let verified = about("verify", &[&path], &["--mode", mode]);
        assert!(verified.code == Some(0) && verified.stdout.contains("frames      40 of"), "{verified:?}");
        let scanned = json("scan", std::slice::from_ref(&path), &["--mode", mode]);
        assert_eq!(scanned["frames"], 40, "{scanned}");
    }
    // The packets alone tell no prefix.
    let scanned = json("scan", &[station.path("captured.pcapng")], &[]);
    assert_eq!(
        scanned["frames"].as_u64().map(|frames| frames * (size as u64 + 8)),
        Some(40 * 1072),
        "{scanned}"
    );
}

#[test]
fn frames_without_a_header_to_two_ports_are_read_one_port_at_a_time() {
    let station = Station::new();
    let (size, mode) = CODIF;
    let file = |name: &str, first: u8| {
        let bytes: Vec<u8> = (0..20 * size).map(|at| first + (at / size) as u8).collect();
        fs::write(station.path(name), &bytes).expect("space");
        bytes
    };
    let streams = [("a.codif", "36001"), ("b.codif", "36002")];
    let expected = [file("a.codif", 0x80), file("b.codif", 0xc0)];
    let mut both = Vec::new();
    for (name, port) in streams {
        station.write(&["pcapng", name, &size.to_string(), "8", "one.pcapng", port]);
        both.extend(fs::read(station.path("one.pcapng")).expect("it was written"));
    }
    let capture = station.path("both.pcapng");
    fs::write(&capture, both).expect("space");
    let to = station.path("of.codif");
    let export = ["--mode", mode, "--to", text(&to)];
    for command in [about("verify", &[&capture], &["--mode", mode]), about("export", &[&capture], &export)] {
        assert_eq!(command.code, Some(2), "{command:?}");
        assert!(command.stderr.contains("--port: 36001 (20 frames), 36002 (20)"), "{command:?}");
    }
    assert!(!to.exists());
    for ((_, port), bytes) in streams.into_iter().zip(expected) {
        let exported = about("export", &[&capture], &[&export[..], &["--port", port]].concat());
        assert_eq!(exported.code, Some(0), "{exported:?}");
        assert!(fs::read(&to).expect("it was written") == bytes, "port {port}");
        fs::remove_file(&to).expect("it is ours");
    }
    // Without a mode, the frames of one port are taken: the others are a fault.
    for (command, more) in [("verify", &[][..]), ("scan", &[]), ("export", &["--to", text(&to)])] {
        let ended = about(command, &[&capture], more);
        let told = [ended.stdout.as_str(), &ended.stderr].concat();
        assert!(ended.code == Some(1) && told.contains("20 of 1072 B to port 3600"), "{command}: {ended:?}");
    }
    let file = about("verify", &[station.path("a.codif")], &["--mode", mode, "--port", "36001"]);
    assert!(file.code == Some(2) && file.stderr.contains("only packets in a capture"), "{file:?}");
}

#[test]
fn a_mode_that_is_not_there_is_refused_with_the_frames_that_are() {
    let station = Station::new();
    let (vdif, _) = station.vdif("50", &[]);
    station.write(&["pcap", "all.vdif", &FRAME.to_string(), "8", "captured.pcap"]);
    let capture = station.path("captured.pcap");
    for (path, found) in [(&capture, "vdif, 1032 B each"), (&vdif, "its frames are vdif of 1032 B")] {
        let refused = about("verify", &[path], &["--mode", "VDIF_8000-4096-16-2"]);
        assert!(refused.code == Some(2) && refused.stderr.contains(found), "{refused:?}");
        let right = about("verify", &[path], &["--mode", "VDIF_1000-64-1-2"]);
        assert_eq!(right.code, Some(0), "{right:?}");
    }
    let wrong = about("scan", &[&capture], &["--mode", "VDIF"]);
    assert!(wrong.code == Some(2) && wrong.stderr.contains("VDIF_<payload>"), "{wrong:?}");
    let directory = about("scan", &[station.0.path()], &["--mode", "VDIF_1000-64-1-2"]);
    assert!(
        directory.code == Some(2) && directory.stderr.contains("only a file of frames or a capture"),
        "{directory:?}"
    );
}
