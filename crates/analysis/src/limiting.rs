//! The parts at their limit during the highest rate of a phase: the tool, the page cache, the device below the
//! target, the processors. The evidence is this machine's record. Parts behind a network are visible only if
//! somebody observes them.

use nilometer_model::{Coldness, Nanos, Phase, Sample};
use nilometer_plan::{Cell, Results};

use crate::{
    CellOutcome, Quantity, StageFigures, ceiling::ceiling_of, letter, observed::percent, outcome::processors,
    parameters::words,
};

/// The parts that limit the highest rate of a target in a phase.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitingParts {
    /// The phase.
    pub phase: Phase,
    /// Index into [`nilometer_plan::Results::targets`].
    pub target: usize,
    /// The cell with the highest rate, in words; empty for a single one.
    pub cell: String,
    /// The parts at their limit, the strongest evidence first; empty if no visible part was.
    pub parts: Vec<LimitingPart>,
    /// The use of the device and the processors, if no part was at its limit.
    pub others: Vec<String>,
}

/// A part at its limit.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitingPart {
    /// The kind.
    pub kind: LimitingKind,
    /// The evidence, in words.
    pub words: String,
}

/// A part that may limit a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitingKind {
    /// This program, with its engine and this machine's kernel.
    Tool,
    /// Data went to, or came from, this machine's memory.
    Cache,
    /// The block device below the target.
    Device,
    /// All processors of this machine, or those that the workers are on.
    Processor,
}

impl LimitingKind {
    /// The word in reports.
    pub const fn name(self) -> &'static str {
        match self {
            LimitingKind::Tool => "the tool",
            LimitingKind::Cache => "the page cache",
            LimitingKind::Device => "the device",
            LimitingKind::Processor => "the processors",
        }
    }
}

/// The share of time from which on a device or a processor counts as always busy, as for observed machines.
const FULL: f64 = 0.95;
/// The tool counts as the limit if its own rate is less than this multiple of the figure.
const TOOL: f64 = 1.5;
/// The largest share of the data that reaches the device if the cache takes or provides them.
const PAST_THE_DEVICE: f64 = 0.1;
/// The least total length of repeats: shorter ones show nothing, because counters have steps of up to 10 ms.
const LEAST: Nanos = Nanos::from_millis(200);

/// The limiting parts of each phase and target.
pub(crate) fn limiting_parts(results: &Results, stage: &StageFigures<'_>) -> Vec<LimitingParts> {
    let mut found = Vec::new();
    for question in &stage.questions {
        for target in stage.targets() {
            let Some(best) = stage.best(question.phase, target) else { continue };
            // A target rate limits a workload by itself, and beside a load the machine is busy with both.
            if !is_by_itself(&results.cells[best.cell]) {
                continue;
            }
            let samples: Vec<&Sample> = best.usable().map(|measured| &measured.sample).collect();
            let wall = samples.iter().fold(Nanos(0), |all, sample| all + sample.wall);
            // For several machines, the record has only the first one's devices and processors.
            if wall < LEAST || samples.iter().any(|sample| sample.parts.len() > 1) {
                continue;
            }
            let limits = Limits { results, best, quantity: question.quantity, samples, wall };
            let cell = stage.cell(best.cell);
            let cell = cell.map(|cell| words(&cell.parameters, stage.varying.names().into_iter()));
            found.extend(limits.found(question.phase, target, cell.unwrap_or_default()));
        }
    }
    found
}

fn is_by_itself(cell: &Cell) -> bool {
    let has_load = cell.background().is_some_and(|load| !load.is_none());
    !has_load && cell.as_workload().is_none_or(|run| run.offered.is_none())
}

/// The best figure of a target in a phase, with its evidence.
struct Limits<'a> {
    results: &'a Results,
    best: &'a CellOutcome<'a>,
    quantity: Quantity,
    samples: Vec<&'a Sample>,
    /// Wall time of all repeats together.
    wall: Nanos,
}

