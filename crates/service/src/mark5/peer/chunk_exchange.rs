//! The exchange of chunks with another recorder: `vbs2net` and `net2vbs`. The sender offers a list of chunks, the
//! receiver replies which of them it needs, and each chunk comes over a connection of its own.
//!
//! ```text
//! sender: offer, list of chunks    ->
//!                                  <- reply, list of chunks that it has or needs
//! sender: header, bytes of a chunk ->   (again for each chunk)
//!                                  <- closes the connection when the chunk is stored
//! ```

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
};

use nilometer_intake::transport::Allowed;

use super::{
    chunk_header::{ChunkHeader, ListKind, invalid, list_of, read_list},
    chunk_store::{ChunkId, ChunkStore, create, is_scan_name, open},
    line::PeerLine,
    progress::TransferProgress,
};

/// Bytes that are read and written at once.
const PIECE: u64 = 1 << 20;

/// Sends the chunks of a recording that the other recorder does not have.
pub(crate) fn send_chunks(
    chunks: &[(ChunkId, PathBuf)],
    to: SocketAddr,
    progress: &TransferProgress,
) -> io::Result<()> {
    let needed = offer(chunks, PeerLine::connect(to, progress)?)?;
    progress.connect();
    for (chunk, path) in chunks.iter().filter(|(chunk, _)| needed.contains(&chunk.relative())) {
        let mut line = PeerLine::connect(to, progress)?;
        match send_chunk(chunk, path, &mut line, progress) {
            Ok(()) => line.await_stored()?,
            Err(error) => {
                line.break_off();
                return Err(error);
            }
        }
    }
    Ok(())
}

/// Offers chunks, and returns the names of those that the other recorder needs.
fn offer(chunks: &[(ChunkId, PathBuf)], mut line: PeerLine<'_>) -> io::Result<BTreeSet<String>> {
    let names: Vec<String> = chunks.iter().map(|(chunk, _)| chunk.relative()).collect();
    let list = list_of(names.iter().map(String::as_str));
    let recording = chunks.first().map_or_else(String::new, |(chunk, _)| chunk.recording.clone());
    line.write_all(&ChunkHeader::Offer { recording, list: list.len() as u64 }.bytes())?;
    line.write_all(&list)?;
    let ChunkHeader::Reply { kind, list } = ChunkHeader::read(&mut line)? else {
        return Err(invalid("no reply to an offer of chunks"));
    };
    let listed: BTreeSet<String> = read_list(&mut line, list)?.into_iter().collect();
    Ok(match kind {
        ListKind::Need => listed,
        ListKind::Have => names.into_iter().filter(|name| !listed.contains(name)).collect(),
    })
}

fn send_chunk(
    chunk: &ChunkId,
    path: &Path,
    line: &mut PeerLine<'_>,
    progress: &TransferProgress,
) -> io::Result<()> {
    let mut file = open(path)?;
    let bytes = file.metadata()?.len();
    line.write_all(&ChunkHeader::Chunk { relative: chunk.relative(), bytes }.bytes())?;
    move_bytes(&mut file, line, bytes, progress)
}

/// Moves this many bytes, and waits while the recorder records.
fn move_bytes(
    from: &mut impl Read,
    to: &mut impl Write,
    bytes: u64,
    progress: &TransferProgress,
) -> io::Result<()> {
    let mut piece = Vec::new();
    let mut left = bytes;
    while left > 0 {
        progress.give_way()?;
        piece.resize(PIECE.min(left) as usize, 0);
        from.read_exact(&mut piece)?;
        to.write_all(&piece)?;
        left -= piece.len() as u64;
        progress.add(piece.len() as u64);
    }
    Ok(())
}

/// Answers offers and stores chunks, until a command ends the transfer or storage fails.
pub(crate) fn take_chunks(
    listener: &TcpListener,
    senders: &Allowed,
    mut store: ChunkStore,
    progress: &TransferProgress,
) -> io::Result<()> {
    loop {
        let mut line = match PeerLine::accept(listener, senders, progress) {
            Ok(line) => line,
            // A command ends such a transfer; nothing else does.
            Err(_) if progress.check().is_err() => return Ok(()),
            Err(error) => return Err(error),
        };
        progress.connect();
        match ChunkHeader::read(&mut line) {
            Ok(ChunkHeader::Offer { recording, list }) => reply(&recording, list, &store, line)?,
            Ok(ChunkHeader::Chunk { relative, bytes }) => {
                take_chunk(&relative, bytes, &mut store, line, progress)?;
            }
            // A connection without a header takes nothing away from others.
            Ok(ChunkHeader::Reply { .. }) | Err(_) => line.break_off(),
        }
    }
}

