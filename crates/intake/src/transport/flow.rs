//! The bytes of a stream's packets, built in memory that is allocated before the clock starts. A packet then
//! costs its stamp and its headers, and no copy.
//!
//! Frames lie in slots, used in rotation. The number of slots is a multiple of the number of distinct frames.
//! The next frame of a slot therefore differs from the previous one only in its stamp.

use nilometer_recording::instrument::Content;
use nilometer_wire::{Geometry, Packet, WireFormat};

/// Breaks in the numbering of a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StreamCourse {
    /// Serial numbers restart after this many frames, again and again, as in a new scan. At least 1. `None`:
    /// never.
    pub restart_after: Option<u64>,
    /// The frame at which the clock jumps, and by how many frames: forwards, or backwards if negative.
    pub jump: Option<(u64, i64)>,
}

impl StreamCourse {
    /// The number from which a frame's serial number is made.
    pub fn serial(&self, index: u64) -> u64 {
        self.restart_after.map_or(index, |frames| index % frames)
    }

    /// The number from which a frame's time and content are made. It never goes below 0.
    pub fn frame(&self, index: u64) -> u64 {
        match self.jump {
            Some((from, by)) if index >= from => index.saturating_add_signed(by),
            _ => index,
        }
    }

    /// How often serial numbers restart in a stream of `frames` frames.
    pub fn restarts(&self, frames: u64) -> u64 {
        self.restart_after.map_or(0, |after| frames.saturating_sub(1) / after)
    }
}

/// The location of a packet in the flow's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Made {
    prefix: usize,
    body: usize,
    length: usize,
}

/// The packets of a stream.
#[derive(Debug)]
pub struct Flow {
    format: Box<dyn WireFormat>,
    geometry: Geometry,
    frame_size: usize,
    /// Offset of each part in its frame.
    offsets: Vec<usize>,
    content: Content,
    course: StreamCourse,
    slots: u64,
    memory: Vec<u8>,
    /// The frame whose content each slot holds.
    holds: Vec<Option<u64>>,
    /// The packet that was last made in each place.
    made: Vec<Option<u64>>,
    copies: Copies,
    /// Scratch memory: it takes the half of a packet that one of two calls makes in vain.
    spare: (Vec<u8>, Vec<u8>),
}

impl Flow {
    /// Packets of this format with this content. Any `window` consecutive packets are available at the same
    /// time.
    ///
    /// A content's frame is at most as large as the format's. It stands at the beginning of the format's
    /// frame; zeroes follow.
    pub fn new(format: Box<dyn WireFormat>, content: Content, course: StreamCourse, window: u64) -> Self {
        let geometry = format.geometry().clone();
        assert!(content.frame_size() <= geometry.frame_size(), "content is prepared for its format");
        let parts = geometry.parts.len() as u64;
        let distinct = content.distinct();
        // One more slot: with several parts, a window may begin and end within a frame.
        let slots = (window.div_ceil(parts) + u64::from(parts > 1)).max(1).next_multiple_of(distinct);
        let packets = slots * parts;
        let frame_size = geometry.frame_size();
        let copies = Copies::of(&geometry, packets as usize * geometry.prefix + slots as usize * frame_size);
        let memory = vec![0; copies.begin + slots as usize * copies.size];
        let begins = geometry.parts.iter().scan(0, |end, part| Some(std::mem::replace(end, *end + part)));
        let offsets = begins.collect();
        let spare = (vec![0; geometry.prefix], vec![0; geometry.packet_size() - geometry.prefix]);
        let holds = vec![None; slots as usize];
        let made = vec![None; packets as usize];
        let mut flow = Flow {
            format,
            geometry,
            frame_size,
            offsets,
            content,
            course,
            slots,
            memory,
            holds,
            made,
            copies,
            spare,
        };
        (0..slots).for_each(|index| flow.fill(index, index as usize));
        flow
    }

    /// How packets make up frames.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The breaks in its numbering.
    pub fn course(&self) -> StreamCourse {
        self.course
    }

    /// Bytes of each packet of a frame.
    pub fn packet_sizes(&self) -> Vec<usize> {
        (0..self.geometry.parts.len()).map(|part| self.geometry.prefix + self.geometry.sent(part)).collect()
    }

