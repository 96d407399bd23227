//! Recordings of plans against truths: any number of frames, through the page cache or past it, synced or not, and no pass at full
//! speed, so that a recording says alone whether the storage keeps up.

use std::fmt;

use nilometer_acquisition::sink::{Durability, RawLayout};
use nilometer_analysis::{Decision, verdicts};
use nilometer_campaign::{Pass, sample_of};
use nilometer_model::{Goal, Nanos, Phase, RandomStream, Seed};
use nilometer_plan::{Cell, Key, Measured, RecordingRun, Results, TargetEntry};
use nilometer_storage::testing::Device;

use nilometer_rehearsal::{StorageCase, StorageKind, cell, layout, recorded};

/// Frames of the longest recording: two to six minutes.
const FRAMES_MOST: f64 = 20_000.0;
/// How many times its rate the storage takes.
const MARGINS: [f64; 2] = [0.3, 1.5];
/// How much the page cache holds, in seconds of the instrument.
const CACHE_SECONDS: [f64; 2] = [0.1, 10.0];
const TARGET: &str = "/simulated";

/// How frames come to the storage.
#[derive(Debug, Clone, Copy)]
struct Way {
    buffered: bool,
    synced: bool,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cache = if self.buffered { "page cache" } else { "direct" };
        write!(f, "{cache}, {}", if self.synced { "synced" } else { "not synced" })
    }
}

const WAYS: [Way; 4] = [
    Way { buffered: false, synced: false },
    Way { buffered: false, synced: true },
    Way { buffered: true, synced: false },
    Way { buffered: true, synced: true },
];

const KINDS: [StorageKind; 5] = [
    StorageKind::Constant,
    StorageKind::Noise,
    StorageKind::LastingNoise,
    StorageKind::Drift,
    StorageKind::Stalls,
];

/// A recording of a plan.
struct Planned {
    case: StorageCase,
    frames: u64,
    way: Way,
    /// Bytes; 0 for none.
    page_cache: u64,
}

impl Planned {
    fn new(kind: StorageKind, way: Way, seed: Seed) -> Planned {
        let mut stream = seed.named(&format!("{way}")).stream();
        let case = StorageCase::with_margin(kind, seed, MARGINS);
        let frames = along(&mut stream, [1.0, FRAMES_MOST]);
        let cache = case.rate().0 * along(&mut stream, CACHE_SECONDS);
        #[expect(clippy::cast_sign_loss, reason = "nothing is below zero")]
        let [frames, cache] = [frames, cache].map(|number| number as u64);
        Planned { case, frames, way, page_cache: if way.buffered { cache } else { 0 } }
    }

    fn run(&self) -> RecordingRun {
        let duration = Nanos::from_seconds(self.frames as f64 / self.case.frame_rate);
        RecordingRun { duration, ..cell(&self.case, Goal::Pace) }
    }

    fn layout(&self) -> RawLayout {
        let durability = if self.way.synced { Durability::EachFile } else { Durability::Never };
        RawLayout { direct: !self.way.buffered, durability, ..layout() }
    }

    /// What the shipped analysis says of it.
    fn decision(&self) -> Decision {
        let run = self.run();
        let device = Device { page_cache: self.page_cache, ..self.case.device(0.0, false) };
        let outcome = recorded(&self.case, &run, &self.layout(), device, Pass::Whole);
        let sample = sample_of(&run, outcome, Vec::new());
        let key = Key { target: 0, cell: 0, repeat: 0, phase: Phase::Ingest };
        let cache = if self.way.buffered { "through the cache" } else { "past the cache" };
        let target =
            TargetEntry { path: TARGET.into(), file_system: "simulated".into(), ..TargetEntry::default() };
        let results = Results {
            samples: vec![Measured { key, sample }],
            environment: vec![
                (run.layout_key(TARGET), format!("files of 24 frames; {cache}")),
                ("dirty_bytes".into(), self.page_cache.to_string()),
            ],
            cells: vec![Cell::recording("camera", run)],
            targets: vec![target],
            ..Results::default()
        };
        verdicts(&results).first().expect("one instrument was recorded").decision()
    }
}

/// Somewhere between, as often in each power.
fn along(stream: &mut RandomStream, [least, most]: [f64; 2]) -> f64 {
    least * (most / least).powf(stream.unit())
}

/// All recordings of a kind of storage in one way.
pub(super) struct PlanRow {
    name: String,
    /// What was said, and whether frames must be lost; none where it is too close to tell.
    said: Vec<(Decision, Option<bool>)>,
}

impl PlanRow {
    /// A row for each kind of storage and each way, of so many campaigns.
    pub(super) fn all(campaigns: u64) -> impl Iterator<Item = PlanRow> {
        let rows = WAYS.into_iter().flat_map(|way| KINDS.map(|kind| (way, kind)));
        rows.map(move |(way, kind)| PlanRow::of(kind, way, campaigns))
    }

    fn of(kind: StorageKind, way: Way, campaigns: u64) -> PlanRow {
        let one = |seed| {
            let planned = Planned::new(kind, way, Seed(seed));
            (planned.decision(), planned.case.must_lose())
        };
        PlanRow { name: format!("{}; {way}", kind.name()), said: (0..campaigns).map(one).collect() }
    }

    fn count(&self, decision: Decision, must_lose: Option<bool>) -> usize {
        self.said.iter().filter(|said| **said == (decision, must_lose)).count()
    }

    /// What is said falsely: that it carries, and that it does not.
    fn falsely(&self) -> [usize; 2] {
        [self.count(Decision::Carries, Some(true)), self.count(Decision::DoesNotCarry, Some(false))]
    }

    /// The goals that it misses.
    pub(super) fn missed(&self) -> Option<String> {
        let [carries, does_not] = self.falsely();
        let missed = carries + does_not > 0;
        missed.then(|| format!("{}: carries falsely {carries} times, does not {does_not} times", self.name))
    }
}

/// The head of the table.
pub(super) const PLANS_HEAD: &str = "\
| storage; recording of a plan | campaigns | carries | does not | carries, falsely | does not, falsely | not decided, though clear |
|---|---|---|---|---|---|---|";

impl fmt::Display for PlanRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [carries, does_not] = self.falsely();
        let clear = self.said.iter().filter(|(_, must_lose)| must_lose.is_some()).count();
        let open = [Some(true), Some(false)].map(|must| self.count(Decision::NotDecided, must));
        write!(
            f,
            "| {} | {} | {} | {} | {carries} | {does_not} | {:.1} % |",
            self.name,
            self.said.len(),
            self.count(Decision::Carries, Some(false)),
            self.count(Decision::DoesNotCarry, Some(true)),
            100.0 * (open[0] + open[1]) as f64 / clear.max(1) as f64,
        )
    }
}
