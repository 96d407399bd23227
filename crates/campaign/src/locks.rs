//! The phase of `locks`: processes take the lock of a file in turn, and tell each other when. It is no
//! measurement of throughput, so they may exchange messages during it.
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

/// The turns of a process with the lock on one target.
pub(crate) struct LockTurns<'a> {
    run: &'a Run,
    speech: Speech<'a>,
    target: &'a Arc<dyn Target>,
    cell: LocksCell,
    /// The ranks that take the lock in turn.
    ranks: Vec<u32>,
    /// The file's name in the run's directory.
    name: String,
    /// The file, opened once for the whole phase: closing any descriptor of it would release the lock.
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

    /// Runs all turns. Returns `None` if the campaign ended first.
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

    /// The observations since the phase began, as a sample.
    pub(crate) fn sample(self, start: Nanos) -> Sample {
        Sample { locks: Some(self.seen), ..self.talk.sample(&self.run.clock, start) }
    }

    /// Opens the file. One process makes it, and the others open it when it is there: not every file system
    /// lets several make one at once.
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

    /// Lets the holder keep the lock for a while.
    fn pause(&self, holds: bool) {
        if holds {
            thread::sleep(self.cell.hold.duration());
        }
        self.speech.cluster.barrier();
    }

    /// Lets all others try to take the lock, which must fail.
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

    /// Waits for the lock. Returns the time at which it was taken.
    fn take(&mut self) -> Option<Nanos> {
        self.asked(FlockOperation::LockExclusive)
    }

    /// Releases the lock. Returns the time of the request.
    fn give_back(&mut self) -> Option<Nanos> {
        let at = self.run.clock.now();
        self.asked(FlockOperation::Unlock).map(|_| at)
    }

    /// Runs a lock operation and returns its time. Returns `None` if it failed, or if another process has the
    /// lock and `operation` does not wait.
    fn asked(&mut self, operation: FlockOperation) -> Option<Nanos> {
        let file = self.file.clone()?;
        let clock = self.run.clock;
        let path = self.target.description().address.to_string().into();
        // A waiting process may wait for as long as another has the lock.
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