impl Limits<'_> {
    /// `None` without any evidence.
    fn found(&self, phase: Phase, target: usize, cell: String) -> Option<LimitingParts> {
        let device = self.device_busy();
        let processors = self.processors_busy();
        let own = self.own_busy();
        let mut parts: Vec<LimitingPart> = self.tool().into_iter().chain(self.cache(phase)).collect();
        let mut part = |kind, words| parts.push(LimitingPart { kind, words });
        if let Some((busy, words)) = &device
            && *busy >= FULL
        {
            part(LimitingKind::Device, words.clone());
        }
        match (&processors, own) {
            (Some(busy), _) if *busy >= FULL => {
                part(
                    LimitingKind::Processor,
                    format!("all of this machine were busy {} of the time", percent(*busy)),
                );
            }
            (_, Some(own)) if own >= FULL => {
                part(LimitingKind::Processor, format!("each worker computed {} of its time", percent(own)));
            }
            _ => {}
        }
        let others = device
            .map(|(_, words)| words)
            .into_iter()
            .chain(processors.map(|busy| format!("the processors were busy {} of the time", percent(busy))));
        let others: Vec<String> = if parts.is_empty() { others.collect() } else { Vec::new() };
        let is_known = !parts.is_empty() || !others.is_empty();
        is_known.then_some(LimitingParts { phase, target, cell, parts, others })
    }

    fn tool(&self) -> Option<LimitingPart> {
        let rate = self.best.summary(self.quantity)?.mean;
        let ceiling = self.quantity.of(ceiling_of(self.results, self.best)?);
        let times = ceiling / rate;
        let words = format!("alone, onto `null:`, it reaches {times:.1} times this rate");
        (times > 0.0 && times < TOOL).then_some(LimitingPart { kind: LimitingKind::Tool, words })
    }

    /// The cache, if most data did not reach a visible device.
    fn cache(&self, phase: Phase) -> Option<LimitingPart> {
        let bytes: u64 = self.samples.iter().map(|sample| sample.bytes).sum();
        let cold = self.best.coldness;
        let [is_write, is_read] = [
            [Phase::Write, Phase::Rewrite].contains(&phase),
            phase == Phase::Read && cold != Some(Coldness::Proved),
        ];
        if bytes == 0 || !(is_write || is_read) {
            return None;
        }
        let moved: Option<Vec<u64>> = self
            .samples
            .iter()
            .map(|sample| sample.device.map(|device| if is_write { device.written } else { device.read }))
            .collect();
        let share = moved?.iter().sum::<u64>() as f64 / bytes as f64;
        let what = if is_write { "written reached the device" } else { "read came from the device" };
        let words = format!("{} of the bytes {what} meanwhile", percent(share));
        (share < PAST_THE_DEVICE).then_some(LimitingPart { kind: LimitingKind::Cache, words })
    }

    /// The share of the time in which the device was busy, and its number of requests.
    fn device_busy(&self) -> Option<(f64, String)> {
        let used: Option<Vec<_>> =
            self.samples.iter().map(|sample| sample.device.and_then(|device| device.use_of)).collect();
        let used = used?;
        let sum = |time: fn(&nilometer_model::DeviceUse) -> Nanos| {
            used.iter().map(|of| time(of).seconds()).sum::<f64>() / self.wall.seconds()
        };
        // A busy time beyond the phase comes from one tick too many.
        let busy = sum(|of| of.busy).min(1.0);
        let queue = sum(|of| of.queue);
        let requests = if queue < 10.0 { format!("{queue:.1}") } else { format!("{queue:.0}") };
        Some((
            busy,
            format!("the device was busy {} of the time, with {requests} requests at once", percent(busy)),
        ))
    }

    /// The busy share of all processors of this machine together.
    fn processors_busy(&self) -> Option<f64> {
        let during = self.samples.iter().map(|sample| sample.during);
        let over: f64 = during.clone().map(|during| during.over.seconds()).sum();
        let busy: f64 = during.map(|during| during.busy.seconds()).sum();
        let share = busy / (over * processors(self.results));
        share.is_finite().then(|| share.min(1.0))
    }

    /// The share of a worker's time in user space and in the kernel.
    fn own_busy(&self) -> Option<f64> {
        let workers = |sample: &&Sample| sample.workers.len().max(1) as f64 * sample.wall.seconds();
        let all: f64 = self.samples.iter().map(workers).sum();
        let spent: f64 = self.samples.iter().map(|sample| (sample.user + sample.system).seconds()).sum();
        (all > 0.0).then(|| spent / all)
    }
}

