//! What an operator asks of a recording while it runs: what came, what was lost and why, how full the ring is, what the
//! lanes do. Taken from counters only: storage that hangs delays no answer.

use std::{
    collections::VecDeque,
    net::IpAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use nilometer_intake::{
    Traffic,
    series::{SeriesRefusal, SeriesTraffic},
};
use nilometer_model::Nanos;
use nilometer_ring::{LaneCount, MemoryAccount, MemoryOfPart, RingSnapshot, StoredCounts, StoredTotals};
use nilometer_storage::process::resident_memory;
use serde::Serialize;

use super::{Ending, Recorder, sender_status::SenderStatus};
use crate::sink::{Gauge, LaneSetup};
use nilometer_wire::Ignored;

/// How a recording is, at one moment. Counts are from its beginning on.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Status {
    /// What all is counted in: `packets`, or `frames` of a series.
    pub counted_in: &'static str,
    /// Frames that a series has in all, if one is recorded.
    pub announced_frames: Option<u64>,
    /// Since the first packet came; 0 before.
    pub seconds: f64,
    /// What came from the network.
    pub came: Came,
    /// Packets of the stream that have their place. They are in memory: what has become of them is said below.
    pub received_packets: u64,
    /// Bytes of them that are kept.
    pub received_bytes: u64,
    /// Packets that are in the recording also if the recorder is killed now.
    pub acknowledged_packets: u64,
    /// Bytes of them.
    pub acknowledged_bytes: u64,
    /// Packets that are in the recording also if the machine loses its power now.
    pub durable_packets: u64,
    /// Bytes of them.
    pub durable_bytes: u64,
    /// What should be there and is not.
    pub lost: Lost,
    /// Packets that came after one with a higher number (RFC 4737).
    pub reordered_packets: u64,
    /// By how many others they were overtaken at the most.
    pub reordering_extent: u64,
    /// And in all.
    pub reordering_sum: u64,
    /// Packets that were there already.
    pub duplicate_packets: u64,
    /// Of these, packets with other bytes than those that were there: data of another sender, which are lost.
    pub conflicting_packets: u64,
    /// Frames of a series that are stored as they came, though their compressed bytes can't be unpacked.
    pub damaged_frames: u64,
    /// Values beside the pixels of a series that can't be read, and are not in its file.
    pub unread_values: u64,
    /// Packets that came before the recording began, and are none of it.
    pub early_packets: u64,
    /// One of the senders whose packets are `not-allowed`, or whose connections are refused.
    pub other_sender: Option<IpAddr>,
    /// Connections of a series that were not taken or not heard, by reason.
    pub refused_connections: Vec<(&'static str, u64)>,
    /// Who made them, as far as that is known: the first 16 addresses of each reason.
    pub refused_peers: Vec<IpAddr>,
    /// Packets that are none of the stream, by reason.
    pub ignored_packets: Vec<(&'static str, u64)>,
    /// Times that the numbers of packets began anew.
    pub restarts: u64,
    /// Times that they jumped ahead, further than the stream's rate allows in the time: they were set anew, and nothing is
    /// known to be missing.
    pub jumps: u64,
    /// Over how many numbers.
    pub jumped_numbers: u64,
    /// Bytes of packets that may wait in the kernel: what it really gave.
    pub socket_buffer_bytes: u64,
    /// The same by sender: those that number their packets by themselves.
    pub senders: Vec<SenderStatus>,
    /// Memory between the network and the storage.
    pub ring: RingStatus,
    /// The account of the recorder's memory.
    pub memory: MemoryStatus,
    /// Where it goes.
    pub lanes: Vec<LaneStatus>,
    /// Why the network gave up, if it did.
    pub fault: Option<String>,
}

/// What came from the network, whatever it was.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Came {
    /// Packets.
    pub packets: u64,
    /// Their bytes, without the headers of the network.
    pub bytes: u64,
    /// Over about the last second.
    pub packets_per_second: f64,
    /// Over about the last second.
    pub bytes_per_second: f64,
    /// From the first packet to the last, without the silence that ended it; 0 if all came at once.
    pub mean_bytes_per_second: f64,
}

/// Packets that should be between others and are not, and what is known of why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Lost {
    /// Missing in the recording.
    pub packets: u64,
    /// Times that packets were missing one after the other.
    pub gaps: u64,
    /// The most in a row.
    pub longest_gap: u64,
    /// Missing as well, and in no gap: nothing came behind them that could say so.
    pub unfilled: u64,
    /// Dropped by the kernel for want of room: see [`Traffic::kernel_dropped`].
    pub kernel_dropped: u64,
    /// Dropped by the kernel because their UDP checksum was wrong.
    pub bad_checksums: u64,
    /// At most so many lost an IP fragment on their way: see [`Traffic::incomplete`].
    pub incomplete: u64,
    /// That found the ring full.
    pub ring_full: u64,
    /// That came when their place had been closed.
    pub late: u64,
    /// Blocks that came together and that no lane was left to take.
    pub blocks_not_stored: u64,
}

