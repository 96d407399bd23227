//! A frame that is one picture, and the geometry and exposure data for the header of its CBF file: the table `[cbf]` of
//! an instrument's file. Files of HDF5 have them too, at the places of NXmx.
//!
//! Sources: DECTRIS, "PILATUS CBF header" (dectris.com/support/downloads/header-docs/cbf: keywords, values
//! and units). The imgCIF dictionary has an example of a mini CBF file (`mmcif_img.dic`, category
//! `ARRAY_DATA`: times in s).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Length, Moment, Nanos};

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
    /// The side of a pixel, which is a square: `Pixel_size`, in m. `None` means that of a Pilatus, 172 um.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pixel_size: Option<Length>,
    /// The thickness of the sensor, which is silicon: `Silicon sensor, thickness`, in m.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sensor_thickness: Option<Length>,
    /// The point where the beam would hit the detector: `Beam_xy`, in pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beam_center: Option<BeamPixel>,
    /// The angle of the rotation at the start of the first picture: `Start_angle`, in degrees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_angle: Option<RotationAngle>,
    /// The angle from the start of a picture to that of the next: `Angle_increment`, in degrees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub angle_increment: Option<RotationAngle>,
}

/// An angle, in millionths of a degree. Instruments write it in degrees: `0.1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct RotationAngle(i64);

/// Millionths in a degree, and the largest angle.
const MILLIONTHS: f64 = 1e6;
const DEGREES_MAX: f64 = 1e9;

impl TryFrom<f64> for RotationAngle {
    type Error = String;

    fn try_from(degrees: f64) -> Result<Self, String> {
        if degrees.is_nan() || degrees.abs() > DEGREES_MAX {
            return Err(
                "start_angle and angle_increment: write numbers of degrees, each at most 1000000000".into()
            );
        }
        Ok(RotationAngle((degrees * MILLIONTHS).round() as i64))
    }
}

impl From<RotationAngle> for f64 {
    fn from(angle: RotationAngle) -> Self {
        angle.degrees()
    }
}

impl RotationAngle {
    /// In degrees.
    pub fn degrees(self) -> f64 {
        self.0 as f64 / MILLIONTHS
    }

    /// The angle after `pictures` pictures with this increment.
    fn after(self, pictures: u64, increment: RotationAngle) -> Self {
        let turned = increment.0.saturating_mul(pictures.try_into().unwrap_or(i64::MAX));
        RotationAngle(self.0.saturating_add(turned))
    }
}

/// A point on the detector or beside it, in hundredths of a pixel from the outer corner of the first one. Instruments
/// write it in pixels, along a row and along a column: `[737.5, 839.5]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "[f64; 2]", into = "[f64; 2]")]
pub struct BeamPixel {
    x: i64,
    y: i64,
}

/// Hundredths in a pixel, and the largest distance from the first pixel.
const HUNDREDTHS: f64 = 100.0;
const PIXELS_MAX: f64 = 1e6;

impl TryFrom<[f64; 2]> for BeamPixel {
    type Error = String;

    fn try_from(pixels: [f64; 2]) -> Result<Self, String> {
        if !pixels.iter().all(|pixel| pixel.abs() <= PIXELS_MAX) {
            return Err("beam_center: write two numbers of pixels, each at most 1000000".into());
        }
        let [x, y] = pixels.map(|pixel| (pixel * HUNDREDTHS).round() as i64);
        Ok(BeamPixel { x, y })
    }
}

impl From<BeamPixel> for [f64; 2] {
    fn from(beam: BeamPixel) -> Self {
        [beam.x, beam.y].map(|hundredths| hundredths as f64 / HUNDREDTHS)
    }
}

/// Limits that no instrument and no X-rays exceed.
const DISTANCE_MAX: Length = Length(1_000_000_000_000_000_000);
const WAVELENGTH_MAX: Length = Length(1_000_000_000);
const SENSOR_MAX: Length = Length(10_000_000_000_000);
const TIME_MAX: Nanos = Nanos(86_400_000_000_000);

impl CbfHeader {
    /// Returns true if no value is given.
    pub fn is_empty(&self) -> bool {
        *self == CbfHeader::default()
    }

