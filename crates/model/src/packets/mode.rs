//! The data format of a VLBI stream in one word, in the form of station software.
//!
//! `VDIF_8000-4096-16-2` is VDIF with 8000 bytes of samples a frame, 4096 Mbit/s in all, 16 channels, 2 bits
//! a sample. It is the format string of mark5access, which is the "magic mode" of `jive5ab` (jive5ab
//! documentation, "Configuring data formats"; its `src/headersearch.cc`, `pVDIF`). `L` stands for legacy
//! headers and `C` for complex samples, whose bits count for each component. The rate may be a fraction, such
//! as `307/3` or `102.4`.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, de};

use super::{
    HeaderKind, PacketFormat, Raw, Vdif,
    mode_rate::{ModeRate, number},
};
use crate::{Bytes, Format, Instrument};

/// The data format of a VLBI stream, such as `VDIF_8000-4096-16-2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VlbiMode {
    kind: Kind,
    /// The rate of all channels together, without headers.
    rate: ModeRate,
    channels: u64,
    /// Bits of a sample, or of each component of a complex one.
    bits: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Vdif { header: HeaderKind, payload: Bytes, complex: bool },
    Mark5b,
    Codif { payload: Bytes },
}

/// A text that is not a mode which a network can carry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "mode `{text}`: {}write VDIF_<payload>-<Mbit/s>-<channels>-<bits>, VDIFL_ for legacy headers, VDIFC_ for complex samples, CODIF_ for CODIF, or Mark5B-<Mbit/s>-<channels>-<bits>",
    suggestion(*near)
)]
pub struct ModeError {
    text: String,
    /// The mode with the same fields, if only the marks between them are wrong.
    near: Option<VlbiMode>,
}

fn suggestion(near: Option<VlbiMode>) -> String {
    near.map(|mode| format!("did you mean {mode}? Else ")).unwrap_or_default()
}

/// Samples of a Mark5B frame, in bytes.
const MARK5B: Bytes = Bytes(10_000);
/// Bytes of a CODIF header (CSIRO Oversampled Data Interchange Format, "CODIF data frame header").
const CODIF_HEADER: u64 = 64;

impl FromStr for VlbiMode {
    type Err = ModeError;

    fn from_str(text: &str) -> Result<Self, ModeError> {
        read(text.trim()).ok_or_else(|| ModeError { text: text.into(), near: near(text) })
    }
}

/// The mode that has the same fields between other marks.
fn near(text: &str) -> Option<VlbiMode> {
    let is_mark = |letter: char| matches!(letter, '_' | '-' | ' ' | ',' | ':');
    let fields: Vec<&str> = text.split(is_mark).filter(|field| !field.is_empty()).collect();
    match fields[..] {
        [name, payload, rate, channels, bits] => read(&format!("{name}_{payload}-{rate}-{channels}-{bits}")),
        [name, rate, channels, bits] => read(&format!("{name}-{rate}-{channels}-{bits}")),
        _ => None,
    }
}

fn read(text: &str) -> Option<VlbiMode> {
    let lower = text.to_ascii_lowercase();
    let fields: Vec<&str> = lower.split('-').collect();
    let [format, rate, channels, bits] = fields[..] else { return None };
    // A decimation may follow. It was applied before, and means nothing here.
    let (bits, _decimation) = bits.split_once('/').unwrap_or((bits, "1"));
    let rate = ModeRate::read(rate)?;
    let channels = number(channels)?;
    let bits = number(bits)?;
    let kind = match format.split_once('_') {
        Some((name, payload)) => framed(name, Bytes(number(payload)?))?,
        None if format == "mark5b" => Kind::Mark5b,
        None => return None,
    };
    let bits = u32::try_from(bits).ok().filter(|bits| *bits <= 32)?;
    let mode = VlbiMode { kind, rate, channels, bits };
    let fits = mode.payload().0.is_multiple_of(8) && mode.payload().0 <= 1 << 16;
    (channels.is_power_of_two() && channels <= 1 << 16 && fits).then_some(mode)
}

