//! The safe part of a tree, and the changes a power loss may undo: the volatile caches of kernel and device
//! in one.
//!
//! It follows POSIX exactly and relies on no file system to be kinder. A sync of a file makes its data and
//! size safe, not its name. A sync of a directory makes its names safe, not the files they lead to.
//!
//! At a power loss each later change is kept, lost or (a write) torn at a sector, independently of the
//! others. Only results that no file system produces are excluded: a rename is one change, a name is never
//! given twice, and a file not removed does not vanish.

use std::collections::{BTreeMap, BTreeSet};

use nilometer_model::{RandomStream, Seed};

use super::{Id, Name, Names, TOP, content::Content};

/// The unit that devices write whole or not at all.
const SECTOR: u64 = 512;

/// A name in a directory.
type Place = (Id, Name);

/// The safe state, and the changes that are not safe yet, in their order.
#[derive(Debug, Clone)]
pub(crate) struct Journal {
    moment: u64,
    files: BTreeMap<Id, Record>,
    directories: BTreeMap<Id, Names>,
    places: BTreeMap<Id, Place>,
    renames: Vec<(u64, Rename)>,
    dead: BTreeSet<Id>,
}

/// A file: its safe content, and later changes.
#[derive(Debug, Clone, Default)]
struct Record {
    safe: Content,
    pending: Vec<(u64, Change)>,
}

#[derive(Debug, Clone)]
enum Change {
    Write(u64, Box<[u8]>),
    Truncate(u64),
}

/// A node gets its first name, another, or none.
#[derive(Debug, Clone)]
pub(super) struct Rename {
    pub(super) node: Id,
    pub(super) from: Option<Place>,
    pub(super) to: Option<Place>,
    /// The node that had the name before.
    pub(super) replaced: Option<Id>,
}

impl Rename {
    fn directories(&self) -> impl Iterator<Item = Id> {
        [&self.from, &self.to].into_iter().flatten().map(|place| place.0)
    }

    /// Returns the node that must be empty, if it is a directory, before this rename is possible.
    fn removed(&self) -> Option<Id> {
        if self.to.is_none() { Some(self.node) } else { self.replaced }
    }
}

impl Default for Journal {
    fn default() -> Self {
        Journal {
            moment: 0,
            files: BTreeMap::new(),
            directories: BTreeMap::from([(TOP, Names::new())]),
            places: BTreeMap::new(),
            renames: Vec::new(),
            dead: BTreeSet::new(),
        }
    }
}

impl Journal {
    /// Returns the number of changes so far.
    pub(super) fn moment(&self) -> u64 {
        self.moment
    }

    pub(super) fn wrote(&mut self, id: Id, offset: u64, bytes: &[u8]) {
        self.changed(id, Change::Write(offset, bytes.into()));
    }

    pub(super) fn truncated(&mut self, id: Id, size: u64) {
        self.changed(id, Change::Truncate(size));
    }

    pub(super) fn made(&mut self, id: Id, directory: bool, place: Place) {
        if directory {
            self.directories.insert(id, Names::new());
        } else {
            self.files.insert(id, Record::default());
        }
        self.renamed(Rename { node: id, from: None, to: Some(place), replaced: None });
    }

    pub(super) fn renamed(&mut self, rename: Rename) {
        self.moment += 1;
        self.renames.push((self.moment, rename));
    }

    /// Notes that no name leads to the node now. After a power loss one may.
    pub(super) fn died(&mut self, id: Id) {
        self.dead.insert(id);
    }

    fn changed(&mut self, id: Id, change: Change) {
        self.moment += 1;
        let record = self.files.get_mut(&id).expect("a file has its record while it can be written");
        record.pending.push((self.moment, change));
    }

    /// Makes data and size of a file safe as of `moment`.
    pub(super) fn sync_file(&mut self, id: Id, moment: u64) {
        let record = self.files.get_mut(&id).expect("a file has its record while it is open");
        let covered = record.pending.partition_point(|&(at, _)| at <= moment);
        for (_, change) in record.pending.drain(..covered) {
            change.apply(&mut record.safe);
        }
    }

    /// Makes the names in a directory safe as of `moment`.
    ///
    /// A rename between two directories, and the removal of a directory, also make earlier changes in the
    /// other directory safe.
    pub(super) fn sync_directory(&mut self, id: Id, moment: u64) {
        let mut covered = BTreeMap::from([(id, moment)]);
        let mut safe = Vec::new();
        let mut pending = Vec::new();
        for (at, rename) in std::mem::take(&mut self.renames).into_iter().rev() {
            let touched = |dir| covered.get(&dir).is_some_and(|&moment| at <= moment);
            if !rename.directories().any(touched) {
                pending.push((at, rename));
                continue;
            }
            for dir in rename.directories().chain(rename.removed()) {
                let moment = covered.entry(dir).or_default();
                *moment = at.max(*moment);
            }
            safe.push(rename);
        }
        self.renames = pending;
        self.renames.reverse();
        for rename in safe.into_iter().rev() {
            let applied = self.apply(rename);
            debug_assert!(applied, "all earlier changes of the same directory are safe");
        }
        self.forget();
    }

