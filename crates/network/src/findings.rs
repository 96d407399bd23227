//! What the kernel says of a TCP connection.

use std::{io, net::TcpStream, os::fd::AsRawFd};

use nilometer_model::{Nanos, TcpFindings};
use rustix::net::sockopt::{socket_send_buffer_size, tcp_congestion};

/// Bytes of `struct tcp_info` that are asked for; older kernels give fewer.
const ASKED: usize = 232;

// Where a field begins (linux/tcp.h, `struct tcp_info`, since Linux 4.6): what came later was put behind.
const SEGMENT: usize = 16;
const ROUND_TRIP: usize = 68;
const RETRANSMITTED: usize = 100;
const LEAST_ROUND_TRIP: usize = 148;

/// What is known of it now. What the kernel does not say is 0.
pub(crate) fn findings(stream: &TcpStream) -> io::Result<TcpFindings> {
    let info = info(stream)?;
    let number = |at: usize| {
        info.get(at..at + 4).map_or(0, |bytes| u32::from_ne_bytes(bytes.try_into().expect("four")))
    };
    let micros = |at| Nanos(u64::from(number(at)) * 1000);
    Ok(TcpFindings {
        retransmitted: number(RETRANSMITTED).into(),
        round_trip: micros(ROUND_TRIP),
        least_round_trip: micros(LEAST_ROUND_TRIP),
        segment: number(SEGMENT),
        congestion: tcp_congestion(stream)?,
        send_buffer: socket_send_buffer_size(stream)? as u64,
    })
}

fn info(stream: &TcpStream) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; ASKED];
    let mut length = ASKED as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `bytes`, and the length back.
    let returned = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            bytes.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if returned < 0 {
        return Err(io::Error::last_os_error());
    }
    bytes.truncate(length as usize);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::TcpListener,
    };

    use super::*;

    #[test]
    fn a_connection_of_this_machine_has_a_round_trip_and_loses_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut out = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
        let (mut back, _) = listener.accept().expect("it is connected");
        let mut bytes = vec![0; 1 << 16];
        for _ in 0..20 {
            out.write_all(&bytes).expect("room");
            back.read_exact(&mut bytes).expect("it comes");
        }
        let found = findings(&out).expect("a connection");
        assert!(found.round_trip > Nanos(0) && found.round_trip < Nanos::from_millis(10_000), "{found:?}");
        assert!(found.least_round_trip <= found.round_trip, "{found:?}");
        assert!(found.segment >= 536 && !found.congestion.is_empty() && found.send_buffer > 0, "{found:?}");
        assert_eq!(found.retransmitted, 0, "{found:?}");
    }
}
