//! The user's layout of HDF5 files, read and checked before any file is made.

use std::path::Path;

use nilometer_hdf5::{
    layout::{FrameAttribute, Hdf5Layout, LayoutContents, LayoutDestination, LayoutError, TextPlace},
    nexus::DetectorDescription,
    tree::{ColumnElement, NumberType},
};
use nilometer_model::DECTRIS_LAYOUT;
use nilometer_recording::journal::CONTENTS_MAX;
use nilometer_storage::user_file::{self, UserFileError};

/// A layout and the name of its file.
#[derive(Debug, Clone, PartialEq)]
pub struct UserLayout {
    file: String,
    layout: Hdf5Layout,
}

/// The kinds of files requested that some layouts do not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct AskedFiles {
    /// Number of lanes that write at the same time.
    pub writers: usize,
    /// True if only the latest frames are kept.
    pub kept: bool,
    /// True if each file has a limited number of frames.
    pub per_file: bool,
    /// True if frames are in a scan.
    pub scan: bool,
    /// True if chunks are smaller than frames.
    pub tiles: bool,
}

impl AskedFiles {
    /// Checks that the layout of DECTRIS allows the requested files. Files there follow each other in one directory.
    ///
    /// # Errors
    /// The alternatives, in words.
    pub fn check_for_dectris(self) -> Result<(), String> {
        let AskedFiles { writers, kept, scan, tiles, .. } = self;
        let why = match (writers > 1, kept, scan, tiles) {
            (true, ..) => "needs one writer: name one --to, and leave --writers out",
            (_, true, ..) => "keeps all frames: leave --keep out",
            (_, _, true, _) => "has no scan: leave --scan, or scan of the instrument, out",
            (.., true) => "has a chunk for each frame: leave --chunk, or chunk of the instrument, out",
            (false, false, false, false) => return Ok(()),
        };
        Err(format!("--layout {DECTRIS_LAYOUT}: the layout of DECTRIS' file writer {why}"))
    }
}

