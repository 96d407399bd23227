//! The ends of TCP flows: bytes as fast as the other end takes them.
//!
//! A thread serves several flows and goes to those that are ready, as servers do. With a thread for each of a
//! thousand flows, they would wait for each other's processors.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::{Shutdown, TcpStream},
    time::Duration,
};

use nilometer_model::{FlowEnd, Seed};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};

use crate::{
    options::{await_bytes, findings},
    span::Span,
};

/// Bytes sent with a call: memory that is sent repeatedly stays in the processor's cache.
const BLOCK: usize = 128 << 10;
/// Bytes for which a receiver waits, since waking for each batch of packets costs a fifth more. A link that
/// brings fewer bytes in the time of [`LOOK`] is read then.
const ENOUGH: usize = 256 << 10;
/// Maximum wait before the next look at the clock.
const LOOK: Duration = Duration::from_millis(100);

/// A connected flow, by its number.
#[derive(Debug)]
pub(crate) struct FlowStream {
    pub(crate) flow: usize,
    pub(crate) stream: TcpStream,
}

/// Flows that one thread serves, both open and finished ones.
struct ServedStreams {
    streams: Vec<TcpStream>,
    ends: Vec<FlowEnd>,
    /// The indices of the open flows in both lists.
    open: Vec<usize>,
}

/// Sends on each flow until the end of the span.
pub(crate) fn send(flows: Vec<FlowStream>, span: Span) -> Vec<FlowEnd> {
    let mut served = ServedStreams::of(flows);
    let mut block = vec![0; BLOCK];
    // Random bytes, because a link may compress.
    Seed(0).stream().fill(&mut block);
    span.wait();
    while !served.open.is_empty() && span.clock.now() < span.until {
        let ready = served.await_ready(PollFlags::OUT);
        served.each(&ready, "sending", |stream, end| write(stream, end, &block, span));
    }
    for (stream, end) in served.streams.iter().zip(&mut served.ends) {
        end.connection = findings(stream).ok();
        let closed = was_there(end.bytes).and_then(|()| stream.shutdown(Shutdown::Write));
        let failed = closed.err().map(|error| format!("sending failed: {error}"));
        end.failed = end.failed.take().or(failed);
    }
    served.ends
}

/// Sends a block, or as much of it as the buffer takes.
fn write(mut stream: &TcpStream, end: &mut FlowEnd, block: &[u8], span: Span) -> io::Result<FlowState> {
    let now = span.clock.now();
    if now >= span.until {
        return Ok(FlowState::GoesOn);
    }
    match stream.write(block) {
        Ok(bytes) => {
            end.bytes += bytes as u64;
            end.last = now.since(span.from);
        }
        Err(error) if is_for_later(&error) => {}
        Err(error) => return Err(error),
    }
    Ok(FlowState::GoesOn)
}

/// Reports a flow without bytes as failed, since it says nothing about the network. Either its thread had no
/// processor, or the other end took nothing.
fn was_there(sent: u64) -> io::Result<()> {
    if sent > 0 {
        Ok(())
    } else {
        Err(io::Error::new(ErrorKind::TimedOut, "nothing could be sent in its time"))
    }
}

/// Receives on each flow until its other end has sent all, or is silent for too long after the span.
pub(crate) fn receive(flows: Vec<FlowStream>, span: Span) -> Vec<FlowEnd> {
    let mut served = ServedStreams::of(flows);
    let all = served.open.clone();
    served.each(&all, "receiving", |stream, _| await_bytes(stream, ENOUGH).map(|()| FlowState::GoesOn));
    let mut block = vec![0; ENOUGH];
    while !served.open.is_empty() {
        let ready = served.await_ready(PollFlags::IN);
        // Flows with too few bytes to wake the thread are read when no flow has more.
        let looked_at = if ready.is_empty() { served.open.clone() } else { ready };
        served.each(&looked_at, "receiving", |stream, end| read(stream, end, &mut block, span));
    }
    served.ends
}

fn read(mut stream: &TcpStream, end: &mut FlowEnd, block: &mut [u8], span: Span) -> io::Result<FlowState> {
    match stream.read(block) {
        Ok(0) => return Ok(FlowState::IsOver),
        Ok(bytes) => {
            end.bytes += bytes as u64;
            end.last = span.clock.now().since(span.from);
        }
        Err(error) if is_for_later(&error) => span.check(end.last)?,
        Err(error) => return Err(error),
    }
    Ok(FlowState::GoesOn)
}

/// The state of a flow: open or finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FlowState {
    GoesOn,
    IsOver,
}

impl ServedStreams {
    fn of(flows: Vec<FlowStream>) -> Self {
        let ends = flows.iter().map(|of| FlowEnd { flow: of.flow, ..FlowEnd::default() }).collect();
        let streams: Vec<TcpStream> = flows.into_iter().map(|of| of.stream).collect();
        let mut served = ServedStreams { open: (0..streams.len()).collect(), streams, ends };
        let all = served.open.clone();
        served.each(&all, "connecting", |stream, _| stream.set_nonblocking(true).map(|()| FlowState::GoesOn));
        served
    }

