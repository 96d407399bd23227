//! A small sender of packets to loopback: each has its number, and 1000 bytes that follow from it.

use std::{
    net::{Ipv4Addr, UdpSocket},
    ops::Range,
    path::Path,
    time::Duration,
};

use nilometer_tests::free_port;

/// Sends to one port.
pub(crate) struct Sender {
    socket: UdpSocket,
    port: u16,
}

impl Sender {
    /// To a port at which nobody listens yet.
    pub(crate) fn new() -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        Sender { socket, port: free_port() }
    }

    /// Another sender to the same port, from the address 127.0.0.`host`.
    pub(crate) fn beside(&self, host: u8) -> Self {
        let from = Ipv4Addr::new(127, 0, 0, host);
        Sender {
            socket: UdpSocket::bind((from, 0)).expect("all of 127.0.0.0/8 is this machine"),
            port: self.port,
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Sends these, slowly enough for any recorder. Nobody needs to listen.
    pub(crate) fn send(&self, numbers: Range<u64>) {
        for number in numbers {
            let packet = [&number.to_le_bytes()[..], &body(number)].concat();
            self.send_one(&packet);
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    /// Sends one packet, whatever it is.
    pub(crate) fn send_one(&self, packet: &[u8]) {
        drop(self.socket.send_to(packet, (Ipv4Addr::LOCALHOST, self.port)));
    }
}

/// What stands in a packet behind its number.
fn body(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(125)
}

/// The numbers of the packets in the file of a recording.
pub(crate) fn recorded(directory: &Path, name: &str) -> Vec<u64> {
    let data = std::fs::read(directory.join(name).join(format!("{name}.raw"))).expect("a recording");
    let number = |packet: &[u8]| {
        let number = u64::from_le_bytes(packet[..8].try_into().expect("8 bytes"));
        assert_eq!(packet, body(number), "a packet as it was sent");
        number
    };
    assert_eq!(data.len() % 1000, 0, "whole packets");
    data.chunks_exact(1000).map(number).collect()
}
