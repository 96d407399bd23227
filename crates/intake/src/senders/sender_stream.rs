//! One of the streams of a recording, in a ring of its own once there are several.

use std::{collections::VecDeque, sync::Arc};

use nilometer_model::Nanos;
use nilometer_ring::{Frame, Ring};

use super::counts::{SilenceWatch, ThreadCounts};
use crate::{assembly::Assembly, transport::SenderId};

/// A stream with its own numbers.
#[derive(Debug)]
pub(super) struct SenderStream {
    /// Its first sender.
    pub(super) sender: Option<SenderId>,
    pub(super) assembly: Assembly,
    /// The ring in which its blocks wait to be merged with the others'. `None` while it is alone.
    pub(super) own: Option<Arc<Ring>>,
    pub(super) taken: VecDeque<Frame>,
    pub(super) released: Vec<Frame>,
    threads: SilenceWatch,
}

impl SenderStream {
    pub(super) fn new(sender: Option<SenderId>, assembly: Assembly, own: Option<Arc<Ring>>) -> Self {
        SenderStream {
            sender,
            assembly,
            own,
            taken: VecDeque::new(),
            released: Vec::new(),
            threads: SilenceWatch::default(),
        }
    }

    /// The counters of its threads.
    pub(super) fn threads(&mut self, now: Nanos) -> Vec<ThreadCounts> {
        let threads = self.assembly.format(0).threads();
        let came: Vec<_> = threads.iter().map(|thread| thread.came).collect();
        let silent = self.threads.look(now, &came);
        let open = self.assembly.open_frames();
        let tallies = self.assembly.threads();
        let of = |(thread, silent)| ThreadCounts { silent, ..ThreadCounts::of(thread, tallies, open) };
        threads.into_iter().zip(silent).map(of).collect()
    }

    /// Takes back the counts of blocks that found no slot before the end. They are not in the recording.
    pub(super) fn take_back(&mut self) {
        for frame in std::mem::take(&mut self.taken) {
            if let Some(packed) = frame.packed {
                self.assembly.take_back(packed.packets, packed.bytes);
            }
        }
    }
}
