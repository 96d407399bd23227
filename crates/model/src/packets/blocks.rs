//! The blocks in which packets are recorded, each of a whole number of frames.

use super::{Mark5b, PacketFormat, Packets};
use crate::{ByteRate, Bytes, Format, Frequency, Instrument, PixelType, RecordingLayout};

/// The usual size of a block; each goes to storage in one write.
const BLOCK: u64 = 1 << 20;
/// The largest block, if frames are smaller.
const BLOCK_MOST: u64 = 64 << 20;
/// The alignment of writes past the cache.
const PAGE: u64 = 4096;

/// Number of frames of this size in a block, such that each block of a file begins at a page. `None` if that
/// takes too many. A frame of a block's size or more is a block by itself.
pub fn frames_of_block(frame_size: usize, page: usize) -> Option<u64> {
    let common = 1 << frame_size.trailing_zeros().min(page.trailing_zeros());
    let step = page / common;
    let frames = (BLOCK as usize / frame_size / step * step).max(step);
    (frames == 1 || (frames * frame_size) as u64 <= BLOCK_MOST).then_some(frames as u64)
}

impl Packets {
    /// The format in which frames are stored.
    pub fn stored(&self) -> Format {
        match self.format {
            PacketFormat::Vdif(_) => Format::Vdif,
            PacketFormat::Mark5b(_) => Format::Mark5b,
            _ => Format::Raw,
        }
    }

    /// Bytes of a stored frame, for VDIF and Mark5B with its header. `frame` is the size of the instrument's
    /// frames.
    pub fn kept(&self, frame: Bytes) -> Bytes {
        match &self.format {
            PacketFormat::Vdif(vdif) => vdif.frame_size(),
            PacketFormat::Mark5b(_) => Mark5b::FRAME,
            PacketFormat::Raw(raw) => raw.payload,
            PacketFormat::Numbered(numbered) => numbered.frame_size(),
            _ => self.detector(frame).map_or(frame, |detector| detector.kept()),
        }
    }

    /// Bytes of the instrument's frames in each stored one.
    pub fn brought(&self, frame: Bytes) -> Bytes {
        match &self.format {
            PacketFormat::Vdif(vdif) => vdif.payload,
            PacketFormat::Mark5b(_) => Mark5b::PAYLOAD,
            PacketFormat::Raw(raw) => raw.payload,
            PacketFormat::Numbered(numbered) => numbered.payloads(),
            _ => frame,
        }
    }

    /// Packets of a stored frame.
    pub fn of_frame(&self, frame: Bytes) -> u64 {
        match &self.format {
            PacketFormat::Mark5b(mark5b) => Mark5b::FRAME.0 / mark5b.packet_size().0,
            PacketFormat::Numbered(numbered) => numbered.packets,
            _ => self.detector(frame).map_or(1, |detector| detector.packets * detector.all_subframes()),
        }
    }

    /// Frames of a block, for an instrument's frames of this size. Blocks begin at pages if that is possible.
    pub fn frames_of_block(&self, frame: Bytes) -> u64 {
        let kept = self.kept(frame).0 as usize;
        frames_of_block(kept, PAGE as usize).or_else(|| frames_of_block(kept, 1)).unwrap_or(1)
    }
}

impl Instrument {
    /// Frames of a block in which its packets are recorded: one in HDF5, whose chunks are frames. `None` if it sends no
    /// packets.
    pub fn frames_of_block(&self) -> Option<u64> {
        let packets = self.packets.as_ref()?;
        let is_hdf5 = self.recording.format == Format::Hdf5;
        Some(if is_hdf5 { 1 } else { packets.frames_of_block(self.frame_size()) })
    }

    /// The recorded form of its packets, as an instrument that delivers blocks; `None` if it sends no
    /// packets.
    pub fn in_blocks(&self) -> Option<Instrument> {
        let packets = self.packets.as_ref()?;
        let frame = self.frame_size();
        if self.recording.format == Format::Hdf5 {
            // A block is a frame.
            let frames = self.rate().0 / self.streams as f64 / frame.0 as f64;
            return Some(Instrument { frame_rate: Frequency(frames), burst: None, ..self.clone() });
        }
        let kept = packets.kept(frame);
        let block = Bytes(kept.0 * packets.frames_of_block(frame));
        let frames = self.rate().0 / self.streams as f64 / packets.brought(frame).0 as f64;
        let per_file = |frames: u64| (frames.saturating_mul(frame.0) / block.0).max(1);
        Some(Instrument {
            shape: vec![block.0],
            pixel: PixelType::Uint8,
            frame_rate: Frequency(frames * kept.0 as f64 / block.0 as f64),
            burst: None,
            recording: RecordingLayout {
                format: packets.stored(),
                frames_per_file: self.recording.frames_per_file.map(per_file),
                layout: None,
                ..self.recording.clone()
            },
            ..self.clone()
        })
    }

    /// The instrument at the nearest frame rate that its packets allow: VDIF and Mark5B have a whole number
    /// of frames in a second.
    #[must_use]
    pub fn at_rate(&self, rate: Frequency) -> Instrument {
        let mut changed = Instrument { frame_rate: rate, ..self.clone() };
        if let Some(frames) =
            self.packets.as_ref().and_then(|packets| packets.in_whole(changed.stream_rate()))
        {
            changed.frame_rate = Frequency(frames.0 / self.frame_size().0 as f64);
        }
        changed
    }
}

