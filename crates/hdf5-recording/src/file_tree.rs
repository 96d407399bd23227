//! Builds the tree of a recording's files from the description and the user's wishes.

use std::sync::Arc;

use nilometer_hdf5::{
    ImageTimeColumn,
    layout::{FrameAttribute, FrameDatasets, Hdf5Layout, LayoutContents},
    nexus::{DetectorDescription, nexus_plain, nxmx},
    tree::{
        ColumnElement, DatasetContent, FrameColumn, NumberArray, TreeDataset, TreeGroup, TreeNode, TreeValue,
    },
};
use nilometer_intake::joined::{JoinPlan, JoinedValues};
use nilometer_model::{Instrument, Length, Nanos};

use crate::{datasets::SeveralDatasets, user_layout::UserLayout};

/// The user's wishes for the files of a recording, beside frames.
#[derive(Debug, Clone, Default)]
pub struct FileWishes {
    /// A structure other than NeXus.
    pub layout: Option<Arc<UserLayout>>,
    /// Values that are joined to frames.
    pub joined: Option<Arc<JoinedValues>>,
}

/// The description of a recording before its first frame.
#[derive(Debug, Clone)]
pub(crate) struct KnownRecording {
    pub(crate) description: DetectorDescription,
    /// True if the detector counts photons: its files follow NXmx.
    pub(crate) counts: bool,
    /// Values that layouts may name.
    pub(crate) stated: Vec<(String, TreeValue)>,
    /// The size of a series that comes as messages.
    pub(crate) series: Option<SeriesExtent>,
}

/// The size of a series of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SeriesExtent {
    /// Number of images in the dataset; `None` if it grows, because a series may bring more than announced.
    pub(crate) images: Option<u64>,
    pub(crate) channels: u64,
}

/// A tree, and the parts of a layout that are not in it.
#[derive(Debug)]
pub(crate) struct ArrangedTree {
    pub(crate) tree: TreeGroup,
    pub(crate) left_out: Vec<String>,
    /// The datasets of frames, if there are several.
    pub datasets: Option<SeveralDatasets>,
}

/// The group for the user's own values joined by frame number, as in areaDetector's files.
pub(crate) const ND_ATTRIBUTES: &str = "/entry/instrument/NDAttributes";

impl KnownRecording {
    /// Builds the tree of its files, and tells joined streams which columns they have.
    pub(crate) fn arrange(&self, wishes: &FileWishes) -> ArrangedTree {
        let made = match &wishes.layout {
            Some(layout) => self.by_layout(layout, wishes.joined.as_deref()),
            None => self.by_nexus(wishes.joined.as_deref()),
        };
        let Planned { tree, mut plan, left_out, datasets } = made;
        let destination = datasets.as_ref().and_then(|datasets| datasets.destination.clone());
        if let Some(joined) = &wishes.joined {
            let wanted = keys(&tree);
            plan.columns.retain(|(name, _)| wanted.contains(name) || Some(name) == destination.as_ref());
            plan.datasets.clone_from(&datasets);
            joined.begin(plan);
        }
        let together = self.channels();
        let datasets = datasets.map(|frames| SeveralDatasets { frames, together, known: None });
        ArrangedTree { tree, left_out, datasets }
    }

    fn plan(&self, columns: Vec<(String, ColumnElement)>, others: Option<String>) -> JoinPlan {
        let times = ImageTimeColumn::ALL.into_iter().filter(|_| self.series.is_some());
        let of_images: Vec<String> = times.map(|time| time.key().to_owned()).collect();
        let times = of_images.iter().map(|name| (name.clone(), ColumnElement::FLOAT));
        JoinPlan {
            columns: times.chain(columns).collect(),
            of_images,
            others,
            channels: self.channels(),
            images: self.series.and_then(|series| series.images),
            datasets: None,
        }
    }

    fn channels(&self) -> u64 {
        self.series.map_or(1, |series| series.channels)
    }

    fn by_nexus(&self, joined: Option<&JoinedValues>) -> Planned {
        let mut tree = if self.counts { nxmx(&self.description) } else { nexus_plain(&self.description) };
        if self.series.is_some() {
            tree.put_image_times();
        }
        let names = joined.map(JoinedValues::names).unwrap_or_default();
        let columns: Vec<_> = names.into_iter().filter(|(name, _)| !is_of_images(name)).collect();
        for (name, element) in &columns {
            let attribute = FrameAttribute::joined(name, *element);
            tree.put(&format!("{ND_ATTRIBUTES}/{name}"), TreeNode::Dataset(column(&attribute)));
        }
        Planned {
            tree,
            plan: self.plan(columns, Some(ND_ATTRIBUTES.into())),
            left_out: Vec::new(),
            datasets: None,
        }
    }