    /// The open flows that are ready. Empty if none is for a while.
    fn await_ready(&self, for_what: PollFlags) -> Vec<usize> {
        let timeout = Timespec { tv_sec: 0, tv_nsec: LOOK.as_nanos() as i64 };
        let polled = |&place: &usize| PollFd::new(&self.streams[place], for_what);
        let mut polled: Vec<PollFd<'_>> = self.open.iter().map(polled).collect();
        match poll(&mut polled, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            // Each flow is then tried, and reports its own error.
            Err(_) => return self.open.clone(),
        }
        let ready = self.open.iter().zip(&polled).filter(|(_, polled)| !polled.revents().is_empty());
        ready.map(|(place, _)| *place).collect()
    }

    /// Runs a step for each of these flows. A flow that fails or is over is no longer served.
    fn each(
        &mut self,
        places: &[usize],
        doing: &str,
        mut step: impl FnMut(&TcpStream, &mut FlowEnd) -> io::Result<FlowState>,
    ) {
        for &place in places {
            let end = &mut self.ends[place];
            let state = step(&self.streams[place], end).unwrap_or_else(|error| {
                end.failed = Some(format!("{doing} failed: {error}"));
                FlowState::IsOver
            });
            if state == FlowState::IsOver {
                self.open.retain(|open| *open != place);
            }
        }
    }
}

/// Returns true if there are no bytes or no buffer space yet.
fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, thread};

    use nilometer_storage::Clock;

    use super::*;
    use nilometer_model::Nanos;

    fn connected(flow: usize) -> (FlowStream, FlowStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let stream = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
        let (other, _) = listener.accept().expect("it is connected");
        (FlowStream { flow, stream }, FlowStream { flow, stream: other })
    }

    fn span(millis: u64) -> Span {
        let clock = Clock::start();
        let from = clock.now() + Nanos::from_millis(20);
        Span { clock, from, until: from + Nanos::from_millis(millis) }
    }

    /// Runs a trial, and a longer one if a flow that can send had no processor during all of it.
    fn until_all_send(failing: usize, trial: impl Fn(Span) -> [Vec<FlowEnd>; 2]) -> [Vec<FlowEnd>; 2] {
        let mut ends = trial(span(200));
        for millis in [1000, 5000] {
            if ends[0][failing..].iter().all(|sent| sent.bytes > 0) {
                break;
            }
            ends = trial(span(millis));
        }
        ends
    }

    #[test]
    fn one_thread_at_each_end_carries_several_flows_whole() {
        let [sent, received] = until_all_send(0, |span| {
            let (out, into): (Vec<_>, Vec<_>) = [4, 7, 9].map(connected).into_iter().unzip();
            thread::scope(|scope| {
                let receiver = scope.spawn(move || receive(into, span));
                [send(out, span), receiver.join().expect("it does not panic")]
            })
        });
        for (sent, received) in sent.iter().zip(&received) {
            assert_eq!((sent.flow, sent.bytes), (received.flow, received.bytes), "{sent:?} {received:?}");
            assert_eq!((&sent.failed, &received.failed), (&None, &None));
            assert!(sent.bytes > 0 && sent.connection.is_some() && received.last > Nanos(0), "{sent:?}");
        }
        assert_eq!(sent.iter().map(|end| end.flow).collect::<Vec<_>>(), [4, 7, 9]);
    }

    #[test]
    fn a_flow_that_is_cut_off_fails_alone() {
        let [sent, received] = until_all_send(1, |span| {
            let (out, into): (Vec<_>, Vec<_>) = [0, 1].map(connected).into_iter().unzip();
            let mut into = into.into_iter();
            drop(into.next().expect("two"));
            thread::scope(|scope| {
                let receiver = scope.spawn(move || receive(into.collect(), span));
                [send(out, span), receiver.join().expect("it does not panic")]
            })
        });
        assert!(sent[0].failed.as_ref().is_some_and(|why| why.starts_with("sending failed: ")), "{sent:?}");
        assert!(sent[1].bytes > 0, "{sent:?}");
        assert_eq!((&sent[1].failed, sent[1].bytes), (&None, received[0].bytes));
        assert_eq!((received[0].flow, &received[0].failed), (1, &None));
    }

    #[test]
    fn what_is_too_little_to_be_woken_for_is_received_too() {
        let (out, into) = connected(0);
        let span = span(0);
        let end = thread::scope(|scope| {
            let receiver = scope.spawn(move || receive(vec![into], span));
            let mut stream = out.stream;
            for _ in 0..3 {
                stream.write_all(&[1; 1000]).expect("room");
                thread::sleep(2 * LOOK);
            }
            drop(stream);
            receiver.join().expect("it does not panic")
        });
        assert_eq!((end[0].bytes, &end[0].failed), (3000, &None));
    }
}
