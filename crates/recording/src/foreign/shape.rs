//! The frames of a stream, recognized by their headers and not by the name of a file.
//!
//! Two headers in a row must agree, because a VDIF header has no sync word. A file that nobody described needs more
//! of them (`recognition`).
//!
//! ```text
//! | header: 8032 B | samples ... | header: 8032 B | samples ...
//! ^ candidate                    ^ 8032 B later: same epoch, and no other second than this or the next one
//! ```

use std::io;

use nilometer_model::{
    Bytes, Format,
    packets::{Cut, HeaderKind, Mark5b, PacketFormat, Packets, Raw, Serial, Vdif, VlbiMode},
};
use nilometer_wire::{
    Geometry, Known, Stamps,
    mark5b::{Fault, Mark5bHeader},
    vdif::VdifHeader,
};

use crate::{Missing, Stream, recording_storage::StoredFile};

/// The frames of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamShape {
    pub(crate) format: Format,
    /// Bytes of a frame.
    pub(crate) frame_size: u64,
    /// The first VDIF header.
    pub(crate) header: Option<VdifHeader>,
}

/// Bytes at the beginning of a file in which to look for a header.
const SEARCHED: usize = 1 << 20;
/// The port of VLBI recorders.
const PORT: u16 = 46_227;
/// Longest distance in seconds between two frames that follow each other at the beginning.
const SECONDS_APART: u64 = 1;

impl StreamShape {
    /// Looks for the first two headers that agree, from offset `from` on. Returns the shape and the offset of the
    /// first frame. This is enough in files that surely hold frames.
    pub(crate) fn find(file: &dyn StoredFile, from: u64) -> io::Result<Option<(Self, u64)>> {
        let is_frame = |shape: &Self, at: u64| shape.is_followed(file, at + shape.frame_size, at == from);
        Self::find_where(file, from, is_frame)
    }

    /// Looks for the first header from offset `from` on that may be one, and for which `is_frame` returns true.
    pub(super) fn find_where(
        file: &dyn StoredFile,
        from: u64,
        is_frame: impl Fn(&Self, u64) -> io::Result<bool>,
    ) -> io::Result<Option<(Self, u64)>> {
        let mut bytes = vec![0; SEARCHED];
        let length = read_up_to(file, &mut bytes, from)?;
        let bytes = &bytes[..length];
        for at in 0..bytes.len() {
            let Some(shape) = StreamShape::of(&bytes[at..]) else { continue };
            let at = from + at as u64;
            if is_frame(&shape, at)? {
                return Ok(Some((shape, at)));
            }
        }
        Ok(None)
    }

    /// The shape of frames that nobody can recognize, such as those of CODIF.
    pub(crate) const fn raw(frame_size: u64) -> Self {
        StreamShape { format: Format::Raw, frame_size, header: None }
    }

    /// Returns true if these are frames of a mode.
    pub(crate) fn is_of(&self, mode: &VlbiMode) -> bool {
        (self.format, self.frame_size) == (mode.stored(), mode.frame_size().0)
    }

    /// Returns the shape of a stream with this header, if these bytes may be one.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let head = bytes.get(..bytes.len().min(Stamps::BYTES))?;
        if is_mark5b(head) {
            return Some(StreamShape { format: Format::Mark5b, frame_size: Mark5b::FRAME.0, header: None });
        }
        let header = VdifHeader::parse(head).filter(|header| may_be(header, head))?;
        Some(StreamShape { format: Format::Vdif, frame_size: header.length as u64, header: Some(header) })
    }

    /// Returns true if a frame of the stream begins at `next`. At the beginning of a file, its end there is
    /// enough.
    pub(super) fn is_followed(&self, file: &dyn StoredFile, next: u64, is_first: bool) -> io::Result<bool> {
        let mut head = [0; Stamps::BYTES];
        let length = read_up_to(file, &mut head, next)?;
        let head = &head[..length];
        if length < VdifHeader::LEGACY_SIZE {
            // Nothing confirms a header inside a file that ends before the next one.
            return Ok(is_first && has_byte_before(file, next)?);
        }
        Ok(match self.header {
            None => is_mark5b(head) || is_first && is_fill(head),
            Some(first) => VdifHeader::parse(head).is_some_and(|second| goes_on(&first, &second)),
        })
    }

    /// The description of the stream, as a recorder would note it. `near` is a time near that of all frames, in
    /// seconds since 2000.
    pub(crate) fn stream(&self, near: u64) -> Stream {
        // Only the packets of an unknown sender have no number that somebody could make.
        let serial = (self.format == Format::Raw).then_some(Serial::None);
        let packets = Packets { port: PORT, serial, prefix: None, format: self.packets() };
        let known = Known { begins: near, ..Known::default() };
        let made = nilometer_wire::of(&packets, &known);
        let made = made.ok().filter(|made| made.geometry().frame_size() as u64 == self.frame_size);
        match made {
            Some(made) => {
                Stream::new(self.format, made.geometry(), Missing::Filled).sent_as(&packets, &known)
            }
            None => Stream::new(self.format, &self.whole_frames(), Missing::Filled),
        }
    }

    /// Frames that are not cut into packets.
    fn whole_frames(&self) -> Geometry {
        Geometry { prefix: 0, parts: vec![self.frame_size as usize], number_bits: 64, behind: Vec::new() }
    }

    fn packets(&self) -> PacketFormat {
        let Some(header) = self.header else {
            return match self.format {
                Format::Mark5b => PacketFormat::Mark5b(Mark5b { frame: Cut::default() }),
                _ => PacketFormat::Raw(Raw { payload: Bytes(self.frame_size) }),
            };
        };
        PacketFormat::Vdif(Vdif {
            payload: Bytes(self.frame_size - header.size() as u64),
            stations: None,
            threads: None,
            edv: header.edv().unwrap_or_default(),
            header: if header.extended.is_some() { HeaderKind::Full } else { HeaderKind::Legacy },
            bits: header.bits.into(),
            channels: 1 << header.channels_log2,
            complex: header.complex,
        })
    }
}

