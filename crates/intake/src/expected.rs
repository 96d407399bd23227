//! The expected content of a recording of a simulated instrument: its frames or blocks of packets, made again
//! from the seed.

use nilometer_model::Packets;

use nilometer_recording::{Gap, instrument::Content};
use nilometer_wire::{Known, WireFormat};

/// The expected content of a recording.
#[derive(Debug, Clone)]
pub enum Expected {
    /// Single frames.
    Frames(Content),
    /// Blocks of frames that arrived in packets.
    Blocks(Box<Blocks>),
}

/// Blocks of a stream that begins with its first packet.
#[derive(Debug, Clone)]
pub struct Blocks {
    packets: Packets,
    known: Known,
    content: Content,
    /// Frames of a block.
    frames: u64,
}

/// Unit of comparison in bytes.
const PAGE: usize = 4096;

impl Expected {
    /// Compares bytes with frame or block `number`. Packets that are missing according to `gaps` are not
    /// compared. `before` is the number of packets that were left out before the block.
    ///
    /// # Errors The index of the first wrong page of 4096 bytes.
    pub fn verify(&self, number: u64, bytes: &[u8], gaps: &[Gap], before: u64) -> Result<(), usize> {
        match self {
            Expected::Frames(content) => content.verify(number, bytes),
            Expected::Blocks(blocks) => blocks.verify(number, bytes, gaps, before),
        }
    }
}

impl Blocks {
    /// Blocks of the stream with these packets around this content.
    ///
    /// # Errors
    ///
    /// If the packets can't be sent, with the reason.
    pub fn new(packets: &Packets, known: Known, content: Content) -> Result<Self, String> {
        nilometer_wire::of(packets, &known)?;
        let frames = packets.frames_of_block(known.frame);
        Ok(Blocks { packets: packets.clone(), known, content, frames })
    }

    /// The same with another number of frames in a block.
    #[must_use]
    pub fn with_frames(self, frames: u64) -> Self {
        Blocks { frames, ..self }
    }

    fn format(&self) -> Box<dyn WireFormat> {
        nilometer_wire::of(&self.packets, &self.known).expect("it was made before")
    }

    fn verify(&self, number: u64, bytes: &[u8], gaps: &[Gap], before: u64) -> Result<(), usize> {
        let format = self.format();
        let parts = &format.geometry().parts;
        let size = format.geometry().frame_size();
        let frames = self.frames;
        let mut frame = vec![0; size];
        let mut prefix = vec![0; format.geometry().prefix];
        self.content.prepare_slot(&mut frame);
        for (at, bytes) in (0..).zip(bytes.chunks(size)) {
            let left_out = before + left_out(gaps, at * parts.len() as u64);
            let number = number * frames + at + left_out / parts.len() as u64;
            self.content.fill(number, &mut frame);
            let mut begin = 0;
            for (part, length) in parts.iter().enumerate() {
                let range = begin..begin + length;
                begin = range.end;
                format.make(number, part, &mut prefix, &mut frame[range.clone()]);
                let is_gone = is_gone(gaps, at * parts.len() as u64 + part as u64);
                if !is_gone && bytes.get(range.clone()) != Some(&frame[range.clone()]) {
                    return Err((at as usize * size + range.start) / PAGE);
                }
            }
        }
        Ok(())
    }
}

/// Number of packets left out in a block before this one.
fn left_out(gaps: &[Gap], packet: u64) -> u64 {
    gaps.iter().filter(|gap| !gap.filled && u64::from(gap.at) <= packet).map(|gap| gap.count).sum()
}

