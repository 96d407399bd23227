//! What is kept of every operation: counters, two histograms, a time series. No allocation, no clock, some 10 ns.

use std::collections::BTreeMap;

use nilometer_model::{Histogram, Invalid, Nanos, Sample, Series, WorkerTotals};

use crate::{Completion, Errno, OpKind};

/// What one worker did.
#[derive(Debug, Clone)]
pub struct Tally {
    start: Nanos,
    totals: WorkerTotals,
    latency: Histogram,
    lateness: Histogram,
    series: Series,
    errors: BTreeMap<i32, u64>,
    /// Space could not be reserved.
    refused: bool,
}

impl Tally {
    /// Nothing yet; times count from `start`.
    pub fn new(start: Nanos) -> Self {
        Tally {
            start,
            totals: WorkerTotals::default(),
            latency: Histogram::default(),
            lateness: Histogram::default(),
            series: Series::new(start),
            errors: BTreeMap::new(),
            refused: false,
        }
    }

    /// Counts an operation.
    #[inline]
    pub fn observe(&mut self, completion: &Completion) {
        let &Completion { due, issued, finished, .. } = completion;
        self.latency.add(finished.since(issued).0);
        self.lateness.add(issued.since(due).0);
        let bytes = match completion.result {
            Ok(moved) if completion.operation.kind.is_data() => {
                // A read may meet the end of a file that a time limit cut short.
                if completion.operation.kind == OpKind::Write && moved < completion.operation.length {
                    self.count(Sample::SHORT);
                }
                u64::from(moved)
            }
            Ok(_) => 0,
            Err(errno) => self.fail(completion.operation.kind, errno),
        };
        if self.totals.operations == 0 {
            self.totals.first_done = finished.since(self.start);
        }
        self.totals.operations += 1;
        self.totals.bytes += bytes;
        self.totals.last_done = finished.since(self.start);
        self.series.add(finished, bytes);
    }

    /// Looks at an operation on the source of a copy, whose bytes count when they are written: only its faults are kept.
    #[inline]
    pub fn observe_source(&mut self, completion: &Completion) {
        match completion.result {
            Ok(moved) if moved == completion.operation.length => {}
            Ok(_) => self.count(Sample::SHORT),
            Err(errno) => self.count(errno.0),
        }
    }

    /// A file system that can't reserve space has not failed: data are written all the same, and the sample says what it is
    /// not.
    #[cold]
    fn fail(&mut self, kind: OpKind, errno: Errno) -> u64 {
        if kind == OpKind::Allocate && errno.is_refusal() {
            self.refused = true;
        } else {
            self.count(errno.0);
        }
        0
    }

    #[cold]
    fn count(&mut self, errno: i32) {
        *self.errors.entry(errno).or_default() += 1;
    }

    /// What was done so far.
    pub fn totals(&self) -> &WorkerTotals {
        &self.totals
    }

    /// Adds the worker to its sample.
    pub fn add_to(self, sample: &mut Sample) {
        sample.bytes += self.totals.bytes;
        sample.operations += self.totals.operations;
        sample.wall = sample.wall.max(self.totals.last_done);
        sample.latency.merge(&self.latency);
        sample.lateness.merge(&self.lateness);
        sample.series.merge(self.series);
        for (errno, count) in self.errors {
            *sample.errors.entry(errno).or_default() += count;
        }
        sample.workers.push(self.totals);
        if self.refused {
            sample.invalid = Some(Invalid::NotPreallocated);
        }
    }
}
