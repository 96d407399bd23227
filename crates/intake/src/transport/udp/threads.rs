//! One port that several threads empty, each by its own socket (`SO_REUSEPORT`). Use it for packets of many
//! senders that one thread cannot take from the kernel fast enough.
//!
//! The kernel gives all packets of one sender (address and port) to the same socket. Packets of a multicast
//! group go to every socket, so groups have one thread. The bytes that a thread receives are copied once
//! more, to their place.

use std::{
    io,
    net::{SocketAddr, UdpSocket},
    ops::Range,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, SyncSender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use nilometer_model::Nanos;
use nilometer_storage::process::pin_to;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};

use super::{
    super::{Allowed, Received, SenderId, Transport, TransportCounts},
    receive::{Listening, UdpInlet},
};
use crate::assembly::Spot;

/// Messages of all threads that may wait to be put in their place.
const WAITING: usize = 256;
/// While packets arrive, a thread that found none looks again after this time.
const NAP: Duration = Duration::from_micros(200);
/// Number of looks in vain after which a thread waits to be woken.
const IN_VAIN: u32 = 100;
const WAIT: Nanos = Nanos::from_millis(20);

/// Memory of one look: the kernel joins packets up to the size of a datagram, and lists grow by doubling.
const TAKEN_BYTES: u64 = 2 << 16;

/// Upper bound for the bytes of packets between the receiving threads and the one that puts them in their
/// place. A single thread keeps none.
pub fn received_memory(threads: usize) -> u64 {
    // Each thread holds one batch while the queue is full, and one batch is being emptied.
    let taken = if threads < 2 { 0 } else { threads.saturating_add(WAITING + 1) };
    (taken as u64).saturating_mul(TAKEN_BYTES)
}

/// Several sockets at one port, each emptied by a thread.
///
/// The threads begin with the first look and end when this is dropped.
#[derive(Debug)]
pub struct UdpThreads {
    ready: Vec<UdpInlet>,
    cpus: Vec<usize>,
    room: u64,
    running: Option<Running>,
    /// The packets that lie aside.
    taken: Taken,
    next: Option<Taken>,
}

/// The packets that one look of a thread brought, and their positions.
#[derive(Debug, Default)]
struct Taken {
    bytes: Vec<u8>,
    packets: Vec<Range<usize>>,
    from: Vec<SenderId>,
    /// Upper bound for the packets that the kernel dropped at the thread's socket before these.
    dropped: u64,
}

#[derive(Debug)]
struct Running {
    taken: Receiver<io::Result<Taken>>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Used memory, to be filled again.
    free: Mutex<Vec<Taken>>,
    counted: Mutex<Vec<TransportCounts>>,
    /// The senders that each thread heard.
    heard: Mutex<Vec<Vec<SocketAddr>>>,
    /// Number of threads that hold packets.
    busy: AtomicUsize,
    stop: AtomicBool,
}

impl UdpThreads {
    /// Opens `threads` sockets at each address, each emptied by its own thread.
    ///
    /// The threads run on `cpus` in turn, if any are given. It learns no senders: if the user named none, it
    /// hears everybody.
    pub fn open(addresses: &[Listening], threads: usize, cpus: Vec<usize>) -> io::Result<Self> {
        let mut ready = Vec::new();
        for listening in addresses {
            ready.extend(sockets_at(listening, threads)?);
        }
        let room = ready.iter().map(UdpInlet::room).min().unwrap_or(0);
        Ok(UdpThreads { ready, cpus, room, running: None, taken: Taken::default(), next: None })
    }

    fn run(&mut self) -> io::Result<()> {
        let (give, taken) = mpsc::sync_channel(WAITING);
        let shared = Arc::new(Shared::default());
        *lock(&shared.counted) = vec![TransportCounts::default(); self.ready.len()];
        lock(&shared.heard).resize(self.ready.len(), Vec::new());
        let mut threads = Vec::new();
        for (number, inlet) in self.ready.drain(..).enumerate() {
            let shared = shared.clone();
            let give = give.clone();
            let cpu = self.cpus.get(number % self.cpus.len().max(1)).copied();
            threads.push(thread::Builder::new().name("receive".into()).spawn(move || {
                // The processor was checked before; running on it is only a wish.
                cpu.map(pin_to);
                empty(inlet, number, &shared, &give);
            })?);
        }
        self.running = Some(Running { taken, shared, threads });
        Ok(())
    }

