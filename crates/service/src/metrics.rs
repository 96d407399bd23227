//! The state of a recorder for Prometheus (text format 0.0.4). Counters start at zero with each recording.

mod page;

use nilometer_acquisition::{LaneStatus, SenderStatus, Status, ThreadStatus};
use nilometer_model::packets::Station;

use crate::{
    dump::DumpCounts,
    history::unexplained,
    preview::PreviewReport,
    state::{ReportedRecording, ServiceReport, ServiceState},
};
use page::{FRAMES, MetricsPage};

/// The page of metrics. `None` stands for a recorder that makes no dumps.
pub(crate) fn metrics(report: &ServiceReport, dumped: Option<&DumpCounts>) -> String {
    let counted_in = report.recording.as_ref().map_or("packets", |recording| recording.status.counted_in);
    let mut page = MetricsPage::new(counted_in);
    page.head("state", "gauge", "1 for the state that the recorder is in.");
    for state in ServiceState::ALL {
        page.value("state", &[("state", state.name())], u8::from(report.state == state).into());
    }
    page.one(
        "recordings_total",
        "counter",
        "Recordings of this service that have ended.",
        report.recordings as f64,
    );
    let version = report.version;
    page.head("info", "gauge", "The version of the recorder.");
    page.value("info", &[("version", version)], 1.0);
    page.gauge("state_since_seconds", "When it entered this state, as UNIX time.", report.since.0.seconds());
    page.gauge("stopping", "1 if its end was ordered and the rest is being stored.", flag(report.stopping));
    if let Some(viewed) = &report.preview {
        preview(&mut page, viewed);
    }
    if let Some(counts) = dumped {
        dumps(&mut page, counts);
    }
    if let Some(ReportedRecording { status, .. }) = &report.recording {
        traffic(&mut page, status);
        losses(&mut page, status);
        data_streams(&mut page, status);
        senders(&mut page, &status.senders);
        ring(&mut page, status);
        memory(&mut page, status);
        lanes(&mut page, &status.lanes);
        room(&mut page, report, status);
        storage(&mut page, report);
    }
    page.into_text()
}

