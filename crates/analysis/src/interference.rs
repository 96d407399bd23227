//! The cost of a load beside a workload: each level against none, in pairs of the same round. Also the first
//! level at which the workload is certainly slower.

use std::{cmp::Ordering, collections::BTreeMap};

use nilometer_model::{BackgroundDone, ByteRate, Nanos, Phase, statistics::Summary};
use nilometer_plan::{BackgroundLoad, DURATION_LEAST, FRAMES_LEAST};

use crate::{
    CellOutcome, Quantity, StageFigures,
    by_round::{CellRounds, round_means},
    comparison::differences,
    effect::{Answer, Effect},
    losses::{fewer_losses, lost_words},
    parameters::{BESIDE, CommonParameters, words},
};

/// A workload at several levels of a load, on a target in a phase.
#[derive(Debug, Clone, PartialEq)]
pub struct Interference {
    /// The part of the workload.
    pub phase: Phase,
    /// Index into [`nilometer_plan::Results::targets`].
    pub target: usize,
    /// The quantity of the rates.
    pub quantity: Quantity,
    /// The parameters that tell the stage's workloads apart, without the load; empty for a single one.
    pub workload: String,
    /// Its rate without the load; `None` if it has no valid repeat.
    pub alone: Option<Summary>,
    /// The 99th percentile of its latency without the load.
    pub alone_p99: Option<Nanos>,
    /// The levels from the lowest up.
    pub levels: Vec<LoadLevel>,
    /// Loads that did nothing in any valid repeat, in words: they are no levels.
    pub idle: Vec<String>,
}

/// A level of a load.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadLevel {
    /// Index into [`nilometer_plan::Results::cells`].
    pub cell: usize,
    /// The load, in words.
    pub load: String,
    /// The rate beside it; `None` if no repeat is valid.
    pub rate: Option<Summary>,
    /// The ratio to the rate without the load; `None` without pairs.
    pub effect: Option<Effect>,
    /// The 99th percentile of the latency beside it.
    pub p99: Option<Nanos>,
    /// The work of the load, over all valid repeats.
    pub done: BackgroundDone,
}

/// The results for each phase, target and workload of a stage with a load.
pub(crate) fn interferences(
    stage: &StageFigures<'_>,
    load: impl Fn(usize) -> Option<BackgroundLoad>,
) -> Vec<Interference> {
    let mut found = Vec::new();
    for question in &stage.questions {
        for target in stage.targets() {
            let here = stage.outcomes.iter().filter(|of| (of.phase, of.target) == (question.phase, target));
            let mut groups: BTreeMap<String, Vec<BesideOutcome<'_>>> = BTreeMap::new();
            for outcome in here {
                let (Some(load), Some(cell)) = (load(outcome.cell), stage.cell(outcome.cell)) else {
                    continue;
                };
                let own = own(&cell.parameters, &stage.varying.names());
                groups.entry(own).or_default().push(BesideOutcome { outcome, load });
            }
            let of_group =
                |(workload, of)| interference(question.phase, target, question.quantity, workload, of);
            found.extend(groups.into_iter().filter_map(of_group));
        }
    }
    found
}

/// An outcome with the load beside it.
struct BesideOutcome<'a> {
    outcome: &'a CellOutcome<'a>,
    load: BackgroundLoad,
}

impl BesideOutcome<'_> {
    /// Returns true if the workload was measured, and its load certainly did nothing.
    fn is_idle(&self) -> bool {
        let BackgroundDone { operations, frames, .. } = done(self.outcome);
        let is_known = self.outcome.usable().any(|measured| measured.sample.background.is_some());
        is_known && operations == 0 && frames.is_none_or(|frames| frames.due == 0)
    }
}

/// The varying parameters of a cell, without its load.
fn own(cell: &CommonParameters, varying: &[&String]) -> String {
    words(cell, varying.iter().copied().filter(|name| !name.starts_with(BESIDE)))
}

