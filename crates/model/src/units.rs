//! Quantities with their unit, in the form of plans, instruments and the command line.
//!
//! Decimal and binary prefixes are both valid and never confused: `4 kB` is 4000 bytes, `4 KiB` is 4096. A size may
//! have a prefix alone as in dd, fio and IOR: `4K` and `4k` are 4096 bytes. Rates may be in Gbit/s. For a network link
//! `10G` means 10 Gbit/s: links have such names. A rate of data needs its whole unit, since `10G` may be bytes or bits.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::Nanos;

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Bytes(pub u64);

/// Bytes a second.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct ByteRate(pub f64);

/// The rate of a network link: like [`ByteRate`], and also `10G`, which means 10 Gbit/s.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct LinkRate(pub ByteRate);

/// Events a second.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Frequency(pub f64);

/// A length, in femtometres: from the wavelength of hard X-rays to the distance of a detector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Length(pub u64);

/// The reason why a text is no quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// The text does not start with a number.
    #[error("`{0}` does not start with a number")]
    NoNumber(String),
    /// Sizes, rates and times are at least zero.
    #[error("`{0}` is negative")]
    Negative(String),
    /// The unit is missing or unknown.
    #[error("`{text}` has {found}; write one of {choices}")]
    Unit {
        /// The text.
        text: String,
        /// "no unit", or the unit in the text.
        found: String,
        /// The valid units.
        choices: &'static str,
    },
    /// The unit of a rate is a prefix alone.
    #[error("`{text}` may be bytes or bits a second: write {number}{prefix}B/s or {number}{prefix}bit/s")]
    Ambiguous {
        /// The text.
        text: String,
        /// Its number.
        number: String,
        /// Its prefix.
        prefix: String,
    },
    /// The quantity is out of range, or no whole number of bytes, nanoseconds or femtometres.
    #[error("`{0}` is too large, or finer than a byte, a nanosecond or a femtometre")]
    Range(String),
}

type Unit = (&'static str, f64);

const SIZES: [Unit; 16] = [
    ("B", 1.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("PB", 1e15),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
    ("PiB", 1_125_899_906_842_624.0),
    // The forms of dd, fio and IOR.
    ("k", 1024.0),
    ("K", 1024.0),
    ("M", 1_048_576.0),
    ("G", 1_073_741_824.0),
    ("T", 1_099_511_627_776.0),
];
const SIZE_CHOICES: &str = "B, kB, MB, GB, TB, PB (powers of 1000), KiB, MiB, GiB, TiB, PiB (powers of 1024), or K, M, G, T as in dd";
const RATES: [Unit; 18] = [
    ("B/s", 1.0),
    ("kB/s", 1e3),
    ("MB/s", 1e6),
    ("GB/s", 1e9),
    ("KiB/s", 1024.0),
    ("MiB/s", 1_048_576.0),
    ("GiB/s", 1_073_741_824.0),
    ("bit/s", 0.125),
    ("kbit/s", 125.0),
    ("Mbit/s", 125e3),
    ("Gbit/s", 125e6),
    ("Tbit/s", 125e9),
    ("TB/s", 1e12),
    ("bps", 0.125),
    ("kbps", 125.0),
    ("Mbps", 125e3),
    ("Gbps", 125e6),
    ("Tbps", 125e9),
];
const RATE_CHOICES: &str = "B/s, kB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s, bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s (or bps, kbps, \
                            Mbps, Gbps, Tbps)";
/// More units for the rate of a link.
const LINK_RATES: [Unit; 3] = [("M", 125e3), ("G", 125e6), ("T", 125e9)];
const TIMES: [Unit; 9] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("min", 60e9),
    ("h", 3600e9),
    ("day", 86_400e9),
    ("days", 86_400e9),
];
const TIME_CHOICES: &str = "ns, us, ms, s, min, h, days";
const FREQUENCIES: [Unit; 3] = [("Hz", 1.0), ("kHz", 1e3), ("MHz", 1e6)];
const FREQUENCY_CHOICES: &str = "Hz, kHz, MHz";

/// Includes Ångström, the unit of CBF headers.
const LENGTHS: [Unit; 9] = [
    ("fm", 1.0),
    ("pm", 1e3),
    ("A", 1e5),
    ("Å", 1e5),
    ("nm", 1e6),
    ("um", 1e9),
    ("mm", 1e12),
    ("cm", 1e13),
    ("m", 1e15),
];
const LENGTH_CHOICES: &str = "m, cm, mm, um, nm, A (ångström), pm, fm";

/// Number times unit, in the base unit.
fn parse(text: &str, units: &[Unit], choices: &'static str) -> Result<f64, UnitError> {
    let text = text.trim();
    let end = text.find(|c: char| !matches!(c, '0'..='9' | '.' | '-' | '+' | '_')).unwrap_or(text.len());
    let number = text[..end].replace('_', "");
    let unit = text[end..].trim();
    let number: f64 = number.parse().map_err(|_| UnitError::NoNumber(text.into()))?;
    if number.is_sign_negative() {
        return Err(UnitError::Negative(text.into()));
    }
    let factor = units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| factor);
    let found = || if unit.is_empty() { "no unit".into() } else { format!("the unit `{unit}`") };
    let factor = factor.ok_or_else(|| UnitError::Unit { text: text.into(), found: found(), choices })?;
    Ok(number * factor)
}

