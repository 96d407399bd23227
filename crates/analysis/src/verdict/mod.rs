//! The verdict: does this target carry this instrument, by what margin, and how sure is that; beside readers, and beside
//! others.

mod beside;
mod decision;
mod hidden;
mod words;

use nilometer_model::{
    ByteRate, Bytes, FramesBeside, Goal, Histogram, Ingest, Invalid, Nanos, PacketTotals, ReaderTotals,
    Sample, Series,
    sustained::{Margin, RateStep, SustainedRate, step, sustained},
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
pub(crate) use words::{fewer_losses, lost_frames};

use crate::{AcrossMachines, Quantity, study::stages_of};

/// The answer for one instrument on one target.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Index into [`Results::targets`].
    pub target: usize,
    /// Of what.
    pub instrument: RecordedInstrument,
    /// The stages of the plan that it was recorded in, as far as they are not called by it.
    pub stages: Vec<String>,
    /// What all of them deliver.
    pub rate: ByteRate,
    /// What the target takes in the long run, from all valid passes at full speed.
    pub limit: Option<SustainedRate>,
    /// Passes at full speed were made, whether or not a rate follows from them.
    pub limit_tried: bool,
    /// What the passes at full speed wrote at the most, and the page cache of this machine that may hold most of it; none where files are
    /// synced or written past it.
    pub limit_cached: Option<(Bytes, Bytes)>,
    /// Where a cache was full, in the recording that took the most before.
    pub cache: Option<RateStep>,
    /// What the recording at the instrument's pace came to, without readers.
    pub finding: Finding,
    /// How frames came to the recorder.
    pub route: Route,
    /// How its frames are stored at its own pace, and as fast as they are taken if that is another way; none in records that
    /// do not say.
    pub stored: Option<String>,
    /// What was dealt out to several processes, and what each machine did; none if one recorded it.
    pub dealt_out: Option<String>,
    /// The target is memory of this machine: nothing there is durable, whatever is synced.
    pub volatile: bool,
    /// It was recorded by itself; if not, the finding is of all recordings that there are.
    pub by_itself: bool,
    /// With readers, the fewest first.
    pub read: Vec<Beside>,
    /// While others were recorded.
    pub together: Vec<Together>,
    /// In states that the user's commands brought the target into.
    pub under: Vec<Under>,
    /// The highest rate without loss, if it was searched for.
    pub highest: Option<RateLimit>,
    /// The lowest rate that was tried in vain above that, because the simulated instrument could not send as fast.
    pub ceiling: Option<ByteRate>,
    /// The smallest buffer without loss, if it was searched for, and the bytes of a slot.
    pub smallest: Option<(BufferLimit, Bytes)>,
}

/// What a recording at the instrument's pace came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Finding {
    /// No frame was lost.
    Carried(TrialVerdict),
    /// Frames were lost.
    Lost(TrialVerdict),
    /// Nothing follows from it.
    Undecided(String),
}

/// A recording at the instrument's pace.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialVerdict {
    /// How long frames came.
    pub duration: Nanos,
    /// Frames that were due.
    pub due: u64,
    /// Frames that were lost.
    pub lost: u64,
    /// Frames that were acknowledged later than the allowance.
    pub late: u64,
    /// How late a frame may be, and what a stall is longer than.
    pub allowance: Nanos,
    /// Times longer than that in which frames waited and none was acknowledged, and how long all of them together.
    pub stalls: (u64, Nanos),
    /// The longest time in which frames waited and none was acknowledged.
    pub longest_stall: Nanos,
    /// The longest time from due until a frame could be read.
    pub latest: Nanos,
    /// The most memory that was in use at once.
    pub buffer_used: Bytes,
    /// The memory there was.
    pub buffer: Bytes,
    /// Bytes of a frame, of all recorders together.
    pub frame_size: Bytes,
    /// The buffer was still filling when the last frame came.
    pub filling: bool,
    /// It was filling, however slowly.
    pub grows: bool,
    /// What memory on the way to the storage may hide of it.
    pub hidden: Hidden,
    /// Processors that the recorder kept busy, the simulated instrument apart.
    pub cores: f64,
    /// Frames that were read back when the recording was over, and found right.
    pub read_back: u64,
    /// From due until durable, for 99 % of frames; none where nothing is synced.
    pub durable: Option<Nanos>,
    /// How many times smaller frames were written than they came.
    pub compressed: f64,
    /// What became of packets, where they came over loopback: frames are then blocks of them.
    pub packets: Option<PacketTotals>,
}

