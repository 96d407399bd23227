//! An instrument: the frames that it delivers, and how often, whether or not storage is ready. Each is one
//! TOML file in `instruments/`.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::{
    Burst, ByteRate, Bytes, COUNT_CUTOFF, CbfHeader, Data, DataKind, Format, FrameShape, Frequency,
    ModulePlaces, Nanos, Packets, Picture, PixelType, Readers, RecordingLayout, Schedule, TomlError,
    read_toml,
};

/// A source of frames at a fixed rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instrument {
    /// The name in the catalogue, equal to the file's name.
    pub name: String,
    /// A description in one line.
    pub title: String,
    /// The publication of the figures.
    pub source: String,
    /// Keys with values that no source gives.
    #[serde(default)]
    pub assumed: Vec<String>,
    /// Pixels of a frame: slowest dimension first. A frame has 1 B to 2 GiB.
    pub shape: Vec<u64>,
    /// The type of a pixel.
    pub pixel: PixelType,
    /// Frames a second, of each stream: above 0 Hz, at most 10 MHz.
    pub frame_rate: Frequency,
    /// Streams that deliver frames in step, 1 to 1000.
    #[serde(default = "one")]
    pub streams: u64,
    /// Frames come in bursts, with a pause after each.
    #[serde(default)]
    pub burst: Option<Burst>,
    /// The files that its frames go into, and how the recorder writes each, unless a plan or the command line
    /// overrides it.
    #[serde(default)]
    pub recording: RecordingLayout,
    /// Exposure data for the headers of its CBF files.
    #[serde(default, skip_serializing_if = "CbfHeader::is_empty")]
    pub cbf: CbfHeader,
    /// The places of its modules in one image, if each is sent by itself. Readers of HDF5 files then see that image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modules: Option<ModulePlaces>,
    /// The content of the frames. The default is random bytes.
    #[serde(default = "incompressible")]
    pub data: Data,
    /// The usual readers of its data during a recording.
    #[serde(default)]
    pub readers: Readers,
    /// True if the detector compresses its frames before it sends them, by the compressibility in `data`. They
    /// go into HDF5 files unless `recording` names another format.
    #[serde(default, skip_serializing_if = "is_false")]
    pub compressed: bool,
    /// The published rate of all streams together, without pauses. With it the rate is not assumed, even if
    /// the frames behind it are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<ByteRate>,
    /// How frames arrive over a network. Without it, Nilometer can only make them in memory.
    #[serde(default)]
    pub packets: Option<Packets>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_false(value: &bool) -> bool {
    !value
}

fn incompressible() -> Data {
    DataKind::Incompressible.into()
}

fn one() -> u64 {
    1
}

/// True if an instrument's file has `format` in its `[recording]`.
fn names_format(text: &str) -> bool {
    let file: Option<toml::Table> = toml::from_str(text).ok();
    file.and_then(|file| file.get("recording")?.get("format").cloned()).is_some()
}

/// Keys of an instrument's file that may appear in `assumed`.
const FIGURES: [&str; 11] = [
    "shape",
    "pixel",
    "frame_rate",
    "streams",
    "burst",
    "recording",
    "cbf",
    "modules",
    "data",
    "readers",
    "packets",
];

/// An instrument that can't be used.
#[derive(Debug, thiserror::Error)]
pub enum InstrumentError {
    /// Invalid TOML, or wrong keys or types; the source shows line, word and choices.
    #[error("{file}: {source}")]
    Written {
        /// The file as the user named it.
        file: String,
        /// The TOML error with line and valid names.
        source: TomlError,
    },
    /// A value that makes no sense.
    #[error("{file}: {why}")]
    Value {
        /// The file as the user named it.
        file: String,
        /// The key, its value, and the valid values.
        why: String,
    },
}

const FRAME_MAX: u64 = 2 << 30;
const STREAMS_MAX: u64 = 1000;
/// The share by which rates may deviate from published ones, since those are rounded.
const PUBLISHED_TOLERANCE: f64 = 0.05;

impl Instrument {
    /// Reads an instrument. Messages call it `file`.
    pub fn parse(text: &str, file: &str) -> Result<Self, InstrumentError> {
        let mut instrument: Instrument =
            read_toml(text).map_err(|source| InstrumentError::Written { file: file.into(), source })?;
        if instrument.compressed && !names_format(text) {
            instrument.recording.write_as(Format::Hdf5);
        }
        let checked = instrument.check().and_then(|()| instrument.check_published());
        let checked = checked.and_then(|()| instrument.check_cbf()).and_then(|()| instrument.check_modules());
        checked.map_err(|why| InstrumentError::Value { file: file.into(), why })?;
        Ok(instrument)
    }

    /// Refuses values that make no sense; the message says how to correct it. Call it again only after you change
    /// a value.
    pub fn check(&self) -> Result<(), String> {
        let Instrument { shape, pixel, frame_rate, streams, .. } = self;
        let bits = shape.iter().try_fold(pixel.bits(), |bits, &side| bits.checked_mul(side));
        match bits {
            Some(bits) if bits % 8 != 0 => {
                let name = pixel.name();
                return Err(format!(
                    "shape = {shape:?} of {name} is {bits} bits: a frame must be a whole number of bytes"
                ));
            }
            Some(bits) if (1..=FRAME_MAX).contains(&(bits / 8)) => {}
            _ => return Err(format!("shape = {shape:?}: a frame must have 1 B to 2 GiB")),
        }
        if !(frame_rate.0 > 0.0 && frame_rate.0 <= 1e7) {
            return Err(format!("frame_rate = \"{frame_rate}\": write more than 0 Hz and at most 10 MHz"));
        }
        if !(1..=STREAMS_MAX).contains(streams) {
            return Err(format!("streams = {streams}: write 1 to {STREAMS_MAX}"));
        }
        self.check_rest()
    }

