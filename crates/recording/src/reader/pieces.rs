//! Reads journals a piece at a time, because the journal of a recorder that runs for days exceeds memory.

use std::{io, path::Path};

use super::{Found, Index, Recording, Trust, index::Counted};
use crate::{
    journal::{Entry, Head, RECORD},
    recording_file::PageCache,
    recording_storage::{RecordingStorage, StoredFile},
};

/// Records of a journal per read.
pub(super) const AT_ONCE: usize = 4096;

impl Index {
    /// Takes in the journal of one more lane, if it belongs to the same recording. Prune the index afterwards.
    ///
    /// # Errors
    /// If a part of the journal can't be read, or its description of the stream is invalid. The index
    /// has all records that could be read.
    pub(super) fn join_journal(
        &mut self,
        storage: &dyn RecordingStorage,
        found: &Found,
        trust: Trust,
    ) -> io::Result<()> {
        let mut counted = Counted::by(trust);
        let mut records = 0;
        let read = each(storage, found, u64::MAX, |entries| {
            counted.take(entries);
            records += entries.len() as u64;
        });
        let Some(lane) = self.add_lane(found.head) else { return read };
        // Take in the same records, because the journal may have grown.
        let again = each(storage, found, records, |entries| self.take(lane, entries, &counted, &mut |_| {}));
        self.stream_of(lane).map(drop).and(read).and(again)
    }
}

/// Passes the first `upto` intact records to `take`, a piece at a time.
fn each(
    storage: &dyn RecordingStorage,
    found: &Found,
    upto: u64,
    mut take: impl FnMut(&[Entry]),
) -> io::Result<()> {
    let file = storage.open_of(&found.path, found.access.user, PageCache::Through)?.file;
    let mut taken = 0;
    while taken < upto {
        let count = AT_ONCE.min((upto - taken).try_into().unwrap_or(usize::MAX));
        let (entries, wrong) = read_from(&*file, &found.head, taken, count)?;
        take(&entries);
        taken += entries.len() as u64;
        wrong?;
        if entries.len() < count {
            break;
        }
    }
    Ok(())
}

impl Recording {
    /// Passes the records of a lane's journal that the index has to `take`, in order.
    ///
    /// # Errors
    /// If the journal can't be read any more.
    pub fn each_entry(&self, lane: usize, mut take: impl FnMut(Entry)) -> io::Result<()> {
        let head = &self.index.heads[lane];
        let journal = self.storage.open_of(&self.journal(lane), self.user(lane), PageCache::Through)?.file;
        let mut taken = 0;
        while taken < self.index.records(lane) {
            let (entries, _) = read_from(&*journal, head, taken, AT_ONCE)?;
            if entries.is_empty() {
                break;
            }
            taken += entries.len() as u64;
            for entry in entries {
                take(self.index.entry_named(lane, entry));
            }
        }
        Ok(())
    }
}

/// Reads all intact records of this user's journal after the first `taken`.
pub(super) fn gained(
    storage: &dyn RecordingStorage,
    journal: &Path,
    head: &Head,
    user: u32,
    taken: u64,
) -> io::Result<Vec<Entry>> {
    let file = storage.open_of(journal, user, PageCache::Through)?.file;
    let mut all = Vec::new();
    loop {
        // Stop at an invalid number.
        let entries = match read_from(&*file, head, taken + all.len() as u64, AT_ONCE) {
            Err(error) if all.is_empty() => return Err(error),
            read => read.map(|(entries, _)| entries).unwrap_or_default(),
        };
        let more = entries.len() == AT_ONCE;
        all.extend(entries);
        if !more {
            return Ok(all);
        }
    }
}

/// Reads the next `count` records or fewer. The second value is the error that ended them early, if any.
pub(super) fn read_from(
    journal: &dyn StoredFile,
    head: &Head,
    taken: u64,
    count: usize,
) -> io::Result<(Vec<Entry>, io::Result<()>)> {
    let mut bytes = vec![0; count * RECORD];
    let mut length = 0;
    while length < bytes.len() {
        match journal.read_at(&mut bytes[length..], taken * RECORD as u64 + length as u64)? {
            0 => break,
            more => length += more,
        }
    }
    Ok(head.entries_within_limits(taken, &bytes[..length]))
}

#[cfg(test)]
mod tests {
    use nilometer_model::{FileNames, Format, Storing};

    use super::*;
    use crate::{Due, Gap, recording_storage::MountedDirectories};

    fn head() -> Head {
        Head {
            recording: 1,
            lane: 0,
            lanes: 1,
            frame_size: 8,
            stride: 8,
            frames_per_file: 100,
            storing: Storing::Ring,
            format: Format::Raw,
            names: FileNames::default(),
        }
    }

    /// Returns frames with gaps before some of them, one with more gaps than a piece holds, and files
    /// overwritten meanwhile.
    fn entries() -> Vec<Entry> {
        let mut entries = vec![Entry::Head(head())];
        for number in 0..10_000 {
            let extent = head().extent(number / 100, number % 500 * 8, 8);
            let gaps = if number == 7000 { 3 * AT_ONCE as u32 } else { u32::from(number % 3 == 0) };
            let gap = |at| Entry::Gap { number, gap: Gap { at, count: 1, filled: false, sender: None } };
            entries.extend((0..gaps).map(gap));
            entries.push(Entry::Frame { number, extent, due: 0, checksum: None });
            if number % 100 == 99 {
                entries.push(Entry::Durable { file: extent.file });
                let records = entries.len() as u64 - 20;
                entries.extend((number % 500 == 299).then_some(Entry::Checkpoint { records }));
                entries.extend(extent.file.checked_sub(50).map(|file| Entry::Removed { file }));
            }
        }
        entries.push(Entry::End { due: Some(Due { frames: 10_000, last: None }) });
        entries
            .push(Entry::Gap { number: 10_000, gap: Gap { at: 0, count: 1, filled: false, sender: None } });
        entries
    }

    #[test]
    fn a_journal_that_is_read_in_pieces_says_the_same() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (path, entries) = (directory.path().join("n.0.journal"), entries());
        let mut bytes = vec![0; entries.len() * RECORD];
        for (sequence, (entry, record)) in (0..).zip(entries.iter().zip(bytes.chunks_exact_mut(RECORD))) {
            entry.put(sequence, record);
        }
        std::fs::write(&path, &bytes).expect("room");
        for trust in [Trust::Acknowledged, Trust::Durable] {
            let (mut once, mut pieces) = (Index::default(), Index::default());
            once.join(&entries, trust);
            let found = Found::read(&MountedDirectories, 0, path.clone())
                .expect("it is there")
                .expect("it has a head");
            pieces.join_journal(&MountedDirectories, &found, trust).expect("it is whole");
            assert_eq!(pieces.records(0), entries.len() as u64);
            assert_eq!(format!("{once:?}"), format!("{pieces:?}"));
            assert_eq!(
                (pieces.first(), pieces.frames.len(), pieces.gaps[&7000].len()),
                (5000, 5000, 3 * AT_ONCE)
            );
        }
    }
}
