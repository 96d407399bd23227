//! The thread that reads a recording for an export: what it has read is taken by the workload, which waits for no disk.

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

/// A part of a recording that was read.
#[derive(Debug)]
pub(super) struct ExportPart {
    pub(super) buffer: Buffer,
    /// Bytes of it in the buffer.
    pub(super) length: usize,
    /// CRC-32 (ISO-HDLC) of the recording up to its end.
    pub(super) checksum: u32,
    /// It was overwritten before it was read.
    pub(super) overwritten: bool,
}

/// The workload's end of the thread.
#[derive(Debug)]
pub(super) struct Reading {
    free: SyncSender<Buffer>,
    read: Receiver<ExportPart>,
}

impl Reading {
    /// Reads into these buffers, in parts that end where one is full and at these offsets in bytes. Wakes whoever waits
    /// for the next part.
    ///
    /// # Errors
    ///
    /// The thread can't be started.
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
        // Room for every buffer: nobody waits to give one.
        let (free, to_fill) = mpsc::sync_channel(buffers.len());
        let (give, read) = mpsc::sync_channel(buffers.len());
        for buffer in buffers {
            drop(free.send(buffer));
        }
        let mut reader = Reader {
            ahead: ReadAhead::new(whole),
            to_fill,
            // The last to go: who is woken finds what was given, or that nobody gives any more.
            give: Some(give),
            waker,
            hasher: crc32fast::Hasher::new(),
        };
        thread.name("export".into()).spawn(move || reader.read_all(ends))?;
        Ok(Reading { free, read })
    }

    /// The next part, if it is read.
    pub(super) fn next(&self) -> Result<ExportPart, TryRecvError> {
        self.read.try_recv()
    }

    /// A buffer is free again.
    pub(super) fn give_back(&self, buffer: Buffer) {
        // All may be read, and nobody needs it.
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
                // Nobody takes it any more.
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
        // More than a process may have.
        let thread = thread::Builder::new().stack_size(1 << 60);
        let started = Reading::on(thread, whole, [1; 2], Vec::new(), Arc::new(Deaf));
        assert!(started.is_err(), "{started:?}");
    }
}
