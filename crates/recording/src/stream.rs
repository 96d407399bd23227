//! Description of a recording's packets, so that readers understand it from its directories alone.

use nilometer_model::{
    Bytes, Format,
    packets::{PacketFormat, Packets},
};
use serde::{Deserialize, Serialize};

use crate::{Gap, Missing, Packed, journal};
use nilometer_wire::{Geometry, Known};

/// Blocks of frames, each received in packets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    /// `vdif`, `m5b` or `raw`, also the suffix of files.
    format: String,
    /// The packets of a frame, as runs: number of packets and bytes of each.
    packets: Vec<(usize, usize)>,
    /// How the recording represents missing frames.
    missing: String,
    /// How packets came over the network.
    #[serde(default)]
    wire: Option<Wire>,
}

/// Facts known about the packets at reception, from which a reader can make the format again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Wire {
    /// The instrument's description of its packets.
    pub packets: Packets,
    frame: Bytes,
    frames_per_second: Option<u64>,
    begins: u64,
}

impl Wire {
    /// Returns the facts known besides the packets.
    pub fn known(&self) -> Known {
        let Wire { frame, frames_per_second, begins, .. } = *self;
        Known { frame, frames_per_second, begins, ..Known::default() }
    }
}

impl Stream {
    /// Describes frames with this geometry.
    pub fn new(format: Format, geometry: &Geometry, missing: Missing) -> Self {
        let runs = geometry.parts.chunk_by(|a, b| a == b);
        Stream {
            format: format.name().into(),
            packets: runs.map(|run| (run.len(), run[0])).collect(),
            missing: missing.name().into(),
            wire: None,
        }
    }

    /// Adds the packets as this instrument sends them.
    #[must_use]
    pub fn sent_as(self, packets: &Packets, known: &Known) -> Self {
        let Known { frame, frames_per_second, begins, .. } = *known;
        let wire = Wire { packets: packets.clone(), frame, frames_per_second, begins };
        Stream { wire: Some(wire), ..self }
    }

    /// Returns how the packets came over the network, if known.
    pub fn wire(&self) -> Option<&Wire> {
        self.wire.as_ref()
    }

    /// Returns the format of a frame.
    pub fn format(&self) -> Format {
        let named = Format::STORED.into_iter().find(|format| format.name() == self.format);
        named.unwrap_or_default()
    }

    /// Bytes of a frame.
    pub fn frame_size(&self) -> usize {
        self.packets.iter().map(|(count, size)| count * size).sum()
    }

    /// Packets of a frame.
    pub fn packets_of_frame(&self) -> usize {
        self.packets.iter().map(|(count, _)| count).sum()
    }

    /// Describes a block of `length` bytes with these gaps.
    pub fn packed(&self, length: usize, gaps: Vec<Gap>) -> Packed {
        let sizes: Vec<usize> =
            self.packets.iter().flat_map(|&(count, size)| std::iter::repeat_n(size, count)).collect();
        let places = length / self.frame_size().max(1) * sizes.len();
        // Packets left out take no place.
        let filled = |gap: &Gap| if gap.filled { gap.count } else { 0 };
        let absent =
            gaps.iter().flat_map(|gap| (u64::from(gap.at)..places as u64).take(filled(gap) as usize));
        let (count, bytes) = absent.fold((0, 0), |(count, bytes), place| {
            (count + 1, bytes + sizes[place as usize % sizes.len().max(1)] as u64)
        });
        Packed { length: length as u32, packets: places as u64 - count, bytes: length as u64 - bytes, gaps }
    }

    /// Returns how the recording represents missing frames.
    pub fn missing(&self) -> Missing {
        let named = Missing::ALL.into_iter().find(|missing| missing.name() == self.missing);
        named.unwrap_or_default()
    }

    /// Returns the text for a journal.
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("numbers and texts can be written")
    }

    /// Reads the text of a journal with blocks of this size. `None` if the text is incomplete or describes no
    /// packets.
    ///
    /// # Errors
    /// If a number is one that no recorder writes; the error names it.
    pub fn read(text: &str, block_size: u64) -> Result<Option<Self>, String> {
        let Ok(stream) = serde_json::from_str::<Stream>(text) else { return Ok(None) };
        let counts = stream.packets.iter().map(|(count, _)| *count);
        if counts.fold(0, usize::saturating_add) == 0 {
            return Ok(None);
        }
        let sizes = stream.packets.iter().map(|(count, size)| count.saturating_mul(*size));
        let frame = sizes.fold(0, usize::saturating_add) as u64;
        // This check guarantees that there are never more packets than bytes.
        if stream.packets.iter().any(|(_, size)| *size == 0) || !(1..=block_size).contains(&frame) {
            return Err(format!("its packets make frames of {frame} B, in blocks of {block_size} B"));
        }
        stream.wire.as_ref().map_or(Ok(()), |wire| wire.check(frame))?;
        Ok(Some(stream))
    }
}