fn whole(text: &str, value: f64) -> Result<u64, UnitError> {
    let near = value.round();
    if near >= 9.2e18 || (value - near).abs() > 1e-9 * value.max(1.0) {
        return Err(UnitError::Range(text.trim().into()));
    }
    #[expect(clippy::cast_sign_loss, reason = "parse refuses negative numbers")]
    Ok(near as u64)
}

impl FromStr for Bytes {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        whole(text, parse(text, &SIZES, SIZE_CHOICES)?).map(Bytes)
    }
}

impl FromStr for ByteRate {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse(text, &RATES, RATE_CHOICES).map(ByteRate).map_err(|error| ambiguous(text).unwrap_or(error))
    }
}

/// The error of a rate such as `500M`. `None` if the text is no number with a prefix alone.
fn ambiguous(text: &str) -> Option<UnitError> {
    let text = text.trim();
    let number = text.trim_end_matches(|letter: char| "kKMGT".contains(letter));
    let prefix = text[number.len()..].replace('K', "k");
    let number = number.trim_end();
    let is_one = prefix.len() == 1 && number.parse::<f64>().is_ok_and(|number| number >= 0.0);
    is_one.then(|| UnitError::Ambiguous { text: text.into(), number: number.into(), prefix })
}

impl FromStr for LinkRate {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let usual = text.parse().map(LinkRate);
        usual.or_else(|error| {
            parse(text, &LINK_RATES, RATE_CHOICES).map_or(Err(error), |rate| Ok(LinkRate(ByteRate(rate))))
        })
    }
}

impl FromStr for Nanos {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        whole(text, parse(text, &TIMES, TIME_CHOICES)?).map(Nanos)
    }
}

impl FromStr for Length {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        // No known length is finer than a femtometre.
        whole(text, parse(text, &LENGTHS, LENGTH_CHOICES)?.round()).map(Length)
    }
}

impl FromStr for Frequency {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse(text, &FREQUENCIES, FREQUENCY_CHOICES).map(Frequency)
    }
}

