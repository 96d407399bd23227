//! HDF5 files of a recorder that loses its power, or dies, are repaired on real directories: then HDF5 finds in them every
//! frame that was called durable, bit for bit, and nothing that is not right.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use nilometer_hdf5::{ReadFile, SUPERBLOCK};
use nilometer_hdf5_recording::{
    FRAMES_IN_FILE, RECORDER_IN_FILE, RepairOptions, RepairOutcome, RepairedFile, repair_recording,
};
use nilometer_model::{Nanos, Seed, Storing};
use nilometer_recording::reader::{Recording, Trust};
use nilometer_storage::{process::BootId, testing::Simulated};
use tempfile::TempDir;

use crate::{
    crashes::promised,
    hdf5,
    lab::{Lab, Run},
};

fn seeds() -> u64 {
    if std::env::var_os("NILOMETER_LONG").is_some() { 1000 } else { 100 }
}

/// Those of HDF5, of which what is written is durable soon, on a machine that is not this one.
fn labs() -> impl Iterator<Item = Lab> {
    let soon = |lab| Lab { checkpoint: Nanos(20_000), boot: Some(BootId(7)), ..lab };
    hdf5::labs().into_iter().map(soon)
}

/// What is left on the targets, as directories.
struct Left {
    home: TempDir,
    directories: Vec<PathBuf>,
}

impl Left {
    fn by(run: &Run) -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        let directories: Vec<_> =
            (0..run.targets.len()).map(|target| home.path().join(target.to_string())).collect();
        for (target, directory) in directories.iter().enumerate() {
            fs::create_dir(directory).expect("space");
            for name in run.names(target) {
                fs::write(directory.join(&name), run.read(target, &name)).expect("space");
            }
        }
        Left { home, directories }
    }

    fn repair(&self) -> Vec<RepairedFile> {
        let mut files = Vec::new();
        let repaired = repair_recording(&self.directories, RepairOptions::default(), &mut |file| {
            files.push(file.clone());
        });
        repaired.expect("it is a recording, and nobody holds it");
        files
    }

    fn recording(&self, trust: Trust) -> Option<Recording> {
        Recording::open(&self.directories, trust).ok()
    }

    /// All files, by their paths.
    fn bytes(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let each =
            self.directories.iter().flat_map(|directory| fs::read_dir(directory).expect("it is there"));
        let paths = each.map(|entry| entry.expect("it is there").path());
        paths.map(|path| (path.clone(), fs::read(path).expect("it is there"))).collect()
    }
}

/// Frames that HDF5 finds and that are said to be whole: each must be that of the instrument.
fn found(left: &Left, lab: &Lab) -> Vec<u64> {
    let Some(recording) = left.recording(Trust::Acknowledged) else { return Vec::new() };
    let mut paths: BTreeMap<PathBuf, u64> = BTreeMap::new();
    for (number, place) in recording.index.frames.iter() {
        let in_file = if lab.storing == Storing::Growing { number } else { number % lab.frames_per_file };
        paths.insert(recording.path(place), number - in_file);
    }
    let mut found = Vec::new();
    for (path, first) in paths {
        let Ok(file) = ReadFile::open(&path) else { continue };
        let bytes = fs::read(&path).expect("it is there");
        let data = file.dataset(FRAMES_IN_FILE).expect("it is there");
        let flags = file.dataset(&format!("{RECORDER_IN_FILE}/flag")).and_then(|flags| flags.numbers());
        for (in_file, flag) in (0..).zip(flags.expect("they can be read")) {
            if flag != 0 {
                continue;
            }
            let number = first + in_file;
            let chunks = hdf5::indexed_chunks(&data, lab, in_file).expect("its index has all of it");
            let place = recording.index.frames.get(number).expect("no other is said to be whole");
            assert_eq!(chunks, hdf5::chunks_of(&bytes, &place.extent), "frame {number}");
            let mut frame = vec![0; lab.frame_size as usize];
            let stored = &bytes[place.extent.offset as usize..place.extent.end() as usize];
            place.extent.encoding.decode(stored, &mut frame).expect("it is a chunk");
            assert_eq!(lab.pattern().verify(number, &frame), Ok(()), "frame {number} of {}", path.display());
            found.push(number);
        }
    }
    found.sort_unstable();
    found
}

/// Frames of which a file says that they are there and nobody knows whether they are right.
fn flagged(path: &Path) -> u64 {
    let file = ReadFile::open(path).expect("it was repaired");
    let flags = file.dataset(&format!("{RECORDER_IN_FILE}/flag")).and_then(|flags| flags.numbers());
    flags.expect("they can be read").iter().filter(|flag| **flag == 2).count() as u64
}

/// What a loss of power came to.
#[derive(Debug, Clone, Copy, Default)]
struct PowerLost {
    /// Files that had to be repaired.
    files: usize,
    /// Frames that were called durable.
    promised: usize,
    /// Frames in the files that are said not to be proved.
    unproved: u64,
}

impl PowerLost {
    /// All seeds of a lab together.
    fn of(lab: &Lab) -> Self {
        (0..seeds()).map(|seed| power_lost(lab, seed)).fold(PowerLost::default(), |sum, one| PowerLost {
            files: sum.files + one.files,
            promised: sum.promised + one.promised,
            unproved: sum.unproved + one.unproved,
        })
    }
}

