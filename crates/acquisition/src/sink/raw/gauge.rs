//! The free space of a lane's storage at the last reading, and the share that other lanes are about to take.
//!
//! A sink is pure and can't ask the storage. The lane's own thread asks it after each operation that changes
//! the space ([`Gauge::is_due`]), so that slow storage delays only that lane.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nilometer_storage::OpKind;

/// Free bytes of a lane's storage, and the reserve that stays free. Clones belong to the same lane.
#[derive(Debug, Clone)]
pub struct Gauge {
    room: Arc<Mutex<Room>>,
    reserve: u64,
    /// Index into the claims.
    lane: usize,
}

/// Free space that all lanes on one storage share.
#[derive(Debug)]
struct Room {
    free: u64,
    /// Number of readings begun, and the one that the latest accepted answer belongs to.
    asked: u64,
    answer: u64,
    /// Bytes promised to each lane and possibly not yet taken at the last reading.
    claims: Vec<u64>,
}

impl Gauge {
    /// Makes the gauge of the first lane on its storage, which leaves `reserve` bytes free. Until the first
    /// reading there is always room.
    pub fn with_reserve(reserve: u64) -> Self {
        let room = Room { free: u64::MAX, asked: 0, answer: 0, claims: vec![0] };
        Gauge { room: Arc::new(Mutex::new(room)), reserve, lane: 0 }
    }

    /// Makes the gauge of another lane on the same storage.
    #[must_use]
    pub fn beside(&self) -> Self {
        let mut room = self.lock();
        room.claims.push(0);
        Gauge { lane: room.claims.len() - 1, ..self.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, Room> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if such an operation changes the free space by more than a journal's record. It reserves
    /// space, removes a file, closes a full one, or syncs a part, which comes just before the next is made.
    pub fn is_due(kind: OpKind) -> bool {
        matches!(kind, OpKind::Allocate | OpKind::Unlink | OpKind::Close | OpKind::SyncData)
    }

    /// Takes a reading: `free` returns the free bytes, or `None` if unknown. If answers overtake each other,
    /// the one to the latest request counts.
    pub fn read(&self, free: impl FnOnce() -> Option<u64>) {
        let asked = {
            let mut room = self.lock();
            room.asked += 1;
            room.asked
        };
        let Some(free) = free() else { return };
        let mut room = self.lock();
        if asked > room.answer {
            (room.answer, room.free) = (asked, free);
        }
    }

    /// Bytes free at the last reading. `None` if unknown.
    pub fn free(&self) -> Option<u64> {
        Some(self.lock().free).filter(|free| *free != u64::MAX)
    }

    /// Bytes of the storage that stay free.
    pub fn reserve(&self) -> u64 {
        self.reserve
    }

    /// True for lanes on one storage.
    pub fn shares_with(&self, other: &Gauge) -> bool {
        Arc::ptr_eq(&self.room, &other.room)
    }

    /// Claims `bytes` for this lane in place of its earlier claim, if they are free beside the other lanes'
    /// claims. Returns true if they are.
    pub(super) fn claim(&self, bytes: u64) -> bool {
        let mut room = self.lock();
        let others = room.claims.iter().enumerate().filter(|(lane, _)| *lane != self.lane);
        let others = others.fold(self.reserve, |sum, (_, claim)| sum.saturating_add(*claim));
        let there = room.free.saturating_sub(others) >= bytes;
        if there {
            room.claims[self.lane] = bytes;
        }
        there
    }

    /// Drops the lane's claim: its bytes are taken, or will not be.
    pub(super) fn release(&self) {
        self.lock().claims[self.lane] = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_promised_to_one_lane_is_not_there_for_another() {
        let one = Gauge::with_reserve(10);
        let other = one.beside();
        assert!(one.claim(1000) && other.claim(1000), "nothing is known");
        other.release();
        one.read(|| Some(1500));
        assert!(one.claim(1000), "again, not once more");
        assert!(!other.claim(491) && other.claim(490));
        one.read(|| Some(1000));
        one.release();
        assert!(!one.claim(501), "the other's is still to come");
        assert!(other.claim(990));
    }

    #[test]
    fn an_answer_that_was_overtaken_does_not_count() {
        let one = Gauge::with_reserve(0);
        one.read(|| {
            one.beside().read(|| Some(5));
            Some(100)
        });
        assert!(!one.claim(6));
        one.read(|| None);
        one.read(|| Some(6));
        assert!(one.claim(6));
        assert_eq!((one.free(), Gauge::with_reserve(0).free()), (Some(6), None));
    }
}