/// Three significant digits, but never fewer than the whole part has.
fn significant(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

fn scaled(value: f64, step: f64, names: &[&str]) -> String {
    let mut value = value;
    let mut at = 0;
    while at + 1 < names.len() && value >= step * 0.9995 {
        value /= step;
        at += 1;
    }
    format!("{} {}", significant(value), names[at])
}

impl fmt::Display for Bytes {
    /// Whole KiB, MiB, ... of at most four digits keep their unit; anything else is in powers of 1000.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let binary = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
        let steps = if self.0 == 0 { 0 } else { (self.0.trailing_zeros() / 10).min(5) };
        let whole = self.0 >> (10 * steps);
        if steps > 0 && whole < 10_000 {
            return f.pad(&format!("{whole} {}", binary[steps as usize]));
        }
        f.pad(&scaled(self.0 as f64, 1000.0, &["B", "kB", "MB", "GB", "TB", "PB"]))
    }
}

impl fmt::Display for ByteRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&scaled(self.0, 1000.0, &["B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s"]))
    }
}

impl fmt::Display for Frequency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&scaled(self.0, 1000.0, &["Hz", "kHz", "MHz"]))
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.seconds();
        let text = match seconds {
            s if s >= 2.0 * 86_400.0 => format!("{} days", significant(s / 86_400.0)),
            s if s >= 2.0 * 3600.0 => format!("{} h", significant(s / 3600.0)),
            s if s >= 120.0 => format!("{} min", significant(s / 60.0)),
            s if s >= 0.9995 => format!("{} s", significant(s)),
            _ => scaled(self.0 as f64, 1000.0, &["ns", "us", "ms"]),
        };
        f.pad(&text)
    }
}

impl ByteRate {
    /// The rate of moving `bytes` in `time`; 0 if `time` is 0.
    pub fn of(bytes: u64, time: Nanos) -> Self {
        if time.0 == 0 { ByteRate(0.0) } else { ByteRate(bytes as f64 / time.seconds()) }
    }
}

impl ByteRate {
    /// The bytes of a second, without the fraction of a byte.
    #[expect(clippy::cast_sign_loss, reason = "a cast keeps to the range")]
    pub fn in_a_second(self) -> Bytes {
        Bytes(self.0 as u64)
    }

    /// The rate in bits, the unit of networks.
    pub fn bits(self) -> String {
        scaled(self.0 * 8.0, 1000.0, &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"])
    }
}

impl Length {
    /// A length of metres. `None` if it is not above 0, or too long.
    pub fn from_metres(metres: f64) -> Option<Self> {
        let femtometres = (metres * 1e15).round();
        #[expect(clippy::cast_sign_loss, reason = "it is at least 1")]
        (1.0..1e18).contains(&femtometres).then_some(Length(femtometres as u64))
    }

    /// In metres.
    pub fn metres(self) -> f64 {
        self.0 as f64 / 1e15
    }

    /// In micrometres.
    pub fn micrometres(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// In ångström, 10^-10 m.
    pub fn angstrom(self) -> f64 {
        self.0 as f64 / 1e5
    }
}

impl Frequency {
    /// The time between two events. The frequency must be above zero.
    pub fn period(self) -> Nanos {
        assert!(self.0 > 0.0, "a frequency of zero is refused where it is read");
        Nanos::from_seconds(1.0 / self.0)
    }
}

/// Serde by the text form. A bare number is an error that lists the choices, not a guess.
macro_rules! quantity {
    ($($name:ident),*) => { $(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(Written(std::marker::PhantomData))
            }
        }
    )* };
}
quantity!(Bytes, ByteRate, Frequency, Length, Nanos);

struct Written<T>(std::marker::PhantomData<T>);

impl<T: FromStr<Err = UnitError>> de::Visitor<'_> for Written<T> {
    type Value = T;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number with its unit, in quotes")
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }
    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }
    fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{} B", self.0))
    }
}

impl Serialize for ByteRate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{} B/s", self.0))
    }
}

impl Serialize for Frequency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{} Hz", self.0))
    }
}

impl Serialize for Length {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{} fm", self.0))
    }
}

