//! Journals, a piece at a time: one of a recorder that runs for days is larger than memory.

use std::{fs::File, io, os::unix::fs::FileExt, path::Path};

use super::{Found, Index, Trust, durable, removed};
use crate::{
    Ranges, Stream,
    journal::{self, Entry, Head, RECORD},
    recording_file::{PageCache, open_of},
};

/// Records that are read of a journal at once.
pub(super) const AT_ONCE: usize = 4096;

/// What has to be known of a journal before its frames are taken in.
#[derive(Debug, Default)]
struct Said {
    /// The head, and what the frames are.
    what: Vec<Entry>,
    removed: Ranges,
    durable: Option<u64>,
    /// Up to which record the last checkpoint holds.
    checkpoint: u64,
}

/// Which frames of a lane count: those in files up to one, and those in the first so many records.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lasting {
    file: Option<u64>,
    records: u64,
}

impl Lasting {
    /// All frames count.
    pub(super) const ALL: Lasting = Lasting { file: Some(u64::MAX), records: u64::MAX };

    /// Whether a frame in this file does, that the record of this number is of.
    pub(super) fn has(self, file: u64, record: u64) -> bool {
        record < self.records || self.file.is_some_and(|last| file <= last)
    }
}

impl Said {
    fn take(&mut self, entries: &[Entry]) {
        self.removed.extend(entries.iter().filter_map(|entry| removed(*entry)));
        self.durable = self.durable.max(entries.iter().filter_map(|entry| durable(*entry)).max());
        let checkpoint = |entry: &Entry| if let Entry::Checkpoint { records } = entry { *records } else { 0 };
        self.checkpoint = entries.iter().map(checkpoint).fold(self.checkpoint, u64::max);
        let is_what = |entry: &&Entry| {
            matches!(entry, Entry::Head(_) | Entry::Boot(_) | Entry::Origin(_) | Entry::Stream(_))
        };
        self.what.extend(entries.iter().filter(is_what));
    }

    fn lasting(&self, trust: Trust) -> Lasting {
        match trust {
            Trust::Acknowledged => Lasting::ALL,
            Trust::Durable => Lasting { file: self.durable, records: self.checkpoint },
        }
    }
}

impl Index {
    /// Takes in the journal of one more lane, if it is of the same recording: how many records were taken, and what kept it
    /// from more. Then the index is to be pruned.
    pub(super) fn join_journal(&mut self, found: &Found, trust: Trust) -> (u64, io::Result<()>) {
        let (mut said, mut taken) = (Said::default(), 0);
        let mut read = each(found, u64::MAX, |entries| {
            said.take(entries);
            taken += entries.len() as u64;
        });
        match self.begin(found.head, &said) {
            None => return (taken, read),
            Some(begun) => read = begun.and(read),
        }
        let (lane, lasting) = (self.heads.len() - 1, said.lasting(trust));
        let mut before = 0;
        // The same records: more may have come.
        let again = each(found, taken, |entries| {
            self.take((lane, before), entries, &said.removed, lasting);
            before += entries.len() as u64;
        });
        (taken, read.and(again))
    }

    /// The same of records that were read.
    pub(super) fn join_entries(&mut self, entries: &[Entry], trust: Trust) {
        let Some(&Entry::Head(head)) = entries.first() else { return };
        let mut said = Said::default();
        said.take(entries);
        if self.begin(head, &said).is_some() {
            self.take((self.heads.len() - 1, 0), entries, &said.removed, said.lasting(trust));
        }
    }

    /// Takes in what a lane says of all frames, if it is one of the same recording, and says what of that can't be.
    fn begin(&mut self, head: Head, said: &Said) -> Option<io::Result<()>> {
        if self.heads.first().is_some_and(|first| first.recording != head.recording) {
            return None;
        }
        self.heads.push(head);
        self.frames.add_lane(&head);
        let boot = |entry: &Entry| if let Entry::Boot(boot) = entry { Some(*boot) } else { None };
        self.boot = self.boot.or_else(|| said.what.iter().find_map(boot));
        self.origin = self.origin.take().or_else(|| journal::origin_of(&said.what));
        let stream = journal::stream_of(&said.what).map(|text| Stream::read(&text, head.frame_size));
        let (stream, wrong) = match stream {
            None => (None, Ok(())),
            Some(Ok(stream)) => (stream, Ok(())),
            Some(Err(why)) => (None, Err(io::Error::new(io::ErrorKind::InvalidData, why))),
        };
        self.stream = self.stream.take().or(stream);
        Some(wrong)
    }
}

