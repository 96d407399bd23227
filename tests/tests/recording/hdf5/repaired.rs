//! Files of which someone or something destroyed the metadata, and `nilometer repair`: h5py reads every frame again.

use std::{
    fs,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    time::Duration,
};

use nilometer_hdf5::SUPERBLOCK;
use nilometer_model::Seed;
use nilometer_tests::{Ended, await_some, run, start};
use rustix::{
    fs::{FlockOperation, flock},
    process::{Signal, kill_process},
};

use crate::hdf5::lab::{LIMIT, Lab, assert_verified, found, found_in};

/// What is done to a file: its name, and how.
type Damage = (&'static str, fn(&Damaged<'_>));

/// A file to be damaged.
struct Damaged<'a> {
    path: &'a Path,
    /// Where its frames are, and how many bytes each has.
    chunks: Vec<(u64, u64)>,
}

impl Damaged<'_> {
    fn file(&self) -> fs::File {
        fs::OpenOptions::new().write(true).open(self.path).expect("it is there")
    }

    /// Overwrites all that lies between and behind frames.
    fn fill(&self, byte: u8) {
        let file = self.file();
        let length = file.metadata().expect("it is there").len();
        let mut next = 0;
        for (begin, bytes) in self.chunks.iter().copied().chain([(length, 0)]) {
            file.write_all_at(&vec![byte; (begin - next) as usize], next).expect("space");
            next = begin + bytes;
        }
    }
}

const DAMAGES: [Damage; 4] = [
    ("the superblock is zero", |damaged| {
        damaged.file().write_all_at(&[0; 96], 0).expect("space");
    }),
    ("all but the frames is overwritten", |damaged| damaged.fill(0xa5)),
    ("all but the frames is zero", |damaged| damaged.fill(0)),
    ("it is cut behind the last frame", |damaged| {
        let end = damaged.chunks.last().map_or(0, |(begin, bytes)| begin + bytes);
        damaged.file().set_len(end).expect("it can be cut");
    }),
];

fn repair(lab: &Lab, more: &[&str]) -> Ended {
    let mut arguments = vec![PathBuf::from("repair")];
    arguments.extend(more.iter().map(PathBuf::from));
    arguments.extend(lab.lanes());
    run(&arguments)
}

/// Lines of what was said that begin with a word.
fn lines(ended: &Ended, word: &str) -> usize {
    ended.stdout.lines().filter(|line| line.starts_with(word)).count()
}

fn chunks(lab: &Lab, frames: u64, path: &Path, first: u64) -> Option<Vec<(u64, u64)>> {
    let read = found(&lab.truth(frames), &[(path.to_owned(), first)])?.pop()?;
    let count = read.frames("right").len() as u64;
    let mut chunks: Vec<_> = (first..first + count).map(|frame| read.chunk(frame)).collect();
    chunks.sort_unstable();
    Some(chunks)
}

fn is_mended(compression: &str) {
    const FRAMES: u64 = 60;
    let lab = Lab::small("data = \"diffraction\"\n");
    lab.record(compression, &["--frames", "60"]);
    let whole = repair(&lab, &[]);
    assert!(whole.code == Some(0) && lines(&whole, "whole") == 1, "{whole:?}");
    let recorded = fs::read(lab.file()).expect("it is there");
    let Some(chunks) = chunks(&lab, FRAMES, &lab.file(), 0) else { return };
    for (name, damage) in DAMAGES {
        fs::write(lab.file(), &recorded).expect("space");
        damage(&Damaged { path: &lab.file(), chunks: chunks.clone() });
        let damaged = fs::read(lab.file()).expect("it is there");
        if damaged == recorded {
            // Nothing lies behind the last frame.
            continue;
        }
        let verified = lab.about("verify");
        assert!(
            verified.code == Some(1) && verified.stderr.contains("`nilometer repair`"),
            "{name}: {verified:?}"
        );
        let dry = repair(&lab, &["--dry-run"]);
        assert!(dry.code == Some(0) && lines(&dry, "to repair") == 1, "{name}: {dry:?}");
        assert!(fs::read(lab.file()).expect("it is there") == damaged, "{name}: only said");
        for word in ["repaired", "whole"] {
            let repaired = repair(&lab, &[]);
            assert!(repaired.code == Some(0) && lines(&repaired, word) == 1, "{name}: {repaired:?}");
            let read = found_in(&lab.truth(FRAMES), &lab.file()).expect("h5py was there before");
            read.assert_whole(FRAMES);
            assert!(
                read.column("due").is_sorted() && read.column("arrived").iter().all(|moment| *moment == -1)
            );
            assert_verified(&lab, FRAMES);
        }
    }
}

#[test]
fn a_file_without_its_metadata_is_whole_again() {
    is_mended("none");
}

#[test]
fn a_file_of_compressed_frames_without_its_metadata_is_whole_again() {
    is_mended("bslz4");
}

