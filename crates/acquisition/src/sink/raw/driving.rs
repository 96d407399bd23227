//! The side of a lane that its writer drives: frames go in and operations come out, completions go in and
//! acknowledged frames come out.

use nilometer_model::Nanos;
use nilometer_recording::{Due, journal::Entry};
use nilometer_ring::{Frame, MemoryAccount, MemoryPart};
use nilometer_storage::{Completion, Errno, Operation, Wait};

use super::{
    super::{RingNeeds, Stored},
    LaneFiles, RawLayout,
    chunks::Chunks,
    file_steps::FileStep,
    grouping::{self, Grouping},
};

impl LaneFiles {
    /// Returns the sink's requirements for the ring.
    pub fn needs(&self) -> RingNeeds {
        let RawLayout { head, .. } = &self.layout;
        let chunk = self.chunks.is_some().then_some(head.frames_per_file);
        RingNeeds { slot: head.stride as usize, alignment: self.layout.spacing().alignment(), chunk }
    }

    /// Returns true if the sink takes the space of the whole recording before the first frame. A recording
    /// can't begin if such a lane has no space.
    pub fn reserves_all(&self) -> bool {
        self.placement.reserves_all()
    }

    /// Gives the sink the account in which it counts the memory that grows with the frames stored.
    pub fn account(&mut self, account: &MemoryAccount) {
        let scratch = self.scratch.iter().map(|buffer| buffer.len() as u64).sum::<u64>();
        account.hold(MemoryPart::WriteBuffers, scratch + grouping::memory(&self.layout));
        if let Some(index) = &mut self.index {
            index.account(account);
        }
    }

    /// Bytes of frames acknowledged or on their way to it, as written: encoded, if they are.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Begins a chunk with the next frame, numbered `first`, and ends the previous one. Only called if there is
    /// room and the ring gives leases.
    pub fn begin(&mut self, first: u64) {
        self.lease_goes_on = false;
        self.begin_chunk(first);
    }

    /// Ends the chunk; the next frame is not known yet. Only called if the ring gives leases.
    pub fn end(&mut self) {
        self.lease_goes_on = false;
        self.end_chunk();
    }

    /// Tells the sink that no more frames arrive, except those that other lanes give back. It then holds no
    /// frame back to wait for more.
    pub fn put_open(&mut self) {
        if self.layout.whole_files {
            self.end_file();
        }
    }

    /// Returns true if the sink can store the first frames: their files exist.
    pub fn is_ready(&self) -> bool {
        let made = !self.placement.makes_ahead() || self.files.next().is_some() || self.files.last().0 > 0;
        made && self.program.journal_is_open()
    }

    /// Returns true if the sink takes another frame now.
    pub fn has_room(&self) -> bool {
        self.failed.is_none()
            && self.waiting.is_none()
            && (self.files.next().is_some() || self.has_room_for_a_chunk())
            && self.grouping.as_ref().is_none_or(Grouping::has_room)
            && self.has_room_in_lists()
    }

    /// Takes a frame. Only called when there is room.
    pub fn submit(&mut self, frame: Frame) {
        self.flush = false;
        if std::mem::take(&mut self.lease_goes_on) {
            self.begin_chunk(frame.number);
        }
        self.waiting = Some(frame);
    }

    /// Tells the sink that no frame waits now, so it writes the frames it has collected.
    pub fn flush(&mut self) {
        self.flush = true;
    }

    /// The next operation with its due time, or `None` if there is none to issue.
    pub fn next(&mut self, now: Nanos) -> Option<(Operation, Nanos)> {
        if self.failed.is_some() {
            return self.salvage().map(|operation| (operation, now));
        }
        self.make_checkpoint(now);
        self.place_in_datasets(now);
        self.add_flush_of_index();
        let operation = self.issue(now);
        if operation.is_some() || self.failed.is_some() || !self.add_flush_of_index() {
            return operation;
        }
        // The steps before ended without an operation, so frames that waited for them go into the index now.
        // Otherwise nothing might be in flight to call this again.
        self.issue(now)
    }

    /// Takes a completion, and appends the frames it acknowledged or made durable. An error means that the sink
    /// has failed.
    pub fn completed(&mut self, completion: Completion, stored: &mut Stored) -> Result<(), Errno> {
        if let Err(errno) = self.settle(completion, stored)
            && self.failed.replace(self.failed.unwrap_or(errno)).is_none()
        {
            self.fail();
        }
        self.failed.map_or(Ok(()), Err)
    }

    /// Returns the event to wait for if there is no operation to issue.
    pub fn wait(&self, now: Nanos) -> Wait {
        let look_at = self.chunks.as_ref().and_then(|chunks| chunks.look_at(now));
        look_at.into_iter().chain(self.wakes_at()).min().map_or(Wait::ForOne, Wait::Until)
    }

    /// The time of the next operation if no frame or completion arrives before: acknowledged frames have to
    /// become durable.
    pub fn wakes_at(&self) -> Option<Nanos> {
        let place = self.index.as_ref().filter(|_| self.failed.is_none()).and_then(|index| index.look_at());
        self.next_checkpoint().into_iter().chain(place).min()
    }

    /// Returns true if the storage has no room for another frame, and never will.
    pub fn is_full(&self) -> bool {
        self.no_room_for.is_some_and(|file| self.files.last().0 >= file)
    }

    /// Ends the sink: no more frames arrive, so it completes its open files. `due` holds the totals of the
    /// recording, or `None` if only this lane ended.
    pub fn finish(&mut self, due: Option<Due>) {
        self.finishing = true;
        if let Some(index) = &mut self.index {
            index.over(due.map(|due| due.frames));
        }
        if self.through {
            self.program.add([FileStep::CloseThrough(self.files.last().0)]);
        }
        // The lane begins nothing more: others may have the room.
        self.gauge.release();
        if self.chunks.is_some() {
            self.add_end_of_chunks(due.is_some());
        } else {
            self.add_end();
        }
        self.program.add([
            FileStep::CheckJournal,
            FileStep::Note(Entry::End { due }),
            FileStep::SyncJournal,
            FileStep::SyncNames,
            FileStep::CloseJournal,
        ]);
    }

    /// Returns true if everything is completed after `finish`.
    pub fn is_finished(&self) -> bool {
        let collected = self.grouping.as_ref().is_some_and(|grouping| !grouping.is_empty());
        let indexed = self.index.as_ref().is_none_or(|index| index.is_quiet());
        let written = self.in_flight.is_empty() && self.unarrived.is_empty() && self.unlogged.is_empty();
        self.finishing && self.program.is_done() && written && !collected && indexed
    }

    /// Takes back all frames neither acknowledged nor in flight, after a failure.
    pub fn abandon(&mut self) -> Vec<Frame> {
        self.gauge.release();
        let unarrived = self.unarrived.drain(..).map(|written| written.frame);
        self.returned.extend(self.waiting.take().into_iter().chain(unarrived));
        self.returned.extend(self.grouping.iter_mut().flat_map(Grouping::abandon));
        // A chunk is cut behind its last acknowledged frame, so frames with records in flight stay until that
        // write is back.
        let kept = if self.chunks.is_some() { self.log.flying_frames() } else { 0 };
        self.returned.extend(self.unlogged.drain(kept..).map(|unlogged| unlogged.frame));
        self.returned.extend(self.chunks.iter_mut().flat_map(Chunks::abandon));
        self.returned.extend(self.index.iter_mut().flat_map(|index| index.abandon()));
        std::mem::take(&mut self.returned)
    }
}
