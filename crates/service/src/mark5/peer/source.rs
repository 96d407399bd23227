//! The bytes that a transfer sends: a recording with all its gaps filled, or a file.

use std::{fs::File, io, os::unix::fs::FileExt, sync::Arc};

use nilometer_recording::view::{ReadAhead, RecordingView};

/// The source of a transfer.
#[derive(Debug, Clone)]
pub(crate) enum PeerSource {
    /// A recording, as one stream.
    Recording(Arc<RecordingView>),
    /// A file of this many bytes.
    File(Arc<File>, u64),
}

impl PeerSource {
    /// The bytes of the stream.
    pub(crate) fn length(&self) -> u64 {
        match self {
            PeerSource::Recording(view) => view.length(),
            PeerSource::File(_, length) => *length,
        }
    }

    /// A reader that goes through the stream once.
    pub(crate) fn reader(&self) -> SourceReader {
        match self {
            PeerSource::Recording(view) => SourceReader::Recording(ReadAhead::new(view.clone())),
            PeerSource::File(file, _) => SourceReader::File(file.clone()),
        }
    }
}

/// Reads a source from its begin to its end.
#[derive(Debug)]
pub(crate) enum SourceReader {
    Recording(ReadAhead),
    File(Arc<File>),
}

impl SourceReader {
    /// Reads all of `into`. Blocks of a recording that can't be read come as frames that are marked invalid.
    pub(crate) fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        match self {
            SourceReader::File(file) => file.read_exact_at(into, at),
            SourceReader::Recording(ahead) => match ahead.read_at(at, into) {
                count if count == into.len() => Ok(()),
                _ => Err(io::ErrorKind::UnexpectedEof.into()),
            },
        }
    }

    /// Fails if blocks of the recording could not be read.
    pub(crate) fn check(&self) -> io::Result<()> {
        match self {
            SourceReader::Recording(ahead) if ahead.whole().faulted() > 0 => {
                let faults = ahead.whole().faults();
                let first = faults.first.unwrap_or_default();
                let count = ahead.whole().faulted();
                Err(io::Error::other(format!(
                    "{count} blocks can't be read, invalid frames replace them, {first}"
                )))
            }
            _ => Ok(()),
        }
    }
}
