//! The supervisor of a phase: waits for its workers, of one target or of several at once, but never without a
//! limit.
//!
//! A worker reports by channel and is never joined. The supervisor gives up one that misses the time limit and
//! leaves it where it hangs.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::Duration,
};

use nilometer_model::{Bytes, Invalid, Nanos, Sample};
use nilometer_storage::{Tally, clock::halt_between, process::Usage};

use crate::{barrier::Barrier, task::Run};

/// A message from a worker.
#[derive(Debug)]
pub(crate) enum Report {
    /// Its buffers are filled; this took the time given.
    Ready(Nanos),
    /// It completed its part.
    Done(Box<Work>),
    /// Its time is over and it continues, unmeasured.
    Measured(Box<Work>),
    /// It completed the unmeasured rest.
    Whole(Box<Work>),
    /// It could not begin.
    Refused(String),
}

/// The work of a worker.
#[derive(Debug)]
pub(crate) struct Work {
    /// The time from the start of the phase until it was about to issue its first operation.
    pub(crate) began: Nanos,
    pub(crate) tally: Tally,
    /// The resources that its thread used in the phase.
    pub(crate) usage: Usage,
    /// The time for which it waited for a processor.
    pub(crate) run_delay: Nanos,
    /// True if it stopped before it was done, because the campaign ends.
    pub(crate) cut_short: bool,
}

/// The progress that the workers on a target publish while they run, to within a beat.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    /// The latest time at which any of them completed an operation.
    last: AtomicU64,
    bytes: AtomicU64,
    operations: AtomicU64,
    /// In nanoseconds.
    latency_sum: AtomicU64,
    errors: AtomicU64,
    /// Set when the campaign ends: no more operations.
    cease: Arc<AtomicBool>,
    /// The interval at which a worker publishes its progress.
    every: Nanos,
}

impl Default for Heartbeat {
    fn default() -> Self {
        Heartbeat::every(Heartbeat::BEAT)
    }
}

impl Heartbeat {
    /// Long enough to cost nothing.
    const BEAT: Nanos = Nanos::from_millis(50);

    /// The heartbeat of workers that publish at this interval.
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

    /// Returns true if it is time for another beat.
    pub(crate) fn is_due(&self, last: Nanos, now: Nanos) -> bool {
        now.since(last) > self.every
    }

    /// The flag that stops all workers.
    pub(crate) fn ceasing(&self) -> &Arc<AtomicBool> {
        &self.cease
    }

    /// The work of all workers so far.
    pub(crate) fn done(&self) -> DoneSinceBeat {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        DoneSinceBeat {
            bytes: of(&self.bytes),
            operations: of(&self.operations),
            latency_sum: Nanos(of(&self.latency_sum)),
            errors: of(&self.errors),
        }
    }

    /// Adds the work of a worker since its last beat. Returns true if it must stop.
    pub(crate) fn beat(&self, now: Nanos, done: DoneSinceBeat) -> bool {
        self.last.fetch_max(now.0, Ordering::Relaxed);
        self.bytes.fetch_add(done.bytes, Ordering::Relaxed);
        self.operations.fetch_add(done.operations, Ordering::Relaxed);
        self.latency_sum.fetch_add(done.latency_sum.0, Ordering::Relaxed);
        self.errors.fetch_add(done.errors, Ordering::Relaxed);
        self.cease.load(Ordering::Relaxed)
    }
}

/// The work of a worker between two beats.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DoneSinceBeat {
    pub(crate) bytes: u64,
    pub(crate) operations: u64,
    pub(crate) latency_sum: Nanos,
    pub(crate) errors: u64,
}

impl DoneSinceBeat {
    /// All work of a worker since it began.
    pub(crate) fn in_all(tally: &Tally) -> Self {
        let totals = tally.totals();
        DoneSinceBeat {
            bytes: totals.bytes,
            operations: totals.operations,
            latency_sum: tally.latency_sum(),
            errors: tally.error_count(),
        }
    }

    /// The work since an earlier beat.
    pub(crate) fn since(self, before: DoneSinceBeat) -> Self {
        DoneSinceBeat {
            bytes: self.bytes - before.bytes,
            operations: self.operations - before.operations,
            latency_sum: self.latency_sum.since(before.latency_sum),
            errors: self.errors - before.errors,
        }
    }
}

/// The progress of a running phase, on all its targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SoFar {
    /// Bytes moved.
    pub bytes: u64,
    /// Operations finished.
    pub operations: u64,
    /// The sum of the latencies of these operations; zero for a recording, which counts its frames elsewhere.
    pub latency_sum: Nanos,
    /// Errors of the storage, of all kinds; those of a recording count when it is over.
    pub errors: u64,
    /// In a recording, frames that found no free memory.
    pub frames_lost: u64,
    /// In a recording, the fill level of the memory in which frames wait.
    pub buffer: Option<BufferLevel>,
    /// The time since the barrier; zero while the phase is being prepared.
    pub elapsed: Nanos,
    /// A step in which nothing is measured and which takes seconds.
    pub step: CampaignStep,
}

/// The fill level of the memory in which the frames of a recording wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BufferLevel {
    /// Frames that wait, or are being written.
    pub frames: u64,
    /// The highest number of these so far.
    pub most: u64,
    /// The number of frames that fit.
    pub room: u64,
}