/// Memory between the network and the storage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct RingStatus {
    /// In all.
    pub slots: usize,
    /// Now.
    pub in_use: usize,
    /// The most that were in use at once.
    pub high_water: usize,
    /// Times in which blocks waited and none was stored.
    pub stalls: u64,
    /// All of them together.
    pub stalled_seconds: f64,
    /// The longest.
    pub longest_stall_seconds: f64,
    /// Times in which the recorder itself did not run: it was stopped, or had no processor.
    pub halts: u64,
    /// All of them together.
    pub halted_seconds: f64,
    /// The longest.
    pub longest_halt_seconds: f64,
}

/// The memory of the recorder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct MemoryStatus {
    /// Bytes that all parts take together at the most; 0 if they did not state it.
    pub bound_bytes: u64,
    /// Bytes of the process that are in memory now, as the kernel counts them; 0 if it does not tell. What waits in sockets is not
    /// among them, pages of the program's file are.
    pub resident_bytes: u64,
    /// Each part.
    pub parts: Vec<MemoryOfPart>,
}

impl MemoryStatus {
    fn of(account: &MemoryAccount) -> Self {
        let parts = account.parts();
        let bound_bytes = parts.iter().fold(0_u64, |sum, part| sum.saturating_add(part.bound_bytes));
        MemoryStatus { bound_bytes, resident_bytes: resident_memory().0, parts }
    }
}

impl RingStatus {
    fn of(glance: &RingSnapshot) -> Self {
        RingStatus {
            slots: glance.books.slots,
            in_use: glance.in_use,
            high_water: glance.books.high,
            stalls: glance.stalled.0,
            stalled_seconds: glance.stalled.1.seconds(),
            longest_stall_seconds: glance.longest_stall.seconds(),
            halts: glance.halted.0,
            halted_seconds: glance.halted.1.seconds(),
            longest_halt_seconds: glance.longest_halt.seconds(),
        }
    }
}

/// What a lane does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LaneStatus {
    /// The directory that was named.
    pub path: PathBuf,
    /// `writing`, `ended`, `full`, `failed`, or `hung`: not heard of in time.
    pub state: &'static str,
    /// Bytes written, its journal's too.
    pub written_bytes: u64,
    /// Free on its storage when that was read last; none if it is not known.
    pub free_bytes: Option<u64>,
    /// Why it failed, if it did.
    pub fault: Option<String>,
}

/// What can be seen of a lane from outside.
#[derive(Debug)]
pub(super) struct LaneWatch {
    path: PathBuf,
    written: Arc<AtomicU64>,
    counts: Arc<StoredCounts>,
    gauge: Option<Gauge>,
    is_memory: bool,
    /// How it ended, also after the recording has told what it came to; none before.
    ended: Option<Ending>,
}

impl LaneWatch {
    pub(super) fn of(lanes: &[LaneSetup]) -> Vec<Self> {
        lanes.iter().map(LaneWatch::new).collect()
    }

    fn new(lane: &LaneSetup) -> Self {
        LaneWatch {
            path: lane.target.description().address.to_string().into(),
            written: Arc::default(),
            counts: Arc::default(),
            gauge: lane.gauge.clone(),
            is_memory: lane.target.description().is_memory(),
            ended: None,
        }
    }

    /// Where the lane counts.
    pub(super) fn written(&self) -> Arc<AtomicU64> {
        self.written.clone()
    }

    /// The same of what it has stored.
    pub(super) fn counts(&self) -> Arc<StoredCounts> {
        self.counts.clone()
    }

    /// What the lane counts, for those who add up all lanes.
    pub(super) fn lane_count(&self) -> LaneCount {
        LaneCount { counts: self.counts.clone(), is_memory: self.is_memory }
    }

