//! One account of a recorder's memory. Each part states its bound before the recording begins, and counts the
//! bytes it holds while it runs. `/status` and `/metrics` show both, by part.
//!
//! ```text
//! parts -> MemoryPlan (bounds, pure: refused if they do not fit) -> MemoryAccount (bounds and what is held) -> status
//! ```

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use nilometer_model::Bytes;
use schemars::JsonSchema;
use serde::Serialize;

/// A part of the recorder that takes memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryPart {
    /// The slots of the ring.
    Ring,
    /// Lists of the ring's slots, and the data their frames are assembled from.
    SlotHeaders,
    /// Packets outside the expected position of the stream, until it is clear if the stream jumped there.
    Candidates,
    /// Packets and values that wait for earlier ones.
    ReorderWindows,
    /// Buffers of the threads that encode frames.
    EncodeStages,
    /// TCP peers, and their buffered messages.
    Connections,
    /// Packets that wait in the kernel.
    SocketBuffers,
    /// Lists of files, and the metadata of open HDF5 files.
    FileIndex,
    /// Journal records and small frames on their way to the storage.
    WriteBuffers,
    /// A simulated instrument: the frames that it repeats.
    Instrument,
    /// HTTP and Mark 5 commands, and the picture of the latest frame.
    Service,
    /// Frames on their way to viewers, and the positions of all frames.
    Preview,
    /// The program itself: its code, stacks and allocator.
    Program,
}

impl MemoryPart {
    /// All parts.
    pub const ALL: [MemoryPart; 13] = [
        MemoryPart::Ring,
        MemoryPart::SlotHeaders,
        MemoryPart::Candidates,
        MemoryPart::ReorderWindows,
        MemoryPart::EncodeStages,
        MemoryPart::Connections,
        MemoryPart::SocketBuffers,
        MemoryPart::FileIndex,
        MemoryPart::WriteBuffers,
        MemoryPart::Instrument,
        MemoryPart::Service,
        MemoryPart::Preview,
        MemoryPart::Program,
    ];

    /// Returns its name in `/status`, which is also the label `part` in `/metrics`.
    pub const fn name(self) -> &'static str {
        match self {
            MemoryPart::Ring => "ring",
            MemoryPart::SlotHeaders => "slot_headers",
            MemoryPart::Candidates => "candidates",
            MemoryPart::ReorderWindows => "reorder_windows",
            MemoryPart::EncodeStages => "encode_stages",
            MemoryPart::Connections => "connections",
            MemoryPart::SocketBuffers => "socket_buffers",
            MemoryPart::FileIndex => "file_index",
            MemoryPart::WriteBuffers => "write_buffers",
            MemoryPart::Instrument => "instrument",
            MemoryPart::Service => "service",
            MemoryPart::Preview => "preview",
            MemoryPart::Program => "program",
        }
    }
}

/// The bounds of all parts of a recorder that is yet to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryPlan([u64; MemoryPart::ALL.len()]);

impl MemoryPlan {
    /// Adds `bytes` to the bound of a part.
    #[must_use]
    pub fn with(mut self, part: MemoryPart, bytes: u64) -> Self {
        let bound = &mut self.0[part as usize];
        *bound = bound.saturating_add(bytes);
        self
    }

    /// Limits the bound of a part to `bytes`.
    #[must_use]
    pub fn at_most(mut self, part: MemoryPart, bytes: u64) -> Self {
        let bound = &mut self.0[part as usize];
        *bound = bytes.min(*bound);
        self
    }

    /// Adds the bounds of both plans.
    #[must_use]
    pub fn and(self, other: MemoryPlan) -> Self {
        MemoryPart::ALL.into_iter().fold(self, |sum, part| sum.with(part, other.bound(part).0))
    }

    /// Returns the most that a part takes.
    pub fn bound(&self, part: MemoryPart) -> Bytes {
        Bytes(self.0[part as usize])
    }

    /// Returns the most that all parts take together.
    pub fn total(&self) -> Bytes {
        Bytes(self.0.iter().fold(0, |sum, bytes| sum.saturating_add(*bytes)))
    }
}

