//! An order to stop that arrives while a recording is still being prepared. The storage work goes on to its end, since
//! nothing can interrupt it, but its recording never begins.
//!
//! ```text
//! record=on  ... memory, directories, sockets ...  ready    removed
//!            record=off  the order is withdrawn             both are answered
//! ```

use std::sync::mpsc::SyncSender;

use super::{CommandedRecorder, WAITING};
use crate::{
    background::TaskOutcome,
    console::OrderAnswer,
    state::{RefusedOrder, ServiceState},
};

impl CommandedRecorder {
    /// Returns true while the storage work of an order makes a recording ready.
    pub(super) fn is_arming(&self) -> bool {
        self.background.as_ref().is_some_and(|task| task.is_arming)
    }

    /// Withdraws the order whose recording is being prepared. The recorder answers when nothing of the recording is
    /// left.
    pub(super) fn withdraw(&mut self, answer: SyncSender<OrderAnswer>) {
        if self.waiting.len() >= WAITING {
            self.answer(&answer, Err(RefusedOrder::Busy));
            return;
        }
        if let Some(task) = &mut self.background {
            task.is_withdrawn = true;
        }
        self.waiting.push(answer);
    }

    /// Applies the outcome of storage work whose order was withdrawn. The error is the answer to that order.
    pub(super) fn apply_withdrawn(&mut self, outcome: TaskOutcome) -> Result<(), RefusedOrder> {
        match outcome {
            TaskOutcome::Armed(current, _) => {
                self.current = Some(*current);
                self.disarm();
            }
            TaskOutcome::Awaited(awaited) => {
                drop(awaited);
                self.left();
                self.configured(ServiceState::Configured);
                self.close_unused();
                self.tell_waiting();
            }
            outcome => {
                let done = self.apply(outcome);
                self.tell_waiting();
                return done;
            }
        }
        Err(RefusedOrder::WrongState("it was stopped before it began".into()))
    }
}