/// The power is lost once.
fn power_lost(lab: &Lab, seed: u64) -> PowerLost {
    let run = lab.run(Nanos(Seed(seed).named("moment").stream().below(400_000)));
    let promised = promised(&run);
    for (lane, target) in run.targets.iter().enumerate() {
        target.crash(Seed(seed).part(lane as u64));
    }
    let left = Left::by(&run);
    if left.recording(Trust::Acknowledged).is_none() {
        assert_eq!(promised, Vec::<u64>::new(), "seed {seed}: there is no journal");
        return PowerLost::default();
    }
    let before = left.bytes();
    let files = left.repair();
    let failed =
        files.iter().find(|file| matches!(file.outcome, RepairOutcome::Failed(_)) && file.frames > 0);
    assert_eq!(failed, None, "{:?} seed {seed}", lab.storing);
    let is_repaired = |file: &&RepairedFile| matches!(file.outcome, RepairOutcome::Repaired(_));
    let changed: Vec<_> = files.iter().filter(is_repaired).map(|file| file.path.clone()).collect();
    for (path, now) in left.bytes() {
        let Some(then) = before.get(&path) else { continue };
        // But for the superblock, what was there is there: whoever is killed before that leaves it.
        let begin = if changed.contains(&path) { (SUPERBLOCK as usize).min(then.len()) } else { 0 };
        let is_kept = now[begin..then.len()] == then[begin..];
        assert!(is_kept, "{:?} seed {seed}: {} is another", lab.storing, path.display());
    }
    let there = found(&left, lab);
    let gone: Vec<_> = promised.iter().filter(|number| there.binary_search(number).is_err()).collect();
    assert!(gone.is_empty(), "{:?} seed {seed}: {gone:?} were called durable: {files:?}", lab.storing);
    let is_master = |file: &&RepairedFile| file.path.ends_with("n_r_master.h5");
    for file in files.iter().filter(is_repaired).filter(|file| !is_master(file)) {
        assert_eq!(flagged(&file.path), file.unproved, "{:?} seed {seed}: {file:?}", lab.storing);
    }
    let again = left.repair();
    assert!(again.iter().all(|file| !is_repaired(&file)), "{:?} seed {seed}: {again:?}", lab.storing);
    assert!(left.home.path().is_dir());
    PowerLost {
        files: changed.len(),
        promised: promised.len(),
        unproved: files.iter().map(|file| file.unproved).sum(),
    }
}

#[test]
fn every_durable_frame_is_found_after_the_power_was_lost_and_the_files_were_repaired() {
    for lab in labs() {
        let PowerLost { files, promised, unproved } = PowerLost::of(&lab);
        assert!(files > 20, "{:?}: only {files} files had to be repaired", lab.storing);
        assert!(promised > 500, "{:?}: only {promised} frames were called durable", lab.storing);
        assert_eq!(unproved, 0, "{:?}: each can be made again", lab.storing);
    }
}

#[test]
fn what_was_not_durable_and_can_be_compared_with_nothing_is_said_to_be_unproved() {
    for lab in labs().map(|lab| Lab { says_origin: false, ..lab }) {
        let PowerLost { files, promised, unproved } = PowerLost::of(&lab);
        assert!(files > 20, "{:?}: only {files} files had to be repaired", lab.storing);
        assert!(promised > 500, "{:?}: only {promised} frames were called durable", lab.storing);
        assert!(unproved > 20, "{:?}: only {unproved} frames are unproved", lab.storing);
    }
}

#[test]
fn files_of_a_recorder_that_dies_are_whole_and_are_not_touched() {
    for lab in labs() {
        let lab = Lab { boot: None, ..lab };
        let mut seen = 0;
        for seed in 0..seeds() {
            let run = lab.run(Nanos(Seed(seed).named("moment").stream().below(400_000)));
            run.targets.iter().for_each(Simulated::kill);
            let left = Left::by(&run);
            let Some(recording) = left.recording(Trust::Acknowledged) else { continue };
            let acknowledged: Vec<u64> = recording.index.frames.iter().map(|(number, _)| number).collect();
            let before = left.bytes();
            for file in left.repair() {
                let is_master = file.path.ends_with("n_r_master.h5");
                let is_well = match file.outcome {
                    // A file that was made ahead is removed; below it is checked that nothing was in it.
                    RepairOutcome::Whole | RepairOutcome::Removed => true,
                    // It was begun when the recorder died: no frame in it was acknowledged.
                    RepairOutcome::Failed(_) => file.frames == 0,
                    _ => false,
                };
                assert!(is_master || is_well, "{:?} seed {seed}: {file:?}", lab.storing);
            }
            let after = left.bytes();
            let is_blank = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
            let is_kept = |(path, bytes): (&_, &Vec<u8>)| match after.get(path) {
                Some(kept) => kept == bytes,
                None => is_blank(bytes),
            };
            assert!(before.iter().all(is_kept), "{:?} seed {seed}", lab.storing);
            seen += acknowledged.len();
        }
        assert!(seen > 1000, "{:?}: only {seen} frames were recorded", lab.storing);
    }
}