/// A part of the account at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MemoryOfPart {
    /// Its name.
    pub part: &'static str,
    /// The most bytes it takes.
    pub bound_bytes: u64,
    /// The bytes it holds now.
    pub held_bytes: u64,
}

/// The account of a running recorder. Clones are the same account: each part counts in its own thread.
#[derive(Debug, Clone, Default)]
pub struct MemoryAccount(Arc<[PartCounters; MemoryPart::ALL.len()]>);

#[derive(Debug, Default)]
struct PartCounters {
    bound: AtomicU64,
    held: AtomicU64,
}

impl MemoryAccount {
    fn counters(&self, part: MemoryPart) -> &PartCounters {
        &self.0[part as usize]
    }

    /// States the bounds of a plan; they replace earlier bounds of the same parts.
    pub fn state(&self, plan: &MemoryPlan) {
        for part in MemoryPart::ALL {
            if plan.bound(part).0 > 0 {
                self.counters(part).bound.store(plan.bound(part).0, Ordering::Relaxed);
            }
        }
    }

    /// Counts `bytes` that a part now holds in addition.
    pub fn hold(&self, part: MemoryPart, bytes: u64) {
        self.counters(part).held.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts `bytes` that a part released.
    pub fn release(&self, part: MemoryPart, bytes: u64) {
        self.counters(part).held.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Returns each part that has a bound or holds memory now.
    pub fn parts(&self) -> Vec<MemoryOfPart> {
        let of = |part: MemoryPart| {
            let PartCounters { bound, held } = self.counters(part);
            let held_bytes = held.load(Ordering::Relaxed);
            MemoryOfPart { part: part.name(), bound_bytes: bound.load(Ordering::Relaxed), held_bytes }
        };
        let parts = MemoryPart::ALL.into_iter().map(of);
        parts.filter(|part| part.bound_bytes > 0 || part.held_bytes > 0).collect()
    }
}

/// The memory of a part that one owner holds, as it grows and shrinks. Dropping this releases it.
#[derive(Debug)]
pub struct HeldMemory {
    account: MemoryAccount,
    part: MemoryPart,
    bytes: u64,
}

impl HeldMemory {
    /// Creates an entry that holds nothing yet.
    pub fn new(account: MemoryAccount, part: MemoryPart) -> Self {
        HeldMemory { account, part, bytes: 0 }
    }

    /// Returns the bytes held now.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Sets the bytes held now.
    pub fn set(&mut self, bytes: u64) {
        if bytes >= self.bytes {
            self.account.hold(self.part, bytes - self.bytes);
        } else {
            self.account.release(self.part, self.bytes - bytes);
        }
        self.bytes = bytes;
    }
}

impl Drop for HeldMemory {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_its_bound_and_what_is_held() {
        let plan = MemoryPlan::default().with(MemoryPart::Ring, 100).with(MemoryPart::Service, 7);
        let both = plan.and(MemoryPlan::default().with(MemoryPart::Ring, 11));
        assert_eq!((both.total(), both.bound(MemoryPart::Ring)), (Bytes(118), Bytes(111)));
        assert_eq!(both.with(MemoryPart::Ring, u64::MAX).total(), Bytes(u64::MAX));
        assert_eq!(both.at_most(MemoryPart::Ring, 9).at_most(MemoryPart::Service, 9).total(), Bytes(16));
        let account = MemoryAccount::default();
        account.state(&both);
        let mut index = HeldMemory::new(account.clone(), MemoryPart::FileIndex);
        index.set(30);
        index.set(20);
        account.hold(MemoryPart::Ring, 111);
        let of = |part, bound_bytes, held_bytes| MemoryOfPart { part, bound_bytes, held_bytes };
        assert_eq!(account.parts(), [of("ring", 111, 111), of("file_index", 0, 20), of("service", 7, 0)]);
        drop(index);
        assert_eq!(account.parts(), [of("ring", 111, 111), of("service", 7, 0)]);
    }

    #[test]
    fn parts_stand_in_the_order_of_their_numbers_and_have_names_of_their_own() {
        let mut names: Vec<_> = MemoryPart::ALL.map(MemoryPart::name).into();
        assert!(MemoryPart::ALL.into_iter().enumerate().all(|(number, part)| part as usize == number));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), MemoryPart::ALL.len());
    }
}
