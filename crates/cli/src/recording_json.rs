//! Parts of JSON documents about recordings that several commands print. Frame numbers count from 0.

use std::{fmt::Display, path::PathBuf};

use nilometer_model::packets::Station;
use nilometer_recording::view::{Hole, Jump, SourceLoss};
use serde_json::{Value, json};

/// Ranges of frames or blocks, as first numbers and counts.
pub(crate) fn ranges_value(ranges: &[(u64, u64)]) -> Value {
    ranges.iter().map(|(first, count)| json!({ "first": first, "count": count })).collect()
}

/// Gaps in the packets.
pub(crate) fn gaps_value(gaps: &[Hole]) -> Value {
    let gap = |Hole { frame, packets, filled, sender }: &Hole| {
        let sender = sender.map(|sender| sender.to_string());
        json!({ "frame": frame, "packets": packets, "filled": filled, "sender": sender })
    };
    gaps.iter().map(gap).collect()
}

/// The packets of each sender and thread that did not come.
pub(crate) fn sources_value(sources: &[SourceLoss]) -> Value {
    sources.iter().map(source_value).collect()
}

fn source_value(source: &SourceLoss) -> Value {
    let station = source.thread.and_then(|(station, _)| station).map(|station| Station(station).to_string());
    json!({
        "sender": source.sender.map(|sender| sender.to_string()), "station": station,
        "thread": source.thread.map(|(_, thread)| thread), "missing_packets": source.packets,
    })
}

/// Threads that did not continue with their next frame. `rate` is the number of frames a second, if known.
pub(crate) fn jumps_value(jumps: &[Jump], rate: Option<u64>) -> Value {
    let jump = |Jump { frame, before, stamp }: &Jump| {
        let at = [before, stamp].map(|stamp| stamp.moment(rate).to_string());
        json!({ "frame": frame, "from": at[0], "to": at[1] })
    };
    jumps.iter().map(jump).collect()
}

/// Files with the reasons why they can't be read, or why they are torn.
pub(crate) fn files_value<Error: Display>(files: &[(PathBuf, Error)]) -> Value {
    let file = |(path, why): &(PathBuf, Error)| json!({ "file": path.display().to_string(), "why": why.to_string() });
    files.iter().map(file).collect()
}
