//! Index of a recording's frames and their locations, united from its journals. It is pure: a reader feeds it
//! records in order, lane by lane, and only this module interprets them.
//!
//! ```text
//! directories -> Recording (blocking, all of a journal at once) -+
//! engine -> Follower (a workload, as records come) --------------+-> Index -> which frames, where, under which name
//! ```
//!
//! For example, a lane whose files have two frames, and of which only one file is kept:
//!
//! ```text
//! record       Frame 0   Frame 1   Gap of 2   Frame 2     Removed file 0      Frame 3
//! in file      0         0                    1                               1
//! frames       0         0 1       0 1        0 1 2       2                   2 3
//! changes      added 0   added 1   -          added 2     removed 0, 1        added 3
//! ```
//!
//! A gap precedes the record of its block, so the index keeps it until the block arrives.

use std::{collections::BTreeMap, io};

use nilometer_model::{Nanos, PluginFilter, observed::ClockReading};
use nilometer_storage::process::BootId;

use super::{frame_location::FrameLocation, labels::Numbers, placements::Placements, recent::Recent};
use crate::{
    Gap, Ranges, Stream,
    instrument::Origin,
    journal::{self, Entry, FrameExtent, Head},
};

/// The failure that frames must have survived to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// The process may have died: acknowledged frames count.
    Acknowledged,
    /// The machine may have lost power: durable frames count.
    Durable,
}

/// The united journals of a recording.
#[derive(Debug, Clone, Default)]
pub struct Index {
    /// Heads of the lanes.
    pub heads: Vec<Head>,
    /// Further state of each lane.
    lanes: Vec<IndexedLane>,
    /// Origin of the frames, if they are simulated from a seed.
    pub origin: Option<Origin>,
    /// Description of the packets, if the frames are blocks of packets.
    pub stream: Option<Stream>,
    /// Gaps, by the number of their block.
    pub gaps: BTreeMap<u64, Vec<Gap>>,
    /// Names of chunks, by lane and file: the numbers in the last name and in the one before. A file has the
    /// last name, or the one before if the recorder died between the record and the rename.
    pub chunks: BTreeMap<(usize, u64), ChunkNames>,
    /// Locations by frame number.
    pub frames: Placements,
    /// The latest complete frames.
    pub(crate) recent: Recent,
    /// Further locations of frames. A frame is in two lanes if the first failed after it stored the frame and
    /// before it acknowledged it.
    pub copies: BTreeMap<u64, Vec<FrameLocation>>,
    /// Frames removed to make room.
    pub removed: Numbers,
    /// Number of frames due, if the recording ended in order.
    pub due: Option<u64>,
    /// Bytes of the last frame, if it is a block of packets and the journal states them.
    pub last: Option<u32>,
    /// Number of lanes that ended in order.
    pub ended: usize,
    /// Boot id of the recording machine, if the journal states it.
    pub boot: Option<BootId>,
    /// Clock of the recording machine at the start, if the journal states it.
    pub clock: Option<ClockReading>,
}

/// Possible names of a chunk, as the number in the name, if any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkNames {
    /// Number in the last name.
    pub last: Option<u32>,
    /// Number in the name before, if there was one.
    pub before: Option<Option<u32>>,
}

/// State of a lane besides its frames.
#[derive(Debug, Clone)]
struct IndexedLane {
    /// Number of records taken from its journal.
    records: u64,
    /// The head, and the records that describe the frames.
    texts: Vec<Entry>,
    /// Gaps in blocks whose records have not arrived yet.
    waiting: BTreeMap<u64, Vec<Gap>>,
    /// The last of its files that the writer removed. All older ones are gone, too.
    removed: Option<u64>,
    /// The plug-in that its journal names, after the first frame from a plug-in.
    plugin: Option<PluginFilter>,
    /// Number of texts at the last search for the plug-in.
    sought: usize,
}

/// Limit on the records of texts kept for a lane, many times more than any recorder writes.
const TEXTS_MAX: usize = 1 << 16;

/// A frame that appeared or vanished, for followers of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The recorder acknowledged the frame.
    Added {
        /// The frame's number.
        number: u64,
        /// Time when it was due, on the recording's clock.
        due: Nanos,
        /// Number of packets left out in it.
        left_out: u64,
    },
    /// No file holds the frame any more.
    Removed {
        /// The frame's number.
        number: u64,
    },
}

