//! Bare loops: the system calls that the work needs and nothing else. What everything beyond them costs is measured
//! against these.

use std::{
    ffi::CStr,
    hint::black_box,
    io,
    net::UdpSocket,
    os::fd::{AsRawFd, OwnedFd, RawFd},
};

use io_uring::{IoUring, opcode, types};
use nilometer_model::RandomStream;
use nilometer_storage::{Arena, Buffer};

/// One reading of the monotonic clock, in nanoseconds.
#[inline]
fn clock() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes only into `time`.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// An error where a call returned less than it should have.
#[inline]
fn whole(returned: isize, wanted: usize) -> io::Result<()> {
    match usize::try_from(returned) {
        Ok(moved) if moved == wanted => Ok(()),
        Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// Random blocks that fill the buffer, from a file of so many blocks: one `pread` and one reading of the clock each.
pub(crate) fn random_reads(
    file: &OwnedFd,
    buffer: &mut Buffer,
    blocks: u64,
    operations: u64,
    mut offsets: RandomStream,
) -> io::Result<()> {
    let (fd, length, mut moved) = (file.as_raw_fd(), buffer.len(), 0);
    for _ in 0..operations {
        let offset = offsets.below(blocks) * length as u64;
        // SAFETY: the buffer has `length` bytes, and it is borrowed for the whole call.
        let count = unsafe { libc::pread(fd, buffer.as_mut_ptr().cast(), length, offset.cast_signed()) };
        whole(count, length)?;
        moved += length;
        black_box(clock());
    }
    black_box(moved);
    Ok(())
}

/// The whole file in blocks that fill a buffer, from the first to the last, the buffers in turn; made durable.
pub(crate) fn write_file(file: &OwnedFd, buffers: &[Buffer], size: u64) -> io::Result<()> {
    let offsets = (0..size).step_by(buffers[0].len());
    for (offset, buffer) in offsets.zip(buffers.iter().cycle()) {
        // SAFETY: the buffer has so many bytes, and it is borrowed for the whole call.
        let count = unsafe {
            libc::pwrite(file.as_raw_fd(), buffer.as_ptr().cast(), buffer.len(), offset.cast_signed())
        };
        whole(count, buffer.len())?;
    }
    // SAFETY: no memory is handed over.
    whole(unsafe { libc::fsync(file.as_raw_fd()) } as isize, 0)
}

/// The whole file in blocks that fill the buffer, from the first to the last.
pub(crate) fn read_file(file: &OwnedFd, buffer: &mut Buffer, size: u64) -> io::Result<()> {
    let (fd, length) = (file.as_raw_fd(), buffer.len());
    for offset in (0..size).step_by(length) {
        // SAFETY: the buffer has `length` bytes, and it is borrowed for the whole call.
        let count = unsafe { libc::pread(fd, buffer.as_mut_ptr().cast(), length, offset.cast_signed()) };
        whole(count, length)?;
    }
    Ok(())
}

/// A ring with one registered file and registered memory.
pub(crate) struct Ring {
    // Dropped first: the kernel lets go before the memory and the file go.
    queue: IoUring,
    memory: Vec<Buffer>,
    _file: OwnedFd,
}

impl Ring {
    /// As many buffers of a block as there may be reads in flight.
    pub(crate) fn new(file: OwnedFd, depth: usize, block: usize) -> io::Result<Self> {
        let queue = IoUring::builder()
            .setup_single_issuer()
            .setup_coop_taskrun()
            .build(depth.next_power_of_two() as u32)?;
        queue.submitter().register_files(&[file.as_raw_fd()])?;
        let (arena, memory) = Arena::shared_out(depth, block);
        let (start, bytes) = arena.region();
        let region = libc::iovec { iov_base: start.cast(), iov_len: bytes };
        // SAFETY: the buffers keep the arena alive, and the ring is dropped before them.
        unsafe { queue.submitter().register_buffers(&[region])? };
        Ok(Ring { queue, memory, _file: file })
    }

    /// Random blocks: all that is free is handed over, then at least one is waited for, with one reading of the clock.
    pub(crate) fn random_reads(
        &mut self,
        blocks: u64,
        operations: u64,
        mut offsets: RandomStream,
    ) -> io::Result<()> {
        let mut free: Vec<usize> = (0..self.memory.len()).collect();
        let (mut sent, mut received) = (0, 0);
        while received < operations {
            while sent < operations
                && let Some(index) = free.pop()
            {
                self.send(index, offsets.below(blocks));
                sent += 1;
            }
            self.queue.submit_and_wait(1)?;
            black_box(clock());
            for entry in self.queue.completion() {
                let index = entry.user_data() as usize;
                whole(entry.result() as isize, self.memory[index].len())?;
                free.push(index);
                received += 1;
            }
        }
        Ok(())
    }

    #[inline]
    fn send(&mut self, index: usize, block: u64) {
        let memory = &mut self.memory[index];
        let length = memory.len();
        let entry = opcode::ReadFixed::new(types::Fixed(0), memory.as_mut_ptr(), length as u32, 0)
            .offset(block * length as u64)
            .build()
            .user_data(index as u64);
        // SAFETY: the memory lives as long as the ring, and is used again only when its read is completed.
        unsafe { self.queue.submission().push(&entry) }.expect("the ring has room for every buffer");
    }
}

/// What a walk came upon.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) files: u64,
    pub(crate) directories: u64,
    pub(crate) bytes: u64,
}

/// Lists the named directory and all below it, and looks at every entry. `listings` has a buffer for each level.
pub(crate) fn walk(parent: RawFd, name: &CStr, listings: &mut [Buffer], seen: &mut Seen) -> io::Result<()> {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: the name ends with a NUL.
    let directory = checked(unsafe { libc::openat(parent, name.as_ptr(), flags) })?;
    seen.directories += 1;
    let (listing, deeper) = listings.split_first_mut().expect("a buffer for each level");
    loop {
        // SAFETY: the kernel writes at most `len` bytes into the listing, which is borrowed for the whole call.
        let count =
            unsafe { libc::syscall(libc::SYS_getdents64, directory, listing.as_mut_ptr(), listing.len()) };
        let filled = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        if filled == 0 {
            break;
        }
        look(directory, &listing[..filled], deeper, seen)?;
    }
    close(directory)
}

/// Looks at each entry of a listing (`linux_dirent64`: length at 16, name at 19).
fn look(directory: RawFd, mut listing: &[u8], deeper: &mut [Buffer], seen: &mut Seen) -> io::Result<()> {
    while listing.len() > 19 {
        let length = usize::from(u16::from_ne_bytes([listing[16], listing[17]]));
        let name = CStr::from_bytes_until_nul(&listing[19..length]).expect("the kernel ends every name");
        listing = &listing[length..];
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let stat = stat(directory, name)?;
        if stat.st_mode & libc::S_IFMT == libc::S_IFDIR {
            walk(directory, name, deeper, seen)?;
        } else {
            seen.files += 1;
            seen.bytes += stat.st_size.cast_unsigned();
        }
    }
    Ok(())
}

/// An error where a call returned less than zero.
#[inline]
fn checked(returned: libc::c_int) -> io::Result<libc::c_int> {
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(returned) }
}

