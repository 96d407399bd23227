//! How a simulated device serves: the time of operations, how many run at once, and when it fails.

use std::sync::Arc;

use nilometer_model::Nanos;

use crate::operation::{OpKind, Operation};

/// The time an operation takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// The time independent of its length.
    pub base: Nanos,
    /// Picoseconds for each byte read or written: 1000 is 1 GB/s.
    pub picoseconds_per_byte: u64,
}

impl Cost {
    /// Returns a cost that is the same for any length.
    pub const fn fixed(base: Nanos) -> Self {
        Cost { base, picoseconds_per_byte: 0 }
    }

    fn of(self, bytes: u32) -> Nanos {
        self.base + Nanos(self.picoseconds_per_byte.saturating_mul(u64::from(bytes)) / 1000)
    }
}

/// The speed of a device over time: pieces of equal length, each with its share of the usual speed. After the
/// last piece it starts again.
#[derive(Debug, Clone, PartialEq)]
pub struct Speed {
    /// The length of a piece. More than zero.
    pub width: Nanos,
    /// How long before the device's time zero the first piece began.
    pub begun: Nanos,
    /// Shares of the usual speed, each more than zero. At least one.
    pub shares: Arc<[f64]>,
}

impl Speed {
    /// Returns the share at a time, and the time of its next change.
    fn at(&self, time: Nanos) -> (f64, Nanos) {
        let since = time + self.begun;
        let piece = since.0 / self.width.0;
        let share = self.shares[piece as usize % self.shares.len()];
        (share, Nanos((piece + 1) * self.width.0).since(self.begun))
    }
}

/// A cache before the device: the first `bytes` are written `times` as fast, once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WriteCache {
    /// The bytes it takes in all, including those that drain meanwhile.
    pub bytes: u64,
    /// The multiple of the usual speed. More than zero.
    pub times: f64,
}

/// The device below a simulated target. By default it takes no time, has no end and never fails.
#[derive(Debug, Clone, PartialEq)]
pub struct Device {
    /// The cost of a read.
    pub read: Cost,
    /// The cost of a write.
    pub write: Cost,
    /// The cost of a sync of data, or of data and metadata.
    pub sync: Cost,
    /// The cost of any other operation.
    pub metadata: Cost,
    /// Operations served at once over all engines; the others queue in order of arrival. At least 1.
    pub parallel: usize,
    /// Start and end of each stall, in order. An operation in service then takes longer by the stall.
    pub stalls: Vec<(Nanos, Nanos)>,
    /// Its speed over time; `None` if constant.
    pub speed: Option<Speed>,
    /// A cache before the device.
    pub cache: Option<WriteCache>,
    /// Memory of the machine before device and cache. A write completes while no more bytes than this wait to
    /// be written, a sync when none do. 0 for `O_DIRECT`.
    pub page_cache: u64,
    /// Operations that would complete at this time or later fail with EIO.
    pub dead_from: Nanos,
    /// Bytes of data; an operation that needs more fails with ENOSPC.
    pub capacity: u64,
    /// Offsets and lengths through `O_DIRECT` must be multiples of this.
    pub alignment: u32,
    /// Keeps sizes but no data: reads return zeros, and a crash loses nothing. For histories that would not
    /// fit into memory.
    pub hollow: bool,
    /// Files are objects, as on S3. A file is stored once it is synced or closed, a growing file
    /// ([`Open::GROW`]) after each write; from then on nothing loses it. The death of the process loses
    /// unstored data, like the loss of power.
    ///
    /// [`Open::GROW`]: crate::Open::GROW
    pub objects: bool,
}

impl Default for Device {
    fn default() -> Self {
        Device {
            read: Cost::default(),
            write: Cost::default(),
            sync: Cost::default(),
            metadata: Cost::default(),
            parallel: 1,
            stalls: Vec::new(),
            speed: None,
            cache: None,
            page_cache: 0,
            dead_from: Nanos::MAX,
            capacity: u64::MAX,
            alignment: 512,
            hollow: false,
            objects: false,
        }
    }
}

impl Device {
    /// Creates a device with the same cost for every operation.
    pub fn with_cost(cost: Cost) -> Self {
        Device { read: cost, write: cost, sync: cost, metadata: cost, ..Device::default() }
    }

