//! Who reads a recording while it is made: readers that check every frame, and a copy onto a second target. Threads of
//! their own; each reports by channel and is never joined.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

use nilometer_acquisition::{
    Chronicle, Expected, Follower, Following, Purpose, Writer,
    journal::Head,
    ring_of,
    sink::{Gauge, RawFiles, RawLayout, Sink, Spacing},
    suited_engine,
};
use nilometer_model::{Histogram, Nanos, ReaderTotals, Readers, plan::EngineKind};
use nilometer_storage::{Arena, Clock, Drive, Target, engine::Options, process::Usage};

use crate::phase::Run;

/// What is followed.
#[derive(Debug, Clone)]
pub(super) struct Followed {
    pub(super) target: Arc<dyn Target>,
    pub(super) lanes: Vec<RawLayout>,
    pub(super) expected: Expected,
    /// Where copies go.
    pub(super) archive: Option<Arc<dyn Target>>,
}

/// What came of a thread.
#[derive(Debug, Clone, Default)]
pub(super) struct Report {
    /// Whose recording it read.
    pub(super) member: usize,
    /// None of the thread that writes a copy.
    pub(super) reader: Option<(ReaderTotals, Histogram)>,
    pub(super) usage: Usage,
    /// Why it did not work, if so.
    pub(super) fault: Option<String>,
    /// It did not report in time, and was given up.
    pub(super) hung: bool,
}

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Reads the recording, to check it or to copy it.
    Reads,
    /// Writes a copy onto other storage.
    WritesCopy,
}

/// All that read.
#[derive(Debug)]
pub(super) struct Crowd {
    clock: Clock,
    hang_after: Nanos,
    over: Arc<AtomicBool>,
    sender: SyncSender<(usize, Part, Report)>,
    reports: Receiver<(usize, Part, Report)>,
    /// Whose recording each thread that has not reported works on, and at what.
    open: Vec<(usize, Part)>,
}

/// Memory between reading and writing a copy.
const COPY_BUFFER: u64 = 64 << 20;
/// More reports than there can be threads.
const REPORTS: usize = 4096;

impl Crowd {
    pub(super) fn new(run: &Run) -> Self {
        let (sender, reports) = sync_channel(REPORTS);
        let over = Arc::new(AtomicBool::new(false));
        Crowd { clock: run.clock, hang_after: run.hang_after, over, sender, reports, open: Vec::new() }
    }

    /// Follows a recording with all its readers.
    pub(super) fn follow(&mut self, member: usize, what: &Followed, readers: Readers) -> Result<(), String> {
        let frame_size = what.lanes.first().map_or(1, |lane| lane.head.frame_size);
        let following = Following { distance: readers.distance, ..Following::default() };
        let following = readers.rate.map_or(following, |rate| following.at_most(rate, frame_size));
        for _ in 0..readers.count {
            self.read(member, what, Purpose::Check(what.expected.clone()), following)?;
        }
        match &what.archive {
            Some(archive) if readers.copy => self.copy(member, what, archive, following),
            _ => Ok(()),
        }
    }

    fn read(
        &mut self,
        member: usize,
        what: &Followed,
        purpose: Purpose,
        following: Following,
    ) -> Result<(), String> {
        let lanes = what.lanes.len() as u32;
        let ring = if let Purpose::Copy(ring) = &purpose { Some(ring.clone()) } else { None };
        let mut follower = Follower::new(what.lanes.clone(), purpose, following, self.over.clone());
        let options =
            Options { kind: EngineKind::Sync, depth: 1, slots: Follower::slots(lanes), clock: self.clock };
        let target = what.target.clone();
        self.spawn(member, Part::Reads, move || {
            let mut engine = match target.engine(&options) {
                Ok(engine) => engine,
                Err(error) => {
                    if let Some(ring) = ring {
                        ring.close(0);
                    }
                    return Report { member, fault: Some(error.to_string()), ..Report::default() };
                }
            };
            if let Some(ring) = ring {
                ring.seat_source(engine.waker());
            }
            Drive::new(&mut follower, engine.as_mut()).run(|_| {});
            let reader = Some((follower.totals(), follower.late().clone()));
            Report { member, reader, usage: Usage::of_thread(), ..Report::default() }
        })
    }

