//! The verdict: the decision if this target carries this instrument, by which margin and how certainly; alone,
//! beside readers, and beside other recordings.

mod beside;
mod decision;
mod hidden;
mod passes;
mod room;
mod words;

use nilometer_model::{
    ByteRate, Bytes, FramesBeside, Goal, Histogram, Ingest, Invalid, Nanos, PacketTotals, ReaderTotals,
    Sample, StorageRoom,
    sustained::{Margin, RateStep, SustainedRate},
};
use nilometer_plan::{
    Measured, Onto, RecordedInstrument, RecordingRun, RecordingSplit, Results, Route, TargetEntry,
    search::{self, Advice, BufferLimit, Found, RateLimit, Trial as SearchTrial},
};

pub use beside::Beside;
use beside::beside;
pub use decision::Decision;
pub use hidden::Hidden;
use hidden::Way;
use passes::{cache_step, long_run};
pub(crate) use words::lost_frames;
pub use words::rate_words;

use crate::{AcrossMachines, Quantity, recorded_stages::stages_of};

/// The answer for one instrument on one target.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Index into [`Results::targets`].
    pub target: usize,
    /// The instrument.
    pub instrument: RecordedInstrument,
    /// The stages of the plan with its recordings, unless they have its name.
    pub stages: Vec<String>,
    /// The rate of all instruments together.
    pub rate: ByteRate,
    /// The long-term rate of the target, from the valid passes at full speed. If the recorder waited long for a
    /// processor in each of them, it is a lower bound.
    pub limit: Option<SustainedRate>,
    /// True if there were passes at full speed, even if no rate follows from them.
    pub limit_tried: bool,
    /// The most that a pass at full speed wrote, and this machine's page cache that may hold most of it. `None`
    /// if files are synced, or writes bypass the cache.
    pub limit_cached: Option<(Bytes, Bytes)>,
    /// The step at which a cache filled up; of several recordings the one with the largest volume.
    pub cache: Option<RateStep>,
    /// The finding of the recording at the instrument's rate, without readers.
    pub finding: Finding,
    /// The route of frames to the recorder.
    pub route: Route,
    /// The storage format at the instrument's rate, and at full speed if it differs; `None` if the record does
    /// not contain it.
    pub stored: Option<String>,
    /// The distribution over several processes, and the rate of each machine; `None` for a single process.
    pub dealt_out: Option<String>,
    /// True if the target is memory of this machine: nothing there is durable, even after a sync.
    pub volatile: bool,
    /// The room that the target had for the instrument's recordings at the start of the campaign, beyond the
    /// plan's reserve. `None` if the record does not have the free space, or the target never fills up.
    pub room: Option<StorageRoom>,
    /// True if it was recorded alone; if not, the finding covers all recordings.
    pub by_itself: bool,
    /// Findings with readers, the fewest first.
    pub read: Vec<Beside>,
    /// Findings while others were recorded.
    pub together: Vec<Together>,
    /// Findings in conditions that the user's commands created.
    pub under: Vec<Under>,
    /// The highest rate without loss, if there was a search for it.
    pub highest: Option<RateLimit>,
    /// The lowest rate above it that failed because the simulated instrument could not send that fast.
    pub ceiling: Option<ByteRate>,
    /// The smallest buffer without loss, if there was a search for it, and the bytes of a slot.
    pub smallest: Option<(BufferLimit, Bytes)>,
}

/// The finding of a recording at the instrument's rate.
#[derive(Debug, Clone, PartialEq)]
pub enum Finding {
    /// No frame was lost.
    Carried(TrialVerdict),
    /// Frames were lost.
    Lost(TrialVerdict),
    /// Nothing follows from the recording, for this reason.
    Undecided(String),
}

