//! Journals that say less: `verify`, `export` and `repair` read files whose journals have no contents, or are those of another
//! machine. Each test records, and then edits the records of the journal.

use std::{
    fs,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use nilometer_recording::journal::RECORD;
use nilometer_tests::{Ended, FileSystem, may_mount, run};
use rustix::fs::{FlockOperation, flock};

use crate::hdf5::lab::{Lab, assert_verified, found_in};

/// Frames of the recordings here.
const FRAMES: u64 = 40;

/// Kinds of records.
const END: u32 = 5;
const BOOT: u32 = 11;
const CONTENTS: u32 = 13;

/// A record of a journal.
struct EditedRecord {
    kind: u32,
    numbers: [u64; 6],
}

/// The journal of a recording of one lane, changed record by record: one that is said to be none is left out.
fn edit_journal(directory: &Path, edit: impl Fn(EditedRecord) -> Option<EditedRecord>) {
    let path = directory.join("scan.0.journal");
    let bytes = fs::read(&path).expect("it is there");
    let records = bytes.chunks_exact(RECORD).map(|record| {
        let number = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().expect("8 bytes"));
        let kind = u32::from_le_bytes(record[4..8].try_into().expect("4 bytes"));
        EditedRecord { kind, numbers: [16, 24, 32, 40, 48, 56].map(number) }
    });
    let mut edited = Vec::new();
    for (sequence, EditedRecord { kind, numbers }) in (0_u64..).zip(records.filter_map(edit)) {
        let mut record = [kind.to_le_bytes().to_vec(), sequence.to_le_bytes().to_vec()].concat();
        record.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        edited.extend(crc32fast::hash(&record).to_le_bytes());
        edited.extend(record);
    }
    fs::write(&path, edited).expect("space");
}

/// Removes what the journal says of its files beside their frames: a recorder leaves it out if it is too long.
fn remove_contents(directory: &Path) {
    edit_journal(directory, |record| (record.kind != CONTENTS).then_some(record));
}

/// As of a machine that went down while it recorded, and was another one.
fn make_elsewhere(directory: &Path) {
    edit_journal(directory, |record| match record.kind {
        END => None,
        BOOT => Some(EditedRecord { numbers: [7, 11, 0, 0, 0, 0], ..record }),
        _ => Some(record),
    });
}

fn asked(command: &str, more: &[&str], directory: &Path) -> Ended {
    let mut arguments = vec![PathBuf::from(command)];
    arguments.extend(more.iter().map(PathBuf::from));
    arguments.push(directory.to_owned());
    run(&arguments)
}

/// The bytes of all frames, by `export`.
fn exported(lab: &Lab, name: &str) -> Vec<u8> {
    let to = lab.home.path().join(name);
    let ended = asked("export", &["--to", to.to_str().expect("a plain name")], &lab.lanes()[0]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    fs::read(to).expect("it was written")
}

fn cut_superblock(file: &Path) {
    let file = fs::OpenOptions::new().write(true).open(file).expect("it is there");
    file.write_all_at(&[0; 48], 0).expect("space");
}

fn is_read_without_contents(compression: &str, more: &[&str]) {
    let lab = Lab::small("data = \"diffraction\"\n");
    lab.record(compression, &[&["--frames", "40"], more].concat());
    remove_contents(&lab.lanes()[0]);
    assert_verified(&lab, FRAMES);
    let scan = lab.about("scan");
    assert!(scan.code == Some(0) && scan.stdout.contains("recording   scan, hdf5\n"), "{scan:?}");
    let whole = lab.about("repair");
    assert!(whole.code == Some(0) && whole.stdout.starts_with("whole "), "{whole:?}");
    let truth = fs::read(lab.truth(FRAMES)).expect("it was written");
    assert!(exported(&lab, "whole.raw") == truth, "{compression}: every frame is what it was");

    cut_superblock(&lab.file());
    let damaged = fs::read(lab.file()).expect("it is there");
    let failed = lab.about("repair");
    assert!(failed.code == Some(1) && failed.stdout.starts_with("failed "), "{failed:?}");
    assert!(failed.stdout.contains("its journal does not describe the rest of the file"), "{failed:?}");
    assert!(fs::read(lab.file()).expect("it is there") == damaged, "it is left as it is");
    assert!(
        exported(&lab, "damaged.raw") == truth,
        "{compression}: the journal has the places of all frames"
    );
}

#[test]
fn files_whose_journals_have_no_contents_are_read_and_not_made_anew() {
    is_read_without_contents("none", &[]);
    is_read_without_contents("bslz4", &[]);
}

#[test]
fn a_recording_of_another_machine_is_repaired_when_somebody_says_that_the_machine_is_down() {
    if !may_mount() {
        return;
    }
    let lab = Lab::small("data = \"diffraction\"\n");
    lab.record("bslz4", &["--frames", "40"]);
    // What several machines may write at once: at least this is none of the file systems that one machine has for itself.
    let shared = FileSystem::ramfs();
    let directory = shared.path().join("scan");
    fs::create_dir(&directory).expect("space");
    for entry in fs::read_dir(&lab.lanes()[0]).expect("it is there") {
        let entry = entry.expect("it is there");
        fs::copy(entry.path(), directory.join(entry.file_name())).expect("space");
    }
    make_elsewhere(&directory);
    let file = directory.join("scan.h5");
    cut_superblock(&file);
    let damaged = fs::read(&file).expect("it is there");
    let refused = asked("repair", &[], &directory);
    assert!(refused.code == Some(2), "{refused:?}");
    assert!(refused.stderr.contains("if that machine is down, add --recorder-is-down"), "{refused:?}");
    assert!(fs::read(&file).expect("it is there") == damaged, "nothing was done");

    let held = fs::File::open(&directory).expect("it is there");
    flock(&held, FlockOperation::LockExclusive).expect("nobody holds it");
    let recorded = asked("repair", &["--recorder-is-down"], &directory);
    assert!(
        recorded.code == Some(1) && recorded.stderr.contains("another process records or repairs it"),
        "{recorded:?}"
    );
    drop(held);

    for word in ["repaired ", "whole "] {
        let repaired = asked("repair", &["--recorder-is-down"], &directory);
        assert!(repaired.code == Some(0) && repaired.stdout.starts_with(word), "{repaired:?}");
    }
    if let Some(read) = found_in(&lab.truth(FRAMES), &file) {
        read.assert_whole(FRAMES);
    }
    // Unended, so that nobody knows what was due behind: `verify` says so, and finds each frame right.
    let verified = asked("verify", &[], &directory);
    assert!(verified.stdout.contains("right       40 frames"), "{verified:?}");
}
