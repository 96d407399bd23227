//! The ingest phase: the shipped recorder with a simulated instrument in front of it. It measures the setup
//! that will run: recorders that work at the same time, and the readers of their recordings.

mod follow;
mod judge;
mod one_dataset;
mod opened_files;
mod over_network;
mod packets;
mod pass;
mod read;
mod sample;
mod setup;
mod streams;
mod together;

use std::{mem, sync::Arc};

use nilometer_acquisition::{Outcome, Recorder, RecordingError};
use nilometer_cluster::LoadReport;
use nilometer_model::{
    Bytes, Goal, Invalid, Nanos, ReaderTotals, Readers, Sample, Seed, SentPackets, Series,
};
use nilometer_plan::{BackgroundLoad, Onto, RecordingRun};
use nilometer_storage::{
    Calendar, Target,
    process::{self, Usage},
    target::NullTarget,
};

use crate::{
    background::{Loads, LoadsBeside},
    settle::settle,
    supervise::{BufferLevel, CampaignStep, GLANCE, SoFar},
    surroundings::Surroundings,
    task::{Run, traffic_since},
};
use follow::{Followed, LiveReaders, Report};
use one_dataset::{OneDataset, completed, datasets_of, put_completed};
use over_network::{Sends, Went};
pub use pass::Pass;
pub(crate) use read::RecordedFiles;
pub use sample::sample_of;
pub(crate) use sample::sample_of_all;
use sample::samples;
pub(crate) use setup::Shape;
use setup::{PacketsIn, Ready, descriptions_of, setup};
use streams::{OwnStreams, awaited};
pub(crate) use together::RecordingRanks;

/// The stem of a recording's file names: its cell among those of a job, and its number. If several processes
/// record, the stem also has the process and the repeat: another machine may still have a removed file in its
/// cache.
fn name_of(together: Option<&RecordingRanks<'_>>, cell: usize, number: u64) -> String {
    let several = together.filter(|together| together.cluster.size() > 1);
    let of_repeat = several.map(|together| format!("{}.{}.", together.attempt, together.cluster.rank()));
    format!("n_{}{cell}.{number}", of_repeat.unwrap_or_default())
}

/// The same stem in all processes, for a recording into one file. A cell has a seed of its own.
fn name_of_all(together: &RecordingRanks<'_>, seed: Seed, number: u64) -> String {
    format!("n_{}.{:016x}.{number}", together.attempt, seed.0)
}

/// The recordings that run at once on a target.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    /// The target's number in the plan.
    pub(crate) number: usize,
    pub(crate) target: &'a Arc<dyn Target>,
    /// The target that copies go to.
    pub(crate) archive: Option<&'a Arc<dyn Target>>,
    /// The recordings; each gives a sample.
    pub(crate) cells: &'a [(RecordingRun, Seed)],
    /// When a pass may end, if frames come as fast as they are taken.
    pub(crate) pass: Pass,
    /// The processes that record the job together.
    pub(crate) together: RecordingRanks<'a>,
}

impl Job<'_> {
    /// The load beside the recordings, over all processes; `None` without one.
    fn load(&self) -> Option<&BackgroundLoad> {
        self.cells.iter().find_map(|(cell, _)| cell.background.as_deref())
    }

    /// The files of a cell's recording, if the cell reads them afterwards.
    pub(crate) fn recorded_files(&self, index: usize) -> Option<RecordedFiles<'_>> {
        let (cell, seed) = &self.cells[index];
        let way = cell.read?;
        let Job { number, target, together, .. } = *self;
        Some(RecordedFiles { number, target, index, cell, seed: *seed, way, together })
    }
}

/// A recorder of the job.
#[derive(Debug)]
struct Member {
    /// Index into the job's cells.
    cell: usize,
    recorder: Recorder,
    followed: Followed,
    /// The packets that the recorder awaits, if it records packets.
    packets: Option<PacketsIn>,
    went: Option<Went>,
    outcome: Option<Outcome>,
}

impl Member {
    /// Returns the sender of its packets, if this process sends them.
    fn sends(&mut self) -> Option<&mut Sends> {
        self.packets.as_mut()?.sends.as_mut()
    }
}

/// Records the job's instruments, together with other processes. At rank 0 returns a sample for each cell,
/// which records any fault. Returns `None` if the campaign ended before the recordings did, and at other ranks.
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
    let samples = if own.is_empty() {
        together.assist(run, job, loads);
        None
    } else {
        let part = Job { cells: &own, ..*job };
        let mut recorded = record_part(run, surroundings, &part, job, loads, tell);
        let files = mem::take(&mut recorded.files);
        let samples = together.united(job.cells, &parts, recorded);
        completed(run, job, samples, files)
    };
    surroundings.pass_together(together.cluster, &run.clock);
    samples
}

