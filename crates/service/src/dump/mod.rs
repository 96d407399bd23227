//! Dumps: parts of a recording that the recorder saves as files of their own while it goes on recording.
//!
//! A recording with `keep` removes or overwrites its oldest frames. A user who saw something of interest asks for a
//! part before that happens:
//!
//! ```text
//! POST /dump -> DumpRequest -> Dumps (roots, at most 4) -> a thread with low priority:
//!     RecordingView (grows) -> block by block: stored, missing or overwritten -> NewFile -> its name and a summary
//!            ^                                                                      |
//!            '--------- pause: the fuller the recorder's buffer, the longer --------'
//! ```
//!
//! A dump reads storage, like any reader. It waits until frames that are only in memory have been written. It never
//! asks the recorder for anything: a dump that hangs does not hold up the recording.

mod blocks;
mod pace;
mod progress;
mod report;
mod request;
mod run;
mod table;

pub(crate) use report::{BegunDumps, DumpList};
pub use report::{DUMP_SUMMARY_SUFFIX, DumpReport, DumpState, DumpWait, DumpedRange};
pub use request::DumpRequest;
pub(crate) use table::{DumpCounts, DumpRefusal, Dumps, check_roots};
