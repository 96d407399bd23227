//! Packets of a new sender, until its relation to the known streams is clear.
//!
//! ```text
//! the stream is silent          the sender goes on with it: an instrument that got another address or port
//! packets fill the holes        one stream comes by several ways, and is numbered together
//! packets are copies            a network delivers the stream twice
//! 32 follow each other          a stream of its own, with numbers of its own: another board
//! none of these                 somebody else's packets
//! ```
//!
//! For example, a stream came up to number 1200, and these come from a new sender:
//!
//! ```text
//! 9000 9001 9002 ..  9031       another board, though nobody said so before
//! 1101 1103 1105 ..             the stream has 1100, 1102, 1104 .. only: the other half of it
//! 1101 1102 1103 ..  1132       the stream has them itself: another board that began at the same time
//! 62 000 62 001 400 401 7 8     somebody's
//! ```

use nilometer_wire::{Ignored, Part, WireFormat};

use crate::assembly::{Assembly, PacketRelation, part_of};

/// Number of consecutive packets that identify a sender.
pub(super) const FOLLOWING: u64 = 32;
/// Fewer are enough if the stream is silent, and at the end of a recording.
const ESTABLISHED: u64 = 8;
/// Maximum distance in frames between consecutive packets.
const NEAR: u64 = 16;
/// Number of packets that are enough to decide whether a sender belongs to a stream.
const KNOWN: usize = 8;
/// Maximum number of packets kept.
pub(super) const KEPT: usize = 2 * FOLLOWING as usize;
/// At the end of a recording a stream of its own has at least one in this many packets of the first stream.
const SHARE: u64 = 10;

/// A sender whose relation to the streams is open.
#[derive(Debug)]
pub(super) struct UndecidedSender {
    format: Box<dyn WireFormat>,
    /// In order of arrival.
    held: Vec<(Part, Vec<u8>)>,
    /// Length of the prefix of a packet in bytes.
    prefix: usize,
    head: Option<Part>,
    /// Number of consecutive packets up to the last.
    run: u64,
    /// The part of these since the last packet of a stream.
    undisturbed: u64,
    /// Packets of all streams that had arrived by the last.
    moved: u64,
}

/// The conclusion from a sender's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SenderVerdict {
    /// It has its own numbers.
    Own,
    /// It belongs to this stream.
    Of(usize),
    /// It goes on with this stream, which is silent.
    GoesOn(usize),
    /// Its kept packets fill holes of this stream, and are too few to identify the sender.
    Fits(usize),
    /// Undecided.
    Open,
}

/// Counts of a sender's packets by their relation to a stream.
#[derive(Debug, Clone, Copy, Default)]
struct PacketsBeside {
    missed: usize,
    copies: usize,
    others: usize,
    ahead: usize,
}

impl PacketsBeside {
    /// Returns true if the stream lacks them, or has the same.
    fn is_same(&self) -> bool {
        let same = self.missed.max(self.copies);
        same >= KNOWN && same >= self.others
    }

    /// Returns true if the stream lacks all of them: a sender may use a port for each packet.
    fn fits(&self) -> bool {
        self.missed > 0 && self.copies + self.others + self.ahead == 0
    }

    /// Returns true if the stream has other packets in their places, or is elsewhere.
    ///
    /// If the memory for packets is full, it is enough that the stream has or lacks none of them. Boards
    /// whose counters begin together may stay some packets apart.
    fn is_another(&self, held: usize) -> bool {
        let same = self.missed.max(self.copies);
        self.others >= KNOWN && self.others > same || held >= KEPT && same == 0
    }
}

impl UndecidedSender {
    pub(super) fn new(format: Box<dyn WireFormat>) -> Self {
        let prefix = format.geometry().prefix;
        UndecidedSender { format, held: Vec::new(), prefix, head: None, run: 0, undisturbed: 0, moved: 0 }
    }

