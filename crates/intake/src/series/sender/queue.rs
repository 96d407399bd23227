//! Images that left the detector and wait for a connection.

use std::{collections::VecDeque, sync::Arc};

use super::pool::PackedImage;

/// Limits of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendQueueLimits {
    /// Maximum number of images, at least one.
    pub images: usize,
    /// Maximum bytes of their pixels, as sent. A single image may exceed it.
    pub bytes: u64,
}

/// An image in the queue.
#[derive(Debug)]
pub(super) struct QueuedImage {
    pub(super) number: u64,
    /// True if it is sent a second time.
    pub(super) is_copy: bool,
    pub(super) image: Arc<PackedImage>,
}

/// The queue of images: first in, first out.
#[derive(Debug)]
pub(super) struct SendQueue {
    limits: SendQueueLimits,
    waiting: VecDeque<QueuedImage>,
    bytes: u64,
    /// The largest number of images at once.
    most: usize,
}

impl SendQueue {
    pub(super) fn new(limits: SendQueueLimits) -> Self {
        SendQueue { limits, waiting: VecDeque::new(), bytes: 0, most: 0 }
    }

    /// Appends an image.
    ///
    /// # Errors
    /// Returns the image if there is no room for it.
    pub(super) fn push(&mut self, image: QueuedImage) -> Result<(), QueuedImage> {
        let bytes = image.image.bytes();
        let too_many = self.waiting.len() >= self.limits.images;
        if too_many || !self.waiting.is_empty() && self.bytes + bytes > self.limits.bytes {
            return Err(image);
        }
        self.bytes += bytes;
        self.waiting.push_back(image);
        self.most = self.most.max(self.waiting.len());
        Ok(())
    }

    /// Removes and returns the image that has waited longest.
    pub(super) fn pop(&mut self) -> Option<QueuedImage> {
        let image = self.waiting.pop_front()?;
        self.bytes -= image.image.bytes();
        Some(image)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn most(&self) -> usize {
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::sender::pool::ImagePool;

    fn image(pool: &Arc<ImagePool>, number: u64, length: usize) -> QueuedImage {
        let mut image = pool.take().expect("there is one");
        image.channels.iter_mut().for_each(|channel| channel.length = length);
        QueuedImage { number, is_copy: false, image: Arc::new(image) }
    }

    #[test]
    fn there_is_room_for_so_many_images_and_for_so_many_bytes() {
        let pool = Arc::new(ImagePool::new(10, 2, 100));
        let mut queue = SendQueue::new(SendQueueLimits { images: 3, bytes: 250 });
        // Larger than all that may wait, and alone.
        assert!(queue.push(image(&pool, 0, 100)).is_ok());
        assert!(queue.push(image(&pool, 1, 25)).is_ok(), "up to the last byte");
        assert_eq!(queue.push(image(&pool, 2, 1)).expect_err("252 bytes").number, 2);
        assert_eq!(queue.pop().map(|image| image.number), Some(0));
        assert!(queue.push(image(&pool, 3, 1)).is_ok() && queue.push(image(&pool, 4, 1)).is_ok());
        assert_eq!(queue.push(image(&pool, 5, 1)).expect_err("the fourth").number, 5);
        let left: Vec<_> = std::iter::from_fn(|| queue.pop()).map(|image| image.number).collect();
        assert_eq!((left, queue.most()), (vec![1, 3, 4], 3));
        assert!(queue.push(image(&pool, 6, 100)).is_ok(), "nothing waits, whatever its size");
        let mut tight = SendQueue::new(SendQueueLimits { images: 3, bytes: 10 });
        assert!(tight.push(image(&pool, 7, 100)).is_ok() && tight.push(image(&pool, 8, 1)).is_err());
    }
}
