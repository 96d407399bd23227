//! How much room a lane's storage has, as last looked at.
//!
//! A sink is pure and can't ask. Whoever drives it asks after each operation that changes the room ([`Gauge::is_due`]), on
//! the lane's own thread, so that storage which is slow to answer holds up that lane only.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use nilometer_storage::OpKind;

/// Free bytes of a lane's storage, and how many of them are left alone. Clones show the same.
#[derive(Debug, Clone)]
pub struct Gauge {
    free: Arc<AtomicU64>,
    reserve: u64,
}

impl Gauge {
    /// Nothing is known yet: there is room until a reading says otherwise. So many bytes are left alone.
    pub fn with_reserve(reserve: u64) -> Self {
        Gauge { free: Arc::new(AtomicU64::new(u64::MAX)), reserve }
    }

    /// Whether such an operation changes the room by more than a journal's record: space is reserved, a file removed, or
    /// a full file closed or a part of one synced, which comes just before the next is made.
    pub fn is_due(kind: OpKind) -> bool {
        matches!(kind, OpKind::Allocate | OpKind::Unlink | OpKind::Close | OpKind::SyncData)
    }

    /// A reading: so many bytes are free now.
    pub fn read(&self, free: u64) {
        self.free.store(free, Ordering::Relaxed);
    }

    /// Whether so many more bytes can be taken.
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        self.free.load(Ordering::Relaxed).saturating_sub(self.reserve) >= bytes
    }
}
