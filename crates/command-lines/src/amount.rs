//! Sizes, counts and times as other programs write them.

use nilometer_model::{Bytes, Nanos};

use crate::error::LineError;

/// The base of a program's units.
#[derive(Debug, Clone, Copy)]
pub struct UnitBases {
    /// The base of `k` and `M`.
    alone: u64,
    /// The base of `kB` and `MB`.
    with_b: u64,
    /// The base of `KiB` and `MiB`.
    with_ib: u64,
}

/// IOR, mdtest, iozone, elbencho: all units are powers of 1024.
pub const BINARY: UnitBases = UnitBases { alone: 1024, with_b: 1024, with_ib: 1024 };
/// dd has both bases.
pub(crate) const DD: UnitBases = UnitBases { alone: 1024, with_b: 1000, with_ib: 1024 };
/// fio has the opposite bases, unless its `kb_base` is 1000.
pub(crate) const FIO: UnitBases = UnitBases { alone: 1024, with_b: 1024, with_ib: 1000 };
/// fio with `kb_base=1000`.
pub(crate) const FIO_DECIMAL: UnitBases = UnitBases { alone: 1000, with_b: 1000, with_ib: 1024 };

/// Reads `4k`, `1M`, `2GiB`, `10MB` or `0.5g`.
pub fn size(text: &str, bases: UnitBases) -> Result<Bytes, LineError> {
    let wrong = || LineError::whole(format!("`{text}`: write a size such as 4k, 1M or 2G"));
    let is_number = |letter: char| letter.is_ascii_digit() || letter == '.';
    let digits = text.len() - text.trim_start_matches(is_number).len();
    let unit = text[digits..].to_ascii_lowercase();
    let power = match unit.chars().next() {
        None | Some('b') => 0,
        Some('k') => 1,
        Some('m') => 2,
        Some('g') => 3,
        Some('t') => 4,
        Some('p') => 5,
        Some(_) => return Err(wrong()),
    };
    let base: u64 = match &unit[usize::from(power > 0)..] {
        "" => bases.alone,
        "ib" | "i" => bases.with_ib,
        "b" => bases.with_b,
        _ => return Err(wrong()),
    };
    times(&text[..digits], base.pow(power)).map(Bytes).ok_or_else(wrong)
}

/// A number, perhaps with a fraction, times a unit; `None` if it is no number, or too large.
fn times(number: &str, unit: u64) -> Option<u64> {
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(unit);
    }
    let number = number.parse::<f64>().ok()? * unit as f64;
    #[expect(clippy::cast_sign_loss, reason = "it has no sign")]
    (number < 9e18).then_some(number as u64)
}

/// Reads a whole number of at most `most`.
pub(crate) fn count(text: &str, most: u32) -> Result<u32, LineError> {
    let count = text.parse::<u32>().ok().filter(|count| *count <= most);
    count.ok_or_else(|| LineError::whole(format!("`{text}`: write a number, {most} at the most")))
}

/// Reads a time: `30` is 30 seconds; `30s`, `5m`, `1h`, `100ms`.
pub(crate) fn time(text: &str) -> Result<Nanos, LineError> {
    let wrong = || LineError::whole(format!("`{text}`: write a time such as 30, 5m or 1h"));
    let digits =
        text.len() - text.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.').len();
    let number: f64 = text[..digits].parse().map_err(|_| wrong())?;
    let unit = match &text[digits..] {
        "" | "s" | "sec" => 1.0,
        "ms" | "msec" => 1e-3,
        "us" | "usec" => 1e-6,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err(wrong()),
    };
    let seconds = number * unit;
    if seconds >= 1e9 {
        return Err(LineError::whole(format!("`{text}`: write a time below 30 years")));
    }
    Ok(Nanos::from_seconds(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_those_of_each_program() {
        for (text, bases, bytes) in [
            ("4k", FIO, 4096),
            ("4KiB", FIO, 4000),
            ("4kb", FIO, 4096),
            ("4kB", DD, 4000),
            ("4KiB", DD, 4096),
            ("4Ki", BINARY, 4096),
            ("1Mi", FIO_DECIMAL, 1 << 20),
            ("1.5g", BINARY, 3 << 29),
            ("2M", BINARY, 2 << 20),
            ("512", BINARY, 512),
            ("1P", BINARY, 1 << 50),
        ] {
            assert_eq!(size(text, bases).expect(text), Bytes(bytes), "{text}");
        }
        for text in ["1x", "k", "", "-4k", "4kk", "1.2.3m", "99999999999999t", "%"] {
            assert!(size(text, BINARY).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_seconds_unless_they_say_otherwise() {
        for (text, ms) in [("30", 30_000), ("100ms", 100), ("2m", 120_000), ("1h", 3_600_000), ("1.5s", 1500)]
        {
            assert_eq!(time(text).expect(text), Nanos::from_millis(ms), "{text}");
        }
        for text in ["", "m", "5 weeks", "1e99", "9999999999999"] {
            assert!(time(text).is_err(), "{text}");
        }
        assert_eq!(count("16", 4096).expect("a number"), 16);
        assert!(count("5000", 4096).is_err() && count("x", 1).is_err());
    }
}
