//! The status of a recording while it runs: packets received, packets lost and why, fill level of the ring,
//! state of the lanes. It comes from counters only, so hanging storage delays no answer.

use std::net::IpAddr;

use nilometer_intake::{
    ReceptionEnd, Traffic,
    series::{SeriesRefusal, SeriesTraffic},
};
use nilometer_model::Nanos;
use nilometer_ring::{RingSnapshot, StoredTotals};
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    Recorder,
    data_stream_status::DataStreamStatus,
    lane_status::{LaneStatus, LaneWatch},
    memory_status::{MemoryStatus, RingStatus},
    recent::RecentRates,
    room::{seconds_left, usable},
    sender_status::SenderStatus,
};
use nilometer_wire::Ignored;

/// Status of a recording at one moment. Counts start at its beginning.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Status {
    /// Unit of the counts: `packets`, or `frames` of a series.
    pub counted_in: &'static str,
    /// Number of frames that a series has in all. `None` if none is recorded or its length is open.
    pub announced_frames: Option<u64>,
    /// Seconds since the first packet; 0 before.
    pub seconds: f64,
    /// Everything received from the network.
    pub came: Came,
    /// Packets of the stream that have their position. They are in memory; the counts below show how many are
    /// stored.
    pub received_packets: u64,
    /// Bytes kept of them.
    pub received_bytes: u64,
    /// Packets that the recording keeps even if the recorder is killed now.
    pub acknowledged_packets: u64,
    /// Bytes of the acknowledged packets.
    pub acknowledged_bytes: u64,
    /// Packets that the recording keeps even if the machine loses power now.
    pub durable_packets: u64,
    /// Bytes of the durable packets.
    pub durable_bytes: u64,
    /// Bytes of the acknowledged blocks of packets, with the places of missing packets; 0 for a series.
    #[serde(skip)]
    pub acknowledged_block_bytes: u64,
    /// The same of the durable blocks.
    #[serde(skip)]
    pub durable_block_bytes: u64,
    /// Missing packets.
    pub lost: Lost,
    /// Packets that arrived after one with a higher number (RFC 4737).
    pub reordered_packets: u64,
    /// Most packets that overtook a single packet.
    pub reordering_extent: u64,
    /// Sum of the packets that overtook each reordered packet.
    pub reordering_sum: u64,
    /// Packets that had already arrived.
    pub duplicate_packets: u64,
    /// Duplicates whose bytes differ from the first copy: data of another sender, which are lost.
    pub conflicting_packets: u64,
    /// Frames of Mark5B whose header has no right checksum. They are recorded.
    pub unchecked_headers: u64,
    /// Frames of a series stored as they arrived, although their compressed bytes can't be unpacked.
    pub damaged_frames: u64,
    /// Values beside the pixels of a series that can't be read and are therefore not in its file.
    pub unread_values: u64,
    /// Packets that arrived before the recording began and are not part of it.
    pub early_packets: u64,
    /// One of the senders whose packets are `not-allowed`, or whose connections the receiver refuses.
    pub other_sender: Option<IpAddr>,
    /// Connections of a series that the receiver refused or did not read, by reason.
    pub refused_connections: Vec<(&'static str, u64)>,
    /// Addresses of the refused peers, if known: the first 16 of each reason.
    pub refused_peers: Vec<IpAddr>,
    /// Packets that are not part of the stream, by reason.
    pub ignored_packets: Vec<(&'static str, u64)>,
    /// Times that the packet numbers restarted.
    pub restarts: u64,
    /// Times that the numbers jumped ahead further than the stream's rate allows. The receiver then restarts
    /// the numbering and counts no packets as missing.
    pub jumps: u64,
    /// Sum of the numbers skipped by jumps.
    pub jumped_numbers: u64,
    /// Bytes of packets that may wait in the socket buffer, as granted by the kernel.
    pub socket_buffer_bytes: u64,
    /// Most packets that the kernel may have dropped at the sockets, of this stream or of another one there.
    #[serde(skip)]
    pub socket_dropped: u64,
    /// The same counts for each sender that numbers its own packets.
    pub senders: Vec<SenderStatus>,
    /// The reason for which no more packets are recorded: `stop`, `silence`, `no packet`, `duration`, `packets`, `no
    /// directory` or `network`. `None` while packets are recorded, and for a series.
    pub ended_by: Option<&'static str>,
    /// Packets that came to a data stream after its end, while others of the scan went on. Nobody recorded them.
    pub packets_after_end: u64,
    /// The state of each data stream, if the scan has several.
    pub data_streams: Vec<DataStreamStatus>,
    /// The ring between the network and the storage.
    pub ring: RingStatus,
    /// The account of the recorder's memory.
    pub memory: MemoryStatus,
    /// The engine that writes: `sync`, `io_uring` or `pool`. Empty without a recording.
    pub engine: &'static str,
    /// The reason for the engine, if it is not the usual one: a trial of the storage, or a wish of the user.
    pub engine_reason: Option<String>,
    /// The lanes that store the recording.
    pub lanes: Vec<LaneStatus>,
    /// Bytes that the lanes which still write may fill, without the reserve. `None` for a ring and after the end.
    pub usable_bytes: Option<u64>,
    /// Seconds until they are full, at the mean rate at which the lanes wrote so far. `None` before they wrote.
    pub room_seconds: Option<f64>,
    /// Reason why the receiver gave up, if it did.
    pub fault: Option<String>,
}

/// Traffic received from the network, of any kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct Came {
    /// Packets received.
    pub packets: u64,
    /// Bytes of them, without the headers of the network.
    pub bytes: u64,
    /// Packet rate over about the last second.
    pub packets_per_second: f64,
    /// Byte rate over about the last second.
    pub bytes_per_second: f64,
    /// Mean byte rate from the first packet to the last, without the silence that ended it. 0 if all arrived at
    /// once.
    pub mean_bytes_per_second: f64,
}

