//! Which frames a recording has, and where: what its journals say, united. Pure: it is fed records in order, lane by
//! lane, by whoever reads them, and is the only one who says what they mean.
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
//! A gap stands before the block that packets are missing in, and waits for it.

use std::{collections::BTreeMap, io};

use nilometer_model::{Nanos, PluginFilter};
use nilometer_storage::process::BootId;

use super::{labels::Numbers, placements::Placements, recent::Recent};
use crate::{
    Gap, Ranges, Stream,
    instrument::Origin,
    journal::{self, Entry, FrameExtent, Head},
};

/// What must have survived for a frame to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// The process may have died: acknowledged frames are there.
    Acknowledged,
    /// The machine may have lost power: durable frames are there.
    Durable,
}

/// Where a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameLocation {
    /// Index of the lane's head in [`Index::heads`].
    pub lane: usize,
    /// Where in the lane's files.
    pub extent: FrameExtent,
}

impl FrameLocation {
    /// Which file of the lane, or part of its only one.
    pub fn file(&self) -> u64 {
        self.extent.file
    }
}

/// What the journals of a recording say, united.
#[derive(Debug, Clone, Default)]
pub struct Index {
    /// The lanes whose journals belong together.
    pub heads: Vec<Head>,
    /// What else is known of each of them.
    lanes: Vec<IndexedLane>,
    /// What the frames are made from, if they are simulated and follow from a seed.
    pub origin: Option<Origin>,
    /// What packets its frames are blocks of, if they are.
    pub stream: Option<Stream>,
    /// Packets that are missing, by the block that they are missing in.
    pub gaps: BTreeMap<u64, Vec<Gap>>,
    /// The names of chunks, by lane and file: the number in the last one that was noted, and in the one before. A file has
    /// the last, or that before if the recorder died between noting and renaming.
    pub chunks: BTreeMap<(usize, u64), ChunkNames>,
    /// By frame number.
    pub frames: Placements,
    /// Those that were complete last.
    pub(crate) recent: Recent,
    /// A frame may be in two lanes, if the first failed when it was stored but not yet acknowledged.
    pub copies: BTreeMap<u64, Vec<FrameLocation>>,
    /// Frames that were removed to make room.
    pub removed: Numbers,
    /// How many frames the recording was due, if it was ended in order.
    pub due: Option<u64>,
    /// Bytes of the last one, if it is a block of packets and that is known.
    pub last: Option<u32>,
    /// Lanes that were ended in order.
    pub ended: usize,
    /// In which start of which machine it was recorded, if it says so.
    pub boot: Option<BootId>,
}

/// What the name of a chunk may be: by the number in it, if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkNames {
    /// As noted last.
    pub last: Option<u32>,
    /// As noted before, if ever.
    pub before: Option<Option<u32>>,
}

/// What is known of a lane beside its frames.
#[derive(Debug, Clone)]
struct IndexedLane {
    /// How many records of its journal were taken.
    records: u64,
    /// The head, and the records that say what the frames are.
    texts: Vec<Entry>,
    /// Packets that are missing in blocks whose records did not come yet.
    waiting: BTreeMap<u64, Vec<Gap>>,
    /// The last of its files that was removed. Older ones were before.
    removed: Option<u64>,
    /// The plug-in that it names, once a frame of one was met.
    plugin: Option<PluginFilter>,
    /// How many texts there were when it was last looked for.
    sought: usize,
}

/// So many records of texts are kept of a lane: many times more than any recorder writes.
const TEXTS_MAX: usize = 1 << 16;

/// A frame that came or went, for whoever follows a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It is acknowledged.
    Added {
        /// The frame.
        number: u64,
        /// When it was due, on the clock of the recording.
        due: Nanos,
        /// Packets that were left out in it.
        left_out: u64,
    },
    /// It is in no file any more.
    Removed {
        /// The frame.
        number: u64,
    },
}

/// Which frames of a lane count, by what the whole of its journal says.
#[derive(Debug)]
pub(super) struct Counted {
    trust: Trust,
    /// Files that were removed.
    removed: Ranges,
    /// The last file that is durable.
    file: Option<u64>,
    /// Frames in so many records are durable.
    records: u64,
}

impl Counted {
    /// Nothing is known yet.
    pub(super) fn by(trust: Trust) -> Self {
        Counted { trust, removed: Ranges::default(), file: None, records: 0 }
    }

    /// Takes in what these records say.
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

    /// Whether a frame in this file, that the record of this number is of, survived.
    fn survived(&self, file: u64, record: u64) -> bool {
        match self.trust {
            Trust::Acknowledged => true,
            Trust::Durable => record < self.records || self.file.is_some_and(|last| file <= last),
        }
    }
}

impl Index {
    /// Unites journals. Those of another recording than the first valid one's are left out.
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

    /// Adds a lane of which no record is taken yet, if it is of the same recording: its number.
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

    /// How many records of a lane's journal were taken: what comes next is that of this number.
    pub fn records(&self, lane: usize) -> u64 {
        self.lanes[lane].records
    }

    /// Takes in records of a lane from one on, as they come: those that are new to it. How many there were.
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

    /// What is in another lane is not removed.
    pub(super) fn prune(&mut self) {
        let Index { frames, removed, .. } = self;
        if !removed.is_empty() {
            for number in frames.numbers(0..u64::MAX) {
                removed.remove(number);
            }
        }
    }

