//! A recorder that listens at several ports and falls behind. The kernel drops different packets at each
//! port. The stream goes on, and the receiver never takes its numbers for reset ones.

use std::collections::VecDeque;

use nilometer_model::{RandomStream, Seed};
use nilometer_recording::Missing;
use nilometer_ring::{Chronicle, Frame, Ring};
use nilometer_storage::Arena;

use super::*;
use crate::{
    assembly::{PacketTally, ReorderWindow, Spot},
    transport::trial::Numbered,
};

const BODY: usize = 16;
/// Packets that a socket gives at once if the ring has no places for them.
const AT_ONCE: usize = 4096;

/// Modules that send parts of the same frames to a port each, and the sockets of these ports. Time passes
/// with each look.
#[derive(Debug)]
struct Modules {
    random: RandomStream,
    /// Packets that wait at each port, with the count of dropped packets that stood at each.
    sockets: Vec<VecDeque<(u64, u64)>>,
    dropped: Vec<u64>,
    /// Packets that a socket has room for.
    room: usize,
    parts_of_port: u64,
    frames: u64,
    /// Frames that come while the recorder looks once, at the most.
    pace: u64,
}

impl Modules {
    fn send(&mut self) {
        let frames = if self.random.below(8) == 0 { self.pace * 64 } else { self.pace };
        for _ in 0..self.random.below(frames + 1) {
            let first = self.frames * self.sockets.len() as u64 * self.parts_of_port;
            for at in 0..self.sockets.len() {
                let begin = first + at as u64 * self.parts_of_port;
                (begin..begin + self.parts_of_port).for_each(|serial| self.come(at, serial));
            }
            self.frames += 1;
        }
    }

    fn come(&mut self, port: usize, serial: u64) {
        if self.sockets[port].len() < self.room {
            self.sockets[port].push_back((serial, self.dropped[port]));
        } else {
            self.dropped[port] += 1;
        }
    }
}

/// The socket of one port.
#[derive(Debug)]
struct ModulePort {
    modules: Arc<Mutex<Modules>>,
    port: usize,
    most: usize,
    reported: u64,
    aside: Vec<Vec<u8>>,
}

