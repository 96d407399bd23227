//! The threads of a recording: a source, and a writer for each lane. Decisions about frames are made in the
//! workloads, which tests run on a virtual clock.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
    mpsc::SyncSender,
};

use nilometer_model::Nanos;
use nilometer_ring::{Ring, StoredCounts};
use nilometer_storage::{
    Arena, Completion, Drive, Engine, OpKind, Step, Workload,
    engine::Options,
    process::{self, Usage},
};

use super::{Lane, feed, source_totals::SourceTotals};
use crate::{
    Writer,
    sink::{Gauge, LaneSetup},
};

/// A message of a thread to the recorder.
#[derive(Debug)]
pub(super) enum Report {
    /// A lane can store frames.
    Ready(usize),
    Refused(usize, String),
    Lane(usize, Box<Lane>),
    Source(Box<SourceTotals>),
    /// The source listens no more. Only a source that listens on reports it, after its totals.
    Listened,
}

#[derive(Debug)]
pub(super) struct LaneJob {
    pub(super) ring: Arc<Ring>,
    pub(super) seat: usize,
    pub(super) lane: LaneSetup,
    /// Bytes written so far.
    pub(super) written: Arc<AtomicU64>,
    /// Frames stored so far.
    pub(super) counts: Arc<StoredCounts>,
    pub(super) options: Options,
    pub(super) arena: Arc<Arena>,
}

pub(super) fn lane(mut job: LaneJob, reports: &SyncSender<Report>) {
    let seat = job.seat;
    let report = match lane_engine(&mut job) {
        Ok(engine) => {
            Report::Lane(seat, Box::new(drive_lane(job, engine, || drop(reports.send(Report::Ready(seat))))))
        }
        Err(why) => Report::Refused(seat, why),
    };
    // The send fails if the recorder no longer waits for the report.
    drop(reports.send(report));
}

fn lane_engine(job: &mut LaneJob) -> Result<Box<dyn Engine>, String> {
    let mut engine = job.lane.target.engine(&job.options).map_err(|error| error.to_string())?;
    // Registering fails without the right to lock memory; the engine is then only slower.
    engine.register(&job.arena).ok();
    job.ring.seat_writer(job.seat, engine.waker());
    if let Some(encode) = &mut job.lane.encode {
        encode.seat(engine.waker());
    }
    Ok(engine)
}

/// Writes until the recording is over, and calls `ready` when the lane can begin.
fn drive_lane(job: LaneJob, mut engine: Box<dyn Engine>, ready: impl FnOnce()) -> Lane {
    let LaneJob { ring, seat, lane, written, counts, options, .. } = job;
    let LaneSetup { target, sink, gauge, encode } = lane;
    let read = || {
        if let Some(gauge) = &gauge {
            gauge.read(|| target.space().ok().map(|space| space.free.0));
        }
    };
    read();
    let mut lane = Starting::new(Writer::new(ring, seat, sink).encoding(encode).counting(counts), ready);
    Drive::new(&mut lane, engine.as_mut()).run(|completion| {
        if let (OpKind::Write, Ok(bytes)) = (completion.operation.kind, completion.result) {
            written.fetch_add(bytes.into(), Ordering::Relaxed);
        }
        if Gauge::is_due(completion.operation.kind) {
            read();
        }
    });
    let Starting { writer, before: (usage, run_delay), .. } = lane;
    Lane {
        totals: writer.totals().clone(),
        written: writer.sink().written(),
        usage: Usage::of_thread().since(usage).and(writer.encode_usage()),
        run_delay: process::run_delay().since(run_delay),
        ended: options.clock.now(),
    }
}

/// A writer that reports once when it is ready, and notes the processor time its thread had spent by then.
struct Starting<R> {
    writer: Writer,
    ready: Option<R>,
    before: (Usage, Nanos),
}

impl<R: FnOnce()> Starting<R> {
    fn new(writer: Writer, ready: R) -> Self {
        Starting { writer, ready: Some(ready), before: Default::default() }
    }

    #[cold]
    fn look(&mut self) {
        if self.writer.sink().is_ready()
            && let Some(ready) = self.ready.take()
        {
            self.before = (Usage::of_thread(), process::run_delay());
            ready();
        }
    }
}

impl<R: FnOnce()> Workload for Starting<R> {
    fn next(&mut self, now: Nanos) -> Step {
        let step = self.writer.next(now);
        if self.ready.is_some() {
            self.look();
        }
        step
    }

    fn completed(&mut self, completion: Completion) {
        self.writer.completed(completion);
    }
}

pub(super) fn source(job: feed::Job, reports: &SyncSender<Report>) {
    let feed::JobEnd { totals, listening } = job.run();
    // The thread has run nothing else.
    let usage = Usage::of_thread();
    let run_delay = process::run_delay();
    drop(reports.send(Report::Source(Box::new(SourceTotals { usage, run_delay, ..totals }))));
    if let Some(listening) = listening {
        listening.run();
        drop(reports.send(Report::Listened));
    }
}
