//! The files that a recording's frames go into, and how the recorder writes each.
//!
//! It is the table `[recording]` of an instrument's file; plans and the command line can override it. It
//! never changes the frames that the instrument delivers.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{
    Bytes, ChunkShape, FileNames, Format, FrameCompression, PixelType, ScanShape, Storing,
    frame_cut::sides_text,
};

/// How a recording stores its frames: files, format, compression and chunks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RecordingLayout {
    /// How frames are distributed over files.
    pub storing: Storing,
    /// The format of a frame.
    pub format: Format,
    /// Compression of frames in HDF5; `None` means uncompressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compression: Option<FrameCompression>,
    /// Dimensions of a scan of frames in HDF5; `None` means a row of frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scan: Option<ScanShape>,
    /// Pixels of a chunk of an HDF5 dataset; `None` means a whole frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk: Option<ChunkShape>,
    /// Frames of a file of at most 1 TiB, if there are many files. `None` means that the recorder chooses files
    /// of a size that suits storage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames_per_file: Option<u64>,
    /// Threads that encode frames, over all writers, if the format needs encoding: 1 to 1024. `None` means one
    /// a processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoders: Option<u32>,
    /// A file in XML or TOML that describes the other content of HDF5 files. A relative path starts at the
    /// directory of the instrument's file. `dectris` means the files of DECTRIS' file writer, `None` NeXus.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout: Option<PathBuf>,
}

/// The properties of frames that matter for their storage.
#[derive(Debug, Clone, Copy)]
pub struct FrameShape<'a> {
    /// Pixels, slowest dimension first.
    pub shape: &'a [u64],
    /// The type of a pixel.
    pub pixel: PixelType,
    /// Bytes, uncompressed.
    pub size: Bytes,
}

const FILE_MAX: u64 = 1 << 40;
/// The largest frame in CBF, which may grow to almost four times this size.
const CBF_MAX: u64 = 1 << 30;
/// The most dimensions of a frame. HDF5 has at most 32 (`H5S_MAX_RANK`); some are left for a scan.
const HDF5_DIMENSIONS_MAX: usize = 24;
/// The most encoder threads; more would only wait for each other.
const ENCODERS_MAX: u32 = 1024;

/// The layout with the files of DECTRIS' file writer, as instruments and the command line name it.
pub const DECTRIS_LAYOUT: &str = "dectris";
/// Frames in a file of that layout, as DECTRIS' file writer has them unless its user changes `nimages_per_file`.
pub const DECTRIS_FRAMES_PER_FILE: u64 = 1000;

impl RecordingLayout {
    /// The pattern of the names of files.
    pub fn names(&self) -> FileNames {
        let is_dectris = self.layout.as_deref().is_some_and(|layout| layout == Path::new(DECTRIS_LAYOUT));
        if is_dectris && self.format == Format::Hdf5 { FileNames::Dectris } else { FileNames::Recorder }
    }

    /// Fills files as their layout requires: in that of DECTRIS each has the same number of frames.
    pub fn fill_files(&mut self) {
        if self.names() == FileNames::Dectris {
            self.storing = Storing::Files;
            self.frames_per_file.get_or_insert(DECTRIS_FRAMES_PER_FILE);
        }
    }

    /// Refuses settings that make no sense for such frames; the message says how to correct it.
    pub fn check(&self, frame: FrameShape<'_>) -> Result<(), String> {
        let file = self.frames_per_file.map(|frames| frames.saturating_mul(frame.size.0));
        if file.is_some_and(|bytes| bytes == 0 || bytes > FILE_MAX) {
            let frames = self.frames_per_file.unwrap_or_default();
            return Err(format!(
                "frames_per_file = {frames}: write at least 1, for files of at most 1 TiB, or leave it out"
            ));
        }
        if !self.storing.is_many_files() && self.frames_per_file.is_some() {
            return Err(
                "frames_per_file: all frames go into one file here, leave it out, or write storing = \"files\", \
                 \"scattered\" or \"positions\""
                    .into(),
            );
        }
        if self.storing == Storing::Positions && self.frames_per_file.is_none() {
            return Err(
                "storing = \"positions\": write how many frames a position has, frames_per_file".into()
            );
        }
        self.check_encoders()?;
        self.check_format(frame)
    }

