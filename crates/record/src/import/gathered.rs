//! The results found so far, by target, cell and repeat, and their conversion to a record.

use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
};

use nilometer_model::{Histogram, Nanos, Phase, Sample};
use nilometer_plan::{Cell, Group, ImportedRun, Key, Results, TargetEntry};

use super::{
    Fault, ImportOptions,
    given_twice::{KnownRuns, MomentOfRun},
};
use crate::{Record, RecordError};

/// A figure with its target, cell and phase.
#[derive(Debug, Clone)]
pub(super) struct GivenFigure {
    /// The target's name in the file.
    pub(super) target: String,
    pub(super) stage: String,
    pub(super) run: ImportedRun,
    pub(super) phase: Phase,
    pub(super) did: GivenWork,
}

/// The work of one repeat.
#[derive(Debug, Clone, Default)]
pub(super) struct GivenWork {
    pub(super) bytes: u64,
    pub(super) operations: u64,
    pub(super) wall: Nanos,
    pub(super) user: Nanos,
    pub(super) system: Nanos,
    /// Start since 1970, or zero if unknown.
    pub(super) started: Nanos,
    pub(super) latency: Histogram,
}

/// Assumed duration of a rate that comes without amounts and times.
const NOMINAL_SECONDS: u64 = 1000;
/// Limit on samples. A person's benchmarks have fewer, and more would not fit into the memory of a small
/// machine.
pub(super) const SAMPLES_MAX: usize = 5_000_000;
/// Number of reasons for omissions that are listed. Others are counted together.
const KINDS_MOST: usize = 20;
/// More sources are counted in a title.
const NAMED_MOST: usize = 3;
/// The reason of a figure that is there already.
const GIVEN_TWICE: &str = "the same run, given twice";
/// SQLite's integers end here, and so do counts.
const COUNT_MOST: f64 = 9e18;

impl GivenWork {
    /// Makes the work of one operation that took `seconds`.
    pub(super) fn of_time(seconds: f64, line: u64) -> Result<Self, Fault> {
        let wall = nanos(seconds, line)?;
        if wall.0 == 0 {
            return Err(Fault::at(
                line,
                format!("a task of {seconds} s: no figure follows from a time of zero"),
            ));
        }
        Ok(GivenWork { operations: 1, wall, ..GivenWork::default() })
    }

    /// Makes work at `rate` bytes a second.
    pub(super) fn of_byte_rate(rate: f64, line: u64) -> Result<Self, Fault> {
        let wall = Nanos::from_millis(NOMINAL_SECONDS * 1000);
        Ok(GivenWork { bytes: count(rate * NOMINAL_SECONDS as f64, line)?, wall, ..GivenWork::default() })
    }

    /// Makes work at `rate` operations a second.
    pub(super) fn of_operation_rate(rate: f64, line: u64) -> Result<Self, Fault> {
        let wall = Nanos::from_millis(NOMINAL_SECONDS * 1000);
        Ok(GivenWork {
            operations: count(rate * NOMINAL_SECONDS as f64, line)?,
            wall,
            ..GivenWork::default()
        })
    }
}

/// A sample until the record is written: small, since there may be millions of them.
#[derive(Debug)]
struct KeptSample {
    target: u32,
    cell: u32,
    repeat: u32,
    phase: Phase,
    bytes: u64,
    operations: u64,
    wall: Nanos,
    /// `None` if the file gives no more, as most rows of a table do.
    details: Option<Box<KeptDetails>>,
}

/// Figures of a sample that few files give.
#[derive(Debug)]
struct KeptDetails {
    user: Nanos,
    system: Nanos,
    started: Nanos,
    latency: Histogram,
}

impl KeptSample {
    fn new(target: u32, cell: u32, repeat: u32, phase: Phase, did: GivenWork) -> Self {
        let GivenWork { bytes, operations, wall, user, system, started, latency } = did;
        let is_plain = [user, system, started] == [Nanos(0); 3] && latency.count() == 0;
        let details = (!is_plain).then(|| Box::new(KeptDetails { user, system, started, latency }));
        KeptSample { target, cell, repeat, phase, bytes, operations, wall, details }
    }

