//! Command lines and job files of other benchmark programs: fio, dd, IOR, mdtest, elbencho and iozone, also
//! behind launchers such as `mpirun` and `srun`.
//!
//! [`parse`] reads a line into a [`ForeignLine`]: its load on the storage, in one form for all programs, with
//! the options that have no counterpart in it. The command `explain` measures that load. Output of these
//! programs repeats their command line, and `import` reads it by the same tables of options: [`IorCommand`],
//! [`MdtestCommand`], [`elbencho_path`].
//!
//! ```text
//!    words ---> launcher ---> options ---> fio, dd, ior, ...  ---> line
//!               (front)       (table)      (one file each)         (load, reach, options left out)
//! ```
//!
//! It reads files that a line names, and the names of devices, and nothing else of the machine.

#![forbid(unsafe_code)]

mod amount;
mod dd;
mod elbencho;
mod error;
mod fio;
mod fio_jobs;
mod fio_options;
mod fio_reach;
mod ior;
mod ior_file;
mod iozone;
mod launcher;
mod launcher_options;
mod line;
mod mdtest;
mod mdtest_operations;
mod options;
mod parse;
#[cfg(any(test, feature = "test-kit"))]
pub mod public_lines;
mod reach;
#[cfg(test)]
mod tests;
mod tree_line;

pub use amount::{BINARY, UnitBases, size};
pub use elbencho::{elbencho_limits, elbencho_path};
pub use error::LineError;
pub use fio_options::{FIO_OUTPUT_OPTIONS, fio_option_makes_test, fio_value};
pub use ior::IorCommand;
pub use launcher::LineFront;
pub use line::{
    ForeignLine, ForeignProgram, LineAccess, LineFiles, LineMpiIo, LineRate, LineSync, parent_of,
};
pub use mdtest::MdtestCommand;
pub use mdtest_operations::{MDTEST_OPERATIONS, MdtestOperation};
pub use options::LeftOutOptions;
pub use parse::{ReadLine, parse};
pub use reach::{LinePath, LineReach};
pub use tree_line::{ITEMS_MOST, TreeLine};
