//! The files of a recording, with their dataset and the shape and type of a frame. A control system needs these to
//! read the data. The recorder knows all of it before the first frame, except the list of complete files. It reads
//! that list from the directories when the recording is over.

use std::path::{Path, PathBuf};

use nilometer_acquisition::Status;
use nilometer_hdf5_recording::FramesInFile;
use nilometer_model::{FileNames, Format, Nanos};
use nilometer_recording::journal::Head;
use nilometer_storage::{in_time, target::KeptDirectory};
use schemars::JsonSchema;
use serde::Serialize;

use super::prepare::PreparedRecording;

/// The files of a recording, and its frames in them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct RecordedFile {
    /// The absolute path of the HDF5 file, or of the directory if there are several files or none in HDF5. A list if
    /// the recording has several directories.
    pub(crate) path: OneOrManyPaths,
    /// The HDF5 file that shows the frames of all files as one dataset. The recorder writes it when the recording has
    /// ended. In the layout of DECTRIS a first one is there before the first frame. `null` if the recording has a
    /// single file, or is not in HDF5.
    pub(crate) master: Option<PathBuf>,
    /// The path of the frames in each HDF5 file. If there are several, the one for frames that name none. `null` if
    /// the recording is not in HDF5.
    pub(crate) dataset: Option<String>,
    /// The paths of all datasets of frames, if each frame goes into one of several. Empty otherwise.
    pub(crate) datasets: Vec<String>,
    /// The dimensions of a frame, the slowest first. `null` if the recorder does not know them.
    pub(crate) shape: Option<Vec<u64>>,
    /// The dimensions of the dataset between the first and those of a frame: the channels of a detector, or the rows
    /// of a scan. Empty for a row of frames.
    pub(crate) scan: Vec<u64>,
    /// The type of a pixel in the notation of NumPy, such as `<u4`. `null` if NumPy has no such type, or the recorder
    /// does not know it.
    pub(crate) dtype: Option<String>,
    /// The dimensions of a chunk of the dataset, such as `[1, 64, 80]`. `null` if the recording is not in HDF5.
    pub(crate) chunk: Option<Vec<u64>>,
    /// The detector's number of the series, for frames over TCP; otherwise `null`.
    pub(crate) series_id: Option<u64>,
    /// Frames that the files keep even if the recorder is killed now. Incomplete frames count too.
    pub(crate) frames_acknowledged: u64,
    /// Frames that the files keep even if the machine loses power now.
    pub(crate) frames_durable: u64,
    /// The absolute paths of numbered files: `%08d` stands for the number, and `%%` for a percent sign. Empty if the
    /// files have no numbers.
    pub(crate) patterns: Vec<String>,
    /// The absolute paths of the files of frames. While the recording runs, those without a number. When it has ended,
    /// all complete files, or the first 1000 of them.
    pub(crate) files: Vec<PathBuf>,
    /// The number of complete files. `null` while the recording runs, or if its directories did not answer.
    pub(crate) file_count: Option<u64>,
    /// Bytes of a frame in the blocks of packets; `None` if frames do not come as packets.
    #[serde(skip)]
    frame_bytes: Option<u64>,
}

/// A path, or a list of several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum OneOrManyPaths {
    /// The only path.
    One(PathBuf),
    /// Several paths.
    Many(Vec<PathBuf>),
}

impl Default for OneOrManyPaths {
    fn default() -> Self {
        OneOrManyPaths::Many(Vec::new())
    }
}

/// The most complete files that a list names.
const FILES_MAX: usize = 1000;
/// A number that stands for any in a file name.
const ANY_NUMBER: u32 = 87_654_321;