    fn by_layout(&self, layout: &UserLayout, joined: Option<&JoinedValues>) -> Planned {
        let mut attributes = FrameAttribute::of_every_frame();
        attributes.extend(FrameAttribute::of_the_recorder());
        attributes.extend(FrameAttribute::of_the_end());
        if self.series.is_some() {
            attributes.extend(FrameAttribute::of_a_detector());
        }
        for (name, value) in &self.stated {
            if !knows(&attributes, name) {
                attributes.push(FrameAttribute::stated(name, value.clone()));
            }
        }
        let hdf5 = layout.layout();
        if hdf5.has_several() {
            attributes.extend(FrameAttribute::of_places());
        }
        let mut columns = Vec::new();
        if let Some(joined) = joined {
            columns = columns_of(hdf5, &joined.names());
            columns.retain(|(name, _)| !knows(&attributes, name));
        }
        attributes.extend(columns.iter().map(|(name, element)| FrameAttribute::joined(name, *element)));
        columns.extend(destination_without_column(hdf5, &columns));
        let frames = self.description.frames_shape();
        let mut planned = hdf5.tree(&LayoutContents { frames, attributes });
        planned.tree.name_datasets(&planned.frames.paths);
        let left_out = planned.left_out.iter().map(|what| format!("{}: left out: {what}", layout.file()));
        let left_out = left_out.collect();
        let datasets = hdf5.has_several().then_some(planned.frames);
        Planned { tree: planned.tree, plan: self.plan(columns, hdf5.path_of_others()), left_out, datasets }
    }
}

struct Planned {
    tree: TreeGroup,
    plan: JoinPlan,
    left_out: Vec<String>,
    datasets: Option<FrameDatasets>,
}

fn is_of_images(name: &str) -> bool {
    ImageTimeColumn::ALL.into_iter().any(|time| time.key() == name)
}

fn knows(attributes: &[FrameAttribute], name: &str) -> bool {
    attributes.iter().any(|attribute| attribute.name == name)
}

/// The names that have a column in a layout, with their types: from the layout, or else from the first values
/// received.
fn columns_of(layout: &Hdf5Layout, seen: &[(String, ColumnElement)]) -> Vec<(String, ColumnElement)> {
    let of_first = |name: &str| seen.iter().find(|(known, _)| known == name).map(|(_, element)| *element);
    let said = layout.attribute_names().into_iter();
    let destination = destination_of(layout);
    let is_destination = |name: &str| destination == Some(name);
    let said = said.map(|(name, element)| {
        let path = is_destination(&name).then_some(ColumnElement::TEXT);
        let element = path.or(element).or_else(|| of_first(&name)).unwrap_or(ColumnElement::FLOAT);
        (name, element)
    });
    let mut columns: Vec<_> = said.collect();
    // The attribute that names datasets gets a column like any other, even before its first value.
    let named = destination.map(|name| (name.to_owned(), ColumnElement::TEXT));
    let seen = seen.iter().filter(|(name, _)| !is_destination(name)).cloned();
    let is_new = |name: &str| !columns.iter().any(|(known, _)| known == name);
    let others = named.into_iter().chain(seen).filter(|(name, _)| is_new(name));
    let others: Vec<_> = others.filter(|_| layout.takes_others()).collect();
    columns.extend(others);
    columns
}

/// The attribute that names the dataset of a frame, if there are several.
fn destination_of(layout: &Hdf5Layout) -> Option<&str> {
    layout.destination.as_ref().filter(|_| layout.has_several()).map(|destination| destination.name.as_str())
}

/// The attribute that names datasets, if the files have no column for it; its values are needed all the same.
fn destination_without_column(
    layout: &Hdf5Layout,
    columns: &[(String, ColumnElement)],
) -> Option<(String, ColumnElement)> {
    let name = destination_of(layout).filter(|name| !columns.iter().any(|(known, _)| known == name))?;
    Some((name.to_owned(), ColumnElement::TEXT))
}

/// The keys of all values of frames in a tree.
fn keys(tree: &TreeGroup) -> Vec<String> {
    let columns = tree.columns().into_iter().map(|(_, column)| column.key.clone());
    columns.chain(tree.wanted_at_end().into_iter().map(|wanted| wanted.key)).collect()
}

fn column(attribute: &FrameAttribute) -> TreeDataset {
    use nilometer_hdf5::layout::AttributeSupply;

    let content = match &attribute.supply {
        AttributeSupply::EachFrame { element, fill } => {
            let key = attribute.name.clone();
            DatasetContent::Column(FrameColumn { key, element: *element, fill: fill.clone() })
        }
        AttributeSupply::Once(_) | AttributeSupply::AtEnd => unreachable!("it is one of each frame"),
    };
    TreeDataset { attributes: attribute.said(), content }
}

/// The values of an instrument, under the names that detectors use.
pub(crate) fn stated_of(instrument: &Instrument) -> Vec<(String, TreeValue)> {
    let number = |number: f64| TreeValue::from(NumberArray::float(number));
    let cbf = instrument.cbf;
    let numbers = [
        ("frame_time", Some(instrument.frame_rate.period().seconds())),
        ("count_time", cbf.exposure_time.map(Nanos::seconds)),
        ("incident_wavelength", cbf.wavelength.map(Length::angstrom)),
        ("detector_distance", cbf.detector_distance.map(Length::metres)),
    ];
    let numbers = numbers.into_iter().filter_map(|(name, value)| Some((name.to_owned(), number(value?))));
    let texts = [("detector_name", &instrument.name), ("detector_description", &instrument.title)];
    let texts = texts.into_iter().map(|(name, text)| (name.to_owned(), TreeValue::from(text.as_str())));
    texts.chain(numbers).collect()
}
