//! Storage whose files are put whole: nothing of a file is there before it is synced or closed, and then nothing in it changes.
//! Whatever becomes of lanes, no journal says of a frame that it is there before its file is.

use nilometer_acquisition::sink::Durability;
use nilometer_model::{Nanos, Seed, Storing};
use nilometer_recording::{journal::RECORD, reader::Trust};
use nilometer_ring::WhenFull;
use nilometer_storage::{Completion, Engine, OpKind, Operation, Slot, Wait, testing::Device};

use crate::lab::{Lab, PAGE, Run, disk};

/// An engine that holds its lane to what such storage takes, and its journal to what is there.
pub(crate) struct WholeFiles {
    engine: Box<dyn Engine>,
    /// By slot.
    open: Vec<Option<OpenFile>>,
    /// Files of frames, in the order in which they were made: whether each is there.
    is_there: Vec<bool>,
}

/// What a slot has.
#[derive(Clone, Copy)]
enum OpenFile {
    /// It grows, and each write is there.
    Journal,
    /// A file of frames, by its number in the lane: where it ends, and whether it was put.
    Whole { number: usize, end: u64, put: bool },
}

impl WholeFiles {
    pub(crate) fn around(engine: Box<dyn Engine>) -> Box<dyn Engine> {
        Box::new(WholeFiles { engine, open: vec![None; 16], is_there: Vec::new() })
    }

    fn slot(&mut self, slot: Slot) -> &mut Option<OpenFile> {
        &mut self.open[slot.0 as usize]
    }

    /// Every frame that a write of the journal speaks of has to be there.
    fn check_journal(&self, operation: &Operation) {
        for record in operation.buffer[..operation.length as usize].chunks_exact(RECORD) {
            let number = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().expect("eight bytes"));
            if record[4] == FRAME {
                let file = (number(24) & ((1 << 48) - 1)) as usize;
                assert!(self.is_there[file], "a frame of file {file} was noted before that was put");
            }
        }
    }

    fn check(&mut self, operation: &Operation) {
        let Operation { kind, file, offset, length, .. } = *operation;
        match kind {
            OpKind::Open(open) if open.must_be_new() => {
                let number = self.is_there.len();
                let grows = open.grows();
                self.is_there.extend((!grows).then_some(false));
                let whole = OpenFile::Whole { number, end: 0, put: false };
                *self.slot(file) = Some(if grows { OpenFile::Journal } else { whole });
            }
            OpKind::Write => match self.slot(file) {
                Some(OpenFile::Journal) => self.check_journal(operation),
                Some(OpenFile::Whole { end, put, .. }) => {
                    assert!(offset == *end && !*put, "files are written from their beginning to their end");
                    *end += u64::from(length);
                }
                None => panic!("nothing is open"),
            },
            OpKind::Sync | OpKind::SyncData => {
                if let Some(OpenFile::Whole { put, .. }) = self.slot(file) {
                    *put = true;
                }
            }
            OpKind::Truncate | OpKind::Allocate | OpKind::Rename => panic!("{kind:?} can't be done"),
            _ => {}
        }
    }
}

/// The kind of a record of the journal that says where a frame is.
const FRAME: u8 = 12;

impl Engine for WholeFiles {
    crate::forwards!(engine);

    fn submit(&mut self, operation: Operation, due: Nanos) {
        self.check(&operation);
        self.engine.submit(operation, due);
    }

    fn reap(&mut self, wait: Wait, done: &mut Vec<Completion>) {
        let before = done.len();
        self.engine.reap(wait, done);
        for Completion { operation, result, .. } in &done[before..] {
            let puts = matches!(operation.kind, OpKind::Sync | OpKind::SyncData | OpKind::Close);
            if let (true, Ok(_), Some(OpenFile::Whole { number, .. })) =
                (puts, result, self.open[operation.file.0 as usize])
            {
                self.is_there[number] = true;
            }
        }
    }

    fn next_event(&self) -> Option<Nanos> {
        self.engine.next_event()
    }
}

fn lab(storing: Storing) -> Lab {
    Lab {
        frames: 400,
        period: Nanos(2_000),
        slots: 200,
        depth: 3,
        frames_per_file: 12,
        storing,
        whole_files: true,
        devices: [2_000, 3_000].map(|base| disk(Nanos(base))).to_vec(),
        numbering: |numbering| numbering.clone().without_renames(),
        wrap: WholeFiles::around,
        ..Lab::default()
    }
}

