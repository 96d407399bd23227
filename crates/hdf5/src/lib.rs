//! Writes frames into HDF5 and NeXus: libhdf5 keeps the metadata and the index of chunks, and does no I/O.
//!
//! - [`tree`]: describes the content of a file beside its frames;
//! - [`Hdf5File`]: a file being written. It hands out the library's writes as [`FileWrite`]s, and its owner
//!   carries them out; the frames themselves never pass through the library.

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
mod image_numbers;
pub mod layout;
mod members;
pub mod nexus;
mod number_array;
mod placed_column;
mod plant;
mod plugin;
mod prepared;
mod reading;
mod reading_note;
mod rearranged;
mod rewriting;
mod stored;
pub mod tree;
mod tree_search;
mod tree_value;

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
