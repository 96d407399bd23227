//! One call of `recvmmsg`: it receives messages into spots, and longer ones also into memory of its own
//! behind the spots.

use std::{
    io,
    mem::zeroed,
    net::{IpAddr, SocketAddr, UdpSocket},
    os::fd::AsRawFd,
    ptr,
};

use libc::{c_int, c_void, iovec, mmsghdr, sockaddr, sockaddr_storage};

/// Memory for the next packet: for its prefix, and for its place in a block.
#[derive(Debug)]
pub struct Spot<'a> {
    /// The prefix, in its exact length; the format drops it.
    pub prefix: &'a mut [u8],
    /// The part of a frame, in its expected length.
    pub body: &'a mut [u8],
}

/// The most messages per call.
pub const MESSAGES_AT_ONCE: usize = 64;
/// The longest message, which is the most that UDP carries.
pub const MESSAGE_BYTES: usize = 1 << 16;
/// Memory for control messages: a segment's size and a count of drops.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; 64]);

/// A message that was received.
#[derive(Debug, Clone, Copy, Default)]
pub struct DatagramMessage {
    /// Its bytes.
    pub length: usize,
    /// The bytes of each packet in it except the last, which may be shorter.
    pub segment: usize,
    /// The packets that the socket dropped since it was opened, if it reports them.
    pub dropped: Option<u32>,
    /// The sender, if the kernel reports it.
    pub sender: Option<SocketAddr>,
}

impl DatagramMessage {
    /// Returns the number of packets it was joined from.
    pub fn packets(&self) -> usize {
        self.length.div_ceil(self.segment.max(1)).max(1)
    }
}

/// Memory for the messages of one call, and the kernel's description of them.
pub struct DatagramBatch {
    headers: Vec<mmsghdr>,
    pieces: Vec<iovec>,
    controls: Vec<Control>,
    senders: Vec<sockaddr_storage>,
    /// The bytes of each message beyond its spots, [`MESSAGE_BYTES`] bytes each.
    rest: Vec<u8>,
}

// SAFETY: the pointers in headers and pieces are rebuilt before each call and used only in it.
unsafe impl Send for DatagramBatch {}

impl std::fmt::Debug for DatagramBatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DatagramBatch").finish_non_exhaustive()
    }
}

impl Default for DatagramBatch {
    fn default() -> Self {
        DatagramBatch::new()
    }
}

impl DatagramBatch {
    /// Creates an empty batch.
    pub fn new() -> Self {
        // SAFETY: these are plain numbers and pointers, for which zero is a valid value.
        let (header, sender): (mmsghdr, sockaddr_storage) = unsafe { (zeroed(), zeroed()) };
        DatagramBatch {
            headers: vec![header; MESSAGES_AT_ONCE],
            pieces: Vec::with_capacity(3 * MESSAGES_AT_ONCE),
            controls: vec![Control([0; 64]); MESSAGES_AT_ONCE],
            senders: vec![sender; MESSAGES_AT_ONCE],
            rest: vec![0; MESSAGES_AT_ONCE * MESSAGE_BYTES],
        }
    }