/// A recording at the instrument's rate.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialVerdict {
    /// Time during which frames arrived.
    pub duration: Nanos,
    /// Frames that were due.
    pub due: u64,
    /// Frames that were lost.
    pub lost: u64,
    /// Frames acknowledged later than the allowance.
    pub late: u64,
    /// The allowed delay of a frame, and the shortest stall.
    pub allowance: Nanos,
    /// Number and total length of stalls: times above the allowance in which frames waited and none was
    /// acknowledged.
    pub stalls: (u64, Nanos),
    /// The longest time in which frames waited and none was acknowledged.
    pub longest_stall: Nanos,
    /// The longest time from due until a frame could be read.
    pub latest: Nanos,
    /// The most memory in use at once.
    pub buffer_used: Bytes,
    /// The memory available.
    pub buffer: Bytes,
    /// Bytes of a frame, of all recorders together.
    pub frame_size: Bytes,
    /// True if the buffer was still filling when the last frame arrived.
    pub filling: bool,
    /// True if the buffer was filling at all, however slowly.
    pub grows: bool,
    /// Data that memory on the way to the storage may hide.
    pub hidden: Hidden,
    /// Processors that the recorder kept busy, without the simulated instrument.
    pub cores: f64,
    /// Processors that the file system's client kept busy: kernel threads, and its daemon if it has one.
    pub client_cores: f64,
    /// Frames read back correctly after the recording.
    pub read_back: Option<u64>,
    /// Time from due until durable, for 99 % of frames; `None` if nothing is synced.
    pub durable: Option<Nanos>,
    /// The factor by which written frames were smaller than received ones.
    pub compressed: f64,
    /// Packet counts, if they arrived over loopback: frames are then blocks of packets.
    pub packets: Option<PacketTotals>,
}

/// A recording made together with others.
#[derive(Debug, Clone, PartialEq)]
pub struct Together {
    /// All recordings, including this one.
    pub company: String,
    /// The finding at the instrument's rate.
    pub finding: Finding,
}

/// A recording with the target in a condition, or under a load.
#[derive(Debug, Clone, PartialEq)]
pub struct Under {
    /// The user's name of the condition; empty for none.
    pub condition: String,
    /// The load, in words; empty for none.
    pub load: String,
    /// The finding at the instrument's rate.
    pub finding: Finding,
    /// The rate at full speed.
    pub limit: Option<SustainedRate>,
    /// The fate of the frames of an instrument that was the load, over all valid recordings at the instrument's
    /// rate. `None` if the load was not an instrument.
    pub beside: Option<FramesBeside>,
}

impl Under {
    /// `in the condition one disk lost`; for a load alone, its words.
    pub(super) fn place(&self) -> String {
        match (self.condition.is_empty(), self.load.is_empty()) {
            (true, _) => self.load.clone(),
            (false, true) => format!("in the condition {}", self.condition),
            (false, false) => format!("in the condition {}, {}", self.condition, self.load),
        }
    }

    /// The name for use on its own: `one disk lost`.
    pub(super) fn name(&self) -> String {
        let both = [self.condition.as_str(), self.load.as_str()];
        both.into_iter().filter(|name| !name.is_empty()).collect::<Vec<_>>().join(", ")
    }
}

/// A recording with its sample.
type Made<'a> = (&'a Sample, &'a Ingest);

/// A verdict for each instrument on each target that was recorded, in the order of instruments, then targets.
pub fn verdicts(results: &Results) -> Vec<Verdict> {
    recorded(results).into_iter().filter_map(|of| verdict(results, &of)).collect()
}

/// The recordings of an instrument on a target.
struct Recorded<'a> {
    target: usize,
    instrument: RecordedInstrument,
    /// The path of frames to the storage at the instrument's rate.
    way: Way,
    /// The samples in the order of cells and repeats.
    samples: Vec<&'a Measured>,
}

impl<'a> Recorded<'a> {
    fn of(&self, goal: Goal) -> impl Iterator<Item = Made<'a>> + '_ {
        let made = self
            .samples
            .iter()
            .filter_map(|measured| Some((&measured.sample, measured.sample.ingest.as_ref()?)));
        made.filter(move |(_, ingest)| ingest.goal == goal)
    }

    /// The finding of the worst of several recordings. Data read back wrong count first, then losses, then a
    /// buffer that was still filling, then the longest stall. Recordings that are INVALID for another reason
    /// count last.
    fn worst(&self, made: Vec<Made<'_>>) -> Finding {
        let badness = |(sample, ingest): &Made<'_>| {
            let wrong = sample.invalid == Some(Invalid::Wrong);
            (wrong, sample.invalid.is_none(), ingest.losses(), ingest.is_filling(), ingest.longest_stall)
        };
        let (sample, ingest) = made.into_iter().max_by_key(badness).expect("at least one is given");
        finding(sample, ingest, self.way)
    }
}

