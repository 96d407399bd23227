//! The user's own structure of a file: groups, datasets, attributes and links, in XML as for areaDetector's file
//! plug-in, or in TOML. First comes the parsed form ([`Hdf5Layout`]), then a tree with the recorder's values
//! ([`Hdf5Layout::tree`]).
//!
//! The XML is that of `NDFileHDF5` (areaDetector/ADCore, `NDFileHDF5LayoutXML.cpp` and
//! `XML_schema/hdf5_xml_layout_schema.xsd`). We accept everything that this program accepts silently, with a
//! warning if its schema refuses it. If that program drops something and logs it, we report an error.
//!
//! docs/hdf5-layout.md describes both forms for users.

mod check;
mod constant;
mod known;
mod plan;
mod text;
mod toml_form;
mod xml;

#[cfg(test)]
mod tests;

pub use known::{AttributeSupply, FrameAttribute};
pub use plan::{FrameDatasets, LayoutContents, PlannedLayout};

use crate::tree::{ColumnElement, TreeValue, WriteTime};

/// A layout that can't be used, with the place of the mistake.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{place}: {why}")]
pub struct LayoutError {
    /// The file as the user named it.
    pub file: String,
    /// The place of the mistake.
    pub place: TextPlace,
    /// The mistake, with the valid choices.
    pub why: String,
}

/// A warning: part of a layout is accepted, but may be a mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutWarning {
    /// The place in the file.
    pub place: TextPlace,
    /// Our interpretation of it.
    pub what: String,
}

/// A place in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TextPlace {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

impl std::fmt::Display for TextPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A layout as the user wrote it, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Hdf5Layout {
    /// The file's root. In XML it contains only groups.
    pub root: LayoutGroup,
    /// The attribute that selects the dataset of a frame.
    pub destination: Option<LayoutDestination>,
    /// True if attributes without a place of their own become datasets at the file's root when no group takes
    /// them.
    pub root_takes_attributes: bool,
    /// Possible mistakes: at most [`WARNINGS_MAX`].
    pub warnings: Vec<LayoutWarning>,
}

/// The attribute of a frame that contains the path of the frame's dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutDestination {
    /// The attribute's name.
    pub name: String,
    /// Its place in the file.
    pub place: TextPlace,
}

/// Warnings that are kept, at the most; more would say nothing new.
pub const WARNINGS_MAX: usize = 20;

/// A group.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LayoutGroup {
    /// Its name; empty for the root.
    pub name: String,
    /// Its place in the file.
    pub place: TextPlace,
    /// True if attributes of frames without a place of their own become datasets here.
    pub takes_attributes: bool,
    /// Its attributes.
    pub attributes: Vec<LayoutAttribute>,
    /// Its members.
    pub members: Vec<LayoutMember>,
}

/// A member of a group.
#[derive(Debug, Clone, PartialEq)]
pub enum LayoutMember {
    /// A group.
    Group(LayoutGroup),
    /// A dataset.
    Dataset(LayoutDataset),
    /// Another name of an object.
    HardLink(LayoutLink),
}

impl LayoutMember {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            LayoutMember::Group(group) => &group.name,
            LayoutMember::Dataset(dataset) => &dataset.name,
            LayoutMember::HardLink(link) => &link.name,
        }
    }

    /// Its place in the file.
    pub fn place(&self) -> TextPlace {
        match self {
            LayoutMember::Group(group) => group.place,
            LayoutMember::Dataset(dataset) => dataset.place,
            LayoutMember::HardLink(link) => link.place,
        }
    }
}

/// A dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct LayoutDataset {
    /// Its name.
    pub name: String,
    /// Its place in the file.
    pub place: TextPlace,
    /// The source of its content.
    pub source: LayoutSource,
    /// Its attributes.
    pub attributes: Vec<LayoutAttribute>,
}

/// The source of a dataset's content.
#[derive(Debug, Clone, PartialEq)]
pub enum LayoutSource {
    /// Frames.
    Detector {
        /// True if it takes the frames that name no dataset.
        default: bool,
    },
    /// The values of an attribute of frames.
    Attribute {
        /// The attribute's name.
        name: String,
        /// The frames whose values are written.
        when: AttributeTime,
        /// The type of its values, if nothing else gives it: `int`, `float` or `string`.
        element: Option<ColumnElement>,
    },
    /// A value.
    Constant(TreeValue),
    /// No source: the dataset is not created.
    Unset,
}

