//! Recordings that are read where they were made: through the engines of simulated targets.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use nilometer_acquisition::export::{Export, Exporting, SLOTS};
use nilometer_model::{Bytes, EngineKind, Format, Nanos, Storing};
use nilometer_recording::{
    reader::{OpenError, Recording, Trust},
    recording_storage::{RecordingStorage, TargetDirectories},
    verify,
    view::{Extent, RecordingView, Scan},
};
use nilometer_storage::{
    Buffer, Clock, Drive, Engine, OpKind, Open, Operation, ROOT, Slot, Target, Wait, engine::Options,
    testing::Memory,
};

use crate::lab::{Lab, PAGE, Run};

fn lab(storing: Storing, format: Format) -> Lab {
    let frames_per_file = if format == Format::Raw { 7 } else { 1 };
    Lab { frames: 300, writers: 2, checksums: true, frames_per_file, storing, format, ..Lab::default() }
}

/// The targets of a run, as directories.
fn storage(run: &Run) -> (Arc<TargetDirectories>, Vec<PathBuf>) {
    let paths: Vec<_> = (0..run.targets.len()).map(|target| PathBuf::from(format!("{target}"))).collect();
    let targets = run.back().targets.into_iter().map(|target| Arc::new(target) as Arc<dyn Target>);
    let storage = TargetDirectories::new(paths.iter().cloned().zip(targets)).expect("engines");
    (Arc::new(storage), paths)
}

fn opened(run: &Run) -> RecordingView {
    let (storage, paths) = storage(run);
    let recording = Recording::open_on(storage, &paths, Trust::Acknowledged).expect("a recording");
    RecordingView::new(recording, Extent::All)
}

#[test]
fn a_recording_is_verified_and_scanned_through_engines() {
    for (storing, format) in [
        (Storing::Files, Format::Raw),
        (Storing::Growing, Format::Raw),
        (Storing::Shared, Format::Raw),
        (Storing::Scattered, Format::Raw),
        (Storing::Files, Format::Cbf),
        (Storing::Growing, Format::Hdf5),
        (Storing::Positions, Format::Hdf5),
    ] {
        let lab = lab(storing, format);
        let run = lab.run(Nanos::MAX);
        let whole = opened(&run);
        let verified = verify(&whole);
        let counts = (verified.right, verified.unchecked, verified.damaged_frames, verified.missing_frames());
        assert_eq!(counts, (300, 0, 0, 0), "{storing:?} {format:?}: {:?}", verified.damaged.first());
        assert!(verified.made_again);
        let scan = Scan::of(&whole).read_all(&whole, |_| {});
        assert_eq!((scan.frames, scan.missing_frames), (300, 0), "{storing:?} {format:?}");
        let mut frame = vec![0; lab.frame_size as usize];
        assert_eq!(whole.read_at(299 * lab.frame_size, &mut frame), frame.len());
        assert_eq!(lab.pattern().verify(299, &frame), Ok(()), "{storing:?} {format:?}");
        assert_eq!(whole.faults().count, 0, "{:?}", whole.faults());
    }
}

const FILE: Slot = Slot(1);

fn engine(target: &dyn Target) -> Box<dyn Engine> {
    let options = Options { kind: EngineKind::Sync, depth: 1, slots: SLOTS, clock: Clock::start() };
    target.engine(&options).expect("an engine")
}

fn carry_out(engine: &mut dyn Engine, operation: Operation) {
    engine.submit(operation, Nanos(0));
    let mut done = Vec::new();
    engine.reap(Wait::ForOne, &mut done);
    done.pop().expect("one completion for one operation").result.expect("it is there");
}

fn named(kind: OpKind, slot: Slot, name: &str) -> Operation {
    Operation::named(kind, ROOT, slot, name.as_bytes(), Buffer::alone(256))
}

