//! Readers of a recording in progress. Live readers check every frame, on threads of their own that report by
//! channel and are never joined. A copy onto a second target is a recording itself.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
};

use nilometer_acquisition::{
    Copied, EngineWish, Feed, Follower, Following, LayoutOptions, Outcome, Purpose, Recorder, RecordingError,
    RecordingPlan, Retention, Setup, StoredFrames,
    sink::{LaneOptions, RawLayout, lanes_of},
    suited_engine,
};
use nilometer_intake::Expected;
use nilometer_model::{
    Bytes, Capability, EngineKind, Histogram, Nanos, ReaderTotals, Readers, TargetDescription,
};
use nilometer_recording::journal::Head;
use nilometer_storage::{Clock, Drive, Target, TargetError, engine::Options, process::Usage, within};

use crate::task::Run;

/// The recording that readers follow.
#[derive(Debug, Clone)]
pub(super) struct Followed {
    pub(super) target: Arc<dyn Target>,
    pub(super) lanes: Vec<RawLayout>,
    pub(super) expected: Expected,
    /// The target that copies go to.
    pub(super) archive: Option<Arc<dyn Target>>,
}

/// The result of a reader or a copy.
#[derive(Debug, Clone, Default)]
pub(super) struct Report {
    /// The member whose recording it read.
    pub(super) member: usize,
    /// The totals and the lateness; `None` if it did not get that far.
    pub(super) reader: Option<(ReaderTotals, Histogram)>,
    pub(super) usage: Usage,
    /// The reason why it failed, if it did.
    pub(super) fault: Option<String>,
    /// True if it did not report in time and was given up.
    pub(super) hung: bool,
    /// True if it reads the recording after its end.
    pub(super) after: bool,
}

/// All readers and copies.
#[derive(Debug)]
pub(super) struct LiveReaders {
    clock: Clock,
    hang_after: Nanos,
    over: Arc<AtomicBool>,
    sender: SyncSender<Report>,
    reports: Receiver<Report>,
    /// For each reader that has not reported, the member whose recording it reads.
    open: Vec<usize>,
    /// Copies that are not complete, each with the member whose recording it copies.
    copies: Vec<(usize, Recorder)>,
    /// The reports of those that could not begin.
    early: Vec<Report>,
}

/// Memory between the reading and the writing of a copy.
const COPY_BUFFER: u64 = 64 << 20;
/// The least number of slots in a copy's ring.
const COPY_SLOTS_MIN: usize = 4;
/// The capacity of the channel, more than the possible number of threads.
const REPORTS: usize = 4096;
/// How often `wait` checks if copies are complete.
const LOOK: Nanos = Nanos::from_millis(20);

impl LiveReaders {
    pub(super) fn new(run: &Run) -> Self {
        let (sender, reports) = sync_channel(REPORTS);
        LiveReaders {
            clock: run.clock,
            hang_after: run.hang_after,
            over: Arc::default(),
            sender,
            reports,
            open: Vec::new(),
            copies: Vec::new(),
            early: Vec::new(),
        }
    }

    /// Follows a recording with all its readers.
    pub(super) fn follow(&mut self, member: usize, what: &Followed, readers: Readers) -> Result<(), String> {
        let frame_size = what.lanes.first().map_or(1, |lane| lane.head.frame_size);
        let following = Following { distance: readers.distance, ..Following::default() };
        let following = readers.rate.map_or(following, |rate| following.at_most(rate, frame_size));
        for _ in 0..readers.count {
            self.read(member, what, following)?;
        }
        if let Some(archive) = what.archive.as_ref().filter(|_| readers.copy) {
            self.copy(member, what, archive, following);
        }
        Ok(())
    }

