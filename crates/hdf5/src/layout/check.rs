//! What must be so of a layout in either form: names, one object a name, links that lead somewhere, a place for frames.

use std::collections::HashMap;

use super::{Hdf5Layout, LayoutGroup, LayoutLink, LayoutMember, LayoutSource, Mistake, TextPlace, member};

/// Links that lead to links, and groups in groups.
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
    let mut defaults = datasets.iter().filter(|(_, _, default)| *default);
    if let (Some((first, ..)), Some((_, place, _))) = (defaults.next(), defaults.next()) {
        layout.warn(
            *place,
            format!("det_default is set already at {first}, which frames go to that name no dataset"),
        );
    }
    Ok(layout)
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

/// To an object of the layout, or to one that an attribute may become in a group that takes them.
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

/// Where the target of a link is.
pub(super) enum LinkEnd<'a> {
    /// At this path, without links on the way.
    Object(String),
    /// In a group that attributes become datasets in.
    Perhaps(String),
    /// Nowhere: the group that does not have it; none if links lead in a circle.
    Missing { group: Option<&'a LayoutGroup>, path: String, name: String },
}

/// Where a path leads.
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

/// Where the datasets of frames are written.
pub(super) fn detector_places(root: &LayoutGroup) -> Vec<TextPlace> {
    let mut datasets = Vec::new();
    detectors(root, "", &mut datasets);
    datasets.into_iter().map(|(_, place, _)| place).collect()
}

fn detectors(group: &LayoutGroup, path: &str, found: &mut Vec<(String, TextPlace, bool)>) {
    for member in &group.members {
        let path = format!("{path}/{}", member.name());
        match member {
            LayoutMember::Group(group) => detectors(group, &path, found),
            LayoutMember::Dataset(dataset) => {
                if let LayoutSource::Detector { default } = dataset.source {
                    found.push((path, dataset.place, default));
                }
            }
            LayoutMember::HardLink(_) => {}
        }
    }
}
