//! Images that wait for the start of their series, in separate memory: the slots of the ring are for the
//! current series. Few are kept; the senders of all others wait too.

use std::collections::VecDeque;

use nilometer_storage::Buffer;
use nilometer_wire::series::SeriesName;

use super::queued::HeldImage;

/// Maximum number of images, and maximum bytes of all.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaitingLimits {
    pub(super) images: usize,
    pub(super) bytes: usize,
}

impl Default for WaitingLimits {
    fn default() -> Self {
        WaitingLimits { images: 1024, bytes: 32 << 20 }
    }
}

/// Maximum bytes of an image that is needed to complete a start. It may be as large as any image.
const SAMPLE_MAX: usize = 2 << 30;

/// Memory lent to a connection until its message is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LentBuffer {
    address: usize,
    length: usize,
}

/// Images whose start has not arrived.
#[derive(Debug, Default)]
pub(super) struct WaitingRoom {
    limits: WaitingLimits,
    images: VecDeque<HeldImage>,
    lent: Vec<LentBuffer>,
}

impl WaitingRoom {
    /// Makes a waiting room with unusual limits.
    #[cfg(test)]
    pub(super) fn limited(limits: WaitingLimits) -> Self {
        WaitingRoom { limits, ..WaitingRoom::default() }
    }

    /// Lends memory for the pixels of an image. `None` if too much waits. The first image of a series that
    /// needs it may have any size.
    pub(super) fn lend(&mut self, length: usize, is_sample: bool) -> Option<Buffer> {
        let taken: usize = self.lent.iter().map(|lent| lent.length).sum::<usize>() + self.bytes();
        let is_first = is_sample && self.lent.is_empty() && self.images.is_empty();
        let limit = if is_first { SAMPLE_MAX } else { self.limits.bytes };
        if self.images.len() + self.lent.len() >= self.limits.images || taken.saturating_add(length) > limit {
            return None;
        }
        let buffer = Buffer::alone(length.max(1));
        self.lent.push(LentBuffer { address: buffer.as_ptr().addr(), length });
        Some(buffer)
    }

    /// A connection is done with a buffer, which is no longer lent.
    pub(super) fn returns(&mut self, buffer: &Buffer) {
        self.lent.retain(|lent| lent.address != buffer.as_ptr().addr());
    }

    /// Keeps an image. Returns the oldest one if there is no more room for it.
    pub(super) fn keep(&mut self, image: HeldImage) -> Option<HeldImage> {
        self.images.push_back(image);
        let too_many = self.images.len() > self.limits.images;
        (too_many || self.images.len() > 1 && self.bytes() > self.limits.bytes)
            .then(|| self.images.pop_front())?
    }

    /// The image that has waited longest.
    pub(super) fn first(&self) -> Option<&HeldImage> {
        self.images.front()
    }

    /// Removes and returns the image that has waited longest.
    pub(super) fn take_first(&mut self) -> Option<HeldImage> {
        self.images.pop_front()
    }

    /// Removes and returns the images of a series, in their order.
    pub(super) fn take_of(&mut self, series: &SeriesName) -> Vec<HeldImage> {
        let all = std::mem::take(&mut self.images);
        let (ours, others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|held| held.image.series.is_same(series));
        self.images = others.into();
        ours
    }

    /// Removes and returns all images.
    pub(super) fn take_all(&mut self) -> Vec<HeldImage> {
        std::mem::take(&mut self.images).into()
    }

    fn bytes(&self) -> usize {
        self.images.iter().map(|held| held.queued.message.length() as usize).sum()
    }
}