impl Packets {
    /// Sets the bytes of samples or pixels in a packet. Fails for packets of a fixed size; the message lists
    /// the others.
    pub fn set_payload(&mut self, bytes: Bytes) -> Result<(), String> {
        match &mut self.format {
            PacketFormat::Vdif(vdif) => vdif.payload = bytes,
            PacketFormat::Raw(raw) => raw.payload = bytes,
            PacketFormat::Numbered(numbered) => numbered.payload = bytes,
            PacketFormat::DummyUdp(dummy) => dummy.payload = bytes,
            _ => {
                return Err(
                    "payload: only packets of vdif, raw, numbered and dummy_udp have any size; leave it out"
                        .into(),
                );
            }
        }
        Ok(())
    }

    /// The nearest rate with a whole number of frames in a second; `None` if the format does not need that.
    fn in_whole(&self, rate: ByteRate) -> Option<ByteRate> {
        let second = match &self.format {
            PacketFormat::Vdif(vdif) => vdif.payload.0 * vdif.lanes(),
            PacketFormat::Mark5b(_) => Mark5b::PAYLOAD.0,
            _ => return None,
        };
        let second = second as f64;
        Some(ByteRate((rate.0 / second).round().max(1.0) * second))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn telescope(packets: &str) -> Instrument {
        let text = format!(
            "name = \"t\"\ntitle = \"t\"\nsource = \"t\"\nshape = [40_000_000]\npixel = \"uint2\"\nframe_rate = \"50.7 Hz\"\n{packets}"
        );
        Instrument::parse(&text, "t.toml").unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn blocks_bring_what_packets_bring_and_their_headers() {
        for (packets, kept, rate, format) in [
            (
                "packets.format.vdif = { payload = \"8000 B\", threads = [0] }",
                8032,
                509_028_000.0,
                Format::Vdif,
            ),
            (
                "packets.format.vdif = { payload = \"1000 B\", threads = [0] }",
                1032,
                523_224_000.0,
                Format::Vdif,
            ),
            ("packets.format.raw = { payload = \"5000 B\" }", 5000, 507e6, Format::Raw),
        ] {
            let instrument = telescope(packets);
            let blocks = instrument.in_blocks().expect("it sends packets");
            assert!((blocks.rate().0 / rate - 1.0).abs() < 1e-9, "{packets}: {}", blocks.rate());
            assert_eq!((blocks.frame_size().0 % kept, blocks.frame_size().0 % PAGE), (0, 0), "{packets}");
            assert_eq!(blocks.recording.format, format);
        }
        assert_eq!(telescope("").in_blocks(), None);
    }

    #[test]
    fn any_rate_becomes_one_that_packets_can_have() {
        let instrument = telescope("packets.format.vdif = { payload = \"8000 B\", threads = [0] }");
        for rate in [50.7, 50.70003, 13.37, 1e-9, 777.123_456] {
            let changed = instrument.at_rate(Frequency(rate));
            assert_eq!(changed.check(), Ok(()), "{rate}");
            let step = 8000.0 / 10e6;
            assert!((changed.frame_rate.0 - rate).abs() <= step / 2.0 + 1e-9 || rate < step, "{rate}");
        }
        assert_eq!(telescope("").at_rate(Frequency(13.37)).frame_rate, Frequency(13.37));
    }

    #[test]
    fn blocks_begin_at_pages_unless_that_takes_too_many_frames() {
        // VDIF, Mark5B, a packet of an odd size, a picture, one that is larger than a block.
        for (frame, frames) in [
            (8032, Some(128)),
            (10016, Some(128)),
            (1001, Some(4096)),
            (1 << 20, Some(1)),
            (40 << 20, Some(1)),
        ] {
            assert_eq!(frames_of_block(frame, 4096), frames, "{frame}");
        }
        assert_eq!(frames_of_block(100_001, 4096), None, "400 MB for a block are too many");
        assert_eq!(frames_of_block(100_001, 1), Some(10));
    }

    #[test]
    fn in_hdf5_each_frame_of_a_detector_is_a_block() {
        const PACKETS: &str = "packets = { port = 5000, format = { described = { header = \"16 B\", frame = { offset = 0, \
                               bytes = 8 }, packet = { offset = 8, bytes = 4 }, packets = 2, payload = \"5120 B\" } } }";
        let read = |format: &str| {
            let text = format!(
                "name = \"t\"\ntitle = \"t\"\nsource = \"t\"\nshape = [64, 80]\npixel = \"uint16\"\nframe_rate = \"1 kHz\"\n\
                 recording.format = \"{format}\"\n{PACKETS}"
            );
            Instrument::parse(&text, "t.toml").unwrap_or_else(|error| panic!("{error}"))
        };
        assert_eq!(read("hdf5").frames_of_block(), Some(1), "two and a half pages");
        assert_eq!(read("raw").frames_of_block(), Some(102), "about 1 MiB, in whole pages");
        let samples = "packets.format.vdif = { payload = \"8000 B\", threads = [0] }";
        let samples = format!(
            "name = \"t\"\ntitle = \"t\"\nsource = \"t\"\nshape = [40_000_000]\npixel = \"uint8\"\nframe_rate = \"50 Hz\"\n\
             recording.format = \"hdf5\"\n{samples}"
        );
        let refused = Instrument::parse(&samples, "t.toml").expect_err("samples have no frames").to_string();
        assert!(refused.contains("only the frames of a detector can go into HDF5"), "{refused}");
    }
}
