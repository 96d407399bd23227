//! The ingest phase: the shipped recorder with a simulated instrument in front of it. What is measured is what will
//! run: recorders that work at the same time, and who reads what they record.

mod follow;
mod judge;
mod over_network;
mod packets;
mod read;
mod sample;
mod setup;
mod streams;
mod together;

use std::sync::Arc;

use nilometer_acquisition::{Outcome, Recorder, RecordingError};
use nilometer_model::{
    Bytes, Goal, Invalid, Nanos, ReaderTotals, Readers, Sample, Seed, SentPackets, Series,
    sustained::is_precise,
};
use nilometer_plan::{Onto, RecordingRun};
use nilometer_storage::{
    Calendar, Target,
    process::{self, Usage},
    target::NullTarget,
};

use crate::{
    background::Loads,
    settle::settle,
    supervise::{BufferLevel, CampaignStep, GLANCE, SoFar},
    surroundings::Surroundings,
    task::{Run, traffic_since},
};
use follow::{Followed, LiveReaders, Report};
use over_network::{Sends, Went};
pub(crate) use read::RecordedFiles;
pub use sample::sample_of;
pub(crate) use sample::sample_of_all;
use sample::samples;
pub(crate) use setup::Shape;
use setup::{PacketsIn, Ready, descriptions_of, setup};
use streams::{OwnStreams, awaited};
pub(crate) use together::RecordingRanks;

/// What the names of a recording's files begin with: its cell among those of a job, and its number. Where several processes
/// record, also by the process that makes them and by the repeat: another machine may still believe in a file that was removed.
fn name_of(together: Option<&RecordingRanks<'_>>, cell: usize, number: u64) -> String {
    let several = together.filter(|together| together.cluster.size() > 1);
    let of_repeat = several.map(|together| format!("{}.{}.", together.attempt, together.cluster.rank()));
    format!("n_{}{cell}.{number}", of_repeat.unwrap_or_default())
}

/// What is recorded at once, and where.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    /// The target's number in the plan.
    pub(crate) number: usize,
    pub(crate) target: &'a Arc<dyn Target>,
    /// Where copies go.
    pub(crate) archive: Option<&'a Arc<dyn Target>>,
    /// A sample each.
    pub(crate) cells: &'a [(RecordingRun, Seed)],
    /// When it may end, if frames come as fast as they are taken.
    pub(crate) pass: Pass,
    /// How much later than the agreed start each cell begins: its frames come in turn with those of other processes.
    pub(crate) turns: &'a [Nanos],
    /// Who records it.
    pub(crate) together: RecordingRanks<'a>,
}

/// A recorder of the job.
#[derive(Debug)]
struct Member {
    /// Index into the job's cells.
    cell: usize,
    recorder: Recorder,
    followed: Followed,
    /// What is known of its packets, if it is of packets, and what became of them.
    packets: Option<PacketsIn>,
    went: Option<Went>,
    outcome: Option<Outcome>,
}

impl Member {
    /// Who sends its packets, if that is this process.
    fn sends(&mut self) -> Option<&mut Sends> {
        self.packets.as_mut()?.sends.as_mut()
    }
}

/// Records the job's instruments, together with other processes; at rank 0 a sample for each cell. What goes wrong is in the
/// samples. None if the campaign ended before the recordings did, and at other ranks.
pub(crate) fn run_ingest(
    run: &Run,
    surroundings: &mut Surroundings,
    job: &Job<'_>,
    loads: &mut Loads,
    tell: &mut dyn FnMut(SoFar),
) -> Option<Vec<Sample>> {
    let together = job.together;
    let parts = together.own_parts(job.cells);
    let own: Vec<(RecordingRun, Seed)> = parts.iter().flatten().cloned().collect();
    if own.is_empty() {
        together.assist(run, job.cells);
        return None;
    }
    let turns = together.own_turns(job.cells);
    let part = Job { cells: &own, turns: &turns, ..*job };
    let PartRecorded { samples, began } = record_part(run, surroundings, &part, job, loads, tell);
    together.united(job.cells, &parts, samples, began)
}

/// What this process recorded.
#[derive(Debug, Default)]
struct PartRecorded {
    /// A sample for each cell; none if the campaign ended first.
    samples: Option<Vec<Sample>>,
    /// How long after the agreed start the last of its recorders began.
    began: Nanos,
}

