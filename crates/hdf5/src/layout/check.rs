//! Checks a layout in either form: names, one object per name, links that lead somewhere, a dataset for frames.

use std::collections::HashMap;

use super::{
    FrameAttribute, Hdf5Layout, LayoutDestination, LayoutGroup, LayoutLink, LayoutMember, LayoutSource,
    Mistake, TextPlace, member,
};
use crate::tree::ColumnElement;

/// Links that lead to links, and depth of groups, at the most.
pub(super) const DEPTH_MAX: usize = 64;

/// The layout, if it can be made.
pub(super) fn checked(mut layout: Hdf5Layout) -> Result<Hdf5Layout, Mistake> {
    names(&layout.root)?;
    links(&layout, &layout.root)?;
    let mut datasets = Vec::new();
    detectors(&layout.root, "", &mut datasets);
    if datasets.is_empty() {
        let why = "no dataset is there for frames: one has to have the source `detector`";
        return Err(Mistake::new(layout.root.place, why));
    }
    let mut defaults = datasets.iter().filter(|dataset| dataset.default);
    if let (Some(first), Some(second)) = (defaults.next(), defaults.next()) {
        let first = &first.path;
        layout.warn(
            second.place,
            format!("det_default is set already at {first}, which frames go to that name no dataset"),
        );
    }
    if let [_, second, ..] = &datasets[..] {
        several(&mut layout, &datasets, second.place)?;
    }
    Ok(layout)
}

/// Warns about ambiguities between several datasets of frames; `second` is the place of the second one.
fn several(layout: &mut Hdf5Layout, datasets: &[DetectorDataset], second: TextPlace) -> Result<(), Mistake> {
    destination(layout)?;
    if !datasets.iter().any(|dataset| dataset.default) {
        let first = datasets.iter().map(|dataset| dataset.path.as_str()).min().unwrap_or_default();
        let why = format!(
            "no dataset has `det_default`: frames that name none go to {first}, the first by its path"
        );
        layout.warn(second, why);
    }
    if layout.destination.is_none() {
        let why = "several datasets are for frames, and no `detector_data_destination` says which of them a frame goes to: all \
                   go to the default";
        layout.warn(second, why);
    }
    Ok(())
}

fn names(group: &LayoutGroup) -> Result<(), Mistake> {
    let mut seen: HashMap<&str, TextPlace> = HashMap::new();
    for member in &group.members {
        name(member.name(), member.place())?;
        if let Some(before) = seen.insert(member.name(), member.place()) {
            let why = format!("the name `{}` is taken in this group, at {before}", member.name());
            return Err(Mistake::new(member.place(), why));
        }
        match member {
            LayoutMember::Group(group) => names(group)?,
            LayoutMember::Dataset(dataset) => attribute_names(&dataset.attributes)?,
            LayoutMember::HardLink(_) => {}
        }
    }
    attribute_names(&group.attributes)
}

fn attribute_names(attributes: &[super::LayoutAttribute]) -> Result<(), Mistake> {
    let mut seen: HashMap<&str, TextPlace> = HashMap::new();
    for attribute in attributes {
        if attribute.name.is_empty() {
            return Err(Mistake::new(attribute.place, "an attribute has an empty name"));
        }
        if let Some(before) = seen.insert(&attribute.name, attribute.place) {
            let why = format!("the attribute `{}` is there already, at {before}", attribute.name);
            return Err(Mistake::new(attribute.place, why));
        }
    }
    Ok(())
}

fn name(name: &str, place: TextPlace) -> Result<(), Mistake> {
    if matches!(name, "" | "." | "..") || name.contains(['/', '\0']) {
        let why = format!("`{name}` is no name: it must not be empty or `.`, or have a slash in it");
        return Err(Mistake::new(place, why));
    }
    Ok(())
}

fn links(layout: &Hdf5Layout, group: &LayoutGroup) -> Result<(), Mistake> {
    for member in &group.members {
        match member {
            LayoutMember::Group(group) => links(layout, group)?,
            LayoutMember::HardLink(link) => leads_somewhere(layout, link)?,
            LayoutMember::Dataset(_) => {}
        }
    }
    Ok(())
}

/// Checks that a link leads to an object of the layout, or to one that an attribute may become in a group that
/// takes them.
fn leads_somewhere(layout: &Hdf5Layout, link: &LayoutLink) -> Result<(), Mistake> {
    let LinkEnd::Missing { group, path, name } = link_end(layout, &link.target) else { return Ok(()) };
    let Some(group) = group else {
        let why =
            format!("the link `{}` leads to `{}`, from link to link without an end", link.name, link.target);
        return Err(Mistake::new(link.place, why));
    };
    let names: Vec<_> = group.members.iter().take(20).map(|member| format!("`{}`", member.name())).collect();
    let at = if path.is_empty() { "/" } else { &path };
    let there = if names.is_empty() { "nothing".into() } else { names.join(", ") };
    let why =
        format!("the link leads to `{}`, but there is no `{name}` in `{at}`; it has {there}", link.target);
    Err(Mistake::new(link.place, why))
}

