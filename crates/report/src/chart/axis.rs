//! Axes with round tick values and units.

use nilometer_model::Nanos;

/// The quantity on an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Bytes a second.
    ByteRate,
    /// Operations a second.
    Operations,
    /// Nanoseconds.
    Time,
    /// Counts of things, with their name.
    Count(&'static str),
}

/// Maps values to positions between 0 and 1.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Axis {
    from: f64,
    to: f64,
    is_log: bool,
    /// Values with their labels, ascending.
    pub(super) ticks: Vec<(f64, String)>,
    /// The axis's caption: its name or the unit of the labels.
    pub(super) name: String,
}

/// Beyond this factor between greatest and least, a linear axis hides the small ones.
const LINEAR_MOST: f64 = 40.0;

impl Unit {
    /// Returns the largest unit that is not above a value, as a factor and a name.
    fn scale(self, value: f64) -> (f64, &'static str) {
        let units: &[(f64, &str)] = match self {
            Unit::ByteRate => &[(1.0, "B/s"), (1e3, "kB/s"), (1e6, "MB/s"), (1e9, "GB/s"), (1e12, "TB/s")],
            Unit::Operations => {
                &[(1.0, "operations/s"), (1e3, "thousand operations/s"), (1e6, "million operations/s")]
            }
            Unit::Time => &[(1.0, "ns"), (1e3, "us"), (1e6, "ms"), (1e9, "s")],
            Unit::Count(what) => return (1.0, what),
        };
        *units.iter().rev().find(|(factor, _)| value >= *factor).unwrap_or(&units[0])
    }

    /// A round value with its own unit, for logarithmic axes.
    fn label(self, value: f64) -> String {
        #[expect(clippy::cast_sign_loss, reason = "times are at least zero")]
        match self {
            Unit::Time => Nanos(value.round() as u64).to_string(),
            Unit::ByteRate => nilometer_model::ByteRate(value).to_string(),
            Unit::Count(_) => rounded(value),
            Unit::Operations => {
                let (factor, _) = self.scale(value);
                let prefix = if factor < 1e3 {
                    ""
                } else if factor < 1e6 {
                    " k"
                } else {
                    " M"
                };
                format!("{}{prefix}", rounded(value / factor))
            }
        }
    }
}

impl Axis {
    /// Returns the position of a value: 0 at the axis's start, 1 at its end.
    pub(super) fn at(&self, value: f64) -> f64 {
        let place = if self.is_log {
            (value.max(f64::MIN_POSITIVE) / self.from).ln() / (self.to / self.from).ln()
        } else {
            (value - self.from) / (self.to - self.from)
        };
        if place.is_finite() { place.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Returns true if a value lies beyond the upper end.
    pub(super) fn ends_below(&self, value: f64) -> bool {
        value > self.to
    }

    /// Makes an axis from zero, or a logarithmic one if the values differ too much.
    pub(crate) fn of_values(unit: Unit, values: impl Iterator<Item = f64> + Clone) -> Self {
        let (least, most) = range(values);
        if least > 0.0 && most / least > LINEAR_MOST {
            return Axis::log(unit, least, most);
        }
        Axis::from_zero(unit, most)
    }

    /// From zero to at least `most`.
    pub(crate) fn from_zero(unit: Unit, most: f64) -> Self {
        let most = if most > 0.0 { most } else { 1.0 };
        let (factor, name) = unit.scale(most);
        let least = if matches!(unit, Unit::Count(_)) { 1.0 } else { 0.0 };
        let step = step(most / factor).max(least);
        let count = (most / factor / step - 1e-9).ceil().max(1.0);
        #[expect(clippy::cast_sign_loss, reason = "it is at least one")]
        let ticks = (0..=count as usize).map(|tick| {
            let value = tick as f64 * step;
            (value * factor, rounded(value))
        });
        let to = count * step * factor;
        Axis { from: 0.0, to, is_log: false, ticks: ticks.collect(), name: name.into() }
    }

    /// Makes a logarithmic axis with ticks at powers of ten, and at 2 and 5 times these if there are few.
    pub(crate) fn log(unit: Unit, least: f64, most: f64) -> Self {
        let least = least.max(1e-3);
        let lowest = least.log10().floor();
        let highest = (most.max(least * 1.01)).log10().ceil();
        let few = highest - lowest <= 2.0;
        let decades = (lowest as i32)..=(highest as i32);
        let factors: &[f64] = if few { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let candidates: Vec<f64> =
            decades.flat_map(|power| factors.iter().map(move |factor| factor * 10_f64.powi(power))).collect();
        let from = candidates.iter().copied().rfind(|tick| *tick <= least).unwrap_or(least);
        let to = candidates.iter().copied().find(|tick| *tick >= most).unwrap_or(most).max(from * 1.01);
        let ticks = candidates.into_iter().filter(|tick| (from..=to).contains(tick));
        let ticks: Vec<(f64, String)> = ticks.map(|tick| (tick, unit.label(tick))).collect();
        let name = if unit == Unit::Operations { "operations/s" } else { "" };
        Axis { from, to, is_log: true, ticks, name: name.into() }
    }

    /// Makes an axis whose ticks are the values of a parameter. It is logarithmic if they spread widely.
    pub(crate) fn of_parameter(name: &str, values: &[(f64, String)]) -> Self {
        let (least, most) = range(values.iter().map(|(value, _)| *value));
        let is_log = least > 0.0 && most / least >= 8.0;
        let (from, to) = if most > least { (least, most) } else { (least - 0.5, least + 0.5) };
        Axis { from, to, is_log, ticks: values.to_vec(), name: name.into() }
    }

    /// Makes an axis for the share of `what` that is at least as fast. Each further nine takes the same width,
    /// up to the last one that `count` values can show.
    pub(crate) fn of_nines(count: u64, what: &str) -> Self {
        let to = (count.max(2) as f64).log10().clamp(1.0, 6.0);
        let shares = [(0.0, "0"), (0.5, "50"), (0.9, "90"), (0.99, "99"), (0.999, "99.9"), (0.9999, "99.99")];
        let ticks = shares
            .iter()
            .map(|(share, label)| (nines(*share), (*label).to_owned()))
            .filter(|(place, _)| *place <= to + 1e-9)
            .collect();
        Axis {
            from: 0.0,
            to,
            is_log: false,
            ticks,
            name: format!("percentile: % of {what} with at most this delay"),
        }
    }

    /// Puts a name before the unit.
    pub(crate) fn named(mut self, what: &str) -> Self {
        self.name =
            [what, &self.name].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
        self
    }

    /// Ends at a value instead of at a tick.
    pub(crate) fn until(&mut self, value: f64) {
        if value > self.from {
            self.to = value;
            self.ticks.retain(|(tick, _)| *tick <= value * 1.000_001);
        }
    }

    /// Returns a label for each tick that has room, given the axis's length and the labels' widths. The last
    /// tick always has one.
    pub(super) fn labelled(&self, length: f64, room: impl Fn(&str) -> f64) -> Vec<(f64, &str)> {
        let mut kept: Vec<(f64, &str)> = Vec::new();
        let mut taken = f64::INFINITY;
        for (value, label) in self.ticks.iter().rev() {
            let middle = self.at(*value) * length;
            let half = room(label) / 2.0;
            if middle + half <= taken {
                kept.push((self.at(*value), label));
                taken = middle - half;
            }
        }
        kept.reverse();
        kept
    }
}

/// Returns the position of a share of operations on an axis of nines.
pub(crate) fn nines(share: f64) -> f64 {
    -(1.0 - share).log10()
}

/// Returns the least and the greatest value, or zero and one if there are none.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let finite = values.filter(|value| value.is_finite());
    let (least, most) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, m), v| (l.min(v), m.max(v)));
    if least <= most { (least, most) } else { (0.0, 1.0) }
}

