//! Memory of packed images, used again and again.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// The packed pixels of an image, by channel. On drop its memory returns to the pool.
#[derive(Debug)]
pub(super) struct PackedImage {
    pub(super) channels: Vec<PackedChannel>,
    pool: Arc<ImagePool>,
}

/// One channel of an image.
#[derive(Debug)]
pub(super) struct PackedChannel {
    /// Memory for the longest packed frame.
    pub(super) memory: Vec<u8>,
    /// Length of the packed frame in it.
    pub(super) length: usize,
    /// The MD5 hash of these bytes, if the protocol version has it.
    pub(super) hash: String,
}

/// The bytes of one channel of an image that others may share.
#[derive(Debug)]
pub(super) struct SharedChannel {
    pub(super) image: Arc<PackedImage>,
    pub(super) channel: usize,
}

/// A limited pool of image memory.
#[derive(Debug)]
pub(super) struct ImagePool {
    state: Mutex<PoolState>,
    given_back: Condvar,
    limit: usize,
    channels: usize,
    size: usize,
}

#[derive(Debug, Default)]
struct PoolState {
    spare: Vec<Vec<PackedChannel>>,
    made: usize,
    closed: bool,
}

impl ImagePool {
    /// Makes a pool of at most `limit` images with this number of channels, each with at most `size` bytes.
    pub(super) fn new(limit: usize, channels: usize, size: usize) -> Self {
        ImagePool { state: Mutex::default(), given_back: Condvar::new(), limit, channels, size }
    }

    /// Takes an image to be filled. At the limit it waits for one to be given back. `None` after the pool was
    /// closed.
    pub(super) fn take(self: &Arc<Self>) -> Option<PackedImage> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if state.closed {
                return None;
            }
            if let Some(channels) = state.spare.pop() {
                return Some(PackedImage { channels, pool: self.clone() });
            }
            if state.made < self.limit {
                state.made += 1;
                break;
            }
            state = self.given_back.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        // Zeroed memory takes no space before it is written.
        let channel = |_| PackedChannel { memory: vec![0; self.size], length: 0, hash: String::new() };
        Some(PackedImage { channels: (0..self.channels).map(channel).collect(), pool: self.clone() })
    }

    /// Closes the pool and wakes all waiters: no more images are needed.
    pub(super) fn close(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.given_back.notify_all();
    }

    /// Number of images for which there is memory.
    #[cfg(test)]
    pub(super) fn made(&self) -> usize {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).made
    }
}

impl PackedImage {
    /// Bytes of all its channels.
    pub(super) fn bytes(&self) -> u64 {
        self.channels.iter().map(|channel| channel.length as u64).sum()
    }
}

impl PackedChannel {
    /// The frame's bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.memory[..self.length]
    }
}

impl Drop for PackedImage {
    fn drop(&mut self) {
        let channels = std::mem::take(&mut self.channels);
        self.pool.state.lock().unwrap_or_else(PoisonError::into_inner).spare.push(channels);
        self.pool.given_back.notify_one();
    }
}

impl AsRef<[u8]> for SharedChannel {
    fn as_ref(&self) -> &[u8] {
        self.image.channels[self.channel].bytes()
    }
}
