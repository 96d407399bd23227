//! A lane's part in a scattered recording: what its files are named, and what of each chunk is acknowledged.
//!
//! Frames of a chunk are acknowledged in order, so that a lane that fails can cut its chunk behind the last one that is,
//! and the rest goes on elsewhere.

use std::{
    collections::{BTreeMap, VecDeque},
    mem,
};

use nilometer_model::Nanos;
use nilometer_ring::Frame;

use super::{FileOffset, Numbering};

/// See the module.
#[derive(Debug)]
pub(super) struct Chunks {
    pub(super) numbering: Numbering,
    lane: u32,
    /// The numbers in the files' names.
    names: BTreeMap<u64, Option<u32>>,
    /// There is room for files below this.
    roomy: u64,
    /// Frames that were issued and whose records are not queued yet, in order.
    issued: VecDeque<FileOffset>,
    /// Those of them that are written.
    landed: VecDeque<(FileOffset, Frame, u32)>,
    /// Files that are not closed, and where their last frame ends that is acknowledged.
    open: VecDeque<(u64, u64)>,
    /// A file is being renamed.
    moving: bool,
    /// Until when others are waited for at the end.
    until: Option<Nanos>,
    /// What can still be closed after a failure is being closed.
    pub(super) salvaging: bool,
}

/// How long a lane waits at the end for others to rename their files.
const GRACE: Nanos = Nanos::from_millis(5000);
/// How often it looks whether they did.
const LOOK: Nanos = Nanos::from_millis(5);

impl Chunks {
    pub(super) fn new(numbering: Numbering, lane: u32) -> Self {
        Chunks {
            numbering,
            lane,
            names: BTreeMap::new(),
            roomy: 0,
            issued: VecDeque::new(),
            landed: VecDeque::new(),
            open: VecDeque::new(),
            moving: false,
            until: None,
            salvaging: false,
        }
    }

    /// There is room for this file and those before.
    pub(super) fn has_room(&self, file: u64) -> bool {
        file < self.roomy
    }

    pub(super) fn make_room(&mut self, file: u64) {
        self.roomy = file + 1;
    }

    /// The file of a chunk that begins with this frame will be made.
    pub(super) fn begin(&self, file: u64, first: u64) {
        self.numbering.begin(self.lane, file, first);
    }

    /// It is made now: with which number in its name.
    pub(super) fn name(&mut self, file: u64) -> Option<u32> {
        let number = self.numbering.name(self.lane, file);
        self.names.insert(file, number);
        number
    }

    pub(super) fn created(&mut self, file: u64) {
        self.open.push_back((file, 0));
    }

    /// The number in the name of a file.
    pub(super) fn number(&self, file: u64) -> Option<u32> {
        self.names.get(&file).copied().flatten()
    }

    /// It is there.
    pub(super) fn made(&self, file: u64) {
        self.numbering.made(self.lane, file);
    }

    /// It is closed.
    pub(super) fn closed(&mut self, file: u64) {
        self.open.retain(|(open, _)| *open != file);
    }

    /// A file that is to be renamed, one at a time.
    pub(super) fn next_move(&mut self) -> Option<(u64, u32)> {
        if self.moving {
            return None;
        }
        let next = self.numbering.next_move(self.lane);
        self.moving = next.is_some();
        next
    }

    /// Its name has this number now.
    pub(super) fn renamed(&mut self, file: u64, number: u32) {
        self.names.insert(file, Some(number));
    }

    /// It will have it after any crash.
    pub(super) fn moved(&mut self, file: u64) {
        self.numbering.moved(self.lane, file);
        self.moving = false;
    }

    /// Whether no file is to be renamed any more; not for ever, if that depends on others.
    pub(super) fn is_settled(&mut self, now: Nanos) -> bool {
        let until = *self.until.get_or_insert(now + GRACE);
        let settled = self.numbering.is_settled(self.lane) || now >= until;
        if settled {
            self.until = None;
            self.leave();
        }
        settled
    }

    /// When to look again whether others renamed their files, if that is waited for.
    pub(super) fn look_at(&self, now: Nanos) -> Option<Nanos> {
        self.until.map(|until| until.min(now + LOOK))
    }

    /// No file is renamed any more.
    pub(super) fn leave(&self) {
        self.numbering.leave(self.lane);
    }

    /// A frame is written to here.
    pub(super) fn issue(&mut self, begin: FileOffset) {
        self.issued.push_back(begin);
    }

    /// It is written, with so many bytes.
    pub(super) fn land(&mut self, begin: FileOffset, frame: Frame, bytes: u32) {
        self.landed.push_back((begin, frame, bytes));
    }

    /// The next frame whose record can be queued.
    pub(super) fn next_landed(&mut self) -> Option<(FileOffset, Frame, u32)> {
        let next = self.issued.front()?;
        let at = self.landed.iter().position(|(begin, ..)| begin == next)?;
        self.issued.pop_front();
        self.landed.remove(at)
    }

    /// What is written and not acknowledged: it goes elsewhere.
    pub(super) fn abandon(&mut self) -> impl Iterator<Item = Frame> {
        mem::take(&mut self.landed).into_iter().map(|(_, frame, _)| frame)
    }

    /// A frame of this file is acknowledged: where it ends there, and how many bytes of it were written.
    pub(super) fn acknowledge(&mut self, file: u64, end: u64, bytes: u64) {
        if let Some((_, last)) = self.open.iter_mut().find(|(open, _)| *open == file) {
            *last = end.max(*last);
        }
        self.numbering.stored(bytes);
    }

    /// Files that are not closed, and where the last frame ends that is acknowledged of each.
    pub(super) fn open(&self) -> &VecDeque<(u64, u64)> {
        &self.open
    }
}