/// Records this process's part of the whole job.
fn record_part(
    run: &Run,
    surroundings: &mut Surroundings,
    job: &Job<'_>,
    whole: &Job<'_>,
    loads: &mut Loads,
    tell: &mut dyn FnMut(SoFar),
) -> PartRecorded {
    let mut without_load = loads.renew(run);
    let step = |step| SoFar { step, ..SoFar::default() };
    tell(step(CampaignStep::Settling));
    let settling = settle(run);
    tell(step(CampaignStep::Preparing(memory(job))));
    let load = process::load_average();
    let traffic = job.target.traffic();
    let members = prepared(run, job);
    let Some(ready) = all_ready(run, whole, members) else { return PartRecorded::default() };
    // A load takes its time to begin: frames are due from the start that is agreed upon.
    without_load.append(&mut loads.begin());
    let at = ready.is_ok().then(|| job.together.agreed_start(&run.clock));
    let (moment, before) = surroundings.begin(&run.clock);
    let beside = loads.done(job.number);
    let mut begun = Begun { at: at.unwrap_or_default(), calendar: Calendar::now().time, late: Nanos(0) };
    let recorded = ready.and_then(|Prepared { members, mut streams }| {
        let recorded = recorded(run, job, members, &mut streams, &mut begun, tell);
        let (sent, sending) = job.together.sent(run, streams);
        with_sent(Recorded { sending, ..recorded? }, sent)
    });
    let spent = surroundings.end(&run.clock, &moment);
    let device = traffic_since(traffic, job.target.as_ref());
    let beside = loads.done(job.number).zip(beside).map(|(is, was)| is.since(was));
    let without_load: Vec<Invalid> = loads.end().into_values().chain(without_load.into_values()).collect();
    let recorded = recorded.and_then(|recorded| {
        tell(step(CampaignStep::ReadingBack(kept(job, &recorded))));
        read_back(run, job, recorded)
    });
    surroundings.pass(&run.clock);
    let mut samples = match recorded {
        Ok(recorded) => samples(job, recorded, spent.ours),
        Err(why) => Some(job.cells.iter().map(|_| Sample::invalid(why.clone())).collect()),
    };
    for sample in samples.iter_mut().flatten() {
        spent.put(sample, job.number, job.cells.len() as u64, surroundings.idle_cores());
        (sample.settling, sample.load, sample.started, sample.before) =
            (settling, load, begun.calendar, before);
        (sample.device, sample.background) = (device, beside);
        let judged = sample.invalid.take().map(|why| why.throttled(spent.throttled));
        sample.invalid = Invalid::gravest(judged, without_load.first().cloned());
    }
    PartRecorded { samples, began: begun.late }
}

/// All that is needed.
struct Prepared {
    members: Vec<Member>,
    streams: OwnStreams,
}

/// Whether all processes are ready, and this one's recorders and streams. None if the campaign is over before they begin.
fn all_ready(
    run: &Run,
    whole: &Job<'_>,
    members: Result<Vec<Member>, Invalid>,
) -> Option<Result<Prepared, Invalid>> {
    let together = whole.together;
    let ready = together.all_ready(members.as_ref().err(), &|| run.is_over())?;
    let members = match ready.and(members) {
        Ok(members) => members,
        Err(why) => return Some(Err(why)),
    };
    let own = together.own_cells(whole.cells);
    let streams = together.streams(run, whole.cells, awaited(together.cluster.rank(), &members, &own))?;
    Some(streams.map(|streams| Prepared { members, streams }))
}

/// With what was sent from other machines, in the order of those members that await it.
fn with_sent(mut recorded: Recorded, sent: Vec<Result<SentPackets, Invalid>>) -> Result<Recorded, Invalid> {
    let from_others = recorded.members.iter_mut().filter(|member| member.went.is_none());
    for (member, sent) in from_others.filter(|member| member.packets.is_some()).zip(sent) {
        let shape = member.packets.as_ref().map(|packets| packets.shape);
        member.went = shape.zip(Some(sent?)).map(|(shape, sent)| Went { sent, shape });
        if let Some(outcome) = &mut member.outcome {
            // The silence by which the end was known is no part of it.
            outcome.wall = outcome.wall.min(outcome.chronicle.work.last_work());
        }
    }
    Ok(recorded)
}

/// When recorders begin, as all processes agreed, and when they did.
#[derive(Debug, Clone, Copy)]
struct Begun {
    at: Nanos,
    calendar: Nanos,
    late: Nanos,
}

/// All recorders, ready.
fn prepared(run: &Run, job: &Job<'_>) -> Result<Vec<Member>, Invalid> {
    let mut members = Vec::new();
    for (index, (cell, seed)) in job.cells.iter().enumerate() {
        let onto: Arc<dyn Target> = match cell.onto {
            Onto::Target => job.target.clone(),
            Onto::Nothing => Arc::new(NullTarget::in_place_of(job.target.description())),
        };
        for number in 0..u64::from(cell.count) * cell.rings() {
            let seed = if number == 0 { *seed } else { seed.part(number) };
            let name = name_of(Some(&job.together), index, number);
            let ready = setup(run, &onto, cell, seed, &name)?;
            members.push(member(job, index, ready)?);
        }
    }
    Ok(members)
}