    fn check_encoders(&self) -> Result<(), String> {
        match self.encoders {
            Some(_) if !self.packs() => {
                Err("encoders: frames are written as they are; write format = \"cbf\" or a compression, or leave it out"
                    .into())
            }
            Some(count) if !(1..=ENCODERS_MAX).contains(&count) => {
                Err(format!("encoders = {count}: write 1 to {ENCODERS_MAX}, or leave it out"))
            }
            _ => Ok(()),
        }
    }

    /// True if the recorder compresses frames before it writes them, which keeps processors busy.
    pub fn packs(&self) -> bool {
        match self.format {
            Format::Cbf => true,
            Format::Hdf5 => {
                self.chunk.is_some() || !matches!(self.compression, None | Some(FrameCompression::None))
            }
            Format::Raw | Format::Vdif | Format::Mark5b => false,
        }
    }

    fn check_format(&self, frame: FrameShape<'_>) -> Result<(), String> {
        if self.compression.is_some() && self.format != Format::Hdf5 {
            return Err(
                "compression: only HDF5 has one to choose; write format = \"hdf5\", or leave it out".into()
            );
        }
        if self.layout.is_some() && self.format != Format::Hdf5 {
            return Err(
                "layout: only files of HDF5 have one; write format = \"hdf5\", or leave it out".into()
            );
        }
        let of_hdf5 = [("scan", self.scan.is_some()), ("chunk", self.chunk.is_some())];
        if let Some((key, _)) = of_hdf5.iter().find(|(_, said)| *said && self.format != Format::Hdf5) {
            return Err(format!("{key}: only HDF5 has one; write format = \"hdf5\", or leave it out"));
        }
        match self.format {
            Format::Cbf => self.check_cbf(frame),
            Format::Hdf5 => self.check_hdf5(frame),
            Format::Raw | Format::Vdif | Format::Mark5b => Ok(()),
        }
    }

    /// True if HDF5 can be stored like this: one file, one that all writers share, or files of N frames.
    fn suits_hdf5(&self) -> bool {
        matches!(self.storing, Storing::Files | Storing::Growing | Storing::Shared)
    }

    /// True if all writers, also those of several processes, write frames into one dataset of one HDF5 file.
    pub fn is_one_dataset(&self) -> bool {
        self.format == Format::Hdf5 && self.storing == Storing::Shared
    }

    fn check_hdf5(&self, frame: FrameShape<'_>) -> Result<(), String> {
        let FrameShape { shape, pixel, .. } = frame;
        if pixel == PixelType::Uint12 {
            self.check_packed_12(shape)?;
        } else if pixel.whole_bytes().is_none() {
            let name = pixel.name();
            return Err(format!(
                "format = \"hdf5\": pixels of {name} are no whole bytes, as HDF5 has them; write format = \"raw\""
            ));
        }
        if shape.is_empty() || shape.len() > HDF5_DIMENSIONS_MAX {
            let sides = shape.len();
            return Err(format!(
                "format = \"hdf5\": frames of 1 to {HDF5_DIMENSIONS_MAX} dimensions can be stored, and this has {sides}"
            ));
        }
        if !self.suits_hdf5() {
            let name = self.storing.name();
            return Err(format!(
                "format = \"hdf5\": storing = \"{name}\" can't be; write \"growing\" for one file, \"shared\" for one file of several \
                 writers, or \"files\" with frames_per_file"
            ));
        }
        self.check_lines()?;
        let Some(chunk) = self.chunk else { return Ok(()) };
        let cut = chunk.of_frames(shape, pixel.bits() / 8)?;
        if cut.frames > 1 {
            return Err(format!(
                "chunk = \"{chunk}\": a recording's chunk holds at most one frame: write at most {}; `nilometer \
                 export --format hdf5 --chunk {chunk}` puts several into one",
                sides_text(shape)
            ));
        }
        match self.compression {
            Some(FrameCompression::Filter(filter)) if cut.sides != shape => Err(format!(
                "chunk = \"{chunk}\": {} is the filter of a plug-in, which makes chunks of whole frames: leave one of them out",
                filter.text()
            )),
            _ => Ok(()),
        }
    }

