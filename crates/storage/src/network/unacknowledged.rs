//! The bytes of a TCP connection that its receiver has not acknowledged.

use std::{
    io,
    os::fd::{AsFd, AsRawFd},
};

/// Returns the number of bytes written to a TCP socket that the receiver's kernel has not acknowledged (`SIOCOUTQ`
/// of `tcp(7)`). The end of the stream counts as one more.
///
/// # Errors
/// The kernel's, such as for a file that is no socket.
pub fn unacknowledged(socket: impl AsFd) -> io::Result<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: an open descriptor, and an integer that lives until the call returns. TIOCOUTQ has the number of
    // SIOCOUTQ, and both write an int.
    let code = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if code != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(u64::try_from(bytes).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::{
        fs::File,
        io::{Read, Write},
        net::{Shutdown, TcpListener, TcpStream},
        thread,
    };

    use super::*;

    #[test]
    fn bytes_count_until_the_receiver_has_taken_them() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut sender = listener.local_addr().and_then(TcpStream::connect).expect("it listens");
        let (mut receiver, _) = listener.accept().expect("it connects");
        sender.set_nonblocking(true).expect("a socket");
        // Until no buffer on the way has room.
        let mut written = 0;
        while let Ok(more) = sender.write(&[7; 1 << 12]) {
            written += more;
        }
        sender.shutdown(Shutdown::Write).expect("it is connected");
        let waiting = unacknowledged(&sender).expect("a socket");
        assert!(waiting > 1 && waiting as usize <= written + 1, "{waiting} of {written}");
        let mut taken = Vec::new();
        receiver.read_to_end(&mut taken).expect("it is connected");
        assert_eq!(taken.len(), written);
        while unacknowledged(&sender).expect("a socket") > 0 {
            thread::yield_now();
        }
    }

    #[test]
    fn a_file_has_no_receiver() {
        let file = File::open("/dev/null").expect("it is everywhere");
        assert!(unacknowledged(&file).is_err());
    }
}
