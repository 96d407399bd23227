//! Parts of a recording that are read ahead of requests, and their memory.

use std::{
    io,
    ops::{Deref, Range},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use nilometer_storage::{Buffer, buffer::ALIGNMENT};

use crate::view::{RecordingView, Run};

/// Free buffers for reuse. The kernel has already mapped their pages.
#[derive(Debug)]
pub(super) struct Pool {
    size: usize,
    free: Mutex<Vec<Buffer>>,
}

/// Limit on the free buffers kept, enough for a sequential reader.
const KEPT: usize = 8;

impl Pool {
    /// Creates a pool of buffers for pieces of `size` bytes.
    pub(super) fn new(size: u64) -> Self {
        Pool { size: size as usize, free: Mutex::default() }
    }

    fn free(&self) -> MutexGuard<'_, Vec<Buffer>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, buffer: Buffer) {
        let mut free = self.free();
        if free.len() < KEPT {
            free.push(buffer);
        }
    }

    /// Frees the buffers.
    pub(super) fn clear(&self) {
        self.free().clear();
    }

    fn take(&self) -> Buffer {
        let free = self.free().pop();
        free.unwrap_or_else(|| Buffer::alone(self.size))
    }
}

/// A part of a recording that is read ahead of requests.
#[derive(Debug)]
pub(super) struct Piece {
    /// Byte range in the recording.
    pub(super) range: Range<u64>,
    run: Option<Run>,
    /// `None` inside if reading failed unexpectedly.
    content: OnceLock<Option<Content>>,
}

/// The bytes read, in a part of a buffer.
#[derive(Debug)]
struct Content {
    buffer: Buffer,
    within: Range<usize>,
    pool: Arc<Pool>,
}

impl Deref for Content {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.buffer[self.within.clone()]
    }
}

impl Drop for Content {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        self.pool.put(buffer);
    }
}

impl Piece {
    /// Creates a piece in one file if there is a run, or else of bytes from any files.
    pub(super) fn new(range: Range<u64>, run: Option<Run>) -> Self {
        Piece { range, run, content: OnceLock::new() }
    }

    /// Returns the lane that holds the piece, if a single one does.
    pub(super) fn lane(&self) -> Option<usize> {
        self.run.map(|run| run.place.lane)
    }

    pub(super) fn is_read(&self) -> bool {
        self.content.get().is_some_and(Option::is_some)
    }

    /// Waits for the piece and returns its bytes. `None` if reading was given up.
    pub(super) fn bytes(&self) -> Option<&[u8]> {
        self.content.wait().as_deref()
    }

    /// Gives up reading. Threads that wait for the piece then read for themselves.
    pub(super) fn give_up(&self) {
        drop(self.content.set(None));
    }

    /// Reads the piece, past the page cache if it lies in one file. Otherwise, or if that fails, reads through
    /// the view.
    pub(super) fn fill(&self, whole: &RecordingView, pool: &Arc<Pool>) {
        let mut buffer = pool.take();
        let direct = self.run.ok_or_else(|| io::ErrorKind::Unsupported.into());
        let direct = direct.and_then(|run| self.read_past_cache(whole, run, &mut buffer));
        let within = direct.unwrap_or_else(|_| {
            let length = (self.range.end - self.range.start) as usize;
            let read = whole.read_at(self.range.start, &mut buffer[..length]);
            // The view is shorter only if a lane appeared in the meantime. The reader then drops the piece.
            buffer[read..length].fill(0);
            0..length
        });
        // Only the thread that received the piece fills it.
        drop(self.content.set(Some(Content { buffer, within, pool: pool.clone() })));
    }

    /// Reads whole pages and returns the position of the piece in the buffer.
    fn read_past_cache(
        &self,
        whole: &RecordingView,
        run: Run,
        buffer: &mut Buffer,
    ) -> io::Result<Range<usize>> {
        let page = ALIGNMENT as u64;
        let begin = run.at / page * page;
        let length = self.range.end - self.range.start;
        let end = (run.at + length).next_multiple_of(page);
        let within = (run.at - begin) as usize..(run.at - begin + length) as usize;
        let read =
            whole.files.read_past_cache(whole, run.place, begin, &mut buffer[..(end - begin) as usize])?;
        if read < within.end { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(within) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_not_needed_any_more_is_given_back() {
        let pool = Pool::new(ALIGNMENT as u64);
        let taken: Vec<_> = (0..3 * KEPT).map(|_| pool.take()).collect();
        for buffer in taken {
            pool.put(buffer);
        }
        assert_eq!(pool.free().len(), KEPT);
        pool.clear();
        assert_eq!(pool.free().len(), 0);
    }
}