/// Replies which chunks of an offer are needed. The shorter list goes over the line.
fn reply(recording: &str, list: u64, store: &ChunkStore, mut line: PeerLine<'_>) -> io::Result<()> {
    if !is_scan_name(recording) || store.has_journal(recording) {
        line.break_off();
        return Err(invalid(&format!("{recording:?} is a recording of this recorder, or no valid name")));
    }
    let Ok(offered) = read_list(&mut line, list) else { return Ok(()) };
    let here: BTreeSet<String> = store.chunks(recording)?.iter().map(|(chunk, _)| chunk.relative()).collect();
    let (have, need): (Vec<&str>, Vec<&str>) =
        offered.iter().map(String::as_str).partition(|name| here.contains(*name));
    let (kind, names) = if have.len() < need.len() { (ListKind::Have, have) } else { (ListKind::Need, need) };
    let list = list_of(names);
    let header = ChunkHeader::Reply { kind, list: list.len() as u64 }.bytes();
    // A sender that has gone needs no reply.
    let sent = line.write_all(&header).and_then(|()| line.write_all(&list));
    if sent.is_ok() {
        drop(line.await_close());
    }
    Ok(())
}

/// Stores a chunk under a name that no reader takes for a chunk, and renames it when all of it is durable.
fn take_chunk(
    relative: &str,
    bytes: u64,
    store: &mut ChunkStore,
    mut line: PeerLine<'_>,
    progress: &TransferProgress,
) -> io::Result<()> {
    let chunk = ChunkId::read(relative).filter(|chunk| !store.has_journal(&chunk.recording));
    let Some(chunk) = chunk else {
        line.break_off();
        return Err(invalid(&format!("{relative:?} is no valid name of a chunk")));
    };
    let root = store.root_for(bytes)?;
    let partial = root.join(&chunk.recording).join(format!(".{}.partial", chunk.number));
    let whole = root.join(chunk.relative());
    let stored = store_chunk(&partial, &mut line, bytes, progress);
    let kept = stored.and_then(|()| keep_chunk(&partial, &whole).map_err(ChunkFailure::Storage));
    let Err(failure) = kept else { return Ok(()) };
    // The sender takes a connection that is closed in order for a chunk that is stored.
    line.break_off();
    drop(fs::remove_file(&partial));
    match failure {
        ChunkFailure::Storage(error) => Err(error),
        // The sender may come again.
        ChunkFailure::Sender => Ok(()),
    }
}

/// The reason why a chunk is not stored.
#[derive(Debug)]
enum ChunkFailure {
    /// The sender has gone.
    Sender,
    /// The storage failed.
    Storage(io::Error),
}

fn store_chunk(
    partial: &Path,
    line: &mut PeerLine<'_>,
    bytes: u64,
    progress: &TransferProgress,
) -> Result<(), ChunkFailure> {
    // A transfer that was killed may have left one behind.
    drop(fs::remove_file(partial));
    let mut file = StoringFile { file: create(partial).map_err(ChunkFailure::Storage)?, failure: None };
    let moved = move_bytes(line, &mut file, bytes, progress);
    let StoringFile { file, failure } = file;
    match (failure, moved) {
        (Some(error), _) => Err(ChunkFailure::Storage(error)),
        (None, Err(_)) => Err(ChunkFailure::Sender),
        (None, Ok(())) => file.sync_all().map_err(ChunkFailure::Storage),
    }
}

/// A file that keeps its error, to tell it apart from the sender's.
#[derive(Debug)]
struct StoringFile {
    file: File,
    failure: Option<io::Error>,
}

impl Write for StoringFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes);
        if let Err(error) = &written {
            self.failure = (error.kind() != io::ErrorKind::Interrupted).then(|| error.kind().into());
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Gives a durable chunk its name, unless another one has it already.
fn keep_chunk(partial: &Path, whole: &Path) -> io::Result<()> {
    if whole.exists() {
        fs::remove_file(partial)?;
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{} exists", whole.display())));
    }
    fs::rename(partial, whole)?;
    match whole.parent() {
        Some(directory) => File::open(directory)?.sync_all(),
        None => Ok(()),
    }
}
