//! The unit of rates that readers compare: figures beside each other have the same one.

use nilometer_model::{ByteRate, Bytes};

use crate::Quantity;

/// Formats bytes in powers of 1000, like rates.
pub(crate) fn decimal(bytes: Bytes) -> String {
    ByteRate(bytes.0 as f64).to_string().replace("/s", "")
}

/// The unit in which figures of a group are shown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateUnit {
    quantity: Quantity,
    /// `None` if each figure has the unit that fits it best, which is then the same for all or need not be.
    shared: Option<NamedUnit>,
}

/// A unit with its size.
#[derive(Debug, Clone, Copy, PartialEq)]
struct NamedUnit {
    /// Bytes or operations a second, or nanoseconds.
    factor: f64,
    name: &'static str,
}

const fn unit(factor: f64, name: &'static str) -> NamedUnit {
    NamedUnit { factor, name }
}

const BYTES: [NamedUnit; 6] = [
    unit(1.0, " B/s"),
    unit(1e3, " kB/s"),
    unit(1e6, " MB/s"),
    unit(1e9, " GB/s"),
    unit(1e12, " TB/s"),
    unit(1e15, " PB/s"),
];
const OPERATIONS: [NamedUnit; 3] = [unit(1.0, " /s"), unit(1e3, " k/s"), unit(1e6, " M/s")];
/// Figures that differ share at most the second: few readers compare 0.55 min with 2.3 min.
const TIMES: [NamedUnit; 4] = [unit(1.0, " ns"), unit(1e3, " us"), unit(1e6, " ms"), unit(1e9, " s")];

/// A figure rounds to the next unit from this share of it on.
const ROUNDED: f64 = 0.9995;
/// The smallest figure of a group is at least this share of the unit, so that it keeps its digits.
const LEAST: f64 = 0.1;

impl RateUnit {
    /// Each figure in its own unit.
    pub fn own(quantity: Quantity) -> Self {
        RateUnit { quantity, shared: None }
    }

    /// One unit for all these rates: the largest in which the smallest figure keeps three digits.
    ///
    /// ```text
    /// 812 kB/s, 1.24 GB/s   ->   0.812 MB/s, 1240 MB/s
    /// 320 MB/s, 1.24 GB/s   ->   0.320 GB/s, 1.24 GB/s
    /// ```
    pub fn shared(quantity: Quantity, rates: impl IntoIterator<Item = f64>) -> Self {
        let values = rates.into_iter().filter(|rate| *rate > 0.0).map(|rate| quantity.drawn(rate));
        let [least, most] =
            values.fold([f64::INFINITY, 0.0], |[least, most], value| [value.min(least), value.max(most)]);
        let units = units(quantity);
        let fitting = |value: f64| units.iter().rposition(|unit| value >= unit.factor * ROUNDED).unwrap_or(0);
        let is_long = quantity == Quantity::Time && most >= 120e9;
        if least > most || (fitting(least) == fitting(most) && !is_long) {
            return RateUnit::own(quantity);
        }
        let keeps_digits = |unit: &&NamedUnit| least >= LEAST * unit.factor;
        let shared = units[..=fitting(most)].iter().rev().find(keeps_digits).unwrap_or(&units[0]);
        RateUnit { quantity, shared: Some(*shared) }
    }

    /// The quantity of the figures.
    pub fn quantity(&self) -> Quantity {
        self.quantity
    }

    /// A rate with its unit.
    pub fn show(&self, rate: f64) -> String {
        match self.shared {
            Some(NamedUnit { factor, name }) if rate > 0.0 => {
                format!("{}{name}", three_digits(self.quantity.drawn(rate) / factor))
            }
            _ => self.quantity.show(rate),
        }
    }
}

const fn units(quantity: Quantity) -> &'static [NamedUnit] {
    match quantity {
        Quantity::Bytes => &BYTES,
        Quantity::Operations => &OPERATIONS,
        Quantity::Time => &TIMES,
    }
}

/// At least three digits; whole numbers keep all of theirs.
fn three_digits(value: f64) -> String {
    let decimals = match value {
        value if value >= 99.95 => 0,
        value if value >= 9.995 => 1,
        value if value >= 0.9995 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(quantity: Quantity, rates: &[f64]) -> Vec<String> {
        let unit = RateUnit::shared(quantity, rates.iter().copied());
        rates.iter().map(|rate| unit.show(*rate)).collect()
    }

    #[test]
    fn figures_of_a_group_have_one_unit() {
        assert_eq!(shown(Quantity::Bytes, &[812e3, 1.24e9]), ["0.812 MB/s", "1240 MB/s"]);
        assert_eq!(shown(Quantity::Bytes, &[320e6, 1.24e9]), ["0.320 GB/s", "1.24 GB/s"]);
        assert_eq!(shown(Quantity::Operations, &[913.0, 13_100.0]), ["0.913 k/s", "13.1 k/s"]);
        assert_eq!(shown(Quantity::Time, &[1.0 / 33.4, 1.83]), ["33.4 s", "0.546 s"]);
        assert_eq!(shown(Quantity::Time, &[1.0 / 33.4, 1.0 / 138.0]), ["33.4 s", "138 s"]);
    }

    #[test]
    fn figures_of_the_same_size_stay_as_they_are() {
        for rates in [[1.2e9, 3.4e9], [0.0, 5e6], [999.6e6, 1.2e9]] {
            let own = rates.map(|rate| Quantity::Bytes.show(rate));
            assert_eq!(shown(Quantity::Bytes, &rates), own);
        }
        assert_eq!(RateUnit::shared(Quantity::Time, []), RateUnit::own(Quantity::Time));
        assert_eq!(shown(Quantity::Bytes, &[1e-3, 1e15])[0], "0.001 B/s", "there is no smaller unit");
    }
}
