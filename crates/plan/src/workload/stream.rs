//! `stream`: large files, written and read in sequence.

use nilometer_model::{Bytes, Capability, Phase};
use serde::{Deserialize, Serialize};

use super::{
    Access, MpiIoCalls, Shift, SyncPolicy,
    parameters::{Footprint, Parameters, Work, WorkloadTraits, parameters, scaled, whole_blocks},
};

/// The file that a worker writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileLayout {
    /// N-to-N: each worker has files of its own.
    Own,
    /// N-to-1, segmented in IOR's terms: each worker has one contiguous part of a shared file.
    Segmented,
    /// N-to-1, strided in IOR's terms: the blocks of the workers take turns in a shared file.
    Strided,
}

/// The source of written data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataSource {
    /// Buffers that were filled before.
    #[default]
    Memory,
    /// A file in the plan's source directory, read block by block as `dd` and `cp` do.
    Disk,
}

impl DataSource {
    /// True if data come from buffers.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
    pub(super) const fn is_memory(&self) -> bool {
        matches!(self, DataSource::Memory)
    }
}

parameters! {
    /// Sequential write of files, then a cold sequential read.
    StreamSweep => StreamCell {
        /// Bytes a worker writes into each of its files, or into its part of the shared one: a whole number of blocks.
        file_size: Bytes,
        /// Bytes an operation.
        block_size: Bytes,
        /// Through the page cache or past it.
        access: Access,
        /// The time at which written data become durable: `"none"`, `"close"`, or `{ every = N }` blocks and
        /// at the close.
        sync: SyncPolicy = SyncPolicy::Close,
        /// Files a worker, one after the other.
        files: u32 = 1,
        /// Files in all, for any number of workers: each takes its share, one after the other. With 0, each
        /// worker has `files`.
        #[serde(default)]
        total_files: u32 = 0,
        /// Files of a worker's own, or one for all.
        layout: FileLayout = FileLayout::Own,
        /// Reserve space before writing: for each file when a worker makes it, for a shared one by the first
        /// worker. A file system that can't gets the data without it, and the figure says that.
        preallocate: bool = false,
        /// The source of written data. With "disk" workers read it through the page cache, cold, and a phase
        /// before measures that alone.
        source: DataSource = DataSource::Memory,
        /// Write the files once more after writing them, in the same way, like iozone's rewrite.
        #[serde(default)]
        rewrite: bool = false,
        /// Read the files back, cold.
        read_back: bool = true,
        /// The worker whose files, or part of a shared file, a worker reads back: itself, or the worker N
        /// further. With `"node"` it is the worker in the same place on the next node (IOR -C). The client
        /// here never saw those files, so they are cold without dropping caches (docs/cluster.md).
        #[serde(default)]
        shift: Shift = Shift::OWN,
    }
}

/// The most files of a cell.
const MOST_FILES: u32 = 1_000_000;

impl StreamCell {
    /// Number of files of all workers, if each has files of its own.
    fn own_files(&self, workers: u32) -> u64 {
        if self.total_files > 0 {
            self.total_files.into()
        } else {
            u64::from(self.files) * u64::from(workers)
        }
    }

    fn all(&self, workers: u32) -> Bytes {
        Bytes(self.file_size.0.saturating_mul(self.own_files(workers)))
    }

    /// Number of files of a worker. If the share is not whole, the first workers get one more.
    pub fn files_of(&self, worker: u32, workers: u32) -> u32 {
        let workers = workers.max(1);
        match self.total_files {
            0 => self.files,
            total => total / workers + u32::from(worker < total % workers),
        }
    }
}

impl Parameters for StreamCell {
    fn phrases(&self) -> Vec<String> {
        let many = match (self.total_files, self.files) {
            (0, 1) => String::new(),
            (0, files) => format!("{files} x "),
            (total, _) => format!("{total} files of "),
        };
        let mut phrases =
            vec![format!("{many}{} by {}", self.file_size, self.block_size), self.access.name().to_owned()];
        match self.layout {
            FileLayout::Own => {}
            FileLayout::Segmented => phrases.push("N-to-1 segmented".into()),
            FileLayout::Strided => phrases.push("N-to-1 strided".into()),
        }
        match self.sync {
            SyncPolicy::Close => {}
            SyncPolicy::None => phrases.push("never synced".into()),
            SyncPolicy::Every(every) => phrases.push(format!("synced every {every}")),
        }
        if self.preallocate {
            phrases.push("preallocated".into());
        }
        if self.source == DataSource::Disk {
            phrases.push("from disk".into());
        }
        phrases.extend(self.shift.phrase());
        phrases
    }

    fn needs(&self) -> Vec<Capability> {
        let mut needs = Vec::new();
        if self.layout != FileLayout::Own {
            needs.push(Capability::WriteAnywhere);
        }
        if matches!(self.sync, SyncPolicy::Every(_)) {
            needs.push(Capability::Append);
        }
        if self.preallocate {
            needs.push(Capability::Resize);
        }
        if self.source == DataSource::Disk {
            needs.push(Capability::Mounted);
        }
        needs
    }

    fn phases(&self) -> Vec<Phase> {
        let copied = self.source == DataSource::Disk;
        [
            (Phase::LayOut, copied),
            (Phase::Source, copied),
            (Phase::Write, true),
            (Phase::Rewrite, self.rewrite),
            (Phase::Read, self.read_back),
        ]
        .into_iter()
        .filter_map(|(phase, there)| there.then_some(phase))
        .collect()
    }

