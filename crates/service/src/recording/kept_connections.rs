//! Connections of a series that outlive its recording: the next series may have begun on them, and whatever of it came already
//! would be lost with them.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use nilometer_acquisition::{
    series::{ReceiverReturn, SeriesReceiver},
    transport::zeromq::ZmqEndpoint,
};

use crate::error::OperatorLog;

/// The connections, while no recording has them, and their ends.
#[derive(Debug, Clone, Default)]
pub struct KeptConnections {
    pub(super) receiver: ReceiverReturn,
    ends: Arc<Mutex<Vec<ZmqEndpoint>>>,
    begun: Arc<AtomicBool>,
}

impl KeptConnections {
    /// Takes the connections, if they are those to these ends; from now on the ends are these. Others are closed.
    pub(super) fn take(&self, ends: &[ZmqEndpoint], log: OperatorLog) -> Option<Box<SeriesReceiver>> {
        let mut kept = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        let are_same = *kept == ends;
        *kept = ends.to_vec();
        let receiver = self.receiver.take()?;
        if !are_same && receiver.has_next() {
            log("a series that began on other connections is not recorded: they are closed");
        }
        Some(receiver).filter(|_| are_same)
    }

    /// A series began on the connections.
    pub(super) fn begin(&self) {
        self.begun.store(true, Ordering::Relaxed);
    }

    /// Whether a series began since this was asked last. If none did and a recording can't be prepared, nor can the next.
    pub fn take_begun(&self) -> bool {
        self.begun.swap(false, Ordering::Relaxed)
    }

    /// Another series began, and waits for its recording.
    pub(crate) fn has_next(&self) -> bool {
        self.receiver.has_next()
    }

    /// Closes the connections, unless another series began on them.
    pub(crate) fn close_unused(&self) {
        if !self.has_next() {
            drop(self.receiver.take());
        }
    }
}
