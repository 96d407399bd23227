//! The bytes of a stream's packets, made where they lie: in memory that is there before the clock starts, so that a
//! packet costs its stamp and its headers, and no copy.
//!
//! Frames lie in slots, one after the other and round again. As many slots as there are distinct frames, or a multiple of
//! them: what a slot gets next differs from what it holds in its stamp only.

use crate::{
    format::{Geometry, Packet, WireFormat},
    instrument::Content,
};

/// How the numbers of a stream go on, where they do not just go up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Course {
    /// After so many frames serial numbers fall back to where they began, again and again: a new scan. At least 1.
    pub restart_after: Option<u64>,
    /// From this frame on, the clock is so many frames ahead, or behind.
    pub jump: Option<(u64, i64)>,
}

impl Course {
    /// The number from which the serial number of a stream's frame is made.
    pub fn serial(&self, index: u64) -> u64 {
        self.restart_after.map_or(index, |frames| index % frames)
    }

    /// The number from which the time of a stream's frame is made, and what is in it. It never goes below 0.
    pub fn frame(&self, index: u64) -> u64 {
        match self.jump {
            Some((from, by)) if index >= from => index.saturating_add_signed(by),
            _ => index,
        }
    }

    /// How often serial numbers fell back in a stream of so many frames.
    pub fn restarts(&self, frames: u64) -> u64 {
        self.restart_after.map_or(0, |after| frames.saturating_sub(1) / after)
    }
}

/// The packets of a stream.
#[derive(Debug)]
pub struct Flow {
    format: Box<dyn WireFormat>,
    geometry: Geometry,
    content: Content,
    course: Course,
    slots: u64,
    memory: Vec<u8>,
    /// Which frame's content a slot holds.
    holds: Vec<Option<u64>>,
    /// Which packet was made in each place.
    made: Vec<Option<u64>>,
    /// What one of two calls makes in vain.
    spare: (Vec<u8>, Vec<u8>),
}

impl Flow {
    /// Packets of this format around this content, whose frames have the format's size. Of `window` packets that follow
    /// each other, all can be had at once.
    pub fn new(format: Box<dyn WireFormat>, content: Content, course: Course, window: u64) -> Self {
        let geometry = format.geometry().clone();
        assert_eq!(content.frame_size(), geometry.frame_size(), "content is prepared for its format");
        let (parts, distinct) = (geometry.parts.len() as u64, content.distinct());
        // One more: a window may begin and end within a frame.
        let slots = (window.div_ceil(parts) + 1).next_multiple_of(distinct);
        let packets = slots * parts;
        let memory = vec![0; packets as usize * geometry.prefix + slots as usize * geometry.frame_size()];
        let spare = (vec![0; geometry.prefix], vec![0; geometry.parts.iter().max().copied().unwrap_or(0)]);
        let (holds, made) = (vec![None; slots as usize], vec![None; packets as usize]);
        let mut flow = Flow { format, geometry, content, course, slots, memory, holds, made, spare };
        (0..slots).for_each(|index| flow.fill(index));
        flow
    }

    /// How packets make up frames.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Bytes of each packet of a frame.
    pub fn packet_sizes(&self) -> Vec<usize> {
        self.geometry.parts.iter().map(|part| self.geometry.prefix + part).collect()
    }

    /// Makes a packet, counted from the beginning of the stream. It stays as long as the window does not leave it.
    #[inline]
    pub fn make(&mut self, number: u64) {
        let (index, part) = self.place(number);
        let at = self.made_at(index, part);
        if self.made[at] == Some(number) {
            return;
        }
        self.fill(index);
        self.made[at] = Some(number);
        let (frame, serial) = (self.course.frame(index), self.course.serial(index));
        let (prefix_at, body_at) = (self.prefix_at(index, part), self.body_at(index, part));
        let length = self.geometry.parts[part];
        let (before, behind) = self.memory.split_at_mut(body_at);
        let (prefix, body) = (&mut before[prefix_at..][..self.geometry.prefix], &mut behind[..length]);
        if frame == serial {
            self.format.make(frame, part, prefix, body);
        } else {
            let (spare_prefix, spare_body) = &mut self.spare;
            self.format.make(serial, part, prefix, &mut spare_body[..length]);
            self.format.make(frame, part, spare_prefix, body);
        }
    }

