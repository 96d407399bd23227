//! Packets of detectors: a frame arrives in many, from one or more modules, and each packet has its position.
//!
//! The pixels of a frame are in the order of modules; within a module in the order of sub-frames, and of
//! packets within these.

use serde::{Deserialize, Serialize};

use super::{Endian, Field};
use crate::Bytes;

/// The layout of a detector's packets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Detector {
    /// Bytes in front of the pixels, at most 1024.
    pub header: Bytes,
    /// The number of the frame, counted over all frames; with several sub-frames, the number of the
    /// sub-frame.
    pub frame: Field,
    /// The number of the packet in its sub-frame, from 0. Optional if a sub-frame has one packet.
    #[serde(default)]
    pub packet: Option<Field>,
    /// Bits beside the packet's number that mark the first and the last packet.
    #[serde(default)]
    pub marks: Option<Marks>,
    /// The position of the module's number.
    #[serde(default)]
    pub module: Module,
    /// Modules of a frame, 1 to 1024.
    #[serde(default = "one")]
    pub modules: u16,
    /// Sub-frames of a frame: 1, 2, 4, ... (a power of two).
    #[serde(default = "one")]
    pub subframes: u16,
    /// Packets of a sub-frame of a module.
    pub packets: u64,
    /// Bytes of pixels behind the header of a packet.
    pub payload: Bytes,
    /// Bytes behind the header of a sub-frame's last packet, if fewer.
    #[serde(default)]
    pub last: Option<Bytes>,
    /// Bytes after the pixels in a sub-frame's last packet, 0 or 8: the frame's number from 1 on,
    /// little-endian. They are part of `last`, and the recorder does not store them.
    #[serde(default)]
    pub trailer: Bytes,
    /// Numbers that are the same in each packet of the detector.
    #[serde(default)]
    pub constants: Vec<Constant>,
    /// The byte that fills in for missing pixels. The default is all bits: the highest value of unsigned
    /// pixels.
    #[serde(default = "ones")]
    pub fill: u8,
}

/// Bits beside the number of a packet, counted from the lowest bit of its field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Marks {
    /// Set in the first packet of a sub-frame.
    pub first: u32,
    /// Set in the last one.
    pub last: u32,
}

/// The position of the number of the module in a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Module {
    /// Each module sends to a port of its own, one after the other.
    #[default]
    Port,
    /// In the header, counted from 0.
    At(Field),
}

/// A number that is the same in each packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constant {
    /// Bytes in front of it.
    pub offset: u64,
    /// Bytes that it takes, 1 to 8.
    pub bytes: u64,
    /// The order of its bytes.
    #[serde(default)]
    pub endian: Endian,
    /// The number.
    pub value: u64,
}

impl Constant {
    /// Its position.
    pub const fn field(&self) -> Field {
        Field { offset: self.offset, bytes: self.bytes, endian: self.endian, bits: None }
    }
}

fn one() -> u16 {
    1
}

fn ones() -> u8 {
    u8::MAX
}

/// The number of JUNGFRAU in `sls_detector_header`.
const JUNGFRAU: u64 = 3;
const HEADER_MAX: u64 = 1024;
const MODULES_MAX: u16 = 1024;
/// The most packets of a frame.
const PACKETS_MAX: u64 = 1 << 20;

impl Detector {
    /// EXCALIBUR in 12-bit mode.
    ///
    /// Each front-end module sends two sub-frames of 65 packets of 8000 bytes and one of 4296, whose last 8
    /// are the frame's number. Only the port tells the module.
    ///
    /// Source: `ExcaliburDefinitions.h` and `ExcaliburFrameDecoder.cpp` of odin-data and of
    /// excalibur-detector.
    pub fn excalibur(modules: u16) -> Self {
        Detector {
            subframes: 2,
            last: Some(Bytes(4296)),
            trailer: Bytes(8),
            modules,
            ..Self::odin(66, Bytes(8000))
        }
    }

    /// The header of odin-data, 32 bits each: the frame's number, and the packet's number with marks in its
    /// two highest bits.
    fn odin(packets: u64, payload: Bytes) -> Self {
        Detector {
            header: Bytes(8),
            frame: Field::new(0, 4),
            packet: Some(Field { bits: Some(30), ..Field::new(4, 4) }),
            marks: Some(Marks { first: 31, last: 30 }),
            module: Module::Port,
            modules: 1,
            subframes: 1,
            packets,
            payload,
            last: None,
            trailer: Bytes(0),
            constants: Vec::new(),
            fill: ones(),
        }
    }

    /// JUNGFRAU with one interface a module: 128 packets of 8192 bytes, each after 48 bytes of header.
    ///
    /// The header has the module number configured in the module, which may be any. Receivers therefore tell
    /// modules apart by their ports.
    ///
    /// Source: `sls_detector_header` in `sls_detector_defs.h` of slsDetectorPackage, header version 2;
    /// `JungfrauData` in `GeneralData.h`.
    pub fn jungfrau(modules: u16) -> Self {
        Detector { modules, ..Self::sls(JUNGFRAU, 128, Bytes(8192)) }
    }