    fn block_size(&self) -> Bytes {
        self.block_size
    }

    fn access(&self) -> Option<Access> {
        Some(self.access)
    }

    fn traits(&self) -> WorkloadTraits {
        WorkloadTraits {
            needs_all_of_others: self.shift != Shift::OWN && self.read_back,
            shifts_by_node: self.shift == Shift::Node,
            in_sequence_through_the_cache: self.access == Access::Buffered,
            has_workers_apart: self.shift == Shift::OWN && self.layout == FileLayout::Own,
            shares_a_file: self.layout != FileLayout::Own,
            ..WorkloadTraits::default()
        }
    }

    fn footprint(&self, workers: u32) -> Footprint {
        let entries = if self.layout == FileLayout::Own { self.own_files(workers) } else { 1 };
        Footprint { bytes: self.all(workers), entries }
    }

    fn work(&self, _phase: Phase, workers: u32) -> Work {
        Work::moved(self.all(workers), self.block_size)
    }

    fn reads_what_others_wrote(&self, phase: Phase) -> bool {
        self.shift == Shift::Node && self.layout == FileLayout::Own && phase == Phase::Read
    }

    fn check_mpi_io(&self, calls: MpiIoCalls) -> Result<(), String> {
        let why = if self.access != Access::Buffered {
            "it has no O_DIRECT: write access = \"buffered\""
        } else if self.preallocate {
            "preallocate = true: MPI-IO reserves space by writing all of it: leave it out"
        } else if self.source == DataSource::Disk {
            "source = \"disk\": copies are made without MPI-IO: leave one of them out"
        } else if calls == MpiIoCalls::Collective && self.layout == FileLayout::Own {
            "calls = \"collective\": a process with files of its own has no partner to exchange data with: \
             write calls = \"independent\", or layout = \"segmented\" or \"strided\""
        } else {
            return Ok(());
        };
        Err(why.into())
    }

    fn scale(&mut self, factor: f64) {
        self.file_size = scaled(self.file_size, factor, self.block_size);
    }

    fn check(&self, workers: u32) -> Result<(), String> {
        whole_blocks(self.file_size, self.block_size)?;
        if self.files == 0 || self.files > MOST_FILES {
            return Err(format!("files = {}: write 1 to {MOST_FILES}", self.files));
        }
        self.check_total(workers)?;
        if self.layout != FileLayout::Own && self.files > 1 {
            return Err(format!(
                "files = {}: workers that share a file share one: write files = 1",
                self.files
            ));
        }
        let all = u128::from(self.file_size.0) * u128::from(workers);
        if self.layout != FileLayout::Own && i64::try_from(all).is_err() {
            let size = self.file_size;
            return Err(format!("file_size = \"{size}\" for {workers} workers: a file ends at 8 EiB"));
        }
        if self.sync == SyncPolicy::Every(0) {
            return Err("sync = { every = 0 }: write at least 1 block, or \"none\" or \"close\"".into());
        }
        Ok(())
    }
}

impl StreamCell {
    fn check_total(&self, workers: u32) -> Result<(), String> {
        let total = self.total_files;
        if total > MOST_FILES {
            return Err(format!("total_files = {total}: write at most {MOST_FILES}"));
        }
        if total > 0 && (self.files > 1 || self.layout != FileLayout::Own) {
            return Err(format!(
                "total_files = {total}: they are workers' own, and `files` says nothing besides: leave it out"
            ));
        }
        if total > 0 && total < workers {
            return Err(format!(
                "total_files = {total} for {workers} workers: each needs one: write fewer workers"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(total_files: u32) -> StreamCell {
        StreamCell {
            file_size: Bytes(100),
            block_size: Bytes(10),
            access: Access::Buffered,
            sync: SyncPolicy::Close,
            files: 1,
            total_files,
            layout: FileLayout::Own,
            preallocate: false,
            source: DataSource::Memory,
            rewrite: false,
            read_back: true,
            shift: Shift::OWN,
        }
    }

    #[test]
    fn files_in_all_are_shared_out_and_none_is_lost() {
        for (total, workers) in [(300, 7), (15, 6), (8, 8)] {
            let shares: Vec<u32> = (0..workers).map(|worker| cell(total).files_of(worker, workers)).collect();
            assert_eq!(shares.iter().sum::<u32>(), total, "{shares:?}");
            assert!(shares.iter().max().expect("workers") - shares.iter().min().expect("workers") <= 1);
            let all = cell(total).footprint(workers);
            assert_eq!((all.bytes, all.entries), (Bytes(100 * u64::from(total)), total.into()));
        }
        assert_eq!(cell(0).files_of(3, 4), 1, "of each worker");
        assert_eq!(cell(30).phrases()[0], "30 files of 100 B by 10 B");
    }

    #[test]
    fn files_in_all_are_not_said_twice_and_are_enough_for_all() {
        assert_eq!(cell(4).check(4), Ok(()));
        let few = cell(3).check(4).expect_err("one has none");
        assert!(few.contains("write fewer workers"), "{few}");
        let twice = StreamCell { files: 2, ..cell(4) }.check(1).expect_err("two numbers");
        assert!(twice.contains("leave it out"), "{twice}");
        let shared = StreamCell { layout: FileLayout::Strided, ..cell(4) };
        assert!(shared.check(1).is_err());
    }
}