    fn check_recording(&self) -> Result<(), String> {
        let frame = FrameShape { shape: &self.shape, pixel: self.pixel, size: self.frame_size() };
        self.recording.check(frame).map_err(|why| format!("recording: {why}"))
    }

    fn check_rest(&self) -> Result<(), String> {
        self.check_recording()?;
        self.check_compressed()?;
        self.check_packets_in_hdf5()?;
        if self.burst.is_some_and(|burst| burst.frames == 0) {
            return Err("burst.frames = 0: write at least 1, or leave burst out".into());
        }
        match self.assumed.iter().find(|key| !FIGURES.contains(&key.as_str())) {
            Some(key) => Err(format!("assumed names `{key}`: write some of {}", FIGURES.join(", "))),
            None => self.check_packets(),
        }
    }

    /// Checks the rate against the published one. Only a file must agree; the command line and plans may
    /// change the rate.
    fn check_published(&self) -> Result<(), String> {
        let Some(published) = self.published else { return Ok(()) };
        let rate = self.rate();
        if (rate.0 / published.0 - 1.0).abs() <= PUBLISHED_TOLERANCE {
            return Ok(());
        }
        Err(format!(
            "published = \"{published}\": shape, pixel, frame_rate and streams give {rate}; correct one of them"
        ))
    }

    /// Checks the exposure data in a file. A rate changed elsewhere leaves them as they are, like the
    /// published rate.
    fn check_cbf(&self) -> Result<(), String> {
        self.cbf.check(self.frame_rate.period()).map_err(|why| format!("cbf: {why}"))
    }

    /// Checks the places of modules in a file. A shape changed elsewhere drops them.
    fn check_modules(&self) -> Result<(), String> {
        let Some(modules) = &self.modules else { return Ok(()) };
        modules.check(&self.shape).map_err(|why| format!("modules: {why}"))
    }

    /// The places of its modules in one image, if its frames have the shape that these places are for.
    pub fn placed_modules(&self) -> Option<&ModulePlaces> {
        self.modules.as_ref().filter(|modules| modules.check(&self.shape).is_ok())
    }

    /// Checks that frames that arrive in packets can be HDF5 chunks: packets of samples have no frames.
    fn check_packets_in_hdf5(&self) -> Result<(), String> {
        let Some(packets) = self.packets.as_ref().filter(|_| self.recording.format == Format::Hdf5) else {
            return Ok(());
        };
        let frame = self.frame_size();
        if packets.detector(frame).is_some() {
            return Ok(());
        }
        Err("format = \"hdf5\": these packets have samples, and only the frames of a detector can go into HDF5; write format = \
             \"raw\""
            .into())
    }

    fn check_compressed(&self) -> Result<(), String> {
        let comes_as_it_is = self.recording.format != Format::Cbf && self.packets.is_none();
        if self.compressed && !(comes_as_it_is && self.data.compressibility.is_some()) {
            return Err(
                "compressed = true: write data with its compressibility, leave packets out, and write no format but \"hdf5\""
                    .into(),
            );
        }
        Ok(())
    }

    fn check_packets(&self) -> Result<(), String> {
        let Some(packets) = &self.packets else { return Ok(()) };
        let checked = packets.check(self.frame_size(), self.stream_rate(), self.streams);
        checked.map_err(|why| format!("packets: {why}"))
    }

    /// The frame for the header of its file, if it is one picture with rows and columns; else `None`.
    ///
    /// Without an exposure period of its own, pictures follow each other at the frame rate. For random bytes
    /// the count may have any size.
    pub fn picture(&self) -> Option<Picture> {
        let &[rows, columns] = self.shape.as_slice() else { return None };
        let period = self.cbf.exposure_period.unwrap_or_else(|| self.frame_rate.period());
        let header = CbfHeader { exposure_period: Some(period), ..self.cbf };
        let is_noise = self.data.kind == DataKind::Incompressible;
        let count_cutoff = if is_noise { i32::MAX.unsigned_abs() } else { COUNT_CUTOFF };
        Some(Picture { header, count_cutoff, ..Picture::new(rows as usize, columns as usize) })
    }

    /// Bytes of a frame, uncompressed.
    pub fn frame_size(&self) -> Bytes {
        Bytes(self.shape.iter().product::<u64>() * self.pixel.bits() / 8)
    }

    /// The mean time between frames, over all streams, without pauses.
    pub fn period(&self) -> Nanos {
        Nanos((self.frame_rate.period().0 / self.streams).max(1))
    }

    /// The rate to be written, uncompressed, over all streams, without pauses.
    pub fn rate(&self) -> ByteRate {
        ByteRate(self.frame_size().0 as f64 * self.frame_rate.0 * self.streams as f64)
    }

    /// The rate of one stream, without pauses.
    pub fn stream_rate(&self) -> ByteRate {
        ByteRate(self.frame_size().0 as f64 * self.frame_rate.0)
    }

    /// The long-term rate to be written, including pauses.
    pub fn mean_rate(&self) -> ByteRate {
        let share = self.burst.map_or(1.0, |Burst { frames, pause }| {
            let burst = frames as f64 / self.frame_rate.0;
            burst / (burst + pause.seconds())
        });
        ByteRate(self.rate().0 * share)
    }

    /// How late a frame may be; a longer wait counts as a stall. It is four frame periods, at least 10 ms.
    pub fn allowance(&self) -> Nanos {
        Nanos(self.frame_rate.period().0.saturating_mul(4)).max(Nanos::from_millis(10))
    }

    /// When frames are due.
    pub fn schedule(&self) -> Schedule {
        Schedule { period: self.frame_rate.period(), streams: self.streams, burst: self.burst }
    }
}
