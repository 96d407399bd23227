//! Recordings of packets exported into a file of HDF5: frames that lack packets say so, and those that never came are blank.

use std::{fs, path::PathBuf};

use nilometer_recording::reader::{Recording, Trust};
use nilometer_tests::{Ended, free_port, run, start};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::hdf5::lab::{LIMIT, found_in, number};

/// A detector whose packets come over loopback, and what was recorded of it.
struct Loopback {
    home: TempDir,
    recorded: Ended,
}

impl Loopback {
    /// So many frames of a detector, with lines that say what it is and how it sends, of which some packets are lost.
    fn recorded(detector: &str, frames: u64, loss: &str) -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        let port = free_port();
        let text = format!(
            "name = \"detector\"\ntitle = \"for tests\"\nsource = \"none\"\n{}",
            detector.replace("PORT", &port.to_string())
        );
        fs::write(home.path().join("detector.toml"), text).expect("space");
        fs::create_dir(home.path().join("to")).expect("space");
        let record = [
            "record",
            "detector.toml",
            "--to",
            "to",
            "--name",
            "scan",
            "--reserve",
            "0 B",
            "--buffer",
            "64 MiB",
        ];
        let mut recording = start(home.path(), &record);
        recording.await_said("recording scan");
        let to = format!("udp://127.0.0.1:{port}");
        let count = frames.to_string();
        let arguments =
            ["simulate", "detector.toml", "--to", &to, "--frames", &count, "--seed", "7", "--loss", loss];
        let sent = start(home.path(), &arguments).end(LIMIT);
        assert!(sent.has_sent_all(), "{sent:?}");
        recording.signal(Signal::TERM);
        let recorded = recording.end(LIMIT);
        Loopback { home, recorded }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn export(&self, to: &str, more: &[&str]) -> Ended {
        let mut arguments: Vec<PathBuf> = vec!["export".into(), self.path("to/scan")];
        arguments.extend(["--to".into(), self.path(to)]);
        arguments.extend(more.iter().map(PathBuf::from));
        run(&arguments)
    }

    /// Packets that did not come, by the journals.
    fn missing(&self) -> u64 {
        let recording = Recording::open(&[self.path("to/scan")], Trust::Acknowledged).expect("it is there");
        recording.index.gaps.values().flatten().map(|gap| gap.count).sum()
    }
}

#[test]
fn frames_that_lack_packets_are_flagged() {
    let detector = "shape = [512, 1024]\npixel = \"uint16\"\nframe_rate = \"40 Hz\"\n[packets]\nport = PORT\n\
                    [packets.format.jungfrau]\nmodules = 1\n";
    let loopback = Loopback::recorded(detector, 50, "0.3 %");
    assert_eq!(loopback.recorded.code, Some(1), "packets are lost: {:?}", loopback.recorded);
    let unsaid = loopback.export("unsaid.h5", &["--format", "hdf5"]);
    assert!(unsaid.code == Some(2) && unsaid.stderr.contains("--instrument NAME"), "{unsaid:?}");
    let instrument = loopback.path("detector.toml");
    let instrument = instrument.to_str().expect("a plain path");
    let more = ["--format", "hdf5", "--compression", "bslz4", "--instrument", instrument];
    let plain = loopback.export("plain.raw", &[]);
    assert_eq!(plain.code, Some(0), "{plain:?}");
    for (name, chunk) in [("made.h5", &[][..]), ("stacks.h5", &["--chunk", "8x512x1024", "--verify"])] {
        let exported = loopback.export(name, &[&more, chunk].concat());
        assert_eq!(exported.code, Some(0), "{exported:?}");
        let Some(found) = found_in(&loopback.path("plain.raw"), &loopback.path(name)) else { return };
        let frames = found.column("flag").len() as u64;
        assert!(found.frames("right") == (0..frames).collect::<Vec<_>>() && frames >= 40, "{found:?}");
        let missing = found.column("missing");
        let flags = found.column("flag");
        assert!(flags.iter().zip(&missing).all(|(flag, missing)| *flag == 2 * i64::from(*missing > 0)));
        let count = loopback.missing();
        assert!(count > 0 && missing.iter().sum::<i64>().cast_unsigned() == count, "{missing:?}");
        assert_eq!(found.total("missing_total"), Some(count));
        let incomplete = missing.iter().filter(|missing| **missing > 0).count() as u64;
        assert_eq!(number(&exported, "incomplete"), incomplete);
    }
}

#[test]
fn frames_of_a_packet_each_are_there_or_blank() {
    let detector = "shape = [617]\npixel = \"uint16\"\nframe_rate = \"4000 Hz\"\n[packets]\nport = PORT\n\
                    [packets.format.raw]\npayload = \"1234 B\"\n";
    let loopback = Loopback::recorded(detector, 6000, "1 %");
    let instrument = loopback.path("detector.toml");
    let more = ["--format", "hdf5", "--instrument", instrument.to_str().expect("a plain path")];
    let plain = loopback.export("plain.raw", &[]);
    assert_eq!(plain.code, Some(0), "{plain:?}");
    // Blocks of packets have some hundred frames: several chunks, or one has several of them.
    for chunk in [&[][..], &["--chunk", "100x617", "--verify"], &["--chunk", "2500x300", "--verify"]] {
        let name = format!("{}.h5", chunk.get(1).unwrap_or(&"made"));
        let exported = loopback.export(&name, &[&more, chunk].concat());
        assert_eq!(exported.code, Some(0), "{exported:?} of {:?}", loopback.recorded);
        let Some(found) = found_in(&loopback.path("plain.raw"), &loopback.path(&name)) else { return };
        let count = loopback.missing();
        let flags = found.column("flag");
        assert!(count > 0 && flags.len() > 5000, "{:?}", loopback.recorded);
        assert_eq!(flags.iter().filter(|flag| **flag == 1).count() as u64, count);
        assert!(flags.iter().all(|flag| *flag == 0 || *flag == 1), "a frame is there or not");
        assert_eq!(found.frames("right").len() as u64, flags.len() as u64 - count, "{:?}", loopback.recorded);
    }
}
