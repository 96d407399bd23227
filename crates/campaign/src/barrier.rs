//! A barrier at which workers wait until all are ready, so that a phase begins for all at once. The supervisor
//! never waits here.

use std::sync::{Condvar, Mutex, PoisonError};

use nilometer_model::Nanos;

#[derive(Debug, Clone, Copy, Default)]
enum State {
    #[default]
    Closed,
    /// The phase began at this time.
    Open(Nanos),
    /// There is no phase.
    Cancelled,
}

/// Closed until it is opened once.
#[derive(Debug, Default)]
pub(crate) struct Barrier {
    state: Mutex<State>,
    changed: Condvar,
}

impl Barrier {
    /// Lets all through, with the time at which the phase began.
    pub(crate) fn open(&self, start: Nanos) {
        self.set(State::Open(start));
    }

    /// Releases all workers without a phase.
    pub(crate) fn cancel(&self) {
        self.set(State::Cancelled);
    }

    fn set(&self, state: State) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
        self.changed.notify_all();
    }

    /// Waits until the gate opens, and returns the start. Returns `None` if the phase is cancelled.
    pub(crate) fn pass(&self) -> Option<Nanos> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match *state {
                State::Open(start) => return Some(start),
                State::Cancelled => return None,
                State::Closed => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}
