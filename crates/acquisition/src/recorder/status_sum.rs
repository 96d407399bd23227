//! The status of several recordings that run together: one for each data stream of a scan.

use nilometer_ring::MemoryOfPart;

use super::{
    lane_status::LaneStatus,
    memory_status::{MemoryStatus, RingStatus},
    status::{Came, Lost, NOT_ALLOWED, Status},
};

/// The states of a lane, from good to bad.
const BY_STATE: [&str; 5] = ["ended", "writing", "full", "failed", "hung"];

impl Status {
    /// Adds up the status of two recordings that run at the same time.
    ///
    /// Counts and rates add up, and extents are the larger ones. Lanes in the same directory become one. Both
    /// share the room. Bytes of blocks stay those of the first, whose file the report names.
    #[must_use]
    pub fn and(self, other: Status) -> Status {
        let room_seconds = self.common_room(&other);
        Status {
            seconds: self.seconds.max(other.seconds),
            came: self.came.and(other.came),
            received_packets: self.received_packets + other.received_packets,
            received_bytes: self.received_bytes + other.received_bytes,
            acknowledged_packets: self.acknowledged_packets + other.acknowledged_packets,
            acknowledged_bytes: self.acknowledged_bytes + other.acknowledged_bytes,
            durable_packets: self.durable_packets + other.durable_packets,
            durable_bytes: self.durable_bytes + other.durable_bytes,
            lost: self.lost.and(other.lost),
            reordered_packets: self.reordered_packets + other.reordered_packets,
            reordering_extent: self.reordering_extent.max(other.reordering_extent),
            reordering_sum: self.reordering_sum + other.reordering_sum,
            duplicate_packets: self.duplicate_packets + other.duplicate_packets,
            conflicting_packets: self.conflicting_packets + other.conflicting_packets,
            unchecked_headers: self.unchecked_headers + other.unchecked_headers,
            early_packets: self.early_packets + other.early_packets,
            other_sender: self.other_sender.or(other.other_sender),
            ignored_packets: by_reason(self.ignored_packets, other.ignored_packets),
            restarts: self.restarts + other.restarts,
            jumps: self.jumps + other.jumps,
            jumped_numbers: self.jumped_numbers + other.jumped_numbers,
            socket_dropped: self.socket_dropped.saturating_add(other.socket_dropped),
            socket_buffer_bytes: self.socket_buffer_bytes.min(other.socket_buffer_bytes),
            senders: [self.senders, other.senders].concat(),
            ring: self.ring.and(other.ring),
            memory: self.memory.and(other.memory),
            lanes: by_directory(self.lanes, other.lanes),
            usable_bytes: smaller(self.usable_bytes, other.usable_bytes),
            room_seconds,
            fault: self.fault.or(other.fault),
            ended_by: self.ended_by.filter(|_| other.ended_by.is_some()),
            packets_after_end: self.packets_after_end + other.packets_after_end,
            ..self
        }
    }

    /// Like [`Self::and`], for two recordings that share their sockets. Nobody knows whose packets the kernel dropped
    /// there, so each may count all of them. Each counts all packets of other senders.
    #[must_use]
    pub fn and_at_same_sockets(self, other: Status) -> Status {
        let most = self.socket_dropped.max(other.socket_dropped);
        let strangers = strangers(&self).max(strangers(&other));
        let mut both = self.and(other);
        for (_, count) in both.ignored_packets.iter_mut().filter(|(why, _)| *why == NOT_ALLOWED) {
            *count = strangers;
        }
        both.socket_dropped = most;
        both.lost.kernel_dropped = both.lost.kernel_dropped.min(most);
        both
    }

    /// The seconds until the storage is full if both go on at their rates. Each knows only its own.
    fn common_room(&self, other: &Status) -> Option<f64> {
        match (self.room_seconds, other.room_seconds) {
            (Some(own), Some(others)) if own > 0.0 && others > 0.0 => Some(1.0 / (1.0 / own + 1.0 / others)),
            (Some(own), Some(others)) => Some(own.min(others)),
            (own, others) => own.or(others),
        }
    }
}

