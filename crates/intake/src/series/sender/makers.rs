//! Threads that make images and compress them, each a share of the series, some ahead of their time.

use std::{
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::Scope,
};

use nilometer_codec::{ChunkCodec, ElementSize};
use nilometer_wire::stream1;

use super::{
    SimulatedSeries, StreamVersion,
    pool::{ImagePool, PackedImage},
};

/// Images that a thread keeps ready, in addition to the one that it makes.
pub(super) const READY: usize = 2;

impl SimulatedSeries {
    /// Starts all threads. Image `i` comes from the thread with number `i` modulo their count.
    pub(super) fn make_all<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        pool: &Arc<ImagePool>,
    ) -> Vec<Receiver<PackedImage>> {
        let mut ready = Vec::new();
        for first in 0..self.threads.max(1) as u64 {
            let (sender, receiver) = sync_channel(READY);
            let pool = pool.clone();
            scope.spawn(move || self.make(first, &pool, &sender));
            ready.push(receiver);
        }
        ready
    }

    /// Makes all images of a thread, until the receiver is gone.
    fn make(&self, first: u64, pool: &Arc<ImagePool>, ready: &SyncSender<PackedImage>) {
        let channels = self.start.channels.len() as u64;
        let mut frame = vec![0; self.content.frame_size()];
        self.content.prepare_slot(&mut frame);
        let size = ElementSize::of(self.start.element.bytes() as u64).unwrap_or(ElementSize::One);
        let mut codec = ChunkCodec::new(self.codec(), size);
        for number in (first..self.start.images).step_by(self.threads.max(1)) {
            let Some(mut image) = pool.take() else { return };
            for (channel, packed) in (0..channels).zip(&mut image.channels) {
                self.content.fill(number * channels + channel, &mut frame);
                let length = codec.encode(&frame, &mut packed.memory);
                packed.length = length.expect("whole pixels, and room for the longest");
                if self.version == StreamVersion::One {
                    packed.hash = stream1::hash_of(packed.bytes());
                }
            }
            if ready.send(image).is_err() {
                return;
            }
        }
    }
}
