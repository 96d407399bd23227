//! Recordings on storage: their journals and files, and how to read, view, scan and verify them. Programs that
//! read recordings need nothing from the crates that make them.
//!
//! ```text
//! RecordingStorage -> journal -> Index -> Recording -> RecordingView -> verify, Scan, ReadAhead
//! files without a journal -> foreign -^
//! ```

#![forbid(unsafe_code)]

pub mod cbf;
pub mod chunk;
pub mod copy;
mod due;
pub mod foreign;
mod foreign_facts;
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
pub use foreign_facts::{ForeignFacts, ForeignKind};
pub use gap::{Gap, GapSender, Packed};
pub use missing::Missing;
pub use number_type::number_type;
pub use ranges::Ranges;
pub use stream::{Stream, Wire};
pub use verify::{Damaged, FrameProof, Headers, OVERWRITTEN, Verified, verify, verify_while};
