//! Recordings in HDF5: the content of their files, the index of a lane's files, and repair from the journals.
//! Also a master file over the files of a recording, values that come late, and files without a journal.
//!
//! ```text
//! instrument, series, layout of the user -> Hdf5Contents -> IndexedFiles (a lane's files)
//!                                                            -> repair, master file, late values
//! ```

#![forbid(unsafe_code)]

mod assumed_places;
mod chunk_encoder;
mod contents;
mod datasets;
mod file_tree;
mod frame_chunks;
mod frame_columns;
mod frames_in_file;
mod hdf5_master;
mod hdf5_reading;
mod indexed;
mod journal_text;
mod kept_values;
mod late_values;
pub mod lone_file;
mod recorded_contents;
mod recorded_pictures;
mod repair;
mod reserved;
mod strided;
mod user_layout;
mod wished_chunks;

pub use chunk_encoder::ChunkEncoder;
pub use contents::{
    FRAMES_IN_FILE, Hdf5Contents, RECORDER_IN_FILE, StackedFrames, check_compression, settle_instrument,
    settled_compression,
};
pub(crate) use contents::{frame_filter, instrument_description, settled_for};
pub use datasets::SeveralDatasets;
pub use file_tree::FileWishes;
pub(crate) use file_tree::ND_ATTRIBUTES;
pub use frames_in_file::FramesInFile;
pub use hdf5_master::{
    GrowingMaster, GrowthTerms, MasterError, ModulesPart, master_path, put_master, put_master_of_modules,
};
pub use hdf5_reading::{FrameReadError, Hdf5FrameReader, ReadingTotals, ReadingWatch};
pub use indexed::{FrameBoundaries, IndexSlots, IndexedFiles, IndexedLayout};
pub use late_values::{LateValuesError, put_late_values};
pub use recorded_contents::{ExportWishes, frames_due};
pub use recorded_pictures::{RecordedPictures, picture_name};
pub use repair::{
    RepairError, RepairOptions, RepairOutcome, RepairedFile, SharedDatasetError, SharedDatasetFile,
    index_faults, is_held, repair_recording,
};
pub use reserved::free_reserved;
pub use strided::{LaneStrides, StridedFile};
pub use user_layout::{AskedFiles, UserLayout, UserLayoutError};
pub use wished_chunks::WishedChunks;