/// The part of a job that this process recorded.
#[derive(Debug, Default)]
struct PartRecorded {
    /// A sample for each cell; `None` if the campaign ended first.
    samples: Option<Vec<Sample>>,
    /// The time from the agreed start until the last of its recorders began.
    began: Nanos,
    /// This process's share of the load.
    load: LoadReport,
    /// The files that it shares with other processes and that lack their index.
    files: Vec<OneDataset>,
}

/// Records the part of the job that belongs to this process.
fn record_part(
    run: &Run,
    surroundings: &mut Surroundings,
    job: &Job<'_>,
    whole: &Job<'_>,
    loads: &mut Loads,
    tell: &mut dyn FnMut(SoFar),
) -> PartRecorded {
    let together = job.together;
    let mut beside = LoadsBeside::renewed(loads, together.cluster, job.load(), run);
    let step = |step| SoFar { step, ..SoFar::default() };
    tell(step(CampaignStep::Settling));
    let settling = settle(run);
    tell(step(CampaignStep::Preparing(memory(job))));
    let load = process::load_average();
    let traffic = job.target.traffic();
    let members = prepared(run, job);
    let Some(ready) = all_ready(run, whole, members) else { return PartRecorded::default() };
    // A load takes some time to begin, and frames are due from the agreed start on.
    beside.begin();
    let at = ready.is_ok().then(|| together.agreed_start(&run.clock));
    let (moment, before) = surroundings.begin(&run.clock);
    beside.count();
    let mut begun = Begun { at: at.unwrap_or_default(), calendar: Calendar::now().time, late: Nanos(0) };
    let recorded = ready.and_then(|Prepared { members, mut streams }| {
        let recorded = recorded(run, job, members, &mut streams, &mut begun, tell);
        let (sent, sending) = together.sent(run, streams);
        with_sent(Recorded { sending, ..recorded? }, sent)
    });
    let spent = surroundings.end(&run.clock, &moment);
    let device = traffic_since(traffic, job.target.as_ref());
    beside.measured(job.number);
    let share = beside.ended([job.number]).pop().unwrap_or_default();
    let files = recorded.as_ref().map_or_else(|_| Vec::new(), |recorded| datasets_of(job, recorded));
    let (files, own): (Vec<_>, Vec<_>) = files.into_iter().partition(OneDataset::is_of_several);
    let own: Vec<_> = own.into_iter().map(|file| file.complete(run, job.target)).collect();
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
        sample.device = device;
        sample.invalid = sample.invalid.take().map(|why| why.throttled(spent.throttled));
    }
    put_completed(samples.as_deref_mut(), own);
    PartRecorded { samples, began: begun.late, load: share, files }
}

/// The recorders and the streams, ready to begin.
struct Prepared {
    members: Vec<Member>,
    streams: OwnStreams,
}

/// Agrees with the other processes that all are ready, and returns this one's recorders and streams. Returns
/// `None` if the campaign is over before they begin.
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

/// Adds the packet counts that other machines sent, in the order of the members that await packets from there.
fn with_sent(mut recorded: Recorded, sent: Vec<Result<SentPackets, Invalid>>) -> Result<Recorded, Invalid> {
    let from_others = recorded.members.iter_mut().filter(|member| member.went.is_none());
    for (member, sent) in from_others.filter(|member| member.packets.is_some()).zip(sent) {
        let shape = member.packets.as_ref().map(|packets| packets.shape);
        member.went = shape.zip(Some(sent?)).map(|(shape, sent)| Went { sent, shape });
        if let Some(outcome) = &mut member.outcome {
            // The recorder noticed the end by a silence, which is not part of the recording.
            outcome.wall = outcome.wall.min(outcome.chronicle.work.last_work());
        }
    }
    Ok(recorded)
}

/// The time at which recorders begin, as all processes agreed, and their lateness.
#[derive(Debug, Clone, Copy)]
struct Begun {
    at: Nanos,
    calendar: Nanos,
    late: Nanos,
}

/// Makes all recorders ready.
fn prepared(run: &Run, job: &Job<'_>) -> Result<Vec<Member>, Invalid> {
    let mut members = Vec::new();
    for (index, (cell, seed)) in job.cells.iter().enumerate() {
        let onto: Arc<dyn Target> = match cell.onto {
            Onto::Target => job.target.clone(),
            Onto::Nothing => Arc::new(NullTarget::in_place_of(job.target.description())),
        };
        for number in 0..u64::from(cell.count) * cell.rings() {
            let name = match cell.dataset_turn() {
                Some(_) => name_of_all(&job.together, *seed, number),
                None => name_of(Some(&job.together), index, number),
            };
            let seed = if number == 0 { *seed } else { seed.part(number) };
            let ready = setup(run, &onto, cell, seed, &name)?;
            members.push(member(job, index, ready)?);
        }
    }
    Ok(members)
}