/// Missing packets between received ones, and the known causes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Lost {
    /// Packets missing in the recording.
    pub packets: u64,
    /// Gaps: runs of missing packets.
    pub gaps: u64,
    /// Longest run of missing packets.
    pub longest_gap: u64,
    /// Also missing, but in no gap: no later packet arrived to reveal one.
    pub unfilled: u64,
    /// Packets that the kernel dropped because the socket buffer was full: see [`Traffic::kernel_dropped`].
    pub kernel_dropped: u64,
    /// Packets that the kernel dropped because their UDP checksum was wrong.
    pub bad_checksums: u64,
    /// Most packets that may have lost an IP fragment on their way: see [`Traffic::incomplete`].
    pub incomplete: u64,
    /// Packets that found the queue of their data stream full: the recorder was too slow to take them from it.
    pub queue_full: u64,
    /// Packets that found the ring full.
    pub ring_full: u64,
    /// Packets that arrived after their position had been closed.
    pub late: u64,
    /// Assembled blocks that no lane was left to store.
    pub blocks_not_stored: u64,
}

impl Lost {
    /// Packets missing in the recording, in gaps or not.
    pub fn all(&self) -> u64 {
        self.packets + self.unfilled
    }
}

impl Recorder {
    /// Returns the current status. Rates compare this call with earlier ones, over about a second.
    pub fn status(&mut self) -> Status {
        let counted = self.counted_status();
        let spaces: Vec<_> = self.watched.iter().filter_map(LaneWatch::filled_space).collect();
        let usable_bytes = usable(&spaces);
        let written = counted.lanes.iter().map(|lane| lane.written_bytes).sum();
        let room_seconds = seconds_left(usable_bytes, written, counted.seconds);
        Status {
            memory: MemoryStatus::of(&self.memory),
            engine: self.engine.options.kind.name(),
            engine_reason: self.engine.why(),
            usable_bytes,
            room_seconds,
            ..counted
        }
    }

    fn counted_status(&mut self) -> Status {
        let now = self.clock.now();
        let lanes = self.watched.iter().map(LaneWatch::status).collect();
        if let Some(series) = self.series_traffic() {
            let stored = self.stored_beside(series.stored);
            let rates = self.recent.see(now, series.tally.frames, series.counted.bytes);
            let all = of(now, &Traffic::default(), rates, self.ring.glance(now), stored, lanes);
            return of_series(now, &series, all);
        }
        let traffic = self.traffic().unwrap_or_default();
        let stored = self.stored_beside(traffic.stored);
        let (packets, bytes) = (traffic.counted.packets, traffic.counted.bytes);
        let rates = self.recent.see(now, packets, bytes);
        of(now, &traffic, rates, self.ring.glance(now), stored, lanes)
    }

    /// Returns the lanes' totals from the moment of the receiver's counts, or the current ones if the receiver
    /// has ended.
    fn stored_beside(&self, counted: Option<StoredTotals>) -> StoredTotals {
        counted.filter(|_| !self.fed).unwrap_or_else(|| self.counts.get())
    }
}

