//! One set of sockets for several recordings: a thread takes the packets and hands each to the recording of its sender.
//!
//! ```text
//! sockets -> UdpTogether -> route by sender -+-> queue -> RoutedInlet of the recording A
//!                                            +-> queue -> RoutedInlet of the recording B
//! ```
//!
//! Each queue has a bound in bytes. If a recording does not empty its queue, the thread drops its packets and counts
//! them like those that the kernel drops. The other recordings go on. A packet is copied twice more than without
//! routes.

use std::{
    collections::VecDeque,
    io,
    net::SocketAddr,
    ops::Range,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use nilometer_model::Nanos;

use super::{
    super::{Allowed, Received, SenderId, SenderNetwork, Transport, TransportCounts},
    receive::Listening,
    together::UdpTogether,
};
use crate::assembly::Spot;

/// The longest wait for packets before the thread looks whether anybody needs it.
const WAIT: Nanos = Nanos::from_millis(20);
/// The most bytes of packets that wait in the queue of one recording.
pub const ROUTE_BYTES: u64 = 32 << 20;
/// The bytes that a packet counts beside its own: its position, its sender, and the room that lists grow ahead.
const PACKET_LIST: u64 = 64;

/// The packets of one recording that one look brought.
#[derive(Debug, Default)]
struct RoutedBatch {
    bytes: Vec<u8>,
    packets: Vec<Range<usize>>,
    from: Vec<SenderId>,
    /// Upper bound for the packets dropped before these.
    dropped: u64,
}

impl RoutedBatch {
    fn add(&mut self, packet: &[u8], sender: SenderId) {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(packet);
        self.packets.push(begin..self.bytes.len());
        self.from.push(sender);
    }

    /// The bytes that count for the bound of a queue.
    fn size(&self) -> u64 {
        self.bytes.len() as u64 + self.packets.len() as u64 * PACKET_LIST
    }
}

/// The queue of one recording.
#[derive(Debug, Default)]
struct RouteQueue {
    batches: VecDeque<RoutedBatch>,
    size: u64,
    /// Dropped packets that no batch has reported yet.
    unreported: u64,
    counted: TransportCounts,
    /// Packets that found this queue full.
    refused: u64,
}

/// The state that the thread and the inlets share.
#[derive(Debug)]
struct RoutedSockets {
    /// The sockets, until the thread has them.
    idle: Mutex<Option<UdpTogether>>,
    queues: Mutex<RouteQueues>,
    arrived: Condvar,
    /// The number of inlets that are left.
    inlets: AtomicUsize,
    stop: AtomicBool,
    thread: Mutex<Option<JoinHandle<()>>>,
    rules: Vec<Allowed>,
}

/// The queues of all recordings, and the senders that the sockets heard.
#[derive(Debug, Default)]
struct RouteQueues {
    queues: Vec<RouteQueue>,
    senders: Vec<(SenderId, SocketAddr)>,
    /// The reason why no more packets come, if that is so.
    fault: Option<String>,
}

/// The packets of some senders to sockets that several recordings share.
#[derive(Debug)]
pub struct RoutedInlet {
    sockets: Arc<RoutedSockets>,
    route: usize,
    room: u64,
    /// The packets that lie aside.
    taken: RoutedBatch,
}

impl RoutedInlet {
    /// Listens at these addresses. Returns an inlet for each list of senders; a packet goes to the first that has its
    /// sender. The thread begins with the first look, and ends when all inlets are dropped.
    ///
    /// # Errors
    /// An address is not one of this machine, or its port is taken.
    pub fn open_all(addresses: &[Listening], routes: &[Vec<SenderNetwork>]) -> io::Result<Vec<Self>> {
        let allowed = Allowed::Named(routes.concat());
        let allow = |listening: &Listening| Listening { allowed: allowed.clone(), ..listening.clone() };
        let together = UdpTogether::open(&addresses.iter().map(allow).collect::<Vec<_>>())?;
        let room = together.room();
        let mut queues = RouteQueues::default();
        queues.queues.resize_with(routes.len(), RouteQueue::default);
        let sockets = Arc::new(RoutedSockets {
            idle: Mutex::new(Some(together)),
            queues: Mutex::new(queues),
            arrived: Condvar::new(),
            inlets: AtomicUsize::new(routes.len()),
            stop: AtomicBool::new(false),
            thread: Mutex::default(),
            rules: routes.iter().cloned().map(Allowed::Named).collect(),
        });
        let inlet =
            |route| RoutedInlet { sockets: sockets.clone(), route, room, taken: RoutedBatch::default() };
        Ok((0..routes.len()).map(inlet).collect())
    }

    /// Starts the thread, unless another inlet did.
    fn start(&self) -> io::Result<()> {
        let Some(together) = lock(&self.sockets.idle).take() else { return Ok(()) };
        let sockets = self.sockets.clone();
        let run = move || sockets.run(together);
        *lock(&self.sockets.thread) = Some(thread::Builder::new().name("route".into()).spawn(run)?);
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RoutedSockets {
    /// Takes packets and hands them over, until nobody needs them or no more can come.
    fn run(&self, mut together: UdpTogether) {
        let mut batches: Vec<RoutedBatch> = Vec::new();
        batches.resize_with(self.rules.len(), RoutedBatch::default);
        while !self.stop.load(Ordering::Relaxed) {
            if let Err(error) = self.look(&mut together, &mut batches) {
                lock(&self.queues).fault = Some(error.to_string());
                self.arrived.notify_all();
                return;
            }
        }
    }

    fn look(&self, together: &mut UdpTogether, batches: &mut [RoutedBatch]) -> io::Result<()> {
        let received = together.receive(&mut [])?;
        for (number, sender) in together.senders().iter().enumerate() {
            let address = together.sender(*sender);
            let is_of = |rule: &Allowed| address.is_some_and(|address| rule.names(address.ip()));
            if let Some(route) = self.rules.iter().position(is_of) {
                batches[route].add(together.aside(number), *sender);
            }
        }
        self.hand_over(together, received, batches);
        if received.packets() == 0 {
            together.wait(WAIT)?;
        }
        Ok(())
    }

    /// Puts the packets of a look into the queues.
    fn hand_over(&self, together: &UdpTogether, received: Received, batches: &mut [RoutedBatch]) {
        let counted = together.counted();
        let mut all = lock(&self.queues);
        all.note_senders(together);
        for (route, (queue, batch)) in all.queues.iter_mut().zip(batches).enumerate() {
            // Nobody knows whose packets the kernel dropped, so each recording counts them.
            queue.unreported += received.dropped;
            queue.counted = TransportCounts {
                packets: queue.counted.packets + batch.packets.len() as u64,
                bytes: queue.counted.bytes + batch.bytes.len() as u64,
                joined: counted.joined,
                calls: counted.calls,
                dropped: counted.dropped,
                senders: counted.senders,
                ..queue.counted
            };
            if route == 0 {
                queue.counted.strangers = counted.strangers;
                queue.counted.stranger = counted.stranger;
            }
            queue.push(std::mem::take(batch));
        }
        drop(all);
        self.arrived.notify_all();
    }
}

impl RouteQueue {
    fn push(&mut self, mut batch: RoutedBatch) {
        if batch.packets.is_empty() {
            return;
        }
        if self.size + batch.size() > ROUTE_BYTES {
            self.refused += batch.packets.len() as u64;
            self.unreported += batch.packets.len() as u64;
            return;
        }
        batch.dropped = std::mem::take(&mut self.unreported);
        self.size += batch.size();
        self.batches.push_back(batch);
    }

    fn pop(&mut self) -> Option<RoutedBatch> {
        let batch = self.batches.pop_front()?;
        self.size -= batch.size();
        Some(batch)
    }
}

impl RouteQueues {
    fn note_senders(&mut self, together: &UdpTogether) {
        for run in together.senders().chunk_by(|one, next| one == next) {
            let is_known = self.senders.iter().any(|(known, _)| *known == run[0]);
            let address = together.sender(run[0]).filter(|_| !is_known);
            self.senders.extend(address.map(|address| (run[0], address)));
        }
    }
}

impl Transport for RoutedInlet {
    fn receive(&mut self, _: &mut [Spot<'_>]) -> io::Result<Received> {
        self.start()?;
        let mut all = lock(&self.sockets.queues);
        match all.queues[self.route].pop() {
            Some(batch) => self.taken = batch,
            None if all.fault.is_some() => {
                return Err(io::Error::other(all.fault.clone().unwrap_or_default()));
            }
            None => return Ok(Received::default()),
        }
        Ok(Received { spots: 0, aside: self.taken.packets.len(), more: true, dropped: self.taken.dropped })
    }

    fn aside(&self, number: usize) -> &[u8] {
        &self.taken.bytes[self.taken.packets[number].clone()]
    }

    fn senders(&self) -> &[SenderId] {
        &self.taken.from
    }

    fn sender(&self, sender: SenderId) -> Option<SocketAddr> {
        let all = lock(&self.sockets.queues);
        all.senders.iter().find(|(known, _)| *known == sender).map(|(_, address)| *address)
    }

    fn discard(&mut self) -> io::Result<()> {
        if let Some(together) = lock(&self.sockets.idle).as_mut() {
            together.discard()?;
            let early = together.counted().early;
            lock(&self.sockets.queues).queues[0].counted.early = early;
            return Ok(());
        }
        let mut all = lock(&self.sockets.queues);
        let queue = &mut all.queues[self.route];
        while queue.pop().is_some() {}
        queue.counted = queue.counted.begin();
        Ok(())
    }

    fn wait(&mut self, at_most: Nanos) -> io::Result<()> {
        self.start()?;
        let all = lock(&self.sockets.queues);
        let rests = |all: &mut RouteQueues| all.queues[self.route].batches.is_empty() && all.fault.is_none();
        let at_most: Duration = at_most.duration();
        drop(self.sockets.arrived.wait_timeout_while(all, at_most, rests));
        Ok(())
    }

    fn room(&self) -> u64 {
        self.room
    }

    fn counted(&self) -> TransportCounts {
        let all = lock(&self.sockets.queues);
        let queue = &all.queues[self.route];
        TransportCounts { dropped: queue.counted.dropped + queue.refused, ..queue.counted }
    }
}

impl Drop for RoutedInlet {
    fn drop(&mut self) {
        if self.sockets.inlets.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        self.sockets.stop.store(true, Ordering::Relaxed);
        let thread = lock(&self.sockets.thread).take();
        if let Some(thread) = thread {
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket};

    use nilometer_storage::Clock;

    use super::*;

    const LONG: Nanos = Nanos::from_millis(20_000);

    /// Inlets for these senders, and the address at which they listen.
    fn opened(routes: &[&str]) -> (Vec<RoutedInlet>, SocketAddr) {
        let listening = Listening::at((Ipv4Addr::LOCALHOST, 0).into());
        let routes: Vec<_> = routes.iter().map(|text| vec![text.parse().expect("a network")]).collect();
        let inlets = RoutedInlet::open_all(&[listening], &routes).expect("a port is free");
        let at = lock(&inlets[0].sockets.idle).as_ref().expect("no thread has it").addresses();
        (inlets, at.expect("it is bound")[0])
    }

    fn sender(host: u8) -> UdpSocket {
        UdpSocket::bind((Ipv4Addr::new(127, 0, 0, host), 0)).expect("all of 127.0.0.0/8 is this machine")
    }

    /// Takes this number of packets.
    fn taken(inlet: &mut RoutedInlet, count: usize) -> Vec<Vec<u8>> {
        let clock = Clock::start();
        let mut came = Vec::new();
        while came.len() < count && clock.now() < LONG {
            let received = inlet.receive(&mut []).expect("it looks");
            came.extend((0..received.aside).map(|number| inlet.aside(number).to_vec()));
            if received == Received::default() {
                inlet.wait(WAIT).expect("it waits");
            }
        }
        came
    }

    #[test]
    fn a_route_is_a_proper_transport() {
        crate::conformance::transport_suite(&mut || {
            let (mut inlets, at) = opened(&["127.0.0.0/8"]);
            let socket = sender(1);
            let send =
                move |packet: &[u8]| assert_eq!(socket.send_to(packet, at).expect("sent"), packet.len());
            (Box::new(inlets.remove(0)), Box::new(send))
        });
    }

    #[test]
    fn each_packet_goes_to_the_route_of_its_sender() {
        let (mut inlets, at) = opened(&["127.0.0.2", "127.0.0.3"]);
        let senders = [2, 3, 4].map(sender);
        for number in 0..50_u8 {
            for (host, socket) in (2..).zip(&senders) {
                socket.send_to(&[host, number], at).expect("sent");
            }
        }
        for (inlet, host) in inlets.iter_mut().zip([2_u8, 3]) {
            let came = taken(inlet, 50);
            assert_eq!(came, (0..50).map(|number| vec![host, number]).collect::<Vec<_>>());
            let id = inlet.senders()[0];
            assert_eq!(inlet.sender(id), senders[usize::from(host) - 2].local_addr().ok());
            assert_eq!(inlet.counted().packets, 50);
        }
        assert_eq!(inlets[0].counted().strangers, 50, "those of the third sender");
    }

    #[test]
    fn a_route_that_nobody_empties_drops_its_own_packets_only() {
        let mut queue = RouteQueue::default();
        let batch = |bytes: usize| {
            let mut batch = RoutedBatch::default();
            batch.add(&vec![0; bytes], SenderId(0));
            batch
        };
        queue.push(batch(ROUTE_BYTES as usize - 100));
        queue.push(batch(1000));
        assert_eq!((queue.batches.len(), queue.refused), (1, 1));
        assert!(queue.pop().is_some_and(|first| first.dropped == 0));
        queue.push(batch(1000));
        assert_eq!(queue.pop().map(|next| next.dropped), Some(1), "it reports the loss before it");
        assert_eq!(queue.size, 0);
    }
}