    /// Makes a packet, counted from the beginning of the stream. It stays valid while it is in the window.
    #[inline]
    pub fn make(&mut self, number: u64) -> Made {
        let parts = self.geometry.parts.len() as u64;
        let index = number / parts;
        let part = (number % parts) as usize;
        let slot = (index % self.slots) as usize;
        let made = self.place(slot, part);
        let at = slot * self.geometry.parts.len() + part;
        if self.made[at] != Some(number) {
            self.fill(index, slot);
            self.made[at] = Some(number);
            let body = self.body(slot, part);
            if body != made.body {
                self.memory.copy_within(body..body + self.geometry.parts[part], made.body);
            }
            self.wrap(index, part, made);
        }
        made
    }

    /// A packet that was made.
    #[inline]
    pub fn packet(&self, made: Made) -> Packet<'_> {
        Packet {
            prefix: &self.memory[made.prefix..][..self.geometry.prefix],
            body: &self.memory[made.body..][..made.length],
        }
    }

    /// Makes the headers and trailers around the content of a packet.
    fn wrap(&mut self, index: u64, part: usize, made: Made) {
        let (before, behind) = self.memory.split_at_mut(made.body);
        let prefix = &mut before[made.prefix..][..self.geometry.prefix];
        let body = &mut behind[..made.length];
        let frame = self.course.frame(index);
        let serial = self.course.serial(index);
        if frame == serial {
            self.format.make(frame, part, prefix, body);
        } else {
            let (spare_prefix, spare_body) = &mut self.spare;
            self.format.make(serial, part, prefix, &mut spare_body[..made.length]);
            self.format.make(frame, part, spare_prefix, body);
        }
    }

    /// Puts a frame's content into its slot, unless it is already there. All packets of the slot become
    /// invalid.
    fn fill(&mut self, index: u64, slot: usize) {
        let frame = self.course.frame(index);
        if self.holds[slot] == Some(frame) {
            return;
        }
        let parts = self.geometry.parts.len();
        self.made[slot * parts..][..parts].fill(None);
        let begin = self.body(slot, 0);
        let bytes = &mut self.memory[begin..][..self.frame_size];
        if let Some(held) = self.holds[slot].replace(frame) {
            self.content.change(held, frame, bytes);
        } else {
            self.content.prepare_slot(bytes);
            self.content.fill(frame, bytes);
        }
    }

    /// The place of a packet. Packets that are whole frames lie one behind the other, as they leave, so that
    /// several are one piece of memory. Otherwise a frame's parts must touch, and all prefixes come before
    /// them.
    fn place(&self, slot: usize, part: usize) -> Made {
        let Geometry { prefix, ref parts, .. } = self.geometry;
        let body = self.body(slot, part);
        let length = self.geometry.sent(part);
        if self.is_in_one_piece() {
            return Made { prefix: body - prefix, body, length };
        }
        let copy = self.copies.place(slot, part);
        Made { prefix: (slot * parts.len() + part) * prefix, body: copy.unwrap_or(body), length }
    }

    /// Position of a part's content in the memory.
    fn body(&self, slot: usize, part: usize) -> usize {
        let prefix = self.geometry.prefix;
        if self.is_in_one_piece() {
            return slot * (prefix + self.frame_size) + prefix;
        }
        self.made.len() * prefix + slot * self.frame_size + self.offsets[part]
    }

    /// Returns true if each packet is a frame and nothing follows the bytes kept of it.
    fn is_in_one_piece(&self) -> bool {
        self.copies.size == 0 && self.geometry.parts.len() == 1
    }
}

/// Copies of packets that have bytes after those that are kept. They cannot lie in their frame, because the
/// next part follows there at once.
#[derive(Debug)]
struct Copies {
    /// Position of the first copy in the memory.
    begin: usize,
    /// Bytes of the copies of one slot.
    size: usize,
    /// By part: the offset of its copy among those of a slot. `None`: the part needs no copy.
    places: Vec<Option<usize>>,
}

impl Copies {
    fn of(geometry: &Geometry, begin: usize) -> Self {
        let mut size = 0;
        let mut places = Vec::with_capacity(geometry.parts.len());
        for (part, kept) in geometry.parts.iter().enumerate() {
            let sent = geometry.sent(part);
            let has_more = sent > *kept;
            places.push(has_more.then_some(size));
            size += if has_more { sent } else { 0 };
        }
        Copies { begin, size, places }
    }

