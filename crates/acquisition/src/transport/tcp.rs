//! How frames leave over TCP: their bytes one after the other, without what stands in front of packets.

use std::{
    io::{self, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use super::{Outlet, Sent};
use crate::format::Packet;

/// One connection.
#[derive(Debug)]
pub struct TcpOutlet {
    stream: TcpStream,
    sent: Sent,
}

/// Who does not answer for so long is not there.
const PATIENCE: Duration = Duration::from_secs(10);
/// Packets that are handed over at once.
const BURST: usize = 16;

impl TcpOutlet {
    /// Connects. What is sent goes at once: it is paced already.
    pub fn connect(to: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&to, PATIENCE)?;
        stream.set_nodelay(true)?;
        Ok(TcpOutlet { stream, sent: Sent::default() })
    }
}

impl Outlet for TcpOutlet {
    fn send(&mut self, packets: &[Packet<'_>]) -> io::Result<()> {
        for packet in packets {
            self.stream.write_all(packet.body)?;
            self.sent.packets += 1;
            self.sent.bytes += packet.body.len() as u64;
            self.sent.calls += 1;
        }
        Ok(())
    }

    fn burst(&self, _packet_size: usize) -> usize {
        BURST
    }

    fn totals(&self) -> Sent {
        self.sent
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Read, net::TcpListener};

    use super::*;

    #[test]
    fn bodies_come_one_after_the_other() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut outlet = TcpOutlet::connect(listener.local_addr().expect("it has one")).expect("it listens");
        let (mut taken, _) = listener.accept().expect("it connects");
        let packets = [Packet { prefix: &[9, 9], body: b"one" }, Packet { prefix: &[], body: b"two" }];
        outlet.send(&packets).expect("it is there");
        assert_eq!((outlet.totals().packets, outlet.totals().bytes), (2, 6));
        drop(outlet);
        let mut all = Vec::new();
        taken.read_to_end(&mut all).expect("it ends");
        assert_eq!(all, b"onetwo");
    }
}
