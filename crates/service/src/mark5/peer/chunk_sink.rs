//! A recording in chunks that receives the stream of another recorder: `record` over TCP. Its chunks have whole frames,
//! and no journal.

use std::{
    fs::File,
    io::{self, Write},
};

use super::{
    chunk_store::{ChunkId, ChunkStore, create},
    receiver::PeerSink,
};

/// A recording in chunks that receives a stream.
#[derive(Debug)]
pub(crate) struct ChunkSink {
    store: ChunkStore,
    /// The next chunk.
    next: ChunkId,
    /// The bytes of each chunk except the last one.
    chunk_bytes: u64,
    /// The chunk being written, and the bytes that it still takes.
    open: Option<(File, u64)>,
}

impl ChunkSink {
    /// A recording of this name, in chunks of as many whole frames as fit into `most` bytes, at least one.
    pub(crate) fn new(store: ChunkStore, recording: String, most: u64, frame: u64) -> Self {
        let frame = frame.max(1);
        let chunk_bytes = (most / frame).max(1) * frame;
        ChunkSink { store, next: ChunkId { recording, number: 0 }, chunk_bytes, open: None }
    }

    /// The chunk being written, or a new one, and the bytes that it still takes.
    fn chunk(&mut self) -> io::Result<&mut (File, u64)> {
        if self.open.is_none() {
            let root = self.store.root_for(self.chunk_bytes)?;
            let file = create(&root.join(self.next.relative()))?;
            self.next.number += 1;
            self.open = Some((file, self.chunk_bytes));
        }
        self.open.as_mut().ok_or_else(|| io::Error::other("no chunk"))
    }
}

impl PeerSink for ChunkSink {
    fn take(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let (file, left) = self.chunk()?;
            let count = (bytes.len() as u64).min(*left) as usize;
            file.write_all(&bytes[..count])?;
            *left -= count as u64;
            bytes = &bytes[count..];
            if *left == 0 {
                self.finish()?;
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        match self.open.take() {
            Some((file, _)) => file.sync_all(),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use nilometer_model::Bytes;

    use super::*;

    #[test]
    fn a_stream_becomes_chunks_of_whole_frames() {
        let root = tempfile::tempdir().expect("space");
        let store = ChunkStore::new(vec![root.path().to_owned()], Bytes(0));
        let mut sink = ChunkSink::new(store.clone(), "x".into(), 25, 10);
        let bytes: Vec<u8> = (0..47).collect();
        for piece in bytes.chunks(7) {
            sink.take(piece).expect("space");
        }
        sink.finish().expect("space");
        let found = store.chunks("x").expect("readable");
        let parts: Vec<Vec<u8>> = found.iter().map(|(_, path)| std::fs::read(path).expect("there")).collect();
        assert_eq!(parts.iter().map(Vec::len).collect::<Vec<_>>(), [20, 20, 7]);
        assert_eq!(parts.concat(), bytes);
    }
}