    /// Returns the start and end of an operation on a server that is free from `free` on. `written` bytes
    /// precede it.
    pub(super) fn serve(&self, free: Nanos, operation: &Operation, written: u64) -> (Nanos, Nanos) {
        let begin = self.stall_at(free).map_or(free, |(_, to)| to);
        let cached = self.cache.filter(|cache| written < cache.bytes).map_or(1.0, |cache| cache.times);
        let cost = self.cost(operation.kind).of(operation.length);
        let work =
            if (cached - 1.0).abs() > 0.0 { Nanos::from_seconds(cost.seconds() / cached) } else { cost };
        (begin, self.done(begin, work))
    }

    /// Returns when the device has written the page cache including this write, and when the write completes.
    pub(super) fn serve_cached(
        &self,
        drained: Nanos,
        now: Nanos,
        write: &Operation,
        written: u64,
    ) -> (Nanos, Nanos) {
        let (_, drained) = self.serve(drained.max(now), write, written);
        let ahead = Nanos(self.write.picoseconds_per_byte.saturating_mul(self.page_cache) / 1000);
        (drained, now.max(drained.since(ahead)))
    }

    /// Returns the stall at a time.
    fn stall_at(&self, time: Nanos) -> Option<(Nanos, Nanos)> {
        self.stalls.iter().copied().find(|&(from, to)| from <= time && time < to)
    }

    /// Returns when work that takes `work` at the usual speed ends, piece by piece and excluding stalls.
    fn done(&self, begin: Nanos, work: Nanos) -> Nanos {
        let mut at = begin;
        let mut left = work.0 as f64;
        loop {
            if let Some((_, to)) = self.stall_at(at) {
                at = to;
            }
            let next =
                self.stalls.iter().map(|&(from, _)| from).find(|&from| from > at).unwrap_or(Nanos::MAX);
            let (share, changes) = self.speed.as_ref().map_or((1.0, Nanos::MAX), |speed| speed.at(at));
            let until = next.min(changes);
            let possible = until.since(at).0 as f64 * share;
            // Work that ends as a stall begins is done before it.
            if left <= possible {
                #[expect(clippy::cast_sign_loss, reason = "no work is below zero")]
                return at + Nanos((left / share).round() as u64);
            }
            left -= possible;
            at = until;
        }
    }

    fn cost(&self, kind: OpKind) -> Cost {
        match kind {
            OpKind::Read => self.read,
            OpKind::Write => self.write,
            OpKind::Sync | OpKind::SyncData => self.sync,
            OpKind::Nop => Cost::fixed(Nanos(0)),
            _ => Cost::fixed(self.metadata.base),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Buffer, operation::Slot};

    #[test]
    fn a_stall_holds_up_what_is_served_and_what_comes() {
        let cost = Cost { base: Nanos(100), picoseconds_per_byte: 500 };
        let device = Device { stalls: vec![(Nanos(1000), Nanos(5000))], ..Device::with_cost(cost) };
        let write = Operation::write(Slot(1), 0, 200, Buffer::empty());
        let serve = |free| {
            let (begin, end) = device.serve(Nanos(free), &write, 0);
            (begin.0, end.0)
        };
        assert_eq!(serve(0), (0, 200));
        assert_eq!(serve(800), (800, 1000));
        assert_eq!(serve(900), (900, 5100));
        assert_eq!(serve(1000), (5000, 5200));
        assert_eq!(serve(5000), (5000, 5200));
    }

    #[test]
    fn a_device_is_as_fast_as_its_speed_and_its_cache_say() {
        let cost = Cost { base: Nanos(0), picoseconds_per_byte: 1000 };
        let speed = Speed { width: Nanos(100), begun: Nanos(50), shares: [1.0, 0.5].into() };
        let device = Device { speed: Some(speed), ..Device::with_cost(cost) };
        let write = Operation::write(Slot(1), 0, 100, Buffer::empty());
        // 50 at full speed, then 50 at half of it.
        assert_eq!(device.serve(Nanos(0), &write, 0), (Nanos(0), Nanos(150)));
        assert_eq!(device.serve(Nanos(150), &write, 0), (Nanos(150), Nanos(250)));
        let cache = Some(WriteCache { bytes: 1000, times: 4.0 });
        let cached = Device { cache, ..Device::with_cost(cost) };
        assert_eq!(cached.serve(Nanos(0), &write, 999), (Nanos(0), Nanos(25)));
        assert_eq!(cached.serve(Nanos(0), &write, 1000), (Nanos(0), Nanos(100)));
        let stalled = Device { stalls: vec![(Nanos(20), Nanos(70))], ..device };
        assert_eq!(stalled.serve(Nanos(0), &write, 0), (Nanos(0), Nanos(190)), "20, then 40 in 80, then 40");
    }
}
