//! Reads a layout in TOML: each object by its path, so that the text reads as a listing of the file.
//!
//! ```toml
//! auto_ndattr_default = false
//!
//! [groups]
//! "/entry" = { attributes = { NX_class = "NXentry", default = "data" } }
//! "/entry/attributes" = { ndattr_default = true }
//!
//! [datasets]
//! "/entry/data/data" = { detector = true, attributes = { signal = 1 } }
//! "/entry/data/energy" = { ndattribute = "Energy", when = "OnFileOpen" }
//! "/entry/title" = { constant = "a scan" }
//!
//! [links]
//! "/entry/instrument/detector/data" = "/entry/data/data"
//! ```

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::{Spanned, Value};

use super::{
    AttributeTime, AttributeValue, Hdf5Layout, LayoutAttribute, LayoutDataset, LayoutDestination,
    LayoutGroup, LayoutLink, LayoutMember, LayoutSource, Mistake, TextPlace, check::DEPTH_MAX, constant,
    text,
};
use crate::tree::{ColumnElement, NumberArray, TreeValue, WriteTime};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenLayout {
    detector_data_destination: Option<Spanned<String>>,
    #[serde(default = "yes")]
    auto_ndattr_default: bool,
    #[serde(default)]
    groups: BTreeMap<Spanned<String>, WrittenGroup>,
    #[serde(default)]
    datasets: BTreeMap<Spanned<String>, WrittenDataset>,
    #[serde(default)]
    links: BTreeMap<Spanned<String>, String>,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenGroup {
    #[serde(default)]
    ndattr_default: bool,
    #[serde(default)]
    attributes: WrittenAttributes,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenDataset {
    detector: Option<bool>,
    det_default: Option<bool>,
    ndattribute: Option<String>,
    when: Option<WrittenTime>,
    #[serde(rename = "type")]
    kind: Option<WrittenType>,
    constant: Option<Spanned<Value>>,
    #[serde(default)]
    attributes: WrittenAttributes,
}

type WrittenAttributes = BTreeMap<Spanned<String>, Spanned<Value>>;

/// The time in the words of the XML.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
enum WrittenTime {
    #[serde(rename = "OnFileOpen")]
    First,
    #[serde(rename = "OnFileClose")]
    Last,
    #[serde(rename = "OnFileWrite", alias = "OnFrame")]
    Each,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WrittenType {
    Int,
    Float,
    #[serde(rename = "string")]
    Text,
}

/// Parses a layout.
pub(super) fn layout(written: &str) -> Result<Hdf5Layout, Mistake> {
    if written.len() > text::SIZE_MAX {
        let why = format!("the layout has {} B; at most {} are taken", written.len(), text::SIZE_MAX);
        return Err(Mistake::new(TextPlace { line: 1, column: 1 }, why));
    }
    let layout: WrittenLayout = toml::from_str(written).map_err(|error| {
        let place = text::place_at(written, error.span().map_or(0, |span| span.start));
        Mistake::new(place, error.message().trim().to_owned())
    })?;
    let mut made = Hdf5Layout::new();
    made.root_takes_attributes = layout.auto_ndattr_default;
    made.root.place = TextPlace { line: 1, column: 1 };
    let placing = Placing { text: written };
    made.destination = layout.detector_data_destination.map(|destination| LayoutDestination {
        place: placing.place(&destination),
        name: destination.into_inner(),
    });
    for (path, group) in layout.groups {
        placing.group(&mut made.root, &path, &group)?;
    }
    for (path, dataset) in layout.datasets {
        placing.dataset(&mut made.root, &path, &dataset)?;
    }
    for (path, target) in layout.links {
        let (group, name) = placing.parent(&mut made.root, &path)?;
        let link = LayoutLink { name, place: placing.place(&path), target };
        group.members.push(LayoutMember::HardLink(link));
    }
    Ok(made)
}

/// Puts objects at their paths.
struct Placing<'a> {
    text: &'a str,
}

impl Placing<'_> {
    fn place<T>(&self, spanned: &Spanned<T>) -> TextPlace {
        text::place_at(self.text, spanned.span().start)
    }

    fn group(
        &self,
        root: &mut LayoutGroup,
        path: &Spanned<String>,
        written: &WrittenGroup,
    ) -> Result<(), Mistake> {
        let attributes = self.attributes(&written.attributes)?;
        let group = if path.get_ref() == "/" {
            root
        } else {
            let (parent, name) = self.parent(root, path)?;
            self.group_named(parent, &name, path)?
        };
        group.place = self.place(path);
        group.takes_attributes = written.ndattr_default;
        group.attributes.extend(attributes);
        Ok(())
    }

    fn dataset(
        &self,
        root: &mut LayoutGroup,
        path: &Spanned<String>,
        written: &WrittenDataset,
    ) -> Result<(), Mistake> {
        let attributes = self.attributes(&written.attributes)?;
        let source = self.source(path, written)?;
        let (parent, name) = self.parent(root, path)?;
        let dataset = LayoutDataset { name, place: self.place(path), source, attributes };
        parent.members.push(LayoutMember::Dataset(dataset));
        Ok(())
    }

    /// The group that contains an object, created if necessary, and the object's name.
    fn parent<'g>(
        &self,
        root: &'g mut LayoutGroup,
        path: &Spanned<String>,
    ) -> Result<(&'g mut LayoutGroup, String), Mistake> {
        let written = path.get_ref();
        let why = || format!("`{written}` is no path of an object: it begins with a slash, as `/entry/data`");
        let (groups, name) = written
            .strip_prefix('/')
            .filter(|rest| !rest.is_empty())
            .map(|rest| rest.rsplit_once('/').unwrap_or(("", rest)))
            .ok_or_else(|| Mistake::new(self.place(path), why()))?;
        if written.matches('/').count() > DEPTH_MAX {
            return Err(Mistake::new(self.place(path), format!("the path has more than {DEPTH_MAX} parts")));
        }
        let mut group = root;
        for part in groups.split('/').filter(|_| !groups.is_empty()) {
            group = self.group_named(group, part, path)?;
        }
        Ok((group, name.into()))
    }

    fn group_named<'g>(
        &self,
        within: &'g mut LayoutGroup,
        name: &str,
        path: &Spanned<String>,
    ) -> Result<&'g mut LayoutGroup, Mistake> {
        let found = within.members.iter().position(|member| member.name() == name);
        let place = found.unwrap_or_else(|| {
            let group = LayoutGroup { name: name.into(), place: self.place(path), ..LayoutGroup::default() };
            within.members.push(LayoutMember::Group(group));
            within.members.len() - 1
        });
        match &mut within.members[place] {
            LayoutMember::Group(group) => Ok(group),
            other => {
                let why =
                    format!("`{}` is in `{name}`, which is no group, at {}", path.get_ref(), other.place());
                Err(Mistake::new(self.place(path), why))
            }
        }
    }

    fn source(&self, path: &Spanned<String>, written: &WrittenDataset) -> Result<LayoutSource, Mistake> {
        let mistake = |why: &str| Err(Mistake::new(self.place(path), format!("`{}`: {why}", path.get_ref())));
        if written.when.is_some() && written.ndattribute.is_none() {
            return mistake("`when` goes with `ndattribute`");
        }
        if written.kind.is_some() && written.ndattribute.is_none() {
            return mistake("`type` goes with `ndattribute`: constants say it themselves");
        }
        if written.det_default.is_some() && written.detector != Some(true) {
            return mistake("`det_default` goes with `detector = true`");
        }
        match (written.detector, &written.ndattribute, &written.constant) {
            (Some(true), None, None) => {
                Ok(LayoutSource::Detector { default: written.det_default == Some(true) })
            }
            (None, Some(name), None) => {
                let when = match written.when {
                    Some(WrittenTime::First) => AttributeTime::Once(WriteTime::Opening),
                    Some(WrittenTime::Last) => AttributeTime::Once(WriteTime::Closing),
                    Some(WrittenTime::Each) | None => AttributeTime::EachFrame,
                };
                let element = written.kind.map(|kind| match kind {
                    WrittenType::Int => ColumnElement::INT,
                    WrittenType::Float => ColumnElement::FLOAT,
                    WrittenType::Text => ColumnElement::TEXT,
                });
                Ok(LayoutSource::Attribute { name: name.clone(), when, element })
            }
            (None, None, Some(value)) => self.constant(value).map(LayoutSource::Constant),
            _ => mistake("a dataset has one of `detector = true`, `ndattribute` and `constant`"),
        }
    }

    fn attributes(&self, written: &WrittenAttributes) -> Result<Vec<LayoutAttribute>, Mistake> {
        let attribute = |(name, value): (&Spanned<String>, &Spanned<Value>)| {
            let place = self.place(name);
            let value = self.attribute_value(value)?;
            Ok(LayoutAttribute { name: name.get_ref().clone(), place, value })
        };
        written.iter().map(attribute).collect()
    }

    fn attribute_value(&self, value: &Spanned<Value>) -> Result<AttributeValue, Mistake> {
        let Value::Table(table) = value.get_ref() else {
            return self.constant(value).map(AttributeValue::Constant);
        };
        let valid = "valid are `{ ndattribute = \"NAME\" }`, and beside it `when = \"OnFileOpen\"` or \"OnFileClose\"";
        let mistake = |what: String| Mistake::new(self.place(value), format!("{what}; {valid}"));
        if let Some(other) = table.keys().find(|key| !matches!(key.as_str(), "ndattribute" | "when")) {
            return Err(mistake(format!("`{other}` has no effect in an attribute")));
        }
        let Some(Value::String(name)) = table.get("ndattribute") else {
            return Err(mistake("this attribute names no `ndattribute`".into()));
        };
        let when = match table.get("when").map(|when| when.as_str().unwrap_or_default()) {
            None | Some("OnFileOpen") => WriteTime::Opening,
            Some("OnFileClose") => WriteTime::Closing,
            Some(other) => return Err(mistake(format!("`{other}` is no time to write an attribute"))),
        };
        Ok(AttributeValue::Attribute { name: name.clone(), when })
    }

    fn constant(&self, value: &Spanned<Value>) -> Result<TreeValue, Mistake> {
        constant_of(value.get_ref()).ok_or_else(|| {
            let why =
                "this is no value of a file; valid are a text, a number, and a list of texts or of numbers";
            Mistake::new(self.place(value), why)
        })
    }
}

