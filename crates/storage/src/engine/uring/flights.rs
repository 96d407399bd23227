//! Operations in the kernel's hands, found again by a number. What is in here must stay where it is in memory until
//! the kernel is done with it: buffers do, whatever happens to their owner.

use nilometer_model::Nanos;

use crate::operation::{OpKind, Operation, Slot};

/// An operation in flight.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) operation: Operation,
    pub(super) due: Nanos,
    pub(super) issued: Nanos,
}

/// A place for each operation in flight.
#[derive(Debug)]
pub(super) struct Flights {
    places: Vec<Option<Flight>>,
    free: Vec<u32>,
    syncs: usize,
}

impl Flights {
    pub(super) fn new(depth: u32) -> Self {
        Flights { places: (0..depth).map(|_| None).collect(), free: (0..depth).rev().collect(), syncs: 0 }
    }

    /// How many there are.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Takes one in and tells its number.
    #[inline]
    pub(super) fn put(&mut self, flight: Flight) -> (u32, &mut Operation) {
        self.syncs += usize::from(!flight.operation.kind.is_data());
        let number = self.free.pop().expect("the caller counts: no more than `depth` are in flight");
        (number, &mut self.places[number as usize].insert(flight).operation)
    }

    /// The one of this number, which is done.
    #[inline]
    pub(super) fn take(&mut self, number: u64) -> Flight {
        let flight = self.places[number as usize].take().expect("the kernel completes an operation once");
        self.syncs -= usize::from(!flight.operation.kind.is_data());
        self.free.push(number as u32);
        flight
    }

    /// Whether the file in this slot is being synced.
    pub(super) fn sync(&self, slot: Slot) -> bool {
        let syncs = |flight: &Flight| {
            flight.operation.file == slot && matches!(flight.operation.kind, OpKind::Sync | OpKind::SyncData)
        };
        self.syncs > 0 && self.places.iter().flatten().any(syncs)
    }

    /// Leaves all memory to the kernel, for ever: it may still write there.
    pub(super) fn abandon(&mut self) {
        for flight in self.places.iter_mut().filter_map(Option::take) {
            std::mem::forget(flight);
        }
    }
}
