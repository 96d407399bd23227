//! What one rank does in a trial: it listens for the flows that come to it, connects those that it sends, and runs all of
//! them at the same time, each with a thread of its own.

use std::{
    collections::BTreeSet,
    io::{self, ErrorKind},
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket},
    thread,
};

use nilometer_model::{FlowEnd, Nanos, NetworkProtocol, NetworkTraffic};
use nilometer_storage::Clock;
use rustix::time::{ClockId, clock_gettime};

use crate::{
    connection::{Hello, accept, connect},
    tcp, udp,
};

/// From when until when data are sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) clock: Clock,
    pub(crate) from: Nanos,
    pub(crate) until: Nanos,
}

impl Span {
    /// Returns when it begins.
    pub(crate) fn wait(self) {
        thread::sleep(self.from.since(self.clock.now()).duration());
    }

    /// An error if a flow has been silent for too long behind the end; it last brought something then.
    pub(crate) fn check(self, last: Nanos) -> io::Result<()> {
        let quiet_since = self.until.max(self.from + last);
        let is_given_up = self.clock.now().since(quiet_since) >= tcp::SILENCE;
        if is_given_up { Err(ErrorKind::TimedOut.into()) } else { Ok(()) }
    }
}

/// Where this rank's flows of a trial arrive.
#[derive(Debug)]
enum Arrivals {
    Streams(TcpListener),
    Datagrams(Vec<(usize, UdpSocket)>),
}

/// The ends of a trial's flows that are at this rank.
#[derive(Debug)]
pub(crate) struct Part<'a> {
    traffic: &'a NetworkTraffic,
    rank: u32,
    arrivals: Arrivals,
}

/// The same, connected.
#[derive(Debug)]
pub(crate) struct ConnectedPart {
    ends: Vec<Connection>,
    rate: u64,
    trial: u64,
}

/// One end of a flow.
#[derive(Debug)]
enum Connection {
    SendStream(usize, TcpStream),
    ReceiveStream(usize, TcpStream),
    SendDatagrams(usize, UdpSocket),
    ReceiveDatagrams(usize, UdpSocket),
}

/// Any address of this machine, of the version of IP by which it is reached: a machine may have the other switched off.
fn anywhere(traffic: &NetworkTraffic) -> SocketAddr {
    if traffic.version_six { (Ipv6Addr::UNSPECIFIED, 0).into() } else { (Ipv4Addr::UNSPECIFIED, 0).into() }
}

impl<'a> Part<'a> {
    /// Listens.
    pub(crate) fn listen(traffic: &'a NetworkTraffic, rank: u32) -> io::Result<Self> {
        let arrivals = match traffic.protocol {
            NetworkProtocol::Tcp => Arrivals::Streams(TcpListener::bind(anywhere(traffic))?),
            NetworkProtocol::Udp => {
                let to_here = numbers(traffic, |flow| flow.to == rank);
                let sockets = to_here.map(|flow| Ok((flow, udp::inlet(anywhere(traffic))?)));
                Arrivals::Datagrams(sockets.collect::<io::Result<_>>()?)
            }
        };
        Ok(Part { traffic, rank, arrivals })
    }

    /// The port of each flow that comes here, by its number.
    pub(crate) fn ports(&self) -> io::Result<Vec<(usize, u16)>> {
        match &self.arrivals {
            Arrivals::Streams(listener) => {
                let port = listener.local_addr()?.port();
                Ok(numbers(self.traffic, |flow| flow.to == self.rank).map(|flow| (flow, port)).collect())
            }
            Arrivals::Datagrams(sockets) => {
                sockets.iter().map(|(flow, socket)| Ok((*flow, socket.local_addr()?.port()))).collect()
            }
        }
    }

