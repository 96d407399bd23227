//! The phase of `locks`: processes take the lock of a file in turn, and say to each other when. It is no measurement of
//! throughput, so that they may speak to each other while it lasts.
//!
//! ```text
//! who has it            all others               the next of them
//! takes it, says so     try to take it
//! waits                                                               the hold time
//!                       try again
//! waits, gives it back                           waits for it         the hold time
//! says when             -                        had it when?
//! ```

use std::{
    fs::{File, OpenOptions},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    sync::Arc,
    thread,
};

use nilometer_model::{Invalid, LocksSeen, Nanos, Sample};
use nilometer_plan::LocksCell;
use nilometer_storage::{Clock, Target, in_time};
use rustix::{
    fs::{FlockOperation, OFlags, fcntl_lock},
    io::Errno,
};

use crate::{
    talk::{SaidTime, Speech, TalkSample},
    task::{Run, Task},
};

/// What a process does with the lock on one target.
pub(crate) struct LockTurns<'a> {
    run: &'a Run,
    speech: Speech<'a>,
    target: &'a Arc<dyn Target>,
    cell: LocksCell,
    /// The ranks that have it in turn.
    ranks: Vec<u32>,
    /// In the run's directory.
    name: String,
    /// One description for the whole phase: closing any would give the lock back.
    file: Option<Arc<File>>,
    talk: TalkSample,
    seen: LocksSeen,
}

impl<'a> LockTurns<'a> {
    pub(crate) fn new(run: &'a Run, task: &Task<'a>, cell: LocksCell, target: &'a Arc<dyn Target>) -> Self {
        LockTurns {
            run,
            speech: Speech { run, cluster: task.cluster },
            target,
            cell,
            ranks: task.ranks.nodes.used_by(task.cell),
            name: task.shared_name("n_lock"),
            file: None,
            talk: TalkSample::new(&run.clock, !task.is_idle()),
            seen: LocksSeen::default(),
        }
    }

    /// All turns; none if the campaign ended first.
    pub(crate) fn hold(&mut self) -> Option<()> {
        let makes_it = self.ranks.first() == Some(&self.speech.cluster.rank());
        if makes_it {
            self.open(true);
        }
        self.speech.cluster.barrier();
        if !makes_it {
            self.open(false);
        }
        for _ in 0..self.cell.rounds {
            for turn in 0..self.ranks.len() {
                let next = (turn + 1) % self.ranks.len();
                self.turn(self.ranks[turn], self.ranks[next])?;
            }
        }
        Some(())
    }

    /// What was seen since the phase began.
    pub(crate) fn sample(self, start: Nanos) -> Sample {
        Sample { locks: Some(self.seen), ..self.talk.sample(&self.run.clock, start) }
    }

    /// The file is made by one, and opened by the others when it is there: not every file system lets several make one at once.
    fn open(&mut self, create: bool) {
        if !self.talk.goes_on() {
            return;
        }
        let Some(directory) = self.target.directory() else {
            self.talk.end(Invalid::Refused("its files have no paths".into()));
            return;
        };
        let path = directory.join(&self.name);
        let named = path.clone();
        match in_time(self.run.hang_after, path, move || opened(&named, create)) {
            Ok(Ok(file)) => self.file = Some(Arc::new(file)),
            Ok(Err(error)) => self.talk.end(Invalid::Refused(format!("the file can't be opened: {error}"))),
            Err(_) => self.talk.end(Invalid::Hung),
        }
    }

    fn turn(&mut self, holder: u32, next: u32) -> Option<()> {
        let rank = self.speech.cluster.rank();
        let holds = rank == holder && self.talk.goes_on();
        self.speech.begin_step();
        let had = if holds { self.take() } else { None };
        let SaidTime(had) = self.speech.said(had)?;
        let had = had.is_some();
        self.try_in_vain(had && !holds);
        self.pause(holds);
        self.try_in_vain(had && !holds);
        let mut given_back = None;
        let mut got = None;
        if holds && had {
            thread::sleep(self.cell.hold.duration());
            given_back = self.give_back();
        } else if rank == next && had && self.talk.goes_on() {
            got = self.take();
        }
        let SaidTime(given_back) = self.speech.said(given_back)?;
        if let Some((got, there)) = got.zip(given_back) {
            let took = got.since(self.speech.here(there.at));
            self.talk.add(took);
            self.seen.passed += 1;
            self.seen.longest = self.seen.longest.max(took);
        }
        if got.is_some() {
            self.give_back();
        }
        Some(())
    }

    /// Who has it has it for a while.
    fn pause(&self, holds: bool) {
        if holds {
            thread::sleep(self.cell.hold.duration());
        }
        self.speech.cluster.barrier();
    }

    /// All others try, and must not get it.
    fn try_in_vain(&mut self, tries: bool) {
        if tries && self.talk.goes_on() {
            self.seen.tries += 1;
            if self.asked(FlockOperation::NonBlockingLockExclusive).is_some() {
                self.seen.broken += 1;
                self.give_back();
            }
        }
        self.speech.cluster.barrier();
    }

    /// Waits for the lock; when it came.
    fn take(&mut self) -> Option<Nanos> {
        self.asked(FlockOperation::LockExclusive)
    }

    /// When that was asked for.
    fn give_back(&mut self) -> Option<Nanos> {
        let at = self.run.clock.now();
        self.asked(FlockOperation::Unlock).map(|_| at)
    }

    /// When the lock was as asked; none if another has it, which only who doesn't wait for it is told, or that failed.
    fn asked(&mut self, operation: FlockOperation) -> Option<Nanos> {
        let file = self.file.clone()?;
        let clock = self.run.clock;
        let path = self.target.description().address.to_string().into();
        // Who waits may wait for as long as another has it.
        let limit = self.run.hang_after + self.cell.hold;
        let only_tries = matches!(operation, FlockOperation::NonBlockingLockExclusive);
        match in_time(limit, path, move || lock(&file, operation, &clock)) {
            Ok(Ok(at)) => Some(at),
            Ok(Err(Errno::AGAIN | Errno::ACCESS)) if only_tries => None,
            Ok(Err(errno)) => {
                self.talk.failed(errno.raw_os_error());
                None
            }
            Err(_) => {
                self.talk.end(Invalid::Hung);
                None
            }
        }
    }
}

fn lock(file: &File, operation: FlockOperation, clock: &Clock) -> Result<Nanos, Errno> {
    fcntl_lock(file, operation)?;
    Ok(clock.now())
}

fn opened(path: &Path, create: bool) -> std::io::Result<File> {
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    OpenOptions::new().read(true).write(true).create_new(create).custom_flags(flags).open(path)
}