impl Came {
    fn and(self, other: Came) -> Came {
        Came {
            packets: self.packets + other.packets,
            bytes: self.bytes + other.bytes,
            packets_per_second: self.packets_per_second + other.packets_per_second,
            bytes_per_second: self.bytes_per_second + other.bytes_per_second,
            mean_bytes_per_second: self.mean_bytes_per_second + other.mean_bytes_per_second,
        }
    }
}

impl Lost {
    /// Causes in the counters of the whole machine are the same for both, so the larger count stands.
    fn and(self, other: Lost) -> Lost {
        Lost {
            packets: self.packets + other.packets,
            gaps: self.gaps + other.gaps,
            longest_gap: self.longest_gap.max(other.longest_gap),
            unfilled: self.unfilled + other.unfilled,
            kernel_dropped: self.kernel_dropped + other.kernel_dropped,
            bad_checksums: self.bad_checksums.max(other.bad_checksums),
            incomplete: self.incomplete.max(other.incomplete),
            queue_full: self.queue_full + other.queue_full,
            ring_full: self.ring_full + other.ring_full,
            late: self.late + other.late,
            blocks_not_stored: self.blocks_not_stored + other.blocks_not_stored,
        }
    }
}

impl RingStatus {
    fn and(self, other: RingStatus) -> RingStatus {
        RingStatus {
            slots: self.slots + other.slots,
            in_use: self.in_use + other.in_use,
            high_water: self.high_water + other.high_water,
            stalls: self.stalls + other.stalls,
            stalled_seconds: self.stalled_seconds + other.stalled_seconds,
            longest_stall_seconds: self.longest_stall_seconds.max(other.longest_stall_seconds),
            halts: self.halts.max(other.halts),
            halted_seconds: self.halted_seconds.max(other.halted_seconds),
            longest_halt_seconds: self.longest_halt_seconds.max(other.longest_halt_seconds),
        }
    }
}

impl MemoryStatus {
    fn and(self, other: MemoryStatus) -> MemoryStatus {
        let mut parts = self.parts;
        for part in other.parts {
            match parts.iter_mut().find(|own| own.part == part.part) {
                Some(own) => *own = both(*own, part),
                None => parts.push(part),
            }
        }
        MemoryStatus {
            bound_bytes: self.bound_bytes.saturating_add(other.bound_bytes),
            resident_bytes: self.resident_bytes.max(other.resident_bytes),
            parts,
        }
    }
}

fn both(own: MemoryOfPart, other: MemoryOfPart) -> MemoryOfPart {
    MemoryOfPart {
        bound_bytes: own.bound_bytes.saturating_add(other.bound_bytes),
        held_bytes: own.held_bytes.saturating_add(other.held_bytes),
        ..own
    }
}

/// The packets of other senders than those of the stream.
fn strangers(status: &Status) -> u64 {
    let own = status.ignored_packets.iter().filter(|(why, _)| *why == NOT_ALLOWED);
    own.map(|(_, count)| count).sum()
}

fn smaller(own: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (own, other) {
        (Some(own), Some(other)) => Some(own.min(other)),
        (own, other) => own.or(other),
    }
}

fn by_reason(mut all: Vec<(&'static str, u64)>, more: Vec<(&'static str, u64)>) -> Vec<(&'static str, u64)> {
    for (reason, count) in more {
        match all.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, sum)) => *sum += count,
            None => all.push((reason, count)),
        }
    }
    all
}

