//! Keeps the ports of a stream together. A recorder that falls behind finds more packets at one port than at
//! another. A look brings the packets of one port, and the kernel drops packets at each port separately.
//!
//! ```text
//! port 0    100 101 102 103 104 105      ahead by as much as open blocks hold: it stays in the kernel
//! port 1    100 101 102                  until this one has caught up, or has nothing more
//!
//! port 0    100 .... 900 901 902         the kernel dropped 101 to 899: 900 to 902 are parked
//! port 1    100 101 102 103 .. 850       until this one comes there too; then the stream goes on at 850
//! ```
//!
//! Otherwise a port that is ahead would close blocks for which packets still arrive at the others. And
//! packets behind a drop at one port would look like a stream that begins anew beside one that goes on.

use std::collections::VecDeque;

use nilometer_model::Nanos;
use nilometer_wire::Part;

use super::{Assembly, Port, drops::UnexplainedDrops, progress::ESTABLISHED};

/// How far the packets of a port have come.
#[derive(Debug, Default)]
pub(super) struct PortCourse {
    /// The last packet of the stream, whether it found a slot or not.
    heard: Option<Part>,
    /// The same before the last look.
    before: Option<Part>,
    /// The last look brought packets of the stream: more may wait.
    is_alive: bool,
    /// Packets of the stream that arrived.
    packets: u64,
    drops: UnexplainedDrops,
    /// Packets behind a gap, which wait until the other ports have reached them.
    parked: VecDeque<ParkedPacket>,
    /// The parked packets up to the next gap certainly belong to the stream.
    is_known: bool,
}

#[derive(Debug)]
struct ParkedPacket {
    part: Part,
    /// Packets that the kernel dropped at this port just before it.
    gap: u64,
    body: Vec<u8>,
}

impl PortCourse {
    /// The stream begins, or begins anew.
    pub(super) fn begin(&mut self) {
        self.heard = None;
        self.before = None;
        self.is_alive = false;
    }

    /// Records packets of the stream, `part` being the last.
    pub(super) fn hear(&mut self, part: Part, packets: u64) {
        self.heard = Some(part);
        self.packets += packets;
    }

    /// The kernel dropped at most this many packets of this port before those that follow.
    pub(super) fn dropped(&mut self, packets: u64) {
        self.drops.add(packets, self.packets);
    }

    /// The packet before which all packets of this port have been put down.
    pub(super) fn rear(&self) -> Option<Part> {
        self.parked.front().map(|parked| parked.part).or(self.heard)
    }

    /// Packets of the stream that arrived.
    pub(super) fn packets(&self) -> u64 {
        self.packets
    }

    /// Packets that wait for other ports.
    pub(super) fn parked(&self) -> u64 {
        self.parked.len() as u64
    }
}

impl Assembly {
    /// How many of `most` packets may be taken from a port now. The limit keeps it from running ahead of
    /// others that have packets waiting.
    pub(crate) fn may_take(&self, inlet: usize, most: usize) -> usize {
        let port = &self.ports[inlet];
        let Some(own) = port.course.heard.map(|part| self.index_at(port, part)) else { return most };
        let waiting = self.ports.iter().filter(|port| port.course.is_alive);
        let rear = |port: &Port| port.course.rear().map(|part| self.index_at(port, part));
        let Some(last) = waiting.filter_map(rear).min() else { return most };
        let most_ahead = (self.places_of_lead() / self.ports.len() as u64).cast_signed();
        let left = most_ahead.saturating_sub(own.saturating_sub(last)).max(0);
        usize::try_from(left).map_or(most, |left| left.min(most))
    }

    /// Ends a look at a port. It puts down parked packets as far as the ports have come.
    pub(crate) fn looked(&mut self, now: Nanos, inlet: usize) {
        let course = &mut self.ports[inlet].course;
        // It does not wait for a port without packets of the stream, however many others that brings.
        course.is_alive = course.heard != course.before;
        course.before = course.heard;
        while let Some(inlet) = self.next_parked().filter(|at| !self.is_behind_others(*at)) {
            self.unpark(now, inlet);
        }
        self.settle(now);
        self.close_full(now);
    }

    /// Puts down all parked packets, since no packet arrives any more.
    pub(super) fn unpark_all(&mut self, now: Nanos) {
        while let Some(inlet) = self.next_parked() {
            self.unpark(now, inlet);
        }
    }

    /// Keeps a packet behind a gap at its port until the other ports have reached it. Returns false if it can
    /// be put down now.
    pub(super) fn park(&mut self, inlet: usize, part: Part, body: &[u8]) -> bool {
        let gap = if self.is_elsewhere(part) { self.explained_gap(inlet, part) } else { Some(0) };
        let course = &mut self.ports[inlet].course;
        if let Some(gap) = gap {
            course.drops.explain(gap);
            course.hear(part, 1);
        }
        let is_behind_gap = gap.is_some_and(|gap| gap > 0);
        if self.ports[inlet].course.parked.is_empty() && !is_behind_gap && !self.is_far_ahead(part) {
            return false;
        }
        self.ports[inlet].course.parked.push_back(ParkedPacket {
            part,
            gap: gap.unwrap_or(0),
            body: body.to_vec(),
        });
        true
    }

