//! Reads a layout in XML as areaDetector's file plug-in does: from text to [`Hdf5Layout`], not yet checked as a
//! whole.
//!
//! Like that program, we are more tolerant than its schema, with a warning: we ignore unknown elements and
//! values, and need no root. If it logs that it can't create something, we report an error.

use roxmltree::{Document, Node, ParsingOptions};

use super::{
    AttributeTime, AttributeValue, Hdf5Layout, LayoutAttribute, LayoutDataset, LayoutDestination,
    LayoutGroup, LayoutLink, LayoutMember, LayoutSource, Mistake, TextPlace,
    check::DEPTH_MAX,
    constant::{ConstantType, constant},
    text::place_at,
};
use crate::tree::{ColumnElement, WriteTime};

/// Elements, comments and texts between them, at the most.
const NODES_MAX: u32 = 50_000;
/// Attributes of an element, at the most: the XML reader compares each attribute and namespace with all others.
const ATTRIBUTES_MAX: usize = 100;

const WHEN_OF_DATASETS: [&str; 4] = ["OnFileOpen", "OnFileClose", "OnFileWrite", "OnFrame"];

/// Parses a layout.
pub(super) fn layout(text: &str) -> Result<Hdf5Layout, Mistake> {
    bounded(text)?;
    let options = ParsingOptions { nodes_limit: NODES_MAX, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(|error| not_xml(&error, text))?;
    let mut reading = Reading { document: &document, layout: Hdf5Layout::new() };
    let top = document.root_element();
    let mut root = LayoutGroup { place: reading.place(top), ..LayoutGroup::default() };
    if top.tag_name().name() == "hdf5_layout" {
        reading.top(top)?;
        for element in top.children().filter(Node::is_element) {
            reading.member(element, &mut root, Parent::Root, 1)?;
        }
    } else {
        let what = format!(
            "the root is `{}`, not `hdf5_layout`: areaDetector takes that, its schema does not",
            top.tag_name().name()
        );
        reading.warn(top, what);
        reading.member(top, &mut root, Parent::Root, 1)?;
    }
    reading.layout.root = root;
    Ok(reading.layout)
}

/// Rejects texts that could take long or much memory, before they are parsed.
fn bounded(text: &str) -> Result<(), Mistake> {
    if let Some(byte) = text.find("<!DOCTYPE") {
        let why = "a document type (DOCTYPE) is not taken here, nor entities: a layout needs none";
        return Err(Mistake::new(place_at(text, byte), why));
    }
    let mut from = 0;
    for tag in text.split_inclusive('<') {
        if tag.matches('=').count() > ATTRIBUTES_MAX && tag.matches(['"', '\'']).count() > ATTRIBUTES_MAX {
            let why = format!("more than {ATTRIBUTES_MAX} attributes stand in an element");
            return Err(Mistake::new(place_at(text, from), why));
        }
        from += tag.len();
    }
    if text.matches("xmlns").count() > ATTRIBUTES_MAX {
        let place = TextPlace { line: 1, column: 1 };
        return Err(Mistake::new(
            place,
            format!("more than {ATTRIBUTES_MAX} namespaces stand in the layout"),
        ));
    }
    Ok(())
}

fn not_xml(error: &roxmltree::Error, text: &str) -> Mistake {
    let position = error.pos();
    let place = match error {
        // The error has no position; elements are open at the end.
        roxmltree::Error::UnclosedRootNode => place_at(text, text.len()),
        _ => TextPlace { line: position.row, column: position.col },
    };
    let why = error.to_string().replace(&format!(" at {position}"), "");
    Mistake::new(place, format!("this is no XML: {why}"))
}

/// The parent of an element.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parent {
    Root,
    Group,
}

struct Reading<'a> {
    document: &'a Document<'a>,
    layout: Hdf5Layout,
}

