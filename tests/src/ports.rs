//! Ports for programs that a test starts. A program that gets a port by its number binds it later than the test has
//! chosen it, and in between the kernel gives a port that is free to any other socket.

use std::{
    net::{TcpListener, UdpSocket},
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixListener},
    },
    sync::{Mutex, PoisonError},
};

/// Ports that the kernel gives to nobody unasked (`ip_local_port_range` begins at 32768), in blocks of [`BLOCK`].
const FIRST: u16 = 10_240;
const END: u16 = 32_768;
const BLOCK: u16 = 64;

/// A block of ports that only this process takes from.
struct PortBlock {
    next: u16,
    end: u16,
    /// Other processes of this machine find the name taken, until this one ends.
    _held: UnixListener,
}

/// A port of this machine at which nobody listens, over UDP and TCP. No other test gets the same one.
pub fn free_port() -> u16 {
    free_ports(1)
}

/// The first of `count` such ports that follow each other; at most 64.
pub fn free_ports(count: u16) -> u16 {
    static TAKEN: Mutex<Vec<PortBlock>> = Mutex::new(Vec::new());
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let found = taken.last_mut().and_then(|block| block.take(count));
        if let Some(first) = found {
            return first;
        }
        taken.push(PortBlock::hold());
    }
}

impl PortBlock {
    /// Holds a block that no process has. Processes that run at the same time look at different blocks first.
    fn hold() -> Self {
        let blocks = (END - FIRST) / BLOCK;
        let begin = (std::process::id() * 7 % u32::from(blocks)) as u16;
        let mut order = (0..blocks).map(|at| FIRST + (begin + at) % blocks * BLOCK);
        let found = order.find_map(|first| held(first).map(|held| (first, held)));
        let (first, held) = found.expect("a block of ports that no other test has");
        PortBlock { next: first, end: first + BLOCK, _held: held }
    }

    fn take(&mut self, count: u16) -> Option<u16> {
        while self.end - self.next >= count {
            let first = self.next;
            self.next += count;
            if (first..first + count).all(is_free) {
                return Some(first);
            }
        }
        None
    }
}

/// Takes the name of a block of ports. The network namespace that has the ports has the name too.
fn held(first: u16) -> Option<UnixListener> {
    let name = format!("nilometer-test-ports-{first}");
    let name = SocketAddr::from_abstract_name(name).expect("a short name");
    UnixListener::bind_addr(&name).ok()
}

fn is_free(port: u16) -> bool {
    UdpSocket::bind(("0.0.0.0", port)).is_ok() && TcpListener::bind(("0.0.0.0", port)).is_ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_port_is_given_once_and_can_be_bound() {
        let mut given = BTreeSet::new();
        for count in (0..100).map(|at| 1 + at % 5) {
            let first = free_ports(count);
            for port in first..first + count {
                assert!((FIRST..END).contains(&port) && given.insert(port), "{port} again");
                assert!(UdpSocket::bind(("127.0.0.1", port)).is_ok(), "{port}");
            }
        }
    }

    #[test]
    fn a_block_that_another_process_holds_is_left_to_it() {
        let first = PortBlock::hold();
        assert!(held(first.end - BLOCK).is_none(), "the name is taken");
        assert_ne!(PortBlock::hold().next, first.next);
    }
}
