//! HDF5 files of a recorder that dies: whatever of them is there is a file that HDF5 opens, with every frame that was
//! acknowledged in its index, and nothing in it that is not written.

use nilometer_hdf5::{ReadDataset, ReadFile};
use nilometer_hdf5_recording::{FRAMES_IN_FILE, RECORDER_IN_FILE};
use nilometer_model::{Format, FrameCompression, Nanos, Seed, Storing};
use nilometer_recording::{
    journal::{Encoding, FrameExtent},
    reader::{Index, Trust},
    tiles::TileTable,
};
use nilometer_storage::{
    Engine, Errno, OpKind,
    testing::{
        Simulated,
        wrap::{FaultEffect, Faulty, Rule, When},
    },
};

use crate::lab::{Lab, PAGE, Run, disk};

fn seeds() -> u64 {
    if std::env::var_os("NILOMETER_LONG").is_some() { 5000 } else { 40 }
}

pub(crate) fn labs() -> [Lab; 7] {
    let lab = Lab {
        format: Format::Hdf5,
        storing: Storing::Growing,
        frame_size: PAGE,
        frames: 120,
        period: Nanos(2000),
        slots: 64,
        depth: 3,
        frames_per_file: 8,
        devices: vec![disk(Nanos(500))],
        ..Lab::default()
    };
    [
        lab.clone(),
        Lab { compression: FrameCompression::Bslz4, frame_size: 1024, ..lab.clone() },
        // All come at once: what encodes them has no room when a part of the file is full, and nothing is in flight.
        Lab { compression: FrameCompression::Bslz4, period: Nanos(10), slots: 200, ..lab.clone() },
        Lab { storing: Storing::Positions, ..lab.clone() },
        Lab { tile: Some(300), ..lab.clone() },
        Lab {
            tile: Some(300),
            compression: FrameCompression::Bslz4,
            storing: Storing::Positions,
            ..lab.clone()
        },
        Lab { storing: Storing::Positions, devices: vec![disk(Nanos(500)), disk(Nanos(900))], ..lab },
    ]
}

/// Where the chunks of a frame are in these bytes of its file, and how many bytes each has.
pub(crate) fn chunks_of(file: &[u8], extent: &FrameExtent) -> Vec<(u64, u64)> {
    let FrameExtent { offset, length, encoding, size, .. } = *extent;
    let Encoding::Tiles(_, element) = encoding else { return vec![(offset, length.into())] };
    let table = TileTable::read(&file[offset as usize..], element, size as usize).expect("it was written");
    table.places.iter().map(|place| (offset + place.offset, place.length.into())).collect()
}

/// Where the index of a file has the chunks of its frame of this number.
pub(crate) fn indexed_chunks(data: &ReadDataset, lab: &Lab, in_file: u64) -> Option<Vec<(u64, u64)>> {
    let pixels = data.dimensions()[1];
    let tile = lab.tile.unwrap_or(pixels);
    let chunk = |pixel: u64| data.chunk(&[in_file, pixel]).ok()?.map(|chunk| (chunk.offset, chunk.bytes));
    (0..pixels).step_by(tile as usize).map(chunk).collect()
}

/// Whether the index of a frame's file has it where it is, and says that it is whole.
fn is_indexed(run: &Run, lab: &Lab, index: &Index, number: u64) -> Option<bool> {
    let place = index.frames.get(number)?;
    let target = index.heads[place.lane].lane as usize;
    let names = index.file_names("n_r", place);
    let bytes = names.iter().map(|name| run.read(target, name)).find(|bytes| !bytes.is_empty())?;
    let file = ReadFile::of_bytes(&bytes).ok()?;
    let data = file.dataset(FRAMES_IN_FILE).ok()?;
    let in_file = if lab.storing == Storing::Growing { number } else { number % lab.frames_per_file };
    let found = indexed_chunks(&data, lab, in_file)?;
    let flag = file.dataset(&format!("{RECORDER_IN_FILE}/flag")).ok()?.numbers().ok()?;
    Some(flag.get(in_file as usize) == Some(&0) && found == chunks_of(&bytes, &place.extent))
}

/// Frames that are acknowledged and can't be found by readers of HDF5, or not where they are.
fn not_found(run: &Run, lab: &Lab) -> Vec<u64> {
    let index = run.index(Trust::Acknowledged);
    let is_wrong = |number: &u64| is_indexed(run, lab, &index, *number) != Some(true);
    index.frames.iter().map(|(number, _)| number).filter(is_wrong).collect()
}

#[test]
fn every_acknowledged_frame_of_a_recorder_that_dies_is_in_the_index_of_its_file() {
    for lab in labs() {
        let mut seen = 0;
        for seed in 0..seeds() {
            let run = lab.run(Nanos(Seed(seed).named("moment").stream().below(400_000)));
            run.targets.iter().for_each(Simulated::kill);
            assert_eq!(not_found(&run, &lab), Vec::<u64>::new(), "{:?} seed {seed}", lab.storing);
            let index = run.index(Trust::Acknowledged);
            assert_eq!(run.wrong(&index, &lab.pattern()), Vec::<u64>::new(), "{:?} seed {seed}", lab.storing);
            seen += index.frames.len();
        }
        assert!(
            seen as u64 > 10 * seeds(),
            "{:?}: only {seen} frames were recorded: the moments are too early",
            lab.storing
        );
    }
}

#[test]
fn a_recording_that_ends_has_all_its_frames_in_files_that_are_closed() {
    for lab in labs() {
        let run = lab.run(Nanos::MAX);
        let stored = run.index(Trust::Acknowledged).frames.len() as u64;
        assert_eq!((stored + run.ring.books().lost(), run.due), (120, 120), "{:?}", lab.storing);
        assert_eq!(not_found(&run, &lab), Vec::<u64>::new(), "{:?}", lab.storing);
    }
}

/// What wraps an engine.
type Wrap = fn(Box<dyn Engine>) -> Box<dyn Engine>;

/// Each engine writes so many times, then does this instead.
fn failing(engine: Box<dyn Engine>, writes: u64, effect: FaultEffect) -> Box<dyn Engine> {
    let rule = Rule { on: Some(OpKind::Write), when: When::FromNth(writes), effect };
    Box::new(Faulty::new(engine, &[rule], Seed(1)))
}

#[test]
fn every_acknowledged_frame_of_a_lane_that_fails_is_in_the_index_of_its_file() {
    let wraps: [Wrap; 4] = [
        |engine| failing(engine, 161, FaultEffect::Error(Errno::EIO)),
        |engine| failing(engine, 230, FaultEffect::Error(Errno::ENOSPC)),
        |engine| failing(engine, 110, FaultEffect::Short),
        |engine| failing(engine, 197, FaultEffect::Short),
    ];
    for lab in labs() {
        let mut seen = 0;
        for wrap in wraps {
            let lab = Lab { wrap, ..lab.clone() };
            let run = lab.run(Nanos::MAX);
            assert!(run.lanes.iter().any(|lane| lane.fault.is_some()), "{:?}: none failed", lab.storing);
            assert_eq!(not_found(&run, &lab), Vec::<u64>::new(), "{:?}", lab.storing);
            let index = run.index(Trust::Acknowledged);
            assert_eq!(run.wrong(&index, &lab.pattern()), Vec::<u64>::new(), "{:?}", lab.storing);
            seen += index.frames.len();
        }
        assert!(seen > 20, "{:?}: only {seen} frames were recorded before", lab.storing);
    }
}
