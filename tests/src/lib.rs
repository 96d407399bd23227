//! Shared parts of the tests: file systems of their own that they can break, and the program run from outside
//! with a limit.
//!
//! Everything a test makes lies in a temporary directory of its own and goes when its guard is dropped, also on panic.

#![expect(clippy::print_stderr, reason = "a test that is skipped says so")]
#![forbid(unsafe_code)]

mod asked;
mod browser;
mod faults;
mod faulty_disk;
mod file_system;
mod filler;
mod footprint;
mod known_device;
mod memory_group;
mod mounted;
mod mpi;
mod patience;
mod ports;
mod power;
mod processor_quota;
mod program;
mod python;
mod shared_link;
mod shown_file;
mod sources;
mod tape;
mod testbed;
mod tool;
mod torn_disk;

pub use asked::{address, answer, ask, await_packets, status};
pub use browser::{Browser, BrowserPage};
pub use faults::not_sent;
pub use faulty_disk::{FaultyDisk, may_have_faulty_disks};
pub use file_system::{FileSystem, may_mount};
pub use filler::Filler;
pub use footprint::{Footprint, assert_flat, soak_seconds};
pub use known_device::{KNOWN_DEVICES, KnownDevice, Stated};
pub use memory_group::{MemoryGroup, peak_memory};
pub use mounted::{Mounted, may_show};
pub use mpi::{Mpi, MpiKind};
pub use patience::awaited;
pub use ports::{free_port, free_ports};
pub use power::PowerLoss;
pub use processor_quota::ProcessorQuota;
pub use program::{
    Ended, Running, clients, command_of, nilometer, number, run, start, start_copy, undamaged,
};
pub use python::python;
pub use shared_link::SharedLink;
pub use sources::{assert_none, crates, files, is_for_tests, read};
pub use tape::Tape;
pub use testbed::Testbed;
pub use tool::tool;
pub use torn_disk::{PowerLost, TornDisk};

use std::path::{Path, PathBuf};

use nilometer_plan::Cell;

use patience::PATIENCE;

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Number of kills in a test that kills a program of its own: `usually` in each run of the tests, `long` with
/// `make test-long`.
pub fn kills(usually: u64, long: u64) -> u64 {
    if std::env::var_os("NILOMETER_LONG").is_some() { long } else { usually }
}

/// Pairs each of some with each of others in `make test-long`. Otherwise each element of both is in at least
/// one pair.
pub fn pairs<A: Copy, B: Copy>(some: &[A], others: &[B]) -> Vec<(A, B)> {
    if std::env::var_os("NILOMETER_LONG").is_some() {
        return some.iter().flat_map(|one| others.iter().map(|other| (*one, *other))).collect();
    }
    let most = some.len().max(others.len());
    (0..most).map(|at| (some[at % some.len()], others[at % others.len()])).collect()
}

/// A plan that is done at once, so that all time goes into recordings.
pub const RECORDINGS_ONLY: &str = r#"
title = "recordings"
repeats = 1
reserve = "0 B"
[[stage]]
name = "files"
[stage.workload.stream]
file_size = "1 MiB"
block_size = "1 MiB"
access = "buffered"
"#;

/// One cell, of a stage with this name: 10 files in 1 directory.
pub fn one_cell(stage: &str) -> Vec<Cell> {
    let plan = format!(
        "title = \"t\"\n[[stage]]\nname = \"{stage}\"\n[stage.workload.walk]\nlevels = 0\nbranching = 1\nfiles = 10\n"
    );
    nilometer_plan::parse(&plan, "t.toml", 1.0).expect("a valid plan").cells
}

/// An instrument with `frame_rate` frames of 1 MB a second.
pub fn camera(frame_rate: u64) -> String {
    format!(
        "name = \"camera\"\ntitle = \"a test\"\nsource = \"a test\"\nshape = [1000, 1000]\npixel = \"uint8\"\n\
         frame_rate = \"{frame_rate} Hz\"\n"
    )
}

/// The file that marks a run directory as ours.
pub const MARKER: &str = ".nilometer-run";

/// Calls `found` every few milliseconds until it returns a value. Panics after two minutes, or later on a busy
/// machine.
pub fn await_some<T>(what: &str, found: impl FnMut() -> Option<T>) -> T {
    awaited(PATIENCE, found).unwrap_or_else(|| panic!("waited {PATIENCE:?} for {what}"))
}

/// Waits until the process that held a run directory releases it: it dies a moment after the killed one.
pub fn await_let_go(run: &Path) {
    let marker = std::fs::File::open(run.join(MARKER)).expect("a marker");
    await_some("the lock of the marker", || marker.try_lock().ok());
}

/// The directory's entries named like run directories.
pub fn run_directories(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("a directory that can be listed");
    let mut found: Vec<_> = entries
        .map(|entry| entry.expect("an entry"))
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("nilometer-"))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}