#[test]
fn files_of_several_directories_and_the_one_over_them_are_whole_again() {
    const FRAMES: u64 = 100;
    let lab = Lab::small("recording.frames_per_file = 20\n");
    let [one, two] = ["one", "two"].map(|name| lab.made(name));
    let lab = lab.into(&[&one, &two]);
    lab.record("bslz4", &["--frames", "100"]);
    let master = lab.lanes()[0].join("scan_master.h5");
    let files = |lab: &Lab| {
        let each = lab.lanes().into_iter().flat_map(|lane| fs::read_dir(lane).expect("it is there"));
        let paths = each.map(|entry| entry.expect("it is there").path());
        let mut files: Vec<_> =
            paths.filter(|path| path.extension().is_some_and(|kind| kind == "h5")).collect();
        files.sort_by_key(|path| path.file_name().map(ToOwned::to_owned));
        files
    };
    let all = files(&lab);
    assert_eq!(all.len(), 6, "{all:?}");
    let Some(read) = found_in(&lab.truth(FRAMES), &master) else { return };
    assert_eq!(read.frames("right").len() as u64, FRAMES);
    for path in &all {
        fs::OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|file| file.write_all_at(&[0x11; 4096], 0))
            .expect("space");
    }
    let repaired = repair(&lab, &[]);
    assert!(repaired.code == Some(0) && lines(&repaired, "repaired") == 6, "{repaired:?}");
    let again = repair(&lab, &[]);
    assert!(again.code == Some(0) && lines(&again, "whole") == 6, "{again:?}");
    let read = found_in(&lab.truth(FRAMES), &master).expect("h5py was there before");
    assert_eq!(read.frames("right").len() as u64, FRAMES);
    for (number, path) in (0..).zip(all.iter().filter(|path| **path != master)) {
        let read =
            found(&lab.truth(FRAMES), &[(path.clone(), number * 20)]).and_then(|mut found| found.pop());
        assert_eq!(read.expect("h5py was there before").frames("right").len(), 20, "{}", path.display());
    }
    fs::remove_file(&master).expect("it is there");
    let made = repair(&lab, &[]);
    assert!(made.code == Some(0) && lines(&made, "repaired") == 1 && master.exists(), "{made:?}");
    assert_verified(&lab, FRAMES);
}

#[test]
fn frames_that_are_lost_are_named_and_blank() {
    let lab = Lab::small("data = \"diffraction\"\n");
    lab.record("bslz4", &["--frames", "60"]);
    let Some(chunks) = chunks(&lab, 60, &lab.file(), 0) else { return };
    let damaged = Damaged { path: &lab.file(), chunks: chunks.clone() };
    damaged.fill(0x3c);
    damaged.file().write_all_at(&vec![0; chunks[7].1 as usize], chunks[7].0).expect("space");
    for word in ["repaired", "whole"] {
        let repaired = repair(&lab, &[]);
        assert!(repaired.code == Some(1) && lines(&repaired, word) == 1, "{repaired:?}");
        assert!(
            repaired.stdout.contains(": 59 frames, 1 lost") && lines(&repaired, "lost") == 1,
            "{repaired:?}"
        );
        assert_eq!(repaired.stderr, "nilometer: 1 frames that were acknowledged are lost\n");
    }
    let read = found_in(&lab.truth(60), &lab.file()).expect("h5py was there before");
    assert_eq!((read.frames("right").len(), read.frames("blank").len()), (59, 1));
    assert_eq!(read.column("flag").iter().filter(|flag| **flag == 1).count(), 1);
    assert_eq!([read.total("frames_whole"), read.total("frames_blank")], [Some(59), Some(1)]);
}

/// The damaged file as it was, or with what is new behind it, up to the superblock: that comes last and at once.
fn is_as_it_was_or_whole(lab: &Lab, damaged: &[u8], frames: u64) {
    let now = fs::read(lab.file()).expect("it is there");
    let head = SUPERBLOCK as usize;
    assert!(now[head..damaged.len()] == damaged[head..], "what was there is there");
    if now[..head] == damaged[..head] {
        return;
    }
    found_in(&lab.truth(frames), &lab.file()).expect("h5py was there before").assert_whole(frames);
}

#[test]
fn a_repair_that_is_killed_leaves_the_file_as_it_was() {
    const FRAMES: u64 = 150;
    let lab = Lab::new("1000, 1000", "uint16", "200 Hz", "");
    // The buffer holds all frames: however slow the disk is, none is lost.
    lab.record("none", &["--frames", "150", "--buffer", "320 MiB"]);
    let Some(chunks) = chunks(&lab, FRAMES, &lab.file(), 0) else { return };
    Damaged { path: &lab.file(), chunks }.fill(0x5a);
    let damaged = fs::read(lab.file()).expect("it is there");
    let seed = u64::from(std::process::id());
    let mut moments = Seed(seed).stream();
    for _ in 0..8 {
        let mut arguments = vec![PathBuf::from("repair")];
        arguments.extend(lab.lanes());
        let running = start(lab.home.path(), &arguments);
        // The whole takes some 300 ms: some are killed before the end, whatever else the machine does.
        std::thread::sleep(Duration::from_millis(moments.below(300)));
        running.killed();
        is_as_it_was_or_whole(&lab, &damaged, FRAMES);
    }
    let repaired = repair(&lab, &[]);
    assert_eq!(repaired.code, Some(0), "seed {seed}: {repaired:?}");
    found_in(&lab.truth(FRAMES), &lab.file()).expect("h5py was there before").assert_whole(FRAMES);
    assert_verified(&lab, FRAMES);
}

