//! The cost of recording packets over their size and rate, and the rate at which loss begins.

use nilometer_model::{
    ByteRate, Bytes, Frequency, Goal, Ingest, Invalid, Nanos, PacketTotals, Sample, statistics::Summary,
};
use nilometer_plan::{Measured, Onto, RecordingRun, Results};

/// Packets of one size at several rates, on one target.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Index into [`Results::targets`].
    pub target: usize,
    /// True if nothing was stored: writes did nothing and always succeeded.
    pub onto_nothing: bool,
    /// The longest packet, including parts that are not stored.
    pub size: Bytes,
    /// Results by rate, the lowest first: at least two.
    pub rates: Vec<AtRate>,
}

/// All repeats at one rate.
#[derive(Debug, Clone, PartialEq)]
pub struct AtRate {
    /// The planned rate.
    pub rate: ByteRate,
    /// Processor time per stored packet, over the valid repeats; `None` if none was stored.
    pub cost: Option<Nanos>,
    /// The share of lost packets, over the valid repeats.
    pub lost: f64,
    /// Number of valid repeats.
    pub valid: u32,
    /// Number of valid repeats with loss.
    pub lossy: u32,
    /// The reason why the others are invalid.
    pub invalid: Option<Invalid>,
}

/// The rates between which loss begins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LossBegins {
    /// The highest rate below it at which no repeat lost packets.
    pub carried: Option<ByteRate>,
    /// The lowest rate at which most repeats lost packets.
    pub lost: ByteRate,
}

impl Curve {
    /// The rates between which loss begins; `None` if no tested rate loses packets.
    pub fn loss_begins(&self) -> Option<LossBegins> {
        let at = self.rates.iter().position(AtRate::loses)?;
        let carried = self.rates[..at].iter().rev().find(|rate| rate.valid > 0 && rate.lossy == 0);
        Some(LossBegins { carried: carried.map(|rate| rate.rate), lost: self.rates[at].rate })
    }
}

impl AtRate {
    /// Returns true if most repeats lost packets.
    pub fn loses(&self) -> bool {
        2 * self.lossy > self.valid
    }
}

/// A recording over loopback by itself, at a given rate.
type Made<'a> = (&'a Sample, &'a Ingest, &'a PacketTotals);

/// The key of a curve: target, whether anything was stored, the size, and all other parameters except the rate.
type Group = (usize, bool, Bytes, String);

/// All curves: by target, those without storage first, by size.
pub fn curves(results: &Results) -> Vec<Curve> {
    let mut made: Vec<(Group, Made<'_>)> = Vec::new();
    for measured in &results.samples {
        if let Some(of) = of(measured) {
            let run = results.recording(measured.key);
            let on_target = run.is_none_or(|run| run.onto == Onto::Target);
            let else_asked = run.map(but_the_rate).unwrap_or_default();
            made.push(((measured.key.target, on_target, of.2.size, else_asked), of));
        }
    }
    made.sort_by(|(a, (_, one, _)), (b, (_, other, _))| a.cmp(b).then(rate(one).0.total_cmp(&rate(other).0)));
    let all = made.chunk_by(|(a, _), (b, _)| a == b).map(|group| {
        let (target, on_target, size, _) = &group[0].0;
        let same_rate =
            |a: &(_, Made<'_>), b: &(_, Made<'_>)| rate(a.1.1).0.total_cmp(&rate(b.1.1).0).is_eq();
        let rates = group.chunk_by(same_rate).map(at_rate).collect();
        Curve { target: *target, onto_nothing: !on_target, size: *size, rates }
    });
    all.filter(|curve| curve.rates.len() > 1).collect()
}

/// The parameters of a cell, without the rate and its consequences.
fn but_the_rate(run: &RecordingRun) -> String {
    let mut asked = RecordingRun { duration: Nanos(0), keep: Bytes(0), repeats: 0, ..run.clone() };
    asked.swept.rate = None;
    asked.instrument.name = String::new();
    asked.instrument.frame_rate = Frequency(0.0);
    serde_json::to_string(&asked).unwrap_or_default()
}

fn of(measured: &Measured) -> Option<Made<'_>> {
    let ingest = measured.sample.ingest.as_ref()?;
    let alone = ingest.company.is_empty()
        && ingest.is_undisturbed()
        && ingest.count == 1
        && ingest.readers.iter().all(|reader| reader.after);
    let is_wanted = alone && matches!(ingest.goal, Goal::Pace | Goal::Search);
    Some((&measured.sample, ingest, ingest.packets.as_ref()?)).filter(|_| is_wanted)
}