    /// A packet that was made.
    #[inline]
    pub fn packet(&self, number: u64) -> Packet<'_> {
        let (index, part) = self.place(number);
        debug_assert_eq!(self.made[self.made_at(index, part)], Some(number), "it was made, and not long ago");
        let (prefix, body) = (self.prefix_at(index, part), self.body_at(index, part));
        Packet {
            prefix: &self.memory[prefix..][..self.geometry.prefix],
            body: &self.memory[body..][..self.geometry.parts[part]],
        }
    }

    /// Puts a frame's content into its slot, if it is not there. No packet of another frame is left in it.
    fn fill(&mut self, index: u64) {
        let (frame, slot) = (self.course.frame(index), (index % self.slots) as usize);
        if self.holds[slot] == Some(frame) {
            return;
        }
        let first = self.made_at(index, 0);
        self.made[first..][..self.geometry.parts.len()].fill(None);
        let begin = self.body_at(index, 0);
        let bytes = &mut self.memory[begin..][..self.geometry.frame_size()];
        if let Some(held) = self.holds[slot].replace(frame) {
            self.content.change(held, frame, bytes);
        } else {
            self.content.prepare_slot(bytes);
            self.content.fill(frame, bytes);
        }
    }

    /// A packet's frame and its part of it.
    fn place(&self, number: u64) -> (u64, usize) {
        let parts = self.geometry.parts.len() as u64;
        (number / parts, (number % parts) as usize)
    }

    fn made_at(&self, index: u64, part: usize) -> usize {
        (index % self.slots) as usize * self.geometry.parts.len() + part
    }

    /// Packets that are frames lie as they leave, one behind the other: several are one piece of memory. Otherwise a
    /// frame's parts must touch, and all prefixes come before them.
    fn is_frame(&self) -> bool {
        self.geometry.parts.len() == 1
    }

    fn prefix_at(&self, index: u64, part: usize) -> usize {
        let stride = if self.is_frame() { self.geometry.packet_size() } else { self.geometry.prefix };
        self.made_at(index, part) * stride
    }

    fn body_at(&self, index: u64, part: usize) -> usize {
        if self.is_frame() {
            return self.prefix_at(index, part) + self.geometry.prefix;
        }
        let (slot, frame) = ((index % self.slots) as usize, self.geometry.frame_size());
        let before: usize = self.geometry.parts[..part].iter().sum();
        self.made.len() * self.geometry.prefix + slot * frame + before
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

    /// The packet as a whole, made from nothing.
    fn expected(format: &Numbered, content: &Content, course: Course, number: u64) -> Vec<u8> {
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
            let course = Course { restart_after, jump };
            let mut flow = Flow::new(Box::new(format.clone()), content.clone(), course, 5);
            for number in numbers {
                flow.make(number);
                let Packet { prefix, body } = flow.packet(number);
                prop_assert_eq!([prefix, body].concat(), expected(&format, &content, course, number));
            }
        }
    }

    #[test]
    fn a_window_of_packets_is_there_at_once() {
        for parts in [vec![64], vec![40, 24]] {
            let format = Numbered::new(&parts);
            let content = content(DataKind::Vlbi, 64);
            let mut flow = Flow::new(Box::new(format.clone()), content.clone(), Course::default(), 7);
            for first in 0..50 {
                (first..first + 7).for_each(|number| flow.make(number));
                for number in first..first + 7 {
                    let Packet { prefix, body } = flow.packet(number);
                    assert_eq!(
                        [prefix, body].concat(),
                        expected(&format, &content, Course::default(), number)
                    );
                }
            }
        }
    }

    #[test]
    fn packets_that_are_frames_touch() {
        let mut flow =
            Flow::new(Box::new(Numbered::new(&[64])), content(DataKind::Vlbi, 64), Course::default(), 4);
        (0..4).for_each(|number| flow.make(number));
        for number in 0..3 {
            let (this, next) = (flow.packet(number), flow.packet(number + 1));
            assert_eq!(this.prefix.as_ptr_range().end, this.body.as_ptr());
            assert_eq!(this.body.as_ptr_range().end, next.prefix.as_ptr());
        }
    }

    #[test]
    fn serial_numbers_fall_back_and_clocks_jump() {
        let course = Course { restart_after: Some(3), jump: Some((4, -2)) };
        assert_eq!([0, 2, 3, 5, 6].map(|index| course.serial(index)), [0, 2, 0, 2, 0]);
        assert_eq!([0, 3, 4, 5].map(|index| course.frame(index)), [0, 3, 2, 3]);
        assert_eq!([0, 3, 4, 6, 7].map(|frames| course.restarts(frames)), [0, 0, 1, 1, 2]);
        assert_eq!(Course { jump: Some((0, -5)), ..course }.frame(2), 0);
    }
}
