//! Instruments recorded only at full speed, and never at their own rate: there is a figure, but no verdict.

use std::{collections::BTreeMap, fmt};

use nilometer_model::{
    ByteRate, Goal, Sample,
    sustained::{RecorderWait, SustainedRate},
};
use nilometer_plan::{Measured, Onto, RecordedInstrument, RecordingRun, Results};

use crate::{
    by_round::{CellRounds, RoundLog, round_means},
    effect::Effect,
    letter,
};

/// The rate of an instrument on a target.
#[derive(Debug, Clone, PartialEq)]
pub struct FullSpeed {
    /// Index into [`Results::targets`].
    pub target: usize,
    /// The instrument.
    pub instrument: RecordedInstrument,
    /// The rate of all instruments together.
    pub needed: ByteRate,
    /// The long-term rate of the target; `None` if the passes are too short, or none shows a rate. If the recorder
    /// waited for a processor in all of them, it is a lower bound.
    pub limit: Option<SustainedRate>,
    /// Number of passes.
    pub passes: usize,
    /// Number of valid passes.
    pub valid: usize,
    /// The comparison with the fastest target in pairs of the same round, in words. `None` for that target
    /// itself, and without pairs.
    pub compared: Option<String>,
}

/// The results in the order of cells, then of targets.
pub(crate) fn full_speeds(results: &Results) -> Vec<FullSpeed> {
    let mut groups: Vec<Passes<'_>> = Vec::new();
    for measured in &results.samples {
        let Some(run) = results.recording(measured.key).filter(|run| run.onto == Onto::Target) else {
            continue;
        };
        if measured.sample.ingest.is_none() {
            continue;
        }
        let instrument = run.recorded_instrument();
        let target = measured.key.target;
        match groups.iter_mut().find(|of| of.target == target && of.instrument == instrument) {
            Some(known) => known.samples.push(measured),
            None => groups.push(Passes { target, instrument, run, samples: vec![measured] }),
        }
    }
    let mut found: Vec<FullSpeed> = Vec::new();
    for passes in &groups {
        let Some(alone) = passes.full_speed() else { continue };
        let fastest = groups.iter().filter(|of| of.instrument == passes.instrument);
        let fastest = fastest.max_by(|one, other| one.mean().total_cmp(&other.mean()));
        let compared = fastest.and_then(|fastest| fastest.against(passes, results.margin));
        found.push(FullSpeed { compared, ..alone });
    }
    found.sort_by_key(|of| of.target);
    found
}

/// All recordings of an instrument on a target.
struct Passes<'a> {
    target: usize,
    instrument: RecordedInstrument,
    run: &'a RecordingRun,
    samples: Vec<&'a Measured>,
}

impl Passes<'_> {
    /// `None` if it was also recorded otherwise: then there is a verdict.
    fn full_speed(&self) -> Option<FullSpeed> {
        let goal = |measured: &&Measured| measured.sample.ingest.as_ref().map(|ingest| ingest.goal);
        if self.samples.iter().any(|measured| goal(measured) != Some(Goal::Limit)) {
            return None;
        }
        let alone = |sample: &&Sample| {
            sample.ingest.as_ref().is_some_and(|ingest| ingest.company.is_empty() && ingest.is_undisturbed())
        };
        let passes: Vec<&Sample> =
            self.samples.iter().map(|measured| &measured.sample).filter(alone).collect();
        Some(FullSpeed {
            target: self.target,
            instrument: self.instrument.clone(),
            needed: self.run.rate(),
            limit: Sample::long_run(&passes),
            valid: passes.iter().filter(|sample| sample.invalid.is_none()).count(),
            passes: passes.len(),
            compared: None,
        })
    }

    /// The rates of valid passes, by round. A lower bound is no rate to compare.
    fn rates(&self) -> BTreeMap<u32, f64> {
        let valid = self.samples.iter().filter(|measured| is_rate(&measured.sample));
        let rates = valid.map(|measured| (measured.key.repeat, measured.sample.sustained_rate().0));
        rates.filter(|(_, rate)| *rate > 0.0).collect()
    }

    /// By how much the rate may be higher without the recorder's wait for a processor, on the logarithmic scale.
    fn raised(&self) -> f64 {
        let used = self.samples.iter().filter(|measured| is_rate(&measured.sample));
        let waits = used.map(|measured| measured.sample.recorder_wait());
        -(-waits.fold(RecorderWait::default(), RecorderWait::and).share()).ln_1p()
    }

    fn mean(&self) -> f64 {
        let rates = self.rates();
        rates.values().sum::<f64>() / rates.len().max(1) as f64
    }

    /// The ratio to another target, in words.
    fn against(&self, other: &Passes<'_>, margin: f64) -> Option<String> {
        if self.target == other.target {
            return None;
        }
        let others = other.rates();
        let ratio =
            |(round, rate): (u32, f64)| Some(RoundLog { round, log: (rate / others.get(&round)?).ln() });
        let pairs = CellRounds { row: 0, values: self.rates().into_iter().filter_map(ratio).collect() };
        let found = round_means(&[pairs])?.overall.difference().effect();
        // Each target may take more than its passes show, by its recorder's wait.
        let effect = Effect { low: found.low - other.raised(), high: found.high + self.raised(), ..found };
        Some(effect.words(margin, &letter(self.target), &letter(other.target)))
    }
}

/// Returns true if a pass shows a rate, and not only a lower bound.
fn is_rate(pass: &Sample) -> bool {
    pass.invalid.is_none() && !pass.recorder_wait().is_long()
}