    /// Receives at most `messages` messages that have arrived, each into the next `each` spots. Returns their
    /// number. It does not wait.
    ///
    /// # Errors
    /// If no message can arrive any more.
    ///
    /// # Panics
    /// If `messages` exceeds [`MESSAGES_AT_ONCE`].
    pub fn receive(
        &mut self,
        socket: &UdpSocket,
        spots: &mut [Spot<'_>],
        each: usize,
        messages: usize,
    ) -> io::Result<usize> {
        assert!(messages <= MESSAGES_AT_ONCE, "the caller takes no more at once");
        self.pieces.clear();
        for (message, rest) in self.rest.chunks_exact_mut(MESSAGE_BYTES).take(messages).enumerate() {
            let begin = (message * each).min(spots.len());
            let end = (begin + each).min(spots.len());
            let first = self.pieces.len();
            for Spot { prefix, body } in &mut spots[begin..end] {
                self.pieces.extend([piece(prefix), piece(body)]);
            }
            self.pieces.push(piece(rest));
            self.headers[message].msg_hdr.msg_iovlen = self.pieces.len() - first;
        }
        self.describe(messages);
        // SAFETY: the headers point to pieces, controls and senders of `self`; the pieces point to memory of
        // `self` and of the spots. All of it is borrowed mutably until this returns, and none of it twice.
        let came = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                messages as u32,
                libc::MSG_DONTWAIT,
                ptr::null_mut(),
            )
        };
        if came >= 0 {
            return Ok(came.cast_unsigned() as usize);
        }
        match io::Error::last_os_error() {
            // An ICMP message reported that an earlier answer of this host did not arrive.
            error
                if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR | libc::ECONNREFUSED)) =>
            {
                Ok(0)
            }
            error => Err(error),
        }
    }

    /// Points the headers of `messages` messages to their pieces, which all exist, and to the other memory
    /// that the kernel writes. Each pointer is derived from the whole of its memory. After that no reference
    /// to any of it may be made until the call is over, because it would invalidate the pointer.
    fn describe(&mut self, messages: usize) {
        let pieces = self.pieces.as_mut_ptr();
        let controls = self.controls.as_mut_ptr();
        let senders = self.senders.as_mut_ptr();
        let mut first = 0;
        for (message, header) in self.headers[..messages].iter_mut().enumerate() {
            let header = &mut header.msg_hdr;
            header.msg_iov = pieces.wrapping_add(first);
            first += header.msg_iovlen;
            header.msg_control = controls.wrapping_add(message).cast();
            header.msg_controllen = size_of::<Control>();
            header.msg_name = senders.wrapping_add(message).cast();
            header.msg_namelen = size_of::<sockaddr_storage>() as u32;
        }
    }

    /// Returns the description of a message of the last call, by its number.
    pub fn message(&self, number: usize) -> DatagramMessage {
        let length = self.headers[number].msg_len as usize;
        let mut message = DatagramMessage { length, segment: length, ..DatagramMessage::default() };
        self.control(number, |level, name, value| match (level, name) {
            (libc::SOL_UDP, libc::UDP_GRO) => message.segment = value as usize,
            (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => message.dropped = Some(value),
            _ => {}
        });
        message.sender = self.sender(number);
        message
    }

    /// Shows the control messages, each of which is a number of 32 bits here.
    fn control(&self, number: usize, mut show: impl FnMut(c_int, c_int, u32)) {
        let header = &self.headers[number].msg_hdr;
        // SAFETY: the kernel wrote control messages into this memory, and their length into the header. The
        // functions stay within it, and a number is read only if the message is long enough for one.
        unsafe {
            let mut control = libc::CMSG_FIRSTHDR(header);
            while !control.is_null() {
                let cmsghdr = &*control;
                if cmsghdr.cmsg_len >= libc::CMSG_LEN(4) as usize {
                    let value = ptr::read_unaligned(libc::CMSG_DATA(control).cast());
                    show(cmsghdr.cmsg_level, cmsghdr.cmsg_type, value);
                }
                control = libc::CMSG_NXTHDR(header, control);
            }
        }
    }

    fn sender(&self, number: usize) -> Option<SocketAddr> {
        // SAFETY: the kernel wrote an address into this memory, which is long enough for any.
        unsafe { socket_address_at(ptr::from_ref(&self.senders[number]).cast()) }
    }

    /// Returns the packets of a message that was received without spots.
    pub fn packets(&self, number: usize) -> impl Iterator<Item = &[u8]> {
        let DatagramMessage { length, segment, .. } = self.message(number);
        self.rest[number * MESSAGE_BYTES..][..length.min(MESSAGE_BYTES)].chunks(segment.max(1))
    }

    /// Appends the bytes of a message, from its spots and the memory behind them.
    pub fn gather(&self, number: usize, spots: &[Spot<'_>], length: usize, into: &mut Vec<u8>) {
        let end = into.len() + length;
        let mut add = |bytes: &[u8]| {
            let count = bytes.len().min(end - into.len());
            into.extend_from_slice(&bytes[..count]);
        };
        for Spot { prefix, body } in spots {
            add(prefix);
            add(body);
        }
        add(&self.rest[number * MESSAGE_BYTES..][..MESSAGE_BYTES]);
    }
}

/// Returns the address of a host, if it is an internet address.
///
/// # Safety
///
/// `address` is null, or points to an address of the length that its family requires.
pub(crate) unsafe fn address_at(address: *const sockaddr) -> Option<IpAddr> {
    // SAFETY: the caller guarantees the same.
    unsafe { socket_address_at(address) }.map(|address| address.ip())
}

/// Returns the address and port of a host, if it is an internet address.
///
/// # Safety
///
/// The same as for [`address_at`].
unsafe fn socket_address_at(address: *const sockaddr) -> Option<SocketAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: it is not null, so the caller guarantees an address, which begins with its family.
    match c_int::from(unsafe { ptr::read_unaligned(&raw const (*address).sa_family) }) {
        libc::AF_INET => {
            // SAFETY: the caller guarantees an address of this family.
            let address: libc::sockaddr_in = unsafe { ptr::read_unaligned(address.cast()) };
            let port = u16::from_be(address.sin_port);
            Some((IpAddr::from(address.sin_addr.s_addr.to_ne_bytes()), port).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let address: libc::sockaddr_in6 = unsafe { ptr::read_unaligned(address.cast()) };
            let port = u16::from_be(address.sin6_port);
            Some((IpAddr::from(address.sin6_addr.s6_addr).to_canonical(), port).into())
        }
        _ => None,
    }
}

fn piece(memory: &mut [u8]) -> iovec {
    iovec { iov_base: memory.as_mut_ptr().cast::<c_void>(), iov_len: memory.len() }
}