    fn read(&mut self, member: usize, what: &Followed, following: Following) -> Result<(), String> {
        let lanes = what.lanes.len() as u32;
        let purpose = Purpose::Check(what.expected.clone());
        let mut follower = Follower::new(what.lanes.clone(), purpose, following, self.over.clone());
        let options =
            Options { kind: EngineKind::Sync, depth: 1, slots: Follower::slots(lanes), clock: self.clock };
        let target = what.target.clone();
        let sender = self.sender.clone();
        let mut work = move || run_reader(member, target.as_ref(), &options, &mut follower);
        // The thread drops a report that nobody waits for any more.
        let spawned = thread::Builder::new().name("reader".into()).spawn(move || drop(sender.send(work())));
        spawned.map_err(|error| format!("can't start a thread: {error}"))?;
        self.open.push(member);
        Ok(())
    }

    /// Starts a copy of the recording as a second recording. If it can't begin that is no fault of the first.
    fn copy(&mut self, member: usize, what: &Followed, archive: &Arc<dyn Target>, following: Following) {
        let stop = self.over.clone();
        let begun = copy_setup(what, archive, following, self.clock, self.hang_after, stop);
        let begun =
            begun.and_then(|setup| Recorder::start(setup).map_err(|error| NoCopy::of_recorder(&error)));
        match begun {
            Ok(recorder) => self.copies.push((member, recorder)),
            Err(why) => self.early.push(why.report(member)),
        }
    }

    /// Collects all reports, if the readers end within `patience`, or soon after the flag `over` is set.
    /// Returns true as well if one hangs while it reads.
    ///
    /// A copy's writer that hangs proves nothing about the target: only its report mentions that.
    pub(super) fn gather(mut self, patience: Nanos) -> (Vec<Report>, bool) {
        let mut reports = std::mem::take(&mut self.early);
        for limit in [patience, self.hang_after] {
            let until = self.clock.now() + limit;
            while !(self.open.is_empty() && self.copies.is_empty()) && self.clock.now() < until {
                reports.extend(self.wait(until));
            }
            self.over.store(true, Ordering::Relaxed);
        }
        let mut hangs = !self.open.is_empty();
        for (member, mut recorder) in self.copies {
            let outcome = recorder.give_up();
            hangs |= !outcome.fed;
            reports.push(report_of_copy(member, outcome));
        }
        (reports, hangs)
    }

    /// Waits for the next reports, if there are any.
    fn wait(&mut self, until: Nanos) -> Vec<Report> {
        let left = until.since(self.clock.now());
        let left = if self.copies.is_empty() { left } else { left.min(LOOK) };
        let mut reports = Vec::new();
        if self.open.is_empty() {
            thread::sleep(left.duration());
        } else if let Ok(report) = self.reports.recv_timeout(left.duration()) {
            let at = self.open.iter().position(|open| *open == report.member);
            self.open.swap_remove(at.expect("a started recorder sends each report"));
            reports.push(report);
        }
        self.copies.retain_mut(|(member, recorder)| match recorder.wait(Nanos(0)) {
            Some(outcome) => {
                reports.push(report_of_copy(*member, outcome));
                false
            }
            None => true,
        });
        reports
    }
}

/// The thread of a reader: reads and checks to the end.
fn run_reader(member: usize, target: &dyn Target, options: &Options, follower: &mut Follower) -> Report {
    let mut engine = match target.engine(options) {
        Ok(engine) => engine,
        Err(error) => return Report { member, fault: Some(error.to_string()), ..Report::default() },
    };
    Drive::new(follower, engine.as_mut()).run(|_| {});
    let reader = Some((follower.totals(), follower.late().clone()));
    Report { member, reader, usage: Usage::of_thread(), ..Report::default() }
}

