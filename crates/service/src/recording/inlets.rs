//! Receivers of packets: a socket for each port, read by one thread or by several.

use std::net::SocketAddr;

use nilometer_intake::transport::{
    Transport,
    udp::{Listening, UdpInlet, UdpThreads},
};
use nilometer_storage::process::processors;

use crate::error::{ServiceError, caused, require};

/// The number of threads that receive at each port, and their processors.
#[derive(Debug, Clone, Copy)]
pub(super) struct InletThreads<'a> {
    /// The number of threads. With 1, the thread that places packets also takes them from the kernel.
    pub(super) each: usize,
    /// The processors: the first for the thread that places packets, the others for those that receive. If the
    /// list is empty, threads may run anywhere.
    pub(super) cpus: &'a [usize],
}

/// The most threads at a port.
const MOST: usize = 64;

impl InletThreads<'_> {
    fn check(self, at: SocketAddr) -> Result<(), ServiceError> {
        let there = processors();
        for cpu in self.cpus {
            let named: Vec<_> = there.iter().map(ToString::to_string).collect();
            require(there.contains(cpu), || {
                format!("--cpus {cpu}: this program may run on {}", named.join(", "))
            })?;
        }
        let each = self.each;
        require((1..=MOST).contains(&each), || {
            format!("--receive-threads {each}: write a number from 1 to {MOST}")
        })?;
        require(each == 1 || !at.ip().is_multicast(), || {
            format!(
                "--receive-threads {each}: {at} is a group, of which the kernel gives each packet to every thread: leave \
                 it out"
            )
        })
    }

    /// The processors of the threads that receive.
    fn others(self) -> Vec<usize> {
        let others = self.cpus.get(1..).unwrap_or_default();
        if others.is_empty() { self.cpus.to_vec() } else { others.to_vec() }
    }
}

/// Listens at `ports` neighbouring ports.
pub(super) fn inlets(
    listening: &Listening,
    ports: u16,
    threads: InletThreads<'_>,
) -> Result<Vec<Box<dyn Transport>>, ServiceError> {
    threads.check(listening.at)?;
    let opened = if threads.each == 1 {
        let inlets = UdpInlet::open_all(listening, ports);
        inlets.map(|inlets| inlets.into_iter().map(|inlet| Box::new(inlet) as Box<dyn Transport>).collect())
    } else {
        (0..ports).map(|number| with_threads(listening, number, threads)).collect()
    };
    opened.map_err(|error| {
        let at = listening.at;
        let text = format!("can't listen at udp://{at}: name an address of this machine and a free port");
        ServiceError::AskedWrongly(caused(&text, &error))
    })
}

/// Listens at the port `number` after the first, with threads of its own.
fn with_threads(
    listening: &Listening,
    number: u16,
    threads: InletThreads<'_>,
) -> std::io::Result<Box<dyn Transport>> {
    let mut at = listening.at;
    at.set_port(at.port().saturating_add(number));
    let inlet = UdpThreads::open(&Listening { at, ..listening.clone() }, threads.each, threads.others())?;
    Ok(Box::new(inlet))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_not_be_is_said_before_anything_listens() {
        let refused = |at: &str, each, cpus: &[usize]| {
            let at = at.parse().expect("an address");
            InletThreads { each, cpus }.check(at).expect_err("it can't be").to_string()
        };
        assert!(refused("127.0.0.1:5", 1, &[4000]).starts_with("--cpus 4000: this program may run on "));
        assert!(refused("127.0.0.1:5", 0, &[]).contains("from 1 to 64"));
        assert!(refused("239.1.2.3:5", 2, &[]).contains("is a group"));
        let (at, cpus) = ("127.0.0.1:5".parse().expect("an address"), processors());
        InletThreads { each: 2, cpus: &cpus }.check(at).expect("these are there");
    }
}