    /// How many packets of its port are missing before this one, if the kernel dropped as many there.
    fn explained_gap(&self, inlet: usize, packet: Part) -> Option<u64> {
        let port = &self.ports[inlet];
        let ahead = self.index_at(port, packet).saturating_sub(self.index_at(port, port.course.heard?));
        let most = port.course.drops.packets().saturating_add(self.limits.window);
        u64::try_from(ahead.saturating_sub(1)).ok().filter(|missing| *missing <= most)
    }

    /// The port whose first parked packet has the lowest place.
    fn next_parked(&self) -> Option<usize> {
        let first =
            |at: &usize| self.ports[*at].course.parked.front().map(|parked| self.order.place(parked.part));
        (0..self.ports.len()).filter(|at| first(at).is_some()).min_by_key(first)
    }

    /// Returns true if the parked packets of a port lie behind some that still wait at another.
    fn is_behind_others(&self, inlet: usize) -> bool {
        let Some(ParkedPacket { part, gap, .. }) = self.ports[inlet].course.parked.front() else {
            return false;
        };
        let is_ahead = self.order.place(*part) >= self.next().cast_signed();
        let is_behind_gap = *gap > 0 && is_ahead && self.is_elsewhere(*part);
        self.is_far_ahead(*part) || is_behind_gap && !self.may_skip()
    }

    fn unpark(&mut self, now: Nanos, inlet: usize) {
        let is_known = self.begins_course(inlet);
        if is_known {
            self.move_over_gap(now, inlet);
        }
        let course = &mut self.ports[inlet].course;
        let Some(ParkedPacket { part, gap, body }) = course.parked.pop_front() else { return };
        course.is_known = is_known || course.is_known && gap == 0;
        if course.is_known && self.crowded.is_none() {
            self.put(now, inlet, part, &body);
        } else {
            self.insert_near(now, inlet, part, &body);
        }
        let course = &mut self.ports[inlet].course;
        course.is_known &= !course.parked.is_empty();
    }

    /// Returns true if the first parked packet of a port stands behind a gap, and as many follow it as make a
    /// stream.
    fn begins_course(&self, inlet: usize) -> bool {
        let parked = &self.ports[inlet].course.parked;
        let first = parked.front().filter(|parked| parked.gap > 0);
        let head = |parked: &ParkedPacket| self.index_at(&self.ports[inlet], parked.part);
        let near = |parked: &&ParkedPacket| {
            first.is_some_and(|first| head(parked).abs_diff(head(first)) <= self.limits.window)
        };
        parked.iter().take_while(near).take(ESTABLISHED as usize).count() == ESTABLISHED as usize
    }

    /// The stream goes on behind the gap at which a port stands.
    fn move_over_gap(&mut self, now: Nanos, inlet: usize) {
        let Some(part) = self.ports[inlet].course.parked.front().map(|parked| parked.part) else { return };
        let first = Part { frame: self.first_heard(part.frame), part: 0 };
        if self.is_elsewhere(part) {
            self.skip_gap(now, first);
        }
    }

    /// Returns true if this packet is too far ahead of another port that has packets waiting: open blocks
    /// can't hold both.
    fn is_far_ahead(&self, part: Part) -> bool {
        let end = self.order.place(part).saturating_sub(self.places_of_lead().cast_signed());
        let mut waiting = self.ports.iter().filter(|port| port.course.is_alive);
        waiting.any(|port| port.course.rear().is_some_and(|rear| self.order.place(rear) < end))
    }

    /// Returns true if frames behind the last packet may be left out. Leaving them out moves the places of
    /// all packets that follow, so all ports that may bring more must have reached them.
    pub(super) fn may_skip(&self) -> bool {
        let here = self.next().next_multiple_of(self.shape.per_frame()).cast_signed();
        let alive = self.ports.iter().filter(|port| port.course.is_alive);
        let mut frames = alive.filter_map(Port::next_frame);
        self.ports.len() == 1 || frames.all(|frame| self.place_of(frame) >= here)
    }

    /// The earliest of this frame and the next frames of the ports, if these are near it and behind the last
    /// packet.
    pub(super) fn first_heard(&self, frame: u64) -> u64 {
        let here = self.next().next_multiple_of(self.shape.per_frame()).cast_signed();
        let near = self.place_of(frame).saturating_sub((2 * self.places_of_lead()).cast_signed());
        let near = near.max(here)..self.place_of(frame);
        let frames = self.ports.iter().filter_map(Port::next_frame);
        let behind = frames.filter(|frame| near.contains(&self.place_of(*frame)));
        behind.min_by_key(|frame| self.place_of(*frame)).unwrap_or(frame)
    }

    /// The place of the first packet of a frame.
    fn place_of(&self, frame: u64) -> i64 {
        self.order.place(Part { frame, part: 0 })
    }

    /// The index of a packet among those of its port.
    fn index_at(&self, port: &Port, Part { frame, part }: Part) -> i64 {
        let frames = self.place_of(frame).div_euclid(self.shape.per_frame().cast_signed());
        let own = (port.parts.end - port.parts.start).cast_signed();
        let within = (part as u64).saturating_sub(port.parts.start).cast_signed();
        frames.saturating_mul(own).saturating_add(within)
    }

    /// How many places a port may be ahead of another: a window, or a block if that is longer. There are
    /// slots for this in addition to the block that is being filled.
    pub(super) fn places_of_lead(&self) -> u64 {
        self.limits.window.max(self.shape.packets)
    }
}
