//! Frames into HDF5 and NeXus: libhdf5 keeps the metadata and the index of chunks, and does no I/O.
//!
//! - [`tree`]: what a file has beside its frames, as a description;
//! - [`Hdf5File`]: a file that is being written. What the library would write comes out of it as [`FileWrite`]s, which its
//!   owner carries out; the frames themselves never pass the library.

mod column;
mod declared;
mod driver;
mod error;
#[allow(unreachable_pub)]
mod ffi;
mod frame_file;
mod frame_times;
mod handle;
mod image;
pub mod layout;
mod members;
pub mod nexus;
mod placed_column;
mod plant;
mod plugin;
mod reading;
mod reading_note;
mod rewriting;
mod stored;
pub mod tree;
mod tree_search;

pub use column::{ColumnValue, TEXT_BYTES, fitting_text};
#[doc(hidden)]
pub use declared::declared;
pub use error::Hdf5Error;
pub use frame_file::{COLUMN_CHUNK, ClosedFile, Hdf5File, Hdf5FileOptions, StoredChunk};
pub use frame_times::{ImageTimeColumn, NdArrayColumn, SERIES_DATE};
pub use image::{FileWrite, SUPERBLOCK};
pub use placed_column::PlacedColumn;
pub use plugin::{FilterPlugin, PluginError, exports_library, filter_plugin};
pub use reading::{ChunkPlace, ReadDataset, ReadFile};
pub use reading_note::{ReadingNote, note_reading, reads_next, still_reads};
pub use rewriting::{NewChunks, RewrittenFile};
pub use stored::{BrokenObject, FoundDatasets, PlacedChunk, PlacedChunks, StoredFilter, StoredShape};
pub use tree_search::KnownAtEnd;
