//! The two ends of a flow of TCP: bytes as fast as the other end takes them.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::{Shutdown, TcpStream},
    time::Duration,
};

use nilometer_model::{FlowEnd, Nanos, Seed};

use crate::{
    options::{await_bytes, findings},
    part::Span,
};

/// Bytes that are sent with a call: what is sent again and again stays in the processor's cache.
const BLOCK: usize = 64 << 10;
/// Bytes that a receiver waits for: to be woken for each row of packets costs a fifth more. A link that brings fewer in the
/// time of [`LOOK`] is looked at then.
const ENOUGH: usize = 256 << 10;
/// A call that can't go on ends after this, to look at the clock.
const LOOK: Duration = Duration::from_millis(100);

/// Sends until the end of the span.
pub(crate) fn send(mut stream: TcpStream, flow: usize, span: Span) -> FlowEnd {
    let mut end = FlowEnd { flow, ..FlowEnd::default() };
    let outcome = push(&mut stream, &mut end, span);
    end.connection = findings(&stream).ok();
    let outcome = outcome.and_then(|()| stream.shutdown(Shutdown::Write));
    end.failed = outcome.err().map(|error| format!("sending failed: {error}"));
    end
}

fn push(stream: &mut TcpStream, end: &mut FlowEnd, span: Span) -> io::Result<()> {
    let mut block = vec![0; BLOCK];
    // A link may compress.
    Seed(0).stream().fill(&mut block);
    stream.set_write_timeout(Some(LOOK))?;
    span.wait();
    loop {
        let now = span.clock.now();
        end.last = now.since(span.from);
        if now >= span.until {
            return was_there(end.bytes);
        }
        match stream.write(&block) {
            Ok(bytes) => end.bytes += bytes as u64,
            Err(error) if is_for_later(&error) => {}
            Err(error) => return Err(error),
        }
    }
}

/// A flow of nothing says nothing of the network: its thread had no processor as long as it lasted, or nothing was taken.
fn was_there(sent: u64) -> io::Result<()> {
    if sent > 0 {
        Ok(())
    } else {
        Err(io::Error::new(ErrorKind::TimedOut, "nothing could be sent in its time"))
    }
}

/// Receives until the other end has sent all, or is silent for too long behind the span.
pub(crate) fn receive(mut stream: TcpStream, flow: usize, span: Span) -> FlowEnd {
    let mut end = FlowEnd { flow, ..FlowEnd::default() };
    end.failed = pull(&mut stream, &mut end, span).err().map(|error| format!("receiving failed: {error}"));
    end
}

fn pull(stream: &mut TcpStream, end: &mut FlowEnd, span: Span) -> io::Result<()> {
    let mut block = vec![0; ENOUGH];
    await_bytes(stream, ENOUGH)?;
    stream.set_read_timeout(Some(LOOK))?;
    loop {
        match stream.read(&mut block) {
            Ok(0) => return Ok(()),
            Ok(bytes) => {
                end.bytes += bytes as u64;
                end.last = span.clock.now().since(span.from);
            }
            Err(error) if is_for_later(&error) => span.check(end.last)?,
            Err(error) => return Err(error),
        }
    }
}

/// Nothing is there yet, or no room.
pub(crate) fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Behind the end of what is sent, a flow may be silent for so long.
pub(crate) const SILENCE: Nanos = Nanos::from_millis(10_000);