    /// Takes in the next records of a lane, and says which frames came and went.
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
                Entry::Boot(boot) => self.boot = self.boot.or(Some(boot)),
                Entry::Origin(_) | Entry::Stream(_) | Entry::Contents(_) | Entry::Plugin(_)
                    if self.lanes[lane].texts.len() < TEXTS_MAX =>
                {
                    self.lanes[lane].texts.push(*entry);
                }
                // What counts was asked of all of them before, and the head is known.
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

    /// Takes in the record of a frame: the next of its lane.
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

    /// The extent of a frame of a lane, with the plug-in that its journal names if one made it.
    fn named(&mut self, lane: usize, extent: FrameExtent) -> FrameExtent {
        if !extent.encoding.is_of_plugin() {
            return extent;
        }
        let IndexedLane { texts, plugin, sought, .. } = &mut self.lanes[lane];
        // A journal may be anybody's, and name none.
        if plugin.is_none() && *sought != texts.len() {
            *plugin = journal::plugin_of(texts);
            *sought = texts.len();
        }
        FrameExtent { encoding: extent.encoding.made_by(*plugin), ..extent }
    }

    /// A record of a lane, with the plug-in that its journal names if it is of a frame that one made.
    pub(super) fn entry_named(&self, lane: usize, entry: Entry) -> Entry {
        let Entry::Frame { number, extent, due, checksum } = entry else { return entry };
        let encoding = extent.encoding.made_by(self.lanes[lane].plugin);
        Entry::Frame { number, extent: FrameExtent { encoding, ..extent }, due, checksum }
    }

    fn rename(&mut self, lane: usize, file: u64, number: Option<u32>) {
        let before = self.chunks.get(&(lane, file)).map(|names| names.last);
        self.chunks.insert((lane, file), ChunkNames { last: number, before });
    }

    /// What the frames are: what the first lane says that says it in full.
    fn read_texts(&mut self) {
        self.origin = self.lanes.iter().find_map(|lane| journal::origin_of(&lane.texts));
        self.stream = (0..self.lanes.len()).find_map(|lane| self.stream_of(lane).ok().flatten());
    }

    /// What HDF5 files of the recording have in them beside their frames, as the first lane has it that has it in full.
    pub fn contents(&self) -> Option<String> {
        self.lanes.iter().find_map(|lane| journal::contents_of(&lane.texts))
    }

    /// What packets the blocks of a lane are made of, if its journal says so in full. An error says what of that can't be.
    pub(super) fn stream_of(&self, lane: usize) -> io::Result<Option<Stream>> {
        let text = journal::stream_of(&self.lanes[lane].texts);
        let stream = text.map(|text| Stream::read(&text, self.heads[lane].frame_size)).transpose();
        stream.map(Option::flatten).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))
    }

    /// The frames of files that were removed are gone, but for those that are in another lane too.
    fn forget_files(&mut self, lane: usize, files: &Ranges, changed: &mut impl FnMut(Change)) {
        if files.is_empty() {
            return;
        }
        let is_gone = |place: &FrameLocation| place.lane == lane && files.contains(place.file());
        for places in self.copies.values_mut() {
            places.retain(|place| !is_gone(place));
        }
        let gone = self.frames.iter().filter(|(_, place)| is_gone(place));
        // Old ones stand first: seldom are all looked at.
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

    /// Forgets a frame that nobody will ask for any more.
    pub fn forget(&mut self, number: u64) {
        self.frames.remove(number);
        self.copies.remove(&number);
        self.recent.forget(number);
        self.gaps.remove(&number);
    }

    /// What a file of frames may be called in a recording of this name, as it should be first.
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
        // Not if another chunk has that name meanwhile.
        let taken = |number| self.chunks.iter().any(|((of, _), names)| *of == lane && names.last == number);
        let before = before.filter(|number| number.is_none() || !taken(*number));
        [Some(last), before].into_iter().flatten().map(named).collect()
    }

    /// Which file of a lane a place is in: the same for all that are in one, whichever part of it that is.
    pub fn file_of(&self, location: FrameLocation) -> (usize, u64) {
        let many = self.heads[location.lane].storing.is_many_files();
        (location.lane, if many { location.file() } else { 0 })
    }

    /// Whether the file that a place was in is removed, or overwritten there.
    pub fn is_gone(&self, location: FrameLocation) -> bool {
        self.lanes[location.lane].removed.is_some_and(|last| location.file() <= last)
    }

    /// The first and the last of the frames that were complete last, each with when it was due; none if there are none.
    pub fn recent_span(&self) -> Option<[(u64, Nanos); 2]> {
        self.recent.span()
    }

    /// Every place where a frame is.
    pub fn places(&self, number: u64) -> impl Iterator<Item = FrameLocation> {
        let copies = self.copies.get(&number).into_iter().flatten();
        self.frames.get(number).into_iter().chain(copies.copied())
    }

    /// How many frames there should be, as far as is known: as many as were due, or up to the last that is there.
    pub fn expected(&self) -> u64 {
        let last = [self.frames.last(), self.removed.last()];
        let known = last.into_iter().flatten().max().map_or(0, |last| last + 1);
        self.due.unwrap_or(0).max(known)
    }

    /// The first frame from which on none was removed.
    pub fn first(&self) -> u64 {
        self.removed.last().map_or(0, |last| last + 1)
    }

    /// Numbers that are missing though they should be there, as ranges: first and count. None is missing before the last one
    /// that was removed to make room.
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

/// How many packets were left out by these gaps.
fn left_out(gaps: &[Gap]) -> u64 {
    gaps.iter().filter(|gap| !gap.filled).map(|gap| gap.count).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests;
