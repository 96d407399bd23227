//! The form in which an instrument's frames arrive over a network: the `packets` of its file.
//!
//! ```toml
//! [packets]
//! port = 46227
//! serial = { at = { offset = 0, bytes = 8 } }
//!
//! [packets.format.vdif]
//! payload = "8000 B"
//! threads = [0]
//! ```

mod bit_field;
mod blocks;
mod detector;
mod eiger;
mod field;
mod mode;
mod mode_rate;
mod numbered;
mod part;
mod vlbi;

pub use bit_field::BitField;
pub use blocks::frames_of_block;
pub use detector::{Constant, Detector, DummyUdp, Marks, Module, Modules};
pub use eiger::EigerHalves;
pub use field::{Endian, Field};
pub use mode::{ModeError, VlbiMode};
pub use mode_rate::ModeRate;
pub use numbered::{
    FixedBits, KeptHeader, NamedBits, NumberedPackets, PacketInFrame, PacketNumber, StreamField, UpperClock,
    UpperNumber,
};
pub use part::{PacketPart, PacketPartKind, PacketShare};
pub use vlbi::{Cut, HeaderKind, Mark5b, Raw, Station, Vdif, source_name};

use serde::{Deserialize, Serialize};

use crate::{ByteRate, Bytes};

/// The layout of an instrument's packets, known before the first one arrives.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Packets {
    /// The UDP port; the first one if there are several.
    #[serde(default = "custom")]
    pub port: u16,
    /// The serial number in front of each packet. The default is that of FILA10G; detectors have none.
    #[serde(default)]
    pub serial: Option<Serial>,
    /// Bytes in front of a packet that the recorder drops. `None` means the length of FILA10G's serial
    /// numbers: 8, or 0 without one.
    #[serde(default)]
    pub prefix: Option<Bytes>,
    /// The content of a packet.
    pub format: PacketFormat,
}

/// The port of VLBI recorders.
fn custom() -> u16 {
    46227
}

/// The content of an instrument's packets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PacketFormat {
    /// A VDIF frame each.
    Vdif(Vdif),
    /// Mark5B frames, or halves of them.
    Mark5b(Mark5b),
    /// Bytes without known structure.
    Raw(Raw),
    /// A stream whose packets are described here: a number in a header, and samples.
    Numbered(NumberedPackets),
    /// EXCALIBUR in 12-bit mode, each front-end module on a port of its own.
    Excalibur(Modules),
    /// JUNGFRAU, each module on a port of its own.
    Jungfrau(Modules),
    /// EIGER of the Paul Scherrer Institute, two ports for each half module.
    Eiger(EigerHalves),
    /// The test stream of odin-data.
    DummyUdp(DummyUdp),
    /// A detector whose packets are described here.
    Described(Detector),
}

/// The serial number of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Serial {
    /// Packets have no serial number.
    None,
    /// Its position in the prefix: 4 or 8 bytes.
    At(Field),
}

/// The most bytes in a UDP packet.
const PACKET_MAX: u64 = 65_507;

impl Packets {
    /// Refuses values that make no sense; the message says how to correct them. `frame` and `rate` are those
    /// of one stream.
    pub fn check(&self, frame: Bytes, rate: ByteRate, streams: u64) -> Result<(), String> {
        self.check_layout(frame)?;
        let last = u64::from(self.port) + u64::from(self.ports()) * streams - 1;
        if self.port == 0 || last > u64::from(u16::MAX) {
            return Err(format!("port = {}: write one so that all are in 1 to {}", self.port, u16::MAX));
        }
        self.frames_per_second(rate).map(|_| ())
    }

    /// Refuses a layout of packets that makes no sense for frames of this size.
    pub fn check_layout(&self, frame: Bytes) -> Result<(), String> {
        self.check_front()?;
        match &self.format {
            PacketFormat::Vdif(vdif) => vdif.check(self.serial().is_some())?,
            PacketFormat::Mark5b(mark5b) => mark5b.check(self.serial().is_some())?,
            PacketFormat::Raw(raw) => raw.check()?,
            PacketFormat::Numbered(numbered) => numbered.check()?,
            PacketFormat::Excalibur(modules) | PacketFormat::Jungfrau(modules) => modules.check()?,
            PacketFormat::Eiger(eiger) => eiger.check(frame)?,
            PacketFormat::DummyUdp(dummy) => dummy.check()?,
            PacketFormat::Described(detector) => detector.check()?,
        }
        if let Some(detector) = self.detector(frame) {
            detector.check()?;
            let brought = detector.pixels();
            if brought != frame.0 {
                return Err(format!(
                    "they bring {brought} B of pixels a frame, and its shape has {} B",
                    frame.0
                ));
            }
        }
        let size = self.packet_max(frame);
        if size > PACKET_MAX {
            return Err(format!(
                "packets of {size} B: write a payload with which they have at most {PACKET_MAX} B"
            ));
        }
        Ok(())
    }

    fn check_front(&self) -> Result<(), String> {
        if self.has_own_header() {
            return match (self.serial, self.prefix) {
                (None, None) => Ok(()),
                _ => Err("serial and prefix: the format describes the header, leave them out".into()),
            };
        }
        let prefix = self.prefix().0;
        if prefix > PACKET_MAX {
            return Err(format!("prefix = \"{}\": write at most {PACKET_MAX} B", Bytes(prefix)));
        }
        let Some(field) = self.serial() else { return Ok(()) };
        if ![4, 8].contains(&field.bytes) || field.bits.is_some() {
            return Err("serial: write bytes = 4 or bytes = 8, and no bits".into());
        }
        field.check("serial", prefix)
    }

