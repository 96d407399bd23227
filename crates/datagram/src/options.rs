//! Socket options: requested values, and the values that the kernel grants.

use std::{
    ffi::CString,
    io,
    mem::size_of_val,
    net::{SocketAddr, UdpSocket},
    os::fd::AsRawFd,
};

use libc::c_int;

/// Sets an option whose value is plain memory.
pub(crate) fn set<T: Copy>(socket: &UdpSocket, level: c_int, name: c_int, value: T) -> io::Result<()> {
    let length = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes of `value`, which is alive for the whole call.
    let returned =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), length) };
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Reads an option that is a number.
pub(crate) fn get(socket: &UdpSocket, level: c_int, name: c_int) -> io::Result<c_int> {
    get_all(socket, level, name).map(|[value]: [c_int; 1]| value)
}

/// Reads an option of `COUNT` numbers; numbers that the kernel does not know are 0.
pub(crate) fn get_all<const COUNT: usize>(
    socket: &UdpSocket,
    level: c_int,
    name: c_int,
) -> io::Result<[c_int; COUNT]> {
    let mut values = [0; COUNT];
    let mut length = size_of_val(&values) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `values`, and the length back.
    let returned = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, name, (&raw mut values).cast(), &raw mut length)
    };
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(values) }
}

/// Requests a send buffer, beyond the limit of the system if this user may. Returns the size granted. The
/// kernel includes its own bookkeeping, so it grants twice the number passed to it.
pub(crate) fn send_room(socket: &UdpSocket, bytes: u64) -> io::Result<u64> {
    let wished = c_int::try_from(bytes / 2).unwrap_or(c_int::MAX);
    if set(socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, wished).is_err() {
        set(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, wished)?;
    }
    get(socket, libc::SOL_SOCKET, libc::SO_SNDBUF).map(|given| u64::from(given.cast_unsigned()))
}

/// Returns true if the kernel cuts one large message into packets (UDP GSO).
pub(crate) fn cuts_segments(socket: &UdpSocket) -> bool {
    get(socket, libc::SOL_UDP, libc::UDP_SEGMENT).is_ok()
}

/// Sets the size at which the kernel cuts messages, in bytes; 0 for no cuts.
///
/// # Errors
/// If the kernel can't cut messages.
pub fn set_segment(socket: &UdpSocket, bytes: usize) -> io::Result<()> {
    set(socket, libc::SOL_UDP, libc::UDP_SEGMENT, c_int::try_from(bytes).unwrap_or(0))
}

/// Sets the number of routers that a packet to a group may pass.
pub(crate) fn set_hops(socket: &UdpSocket, to: SocketAddr, hops: u8) -> io::Result<()> {
    let (level, name) = match to {
        SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_MULTICAST_TTL),
        SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_HOPS),
    };
    set(socket, level, name, c_int::from(hops))
}

/// Sets the interface through which packets to a group leave.
pub(crate) fn set_interface(socket: &UdpSocket, to: SocketAddr, index: u32) -> io::Result<()> {
    let index = index.cast_signed();
    match to {
        SocketAddr::V4(_) => {
            let any = libc::in_addr { s_addr: libc::INADDR_ANY };
            let request = libc::ip_mreqn { imr_multiaddr: any, imr_address: any, imr_ifindex: index };
            set(socket, libc::IPPROTO_IP, libc::IP_MULTICAST_IF, request)
        }
        SocketAddr::V6(_) => set(socket, libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_IF, index),
    }
}

/// Returns the number of a named interface.
pub fn interface_index(name: &str) -> io::Result<u32> {
    let name = CString::new(name)?;
    // SAFETY: the name ends with a NUL and is alive for the whole call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}
