//! `frames`: two-dimensional frames into one file of three dimensions, or a file each.

use nilometer_model::{Bytes, Capability, Phase};
use serde::{Deserialize, Serialize};

use super::{
    Access, SyncPolicy,
    parameters::{Footprint, Parameters, Work, WorkloadTraits, check_block, parameters, scaled_count},
};

/// The arrangement of frames in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FrameFile {
    /// One file of three dimensions for all.
    One,
    /// A file each.
    Each,
}

/// The part of the frames that a worker writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Split {
    /// Worker k of N takes the frames k, k + N, k + 2 N, ...
    Turns,
    /// Worker k takes the k-th part of the frames.
    Blocks,
    /// Each worker writes the rows of its module in every frame: small strided writes.
    Module,
}

/// The unit of reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FrameRead {
    /// Whole frames.
    Frame,
    /// One row through all frames: the access of a tomographic reconstruction (a sinogram).
    Row,
    /// The middle half of the rows and columns of every frame.
    Region,
}

parameters! {
    /// Workers write frames and read them back by frame, by row or by region.
    FramesSweep => FramesCell {
        /// Rows of a frame.
        rows: u32,
        /// Bytes of a row.
        row_size: Bytes,
        /// Frames of all workers together.
        frames: u64,
        /// Through the page cache or past it.
        access: Access,
        /// One file for all, or a file a frame.
        file: FrameFile = FrameFile::One,
        /// The part of the frames that a worker writes.
        split: Split = Split::Turns,
        /// Begin frames, and the modules in them, at multiples of this size.
        align: Bytes = Bytes(1),
        /// The unit of reading.
        read: FrameRead = FrameRead::Frame,
        /// The time at which written data become durable.
        sync: SyncPolicy = SyncPolicy::Close,
    }
}

/// The most frames: more than any detector takes in a scan. Their numbers fit into a name.
const FRAMES_MAX: u64 = 1_000_000_000;

impl FramesCell {
    /// Bytes of a frame, without gaps between frames or modules.
    pub fn frame_size(&self) -> u64 {
        u64::from(self.rows) * self.row_size.0
    }

    /// Modules of a frame: one for each worker if they split it, else one.
    pub fn modules(&self, workers: u32) -> u32 {
        if self.split == Split::Module { workers } else { 1 }
    }

    /// Bytes from one module to the next in a file.
    pub fn module_stride(&self, workers: u32) -> u64 {
        (self.frame_size() / u64::from(self.modules(workers).max(1))).next_multiple_of(self.align.0.max(1))
    }

    /// The pieces in which a whole frame lies: its modules if something lies between them, else one.
    pub fn parts(&self, workers: u32) -> u32 {
        if self.frame_stride(workers) == self.frame_size() { 1 } else { self.modules(workers) }
    }

    /// Rows of the region to read, and bytes of each: the middle half of both, at least one. It begins at a
    /// quarter of both.
    pub fn region(&self) -> (u32, u64) {
        ((self.rows / 2).max(1), (self.row_size.0 / 2).max(1))
    }

    /// Bytes from one frame to the next in a file.
    pub fn frame_stride(&self, workers: u32) -> u64 {
        self.module_stride(workers) * u64::from(self.modules(workers))
    }
}

impl Parameters for FramesCell {
    fn phrases(&self) -> Vec<String> {
        let file = if self.file == FrameFile::One { "one file" } else { "a file each" };
        let split = match self.split {
            Split::Turns => "by turns",
            Split::Blocks => "in blocks",
            Split::Module => "by module",
        };
        let frames = format!("{} of {}", self.frames, Bytes(self.frame_size()));
        let mut phrases = vec![frames, file.to_owned(), split.to_owned(), self.access.name().to_owned()];
        match self.read {
            FrameRead::Frame => {}
            FrameRead::Row => phrases.push("read by row".into()),
            FrameRead::Region => phrases.push("read by region".into()),
        }
        if self.align.0 > 1 {
            phrases.push(format!("aligned to {}", self.align));
        }
        if self.sync == SyncPolicy::None {
            phrases.push("never synced".into());
        }
        phrases
    }

    fn phases(&self) -> Vec<Phase> {
        vec![Phase::Write, Phase::Read]
    }

    fn block_size(&self) -> Bytes {
        Bytes(self.frame_size())
    }

    fn access(&self) -> Option<Access> {
        Some(self.access)
    }

    fn traits(&self) -> WorkloadTraits {
        WorkloadTraits { has_workers_apart: false, ..WorkloadTraits::default() }
    }

    fn footprint(&self, workers: u32) -> Footprint {
        let bytes = Bytes(self.frame_stride(workers).saturating_mul(self.frames));
        Footprint { bytes, entries: if self.file == FrameFile::Each { self.frames } else { 1 } }
    }

    fn work(&self, phase: Phase, workers: u32) -> Work {
        let all = self.frame_size().saturating_mul(self.frames);
        let times = |pieces: u32| u64::from(pieces).saturating_mul(self.frames);
        match (phase, self.read) {
            (Phase::Read, FrameRead::Frame) => Work { bytes: all, operations: times(self.parts(workers)) },
            (Phase::Read, FrameRead::Row) => Work { bytes: all, operations: times(self.rows) },
            (Phase::Read, FrameRead::Region) => {
                let (rows, columns) = self.region();
                Work { bytes: times(rows).saturating_mul(columns), operations: times(rows) }
            }
            _ => Work { bytes: all, operations: times(self.modules(workers)) },
        }
    }

    fn alignments(&self, workers: u32) -> Vec<(&'static str, Bytes)> {
        let Bytes(row) = self.row_size;
        let module = self.frame_size() / u64::from(self.modules(workers).max(1));
        let mut all = vec![("rows x row_size of a module", module), ("align", self.module_stride(workers))];
        match self.read {
            FrameRead::Frame => {}
            FrameRead::Row => all.push(("row_size", row)),
            FrameRead::Region => all.extend([
                ("row_size", row),
                ("a quarter of row_size", row / 4),
                ("half of row_size", self.region().1),
            ]),
        }
        all.into_iter().map(|(key, size)| (key, Bytes(size))).collect()
    }

    fn needs(&self) -> Vec<Capability> {
        if self.file == FrameFile::One { vec![Capability::WriteAnywhere] } else { Vec::new() }
    }

    /// Readers of their own files expect each of them.
    fn may_end_early(&self, phase: Phase) -> bool {
        phase != Phase::Write || self.file == FrameFile::One
    }

    fn scale(&mut self, factor: f64) {
        self.frames = scaled_count(self.frames, factor);
    }

    fn check(&self, workers: u32) -> Result<(), String> {
        check_block("row_size", self.row_size)?;
        check_block("rows x row_size", Bytes(self.frame_size()))?;
        check_block("align", self.align)?;
        if self.frames == 0 {
            return Err("frames = 0: write at least 1".into());
        }
        if self.frames > FRAMES_MAX || self.footprint(workers).bytes.0 == u64::MAX {
            return Err(format!("frames = {}: at most {FRAMES_MAX}, and less than 16 EiB", self.frames));
        }
        if self.split == Split::Module && !self.rows.is_multiple_of(workers) {
            return Err(format!(
                "rows = {}: no whole number of rows for each of {workers} workers",
                self.rows
            ));
        }
        if self.split == Split::Module && self.file == FrameFile::Each && workers > 1 {
            return Err("split = \"module\" needs file = \"one\": the workers would share each file".into());
        }
        if matches!(self.sync, SyncPolicy::Every(_)) {
            return Err("sync of frames is \"none\" or \"close\"".into());
        }
        Ok(())
    }
}
