//! Packets that are handed over in memory: for tests on the virtual clock.

use std::{
    io,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
};

use nilometer_model::Nanos;

use super::{Received, Transport, TransportCounts};
use crate::assembly::Spot;

/// A transport over a channel in memory.
#[derive(Debug)]
pub struct MemoryTransport {
    coming: Receiver<Vec<u8>>,
    aside: Vec<Vec<u8>>,
    counted: TransportCounts,
}

/// Number of packets that may wait in the channel.
const ROOM: usize = 1024;

impl MemoryTransport {
    /// Creates the sending end and the transport that receives from it.
    pub fn channel() -> (SyncSender<Vec<u8>>, Self) {
        let (sender, coming) = sync_channel(ROOM);
        (sender, MemoryTransport { coming, aside: Vec::new(), counted: TransportCounts::default() })
    }

    fn next(&mut self) -> Option<Vec<u8>> {
        let packet = self.coming.try_recv().ok()?;
        self.counted.packets += 1;
        self.counted.bytes += packet.len() as u64;
        Some(packet)
    }
}

impl Transport for MemoryTransport {
    fn receive(&mut self, spots: &mut [Spot<'_>]) -> io::Result<Received> {
        self.aside.clear();
        self.counted.calls += 1;
        let mut filled = 0;
        for Spot { prefix, body } in spots.iter_mut() {
            let Some(packet) = self.next() else {
                return Ok(Received { spots: filled, ..Received::default() });
            };
            if packet.len() != prefix.len() + body.len() {
                self.aside.push(packet);
                break;
            }
            let (front, kept) = packet.split_at(prefix.len());
            prefix.copy_from_slice(front);
            body.copy_from_slice(kept);
            filled += 1;
        }
        if spots.is_empty() || !self.aside.is_empty() {
            while let Some(packet) = self.next() {
                self.aside.push(packet);
            }
        }
        Ok(Received {
            spots: filled,
            aside: self.aside.len(),
            more: filled == spots.len() && filled > 0,
            dropped: 0,
        })
    }

    fn aside(&self, number: usize) -> &[u8] {
        &self.aside[number]
    }

    fn discard(&mut self) -> io::Result<()> {
        while self.next().is_some() {}
        self.counted = self.counted.begin();
        Ok(())
    }

    fn wait(&mut self, _at_most: Nanos) -> io::Result<()> {
        Ok(())
    }

    fn room(&self) -> u64 {
        ROOM as u64
    }

    fn counted(&self) -> TransportCounts {
        self.counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::transport_suite;

    #[test]
    fn it_is_a_proper_transport() {
        transport_suite(&mut || {
            let (sender, memory) = MemoryTransport::channel();
            (Box::new(memory), Box::new(move |packet| sender.send(packet.to_vec()).expect("there is room")))
        });
    }
}
