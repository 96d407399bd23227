//! What a recording is when it lies on storage: its journals and files, and how it is read back, shown, scanned and verified.
//! Whoever reads recordings needs nothing of what makes them.
//!
//! ```text
//! RecordingStorage -> journal -> Index -> Recording -> RecordingView -> verify, Scan, ReadAhead
//! ```

#![forbid(unsafe_code)]

pub mod cbf;
pub mod chunk;
mod due;
mod gap;
pub mod instrument;
pub mod journal;
mod missing;
mod number_type;
mod ranges;
pub mod reader;
pub mod recording_file;
pub mod recording_storage;
mod stored_file;
mod stream;
pub mod tiles;
mod verify;
pub mod view;

pub use due::Due;
pub use gap::{Gap, GapSender, Packed};
pub use missing::Missing;
pub use number_type::number_type;
pub use ranges::Ranges;
pub use stream::{Stream, Wire};
pub use verify::{Damaged, FrameProof, Headers, OVERWRITTEN, Verified, verify, verify_while};