/// Every target with every instrument recorded there.
fn recorded(results: &Results) -> Vec<Recorded<'_>> {
    let mut samples: Vec<&Measured> =
        results.samples.iter().filter(|measured| measured.sample.ingest.is_some()).collect();
    samples.sort_by_key(|measured| (measured.key.cell, measured.key.target, measured.key.repeat));
    let mut all: Vec<Recorded<'_>> = Vec::new();
    for measured in samples {
        let run = results.recording(measured.key).filter(|run| run.onto == Onto::Target);
        let Some(instrument) = run.map(RecordingRun::recorded_instrument) else { continue };
        let target = measured.key.target;
        match all.iter_mut().find(|of| of.target == target && of.instrument == instrument) {
            Some(known) => known.samples.push(measured),
            None => {
                all.push(Recorded { target, instrument, way: Way::default(), samples: vec![measured] });
            }
        }
    }
    for recorded in &mut all {
        recorded.way = Way::of(results, recorded);
    }
    all
}

fn verdict(results: &Results, recorded: &Recorded<'_>) -> Option<Verdict> {
    let by_itself = |(_, ingest): &Made<'_>| is_usual(ingest) && readers(ingest).is_empty();
    let (_, ingest) = recorded.of(Goal::Pace).next()?;
    let alone: Vec<Made<'_>> = recorded.of(Goal::Pace).filter(by_itself).collect();
    // If it was only recorded with readers, those passes count.
    let counts = |made: &Made<'_>| if alone.is_empty() { is_usual(made.1) } else { by_itself(made) };
    let tried: Vec<&Sample> = recorded.of(Goal::Limit).filter(counts).map(|(sample, _)| sample).collect();
    let limits = Sample::passes_with_a_rate(&tried);
    let steps = limits.iter().filter_map(|sample| cache_step(sample));
    let (highest, smallest) = searched(results, recorded);
    let ceiling = highest.as_ref().and_then(|highest| ceiling(recorded, highest));
    Some(Verdict {
        target: recorded.target,
        instrument: recorded.instrument.clone(),
        stages: stages_of(results, &recorded.samples).into_iter().map(str::to_owned).collect(),
        rate: ByteRate::of(ingest.frame_size.0, ingest.period),
        limit: Sample::long_run(&limits),
        limit_tried: !tried.is_empty(),
        limit_cached: recorded.way.cached(limits.iter().filter_map(|sample| sample.ingest.as_ref())),
        cache: steps.max_by_key(|step| step.volume),
        route: paced_route(results, recorded),
        stored: stored(results, recorded),
        dealt_out: dealt_out(results, recorded, &tried),
        volatile: results.targets.get(recorded.target).is_some_and(TargetEntry::is_volatile),
        room: room::room(results, recorded.target, alone.first().map_or(ingest, |(_, ingest)| ingest)),
        by_itself: !alone.is_empty(),
        finding: recorded.worst(if alone.is_empty() {
            recorded.of(Goal::Pace).collect()
        } else {
            alone.clone()
        }),
        read: beside(recorded),
        together: together(recorded),
        under: under(recorded),
        highest,
        ceiling,
        smallest,
    })
}

/// The recordings' cells, in their order.
fn runs<'a>(results: &'a Results, recorded: &Recorded<'a>) -> impl Iterator<Item = &'a RecordingRun> {
    let samples = recorded.samples.clone();
    samples.into_iter().filter_map(|measured| results.recording(measured.key))
}

/// The route of frames at the instrument's rate, which a verdict is about.
fn paced_route(results: &Results, recorded: &Recorded<'_>) -> Route {
    let of_goal = |goal| runs(results, recorded).find(|run| run.goal == goal);
    of_goal(Goal::Pace).map(|run| run.route).unwrap_or_default()
}

/// The layout of frames, from the record's environment.
fn stored(results: &Results, recorded: &Recorded<'_>) -> Option<String> {
    let paced = layout(results, recorded, Goal::Pace)?;
    match layout(results, recorded, Goal::Limit).filter(|limit| *limit != paced) {
        Some(limit) => Some(format!("{paced}; at full speed as {limit}")),
        None => Some(paced.to_owned()),
    }
}

fn layout<'a>(results: &'a Results, recorded: &Recorded<'a>, goal: Goal) -> Option<&'a str> {
    let target = &results.targets.get(recorded.target)?.path;
    let key = runs(results, recorded).find(|run| run.goal == goal)?.layout_key(target);
    results.environment.iter().find(|(name, _)| *name == key).map(|(_, layout)| layout.as_str())
}