/// What is missing is what was lost, and what is there is right.
fn check(lab: &Lab, run: &Run, what: &str) {
    let back = run.back();
    let index = back.index(Trust::Acknowledged);
    let missing: u64 = index.missing().iter().map(|(_, count)| count).sum();
    assert_eq!(missing, run.ring.books().lost(), "{what}");
    assert!(index.copies.is_empty(), "{what}: {:?} are in two places", index.copies);
    assert_eq!(back.wrong(&index, &lab.pattern()), Vec::<u64>::new(), "{what}");
}

#[test]
fn frames_are_acknowledged_with_their_files_and_durable_where_storage_syncs() {
    for storing in [Storing::Files, Storing::Scattered] {
        for (durability, frames_per_file, together) in [
            (Durability::EachFile, 12, 0),
            (Durability::EachFile, 12, 5 * PAGE as u32),
            (Durability::EachFile, 1, 0),
            (Durability::Never, 12, 0),
            (Durability::Never, 1, 0),
        ] {
            let period = if frames_per_file == 1 { Nanos(40_000) } else { Nanos(2_000) };
            let lab = Lab { period, frames_per_file, together, durability, ..lab(storing) };
            let run = lab.run(Nanos::MAX);
            let what = format!("{storing:?} {durability:?} {frames_per_file} {together}");
            assert_eq!(run.ring.books().lost(), 0, "{what}");
            check(&lab, &run, &what);
            // Where frames come slowly one lane takes them all.
            let used = run.durable.iter().zip(&run.lanes).filter(|(_, lane)| lane.stored > 0);
            let durable = used.map(|((file, _), _)| file.is_some()).reduce(|all, one| all && one);
            assert_eq!(durable, Some(durability == Durability::EachFile), "{what}");
        }
    }
}

/// One of three disks dies, fills up or stands still at a random moment: what was in a file that was not put goes elsewhere.
#[test]
fn what_a_lane_had_not_put_when_it_failed_is_written_by_another() {
    let mut failed = 0;
    for seed in 0..300 {
        let mut stream = Seed(seed).named("whole files").stream();
        let storing = if seed % 2 == 0 { Storing::Files } else { Storing::Scattered };
        let mut devices: Vec<Device> = vec![disk(Nanos(2_000)); 3];
        let at = Nanos(10_000 + stream.below(700_000));
        match stream.below(3) {
            0 => devices[1].dead_from = at,
            1 => devices[1].capacity = (5 + stream.below(100)) * PAGE,
            _ => devices[1].stalls = vec![(at, at + Nanos(stream.below(400_000)))],
        }
        let when_full = WhenFull::ALL[1 + stream.below(2) as usize];
        // Some files are put before they are full.
        let checkpoint = Nanos(5_000 + stream.below(60_000));
        let lab = Lab { devices, when_full, checkpoint, ..lab(storing) };
        let run = lab.run(Nanos::MAX);
        check(&lab, &run, &format!("seed {seed}"));
        failed += run.lanes.iter().filter(|lane| lane.fault.is_some()).count();
    }
    assert!(failed > 50, "only {failed} lanes failed");
}

/// Frames that come a hundred times as slowly as a file is put: none waits until its file is full.
#[test]
fn what_comes_slowly_is_acknowledged_in_time() {
    for storing in [Storing::Files, Storing::Scattered] {
        for writers in [1, 2] {
            let checkpoint = Nanos(2_500_000);
            let (frames, period) = (100, Nanos(1_000_000));
            let lab = Lab { frames, period, writers, checkpoint, ..lab(storing) };
            let run = lab.run(Nanos::MAX);
            let what = format!("{storing:?}, {writers} writers");
            check(&lab, &run, &what);
            let longest = run.lanes.iter().map(|lane| lane.longest).max().expect("a lane");
            assert!(longest < Nanos(3_000_000), "{what}: a frame waited {longest}");
            assert_eq!(run.ring.books().lost(), 0, "{what}");
        }
    }
}

/// The process is killed at a random moment: what its journals speak of is there.
#[test]
fn a_killed_recorder_leaves_journals_that_are_right() {
    for seed in 0..100 {
        let storing = if seed % 2 == 0 { Storing::Files } else { Storing::Scattered };
        let lab = lab(storing);
        let run = lab.run(Nanos(5_000 + 9_000 * seed));
        let back = run.back();
        let index = back.index(Trust::Acknowledged);
        assert_eq!(back.wrong(&index, &lab.pattern()), Vec::<u64>::new(), "seed {seed}");
        assert!(seed < 50 || !index.frames.is_empty(), "seed {seed}: nothing was acknowledged");
    }
}
