//! A line of another program as a cell of ours: its load on the storage, in the same form for all programs.

use std::path::{Path, PathBuf};

use nilometer_model::{Bytes, Nanos};

use crate::{
    error::LineError,
    options::{LeftOutOptions, ReadOption},
    reach::LineReach,
    tree_line::TreeLine,
};

/// The programs whose lines `explain` understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForeignProgram {
    /// `fio`.
    Fio,
    /// `dd` of GNU coreutils.
    Dd,
    /// IOR.
    Ior,
    /// mdtest.
    Mdtest,
    /// elbencho.
    Elbencho,
    /// iozone.
    Iozone,
}

impl ForeignProgram {
    /// All programs, with their names on a command line.
    pub const ALL: [(&'static str, ForeignProgram); 6] = [
        ("fio", ForeignProgram::Fio),
        ("dd", ForeignProgram::Dd),
        ("ior", ForeignProgram::Ior),
        ("mdtest", ForeignProgram::Mdtest),
        ("elbencho", ForeignProgram::Elbencho),
        ("iozone", ForeignProgram::Iozone),
    ];

    /// Its name on a command line.
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(_, program)| *program == self).map_or("", |(name, _)| name)
    }
}

/// The direction of the data, and their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineAccess {
    /// Writes in sequence.
    Write,
    /// Reads in sequence.
    Read,
    /// Writes at random places.
    RandomWrite,
    /// Reads at random places.
    RandomRead,
    /// Reads and writes, with the share of reads in percent.
    RandomMix(u32),
}

/// The time at which written data become durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineSync {
    /// When the kernel likes.
    Never,
    /// When the file is closed.
    AtClose,
    /// After each `N` blocks.
    Every(u64),
}

impl LineSync {
    /// The stronger of two: a line with both syncs as often as either.
    pub(crate) fn or(self, other: LineSync) -> LineSync {
        match (self, other) {
            (LineSync::Every(one), LineSync::Every(another)) => LineSync::Every(one.min(another)),
            (every @ LineSync::Every(_), _) | (_, every @ LineSync::Every(_)) => every,
            (LineSync::AtClose, _) | (_, LineSync::AtClose) => LineSync::AtClose,
            (LineSync::Never, LineSync::Never) => LineSync::Never,
        }
    }
}

/// The file of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineFiles {
    /// Each worker has its own file.
    Own,
    /// All workers have contiguous parts of one file.
    Segmented,
    /// All workers take turns in one file, block by block.
    Strided,
}

/// The most that all workers together move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineRate {
    /// Operations a second.
    Operations(u32),
    /// Bytes a second.
    Bytes(u64),
}

/// The calls by which MPI-IO moves data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineMpiIo {
    /// Each process by itself.
    Independent,
    /// All processes together.
    Collective,
}

/// A line as a cell.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a line has each of them or not, independently of the others"
)]
pub struct ForeignLine {
    /// The program.
    pub program: ForeignProgram,
    /// The directory of its files.
    pub directory: PathBuf,
    /// The direction of the data, and their order.
    pub way: LineAccess,
    /// Bytes of an operation.
    pub block: Bytes,
    /// Bytes that each worker moves, or those of its file for random access.
    pub size: Bytes,
    /// Bytes that each worker moves at random, if they are other than `size`.
    pub moved: Option<Bytes>,
    /// Files of each worker, of `size` each.
    pub file_count: u32,
    /// Threads or processes that move data at the same time.
    pub workers: u32,
    /// Operations in flight of each worker.
    pub depth: u32,
    /// True if data go past the page cache.
    pub direct: bool,
    /// The time at which written data become durable.
    pub durable: LineSync,
    /// True if written data are zeros.
    pub zeros: bool,
    /// The file of a worker.
    pub files: LineFiles,
    /// True if some blocks come more than once and others never.
    pub is_uniform: bool,
    /// The limit of its rate; `None` without one.
    pub rate: Option<LineRate>,
    /// A phase ends after this time at the latest.
    pub time: Option<Nanos>,
    /// True if it runs until the time is over, for any size.
    pub is_time_based: bool,
    /// The calls of MPI-IO; `None` if data move by calls of POSIX.
    pub mpi_io: Option<LineMpiIo>,
    /// True if workers are processes, which the line's launcher starts here too.
    pub is_by_processes: bool,
    /// A tree of items, of mdtest, in place of the files above.
    pub tree: Option<TreeLine>,
    /// Jobs of fio that the cell stands for; all, if empty.
    pub jobs: Vec<String>,
    /// A device that makes the data, and may be slower than the storage.
    pub source: Option<PathBuf>,
    /// Files and devices that the line itself works on.
    pub reach: LineReach,
    /// Options of the line without a counterpart in the cell.
    pub left_out: LeftOutOptions,
}

