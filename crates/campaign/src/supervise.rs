//! The supervisor of a phase: waits for its workers, of one target or of several at once, without ever waiting for ever.
//!
//! A worker reports by channel and is never joined: one that misses the time limit is given up where it hangs.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::Duration,
};

use nilometer_model::{Bytes, Invalid, Nanos, Sample};
use nilometer_storage::{Tally, process::Usage};

use crate::{barrier::Barrier, task::Run};

/// What a worker sends.
#[derive(Debug)]
pub(crate) enum Report {
    /// Its buffers are filled, which took so long.
    Ready(Nanos),
    /// It did its part.
    Done(Box<Work>),
    /// Its time is over and it goes on, unmeasured.
    Measured(Box<Work>),
    /// After that: it did the rest.
    Whole(Box<Work>),
    /// It could not begin.
    Refused(String),
}

/// What a worker did.
#[derive(Debug)]
pub(crate) struct Work {
    /// How long after the phase its first operation was about to be issued.
    pub(crate) began: Nanos,
    pub(crate) tally: Tally,
    /// Of its thread, in the phase.
    pub(crate) usage: Usage,
    /// How long it waited for a processor.
    pub(crate) run_delay: Nanos,
    /// It stopped before it was done, because the campaign ends.
    pub(crate) cut_short: bool,
}

/// What the workers on a target show while they run, to within a beat.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    /// When any of them last completed an operation.
    last: AtomicU64,
    bytes: AtomicU64,
    operations: AtomicU64,
    /// Nanoseconds.
    latency_sum: AtomicU64,
    errors: AtomicU64,
    /// The campaign ends: no more operations.
    cease: Arc<AtomicBool>,
    /// A worker shows that it lives this often.
    every: Nanos,
}

impl Default for Heartbeat {
    fn default() -> Self {
        Heartbeat::every(Heartbeat::BEAT)
    }
}

impl Heartbeat {
    /// Rarely enough to cost nothing.
    const BEAT: Nanos = Nanos::from_millis(50);

    /// Of workers that show so often that they live.
    pub(crate) fn every(every: Nanos) -> Self {
        Heartbeat {
            last: AtomicU64::default(),
            bytes: AtomicU64::default(),
            operations: AtomicU64::default(),
            latency_sum: AtomicU64::default(),
            errors: AtomicU64::default(),
            cease: Arc::default(),
            every,
        }
    }

    /// Whether it is time for another beat.
    pub(crate) fn is_due(&self, last: Nanos, now: Nanos) -> bool {
        now.since(last) > self.every
    }

    /// What tells workers that no more is to be issued.
    pub(crate) fn ceasing(&self) -> &Arc<AtomicBool> {
        &self.cease
    }

    /// What all did so far.
    pub(crate) fn done(&self) -> DoneSinceBeat {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        DoneSinceBeat {
            bytes: of(&self.bytes),
            operations: of(&self.operations),
            latency_sum: Nanos(of(&self.latency_sum)),
            errors: of(&self.errors),
        }
    }

    /// A worker lives, and did so much since its last beat. Whether it must stop.
    pub(crate) fn beat(&self, now: Nanos, done: DoneSinceBeat) -> bool {
        self.last.fetch_max(now.0, Ordering::Relaxed);
        self.bytes.fetch_add(done.bytes, Ordering::Relaxed);
        self.operations.fetch_add(done.operations, Ordering::Relaxed);
        self.latency_sum.fetch_add(done.latency_sum.0, Ordering::Relaxed);
        self.errors.fetch_add(done.errors, Ordering::Relaxed);
        self.cease.load(Ordering::Relaxed)
    }
}

/// What a worker did between two beats.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DoneSinceBeat {
    pub(crate) bytes: u64,
    pub(crate) operations: u64,
    pub(crate) latency_sum: Nanos,
    pub(crate) errors: u64,
}

impl DoneSinceBeat {
    /// All that a worker did since it began.
    pub(crate) fn in_all(tally: &Tally) -> Self {
        let totals = tally.totals();
        DoneSinceBeat {
            bytes: totals.bytes,
            operations: totals.operations,
            latency_sum: tally.latency_sum(),
            errors: tally.error_count(),
        }
    }

    /// What is more than at the beat before.
    pub(crate) fn since(self, before: DoneSinceBeat) -> Self {
        DoneSinceBeat {
            bytes: self.bytes - before.bytes,
            operations: self.operations - before.operations,
            latency_sum: self.latency_sum.since(before.latency_sum),
            errors: self.errors - before.errors,
        }
    }
}

