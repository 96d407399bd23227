//! The thread that reads a recording for an export. The workload takes the parts and so never waits for a disk.

use std::{
    io,
    ops::Range,
    sync::{
        Arc,
        mpsc::{self, Receiver, SyncSender, TryRecvError},
    },
    thread,
};

use nilometer_storage::{Buffer, engine::Wake};

use nilometer_recording::view::{ReadAhead, RecordingView};

/// A part of a recording that the thread has read.
#[derive(Debug)]
pub(super) struct ExportPart {
    pub(super) buffer: Buffer,
    /// Bytes of the part in the buffer.
    pub(super) length: usize,
    /// CRC-32 (ISO-HDLC) of the recording up to the part's end.
    pub(super) checksum: u32,
    /// True if the recorder overwrote the part before it was read.
    pub(super) overwritten: bool,
}

/// The workload's side of the thread.
#[derive(Debug)]
pub(super) struct Reading {
    free: SyncSender<Buffer>,
    read: Receiver<ExportPart>,
}

impl Reading {
    /// Starts reading into these buffers. A part ends when its buffer is full and at these offsets in bytes.
    /// The thread wakes the waiting workload for each part.
    ///
    /// # Errors
    ///
    /// If the thread can't be started.
    pub(super) fn new(
        whole: Arc<RecordingView>,
        ends: [u64; 2],
        buffers: Vec<Buffer>,
        waker: Arc<dyn Wake>,
    ) -> io::Result<Self> {
        Reading::on(thread::Builder::new(), whole, ends, buffers, waker)
    }

    fn on(
        thread: thread::Builder,
        whole: Arc<RecordingView>,
        ends: [u64; 2],
        buffers: Vec<Buffer>,
        waker: Arc<dyn Wake>,
    ) -> io::Result<Self> {
        // The channels hold every buffer, so sending never blocks.
        let (free, to_fill) = mpsc::sync_channel(buffers.len());
        let (give, read) = mpsc::sync_channel(buffers.len());
        for buffer in buffers {
            drop(free.send(buffer));
        }
        let mut reader = Reader {
            ahead: ReadAhead::new(whole),
            to_fill,
            // The reader drops this before the last wake. The woken workload then finds the last part, or that
            // no more will come.
            give: Some(give),
            waker,
            hasher: crc32fast::Hasher::new(),
        };
        thread.name("export".into()).spawn(move || reader.read_all(ends))?;
        Ok(Reading { free, read })
    }

    /// Returns the next part, if it has been read.
    pub(super) fn next(&self) -> Result<ExportPart, TryRecvError> {
        self.read.try_recv()
    }

    /// Takes back a buffer for reuse.
    pub(super) fn give_back(&self, buffer: Buffer) {
        // If the thread has read everything, nobody needs the buffer.
        drop(self.free.send(buffer));
    }
}

struct Reader {
    ahead: ReadAhead,
    to_fill: Receiver<Buffer>,
    give: Option<SyncSender<ExportPart>>,
    waker: Arc<dyn Wake>,
    hasher: crc32fast::Hasher,
}

impl Reader {
    fn read_all(&mut self, ends: [u64; 2]) {
        let mut offset = 0;
        for end in ends {
            while offset < end {
                // If the workload is gone, end.
                let Ok(buffer) = self.to_fill.recv() else { return };
                let length = buffer.len().min((end - offset).try_into().unwrap_or(usize::MAX));
                let part = self.part(offset..offset + length as u64, buffer);
                if self.give.as_ref().is_none_or(|give| give.send(part).is_err()) {
                    return;
                }
                self.waker.wake();
                offset += length as u64;
            }
        }
    }

    fn part(&mut self, range: Range<u64>, mut buffer: Buffer) -> ExportPart {
        let length = (range.end - range.start) as usize;
        self.ahead.read_at(range.start, &mut buffer[..length]);
        let overwritten = self.ahead.whole().is_overwritten(range);
        self.hasher.update(&buffer[..length]);
        ExportPart { buffer, length, checksum: self.hasher.clone().finalize(), overwritten }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.give = None;
        self.waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use nilometer_model::Storing;
    use nilometer_recording::view::{
        Extent,
        laid_out::{PACKET_CASES, laid_out},
    };

    use super::*;

    struct Deaf;

    impl Wake for Deaf {
        fn wake(&self) {}
    }

    #[test]
    fn a_thread_that_can_not_be_started_is_said() {
        let (lanes, _) = laid_out(PACKET_CASES[0], Storing::Files, 1, &[Some(0); 9], 4);
        let whole = Arc::new(lanes.whole(Extent::All));
        // A larger stack than any process may have.
        let thread = thread::Builder::new().stack_size(1 << 60);
        let started = Reading::on(thread, whole, [1; 2], Vec::new(), Arc::new(Deaf));
        assert!(started.is_err(), "{started:?}");
    }
}
