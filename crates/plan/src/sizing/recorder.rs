//! The number of streams of a kind that one recorder carries, and the rate at which it must write them.

use super::{Kind, Limits, Place};

/// The share by which rounding may exceed a limit: sizes of frames are whole bytes and periods whole
/// nanoseconds.
const ROUNDING: f64 = 1e-6;

/// Frames of each stream in memory besides those that wait for the storage. One was being written when it
/// stalled, one waits for the turn of its recorder. One more is needed since others' frames are not split
/// either.
const FRAMES_IN_HAND: f64 = 3.0;

/// The greatest whole number that is not above, except for rounding.
#[expect(clippy::cast_sign_loss, reason = "max(0) stands before it")]
pub(super) fn floor(number: f64) -> u64 {
    (number * (1.0 + ROUNDING)).max(0.0) as u64
}

/// The least whole number that is not below, except for rounding.
#[expect(clippy::cast_sign_loss, reason = "max(0) stands before it")]
pub(super) fn ceil(number: f64) -> u64 {
    (number * (1.0 - ROUNDING)).max(0.0).ceil() as u64
}

/// The most streams of a kind that one recorder carries by each of its limits, less the headroom.
pub(super) fn streams_by(kind: &Kind, limits: &Limits) -> [(Place, u64); 4] {
    let limits = limits.without_headroom();
    let links = limits.links.value.saturating_mul(floor(limits.link.value.0 / kind.peak()));
    let room = limits.memory.value.0 as f64;
    [
        (Place::Network, links),
        (Place::Processor, floor(limits.processing(kind) / kind.peak())),
        (Place::Memory, floor(room / through_stall(kind, &limits))),
        (Place::Writers, floor(written(kind, &limits))),
    ]
}

/// Bytes that one stream needs in memory to get through a stall.
fn through_stall(kind: &Kind, limits: &Limits) -> f64 {
    in_hand(kind, limits) + kind.most_in(limits.stall.value.seconds())
}

/// Bytes in hand of one stream: some frames, and those that arrive while a frame passes a writer and a
/// server.
pub(super) fn in_hand(kind: &Kind, limits: &Limits) -> f64 {
    let frame = kind.frame.0 as f64;
    let packed = frame / kind.packing.value;
    let on_its_way = packed / limits.writer.value.0 + packed / limits.write.value.0;
    FRAMES_IN_HAND * frame + kind.peak() * on_its_way
}

/// Streams that the writers of a recorder keep up with: in the mean, and by the end of a burst that began with a stall.
fn written(kind: &Kind, limits: &Limits) -> f64 {
    let rate = limits.writer.value.0 * limits.writers.value as f64 * kind.packing.value;
    let in_mean = rate / kind.mean();
    let by_burst = |after: f64, brought: f64| (rate * after + limits.memory.value.0 as f64) / brought;
    burst_end(kind, limits).map_or(in_mean, |(after, brought)| in_mean.min(by_burst(after, brought)))
}

/// If a burst outlasts a stall: seconds from the stall's end to the burst's, and bytes of one stream until then.
fn burst_end(kind: &Kind, limits: &Limits) -> Option<(f64, f64)> {
    let burst = kind.burst()?;
    let after = burst - limits.stall.value.seconds();
    (after > 0.0).then(|| (after, in_hand(kind, limits) + kind.most_in(burst)))
}

/// The rate at which this many streams must be written to stay within the memory of their recorder, less the
/// headroom. It counts bytes of frames before compression.
pub(super) fn drain(kind: &Kind, streams: u64, limits: &Limits) -> f64 {
    let limits = &limits.without_headroom();
    let room = limits.memory.value.0 as f64;
    let streams = streams as f64;
    let in_mean = streams * kind.mean();
    let by_burst = |(after, brought): (f64, f64)| (streams * brought - room) / after;
    burst_end(kind, limits).map_or(in_mean, |end| in_mean.max(by_burst(end)))
}

/// The most memory that this many streams fill at this write rate, from a stall at the beginning of a burst.
pub(super) fn backlog(kind: &Kind, streams: u64, rate: f64, limits: &Limits) -> f64 {
    let limits = &limits.without_headroom();
    let streams = streams as f64;
    let by_stall = streams * through_stall(kind, limits);
    burst_end(kind, limits)
        .map_or(by_stall, |(after, brought)| by_stall.max(streams * brought - rate * after))
}
