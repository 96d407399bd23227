//! `nilometer scan`, `verify` and `export`.

use std::fs;

use nilometer_intake::transport::faults::Faults;
use nilometer_tests::{Ended, address, await_packets, run};
use rustix::process::Signal;

use super::lab::{FRAME, FRAMES_OF_BLOCK, LIMIT, Lab, open};

/// A command about the recording.
pub(crate) fn about(lab: &Lab, command: &str, more: &[&str]) -> Ended {
    let lanes = lab.lanes();
    let lanes: Vec<_> = lanes.iter().map(|lane| lane.to_str().expect("plain names")).collect();
    run(&[&[command], &lanes[..], more].concat())
}

fn assert_refused(ended: &Ended, part: &str) {
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
    assert_eq!(ended.stderr.matches("nilometer: ").count(), 1, "{}", ended.stderr);
    assert!(ended.stderr.contains(part), "`{part}` is missing in: {}", ended.stderr);
}

#[test]
fn chunks_of_three_directories_become_the_file_that_was_sent() {
    let (lab, frames) = (Lab::new(2000, 3), 5321);
    lab.recorded(frames);
    let scan = about(&lab, "scan", &["--all"]);
    assert_eq!(scan.code, Some(0), "{scan:?}");
    for part in ["scan, vdif", "5321 of 8.03 kB", "2025-05-08T06:13:20", "missing     none"] {
        assert!(scan.stdout.contains(part), "`{part}` is missing in: {}", scan.stdout);
    }
    assert_eq!(about(&lab, "verify", &[]).code, Some(0));
    let proved = about(&lab, "verify", &["--compared-least", "100 %"]);
    let is_doubted = proved.stderr.contains("not decided: 0 of ") && proved.stderr.contains("--checksums");
    assert!(proved.code == Some(4) && is_doubted, "there are no checksums: {proved:?}");

    let path = lab.path().join("one.vdif");
    let to = path.to_str().expect("plain names");
    let export = about(&lab, "export", &["--to", to, "--verify"]);
    assert!(export.code == Some(0) && export.stdout.contains("its checksum is the same"), "{export:?}");
    lab.assert_sent(open(&path), frames);
    lab.assert_baseband_finds(&path, frames, 0);

    fs::write(&path, "mine").expect("space");
    assert_refused(&about(&lab, "export", &["--to", to]), "exists: name a new file");
    assert_eq!(fs::read(&path).expect("it is there"), b"mine");
    assert_refused(&about(&lab, "export", &["--to", "/no/such/place"]), "/no/such");
    assert_refused(&about(&lab, "export", &["--to", "/tmp", "--rate", "0 B/s"]), "--rate 0");
    let named = lab.path().join("central");
    fs::create_dir(&named).expect("space");
    let central = named.to_str().expect("plain names");
    assert_eq!(about(&lab, "export", &["--to", central, "--rate", "1 GB/s"]).code, Some(0));
    assert!(fs::read(named.join("scan.vdif")).expect("the name of the recording") == lab.sent(frames));
}

#[test]
fn what_the_network_lost_is_marked_and_time_goes_on() {
    let (lab, frames) = (Lab::new(2000, 2), 4000);
    let faults = Faults { loss: 0.02, loss_burst: 5, ..Faults::default() };
    let missing = Lab::not_sent(frames, faults);
    assert!(!missing.is_empty() && !missing.contains(&0) && !missing.contains(&(frames - 1)));
    let running = lab.record(&["--http", "127.0.0.1:0"]);
    lab.send_with(frames, 10.0, faults);
    await_packets(address(&running, "http"), frames - missing.len() as u64);
    running.signal(Signal::TERM);
    assert_eq!(running.end(LIMIT).code, Some(1), "packets are missing");
    let path = lab.path().join("one.vdif");
    assert_eq!(about(&lab, "export", &["--to", path.to_str().expect("plain names")]).code, Some(0));
    assert_eq!(lab.invalid(open(&path), frames), missing);
    lab.assert_baseband_finds(&path, frames, missing.len() as u64);
    let scan = about(&lab, "scan", &["--all"]);
    let invalid = format!("{} ", missing.len());
    let line = scan.stdout.lines().find(|line| line.starts_with("missing")).unwrap_or_default();
    assert!(line.contains(&invalid), "{scan:?}");
    says_what_scan_says(&about(&lab, "verify", &[]), &scan, &missing);
}