    /// Returns the next batch of packets, if it arrives in time.
    fn come(&mut self, at_most: Duration) -> io::Result<Option<Taken>> {
        let Some(running) = &self.running else { return Ok(None) };
        match running.taken.recv_timeout(at_most) {
            Ok(taken) => taken.map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(io::Error::other("all threads that receive ended")),
        }
    }
}

/// Opens `count` sockets at one address.
fn sockets_at(listening: &Listening, count: usize) -> io::Result<Vec<UdpInlet>> {
    let allowed = match &listening.allowed {
        Allowed::First => Allowed::Any,
        allowed => allowed.clone(),
    };
    let listening = Listening { allowed, ..listening.clone() };
    let first = UdpInlet::over(shared_port(listening.at)?, &listening)?;
    let listening = Listening { at: first.address()?, ..listening };
    let mut sockets = vec![first];
    for _ in 1..count {
        sockets.push(UdpInlet::over(shared_port(listening.at)?, &listening)?);
    }
    Ok(sockets)
}

/// A socket at a port that it shares with other sockets.
fn shared_port(at: SocketAddr) -> io::Result<UdpSocket> {
    let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_reuseport(&socket, true)?;
    bind(&socket, &at)?;
    Ok(socket.into())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes packets from a socket and hands them over.
fn empty(mut inlet: UdpInlet, number: usize, shared: &Shared, give: &SyncSender<io::Result<Taken>>) {
    let mut in_vain = 0;
    while !shared.stop.load(Ordering::Relaxed) {
        shared.busy.fetch_add(1, Ordering::AcqRel);
        let look = look(&mut inlet, number, shared, give);
        shared.busy.fetch_sub(1, Ordering::AcqRel);
        let rested = match look {
            Ok(true) => {
                in_vain = 0;
                Ok(())
            }
            Ok(false) if in_vain < IN_VAIN => {
                in_vain += 1;
                thread::sleep(NAP);
                Ok(())
            }
            Ok(false) => inlet.wait(WAIT),
            Err(error) => Err(error),
        };
        if let Err(error) = rested {
            // The receiver is gone only at the end.
            drop(give.send(Err(error)));
            return;
        }
    }
}

/// Number of senders that a thread can distinguish.
const SENDERS: u16 = 256;

/// Converts the number of a sender within a thread to one among the senders of all threads.
fn of_thread(number: usize, sender: SenderId) -> SenderId {
    SenderId((number as u16).saturating_mul(SENDERS).saturating_add(sender.0))
}

/// Publishes the addresses that a thread heard, if there are new ones.
fn note_senders(inlet: &UdpInlet, number: usize, shared: &Shared) {
    let heard = &mut lock(&shared.heard)[number];
    let addresses = inlet.heard().addresses();
    if heard.len() < addresses.len() {
        *heard = addresses.collect();
    }
}

/// Looks once. Returns true if there may be more.
fn look(
    inlet: &mut UdpInlet,
    number: usize,
    shared: &Shared,
    give: &SyncSender<io::Result<Taken>>,
) -> io::Result<bool> {
    let received = inlet.receive(&mut [])?;
    lock(&shared.counted)[number] = inlet.counted();
    if received.packets() > 0 {
        let Taken { bytes, packets, from, .. } = lock(&shared.free).pop().unwrap_or_default();
        let (bytes, packets) = inlet.exchange_aside(bytes, packets);
        let mut from = inlet.exchange_from(from);
        for sender in &mut from {
            *sender = of_thread(number, *sender);
        }
        note_senders(inlet, number, shared);
        drop(give.send(Ok(Taken { bytes, packets, from, dropped: received.dropped })));
    }
    Ok(received.more)
}

impl Transport for UdpThreads {
    fn receive(&mut self, _: &mut [Spot<'_>]) -> io::Result<Received> {
        if self.running.is_none() {
            self.run()?;
        }
        let mut next = self.next.take();
        if next.is_none() {
            next = self.come(Duration::ZERO)?;
        }
        let is_busy = |running: &Running| running.shared.busy.load(Ordering::Acquire) > 0;
        if next.is_none() && self.running.as_ref().is_some_and(is_busy) {
            // A thread holds packets: they will arrive soon.
            next = self.come(NAP)?;
        }
        let Some(next) = next else { return Ok(Received::default()) };
        let used = std::mem::replace(&mut self.taken, next);
        if let Some(running) = &self.running {
            lock(&running.shared.free).push(used);
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
        let heard = lock(&self.running.as_ref()?.shared.heard);
        heard.get(usize::from(sender.0 / SENDERS))?.get(usize::from(sender.0 % SENDERS)).copied()
    }

    fn discard(&mut self) -> io::Result<()> {
        self.ready.iter_mut().try_for_each(UdpInlet::discard)
    }

    fn wait(&mut self, at_most: Nanos) -> io::Result<()> {
        self.next = self.come(at_most.duration())?;
        Ok(())
    }

    fn room(&self) -> u64 {
        self.room
    }

    fn counted(&self) -> TransportCounts {
        let Some(running) = &self.running else {
            return self.ready.iter().fold(TransportCounts::default(), |all, inlet| all.and(inlet.counted()));
        };
        let together = |all: TransportCounts, &one: &TransportCounts| {
            let senders = all.senders.at_one_port(one.senders);
            TransportCounts { senders, ..all.and(one) }
        };
        lock(&running.shared.counted).iter().fold(TransportCounts::default(), together)
    }
}

impl Drop for UdpThreads {
    fn drop(&mut self) {
        let Some(Running { taken, shared, threads }) = self.running.take() else { return };
        shared.stop.store(true, Ordering::Relaxed);
        // A thread that waits for space in the queue notices that the receiver is gone.
        drop(taken);
        for thread in threads {
            drop(thread.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, net::Ipv4Addr};

    use nilometer_storage::Clock;

    use super::*;

    const LONG: Nanos = Nanos::from_millis(20_000);

    #[test]
    fn they_are_a_proper_transport() {
        crate::conformance::transport_suite(&mut || {
            let listening = Listening::at((Ipv4Addr::LOCALHOST, 0).into());
            let inlet = UdpThreads::open(&[listening], 3, Vec::new()).expect("a port is free");
            let at = inlet.ready[0].address().expect("it is bound");
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
            let send =
                move |packet: &[u8]| assert_eq!(socket.send_to(packet, at).expect("sent"), packet.len());
            (Box::new(inlet), Box::new(send))
        });
    }

    #[test]
    fn packets_of_many_senders_come_by_several_threads_each_once_and_in_the_order_of_its_sender() {
        let listening = Listening::at((Ipv4Addr::LOCALHOST, 0).into());
        let mut inlet = UdpThreads::open(&[listening], 3, Vec::new()).expect("a port is free");
        let at = inlet.ready[0].address().expect("it is bound");
        let send = |from: u8, to: u8| {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
            for number in 0..to {
                socket.send_to(&[from, number], at).expect("sent");
            }
        };
        send(255, 3);
        inlet.discard().expect("they can be dropped");
        assert_eq!(inlet.receive(&mut []).expect("it looks"), Received::default());
        (0..16).for_each(|from| send(from, 50));
        let (mut came, clock) = (BTreeMap::<u8, Vec<u8>>::new(), Clock::start());
        while came.values().map(Vec::len).sum::<usize>() < 16 * 50 && clock.now() < LONG {
            let received = inlet.receive(&mut []).expect("it looks");
            for packet in (0..received.aside).map(|number| inlet.aside(number)) {
                came.entry(packet[0]).or_default().push(packet[1]);
            }
            if received == Received::default() {
                inlet.wait(WAIT).expect("it waits");
            }
        }
        let all: Vec<u8> = (0..50).collect();
        assert!(came.len() == 16 && came.values().all(|of_one| *of_one == all), "{came:?}");
        let by_thread = lock(&inlet.running.as_ref().expect("they run").shared.counted).clone();
        assert_eq!(by_thread.iter().map(|counted| counted.packets).sum::<u64>(), 800);
        assert!(by_thread.iter().filter(|counted| counted.packets > 0).count() > 1, "{by_thread:?}");
        assert_eq!(inlet.counted().packets, 800);
    }
}
