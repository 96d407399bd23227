//! Receivers of packets: a socket for each port, read by one thread or by several.

use std::io;

use nilometer_intake::transport::{
    Transport,
    udp::{Listening, UdpInlet, UdpThreads, UdpTogether},
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

/// The most threads at a port, or at all addresses of one.
const MOST: usize = 64;

impl InletThreads<'_> {
    fn check(self, sockets: &[Listening]) -> Result<(), ServiceError> {
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
        let all = each.saturating_mul(sockets.len());
        require(all <= MOST, || {
            format!(
                "--receive-threads {each}: {} addresses make {all} threads, and {MOST} is the most",
                sockets.len()
            )
        })?;
        let group = sockets.iter().find_map(|socket| socket.groups.first());
        group.filter(|_| each > 1).map_or(Ok(()), |group| {
            Err(ServiceError::AskedWrongly(format!(
                "--receive-threads {each}: {} is a group, of which the kernel gives each packet to every thread: leave \
                 it out",
                group.group
            )))
        })
    }

    /// The processors of the threads that receive.
    fn others(self) -> Vec<usize> {
        let others = self.cpus.get(1..).unwrap_or_default();
        if others.is_empty() { self.cpus.to_vec() } else { others.to_vec() }
    }
}

/// Listens with these sockets, whose addresses are `at`. A single one stands for `ports` neighbouring ports. Several
/// are an address for each port of the instrument, or all addresses of its only port.
pub(super) fn inlets(
    sockets: &[Listening],
    at: &str,
    ports: u16,
    threads: InletThreads<'_>,
) -> Result<Vec<Box<dyn Transport>>, ServiceError> {
    threads.check(sockets)?;
    let opened = match sockets {
        [first] if threads.each == 1 => UdpInlet::open_all(first, ports).map(boxed),
        [first] => (0..ports).map(|number| with_threads(first, number, threads)).collect(),
        _ if ports > 1 && threads.each == 1 => {
            sockets.iter().map(UdpInlet::open).collect::<io::Result<_>>().map(boxed)
        }
        _ if ports > 1 => sockets.iter().map(|socket| with_threads(socket, 0, threads)).collect(),
        _ if threads.each == 1 => UdpTogether::open(sockets).map(|together| boxed(vec![together])),
        _ => UdpThreads::open(sockets, threads.each, threads.others()).map(|threads| boxed(vec![threads])),
    };
    opened.map_err(|error| {
        let text = format!("can't listen at {at}: name an address of this machine and a free port");
        ServiceError::AskedWrongly(caused(&text, &error))
    })
}

fn boxed<T: Transport + 'static>(transports: Vec<T>) -> Vec<Box<dyn Transport>> {
    transports.into_iter().map(|transport| Box::new(transport) as Box<dyn Transport>).collect()
}

/// Listens at the port `number` after the first, with threads of its own.
fn with_threads(
    listening: &Listening,
    number: u16,
    threads: InletThreads<'_>,
) -> io::Result<Box<dyn Transport>> {
    let mut at = listening.at;
    at.set_port(at.port().saturating_add(number));
    let socket = Listening { at, ..listening.clone() };
    Ok(Box::new(UdpThreads::open(&[socket], threads.each, threads.others())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_not_be_is_said_before_anything_listens() {
        let refused = |at: &str, each, cpus: &[usize]| {
            let at = Listening::at(at.parse().expect("an address"));
            InletThreads { each, cpus }.check(&[at]).expect_err("it can't be").to_string()
        };
        assert!(refused("127.0.0.1:5", 1, &[4000]).starts_with("--cpus 4000: this program may run on "));
        assert!(refused("127.0.0.1:5", 0, &[]).contains("from 1 to 64"));
        assert!(refused("239.1.2.3:5", 2, &[]).contains("is a group"));
        let two = ["127.0.0.1:5", "127.0.0.1:6"].map(|at| Listening::at(at.parse().expect("an address")));
        let error = InletThreads { each: 33, cpus: &[] }.check(&two).expect_err("too many").to_string();
        assert!(error.contains("2 addresses make 66 threads, and 64 is the most"), "{error}");
        let (at, cpus) = (Listening::at("127.0.0.1:5".parse().expect("an address")), processors());
        InletThreads { each: 2, cpus: &cpus }.check(&[at]).expect("these are there");
    }
}
