//! The values of the options of `nilometer simulate`.

use std::str::FromStr;

use anyhow::Context;
use nilometer_model::{ByteRate, Bytes, Frequency, Nanos, UnitError};

/// Pixels of a frame, slowest dimension first.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shape(pub(super) Vec<u64>);

/// Reads `1475 x 1679`, fastest dimension first.
pub(super) fn shape(text: &str) -> anyhow::Result<Shape> {
    let sides: Option<Vec<u64>> = text.split('x').rev().map(|side| side.trim().parse().ok()).collect();
    sides.map(Shape).context("write numbers of pixels with `x` between them, such as \"1475 x 1679\"")
}

/// The rate of a stream: frames or bytes a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Rate {
    Frames(Frequency),
    Data(ByteRate),
}

impl Rate {
    /// Frames of this size a second.
    pub(super) fn of_frames(self, size: Bytes) -> Frequency {
        match self {
            Rate::Frames(frequency) => frequency,
            Rate::Data(rate) => Frequency(rate.0 / size.0 as f64),
        }
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(frames) = text.parse() {
            return Ok(Rate::Frames(frames));
        }
        text.parse().map(Rate::Data).map_err(|error: UnitError| match error {
            UnitError::Ambiguous { .. } => error.to_string(),
            _ => format!("write frames a second in Hz, kHz, MHz, or data: {error}"),
        })
    }
}

/// A share, such as "0.1 %".
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Share(pub(super) f64);

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let percent = text.trim().strip_suffix('%').and_then(|percent| percent.trim().parse::<f64>().ok());
        let share = percent.filter(|percent| percent.is_finite() && *percent >= 0.0);
        let share = share.ok_or("write a share of the packets, such as \"0.1 %\"")?;
        Ok(Share(share / 100.0))
    }
}

/// Reads a share of at most 100 %.
pub(super) fn part(text: &str) -> Result<Share, String> {
    let share: Share = text.parse()?;
    if share.0 <= 1.0 { Ok(share) } else { Err("write at most 100 %".into()) }
}

/// The jump of a clock in seconds: forward, or backward with a minus sign.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Jump(pub(super) f64);

impl FromStr for Jump {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (sign, time) = text.trim().strip_prefix('-').map_or((1.0, text), |time| (-1.0, time));
        let time: Nanos = time.parse().map_err(|error| format!("{error}"))?;
        Ok(Jump(sign * (time.0 as f64 / 1e9)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_written_as_they_are_shown() {
        assert_eq!(shape("1475 x 1679").expect("valid"), Shape(vec![1679, 1475]));
        assert_eq!(shape("7").expect("valid"), Shape(vec![7]));
        for wrong in ["", "3 x", "3 * 4", "-1 x 3"] {
            assert!(shape(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rates_are_frames_or_data() {
        assert_eq!("25 Hz".parse(), Ok(Rate::Frames(Frequency(25.0))));
        let rate: Rate = "8 Gbit/s".parse().expect("valid");
        assert_eq!(rate.of_frames(Bytes(10_000_000)), Frequency(100.0));
        let wrong = "8 Gb/s".parse::<Rate>().expect_err("whatever it means");
        assert!(wrong.contains("Hz, kHz, MHz") && wrong.contains("Gbit/s"), "{wrong}");
        let bare = "500M".parse::<Rate>().expect_err("bytes or bits");
        assert_eq!(bare, "`500M` may be bytes or bits a second: write 500MB/s or 500Mbit/s");
    }

    #[test]
    fn shares_have_their_sign_and_jumps_their_unit() {
        assert_eq!("0.5 %".parse(), Ok(Share(0.005)));
        assert_eq!(part("100%"), Ok(Share(1.0)));
        for wrong in ["0.5", "-1 %", "NaN %", "inf %", "%"] {
            assert!(wrong.parse::<Share>().expect_err(wrong).contains("0.1 %"));
        }
        assert!("250 %".parse::<Share>().is_ok() && part("250 %").is_err());
        assert_eq!(("3 s".parse(), "-1 min".parse()), (Ok(Jump(3.0)), Ok(Jump(-60.0))));
        assert!("3".parse::<Jump>().expect_err("no unit").contains("ns, us, ms, s, min"));
    }
}