impl fmt::Display for FullSpeed {
    /// The text after the target's name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FullSpeed { needed, limit, passes, valid, compared, .. } = self;
        let taken = match limit {
            Some(bound) if bound.is_lower_bound() => format!(
                "sustains at least {} ({}, so the storage may take more), {:.1} times the {needed} that the instrument \
                 delivers",
                bound.low,
                bound.waited,
                bound.low.0 / needed.0
            ),
            Some(SustainedRate { rate, low, high, .. }) => format!(
                "sustains {rate} ({low} to {high}), {:.1} times the {needed} that the instrument delivers",
                rate.0 / needed.0
            ),
            None if *valid == 0 => format!("has no known rate: none of {passes} passes is valid"),
            None => {
                format!("has no known sustained rate: {valid} valid passes were too short")
            }
        };
        let compared = compared.as_ref().map(|words| format!("; {words}")).unwrap_or_default();
        write!(
            f,
            "{taken}{compared}; only a recording at its own pace shows whether it carries it (goal = \
             \"pace\")"
        )
    }
}

#[cfg(test)]
mod tests {
    use nilometer_model::{Bytes, Ingest, Invalid, Nanos, Phase, Series};
    use nilometer_plan::{Cell, Key, TargetEntry};

    use super::*;
    use crate::{Study, made_up::camera};

    /// Three passes of 30 s at 250 MB/s, with this goal.
    fn results(goal: Goal, invalid: Option<&Invalid>) -> Results {
        let run = RecordingRun { goal, ..camera("camera") };
        let pass = |repeat| {
            let mut series = Series::new(Nanos(0));
            for frame in 1..=7500_u64 {
                let wobble = (frame * 7919 % 1000) * 1000;
                series.add(Nanos(frame * 4_000_000 + wobble), 1_000_000);
            }
            let ingest = Ingest { goal, frame_size: Bytes(1_000_000), count: 1, ..Ingest::default() };
            let sample = Sample {
                bytes: 7_500_000_000,
                operations: 7500,
                wall: Nanos(30_000_000_000),
                series,
                ingest: Some(ingest),
                invalid: invalid.cloned(),
                ..Sample::new(Nanos(0))
            };
            Measured { key: Key { target: 0, cell: 0, repeat, phase: Phase::Ingest }, sample }
        };
        Results {
            cells: vec![Cell::recording("camera", run)],
            samples: (0..3).map(pass).collect(),
            targets: vec![TargetEntry { path: "/data".into(), ..TargetEntry::default() }],
            ..Results::default()
        }
    }

    #[test]
    fn what_was_recorded_at_full_speed_only_has_its_figure() {
        let results = results(Goal::Limit, None);
        let study = Study::of(&results);
        let [of] = study.full_speeds.as_slice() else { panic!("one: {:?}", study.full_speeds) };
        let words = of.to_string();
        assert!(words.starts_with("sustains 250 MB/s (2"), "{words}");
        assert!(words.contains("2.5 times the 100 MB/s that the instrument delivers"), "{words}");
        assert!(study.verdicts.is_empty(), "there is no verdict");
    }

    /// Eight rounds in which each pass on the second target takes half as long.
    #[test]
    fn targets_are_compared_in_pairs_of_the_same_round() {
        let one = results(Goal::Limit, None);
        let mut samples = Vec::new();
        for repeat in 0..8 {
            for target in 0..2 {
                let mut sample = one.samples[0].sample.clone();
                let speed = (1 + target as u64) * 100 + u64::from(repeat);
                (sample.bytes, sample.wall) = (3_000_000_000, Nanos(3_000_000_000_000 / speed));
                sample.series = Series::new(Nanos(0));
                (1..=3000_u64)
                    .for_each(|frame| sample.series.add(Nanos(frame * 1_000_000_000 / speed), 1_000_000));
                let key = Key { target, cell: 0, repeat, phase: Phase::Ingest };
                samples.push(Measured { key, sample });
            }
        }
        let targets = vec![one.targets[0].clone(); 2];
        let both = Results { samples, targets, margin: 5.0, repeats: 8, ..one };
        let told: Vec<String> = full_speeds(&both).iter().map(ToString::to_string).collect();
        assert!(told[0].contains("; B is ") && told[0].contains(" times as fast as A ("), "{told:?}");
        assert!(!told[1].contains("as fast as"), "the fastest is compared with none: {told:?}");
        let mut unrepeated = both.clone();
        unrepeated.samples.truncate(2);
        assert!(!full_speeds(&unrepeated)[0].to_string().contains("is 1"), "one pair decides nothing");
    }

    #[test]
    fn passes_whose_recorder_waited_are_a_lower_bound_and_no_rate_to_compare() {
        let mut results = results(Goal::Limit, None);
        for measured in &mut results.samples {
            measured.sample.run_delay = Nanos(9_000_000_000);
        }
        let words = full_speeds(&results)[0].to_string();
        assert!(
            words.starts_with("sustains at least 2") && words.contains("so the storage may take more"),
            "{words}"
        );
        assert!(words.contains("the recorder waited 27 s of 90 s for a processor"), "{words}");
        let mut fast = results.samples.clone();
        for measured in &mut fast {
            measured.key.target = 1;
            measured.sample.run_delay = Nanos(0);
        }
        results.targets.push(results.targets[0].clone());
        results.samples.extend(fast);
        let compared = full_speeds(&results).into_iter().filter_map(|of| of.compared).count();
        assert_eq!(compared, 0, "a lower bound is not slower than a rate");
    }

    #[test]
    fn where_nothing_is_known_that_is_said_and_where_there_is_a_verdict_nothing() {
        let hung = self::results(Goal::Limit, Some(&Invalid::Hung));
        let words = full_speeds(&hung)[0].to_string();
        assert!(words.starts_with("has no known rate: none of 3 passes is valid"), "{words}");
        assert!(full_speeds(&results(Goal::Pace, None)).is_empty());
    }
}
