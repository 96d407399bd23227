//! Connections of a series that outlive its recording. The next series may have begun on them: to close them
//! would lose its first messages.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use nilometer_intake::{
    series::{ReceiverReturn, SeriesReceiver},
    transport::{Allowed, zeromq::ZmqEndpoint},
};

use crate::error::OperatorLog;

/// The ends of connections and the permitted senders. A recording with other terms does not take kept
/// connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConnectionTerms {
    pub(super) ends: Vec<ZmqEndpoint>,
    pub(super) allowed: Allowed,
}

/// The connections, while no recording has them, and their terms.
#[derive(Debug, Clone, Default)]
pub struct KeptConnections {
    pub(super) receiver: ReceiverReturn,
    terms: Arc<Mutex<Option<ConnectionTerms>>>,
    begun: Arc<AtomicBool>,
}

impl KeptConnections {
    /// Takes the connections if they have these terms, and closes them otherwise. It keeps the terms for the
    /// next call.
    pub(super) fn take(&self, terms: &ConnectionTerms, log: OperatorLog) -> Option<Box<SeriesReceiver>> {
        let mut kept = self.terms.lock().unwrap_or_else(PoisonError::into_inner);
        let are_same = kept.as_ref() == Some(terms);
        *kept = Some(terms.clone());
        let receiver = self.receiver.take()?;
        if !are_same && receiver.has_next() {
            log("a series that began on other connections is not recorded: they are closed");
        }
        Some(receiver).filter(|_| are_same)
    }

    /// Records that a series began on the connections.
    pub(super) fn begin(&self) {
        self.begun.store(true, Ordering::Relaxed);
    }

    /// Returns true if a series began since the last call. If none did and a recording can't be prepared, the
    /// next can't be either.
    pub fn take_begun(&self) -> bool {
        self.begun.swap(false, Ordering::Relaxed)
    }

    /// Returns true if another series began and waits for its recording.
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

#[cfg(test)]
mod tests {
    use nilometer_intake::{
        series::{LentReceiver, SeriesUntil},
        transport::zeromq::{MessageLimits, PullSocket},
    };

    use super::*;

    #[test]
    fn connections_are_used_again_only_on_the_same_terms() {
        let kept = KeptConnections::default();
        let terms = |allowed: &str| ConnectionTerms {
            ends: Vec::new(),
            allowed: Allowed::Named(vec![allowed.parse().expect("an address")]),
        };
        let give_back = || {
            let socket = PullSocket::open(&[], MessageLimits::default()).expect("it has no ends");
            let receiver = SeriesReceiver::new(socket, SeriesUntil::default());
            drop(LentReceiver::new(Box::new(receiver), Some(kept.receiver.clone())));
        };
        assert!(kept.take(&terms("10.0.0.2"), |_| {}).is_none(), "there are none yet");
        give_back();
        assert!(kept.take(&terms("10.0.0.2"), |_| {}).is_some());
        give_back();
        assert!(kept.take(&terms("10.0.0.3"), |_| {}).is_none(), "others were allowed on them");
        assert!(kept.take(&terms("10.0.0.3"), |_| {}).is_none(), "they are closed");
    }
}
