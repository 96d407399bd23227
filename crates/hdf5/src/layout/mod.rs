//! The user's own structure of a file: groups, datasets, attributes and links, in XML as areaDetector's file plug-in has it, or
//! in TOML. First as written ([`Hdf5Layout`]), then, with what the recorder has, as a tree ([`Hdf5Layout::tree`]).
//!
//! The XML is that of `NDFileHDF5` (areaDetector/ADCore, `NDFileHDF5LayoutXML.cpp` and `XML_schema/hdf5_xml_layout_schema.xsd`).
//! What that program takes without a word is taken, with a warning where its schema refuses it; what it drops with a word in
//! its log is an error. docs/hdf5-layout.md describes both forms for users.

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

/// A layout that can't be taken, with the place of the mistake.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{place}: {why}")]
pub struct LayoutError {
    /// The file as the user named it.
    pub file: String,
    /// Where it is.
    pub place: TextPlace,
    /// What is wrong, with the valid choices.
    pub why: String,
}

/// Something in a layout that is taken, and may not be what was meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutWarning {
    /// Where it is.
    pub place: TextPlace,
    /// What it is taken as.
    pub what: String,
}

/// A place in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TextPlace {
    /// From 1.
    pub line: u32,
    /// In characters, from 1.
    pub column: u32,
}

impl std::fmt::Display for TextPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A layout as it is written, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Hdf5Layout {
    /// The file's root. It has groups alone in XML.
    pub root: LayoutGroup,
    /// What says which dataset a frame belongs to.
    pub destination: Option<LayoutDestination>,
    /// Whether attributes without a place of their own become datasets at the file's root, if no group takes them.
    pub root_takes_attributes: bool,
    /// What may not be what was meant: at most [`WARNINGS_MAX`].
    pub warnings: Vec<LayoutWarning>,
}

/// The attribute of a frame that names the dataset which the frame belongs to, by its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutDestination {
    /// The attribute's name.
    pub name: String,
    /// Where it is written.
    pub place: TextPlace,
}

/// More warnings say nothing new.
pub const WARNINGS_MAX: usize = 20;

/// A group.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LayoutGroup {
    /// Its name; empty for the root.
    pub name: String,
    /// Where it is written.
    pub place: TextPlace,
    /// Whether attributes of frames without a place of their own become datasets here.
    pub takes_attributes: bool,
    /// Its attributes.
    pub attributes: Vec<LayoutAttribute>,
    /// What is in it.
    pub members: Vec<LayoutMember>,
}

/// What is in a group.
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

    /// Where it is written.
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
    /// Where it is written.
    pub place: TextPlace,
    /// What is in it.
    pub source: LayoutSource,
    /// Its attributes.
    pub attributes: Vec<LayoutAttribute>,
}

/// What is in a dataset.
#[derive(Debug, Clone, PartialEq)]
pub enum LayoutSource {
    /// Frames.
    Detector {
        /// Whether it is the one for frames that name none.
        default: bool,
    },
    /// What an attribute of frames says.
    Attribute {
        /// The attribute's name.
        name: String,
        /// Of which frames.
        when: AttributeTime,
        /// The type of its values, where nothing else says it: `int`, `float` or `string`.
        element: Option<ColumnElement>,
    },
    /// A value.
    Constant(TreeValue),
    /// Nothing is said: it is not made.
    Unset,
}

/// Of which frames what an attribute says is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttributeTime {
    /// Of each: `OnFileWrite`.
    EachFrame,
    /// Of the first, `OnFileOpen`, or the last, `OnFileClose`.
    Once(WriteTime),
}

/// An attribute of a group or dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct LayoutAttribute {
    /// Its name.
    pub name: String,
    /// Where it is written.
    pub place: TextPlace,
    /// What it says.
    pub value: AttributeValue,
}

/// What an attribute says.
#[derive(Debug, Clone, PartialEq)]
pub enum AttributeValue {
    /// A value.
    Constant(TreeValue),
    /// What an attribute of frames says.
    Attribute {
        /// The attribute's name.
        name: String,
        /// Of the first frame or the last.
        when: WriteTime,
    },
}

/// Another name of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct LayoutLink {
    /// The name.
    pub name: String,
    /// Where it is written.
    pub place: TextPlace,
    /// The object's path.
    pub target: String,
}

/// What is wrong with a text, before it is known which file it is.
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
    /// From XML as areaDetector has it.
    ///
    /// # Errors
    /// If it is no XML, or no layout: see [`LayoutError`].
    pub fn from_xml(file: &str, bytes: &[u8]) -> Result<Self, LayoutError> {
        let text = text::decoded(bytes).map_err(|mistake| mistake.in_file(file))?;
        xml::layout(&text).and_then(check::checked).map_err(|mistake| mistake.in_file(file))
    }

    /// From TOML.
    ///
    /// # Errors
    /// If it is no TOML, or no layout: see [`LayoutError`].
    pub fn from_toml(file: &str, text: &str) -> Result<Self, LayoutError> {
        toml_form::layout(text).and_then(check::checked).map_err(|mistake| mistake.in_file(file))
    }

    /// It has several datasets of frames.
    pub fn has_several(&self) -> bool {
        check::detector_count(&self.root) > 1
    }

    /// The attributes of frames that it names, each once, with the type that it says of their values, if it says one.
    pub fn attribute_names(&self) -> Vec<(String, Option<ColumnElement>)> {
        let mut names = Vec::new();
        name_attributes(&self.root, &mut names);
        names
    }

    /// Attributes of frames that it does not name get a place too.
    pub fn takes_others(&self) -> bool {
        self.path_of_others().is_some()
    }

    /// The path of the group in which attributes of frames get their place that it does not name.
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

/// A member of this name.
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
