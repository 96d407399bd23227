//! A lane's part in a scattered recording: the names of its files, and the acknowledged frames of each chunk.
//!
//! Frames of a chunk are acknowledged in order. A lane that fails can therefore cut its chunk behind the last
//! acknowledged frame, and the rest goes on elsewhere.

use std::{
    collections::{BTreeMap, VecDeque},
    mem,
};

use nilometer_model::Nanos;
use nilometer_ring::Frame;

use super::{FileOffset, Numbering};

/// Names and acknowledged frames of a lane's chunks.
#[derive(Debug)]
pub(super) struct Chunks {
    pub(super) numbering: Numbering,
    lane: u32,
    /// Numbers in the names of the files.
    names: BTreeMap<u64, Option<u32>>,
    /// There is room for files below this.
    roomy: u64,
    /// Frames issued whose records are not yet queued, in order.
    issued: VecDeque<FileOffset>,
    /// Issued frames that are written.
    landed: VecDeque<(FileOffset, Frame, u32)>,
    /// Files that are not closed, and the end of the last acknowledged frame of each.
    open: VecDeque<(u64, u64)>,
    /// A file is being renamed.
    moving: bool,
    /// Time until which the lane waits for others at the end.
    until: Option<Nanos>,
    /// After a failure, the lane is closing the files that it still can.
    pub(super) salvaging: bool,
}

/// Time that a lane waits at the end for others to rename their files.
const GRACE: Nanos = Nanos::from_millis(5000);
/// Interval at which it checks if they did.
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

    /// Begins a chunk with this frame; its file will be made.
    pub(super) fn begin(&self, file: u64, first: u64) {
        self.numbering.begin(self.lane, file, first);
    }

    /// Chooses the number in the name of a file that is made now.
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

    /// Notes that the file exists.
    pub(super) fn made(&self, file: u64) {
        self.numbering.made(self.lane, file);
    }

    /// Notes that the file is closed.
    pub(super) fn closed(&mut self, file: u64) {
        self.open.retain(|(open, _)| *open != file);
    }

    /// The next file to rename and its new number; one rename at a time.
    pub(super) fn next_move(&mut self) -> Option<(u64, u32)> {
        if self.moving {
            return None;
        }
        let next = self.numbering.next_move(self.lane);
        self.moving = next.is_some();
        next
    }

    /// Notes the new number in the file's name.
    pub(super) fn renamed(&mut self, file: u64, number: u32) {
        self.names.insert(file, Some(number));
    }

    /// Notes that the new name will survive any crash.
    pub(super) fn moved(&mut self, file: u64) {
        self.numbering.moved(self.lane, file);
        self.moving = false;
    }

    /// Returns true if no file needs another name, or if the lane has waited long enough for others.
    pub(super) fn is_settled(&mut self, now: Nanos) -> bool {
        let until = *self.until.get_or_insert(now + GRACE);
        let settled = self.numbering.is_settled(self.lane) || now >= until;
        if settled {
            self.until = None;
            self.leave();
        }
        settled
    }

    /// Time of the next check on others' renames, if the lane waits for them.
    pub(super) fn look_at(&self, now: Nanos) -> Option<Nanos> {
        self.until.map(|until| until.min(now + LOOK))
    }

    /// Ends the renames of this lane.
    pub(super) fn leave(&self) {
        self.numbering.leave(self.lane);
    }

    /// Notes a frame that is being written at `begin`.
    pub(super) fn issue(&mut self, begin: FileOffset) {
        self.issued.push_back(begin);
    }

    /// Notes that the frame is written, with `bytes` bytes.
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

    /// Gives up written frames that are not acknowledged: they go elsewhere.
    pub(super) fn abandon(&mut self) -> impl Iterator<Item = Frame> {
        mem::take(&mut self.landed).into_iter().map(|(_, frame, _)| frame)
    }

    /// Notes an acknowledged frame of this file: its end there, and the number of bytes written.
    pub(super) fn acknowledge(&mut self, file: u64, end: u64, bytes: u64) {
        if let Some((_, last)) = self.open.iter_mut().find(|(open, _)| *open == file) {
            *last = end.max(*last);
        }
        self.numbering.stored(bytes);
    }

    /// Files that are not closed, and the end of the last acknowledged frame of each.
    pub(super) fn open(&self) -> &VecDeque<(u64, u64)> {
        &self.open
    }
}