/// A recording while others were made.
#[derive(Debug, Clone, PartialEq)]
pub struct Together {
    /// All of them, this one included.
    pub company: String,
    /// At the instrument's pace.
    pub finding: Finding,
}

/// A recording while the target was in a condition, or something worked on it.
#[derive(Debug, Clone, PartialEq)]
pub struct Under {
    /// What the user calls the condition; empty for as it is.
    pub condition: String,
    /// What worked on it, in words; empty for nothing.
    pub load: String,
    /// At the instrument's pace.
    pub finding: Finding,
    /// As fast as the storage takes frames.
    pub limit: Option<SustainedRate>,
    /// What became of the frames of an instrument that was the load, over all valid recordings at the pace; none where it was
    /// another load.
    pub beside: Option<FramesBeside>,
}

impl Under {
    /// `in the condition one disk lost`; of a load alone what it is.
    pub(super) fn place(&self) -> String {
        match (self.condition.is_empty(), self.load.is_empty()) {
            (true, _) => self.load.clone(),
            (false, true) => format!("in the condition {}", self.condition),
            (false, false) => format!("in the condition {}, {}", self.condition, self.load),
        }
    }

    /// What it is called where it stands alone: `one disk lost`.
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
    /// How frames come to the storage at the instrument's pace.
    way: Way,
    /// In the order of cells and repeats.
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

    /// What the recording of several comes to that speaks most against the target: data that were read back wrong, then losses, then a
    /// buffer that was still filling, then the longest stall. One that is INVALID for another reason speaks last.
    fn worst(&self, made: Vec<Made<'_>>) -> Finding {
        let badness = |(sample, ingest): &Made<'_>| {
            let wrong = sample.invalid == Some(Invalid::Wrong);
            (wrong, sample.invalid.is_none(), ingest.losses(), ingest.is_filling(), ingest.longest_stall)
        };
        let (sample, ingest) = made.into_iter().max_by_key(badness).expect("at least one is given");
        finding(sample, ingest, self.way)
    }
}

