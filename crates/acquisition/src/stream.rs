//! What a recording of packets says of them, so that it is understood from its directories alone.

use nilometer_model::{Bytes, Format, packets::Packets};
use serde::{Deserialize, Serialize};

use crate::{
    assembly::Missing,
    format::{Geometry, Known},
};

/// Blocks of frames, each of which came in packets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    /// `vdif`, `m5b` or `raw`: also the suffix of files.
    format: String,
    /// Bytes of the packets of a frame, as runs: so many of so many bytes.
    packets: Vec<(usize, usize)>,
    /// What stands in the place of frames that did not come.
    missing: String,
    /// How packets came over the network.
    #[serde(default)]
    wire: Option<Wire>,
}

/// What was known of packets when they came: the format can be made again from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Wire {
    /// As the instrument says.
    pub packets: Packets,
    frame: Bytes,
    frames_per_second: Option<u64>,
    begins: u64,
}

impl Wire {
    /// What was known beside the packets.
    pub fn known(&self) -> Known {
        let Wire { frame, frames_per_second, begins, .. } = *self;
        Known { frame, frames_per_second, begins, ..Known::default() }
    }
}

impl Stream {
    /// Of frames that come so.
    pub fn new(format: Format, geometry: &Geometry, missing: Missing) -> Self {
        let runs = geometry.parts.chunk_by(|a, b| a == b);
        Stream {
            format: format.name().into(),
            packets: runs.map(|run| (run.len(), run[0])).collect(),
            missing: missing.name().into(),
            wire: None,
        }
    }

    /// Which came as this instrument sends them.
    #[must_use]
    pub fn sent_as(self, packets: &Packets, known: &Known) -> Self {
        let Known { frame, frames_per_second, begins, .. } = *known;
        let wire = Wire { packets: packets.clone(), frame, frames_per_second, begins };
        Stream { wire: Some(wire), ..self }
    }

    /// How they came, if that is known.
    pub fn wire(&self) -> Option<&Wire> {
        self.wire.as_ref()
    }

    /// How a frame is written.
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

    /// What stands in the place of frames that did not come.
    pub fn missing(&self) -> Missing {
        let named = Missing::ALL.into_iter().find(|missing| missing.name() == self.missing);
        named.unwrap_or_default()
    }

    /// As it stands in a journal.
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("numbers and texts can be written")
    }

    /// From a journal; none if its frames would have no bytes.
    pub fn read(text: &str) -> Option<Self> {
        let stream: Stream = serde_json::from_str(text).ok()?;
        let sizes = stream.packets.iter().map(|(count, size)| count.checked_mul(*size));
        let bytes = sizes.sum::<Option<usize>>()?;
        (bytes > 0).then_some(stream)
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
        let geometry = Geometry { prefix: 8, parts: vec![8000, 8000, 8000, 4296], number_bits: 32 };
        let stream = Stream::new(Format::Vdif, &geometry, Missing::LeftOut);
        let packets: Packets = toml_of(
            "port = 5\nserial = { at = { offset = 2, bytes = 4 } }\nprefix = \"6 B\"\n\
             [format.vdif]\nstations = [\"Mc\", 77]\nthreads = [3, 1]\nheader = \"legacy\"",
        );
        let known = Known { frame: Bytes(7), frames_per_second: Some(25), begins: 9, ..Known::default() };
        let stream = stream.sent_as(&packets, &known);
        let read = Stream::read(&stream.text()).expect("it was written here");
        assert_eq!(read, stream);
        let wire = read.wire().expect("it was given");
        assert_eq!((&wire.packets, wire.known()), (&packets, known));
        assert_eq!((read.format(), read.missing()), (Format::Vdif, Missing::LeftOut));
        assert_eq!((read.frame_size(), read.packets_of_frame()), (28_296, 4));
        for wrong in ["", "{}", r#"{"format":"vdif","packets":[[0,5]],"missing":"fill"}"#] {
            assert_eq!(Stream::read(wrong), None, "{wrong}");
        }
    }
}
