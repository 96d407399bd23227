//! How a simulated device serves: how long operations take, how many at once, and when it fails.

use nilometer_model::Nanos;

use crate::operation::{OpKind, Operation};

/// Time that an operation takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Whatever its length.
    pub base: Nanos,
    /// For each byte that is read or written, in picoseconds: 1000 is 1 GB/s.
    pub picoseconds_per_byte: u64,
}

impl Cost {
    /// The same for any length.
    pub const fn fixed(base: Nanos) -> Self {
        Cost { base, picoseconds_per_byte: 0 }
    }

    fn of(self, bytes: u32) -> Nanos {
        self.base + Nanos(self.picoseconds_per_byte.saturating_mul(u64::from(bytes)) / 1000)
    }
}

/// The device below a simulated target. By default it takes no time, has no end and never fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// A read.
    pub read: Cost,
    /// A write.
    pub write: Cost,
    /// A sync of data, or of data and metadata.
    pub sync: Cost,
    /// Any other operation.
    pub metadata: Cost,
    /// Operations served at once, over all engines; the others queue in the order of their coming. At least 1.
    pub parallel: usize,
    /// From when to when the device stands still, in order: what is being served then takes that much longer.
    pub stalls: Vec<(Nanos, Nanos)>,
    /// What would be done at this time or later fails with EIO.
    pub dead_from: Nanos,
    /// Bytes of data; what would need more fails with ENOSPC.
    pub capacity: u64,
    /// Offsets and lengths through `O_DIRECT` must be multiples of this.
    pub alignment: u32,
    /// Data are not kept, only sizes: reads give zeros, and a crash loses nothing. For histories that would not fit
    /// into memory.
    pub hollow: bool,
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
            dead_from: Nanos::MAX,
            capacity: u64::MAX,
            alignment: 512,
            hollow: false,
        }
    }
}

impl Device {
    /// The same cost for every operation.
    pub fn with_cost(cost: Cost) -> Self {
        Device { read: cost, write: cost, sync: cost, metadata: cost, ..Device::default() }
    }

    /// When an operation is begun and done on a server that is free from `free` on.
    pub(super) fn serve(&self, free: Nanos, operation: &Operation) -> (Nanos, Nanos) {
        let mut begin = free;
        let mut end = begin + self.cost(operation.kind).of(operation.length);
        for &(from, to) in &self.stalls {
            if from <= begin && begin < to {
                (begin, end) = (to, end + to.since(begin));
            } else if begin < from && from < end {
                end += to.since(from);
            }
        }
        (begin, end)
    }

    fn cost(&self, kind: OpKind) -> Cost {
        match kind {
            OpKind::Read => self.read,
            OpKind::Write => self.write,
            OpKind::Sync | OpKind::SyncData => self.sync,
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
            let (begin, end) = device.serve(Nanos(free), &write);
            (begin.0, end.0)
        };
        assert_eq!(serve(0), (0, 200));
        assert_eq!(serve(800), (800, 1000));
        assert_eq!(serve(900), (900, 5100));
        assert_eq!(serve(1000), (5000, 5200));
        assert_eq!(serve(5000), (5000, 5200));
    }
}