    /// True if the format has a header of its own with the numbers of a packet, so that nothing stands in front.
    fn has_own_header(&self) -> bool {
        use PacketFormat::{Described, DummyUdp, Eiger, Excalibur, Jungfrau, Mark5b, Numbered, Raw, Vdif};
        match self.format {
            Vdif(_) | Mark5b(_) | Raw(_) => false,
            Numbered(_) | Excalibur(_) | Jungfrau(_) | Eiger(_) | DummyUdp(_) | Described(_) => true,
        }
    }

    /// The position of the serial number in the prefix; `None` if packets have none.
    pub fn serial(&self) -> Option<Field> {
        match (self.serial, &self.format) {
            (Some(Serial::At(field)), _) => Some(field),
            (Some(Serial::None), _) => None,
            (None, PacketFormat::Mark5b(_)) => Some(Field::new(4, 4)),
            (None, _) => (!self.has_own_header()).then_some(Field::new(0, 8)),
        }
    }

    /// Bytes in front of a packet that the recorder drops.
    pub fn prefix(&self) -> Bytes {
        self.prefix.unwrap_or(Bytes(if self.serial().is_some() { 8 } else { 0 }))
    }

    /// The layout of a detector's packets, for frames of this size; `None` for other instruments.
    pub fn detector(&self, frame: Bytes) -> Option<Detector> {
        match &self.format {
            PacketFormat::Vdif(_)
            | PacketFormat::Mark5b(_)
            | PacketFormat::Raw(_)
            | PacketFormat::Numbered(_) => None,
            PacketFormat::Excalibur(modules) => Some(Detector::excalibur(modules.modules)),
            PacketFormat::Jungfrau(modules) => Some(Detector::jungfrau(modules.modules)),
            PacketFormat::Eiger(eiger) => Some(eiger.detector(frame)),
            PacketFormat::DummyUdp(dummy) => Some(dummy.detector(frame)),
            PacketFormat::Described(detector) => Some(detector.clone()),
        }
    }

    /// Number of ports for the packets of a stream. The first port is that of stream 0.
    pub fn ports(&self) -> u16 {
        match &self.format {
            PacketFormat::Excalibur(modules) | PacketFormat::Jungfrau(modules) => modules.modules,
            PacketFormat::Eiger(eiger) => eiger.ports(),
            PacketFormat::Described(Detector { module: Module::Port, modules, .. }) => *modules,
            _ => 1,
        }
    }

    /// The part of a detector that sends to a port, counted from that of the stream's first port.
    pub fn port_name(&self, port: u16) -> String {
        match &self.format {
            PacketFormat::Eiger(_) => EigerHalves::port_name(port),
            _ => format!("module {port}"),
        }
    }

    /// The longest packet for frames of this size, including bytes that the recorder drops.
    pub fn longest(&self, frame: Bytes) -> Bytes {
        Bytes(self.packet_max(frame))
    }

    /// Like [`Packets::longest`], as a number.
    fn packet_max(&self, frame: Bytes) -> u64 {
        let kept = match &self.format {
            PacketFormat::Vdif(vdif) => vdif.frame_size().0,
            PacketFormat::Mark5b(mark5b) => mark5b.packet_size().0,
            PacketFormat::Raw(raw) => raw.payload.0,
            PacketFormat::Numbered(numbered) => numbered.payload.0.saturating_add(numbered.header.0),
            _ => self
                .detector(frame)
                .map_or(0, |detector| detector.payload.0.saturating_add(detector.header.0)),
        };
        self.prefix().0.saturating_add(kept)
    }

    /// VDIF or Mark5B frames in a second, of each thread of each station. Without serial numbers, the rate of
    /// samples of a stream must make this a whole number. `None` for other formats, and if it is not whole.
    pub fn frames_per_second(&self, rate: ByteRate) -> Result<Option<u64>, String> {
        let (payload, lanes) = match &self.format {
            PacketFormat::Vdif(vdif) => (vdif.payload, vdif.lanes()),
            PacketFormat::Mark5b(_) => (Mark5b::PAYLOAD, 1),
            _ => return Ok(None),
        };
        let frames = rate.0 / (payload.0 * lanes) as f64;
        let whole = frames.round();
        if whole < 1.0 || (frames / whole - 1.0).abs() > 1e-9 {
            if self.serial().is_some() {
                return Ok(None);
            }
            return Err(format!(
                "{rate} makes {frames:.6} frames a second of {} B for {lanes} threads: without serial numbers, change \
                 payload, threads or frame_rate to get a whole number",
                payload.0
            ));
        }
        #[expect(clippy::cast_sign_loss, reason = "it is at least 1")]
        let whole = whole as u64;
        self.check_frames(whole)?;
        Ok(Some(whole))
    }

    fn check_frames(&self, frames: u64) -> Result<(), String> {
        match &self.format {
            PacketFormat::Vdif(vdif) => vdif.check_frames(frames),
            PacketFormat::Mark5b(_) => Mark5b::check_frames(frames),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
