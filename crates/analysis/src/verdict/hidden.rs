//! Data that memory on the way to the storage may hide in a recording, so that slow storage seems to keep up.

use std::fmt;

use nilometer_model::{Bytes, Goal, Ingest, Nanos};
use nilometer_plan::{Results, seen_after};

use super::{Recorded, layout};
use crate::{facts::dirty_limit, rate_unit::decimal};

/// A pass at full speed shows the storage if it writes this many times the size of the page cache. Caches inside
/// the storage show up as a step in the rate.
const PASSES_BEHIND_THE_CACHE: u64 = 2;

/// Bytes of a recording that memory may hold, as received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hidden {
    /// All bytes received.
    pub came: Bytes,
    /// The recorder's buffer.
    pub buffer: Bytes,
    /// The page cache. If files are synced: the most that was not durable at any time. Otherwise: the most that
    /// this machine lets wait (`vm.dirty_ratio`). Zero if writes bypass it; `None` if the record does not contain
    /// it.
    pub cache: Option<Bytes>,
}

impl Hidden {
    /// Bytes to write before slow storage shows; `None` if unknown.
    pub(super) fn least(&self) -> Option<Bytes> {
        self.cache.map(|cache| seen_after(self.buffer, cache))
    }
}

impl fmt::Display for Hidden {
    /// The reason why nothing follows from the recording.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [came, buffer] = [self.came, self.buffer].map(decimal);
        if self.came <= self.buffer {
            write!(f, "all of it fitted into the buffer of {buffer}")?;
            let behind = self.cache.filter(|cache| cache.0 >= self.buffer.0).map(decimal);
            return behind.map_or(Ok(()), |cache| write!(f, ", and {cache} of page cache lie behind it"));
        }
        let Some(cache) = self.cache.map(decimal) else {
            return write!(
                f,
                "the record does not say how much of {came} the page cache of the machine may have held"
            );
        };
        write!(f, "{came} are too little to show whether the storage fills a buffer of {buffer}")?;
        if self.cache == Some(Bytes(0)) { Ok(()) } else { write!(f, " behind {cache} of page cache") }
    }
}

/// The path of frames to a target.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Way {
    /// Bytes that the page cache may hold without a sync; `None` if the record does not contain it.
    unsynced: Option<Bytes>,
}

impl Way {
    pub(super) fn of(results: &Results, recorded: &Recorded<'_>) -> Self {
        let target = results.targets.get(recorded.target);
        // Servers reached by URL have everything that they acknowledged. A target in memory does not use the page
        // cache.
        let has_no_cache = target.is_some_and(|target| target.path.contains("://") || target.is_volatile());
        let is_past_it =
            layout(results, recorded, Goal::Pace).is_some_and(|layout| layout.contains("past the cache"));
        let unsynced = if has_no_cache || is_past_it { Some(0) } else { dirty_limit(results) };
        Way { unsynced: unsynced.map(Bytes) }
    }

    /// The most that a pass at full speed wrote, and the page cache that may hold most of it. `None` if the cache
    /// can't hold that much, or the record does not contain its size.
    pub(super) fn cached<'a>(self, passes: impl Iterator<Item = &'a Ingest>) -> Option<(Bytes, Bytes)> {
        let cache = self.unsynced.filter(|cache| cache.0 > 0)?;
        let unsynced = passes.filter(|ingest| ingest.durable.count() == 0);
        let most = unsynced.map(|ingest| ingest.written).max_by_key(|written| written.0)?;
        (most.0 < PASSES_BEHIND_THE_CACHE * cache.0).then_some((most, cache))
    }

    pub(super) fn hidden(self, ingest: &Ingest) -> Hidden {
        let came = Bytes(ingest.due * ingest.frame_size.0);
        let seconds = Nanos(ingest.due * ingest.period.0).seconds().max(1e-9);
        let compressed = (ingest.stored * ingest.frame_size.0) as f64 / ingest.written.0.max(1) as f64;
        let not_durable = came.0 as f64 / seconds * Nanos(ingest.durable.max()).seconds();
        let is_synced = ingest.durable.count() > 0;
        let unsynced = self.unsynced.map(|bytes| bytes.0 as f64 * compressed.max(1.0));
        let cache = if is_synced { Some(not_durable) } else { unsynced };
        #[expect(clippy::cast_sign_loss, reason = "no volume is below zero")]
        let cache = cache.map(|bytes| Bytes(bytes as u64));
        Hidden { came, buffer: Bytes(ingest.slots * ingest.frame_size.0 * u64::from(ingest.count)), cache }
    }
}
