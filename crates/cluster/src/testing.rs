//! Ranks that are threads of one process.

use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

use crate::{RankMessages, node_name};

/// The messages of one rank.
#[derive(Debug)]
pub struct ThreadMessages {
    rank: u32,
    node: String,
    /// Channels to each rank, this one included.
    to: Vec<SyncSender<Vec<u8>>>,
    /// Channels from each rank.
    from: Vec<Receiver<Vec<u8>>>,
}

impl ThreadMessages {
    /// Pretends that the rank runs on a machine of this name.
    #[must_use]
    pub fn on_node(self, node: &str) -> Self {
        ThreadMessages { node: node.into(), ..self }
    }
}

/// Capacity of a channel. No rank sends this many messages before it receives one.
const WAITING_MAX: usize = 100;

/// Makes `size` ranks, in order.
pub fn thread_ranks(size: u32) -> Vec<ThreadMessages> {
    let of_rank = |rank| ThreadMessages { rank, node: node_name(), to: Vec::new(), from: Vec::new() };
    let mut all: Vec<ThreadMessages> = (0..size).map(of_rank).collect();
    for from in 0..size as usize {
        for to in 0..size as usize {
            let (sender, receiver) = sync_channel(WAITING_MAX);
            all[from].to.push(sender);
            all[to].from.push(receiver);
        }
    }
    all
}

impl RankMessages for ThreadMessages {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn size(&self) -> u32 {
        self.to.len() as u32
    }

    fn node(&self) -> String {
        self.node.clone()
    }

    fn send(&mut self, to: u32, bytes: Vec<u8>) {
        // A rank that has ended reads no messages.
        drop(self.to[to as usize].send(bytes));
    }

    fn has_sent(&mut self) -> bool {
        true
    }

    fn receive(&mut self, from: u32) -> Option<Vec<u8>> {
        match self.from[from as usize].try_recv() {
            Ok(bytes) => Some(bytes),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                panic!("rank {from} is gone, and rank {} waits for it", self.rank)
            }
        }
    }
}