fn interference(
    phase: Phase,
    target: usize,
    quantity: Quantity,
    workload: String,
    mut all: Vec<BesideOutcome<'_>>,
) -> Option<Interference> {
    let alone = all.remove(all.iter().position(|of| of.load.is_none())?).outcome;
    all.retain(|of| !of.load.is_none());
    if all.is_empty() {
        return None;
    }
    // From the lowest level up, in any order of the plan.
    all.sort_by(|a, b| a.load.amount().partial_cmp(&b.load.amount()).unwrap_or(Ordering::Equal));
    let (idle, all): (Vec<_>, Vec<_>) = all.into_iter().partition(BesideOutcome::is_idle);
    let pairs = all
        .iter()
        .map(|of| CellRounds { row: of.outcome.cell, values: differences(of.outcome, alone, quantity) });
    let means = round_means(&pairs.collect::<Vec<_>>());
    let levels = means.iter().flat_map(|found| &found.cells);
    let effects: BTreeMap<usize, Effect> =
        levels.map(|(cell, level)| (*cell, level.difference().effect())).collect();
    Some(Interference {
        phase,
        target,
        quantity,
        workload,
        alone: alone.summary(quantity),
        alone_p99: p99(alone),
        levels: all.iter().map(|of| level(of, quantity, effects.get(&of.outcome.cell).copied())).collect(),
        idle: idle.iter().map(|of| level_words(&of.load)).collect(),
    })
}

fn level(of: &BesideOutcome<'_>, quantity: Quantity, effect: Option<Effect>) -> LoadLevel {
    LoadLevel {
        cell: of.outcome.cell,
        load: level_words(&of.load),
        rate: of.outcome.summary(quantity),
        effect,
        p99: p99(of.outcome),
        done: done(of.outcome),
    }
}

fn p99(outcome: &CellOutcome<'_>) -> Option<Nanos> {
    let latency = outcome.latency.filter(|latency| latency.count() > 0)?;
    Some(Nanos(latency.quantile(0.99)))
}

fn done(outcome: &CellOutcome<'_>) -> BackgroundDone {
    let all = outcome.usable().filter_map(|measured| measured.sample.background);
    all.fold(BackgroundDone::default(), BackgroundDone::and)
}

/// `2 workers of stream, write only at 50 MB/s (64 MiB by 1 MiB, buffered)`.
fn level_words(load: &BackgroundLoad) -> String {
    let words = load.to_string();
    words.strip_prefix("beside ").map(str::to_owned).unwrap_or(words)
}

impl Interference {
    /// The first level at which the workload is certainly slower by more than the margin.
    pub fn slower_from(&self, margin: f64) -> Option<&LoadLevel> {
        self.levels.iter().find(|level| level.answer(margin) == Answer::Slower)
    }

    /// The first level at which the load, if it is an instrument, loses frames.
    pub fn loses_from(&self) -> Option<&LoadLevel> {
        self.levels.iter().find(|level| level.done.frames.is_some_and(|frames| frames.lost > 0))
    }

    /// The answer, then the answer for the instrument if the load is one, then each level.
    pub fn sentences(&self, margin: f64) -> Vec<String> {
        let mut sentences = vec![self.verdict(margin)];
        sentences.extend(self.instrument_verdict());
        let show = |rate: f64| self.quantity.show(rate).trim_end().to_owned();
        let told = |name: &str, rate: Option<Summary>, p99: Option<Nanos>| {
            let rate = rate.map_or_else(|| "no valid repeat".into(), |rate| show(rate.mean));
            let p99 = p99.map(|p99| format!(", p99 {p99}")).unwrap_or_default();
            format!("{name}: {rate}{p99}")
        };
        sentences.push(told("alone", self.alone, self.alone_p99));
        for level in &self.levels {
            let beside = format!("beside {}", level.load);
            let got = level.got();
            sentences.push(format!("{}{got}", told(&beside, level.rate, level.p99)));
        }
        sentences.extend(
            self.idle.iter().map(|load| format!("{load} did nothing beside it: this level does not count")),
        );
        sentences
    }

