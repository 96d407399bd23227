//! The recorder loses its power, or its process, at random moments, on targets that forget what was not synced. What it
//! called durable, or acknowledged, is there afterwards. An engine that only pretends to sync must be found out.

use nilometer_acquisition::sink::{Durability, Numbering};
use nilometer_model::{Format, FrameCompression, Nanos, Seed, Storing};
use nilometer_recording::{
    instrument::Content,
    reader::{FrameLocation, Trust},
};
use nilometer_storage::{
    OpKind,
    testing::{Cost, Device, Simulated},
};

use crate::{
    lab::{Lab, PAGE, Run},
    pretending::Pretending,
    whole_files::WholeFiles,
};

/// The labs, by how frames are stored, whether small ones are written together, and whether what is in a file is synced
/// before that is full.
fn labs() -> impl Iterator<Item = Lab> {
    let apart = each_by_itself();
    let together = each_by_itself().into_iter().filter(|lab| lab.format == Format::Raw);
    // A frame and a half more than the device takes: there is always something to be collected.
    let together = together.map(|lab| Lab { together: 4 * 5120, period: Nanos(700), ..lab });
    let objects = each_by_itself().into_iter().filter(can_be_objects).map(as_objects);
    let slowly = each_by_itself().into_iter().filter(|lab| lab.frames_per_file > 1).map(slowly_filled);
    apart.into_iter().chain(together).chain(slowly).chain(objects)
}

fn can_be_objects(lab: &Lab) -> bool {
    lab.format != Format::Hdf5 && matches!(lab.storing, Storing::Files | Storing::Scattered)
}

/// The same on storage whose files are put whole, such as S3, beside a journal of which each write is there.
#[expect(clippy::needless_pass_by_value, reason = "it is mapped over labs")]
fn as_objects(lab: Lab) -> Lab {
    let devices = lab.devices.iter().map(|device| Device { objects: true, ..device.clone() }).collect();
    let numbering: fn(&Numbering) -> Numbering = |numbering| numbering.clone().without_renames();
    Lab { devices, whole_files: true, keep: None, numbering, wrap: WholeFiles::around, ..lab }
}

/// Frames come so slowly that checkpoints are made before a file is full.
fn slowly_filled(lab: Lab) -> Lab {
    Lab { checkpoint: Nanos(10_000), frames_per_file: 20, period: Nanos(3000), ..lab }
}

fn each_by_itself() -> [Lab; 9] {
    let one_file = Lab { keep: None, ..lab() };
    [
        lab(),
        Lab { format: Format::Cbf, frame_size: 512, frames_per_file: 1, ..lab() },
        Lab { storing: Storing::Growing, ..one_file.clone() },
        Lab { format: Format::Hdf5, storing: Storing::Growing, ..one_file.clone() },
        Lab { format: Format::Hdf5, storing: Storing::Positions, frame_size: PAGE, ..one_file.clone() },
        Lab {
            format: Format::Hdf5,
            compression: FrameCompression::Bslz4,
            storing: Storing::Growing,
            ..one_file.clone()
        },
        Lab { storing: Storing::Scattered, frame_size: PAGE + 512, ..one_file.clone() },
        Lab { storing: Storing::Shared, writers: 2, ..one_file },
        Lab { storing: Storing::Ring, keep: Some(2), ..lab() },
    ]
}

fn lab() -> Lab {
    let write = Cost { base: Nanos(500), picoseconds_per_byte: 200 };
    let sync = Cost::fixed(Nanos(20_000));
    let device = Device { write, sync, metadata: Cost::fixed(Nanos(2000)), parallel: 2, ..Device::default() };
    Lab {
        frame_size: PAGE + 9,
        frames: 120,
        period: Nanos(2000),
        slots: 64,
        depth: 3,
        frames_per_file: 8,
        keep: Some(4),
        devices: vec![device.clone(), device],
        ..Lab::default()
    }
}

fn seeds() -> u64 {
    if std::env::var_os("NILOMETER_LONG").is_some() { 100_000 } else { 1000 }
}

/// A moment of the recording, which takes about a quarter of a millisecond.
fn moment(seed: u64) -> Nanos {
    Nanos(Seed(seed).named("moment").stream().below(400_000))
}

