//! How the two ends of a flow find each other: the receiver listens, the sender connects and sends the flow's
//! number.

use std::{
    collections::BTreeSet,
    io::{self, ErrorKind, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
    time::Duration,
};

use nilometer_model::Nanos;
use nilometer_storage::Clock;

/// The first bytes from a sender: the trial's number, which no stranger knows, and the flow's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) trial: u64,
    pub(crate) flow: u32,
}

/// Length of a hello in bytes.
const HELLO: usize = 12;
/// Timeout for a machine that does not answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Interval between looks for connections.
const LOOK: Duration = Duration::from_millis(1);

impl Hello {
    fn bytes(self) -> [u8; HELLO] {
        let mut bytes = [0; HELLO];
        bytes[..8].copy_from_slice(&self.trial.to_be_bytes());
        bytes[8..].copy_from_slice(&self.flow.to_be_bytes());
        bytes
    }

    fn of(bytes: [u8; HELLO]) -> Self {
        let (trial, flow) = bytes.split_at(8);
        Hello {
            trial: u64::from_be_bytes(trial.try_into().expect("eight")),
            flow: u32::from_be_bytes(flow.try_into().expect("four")),
        }
    }
}

/// Connects a flow.
pub(crate) fn connect(to: SocketAddr, hello: Hello) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&to, PATIENCE)?;
    stream.write_all(&hello.bytes())?;
    Ok(stream)
}

/// Accepts connections until all flows of a trial are there. Other connections are closed.
pub(crate) fn accept(
    listener: &TcpListener,
    trial: u64,
    mut missing: BTreeSet<usize>,
    clock: Clock,
) -> io::Result<Vec<(usize, TcpStream)>> {
    listener.set_nonblocking(true)?;
    let ends = clock.now() + Nanos::from_millis(PATIENCE.as_millis() as u64);
    let mut flows = Vec::new();
    while !missing.is_empty() {
        if clock.now() >= ends {
            let why = format!("{} flows did not come", missing.len());
            return Err(io::Error::new(ErrorKind::TimedOut, why));
        }
        match listener.accept() {
            Ok((stream, _)) => {
                flows.extend(of_trial(stream, trial).filter(|(flow, _)| missing.remove(flow)));
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(LOOK),
            Err(error) => return Err(error),
        }
    }
    Ok(flows)
}

fn of_trial(mut stream: TcpStream, trial: u64) -> Option<(usize, TcpStream)> {
    let mut bytes = [0; HELLO];
    stream.set_nonblocking(false).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(1))).ok()?;
    stream.read_exact(&mut bytes).ok()?;
    let hello = Hello::of(bytes);
    (hello.trial == trial).then_some((hello.flow as usize, stream))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_known_by_their_numbers_and_strangers_turned_away() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let to = listener.local_addr().expect("it is bound");
        let hello = |trial, flow| Hello { trial, flow };
        let mut held = Vec::new();
        for (trial, flow) in [(7, 2), (8, 1), (7, 2), (7, 9), (7, 5)] {
            held.push(connect(to, hello(trial, flow)).expect("it listens"));
        }
        let flows = accept(&listener, 7, BTreeSet::from([2, 5]), Clock::start()).expect("they came");
        let numbers: Vec<usize> = flows.iter().map(|(flow, _)| *flow).collect();
        assert_eq!(numbers, [2, 5]);
        assert_eq!(Hello::of(hello(u64::MAX - 1, 3).bytes()), hello(u64::MAX - 1, 3));
    }
}