/// Changes a byte of a file, or removes the file.
fn spoil(target: &dyn Target, name: &str, kind: OpKind) {
    let mut engine = engine(target);
    if kind == OpKind::Unlink {
        return carry_out(&mut *engine, named(kind, ROOT, name));
    }
    carry_out(&mut *engine, named(OpKind::Open(Open::WRITE), FILE, name));
    carry_out(&mut *engine, Operation::write(FILE, 100, 1, Buffer::alone(1)));
}

#[test]
fn a_recording_is_exported_from_one_engine_to_another() {
    let run = lab(Storing::Scattered, Format::Raw).run(Nanos::MAX);
    let whole = Arc::new(opened(&run));
    let mut expected = vec![0; whole.length() as usize];
    assert_eq!(whole.read_at(0, &mut expected), 300 * PAGE as usize);
    let target = Arc::new(Memory::new(Bytes(1 << 26)));
    let mut engine = engine(&*target);
    carry_out(&mut *engine, named(OpKind::Open(Open::CREATE), FILE, "all"));
    carry_out(&mut *engine, Operation::on(OpKind::Close, FILE, Buffer::alone(1)));
    let exporting = Exporting { name: "all".into(), direct: false, at_most: None, depth: 1 };
    let mut export = Export::new(whole, exporting, Arc::default(), engine.waker()).expect("a thread");
    Drive::new(&mut export, &mut *engine).run(|_| {});
    assert!(export.is_whole(), "{:?}", export.fault());
    let storage = TargetDirectories::new([("to".into(), target as Arc<dyn Target>)]).expect("an engine");
    let mut written = vec![0; expected.len()];
    let file = storage.open(Path::new("to/all")).expect("it was made").file;
    file.read_exact_at(&mut written, 0).expect("it is long enough");
    assert!(written == expected);
}

#[test]
fn what_is_damaged_or_not_there_is_found_through_engines() {
    let run = lab(Storing::Files, Format::Raw).run(Nanos::MAX);
    let name = run.index(Trust::Acknowledged).heads[0].file_name("n_r", 2);
    for (kind, damaged) in [(OpKind::Write, 1), (OpKind::Unlink, 7)] {
        let run = run.back();
        spoil(&run.targets[0], &name, kind);
        let verified = verify(&opened(&run));
        assert_eq!((verified.right, verified.damaged_frames), (300 - damaged, damaged), "{kind:?}");
        let why = &verified.damaged[0].why;
        assert!(
            why.contains(if kind == OpKind::Write { "differs from byte 0" } else { "can't be read" }),
            "{why}"
        );
    }
}

#[test]
fn files_of_a_target_are_those_of_its_directory_alone() {
    let run = lab(Storing::Files, Format::Raw).run(Nanos::MAX);
    let (storage, paths) = storage(&run);
    let none = |path: &str| storage.open(Path::new(path)).expect_err("it is not there").kind();
    assert_eq!([none("0/no"), none("7/n_r.0.journal")], [std::io::ErrorKind::NotFound; 2]);
    assert!(storage.is_there(&paths[0].join("n_r.0.journal")) && !storage.is_there(&paths[0].join("no")));
    assert!(storage.open(Path::new("0/..")).is_err());
    for _ in 0..2 {
        let mut names = Vec::new();
        storage.each_name(&paths[0], &mut |name, _| names.push(name.to_owned())).expect("it is there");
        assert_eq!(names.iter().filter(|name| name.ends_with(".journal")).count(), 2, "{names:?}");
    }
    // A slot is free again when its file is dropped.
    for _ in 0..1000 {
        let file = storage.open(&paths[0].join("n_r.1.journal")).expect("it is there").file;
        let mut head = [0; 64];
        file.read_exact_at(&mut head, 0).expect("it begins with a head");
        assert!(file.read_exact_at(&mut head, 1 << 40).is_err() && file.into_file().is_none());
    }
    let no = Recording::open_on(storage, &["7".into()], Trust::Durable).expect_err("it is not there");
    assert!(matches!(no, OpenError::Directory { .. }), "{no}");
}
