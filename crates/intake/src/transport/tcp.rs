//! Sends frames over TCP: their bytes one after the other, without the packets' headers.

use std::{
    io::{self, IoSlice, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use super::{Outlet, Sent};
use nilometer_wire::Packet;

/// One TCP connection.
#[derive(Debug)]
pub struct TcpOutlet {
    stream: TcpStream,
    room: u64,
    sent: Sent,
}

/// Timeout for connecting and for each write.
const PATIENCE: Duration = Duration::from_secs(10);
/// Number of packets handed over at once.
const BURST: usize = 16;

impl TcpOutlet {
    /// Connects, and turns off Nagle's algorithm: the stream is paced already.
    pub fn connect(to: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&to, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let room = rustix::net::sockopt::socket_send_buffer_size(&stream)? as u64;
        Ok(TcpOutlet { stream, room, sent: Sent::default() })
    }

    /// Hands over the bodies of these packets, with as few calls as it takes.
    fn hand_over(&mut self, packets: &[Packet<'_>]) -> io::Result<()> {
        let mut bodies: Vec<_> = packets.iter().map(|packet| IoSlice::new(packet.body)).collect();
        let mut rest = bodies.as_mut_slice();
        while !rest.is_empty() {
            self.sent.calls += 1;
            match self.stream.write_vectored(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(taken) => IoSlice::advance_slices(&mut rest, taken),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(io::Error::new(
                        io::ErrorKind::TimedOut,
                        "the other end accepts no more data",
                    ));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Outlet for TcpOutlet {
    fn send(&mut self, packets: &[Packet<'_>]) -> io::Result<()> {
        self.hand_over(packets)?;
        self.sent.packets += packets.len() as u64;
        self.sent.bytes += packets.iter().map(|packet| packet.body.len() as u64).sum::<u64>();
        Ok(())
    }

    fn burst(&self, _packet_size: usize) -> usize {
        BURST
    }

    fn room(&self) -> u64 {
        self.room
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
