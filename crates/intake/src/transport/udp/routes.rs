//! One set of sockets for several recordings: a thread takes the packets and hands each to the recording of its sender.
//!
//! ```text
//! sockets -> UdpTogether -> route by sender -+-> queue -> RoutedInlet of the recording A
//!                                            +-> queue -> RoutedInlet of the recording B
//! ```
//!
//! Each queue has a bound for the memory that its packets take. If a recording does not empty its queue, the thread
//! drops its packets and counts them (`queue_full`). The other recordings go on. A packet is copied twice more than
//! without routes.

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

use nilometer_datagram::{MESSAGE_BYTES, MESSAGES_AT_ONCE};
use nilometer_model::Nanos;

use super::{
    super::{Allowed, Received, SenderId, SenderNetwork, Transport, TransportCounts},
    receive::Listening,
    together::UdpTogether,
};
use crate::assembly::Spot;

/// The longest wait for packets before the thread looks whether anybody needs it.
const WAIT: Nanos = Nanos::from_millis(20);
/// The most memory of the packets that wait in the queue of one recording.
const QUEUE_BYTES: u64 = 32 << 20;
/// The memory of a packet beside its own bytes: its position and its sender.
const PACKET_LIST: u64 = (size_of::<Range<usize>>() + size_of::<SenderId>()) as u64;
/// The memory of a batch beside its packets. The queue may have grown to twice its length.
const BATCH_HEAD: u64 = 2 * size_of::<RoutedBatch>() as u64;
/// The most memory of the packets of one look, as short as packets can be.
const LOOK_BYTES: u64 =
    MESSAGES_AT_ONCE as u64 * (MESSAGE_BYTES as u64 + SEGMENTS_MAX * PACKET_LIST) + BATCH_HEAD;
/// The most packets that the kernel joins into a message.
const SEGMENTS_MAX: u64 = 64;
/// The most memory of packets between the sockets and one recording: its queue, and two batches of a look.
pub const ROUTE_BYTES: u64 = QUEUE_BYTES + 2 * LOOK_BYTES;

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
    /// A batch with room for exactly these packets, so that its memory is no larger than they are.
    fn with_room(packets: usize, bytes: usize) -> Self {
        RoutedBatch {
            bytes: Vec::with_capacity(bytes),
            packets: Vec::with_capacity(packets),
            from: Vec::with_capacity(packets),
            dropped: 0,
        }
    }

    /// The packets of the last look that go to this route. `routes` has the route of each.
    fn of_route(together: &UdpTogether, routes: &[Option<usize>], route: usize) -> Self {
        let own = || (0..routes.len()).filter(|number| routes[*number] == Some(route));
        let bytes = own().map(|number| together.aside(number).len()).sum();
        let mut batch = RoutedBatch::with_room(own().count(), bytes);
        for number in own() {
            batch.add(together.aside(number), together.senders()[number]);
        }
        batch
    }

    fn add(&mut self, packet: &[u8], sender: SenderId) {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(packet);
        self.packets.push(begin..self.bytes.len());
        self.from.push(sender);
    }

    /// The memory that it takes.
    fn size(&self) -> u64 {
        let lists = self.packets.capacity().max(self.from.capacity()) as u64 * PACKET_LIST;
        self.bytes.capacity() as u64 + lists + BATCH_HEAD
    }
}