impl Transport for ModulePort {
    fn receive(&mut self, spots: &mut [Spot<'_>]) -> io::Result<Received> {
        let mut modules = self.modules.lock().expect("one thread");
        modules.send();
        let most = if spots.is_empty() { self.most } else { spots.len() };
        let socket = &mut modules.sockets[self.port];
        let count = most.min(socket.len());
        let taken: Vec<_> = socket.drain(..count).collect();
        self.aside.clear();
        for (at, (serial, _)) in taken.iter().enumerate() {
            match spots.get_mut(at) {
                Some(spot) => {
                    spot.prefix.copy_from_slice(&serial.to_le_bytes());
                    spot.body.fill(1);
                }
                None => self.aside.push([&serial.to_le_bytes()[..], &[1; BODY]].concat()),
            }
        }
        let dropped = taken.last().map_or(self.reported, |(_, dropped)| *dropped);
        let more = dropped - std::mem::replace(&mut self.reported, dropped);
        Ok(Received {
            spots: count - self.aside.len(),
            aside: self.aside.len(),
            more: count == most,
            dropped: more,
        })
    }

    fn take_at_most(&mut self, packets: usize) {
        self.most = packets;
    }

    fn aside(&self, number: usize) -> &[u8] {
        &self.aside[number]
    }

    fn discard(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn wait(&mut self, _at_most: Nanos) -> io::Result<()> {
        Ok(())
    }

    fn room(&self) -> u64 {
        1 << 20
    }

    fn counted(&self) -> TransportCounts {
        TransportCounts::default()
    }
}

struct PortLab {
    modules: Arc<Mutex<Modules>>,
    receiver: Receiver,
    ring: Arc<Ring>,
    taken: VecDeque<Frame>,
    now: Nanos,
}

impl PortLab {
    fn new(ports: usize, parts_of_port: u64, slots: usize, modules: Modules) -> Self {
        let bodies = vec![BODY; ports * parts_of_port as usize];
        let frames_of_block = (64 / bodies.len()).max(1);
        let size = frames_of_block * bodies.len() * BODY;
        let ring = Ring::new(Arena::shared_out(slots, size).1, 1, Chronicle::new(size as u64, Nanos(0)));
        let formats =
            (0..ports).map(|_| Box::new(Numbered::new(&bodies)) as Box<dyn nilometer_wire::WireFormat>);
        let assembly = Assembly::new(
            formats.collect(),
            ring.clone(),
            frames_of_block as u64,
            ReorderWindow::default(),
            Missing::Filled,
        );
        let modules = Arc::new(Mutex::new(modules));
        let transports = (0..ports).map(|port| {
            let modules = modules.clone();
            let port = ModulePort { modules, port, most: AT_ONCE, reported: 0, aside: Vec::new() };
            Box::new(port) as Box<dyn Transport>
        });
        let receiver = Receiver::new(transports.collect(), assembly, Until::default());
        PortLab { modules, receiver, ring, taken: VecDeque::new(), now: Nanos(1_000_000) }
    }

    fn turn(&mut self) -> Received {
        self.now += Nanos(50_000);
        self.receiver.turn(self.now).expect("memory does not fail")
    }

    /// Stores up to `blocks` blocks, as a lane does.
    fn store(&mut self, blocks: u64) {
        for _ in 0..blocks {
            if self.taken.is_empty() {
                self.ring.take(self.now, 0, &mut self.taken);
            }
            let Some(frame) = self.taken.pop_front() else { return };
            self.ring.release(self.now, &mut vec![frame]);
        }
    }

    /// Stops sending and takes all waiting packets.
    fn end(&mut self) -> PacketTally {
        self.modules.lock().expect("one thread").pace = 0;
        while self.turn().more {
            self.store(u64::MAX);
        }
        self.now += Nanos::from_millis(2000);
        self.turn();
        self.receiver.end(self.now, None);
        self.receiver.streams.tally()
    }
}

/// Makes 200 looks with a recorder that is too slow for its packets and stores up to `storing` blocks after
/// each. Returns the number of packets sent and their tally.
fn overload(ports: usize, seed: u64, storing: u64) -> (u64, PacketTally) {
    let mut random = Seed(seed).stream();
    let parts_of_port = [1, 3, 16, 128][(seed % 4) as usize];
    let modules = Modules {
        random: Seed(seed ^ 1).stream(),
        sockets: vec![VecDeque::new(); ports],
        dropped: vec![0; ports],
        room: 100 + random.below(4900) as usize,
        parts_of_port,
        frames: 0,
        pace: 1 + random.below(5),
    };
    let mut lab = PortLab::new(ports, parts_of_port, 8 + random.below(70) as usize, modules);
    for _ in 0..200 {
        lab.turn();
        lab.store(random.below(storing + 1));
    }
    let tally = lab.end();
    let sent = lab.modules.lock().expect("one thread").frames * ports as u64 * parts_of_port;
    (sent, tally)
}

#[test]
fn ports_of_modules_stay_together_under_overload() {
    for (ports, storing) in [(2, 3), (2, 200), (4, 3), (4, 200)] {
        let mut all = PacketTally::default();
        for seed in 0..16 {
            let (sent, tally) = overload(ports, seed, storing);
            let known = tally.placed + tally.lost();
            assert!(known <= sent, "{ports} ports, seed {seed}: {sent} sent, {tally:?}");
            all = all.and(&tally);
        }
        assert_eq!(
            (all.restarts, all.jumps, all.duplicates, all.late),
            (0, 0, 0, 0),
            "{ports}, {storing}: {all:?}"
        );
        assert!(all.placed > 100_000 && all.stray < all.placed / 500, "{ports}, {storing}: {all:?}");
    }
}