    fn place(&self, slot: usize, part: usize) -> Option<usize> {
        self.places[part].map(|at| self.begin + slot * self.size + at)
    }
}

#[cfg(test)]
mod tests {
    use nilometer_model::{Data, DataKind, PixelType, Seed};
    use proptest::prelude::*;

    use super::*;
    use crate::transport::trial::Numbered;

    fn content(kind: DataKind, frame: usize) -> Content {
        let data = Data { distinct: Some(3).filter(|_| kind != DataKind::Incompressible), ..kind.into() };
        Content::prepare(&data, &[frame as u64 * 4], PixelType::Uint2, Seed(4)).expect("it can be made")
    }

    /// The whole packet, computed independently of the flow.
    fn expected(format: &Numbered, content: &Content, course: StreamCourse, number: u64) -> Vec<u8> {
        let geometry = format.geometry();
        let parts = geometry.parts.len() as u64;
        let (index, part) = (number / parts, (number % parts) as usize);
        let mut frame = vec![0; geometry.frame_size()];
        content.prepare_slot(&mut frame);
        content.fill(course.frame(index), &mut frame);
        let before: usize = geometry.parts[..part].iter().sum();
        let body = &mut frame[before..][..geometry.parts[part]];
        let (mut prefix, mut none) = (vec![0; geometry.prefix], body.to_vec());
        format.make(course.serial(index), part, &mut prefix, &mut none);
        format.make(course.frame(index), part, &mut [0; 8], body);
        [&prefix, &*body].concat()
    }

    proptest! {
        #[test]
        fn a_packet_follows_from_its_number_whatever_was_made_before(
            parts in prop::collection::vec(24..6000_usize, 1..4), numbers in prop::collection::vec(0..60_u64, 1..80),
            restart_after in prop::option::of(1..20_u64), jump in prop::option::of((0..20_u64, -10..10_i64)), noise: bool,
        ) {
            let format = Numbered::new(&parts);
            let kind = if noise { DataKind::Vlbi } else { DataKind::Incompressible };
            let content = content(kind, format.geometry().frame_size());
            let course = StreamCourse { restart_after, jump };
            let mut flow = Flow::new(Box::new(format.clone()), content.clone(), course, 5);
            for number in numbers {
                let made = flow.make(number);
                let Packet { prefix, body } = flow.packet(made);
                prop_assert_eq!([prefix, body].concat(), expected(&format, &content, course, number));
            }
        }
    }

    #[test]
    fn a_window_of_packets_is_there_at_once() {
        for parts in [vec![64], vec![40, 24]] {
            let format = Numbered::new(&parts);
            let content = content(DataKind::Vlbi, 64);
            let mut flow = Flow::new(Box::new(format.clone()), content.clone(), StreamCourse::default(), 7);
            for first in 0..50 {
                let made: Vec<_> = (first..first + 7).map(|number| (number, flow.make(number))).collect();
                for (number, made) in made {
                    let Packet { prefix, body } = flow.packet(made);
                    assert_eq!(
                        [prefix, body].concat(),
                        expected(&format, &content, StreamCourse::default(), number)
                    );
                }
            }
        }
    }

    #[test]
    fn packets_that_are_frames_touch() {
        let mut flow = Flow::new(
            Box::new(Numbered::new(&[64])),
            content(DataKind::Vlbi, 64),
            StreamCourse::default(),
            4,
        );
        let made: Vec<_> = (0..4).map(|number| flow.make(number)).collect();
        for pair in made.windows(2) {
            let (this, next) = (flow.packet(pair[0]), flow.packet(pair[1]));
            assert_eq!(this.prefix.as_ptr_range().end, this.body.as_ptr());
            assert_eq!(this.body.as_ptr_range().end, next.prefix.as_ptr());
        }
    }

    #[test]
    fn serial_numbers_fall_back_and_clocks_jump() {
        let course = StreamCourse { restart_after: Some(3), jump: Some((4, -2)) };
        assert_eq!([0, 2, 3, 5, 6].map(|index| course.serial(index)), [0, 2, 0, 2, 0]);
        assert_eq!([0, 3, 4, 5].map(|index| course.frame(index)), [0, 3, 2, 3]);
        assert_eq!([0, 3, 4, 6, 7].map(|frames| course.restarts(frames)), [0, 0, 1, 1, 2]);
        assert_eq!(StreamCourse { jump: Some((0, -5)), ..course }.frame(2), 0);
    }
}