/// The names of the files of a lane: one, or all that have a number between two texts.
#[derive(Debug, Clone, PartialEq, Eq)]
enum LaneNames {
    Single(String),
    Numbered(NumberedNames),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct NumberedNames {
    before: String,
    behind: String,
    /// The fewest digits of a number.
    digits: usize,
}

/// A directory of the recording, and the names of its files of frames.
#[derive(Debug, Clone)]
struct NamedLane {
    directory: PathBuf,
    names: LaneNames,
    /// False if the directory is no directory of this machine, but a URL.
    is_mounted: bool,
}

impl RecordedFile {
    /// The files of a recording that is ready to begin.
    pub(crate) fn of(prepared: &PreparedRecording) -> Self {
        let lanes = lanes_of(prepared);
        let head = &prepared.layout.head;
        let frames = match &prepared.layout.hdf5 {
            Some(contents) => FramesInFile::of(contents),
            None => FramesInFile::outside_hdf5(&prepared.instrument),
        };
        let single = (head.format == Format::Hdf5 && lanes.len() == 1).then(|| lanes[0].single()).flatten();
        let paths = match single {
            Some(file) => vec![file],
            None => lanes.iter().map(|lane| lane.directory.clone()).collect(),
        };
        let mut files: Vec<_> = lanes.iter().filter_map(NamedLane::single).collect();
        files.dedup();
        RecordedFile {
            path: OneOrManyPaths::of(paths),
            master: prepared.master_path().map(|path| absolute(&path)),
            dataset: frames.dataset,
            datasets: frames.datasets,
            shape: frames.shape,
            scan: frames.scan,
            dtype: frames.dtype.map(Into::into),
            chunk: frames.chunk,
            series_id: prepared.series_id,
            frames_acknowledged: 0,
            frames_durable: 0,
            patterns: lanes.iter().filter_map(NamedLane::pattern).collect(),
            files,
            file_count: None,
            frame_bytes: prepared.frame_bytes,
        }
    }

    /// The same files with the numbers of frames stored by now.
    pub(crate) fn counting(&self, status: &Status) -> Self {
        let frames = |bytes: u64| self.frame_bytes.map(|frame| bytes / frame.max(1));
        let acknowledged = frames(status.acknowledged_block_bytes);
        let durable = frames(status.durable_block_bytes);
        RecordedFile {
            frames_acknowledged: acknowledged.unwrap_or(status.acknowledged_packets),
            frames_durable: durable.unwrap_or(status.durable_packets),
            ..self.clone()
        }
    }

    /// Takes over the complete files of a recording that has ended, and its master file if there is one.
    pub(crate) fn complete(&mut self, complete: CompleteFiles, master: Option<PathBuf>) {
        self.master = master.map(|path| absolute(&path));
        self.files = complete.files;
        self.file_count = complete.count;
    }

    /// Drops the list of files, which may be long. Their number stays.
    pub(crate) fn forget_files(&mut self) {
        self.files = Vec::new();
    }
}

impl OneOrManyPaths {
    fn of(mut paths: Vec<PathBuf>) -> Self {
        match paths.len() {
            1 => OneOrManyPaths::One(paths.remove(0)),
            _ => OneOrManyPaths::Many(paths),
        }
    }
}

/// The complete files of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CompleteFiles {
    files: Vec<PathBuf>,
    /// `None` if a directory did not answer.
    count: Option<u64>,
}

impl CompleteFiles {
    /// Lists the files of a recording that has ended. It waits up to `at_most` for each directory.
    pub(crate) fn list(prepared: &PreparedRecording, at_most: Nanos) -> Self {
        let mut all = Vec::new();
        for lane in lanes_of(prepared) {
            let directory = lane.directory.clone();
            let listed = in_time(at_most, directory, move || lane.complete());
            let Ok(Some(files)) = listed else { return CompleteFiles::default() };
            all.extend(files);
        }
        all.sort_by(|one, other| one.file_name().cmp(&other.file_name()));
        all.dedup();
        let count = Some(all.len() as u64);
        all.truncate(FILES_MAX);
        CompleteFiles { files: all, count }
    }
}

impl NamedLane {
    fn new(prepared: &PreparedRecording, lane: u32, target: &dyn KeptDirectory) -> Self {
        let head = Head { lane, ..prepared.layout.head };
        let is_mounted = target.description().address.url().is_none();
        let directory = if is_mounted { absolute(target.path()) } else { target.path().to_owned() };
        NamedLane { directory, names: LaneNames::of(&prepared.name, &head), is_mounted }
    }

    fn single(&self) -> Option<PathBuf> {
        match &self.names {
            LaneNames::Single(name) => Some(self.directory.join(name)),
            LaneNames::Numbered(_) => None,
        }
    }

    fn pattern(&self) -> Option<String> {
        let LaneNames::Numbered(names) = &self.names else { return None };
        let before = self.directory.join(&names.before).to_string_lossy().replace('%', "%%");
        let behind = names.behind.replace('%', "%%");
        Some(format!("{before}%0{}d{behind}", names.digits))
    }