/// What a phase that runs did so far, on all its targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SoFar {
    /// Bytes moved.
    pub bytes: u64,
    /// Operations finished.
    pub operations: u64,
    /// The latencies of these operations, added up; nothing of a recording, whose frames are counted otherwise.
    pub latency_sum: Nanos,
    /// Errors of the storage, of all kinds; those of a recording are counted when it is over.
    pub errors: u64,
    /// Of a recording, frames that found no free memory.
    pub frames_lost: u64,
    /// Of a recording, how full the memory is that frames wait in.
    pub buffer: Option<BufferLevel>,
    /// Since the barrier; nothing while it is still prepared.
    pub elapsed: Nanos,
    /// What is done besides, where that takes seconds.
    pub step: CampaignStep,
}

/// How full the memory is that the frames of a recording wait in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BufferLevel {
    /// Frames that wait, or are being written.
    pub frames: u64,
    /// The most at once so far.
    pub most: u64,
    /// Frames there is room for.
    pub room: u64,
}

/// Part of a recording in which no frames come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CampaignStep {
    /// None of these.
    #[default]
    Working,
    /// What was written before is written back.
    Settling,
    /// Memory for frames is got, and all of it touched.
    Preparing(Bytes),
    /// Readers get what is left of their time to come to the end.
    ReadingOn,
    /// What was kept is read and checked: so many frames.
    ReadingBack(u64),
}

/// The workers of a phase on one target.
#[derive(Debug)]
pub(crate) struct Crew {
    pub(crate) gate: Arc<Barrier>,
    pub(crate) pulse: Arc<Heartbeat>,
    workers: u32,
    /// Of which no report came yet since it was last waited for.
    awaited: u32,
    /// When something was last heard, but for the pulse.
    heard: Nanos,
    pub(crate) sample: Sample,
    /// The same of the last worker.
    pub(crate) began: Nanos,
    /// Of all workers' threads.
    pub(crate) usage: Usage,
    /// Its workers are not broken off: those of other processes make the same calls, and would wait for them.
    pub(crate) keeps_step: bool,
    /// For how long a quota kept this process from running meanwhile.
    pub(crate) throttled: Nanos,
    /// Workers that go on after they were measured.
    unfinished: u32,
    cut_short: bool,
}

impl Crew {
    pub(crate) fn new(workers: u32) -> Self {
        Crew::with(workers, Arc::default())
    }

    /// Of workers that show what they do here.
    pub(crate) fn with(workers: u32, pulse: Arc<Heartbeat>) -> Self {
        Crew {
            gate: Arc::default(),
            pulse,
            workers,
            awaited: 0,
            heard: Nanos(0),
            sample: Sample::new(Nanos(0)),
            began: Nanos(0),
            usage: Usage::default(),
            keeps_step: false,
            throttled: Nanos(0),
            unfinished: 0,
            cut_short: false,
        }
    }

    /// Gives the workers up.
    pub(crate) fn fail(&mut self, why: Invalid) {
        self.gate.cancel();
        (self.awaited, self.unfinished) = (0, 0);
        self.sample = Sample { filling: self.sample.filling, ..Sample::invalid(why) };
    }

    /// Can go on, as far as is known: not to have preallocated is no fault.
    pub(crate) fn is_sound(&self) -> bool {
        matches!(self.sample.invalid, None | Some(Invalid::NotPreallocated))
    }

    fn take(&mut self, report: Report, now: Nanos) {
        if !self.is_sound() {
            return;
        }
        self.heard = now;
        match report {
            Report::Ready(took) => {
                self.awaited -= 1;
                self.sample.filling = self.sample.filling.max(took);
            }
            Report::Done(work) => self.add(*work),
            Report::Measured(work) => {
                self.unfinished += 1;
                self.add(*work);
            }
            Report::Whole(work) => self.end_rest(*work),
            Report::Refused(why) => self.fail(Invalid::Refused(why)),
        }
    }

    /// What a worker measured.
    fn add(&mut self, work: Work) {
        self.awaited -= 1;
        work.tally.add_to(&mut self.sample);
        self.began = self.began.max(work.began);
        self.sample.run_delay += work.run_delay;
        self.usage = self.usage.and(work.usage);
        self.cut_short |= work.cut_short;
    }

    /// A worker did the rest. What can't be made whole spoils what was measured of it.
    fn end_rest(&mut self, work: Work) {
        self.unfinished -= 1;
        self.cut_short |= work.cut_short;
        let mut rest = Sample::new(Nanos(0));
        work.tally.add_to(&mut rest);
        for (errno, count) in rest.errors {
            *self.sample.errors.entry(errno).or_default() += count;
        }
    }