fn flag(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

fn preview(page: &mut MetricsPage, report: &PreviewReport) {
    page.gauge("preview_viewers", "Viewers of the preview that are connected.", report.viewers as f64);
    page.counter("preview_read", "Frames that the preview read for viewers.", report.frames);
    page.counter("preview_sent", "Frames that the preview sent, counted for each viewer.", report.sent);
    page.counter(
        "preview_dropped",
        "Frames that viewers missed because they still took an earlier one, counted for each viewer.",
        report.dropped,
    );
    page.counter(
        "preview_closed",
        "Connections of viewers closed because they held up a frame for too long.",
        report.closed,
    );
}

fn dumps(page: &mut MetricsPage, counts: &DumpCounts) {
    page.gauge(
        "dumps_running",
        "Dumps that run, or wait for frames or for the buffer.",
        counts.running as f64,
    );
    let ended = [("complete", counts.complete), ("failed", counts.failed), ("cancelled", counts.cancelled)];
    page.counters("dumps_ended", "Dumps that have ended, by their state.", "state", ended);
    page.counter(
        "dump_frames",
        "Frames in the files of all dumps, also of those that failed. Invalid frames in place of absent ones count.",
        counts.frames,
    );
    page.counter("dump_bytes", "Bytes of those frames.", counts.bytes);
    page.counter(
        "dump_overtaken_frames",
        "Frames that the recorder overwrote before a dump had read them.",
        counts.overtaken_frames,
    );
    page.counter(
        "dump_damaged_frames",
        "Frames in blocks that differed from the checksums of the journal when a dump read them.",
        counts.damaged_frames,
    );
}

fn traffic(page: &mut MetricsPage, status: &Status) {
    let came = &status.came;
    page.counter(
        "came_packets",
        "Packets that arrived from the network, of the stream or not.",
        came.packets,
    );
    page.counter(
        "came_bytes",
        "Bytes that arrived from the network, without headers of IP, UDP and TCP.",
        came.bytes,
    );
    page.gauge(
        "receive_rate_bytes",
        "Bytes that arrived from the network a second, over about the last second.",
        came.bytes_per_second,
    );
    page.gauge(
        "receive_rate_packets",
        "Packets that arrived from the network a second, over about the last second.",
        came.packets_per_second,
    );
    page.gauge(
        "mean_receive_rate_bytes",
        "Bytes that arrived from the network a second, from the first packet to the last.",
        came.mean_bytes_per_second,
    );
    page.gauge("network_failed", "1 if the network gave up.", flag(status.fault.is_some()));
    let stages = [
        ("received", "placed in memory", status.received_packets, status.received_bytes),
        (
            "acknowledged",
            "has written: they survive its death",
            status.acknowledged_packets,
            status.acknowledged_bytes,
        ),
        ("durable", "has synced: they survive a loss of power", status.durable_packets, status.durable_bytes),
    ];
    for (name, which, packets, bytes) in stages {
        page.counter(
            &format!("{name}_packets"),
            &format!("Packets of the stream that the recorder {which}."),
            packets,
        );
        page.counter(
            &format!("{name}_bytes"),
            &format!("Bytes of packets of the stream that the recorder {which}."),
            bytes,
        );
    }
    page.gauge("recording_seconds", "Seconds since the first packet of the recording.", status.seconds);
    page.gauge(
        "socket_buffer_bytes",
        "Bytes of the socket buffer that the kernel granted.",
        status.socket_buffer_bytes as f64,
    );
}

fn losses(page: &mut MetricsPage, status: &Status) {
    let lost = &status.lost;
    page.counter(
        "missing_packets",
        "Packets of the stream that are missing: they did not come, or not in time.",
        lost.all(),
    );
    page.counter("gaps", "Gaps in the stream: runs of missing packets.", lost.gaps);
    page.gauge(
        "longest_gap_packets",
        "The most packets of the stream that are missing in a row.",
        lost.longest_gap as f64,
    );
    let causes = [
        ("kernel", lost.kernel_dropped),
        ("checksum", lost.bad_checksums),
        ("queue_full", lost.queue_full),
        ("ring_full", lost.ring_full),
        ("late", lost.late),
        ("unexplained", unexplained(status)),
    ];
    page.counters(
        "lost_packets",
        "Packets of the stream that were lost, by cause: on this machine, or unexplained by anything on it.",
        "cause",
        causes,
    );
    page.counter(
        "blocks_not_stored",
        "Blocks of packets that no directory could store.",
        lost.blocks_not_stored,
    );
    page.counter(
        "reordered_packets",
        "Packets of the stream that arrived after one with a higher number.",
        status.reordered_packets,
    );
    page.counter("duplicate_packets", "Packets of the stream that arrived twice.", status.duplicate_packets);
    page.counter(
        "conflicting_packets",
        "Packets that had the number of a packet that was there, and other bytes: they are lost.",
        status.conflicting_packets,
    );
    page.counter("unchecked_headers", "Recorded frames without a right checksum.", status.unchecked_headers);
    page.counter(
        "early_packets",
        "Packets that came before the recording began, and are none of it.",
        status.early_packets,
    );
    let ignored = status.ignored_packets.iter().map(|(why, count)| (*why, *count));
    page.counters(
        "ignored_packets",
        "Packets discarded because they are not of the stream, by reason.",
        "reason",
        ignored,
    );
    refused_connections(page, status);
    page.counter("restarts", "Times that the packet counter of the stream restarted.", status.restarts);
    page.counter(
        "jumps",
        "Times that the packet counter of the stream jumped ahead further than packets can be missing.",
        status.jumps,
    );
    page.counter(
        "jumped_numbers",
        "Numbers that the packet counter of the stream jumped over, all jumps together.",
        status.jumped_numbers,
    );
}

/// The state of each data stream, if the scan has several.
fn data_streams(page: &mut MetricsPage, status: &Status) {
    page.counter(
        "packets_after_end",
        "Packets that came to a data stream after its end, while others went on. Nobody recorded them.",
        status.packets_after_end,
    );
    if status.data_streams.is_empty() {
        return;
    }
    page.head("data_stream_ended", "gauge", "1 if a data stream has ended, and records no more packets.");
    for stream in &status.data_streams {
        page.value("data_stream_ended", &[("stream", &stream.name)], flag(stream.ended_by.is_some()));
    }
    page.head("data_stream_received_packets_total", "counter", "Packets of a data stream placed in memory.");
    for stream in &status.data_streams {
        let labels = [("stream", &*stream.name)];
        page.value("data_stream_received_packets_total", &labels, stream.received_packets as f64);
    }
    page.head(
        "data_stream_packets_after_end_total",
        "counter",
        "Packets that came after a data stream had ended.",
    );
    for stream in &status.data_streams {
        let labels = [("stream", &*stream.name)];
        page.value("data_stream_packets_after_end_total", &labels, stream.packets_after_end as f64);
    }
    page.head(
        "data_stream_silent_seconds",
        "gauge",
        "Seconds for which nothing came of a data stream while others sent; 0 if it sends.",
    );
    for stream in &status.data_streams {
        let silent = stream.silent_seconds.unwrap_or(0.0);
        page.value("data_stream_silent_seconds", &[("stream", &stream.name)], silent);
    }
}

/// For a series: the refused connections of senders.
fn refused_connections(page: &mut MetricsPage, status: &Status) {
    if status.counted_in == FRAMES {
        let refused = status.refused_connections.iter().map(|(why, count)| (*why, *count));
        page.counters(
            "refused_connections",
            "Connections of senders that were closed or not heard, by reason.",
            "reason",
            refused,
        );
    }
}

fn ring(page: &mut MetricsPage, status: &Status) {
    let ring = &status.ring;
    page.gauge("ring_slots", "Blocks of packets that the ring buffer holds.", ring.slots as f64);
    page.gauge(
        "ring_slots_in_use",
        "Blocks of packets in the ring buffer that are not stored yet.",
        ring.in_use as f64,
    );
    page.gauge(
        "ring_slots_high_water",
        "The most blocks of packets that were in the ring buffer at once.",
        ring.high_water as f64,
    );
    page.counter(
        "stalls",
        "Stalls: times in which blocks waited in the ring buffer and none was stored.",
        ring.stalls,
    );
    page.one(
        "stalled_seconds_total",
        "counter",
        "Seconds in which blocks waited in the ring buffer and none was stored, all stalls together.",
        ring.stalled_seconds,
    );
    page.gauge(
        "longest_stall_seconds",
        "The longest time in seconds in which blocks waited in the ring buffer and none was stored, however short.",
        ring.longest_stall_seconds,
    );
    page.counter(
        "halts",
        "Times in which the recorder itself did not run: it was stopped, or had no processor.",
        ring.halts,
    );
    page.one(
        "halted_seconds_total",
        "counter",
        "Seconds in which the recorder itself did not run, all times together.",
        ring.halted_seconds,
    );
    page.gauge(
        "longest_halt_seconds",
        "The longest time in seconds in which the recorder itself did not run.",
        ring.longest_halt_seconds,
    );
}

/// The counters of each sender that numbers its packets by itself, and of each thread.
fn senders(page: &mut MetricsPage, senders: &[SenderStatus]) {
    type Count = fn(&SenderStatus) -> u64;
    let counters: [(&str, &str, Count); 6] = [
        ("sender_received_packets", "Packets of a sender that were placed in memory.", |of| {
            of.received_packets
        }),
        ("sender_missing_packets", "Packets of a sender that are missing.", |of| of.missing_packets),
        (
            "sender_reordered_packets",
            "Packets of a sender that arrived after one with a higher number.",
            |of| of.reordered_packets,
        ),
        ("sender_duplicate_packets", "Packets of a sender that arrived twice.", |of| of.duplicate_packets),
        ("sender_late_packets", "Packets of a sender that came too late.", |of| of.late_packets),
        ("sender_ring_full_packets", "Packets of a sender that found the ring buffer full.", |of| {
            of.ring_full_packets
        }),
    ];
    for (name, help, count) in counters {
        let name = format!("{name}_total");
        page.head(&name, "counter", help);
        for sender in senders {
            page.value(&name, &[("sender", &sender.name())], count(sender) as f64);
        }
    }
    let help = "Seconds for which nothing came of a sender while others sent; 0 if it sends.";
    page.head("sender_silent_seconds", "gauge", help);
    for sender in senders {
        let seconds = sender.silent_seconds.unwrap_or(0.0);
        page.value("sender_silent_seconds", &[("sender", &sender.name())], seconds);
    }
    threads(page, senders);
}

fn threads(page: &mut MetricsPage, senders: &[SenderStatus]) {
    type Value = fn(&ThreadStatus) -> f64;
    let values: [(&str, &str, &str, Value); 3] = [
        ("thread_came_frames_total", "counter", "Frames of a thread that came.", |of| of.came_frames as f64),
        ("thread_missing_frames_total", "counter", "Frames of a thread that are missing.", |of| {
            of.missing_frames as f64
        }),
        (
            "thread_silent_seconds",
            "gauge",
            "Seconds for which nothing came of a thread while others of its sender came; 0 if it comes.",
            |of| of.silent_seconds.unwrap_or(0.0),
        ),
    ];
    for (name, kind, help, value) in values {
        page.head(name, kind, help);
        for sender in senders {
            let address = sender.name();
            for thread in &sender.threads {
                let station = thread.station.map_or_else(String::new, |station| Station(station).to_string());
                let number = thread.thread.to_string();
                let labels = [("sender", &*address), ("station", &*station), ("thread", &*number)];
                page.value(name, &labels, value(thread));
            }
        }
    }
}

fn memory(page: &mut MetricsPage, status: &Status) {
    let memory = &status.memory;
    page.head("memory_bytes", "gauge", "Memory that a part of the recorder holds.");
    for part in &memory.parts {
        page.value("memory_bytes", &[("part", part.part)], part.held_bytes as f64);
    }
    page.head("memory_bound_bytes", "gauge", "Most memory that a part of the recorder takes.");
    for part in &memory.parts {
        page.value("memory_bound_bytes", &[("part", part.part)], part.bound_bytes as f64);
    }
    page.gauge(
        "memory_resident_bytes",
        "Memory of the process as the kernel counts it, without data waiting in sockets.",
        memory.resident_bytes as f64,
    );
}

fn lanes(page: &mut MetricsPage, lanes: &[LaneStatus]) {
    let path = |lane: &LaneStatus| lane.path.display().to_string();
    page.head("written_bytes_total", "counter", "Bytes written to a directory.");
    for lane in lanes {
        page.value("written_bytes_total", &[("directory", &path(lane))], lane.written_bytes as f64);
    }
    page.head("free_bytes", "gauge", "Free where a directory is.");
    for (lane, free) in lanes.iter().filter_map(|lane| Some((lane, lane.free_bytes?))) {
        page.value("free_bytes", &[("directory", &path(lane))], free as f64);
    }
    page.head("directory_failed", "gauge", "1 if a directory takes no more: it failed or is full.");
    for lane in lanes {
        page.value("directory_failed", &[("directory", &path(lane))], flag(lane.has_dropped_out()));
    }
}

fn room(page: &mut MetricsPage, report: &ServiceReport, status: &Status) {
    if let Some(usable) = status.usable_bytes {
        page.gauge(
            "usable_bytes",
            "Bytes that the recording may still fill, without the reserve.",
            usable as f64,
        );
    }
    if let Some(seconds) = report.room_seconds {
        page.gauge("room_seconds", "Seconds until its storage is full at the rate written so far.", seconds);
    }
}

fn storage(page: &mut MetricsPage, report: &ServiceReport) {
    page.head("size_bytes", "gauge", "Size of the storage where a directory is.");
    for disk in &report.storage {
        let path = disk.path.display().to_string();
        page.value("size_bytes", &[("directory", &path)], disk.size_bytes as f64);
    }
    let reserve = report.configuration.reserve.0 as f64;
    page.gauge("reserve_bytes", "Space that stays free on each storage.", reserve);
}

#[cfg(test)]
mod tests;
