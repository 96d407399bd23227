//! Reads and sets options of TCP sockets that are plain memory.

use std::{io, net::TcpStream, os::fd::AsRawFd};

use nilometer_model::{Nanos, TcpFindings};
use rustix::net::sockopt::{socket_send_buffer_size, tcp_congestion};

/// Requested bytes of `struct tcp_info`; older kernels return fewer.
const ASKED: usize = 232;

// Offsets of fields (linux/tcp.h, `struct tcp_info`, since Linux 4.6). Later fields were appended.
const SEGMENT: usize = 16;
const ROUND_TRIP: usize = 68;
const RETRANSMITTED: usize = 100;
const LEAST_ROUND_TRIP: usize = 148;

/// Reads the state of a connection. Values that the kernel does not provide are 0.
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

/// Makes reads of a connection wait for this many bytes, or for the end of the stream (`SO_RCVLOWAT`). A read
/// that times out returns the bytes that are there.
pub(crate) fn await_bytes(stream: &TcpStream, bytes: usize) -> io::Result<()> {
    let value = libc::c_int::try_from(bytes).map_err(io::Error::other)?;
    // SAFETY: the kernel reads one `c_int` at the address of `value`, which lives longer than the call.
    let returned = unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVLOWAT,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::TcpListener,
        time::Duration,
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

    #[test]
    fn a_read_waits_for_enough_or_for_its_time_or_for_the_end() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut out = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
        let (mut back, _) = listener.accept().expect("it is connected");
        await_bytes(&back, 4096).expect("a number that the kernel takes");
        back.set_read_timeout(Some(Duration::from_millis(50))).expect("a time");
        let mut bytes = [0; 8192];
        out.write_all(&[7; 100]).expect("room");
        assert_eq!(back.read(&mut bytes).expect("after its time"), 100);
        out.write_all(&[7; 5000]).expect("room");
        assert_eq!(back.read(&mut bytes).expect("enough is there"), 5000);
        out.write_all(&[7; 10]).expect("room");
        drop(out);
        assert_eq!(back.read(&mut bytes).expect("no more comes"), 10);
        assert_eq!(back.read(&mut bytes).expect("the end"), 0);
    }
}
