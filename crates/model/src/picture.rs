//! A frame that is one picture, and the exposure data for the header of its CBF file: the table `[cbf]` of an
//! instrument's file.
//!
//! Sources: DECTRIS, "PILATUS CBF header" (dectris.com/support/downloads/header-docs/cbf: keywords, values
//! and units). The imgCIF dictionary has an example of a mini CBF file (`mmcif_img.dic`, category
//! `ARRAY_DATA`: times in s).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Length, Nanos};

/// How pictures were exposed. Programs that process pictures read it from the header. Nilometer writes only
/// the values given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CbfHeader {
    /// The distance from sample to detector: `Detector_distance`, in m.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detector_distance: Option<Length>,
    /// The wavelength of the X-rays: `Wavelength`, in Å.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wavelength: Option<Length>,
    /// The time in which a picture counts photons: `Exposure_time`, in s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exposure_time: Option<Nanos>,
    /// The time between the starts of two pictures: `Exposure_period`, in s. `None` means the period of the
    /// frame rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exposure_period: Option<Nanos>,
}

/// Limits that no instrument and no X-rays exceed.
const DISTANCE_MAX: Length = Length(1_000_000_000_000_000_000);
const WAVELENGTH_MAX: Length = Length(1_000_000_000);
const TIME_MAX: Nanos = Nanos(86_400_000_000_000);

impl CbfHeader {
    /// Returns true if no value is given.
    pub fn is_empty(&self) -> bool {
        *self == CbfHeader::default()
    }

    /// Refuses values that make no sense for pictures with this period; the message says how to correct it.
    pub(crate) fn check(&self, period: Nanos) -> Result<(), String> {
        let CbfHeader { detector_distance, wavelength, exposure_time, exposure_period } = *self;
        let is_length =
            |length: Option<Length>, most| length.is_none_or(|length| length > Length(0) && length <= most);
        if !is_length(detector_distance, DISTANCE_MAX) {
            return Err("detector_distance: write more than 0 m and at most 1000 m".into());
        }
        if !is_length(wavelength, WAVELENGTH_MAX) {
            return Err("wavelength: write more than 0 A and at most 1 um".into());
        }
        let mut times = [exposure_time, exposure_period].into_iter().flatten();
        if times.any(|time| time == Nanos(0) || time > TIME_MAX) {
            return Err("exposure_time and exposure_period: write more than 0 s and at most a day".into());
        }
        let period = exposure_period.unwrap_or(period);
        match exposure_time {
            Some(time) if time > period => Err(format!(
                "exposure_time = \"{time}\": write at most {period}, the time between two pictures"
            )),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for CbfHeader {
    /// The given values in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CbfHeader { detector_distance, wavelength, exposure_time, exposure_period } = *self;
        let distance = detector_distance.map(|length| format!("detector distance {} m", length.metres()));
        let wavelength = wavelength.map(|length| format!("wavelength {} A", length.angstrom()));
        let time = exposure_time.map(|time| format!("exposure time {time}"));
        let period = exposure_period.map(|period| format!("exposure period {period}"));
        let said: Vec<_> = [distance, wavelength, time, period].into_iter().flatten().collect();
        f.write_str(&said.join(", "))
    }
}

/// The rows and columns of a frame, with the exposure data for its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Picture {
    /// Its height in pixels.
    pub rows: usize,
    /// Its width in pixels.
    pub columns: usize,
    /// How it was exposed.
    pub header: CbfHeader,
    /// The greatest valid count of a pixel: programs that process pictures treat higher ones as overloaded.
    pub count_cutoff: u32,
}

/// The counters of a Pilatus have 20 bits.
pub const COUNT_CUTOFF: u32 = 0xf_ffff;

impl Picture {
    /// A picture of a counting detector without exposure data.
    pub const fn new(rows: usize, columns: usize) -> Self {
        let header = CbfHeader {
            detector_distance: None,
            wavelength: None,
            exposure_time: None,
            exposure_period: None,
        };
        Picture { rows, columns, header, count_cutoff: COUNT_CUTOFF }
    }

    /// Pixels in all.
    pub const fn pixels(&self) -> usize {
        self.rows * self.columns
    }

    /// The lines of the mini header for these values, in the order of a Pilatus.
    pub fn header_lines(&self) -> String {
        let CbfHeader { detector_distance, wavelength, exposure_time, exposure_period } = self.header;
        let lines = [
            exposure_time.map(|time| format!("# Exposure_time {:.7} s\r\n", time.seconds())),
            exposure_period.map(|period| format!("# Exposure_period {:.7} s\r\n", period.seconds())),
            Some(format!("# Count_cutoff {} counts\r\n", self.count_cutoff)),
            wavelength.map(|length| format!("# Wavelength {:.5} A\r\n", length.angstrom())),
            detector_distance.map(|length| format!("# Detector_distance {:.5} m\r\n", length.metres())),
        ];
        lines.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_says_what_is_known_in_the_units_of_the_field() {
        assert_eq!(Picture::new(2, 3).header_lines(), "# Count_cutoff 1048575 counts\r\n");
        let header = CbfHeader {
            detector_distance: "200 mm".parse().ok(),
            wavelength: "103.32 pm".parse().ok(),
            exposure_time: "3 ms".parse().ok(),
            exposure_period: "8 ms".parse().ok(),
        };
        let picture = Picture { header, ..Picture::new(2, 3) };
        assert_eq!(
            picture.header_lines(),
            "# Exposure_time 0.0030000 s\r\n# Exposure_period 0.0080000 s\r\n# Count_cutoff 1048575 counts\r\n\
             # Wavelength 1.03320 A\r\n# Detector_distance 0.20000 m\r\n"
        );
        assert_eq!(
            header.to_string(),
            "detector distance 0.2 m, wavelength 1.0332 A, exposure time 3 ms, exposure period 8 ms"
        );
    }
}