/// The end of a link.
pub(super) enum LinkEnd<'a> {
    /// An object at this path, without links on the way.
    Object(String),
    /// A possible object: attributes may become datasets in its group.
    Perhaps(String),
    /// No object: the group that lacks it, or `None` if links lead in a circle.
    Missing { group: Option<&'a LayoutGroup>, path: String, name: String },
}

/// Follows a path and its links to the end.
pub(super) fn link_end<'a>(layout: &'a Hdf5Layout, target: &str) -> LinkEnd<'a> {
    let mut rest: Vec<String> = parts(target);
    rest.reverse();
    let mut group = &layout.root;
    let mut path = String::new();
    let mut followed = 0;
    while let Some(name) = rest.pop() {
        match member(group, &name) {
            Some(LayoutMember::Group(below)) => {
                group = below;
                path = format!("{path}/{name}");
            }
            Some(LayoutMember::Dataset(_)) if rest.is_empty() => {
                return LinkEnd::Object(format!("{path}/{name}"));
            }
            Some(LayoutMember::HardLink(link)) => {
                followed += 1;
                if followed > DEPTH_MAX || rest.len() > DEPTH_MAX * DEPTH_MAX {
                    return LinkEnd::Missing { group: None, path, name };
                }
                rest.extend(parts(&link.target).into_iter().rev());
                group = &layout.root;
                path = String::new();
            }
            None if rest.is_empty() && takes_attributes(layout, group) => {
                return LinkEnd::Perhaps(format!("{path}/{name}"));
            }
            _ => return LinkEnd::Missing { group: Some(group), path, name },
        }
    }
    LinkEnd::Object(path)
}

fn takes_attributes(layout: &Hdf5Layout, group: &LayoutGroup) -> bool {
    group.takes_attributes || (group.name.is_empty() && layout.root_takes_attributes)
}

fn parts(path: &str) -> Vec<String> {
    path.split('/').filter(|part| !part.is_empty()).map(String::from).collect()
}

/// The number of datasets of frames.
pub(super) fn detector_count(root: &LayoutGroup) -> usize {
    let mut datasets = Vec::new();
    detectors(root, "", &mut datasets);
    datasets.len()
}

/// Checks that the attribute that names the datasets of frames is a text of the user's.
fn destination(layout: &Hdf5Layout) -> Result<(), Mistake> {
    let Some(LayoutDestination { name, place }) = &layout.destination else { return Ok(()) };
    if is_said_by_others(name) {
        let why = format!(
            "`{name}` is a value of the recorder or the detector, and never the path of a dataset: name an \
             attribute of your own"
        );
        return Err(Mistake::new(*place, why));
    }
    match number_named(&layout.root, name) {
        Some(at) => {
            let why = format!(
                "`{name}` is the path of each frame's dataset, a text, but here a number: write `string`, or leave \
                 `type` out"
            );
            Err(Mistake::new(at, why))
        }
        None => Ok(()),
    }
}

/// Returns true if the recorder or the detector provides this attribute, not the user.
fn is_said_by_others(name: &str) -> bool {
    let of_frames = [FrameAttribute::of_every_frame(), FrameAttribute::of_the_recorder()];
    let others = [FrameAttribute::of_places(), FrameAttribute::of_a_detector(), FrameAttribute::of_the_end()];
    of_frames.iter().chain(&others).flatten().any(|attribute| attribute.name == name)
}

/// The place of a dataset of numbers that has this attribute as its source.
fn number_named(group: &LayoutGroup, attribute: &str) -> Option<TextPlace> {
    group.members.iter().find_map(|member| match member {
        LayoutMember::Group(group) => number_named(group, attribute),
        LayoutMember::Dataset(dataset) => match &dataset.source {
            LayoutSource::Attribute { name, element: Some(ColumnElement::Number(_)), .. }
                if name == attribute =>
            {
                Some(dataset.place)
            }
            _ => None,
        },
        LayoutMember::HardLink(_) => None,
    })
}

/// A dataset of frames.
struct DetectorDataset {
    path: String,
    /// Its place in the file.
    place: TextPlace,
    /// True if the layout marks it as the default.
    default: bool,
}

fn detectors(group: &LayoutGroup, path: &str, found: &mut Vec<DetectorDataset>) {
    for member in &group.members {
        let path = format!("{path}/{}", member.name());
        match member {
            LayoutMember::Group(group) => detectors(group, &path, found),
            LayoutMember::Dataset(dataset) => {
                if let LayoutSource::Detector { default } = dataset.source {
                    found.push(DetectorDataset { path, place: dataset.place, default });
                }
            }
            LayoutMember::HardLink(_) => {}
        }
    }
}
