//! A receiver that outlives the recording that it is lent to: the next series of its connections may have begun already, and
//! whatever of it came would be lost with them.

use std::{
    ops::{Deref, DerefMut},
    sync::{Arc, Mutex, PoisonError},
};

use super::SeriesReceiver;

/// The place to which a receiver goes back when its recording needs it no more.
#[derive(Debug, Clone, Default)]
pub struct ReceiverReturn(Arc<Mutex<Option<Box<SeriesReceiver>>>>);

impl ReceiverReturn {
    /// Takes the receiver, if it is there.
    pub fn take(&self) -> Option<Box<SeriesReceiver>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether the receiver is there, and messages of the next series with it.
    pub fn has_next(&self) -> bool {
        let receiver = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        receiver.as_ref().is_some_and(|receiver| receiver.has_next())
    }

    fn put(&self, receiver: Box<SeriesReceiver>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(receiver);
    }
}

/// A receiver as a recording has it. When it is dropped, whatever the reason, the receiver goes back.
#[derive(Debug)]
pub struct LentReceiver {
    /// None only while it is dropped.
    receiver: Option<Box<SeriesReceiver>>,
    back: Option<ReceiverReturn>,
}

impl LentReceiver {
    /// Lends a receiver. `back` is None if nobody records the next series.
    pub fn new(receiver: Box<SeriesReceiver>, back: Option<ReceiverReturn>) -> Self {
        LentReceiver { receiver: Some(receiver), back }
    }

    /// Somebody records the next series.
    pub fn goes_back(&self) -> bool {
        self.back.is_some()
    }
}

impl Deref for LentReceiver {
    type Target = SeriesReceiver;

    fn deref(&self) -> &SeriesReceiver {
        self.receiver.as_deref().expect("only a drop takes it")
    }
}

impl DerefMut for LentReceiver {
    fn deref_mut(&mut self) -> &mut SeriesReceiver {
        self.receiver.as_deref_mut().expect("only a drop takes it")
    }
}

impl Drop for LentReceiver {
    fn drop(&mut self) {
        if let (Some(back), Some(receiver)) = (&self.back, self.receiver.take()) {
            back.put(receiver);
        }
    }
}