fn rate(ingest: &Ingest) -> ByteRate {
    ByteRate::of(ingest.frame_size.0, ingest.period)
}

fn at_rate<K>(group: &[(K, Made<'_>)]) -> AtRate {
    let made = || group.iter().map(|(_, made)| made);
    let valid: Vec<&Made<'_>> = made().filter(|(sample, ..)| sample.invalid.is_none()).collect();
    let mean = |of: &dyn Fn(&Made<'_>) -> Option<f64>| {
        Summary::of(&valid.iter().filter_map(|made| of(made)).collect::<Vec<_>>()).map(|summary| summary.mean)
    };
    let cost = |made: &Made<'_>| processor_cost(made.0, made.2).map(|cost| cost.0 as f64);
    let lost = |made: &Made<'_>| Some(made.2.lost() as f64 / made.2.due.max(1) as f64);
    #[expect(clippy::cast_sign_loss, reason = "times are not negative")]
    let nanos = |mean: f64| Nanos(mean as u64);
    AtRate {
        rate: rate(group[0].1.1),
        cost: mean(&cost).map(nanos),
        lost: mean(&lost).unwrap_or_default(),
        valid: valid.len() as u32,
        lossy: valid.iter().filter(|made| made.2.lost() > 0).count() as u32,
        invalid: made().find_map(|(sample, ..)| sample.invalid.clone()),
    }
}

/// Processor time per stored packet: of the threads that receive and write, and of their helpers.
pub fn processor_cost(sample: &Sample, packets: &PacketTotals) -> Option<Nanos> {
    let spent = (sample.user + sample.system).0;
    (packets.stored > 0).then(|| Nanos(spent / packets.stored))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{
        camera,
        packets::{measured, results},
    };
    use nilometer_plan::Cell;

    #[test]
    fn what_differs_in_more_than_the_rate_is_a_curve_of_its_own() {
        let cell = |rate: f64, buffer: u64| {
            let mut run = RecordingRun { buffer: Bytes(buffer), ..camera("camera") };
            run.instrument.frame_rate = Frequency(rate);
            Cell::recording("packets", run)
        };
        let cells = [64 << 20, 1 << 30].iter().flat_map(|&buffer| [cell(10.0, buffer), cell(20.0, buffer)]);
        let cells = cells.collect();
        let samples = (0..4).map(|number| {
            let lost = if number < 2 { 50 } else { 0 };
            measured(number, 8000, if number % 2 == 0 { 1e8 } else { 2e8 }, lost, None)
        });
        let all = curves(&Results { cells, samples: samples.collect(), ..Results::default() });
        let mut lossy: Vec<_> = all.iter().map(|curve| curve.rates[0].lossy).collect();
        lossy.sort_unstable();
        assert_eq!(lossy, [0, 1], "the small buffer always loses, the large one never");
    }

    #[test]
    fn loss_begins_where_most_repeats_lose() {
        let slow = Some(Invalid::Slow(None));
        let samples = vec![
            measured(0, 8000, 4e8, 50, None),
            measured(0, 8000, 1e8, 0, None),
            measured(0, 8000, 2e8, 0, None),
            measured(0, 8000, 4e8, 25, None),
            measured(0, 8000, 2e8, 9, None),
            measured(0, 8000, 8e8, 0, slow.clone()),
            measured(0, 1000, 1e8, 0, None),
            measured(0, 1000, 2e8, 0, None),
            measured(1, 8000, 1e8, 0, None),
        ];
        let all = curves(&results(samples));
        let told: Vec<_> =
            all.iter().map(|curve| (curve.onto_nothing, curve.size.0, curve.rates.len())).collect();
        assert_eq!(told, [(true, 1000, 2), (true, 8000, 4)], "one rate is no curve");
        let rates = &all[1].rates;
        assert_eq!(
            rates.iter().map(|rate| (rate.valid, rate.lossy)).collect::<Vec<_>>(),
            [(1, 0), (2, 1), (2, 2), (0, 0)]
        );
        assert!((rates[2].lost - 0.000_75).abs() < 1e-9);
        assert_eq!((rates[0].cost, rates[3].cost, &rates[3].invalid), (Some(Nanos(2000)), None, &slow));
        // At 200 MB/s, one of two repeats lost packets: that rate is neither carried, nor the start of loss.
        let begins = all[1].loss_begins().expect("it loses");
        assert_eq!((begins.carried.map(|rate| rate.0.round()), begins.lost.0.round()), (Some(1e8), 4e8));
        assert_eq!(all[0].loss_begins(), None);
    }
}
