//! One of the streams of a recording, in a ring of its own once there are several.

use std::{collections::VecDeque, sync::Arc};

use nilometer_model::Nanos;
use nilometer_ring::{Frame, Ring};

use super::{
    counts::{SilenceWatch, ThreadCounts},
    merger::BlockMerger,
};
use crate::{
    assembly::{Assembly, LentPlace},
    transport::SenderId,
};

/// A complete block of a stream, and its place among the merged ones.
#[derive(Debug)]
pub(super) struct PlacedFrame {
    pub(super) place: LentPlace,
    pub(super) frame: Frame,
}

/// The pace of a stream. If its blocks take long, they lie in its own ring, so that they hold up no others.
#[derive(Debug, Default)]
pub(super) struct StreamPace {
    /// Frames of all streams when its last block was complete.
    last: u64,
    is_even: bool,
}

impl StreamPace {
    /// The pace of a stream that begins now.
    pub(super) fn begin(merger: &BlockMerger) -> Self {
        StreamPace { last: merger.merged(), is_even: false }
    }

    fn count_block(&mut self, merger: &BlockMerger) {
        self.is_even = self.is_near(merger);
        self.last = merger.merged();
    }

    fn is_near(&self, merger: &BlockMerger) -> bool {
        merger.merged() - self.last <= merger.pace()
    }

    /// Returns true if the last block came soon after the one before, and the next one may come as soon.
    pub(super) fn is_even(&self, merger: &BlockMerger) -> bool {
        self.is_even && self.is_near(merger)
    }
}

/// A stream with its own numbers.
#[derive(Debug)]
pub(super) struct SenderStream {
    /// Its first sender.
    pub(super) sender: Option<SenderId>,
    pub(super) assembly: Assembly,
    /// The ring in which its blocks wait to be merged with the others'. `None` while it is alone.
    pub(super) own: Option<Arc<Ring>>,
    pub(super) taken: VecDeque<Frame>,
    released: Vec<Frame>,
    /// Number of blocks that left it.
    passed: u64,
    pub(super) pace: StreamPace,
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
            passed: 0,
            pace: StreamPace::default(),
            threads: SilenceWatch::default(),
        }
    }

    /// The next complete block, if it lies in a place. The place has its memory then, and the block has that
    /// of the stream's ring.
    pub(super) fn next_placed(&mut self, now: Nanos) -> Option<PlacedFrame> {
        self.next_complete(now)?;
        let frame = self.taken.front_mut()?;
        let place = self.assembly.take_closed_place(frame.number, &mut frame.data)?;
        Some(PlacedFrame { place, frame: self.taken.pop_front()? })
    }

    /// The next complete block.
    pub(super) fn next_complete(&mut self, now: Nanos) -> Option<&Frame> {
        let ring = self.own.as_ref()?;
        if self.taken.is_empty() && self.passed < self.assembly.blocks() {
            ring.take(now, 0, &mut self.taken);
        }
        self.taken.front()
    }

    /// Frees the memory of a block that is among the merged ones now.
    pub(super) fn release(&mut self, now: Nanos, frame: Frame, merger: &BlockMerger) {
        self.passed += 1;
        self.pace.count_block(merger);
        self.released.push(frame);
        if let Some(ring) = &self.own {
            ring.release(now, &mut self.released);
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
    pub(super) fn take_back(&mut self, now: Nanos) {
        while self.next_complete(now).is_some() {
            self.passed += 1;
            if let Some(packed) = self.taken.pop_front().and_then(|frame| frame.packed) {
                self.assembly.take_back(packed.packets, packed.bytes);
            }
        }
    }
}
