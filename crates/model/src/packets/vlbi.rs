//! Packets of radio telescopes: VDIF, Mark5B, and packets without known structure.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::Bytes;

/// A VDIF frame in each packet (VDIF specification 1.1.1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vdif {
    /// Bytes of samples in a frame, without its header.
    #[serde(default = "fila10g")]
    pub payload: Bytes,
    /// The stations whose frames arrive. `None` means the station of the first packet.
    #[serde(default)]
    pub stations: Option<Vec<Station>>,
    /// The threads, in the order of their arrival. `None` means any. Without serial numbers in packets you
    /// must list them.
    #[serde(default)]
    pub threads: Option<Vec<u16>>,
    /// The extended data version that a simulator writes: 0 to 4, or 171 for Mark5B inside VDIF.
    #[serde(default)]
    pub edv: u8,
    /// The header that a simulator writes.
    #[serde(default)]
    pub header: HeaderKind,
    /// Bits of a sample.
    #[serde(default = "two")]
    pub bits: u32,
    /// Channels of a frame: a power of two.
    #[serde(default = "one")]
    pub channels: u64,
    /// True if each sample is complex. Then `bits` are those of each of its two components.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub complex: bool,
}

/// The length of a VDIF header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeaderKind {
    /// 32 bytes.
    #[default]
    Full,
    /// 16 bytes, without extended data.
    Legacy,
}

fn fila10g() -> Bytes {
    Bytes(8000)
}

fn two() -> u32 {
    2
}

fn one() -> u64 {
    1
}

/// Known extended data versions, with the sizes of samples that a frame may have, in bytes.
const VERSIONS: [(u8, &[u64]); 6] =
    [(0, &[]), (1, &[]), (2, &[5000, 8000, 8192]), (3, &[1000, 5000]), (4, &[]), (0xab, &[10_000])];
const THREAD_MAX: u16 = 1023;
const CHANNELS_MAX: u64 = 1 << 31;
/// The most frames in a second: the field of the frame number has no room for more.
const FRAMES_MAX: u64 = 1 << 24;
/// The limit of a rate in a header: its field has no room for more.
const RATE_MAX: u64 = 1 << 23;

impl Vdif {
    pub(super) fn check(&self, numbered: bool) -> Result<(), String> {
        let payload = self.payload.0;
        if payload == 0 || !payload.is_multiple_of(8) {
            return Err(format!("payload = \"{payload} B\": write a multiple of 8 B"));
        }
        self.check_version()?;
        if !(1..=32).contains(&self.bits) {
            return Err(format!("bits = {}: write 1 to 32", self.bits));
        }
        let channels = self.channels;
        if !channels.is_power_of_two() || channels > CHANNELS_MAX {
            return Err(format!("channels = {channels}: write a power of two, at most {CHANNELS_MAX}"));
        }
        if let Some(stations) = &self.stations {
            distinct("stations", stations)?;
        }
        let Some(threads) = &self.threads else {
            let unnamed = "threads: name them; they distinguish packets without a serial number";
            return if numbered { Ok(()) } else { Err(unnamed.into()) };
        };
        match threads.iter().find(|thread| **thread > THREAD_MAX) {
            Some(thread) => Err(format!("threads has {thread}: write 0 to {THREAD_MAX}")),
            None => distinct("threads", threads),
        }
    }

    fn check_version(&self) -> Result<(), String> {
        let edv = self.edv;
        let Some((_, payloads)) = VERSIONS.iter().find(|(known, _)| *known == edv) else {
            return Err(format!("edv = {edv}: write 0 to 4, or 171 for Mark5B inside VDIF"));
        };
        if edv != 0 && self.header == HeaderKind::Legacy {
            return Err(format!("edv = {edv}: a legacy header has no extended data, leave it out"));
        }
        if !payloads.is_empty() && !payloads.contains(&self.payload.0) {
            let choices =
                payloads.iter().map(|bytes| format!("\"{bytes} B\"")).collect::<Vec<_>>().join(" or ");
            return Err(format!("payload = \"{} B\": with edv = {edv} write {choices}", self.payload.0));
        }
        Ok(())
    }

    pub(super) fn check_frames(&self, frames: u64) -> Result<(), String> {
        if frames > FRAMES_MAX {
            return Err(format!(
                "{frames} frames a second: VDIF counts at most {FRAMES_MAX}, write a larger payload"
            ));
        }
        if matches!(self.edv, 1 | 3) && self.sampling(frames).is_none() {
            return Err(format!(
                "edv = {}: its headers tell no sampling rate but whole kHz, write edv = 0",
                self.edv
            ));
        }
        Ok(())
    }

