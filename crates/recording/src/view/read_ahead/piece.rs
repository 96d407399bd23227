//! Parts of a recording that are read before somebody asks for them, and the memory that they are read into.

use std::{
    io,
    ops::{Deref, Range},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use nilometer_storage::{Buffer, buffer::ALIGNMENT};

use crate::view::{RecordingView, Run};

/// Memory that was used and is free again: it was touched before, and is not asked of the kernel anew.
#[derive(Debug)]
pub(super) struct Pool {
    size: usize,
    free: Mutex<Vec<Buffer>>,
}

/// Buffers that are free and kept: a reader that goes on needs no more.
const KEPT: usize = 8;

impl Pool {
    /// For pieces of so many bytes.
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

    /// Gives the memory back.
    pub(super) fn clear(&self) {
        self.free().clear();
    }

    fn take(&self) -> Buffer {
        let free = self.free().pop();
        free.unwrap_or_else(|| Buffer::alone(self.size))
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Piece {
    /// Where in the recording.
    pub(super) range: Range<u64>,
    run: Option<Run>,
    /// None if reading it failed in a way that should not be.
    content: OnceLock<Option<Content>>,
}

/// What was read, in a part of a buffer.
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
    /// In one file, if there is a run, or wherever its bytes lie.
    pub(super) fn new(range: Range<u64>, run: Option<Run>) -> Self {
        Piece { range, run, content: OnceLock::new() }
    }

    /// The lane that has it, if it is in one.
    pub(super) fn lane(&self) -> Option<usize> {
        self.run.map(|run| run.place.lane)
    }

    pub(super) fn is_read(&self) -> bool {
        self.content.get().is_some_and(Option::is_some)
    }

    /// Its bytes, when they are read; none if nobody will read them any more.
    pub(super) fn bytes(&self) -> Option<&[u8]> {
        self.content.wait().as_deref()
    }

    /// Nobody will read it: those who wait for it read for themselves.
    pub(super) fn give_up(&self) {
        drop(self.content.set(None));
    }

    /// Reads it: past the cache where it lies in one file. What can't be read that way is read as ever, or filled.
    pub(super) fn fill(&self, whole: &RecordingView, pool: &Arc<Pool>) {
        let mut buffer = pool.take();
        let direct = self.run.ok_or_else(|| io::ErrorKind::Unsupported.into());
        let direct = direct.and_then(|run| self.read_past_cache(whole, run, &mut buffer));
        let within = direct.unwrap_or_else(|_| {
            let length = (self.range.end - self.range.start) as usize;
            let read = whole.read_at(self.range.start, &mut buffer[..length]);
            // It ends earlier only if a lane turned up meanwhile: then it is forgotten.
            buffer[read..length].fill(0);
            0..length
        });
        // Only who was given the piece fills it.
        drop(self.content.set(Some(Content { buffer, within, pool: pool.clone() })));
    }

    /// Where in the buffer it is then: whole pages are read.
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
