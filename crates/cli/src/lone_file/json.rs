//! The result of `verify` on one file, for programs. Frames count from 0.

use nilometer_hdf5_recording::lone_file::{BrokenObject, LoneDamage, LoneFile, LoneVerified};
use nilometer_recording::Ranges;
use serde_json::{Value, json};

use super::{faults, right};
use crate::verify::range;

fn named(frames: &Ranges) -> Vec<Value> {
    frames.iter().map(|frames| range(frames.start, frames.end - frames.start)).collect()
}

pub(super) fn value(file: &LoneFile, verified: &LoneVerified) -> Value {
    let shape = file.shape();
    let faults = Some(faults(verified)).filter(|faults| !faults.is_empty());
    let damage = |of: &LoneDamage| json!({ "begin": of.begin, "frame": of.frame, "why": of.why });
    let broken = |of: &BrokenObject| json!({ "path": of.path, "why": of.why });
    json!({
        "file": file.path().display().to_string(), "dataset": file.dataset(), "whole": verified.is_whole(),
        "faults": faults.into_iter().collect::<Vec<_>>(), "dimensions": shape.dimensions, "chunk": shape.chunk,
        "filters": shape.filters.iter().map(|filter| filter.number).collect::<Vec<_>>(),
        "chunks": verified.chunks, "chunks_due": file.chunks_due(),
        "frames": file.frames(), "frame_bytes": file.frame_size(), "readable": right(file, verified),
        "missing": verified.missing.count(), "missing_ranges": named(&verified.missing),
        "not_whole": verified.not_whole.count(), "not_whole_ranges": named(&verified.not_whole),
        "damaged": verified.damaged.count(), "damaged_ranges": named(&verified.damaged),
        "damaged_chunks": verified.damaged_chunks,
        "first_damaged_chunks": verified.damages.iter().map(damage).collect::<Vec<_>>(),
        "broken": verified.broken.iter().map(broken).collect::<Vec<_>>(), "other_datasets": file.others(),
    })
}