    /// Refuses values that make no sense for pictures with this period; the message says how to correct it.
    pub(crate) fn check(&self, period: Nanos) -> Result<(), String> {
        let CbfHeader { detector_distance, wavelength, exposure_time, exposure_period, .. } = *self;
        let is_length =
            |length: Option<Length>, most| length.is_none_or(|length| length > Length(0) && length <= most);
        if !is_length(detector_distance, DISTANCE_MAX) {
            return Err("detector_distance: write more than 0 m and at most 1000 m".into());
        }
        if !is_length(wavelength, WAVELENGTH_MAX) {
            return Err("wavelength: write more than 0 A and at most 1 um".into());
        }
        if ![self.pixel_size, self.sensor_thickness].into_iter().all(|length| is_length(length, SENSOR_MAX)) {
            return Err("pixel_size and sensor_thickness: write more than 0 m and at most 10 mm".into());
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
        let CbfHeader { detector_distance, wavelength, exposure_time, exposure_period, .. } = *self;
        let distance = detector_distance.map(|length| format!("detector distance {} m", length.metres()));
        let wavelength = wavelength.map(|length| format!("wavelength {} A", length.angstrom()));
        let time = exposure_time.map(|time| format!("exposure time {time}"));
        let period = exposure_period.map(|period| format!("exposure period {period}"));
        let pixel = self.pixel_size.map(|length| format!("pixels of {} um", length.micrometres()));
        let sensor = self.sensor_thickness.map(|length| format!("silicon of {} um", length.micrometres()));
        let beam = self.beam_center.map(|beam| {
            let [x, y] = beam.into();
            format!("beam at {x}, {y}")
        });
        let angle = |name: &str, angle: Option<RotationAngle>| {
            angle.map(|angle| format!("{name} {} degrees", angle.degrees()))
        };
        let start = angle("rotation from", self.start_angle);
        let step = angle("a picture turns", self.angle_increment);
        let said = [distance, wavelength, time, period, pixel, sensor, beam, start, step];
        let said: Vec<_> = said.into_iter().flatten().collect();
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
    /// When its exposure began. `None` if nobody knows.
    pub begun: Option<Moment>,
    /// The greatest valid count of a pixel: programs that process pictures treat higher ones as overloaded.
    pub count_cutoff: u32,
}

/// The counters of a Pilatus have 20 bits.
pub const COUNT_CUTOFF: u32 = 0xf_ffff;
/// The side of its pixels: 172 um.
const PILATUS_PIXEL: Length = Length(172_000_000_000);

impl Picture {
    /// A picture of a counting detector without exposure data.
    pub const fn new(rows: usize, columns: usize) -> Self {
        let header = CbfHeader {
            detector_distance: None,
            wavelength: None,
            exposure_time: None,
            exposure_period: None,
            pixel_size: None,
            sensor_thickness: None,
            beam_center: None,
            start_angle: None,
            angle_increment: None,
        };
        Picture { rows, columns, header, begun: None, count_cutoff: COUNT_CUTOFF }
    }

    /// Pixels in all.
    pub const fn pixels(&self) -> usize {
        self.rows * self.columns
    }

    /// The picture with this number, from 0, of a series that begins with this one. Its rotation and its time have gone
    /// on; the time is unknown without a period.
    #[must_use]
    pub fn of_number(&self, number: u64) -> Picture {
        let CbfHeader { start_angle, angle_increment, .. } = self.header;
        let increment = angle_increment.unwrap_or_default();
        let start_angle = start_angle.map(|start| start.after(number, increment));
        let later = self.header.exposure_period.map(|period| Nanos(period.0.saturating_mul(number)));
        let begun = self.begun.zip(later.or((number == 0).then_some(Nanos(0))));
        let begun = begun.map(|(begun, later)| Moment(begun.0 + later));
        Picture { header: CbfHeader { start_angle, ..self.header }, begun, ..*self }
    }

    /// The lines of the mini header for these values, in the order of a Pilatus.
    pub fn header_lines(&self) -> String {
        let CbfHeader { detector_distance, wavelength, exposure_time, exposure_period, .. } = self.header;
        let sensor = self.header.sensor_thickness;
        let pixel = self.header.pixel_size.unwrap_or(PILATUS_PIXEL).micrometres();
        let beam = self.header.beam_center.map(|beam| {
            let [x, y] = beam.into();
            format!("# Beam_xy ({x:.2}, {y:.2}) pixels\r\n")
        });
        let angle = |name: &str, angle: Option<RotationAngle>| {
            angle.map(|angle| format!("# {name} {:.4} deg.\r\n", angle.degrees()))
        };
        let lines = [
            self.begun.map(|begun| format!("# {}\r\n", begun.milliseconds())),
            Some(format!("# Pixel_size {pixel}e-6 m x {pixel}e-6 m\r\n")),
            sensor.map(|length| format!("# Silicon sensor, thickness {:.6} m\r\n", length.metres())),
            exposure_time.map(|time| format!("# Exposure_time {:.7} s\r\n", time.seconds())),
            exposure_period.map(|period| format!("# Exposure_period {:.7} s\r\n", period.seconds())),
            Some(format!("# Count_cutoff {} counts\r\n", self.count_cutoff)),
            wavelength.map(|length| format!("# Wavelength {:.5} A\r\n", length.angstrom())),
            detector_distance.map(|length| format!("# Detector_distance {:.5} m\r\n", length.metres())),
            beam,
            angle("Start_angle", self.header.start_angle),
            angle("Angle_increment", self.header.angle_increment),
        ];
        lines.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_says_what_is_known_in_the_units_of_the_field() {
        let pixels = "# Pixel_size 172e-6 m x 172e-6 m\r\n";
        assert_eq!(Picture::new(2, 3).header_lines(), format!("{pixels}# Count_cutoff 1048575 counts\r\n"));
        let header = CbfHeader {
            detector_distance: "200 mm".parse().ok(),
            wavelength: "103.32 pm".parse().ok(),
            exposure_time: "3 ms".parse().ok(),
            exposure_period: "8 ms".parse().ok(),
            pixel_size: "75 um".parse().ok(),
            sensor_thickness: "450 um".parse().ok(),
            beam_center: BeamPixel::try_from([737.5, -2.25]).ok(),
            start_angle: RotationAngle::try_from(90.0).ok(),
            angle_increment: RotationAngle::try_from(0.1).ok(),
        };
        let picture = Picture { header, ..Picture::new(2, 3) };
        assert_eq!(
            picture.header_lines(),
            "# Pixel_size 75e-6 m x 75e-6 m\r\n# Silicon sensor, thickness 0.000450 m\r\n\
             # Exposure_time 0.0030000 s\r\n# Exposure_period 0.0080000 s\r\n# Count_cutoff 1048575 counts\r\n\
             # Wavelength 1.03320 A\r\n# Detector_distance 0.20000 m\r\n\
             # Beam_xy (737.50, -2.25) pixels\r\n# Start_angle 90.0000 deg.\r\n# Angle_increment 0.1000 deg.\r\n"
        );
        let begun: Option<Moment> = "2026-12-01T18:00:00.25Z".parse().ok();
        let timed = Picture { begun, ..picture };
        assert!(timed.header_lines().starts_with("# 2026-12-01T18:00:00.250\r\n# Pixel_size"));
        assert!(timed.of_number(1000).header_lines().starts_with("# 2026-12-01T18:00:08.250\r\n"));
        let untimed = Picture { begun, ..Picture::new(2, 3) };
        assert_eq!(untimed.of_number(0).begun, begun);
        assert_eq!(untimed.of_number(1).begun, None, "without a period nobody knows");
        let later = picture.of_number(3).header_lines();
        assert!(
            later.ends_with("# Start_angle 90.3000 deg.\r\n# Angle_increment 0.1000 deg.\r\n"),
            "{later}"
        );
        assert_eq!(
            header.to_string(),
            "detector distance 0.2 m, wavelength 1.0332 A, exposure time 3 ms, exposure period 8 ms, \
             pixels of 75 um, silicon of 450 um, beam at 737.5, -2.25, rotation from 90 degrees, \
             a picture turns 0.1 degrees"
        );
    }
}