    /// Returns the state that survives a power loss.
    pub(super) fn lose(mut self, seed: Seed) -> Journal {
        let mut names = seed.named("names").stream();
        let keep = names.unit();
        for (_, rename) in std::mem::take(&mut self.renames) {
            if names.unit() < keep {
                self.apply(rename);
            }
        }
        let data = seed.named("data");
        for (id, record) in &mut self.files {
            let mut stream = data.part(id.0).stream();
            let keep = stream.unit();
            for (_, change) in std::mem::take(&mut record.pending) {
                change.survive(&mut record.safe, keep, &mut stream);
            }
        }
        self.keep_what_has_a_name();
        self
    }

    /// Returns every safe directory with its parent and its names.
    pub(super) fn directories(&self) -> impl Iterator<Item = (Id, Id, &Names)> {
        let parent = |id: &Id| self.places.get(id).map_or(TOP, |place| place.0);
        self.directories.iter().map(move |(id, names)| (*id, parent(id), names))
    }

    /// Returns every safe file.
    pub(super) fn files(&self) -> impl Iterator<Item = (Id, &Content)> {
        self.files.iter().map(|(id, record)| (*id, &record.safe))
    }

    /// Makes a rename safe. Returns false if a change it depends on was lost.
    fn apply(&mut self, rename: Rename) -> bool {
        let possible = match &rename.to {
            None => self.places.get(&rename.node) == rename.from.as_ref() && self.is_empty(rename.node),
            Some(to) => self.can_move(&rename, to),
        };
        if possible {
            if let Some(old) = rename.replaced {
                self.detach(old);
            }
            self.detach(rename.node);
            if let Some((dir, name)) = rename.to {
                self.directories.entry(dir).or_default().insert(name.clone(), rename.node);
                self.places.insert(rename.node, (dir, name));
            }
        }
        possible
    }

    fn can_move(&self, rename: &Rename, to: &Place) -> bool {
        let here = self.places.get(&rename.node);
        let free = match self.directories.get(&to.0).and_then(|names| names.get(&to.1)) {
            None => true,
            Some(old) => Some(*old) == rename.replaced && self.is_empty(*old),
        };
        free && (here.is_none() || here == rename.from.as_ref()) && !self.is_within(to.0, rename.node)
    }

    fn is_empty(&self, id: Id) -> bool {
        self.directories.get(&id).is_none_or(Names::is_empty)
    }

    fn is_within(&self, mut dir: Id, above: Id) -> bool {
        while dir != above {
            match self.places.get(&dir) {
                Some(place) => dir = place.0,
                None => return false,
            }
        }
        true
    }

    fn detach(&mut self, id: Id) {
        if let Some((dir, name)) = self.places.remove(&id) {
            self.directories.get_mut(&dir).and_then(|names| names.remove(&name));
        }
    }

    /// Drops dead nodes that no power loss can bring back.
    fn forget(&mut self) {
        let mut held: BTreeSet<Id> = self.places.keys().copied().collect();
        for (_, rename) in &self.renames {
            held.extend(rename.directories().chain([rename.node]).chain(rename.replaced));
        }
        for id in std::mem::take(&mut self.dead) {
            if held.contains(&id) {
                self.dead.insert(id);
            } else {
                self.files.remove(&id);
                self.directories.remove(&id);
            }
        }
    }

    fn keep_what_has_a_name(&mut self) {
        let mut reached = BTreeSet::from([TOP]);
        let mut next = vec![TOP];
        while let Some(id) = next.pop() {
            let below = self.directories.get(&id).into_iter().flat_map(Names::values);
            next.extend(below.filter(|&&id| reached.insert(id)));
        }
        self.files.retain(|id, _| reached.contains(id));
        self.directories.retain(|id, _| reached.contains(id));
        self.places.retain(|id, _| reached.contains(id));
        self.dead.clear();
    }
}

impl Change {
    fn apply(self, safe: &mut Content) {
        match self {
            Change::Write(offset, bytes) => safe.write(offset, &bytes),
            Change::Truncate(size) => safe.truncate(size),
        }
    }

    /// Keeps the change with this probability; otherwise loses it, or tears it if it is a write, half of the
    /// time.
    fn survive(self, safe: &mut Content, keep: f64, stream: &mut RandomStream) {
        if stream.unit() < keep {
            self.apply(safe);
        } else if let Change::Write(offset, bytes) = self
            && stream.below(2) == 0
        {
            let (offset, kept) = torn(offset, &bytes, stream);
            safe.write(offset, kept);
        }
    }
}

/// Returns the surviving part of a torn write: before or after a sector boundary. A write within one sector
/// leaves nothing.
fn torn<'a>(offset: u64, bytes: &'a [u8], stream: &mut RandomStream) -> (u64, &'a [u8]) {
    let first = offset / SECTOR + 1;
    let edges = ((offset + bytes.len() as u64).div_ceil(SECTOR)).saturating_sub(first);
    if edges == 0 {
        return (offset, &[]);
    }
    let edge = (first + stream.below(edges)) * SECTOR;
    let (head, tail) = bytes.split_at((edge - offset) as usize);
    if stream.below(2) == 0 { (offset, head) } else { (edge, tail) }
}