/// A recorder of one instrument that makes its frames itself, ready to begin.
pub(crate) fn ready_recorder(
    run: &Run,
    target: &Arc<dyn Target>,
    cell: &RecordingRun,
    seed: Seed,
    name: &str,
) -> Result<Recorder, Invalid> {
    let Ready { setup, .. } = setup(run, target, cell, seed, name)?;
    Recorder::prepare(setup).map_err(|error| invalid(&error))
}

/// A recorder that is ready.
fn member(job: &Job<'_>, cell: usize, ready: Ready) -> Result<Member, Invalid> {
    let Ready { setup, layouts, expected, packets } = ready;
    let followed =
        Followed { target: job.target.clone(), lanes: layouts, expected, archive: job.archive.cloned() };
    let recorder = Recorder::prepare(setup).map_err(|error| invalid(&error))?;
    Ok(Member { cell, recorder, followed, packets, went: None, outcome: None })
}

/// Why there is no recording.
fn invalid(error: &RecordingError) -> Invalid {
    match error {
        RecordingError::Hung { .. } => Invalid::Hung,
        RecordingError::Lane { .. } | RecordingError::Thread(_) => Invalid::Refused(error.to_string()),
    }
}

/// What came of recorders and readers.
struct Recorded {
    members: Vec<Member>,
    readers: Vec<Report>,
    /// What was kept, read when the recordings were over.
    read_back: Vec<Report>,
    /// A reader hangs.
    hung: bool,
    /// The campaign ended first.
    cut: bool,
    /// What it cost to send packets to other machines.
    sending: Usage,
}

/// Readers may finish what was recorded.
const READ_ON: Nanos = Nanos::from_millis(2000);
/// What is kept is read back in this time, or as much of it as that allows.
const READ_BACK: Nanos = Nanos::from_millis(30_000);

/// Records and reads to the end.
fn recorded(
    run: &Run,
    job: &Job<'_>,
    mut members: Vec<Member>,
    streams: &mut OwnStreams,
    begun: &mut Begun,
    tell: &mut dyn FnMut(SoFar),
) -> Result<Recorded, Invalid> {
    let mut crowd = LiveReaders::new(run);
    for (index, member) in members.iter().enumerate() {
        let readers = job.cells[member.cell].0.readers;
        crowd.follow(index, &member.followed, readers).map_err(Invalid::Refused)?;
    }
    // Each waits for its first frame by itself: who is begun by another one then begins later.
    for member in &mut members {
        let at = begun.at + job.turns[member.cell];
        member.recorder.begin_at(Some(at)).map_err(|error| invalid(&error))?;
    }
    run.clock.sleep_until(begun.at);
    begun.calendar = Calendar::now().time;
    for sends in members.iter_mut().filter_map(Member::sends) {
        sends.begin().map_err(|error| Invalid::Refused(error.to_string()))?;
    }
    streams.begin();
    begun.late = run.clock.now().since(begun.at);
    let cut = watched(run, job, &mut members, tell);
    if cut {
        streams.cease();
    }
    begun.late = late(begun, job, &members);
    for member in &mut members {
        let Some(PacketsIn { shape, sends: Some(sends), .. }) = &mut member.packets else { continue };
        member.went = Some(Went { sent: sends.went(run.hang_after)?, shape: *shape });
    }
    if job.cells.iter().any(|(cell, _)| !cell.readers.none()) {
        tell(SoFar { step: CampaignStep::ReadingOn, ..SoFar::default() });
    }
    let (readers, hung) = crowd.gather(READ_ON);
    Ok(Recorded { members, readers, read_back: Vec::new(), hung, cut, sending: Usage::default() })
}

/// How long after it was due the first frame was taken in, of those that are made here; of packets, when the first could leave.
fn late(begun: &Begun, job: &Job<'_>, members: &[Member]) -> Nanos {
    let made_here = members.iter().filter(|member| member.packets.is_none());
    let late = made_here.filter_map(|member| {
        let first = member.outcome.as_ref()?.begun;
        Some(first.since(begun.at + job.turns[member.cell]))
    });
    late.max().unwrap_or(begun.late)
}

/// Waits for all recorders; whether the campaign ended first.
fn watched(run: &Run, job: &Job<'_>, members: &mut [Member], tell: &mut dyn FnMut(SoFar)) -> bool {
    let begun = run.clock.now();
    let mut cut = false;
    while let Some(open) = members.iter_mut().find(|member| member.outcome.is_none()) {
        open.outcome = open.recorder.wait(GLANCE);
        let over = run.is_over() && members.iter().any(|member| member.outcome.is_none());
        cut |= over;
        let elapsed = run.clock.now().since(begun);
        let mut work = Series::new(Nanos(0));
        for member in members.iter() {
            work.merge(member.recorder.ring().chronicle().work);
        }
        // Recorders that work at the same time end together: what one leaves the others would take.
        if over || is_limit(job) && job.pass.may_end(elapsed, &work) {
            for member in members.iter_mut() {
                member.recorder.stop();
                member.sends().iter().for_each(|sends| sends.cease());
            }
        }
        let (bytes, operations) =
            work.bins().iter().fold((0, 0), |sum, bin| (sum.0 + bin.bytes, sum.1 + bin.operations));
        let (buffer, frames_lost) = buffers(members, run.clock.now());
        tell(SoFar { bytes, operations, frames_lost, buffer: Some(buffer), elapsed, ..SoFar::default() });
    }
    cut
}

