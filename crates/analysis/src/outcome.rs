//! What a phase of a cell came to on a target, over its repeats.

use nilometer_model::{Group, Histogram, Nanos, Results, Sample, plan::Phase, statistics::Summary};

/// A phase of a cell on a target.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Index into [`Results::targets`].
    pub target: usize,
    /// Index into [`Results::cells`].
    pub cell: usize,
    /// The part of the cell.
    pub phase: Phase,
    /// Bytes a second, over repeats; none where no data are moved or no repeat is valid.
    pub rate: Option<Summary>,
    /// Operations a second, over repeats.
    pub operations: Option<Summary>,
    /// Processors this process kept busy, over repeats.
    pub cores: Option<Summary>,
    /// From issue to completion, all valid repeats together.
    pub latency: Histogram,
    /// Repeats that can be used.
    pub valid: usize,
    /// Why others can't: each reason with how many repeats.
    pub invalid: Vec<(String, usize)>,
}

/// Everything that was measured but ingest, by cell, phase and target in the plan's order.
pub fn outcomes(results: &Results) -> Vec<Outcome> {
    let mut keys: Vec<_> = results.samples.iter().map(|m| (m.key.cell, m.key.phase, m.key.target)).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter()
        .filter(|(_, phase, _)| *phase != Phase::Ingest)
        .map(|(cell, phase, target)| {
            let samples = results
                .samples
                .iter()
                .filter(|m| (m.key.cell, m.key.phase, m.key.target) == (cell, phase, target));
            let samples: Vec<&Sample> = samples.map(|m| &m.sample).collect();
            let latency = results.latencies.get(&Group { cell, phase, target }).cloned();
            outcome(cell, phase, target, &samples, latency.unwrap_or_default())
        })
        .collect()
}

fn outcome(cell: usize, phase: Phase, target: usize, samples: &[&Sample], latency: Histogram) -> Outcome {
    let valid: Vec<&Sample> = samples.iter().copied().filter(|sample| sample.invalid.is_none()).collect();
    let summary =
        |value: fn(&Sample) -> f64| Summary::of(&valid.iter().map(|s| value(s)).collect::<Vec<_>>());
    Outcome {
        target,
        cell,
        phase,
        rate: summary(|sample| sample.rate().0).filter(|summary| summary.mean > 0.0),
        operations: summary(Sample::operation_rate),
        cores: summary(cores),
        latency,
        valid: valid.len(),
        invalid: reasons(samples),
    }
}

/// Processors this process kept busy. The whole machine's figure is in the record: its resolution of 10 ms is too
/// coarse for short phases.
fn cores(sample: &Sample) -> f64 {
    if sample.wall == Nanos(0) {
        0.0
    } else {
        (sample.user + sample.system).seconds() / sample.wall.seconds()
    }
}

fn reasons(samples: &[&Sample]) -> Vec<(String, usize)> {
    let mut reasons: Vec<(String, usize)> = Vec::new();
    for why in samples.iter().filter_map(|sample| sample.invalid.as_ref()).map(ToString::to_string) {
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, count)) => *count += 1,
            None => reasons.push((why, 1)),
        }
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_model::{Invalid, Key, Measured};

    fn measured(repeat: u32, bytes: u64, invalid: Option<Invalid>) -> Measured {
        let key = Key { target: 0, cell: 0, repeat, phase: Phase::Write };
        Measured {
            key,
            sample: Sample { bytes, wall: Nanos(1_000_000_000), invalid, ..Sample::new(Nanos(0)) },
        }
    }

    #[test]
    fn invalid_repeats_are_named_and_left_out_of_the_mean() {
        let samples =
            vec![measured(0, 100, None), measured(1, 300, None), measured(2, 9, Some(Invalid::WarmRead))];
        let outcomes = outcomes(&Results { samples, ..Results::default() });
        assert_eq!(outcomes.len(), 1);
        let outcome = &outcomes[0];
        assert_eq!(
            (outcome.valid, outcome.rate.expect("two repeats").mean.to_bits()),
            (2, 200_f64.to_bits())
        );
        assert_eq!(outcome.invalid, [(Invalid::WarmRead.to_string(), 1)]);
    }
}
