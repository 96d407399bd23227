//! Receives a stream of another recorder and stores it: `net2file`, and `record` over TCP.

use std::{
    io::{self, Read},
    net::TcpListener,
};

use nilometer_intake::transport::Allowed;

use super::{line::PeerLine, progress::TransferProgress};

/// The most bytes that are received and stored at once.
const PIECE: usize = 1 << 20;

/// Stores a stream in the order of its bytes.
pub(crate) trait PeerSink: Send {
    /// Stores the next bytes. It leaves the reserve free.
    fn take(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Syncs the stored bytes, so that they survive a loss of power. No bytes follow.
    fn finish(&mut self) -> io::Result<()>;
}

/// Waits for a sender, and stores its stream until it ends.
pub(crate) fn receive(
    listener: TcpListener,
    senders: &Allowed,
    sink: &mut dyn PeerSink,
    progress: &TransferProgress,
) -> io::Result<()> {
    let accepted = PeerLine::accept(&listener, senders, progress);
    // The next transfer may listen at the same port.
    drop(listener);
    let received = accepted.and_then(|mut line| {
        progress.connect();
        receive_all(&mut line, sink, progress)
    });
    // After a failure too: the bytes that came are kept.
    let finished = sink.finish();
    received.and(finished)
}

fn receive_all(
    line: &mut PeerLine<'_>,
    sink: &mut dyn PeerSink,
    progress: &TransferProgress,
) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        progress.give_way()?;
        let count = match line.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        sink.take(&piece[..count])?;
        progress.add(count as u64);
    }
}