/// Makes a recorder of one instrument that generates its own frames, ready to begin.
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

/// Makes a recorder from its setup.
fn member(job: &Job<'_>, cell: usize, ready: Ready) -> Result<Member, Invalid> {
    let Ready { setup, layouts, expected, packets } = ready;
    let followed =
        Followed { target: job.target.clone(), lanes: layouts, expected, archive: job.archive.cloned() };
    let recorder = Recorder::prepare(setup).map_err(|error| invalid(&error))?;
    Ok(Member { cell, recorder, followed, packets, went: None, outcome: None })
}

/// The reason why there is no recording.
fn invalid(error: &RecordingError) -> Invalid {
    match error {
        RecordingError::Hung { .. } => Invalid::Hung,
        RecordingError::Lane { .. } | RecordingError::Thread(_) => Invalid::Refused(error.to_string()),
    }
}

/// The results of recorders and readers.
struct Recorded {
    members: Vec<Member>,
    readers: Vec<Report>,
    /// The reports of reading the kept frames back, after the recordings.
    read_back: Vec<Report>,
    /// True if a reader hangs.
    hung: bool,
    /// True if the campaign ended first.
    cut: bool,
    /// The resources that sending packets to other machines took.
    sending: Usage,
}

/// Readers have this time to finish after the recording.
const READ_ON: Nanos = Nanos::from_millis(2000);
/// Reading back takes at most this time. It stops there, even if frames are left.
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
    // Each recorder waits for its first frame by itself: one that another thread starts begins later.
    for member in &mut members {
        member.recorder.begin_at(Some(begun.at)).map_err(|error| invalid(&error))?;
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

/// The lateness of the first frame made in this process, the longest of all recorders. For packets it is the
/// lateness of the first that could leave.
fn late(begun: &Begun, job: &Job<'_>, members: &[Member]) -> Nanos {
    let made_here = members.iter().filter(|member| member.packets.is_none());
    let late = made_here.filter_map(|member| {
        let first = member.outcome.as_ref()?.begun;
        Some(first.since(begun.at + first_due(&job.cells[member.cell].0)))
    });
    late.max().unwrap_or(begun.late)
}

/// The time from the start of the recordings until the first frame of this one is due.
fn first_due(cell: &RecordingRun) -> Nanos {
    let turn = cell.turn.filter(|_| cell.goal != Goal::Limit);
    turn.map_or(Nanos(0), |turn| turn.first_due())
}

/// Waits for all recorders. Returns true if the campaign ended first.
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
        // Recorders that work at the same time end together: if one left early the others would take its share.
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

/// Returns how full the memory of all recorders together is, and how many frames they lost.
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

/// The memory of all rings.
fn memory(job: &Job<'_>) -> Bytes {
    let onto = descriptions_of(job.target);
    let all = job.cells.iter().map(|(cell, _)| u64::from(cell.count) * Shape::over(cell, &onto).memory().0);
    Bytes(all.sum())
}

/// True if all frames come as fast as they are taken.
fn is_limit(job: &Job<'_>) -> bool {
    job.cells.iter().all(|(cell, _)| cell.goal == Goal::Limit)
}

/// Returns true if the kept frames of a recording are read back when it is over.
fn is_read_back(job: &Job<'_>, cell: &RecordingRun) -> bool {
    cell.goal == Goal::Pace && cell.onto == Onto::Target && job.target.description().keeps()
}

/// The number of frames to read back: those stored, or at most those kept.
fn kept(job: &Job<'_>, recorded: &Recorded) -> u64 {
    recorded.members.iter().map(|member| kept_of(job, member)).sum()
}

/// The number of frames to read back of one recording.
fn kept_of(job: &Job<'_>, member: &Member) -> u64 {
    let (cell, _) = &job.cells[member.cell];
    let stored = member.outcome.as_ref().map_or(0, Outcome::stored);
    let room =
        if cell.fill.is_some() { u64::MAX } else { cell.keep.0 / cell.recorded().frame_size().0.max(1) };
    if is_read_back(job, cell) { stored.min(room) } else { 0 }
}

/// Reads the kept frames back at the instrument's pace, and checks them. The recording is over, so the cost is
/// not part of its figures.
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
    for report in &mut read_back {
        report.after = true;
        if let Some((totals, _)) = report.reader.as_mut() {
            // Frames that were removed before the reader began do not count as missed; other missing frames count
            // as failed.
            *totals = ReaderTotals { after: true, missed: 0, ..*totals };
        }
    }
    Ok(Recorded { read_back, hung, ..recorded })
}

#[cfg(test)]
mod tests;