/// Hands out the first so many records that are whole, a piece at a time: gaps with the block that they are in.
fn each(found: &Found, upto: u64, mut take: impl FnMut(&[Entry])) -> io::Result<()> {
    let file = open_of(&found.path, found.access.user, PageCache::Through)?.file;
    let (mut taken, mut at_once) = (0, AT_ONCE);
    while taken < upto {
        let count = at_once.min((upto - taken).try_into().unwrap_or(usize::MAX));
        let (entries, wrong) =
            within_limits(&found.head, taken, read_from(&file, &found.head, taken, count)?);
        let settled = settled(&entries);
        if settled > 0 {
            take(&entries[..settled]);
        }
        taken += settled as u64;
        wrong?;
        if entries.len() < count {
            break;
        }
        // More gaps than are read at once.
        at_once = if settled == 0 { 2 * at_once } else { AT_ONCE };
    }
    Ok(())
}

/// Up to the first record with a number that can't be, and what is wrong with that one; the first is that after so many.
fn within_limits(head: &Head, taken: u64, mut entries: Vec<Entry>) -> (Vec<Entry>, io::Result<()>) {
    let checked = entries.iter().map(|entry| head.check_entry(entry));
    let Some((at, wrong)) = checked.enumerate().find_map(|(at, checked)| Some((at, checked.err()?))) else {
        return (entries, Ok(()));
    };
    entries.truncate(at);
    let why = format!("its record {} says {wrong}", taken + at as u64);
    (entries, Err(io::Error::new(io::ErrorKind::InvalidData, why)))
}

/// All records of a journal with this head, which belongs to this user, behind the first so many that are whole.
pub(super) fn gained(journal: &Path, head: &Head, user: u32, taken: u64) -> io::Result<Vec<Entry>> {
    let file = open_of(journal, user, PageCache::Through)?.file;
    let mut all = Vec::new();
    loop {
        let entries = match read_from(&file, head, taken + all.len() as u64, AT_ONCE) {
            Err(error) if all.is_empty() => return Err(error),
            entries => entries.unwrap_or_default(),
        };
        // Behind a number that can't be, nothing is read.
        let (entries, _) = within_limits(head, taken, entries);
        let more = entries.len() == AT_ONCE;
        all.extend(entries);
        if !more {
            return Ok(all);
        }
    }
}

/// The next so many, or fewer.
pub(super) fn read_from(journal: &File, head: &Head, taken: u64, count: usize) -> io::Result<Vec<Entry>> {
    let mut bytes = vec![0; count * RECORD];
    let mut length = 0;
    while length < bytes.len() {
        match journal.read_at(&mut bytes[length..], taken * RECORD as u64 + length as u64)? {
            0 => break,
            more => length += more,
        }
    }
    Ok(head.entries(taken, &bytes[..length]))
}

/// How many of these records can be taken: gaps wait for the block that they are in.
pub(super) fn settled(entries: &[Entry]) -> usize {
    entries.iter().rposition(|entry| !matches!(entry, Entry::Gap { .. })).map_or(0, |last| last + 1)
}

#[cfg(test)]
mod tests {
    use nilometer_model::{Format, Storing};

    use super::*;
    use crate::{Due, Gap};

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
        }
    }

    /// Frames with gaps before some of them, one with more than are read at once, and files that are overwritten meanwhile.
    fn entries() -> Vec<Entry> {
        let mut entries = vec![Entry::Head(head())];
        for number in 0..10_000 {
            let extent = head().extent(number / 100, number % 500 * 8, 8);
            let gaps = if number == 7000 { 3 * AT_ONCE as u32 } else { u32::from(number % 3 == 0) };
            let gap = |at| Entry::Gap { number, gap: Gap { at, count: 1, filled: false } };
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
        entries.push(Entry::Gap { number: 10_000, gap: Gap { at: 0, count: 1, filled: false } });
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
            once.join_entries(&entries, trust);
            let found = Found::read(0, path.clone()).expect("it is there").expect("it has a head");
            let (taken, read) = pieces.join_journal(&found, trust);
            assert!(read.is_ok() && taken == entries.len() as u64 - 1, "{taken} of {}", entries.len());
            assert_eq!(format!("{once:?}"), format!("{pieces:?}"));
            assert_eq!(
                (pieces.first(), pieces.frames.len(), pieces.gaps[&7000].len()),
                (5000, 5000, 3 * AT_ONCE)
            );
        }
    }
}