/// Decides by a lane's whole journal which of its frames count.
#[derive(Debug)]
pub(super) struct Counted {
    trust: Trust,
    /// Removed files.
    removed: Ranges,
    /// The last durable file.
    file: Option<u64>,
    /// Frames in this number of records are durable.
    records: u64,
}

impl Counted {
    /// Starts without any records.
    pub(super) fn by(trust: Trust) -> Self {
        Counted { trust, removed: Ranges::default(), file: None, records: 0 }
    }

    /// Takes in these records.
    pub(super) fn take(&mut self, entries: &[Entry]) {
        for entry in entries {
            match *entry {
                Entry::Removed { file } => self.removed.add(file),
                Entry::Durable { file } => self.file = self.file.max(Some(file)),
                Entry::Checkpoint { records } => self.records = self.records.max(records),
                _ => {}
            }
        }
    }

    /// Returns true if a frame survived that has this file and record number.
    fn survived(&self, file: u64, record: u64) -> bool {
        match self.trust {
            Trust::Acknowledged => true,
            Trust::Durable => record < self.records || self.file.is_some_and(|last| file <= last),
        }
    }
}

impl Index {
    /// Unites journals. Ignores those of other recordings than the first valid one's.
    pub fn unite<'a>(journals: impl IntoIterator<Item = &'a [u8]>, trust: Trust) -> Self {
        let mut index = Index::default();
        for journal in journals {
            index.join(&journal::prefix(journal), trust);
        }
        index.prune();
        index
    }

    /// Takes in the whole journal of one more lane.
    pub(super) fn join(&mut self, entries: &[Entry], trust: Trust) {
        let Some(&Entry::Head(head)) = entries.first() else { return };
        let mut counted = Counted::by(trust);
        counted.take(entries);
        if let Some(lane) = self.add_lane(head) {
            self.take(lane, entries, &counted, &mut |_| {});
        }
    }

    /// Adds a lane without records and returns its index. `None` if it belongs to another recording.
    pub fn add_lane(&mut self, head: Head) -> Option<usize> {
        if self.heads.first().is_some_and(|first| first.recording != head.recording) {
            return None;
        }
        self.heads.push(head);
        self.frames.add_lane(&head);
        let texts = vec![Entry::Head(head)];
        let waiting = BTreeMap::new();
        self.lanes.push(IndexedLane { records: 0, texts, waiting, removed: None, plugin: None, sought: 0 });
        Some(self.lanes.len() - 1)
    }

    /// Stores the location of a frame that no journal states. If it has one already, this is a further one.
    pub(crate) fn place(&mut self, number: u64, location: FrameLocation) {
        if self.frames.contains(number) {
            self.copies.entry(number).or_default().push(location);
        } else {
            self.frames.insert(number, location);
        }
    }

    /// Number of records taken from a lane's journal, which is the number of the next record.
    pub fn records(&self, lane: usize) -> u64 {
        self.lanes[lane].records
    }

    /// Takes in records of a lane, of which the first has number `from`, as they arrive. Skips known ones and
    /// returns the number of new ones.
    pub fn follow(
        &mut self,
        lane: usize,
        from: u64,
        entries: &[Entry],
        changed: &mut impl FnMut(Change),
    ) -> usize {
        let known = self.lanes[lane].records.saturating_sub(from) as usize;
        let entries = entries.get(known..).unwrap_or_default();
        let mut counted = Counted::by(Trust::Acknowledged);
        counted.take(entries);
        self.forget_files(lane, &counted.removed, changed);
        self.take(lane, entries, &counted, changed);
        entries.len()
    }

    /// Drops frames from the removed ones that another lane still holds.
    pub(super) fn prune(&mut self) {
        let Index { frames, removed, .. } = self;
        if !removed.is_empty() {
            for number in frames.numbers(0..u64::MAX) {
                removed.remove(number);
            }
        }
    }

    /// Takes in the next records of a lane, and reports the frames that appeared and vanished.
    pub(super) fn take(
        &mut self,
        lane: usize,
        entries: &[Entry],
        counted: &Counted,
        changed: &mut impl FnMut(Change),
    ) {
        self.lanes[lane].removed = self.lanes[lane].removed.max(counted.removed.last());
        let texts = self.lanes[lane].texts.len();
        for entry in entries {
            match *entry {
                Entry::Frame { number, extent, due, .. } => {
                    let extent = self.named(lane, extent);
                    self.frame(number, FrameLocation { lane, extent }, Nanos(due), counted, changed);
                }
                Entry::Gap { number, gap } => {
                    self.lanes[lane].waiting.entry(number).or_default().push(gap);
                }
                Entry::Chunk { file, number } => self.rename(lane, file, number),
                Entry::End { due } => {
                    self.ended += 1;
                    self.due = self.due.max(due.map(|due| due.frames));
                    self.last = self.last.or(due.and_then(|due| due.last));
                }
                Entry::Boot { id, clock } => {
                    self.boot = self.boot.or(Some(id));
                    self.clock = self.clock.or(clock);
                }
                Entry::Origin(_) | Entry::Stream(_) | Entry::Contents(_) | Entry::Plugin(_)
                    if self.lanes[lane].texts.len() < TEXTS_MAX =>
                {
                    self.lanes[lane].texts.push(*entry);
                }
                // `counted` holds the others already, and `add_lane` took the head.
                Entry::Removed { .. }
                | Entry::Durable { .. }
                | Entry::Checkpoint { .. }
                | Entry::Placed { .. }
                | Entry::Head(_)
                | Entry::Origin(_)
                | Entry::Stream(_)
                | Entry::Contents(_)
                | Entry::Plugin(_) => {}
            }
            self.lanes[lane].records += 1;
        }
        if self.lanes[lane].texts.len() > texts {
            self.read_texts();
        }
    }

    /// Takes in the record of a frame, the next of its lane.
    fn frame(
        &mut self,
        number: u64,
        location: FrameLocation,
        due: Nanos,
        counted: &Counted,
        changed: &mut impl FnMut(Change),
    ) {
        let lane = &mut self.lanes[location.lane];
        let gaps = lane.waiting.remove(&number);
        changed(Change::Added { number, due, left_out: left_out(gaps.as_deref().unwrap_or_default()) });
        if counted.removed.contains(location.file()) {
            if !self.frames.contains(number) {
                self.removed.add(number);
                changed(Change::Removed { number });
            }
        } else if counted.survived(location.file(), lane.records) {
            self.gaps.extend(gaps.map(|gaps| (number, gaps)));
            self.recent.add(number, due);
            if let Some(other) = self.frames.insert(number, location) {
                self.copies.entry(number).or_default().push(other);
            }
        }
    }

    /// Returns the extent of a frame. If a plug-in made it, the extent includes the plug-in that the lane's
    /// journal names.
    fn named(&mut self, lane: usize, extent: FrameExtent) -> FrameExtent {
        if !extent.encoding.is_of_plugin() {
            return extent;
        }
        let IndexedLane { texts, plugin, sought, .. } = &mut self.lanes[lane];
        // A journal may come from anybody and lack the name.
        if plugin.is_none() && *sought != texts.len() {
            *plugin = journal::plugin_of(texts);
            *sought = texts.len();
        }
        FrameExtent { encoding: extent.encoding.made_by(*plugin), ..extent }
    }

    /// Returns a record of a lane. If a plug-in made its frame, the record includes the plug-in that the
    /// journal names.
    pub(super) fn entry_named(&self, lane: usize, entry: Entry) -> Entry {
        let Entry::Frame { number, extent, due, checksum } = entry else { return entry };
        let encoding = extent.encoding.made_by(self.lanes[lane].plugin);
        Entry::Frame { number, extent: FrameExtent { encoding, ..extent }, due, checksum }
    }

    fn rename(&mut self, lane: usize, file: u64, number: Option<u32>) {
        let before = self.chunks.get(&(lane, file)).map(|names| names.last);
        self.chunks.insert((lane, file), ChunkNames { last: number, before });
    }

    /// Reads the texts that describe the frames, from the first lane that has each in full.
    fn read_texts(&mut self) {
        self.origin = self.lanes.iter().find_map(|lane| journal::origin_of(&lane.texts));
        self.stream = (0..self.lanes.len()).find_map(|lane| self.stream_of(lane).ok().flatten());
    }

    /// Returns the description of the HDF5 files' contents, from the first lane that has it in full.
    pub fn contents(&self) -> Option<String> {
        self.lanes.iter().find_map(|lane| journal::contents_of(&lane.texts))
    }

    /// Returns the description of the packets in a lane's blocks, if its journal has it in full. The error
    /// names an invalid value.
    pub(super) fn stream_of(&self, lane: usize) -> io::Result<Option<Stream>> {
        let text = journal::stream_of(&self.lanes[lane].texts);
        let stream = text.map(|text| Stream::read(&text, self.heads[lane].frame_size)).transpose();
        stream.map(Option::flatten).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))
    }

    /// Forgets the frames of removed files, except those that another lane also holds.
    fn forget_files(&mut self, lane: usize, files: &Ranges, changed: &mut impl FnMut(Change)) {
        if files.is_empty() {
            return;
        }
        let is_gone = |place: &FrameLocation| place.lane == lane && files.contains(place.file());
        for places in self.copies.values_mut() {
            places.retain(|place| !is_gone(place));
        }
        let gone = self.frames.iter().filter(|(_, place)| is_gone(place));
        // Old frames come first, so this seldom looks at all.
        let most = self.heads[lane].frames_per_file.saturating_mul(files.count());
        let gone: Vec<u64> = gone.map(|(number, _)| number).take(most as usize).collect();
        for number in gone {
            if let Some(copy) = self.copies.get_mut(&number).and_then(Vec::pop) {
                self.frames.insert(number, copy);
            } else {
                self.forget(number);
                self.removed.add(number);
                changed(Change::Removed { number });
            }
        }
    }

    /// Forgets a frame that no caller will ask for any more.
    pub fn forget(&mut self, number: u64) {
        self.frames.remove(number);
        self.copies.remove(&number);
        self.recent.forget(number);
        self.gaps.remove(&number);
    }

    /// Returns the possible names of a file of frames in the recording called `name`, the most likely first.
    pub fn file_names(&self, name: &str, location: FrameLocation) -> Vec<String> {
        let lane = location.lane;
        let file = location.file();
        let head = &self.heads[lane];
        let named = |number: Option<u32>| {
            number.map_or_else(|| head.file_name(name, file), |number| head.chunk_name(name, number))
        };
        let Some(&ChunkNames { last, before }) = self.chunks.get(&(lane, file)) else {
            return vec![named(None)];
        };
        // Leave it out if another chunk now has that name.
        let taken = |number| self.chunks.iter().any(|((of, _), names)| *of == lane && names.last == number);
        let before = before.filter(|number| number.is_none() || !taken(*number));
        [Some(last), before].into_iter().flatten().map(named).collect()
    }

    /// Returns the lane and file of a location, the same for all parts of one file.
    pub fn file_of(&self, location: FrameLocation) -> (usize, u64) {
        let many = self.heads[location.lane].storing.is_many_files();
        (location.lane, if many { location.file() } else { 0 })
    }

    /// Returns true if the writer removed the file at a location, or overwrote that part of it.
    pub fn is_gone(&self, location: FrameLocation) -> bool {
        self.lanes[location.lane].removed.is_some_and(|last| location.file() <= last)
    }

    /// Returns the first and the last of the latest complete frames, each with the time when it was due. `None`
    /// without frames.
    pub fn recent_span(&self) -> Option<[(u64, Nanos); 2]> {
        self.recent.span()
    }

    /// Returns every location of a frame.
    pub fn places(&self, number: u64) -> impl Iterator<Item = FrameLocation> {
        let copies = self.copies.get(&number).into_iter().flatten();
        self.frames.get(number).into_iter().chain(copies.copied())
    }

    /// Returns the number of frames due as far as known, but at least up to the last frame present or removed.
    pub fn expected(&self) -> u64 {
        let last = [self.frames.last(), self.removed.last()];
        let known = last.into_iter().flatten().max().map_or(0, |last| last + 1);
        self.due.unwrap_or(0).max(known)
    }

    /// Returns the first frame after all removed ones.
    pub fn first(&self) -> u64 {
        self.removed.last().map_or(0, |last| last + 1)
    }

    /// Returns the missing numbers as ranges: first and count. Starts after the last frame removed to make
    /// room.
    pub fn missing(&self) -> Vec<(u64, u64)> {
        let mut missing = Vec::new();
        let mut next = self.first();
        for number in self.frames.numbers(next..u64::MAX).chain([self.expected()]) {
            if number > next {
                missing.push((next, number - next));
            }
            next = number + 1;
        }
        missing
    }
}

/// Number of packets that these gaps leave out.
fn left_out(gaps: &[Gap]) -> u64 {
    gaps.iter().filter(|gap| !gap.filled).map(|gap| gap.count).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests;