/// Every target with every instrument that was recorded there.
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
    // Where it was recorded with readers only, the passes beside them count.
    let counts = |made: &Made<'_>| if alone.is_empty() { is_usual(made.1) } else { by_itself(made) };
    let tried: Vec<&Sample> = recorded.of(Goal::Limit).filter(counts).map(|(sample, _)| sample).collect();
    let limits = tried.iter().copied().filter(|sample| sample.invalid.is_none());
    let steps = limits.clone().filter_map(|sample| step(&sample.series));
    let (highest, smallest) = searched(results, recorded);
    let ceiling = highest.as_ref().and_then(|highest| ceiling(recorded, highest));
    Some(Verdict {
        target: recorded.target,
        instrument: recorded.instrument.clone(),
        stages: stages_of(results, &recorded.samples).into_iter().map(str::to_owned).collect(),
        rate: ByteRate::of(ingest.frame_size.0, ingest.period),
        limit: long_run(limits.clone()),
        limit_tried: !tried.is_empty(),
        limit_cached: recorded.way.cached(limits.filter_map(|sample| sample.ingest.as_ref())),
        cache: steps.max_by_key(|step| step.volume),
        route: paced_route(results, recorded),
        stored: stored(results, recorded),
        dealt_out: dealt_out(results, recorded, &tried),
        volatile: results.targets.get(recorded.target).is_some_and(TargetEntry::is_volatile),
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

/// What was recorded, in the order of cells.
fn runs<'a>(results: &'a Results, recorded: &Recorded<'a>) -> impl Iterator<Item = &'a RecordingRun> {
    let samples = recorded.samples.clone();
    samples.into_iter().filter_map(|measured| results.recording(measured.key))
}

/// How frames came at the instrument's pace, which is what a verdict is about.
fn paced_route(results: &Results, recorded: &Recorded<'_>) -> Route {
    let of_goal = |goal| runs(results, recorded).find(|run| run.goal == goal);
    of_goal(Goal::Pace).map(|run| run.route).unwrap_or_default()
}

/// How the frames are laid out, as the record's environment says it.
fn stored(results: &Results, recorded: &Recorded<'_>) -> Option<String> {
    let paced = layout(results, recorded, Goal::Pace)?;
    match layout(results, recorded, Goal::Limit).filter(|limit| *limit != paced) {
        Some(limit) => Some(format!("{paced}; as fast as they are taken as {limit}")),
        None => Some(paced.to_owned()),
    }
}

fn layout<'a>(results: &'a Results, recorded: &Recorded<'a>, goal: Goal) -> Option<&'a str> {
    let target = &results.targets.get(recorded.target)?.path;
    let key = runs(results, recorded).find(|run| run.goal == goal)?.layout_key(target);
    results.environment.iter().find(|(name, _)| *name == key).map(|(_, layout)| layout.as_str())
}

/// Who recorded it, if it was several: how fast each machine was where frames came as fast as they were taken, or at its pace.
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

/// What the storage took in the long run.
fn long_run<'a>(passes: impl Iterator<Item = &'a Sample>) -> Option<SustainedRate> {
    let passes: Vec<&Series> = passes.map(|sample| &sample.series).collect();
    sustained(&passes)
}

/// Nothing else was recorded at the same time, and the target was as it is.
fn is_usual(ingest: &Ingest) -> bool {
    ingest.company.is_empty() && ingest.is_undisturbed()
}

/// In each condition, and beside each load.
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

/// Those who read while it was made.
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
        read_back: after.map(|reader| reader.frames).sum(),
        durable: quantile(&ingest.durable, 0.99),
        compressed: (ingest.stored * ingest.frame_size.0) as f64 / ingest.written.0.max(1) as f64,
        packets: ingest.packets,
    };
    if ingest.losses() > 0 { Finding::Lost(trial) } else { Finding::Carried(trial) }
}

fn quantile(histogram: &Histogram, fraction: f64) -> Option<Nanos> {
    (histogram.count() > 0).then(|| Nanos(histogram.quantile(fraction)))
}

/// By company.
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

/// What searches found, as far as they came: the first of each kind, if an instrument was searched for several times.
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

/// What the first search with this goal found if it came to its end, and the size of its frames.
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

/// The lowest rate above what is carried at which the simulated instrument did not keep its pace, if no rate lost.
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
    /// How many times its rate the target takes in the long run.
    pub fn margin(&self) -> Option<f64> {
        self.margins().map(|margin| margin.times)
    }

    /// The same with its interval.
    pub fn margins(&self) -> Option<Margin> {
        self.limit.map(|limit| limit.margin(self.rate))
    }

    /// The recording that the answer rests on; none if nothing follows from it.
    pub fn trial(&self) -> Option<&TrialVerdict> {
        match &self.finding {
            Finding::Carried(trial) | Finding::Lost(trial) => Some(trial),
            Finding::Undecided(_) => None,
        }
    }

    /// The instrument, and how many of it.
    pub fn who(&self) -> String {
        self.instrument.to_string()
    }
}

impl TrialVerdict {
    /// The memory that covers its longest stall: what was in use at the most, and no less than what comes in that time with
    /// a frame before and one behind it.
    pub fn covering(&self, rate: ByteRate) -> Bytes {
        let comes = rate.0 * self.longest_stall.seconds();
        #[expect(clippy::cast_sign_loss, reason = "no rate is below zero")]
        let needed = Bytes(comes.ceil() as u64 + 2 * self.frame_size.0);
        self.buffer_used.max(needed).min(self.buffer.max(self.buffer_used))
    }
}

#[cfg(test)]
mod tests;