impl Reading<'_> {
    fn place(&self, node: Node) -> TextPlace {
        self.at(node.range().start)
    }

    fn at(&self, byte: usize) -> TextPlace {
        place_at(self.document.input_text(), byte)
    }

    fn warn(&mut self, node: Node, what: impl Into<String>) {
        if self.layout.warnings.len() < super::WARNINGS_MAX {
            let place = self.place(node);
            self.layout.warn(place, what);
        }
    }

    /// Warns about attributes that are not in the schema.
    fn known(&mut self, node: Node, valid: &[&str]) {
        for attribute in node.attributes() {
            let name = attribute.name();
            if attribute.namespace().is_none() && !valid.contains(&name) {
                let what = format!(
                    "`{name}` has no effect at a {}; valid are {}",
                    node.tag_name().name(),
                    listed(valid)
                );
                self.warn(node, what);
            }
        }
    }

    fn top(&mut self, node: Node) -> Result<(), Mistake> {
        self.known(node, &["auto_ndattr_default"]);
        if let Some(value) = node.attribute("auto_ndattr_default") {
            self.layout.root_takes_attributes = match value {
                "true" => true,
                "false" => false,
                _ => {
                    let why = format!("auto_ndattr_default is `{value}`; valid are `true` and `false`");
                    return Err(Mistake::new(self.place(node), why));
                }
            };
            self.warn(node, "auto_ndattr_default: areaDetector takes it, its schema does not");
        }
        Ok(())
    }

    fn member(
        &mut self,
        node: Node,
        into: &mut LayoutGroup,
        parent: Parent,
        depth: usize,
    ) -> Result<(), Mistake> {
        let name = node.tag_name().name();
        if depth > DEPTH_MAX {
            return Err(Mistake::new(
                self.place(node),
                format!("more than {DEPTH_MAX} elements stand in each other"),
            ));
        }
        if parent == Parent::Root && matches!(name, "dataset" | "attribute" | "hardlink") {
            let why = format!("a {name} has to stand in a group; at the top there are `group` and `global`");
            return Err(Mistake::new(self.place(node), why));
        }
        match name {
            "group" => {
                let group = self.group(node, depth)?;
                into.members.push(LayoutMember::Group(group));
            }
            "dataset" => into.members.push(LayoutMember::Dataset(self.dataset(node, depth)?)),
            "attribute" => into.attributes.push(self.attribute(node)?),
            "hardlink" => into.members.push(LayoutMember::HardLink(self.hard_link(node)?)),
            "global" => self.global(node, parent)?,
            _ => {
                let valid = match parent {
                    Parent::Root => "`global` and `group`",
                    Parent::Group => "`attribute`, `dataset`, `group` and `hardlink`",
                };
                self.warn(
                    node,
                    format!("the element `{name}` has no effect, its content does; valid are {valid}"),
                );
                for element in node.children().filter(Node::is_element) {
                    self.member(element, into, parent, depth + 1)?;
                }
            }
        }
        Ok(())
    }

    /// Returns an attribute that an element must have.
    fn needed(&self, node: Node, key: &str) -> Result<String, Mistake> {
        let why = || format!("this {} has no `{key}`", node.tag_name().name());
        node.attribute(key).map(String::from).ok_or_else(|| Mistake::new(self.place(node), why()))
    }

    fn is_set(&mut self, node: Node, key: &str) -> bool {
        match node.attribute(key) {
            Some("true") => true,
            None | Some("false") => false,
            Some(value) => {
                self.warn(node, format!("{key} is `{value}`, which areaDetector takes as `false`; valid are `true` and `false`"));
                false
            }
        }
    }

    fn group(&mut self, node: Node, depth: usize) -> Result<LayoutGroup, Mistake> {
        self.known(node, &["name", "ndattr_default"]);
        let mut group = LayoutGroup {
            name: self.needed(node, "name")?,
            place: self.place(node),
            takes_attributes: self.is_set(node, "ndattr_default"),
            ..LayoutGroup::default()
        };
        for element in node.children().filter(Node::is_element) {
            self.member(element, &mut group, Parent::Group, depth + 1)?;
        }
        Ok(group)
    }

    fn dataset(&mut self, node: Node, depth: usize) -> Result<LayoutDataset, Mistake> {
        self.known(node, &["name", "source", "value", "type", "ndattribute", "det_default", "when"]);
        let name = self.needed(node, "name")?;
        let source = self.source(node)?;
        let mut attributes = Vec::new();
        self.attributes(node, &mut attributes, depth + 1)?;
        Ok(LayoutDataset { name, place: self.place(node), source, attributes })
    }

    fn attributes(
        &mut self,
        node: Node,
        into: &mut Vec<LayoutAttribute>,
        depth: usize,
    ) -> Result<(), Mistake> {
        if depth > DEPTH_MAX {
            return Err(Mistake::new(
                self.place(node),
                format!("more than {DEPTH_MAX} elements stand in each other"),
            ));
        }
        for element in node.children().filter(Node::is_element) {
            match element.tag_name().name() {
                "attribute" => into.push(self.attribute(element)?),
                name @ ("group" | "dataset" | "hardlink" | "global") => {
                    let why = format!("a {name} can't stand in a dataset; valid is `attribute`");
                    return Err(Mistake::new(self.place(element), why));
                }
                name => {
                    let valid = "valid is `attribute`";
                    self.warn(
                        element,
                        format!("the element `{name}` has no effect, its content does; {valid}"),
                    );
                    self.attributes(element, into, depth + 1)?;
                }
            }
        }
        Ok(())
    }

    fn source(&mut self, node: Node) -> Result<LayoutSource, Mistake> {
        let default = self.is_set(node, "det_default");
        match node.attribute("source") {
            Some("detector") => Ok(LayoutSource::Detector { default }),
            Some("constant") => self.constant(node).map(LayoutSource::Constant),
            Some("ndattribute") => match node.attribute("ndattribute").unwrap_or_default() {
                "" => {
                    self.warn(node, "this dataset names no `ndattribute`: it is not made");
                    Ok(LayoutSource::Unset)
                }
                name => {
                    let name = name.to_owned();
                    let when = self
                        .when(node, &WHEN_OF_DATASETS)
                        .map_or(AttributeTime::EachFrame, AttributeTime::Once);
                    let element = self.attribute_type(node);
                    Ok(LayoutSource::Attribute { name, when, element })
                }
            },
            None => {
                self.warn(node, "this dataset has no `source`: it is not made; valid are `detector`, `ndattribute` and `constant`");
                Ok(LayoutSource::Unset)
            }
            Some(other) => {
                let why = format!(
                    "the source `{other}` is none; valid are `detector`, `ndattribute` and `constant`"
                );
                Err(Mistake::new(self.place(node), why))
            }
        }
    }

    /// The type of a frame attribute's values, from the layout; areaDetector finds it out by itself.
    fn attribute_type(&mut self, node: Node) -> Option<ColumnElement> {
        match node.attribute("type") {
            Some("int") => Some(ColumnElement::INT),
            Some("float") => Some(ColumnElement::FLOAT),
            Some("string") => Some(ColumnElement::TEXT),
            None => None,
            Some(other) => {
                let what = format!("the type `{other}` has no effect; valid are `int`, `float` and `string`");
                self.warn(node, what);
                None
            }
        }
    }

    fn constant(&mut self, node: Node) -> Result<crate::tree::TreeValue, Mistake> {
        let kind = match node.attribute("type") {
            Some("int") => ConstantType::Int,
            Some("float") => ConstantType::Float,
            Some("string") | None => ConstantType::Text,
            Some(other) => {
                self.warn(
                    node,
                    format!("the type `{other}` is taken as `string`; valid are `int`, `float` and `string`"),
                );
                ConstantType::Text
            }
        };
        constant(kind, node.attribute("value").unwrap_or_default())
            .map_err(|why| Mistake::new(self.value_place(node), why))
    }

    fn value_place(&self, node: Node) -> TextPlace {
        let value = node.attribute_node("value");
        value.map_or_else(|| self.place(node), |value| self.at(value.range_value().start))
    }

    /// The frame whose value is written, if it is one of the valid choices.
    fn when(&mut self, node: Node, valid: &[&str]) -> Option<WriteTime> {
        match node.attribute("when") {
            Some("OnFileOpen") => Some(WriteTime::Opening),
            Some("OnFileClose") => Some(WriteTime::Closing),
            Some(other) if !valid.contains(&other) => {
                self.warn(
                    node,
                    format!("`{other}` is no time to write, and has no effect; valid are {}", listed(valid)),
                );
                None
            }
            _ => None,
        }
    }

    fn attribute(&mut self, node: Node) -> Result<LayoutAttribute, Mistake> {
        self.known(node, &["name", "source", "when", "value", "type", "ndattribute"]);
        let name = self.needed(node, "name")?;
        let value = match node.attribute("source") {
            Some("constant") => AttributeValue::Constant(self.constant(node)?),
            Some("ndattribute") => {
                let name = node.attribute("ndattribute").unwrap_or_default().to_owned();
                // If both are possible, the program takes the first frame.
                let when = self.when(node, &WHEN_OF_DATASETS[..2]).unwrap_or_default();
                AttributeValue::Attribute { name, when }
            }
            other => {
                let said = other.map_or("has no source".into(), |other| format!("has the source `{other}`"));
                let why = format!("this attribute {said}; valid are `constant` and `ndattribute`");
                return Err(Mistake::new(self.place(node), why));
            }
        };
        Ok(LayoutAttribute { name, place: self.place(node), value })
    }

    fn hard_link(&mut self, node: Node) -> Result<LayoutLink, Mistake> {
        self.known(node, &["name", "target"]);
        let [name, target] = [self.needed(node, "name")?, self.needed(node, "target")?];
        Ok(LayoutLink { name, place: self.place(node), target })
    }

    fn global(&mut self, node: Node, parent: Parent) -> Result<(), Mistake> {
        self.known(node, &["name", "ndattribute"]);
        let [name, attribute] = [self.needed(node, "name")?, self.needed(node, "ndattribute")?];
        if parent != Parent::Root {
            self.warn(node, "a `global` stands at the top: areaDetector takes it here, its schema does not");
        }
        if name == "detector_data_destination" {
            let place = self.place(node);
            self.layout.destination = Some(LayoutDestination { name: attribute, place });
        } else {
            self.warn(
                node,
                format!("the global `{name}` has no effect; valid is `detector_data_destination`"),
            );
        }
        Ok(())
    }
}

fn listed(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