impl ForeignLine {
    /// A line with only its program and the number of processes.
    pub(crate) fn new(program: ForeignProgram, processes: u32) -> Self {
        ForeignLine {
            program,
            directory: PathBuf::from("."),
            way: LineAccess::Write,
            block: Bytes(4096),
            size: Bytes(0),
            moved: None,
            file_count: 1,
            workers: processes,
            depth: 1,
            direct: false,
            durable: LineSync::Never,
            zeros: false,
            files: LineFiles::Own,
            is_uniform: false,
            rate: None,
            time: None,
            is_time_based: false,
            mpi_io: None,
            is_by_processes: false,
            tree: None,
            jobs: Vec::new(),
            source: None,
            reach: LineReach::default(),
            left_out: LeftOutOptions::default(),
        }
    }

    /// Checks the line. Files of ours are whole blocks, and some combinations have no cell.
    pub(crate) fn completed(mut self) -> Result<Self, LineError> {
        if self.tree.is_some() {
            return Ok(self);
        }
        self.whole_blocks()?;
        if self.is_random() && self.writes() && self.durable != LineSync::AtClose {
            self.leave("when random writes are synced", "here once, when the file is closed");
            self.durable = LineSync::AtClose;
        }
        if self.files != LineFiles::Own && self.is_random() {
            self.files = LineFiles::Own;
            self.leave("one file of all processes", "here each has one of its own");
        }
        self.completed_mpi_io();
        if self.is_time_based && !self.is_random() {
            self.leave(
                "going over the file again until the time is over",
                "here a worker ends with its file",
            );
        }
        Ok(self)
    }

    /// Drops MPI-IO unless the line moves files in sequence, the only case that our MPI-IO has.
    fn completed_mpi_io(&mut self) {
        if self.mpi_io.is_none() {
            return;
        }
        if self.is_random() {
            self.without_mpi_io("here random access is by calls of POSIX");
            return;
        }
        self.is_by_processes = true;
        if self.files != LineFiles::Own && self.time.take().is_some() {
            self.leave(
                "the deadline",
                "all processes make the same calls on one file; here they go on to its end",
            );
        }
    }

    /// Changes the cell to calls of POSIX, in one process with several workers.
    pub fn without_mpi_io(&mut self, why: &str) {
        self.mpi_io = None;
        self.is_by_processes = false;
        self.leave("-a MPIIO", why);
    }

    fn whole_blocks(&mut self) -> Result<(), LineError> {
        if self.size.0 == 0 {
            return Err(LineError::whole(
                "the line does not say how much: write a size (fio --size, dd count=, ior -b, elbencho -s, iozone -s)",
            ));
        }
        if !(1..=1 << 30).contains(&self.block.0) {
            return Err(LineError::whole(format!("blocks of {}: write 1 B to 1 GiB", self.block)));
        }
        self.block = self.block.min(self.size);
        let odd = self.size.0 % self.block.0;
        if odd != 0 {
            self.leave(&format!("the last {odd} bytes"), "they are no whole block");
            self.size = Bytes((self.size.0 - odd).max(self.block.0));
        }
        Ok(())
    }

    /// True if some of its data are written.
    pub fn writes(&self) -> bool {
        !matches!(self.way, LineAccess::Read | LineAccess::RandomRead)
    }

    /// True if blocks are in no order.
    pub fn is_random(&self) -> bool {
        !matches!(self.way, LineAccess::Write | LineAccess::Read)
    }

    /// Notes a property of the line that the cell lacks.
    pub fn leave(&mut self, what: &str, changes: &str) {
        self.left_out.leave(what, changes);
    }

    /// Notes an option without a counterpart in the cell.
    pub(crate) fn leave_option(&mut self, option: &ReadOption, changes: &str) {
        self.left_out.leave(&option.written, changes);
    }
}

/// The directory of a file. Refuses a device: a line would overwrite it, and cells of ours lie in a
/// directory.
pub(crate) fn directory_of(file: &Path) -> Result<PathBuf, LineError> {
    if is_device(file) {
        return Err(LineError::whole(format!(
            "{} is a device: Nilometer measures files: name a file on your storage",
            file.display()
        )));
    }
    Ok(parent_of(file))
}

/// True if a path is below `/dev`, except plain memory there.
pub(crate) fn is_device(path: &Path) -> bool {
    path.starts_with("/dev") && !path.starts_with("/dev/shm")
}

/// The directory of a path; `.` for a bare name.
pub fn parent_of(file: &Path) -> PathBuf {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new(".")).to_owned()
}
