//! `--begin` and `--end`: the same part, exported and mounted.

use std::fs;

use nilometer_tests::{Mounted, may_show};

use super::{about, recorded, text};

/// Bytes of a frame.
const FRAME: usize = 320_000;

#[test]
fn an_export_has_the_frames_between_the_limits_and_verifies_them() {
    let disks = [(); 2].map(|()| tempfile::tempdir().expect("a temporary directory"));
    let lanes = recorded(&[disks[0].path(), disks[1].path()], 30, &[]);
    let [all, part, rest] = ["all", "part", "rest"].map(|name| disks[0].path().join(name));
    assert_eq!(about("export", &lanes, &["--to", text(&all)]).code, Some(0));
    let all = fs::read(&all).expect("it was written");
    let limits = ["--begin", "7", "--end", "19", "--verify"];
    let ended = about("export", &lanes, &[&["--to", text(&part)], &limits[..]].concat());
    assert!(ended.code == Some(0) && ended.stdout.contains("part        frames 7 to 18"), "{ended:?}");
    assert!(ended.stdout.contains("12 frames equal those of the simulated"), "{ended:?}");
    assert!(fs::read(&part).expect("it was written") == all[7 * FRAME..19 * FRAME]);
    // By the journal's times, because these frames have none of the calendar.
    let ended = about("export", &lanes, &["--to", text(&rest), "--begin", "+100ms"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let rest = fs::read(&rest).expect("it was written");
    assert!(rest.len() < all.len() && all.ends_with(&rest));
}

#[test]
fn a_part_outside_the_recording_is_refused_with_its_range_by_every_command() {
    let disk = tempfile::tempdir().expect("a temporary directory");
    let lanes = recorded(&[disk.path()], 8, &[]);
    let file = disk.path().join("part");
    let at = tempfile::tempdir().expect("a temporary directory");
    let commands = [("export", ["--to", text(&file)]), ("mount", ["--at", text(at.path())])];
    for (command, place) in commands {
        for limit in [["--begin", "9"], ["--end", "9"], ["--begin", "+1h"]] {
            let ended = about(command, &lanes, &[place, limit].concat());
            let message = "lies outside scan; it has frames 0 to 7";
            assert!(ended.code == Some(2) && ended.stderr.contains(message), "{command} {limit:?} {ended:?}");
        }
        let ended = about(command, &lanes, &[place, ["--begin", "2026-11-28T18:00:00"]].concat());
        assert!(ended.code == Some(2) && ended.stderr.contains("no times of the calendar"), "{ended:?}");
    }
    assert!(!file.exists());
}

#[test]
fn a_mount_shows_the_frames_between_the_limits() {
    if !may_show() {
        return;
    }
    let disk = tempfile::tempdir().expect("a temporary directory");
    let lanes = recorded(&[disk.path()], 20, &[]);
    let all = disk.path().join("all");
    assert_eq!(about("export", &lanes, &["--to", text(&all)]).code, Some(0));
    let all = fs::read(&all).expect("it was written");
    let mounted = Mounted::with(&lanes, &["--begin", "3", "--end", "11"]);
    let shown = fs::read(mounted.file("scan.raw")).expect("it can be read");
    assert!(shown == all[3 * FRAME..11 * FRAME], "{} bytes", shown.len());
    let (ended, is_gone) = mounted.end();
    assert!(ended.code == Some(0) && is_gone, "{ended:?}");
}