/// Returns the format with this name, of frames with this number of bytes of samples.
fn framed(name: &str, payload: Bytes) -> Option<Kind> {
    let vdif = |header, complex| Kind::Vdif { header, payload, complex };
    Some(match name {
        "vdif" => vdif(HeaderKind::Full, false),
        "vdifl" => vdif(HeaderKind::Legacy, false),
        "vdifc" => vdif(HeaderKind::Full, true),
        "vdiflc" | "vdifcl" => vdif(HeaderKind::Legacy, true),
        "codif" => Kind::Codif { payload },
        _ => return None,
    })
}

impl fmt::Display for VlbiMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Vdif { header, payload, complex } => {
                let legacy = if header == HeaderKind::Legacy { "L" } else { "" };
                let complex = if complex { "C" } else { "" };
                write!(f, "VDIF{legacy}{complex}_{}", payload.0)?;
            }
            Kind::Mark5b => f.write_str("Mark5B")?,
            Kind::Codif { payload } => write!(f, "CODIF_{}", payload.0)?,
        }
        write!(f, "-{}-{}-{}", self.rate, self.channels, self.bits)
    }
}

impl<'de> Deserialize<'de> for VlbiMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl VlbiMode {
    /// The mode of an instrument. `None` if it sends none of these formats.
    pub fn of(instrument: &Instrument) -> Option<Self> {
        let (kind, bits, channels) = match &instrument.packets.as_ref()?.format {
            PacketFormat::Vdif(vdif) => {
                let Vdif { header, payload, complex, bits, channels, .. } = *vdif;
                (Kind::Vdif { header, payload, complex }, bits, channels)
            }
            PacketFormat::Mark5b(_) => (Kind::Mark5b, 2, 16),
            PacketFormat::Raw(raw) => return Self::of_codif(instrument, raw),
            _ => return None,
        };
        Some(VlbiMode { kind, rate: ModeRate::of(instrument.stream_rate()), channels, bits })
    }

    /// The mode of CODIF, whose frames the recorder keeps as bytes without known structure. The title of an
    /// instrument that was made from a mode is this mode.
    fn of_codif(instrument: &Instrument, raw: &Raw) -> Option<Self> {
        let mode: VlbiMode = instrument.title.parse().ok()?;
        (matches!(mode.kind, Kind::Codif { .. }) && mode.frame_size() == raw.payload).then_some(mode)
    }

