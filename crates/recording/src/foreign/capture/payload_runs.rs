//! The payload of captured packets as one file. Packets of one size lie at equal distances, so a run of them
//! takes as little memory as one packet.

use std::{io, path::Path, sync::Arc};

use rustix::fs::FileType;

use crate::{
    recording_file::{PageCache, RecordingFile},
    recording_storage::{MountedDirectories, RecordingStorage, StoredFile},
};

/// Payloads of one size, at equal distances in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PayloadRun {
    /// Offset of the first in the stream, and in the file.
    begin: u64,
    at: u64,
    size: u64,
    stride: u64,
    count: u64,
}

/// The payloads of a stream, in their order.
#[derive(Debug, Default)]
pub(super) struct PayloadRuns {
    runs: Vec<PayloadRun>,
    length: u64,
}

impl PayloadRuns {
    /// Adds a payload of at least a byte, which lies behind the others in the file.
    pub(super) fn add(&mut self, at: u64, size: u64) {
        let begin = self.length;
        self.length += size;
        if let Some(run) = self.runs.last_mut().filter(|run| run.size == size) {
            if run.count == 1 {
                run.stride = at - run.at;
            }
            if run.at + run.count * run.stride == at {
                run.count += 1;
                return;
            }
        }
        self.runs.push(PayloadRun { begin, at, size, stride: size, count: 1 });
    }

    /// Bytes of the stream.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Returns the offset in the file of a byte of the stream, and the bytes that follow it there.
    fn place(&self, offset: u64) -> Option<(u64, u64)> {
        let run = self.runs.partition_point(|run| run.begin <= offset).checked_sub(1)?;
        let PayloadRun { begin, at, size, stride, count } = self.runs[run];
        let packet = (offset - begin) / size;
        let within = (offset - begin) % size;
        (packet < count).then(|| (at + packet * stride + within, size - within))
    }
}

/// The stream in an open capture.
#[derive(Debug)]
struct CaptureFile {
    file: Box<dyn StoredFile>,
    runs: Arc<PayloadRuns>,
}

impl StoredFile for CaptureFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        // Fill all of `into`: readers of whole pages take a short read for the end.
        while let Some((at, there)) = self.runs.place(offset.saturating_add(done as u64)) {
            let length = there.min((into.len() - done) as u64) as usize;
            if length == 0 {
                break;
            }
            self.file.read_exact_at(&mut into[done..done + length], at)?;
            done += length;
        }
        Ok(done)
    }
}

/// Opens a capture as the stream in it.
#[derive(Debug)]
pub(super) struct CaptureStorage(pub(super) Arc<PayloadRuns>);

impl CaptureStorage {
    fn stream(&self, RecordingFile { file, access }: RecordingFile) -> RecordingFile {
        RecordingFile { file: Box::new(CaptureFile { file, runs: self.0.clone() }), access }
    }
}

impl RecordingStorage for CaptureStorage {
    fn open(&self, path: &Path) -> io::Result<RecordingFile> {
        MountedDirectories.open(path).map(|opened| self.stream(opened))
    }

    fn open_of(&self, path: &Path, user: u32, _: PageCache) -> io::Result<RecordingFile> {
        // Payloads begin anywhere, so reads past the page cache are not possible.
        MountedDirectories.open_of(path, user, PageCache::Through).map(|opened| self.stream(opened))
    }

    fn each_name(&self, directory: &Path, take: &mut dyn FnMut(&str, FileType)) -> io::Result<()> {
        MountedDirectories.each_name(directory, take)
    }

    fn is_there(&self, path: &Path) -> bool {
        MountedDirectories.is_there(path)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::foreign::testing::InMemory;

    proptest! {
        #[test]
        fn the_stream_is_the_payloads_one_after_the_other(
            payloads in prop::collection::vec((1..9_usize, 0..4_usize), 1..60), from in 0..300_usize, length in 0..300_usize,
        ) {
            let mut runs = PayloadRuns::default();
            let (mut file, mut stream) = (Vec::new(), Vec::new());
            for (number, (size, gap)) in payloads.into_iter().enumerate() {
                file.extend(vec![0; gap]);
                runs.add(file.len() as u64, size as u64);
                let payload = vec![number as u8 + 1; size];
                file.extend(&payload);
                stream.extend(payload);
            }
            let opened = CaptureFile { file: Box::new(InMemory(file)), runs: Arc::new(runs) };
            let mut read = vec![0; length];
            let count = opened.read_at(&mut read, from as u64).expect("memory can be read");
            let expected = stream.get(from..).unwrap_or_default();
            prop_assert_eq!(&read[..count], &expected[..expected.len().min(length)]);
        }
    }

    #[test]
    fn equal_packets_take_the_memory_of_one() {
        let mut runs = PayloadRuns::default();
        (0..10_000).for_each(|packet| runs.add(40 + packet * 8090, 8032));
        runs.add(100_000_000, 8032);
        runs.add(100_009_000, 60);
        assert_eq!((runs.runs.len(), runs.length()), (3, 10_001 * 8032 + 60));
    }
}