/// The processes that recorded it, if there are several: the rate of each machine at full speed, or else at the
/// instrument's rate.
fn dealt_out(results: &Results, recorded: &Recorded<'_>, at_full_speed: &[&Sample]) -> Option<String> {
    let paced = recorded.of(Goal::Pace).map(|(sample, _)| sample);
    let fast = AcrossMachines::of_samples(at_full_speed.iter().copied(), Quantity::Bytes);
    let across = fast.or_else(|| AcrossMachines::of_samples(paced, Quantity::Bytes))?;
    let run = runs(results, recorded).next()?;
    let what = match run.split(across.ranks as u32) {
        RecordingSplit::Whole => return None,
        RecordingSplit::Instruments => "instruments",
        RecordingSplit::Streams => "streams",
        RecordingSplit::Frames => "frames in turn",
    };
    Some(format!("{what} are dealt out to {}", across.words(Quantity::Bytes)))
}

/// Returns true if nothing else was recorded at the same time, and the target was in its usual state.
fn is_usual(ingest: &Ingest) -> bool {
    ingest.company.is_empty() && ingest.is_undisturbed()
}

/// The findings in each condition, and beside each load.
fn under(recorded: &Recorded<'_>) -> Vec<Under> {
    let mut states: Vec<&Ingest> =
        recorded.of(Goal::Pace).map(|(_, ingest)| ingest).filter(|ingest| !ingest.is_undisturbed()).collect();
    states.dedup_by(|one, other| is_same_state(one, other));
    states.into_iter().map(|state| under_state(recorded, state)).collect()
}

fn is_same_state(one: &Ingest, other: &Ingest) -> bool {
    (&one.condition, &one.load) == (&other.condition, &other.load)
}

fn under_state(recorded: &Recorded<'_>, state: &Ingest) -> Under {
    let of = |goal: Goal| recorded.of(goal).filter(|(_, ingest)| is_same_state(ingest, state));
    let limits = of(Goal::Limit).filter(|(sample, _)| sample.invalid.is_none());
    Under {
        condition: state.condition.clone(),
        load: state.load.clone(),
        finding: recorded.worst(of(Goal::Pace).collect()),
        limit: long_run(limits.map(|(sample, _)| sample)),
        beside: of(Goal::Pace)
            .filter(|(sample, _)| sample.invalid.is_none())
            .filter_map(|(sample, _)| sample.background?.frames)
            .reduce(FramesBeside::and),
    }
}

/// The readers during the recording.
fn readers(ingest: &Ingest) -> Vec<&ReaderTotals> {
    ingest.readers.iter().filter(|reader| !reader.after).collect()
}

fn finding(sample: &Sample, ingest: &Ingest, way: Way) -> Finding {
    if let Some(why) = &sample.invalid {
        let over = if ingest.packets.is_some() { "in packets, " } else { "" };
        return Finding::Undecided(format!("{over}{why}"));
    }
    let slots = |slots: u64| Bytes(slots * ingest.frame_size.0 * u64::from(ingest.count));
    let after = ingest.readers.iter().filter(|reader| reader.after);
    let trial = TrialVerdict {
        duration: Nanos(ingest.due * ingest.period.0),
        due: ingest.due,
        lost: ingest.lost,
        late: ingest.late,
        allowance: ingest.allowance,
        stalls: (ingest.stall_count, ingest.stalled),
        longest_stall: ingest.longest_stall,
        latest: ingest.latest(),
        buffer_used: slots(ingest.slots_high),
        buffer: slots(ingest.slots),
        frame_size: slots(1),
        filling: ingest.is_filling(),
        grows: ingest.is_growing(),
        hidden: way.hidden(ingest),
        cores: (sample.user + sample.system).seconds() / sample.wall.seconds().max(1e-9),
        client_cores: sample.client.seconds() / sample.wall.seconds().max(1e-9),
        read_back: after.map(|reader| reader.frames).reduce(|all, frames| all + frames),
        durable: quantile(&ingest.durable, 0.99),
        compressed: (ingest.stored * ingest.frame_size.0) as f64 / ingest.written.0.max(1) as f64,
        packets: ingest.packets,
    };
    if ingest.losses() > 0 { Finding::Lost(trial) } else { Finding::Carried(trial) }
}