    /// The sampling rate in headers with EDV 1 and 3. Bits 22 to 0 hold that of complex samples, which is
    /// half that of real ones; bit 23 tells MHz from kHz. `None` if it does not fit or is not whole.
    pub fn sampling(&self, frames_per_second: u64) -> Option<u32> {
        let parts = if self.complex { 2 } else { 1 };
        let samples = self.payload.0 * 8 / (u64::from(self.bits) * parts) / self.channels;
        let hertz = samples.checked_mul(frames_per_second)? / (3 - parts);
        let (rate, unit) = match (hertz % 1_000_000, hertz % 1000) {
            (0, _) => (hertz / 1_000_000, 1 << 23),
            (_, 0) => (hertz / 1000, 0),
            _ => return None,
        };
        (1..RATE_MAX).contains(&rate).then_some(rate as u32 | unit)
    }

    /// Number of frames of all stations and threads with the same time.
    pub fn lanes(&self) -> u64 {
        let stations = self.stations.as_ref().map_or(1, Vec::len);
        let threads = self.threads.as_ref().map_or(1, Vec::len);
        (stations * threads) as u64
    }

    /// Bytes of a frame with its header.
    pub fn frame_size(&self) -> Bytes {
        let header = match self.header {
            HeaderKind::Full => 32,
            HeaderKind::Legacy => 16,
        };
        Bytes(self.payload.0.saturating_add(header))
    }
}

fn distinct<T: PartialEq + fmt::Display>(name: &str, list: &[T]) -> Result<(), String> {
    let again = list.iter().enumerate().find(|(at, one)| list[..*at].contains(one));
    match again {
        Some((_, one)) => Err(format!("{name} has {one} twice: write each once")),
        None if list.is_empty() => Err(format!("{name} = []: name at least one, or leave it out")),
        None => Ok(()),
    }
}

/// A station: two characters, or a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Station(pub u16);

impl Station {
    /// Its two characters in headers, unless they could be a number.
    fn characters(self) -> Option<[char; 2]> {
        let [first, second] = self.0.to_be_bytes();
        let is = (0x30..0x7f).contains(&first) && (0x20..0x7f).contains(&second);
        is.then_some([first, second].map(char::from))
    }
}

impl fmt::Display for Station {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.characters() {
            Some([first, second]) => write!(f, "{first}{second}"),
            None => write!(f, "{}", self.0),
        }
    }
}

/// The name of a thread, or of a stream of a format without stations, in texts.
pub fn source_name(station: Option<u16>, thread: u16) -> String {
    match station {
        Some(station) => format!("thread {thread} of station {}", Station(station)),
        None => format!("stream {thread}"),
    }
}

impl std::str::FromStr for Station {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let two = <[u8; 2]>::try_from(text.as_bytes()).map(|bytes| Station(u16::from_be_bytes(bytes)));
        let named = two.ok().filter(|station| station.characters().is_some());
        named.ok_or_else(|| {
            format!("no station `{text}`: write two ASCII characters, or a number up to 65535")
        })
    }
}

impl Serialize for Station {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.characters() {
            Some(_) => serializer.collect_str(self),
            None => serializer.serialize_u16(self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Station {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Written)
    }
}

struct Written;

impl de::Visitor<'_> for Written {
    type Value = Station;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("two characters in quotes, or a number up to 65535")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Station, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Station, E> {
        let station = u16::try_from(number).map(Station);
        station.map_err(|_| E::custom(format!("no station {number}: write 0 to 65535, or two characters")))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Station, E> {
        self.visit_i64(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// Mark5B frames of 10016 bytes (Mark 5B user's manual).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark5b {
    /// The part of a frame that a packet carries.
    #[serde(default)]
    pub frame: Cut,
}

/// The part of a Mark5B frame that a packet carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// A half, as FILA10G sends it.
    #[default]
    Halves,
    /// All of it.
    Whole,
}

impl Mark5b {
    /// Bytes of samples in a frame.
    pub const PAYLOAD: Bytes = Bytes(10_000);
    /// Bytes of a frame with its header.
    pub const FRAME: Bytes = Bytes(10_016);

    pub(super) fn check(&self, numbered: bool) -> Result<(), String> {
        if self.frame == Cut::Halves && !numbered {
            return Err(
                "frame = \"halves\": the second half has no header, so packets need a serial number".into()
            );
        }
        Ok(())
    }

    pub(super) fn check_frames(frames: u64) -> Result<(), String> {
        match frames {
            ..=0x8000 => Ok(()),
            _ => Err(format!("{frames} frames a second: Mark5B counts at most 32768, write vdif instead")),
        }
    }

    /// Bytes of a packet that the recorder stores.
    pub fn packet_size(&self) -> Bytes {
        match self.frame {
            Cut::Halves => Bytes(Self::FRAME.0 / 2),
            Cut::Whole => Self::FRAME,
        }
    }
}

/// Bytes without known structure; each packet is a frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Raw {
    /// Bytes of a packet that the recorder stores: those after its prefix.
    pub payload: Bytes,
}

impl Raw {
    pub(super) fn check(&self) -> Result<(), String> {
        match self.payload.0 {
            0 => Err("payload = \"0 B\": write at least 1 B".into()),
            _ => Ok(()),
        }
    }
}
