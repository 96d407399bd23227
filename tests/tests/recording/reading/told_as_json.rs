//! `nilometer verify --json`: the same as its lines, for programs.

use std::{fs, os::unix::fs::FileExt, path::Path};

use serde_json::Value;

use super::{about, frames_in, recorded, text};

fn verified(directories: &[&Path]) -> (Option<i32>, Vec<Value>) {
    let ended = about("verify", directories, &["--json"]);
    let list: Value =
        serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    (ended.code, list.as_array().expect("a list").clone())
}

#[test]
fn a_recording_is_whole_or_its_damaged_frame_is_named() {
    let disk = tempfile::tempdir().expect("a temporary directory");
    let lane = recorded(&[disk.path()], 8, &[]).swap_remove(0);
    let (code, list) = verified(&[&lane]);
    let [one] = &list[..] else { panic!("{list:?}") };
    assert_eq!(code, Some(0), "{one}");
    for (key, value) in [("right", 8), ("missing", 0), ("damaged", 0), ("right_bytes", 8 * 320_000)] {
        assert_eq!(one[key], value, "{key} of {one}");
    }
    assert!(one["whole"] == true && one["name"] == "scan" && one["lanes_ended"] == 1, "{one}");

    let file = fs::File::options().write(true).open(frames_in(&lane)).expect("it is ours");
    file.write_all_at(b"!", 17).expect("space");
    let (code, list) = verified(&[&lane]);
    let one = &list[0];
    assert_eq!(code, Some(1), "{one}");
    assert!(one["whole"] == false && one["right"] == 7 && one["damaged"] == 1, "{one}");
    let damaged = &one["damaged_frames"][0];
    assert!(damaged["frame"] == 0 && damaged["offset"] == 0, "{damaged}");
    assert_eq!(damaged["file"], text(&frames_in(&lane)));
}

#[test]
fn several_recordings_are_elements_of_one_list_and_a_missing_frame_is_a_range() {
    let [first, second] = [(); 2].map(|()| tempfile::tempdir().expect("a temporary directory"));
    let whole = recorded(&[first.path()], 5, &[]).swap_remove(0);
    let torn = recorded(&[second.path()], 8, &["--storing", "files", "--format", "raw"]).swap_remove(0);
    fs::remove_file(frames_in(&torn)).expect("it is ours");
    let (code, list) = verified(&[&whole, &torn]);
    assert_eq!((code, list.len()), (Some(1), 2), "{list:?}");
    let broken = list.iter().find(|one| one["whole"] == false).expect("one is not whole");
    let gone = broken["missing"].as_u64().unwrap_or(0) + broken["damaged"].as_u64().unwrap_or(0);
    assert!(gone > 0 && broken["right"].as_u64() == Some(8 - gone), "{broken}");
    assert!(!broken["faults"].as_array().expect("a list").is_empty(), "{broken}");
}

#[test]
fn a_file_without_a_journal_is_told_by_its_frames() {
    let disk = tempfile::tempdir().expect("a temporary directory");
    let lane = recorded(&[disk.path()], 4, &[]).swap_remove(0);
    let to = disk.path().join("copy.h5");
    let export = about("export", &[&lane], &["--to", text(&to), "--format", "hdf5"]);
    assert_eq!(export.code, Some(0), "{export:?}");
    let (code, list) = verified(&[&to]);
    let [one] = &list[..] else { panic!("{list:?}") };
    assert!(code == Some(0) && one["whole"] == true, "{one}");
    assert!(one["frames"] == 4 && one["readable"] == 4 && one["missing"] == 0, "{one}");
}