/// The queue of one recording.
#[derive(Debug, Default)]
struct RouteQueue {
    batches: VecDeque<RoutedBatch>,
    /// The memory that they take.
    size: u64,
    /// Dropped packets that no batch has reported yet.
    unreported: u64,
    counted: TransportCounts,
    /// True if the recording is gone: nobody empties the queue any more.
    is_closed: bool,
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
        while !self.stop.load(Ordering::Relaxed) {
            if let Err(error) = self.look(&mut together) {
                lock(&self.queues).fault = Some(error.to_string());
                self.arrived.notify_all();
                return;
            }
        }
    }

    fn look(&self, together: &mut UdpTogether) -> io::Result<()> {
        let received = together.receive(&mut [])?;
        let batches = self.batches(together);
        self.hand_over(together, received, batches);
        if received.packets() == 0 {
            together.wait(WAIT)?;
        }
        Ok(())
    }

    /// The packets of the last look, a batch for each recording.
    fn batches(&self, together: &UdpTogether) -> Vec<RoutedBatch> {
        let senders = together.senders();
        let route_of = |sender: &SenderId| {
            let address = together.sender(*sender)?;
            self.rules.iter().position(|rule| rule.names(address.ip()))
        };
        let routes: Vec<Option<usize>> = senders.iter().map(route_of).collect();
        (0..self.rules.len()).map(|route| RoutedBatch::of_route(together, &routes, route)).collect()
    }

    /// Puts the packets of a look into the queues.
    fn hand_over(&self, together: &UdpTogether, received: Received, batches: Vec<RoutedBatch>) {
        let counted = together.counted();
        let mut all = lock(&self.queues);
        all.note_senders(together);
        for (queue, batch) in all.queues.iter_mut().zip(batches) {
            // Nobody knows whose packets the kernel dropped, so each recording counts them.
            queue.unreported += received.dropped;
            queue.counted = TransportCounts {
                packets: queue.counted.packets + batch.packets.len() as u64,
                bytes: queue.counted.bytes + batch.bytes.len() as u64,
                joined: counted.joined,
                calls: counted.calls,
                dropped: counted.dropped,
                senders: counted.senders,
                // A recording without packets names those that came instead.
                strangers: counted.strangers,
                stranger: counted.stranger,
                ..queue.counted
            };
            queue.push(batch);
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
        if self.is_closed || self.size + batch.size() > QUEUE_BYTES {
            self.counted.queue_full += batch.packets.len() as u64;
            self.unreported += batch.packets.len() as u64;
            return;
        }
        batch.dropped = std::mem::take(&mut self.unreported);
        self.size += batch.size();
        self.batches.push_back(batch);
    }

    /// Gives up the packets that wait, and takes no more.
    fn close(&mut self) {
        self.is_closed = true;
        self.batches = VecDeque::new();
        self.size = 0;
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
        lock(&self.sockets.queues).queues[self.route].counted
    }
}

impl Drop for RoutedInlet {
    fn drop(&mut self) {
        lock(&self.sockets.queues).queues[self.route].close();
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
        for inlet in &inlets {
            let counted = inlet.counted();
            let stranger = senders[2].local_addr().map(|address| address.ip()).ok();
            assert_eq!((counted.strangers, counted.stranger), (50, stranger), "those of the third sender");
        }
    }

    fn batch(packets: usize, bytes: usize) -> RoutedBatch {
        let mut batch = RoutedBatch::with_room(packets, packets * bytes);
        (0..packets).for_each(|_| batch.add(&vec![0; bytes], SenderId(0)));
        batch
    }

    #[test]
    fn a_route_that_nobody_empties_drops_its_own_packets_only() {
        let mut queue = RouteQueue::default();
        queue.push(batch(1, QUEUE_BYTES as usize - 1000));
        queue.push(batch(3, 1000));
        assert_eq!((queue.batches.len(), queue.counted.queue_full, queue.counted.dropped), (1, 3, 0));
        assert!(queue.pop().is_some_and(|first| first.dropped == 0));
        queue.push(batch(1, 1000));
        assert_eq!(queue.pop().map(|next| next.dropped), Some(3), "it reports the loss before it");
        assert_eq!(queue.size, 0);
    }

    #[test]
    fn a_queue_of_tiny_packets_is_bounded_by_the_memory_that_they_take() {
        let mut queue = RouteQueue::default();
        while queue.counted.queue_full == 0 {
            queue.push(batch(1, 1));
        }
        let each = BATCH_HEAD + PACKET_LIST + 1;
        assert_eq!(queue.batches.len() as u64, QUEUE_BYTES / each);
        let heads = queue.batches.capacity() * size_of::<RoutedBatch>();
        let rest = queue.batches.iter().map(|batch| batch.bytes.capacity() as u64 + PACKET_LIST);
        assert!(heads as u64 + rest.sum::<u64>() <= QUEUE_BYTES);
    }

    #[test]
    fn a_recording_that_is_gone_leaves_no_packets_in_its_queue() {
        let (mut inlets, at) = opened(&["127.0.0.2", "127.0.0.3"]);
        let sockets = inlets[0].sockets.clone();
        sender(2).send_to(&[2; 100], at).expect("sent");
        sender(3).send_to(&[3; 100], at).expect("sent");
        assert_eq!(taken(&mut inlets[1], 1), [[3; 100]], "the packet of the other came before it");
        drop(inlets.remove(0));
        assert_eq!(lock(&sockets.queues).queues[0].size, 0);
        let queue = &mut lock(&sockets.queues).queues[0];
        queue.push(batch(1, 100));
        assert_eq!((queue.size, queue.counted.queue_full), (0, 1));
    }
}