    /// The cost of the workload for an instrument that is the load; `None` if the load is no instrument.
    fn instrument_verdict(&self) -> Option<String> {
        self.levels.iter().find_map(|level| level.done.frames)?;
        let last = self.levels.last()?;
        if let Some(level) = self.loses_from() {
            let words = level.done.frames.map(|frames| lost_words(&frames)).unwrap_or_default();
            return Some(format!("{} beside it loses frames: {words}: the first such level", level.load));
        }
        if let Some(unknown) = self.levels.iter().rev().find(|level| level.done.frames.is_none()) {
            let load = &unknown.load;
            return Some(format!(
                "not decided whether {load} beside it loses frames: no repeat beside it is valid"
            ));
        }
        let frames = last.done.frames?;
        if frames.due < FRAMES_LEAST || last.done.wall < DURATION_LEAST {
            let wall = last.done.wall;
            return Some(format!(
                "not decided whether {} beside it loses frames: {} frames in {wall} are too few",
                last.load, frames.due
            ));
        }
        let fewer = fewer_losses(last.done.wall).join("; ");
        Some(format!("{} beside it loses no frame at any level: beside the last one {fewer}", last.load))
    }

    fn verdict(&self, margin: f64) -> String {
        let all =
            |answers: &[Answer]| self.levels.iter().all(|level| answers.contains(&level.answer(margin)));
        let last = self.levels.last().map(|level| level.load.clone()).unwrap_or_default();
        match self.slower_from(margin) {
            Some(level) => {
                let by = level.effect.map(|effect| effect.loss_words()).unwrap_or_default();
                format!("beside {} it is {by} than alone: the first such level", level.load)
            }
            None if self.levels.is_empty() => {
                "the cost of a load is not decided: no load did anything".to_owned()
            }
            None if all(&[Answer::Alike, Answer::Faster]) => {
                format!("not slower by more than {margin} % at any level, the last of which is {last}")
            }
            None => {
                format!("not decided whether it is slower by more than {margin} % at any level up to {last}")
            }
        }
    }
}

impl LoadLevel {
    fn answer(&self, margin: f64) -> Answer {
        self.effect.map_or(Answer::Undecided, |effect| effect.answer(margin))
    }

