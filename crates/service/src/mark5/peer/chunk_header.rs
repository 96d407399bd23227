//! The headers in front of chunks: lines of `key: value`, each with a zero byte behind it, and one more zero byte at
//! the end. There is no I/O here, except that a header comes from a reader.
//!
//! Source: `src/threadfns/kvmap.cc` and `src/threadfns/multisend.cc` in the repository of jive5ab at 971c3d6.

use std::io::{self, Read};

/// The most bytes of a header.
const HEADER_MAX: usize = 4096;
/// The most bytes of a list of chunks: more than a hundred thousand names.
const LIST_MAX: u64 = 16 << 20;

/// A message between two recorders that compare their chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChunkHeader {
    /// `requestRsync`: the sender has a recording. A list of its chunks follows, of this many bytes.
    Offer { recording: String, list: u64 },
    /// `fileName`: a chunk follows, of this many bytes.
    Chunk { relative: String, bytes: u64 },
    /// `rsyncReplySz`: a list of chunks follows, of this many bytes.
    Reply { kind: ListKind, list: u64 },
}

/// The chunks in a reply to an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListKind {
    /// Chunks that the receiver has.
    Have,
    /// Chunks that the receiver needs.
    Need,
}

impl ListKind {
    fn word(self) -> &'static str {
        match self {
            ListKind::Have => "have",
            ListKind::Need => "need",
        }
    }
}

impl ChunkHeader {
    /// The bytes of the header.
    pub(super) fn bytes(&self) -> Vec<u8> {
        match self {
            ChunkHeader::Offer { recording, list } => {
                format!("payloadSize: {list}\0requestRsync: {recording}\0\0").into_bytes()
            }
            ChunkHeader::Chunk { relative, bytes } => {
                format!("fileName: {relative}\0fileSize: {bytes}\0\0").into_bytes()
            }
            ChunkHeader::Reply { kind, list } => {
                format!("listType: {}\0rsyncReplySz: {list}\0\0", kind.word()).into_bytes()
            }
        }
    }

    /// Reads a header, and not a byte behind it.
    pub(super) fn read(from: &mut impl Read) -> io::Result<Self> {
        let mut bytes = Vec::new();
        let mut byte = [0];
        while !bytes.ends_with(b"\0\0") {
            if bytes.len() == HEADER_MAX {
                return Err(invalid("a header of a chunk is too long"));
            }
            from.read_exact(&mut byte)?;
            bytes.push(byte[0]);
        }
        ChunkHeader::parse(&bytes).ok_or_else(|| invalid("no header of a chunk"))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let text = str::from_utf8(bytes).ok()?;
        let value = |key: &str| {
            let mut lines = text.split('\0').filter_map(|line| line.split_once(": "));
            lines.find(|(name, _)| *name == key).map(|(_, value)| value)
        };
        let number = |key: &str| value(key)?.parse().ok();
        if let Some(relative) = value("fileName") {
            return Some(ChunkHeader::Chunk { relative: relative.to_owned(), bytes: number("fileSize")? });
        }
        if let Some(recording) = value("requestRsync") {
            return Some(ChunkHeader::Offer {
                recording: recording.to_owned(),
                list: number("payloadSize")?,
            });
        }
        let kinds = [ListKind::Have, ListKind::Need];
        let kind = kinds.into_iter().find(|kind| value("listType") == Some(kind.word()))?;
        Some(ChunkHeader::Reply { kind, list: number("rsyncReplySz")? })
    }
}

/// Reads a list of names, each with a zero byte behind it.
pub(super) fn read_list(from: &mut impl Read, bytes: u64) -> io::Result<Vec<String>> {
    if bytes > LIST_MAX {
        return Err(invalid("a list of chunks is too long"));
    }
    let mut list = vec![0; bytes as usize];
    from.read_exact(&mut list)?;
    let names = list.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

/// The bytes of a list of names.
pub(super) fn list_of<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<u8> {
    names.into_iter().flat_map(|name| name.bytes().chain([0])).collect()
}

/// The error about input that is none of jive5ab's.
pub(super) fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers() -> [ChunkHeader; 3] {
        [
            ChunkHeader::Offer { recording: "x".into(), list: 26 },
            ChunkHeader::Chunk { relative: "x/x.00000000".into(), bytes: 256_000_000 },
            ChunkHeader::Reply { kind: ListKind::Need, list: 13 },
        ]
    }

    #[test]
    fn headers_come_back_as_they_were_written() {
        for header in headers() {
            let mut bytes = header.bytes();
            bytes.extend(b"data");
            let mut from = &bytes[..];
            assert_eq!(ChunkHeader::read(&mut from).expect("a header"), header);
            assert_eq!(from, b"data", "nothing behind it was read");
        }
        let offer = b"payloadSize: 26\0requestRsync: x\0\0";
        assert_eq!(headers()[0].bytes(), offer, "the bytes that jive5ab sends");
    }

    #[test]
    fn lists_come_back_as_they_were_written() {
        let names = ["x/x.00000000", "x/x.00000001"];
        let bytes = list_of(names);
        assert_eq!(bytes.len(), 26);
        assert_eq!(read_list(&mut &bytes[..], 26).expect("a list"), names);
        assert!(read_list(&mut &bytes[..], 27).is_err(), "it is cut");
        assert!(read_list(&mut &bytes[..], u64::MAX).is_err());
        assert!(read_list(&mut &bytes[..], 0).expect("a list").is_empty());
    }

    #[test]
    fn other_bytes_are_no_header() {
        let long = vec![b'x'; HEADER_MAX + 2];
        for other in [&b""[..], b"\0\0", b"fileName: x\0\0", b"fileName: x\0fileSize: -1\0\0", b"a", &long] {
            assert!(ChunkHeader::read(&mut &other[..]).is_err(), "{other:?}");
        }
        nilometer_fuzz::fuzz("chunk-header", headers().map(|header| header.bytes()).to_vec(), |input| {
            if let Ok(header) = ChunkHeader::read(&mut &input[..]) {
                assert_eq!(ChunkHeader::read(&mut &header.bytes()[..]).expect("valid"), header);
            }
        });
    }
}