    /// It is over, so. What it reported before stays.
    pub(super) fn end(&mut self, ending: Ending) {
        self.ended.get_or_insert(ending);
    }

    /// As it is.
    fn status(&self) -> LaneStatus {
        let (state, fault) = match self.ended {
            None => ("writing", None),
            Some(Ending::Full) => ("full", None),
            Some(Ending::Failed(errno)) => ("failed", Some(errno.to_string())),
            Some(Ending::InOrder) => ("ended", None),
            Some(Ending::Hung) => ("hung", None),
        };
        LaneStatus {
            path: self.path.clone(),
            state,
            written_bytes: self.written.load(Ordering::Relaxed),
            free_bytes: self.gauge.as_ref().and_then(Gauge::free),
            fault,
        }
    }
}

impl Lost {
    /// Packets that are not in the recording, in gaps or not.
    pub fn all(&self) -> u64 {
        self.packets + self.unfilled
    }
}

impl Recorder {
    /// How it is now. Rates are those between this and earlier calls, over about a second.
    pub fn status(&mut self) -> Status {
        Status { memory: MemoryStatus::of(&self.memory), ..self.counted_status() }
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

    /// The totals of all lanes at the moment at which the receiver counted; now, if it counts no more.
    fn stored_beside(&self, counted: Option<StoredTotals>) -> StoredTotals {
        counted.filter(|_| !self.fed).unwrap_or_else(|| self.counts.get())
    }
}

/// Everything put together.
fn of(
    now: Nanos,
    traffic: &Traffic,
    rates: RecentRates,
    glance: RingSnapshot,
    stored: StoredTotals,
    lanes: Vec<LaneStatus>,
) -> Status {
    let Traffic { tally, counted, room, first, fault, .. } = traffic;
    let seconds = first.map_or(0.0, |first| now.since(first).seconds());
    let ignored = Ignored::ALL.into_iter().map(|why| (why.name(), tally.ignored[why as usize]));
    let others = [("not-allowed", counted.strangers), ("far-off", tally.stray)];
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
        lost: Lost {
            packets: tally.missing,
            gaps: tally.losses,
            longest_gap: tally.longest_loss,
            unfilled: tally.unfilled,
            kernel_dropped: traffic.kernel_dropped(),
            bad_checksums: traffic.bad_checksums(),
            incomplete: traffic.incomplete(),
            ring_full: tally.refused,
            late: tally.late,
            blocks_not_stored: glance.books.lost(),
        },
        reordered_packets: tally.reordered,
        reordering_extent: tally.extents.max(),
        reordering_sum: tally.overtaken,
        duplicate_packets: tally.duplicates,
        conflicting_packets: tally.conflicts,
        damaged_frames: stored.damaged,
        unread_values: 0,
        early_packets: counted.early,
        other_sender: counted.stranger,
        refused_connections: Vec::new(),
        refused_peers: Vec::new(),
        ignored_packets: ignored.chain(others).collect(),
        restarts: tally.restarts,
        jumps: tally.jumps,
        jumped_numbers: tally.jumped,
        socket_buffer_bytes: *room,
        senders: traffic.senders.iter().map(SenderStatus::of).collect(),
        ring: RingStatus::of(&glance),
        memory: MemoryStatus::default(),
        lanes,
        fault: fault.clone(),
    }
}

/// What is counted of a series stands where packets do, a frame for a packet.
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

/// Packets and bytes a second, over about the last second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct RecentRates {
    packets: f64,
    bytes: f64,
}

/// What was counted in about the last second: time, packets, bytes.
#[derive(Debug, Default)]
pub(super) struct Recent(VecDeque<(Nanos, u64, u64)>);

impl Recent {
    const OVER: Nanos = Nanos::from_millis(1000);

