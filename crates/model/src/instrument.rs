//! An instrument: what arrives, how often, whether or not storage is ready. One TOML file each in `instruments/`.

use serde::{Deserialize, Serialize};

use crate::{ByteRate, Bytes, Frequency, Nanos};

/// A source of frames at a fixed rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instrument {
    /// The name in the catalogue, as in the file's name.
    pub name: String,
    /// What it is, in a line.
    pub title: String,
    /// Where the figures were published.
    pub source: String,
    /// Pixels of a frame: slowest dimension first.
    pub shape: Vec<u64>,
    /// Of one pixel.
    pub pixel: PixelType,
    /// Frames a second.
    pub frame_rate: Frequency,
}

/// The type of a pixel in memory and in raw files; little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PixelType {
    /// Unsigned 8 bit.
    Uint8,
    /// Unsigned 16 bit.
    Uint16,
    /// Signed 32 bit.
    Int32,
    /// Unsigned 32 bit.
    Uint32,
}

impl PixelType {
    /// Bytes of a pixel.
    pub const fn size(self) -> u64 {
        match self {
            PixelType::Uint8 => 1,
            PixelType::Uint16 => 2,
            PixelType::Int32 | PixelType::Uint32 => 4,
        }
    }
}

/// An instrument that can't be.
#[derive(Debug, thiserror::Error)]
pub enum InstrumentError {
    /// No valid TOML, or not of this shape; the source shows line, word and choices.
    #[error("{file}: {source}")]
    Written {
        /// The file as the user named it.
        file: String,
        /// With line and valid names.
        source: Box<toml::de::Error>,
    },
    /// A value that makes no sense.
    #[error("{file}: {why}")]
    Value {
        /// The file as the user named it.
        file: String,
        /// The key, its value, and what is valid.
        why: String,
    },
}

impl Instrument {
    /// Reads an instrument. `file` is what messages call it.
    pub fn parse(text: &str, file: &str) -> Result<Self, InstrumentError> {
        let instrument: Instrument = toml::from_str(text)
            .map_err(|source| InstrumentError::Written { file: file.into(), source: Box::new(source) })?;
        instrument.check().map_err(|why| InstrumentError::Value { file: file.into(), why })?;
        Ok(instrument)
    }

    fn check(&self) -> Result<(), String> {
        let bytes = self.shape.iter().try_fold(self.pixel.size(), |bytes, &side| bytes.checked_mul(side));
        match bytes {
            Some(1..=0x8000_0000) => {}
            _ => return Err(format!("shape = {:?}: a frame must have 1 B to 2 GiB", self.shape)),
        }
        if !(self.frame_rate.0 > 0.0 && self.frame_rate.0 <= 1e7) {
            return Err(format!(
                "frame_rate = \"{}\": write more than 0 Hz and at most 10 MHz",
                self.frame_rate
            ));
        }
        Ok(())
    }

    /// Bytes of a frame, uncompressed.
    pub fn frame_size(&self) -> Bytes {
        Bytes(self.shape.iter().product::<u64>() * self.pixel.size())
    }

    /// The time from one frame to the next.
    pub fn period(&self) -> Nanos {
        self.frame_rate.period()
    }

    /// What must be written, uncompressed.
    pub fn rate(&self) -> ByteRate {
        ByteRate(self.frame_size().0 as f64 * self.frame_rate.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PILATUS: &str = r#"
name = "pilatus-6m"
title = "a test"
source = "a test"
shape = [2527, 2463]
pixel = "int32"
frame_rate = "25 Hz"
"#;

    #[test]
    fn rates_follow_from_the_frame() {
        let pilatus = Instrument::parse(PILATUS, "p.toml").expect("valid");
        assert_eq!(pilatus.frame_size(), Bytes(2463 * 2527 * 4));
        assert_eq!(pilatus.period(), Nanos::from_millis(40));
        assert_eq!(pilatus.rate().to_string(), "622 MB/s");
    }

    #[test]
    fn nonsense_is_refused() {
        for (from, to, part) in [
            ("25 Hz", "0 Hz", "more than 0 Hz"),
            ("25 Hz", "25", "Hz, kHz, MHz"),
            ("2527", "0", "1 B to 2 GiB"),
            ("2527", "18446744073", "1 B to 2 GiB"),
            ("int32", "int33", "`uint16`"),
            ("shape", "shap", "`shape`"),
        ] {
            let error = Instrument::parse(&PILATUS.replace(from, to), "p.toml").expect_err(to).to_string();
            assert!(error.contains(part) && error.contains("p.toml"), "{error}");
        }
    }
}
