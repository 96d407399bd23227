//! The settings of sockets of TCP that a plan asks for: the limits of this process, and how a socket gets them.

use std::{
    fs, io,
    net::{Ipv4Addr, TcpListener, TcpStream},
    os::fd::AsFd,
};

use nilometer_cluster::SocketLimits;
use nilometer_model::{Bytes, CongestionControl, FlowSettings};
use nilometer_plan::NetworkRun;
use rustix::net::sockopt::{
    set_socket_recv_buffer_size, set_socket_send_buffer_size, set_tcp_congestion, socket_recv_buffer_size,
    socket_send_buffer_size,
};

/// The congestion controls of the kernel, separated by spaces.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// More than any kernel gives.
const ENDLESS: usize = 1 << 30;

/// Finds the limits of this process's sockets by a socket without a connection. Empty if it gets none.
pub(crate) fn socket_limits() -> SocketLimits {
    let Ok(socket) = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)) else { return SocketLimits::default() };
    let available = fs::read_to_string(AVAILABLE).unwrap_or_default();
    let names = available.split_whitespace().filter_map(|name| name.parse::<CongestionControl>().ok());
    // The kernel keeps some of them for users with CAP_NET_ADMIN.
    let congestion = names.filter(|name| set_tcp_congestion(&socket, name.name()).is_ok()).collect();
    SocketLimits { congestion, buffer: largest_buffer(&socket).unwrap_or_default() }
}

/// The kernel doubles the number, for its own bookkeeping (socket(7)).
fn largest_buffer(socket: &TcpListener) -> io::Result<Bytes> {
    set_socket_send_buffer_size(socket, ENDLESS)?;
    set_socket_recv_buffer_size(socket, ENDLESS)?;
    let most = socket_send_buffer_size(socket)?.min(socket_recv_buffer_size(socket)?);
    Ok(Bytes(most as u64 / 2))
}

/// The reason why sockets with these limits can't make a run, without the machine; `None` if they can.
pub(crate) fn why_not(limits: &SocketLimits, run: &NetworkRun) -> Option<String> {
    if let Some(name) = run.congestion.iter().find(|name| !limits.congestion.contains(name)) {
        let names: Vec<&str> = limits.congestion.iter().map(CongestionControl::name).collect();
        return Some(format!("congestion = \"{name}\": this process may use {}", names.join(", ")));
    }
    too_large(limits, run)
}

/// The reason why sockets can't have the buffers of a run, without the machine; `None` if they can.
pub(crate) fn too_large(limits: &SocketLimits, run: &NetworkRun) -> Option<String> {
    let large = run.buffers.iter().find(|bytes| **bytes > limits.buffer)?;
    let most = limits.buffer;
    Some(format!("buffer = \"{large}\": at most {most} by net.core.rmem_max and net.core.wmem_max"))
}

/// Gives the settings to a socket that will accept connections, which inherit them.
pub(crate) fn set_receiving(listener: &TcpListener, settings: &FlowSettings) -> io::Result<()> {
    let Some(bytes) = settings.buffer else { return Ok(()) };
    set_socket_recv_buffer_size(listener, bytes.0 as usize)?;
    has_come(bytes, socket_recv_buffer_size(listener)?)
}

/// Gives the settings to a socket that will send.
pub(crate) fn set_sending(stream: &TcpStream, settings: &FlowSettings) -> io::Result<()> {
    if let Some(congestion) = settings.congestion {
        set_tcp_congestion(stream.as_fd(), congestion.name())?;
    }
    let Some(bytes) = settings.buffer else { return Ok(()) };
    set_socket_send_buffer_size(stream, bytes.0 as usize)?;
    has_come(bytes, socket_send_buffer_size(stream)?)
}

/// Fails if a socket has less than the buffer that it was to get: the kernel reports no error.
fn has_come(wanted: Bytes, there: usize) -> io::Result<()> {
    let there = Bytes(there as u64 / 2);
    if there >= wanted {
        return Ok(());
    }
    Err(io::Error::other(format!("the kernel gave a socket a buffer of {there} instead of {wanted}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_gets_what_its_process_may_use_and_fails_with_more() {
        let limits = socket_limits();
        assert!(!limits.congestion.is_empty() && limits.buffer >= Bytes(64 << 10), "{limits:?}");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let stream = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
        for congestion in &limits.congestion {
            let settings =
                FlowSettings { congestion: Some(*congestion), buffer: Some(limits.buffer), processes: None };
            set_sending(&stream, &settings).expect("it may use it");
            set_receiving(&listener, &settings).expect("it may use it");
            let found = crate::options::findings(&stream).expect("a connection");
            assert_eq!(found.congestion, congestion.name());
            assert_eq!(found.send_buffer, 2 * limits.buffer.0);
        }
        let beyond = FlowSettings { buffer: Some(Bytes(2 * limits.buffer.0)), ..FlowSettings::default() };
        let refused = set_sending(&stream, &beyond).expect_err("more than the kernel gives").to_string();
        assert!(refused.contains("instead of"), "{refused}");
    }
}