    /// So much was counted until now; packets and bytes a second since about a second ago.
    pub(super) fn see(&mut self, now: Nanos, packets: u64, bytes: u64) -> RecentRates {
        self.0.push_back((now, packets, bytes));
        while self.0.get(1).is_some_and(|second| now.since(second.0) >= Self::OVER) {
            self.0.pop_front();
        }
        let (then, packets_then, bytes_then) = self.0[0];
        let seconds = now.since(then).seconds();
        if seconds == 0.0 {
            return RecentRates::default();
        }
        let rate = |count: u64, before: u64| count.saturating_sub(before) as f64 / seconds;
        RecentRates { packets: rate(packets, packets_then), bytes: rate(bytes, bytes_then) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_storage::network::counters::DatagramErrors;

    use nilometer_intake::{Span, assembly::PacketTally, transport::TransportCounts};
    use nilometer_ring::RingCounters;

    #[test]
    fn the_rate_is_of_the_last_second_whenever_it_is_asked() {
        let mut recent = Recent::default();
        let at = Nanos::from_millis;
        let rates = |packets, bytes| RecentRates { packets, bytes };
        assert_eq!(recent.see(at(0), 5, 50), rates(0.0, 0.0), "nothing to compare with");
        assert_eq!(recent.see(at(500), 10, 100), rates(10.0, 100.0));
        for step in 2..20 {
            recent.see(at(500 * step), 5 + 5 * step, 50 + 50 * step);
        }
        assert!(recent.0.len() <= 4, "it keeps no more than it needs");
        // Nothing more comes.
        assert_eq!(recent.see(at(10_000), 100, 1000), rates(5.0, 50.0));
        assert_eq!(recent.see(at(12_000), 100, 1000), rates(0.0, 0.0));
    }

    #[test]
    fn every_count_stands_where_it_belongs() {
        let ignored = [1, 2, 24, 3];
        let tally = PacketTally {
            placed: 90,
            bytes: 900,
            missing: 10,
            refused: 4,
            losses: 2,
            ..PacketTally::default()
        };
        let tally = PacketTally {
            longest_loss: 7,
            late: 5,
            duplicates: 6,
            conflicts: 2,
            stray: 8,
            ignored,
            restarts: 9,
            unfilled: 21,
            jumps: 22,
            jumped: 23,
            ..tally
        };
        let counted = TransportCounts {
            packets: 120,
            bytes: 1200,
            dropped: 11,
            strangers: 12,
            early: 14,
            ..TransportCounts::default()
        };
        let first = Some(Nanos::from_millis(1000));
        let span = Span { time: Nanos::from_millis(1500), bytes: 900 };
        let fault = Some("gone".into());
        let errors = DatagramErrors { checksum: 3, incomplete: 9 };
        let traffic = Traffic { tally, counted, errors, room: 13, first, span, fault, ..Traffic::default() };
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
        let stored = StoredTotals { acknowledged: (80, 800), durable: (70, 700), damaged: 4 };
        let rates = RecentRates { packets: 1.0, bytes: 2.0 };
        let status = of(Nanos::from_millis(3000), &traffic, rates, glance, stored, Vec::new());
        let json = serde_json::to_value(&status).expect("numbers and texts");
        let expected = serde_json::json!({
            "counted_in": "packets", "announced_frames": null, "seconds": 2.0,
            "came": { "packets": 120, "bytes": 1200, "packets_per_second": 1.0, "bytes_per_second": 2.0,
                "mean_bytes_per_second": 600.0 },
            "received_packets": 90, "received_bytes": 900,
            "acknowledged_packets": 80, "acknowledged_bytes": 800, "durable_packets": 70, "durable_bytes": 700,
            "lost": { "packets": 10, "gaps": 2, "longest_gap": 7, "unfilled": 21, "kernel_dropped": 8, "bad_checksums": 3, "incomplete": 9, "ring_full": 4, "late": 5,
                "blocks_not_stored": 6 },
            "reordered_packets": 0, "reordering_extent": 0, "reordering_sum": 0, "duplicate_packets": 6, "conflicting_packets": 2, "damaged_frames": 4, "unread_values": 0,
            "early_packets": 14, "other_sender": null, "refused_connections": [], "refused_peers": [],
            "ignored_packets": [["odd-sized", 1], ["foreign", 2], ["of another stream", 24], ["corrupt", 3], ["not-allowed", 12], ["far-off", 8]],
            "restarts": 9, "jumps": 22, "jumped_numbers": 23, "socket_buffer_bytes": 13,
            "ring": { "slots": 20, "in_use": 14, "high_water": 15, "stalls": 3, "stalled_seconds": 0.5,
                "longest_stall_seconds": 0.25, "halts": 2, "halted_seconds": 3.5, "longest_halt_seconds": 3.0 },
            "senders": [],
            "memory": { "bound_bytes": 0, "resident_bytes": 0, "parts": [] },
            "lanes": [], "fault": "gone",
        });
        assert_eq!(json, expected);
    }
}
