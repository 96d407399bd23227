//! Recordings without a journal, as other programs write them: their blocks are found by the headers of files.
//!
//! ```text
//! paths -> ForeignSource (what is there) -> blocks with places, from headers -> Recording -> RecordingView
//! ```
//!
//! A view treats such a recording as any other. Nothing states which packets were lost, so only a walk over all
//! headers finds gaps: see [`FrameWalk`](frame_walk).
//!
//! | kind | read when it is opened |
//! |---|---|
//! | plain file | the first headers, and a few in between |
//! | chunks of `FlexBuff` | names and lengths of the files, and the first headers |
//! | Mark 6 | the header of each block |
//! | capture | the headers of each packet |
//!
//! Others wrote these files: every length is checked against the file before it is used.

mod capture;
mod chunks;
mod foreign_file;
mod frame_walk;
mod joined_blocks;
mod mark6;
mod plain_file;
mod read_through;
mod recognition;
mod shape;
mod sources;
#[cfg(test)]
mod testing;
mod wish;

pub use frame_walk::{FrameFindings, StrangeBytes};
pub use read_through::read_through;
pub use sources::{ForeignSource, foreign_sources, is_foreign_file, is_hdf5_file};
pub use wish::ForeignWish;