    fn key(&self) -> Key {
        let KeptSample { target, cell, repeat, phase, .. } = *self;
        Key { target: target as usize, cell: cell as usize, repeat, phase }
    }

    fn sample(self) -> Sample {
        let KeptSample { bytes, operations, wall, details, .. } = self;
        let plain = Sample { bytes, operations, wall, ..Sample::new(Nanos(0)) };
        let Some(details) = details else { return plain };
        let KeptDetails { user, system, started, latency } = *details;
        Sample { user, system, started, latency, ..plain }
    }
}

/// Days since 1970.
fn day_of(moment: Nanos) -> u64 {
    moment.0 / (86_400 * 1_000_000_000)
}

/// Converts a number to a count.
pub(super) fn count(number: f64, line: u64) -> Result<u64, Fault> {
    if !(0.0..COUNT_MOST).contains(&number) {
        return Err(Fault::at(line, format!("{number} is no count that a record can hold")));
    }
    #[expect(clippy::cast_sign_loss, reason = "it is at least zero")]
    Ok(number.round() as u64)
}

/// Seconds that are no more than a record can hold.
pub(super) fn nanos(seconds: f64, line: u64) -> Result<Nanos, Fault> {
    count(seconds * 1e9, line).map(Nanos)
}

/// The results of all files read so far.
pub(super) struct Gathered<'a> {
    pub(super) options: &'a ImportOptions,
    targets: Vec<String>,
    cells: Vec<Cell>,
    by_target: HashMap<String, usize>,
    by_cell: HashMap<(String, String), usize>,
    repeats: HashMap<Group, u32>,
    samples: Vec<KeptSample>,
    sources: Vec<String>,
    /// Reasons for omissions, with their numbers.
    left_out: BTreeMap<String, u64>,
    started: Nanos,
    /// Results by the moment of their run, which tell a run that is given twice.
    known: KnownRuns,
    /// Targets that `--target` names anew, with the numbers of their results.
    renamed: BTreeMap<String, u64>,
    /// The part of a larger benchmark that the results belong to; `None` outside of one.
    pub(super) part: Option<BenchmarkPart>,
}

/// A part of a benchmark that runs other programs, as IO500 runs IOR and mdtest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BenchmarkPart {
    /// The directory in which all parts work.
    pub(super) target: String,
    /// The name of the part.
    pub(super) stage: String,
}