/// Frames that were called durable before the crash, and are not known to be removed.
pub(crate) fn promised(run: &Run) -> Vec<u64> {
    let index = run.index(Trust::Acknowledged);
    let kept = |place: &FrameLocation| {
        run.durable[index.heads[place.lane].lane as usize].0.is_some_and(|last| place.file() <= last)
    };
    let files = index.frames.iter().filter(|(_, place)| kept(place)).map(|(number, _)| number);
    let records =
        run.durable.iter().enumerate().flat_map(|(lane, (_, records))| run.frames_in(lane, *records));
    let there = |number: &u64| index.frames.contains(*number);
    let mut promised: Vec<u64> = files.chain(records.filter(there)).collect();
    promised.sort_unstable();
    promised.dedup();
    promised
}

/// Nothing is removed; but where it is, as soon as possible, and nothing waits for a sync.
fn without_syncs(lab: Lab) -> Lab {
    match lab.storing {
        Storing::Ring => Lab { frames_per_file: 1, durability: Durability::Never, ..lab },
        _ => Lab { keep: None, ..lab },
    }
}

/// Crashes once: how many frames had been called durable, and what is wrong with them, if anything is.
fn crash(lab: &Lab, seed: u64) -> (usize, Option<String>) {
    let run = lab.run(moment(seed));
    let promised = promised(&run);
    for (lane, target) in run.targets.iter().enumerate() {
        target.crash(Seed(seed).part(lane as u64));
    }
    let index = run.index(Trust::Durable);
    let gone: Vec<_> = promised.iter().filter(|number| !index.frames.contains(**number)).collect();
    let wrong = run.wrong(&index, &lab.pattern());
    // A frame that is there can be made again too.
    let unknown = !index.frames.is_empty() && index.origin != Content::Pattern(lab.pattern()).origin();
    let fault = format!(
        "seed {seed}: of the frames called durable {gone:?} are gone and {wrong:?} are wrong; what they are made from \
         is lost: {unknown}"
    );
    (promised.len(), (!gone.is_empty() || !wrong.is_empty() || unknown).then_some(fault))
}

#[test]
fn durable_frames_survive_the_loss_of_power() {
    let runs = seeds() / 5;
    for lab in labs() {
        let mut promised = 0;
        for seed in 0..runs {
            let (durable, fault) = crash(&lab, seed);
            assert_eq!(fault, None, "{:?} {:?} {}", lab.storing, lab.format, lab.together);
            promised += durable;
        }
        assert!(
            promised as u64 > 5 * runs / 3,
            "{:?} {:?} {}: only {promised} frames were called durable in all runs: the moments are too early",
            lab.storing,
            lab.format,
            lab.together
        );
    }
}

#[test]
fn acknowledged_frames_survive_the_death_of_the_process() {
    let runs = seeds() / 15;
    for lab in labs() {
        let (lab, mut seen) = (without_syncs(lab), 0);
        for seed in 0..runs {
            let run = lab.run(moment(seed));
            run.targets.iter().for_each(Simulated::kill);
            let index = run.index(Trust::Acknowledged);
            assert_eq!(run.wrong(&index, &lab.pattern()), Vec::<u64>::new(), "seed {seed}");
            let there = |number: &u64| index.frames.contains(*number) || index.removed.contains(*number);
            let missing: Vec<u64> = (0..run.mark).filter(|number| !there(number)).collect();
            assert!(
                run.ring.books().lost() > 0 || missing.is_empty(),
                "seed {seed}: {missing:?} were acknowledged"
            );
            seen += index.frames.len() as u64 + index.removed.count();
        }
        assert!(
            seen > 5 * runs,
            "{:?}: only {seen} frames were recorded: the moments are too early",
            lab.storing
        );
    }
}

#[test]
fn an_engine_that_forgets_to_sync_is_found_out() {
    // An object is put by closing it too, and then needs no sync.
    for lab in labs().filter(|lab| !lab.whole_files) {
        let lab = Lab {
            wrap: |engine| Box::new(Pretending { engine, kind: OpKind::SyncData, instead: OpKind::Allocate }),
            ..lab
        };
        let found = (0..seeds() / 6).filter(|&seed| crash(&lab, seed).1.is_some()).count();
        assert!(found > 20, "{:?}: the simulation found the fault with {found} seeds only", lab.storing);
    }
}
