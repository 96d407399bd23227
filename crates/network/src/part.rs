//! One rank's part in a trial. It listens for incoming flows, connects outgoing ones, and runs all of them at
//! the same time. Each flow of packets has its own thread; streams share a number of threads that suits them.

use std::{
    collections::BTreeSet,
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket},
    thread,
};

use nilometer_datagram::UdpOutlet;
use nilometer_model::{FlowEnd, Nanos, NetworkProtocol, NetworkTraffic};
use nilometer_storage::Clock;
use rustix::time::{ClockId, clock_gettime};

use crate::{
    connection::{Hello, accept, connect},
    socket_settings::{set_receiving, set_sending},
    span::Span,
    tcp::{self, FlowStream},
    udp,
};

/// The sockets for this rank's incoming flows.
#[derive(Debug)]
enum Arrivals {
    Streams(TcpListener),
    Datagrams(Vec<(usize, UdpSocket)>),
}

/// This rank's ends of a trial's flows.
#[derive(Debug)]
pub(crate) struct Part<'a> {
    traffic: &'a NetworkTraffic,
    rank: u32,
    arrivals: Arrivals,
}

/// This rank's ends of flows, connected.
#[derive(Debug)]
pub(crate) struct ConnectedPart {
    ends: Vec<FlowThread>,
    rate: u64,
    trial: u64,
}

/// The ends of flows that one thread serves.
#[derive(Debug)]
enum FlowThread {
    SendStreams(Vec<FlowStream>),
    ReceiveStreams(Vec<FlowStream>),
    SendDatagrams(usize, UdpOutlet),
    ReceiveDatagrams(usize, UdpSocket),
}

/// Maximum number of threads that send streams, and the same for receiving: half the number of processors.
/// The kernel's work for a stream takes at least as much time as the thread's own.
fn stream_threads() -> usize {
    (thread::available_parallelism().map_or(1, Into::into) / 2).max(1)
}

/// Distributes streams to threads in turn.
fn dealt(streams: Vec<FlowStream>, threads: usize) -> Vec<Vec<FlowStream>> {
    let mut dealt: Vec<Vec<FlowStream>> = Vec::new();
    dealt.resize_with(threads.min(streams.len()), Vec::new);
    let count = dealt.len();
    for (number, stream) in streams.into_iter().enumerate() {
        dealt[number % count].push(stream);
    }
    dealt
}

/// Any address of this machine, with the IP version of the trial: a machine may have the other one switched
/// off.
fn anywhere(traffic: &NetworkTraffic) -> SocketAddr {
    if traffic.version_six { (Ipv6Addr::UNSPECIFIED, 0).into() } else { (Ipv4Addr::UNSPECIFIED, 0).into() }
}

impl<'a> Part<'a> {
    /// Opens the listening sockets.
    pub(crate) fn listen(traffic: &'a NetworkTraffic, rank: u32) -> io::Result<Self> {
        let arrivals = match traffic.protocol {
            NetworkProtocol::Tcp => {
                let listener = TcpListener::bind(anywhere(traffic))?;
                set_receiving(&listener, &traffic.settings)?;
                Arrivals::Streams(listener)
            }
            NetworkProtocol::Udp => {
                let to_here = numbers(traffic, |flow| flow.to == rank);
                let sockets = to_here.map(|flow| Ok((flow, udp::inlet(anywhere(traffic))?)));
                Arrivals::Datagrams(sockets.collect::<io::Result<_>>()?)
            }
        };
        Ok(Part { traffic, rank, arrivals })
    }

    /// The port of each incoming flow, by its number.
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

    /// Connects outgoing flows and accepts incoming ones. All ranks do so at the same time.
    pub(crate) fn connect(self, addresses: &[SocketAddr], clock: Clock) -> io::Result<ConnectedPart> {
        let Part { traffic, rank, arrivals } = self;
        let from_here = numbers(traffic, |flow| flow.from == rank);
        let coming: BTreeSet<usize> = numbers(traffic, |flow| flow.to == rank).collect();
        let ends = match arrivals {
            Arrivals::Streams(listener) => thread::scope(|scope| {
                let accepted = scope.spawn(move || accept(&listener, traffic.trial, coming, clock));
                let sent = from_here.map(|flow| stream_to(addresses[flow], flow, traffic));
                let sent = sent.collect::<io::Result<Vec<_>>>()?;
                let accepted = accepted.join().expect("it does not panic")?;
                let received = accepted.into_iter().map(|(flow, stream)| FlowStream { flow, stream });
                io::Result::Ok(streams(sent, received.collect()))
            })?,
            Arrivals::Datagrams(sockets) => {
                let sent =
                    from_here.map(|flow| Ok(FlowThread::SendDatagrams(flow, udp::outlet(addresses[flow])?)));
                let mut ends = sent.collect::<io::Result<Vec<_>>>()?;
                ends.extend(
                    sockets.into_iter().map(|(flow, socket)| FlowThread::ReceiveDatagrams(flow, socket)),
                );
                ends
            }
        };
        Ok(ConnectedPart { ends, rate: traffic.rate, trial: traffic.trial })
    }
}

