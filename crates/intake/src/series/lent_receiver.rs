//! A receiver that outlives the recording to which it is lent. The next series on its connections may have
//! begun already, and closing them would lose its messages.

use std::{
    ops::{Deref, DerefMut},
    sync::{Arc, Mutex, PoisonError},
};

use super::SeriesReceiver;

/// The place to which a receiver returns when its recording no longer needs it.
#[derive(Debug, Clone, Default)]
pub struct ReceiverReturn(Arc<Mutex<Option<Box<SeriesReceiver>>>>);

impl ReceiverReturn {
    /// Takes the receiver, if it is there.
    pub fn take(&self) -> Option<Box<SeriesReceiver>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns true if the receiver is there and has messages of the next series.
    pub fn has_next(&self) -> bool {
        let receiver = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        receiver.as_ref().is_some_and(|receiver| receiver.has_next())
    }

    fn put(&self, receiver: Box<SeriesReceiver>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(receiver);
    }
}

/// A receiver on loan to a recording. When this is dropped, for whatever reason, the receiver goes back.
#[derive(Debug)]
pub struct LentReceiver {
    /// `None` only during the drop.
    receiver: Option<Box<SeriesReceiver>>,
    back: Option<ReceiverReturn>,
}

impl LentReceiver {
    /// Lends a receiver. `back` is `None` if the next series is not recorded.
    pub fn new(receiver: Box<SeriesReceiver>, back: Option<ReceiverReturn>) -> Self {
        LentReceiver { receiver: Some(receiver), back }
    }

    /// Returns true if the next series is recorded.
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
