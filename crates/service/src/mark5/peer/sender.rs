//! Sends a part of a recording or of a file to another recorder: `disk2net` and `file2net`.

use std::{
    io::{self, Write},
    net::SocketAddr,
    ops::Range,
    sync::mpsc::{Receiver, RecvTimeoutError},
};

use super::{
    line::{PeerLine, StreamEnd},
    progress::{TICK, TransferProgress},
    source::PeerSource,
};

/// Bytes that are read and sent at once.
const PIECE: u64 = 1 << 20;

/// Connects, waits for the part to send, and sends it.
pub(crate) fn send(
    source: &PeerSource,
    to: SocketAddr,
    parts: &Receiver<Range<u64>>,
    progress: &TransferProgress,
) -> io::Result<()> {
    let mut line = PeerLine::connect(to, progress)?;
    progress.connect();
    let part = await_part(parts, progress)?;
    line.begin_stream()?;
    match send_part(source, part, &mut line, progress) {
        Ok(()) => line.finish().map(|end| remark(end, progress)),
        Err(error) => {
            line.break_off();
            Err(error)
        }
    }?;
    Ok(())
}

/// Tells the operator that nothing proves the storing, if the receiver did not close the connection.
fn remark(end: StreamEnd, progress: &TransferProgress) {
    if end == StreamEnd::KeptOpen {
        progress
            .remark("the receiver has all bytes and did not close the connection: check that it stored them");
    }
}

fn await_part(parts: &Receiver<Range<u64>>, progress: &TransferProgress) -> io::Result<Range<u64>> {
    loop {
        progress.check()?;
        match parts.recv_timeout(TICK) {
            Ok(part) => return Ok(part),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(io::Error::other("a command ended it")),
        }
    }
}

fn send_part(
    source: &PeerSource,
    part: Range<u64>,
    line: &mut PeerLine<'_>,
    progress: &TransferProgress,
) -> io::Result<()> {
    let reader = source.reader();
    let mut piece = Vec::new();
    let mut at = part.start;
    while at < part.end {
        progress.give_way()?;
        piece.resize(PIECE.min(part.end - at) as usize, 0);
        reader.read(at, &mut piece)?;
        line.write_all(&piece)?;
        at += piece.len() as u64;
        progress.add(piece.len() as u64);
    }
    reader.check()
}