/// Assembles a status from the counters of packets.
fn of(
    now: Nanos,
    traffic: &Traffic,
    rates: RecentRates,
    glance: RingSnapshot,
    stored: StoredTotals,
    lanes: Vec<LaneStatus>,
) -> Status {
    let Traffic { tally, counted, room, first, fault, ended, behind_end, .. } = traffic;
    let seconds = first.map_or(0.0, |first| now.since(first).seconds());
    Status {
        counted_in: "packets",
        announced_frames: None,
        seconds,
        came: Came {
            packets: counted.packets,
            bytes: counted.bytes,
            packets_per_second: rates.packets,
            bytes_per_second: rates.bytes,
            mean_bytes_per_second: traffic.mean_rate().map_or(0.0, |rate| rate.0),
        },
        received_packets: tally.placed,
        received_bytes: tally.bytes,
        acknowledged_packets: stored.acknowledged.0,
        acknowledged_bytes: stored.acknowledged.1,
        durable_packets: stored.durable.0,
        durable_bytes: stored.durable.1,
        acknowledged_block_bytes: stored.acknowledged_block_bytes,
        durable_block_bytes: stored.durable_block_bytes,
        lost: lost(traffic, &glance),
        reordered_packets: tally.reordered,
        reordering_extent: tally.extents.max(),
        reordering_sum: tally.overtaken,
        duplicate_packets: tally.duplicates,
        conflicting_packets: tally.conflicts,
        unchecked_headers: tally.unchecked,
        damaged_frames: stored.damaged,
        unread_values: 0,
        early_packets: counted.early,
        other_sender: counted.stranger,
        refused_connections: Vec::new(),
        refused_peers: Vec::new(),
        ignored_packets: ignored_packets(traffic),
        restarts: tally.restarts,
        jumps: tally.jumps,
        jumped_numbers: tally.jumped,
        socket_buffer_bytes: *room,
        socket_dropped: (counted.dropped - traffic.bad_checksums()).saturating_mul(counted.joined.max(1)),
        senders: traffic.senders.iter().map(SenderStatus::of).collect(),
        ended_by: ended.map(ReceptionEnd::name),
        packets_after_end: *behind_end,
        data_streams: Vec::new(),
        ring: RingStatus::of(&glance),
        memory: MemoryStatus::default(),
        engine: "",
        engine_reason: None,
        lanes,
        usable_bytes: None,
        room_seconds: None,
        fault: fault.clone(),
    }
}

/// The missing packets, and the known causes.
fn lost(traffic: &Traffic, glance: &RingSnapshot) -> Lost {
    let Traffic { tally, counted, .. } = traffic;
    Lost {
        packets: tally.missing,
        gaps: tally.losses,
        longest_gap: tally.longest_loss,
        unfilled: tally.unfilled,
        kernel_dropped: traffic.kernel_dropped(),
        bad_checksums: traffic.bad_checksums(),
        incomplete: traffic.incomplete(),
        queue_full: counted.queue_full,
        ring_full: tally.refused,
        late: tally.late,
        blocks_not_stored: glance.books.lost(),
    }
}

/// The reason of packets of other senders than those of the stream.
pub(super) const NOT_ALLOWED: &str = "not-allowed";

/// Packets that are not of the stream, by reason.
fn ignored_packets(traffic: &Traffic) -> Vec<(&'static str, u64)> {
    let Traffic { tally, counted, .. } = traffic;
    let ignored = Ignored::ALL.into_iter().map(|why| (why.name(), tally.ignored[why as usize]));
    ignored.chain([(NOT_ALLOWED, counted.strangers), ("far-off", tally.stray)]).collect()
}