fn constant_of(value: &Value) -> Option<TreeValue> {
    let list = match value {
        Value::String(text) => return Some(TreeValue::Text(text.clone())),
        Value::Array(list) => list.as_slice(),
        Value::Integer(_) | Value::Float(_) => std::slice::from_ref(value),
        _ => return None,
    };
    let is_list = matches!(value, Value::Array(_));
    if list.iter().all(Value::is_str) {
        let texts = list.iter().filter_map(Value::as_str).map(String::from).collect();
        return Some(TreeValue::Texts(texts));
    }
    let ints: Option<Vec<i64>> = list.iter().map(Value::as_integer).collect();
    let numbers = match ints {
        Some(ints) => small_or_large(&ints),
        None => {
            TreeValue::Numbers(NumberArray::floats(&list.iter().map(number).collect::<Option<Vec<f64>>>()?))
        }
    };
    match numbers {
        TreeValue::Numbers(array) if !is_list => Some(constant::alone(array)),
        numbers => Some(numbers),
    }
}

/// Numbers of 32 bits as in XML, unless one needs more.
fn small_or_large(ints: &[i64]) -> TreeValue {
    let small: Option<Vec<i32>> = ints.iter().map(|int| i32::try_from(*int).ok()).collect();
    match small {
        Some(small) => TreeValue::Numbers(constant::int_row(&small)),
        None => TreeValue::Numbers(NumberArray::ints(ints)),
    }
}

fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|int| int as f64))
}