fn streams(sent: Vec<FlowStream>, mut received: Vec<FlowStream>) -> Vec<FlowThread> {
    received.sort_by_key(|stream| stream.flow);
    let threads = stream_threads();
    let sending = dealt(sent, threads).into_iter().map(FlowThread::SendStreams);
    sending.chain(dealt(received, threads).into_iter().map(FlowThread::ReceiveStreams)).collect()
}

fn stream_to(address: SocketAddr, flow: usize, traffic: &NetworkTraffic) -> io::Result<FlowStream> {
    let stream = connect(address, Hello { trial: traffic.trial, flow: flow as u32 })?;
    set_sending(&stream, &traffic.settings)?;
    Ok(FlowStream { flow, stream })
}

/// The numbers of flows for which `holds` returns true.
fn numbers(
    traffic: &NetworkTraffic,
    holds: impl Fn(&nilometer_model::NetworkFlow) -> bool,
) -> impl Iterator<Item = usize> {
    traffic.flows.iter().enumerate().filter(move |(_, flow)| holds(flow)).map(|(number, _)| number)
}

impl FlowThread {
    fn flows(&self) -> Vec<usize> {
        match self {
            FlowThread::SendStreams(streams) | FlowThread::ReceiveStreams(streams) => {
                streams.iter().map(|stream| stream.flow).collect()
            }
            FlowThread::SendDatagrams(flow, _) | FlowThread::ReceiveDatagrams(flow, _) => vec![*flow],
        }
    }

    /// Moves data until the end, on its own thread.
    fn run(self, span: Span, rate: u64, trial: u64) -> Vec<FlowEnd> {
        let before = processor_time();
        let ends = match self {
            FlowThread::SendStreams(streams) => tcp::send(streams, span),
            FlowThread::ReceiveStreams(streams) => tcp::receive(streams, span),
            FlowThread::SendDatagrams(flow, outlet) => vec![udp::send(outlet, flow, trial, rate, span)],
            FlowThread::ReceiveDatagrams(flow, socket) => vec![udp::receive(&socket, flow, trial, span)],
        };
        shared_out(processor_time().since(before), ends)
    }
}

/// Divides a thread's processor time among its flows in proportion to their bytes.
fn shared_out(processor: Nanos, mut ends: Vec<FlowEnd>) -> Vec<FlowEnd> {
    let all: u64 = ends.iter().map(|end| end.bytes).sum();
    let flows = ends.len() as u128;
    for end in &mut ends {
        let share = match all {
            0 => u128::from(processor.0) / flows,
            _ => u128::from(processor.0) * u128::from(end.bytes) / u128::from(all),
        };
        end.processor = Nanos(share as u64);
    }
    ends
}

/// Processor time of this thread.
fn processor_time() -> Nanos {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Nanos(time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned())
}

impl ConnectedPart {
    /// Runs all flows from the agreed start.
    pub(crate) fn run(self, span: Span) -> Vec<FlowEnd> {
        let ConnectedPart { ends, rate, trial } = self;
        thread::scope(|scope| {
            let begin = |of: FlowThread| {
                let flows = of.flows();
                let spawned = thread::Builder::new().spawn_scoped(scope, move || of.run(span, rate, trial));
                (flows, spawned)
            };
            let running: Vec<_> = ends.into_iter().map(begin).collect();
            running.into_iter().flat_map(|(flows, spawned)| ended(&flows, spawned)).collect()
        })
    }
}

fn ended(flows: &[usize], spawned: io::Result<thread::ScopedJoinHandle<'_, Vec<FlowEnd>>>) -> Vec<FlowEnd> {
    let failed = |error: &io::Error| {
        let why = Some(format!("no thread: {error}"));
        flows.iter().map(|&flow| FlowEnd { flow, failed: why.clone(), ..FlowEnd::default() }).collect()
    };
    spawned.map_or_else(|error| failed(&error), |thread| thread.join().expect("it does not panic"))
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn what_a_thread_took_is_shared_out_by_what_its_flows_carried() {
        let end = |flow, bytes| FlowEnd { flow, bytes, ..FlowEnd::default() };
        let shares =
            |ends| shared_out(Nanos(900), ends).iter().map(|end| end.processor.0).collect::<Vec<_>>();
        assert_eq!(shares(vec![end(0, 100), end(1, 0), end(2, 200)]), [300, 0, 600]);
        assert_eq!(shares(vec![end(0, 0), end(1, 0)]), [450, 450]);
        assert!(shares(Vec::new()).is_empty());
    }

    #[test]
    fn streams_are_dealt_out_in_turn_to_no_more_threads_than_there_are() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let to = listener.local_addr().expect("it is bound");
        let stream = |flow| FlowStream { flow, stream: TcpStream::connect(to).expect("it listens") };
        let dealt_to = |count: usize, threads| {
            let dealt = dealt((0..count).map(stream).collect(), threads);
            dealt.iter().map(|of| of.iter().map(|of| of.flow).collect()).collect::<Vec<Vec<usize>>>()
        };
        assert_eq!(dealt_to(5, 2), [vec![0, 2, 4], vec![1, 3]]);
        assert_eq!(dealt_to(2, 4), [[0], [1]]);
        assert!(dealt_to(0, 4).is_empty());
    }
}
