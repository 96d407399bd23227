//! Drives a worker's part of a phase to its end. If the phase has a time limit but must be complete for later
//! ones, only the work within the limit is measured. The rest follows unmeasured.

use std::{mem, ops::ControlFlow};

use nilometer_model::Nanos;
use nilometer_storage::{
    Completion, Drive, Ended, Tally,
    process::{self, Usage},
};

use crate::supervise::{DoneSinceBeat, Heartbeat, Report, Work};

/// The conditions under which a worker runs its part of a phase.
pub(crate) struct DrivenPart<'a> {
    pub(crate) start: Nanos,
    /// The end of the measurement, if the worker goes on after it; else `None`.
    pub(crate) measured_until: Option<Nanos>,
    pub(crate) pulse: &'a Heartbeat,
    /// Takes the report of the measurement, if the worker goes on after that.
    pub(crate) report: &'a dyn Fn(Report),
    /// The time between the start of the phase and its own.
    pub(crate) late: Nanos,
}

/// Drives a worker's part to its end, and publishes its progress from time to time. Returns the last report.
pub(crate) fn driven(drive: Drive<'_>, part: &DrivenPart<'_>, tally: Tally) -> Report {
    let mut measuring = Measuring::begin(part, tally);
    let ended = drive.run_while(|completion| {
        if part.measured_until.is_some_and(|until| completion.finished > until) {
            measuring.report_measured();
        }
        measuring.observe(completion)
    });
    measuring.end(ended == Ended::BrokenOff)
}

/// The counts of a worker's part.
struct Measuring<'a> {
    part: &'a DrivenPart<'a>,
    tally: Tally,
    /// True if the measurement was reported; the counts are then of the rest.
    is_over: bool,
    usage: Usage,
    run_delay: Nanos,
    beat: Nanos,
    last: Nanos,
    told: DoneSinceBeat,
}

impl<'a> Measuring<'a> {
    fn begin(part: &'a DrivenPart<'a>, tally: Tally) -> Self {
        Measuring {
            part,
            tally,
            is_over: false,
            usage: Usage::of_thread(),
            run_delay: process::run_delay(),
            beat: part.start,
            last: part.start,
            told: DoneSinceBeat::default(),
        }
    }

    fn observe(&mut self, completion: &Completion) -> ControlFlow<()> {
        self.tally.observe(completion);
        self.last = self.last.max(completion.finished);
        if !self.part.pulse.is_due(self.beat, completion.finished) {
            return ControlFlow::Continue(());
        }
        self.beat = completion.finished;
        if self.beat() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Publishes progress. Returns true if the worker must stop.
    fn beat(&mut self) -> bool {
        let done = DoneSinceBeat::in_all(&self.tally);
        let since = done.since(mem::replace(&mut self.told, done));
        self.part.pulse.beat(self.beat, since)
    }

    /// Reports the measurement when the time is over. From now on the counts are of the rest, of which only
    /// errors are of use.
    fn report_measured(&mut self) {
        if mem::replace(&mut self.is_over, true) {
            return;
        }
        self.beat();
        let tally = mem::replace(&mut self.tally, Tally::new(self.part.start));
        self.told = DoneSinceBeat::default();
        let work = self.work(tally, false);
        (self.part.report)(Report::Measured(Box::new(work)));
    }

    fn work(&self, tally: Tally, cut_short: bool) -> Work {
        Work {
            began: self.part.late,
            tally,
            usage: Usage::of_thread().since(self.usage),
            // A worker that is done waits once more for a processor, to report. The measurement excludes this
            // wait.
            run_delay: process::run_delay().since(self.run_delay).min(self.last.since(self.part.start)),
            cut_short,
        }
    }

    fn end(mut self, cut_short: bool) -> Report {
        self.beat();
        let tally = mem::replace(&mut self.tally, Tally::new(self.part.start));
        let work = Box::new(self.work(tally, cut_short));
        if self.is_over { Report::Whole(work) } else { Report::Done(work) }
    }
}