/// Verifying names the packets that are missing, as `scan` does, and fails for none of them: the recording has what came.
fn says_what_scan_says(verified: &Ended, scan: &Ended, missing: &[u64]) {
    assert_eq!(verified.code, Some(0), "{verified:?}");
    let count = format!("missing     {} frames did not come and are marked as invalid\n", missing.len());
    assert!(verified.stdout.contains(&count) && scan.stdout.contains(&count), "{verified:?}");
    let gaps = |ended: &Ended| -> Vec<String> {
        let lines = ended.stdout.lines().filter(|line| line.starts_with("gap  "));
        lines.map(str::to_owned).collect()
    };
    let named = gaps(verified);
    assert!(named == gaps(scan) && named.len() == 10, "{verified:?}");
    let first = missing.iter().zip(missing[0]..).take_while(|(missing, next)| **missing == *next).count();
    let plural = if first == 1 { "" } else { "s" };
    assert_eq!(named[0], format!("gap         {first} packet{plural} from frame {}", missing[0]));
    assert!(verified.stdout.contains(" more gaps: `nilometer scan --json` names all\n"), "{verified:?}");
}

#[test]
fn a_directory_that_is_gone_is_named_and_marked() {
    let (lab, frames) = (Lab::new(2000, 3), 5120);
    lab.recorded(frames);
    fs::rename(lab.to[1].join("scan"), lab.path().join("elsewhere")).expect("one file system");
    let left = Lab::onto(2000, vec![lab.to[0].clone(), lab.to[2].clone()]);
    let verified = about(&left, "verify", &[]);
    assert_eq!(verified.code, Some(1), "{verified:?}");
    assert!(verified.stdout.contains("not here: scan.1.journal"), "{verified:?}");
    let path = lab.path().join("one.vdif");
    let export = about(&left, "export", &["--to", path.to_str().expect("plain names")]);
    assert!(export.code == Some(1) && export.stdout.contains("missing  "), "{export:?}");
    let invalid = lab.invalid(open(&path), frames);
    let blocks = invalid.len() / FRAMES_OF_BLOCK;
    assert!(blocks > 0 && invalid.len().is_multiple_of(FRAMES_OF_BLOCK), "{} frames", invalid.len());
    assert!(verified.stdout.contains(&format!("missing     {blocks} blocks")), "{verified:?}");
    lab.assert_baseband_finds(&path, frames, invalid.len() as u64);
}

#[test]
fn a_part_begins_and_ends_at_the_times_in_the_headers() {
    let (lab, frames) = (Lab::new(2000, 2), 6001);
    lab.recorded(frames);
    let sent = lab.sent(frames);
    let path = lab.path().join("part.vdif");
    let to = ["--to", path.to_str().expect("plain names"), "--verify"];
    // The stream begins at 2025-05-08T06:13:20, which is day 128, with 2000 frames a second.
    for (limits, part) in [
        (["--begin", "2025-05-08T06:13:21", "--end", "2025y128d06h13m22.5s"], 2000..5000),
        (["--begin", "2025-05-08T06:13:21.0001Z", "--end", "+2s"], 2001..4000),
        (["--begin", "packet:77", "--end", "78"], 77..78),
    ] {
        let ended = about(&lab, "export", &[&to[..], &limits].concat());
        assert!(ended.code == Some(0) && ended.stdout.contains("its checksum is the same"), "{ended:?}");
        let expected = &sent[part.start * FRAME..part.end * FRAME];
        assert!(fs::read(&path).expect("it was written") == expected, "{limits:?} {ended:?}");
        fs::remove_file(&path).expect("it is ours");
    }
    let early = about(&lab, "export", &[&to[..], &["--begin", "2025-05-08T06:13:19"]].concat());
    let range = "it has frames 0 to 6000, from 2025-05-08T06:13:20Z to 2025-05-08T06:13:23.0005Z";
    assert_refused(&early, range);
}