/// How full the memory of all recorders together is, and how many frames they lost.
fn buffers(members: &[Member], now: Nanos) -> (BufferLevel, u64) {
    let mut level = BufferLevel::default();
    let mut lost = 0;
    for member in members {
        let seen = member.recorder.ring().glance(now);
        level.frames += seen.in_use as u64;
        level.most += seen.books.high as u64;
        level.room += seen.books.slots as u64;
        lost += seen.books.lost();
    }
    (level, lost)
}

/// All frames come as fast as they are taken.
fn is_limit(job: &Job<'_>) -> bool {
    job.cells.iter().all(|(cell, _)| cell.goal == Goal::Limit)
}

/// When a pass at full speed may end before its time is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pass {
    /// Never: it is the first one, and a cache is only found by filling it.
    #[default]
    Whole,
    /// When its rate is known well enough, but not before it took so much: more than a cache that was found before.
    Precise {
        /// Bytes.
        behind: Bytes,
    },
}

/// A later pass goes on to so many times what went into the cache in an earlier one: it may drain meanwhile.
const BEHIND: f64 = 1.5;

/// A pass at full speed lasts at least so long.
const PASS_LEAST: Nanos = Nanos::from_millis(15_000);

impl Pass {
    /// A pass after others that found a cache of this size; zero if they found none.
    pub fn after(cache: Bytes) -> Self {
        #[expect(clippy::cast_sign_loss, reason = "no volume is below zero")]
        let behind = Bytes((BEHIND * cache.0 as f64) as u64);
        Pass::Precise { behind }
    }

    /// Whether it may end after this time with this work.
    pub fn may_end(self, elapsed: Nanos, work: &Series) -> bool {
        let Pass::Precise { behind } = self else { return false };
        let taken: u64 = work.bins().iter().map(|bin| bin.bytes).sum();
        elapsed >= PASS_LEAST && taken > behind.0 && is_precise(work)
    }
}

/// Memory of all rings.
fn memory(job: &Job<'_>) -> Bytes {
    let onto = descriptions_of(job.target);
    let all = job.cells.iter().map(|(cell, _)| u64::from(cell.count) * Shape::over(cell, &onto).memory().0);
    Bytes(all.sum())
}

/// Whether what is kept of a recording is read when it is over.
fn is_read_back(job: &Job<'_>, cell: &RecordingRun) -> bool {
    cell.goal == Goal::Pace && cell.onto == Onto::Target && job.target.description().keeps()
}

/// Frames that are there to be read back: as many as came, or as are kept.
fn kept(job: &Job<'_>, recorded: &Recorded) -> u64 {
    recorded.members.iter().map(|member| kept_of(job, member)).sum()
}

/// Those of one recording.
fn kept_of(job: &Job<'_>, member: &Member) -> u64 {
    let (cell, _) = &job.cells[member.cell];
    let stored = member.outcome.as_ref().map_or(0, Outcome::stored);
    let room =
        if cell.fill.is_some() { u64::MAX } else { cell.keep.0 / cell.recorded().frame_size().0.max(1) };
    if is_read_back(job, cell) { stored.min(room) } else { 0 }
}

/// Reads what is kept of recordings at the instrument's pace, and checks it. The recording is over: what this costs is none
/// of its figures.
fn read_back(run: &Run, job: &Job<'_>, recorded: Recorded) -> Result<Recorded, Invalid> {
    if recorded.hung || recorded.cut {
        return Ok(recorded);
    }
    let mut crowd = LiveReaders::new(run);
    for (index, member) in recorded.members.iter().enumerate() {
        let (cell, _) = &job.cells[member.cell];
        if is_read_back(job, cell) {
            let reader = Readers { count: 1, ..Readers::default() };
            crowd.follow(index, &member.followed, reader).map_err(Invalid::Refused)?;
        }
    }
    let (mut read_back, hung) = crowd.gather(READ_BACK);
    for (totals, _) in read_back.iter_mut().filter_map(|report| report.reader.as_mut()) {
        // What was removed before it began was not missed; what is gone without that has failed.
        *totals = ReaderTotals { after: true, missed: 0, ..*totals };
    }
    Ok(Recorded { read_back, hung, ..recorded })
}

#[cfg(test)]
mod tests;