/// Looks at the named entry, not through a symlink.
#[inline]
pub(crate) fn stat(directory: RawFd, name: &CStr) -> io::Result<libc::stat> {
    // SAFETY: all zeroes is a valid stat.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: the name ends with a NUL, and the kernel writes only into `stat`.
    let returned =
        unsafe { libc::fstatat(directory, name.as_ptr(), &raw mut stat, libc::AT_SYMLINK_NOFOLLOW) };
    checked(returned).map(|_| stat)
}

/// Makes the named file, which must not exist, and closes it.
#[inline]
pub(crate) fn create(directory: RawFd, name: &CStr) -> io::Result<()> {
    let flags = libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: the name ends with a NUL.
    close(checked(unsafe { libc::openat(directory, name.as_ptr(), flags, 0o644) })?)
}

/// Gives the named file another name in the same directory.
#[inline]
pub(crate) fn rename(directory: RawFd, old: &CStr, new: &CStr) -> io::Result<()> {
    // SAFETY: both names end with a NUL.
    checked(unsafe { libc::renameat(directory, old.as_ptr(), directory, new.as_ptr()) }).map(drop)
}

/// Removes the named file.
#[inline]
pub(crate) fn unlink(directory: RawFd, name: &CStr) -> io::Result<()> {
    // SAFETY: the name ends with a NUL.
    checked(unsafe { libc::unlinkat(directory, name.as_ptr(), 0) }).map(drop)
}

