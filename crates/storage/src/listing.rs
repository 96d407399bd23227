//! Answers in an operation's buffer: directory entries and stat, in one form for every engine.
//!
//! A listing is a sequence of `linux_dirent64` (getdents64(2)), native byte order: inode (8 bytes), offset of the next
//! entry (8), length of this record (2), type (1), name, NUL, padding to 8.

/// The type byte of a directory.
pub const DIRECTORY: u8 = libc::DT_DIR;
/// The type byte of a plain file.
pub const FILE: u8 = libc::DT_REG;
/// The type byte of an entry whose type the file system omits from listings.
pub const UNKNOWN: u8 = libc::DT_UNKNOWN;

const HEAD: usize = 19;

/// Iterates over names and types in a listing of `bytes`, without `.` and `..`. A truncated record ends it.
pub fn entries(bytes: &[u8]) -> impl Iterator<Item = (&[u8], u8)> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes([*rest.get(16)?, *rest.get(17)?]));
        let record = rest.get(..length.max(HEAD))?;
        rest = &rest[record.len()..];
        let name = &record[HEAD..];
        let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
        Some((&name[..end], record[18]))
    })
    .filter(|(name, _)| !matches!(*name, b"." | b".." | b""))
}

/// Appends one record to a listing. Returns the new end, or `None` if it does not fit.
pub fn append(buffer: &mut [u8], at: usize, name: &[u8], kind: u8) -> Option<usize> {
    let length = (HEAD + name.len() + 1).next_multiple_of(8);
    let record = buffer.get_mut(at..at + length)?;
    record.fill(0);
    record[16..18].copy_from_slice(&u16::try_from(length).ok()?.to_ne_bytes());
    record[18] = kind;
    record[HEAD..HEAD + name.len()].copy_from_slice(name);
    Some(at + length)
}

/// The answer of `Stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// The size in bytes.
    pub size: u64,
    /// True if the entry is a directory.
    pub directory: bool,
}

impl Stat {
    /// Bytes of the answer.
    pub const BYTES: usize = 16;

    /// Writes the answer into a buffer of at least [`Stat::BYTES`].
    #[inline]
    pub fn put(self, buffer: &mut [u8]) {
        buffer[..8].copy_from_slice(&self.size.to_le_bytes());
        buffer[8..16].copy_from_slice(&u64::from(self.directory).to_le_bytes());
    }

    /// Reads the answer from a buffer of at least [`Stat::BYTES`].
    #[inline]
    pub fn take(buffer: &[u8]) -> Self {
        let word = |at: usize| u64::from_le_bytes(buffer[at..at + 8].try_into().expect("eight bytes"));
        Stat { size: word(0), directory: word(8) != 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_appended_is_read() {
        let mut buffer = [0; 96];
        let mut end = 0;
        for (name, kind) in [(&b"."[..], DIRECTORY), (b"a", FILE), (b"sub-directory", DIRECTORY)] {
            end = append(&mut buffer, end, name, kind).expect("room");
        }
        assert_eq!(append(&mut buffer, end, b"no room for this", FILE), None);
        let read: Vec<_> = entries(&buffer[..end]).collect();
        assert_eq!(read, [(&b"a"[..], FILE), (b"sub-directory", DIRECTORY)]);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(entries(&bytes).count() <= bytes.len() / HEAD);
        }
    }
}