/// Replaces the counts of packets in a status by those of a series, with frames as the unit.
fn of_series(now: Nanos, series: &SeriesTraffic, all: Status) -> Status {
    let SeriesTraffic { tally, counted, frames, missing, first, fault, .. } = series;
    let others = SeriesRefusal::ALL
        .into_iter()
        .filter(|why| !matches!(why, SeriesRefusal::Duplicate | SeriesRefusal::Late | SeriesRefusal::NoRoom));
    let refused = others.map(|why| (why.name(), tally.refused(why)));
    let cut = [
        ("beyond the limits", counted.too_large),
        ("without memory", counted.no_memory),
        ("cut off", counted.cut_off),
    ];
    let refused_peers = counted.not_heard();
    Status {
        counted_in: "frames",
        announced_frames: *frames,
        seconds: first.map_or(0.0, |first| now.since(first).seconds()),
        came: Came {
            packets: tally.frames,
            bytes: counted.bytes,
            mean_bytes_per_second: series.mean_rate().map_or(0.0, |rate| rate.0),
            ..all.came
        },
        received_packets: tally.frames,
        received_bytes: tally.bytes,
        lost: Lost {
            packets: *missing,
            ring_full: tally.refused(SeriesRefusal::NoRoom),
            late: tally.refused(SeriesRefusal::Late),
            ..all.lost
        },
        duplicate_packets: tally.refused(SeriesRefusal::Duplicate),
        unread_values: tally.unread,
        ignored_packets: refused.chain(cut).collect(),
        other_sender: refused_peers.first().copied(),
        refused_connections: counted.refused_connections().to_vec(),
        refused_peers,
        fault: fault.clone(),
        ..all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_storage::network::counters::DatagramErrors;

    use nilometer_intake::{Span, assembly::PacketTally, transport::TransportCounts};
    use nilometer_ring::RingCounters;

    /// Counters of packets, each with a number of its own.
    fn numbered_tally() -> PacketTally {
        let ignored = [1, 2, 24, 3];
        let tally = PacketTally {
            placed: 90,
            bytes: 900,
            missing: 10,
            refused: 4,
            losses: 2,
            ..PacketTally::default()
        };
        PacketTally {
            longest_loss: 7,
            late: 5,
            duplicates: 6,
            conflicts: 2,
            unchecked: 16,
            stray: 8,
            ignored,
            restarts: 9,
            unfilled: 21,
            jumps: 22,
            jumped: 23,
            ..tally
        }
    }

    #[test]
    fn every_count_stands_where_it_belongs() {
        let tally = numbered_tally();
        let counted = TransportCounts {
            packets: 120,
            bytes: 1200,
            dropped: 11,
            queue_full: 25,
            strangers: 12,
            early: 14,
            ..TransportCounts::default()
        };
        let first = Some(Nanos::from_millis(1000));
        let span = Span { time: Nanos::from_millis(1500), bytes: 900 };
        let fault = Some("gone".into());
        let errors = DatagramErrors { checksum: 3, incomplete: 9 };
        let ended = Some(ReceptionEnd::Silence);
        let rest = Traffic { first, span, fault, ended, behind_end: 26, ..Traffic::default() };
        let traffic = Traffic { tally, counted, errors, room: 13, ..rest };
        let books = RingCounters { slots: 20, high: 15, refused: 1, displaced: 2, stranded: 3 };
        let stalled = (3, Nanos::from_millis(500));
        let glance = RingSnapshot {
            books,
            in_use: 14,
            stalled,
            longest_stall: Nanos::from_millis(250),
            halted: (2, Nanos::from_millis(3500)),
            longest_halt: Nanos::from_millis(3000),
        };
        let stored = StoredTotals {
            acknowledged: (80, 800),
            durable: (70, 700),
            damaged: 4,
            ..StoredTotals::default()
        };
        let rates = RecentRates { packets: 1.0, bytes: 2.0 };
        let status = of(Nanos::from_millis(3000), &traffic, rates, glance, stored, Vec::new());
        let json = serde_json::to_value(&status).expect("numbers and texts");
        let mut expected = serde_json::json!({
            "counted_in": "packets", "announced_frames": null, "seconds": 2.0,
            "came": { "packets": 120, "bytes": 1200, "packets_per_second": 1.0, "bytes_per_second": 2.0,
                "mean_bytes_per_second": 600.0 },
            "received_packets": 90, "received_bytes": 900,
            "acknowledged_packets": 80, "acknowledged_bytes": 800, "durable_packets": 70, "durable_bytes": 700,
            "lost": { "packets": 10, "gaps": 2, "longest_gap": 7, "unfilled": 21, "kernel_dropped": 8, "bad_checksums": 3, "incomplete": 0, "queue_full": 25, "ring_full": 4, "late": 5,
                "blocks_not_stored": 6 },
            "reordered_packets": 0, "reordering_extent": 0, "reordering_sum": 0, "duplicate_packets": 6, "conflicting_packets": 2, "unchecked_headers": 16, "damaged_frames": 4, "unread_values": 0,
            "early_packets": 14, "other_sender": null, "refused_connections": [], "refused_peers": [],
            "ignored_packets": [["odd-sized", 1], ["foreign", 2], ["of another stream", 24], ["corrupt", 3], ["not-allowed", 12], ["far-off", 8]],
            "restarts": 9, "jumps": 22, "jumped_numbers": 23, "socket_buffer_bytes": 13,
            "ring": { "slots": 20, "in_use": 14, "high_water": 15, "stalls": 3, "stalled_seconds": 0.5,
                "longest_stall_seconds": 0.25, "halts": 2, "halted_seconds": 3.5, "longest_halt_seconds": 3.0 },
            "senders": [],
            "memory": { "bound_bytes": 0, "resident_bytes": 0, "parts": [] },
            "engine": "", "engine_reason": null,
            "lanes": [], "usable_bytes": null, "room_seconds": null, "fault": "gone",
        });
        expected["ended_by"] = "silence".into();
        expected["packets_after_end"] = 26.into();
        expected["data_streams"] = serde_json::json!([]);
        assert_eq!(json, expected);
    }
}