    /// Packets behind `sls_detector_header`, version 2. `kind` is the detector's number in the header.
    pub(super) fn sls(kind: u64, packets: u64, payload: Bytes) -> Self {
        let constant = |offset, value| Constant { offset, bytes: 1, endian: Endian::Little, value };
        Detector {
            header: Bytes(48),
            frame: Field::new(0, 8),
            packet: Some(Field::new(12, 4)),
            marks: None,
            // detType and version.
            constants: vec![constant(46, kind), constant(47, 2)],
            ..Self::odin(packets, payload)
        }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let header = self.header.0;
        if !(1..=HEADER_MAX).contains(&header) {
            return Err(format!("header = \"{header} B\": write 1 B to {HEADER_MAX} B"));
        }
        let fields = self.fields();
        fields.iter().try_for_each(|(name, field)| field.check(name, header))?;
        for (at, (name, field)) in fields.iter().enumerate() {
            let meets = |other: &Field| other.offset < field.end() && field.offset < other.end();
            if let Some((other, _)) = fields[..at].iter().find(|(_, other)| meets(other)) {
                return Err(format!("{name} and {other} stand in the same bytes"));
            }
        }
        let high = self.constants.iter().find(|constant| constant.value > constant.field().greatest());
        if let Some(Constant { value, bytes, .. }) = high {
            return Err(format!("constants: {value} does not fit into {bytes} B"));
        }
        self.check_counts()?;
        self.check_sizes()
    }

    fn fields(&self) -> Vec<(&'static str, Field)> {
        let mut fields = vec![("frame", self.frame)];
        fields.extend(self.packet.map(|field| ("packet", field)));
        if let Module::At(field) = self.module {
            fields.push(("module", field));
        }
        fields.extend(self.constants.iter().map(|constant| ("constants", constant.field())));
        fields
    }

    fn check_counts(&self) -> Result<(), String> {
        let Detector { modules, subframes, packets, .. } = *self;
        Modules { modules }.check()?;
        if !subframes.is_power_of_two() || u64::from(subframes) > self.frame.greatest() {
            return Err(format!(
                "subframes = {subframes}: write 1, 2, 4, 8, ... and no more than frame can count"
            ));
        }
        let parts = packets.saturating_mul(u64::from(modules)).saturating_mul(u64::from(subframes));
        if !(1..=PACKETS_MAX).contains(&parts) {
            return Err(format!("packets = {packets}: write at least 1, and at most {PACKETS_MAX} a frame"));
        }
        match (self.packet, self.module) {
            (None, _) if packets > 1 || self.marks.is_some() => {
                Err("packet: say where its number stands, since a sub-frame has several or has marks".into())
            }
            (Some(field), _) if packets - 1 > field.greatest() => {
                Err(format!("packet: {} bits do not count {packets} packets", field.width()))
            }
            (_, Module::At(field)) if u64::from(modules) - 1 > field.greatest() => {
                Err(format!("module: {} bits do not count {modules} modules", field.width()))
            }
            (Some(field), _) => self.check_marks(field),
            _ => Ok(()),
        }
    }

    fn check_marks(&self, packet: Field) -> Result<(), String> {
        let Some(Marks { first, last }) = self.marks else { return Ok(()) };
        let room = packet.width()..packet.bytes as u32 * 8;
        if !room.contains(&first) || !room.contains(&last) || first == last {
            return Err(format!(
                "marks: {first} and {last} must be two bits above the {} of the packet's number, and below {}",
                room.start, room.end
            ));
        }
        Ok(())
    }

    fn check_sizes(&self) -> Result<(), String> {
        let payload = self.payload.0;
        let last = self.last_payload().0;
        let trailer = self.trailer.0;
        if payload == 0 || last == 0 || last > payload {
            return Err(format!(
                "payload = \"{payload} B\" and last = \"{last} B\": write at least 1 B, and no longer last"
            ));
        }
        if ![0, 8].contains(&trailer) || trailer > last {
            return Err(format!(
                "trailer = \"{trailer} B\": write 0 B or 8 B, and a last packet that holds it"
            ));
        }
        Ok(())
    }

    /// Bytes behind the header of a sub-frame's last packet.
    pub fn last_payload(&self) -> Bytes {
        self.last.unwrap_or(self.payload)
    }

    /// Sub-frames of a frame, over all modules.
    pub fn all_subframes(&self) -> u64 {
        u64::from(self.modules) * u64::from(self.subframes)
    }

    /// Bytes of a stored frame.
    pub(super) fn kept(&self) -> Bytes {
        Bytes(self.pixels())
    }

    /// Bytes of pixels in a frame, without trailers.
    pub(super) fn pixels(&self) -> u64 {
        let subframe = (self.packets - 1)
            .saturating_mul(self.payload.0)
            .saturating_add(self.last_payload().0 - self.trailer.0);
        subframe.saturating_mul(self.all_subframes())
    }
}

/// The modules of a known detector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Modules {
    /// Number of modules.
    pub modules: u16,
}

impl Modules {
    pub(super) fn check(self) -> Result<(), String> {
        match self.modules {
            1..=MODULES_MAX => Ok(()),
            modules => Err(format!("modules = {modules}: write 1 to {MODULES_MAX}")),
        }
    }
}

/// The test stream of odin-data (`DummyUDPDefinitions.h`, `DummyUDPFrameSimulatorPlugin.cpp`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DummyUdp {
    /// Bytes of pixels in a packet; the last one has the rest.
    #[serde(default = "dummy")]
    pub payload: Bytes,
}

fn dummy() -> Bytes {
    Bytes(8000)
}

impl DummyUdp {
    pub(super) fn check(self) -> Result<(), String> {
        match self.payload.0 {
            0 => Err("payload = \"0 B\": write at least 1 B".into()),
            _ => Ok(()),
        }
    }

    /// The layout for frames of this size.
    pub(super) fn detector(self, frame: Bytes) -> Detector {
        let packets = frame.0.div_ceil(self.payload.0);
        let last = frame.0 - (packets - 1) * self.payload.0;
        Detector { last: Some(Bytes(last)), ..Detector::odin(packets, self.payload) }
    }
}