    /// The load's own result.
    fn got(&self) -> String {
        let seconds = self.done.wall.seconds();
        if seconds <= 0.0 {
            return String::new();
        }
        let operations = self.done.operations as f64 / seconds;
        let rate = self.done.rate();
        if let Some(frames) = &self.done.frames {
            return format!("; the recorder stored {rate} of the instrument, {}", lost_words(frames));
        }
        let moved = if rate > ByteRate(0.0) { format!("{rate}, ") } else { String::new() };
        let latency = self.done.latency().map(|mean| format!(" of {mean} each")).unwrap_or_default();
        format!("; the load did {moved}{operations:.0} operations/s{latency}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Study, made_up::stage};
    use nilometer_model::{FramesBeside, Invalid, Sample};
    use nilometer_plan::{Key, Measured, Results};

    const TEXT: &str = "[stage.workload.stream]\nfile_size = \"64 MiB\"\nblock_size = \"1 MiB\"\naccess = \"best\"\n[stage.background]\nworkers = [0, 1, 2]\n[stage.background.workload.stream]\nfile_size = \"64 MiB\"\nblock_size = \"1 MiB\"\naccess = \"best\"\n";

    /// Ten rounds with a drift, at three levels with these shares of the rate.
    fn results(shares: [f64; 3]) -> Results {
        let cells = stage("files", TEXT);
        let mut samples = Vec::new();
        for (cell, share) in shares.into_iter().enumerate() {
            for repeat in 0..10 {
                let key = Key { target: 0, cell, repeat, phase: Phase::Write };
                let drift =
                    1.0 + 0.05 * f64::from(repeat) + 0.002 * f64::from((repeat * 7 + cell as u32 * 3) % 5);
                #[expect(clippy::cast_sign_loss, reason = "it is positive")]
                let bytes = (1e9 * share * drift) as u64;
                let done = BackgroundDone {
                    wall: Nanos(1_000_000_000),
                    bytes: 300_000_000,
                    operations: 300,
                    latency_sum: Nanos(900_000_000),
                    errors: 0,
                    frames: None,
                };
                let background = (cell > 0).then_some(done);
                let wall = Nanos(1_000_000_000);
                let sample = Sample { bytes, operations: 100, wall, background, ..Sample::new(Nanos(0)) };
                samples.push(Measured { key, sample });
            }
        }
        Results { cells, samples, margin: 5.0, repeats: 10, ..Results::default() }
    }

    #[test]
    fn the_first_level_that_costs_something_is_named() {
        let results = results([1.0, 0.99, 0.7]);
        let study = Study::of(&results);
        let [found] = study.stages[0].interferences.as_slice() else { panic!("one phase on one target") };
        let told = found.sentences(5.0);
        assert!(told[0].starts_with("beside 2 workers of stream (64 MiB by 1 MiB"), "{}", told[0]);
        assert!(told[0].contains(" it is 30 % slower ("), "{}", told[0]);
        assert!(told[1].starts_with("alone: 1.2"), "{}", told[1]);
        assert!(told[3].ends_with("the load did 300 MB/s, 300 operations/s of 3 ms each"), "{}", told[3]);
    }

    #[test]
    fn a_load_that_did_nothing_is_no_level() {
        let mut results = results([1.0, 0.99, 0.7]);
        let told = |results: &Results| Study::of(results).stages[0].interferences[0].sentences(5.0);
        let rest = |results: &mut Results, cell: usize| {
            for measured in results.samples.iter_mut().filter(|measured| measured.key.cell == cell) {
                measured.sample.background = Some(BackgroundDone::default());
            }
        };
        rest(&mut results, 2);
        let said = told(&results);
        assert!(
            said[0].starts_with("not slower by more than 5 % at any level, the last of which is 1 worker"),
            "{said:?}"
        );
        let idle = said.last().expect("sentences");
        assert!(
            idle.starts_with("2 workers of")
                && idle.ends_with("did nothing beside it: this level does not count"),
            "{idle}"
        );
        rest(&mut results, 1);
        assert_eq!(told(&results)[0], "the cost of a load is not decided: no load did anything");
    }

    #[test]
    fn an_instrument_that_is_the_load_has_a_verdict_of_its_own() {
        let mut results = results([1.0, 0.99, 0.98]);
        let frames = |lost| FramesBeside {
            due: 100,
            lost,
            allowance: Nanos::from_millis(500),
            longest_stall: Nanos::from_millis(if lost > 0 { 700 } else { 8 }),
            late: 0,
        };
        let told = |results: &Results| Study::of(results).stages[0].interferences[0].sentences(5.0);
        let put = |results: &mut Results, lost: [u64; 3]| {
            for measured in &mut results.samples {
                if let Some(done) = &mut measured.sample.background {
                    done.frames = Some(frames(lost[measured.key.cell]));
                }
            }
        };
        put(&mut results, [0, 0, 3]);
        let said = told(&results);
        let lost = "beside it loses frames: 3.00 % of frames (30 of 1000) lost, the longest stall was 700 ms";
        assert!(said[1].contains(lost), "{}", said[1]);
        assert!(said[3].ends_with("no frame of 1000 lost, the longest stall was 8 ms"), "{}", said[3]);
        put(&mut results, [0, 0, 0]);
        let said = told(&results);
        assert!(
            said[1].contains("loses no frame at any level: beside the last one fewer than"),
            "{}",
            said[1]
        );
        // A machine that is too busy at the last level alone hides no loss at the first.
        for (lost, first) in [(3, " beside it loses frames: "), (0, "not decided whether 2 workers")] {
            put(&mut results, [0, lost, 0]);
            let mut partly = results.clone();
            for measured in partly.samples.iter_mut().filter(|measured| measured.key.cell == 2) {
                measured.sample.invalid = Some(Invalid::Slow(None));
            }
            assert!(told(&partly)[1].contains(first), "{:?}", told(&partly));
        }
        results.samples.retain(|measured| measured.key.repeat == 0);
        for measured in &mut results.samples {
            if let Some(done) = &mut measured.sample.background {
                done.frames = Some(FramesBeside { due: 7, ..frames(0) });
            }
        }
        assert!(told(&results)[1].starts_with("not decided whether"), "{}", told(&results)[1]);
    }

    #[test]
    fn where_none_costs_anything_that_is_said_and_too_few_rounds_decide_nothing() {
        let mut results = results([1.0, 0.999, 1.001]);
        let told =
            |results: &Results| Study::of(results).stages[0].interferences[0].sentences(5.0)[0].clone();
        assert!(told(&results).starts_with("not slower by more than 5 % at any level"), "{}", told(&results));
        results.samples.retain(|measured| measured.key.repeat == 0);
        assert!(told(&results).starts_with("not decided"), "{}", told(&results));
    }
}