fn quantile(histogram: &Histogram, fraction: f64) -> Option<Nanos> {
    (histogram.count() > 0).then(|| Nanos(histogram.quantile(fraction)))
}

/// The findings by company.
fn together(recorded: &Recorded<'_>) -> Vec<Together> {
    let mut companies: Vec<&str> = recorded
        .of(Goal::Pace)
        .map(|(_, ingest)| ingest.company.as_str())
        .filter(|company| !company.is_empty())
        .collect();
    companies.dedup();
    let one = |company: &str| Together {
        company: company.into(),
        finding: recorded
            .worst(recorded.of(Goal::Pace).filter(|(_, ingest)| ingest.company == company).collect()),
    };
    companies.into_iter().map(one).collect()
}

/// The results of searches, as far as they ended: the first of each kind, if an instrument has several.
fn searched(results: &Results, recorded: &Recorded<'_>) -> (Option<RateLimit>, Option<(BufferLimit, Bytes)>) {
    let highest = match found(results, recorded, Goal::Search) {
        Some((Found::Rate(limit), _)) => Some(limit),
        _ => None,
    };
    match found(results, recorded, Goal::Buffer) {
        Some((Found::Buffer(limit), slot)) => (highest, Some((limit, slot))),
        _ => (highest, None),
    }
}

/// The result of the first search with this goal, if it ended, and the size of its frames.
fn found(results: &Results, recorded: &Recorded<'_>, goal: Goal) -> Option<(Found, Bytes)> {
    let first = recorded
        .samples
        .iter()
        .find(|measured| measured.sample.ingest.as_ref().is_some_and(|ingest| ingest.goal == goal))?;
    let cell = results.recording(first.key)?;
    let same = recorded.samples.iter().filter(|measured| measured.key.cell == first.key.cell);
    let trials: Vec<_> = same.filter_map(|measured| SearchTrial::of(&measured.sample)).collect();
    match search::advise(cell, cell.rate(), &trials) {
        Advice::Found(found) => Some((found, cell.recorded().frame_size())),
        Advice::Next(_) => None,
    }
}

/// The lowest rate above the carried one at which the simulated instrument was too slow, if no rate lost frames.
fn ceiling(recorded: &Recorded<'_>, highest: &RateLimit) -> Option<ByteRate> {
    let carried = highest.carried.map_or(0.0, |rate| rate.0);
    let tried = recorded.of(Goal::Search).filter(|(sample, ingest)| {
        ingest.packets.is_some() && matches!(sample.invalid, Some(Invalid::Slow(_) | Invalid::Bursts(_)))
    });
    let rates = tried.map(|(_, ingest)| ByteRate::of(ingest.frame_size.0, ingest.period));
    let above = rates.filter(|rate| highest.lost.is_none() && rate.0 > carried);
    above.min_by(|a, b| a.0.total_cmp(&b.0))
}

impl Verdict {
    /// The ratio of the target's long-term rate to the instrument's rate.
    pub fn margin(&self) -> Option<f64> {
        self.margins().map(|margin| margin.times)
    }

    /// The ratio with its interval.
    pub fn margins(&self) -> Option<Margin> {
        self.limit.map(|limit| limit.margin(self.rate))
    }

    /// The multiple of the instrument's rate that the target may at most take. `None` without a rate, or if the
    /// rate is a lower bound.
    pub(crate) fn most_times(&self) -> Option<f64> {
        Some(self.limit?.most()?.0 / self.rate.0)
    }

    /// The recording behind the answer; `None` if nothing follows from it.
    pub fn trial(&self) -> Option<&TrialVerdict> {
        match &self.finding {
            Finding::Carried(trial) | Finding::Lost(trial) => Some(trial),
            Finding::Undecided(_) => None,
        }
    }

    /// The instruments and their number.
    pub fn who(&self) -> String {
        self.instrument.to_string()
    }
}

impl TrialVerdict {
    /// The memory that covers its longest stall. It is the most memory in use, and at least the data received in
    /// that time plus a frame before and after.
    pub fn covering(&self, rate: ByteRate) -> Bytes {
        let comes = rate.0 * self.longest_stall.seconds();
        #[expect(clippy::cast_sign_loss, reason = "no rate is below zero")]
        let needed = Bytes(comes.ceil() as u64 + 2 * self.frame_size.0);
        self.buffer_used.max(needed).min(self.buffer.max(self.buffer_used))
    }
}

#[cfg(test)]
mod tests;
