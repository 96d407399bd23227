//! The data format of a VLBI stream in one word, in the form of station software.
//!
//! `VDIF_8000-4096-16-2` is VDIF with 8000 bytes of samples a frame, 4096 Mbit/s in all, 16 channels, 2 bits
//! a sample. It is the format string of mark5access, which is the "magic mode" of `jive5ab` (jive5ab
//! documentation, "Configuring data formats").

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, de};

use super::{HeaderKind, PacketFormat};
use crate::{Bytes, Instrument};

/// The data format of a VLBI stream, such as `VDIF_8000-4096-16-2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VlbiMode {
    kind: Kind,
    /// Mbit/s of all channels together, without headers.
    megabits: u64,
    channels: u64,
    bits: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Vdif(HeaderKind, Bytes),
    Mark5b,
}

/// A text that is not a mode which a network can carry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "mode `{0}`: write VDIF_<payload>-<Mbit/s>-<channels>-<bits>, VDIFL_ for legacy headers, or Mark5B-<Mbit/s>-<channels>-<bits>"
)]
pub struct ModeError(String);

/// Samples of a Mark5B frame, in bytes.
const MARK5B: Bytes = Bytes(10_000);

impl FromStr for VlbiMode {
    type Err = ModeError;

    fn from_str(text: &str) -> Result<Self, ModeError> {
        read(text.trim()).ok_or_else(|| ModeError(text.into()))
    }
}

fn read(text: &str) -> Option<VlbiMode> {
    let lower = text.to_ascii_lowercase();
    // A decimation may follow. It was applied before, and means nothing here.
    let (plain, _decimation) = lower.split_once('/').unwrap_or((&lower, "1"));
    let fields: Vec<&str> = plain.split('-').collect();
    let [format, megabits, channels, bits] = fields[..] else { return None };
    let megabits = number(megabits)?;
    let channels = number(channels)?;
    let bits = number(bits)?;
    let kind = match format.split_once('_') {
        Some(("vdif", payload)) => Kind::Vdif(HeaderKind::Full, Bytes(number(payload)?)),
        Some(("vdifl", payload)) => Kind::Vdif(HeaderKind::Legacy, Bytes(number(payload)?)),
        None if format == "mark5b" => Kind::Mark5b,
        _ => return None,
    };
    let bits = u32::try_from(bits).ok().filter(|bits| *bits <= 32)?;
    let mode = VlbiMode { kind, megabits, channels, bits };
    let fits = mode.payload().0.is_multiple_of(8) && mode.payload().0 <= 1 << 16;
    (channels.is_power_of_two() && channels <= 1 << 16 && megabits <= 1_000_000 && fits).then_some(mode)
}

/// Reads a number above 0, of digits only.
fn number(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok())?.filter(|number| *number > 0)
}

impl fmt::Display for VlbiMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Vdif(HeaderKind::Full, Bytes(payload)) => write!(f, "VDIF_{payload}")?,
            Kind::Vdif(HeaderKind::Legacy, Bytes(payload)) => write!(f, "VDIFL_{payload}")?,
            Kind::Mark5b => f.write_str("Mark5B")?,
        }
        write!(f, "-{}-{}-{}", self.megabits, self.channels, self.bits)
    }
}

impl<'de> Deserialize<'de> for VlbiMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl VlbiMode {
    /// The mode of an instrument. `None` if it sends neither VDIF nor Mark5B, or at a rate without such a
    /// name.
    pub fn of(instrument: &Instrument) -> Option<Self> {
        let (kind, bits, channels) = match &instrument.packets.as_ref()?.format {
            PacketFormat::Vdif(vdif) => (Kind::Vdif(vdif.header, vdif.payload), vdif.bits, vdif.channels),
            PacketFormat::Mark5b(_) => (Kind::Mark5b, 2, 16),
            _ => return None,
        };
        #[expect(clippy::cast_sign_loss, reason = "rates are not negative")]
        let megabits = (instrument.stream_rate().0 * 8e-6).round() as u64;
        Some(VlbiMode { kind, megabits, channels, bits })
    }

    /// `VDIF`, `VDIF (legacy)` or `mark5b`: the name of the format in replies.
    pub fn format(&self) -> &'static str {
        match self.kind {
            Kind::Vdif(HeaderKind::Full, _) => "VDIF",
            Kind::Vdif(HeaderKind::Legacy, _) => "VDIF (legacy)",
            Kind::Mark5b => "mark5b",
        }
    }

    /// Bytes of samples in a frame.
    pub fn payload(&self) -> Bytes {
        match self.kind {
            Kind::Vdif(_, payload) => payload,
            Kind::Mark5b => MARK5B,
        }
    }

    /// Bytes of a frame with its header.
    pub fn frame_size(&self) -> Bytes {
        let header = match self.kind {
            Kind::Vdif(HeaderKind::Full, _) => 32,
            Kind::Vdif(HeaderKind::Legacy, _) | Kind::Mark5b => 16,
        };
        Bytes(self.payload().0 + header)
    }

    /// Number of bit streams, over all channels.
    pub fn tracks(&self) -> u64 {
        self.channels * u64::from(self.bits)
    }

    /// Mbit/s of all channels together, without headers.
    pub fn megabits(&self) -> u64 {
        self.megabits
    }

    /// An instrument that sends this mode. The mode does not include the name, the port and the serial
    /// number. They come from `like`, if that sends VDIF or Mark5B too.
    pub fn instrument(&self, like: Option<&Instrument>) -> Result<Instrument, String> {
        let payload = self.payload().0;
        let bits = self.bits;
        let channels = self.channels;
        let frames = self.megabits as f64 * 125_000.0 / payload as f64;
        let format = match self.kind {
            Kind::Vdif(header, _) => {
                let header = if header == HeaderKind::Full { "full" } else { "legacy" };
                format!(
                    "vdif = {{ payload = \"{payload} B\", header = \"{header}\", bits = {bits}, channels = {channels} }}"
                )
            }
            Kind::Mark5b => "mark5b = {}".into(),
        };
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
        assert_eq!((mode.frame_size(), mode.tracks(), mode.megabits()), (Bytes(8032), 32, 4096));
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
        ] {
            let error = wrong.parse::<VlbiMode>().expect_err(wrong).to_string();
            assert!(error.contains(&format!("`{wrong}`")) && error.contains("VDIF_<payload>"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(?i)(vdifl?|mark5b)?_?[0-9]{0,7}-?[0-9]{0,9}-?[0-9]{0,6}-?\\PC{0,4}") {
            if let Ok(mode) = text.parse::<VlbiMode>() {
                prop_assert_eq!(mode.to_string().parse(), Ok(mode));
                drop(mode.instrument(None));
            }
        }
    }
}