    /// Keeps a packet that has the right format. `moved` packets of all streams arrived before. Returns the
    /// number of packets given up for it.
    pub(super) fn keep(&mut self, all: &Assembly, moved: u64, packet: &[u8]) -> Result<u64, Ignored> {
        let (part, _) = part_of(self.format.as_mut(), packet)?;
        let near = |head: Part| head != part && all.distance(head.frame, part.frame).unsigned_abs() <= NEAR;
        if std::mem::replace(&mut self.moved, moved) != moved {
            self.undisturbed = 0;
        }
        match self.head {
            Some(head) if head == part => {}
            Some(head) if near(head) => {
                self.run += 1;
                self.undisturbed += 1;
            }
            _ => {
                self.run = 1;
                self.undisturbed = 1;
            }
        }
        self.head = Some(part);
        let given_up = if self.held.len() == KEPT { self.held.drain(..KEPT / 2).count() as u64 } else { 0 };
        self.held.push((part, packet.to_vec()));
        Ok(given_up)
    }

    /// The conclusion from its packets and these streams, of which `moved` packets arrived.
    pub(super) fn verdict<'a>(
        &self,
        moved: u64,
        streams: impl Iterator<Item = &'a Assembly> + Clone,
    ) -> SenderVerdict {
        let silent = streams.clone().enumerate().filter(|(_, stream)| self.goes_on(moved, stream));
        if let Some((part, _)) = self.held.last()
            && let Some((at, _)) = silent.min_by_key(|(_, stream)| stream.places_away(*part))
        {
            return SenderVerdict::GoesOn(at);
        }
        let beside: Vec<_> = streams.map(|stream| self.beside(stream)).collect();
        if let Some(at) = beside.iter().position(PacketsBeside::is_same) {
            return SenderVerdict::Of(at);
        }
        if let Some(at) = beside.iter().position(PacketsBeside::fits) {
            return SenderVerdict::Fits(at);
        }
        if self.run >= FOLLOWING && beside.iter().all(|beside| beside.is_another(self.held.len())) {
            SenderVerdict::Own
        } else {
            SenderVerdict::Open
        }
    }

    /// Returns true if it goes on with a stream. Several of its packets must be consecutive, with no packet
    /// of a stream between or since.
    fn goes_on(&self, moved: u64, stream: &Assembly) -> bool {
        let is_undisturbed = self.moved == moved;
        !stream.has_begun()
            || is_undisturbed && self.undisturbed >= ESTABLISHED && stream.is_silent()
            || is_undisturbed && self.undisturbed > 1 && stream.is_given_up()
    }

    /// Removes the packets before those that go on with a silent stream. Returns their number.
    pub(super) fn forget_early(&mut self) -> u64 {
        let late = usize::try_from(self.undisturbed).unwrap_or(usize::MAX);
        let early = self.held.len().saturating_sub(late);
        self.held.drain(..early).count() as u64
    }

    /// Counts its packets by their relation to a stream.
    fn beside(&self, stream: &Assembly) -> PacketsBeside {
        let mut beside = PacketsBeside::default();
        for (part, packet) in &self.held {
            let count = match stream.relation(*part, &packet[self.prefix..]) {
                PacketRelation::Missed => &mut beside.missed,
                PacketRelation::Copy => &mut beside.copies,
                PacketRelation::Other => &mut beside.others,
                PacketRelation::Ahead => &mut beside.ahead,
            };
            *count += 1;
        }
        beside
    }

    /// Removes and returns the kept packets.
    pub(super) fn take_packets(&mut self) -> Vec<Vec<u8>> {
        self.held.drain(..).map(|(_, packet)| packet).collect()
    }

    /// The conclusion after the last packet, given the number of packets of the stream.
    pub(super) fn verdict_at_end(&self, placed: u64) -> SenderVerdict {
        let is_most = 2 * self.run >= self.held.len() as u64 && SHARE * self.run >= placed;
        if self.run >= ESTABLISHED && is_most { SenderVerdict::Own } else { SenderVerdict::Open }
    }

    /// Number of packets kept.
    pub(super) fn count(&self) -> u64 {
        self.held.len() as u64
    }
}
