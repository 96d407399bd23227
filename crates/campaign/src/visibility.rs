//! The phase of `visibility`: all processes exchange messages about files that one of them writes. It is no
//! measurement of throughput, so they may exchange messages during it.
//!
//! ```text
//!             who writes                            all others
//! message     -                                     look up the names, which are not there
//!             makes, writes, closes two files       wait
//!             says that they are closed        ->   look at them at once, until they are right
//!             writes the first over, says so   ->   look at it at once, until it is right
//! poll        makes, writes, closes two files       look for them from before on, until they are right
//!             says when they were closed       ->   count what they saw after that
//!             writes the first over                 look at it from before on
//! ```

use std::sync::Arc;

use nilometer_cluster::CloseTime;
use nilometer_model::{Bytes, EngineKind, FilesSeen, Invalid, Nanos, Sample, Seed};
use nilometer_plan::{Notice, VisibilityCell};
use nilometer_storage::{Arena, Buffer, Clock, Drive, Open, Target, Workload, engine::Options, within};

use crate::{
    talk::{SaidTime, Speech, TalkSample},
    task::{Run, Task},
    workload::{LookFor, Looked, Publish, PublishedFile},
};

/// The messages and observations of a process about the files on one target.
pub(crate) struct Conversation<'a> {
    run: &'a Run,
    speech: Speech<'a>,
    target: &'a Arc<dyn Target>,
    cell: VisibilityCell,
    seed: Seed,
    /// The stem of the files' names.
    stem: String,
    /// The ranks that write in turn.
    writers: Vec<u32>,
    talk: TalkSample,
    seen: FilesSeen,
}

/// The part of this process in a step.
enum Part {
    Writes,
    Looks,
    Sleeps,
}

impl<'a> Conversation<'a> {
    pub(crate) fn new(
        run: &'a Run,
        task: &Task<'a>,
        cell: VisibilityCell,
        target: &'a Arc<dyn Target>,
    ) -> Self {
        Conversation {
            run,
            speech: Speech { run, cluster: task.cluster },
            target,
            cell,
            seed: task.seed,
            stem: task.shared_name("n_v"),
            writers: task.ranks.nodes.used_by(task.cell),
            talk: TalkSample::new(&run.clock, !task.is_idle()),
            seen: FilesSeen::default(),
        }
    }

    /// Runs all turns. Returns `None` if the campaign ended first.
    pub(crate) fn hold(&mut self) -> Option<()> {
        for round in 0..self.cell.rounds {
            for turn in 0..self.writers.len() {
                let number = u64::from(round) * self.writers.len() as u64 + turn as u64;
                self.turn(number, self.writers[turn])?;
            }
        }
        Some(())
    }

    /// Publishes two new files of a writer, and then overwrites the first of them.
    fn turn(&mut self, number: u64, writer: u32) -> Option<()> {
        let file = |name: &str, generation: &str, open| PublishedFile {
            name: format!("{}_{number}_{name}", self.stem),
            open,
            content: self.seed.named(name).named(generation).part(number),
        };
        let both = vec![file("data", "new", Open::CREATE), file("flag", "new", Open::CREATE)];
        let again = vec![file("data", "again", Open::WRITE)];
        if self.cell.notice == Notice::Message {
            self.look_up_in_vain(&both, writer);
            self.speech.cluster.barrier();
        }
        self.step(&both, writer)?;
        self.step(&again, writer)
    }

    fn part(&self, writer: u32) -> Part {
        let rank = self.speech.cluster.rank();
        match () {
            () if !self.talk.goes_on() => Part::Sleeps,
            () if rank == writer => Part::Writes,
            () => Part::Looks,
        }
    }

    /// Looks up the names before the files exist. A client may cache that a name does not exist.
    fn look_up_in_vain(&mut self, files: &[PublishedFile], writer: u32) {
        if matches!(self.part(writer), Part::Looks) {
            let once = VisibilityCell { patience: Nanos(1), ..self.cell };
            for file in files {
                self.look(std::slice::from_ref(file), once);
            }
        }
    }

    /// One process writes and closes files, and all others look for them.
    fn step(&mut self, files: &[PublishedFile], writer: u32) -> Option<()> {
        self.speech.begin_step();
        let part = self.part(writer);
        let told = self.cell.notice == Notice::Message;
        let mut closed = None;
        let mut look = None;
        match part {
            Part::Writes => closed = self.publish(files),
            Part::Looks if !told => look = self.look(files, self.cell),
            Part::Looks | Part::Sleeps => {}
        }
        let SaidTime(closed) = self.speech.said(closed)?;
        if told && matches!(part, Part::Looks) && closed.is_some() {
            look = self.look(files, self.cell);
        }
        if let Some((look, CloseTime { at, uncertainty })) = look.zip(closed) {
            let uncertainty = uncertainty + self.speech.uncertainty();
            self.count(look.looked(self.speech.here(at), uncertainty, told));
        }
        Some(())
    }

    fn publish(&mut self, files: &[PublishedFile]) -> Option<Nanos> {
        let files = files.to_vec();
        let length = self.length();
        let done = self.driven(Nanos(0), move |buffer| Publish::new(files, length, buffer))?;
        match done.closed() {
            Ok(at) => Some(at),
            Err(errno) => {
                self.talk.failed(errno.0);
                None
            }
        }
    }

    fn look(&mut self, files: &[PublishedFile], cell: VisibilityCell) -> Option<LookFor> {
        let files = files.to_vec();
        let length = self.length();
        let VisibilityCell { interval, patience, .. } = cell;
        self.driven(patience, move |buffer| LookFor::new(files, length, interval, patience, buffer))
    }

    fn length(&self) -> u32 {
        self.cell.file_size.0 as u32
    }

    /// Runs a workload to its end. Returns `None` if the target hung or has no engine, which ends this
    /// process's part.
    fn driven<W: Workload + Send + 'static>(
        &mut self,
        longer: Nanos,
        workload: impl FnOnce(Buffer) -> W + Send + 'static,
    ) -> Option<W> {
        let limit = self.run.hang_after + longer;
        let (clock, size) = (self.run.clock, self.cell.file_size);
        let driven = within(limit, self.target, move |target| drive(target, clock, size, workload));
        match driven {
            Ok(Ok(workload)) => Some(workload),
            Ok(Err(why)) => {
                self.talk.end(Invalid::Refused(why));
                None
            }
            Err(_) => {
                self.talk.end(Invalid::Hung);
                None
            }
        }
    }

    fn count(&mut self, looked: Looked) {
        let Looked { seen, after, errors } = looked;
        self.seen = self.seen.and(&seen);
        for time in after {
            self.talk.add(time);
        }
        for (errno, count) in errors {
            (0..count).for_each(|_| self.talk.failed(errno));
        }
    }

    /// The observations since the phase began, as a sample.
    pub(crate) fn sample(self, start: Nanos) -> Sample {
        Sample { seen: Some(self.seen), ..self.talk.sample(&self.run.clock, start) }
    }
}

fn drive<W: Workload>(
    target: &dyn Target,
    clock: Clock,
    size: Bytes,
    workload: impl FnOnce(Buffer) -> W,
) -> Result<W, String> {
    let options = Options { kind: EngineKind::Sync, depth: 1, slots: 2, clock };
    let mut engine = target.engine(&options).map_err(|error| error.to_string())?;
    // The buffer must have room for a name, too.
    let (_arena, mut buffers) = Arena::shared_out(1, (size.0 as usize).max(512));
    let mut workload = workload(buffers.pop().expect("the arena has one buffer"));
    Drive::new(&mut workload, engine.as_mut()).run(|_| {});
    Ok(workload)
}
