//! Memory of packed images, used again and again.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// The pixels of an image, packed, by channel. Its memory goes back where it is from.
#[derive(Debug)]
pub(super) struct PackedImage {
    pub(super) channels: Vec<PackedChannel>,
    pool: Arc<ImagePool>,
}

/// One channel of an image.
#[derive(Debug)]
pub(super) struct PackedChannel {
    /// As long as any packed frame may be.
    pub(super) memory: Vec<u8>,
    /// Its first so many bytes are the frame's.
    pub(super) length: usize,
    /// Their MD5, where the version has it.
    pub(super) hash: String,
}

/// The bytes of one channel, of an image that others may need too.
#[derive(Debug)]
pub(super) struct SharedChannel {
    pub(super) image: Arc<PackedImage>,
    pub(super) channel: usize,
}

/// See the module.
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
    /// Of so many images, each of so many channels, each of so many bytes at the most.
    pub(super) fn new(limit: usize, channels: usize, size: usize) -> Self {
        ImagePool { state: Mutex::default(), given_back: Condvar::new(), limit, channels, size }
    }

    /// An image to be filled: waits for one that is given back where there are as many as there may be. None when nobody wants
    /// any more.
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
        // Zeros take no memory before something is written to them.
        let channel = |_| PackedChannel { memory: vec![0; self.size], length: 0, hash: String::new() };
        Some(PackedImage { channels: (0..self.channels).map(channel).collect(), pool: self.clone() })
    }

    /// No image is wanted any more: who waits for one is told.
    pub(super) fn close(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.given_back.notify_all();
    }

    /// Images for which there is memory.
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