/// The frames for which an attribute's values are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttributeTime {
    /// Every frame: `OnFileWrite`.
    EachFrame,
    /// The first frame, `OnFileOpen`, or the last, `OnFileClose`.
    Once(WriteTime),
}

/// An attribute of a group or dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct LayoutAttribute {
    /// Its name.
    pub name: String,
    /// Its place in the file.
    pub place: TextPlace,
    /// Its value.
    pub value: AttributeValue,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum AttributeValue {
    /// A value.
    Constant(TreeValue),
    /// The value of an attribute of frames.
    Attribute {
        /// The attribute's name.
        name: String,
        /// The time: at the first frame or the last.
        when: WriteTime,
    },
}

/// Another name of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct LayoutLink {
    /// The name.
    pub name: String,
    /// Its place in the file.
    pub place: TextPlace,
    /// The object's path.
    pub target: String,
}

/// A mistake in a text, without the name of its file.
#[derive(Debug)]
struct Mistake {
    place: TextPlace,
    why: String,
}

impl Mistake {
    fn new(place: TextPlace, why: impl Into<String>) -> Self {
        Mistake { place, why: why.into() }
    }

    fn in_file(self, file: &str) -> LayoutError {
        LayoutError { file: file.into(), place: self.place, why: self.why }
    }
}

impl Hdf5Layout {
    /// Parses XML as for areaDetector.
    ///
    /// # Errors
    /// If it is not XML, or not a valid layout; [`LayoutError`] has the place and the reason.
    pub fn from_xml(file: &str, bytes: &[u8]) -> Result<Self, LayoutError> {
        let text = text::decoded(bytes).map_err(|mistake| mistake.in_file(file))?;
        xml::layout(&text).and_then(check::checked).map_err(|mistake| mistake.in_file(file))
    }

    /// Parses TOML.
    ///
    /// # Errors
    /// If it is not TOML, or not a valid layout; [`LayoutError`] has the place and the reason.
    pub fn from_toml(file: &str, text: &str) -> Result<Self, LayoutError> {
        toml_form::layout(text).and_then(check::checked).map_err(|mistake| mistake.in_file(file))
    }

    /// Returns true if it has several datasets of frames.
    pub fn has_several(&self) -> bool {
        check::detector_count(&self.root) > 1
    }

    /// The attributes of frames that it names, each once, with the type of their values if the layout gives one.
    pub fn attribute_names(&self) -> Vec<(String, Option<ColumnElement>)> {
        let mut names = Vec::new();
        name_attributes(&self.root, &mut names);
        names
    }

    /// Returns true if attributes of frames that it does not name get a place too.
    pub fn takes_others(&self) -> bool {
        self.path_of_others().is_some()
    }

    /// The path of the group that takes the attributes of frames that it does not name.
    pub fn path_of_others(&self) -> Option<String> {
        let path = plan::taking_group(&self.root, "");
        path.or_else(|| self.root_takes_attributes.then(String::new))
    }

    fn new() -> Self {
        Hdf5Layout {
            root: LayoutGroup::default(),
            destination: None,
            root_takes_attributes: true,
            warnings: Vec::new(),
        }
    }

    fn warn(&mut self, place: TextPlace, what: impl Into<String>) {
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings.push(LayoutWarning { place, what: what.into() });
        }
    }
}

/// The member of this name.
fn member<'a>(group: &'a LayoutGroup, name: &str) -> Option<&'a LayoutMember> {
    group.members.iter().find(|member| member.name() == name)
}

type NamedAttributes = Vec<(String, Option<ColumnElement>)>;

fn name_attributes(group: &LayoutGroup, names: &mut NamedAttributes) {
    for member in &group.members {
        if let LayoutMember::Dataset(dataset) = member {
            if let LayoutSource::Attribute { name, element, .. } = &dataset.source {
                add_name(name, *element, names);
            }
            add_names(&dataset.attributes, names);
        }
    }
    add_names(&group.attributes, names);
    for member in &group.members {
        if let LayoutMember::Group(below) = member {
            name_attributes(below, names);
        }
    }
}

fn add_names(attributes: &[LayoutAttribute], names: &mut NamedAttributes) {
    for attribute in attributes {
        if let AttributeValue::Attribute { name, .. } = &attribute.value {
            add_name(name, None, names);
        }
    }
}

fn add_name(name: &str, element: Option<ColumnElement>, names: &mut NamedAttributes) {
    match names.iter_mut().find(|(known, _)| known == name) {
        Some((_, said)) => *said = said.or(element),
        None => names.push((name.into(), element)),
    }
}