    /// Something is still to come of it.
    fn is_awaited(&self) -> bool {
        self.awaited > 0 || self.unfinished > 0
    }

    /// How long it may stay silent from now on.
    fn patience(&self, now: Nanos, hang_after: Nanos) -> Nanos {
        let last = self.heard.max(Nanos(self.pulse.last.load(Ordering::Relaxed)));
        (last + hang_after).since(now)
    }
}

/// All workers of a phase.
pub(crate) struct Watch<'a> {
    pub(crate) run: &'a Run,
    /// With the crew's number.
    pub(crate) reports: Receiver<(usize, Report)>,
    pub(crate) crews: Vec<Crew>,
    pub(crate) tell: &'a mut dyn FnMut(SoFar),
}

/// How often the supervisor looks up while nothing is reported.
pub(crate) const GLANCE: Nanos = Nanos::from_millis(200);

impl Watch<'_> {
    /// Waits for a report of every worker of every sound crew. `ended` sees each crew that is then complete, with its
    /// number. Whether the campaign goes on; if not, what was measured is cut short.
    pub(crate) fn await_all(&mut self, begun: Nanos, ended: &mut dyn FnMut(usize, &mut Crew)) -> bool {
        let now = self.run.clock.now();
        for crew in self.crews.iter_mut().filter(|crew| crew.is_sound()) {
            (crew.awaited, crew.heard) = (crew.workers, now);
        }
        self.await_while(begun, |crew| crew.awaited > 0, ended)
    }

    /// Waits for those that go on after they were measured. Whether the campaign goes on.
    pub(crate) fn await_rest(&mut self) -> bool {
        let begun = self.run.clock.now();
        self.await_while(begun, Crew::is_awaited, &mut |_, _| {})
    }

    fn await_while(
        &mut self,
        begun: Nanos,
        is_awaited: fn(&Crew) -> bool,
        ended: &mut dyn FnMut(usize, &mut Crew),
    ) -> bool {
        let mut now = self.run.clock.now();
        let mut told = now;
        while self.crews.iter().any(is_awaited) {
            self.receive(now, ended);
            now = self.run.clock.now();
            self.give_up(now);
            if self.run.is_over() {
                let broken_off = self.crews.iter().filter(|crew| !crew.keeps_step);
                broken_off.for_each(|crew| crew.pulse.cease.store(true, Ordering::Relaxed));
            }
            if now.since(told) >= GLANCE {
                told = now;
                let so_far = self.so_far(now.since(begun));
                (self.tell)(so_far);
            }
        }
        !self.crews.iter().any(|crew| crew.cut_short)
    }

    fn receive(&mut self, now: Nanos, ended: &mut dyn FnMut(usize, &mut Crew)) {
        match self.reports.recv_timeout(self.step(now)) {
            Ok((number, report)) => {
                let crew = &mut self.crews[number];
                let open = crew.awaited > 0;
                crew.take(report, self.run.clock.now());
                if open && crew.awaited == 0 && crew.is_sound() {
                    ended(number, crew);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                for crew in self.crews.iter_mut().filter(|crew| crew.is_awaited()) {
                    crew.fail(Invalid::Refused("a worker ended without a report".into()));
                }
            }
        }
    }

    fn step(&self, now: Nanos) -> Duration {
        let silent = self.crews.iter().filter(|crew| crew.is_awaited());
        let patience = silent.map(|crew| crew.patience(now, self.run.hang_after)).min();
        patience.unwrap_or(GLANCE).min(GLANCE).duration()
    }

    /// Hung: neither a report nor a completed operation for too long.
    fn give_up(&mut self, now: Nanos) {
        let hang_after = self.run.hang_after;
        for crew in self.crews.iter_mut().filter(|crew| crew.is_awaited()) {
            if crew.patience(now, hang_after) == Nanos(0) {
                crew.fail(Invalid::Hung);
            }
        }
    }

    fn so_far(&self, elapsed: Nanos) -> SoFar {
        let sum = |count: fn(&Heartbeat) -> &AtomicU64| {
            self.crews.iter().map(|crew| count(&crew.pulse).load(Ordering::Relaxed)).sum()
        };
        SoFar {
            bytes: sum(|pulse| &pulse.bytes),
            operations: sum(|pulse| &pulse.operations),
            latency_sum: Nanos(sum(|pulse| &pulse.latency_sum)),
            errors: sum(|pulse| &pulse.errors),
            elapsed,
            ..SoFar::default()
        }
    }
}