    /// The name of the format in replies, such as `VDIF (legacy)` or `mark5b`. jive5ab has the same names
    /// (`src/headersearch.cc`, `operator<<` of `format_type`).
    pub fn format(&self) -> &'static str {
        match self.kind {
            Kind::Vdif { header: HeaderKind::Full, complex: false, .. } => "VDIF",
            Kind::Vdif { header: HeaderKind::Legacy, complex: false, .. } => "VDIF (legacy)",
            Kind::Vdif { header: HeaderKind::Full, complex: true, .. } => "VDIF (complex)",
            Kind::Vdif { header: HeaderKind::Legacy, complex: true, .. } => "VDIF (legacy complex)",
            Kind::Mark5b => "mark5b",
            Kind::Codif { .. } => "CODIF",
        }
    }

    /// The format of its frames on storage. CODIF is bytes without known structure.
    pub fn stored(&self) -> Format {
        match self.kind {
            Kind::Vdif { .. } => Format::Vdif,
            Kind::Mark5b => Format::Mark5b,
            Kind::Codif { .. } => Format::Raw,
        }
    }

    /// Bytes of samples in a frame.
    pub fn payload(&self) -> Bytes {
        match self.kind {
            Kind::Vdif { payload, .. } | Kind::Codif { payload } => payload,
            Kind::Mark5b => MARK5B,
        }
    }

    /// Bytes of a frame with its header.
    pub fn frame_size(&self) -> Bytes {
        let header = match self.kind {
            Kind::Vdif { header: HeaderKind::Full, .. } => 32,
            Kind::Vdif { header: HeaderKind::Legacy, .. } | Kind::Mark5b => 16,
            Kind::Codif { .. } => CODIF_HEADER,
        };
        Bytes(self.payload().0 + header)
    }

    /// Number of bit streams, over all channels.
    pub fn tracks(&self) -> u64 {
        let components = if let Kind::Vdif { complex: true, .. } = self.kind { 2 } else { 1 };
        self.channels * u64::from(self.bits) * components
    }

    /// The rate of all channels together, without headers.
    pub fn rate(&self) -> ModeRate {
        self.rate
    }

    /// The keys of the packets' format in an instrument's file.
    fn packet_format(&self) -> String {
        let VlbiMode { channels, bits, .. } = self;
        match self.kind {
            Kind::Vdif { header, payload: Bytes(payload), complex } => {
                let header = if header == HeaderKind::Full { "full" } else { "legacy" };
                format!(
                    "vdif = {{ payload = \"{payload} B\", header = \"{header}\", bits = {bits}, \
                     channels = {channels}, complex = {complex} }}"
                )
            }
            Kind::Mark5b => "mark5b = {}".into(),
            Kind::Codif { .. } => format!("raw = {{ payload = \"{} B\" }}", self.frame_size().0),
        }
    }

    /// An instrument that sends this mode. The mode does not include the name, the port and the serial
    /// number. They come from `like`, if that sends VDIF or Mark5B too.
    pub fn instrument(&self, like: Option<&Instrument>) -> Result<Instrument, String> {
        let payload = self.payload().0;
        let frames = self.rate.megabits() * 125_000.0 / payload as f64;
        let format = self.packet_format();
        let text = format!(
            "name = \"vlbi\"\ntitle = \"{self}\"\nsource = \"its mode\"\nshape = [{payload}]\npixel = \"uint8\"\n\
             frame_rate = \"{frames} Hz\"\ndata = \"vlbi\"\n[packets.format]\n{format}\n"
        );
        let mut instrument = Instrument::parse(&text, "mode").map_err(|error| error.to_string())?;
        let known = like.and_then(|like| Some((like, like.packets.as_ref()?)));
        if let (Some((like, packets)), Some(own)) = (known, &mut instrument.packets)
            && matches!(packets.format, PacketFormat::Vdif(_) | PacketFormat::Mark5b(_))
        {
            (own.port, own.serial, own.prefix) = (packets.port, packets.serial, packets.prefix);
            instrument.name.clone_from(&like.name);
        }
        instrument.check().map_err(|why| format!("mode {self}: {why}"))?;
        Ok(instrument)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_mode_is_read_as_stations_write_it() {
        let mode: VlbiMode = "vdif_8000-4096-16-2".parse().expect("valid");
        assert_eq!(mode.to_string(), "VDIF_8000-4096-16-2");
        assert_eq!(
            (mode.frame_size(), mode.tracks(), mode.rate().to_string().as_str()),
            (Bytes(8032), 32, "4096")
        );
        let instrument = mode.instrument(None).expect("it can be recorded");
        assert_eq!(instrument.rate(), crate::ByteRate(512e6));
        let packets = instrument.packets.as_ref().expect("it has");
        assert_eq!((packets.port, packets.prefix()), (46227, Bytes(8)));
        let PacketFormat::Vdif(vdif) = &packets.format else { panic!("{packets:?}") };
        assert_eq!((vdif.payload, vdif.bits, vdif.channels), (Bytes(8000), 2, 16));
        assert_eq!(VlbiMode::of(&instrument), Some(mode));
        let legacy: VlbiMode = "VDIFL_8192-4096-32-2/4".parse().expect("valid");
        assert_eq!((legacy.to_string().as_str(), legacy.frame_size()), ("VDIFL_8192-4096-32-2", Bytes(8208)));
        let mark5b: VlbiMode = "Mark5B-2048-16-2".parse().expect("valid");
        assert_eq!(mark5b.frame_size(), Bytes(10_016));
        let instrument = mark5b.instrument(None).expect("it can be recorded");
        assert_eq!(instrument.rate(), crate::ByteRate(256e6));
    }

    #[test]
    fn rates_and_samples_of_real_back_ends_are_modes() {
        for (written, tracks, megabits, frames) in [
            ("VDIF_8000-102.4-4-2", 8, 102.4, Some(1600)),
            ("VDIF_8000-307/3-4-2", 8, 307.0 / 3.0, None),
            ("VDIF_8000-100-1-2", 2, 100.0, None),
            ("VDIF_8000-0.5-1-2", 2, 0.5, None),
            ("VDIF_1024-6400-1024-8", 8192, 6400.0, Some(781_250)),
            ("VDIFC_8000-512-1-8", 16, 512.0, Some(8000)),
            ("VDIFLC_8000-512-2-4", 16, 512.0, Some(8000)),
            ("Mark5B-512/3-8-2", 16, 512.0 / 3.0, None),
            ("CODIF_8000-512-16-2", 32, 512.0, None),
        ] {
            let mode: VlbiMode = written.parse().expect(written);
            assert_eq!((mode.to_string().as_str(), mode.tracks()), (written, tracks));
            assert!((mode.rate().megabits() / megabits - 1.0).abs() < 1e-12, "{written}");
            let instrument = mode.instrument(None).expect(written);
            assert!((instrument.rate().0 / (megabits * 125_000.0) - 1.0).abs() < 0.01, "{written}");
            let packets = instrument.packets.as_ref().expect("it has");
            assert_eq!(packets.frames_per_second(instrument.stream_rate()), Ok(frames), "{written}");
            assert_eq!(packets.prefix(), Bytes(8), "{written}");
            if !written.starts_with("Mark5B") {
                assert_eq!(VlbiMode::of(&instrument), Some(mode), "{written}");
            }
        }
        assert_eq!(
            "VDIFCL_8000-512-2-4/2".parse::<VlbiMode>().expect("valid").to_string(),
            "VDIFLC_8000-512-2-4"
        );
        let half = "VDIF_8000-1.50-1-2".parse::<VlbiMode>().expect("valid");
        assert_eq!(half.to_string(), "VDIF_8000-1.5-1-2");
    }

    #[test]
    fn frames_of_codif_are_kept_with_their_header() {
        let mode: VlbiMode = "CODIF_8000-512-16-2".parse().expect("valid");
        assert_eq!((mode.frame_size(), mode.format()), (Bytes(8064), "CODIF"));
        let instrument = mode.instrument(None).expect("valid");
        let packets = instrument.packets.as_ref().expect("it has");
        assert_eq!(packets.format, PacketFormat::Raw(Raw { payload: Bytes(8064) }));
        let other = Instrument { title: "bytes".into(), ..instrument };
        assert_eq!(VlbiMode::of(&other), None);
    }

    #[test]
    fn what_a_mode_does_not_say_stays_as_it_was() {
        let like: VlbiMode = "VDIF_5000-64-1-2".parse().expect("valid");
        let mut like = like.instrument(None).expect("valid");
        like.name = "mine".into();
        like.packets.as_mut().expect("it has").port = 5000;
        let mode: VlbiMode = "VDIF_8000-4096-16-2".parse().expect("valid");
        let changed = mode.instrument(Some(&like)).expect("valid");
        assert_eq!((changed.name.as_str(), changed.packets.expect("it has").port), ("mine", 5000));
    }

    #[test]
    fn what_is_no_mode_is_told_how_to_write_one() {
        for wrong in [
            "",
            "VDIF",
            "VDIF_8000-4096-16",
            "VDIF-4096-16-2",
            "VDIF_8001-4096-16-2",
            "VDIF_0-4096-16-2",
            "VDIF_8000-4096-15-2",
            "VDIF_8000-4096-16-33",
            "VDIF_8000--16-2",
            "VDIF_8000-+1-16-2",
            "MKIV1_4-512-8-2",
            "Mark5B_10000-2048-16-2",
            "VDIF_99999999999999999999-1-1-1",
            "VDIF_8000-4096-16-2-1",
            "VDIF_8000-4096.-16-2",
            "VDIF_8000-.5-16-2",
            "VDIF_8000-0.0-16-2",
            "VDIF_8000-1.0000001-16-2",
            "VDIF_8000-1/0-16-2",
            "VDIF_8000-1/2/3-16-2",
            "VDIF_8000-1000001-16-2",
            "VDIFX_8000-512-1-8",
            "CODIF-512-16-2",
        ] {
            let error = wrong.parse::<VlbiMode>().expect_err(wrong).to_string();
            assert!(error.contains(&format!("`{wrong}`")) && error.contains("VDIF_<payload>"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(?i)(vdifl?c?|codif|mark5b)?_?[0-9]{0,7}-?[0-9]{0,9}[./]?[0-9]{0,7}-?[0-9]{0,6}-?\\PC{0,4}") {
            if let Ok(mode) = text.parse::<VlbiMode>() {
                prop_assert_eq!(mode.to_string().parse(), Ok(mode));
                drop(mode.instrument(None));
            }
        }
    }
}
