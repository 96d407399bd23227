//! The room that a target has for an instrument's recordings: the time until it is full.

use nilometer_model::{ByteRate, Ingest, StorageRoom};
use nilometer_plan::Results;

/// The room for recordings like this one. The record has the free space of the campaign's start, which is also
/// that of its end: a campaign removes its files.
///
/// `None` without the free space, and for storage that keeps nothing or never fills up.
pub(super) fn room(results: &Results, target: usize, ingest: &Ingest) -> Option<StorageRoom> {
    let description = results.targets.get(target)?.description.as_ref()?;
    if description.is_joined() || description.space.free.0 == 0 {
        return None;
    }
    let reserve = results.campaign.as_ref()?.plan.reserve;
    let room = StorageRoom::on([description], reserve, written_rate(ingest));
    room.seconds().map(|_| room)
}

/// The rate at which the recording filled the storage: the instrument's rate, packed as its frames were.
fn written_rate(ingest: &Ingest) -> ByteRate {
    let rate = ByteRate::of(ingest.frame_size.0, ingest.period);
    let stored = ingest.stored * ingest.frame_size.0;
    if stored == 0 || ingest.written.0 == 0 {
        return rate;
    }
    ByteRate(rate.0 * ingest.written.0 as f64 / stored as f64)
}
