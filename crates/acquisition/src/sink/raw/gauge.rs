//! How much room a lane's storage has, as last looked at, and how much of that other lanes are about to take.
//!
//! A sink is pure and can't ask. Whoever drives it asks after each operation that changes the room ([`Gauge::is_due`]), on
//! the lane's own thread, so that storage which is slow to answer holds up that lane only.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nilometer_storage::OpKind;

/// Free bytes of a lane's storage, and how many of them are left alone. Clones are the same lane's.
#[derive(Debug, Clone)]
pub struct Gauge {
    room: Arc<Mutex<Room>>,
    reserve: u64,
    /// Index into the claims.
    lane: usize,
}

/// What lanes on one storage know of it together.
#[derive(Debug)]
struct Room {
    free: u64,
    /// How often it was asked, and which of these answers is the latest.
    asked: u64,
    answer: u64,
    /// What each lane was promised and may not have taken when it was asked last.
    claims: Vec<u64>,
}

impl Gauge {
    /// Of the first lane on its storage. Nothing is known yet: there is room until a reading says otherwise. So many bytes
    /// are left alone.
    pub fn with_reserve(reserve: u64) -> Self {
        let room = Room { free: u64::MAX, asked: 0, answer: 0, claims: vec![0] };
        Gauge { room: Arc::new(Mutex::new(room)), reserve, lane: 0 }
    }

    /// Of another lane on the same storage.
    #[must_use]
    pub fn beside(&self) -> Self {
        let mut room = self.lock();
        room.claims.push(0);
        Gauge { lane: room.claims.len() - 1, ..self.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, Room> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether such an operation changes the room by more than a journal's record: space is reserved, a file removed, or
    /// a full file closed or a part of one synced, which comes just before the next is made.
    pub fn is_due(kind: OpKind) -> bool {
        matches!(kind, OpKind::Allocate | OpKind::Unlink | OpKind::Close | OpKind::SyncData)
    }

    /// A reading: `free` says how many bytes are free, if that is known. Of answers that overtake each other, that which was
    /// asked for last counts.
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

    /// How many bytes were free when that was read last; none if it is not known.
    pub fn free(&self) -> Option<u64> {
        Some(self.lock().free).filter(|free| *free != u64::MAX)
    }

    /// Whether so many more bytes can be taken, beside what other lanes are about to take. They are then promised to this
    /// lane, instead of what was before.
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

    /// What was promised is taken, or will not be.
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
