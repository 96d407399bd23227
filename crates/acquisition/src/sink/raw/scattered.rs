//! Steps of a sink for chunks. A lane makes a file when its first frame is there, and closes it when its lease is
//! over. It renames the file when another chunk is put before it.

use nilometer_model::Nanos;
use nilometer_storage::{Buffer, Operation, Slot};

use super::{
    LaneFiles,
    file_steps::{FileStep, StepSubject},
    layout::OPEN,
};
use nilometer_recording::journal::Entry;

impl LaneFiles {
    pub(super) fn has_room_for_a_chunk(&self) -> bool {
        self.chunks.as_ref().is_some_and(|chunks| chunks.has_room(self.files.last().0))
    }

    pub(super) fn begin_chunk(&mut self, first: u64) {
        self.end_chunk();
        let Some(chunks) = &self.chunks else { return };
        let file = self.files.last().0;
        chunks.begin(file, first);
        // The slot is free once its previous file is closed.
        self.program.add_behind(file.checked_sub(OPEN), self.placement.make(file));
        self.program.add([FileStep::Room(file + 1)]);
    }

    /// Ends the chunk at its last frame.
    pub(super) fn end_chunk(&mut self) {
        if self.chunks.is_none() || self.files.last().1 == 0 {
            return;
        }
        self.complete_group();
        self.add_end();
        self.files.end();
    }

    /// Closes the last chunk and waits for the numbers of others. `whole` is true if the whole recording is
    /// over, not only this lane.
    pub(super) fn add_end_of_chunks(&mut self, whole: bool) {
        self.end_chunk();
        self.program.add([FileStep::Settle]);
        if whole && self.layout.streamer.is_some() && self.written > 0 {
            self.program.add([FileStep::CreateStreamer, FileStep::WriteStreamer, FileStep::CloseStreamer]);
        }
    }

    /// The operation that does a step.
    pub(super) fn start(&mut self, step: FileStep, buffer: Buffer) -> Operation {
        if let (FileStep::Close(file), Some(chunks)) = (step, &mut self.chunks) {
            chunks.closed(file);
        }
        let name = self.name_for(step);
        let file = step.file().unwrap_or(0);
        let index = self.index.as_mut();
        let (index, size) = index.map_or((Slot(0), None), |index| (index.slot(file), index.size(file)));
        let subject = StepSubject { name, size: size.unwrap_or(0), index };
        self.program.start(step, &self.layout, self.placement.as_ref(), subject, buffer)
    }

    /// The file name that a step needs, or the text it writes.
    fn name_for(&self, step: FileStep) -> String {
        let numbers = self.chunks.as_ref();
        if let (FileStep::WriteStreamer, Some(chunks), Some(streamer)) = (step, numbers, self.layout.streamer)
        {
            let (files, bytes) = chunks.numbering.totals();
            return streamer.text(files, bytes);
        }
        let Some(file) = step.file() else { return String::new() };
        match numbers.and_then(|chunks| chunks.number(file)) {
            Some(number) => self.layout.head.chunk_name(&self.layout.name, number),
            None => self.layout.file_name(file),
        }
    }

    pub(super) fn make_room(&mut self, file: u64) {
        if let Some(chunks) = &mut self.chunks {
            chunks.make_room(file);
        }
    }

    pub(super) fn name(&mut self, file: u64) {
        let number = self.chunks.as_mut().and_then(|chunks| chunks.name(file));
        self.note(Entry::Chunk { file, number });
    }

    pub(super) fn ready(&mut self, file: u64) {
        self.files.ready(file);
        if let Some(chunks) = &self.chunks {
            chunks.made(file);
        }
    }

    /// Renames a file whose number changes. The journal's note comes first, so that a reader finds the file by
    /// either name.
    pub(super) fn add_move(&mut self) {
        let next = self.chunks.as_mut().filter(|_| self.program.journal_is_open());
        let Some((file, number)) = next.and_then(super::Chunks::next_move) else { return };
        let note = FileStep::Note(Entry::Chunk { file, number: Some(number) });
        let rename = [note, FileStep::SyncJournal, FileStep::Rename(file, number), FileStep::SyncNames];
        self.program.add_first(rename.into_iter().chain([FileStep::Moved(file)]));
    }

    pub(super) fn moved(&mut self, file: u64) {
        if let Some(chunks) = &mut self.chunks {
            chunks.moved(file);
        }
    }

    pub(super) fn is_settled(&mut self, now: Nanos) -> bool {
        self.chunks.as_mut().is_none_or(|chunks| chunks.is_settled(now))
    }

    pub(super) fn chunk_step_completed(&mut self, done: Option<FileStep>) {
        match (&mut self.chunks, done) {
            (Some(chunks), Some(FileStep::Rename(file, number))) => chunks.renamed(file, number),
            (Some(chunks), Some(FileStep::Create(file))) => chunks.created(file),
            _ => {}
        }
        if let (Some(index), Some(FileStep::CloseIndex(file))) = (&mut self.index, done) {
            index.closed(file);
        }
    }

    /// Lets the other lanes go on without this one.
    pub(super) fn fail(&mut self) {
        if let Some(chunks) = &self.chunks {
            chunks.leave();
        }
    }

    /// After a failure, once nothing is in flight: cuts each chunk behind its last acknowledged frame, if the
    /// storage still allows it.
    pub(super) fn salvage(&mut self) -> Option<Operation> {
        if let Some(rest) = self.rest_of_index() {
            return Some(rest);
        }
        let chunks = self.chunks.as_mut()?;
        if !self.in_flight.is_empty() || !self.program.is_quiet() || self.log.is_flying() {
            return None;
        }
        if self.index.is_some() {
            // The index determines the end of a file, and readers find its acknowledged frames as it is.
            self.program.replace([]);
            return None;
        }
        if !std::mem::replace(&mut chunks.salvaging, true) {
            let whole_files = self.layout.whole_files;
            self.program.replace(chunks.open().iter().filter_map(|&(file, bytes)| match bytes {
                0 => Some(FileStep::Discard(file)),
                // The storage has the whole file or nothing of it.
                _ if whole_files => None,
                bytes => Some(FileStep::Truncate(file, bytes)),
            }));
        }
        let step = self.program.pop()?;
        let buffer = self.scratch.pop().expect("nothing is in flight");
        Some(self.start(step, buffer))
    }
}