/// Limit on frames per second of a thread.
const RATE_MAX: u64 = 1 << 32;
/// Limit on the start, in seconds after 2000: 272 years.
const BEGINS_MAX: u64 = 1 << 33;
/// Limit on the threads of all stations.
const THREADS_MAX: u64 = 4096;

impl Wire {
    /// Checks that a reader can make the format from it, for frames of this size.
    fn check(&self, frame_size: u64) -> Result<(), String> {
        let Wire { packets, frame, frames_per_second, begins } = self;
        if frames_per_second.is_some_and(|rate| !(1..=RATE_MAX).contains(&rate)) {
            let rate = frames_per_second.unwrap_or_default();
            return Err(format!("frames_per_second = {rate}: it is 1 to {RATE_MAX} in any journal"));
        }
        if *begins > BEGINS_MAX {
            return Err(format!("begins = {begins}: it is 0 to {BEGINS_MAX} in any journal"));
        }
        if frame.0 > journal::FRAME_SIZE_MAX {
            return Err(format!("frame = {} B: it has at most {} B", frame.0, journal::FRAME_SIZE_MAX));
        }
        packets.check_layout(*frame)?;
        if let PacketFormat::Vdif(vdif) = &packets.format
            && vdif.lanes() > THREADS_MAX
        {
            return Err(format!("{} threads: there are at most {THREADS_MAX}", vdif.lanes()));
        }
        let made = nilometer_wire::of(packets, &self.known())?.geometry().frame_size() as u64;
        if made == frame_size {
            return Ok(());
        }
        Err(format!(
            "packets on the network make frames of {made} B, those of the recording have {frame_size} B"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toml_of(packets: &str) -> Packets {
        let text = format!(
            "name = \"t\"\ntitle = \"t\"\nsource = \"t\"\nshape = [64_128]\npixel = \"uint2\"\nframe_rate = \"2000 Hz\"\n[packets]\n{}",
            packets.replace("[format", "[packets.format")
        );
        nilometer_model::Instrument::parse(&text, "t.toml")
            .unwrap_or_else(|error| panic!("{error}"))
            .packets
            .expect("it has some")
    }

    #[test]
    fn a_journal_tells_what_a_stream_was() {
        let geometry =
            Geometry { prefix: 8, parts: vec![8000, 8000, 8000, 4296], number_bits: 32, behind: Vec::new() };
        let stream = Stream::new(Format::Vdif, &geometry, Missing::LeftOut);
        let packets: Packets = toml_of(
            "port = 5\nserial = { at = { offset = 2, bytes = 4 } }\nprefix = \"6 B\"\n\
             [format.vdif]\nstations = [\"Mc\", 77]\nthreads = [3, 1]\nheader = \"legacy\"",
        );
        let known = Known { frame: Bytes(7), frames_per_second: Some(25), begins: 9, ..Known::default() };
        let read = Stream::read(&stream.text(), 1 << 20).expect("it may be").expect("it was written here");
        assert_eq!((read.format(), read.missing()), (Format::Vdif, Missing::LeftOut));
        assert_eq!((read.frame_size(), read.packets_of_frame()), (28_296, 4));
        let why = Stream::read(&stream.clone().sent_as(&packets, &known).text(), 1 << 20);
        assert!(why.expect_err("its packets make other frames").contains("frames of 8016 B"));

        let format = nilometer_wire::of(&packets, &known).expect("it can be made");
        let stream = Stream::new(Format::Vdif, format.geometry(), Missing::LeftOut);
        let stream = stream.sent_as(&packets, &known);
        let read = Stream::read(&stream.text(), 1 << 20).expect("it may be").expect("it was written here");
        assert_eq!(read, stream);
        let wire = read.wire().expect("it was given");
        assert_eq!((&wire.packets, wire.known()), (&packets, known));
        assert!(Stream::read(&stream.text(), 8015).is_err(), "a block has a frame");
        for (rate, begins) in [(Some(0), 9), (Some(u64::MAX), 9), (Some(25), u64::MAX)] {
            let wrong = Known { frames_per_second: rate, begins, ..known };
            let text = stream.clone().sent_as(&packets, &wrong).text();
            assert!(Stream::read(&text, 1 << 20).is_err(), "{rate:?} {begins}");
        }
        for wrong in ["", "{}", r#"{"format":"vdif","packets":[[0,5]],"missing":"fill"}"#] {
            assert_eq!(Stream::read(wrong, 1000), Ok(None), "{wrong}");
        }
    }
}