impl Serialize for Nanos {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{} ns", self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_kinds_of_prefix_are_read_and_neither_is_guessed() {
        assert_eq!("4 KiB".parse(), Ok(Bytes(4096)));
        assert_eq!("4kB".parse(), Ok(Bytes(4000)));
        assert_eq!("1.5 GiB".parse(), Ok(Bytes(1_610_612_736)));
        assert_eq!("4 Gbit/s".parse(), Ok(ByteRate(5e8)));
        for same in ["8Gbps", "8 Gbit/s", "8000 Mbps", "1 GB/s"] {
            assert_eq!(
                (same.parse(), same.parse()),
                (Ok(ByteRate(1e9)), Ok(LinkRate(ByteRate(1e9)))),
                "{same}"
            );
        }
        assert_eq!("8G".parse(), Ok(LinkRate(ByteRate(1e9))));
        assert_eq!("64G".parse(), Ok(Bytes(64 << 30)), "as dd, fio and IOR read it");
        for (text, choices) in
            [("8G", "8GB/s or 8Gbit/s"), ("1.5 M", "1.5MB/s or 1.5Mbit/s"), ("2K", "2kB/s")]
        {
            let error = text.parse::<ByteRate>().expect_err("it could be bytes").to_string();
            assert!(error.contains(text) && error.contains(choices), "{error}");
        }
        for other in ["8", "G", "8Gb", "8 GM"] {
            assert!(matches!(
                other.parse::<ByteRate>(),
                Err(UnitError::Unit { .. } | UnitError::NoNumber(_))
            ));
        }
        assert!("8X".parse::<LinkRate>().is_err());
        for wrong in ["4X", "4", "4 kb"] {
            let error = wrong.parse::<Bytes>().expect_err(wrong).to_string();
            assert!(error.contains("KiB") && error.contains(wrong), "{error}");
        }
        assert_eq!("-4 KiB".parse::<Bytes>(), Err(UnitError::Negative("-4 KiB".into())));
        assert_eq!("0.3 B".parse::<Bytes>(), Err(UnitError::Range("0.3 B".into())));
        assert!("fast".parse::<ByteRate>().is_err());
    }

    #[test]
    fn output_says_which_prefix_it_uses() {
        let shown = |bytes| Bytes(bytes).to_string();
        assert_eq!(shown(4096), "4 KiB");
        assert_eq!(shown(1 << 30), "1 GiB");
        assert_eq!(shown(1_500_000), "1.5 MB");
        assert_eq!(shown(0), "0 B");
        assert_eq!(shown(1000), "1 kB");
        assert_eq!(shown(71_822_532 * 1024), "73.5 GB");
        assert_eq!(ByteRate(622.4e6).to_string(), "622 MB/s");
        assert_eq!(ByteRate(16.25e9).bits(), "130 Gbit/s");
        assert_eq!(Nanos(310_000_000).to_string(), "310 ms");
        assert_eq!(Nanos(200_000_000_000).to_string(), "3.33 min");
        assert_eq!("1.5 days".parse::<Nanos>().map(|time| time.to_string()), Ok("36 h".into()));
        assert_eq!("3 days".parse::<Nanos>().map(|time| time.to_string()), Ok("3 days".into()));
        assert_eq!("1 PB".parse::<Bytes>().map(|size| size.to_string()), Ok("1 PB".into()));
        assert_eq!(shown(3 << 50), "3 PiB");
        assert_eq!(Frequency(25.0).to_string(), "25 Hz");
    }

    proptest! {
        #[test]
        fn stored_quantities_come_back(bytes in 0..1_u64 << 52) {
            let text = serde_json::to_string(&Bytes(bytes)).expect("a string");
            prop_assert_eq!(serde_json::from_str::<Bytes>(&text).expect("what was written"), Bytes(bytes));
            let text = serde_json::to_string(&Nanos(bytes)).expect("a string");
            prop_assert_eq!(serde_json::from_str::<Nanos>(&text).expect("what was written"), Nanos(bytes));
        }

        #[test]
        fn no_text_panics(text in ".*") {
            prop_assert!(text.parse::<Bytes>().is_ok() || text.parse::<Bytes>().is_err());
        }
    }
}