impl LimitingParts {
    /// `write on A (workers 4): the device was busy 99 % of the time, with 31 requests at once`.
    pub fn words(&self, with_target: bool) -> String {
        let on = if with_target { format!(" on {}", letter(self.target)) } else { String::new() };
        let cell = if self.cell.is_empty() { String::new() } else { format!(" ({})", self.cell) };
        let what = format!("{}{on}{cell}", self.phase.name());
        if self.parts.is_empty() {
            return format!("limit of {what}: nothing visible from here: {}", self.others.join("; "));
        }
        let told = self.parts.iter().map(|part| {
            let kind = part.kind.name();
            if part.words.starts_with(kind) { part.words.clone() } else { format!("{kind}: {}", part.words) }
        });
        format!("limit of {what}: {}", told.collect::<Vec<_>>().join("; "))
    }
}

#[cfg(test)]
mod tests {
    use nilometer_model::{Activity, DeviceTraffic, DeviceUse};
    use nilometer_plan::{Key, Measured};

    use super::*;
    use crate::{Study, made_up::writes};

    /// A second of writing 100 MB by one worker on a machine with two processors.
    fn sample() -> Sample {
        let device = DeviceTraffic { written: 100_000_000, ..DeviceTraffic::default() };
        let over = Nanos(1_000_000_000);
        Sample {
            bytes: 100_000_000,
            operations: 100,
            wall: over,
            device: Some(used(device, 300, 900)),
            during: Activity { over, busy: Nanos(400_000_000), ..Activity::default() },
            ..Sample::new(Nanos(0))
        }
    }

    fn used(device: DeviceTraffic, busy: u64, queue: u64) -> DeviceTraffic {
        let use_of = DeviceUse { busy: Nanos::from_millis(busy), queue: Nanos::from_millis(queue) };
        DeviceTraffic { use_of: Some(use_of), ..device }
    }

    fn told(sample: &Sample) -> String {
        let measured = |repeat| Measured {
            key: Key { target: 0, cell: 0, repeat, phase: Phase::Write },
            sample: sample.clone(),
        };
        let results = Results {
            cells: vec![writes("files", "1 MiB", 1)],
            samples: (0..3).map(measured).collect(),
            environment: vec![("processors".into(), "2".into())],
            ..Results::default()
        };
        let study = Study::of(&results);
        study.stages[0].limits.iter().map(|of| of.words(false)).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn what_was_at_its_limit_is_named_by_what_shows_it() {
        let quiet = sample();
        assert_eq!(
            told(&quiet),
            "limit of write: nothing visible from here: the device was busy 30 % of the time, with 0.9 requests at \
             once; the processors were busy 20 % of the time"
        );
        let device = quiet.device.unwrap_or_default();
        let full = Sample { device: Some(used(device, 1002, 31_000)), ..quiet.clone() };
        assert_eq!(
            told(&full),
            "limit of write: the device was busy 100 % of the time, with 31 requests at once"
        );
        let cached = Sample { device: Some(DeviceTraffic { written: 2_000_000, ..device }), ..quiet.clone() };
        let words = told(&cached);
        assert!(
            words.ends_with("the page cache: 2 % of the bytes written reached the device meanwhile"),
            "{words}"
        );
        let computing = Sample { system: Nanos(970_000_000), ..quiet.clone() };
        let words = told(&computing);
        assert!(words.ends_with("the processors: each worker computed 97 % of its time"), "{words}");
        let busy = Activity { busy: Nanos(1_990_000_000), ..quiet.during };
        let words = told(&Sample { during: busy, ..quiet });
        assert!(
            words.ends_with("the processors: all of this machine were busy 100 % of the time"),
            "{words}"
        );
    }

    #[test]
    fn nothing_is_said_where_nothing_is_known() {
        let unknown = Sample { device: None, during: Activity::default(), ..sample() };
        assert_eq!(told(&unknown), "");
        let short = Sample { wall: Nanos::from_millis(20), ..sample() };
        assert_eq!(told(&short), "");
    }
}