    /// Connects what is sent from here, and takes in what comes here. All ranks do so at the same time.
    pub(crate) fn connect(self, addresses: &[SocketAddr], clock: Clock) -> io::Result<ConnectedPart> {
        let Part { traffic, rank, arrivals } = self;
        let from_here = numbers(traffic, |flow| flow.from == rank);
        let coming: BTreeSet<usize> = numbers(traffic, |flow| flow.to == rank).collect();
        let mut ends = match arrivals {
            Arrivals::Streams(listener) => thread::scope(|scope| {
                let accepted = scope.spawn(move || accept(&listener, traffic.trial, coming, clock));
                let sent = from_here.map(|flow| stream_to(addresses[flow], flow, traffic.trial));
                let mut ends = sent.collect::<io::Result<Vec<_>>>()?;
                let accepted = accepted.join().expect("it does not panic")?;
                ends.extend(
                    accepted.into_iter().map(|(flow, stream)| Connection::ReceiveStream(flow, stream)),
                );
                io::Result::Ok(ends)
            })?,
            Arrivals::Datagrams(sockets) => {
                let sent =
                    from_here.map(|flow| Ok(Connection::SendDatagrams(flow, udp::outlet(addresses[flow])?)));
                let mut ends = sent.collect::<io::Result<Vec<_>>>()?;
                ends.extend(
                    sockets.into_iter().map(|(flow, socket)| Connection::ReceiveDatagrams(flow, socket)),
                );
                ends
            }
        };
        ends.sort_by_key(Connection::flow);
        Ok(ConnectedPart { ends, rate: traffic.rate, trial: traffic.trial })
    }
}

fn stream_to(address: SocketAddr, flow: usize, trial: u64) -> io::Result<Connection> {
    let stream = connect(address, Hello { trial, flow: flow as u32 })?;
    Ok(Connection::SendStream(flow, stream))
}

/// The numbers of flows for which this holds.
fn numbers(
    traffic: &NetworkTraffic,
    holds: impl Fn(&nilometer_model::NetworkFlow) -> bool,
) -> impl Iterator<Item = usize> {
    traffic.flows.iter().enumerate().filter(move |(_, flow)| holds(flow)).map(|(number, _)| number)
}

impl Connection {
    fn flow(&self) -> usize {
        match self {
            Connection::SendStream(flow, _)
            | Connection::ReceiveStream(flow, _)
            | Connection::SendDatagrams(flow, _)
            | Connection::ReceiveDatagrams(flow, _) => *flow,
        }
    }

    /// Moves data to the end, on a thread of its own.
    fn run(self, span: Span, rate: u64, trial: u64) -> FlowEnd {
        let before = processor_time();
        let end = match self {
            Connection::SendStream(flow, stream) => tcp::send(stream, flow, span),
            Connection::ReceiveStream(flow, stream) => tcp::receive(stream, flow, span),
            Connection::SendDatagrams(flow, socket) => udp::send(&socket, flow, trial, rate, span),
            Connection::ReceiveDatagrams(flow, socket) => udp::receive(&socket, flow, trial, span),
        };
        FlowEnd { processor: processor_time().since(before), ..end }
    }
}

/// Of this thread.
fn processor_time() -> Nanos {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Nanos(time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned())
}

impl ConnectedPart {
    /// Runs all flows, from the agreed start on.
    pub(crate) fn run(self, span: Span) -> Vec<FlowEnd> {
        let ConnectedPart { ends, rate, trial } = self;
        thread::scope(|scope| {
            let running: Vec<_> = ends
                .into_iter()
                .map(|connection| {
                    let flow = connection.flow();
                    let spawned =
                        thread::Builder::new().spawn_scoped(scope, move || connection.run(span, rate, trial));
                    (flow, spawned)
                })
                .collect();
            running.into_iter().map(|(flow, spawned)| ended(flow, spawned)).collect()
        })
    }
}

fn ended(flow: usize, spawned: io::Result<thread::ScopedJoinHandle<'_, FlowEnd>>) -> FlowEnd {
    match spawned {
        Ok(thread) => thread.join().expect("it does not panic"),
        Err(error) => FlowEnd { flow, failed: Some(format!("no thread: {error}")), ..FlowEnd::default() },
    }
}