/// 1, 2 or 5 times a power of ten, so that three to six steps reach `most`.
fn step(most: f64) -> f64 {
    let raw = most / 5.0;
    let power = 10_f64.powf(raw.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| raw <= factor * power * 1.000_001).unwrap_or(10.0);
    factor * power
}

/// Formats a value without the noise of binary fractions.
fn rounded(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_model::Bytes;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, label)| label.as_str()).collect()
    }

    #[test]
    fn linear_axes_have_round_ticks_and_a_unit() {
        let axis = Axis::of_values(Unit::ByteRate, [1.1e9, 1.76e9].into_iter());
        assert_eq!((labels(&axis), axis.name.as_str()), (vec!["0", "0.5", "1", "1.5", "2"], "GB/s"));
        let axis = Axis::from_zero(Unit::Operations, 12_000.0);
        assert_eq!(labels(&axis), ["0", "5", "10", "15"]);
        assert!((axis.at(7500.0) - 0.5).abs() < 1e-9);
        let empty = Axis::of_values(Unit::ByteRate, std::iter::empty());
        assert!(empty.at(f64::NAN).abs() < 1e-9 && !empty.ticks.is_empty());
        assert_eq!(labels(&Axis::from_zero(Unit::Count("slots"), 2.0)), ["0", "1", "2"], "no half slots");
        assert_eq!(axis.named("read").name, "read, thousand operations/s");
        assert!(Axis::from_zero(Unit::Time, 0.0).at(1.0) > 0.0);
    }

    #[test]
    fn logarithmic_axes_have_powers_of_ten() {
        let axis = Axis::of_values(Unit::Time, [900.0, 3e8].into_iter());
        assert_eq!(labels(&axis), ["100 ns", "1 us", "10 us", "100 us", "1 ms", "10 ms", "100 ms", "1 s"]);
        let axis = Axis::log(Unit::Time, 1.5e6, 9e6);
        assert_eq!(labels(&axis), ["1 ms", "2 ms", "5 ms", "10 ms"]);
        assert!(axis.at(0.0).abs() < 1e-9 && (axis.at(1e9) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn parameters_are_their_own_ticks_and_labels_do_not_overlap() {
        let sizes: Vec<(f64, String)> =
            (12..24).map(|power| (f64::from(1 << power), Bytes(1 << power).to_string())).collect();
        let axis = Axis::of_parameter("block size", &sizes);
        assert!(axis.is_log && (axis.at(sizes[5].0) - 5.0 / 11.0).abs() < 1e-9);
        let kept = axis.labelled(220.0, |_| 50.0);
        assert!(kept.len() >= 4 && kept.len() <= 5, "{kept:?}");
        assert_eq!(kept.last().map(|(_, label)| *label), Some("8 MiB"));
        let single = Axis::of_parameter("workers", &[(2.0, "2".into())]);
        assert!((single.at(2.0) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn each_nine_takes_as_much_room() {
        let axis = Axis::of_nines(10_000, "frames");
        assert_eq!(labels(&axis), ["0", "50", "90", "99", "99.9", "99.99"]);
        assert!((axis.at(nines(0.9)) - 0.25).abs() < 1e-9);
        assert_eq!(labels(&Axis::of_nines(0, "frames")), ["0", "50", "90"]);
    }
}