    /// True if the recorder unpacks samples of 12 bits into numbers of 16 bits, which it then compresses.
    pub fn unpacks_12(&self, pixel: PixelType) -> bool {
        let takes_them = self.compression.is_some_and(FrameCompression::takes_packed_12);
        pixel == PixelType::Uint12 && self.format == Format::Hdf5 && takes_them
    }

    /// Checks that samples of 12 bits can be numbers of 16 bits in the file.
    fn check_packed_12(&self, shape: &[u64]) -> Result<(), String> {
        if !self.unpacks_12(PixelType::Uint12) {
            return Err(
                "format = \"hdf5\": samples of uint12 need a compression there: write compression = \"bszstd\", \"bslz4\", \"zstd\" or \
                 \"lz4\", or format = \"raw\""
                    .into(),
            );
        }
        if self.chunk.is_some() {
            return Err("chunk: frames of uint12 are a chunk each; leave it out".into());
        }
        if shape.last().is_none_or(|samples| samples % 2 > 0) {
            return Err("format = \"hdf5\": two samples of uint12 have three bytes: write an even last dimension of shape".into());
        }
        Ok(())
    }

    /// Checks that files end with a line of the scan.
    fn check_lines(&self) -> Result<(), String> {
        let (Some(scan), Some(frames)) = (self.scan, self.frames_per_file) else { return Ok(()) };
        let line = scan.line();
        if frames.is_multiple_of(line) {
            return Ok(());
        }
        Err(format!(
            "frames_per_file = {frames}: a file has whole lines of the scan {scan}, write a multiple of {line}"
        ))
    }

    fn check_cbf(&self, FrameShape { shape, pixel, size }: FrameShape<'_>) -> Result<(), String> {
        if pixel != PixelType::Int32 || shape.len() != 2 || size.0 > CBF_MAX {
            let name = pixel.name();
            return Err(format!(
                "format = \"cbf\": a file holds a picture of int32 with rows, columns and at most 1 GiB, not \
                 {shape:?} of {name}; write format = \"raw\""
            ));
        }
        if self.storing != Storing::Files || self.frames_per_file.is_some_and(|frames| frames != 1) {
            return Err(
                "format = \"cbf\": a file holds one frame: write frames_per_file = 1, and leave storing out"
                    .into(),
            );
        }
        Ok(())
    }

    /// Stores frames in another way. This drops `frames_per_file` unless there are many files.
    pub fn store(&mut self, storing: Storing) {
        self.storing = storing;
        self.frames_per_file = self.frames_per_file.filter(|_| storing.is_many_files());
    }

    /// Writes frames in another format. This drops settings of HDF5 and of encoding that do not apply. It
    /// chooses many files if the storing does not suit HDF5, or if all writers shared a file of another format.
    /// Programs can't read one HDF5 file of all writers while it grows.
    pub fn write_as(&mut self, format: Format) {
        let other_format = std::mem::replace(&mut self.format, format) != format;
        let was_shared = other_format && self.storing == Storing::Shared;
        if format == Format::Hdf5 && (was_shared || !self.suits_hdf5()) {
            self.storing = Storing::Files;
            self.frames_per_file = None;
        }
        self.compression = self.compression.filter(|_| format == Format::Hdf5);
        self.layout = self.layout.take().filter(|_| format == Format::Hdf5);
        self.scan = self.scan.filter(|_| format == Format::Hdf5);
        self.chunk = self.chunk.filter(|_| format == Format::Hdf5);
        self.encoders = self.encoders.filter(|_| self.packs());
    }
}