/// Returns true if a packet of a block is missing, with a fill in its place.
fn is_gone(gaps: &[Gap], packet: u64) -> bool {
    gaps.iter().any(|gap| gap.filled && (u64::from(gap.at)..u64::from(gap.at) + gap.count).contains(&packet))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::{Flow, StreamCourse};
    use nilometer_model::{Instrument, Seed};
    use nilometer_wire::Packet;

    const FORMATS: [&str; 4] = [
        "shape = [64_000]\npixel = \"uint2\"\npackets.format.vdif = { payload = \"8000 B\", threads = [0, 1] }",
        "shape = [40_000]\npixel = \"uint2\"\npackets.format.mark5b = {}",
        "shape = [2, 512, 1024]\npixel = \"uint16\"\npackets = { port = 50001, format = { described = { header = \"8 B\", frame = { offset = 0, bytes = 4 }, packet = { offset = 4, bytes = 4 }, packets = 256, payload = \"8192 B\" } } }",
        "shape = [4608]\npixel = \"uint8\"\npackets = { port = 50001, format = { numbered = { header = \"8 B\", payload = \"4608 B\", keep = \"all\", number = { at = { offset = 0, bytes = 8, shift = 16 }, step = 4 }, stream = { at = { offset = 0, bytes = 2 }, ids = [3, 0] } } } }",
    ];

    /// The first blocks as they are sent.
    fn sent(text: &str) -> (Blocks, Vec<Vec<u8>>) {
        let text = format!("name = \"t\"\ntitle = \"t\"\nsource = \"t\"\nframe_rate = \"1 kHz\"\n{text}\n");
        let instrument = Instrument::parse(&text, "t.toml").unwrap_or_else(|error| panic!("{error}"));
        let packets = instrument.packets.clone().expect("it sends some");
        let known = Known { begins: 700_000_000, ..Known::of(&instrument) };
        let format = || nilometer_wire::of(&packets, &known).expect("valid");
        let row = [format().geometry().frame_size() as u64 * 8 / instrument.pixel.bits()];
        let content =
            Content::prepare(&instrument.data, &row, instrument.pixel, Seed(3)).expect("it can be made");
        let mut flow = Flow::new(format(), content.clone(), StreamCourse::default(), 1);
        let per_block = packets.frames_of_block(known.frame) * format().geometry().parts.len() as u64;
        let block = |number: u64| {
            let packets = number * per_block..(number + 1) * per_block;
            packets
                .flat_map(|number| {
                    let made = flow.make(number);
                    let Packet { body, .. } = flow.packet(made);
                    body.to_vec()
                })
                .collect()
        };
        let sent = (0..3).map(block).collect();
        (Blocks::new(&packets, known, content).expect("valid"), sent)
    }

    #[test]
    fn what_was_sent_is_expected_and_nothing_else() {
        for text in FORMATS {
            let (blocks, mut sent) = sent(text);
            let expected = Expected::Blocks(Box::new(blocks));
            for (number, block) in (0..).zip(&sent) {
                assert_eq!(expected.verify(number, block, &[], 0), Ok(()), "block {number} of {text}");
                assert!(expected.verify(number + 1, block, &[], 0).is_err(), "{text}");
            }
            let last = sent[2].len() - 1;
            sent[2][last] ^= 1;
            assert_eq!(expected.verify(2, &sent[2], &[], 0).map_err(|page| page > 200), Err(true), "{text}");
            assert!(expected.verify(1, &sent[1][..last], &[], 0).is_err(), "half a block: {text}");
        }
    }

    #[test]
    fn what_did_not_come_is_not_compared() {
        let (blocks, mut sent) = sent(FORMATS[0]);
        let expected = Expected::Blocks(Box::new(blocks));
        sent[1][5 * 8032..7 * 8032].fill(0);
        let gap = |at, filled| Gap { at, count: 2, filled, sender: None };
        assert_eq!(expected.verify(1, &sent[1], &[gap(5, true)], 0), Ok(()));
        for gap in [gap(4, true), gap(6, true), gap(5, false)] {
            assert!(expected.verify(1, &sent[1], &[gap], 0).is_err(), "{gap:?}");
        }
    }

    #[test]
    fn what_was_left_out_moves_the_rest_up() {
        let (blocks, sent) = sent(FORMATS[0]);
        let expected = Expected::Blocks(Box::new(blocks));
        let (size, all) = (sent[0].len(), sent.concat());
        let (begin, skipped) = (5 * 8032, 100 * 8032);
        // Five frames of the first block, then those behind a hundred more.
        let block = [&all[..begin], &all[begin + skipped..size + skipped]].concat();
        let gap = Gap { at: 5, count: 100, filled: false, sender: None };
        assert_eq!(expected.verify(0, &block, &[gap], 0), Ok(()));
        assert!(expected.verify(0, &block, &[Gap { at: 6, ..gap }], 0).is_err());
        assert_eq!(expected.verify(1, &all[size + skipped..2 * size + skipped], &[], 100), Ok(()));
        assert!(expected.verify(1, &all[size + skipped..2 * size + skipped], &[], 99).is_err());
    }
}