/// Errors of reading a layout.
#[derive(Debug, thiserror::Error)]
pub enum UserLayoutError {
    /// The file can't be read.
    #[error(transparent)]
    Unreadable(#[from] UserFileError),
    /// It is not a valid layout.
    #[error(transparent)]
    Layout(#[from] LayoutError),
}

impl UserLayout {
    /// Reads a file. Its type, TOML or XML, follows from the end of its name, or else from its first bytes.
    ///
    /// # Errors
    /// If it can't be read, is no valid layout, or can't be used for recordings.
    pub fn read(path: &Path) -> Result<Self, UserLayoutError> {
        let bytes = user_file::bytes(path, "layout")?;
        Ok(Self::of(&path.display().to_string(), &bytes)?)
    }

    /// Parses the bytes of a file with this name.
    fn of(file: &str, bytes: &[u8]) -> Result<Self, LayoutError> {
        let layout = if is_xml(file, bytes) {
            Hdf5Layout::from_xml(file, bytes)?
        } else {
            Hdf5Layout::from_toml(file, &text(file, bytes)?)?
        };
        let bytes = bytes_of_tree(&layout);
        if bytes > TREE_MAX {
            let why = format!(
                "its groups and datasets take {bytes} B beside the frames; make that at most {TREE_MAX} B"
            );
            return Err(LayoutError { file: file.into(), place: TextPlace { line: 1, column: 1 }, why });
        }
        Ok(UserLayout { file: file.into(), layout })
    }

    /// Possible mistakes, one per line.
    pub fn warnings(&self) -> Vec<String> {
        let written = self.layout.warnings.iter();
        let mut all: Vec<_> =
            written.map(|warning| format!("{}:{}: {}", self.file, warning.place, warning.what)).collect();
        if let (Some(LayoutDestination { name, .. }), false) =
            (&self.layout.destination, self.layout.has_several())
        {
            all.push(format!(
                "{}: detector_data_destination: `{name}` has no effect, as all frames go into one dataset",
                self.file
            ));
        }
        all
    }

    /// Returns true if frames go into several datasets.
    pub fn has_several_datasets(&self) -> bool {
        self.layout.has_several()
    }

    /// Checks that this layout allows the requested files.
    ///
    /// # Errors
    /// The alternatives, in words.
    pub fn check(&self, asked: AskedFiles) -> Result<(), String> {
        let AskedFiles { writers, kept, per_file, scan, .. } = asked;
        let why = match (writers > 1, kept, per_file, scan) {
            _ if !self.has_several_datasets() => return Ok(()),
            (true, ..) => "needs one writer: name one --to, and leave --writers out",
            (_, true, ..) => "keeps all frames: leave --keep out",
            (_, _, true, _) => {
                "puts all frames into one file: leave --frames-per-file, or frames_per_file of the instrument, out"
            }
            (_, _, _, true) => "has no scan: leave --scan, or scan of the instrument, out",
            (false, false, false, false) => return Ok(()),
        };
        Err(format!("{}: a layout that puts frames into several datasets {why}", self.file))
    }

    pub(crate) fn layout(&self) -> &Hdf5Layout {
        &self.layout
    }

    pub(crate) fn file(&self) -> &str {
        &self.file
    }
}

/// Bytes of a tree in a journal, at the most: other values are added when a recording begins.
const TREE_MAX: usize = CONTENTS_MAX / 2;

/// Bytes that a journal needs for a layout, if all values that it names exist.
fn bytes_of_tree(layout: &Hdf5Layout) -> usize {
    let mut attributes = FrameAttribute::of_every_frame();
    attributes.extend(FrameAttribute::of_the_recorder());
    attributes.extend(FrameAttribute::of_the_end());
    attributes.extend(FrameAttribute::of_places());
    let names = layout.attribute_names().into_iter();
    attributes.extend(
        names.map(|(name, element)| FrameAttribute::joined(&name, element.unwrap_or(ColumnElement::FLOAT))),
    );
    let frames = DetectorDescription::new("", "", NumberType::Uint8, &[1]).frames_shape();
    let tree = layout.tree(&LayoutContents { frames, attributes }).tree;
    serde_json::to_string(&tree).map_or(0, |text| text.len())
}

fn is_xml(file: &str, bytes: &[u8]) -> bool {
    let ends = |ending: &str| file.to_ascii_lowercase().ends_with(ending);
    let begins = |mark: &[u8]| bytes.starts_with(mark);
    let looks =
        begins(&[0xff, 0xfe]) || begins(&[0xfe, 0xff]) || bytes.trim_ascii_start().first() == Some(&b'<');
    ends(".xml") || (!ends(".toml") && (looks || begins(b"\xef\xbb\xbf<")))
}

fn text(file: &str, bytes: &[u8]) -> Result<String, LayoutError> {
    String::from_utf8(bytes.to_vec()).map_err(|error| {
        let before = String::from_utf8_lossy(&bytes[..error.utf8_error().valid_up_to()]);
        let line = before.matches('\n').count() as u32 + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() as u32 + 1;
        let why = "these bytes are no UTF-8: save the file as UTF-8";
        LayoutError { file: file.into(), place: TextPlace { line, column }, why: why.into() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const XML: &str = "<group name='g'><dataset name='d' source='detector'/></group>";
    const TOML: &str = "[datasets]\n\"/g/d\" = { detector = true }\n";

    #[test]
    fn the_form_is_known_by_the_name_or_the_beginning() {
        for (file, text) in [("a.xml", XML), ("a.toml", TOML), ("layout", XML), ("layout", TOML)] {
            UserLayout::of(file, text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        }
        let wrong = UserLayout::of("a.toml", XML.as_bytes()).expect_err("it is XML").to_string();
        assert!(wrong.starts_with("a.toml:1:"), "{wrong}");
        let wrong = UserLayout::of("a.toml", b"# \xe4\n").expect_err("no UTF-8").to_string();
        assert_eq!(wrong, "a.toml:1:3: these bytes are no UTF-8: save the file as UTF-8");
    }

    #[test]
    fn what_no_journal_has_room_for_is_refused() {
        let group = |number: u32| format!("\"/g{number}\" = {{ attributes = {{ a = 1 }} }}\n");
        let groups: String = (0..6000).map(group).collect();
        let error = UserLayout::of("a.toml", format!("[groups]\n{groups}{TOML}").as_bytes());
        let error = error.expect_err("too many").to_string();
        assert!(error.contains("a.toml:1:1: its groups and datasets take"), "{error}");
    }

    #[test]
    fn several_datasets_are_in_one_file_of_one_writer() {
        let two = "detector_data_destination = \"Kind\"\n[datasets]\n\"/g/d\" = { detector = true, det_default = true }\n\
                   \"/g/e\" = { detector = true }\n";
        let two = UserLayout::of("a.toml", two.as_bytes()).expect("valid");
        assert_eq!(two.warnings(), Vec::<String>::new());
        let plain = AskedFiles { writers: 1, kept: false, per_file: false, scan: false, tiles: false };
        assert_eq!(two.check(plain), Ok(()));
        for (asked, why) in [
            (AskedFiles { writers: 2, ..plain }, "name one --to"),
            (AskedFiles { kept: true, ..plain }, "leave --keep out"),
            (AskedFiles { per_file: true, ..plain }, "leave --frames-per-file"),
            (AskedFiles { scan: true, ..plain }, "leave --scan"),
        ] {
            let error = two.check(asked).expect_err(why);
            assert!(
                error.starts_with("a.toml: a layout that puts frames into several datasets")
                    && error.contains(why),
                "{error}"
            );
            assert_eq!(UserLayout::of("a.toml", TOML.as_bytes()).expect("valid").check(asked), Ok(()));
        }
        for (asked, why) in [
            (AskedFiles { writers: 2, ..plain }, "name one --to"),
            (AskedFiles { kept: true, ..plain }, "leave --keep out"),
            (AskedFiles { scan: true, ..plain }, "leave --scan"),
            (AskedFiles { tiles: true, ..plain }, "leave --chunk"),
        ] {
            let error = asked.check_for_dectris().expect_err(why);
            assert!(error.starts_with("--layout dectris: ") && error.contains(why), "{error}");
        }
        assert_eq!(AskedFiles { per_file: true, ..plain }.check_for_dectris(), Ok(()));
        let one = format!("detector_data_destination = \"Kind\"\n{TOML}");
        let layout = UserLayout::of("a.toml", one.as_bytes()).expect("valid");
        assert!(layout.warnings()[0].contains("`Kind` has no effect"), "{layout:?}");
    }
}