/// Sets up a recording of one lane, on the archive, that copies the recording.
fn copy_setup(
    what: &Followed,
    archive: &Arc<dyn Target>,
    following: Following,
    clock: Clock,
    hang_after: Nanos,
    stop: Arc<AtomicBool>,
) -> Result<Setup, NoCopy> {
    let plan = plan_of_copy(&what.lanes, archive.description());
    let layout = layout_of_copy(&plan, &what.lanes);
    let wish = EngineWish::usual(layout.is_deep());
    let engine = within(hang_after, archive, move |archive| suited_engine(archive, wish, clock));
    let engine = engine.map_err(|error| NoCopy::of(&error))?;
    let engine = engine.map_err(|error| NoCopy::Failed(error.to_string()))?;
    let target = what.target.clone();
    let lanes = what.lanes.clone();
    Ok(Setup {
        lanes: lanes_of(vec![(archive.clone(), layout)], LaneOptions::default())
            .map_err(|error| NoCopy::Failed(error.to_string()))?,
        engine,
        slots: plan.slots().max(COPY_SLOTS_MIN),
        feed: Feed::Recording(Copied { target, lanes, following }),
        stop,
        allowance: Nanos::MAX,
        hang_after,
    })
}

/// Plans the layout of a copy on the archive, which keeps as much as the original.
fn plan_of_copy(lanes: &[RawLayout], archive: &TargetDescription) -> RecordingPlan {
    let first = lanes.first().expect("a recording has a lane");
    let Head { frame_size, frames_per_file, storing, format, names, .. } = first.head;
    let frames = StoredFrames {
        size: frame_size,
        format,
        storing,
        // Files that are put as a whole are as large as their room in memory.
        per_file: (storing.is_many_files() && archive.capabilities.has(Capability::WriteAnywhere))
            .then_some(frames_per_file),
        together: 1,
        names,
        picture: first.picture,
        packets: first.stream.is_some(),
        padded: first.stream.is_none(),
        slot_min: Follower::room(lanes),
    };
    let kept = first.keep.map(|keep| keep * first.file_size() * lanes.len() as u64);
    let options = LayoutOptions {
        retention: kept.map_or(Retention::All, |kept| Retention::Latest(Bytes(kept))),
        writers: Some(1),
        checksums: first.checksums,
        ..LayoutOptions::with_buffer(Bytes(COPY_BUFFER))
    };
    RecordingPlan::of(frames, std::slice::from_ref(archive), &options)
}

/// The only lane of a copy.
fn layout_of_copy(plan: &RecordingPlan, lanes: &[RawLayout]) -> RawLayout {
    let first = lanes.first().expect("a recording has a lane");
    let layout = plan.layout(&first.name, first.head.recording, 0);
    RawLayout {
        origin: first.origin.clone(),
        stream: first.stream.clone(),
        hdf5: first.hdf5.clone(),
        ..layout
    }
}

/// The reason why a copy could not begin.
#[derive(Debug)]
enum NoCopy {
    /// Its storage did not answer in time.
    Hung,
    Failed(String),
}

impl NoCopy {
    fn of(error: &TargetError) -> Self {
        match error {
            TargetError::Hung { .. } => NoCopy::Hung,
            error => NoCopy::Failed(error.to_string()),
        }
    }

    fn of_recorder(error: &RecordingError) -> Self {
        match error {
            RecordingError::Hung { .. } => NoCopy::Hung,
            RecordingError::Lane { .. } | RecordingError::Thread(_) => NoCopy::Failed(error.to_string()),
        }
    }

    fn report(self, member: usize) -> Report {
        let none = Report { member, ..Report::default() };
        match self {
            NoCopy::Hung => Report { hung: true, ..none },
            NoCopy::Failed(why) => Report { fault: Some(why), ..none },
        }
    }
}

fn report_of_copy(member: usize, outcome: Outcome) -> Report {
    let usage = outcome.lanes.iter().flatten().map(|lane| lane.usage).fold(outcome.source, Usage::and);
    let fault =
        (!outcome.faults.is_empty()).then(|| format!("the copy failed: {}", outcome.faults.join("; ")));
    Report { member, reader: outcome.reader, usage, fault, hung: outcome.hung, after: false }
}