/// The lanes of both, one for each directory, in the worse of its two states.
fn by_directory(mut all: Vec<LaneStatus>, more: Vec<LaneStatus>) -> Vec<LaneStatus> {
    let badness = |state: &str| BY_STATE.iter().position(|known| *known == state);
    for lane in more {
        let Some(own) = all.iter_mut().find(|own| own.path == lane.path) else {
            all.push(lane);
            continue;
        };
        own.written_bytes += lane.written_bytes;
        own.free_bytes = smaller(own.free_bytes, lane.free_bytes);
        if badness(lane.state) > badness(own.state) {
            own.state = lane.state;
        }
        own.fault = own.fault.take().or(lane.fault);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(packets: u64, room: f64, state: &'static str) -> Status {
        let lane = LaneStatus {
            path: "/disk1".into(),
            state,
            written_bytes: packets,
            free_bytes: Some(1000 - packets),
            fault: None,
        };
        Status {
            received_packets: packets,
            lost: Lost { packets: 1, longest_gap: packets, bad_checksums: 3, ..Lost::default() },
            ignored_packets: vec![("foreign", packets)],
            lanes: vec![lane],
            room_seconds: Some(room),
            ..Status::default()
        }
    }

    #[test]
    fn packets_that_the_kernel_dropped_at_common_sockets_count_once() {
        let of = |kernel_dropped, socket_dropped| Status {
            lost: Lost { kernel_dropped, ..Lost::default() },
            socket_dropped,
            ..Status::default()
        };
        let together = of(10, 10).and_at_same_sockets(of(10, 10)).and_at_same_sockets(of(10, 10));
        assert_eq!(together.lost.kernel_dropped, 10, "each counted all of them");
        let shared = of(4, 10).and_at_same_sockets(of(5, 10));
        assert_eq!(shared.lost.kernel_dropped, 9, "each missed some of them");
        assert_eq!(of(10, 10).and(of(10, 10)).lost.kernel_dropped, 20, "each at sockets of its own");
    }

    #[test]
    fn packets_of_strangers_at_common_sockets_count_once() {
        let of = |strangers, foreign| Status {
            ignored_packets: vec![("not-allowed", strangers), ("foreign", foreign)],
            ..Status::default()
        };
        let together = of(300, 2).and_at_same_sockets(of(290, 3)).and_at_same_sockets(of(300, 0));
        assert_eq!(together.ignored_packets, [("not-allowed", 300), ("foreign", 5)]);
        assert_eq!(of(1, 0).and(of(2, 0)).ignored_packets[0], ("not-allowed", 3), "at sockets of their own");
    }

    #[test]
    fn the_frames_in_the_file_are_those_of_the_first_recording() {
        let of = |blocks, ended_by| Status {
            acknowledged_block_bytes: blocks,
            durable_block_bytes: blocks / 2,
            ended_by,
            packets_after_end: 3,
            ..Status::default()
        };
        let both = of(1000, Some("silence")).and(of(500, None));
        assert_eq!((both.acknowledged_block_bytes, both.durable_block_bytes), (1000, 500));
        assert_eq!((both.ended_by, both.packets_after_end), (None, 6), "the other goes on");
        assert_eq!(both.and(of(1, Some("packets"))).ended_by, None);
        let ended = of(1, Some("silence")).and(of(1, Some("packets")));
        assert_eq!(ended.ended_by, Some("silence"));
    }

    #[test]
    fn two_recordings_add_up_and_their_directories_are_one() {
        let both = status(5, 30.0, "writing").and(status(7, 60.0, "failed"));
        assert_eq!((both.received_packets, both.lost.packets, both.lost.longest_gap), (12, 2, 7));
        assert_eq!(both.lost.bad_checksums, 3, "a counter of the machine");
        assert_eq!(both.ignored_packets, [("foreign", 12)]);
        let [lane] = &both.lanes[..] else { panic!("one directory: {:?}", both.lanes) };
        assert_eq!((lane.state, lane.written_bytes, lane.free_bytes), ("failed", 12, Some(993)));
        assert!(both.room_seconds.is_some_and(|room| (room - 20.0).abs() < 1e-9), "{:?}", both.room_seconds);
    }
}
