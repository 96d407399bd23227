//! Logs refused connections and messages while the recorder awaits a series. An operator who named the wrong
//! address sees the detector among them, and does not wait in vain.

use std::{
    cell::RefCell,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

use nilometer_intake::{series::SeriesTraffic, transport::zeromq::ZmqCounts};

use crate::error::OperatorLog;

/// The refusals while the recorder awaits a series, and those already logged.
#[derive(Debug)]
pub(super) struct AwaitedRefusals {
    live: Arc<Mutex<SeriesTraffic>>,
    said: RefCell<SaidRefusals>,
}

#[derive(Debug, Default)]
struct SaidRefusals {
    addresses: Vec<IpAddr>,
    no_memory: u64,
}

impl AwaitedRefusals {
    /// Follows the traffic of a receiver.
    pub(super) fn new(live: Arc<Mutex<SeriesTraffic>>) -> Self {
        AwaitedRefusals { live, said: RefCell::default() }
    }

    /// Logs news: each address once, and the first message without memory.
    pub(super) fn tell(&self, log: OperatorLog) {
        let counted = self.live.lock().unwrap_or_else(PoisonError::into_inner).counted.clone();
        self.said.borrow_mut().news(&counted).iter().for_each(|line| log(line));
    }
}

impl SaidRefusals {
    /// The lines that are not logged yet.
    fn news(&mut self, counted: &ZmqCounts) -> Vec<String> {
        let mut lines = Vec::new();
        for address in &counted.refused.addresses {
            if !self.addresses.contains(address) {
                self.addresses.push(*address);
                lines.push(format!("refused sender {address}: --allow does not name it"));
            }
        }
        if counted.no_memory > 0 && self.no_memory == 0 {
            lines.push(
                "refused a message: its data beside pixels, such as masks, exceed half of --buffer (a quarter \
                 unless --allow names the sender): raise --buffer"
                    .to_owned(),
            );
        }
        self.no_memory = counted.no_memory;
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_and_the_want_of_memory_are_said_once() {
        let mut said = SaidRefusals::default();
        let mut counted = ZmqCounts::default();
        assert!(said.news(&counted).is_empty());
        counted.refused.addresses.push([10, 0, 0, 9].into());
        let lines = said.news(&counted);
        assert_eq!(lines, ["refused sender 10.0.0.9: --allow does not name it"]);
        counted.no_memory = 2;
        assert!(said.news(&counted)[0].contains("--buffer"));
        counted.no_memory = 3;
        assert!(said.news(&counted).is_empty());
    }
}