#[test]
fn what_is_no_recording_in_hdf5_or_is_held_is_refused() {
    let lab = Lab::small("");
    let nothing = run(&["repair".as_ref(), lab.to[0].as_os_str()]);
    assert!(nothing.code == Some(2) && nothing.stderr.contains("no recording in"), "{nothing:?}");
    let raw = lab.simulate(&["--format", "raw"], &["--frames", "5", "--name", "raw"]).end(LIMIT);
    assert_eq!(raw.code, Some(0), "{raw:?}");
    let refused = run(&["repair".as_ref(), lab.to[0].join("raw").as_os_str()]);
    let why = "nilometer: raw is a recording in the format raw: only files in hdf5 have an index that can be repaired\n";
    assert_eq!((refused.code, refused.stderr.as_str()), (Some(2), why));
    lab.record("none", &["--frames", "5"]);
    let directory = fs::File::open(&lab.lanes()[0]).expect("it is there");
    flock(&directory, FlockOperation::LockExclusive).expect("nobody holds it");
    let held = repair(&lab, &[]);
    assert!(
        held.code == Some(1) && held.stderr.contains("another process records or repairs it"),
        "{held:?}"
    );
}

#[test]
fn a_file_that_was_made_ahead_is_removed_and_one_with_bytes_in_it_is_named() {
    let lab = Lab::new("64, 96", "uint16", "400 Hz", "");
    assert_eq!(lab.record("none", &["--frames", "20"]).code, Some(0));
    let lane = lab.lanes().swap_remove(0);
    let [blank, zeros, foreign] =
        ["scan.00000001.h5", "scan.00000002.h5", "others.00000003.h5"].map(|name| lane.join(name));
    for (path, bytes) in [(&blank, Vec::new()), (&zeros, vec![0; 5000]), (&foreign, Vec::new())] {
        fs::write(path, bytes).expect("space");
    }
    let dry = repair(&lab, &["--dry-run"]);
    assert!(dry.stdout.matches("to remove").count() == 2 && blank.exists(), "{dry:?}");
    let repaired = repair(&lab, &[]);
    assert_eq!(repaired.code, Some(0), "{repaired:?}");
    assert_eq!(repaired.stdout.matches("removed ").count(), 2, "{repaired:?}");
    assert!(!blank.exists() && !zeros.exists() && foreign.exists(), "{repaired:?}");
    fs::write(&blank, "bytes that nobody knows").expect("space");
    let repaired = repair(&lab, &[]);
    assert!(
        repaired.code == Some(1) && repaired.stdout.contains("no journal describes its content"),
        "{repaired:?}"
    );
    assert!(blank.exists());
    // The recording ended in order: its recorder has left no file behind.
    fs::write(&blank, begun_bytes()).expect("space");
    let repaired = repair(&lab, &[]);
    assert!(repaired.code == Some(1) && blank.exists(), "{repaired:?}");
}

/// A file as a recorder begins it: texts behind the place of the superblock, which comes last.
fn begun_bytes() -> Vec<u8> {
    [&[0; 2120][..], b"2026-11-30T05:23:01.827721278Z"].concat()
}

#[test]
fn a_file_that_a_killed_recorder_had_begun_is_removed() {
    let lab = Lab::new("64, 96", "uint16", "400 Hz", "");
    let recorder = lab.start("none", &["--duration", "1 min"]);
    await_some("frames", || (lab.acknowledged().len() > 5).then_some(()));
    kill_process(recorder.worker(), Signal::KILL).expect("it runs");
    assert_eq!(recorder.end(LIMIT).code, Some(1));
    let lane = lab.lanes().swap_remove(0);
    let begun = lane.join("scan.99999999.h5");
    fs::write(&begun, begun_bytes()).expect("space");
    let dry = repair(&lab, &["--dry-run"]);
    assert!(dry.stdout.contains("scan.99999999.h5: the recorder made it ahead"), "{dry:?}");
    assert!(begun.exists(), "{dry:?}");
    let repaired = repair(&lab, &[]);
    assert!(repaired.code == Some(0) && !begun.exists(), "{repaired:?}");
}

#[test]
fn a_recorder_that_ended_before_the_first_record_lost_nothing() {
    let home = tempfile::tempdir().expect("a temporary directory");
    for name in ["r.0.journal", "r.00000000.h5", "mine.h5"] {
        fs::write(home.path().join(name), "").expect("space");
    }
    for command in ["verify", "scan", "repair"] {
        let ended = start(home.path(), &[command, "."]).end(LIMIT);
        assert_eq!(ended.code, Some(1), "{command}: {ended:?}");
        let part = "r.0.journal: the recorder ended before it wrote the first record";
        assert!(ended.stderr.contains(part), "{command}: {ended:?}");
    }
    assert!(!home.path().join("r.00000000.h5").exists() && home.path().join("mine.h5").exists());
}