    /// A second recording of what the follower reads.
    fn copy(
        &mut self,
        member: usize,
        what: &Followed,
        archive: &Arc<dyn Target>,
        following: Following,
    ) -> Result<(), String> {
        let Some(first) = what.lanes.first() else { return Ok(()) };
        let Head { frame_size, storing, format, .. } = first.head;
        let Spacing { direct, stride } = Spacing::suited(archive.description(), frame_size, storing, format);
        let head = Head { lane: 0, lanes: 1, stride, ..first.head };
        let layout = RawLayout { head, direct, ..first.clone() };
        let room = stride.max(Follower::room(&what.lanes));
        let (_, slots) = Arena::shared_out((COPY_BUFFER / room).max(4) as usize, room as usize);
        let sink = Box::new(RawFiles::new(layout.clone(), Gauge::with_reserve(0)));
        let ring = ring_of(sink.needs(), slots, 1, Chronicle::new(head.frame_size, Nanos::MAX));
        let (target, shared, clock, deep) = (archive.clone(), ring.clone(), self.clock, layout.is_deep());
        self.spawn(member, Part::WritesCopy, move || {
            let engine = suited_engine(target.as_ref(), deep, clock);
            let mut engine = match engine.and_then(|options| target.engine(&options)) {
                Ok(engine) => engine,
                Err(error) => return Report { member, fault: Some(error.to_string()), ..Report::default() },
            };
            shared.seat_writer(0, engine.waker());
            let mut writer = Writer::new(shared, 0, sink);
            Drive::new(&mut writer, engine.as_mut()).run(|_| {});
            let fault = writer.totals().fault.map(|errno| format!("the copy failed: {errno}"));
            Report { member, usage: Usage::of_thread(), fault, ..Report::default() }
        })?;
        self.read(member, what, Purpose::Copy(ring), following)
    }

    fn spawn(
        &mut self,
        member: usize,
        part: Part,
        work: impl FnOnce() -> Report + Send + 'static,
    ) -> Result<(), String> {
        let sender = self.sender.clone();
        // A report that nobody waits for any more is dropped.
        let work = move || drop(sender.send((member, part, work())));
        let name = if part == Part::Reads { "reader" } else { "copy" };
        let spawned = thread::Builder::new().name(name.into()).spawn(work);
        self.open.push((member, part));
        spawned.map(drop).map_err(|error| format!("can't start a thread: {error}"))
    }

    /// What came of all of them, if they end within this time or soon after they are told to; whether one that reads hangs.
    /// A writer of a copy that hangs says nothing of the target: its report is that it does.
    pub(super) fn gather(mut self, patience: Nanos) -> (Vec<Report>, bool) {
        let mut reports = Vec::new();
        for limit in [patience, self.hang_after] {
            let until = self.clock.now() + limit;
            while !self.open.is_empty() && self.clock.now() < until {
                let report = self.reports.recv_timeout(until.since(self.clock.now()).duration());
                if let Ok((member, part, report)) = report {
                    let at = self.open.iter().position(|open| *open == (member, part));
                    self.open.swap_remove(at.expect("who reports was started"));
                    reports.push(report);
                }
            }
            self.over.store(true, Ordering::Relaxed);
        }
        let hangs = self.open.iter().any(|(_, part)| *part == Part::Reads);
        let copies = self.open.iter().filter(|(_, part)| *part == Part::WritesCopy);
        reports.extend(copies.map(|&(member, _)| Report { member, hung: true, ..Report::default() }));
        (reports, hangs)
    }
}
