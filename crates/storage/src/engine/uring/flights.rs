//! Operations that the kernel holds, found again by number. Their memory must not move until the kernel is
//! done with it. Buffers stay in place even if their owner moves.

use nilometer_model::Nanos;

use crate::operation::{OpKind, Operation, Slot};

/// An operation in flight.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) operation: Operation,
    pub(super) due: Nanos,
    pub(super) issued: Nanos,
    /// How often its slot had changed its file before. Another number now means another file.
    pub(super) generation: u32,
    /// How often the kernel gave it up.
    pub(super) interruptions: u32,
}

/// The operations in flight, one place each.
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

    /// Returns the number of operations in flight.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Stores a flight and returns its number.
    #[inline]
    pub(super) fn put(&mut self, flight: Flight) -> (u32, &mut Operation) {
        self.syncs += usize::from(!flight.operation.kind.is_data());
        let number = self.free.pop().expect("the caller counts: no more than `depth` are in flight");
        (number, &mut self.places[number as usize].insert(flight).operation)
    }

    /// The flight with this number.
    pub(super) fn get_mut(&mut self, number: u64) -> &mut Flight {
        self.places[number as usize].as_mut().expect("the kernel completes an operation once")
    }

    /// Removes the flight with this number, which has completed.
    #[inline]
    pub(super) fn take(&mut self, number: u64) -> Flight {
        let flight = self.places[number as usize].take().expect("the kernel completes an operation once");
        self.syncs -= usize::from(!flight.operation.kind.is_data());
        self.free.push(number as u32);
        flight
    }

    /// Returns true if a sync of the file in this slot is in flight.
    pub(super) fn sync(&self, slot: Slot) -> bool {
        let syncs = |flight: &Flight| {
            flight.operation.file == slot && matches!(flight.operation.kind, OpKind::Sync | OpKind::SyncData)
        };
        self.syncs > 0 && self.places.iter().flatten().any(syncs)
    }

    /// Leaves all memory to the kernel for ever: it may still write there.
    pub(super) fn abandon(&mut self) {
        for flight in self.places.iter_mut().filter_map(Option::take) {
            std::mem::forget(flight);
        }
    }
}