/// A part of a recording in which no frames arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CampaignStep {
    /// None of these.
    #[default]
    Working,
    /// Dirty data of earlier work reach the storage.
    Settling,
    /// Memory for frames is allocated and touched; this is its size.
    Preparing(Bytes),
    /// Readers use the remaining time to come to the end.
    ReadingOn,
    /// Readers read and check the kept frames; this is their number.
    ReadingBack(u64),
}

/// The workers of a phase on one target.
#[derive(Debug)]
pub(crate) struct Crew {
    pub(crate) gate: Arc<Barrier>,
    pub(crate) pulse: Arc<Heartbeat>,
    workers: u32,
    /// The number of workers without a report since the supervisor last began to wait.
    awaited: u32,
    /// The latest time of a report; the heartbeat does not count.
    heard: Nanos,
    pub(crate) sample: Sample,
    /// The time from the start of the phase until the last worker began.
    pub(crate) began: Nanos,
    /// The resources of all workers' threads.
    pub(crate) usage: Usage,
    /// True if its workers must not be stopped early: those of other processes make the same calls, and would
    /// wait for them.
    pub(crate) keeps_step: bool,
    /// The time for which a quota kept this process from running meanwhile.
    pub(crate) throttled: Nanos,
    /// The number of workers that continue after the measurement.
    unfinished: u32,
    cut_short: bool,
}

impl Crew {
    pub(crate) fn new(workers: u32) -> Self {
        Crew::with(workers, Arc::default())
    }

    /// A crew of workers that publish their progress in `pulse`.
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

    /// Returns true if it can go on; a failed preallocation is no fault.
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

    /// Adds the measured work of a worker.
    fn add(&mut self, work: Work) {
        self.awaited -= 1;
        work.tally.add_to(&mut self.sample);
        self.began = self.began.max(work.began);
        self.sample.run_delay += work.run_delay;
        self.usage = self.usage.and(work.usage);
        self.cut_short |= work.cut_short;
    }

    /// Ends a worker's unmeasured rest. Errors in it spoil the sample, since the files are then not complete.
    fn end_rest(&mut self, work: Work) {
        self.unfinished -= 1;
        self.cut_short |= work.cut_short;
        let mut rest = Sample::new(Nanos(0));
        work.tally.add_to(&mut rest);
        for (errno, count) in rest.errors {
            *self.sample.errors.entry(errno).or_default() += count;
        }
    }

    /// Returns true if a report of it is still missing.
    fn is_awaited(&self) -> bool {
        self.awaited > 0 || self.unfinished > 0
    }

    /// The time for which it may stay silent from now on.
    fn patience(&self, now: Nanos, hang_after: Nanos) -> Nanos {
        (self.last() + hang_after).since(now)
    }

    /// The time of its latest report or completed operation.
    fn last(&self) -> Nanos {
        self.heard.max(Nanos(self.pulse.last.load(Ordering::Relaxed)))
    }

    /// Adds the time of a halt of this process to its patience.
    fn excuse(&mut self, halt: Nanos) {
        self.heard = self.last() + halt;
    }
}

/// All workers of a phase.
pub(crate) struct Watch<'a> {
    pub(crate) run: &'a Run,
    /// The reports, each with the crew's number.
    pub(crate) reports: Receiver<(usize, Report)>,
    pub(crate) crews: Vec<Crew>,
    pub(crate) tell: &'a mut dyn FnMut(SoFar),
}

/// How often the supervisor checks while no report arrives.
pub(crate) const GLANCE: Nanos = Nanos::from_millis(200);
impl Watch<'_> {
    /// Waits for a report of every worker of every sound crew. Calls `ended` for each crew that is then
    /// complete, with its number. Returns true if the campaign goes on; if not, the measurement is incomplete.
    pub(crate) fn await_all(&mut self, begun: Nanos, ended: &mut dyn FnMut(usize, &mut Crew)) -> bool {
        let now = self.run.clock.now();
        for crew in self.crews.iter_mut().filter(|crew| crew.is_sound()) {
            (crew.awaited, crew.heard) = (crew.workers, now);
        }
        self.await_while(begun, |crew| crew.awaited > 0, ended)
    }

    /// Waits for the workers that continue after the measurement. Returns true if the campaign goes on.
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
            let before = now;
            self.receive(now, ended);
            now = self.run.clock.now();
            let halt = halt_between(now.since(before), GLANCE);
            for crew in &mut self.crews {
                crew.excuse(halt);
            }
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

    /// Gives up the crews that hang: neither a report nor a completed operation for too long.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Nanos {
        Nanos::from_millis(1000 * seconds)
    }

    #[test]
    fn a_halt_of_the_process_is_no_hang_of_the_storage() {
        let halt = halt_between(seconds(20), GLANCE);
        let mut crew = Crew::new(1);
        crew.heard = seconds(10);
        crew.pulse.last.store(seconds(12).0, Ordering::Relaxed);
        assert_eq!(crew.patience(seconds(13), seconds(5)), seconds(4));
        crew.excuse(Nanos(0));
        assert_eq!(crew.patience(seconds(13), seconds(5)), seconds(4), "it was never halted");
        crew.excuse(halt);
        assert_eq!(crew.patience(seconds(13) + halt, seconds(5)), seconds(4));
        assert_eq!(crew.patience(seconds(17) + halt, seconds(5)), Nanos(0), "a hang after it is one");
    }
}