    /// The files that exist, or `None` if the directory can't be listed.
    fn complete(&self) -> Option<Vec<PathBuf>> {
        if !self.is_mounted {
            return None;
        }
        let entries = std::fs::read_dir(&self.directory).ok()?;
        let names = entries.map(|entry| entry.map(|entry| entry.file_name()));
        let names = names.collect::<Result<Vec<_>, _>>().ok()?;
        let own = names.into_iter().filter(|name| name.to_str().is_some_and(|name| self.names.has(name)));
        Some(own.map(|name| self.directory.join(name)).collect())
    }
}

impl LaneNames {
    /// The names in a lane of a recording with this name and head.
    fn of(name: &str, head: &Head) -> Self {
        let kind = head.storing.kind();
        let of_any = match (kind.many_files, kind.chunks) {
            (false, _) => return LaneNames::Single(head.file_name(name, 0)),
            (true, Some(_)) => head.chunk_name(name, ANY_NUMBER),
            (true, None) => head.file_name(name, ANY_NUMBER.into()),
        };
        // In the layout of DECTRIS files are counted from 1, with six digits.
        let (first, digits) = if head.names == FileNames::Dectris { (1, 6) } else { (0, 8) };
        match of_any.rsplit_once(&(ANY_NUMBER + first).to_string()) {
            Some((before, behind)) => {
                LaneNames::Numbered(NumberedNames { before: before.into(), behind: behind.into(), digits })
            }
            None => LaneNames::Single(of_any),
        }
    }

    fn has(&self, name: &str) -> bool {
        match self {
            LaneNames::Single(own) => own == name,
            LaneNames::Numbered(NumberedNames { before, behind, digits: fewest }) => {
                let number =
                    name.strip_prefix(before.as_str()).and_then(|rest| rest.strip_suffix(behind.as_str()));
                number.is_some_and(|digits| {
                    digits.len() >= *fewest && digits.bytes().all(|byte| byte.is_ascii_digit())
                })
            }
        }
    }
}

/// The directories of a recording, with the names of the files in each.
fn lanes_of(prepared: &PreparedRecording) -> Vec<NamedLane> {
    let lanes = (0..).zip(&prepared.targets);
    lanes.map(|(lane, target)| NamedLane::new(prepared, lane, target.as_ref())).collect()
}

/// The absolute path, without a look at the storage.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_model::Storing;

    fn head(storing: Storing, format: Format, lanes: u32) -> Head {
        Head {
            recording: 9,
            lane: 1,
            lanes,
            frame_size: 100,
            stride: 100,
            frames_per_file: 7,
            storing,
            format,
            names: FileNames::default(),
        }
    }

    fn pattern(storing: Storing, format: Format) -> Option<String> {
        let names = LaneNames::of("50%.87654321", &head(storing, format, 2));
        NamedLane { directory: "/data".into(), names, is_mounted: true }.pattern()
    }

    #[test]
    fn the_pattern_of_numbered_files_makes_their_names() {
        let cases = [
            (Storing::Positions, Format::Hdf5, Some("/data/50%%.87654321.%08d.h5")),
            (Storing::Files, Format::Hdf5, Some("/data/50%%.87654321.1.%08d.h5")),
            (Storing::Scattered, Format::Raw, Some("/data/50%%.87654321.%08d")),
            (Storing::Growing, Format::Hdf5, None),
            (Storing::Shared, Format::Raw, None),
        ];
        for (storing, format, expected) in cases {
            assert_eq!(pattern(storing, format).as_deref(), expected, "{storing:?}");
        }
    }

    #[test]
    fn only_files_of_frames_are_those_of_the_recording() {
        let names = LaneNames::of("scan", &head(Storing::Positions, Format::Hdf5, 2));
        for own in ["scan.00000000.h5", "scan.00000012.h5", "scan.100000000.h5"] {
            assert!(names.has(own), "{own}");
        }
        let dectris = Head { names: FileNames::Dectris, ..head(Storing::Positions, Format::Hdf5, 1) };
        let names_of_dectris = LaneNames::of("scan", &dectris);
        assert!(names_of_dectris.has("scan_data_000001.h5") && !names_of_dectris.has("scan_master.h5"));
        let lane = NamedLane { directory: "/data".into(), names: names_of_dectris, is_mounted: true };
        assert_eq!(lane.pattern().as_deref(), Some("/data/scan_data_%06d.h5"));
        for other in ["scan.1.journal", "scan_master.h5", "scan.h5", "scan.0000000.h5", "scan.summary.json"] {
            assert!(!names.has(other), "{other}");
        }
    }
}
