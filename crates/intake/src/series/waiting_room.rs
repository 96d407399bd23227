//! Images that wait for the start of their series, in memory of their own: the slots of the ring are those of the series that is
//! recorded. Few are kept; of all others the sender waits with them.

use std::collections::VecDeque;

use nilometer_storage::Buffer;
use nilometer_wire::series::SeriesName;

use super::queued::HeldImage;

/// Images, at the most, and bytes of all.
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

/// An image that the start needs, since it leaves something out, may have as many bytes as any image.
const SAMPLE_MAX: usize = 2 << 30;

/// Memory that a connection was given, until its message is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LentBuffer {
    address: usize,
    length: usize,
}

/// Images whose start did not come yet.
#[derive(Debug, Default)]
pub(super) struct WaitingRoom {
    limits: WaitingLimits,
    images: VecDeque<HeldImage>,
    lent: Vec<LentBuffer>,
}

impl WaitingRoom {
    /// With other limits than usual.
    #[cfg(test)]
    pub(super) fn limited(limits: WaitingLimits) -> Self {
        WaitingRoom { limits, ..WaitingRoom::default() }
    }

    /// Memory for the pixels of an image. None if too much waits. The first image of a series that needs it may be of any size.
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

    /// A connection is done with a buffer: it is not lent any more, if it was.
    pub(super) fn returns(&mut self, buffer: &Buffer) {
        self.lent.retain(|lent| lent.address != buffer.as_ptr().addr());
    }

    /// Keeps an image; those that there is no room for any more, the oldest first.
    pub(super) fn keep(&mut self, image: HeldImage) -> Option<HeldImage> {
        self.images.push_back(image);
        let too_many = self.images.len() > self.limits.images;
        (too_many || self.images.len() > 1 && self.bytes() > self.limits.bytes)
            .then(|| self.images.pop_front())?
    }

    /// The image that waits longest.
    pub(super) fn first(&self) -> Option<&HeldImage> {
        self.images.front()
    }

    /// Takes out the image that waits longest.
    pub(super) fn take_first(&mut self) -> Option<HeldImage> {
        self.images.pop_front()
    }

    /// Takes out the images of a series, in their order.
    pub(super) fn take_of(&mut self, series: &SeriesName) -> Vec<HeldImage> {
        let all = std::mem::take(&mut self.images);
        let (ours, others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|held| held.image.series.is_same(series));
        self.images = others.into();
        ours
    }

    /// Takes out all.
    pub(super) fn take_all(&mut self) -> Vec<HeldImage> {
        std::mem::take(&mut self.images).into()
    }

    fn bytes(&self) -> usize {
        self.images.iter().map(|held| held.queued.message.length() as usize).sum()
    }
}