impl<'a> Gathered<'a> {
    pub(super) fn new(options: &'a ImportOptions) -> Self {
        Gathered {
            options,
            targets: Vec::new(),
            cells: Vec::new(),
            by_target: HashMap::new(),
            by_cell: HashMap::new(),
            repeats: HashMap::new(),
            samples: Vec::new(),
            sources: Vec::new(),
            left_out: BTreeMap::new(),
            started: Nanos(0),
            known: KnownRuns::default(),
            renamed: BTreeMap::new(),
            part: None,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.samples.len()
    }

    /// Bytes a second, or operations a second if no data are moved, of the first sample of a phase behind the
    /// first `before`.
    pub(super) fn rate_since(&self, before: usize, phase: Phase) -> Option<f64> {
        let kept = self.samples[before..].iter().find(|kept| kept.phase == phase)?;
        let amount = if kept.bytes > 0 { kept.bytes } else { kept.operations };
        Some(amount as f64 / kept.wall.seconds())
    }

    /// Begins a file or a directory. If `is_again`, an earlier one was the same, and all its results are left
    /// out.
    pub(super) fn begin_file(&mut self, is_again: bool) {
        self.known.begin(is_again);
    }

    /// The number of results that were left out because they were given before.
    pub(super) fn given_again(&self) -> u64 {
        self.known.again
    }

    /// Returns true if there were more samples than the limit. The others were dropped.
    pub(super) fn is_full(&self) -> bool {
        self.samples.len() >= SAMPLES_MAX
    }

    /// Adds a figure as one more repeat.
    pub(super) fn add(&mut self, figure: GivenFigure) {
        if self.is_full() {
            return;
        }
        let GivenFigure { mut target, mut stage, run, phase, mut did } = figure;
        let moment = MomentOfRun { given: target.clone(), started: did.started };
        if let Some(part) = &self.part {
            target.clone_from(&part.target);
            stage.clone_from(&part.stage);
        }
        if let Some(date) = self.options.date.filter(|_| did.started.0 == 0) {
            did.started = date.0;
        }
        if self.options.day.is_some_and(|day| day_of(day.0) != day_of(did.started)) {
            self.leave_out("results of other days, or without a date (--day)");
            return;
        }
        let target = self.renamed(target);
        let target = self.target(target);
        let cell = self.cell(stage, &run);
        let group = Group { cell, phase, target };
        if self.known.is_again(group, moment, [did.bytes, did.operations, did.wall.0]) {
            self.leave_out(GIVEN_TWICE);
            return;
        }
        if !self.sources.contains(&run.source) {
            self.sources.push(run.source.clone());
        }
        if did.started.0 > 0 && (self.started.0 == 0 || did.started < self.started) {
            self.started = did.started;
        }
        let next = self.repeats.entry(group).or_insert(0);
        // There are no more of either than samples, so `SAMPLES_MAX` bounds them.
        self.samples.push(KeptSample::new(target as u32, cell as u32, *next, phase, did));
        *next += 1;
    }

    /// Counts an omission.
    pub(super) fn leave_out(&mut self, why: impl Into<String>) {
        self.leave_out_many(why, 1);
    }

    /// Returns the reasons for omissions, with their numbers.
    pub(super) fn left_out(&self) -> &BTreeMap<String, u64> {
        &self.left_out
    }

    /// The omissions since `before` for a message: `; left out: 2 x trims of fio`. Empty without any.
    pub(super) fn left_out_words(&self, before: &BTreeMap<String, u64>) -> String {
        let since = self.left_out.iter().map(|(why, count)| (why, count - before.get(why).unwrap_or(&0)));
        let since = since.filter(|(_, count)| *count > 0);
        let all: Vec<String> = since.map(|(why, count)| format!("{count} x {why}")).collect();
        if all.is_empty() { String::new() } else { format!("; left out: {}", all.join(", ")) }
    }

    /// Counts several omissions with one reason.
    pub(super) fn leave_out_many(&mut self, why: impl Into<String>, count: u64) {
        let why = why.into();
        let is_told = self.left_out.len() < KINDS_MOST || self.left_out.contains_key(&why);
        let why = if is_told { why } else { "others".to_owned() };
        *self.left_out.entry(why).or_insert(0) += count;
    }

    /// The name that `--target` gives a target; its own without that option.
    fn renamed(&mut self, name: String) -> String {
        let Some(given) = &self.options.target else { return name };
        *self.renamed.entry(name).or_insert(0) += 1;
        given.clone()
    }

    /// Names the targets that `--target` made one.
    fn name_renamed(&mut self) {
        let renamed = std::mem::take(&mut self.renamed);
        let Some(given) = self.options.target.clone().filter(|_| renamed.len() > 1) else { return };
        for (name, count) in renamed {
            self.leave_out_many(format!("the name of `{name}`, now a part of `{given}` (--target)"), count);
        }
    }

    fn target(&mut self, name: String) -> usize {
        if let Some(known) = self.by_target.get(&name) {
            return *known;
        }
        self.targets.push(name.clone());
        self.by_target.insert(name, self.targets.len() - 1);
        self.targets.len() - 1
    }

    fn cell(&mut self, stage: String, run: &ImportedRun) -> usize {
        let key = (stage, run.phrases().join("\n"));
        if let Some(known) = self.by_cell.get(&key) {
            return *known;
        }
        self.cells.push(Cell::imported(key.0.clone(), run.clone()));
        self.by_cell.insert(key, self.cells.len() - 1);
        self.cells.len() - 1
    }

    pub(super) fn finish(mut self, paths: &[PathBuf]) -> ImportedResults {
        self.name_renamed();
        let entry = |path: String| TargetEntry { path, ..TargetEntry::default() };
        let files = paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
        let sources = named(&self.sources);
        let title = self.options.title.clone().unwrap_or_else(|| sources.clone());
        let environment = vec![("imported from".into(), files), ("measured by".into(), sources)];
        let started = if self.started.0 > 0 {
            nilometer_model::Moment(self.started).to_string()
        } else {
            String::new()
        };
        let mut samples = self.samples;
        // Cells of a stage stand together, whatever the order of rows is.
        let place = by_stage(&self.cells);
        let mut cells: Vec<(usize, Cell)> = place.iter().copied().zip(self.cells).collect();
        cells.sort_by_key(|(place, _)| *place);
        for kept in &mut samples {
            kept.cell = place[kept.cell as usize] as u32;
        }
        // The record has an index by key: samples in this order only ever append to it.
        samples.sort_unstable_by_key(KeptSample::key);
        let head = Results {
            title,
            version: env!("CARGO_PKG_VERSION").into(),
            started,
            margin: MARGIN,
            repeats: self.repeats.values().copied().max().unwrap_or(0),
            targets: self.targets.into_iter().map(entry).collect(),
            cells: cells.into_iter().map(|(_, cell)| cell).collect(),
            environment,
            ..Results::default()
        };
        ImportedResults { head, samples, left_out: self.left_out.into_iter().collect() }
    }
}

/// `a, b`; `a, b, c and 4 more`.
fn named(sources: &[String]) -> String {
    let shown = sources.iter().take(NAMED_MOST).map(String::as_str).collect::<Vec<_>>().join(", ");
    match sources.len().saturating_sub(NAMED_MOST) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// The margin of plans that say none.
const MARGIN: f64 = 5.0;

/// Returns the new position of each cell: stages in order of appearance, and within them cells in order of
/// appearance.
fn by_stage(cells: &[Cell]) -> Vec<usize> {
    let mut stages: HashMap<&str, usize> = HashMap::new();
    for cell in cells {
        let next = stages.len();
        stages.entry(&cell.stage).or_insert(next);
    }
    let mut order: Vec<usize> = (0..cells.len()).collect();
    order.sort_by_key(|&cell| stages[cells[cell].stage.as_str()]);
    let mut places = vec![0; cells.len()];
    for (place, cell) in order.into_iter().enumerate() {
        places[cell] = place;
    }
    places
}

/// Results of other programs, ready to be written.
#[derive(Debug)]
pub struct ImportedResults {
    pub(super) head: Results,
    samples: Vec<KeptSample>,
    left_out: Vec<(String, u64)>,
}

impl ImportedResults {
    /// Returns the number of samples.
    pub fn samples(&self) -> usize {
        self.samples.len()
    }

    /// Returns the number of cells.
    pub fn cells(&self) -> usize {
        self.head.cells.len()
    }

    /// Returns the names of the targets.
    pub fn targets(&self) -> impl Iterator<Item = &str> {
        self.head.targets.iter().map(|target| target.path.as_str())
    }

    /// Returns the omitted parts of the files, with their numbers.
    pub fn left_out(&self) -> &[(String, u64)] {
        &self.left_out
    }

    /// Makes a record of it; when that fails nothing is left.
    pub fn write(self, path: &Path) -> Result<(), RecordError> {
        let mut record = Record::create(path, &self.head, 0)?;
        let samples = self.samples.into_iter().map(|kept| (kept.key(), kept.sample()));
        let written = record.add_imported(samples);
        if written.is_err() {
            drop(record);
            // Remove the record just made, which is empty.
            drop(std::fs::remove_file(path));
        }
        written
    }
}
