//! The sockets that the recordings of several data streams share, because their senders send to the same ports.

use std::{
    fmt, io,
    sync::{Arc, Mutex, PoisonError},
};

use nilometer_intake::transport::{
    SenderNetwork, Transport,
    udp::{Listening, ROUTE_BYTES, RoutedInlet},
};

use crate::error::{ServiceError, caused};

/// One recording's share of the sockets.
#[derive(Debug, Clone)]
pub(super) struct StreamRoute {
    shared: Arc<SharedSockets>,
    /// The number of the data stream.
    number: usize,
}

/// The sockets of all data streams. The first recording that is prepared opens them.
struct SharedSockets {
    senders: Vec<Vec<SenderNetwork>>,
    opened: Mutex<Option<Vec<Option<RoutedInlet>>>>,
}

impl fmt::Debug for SharedSockets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SharedSockets").field("senders", &self.senders).finish_non_exhaustive()
    }
}

impl StreamRoute {
    /// A route for the data stream of each of these lists of senders.
    pub(super) fn all(senders: Vec<Vec<SenderNetwork>>) -> Vec<Self> {
        let count = senders.len();
        let shared = Arc::new(SharedSockets { senders, opened: Mutex::default() });
        (0..count).map(|number| StreamRoute { shared: shared.clone(), number }).collect()
    }

    /// The bytes of packets that may wait for one recording, apart from the kernel.
    pub(super) fn memory() -> u64 {
        ROUTE_BYTES
    }

    /// The packets of this data stream. Each route has them once.
    ///
    /// # Errors
    /// The sockets can't be opened at `at`.
    pub(super) fn inlet(&self, sockets: &[Listening], at: &str) -> Result<Box<dyn Transport>, ServiceError> {
        self.opened(sockets).map(|inlet| Box::new(inlet) as Box<dyn Transport>).map_err(|error| {
            let text = format!("can't listen at {at}: name an address of this machine and a free port");
            ServiceError::AskedWrongly(caused(&text, &error))
        })
    }

    fn opened(&self, sockets: &[Listening]) -> io::Result<RoutedInlet> {
        let mut opened = self.shared.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if opened.is_none() {
            let all = RoutedInlet::open_all(sockets, &self.shared.senders)?;
            *opened = Some(all.into_iter().map(Some).collect());
        }
        let own = opened.as_mut().and_then(|all| all[self.number].take());
        own.ok_or_else(|| io::Error::other("another recording has these packets"))
    }
}