/// Returns true if a file has the byte before an offset.
pub(super) fn has_byte_before(file: &dyn StoredFile, offset: u64) -> io::Result<bool> {
    let mut last = [0];
    Ok(read_up_to(file, &mut last, offset.saturating_sub(1))? == 1)
}

/// Returns true if two headers may be those of frames that follow each other. They may have another length.
pub(super) fn goes_on(first: &VdifHeader, next: &VdifHeader) -> bool {
    let is_alike = first.extended.is_some() == next.extended.is_some() && first.version == next.version;
    is_alike && next.length > next.size() && first.elapsed().abs_diff(next.elapsed()) <= SECONDS_APART
}

/// Returns true if these bytes may be a VDIF header: a frame has samples, and version and epoch are plausible.
pub(super) fn may_be(header: &VdifHeader, head: &[u8]) -> bool {
    let has_samples = header.length > header.size();
    has_samples && header.version <= 1 && !is_fill(head) && header.channels_log2 <= 20
}

fn is_mark5b(head: &[u8]) -> bool {
    head.len() >= Mark5bHeader::SIZE && !matches!(Mark5bHeader::parse(head), Err(Fault::NoSync))
}

/// The word by which recorders replace samples that they lack.
const FILL: [u8; 4] = 0x1122_3344_u32.to_le_bytes();

/// Returns true if all these bytes are the word that stands for missing samples.
pub(crate) fn is_fill(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks();
    !words.is_empty() && rest.is_empty() && words.iter().all(|word| *word == FILL)
}

/// Reads until `into` is full or the file ends. Returns the bytes read.
pub(crate) fn read_up_to(file: &dyn StoredFile, into: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < into.len() {
        match file.read_at(&mut into[done..], offset.saturating_add(done as u64)) {
            Ok(0) => break,
            Ok(more) => done += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // No file has bytes at such an offset.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => break,
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::testing::{InMemory, mark5b_frame, vdif_frame};

    fn found(bytes: Vec<u8>) -> Option<(Format, u64, u64)> {
        let found = StreamShape::find(&InMemory(bytes), 0).expect("memory can be read");
        found.map(|(shape, at)| (shape.format, shape.frame_size, at))
    }

    #[test]
    fn frames_are_recognized_by_two_headers_in_a_row() {
        let frames = |count: u64| (0..count).flat_map(|number| vdif_frame(number, 0, 1032, false));
        assert_eq!(found(frames(1).collect()), Some((Format::Vdif, 1032, 0)), "one frame alone");
        assert_eq!(found(frames(3).collect()), Some((Format::Vdif, 1032, 0)));
        assert_eq!(
            found(frames(9).skip(700).collect()),
            Some((Format::Vdif, 1032, 332)),
            "begins in a frame"
        );
        let legacy: Vec<u8> = (0..3).flat_map(|number| vdif_frame(number, 5, 1016, true)).collect();
        assert_eq!(found(legacy), Some((Format::Vdif, 1016, 0)));
        let mark5b: Vec<u8> = (0..3).flat_map(mark5b_frame).collect();
        assert_eq!(found(mark5b.clone()), Some((Format::Mark5b, 10_016, 0)));
        assert_eq!(found(mark5b[16..].to_vec()), Some((Format::Mark5b, 10_016, 10_000)));
    }

    #[test]
    fn no_bytes_break_the_search() {
        let corpus = vec![
            (0..3).flat_map(|number| vdif_frame(number, 1, 72, false)).collect(),
            (0..3).flat_map(|number| vdif_frame(number, 1, 40, true)).collect(),
            mark5b_frame(0),
        ];
        nilometer_fuzz::fuzz("search for frames", corpus, |bytes| {
            let length = bytes.len() as u64;
            let found = StreamShape::find(&InMemory(bytes.to_vec()), 0).expect("memory can be read");
            if let Some((shape, at)) = found {
                assert!(at < length && shape.frame_size > 0);
                assert_eq!(shape.stream(0).frame_size() as u64, shape.frame_size);
            }
        });
    }

    #[test]
    fn other_bytes_are_not_taken_for_frames() {
        for bytes in [vec![], vec![0; 50_000], vec![0xff; 50_000], FILL.repeat(20_000), b"text ".repeat(9000)]
        {
            assert_eq!(found(bytes), None);
        }
        let frame = vdif_frame(0, 0, 1032, false);
        assert_eq!(found(frame[..1000].to_vec()), None, "less than a frame");
        let mut state = 1_u64;
        let random = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        });
        assert_eq!(found(random.take(3 << 20).collect()), None);
    }
}
