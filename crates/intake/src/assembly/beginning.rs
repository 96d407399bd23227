//! Corrects the beginning of a stream. The receiver may read a later packet first. Threads of a sender
//! overtake each other, and so do the paths of a network and the ports of a recorder.
//!
//! ```text
//! arrives   101 103 105 100 102 104 106 ..     two ports: the recorder looked at the second one first
//! places    0   2   4                          the stream began with 101
//! 100       would have place -1                all places move up by one, and it gets place 0
//! ```

use nilometer_wire::Part;

use super::Assembly;

impl Assembly {
    /// The number of frames by which the stream began before its first packet, if this packet shows that.
    ///
    /// It must be near. Only the first packets may have arrived, and no block may have left for the ring.
    /// Later, a packet before the first one is late.
    pub(super) fn begun_earlier(&self, part: Part) -> Option<u64> {
        let ahead = self.order.place(part).checked_neg().filter(|ahead| (1..=self.step()).contains(ahead))?;
        let is_first = self.first == 0 && self.starts.len() == 1 && self.crowded.is_none();
        let is_whole = self.tally.left_out == 0 && self.tally.jumps == 0 && self.tally.restarts == 0;
        let is_new = self.progress.packets() <= self.limits.window;
        let frames = ahead.cast_unsigned().div_ceil(self.shape.per_frame());
        let end = self.next() + frames * self.shape.per_frame();
        let is_open = end <= self.open.len() as u64 * self.shape.packets;
        (is_first && is_whole && is_new && is_open).then_some(frames)
    }

    /// Moves all packets up by this many frames: the stream begins with `first`.
    pub(super) fn begin_earlier(&mut self, frames: u64, first: u64) {
        let per_frame = self.shape.per_frame();
        for frame in (0..self.next().div_ceil(per_frame)).rev() {
            self.move_frame(frame as usize, (frame + frames) as usize);
        }
        let places = frames * per_frame;
        for port in self.ports.iter_mut().filter(|port| port.next > 0) {
            port.next += places;
            port.arrivals.move_up(places);
        }
        self.order.move_up(places);
        self.tally.first_frame = Some(first);
    }
}

#[cfg(test)]
mod tests {
    use nilometer_recording::Missing;

    use super::super::tests::{Lab, SMALL, came};

    /// The first frame, packets that are counted late, and all that is recorded.
    fn recorded(parts: usize, serials: &[u64]) -> (Option<u64>, u64, Vec<(u32, u8)>) {
        let mut lab = Lab::new(parts, 8, SMALL, Missing::Filled);
        lab.receive(serials, 64);
        lab.end();
        let tally = lab.assembly.tally();
        assert_eq!(tally.came(), serials.len() as u64, "{tally:?}");
        (tally.first_frame, tally.late, lab.out)
    }

    #[test]
    fn a_stream_begins_with_its_first_packet_although_others_arrived_before() {
        for start in [100, 7] {
            let odd = (0..9).map(|at| start + 1 + 2 * at);
            let even = (0..9).map(|at| start + 2 * at);
            let all = odd.chain(even).collect::<Vec<_>>();
            assert_eq!(recorded(1, &all), (Some(start), 0, came(start..start + 18)));
        }
        assert_eq!(recorded(1, &[103, 102, 101, 100, 104]), (Some(100), 0, came(100..105)));
    }

    #[test]
    fn frames_of_several_packets_move_as_a_whole() {
        let overtaken = [9, 10, 11, 7, 6, 8, 12, 13, 14];
        assert_eq!(recorded(3, &overtaken), (Some(2), 0, came(6..15)));
    }

    #[test]
    fn a_packet_far_before_the_first_or_after_the_first_packets_moves_nothing() {
        let begin = 100..104;
        let far = begin.clone().chain([95]).chain(104..120);
        assert_eq!(recorded(1, &far.collect::<Vec<_>>()), (Some(100), 1, came(100..120)));
        let after = (100..=100 + SMALL.window).chain([99]).chain(117..120);
        assert_eq!(recorded(1, &after.collect::<Vec<_>>()), (Some(100), 1, came(100..120)));
    }
}
