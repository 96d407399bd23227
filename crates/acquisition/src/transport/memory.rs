//! Packets that are in memory already and come at given times: for tests on the virtual clock.

use std::{collections::VecDeque, io};

use nilometer_model::Nanos;

use super::{Counted, Received, Transport};
use crate::assembly::Spot;

/// See the module.
#[derive(Debug, Default)]
pub struct Memory {
    waiting: VecDeque<Vec<u8>>,
    aside: Vec<Vec<u8>>,
    counted: Counted,
}

impl Memory {
    /// A packet comes.
    pub fn arrives(&mut self, packet: Vec<u8>) {
        self.waiting.push_back(packet);
    }
}

impl Transport for Memory {
    fn receive(&mut self, spots: &mut [Spot<'_>]) -> io::Result<Received> {
        let mut received = Received::default();
        self.aside.clear();
        self.counted.calls += 1;
        for spot in spots.iter_mut() {
            let fits = |packet: &mut Vec<u8>| packet.len() == spot.prefix.len() + spot.body.len();
            let Some(packet) = self.waiting.pop_front_if(fits) else { break };
            let (prefix, body) = packet.split_at(spot.prefix.len());
            spot.prefix.copy_from_slice(prefix);
            spot.body.copy_from_slice(body);
            received.spots += 1;
            self.count(&packet);
        }
        if received.spots < spots.len() || spots.is_empty() {
            while let Some(packet) = self.waiting.pop_front() {
                self.count(&packet);
                self.aside.push(packet);
            }
        }
        Ok(Received { aside: self.aside.len(), more: !self.waiting.is_empty(), ..received })
    }

    fn aside(&self, number: usize) -> &[u8] {
        &self.aside[number]
    }

    fn discard(&mut self) -> io::Result<()> {
        self.waiting.clear();
        Ok(())
    }

    fn wait(&mut self, _at_most: Nanos) -> io::Result<()> {
        Ok(())
    }

    fn room(&self) -> u64 {
        u64::MAX
    }

    fn counted(&self) -> Counted {
        self.counted
    }
}

impl Memory {
    fn count(&mut self, packet: &[u8]) {
        self.counted.packets += 1;
        self.counted.bytes += packet.len() as u64;
    }
}