#[inline]
fn close(file: RawFd) -> io::Result<()> {
    // SAFETY: the descriptor was opened by the caller and is used no more.
    checked(unsafe { libc::close(file) }).map(drop)
}

/// So many messages, these in turn, each cut by the kernel into packets of `segment` bytes: one `send` each.
pub(crate) fn send_segments<'a>(
    socket: &UdpSocket,
    messages: impl Iterator<Item = &'a [u8]>,
    segment: usize,
) -> io::Result<()> {
    set_number(socket.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, segment)?;
    for message in messages {
        whole(socket.send(message)?.cast_signed(), message.len())?;
    }
    Ok(())
}

/// Lets the kernel put packets of one size together for a socket, with so many bytes of room.
pub(crate) fn receive_segments(socket: RawFd, room: usize) -> io::Result<()> {
    set_number(socket, libc::SOL_UDP, libc::UDP_GRO, 1)?;
    receive_room(socket, room)
}

fn set_number(socket: RawFd, level: libc::c_int, name: libc::c_int, number: usize) -> io::Result<()> {
    let number = libc::c_int::try_from(number).unwrap_or(libc::c_int::MAX);
    // SAFETY: the kernel reads the four bytes of one number.
    checked(unsafe { libc::setsockopt(socket, level, name, (&raw const number).cast(), 4) }).map(drop)
}

/// Receives packets until none comes for as long as the socket's time limit, up to 64 with a call of `recvmmsg` into the
/// same memory again and again. How many.
pub(crate) fn receive_batches(socket: &UdpSocket, packet: usize) -> io::Result<u64> {
    const BATCH: usize = 64;
    let mut memory = vec![0_u8; BATCH * packet];
    let mut pieces: Vec<libc::iovec> = memory
        .chunks_exact_mut(packet)
        .map(|chunk| libc::iovec { iov_base: chunk.as_mut_ptr().cast(), iov_len: packet })
        .collect();
    let mut headers: Vec<libc::mmsghdr> = Vec::new();
    for piece in &mut pieces {
        // SAFETY: zero is a value for all of its numbers and pointers.
        let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
        (header.msg_hdr.msg_iov, header.msg_hdr.msg_iovlen) = (std::ptr::from_mut(piece), 1);
        headers.push(header);
    }
    let mut packets = 0;
    loop {
        let (fd, flags) = (socket.as_raw_fd(), libc::MSG_WAITFORONE);
        // SAFETY: every header points to a piece, and every piece to a part of the memory of its own.
        let came =
            unsafe { libc::recvmmsg(fd, headers.as_mut_ptr(), BATCH as u32, flags, std::ptr::null_mut()) };
        match checked(came) {
            Ok(came) => packets += u64::from(came.cast_unsigned()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(packets),
            Err(error) => return Err(error),
        }
    }
}

/// The same with messages that the kernel joined from packets of this size, one with a call.
pub(crate) fn receive_joined(socket: &UdpSocket, packet: usize) -> io::Result<u64> {
    let mut memory = vec![0_u8; 1 << 16];
    let mut packets = 0;
    loop {
        match socket.recv(&mut memory) {
            Ok(length) => packets += length.div_ceil(packet) as u64,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(packets),
            Err(error) => return Err(error),
        }
    }
}

/// Gives a socket so many bytes of room for packets that wait.
pub(crate) fn receive_room(socket: RawFd, room: usize) -> io::Result<()> {
    let forced = set_number(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, room);
    forced.or_else(|_| set_number(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, room))
}
