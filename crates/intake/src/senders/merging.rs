//! How blocks of several streams get their places among the merged ones, and leave their streams.

use nilometer_model::Nanos;
use nilometer_recording::GapSender;

use super::{SenderStreams, merger::BlockMerger, sender_stream::PlacedFrame};
use crate::assembly::ReorderWindow;

impl SenderStreams {
    /// Opens blocks of a stream for the next `most` packets and gives them places, as far as there are any.
    pub(super) fn lend_ahead(&mut self, now: Nanos, at: usize, port: usize, most: usize) {
        if self.merger.is_some() {
            self.streams[at].assembly.open_ahead(now, port, most);
            self.lend(now, at, most as u64);
        }
    }

    /// Takes back the places for which no packets arrived: other streams come first now.
    pub(super) fn take_unused(&mut self, at: usize) {
        let Some(merger) = &mut self.merger else { return };
        while let Some(place) = self.streams[at].assembly.take_unused_place() {
            merger.take_back(place);
        }
    }

    /// Gives places to the blocks of a stream that have packets, or may get some of the next `ahead` ones.
    fn lend(&mut self, now: Nanos, at: usize, ahead: u64) {
        let mut may_take_back = true;
        while self.streams[at].assembly.lacks_place(ahead) {
            let Some(merger) = &mut self.merger else { return };
            let stream = &mut self.streams[at];
            // Blocks get places in their order. One that is complete waits for a free slot.
            if !stream.taken.is_empty() || !stream.pace.is_even(merger) {
                return;
            }
            if merger.is_stuck() && std::mem::take(&mut may_take_back) {
                self.take_all_back(now);
                continue;
            }
            let Some(place) = merger.lend(now) else { return };
            stream.assembly.lie_at(place);
        }
    }

    /// Passes complete blocks of a stream on, as far as there is room for them. Others of its blocks that have
    /// packets get places.
    pub(super) fn pass_on(&mut self, now: Nanos, at: usize) {
        self.pass_placed(now, at);
        if self.streams[at].taken.is_empty() {
            return self.lend(now, at, 0);
        }
        if self.merger.as_ref().is_some_and(BlockMerger::is_stuck) {
            self.take_all_back(now);
        }
        self.append_complete(now, at);
    }

    /// Passes complete blocks of a stream on that lie in their places.
    fn pass_placed(&mut self, now: Nanos, at: usize) {
        let sender = self.gap_sender(at);
        let Some(merger) = &mut self.merger else { return };
        let stream = &mut self.streams[at];
        while let Some(PlacedFrame { place, frame }) = stream.next_placed(now) {
            if let Some(packed) = &frame.packed {
                merger.complete(now, place, &frame.data, merger.content(packed, sender));
            }
            stream.release(now, frame, merger);
        }
    }

    /// Copies complete blocks of a stream behind all others, as far as there is room for them.
    fn append_complete(&mut self, now: Nanos, at: usize) {
        let sender = self.gap_sender(at);
        let Some(merger) = &mut self.merger else { return };
        let stream = &mut self.streams[at];
        while let Some(frame) = stream.next_complete(now) {
            if let Some(packed) = &frame.packed {
                if !merger.has_room(now, packed) {
                    return;
                }
                merger.append(now, &frame.data, &merger.content(packed, sender));
            }
            if let Some(frame) = stream.taken.pop_front() {
                stream.release(now, frame, merger);
            }
        }
    }

    /// Takes all places back, so that no stream holds up a slot.
    pub(super) fn take_all_back(&mut self, now: Nanos) {
        (0..self.streams.len()).for_each(|at| self.pass_placed(now, at));
        let Some(merger) = &mut self.merger else { return };
        for stream in &mut self.streams {
            while let Some(place) = stream.assembly.take_place() {
                merger.take_back(place);
            }
        }
        merger.compact(now);
    }

    /// Takes all places back if the first slot has waited for a stream for too long.
    pub(super) fn limit_wait(&mut self, now: Nanos) {
        let ReorderWindow { patience, .. } = self.first().limits().0;
        if self.merger.as_ref().is_some_and(|merger| merger.is_overdue(now, patience)) {
            self.take_all_back(now);
        }
    }

    /// The sender of a stream, as gaps name it.
    fn gap_sender(&self, at: usize) -> GapSender {
        let sender = self.streams[at].sender;
        let address = sender.and_then(|sender| self.addresses.get(usize::from(sender.0)).copied());
        GapSender::new(at as u16 + 1, address.flatten())
    }
}
