//! Reads files from their beginning to their end and searches them for a string, like grep. The search works in
//! the read buffer. A string may begin at the end of one read and end in the next.

use memchr::memmem::Finder;
use nilometer_storage::{Buffer, OpKind, Operation, Slot};

/// The string to search for. No file laid out for a search has it: their bytes are random.
pub const NEEDLE: &[u8] = b"no such string here";

/// The number of earlier bytes that may belong to a string that continues in the next read.
const TAIL: usize = NEEDLE.len() - 1;

/// The progress of each file, by slot.
#[derive(Debug)]
pub(super) struct FileSearch {
    finder: Finder<'static>,
    files: Vec<SearchedFile>,
}

#[derive(Debug, Clone, Copy, Default)]
struct SearchedFile {
    /// The number of bytes read.
    offset: u64,
    /// The last bytes read.
    tail: [u8; TAIL],
    tail_length: usize,
}

impl FileSearch {
    /// Searches files in this number of slots.
    pub(super) fn new(slots: u32) -> Self {
        FileSearch { finder: Finder::new(NEEDLE), files: vec![SearchedFile::default(); slots as usize] }
    }

    /// The first read of a file that was opened into this slot.
    pub(super) fn begin(&mut self, slot: Slot, buffer: Buffer) -> Operation {
        self.files[slot.0 as usize] = SearchedFile::default();
        let length = buffer.len() as u32;
        Operation::read(slot, 0, length, buffer)
    }

    /// Counts the strings that end in these bytes, also those that begin before them.
    pub(super) fn look(&mut self, slot: Slot, bytes: &[u8]) -> u64 {
        let file = &mut self.files[slot.0 as usize];
        let mut seam = [0; 2 * TAIL];
        let head = bytes.len().min(TAIL);
        let joined = file.tail_length + head;
        seam[..file.tail_length].copy_from_slice(&file.tail[..file.tail_length]);
        seam[file.tail_length..joined].copy_from_slice(&bytes[..head]);
        // Neither part is as long as the string, so a match begins in one and ends in the other.
        let across = self.finder.find_iter(&seam[..joined]).count();
        let within = self.finder.find_iter(bytes).count();
        if bytes.len() >= TAIL {
            file.tail.copy_from_slice(&bytes[bytes.len() - TAIL..]);
            file.tail_length = TAIL;
        } else {
            let kept = joined.min(TAIL);
            file.tail[..kept].copy_from_slice(&seam[joined - kept..joined]);
            file.tail_length = kept;
        }
        (across + within) as u64
    }

    /// The operation after a read that returned `read` bytes: the next read, or the close at the file's end.
    pub(super) fn go_on(&mut self, operation: Operation, read: usize) -> Operation {
        let Operation { file, length, buffer, .. } = operation;
        if read < length as usize {
            return Operation::on(OpKind::Close, file, buffer);
        }
        let searched = &mut self.files[file.0 as usize];
        searched.offset += read as u64;
        Operation::read(file, searched.offset, length, buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_string_is_found_once_wherever_reads_cut_it(
            gaps in prop::collection::vec(0..60_usize, 0..5),
            cuts in prop::collection::vec(1..40_usize, 1..20),
        ) {
            let mut text = Vec::new();
            for gap in &gaps {
                text.extend(std::iter::repeat_n(b'n', *gap));
                text.extend_from_slice(NEEDLE);
            }
            let mut search = FileSearch::new(2);
            let first = search.begin(Slot(1), Buffer::alone(8));
            prop_assert_eq!(first.kind, OpKind::Read);
            let mut found = 0;
            let mut rest = &text[..];
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (read, behind) = rest.split_at((*cut).min(rest.len()));
                found += search.look(Slot(1), read);
                rest = behind;
            }
            prop_assert_eq!(found, gaps.len() as u64);
        }
    }
}
