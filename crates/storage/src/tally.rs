//! The statistics kept of every operation: counters, two histograms, a time series. No allocation, no clock,
//! some 10 ns.

use std::collections::BTreeMap;

use nilometer_model::{Histogram, Invalid, Nanos, Sample, Series, WorkerTotals};

use crate::{Completion, Errno, OpKind, Operation};

/// The operations that count in a sample. Bytes, errors and the end always count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Every operation, even one that failed.
    All,
    /// Operations of one kind that succeeded.
    Kind(OpKind),
    /// Every operation except reads: a copy writes the bytes that it reads, and they count when it writes
    /// them. Only faults of reads are kept.
    Copied,
    /// Files, from the issue of the open to the completion of the close, if both succeeded.
    Files,
    /// The files that a copy writes, counted like [`Counted::Files`]. Bytes count when the copy writes them.
    CopiedFiles,
}

/// The statistics of one worker.
#[derive(Debug, Clone)]
pub struct Tally {
    start: Nanos,
    counted: Counted,
    /// Open files, by slot.
    files: Vec<Option<Begun>>,
    totals: WorkerTotals,
    latency: Histogram,
    /// The sum over all operations that count.
    latency_sum: Nanos,
    lateness: Histogram,
    series: Series,
    errors: BTreeMap<i32, u64>,
    /// Space could not be reserved.
    refused: bool,
    /// Latency starts when an operation was due.
    from_due: bool,
}

/// An operation or file that counts when it completes.
#[derive(Debug, Clone, Copy)]
struct Begun {
    due: Nanos,
    issued: Nanos,
    bytes: u64,
}

impl Tally {
    /// Creates an empty tally that counts every operation; times are relative to `start`.
    pub fn new(start: Nanos) -> Self {
        Tally::counting(Counted::All, start)
    }

    /// Creates an empty tally; times are relative to `start`.
    pub fn counting(counted: Counted, start: Nanos) -> Self {
        Tally {
            start,
            counted,
            files: Vec::new(),
            totals: WorkerTotals::default(),
            latency: Histogram::default(),
            latency_sum: Nanos(0),
            lateness: Histogram::default(),
            series: Series::new(start),
            errors: BTreeMap::new(),
            refused: false,
            from_due: false,
        }
    }

    /// Measures latency from the times at which operations are due, which the storage has no influence on. An
    /// operation issued late because earlier ones took too long then shows (no coordinated omission).
    #[must_use]
    pub fn from_due(self) -> Self {
        Tally { from_due: true, ..self }
    }

    /// Counts an operation.
    #[inline]
    pub fn observe(&mut self, completion: &Completion) {
        let &Completion { due, issued, finished, .. } = completion;
        let bytes = self.moved(completion);
        self.totals.bytes += bytes;
        self.totals.last_done = finished.since(self.start);
        match self.counted {
            Counted::All => self.count(Begun { due, issued, bytes }, finished),
            Counted::Kind(kind) if kind == completion.operation.kind && completion.result.is_ok() => {
                self.count(Begun { due, issued, bytes }, finished);
            }
            Counted::Kind(_) => {}
            Counted::Files => self.follow(completion, bytes),
            Counted::Copied => self.follow_copy(completion, bytes),
            Counted::CopiedFiles => self.follow_copied_file(completion, bytes),
        }
    }

    /// Returns the bytes moved, and counts a failure.
    #[inline]
    fn moved(&mut self, completion: &Completion) -> u64 {
        match completion.result {
            Ok(moved) if completion.operation.kind.is_data() => {
                // A read may reach the end of a file that a time limit cut short.
                if completion.operation.kind == OpKind::Write && moved < completion.operation.length {
                    self.add_error(Sample::SHORT);
                }
                u64::from(moved)
            }
            Ok(_) => 0,
            Err(errno) => self.fail(completion.operation.kind, errno),
        }
    }

    #[inline]
    fn count(&mut self, what: Begun, finished: Nanos) {
        let latency = finished.since(if self.from_due { what.due } else { what.issued });
        self.latency.add(latency.0);
        self.latency_sum += latency;
        self.lateness.add(what.issued.since(what.due).0);
        if self.totals.operations == 0 {
            self.totals.first_done = finished.since(self.start);
        }
        self.totals.operations += 1;
        self.series.add(finished, what.bytes);
    }

    fn follow(&mut self, completion: &Completion, bytes: u64) {
        let &Completion { ref operation, result, due, issued, finished } = completion;
        let slot = operation.file.0 as usize;
        match operation.kind {
            OpKind::Open(_) if result.is_ok() => {
                if slot >= self.files.len() {
                    self.files.resize(slot + 1, None);
                }
                self.files[slot] = Some(Begun { due, issued, bytes });
            }
            OpKind::Close => {
                // A closed directory was never in the table.
                let file = self.files.get_mut(slot).and_then(Option::take);
                if let Some(file) = file.filter(|_| result.is_ok()) {
                    self.count(file, finished);
                }
            }
            _ => {
                if let Some(Some(file)) = self.files.get_mut(slot) {
                    file.bytes += bytes;
                }
            }
        }
    }

    fn follow_copy(&mut self, completion: &Completion, bytes: u64) {
        let &Completion { ref operation, result, due, issued, finished } = completion;
        if operation.kind != OpKind::Read {
            return self.count(Begun { due, issued, bytes }, finished);
        }
        self.leave_out_read(operation, result, bytes);
    }

