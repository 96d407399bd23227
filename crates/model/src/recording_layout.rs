//! Into which files a recording's frames go, and how each is written: what an instrument's file says under `[recording]`, and
//! plans and the command line say instead. Nothing of it changes what the instrument delivers.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{
    Bytes, ChunkShape, Format, FrameCompression, PixelType, ScanShape, Storing, frame_cut::sides_text,
};

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RecordingLayout {
    /// Into which files frames go.
    pub storing: Storing,
    /// How a frame is written.
    pub format: Format,
    /// How frames are compressed, where the format is HDF5. Not at all, if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compression: Option<FrameCompression>,
    /// Dimensions of a scan that frames stand in, where the format is HDF5: a row of frames, if none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scan: Option<ScanShape>,
    /// Pixels of a chunk of an HDF5 dataset: a frame, if none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk: Option<ChunkShape>,
    /// Frames of a file, where there are many. If none, the recorder chooses files of a size that suits storage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames_per_file: Option<u64>,
    /// Threads that encode frames, over all writers, where the format asks for it; as many as there are processors, if none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoders: Option<u32>,
    /// A file that says what else is in files of HDF5, in XML or TOML; a relative path is one from the directory of the
    /// instrument's file. If none, they are NeXus.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout: Option<PathBuf>,
}

/// The frames that are to be stored, as far as it matters where they go.
#[derive(Debug, Clone, Copy)]
pub struct FrameShape<'a> {
    /// Pixels, slowest dimension first.
    pub shape: &'a [u64],
    /// Of one pixel.
    pub pixel: PixelType,
    /// Bytes, uncompressed.
    pub size: Bytes,
}

const FILE_MAX: u64 = 1 << 40;
/// Of a frame in CBF, which may become almost four times as large.
const CBF_MAX: u64 = 1 << 30;
/// HDF5 has 32 dimensions at the most, `H5S_MAX_RANK`; some are left for a scan.
const HDF5_DIMENSIONS_MAX: usize = 24;
/// More threads would only wait for each other.
const ENCODERS_MAX: u32 = 1024;

impl RecordingLayout {
    /// What makes no sense for such frames, with what would.
    pub fn check(&self, frame: FrameShape<'_>) -> Result<(), String> {
        let file = self.frames_per_file.map(|frames| frames.saturating_mul(frame.size.0));
        if file.is_some_and(|bytes| bytes == 0 || bytes > FILE_MAX) {
            let frames = self.frames_per_file.unwrap_or_default();
            return Err(format!(
                "frames_per_file = {frames}: write at least 1 and so many that a file has at most 1 TiB, or leave it out"
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

    /// The recorder makes frames smaller before it writes them, which keeps processors busy.
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

    /// Frames are stored in one file, or in files of N.
    fn suits_hdf5(&self) -> bool {
        matches!(self.storing, Storing::Files | Storing::Growing)
    }

    fn check_hdf5(&self, frame: FrameShape<'_>) -> Result<(), String> {
        let FrameShape { shape, pixel, .. } = frame;
        if pixel.whole_bytes().is_none() {
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
                "format = \"hdf5\": storing = \"{name}\" can't be; write \"growing\" for one file, or \"files\" with frames_per_file"
            ));
        }
        self.check_lines()?;
        let Some(chunk) = self.chunk else { return Ok(()) };
        let cut = chunk.of_frames(shape, pixel.bits() / 8)?;
        if cut.frames > 1 {
            return Err(format!(
                "chunk = \"{chunk}\": a recording has a frame or a part of one in a chunk: write at most {}; `nilometer export \
                 --format hdf5 --chunk {chunk}` puts several into one when all are there",
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

    /// Files end with lines of a scan.
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
                "format = \"cbf\": a file holds a picture of int32 with rows and columns and at most 1 GiB, and this is \
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

    /// Stores frames in another way. What was said of many files holds for many files only.
    pub fn store(&mut self, storing: Storing) {
        self.storing = storing;
        self.frames_per_file = self.frames_per_file.filter(|_| storing.is_many_files());
    }

    /// Writes frames in another format. What was said of encoding holds where there is some, and what was said of files where
    /// they can be so.
    pub fn write_as(&mut self, format: Format) {
        self.format = format;
        if format == Format::Hdf5 && !self.suits_hdf5() {
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