    fn follow_copied_file(&mut self, completion: &Completion, bytes: u64) {
        let operation = &completion.operation;
        match operation.kind {
            OpKind::Read => self.leave_out_read(operation, completion.result, bytes),
            // The file that the copy reads.
            OpKind::Open(open) if !open.writes() => {}
            _ => self.follow(completion, bytes),
        }
    }

    /// Keeps of a read of the source its faults alone.
    fn leave_out_read(&mut self, operation: &Operation, result: Result<u32, Errno>, bytes: u64) {
        self.totals.bytes -= bytes;
        // A source has the length that it was made with.
        if result.is_ok_and(|moved| moved < operation.length) {
            self.add_error(Sample::SHORT);
        }
    }

    /// Counts a failure. A file system that can't reserve space has not failed: the data are written anyway,
    /// and the sample notes the missing reservation.
    #[cold]
    fn fail(&mut self, kind: OpKind, errno: Errno) -> u64 {
        if kind == OpKind::Allocate && errno.is_refusal() {
            self.refused = true;
        } else {
            self.add_error(errno.0);
        }
        0
    }

    #[cold]
    fn add_error(&mut self, errno: i32) {
        *self.errors.entry(errno).or_default() += 1;
    }

    /// Returns the totals so far.
    pub fn totals(&self) -> &WorkerTotals {
        &self.totals
    }

    /// Returns the sum of latencies of all operations counted so far; divided by their number it is the mean.
    pub fn latency_sum(&self) -> Nanos {
        self.latency_sum
    }

    /// Returns the errors so far, of all kinds.
    pub fn error_count(&self) -> u64 {
        self.errors.values().sum()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Buffer, Errno, Open, Operation, Slot};

    /// An operation issued at a multiple of a microsecond and done 100 ns later.
    fn done(kind: OpKind, slot: u32, result: Result<u32, Errno>, micros: u64) -> Completion {
        let operation = Operation { length: 10, ..Operation::on(kind, Slot(slot), Buffer::empty()) };
        let issued = Nanos(micros * 1000);
        Completion { operation, result, due: issued, issued, finished: issued + Nanos(100) }
    }

    fn tallied(counted: Counted, completions: &[Completion]) -> Sample {
        let mut tally = Tally::counting(counted, Nanos(0));
        for completion in completions {
            tally.observe(completion);
        }
        let mut sample = Sample::new(Nanos(0));
        tally.add_to(&mut sample);
        sample
    }

    /// Two files at once in a directory; opening a third fails, and so does closing the second.
    fn files() -> [Completion; 9] {
        let open = OpKind::Open(Open::CREATE);
        [
            done(OpKind::OpenDir, 1, Ok(0), 0),
            done(open, 2, Ok(0), 1),
            done(open, 3, Ok(0), 2),
            done(OpKind::Write, 2, Ok(10), 3),
            done(OpKind::Write, 3, Ok(10), 4),
            done(OpKind::Close, 2, Ok(0), 5),
            done(open, 4, Err(Errno::ENOSPC), 6),
            done(OpKind::Close, 3, Err(Errno::EIO), 7),
            done(OpKind::Close, 1, Ok(0), 8),
        ]
    }

    #[test]
    fn a_file_counts_from_its_open_to_its_close() {
        let sample = tallied(Counted::Files, &files());
        assert_eq!((sample.operations, sample.bytes, sample.latency.count()), (1, 20, 1));
        let latency = sample.latency.max();
        assert!((4100 - 4100 / 31..=4100).contains(&latency), "from 1 us to 5.1 us: {latency}");
        assert_eq!((sample.wall, sample.workers[0].first_done), (Nanos(8100), Nanos(5100)));
        assert_eq!(sample.errors, BTreeMap::from([(Errno::ENOSPC.0, 1), (Errno::EIO.0, 1)]));
    }

    #[test]
    fn of_a_copied_file_the_writes_count_and_the_source_does_not() {
        let copied = [
            done(OpKind::Open(Open::READ), 5, Ok(0), 0),
            done(OpKind::Open(Open::CREATE), 2, Ok(0), 1),
            done(OpKind::Read, 5, Ok(10), 2),
            done(OpKind::Write, 2, Ok(10), 3),
            done(OpKind::Close, 2, Ok(0), 4),
            done(OpKind::Close, 5, Ok(0), 5),
        ];
        let sample = tallied(Counted::CopiedFiles, &copied);
        assert_eq!((sample.operations, sample.bytes, sample.errors.len()), (1, 10, 0));
        let mut short = copied;
        short[2].result = Ok(9);
        assert_eq!(tallied(Counted::CopiedFiles, &short).errors, BTreeMap::from([(Sample::SHORT, 1)]));
    }

    #[test]
    fn only_a_kind_counts_or_all() {
        let close = tallied(Counted::Kind(OpKind::Close), &files());
        assert_eq!((close.operations, close.bytes, close.latency.count()), (2, 20, 2));
        assert_eq!((close.wall, close.errors.len()), (Nanos(8100), 2));
        let all = tallied(Counted::All, &files());
        assert_eq!((all.operations, all.bytes, all.latency.count(), all.lateness.count()), (9, 20, 9, 9));
    }
}
