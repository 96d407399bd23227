//! Creates the objects that a [`crate::tree`] describes.

use std::ops::Range;

use crate::{
    Hdf5Error,
    ffi::{self, H5P_DEFAULT, H5S_UNLIMITED, hid_t},
    handle::{
        Handle, PropertyClass, checked, element_type, keep_in_group, keep_in_object, name, number_type,
        properties, rank, space,
    },
    prepared::Prepared,
    tree::{
        DatasetContent, FrameColumn, FramesShape, NumberArray, RearrangedFrames, TreeAttribute, TreeDataset,
        TreeGroup, TreeNode, TreeValue, VirtualDataset, WriteTime,
    },
};

/// A dataset that is written frame by frame.
#[derive(Debug)]
pub(crate) struct GrowingDataset<D> {
    pub(crate) handle: Handle,
    pub(crate) description: D,
}

/// The datasets of a tree that are written frame by frame.
#[derive(Debug, Default)]
pub(crate) struct Planted {
    pub(crate) frames: Vec<GrowingDataset<FramesShape>>,
    pub(crate) columns: Vec<GrowingDataset<FrameColumn>>,
    /// Number of the first image in the file, from 1, if somebody knows it.
    pub(crate) first_image: Option<u64>,
}

/// Frames per chunk of a column: a page of 8-byte numbers.
pub const COLUMN_CHUNK: u64 = 512;
/// The chunk cache of a column, as in h5py for small datasets: enough for a few chunks of each column of numbers.
/// A chunk of texts is larger and stays uncached, so that only new texts are written and not the whole chunk
/// again.
const COLUMN_CACHE: usize = 64 << 10;

impl Planted {
    /// Creates the members due at this time in the object at `at`, whose path is `path`.
    pub(crate) fn group(
        &mut self,
        at: hid_t,
        path: &str,
        group: &TreeGroup,
        when: WriteTime,
    ) -> Result<(), Hdf5Error> {
        attributes(at, path, &group.attributes, when)?;
        for (member, node) in &group.members {
            self.member(at, path, member, node, when)?;
        }
        Ok(())
    }

    fn member(
        &mut self,
        at: hid_t,
        path: &str,
        member: &str,
        node: &TreeNode,
        when: WriteTime,
    ) -> Result<(), Hdf5Error> {
        let path = format!("{path}/{member}");
        let text = name(member)?;
        match node {
            TreeNode::Group(group) => {
                let handle = made_or_opened(at, &path, member, group, when)?;
                self.group(handle.id(), &path, group, when)
            }
            TreeNode::Dataset(dataset) => self.dataset(at, &path, member, dataset, when),
            TreeNode::SoftLink(target) if when == WriteTime::Opening => {
                let target = name(target)?;
                // SAFETY: zero-terminated texts.
                let status = unsafe {
                    ffi::H5Lcreate_soft(target.as_ptr(), at, text.as_ptr(), H5P_DEFAULT, H5P_DEFAULT)
                };
                checked(status, || format!("link {path}"))
            }
            TreeNode::ExternalLink { file, path: object } if when == WriteTime::Opening => {
                let [file, object] = [name(file)?, name(object)?];
                // SAFETY: zero-terminated texts.
                let status = unsafe {
                    ffi::H5Lcreate_external(
                        file.as_ptr(),
                        object.as_ptr(),
                        at,
                        text.as_ptr(),
                        H5P_DEFAULT,
                        H5P_DEFAULT,
                    )
                };
                checked(status, || format!("link {path}"))
            }
            TreeNode::SoftLink(_) | TreeNode::ExternalLink { .. } | TreeNode::HardLink(_) => Ok(()),
        }
    }

    fn dataset(
        &mut self,
        at: hid_t,
        path: &str,
        member: &str,
        dataset: &TreeDataset,
        when: WriteTime,
    ) -> Result<(), Hdf5Error> {
        let made = match &dataset.content {
            DatasetContent::Value(_, time) => *time,
            _ => WriteTime::Opening,
        };
        if made > when {
            return Ok(());
        }
        if made < when {
            let late = dataset.attributes.iter().any(|attribute| attribute.when == when);
            return if late {
                attributes(open(at, path, member)?.id(), path, &dataset.attributes, when)
            } else {
                Ok(())
            };
        }
        let handle = match &dataset.content {
            DatasetContent::Value(value, _) => value_dataset(at, path, member, value)?,
            DatasetContent::Virtual(parts) => virtual_dataset(at, path, member, parts)?,
            DatasetContent::Rearranged(frames) => rearranged_dataset(at, path, member, frames)?,
            DatasetContent::Frames(shape) => frames_dataset(at, path, member, shape)?,
            DatasetContent::Column(column) => column_dataset(at, path, member, column)?,
        };
        attributes(handle.id(), path, &dataset.attributes, WriteTime::Opening)?;
        if when == WriteTime::Closing {
            attributes(handle.id(), path, &dataset.attributes, WriteTime::Closing)?;
        }
        match &dataset.content {
            DatasetContent::Frames(shape) => {
                let numbered = self.numbered(dataset);
                attributes(handle.id(), path, &numbered, WriteTime::Opening)?;
                self.frames.push(GrowingDataset { handle, description: shape.clone() });
            }
            DatasetContent::Column(column) => {
                self.columns.push(GrowingDataset { handle, description: column.clone() });
            }
            DatasetContent::Value(..) | DatasetContent::Virtual(_) | DatasetContent::Rearranged(_) => {}
        }
        Ok(())
    }
}

impl Planted {
    /// The attributes of a dataset that state the number of the first image in the file.
    fn numbered(&self, dataset: &TreeDataset) -> Vec<TreeAttribute> {
        let Some(first) = self.first_image else { return Vec::new() };
        let wanting = dataset.attributes.iter().filter(|attribute| attribute.is_first_image());
        wanting.map(|attribute| TreeAttribute::new(&attribute.name, NumberArray::uint(first))).collect()
    }
}

/// Creates the hard links of a tree, once all objects exist.
pub(crate) fn hard_links(root: hid_t, path: &str, group: &TreeGroup) -> Result<(), Hdf5Error> {
    for (member, node) in &group.members {
        let path = format!("{path}/{member}");
        match node {
            TreeNode::Group(group) => hard_links(root, &path, group)?,
            TreeNode::HardLink(target) => {
                let [from, to] = [name(target)?, name(&path)?];
                // SAFETY: zero-terminated texts.
                let status = unsafe {
                    ffi::H5Lcreate_hard(root, from.as_ptr(), root, to.as_ptr(), H5P_DEFAULT, H5P_DEFAULT)
                };
                checked(status, || format!("link {path} to {target}"))?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn made_or_opened(
    at: hid_t,
    path: &str,
    member: &str,
    group: &TreeGroup,
    when: WriteTime,
) -> Result<Handle, Hdf5Error> {
    let text = name(member)?;
    // SAFETY: a zero-terminated text.
    if when == WriteTime::Closing && unsafe { ffi::H5Lexists(at, text.as_ptr(), H5P_DEFAULT) } > 0 {
        return open(at, path, member);
    }
    let creation = properties(PropertyClass::GroupCreation)?;
    keep_in_group(&creation, group)?;
    // SAFETY: a zero-terminated text.
    let id = unsafe { ffi::H5Gcreate2(at, text.as_ptr(), H5P_DEFAULT, creation.id(), H5P_DEFAULT) };
    Handle::of(id, || format!("make the group {path}"))
}

fn open(at: hid_t, path: &str, member: &str) -> Result<Handle, Hdf5Error> {
    let text = name(member)?;
    // SAFETY: a zero-terminated text.
    let id = unsafe { ffi::H5Oopen(at, text.as_ptr(), H5P_DEFAULT) };
    Handle::of(id, || format!("open {path}"))
}

fn attributes(at: hid_t, path: &str, attributes: &[TreeAttribute], when: WriteTime) -> Result<(), Hdf5Error> {
    let due = attributes.iter().filter(|attribute| attribute.when == when && !attribute.is_first_image());
    for attribute in due {
        let text = name(&attribute.name)?;
        let what = || format!("make the attribute {} of {path}", attribute.name);
        let value = Prepared::of(&attribute.value, path)?;
        // SAFETY: a zero-terminated text, and a value that matches type and space.
        unsafe {
            let id = ffi::H5Acreate2(
                at,
                text.as_ptr(),
                value.kind(),
                value.space().id(),
                H5P_DEFAULT,
                H5P_DEFAULT,
            );
            let handle = Handle::of(id, what)?;
            checked(ffi::H5Awrite(handle.id(), value.kind(), value.pointer()), what)?;
        }
    }
    Ok(())
}

fn created(
    at: hid_t,
    path: &str,
    member: &str,
    kind: hid_t,
    space: &Handle,
    creation: hid_t,
    access: hid_t,
) -> Result<Handle, Hdf5Error> {
    let text = name(member)?;
    // SAFETY: a zero-terminated text, and open identifiers.
    let id = unsafe { ffi::H5Dcreate2(at, text.as_ptr(), kind, space.id(), H5P_DEFAULT, creation, access) };
    Handle::of(id, || format!("make the dataset {path}"))
}

fn value_dataset(at: hid_t, path: &str, member: &str, value: &TreeValue) -> Result<Handle, Hdf5Error> {
    let value = Prepared::of(value, path)?;
    let creation = dataset_properties()?;
    let handle = created(at, path, member, value.kind(), value.space(), creation.id(), H5P_DEFAULT)?;
    // SAFETY: a value that matches type and space.
    let status = unsafe {
        ffi::H5Dwrite(handle.id(), value.kind(), ffi::H5S_ALL, ffi::H5S_ALL, H5P_DEFAULT, value.pointer())
    };
    checked(status, || format!("write {path}"))?;
    Ok(handle)
}

fn dataset_properties() -> Result<Handle, Hdf5Error> {
    let creation = properties(PropertyClass::DatasetCreation)?;
    keep_in_object(&creation)?;
    Ok(creation)
}

fn frames_dataset(at: hid_t, path: &str, member: &str, shape: &FramesShape) -> Result<Handle, Hdf5Error> {
    let what = || format!("describe the dataset {path}");
    let mut maxima = shape.dimensions(0);
    let mut chunk = vec![1; shape.scan.len() + 1];
    chunk[0] = shape.stack;
    chunk.extend(shape.chunk());
    let space = {
        let dimensions = maxima.clone();
        maxima[0] = shape.first_max.unwrap_or(H5S_UNLIMITED);
        space(&dimensions, Some(&maxima))?
    };
    let creation = dataset_properties()?;
    let access = properties(PropertyClass::DatasetAccess)?;
    let kind = number_type(shape.element);
    // SAFETY: arrays of the chunk's rank, and a fill value of the type.
    unsafe {
        checked(ffi::H5Pset_chunk(creation.id(), rank(&chunk), chunk.as_ptr()), what)?;
        checked(ffi::H5Pset_alloc_time(creation.id(), ffi::H5D_ALLOC_TIME_INCR), what)?;
        // Chunks are written whole, so none needs to be cached.
        checked(ffi::H5Pset_chunk_cache(access.id(), 1, 0, 0.0), what)?;
    }
    // Without a fill value, readers see their own memory in place of a missing frame.
    let zero = vec![0; shape.element.bytes()];
    fill_value(&creation, kind, zero.len(), Some(shape.fill.as_deref().unwrap_or(&zero)), path)?;
    if let Some(filter) = &shape.filter {
        let number = filter.number.cast_signed();
        let values = &filter.values;
        // The filter is optional, so the library need not have it.
        // SAFETY: the array holds `values.len()` numbers.
        let status = unsafe {
            ffi::H5Pset_filter(creation.id(), number, ffi::H5Z_FLAG_OPTIONAL, values.len(), values.as_ptr())
        };
        checked(status, what)?;
    }
    created(at, path, member, kind, &space, creation.id(), access.id())
}

fn fill_value(
    creation: &Handle,
    kind: hid_t,
    size: usize,
    fill: Option<&[u8]>,
    path: &str,
) -> Result<(), Hdf5Error> {
    let Some(fill) = fill else { return Ok(()) };
    if fill.len() != size {
        let what = format!("{path} is to be filled with {} B, its elements have {size}", fill.len());
        return Err(Hdf5Error::Description { what });
    }
    // SAFETY: the buffer holds an element of the type.
    let status = unsafe { ffi::H5Pset_fill_value(creation.id(), kind, fill.as_ptr().cast()) };
    checked(status, || format!("fill {path}"))
}

fn column_dataset(at: hid_t, path: &str, member: &str, column: &FrameColumn) -> Result<Handle, Hdf5Error> {
    let what = || format!("describe the dataset {path}");
    let creation = dataset_properties()?;
    let access = properties(PropertyClass::DatasetAccess)?;
    let kind = element_type(column.element);
    // SAFETY: one dimension, and a fill value of the type.
    unsafe {
        checked(ffi::H5Pset_chunk(creation.id(), 1, [COLUMN_CHUNK].as_ptr()), what)?;
        checked(ffi::H5Pset_chunk_cache(access.id(), 11, COLUMN_CACHE, 0.0), what)?;
    }
    fill_value(&creation, kind, column.element.bytes(), Some(&column.unknown()), path)?;
    let space = space(&[0], Some(&[H5S_UNLIMITED]))?;
    created(at, path, member, kind, &space, creation.id(), access.id())
}

fn virtual_dataset(
    at: hid_t,
    path: &str,
    member: &str,
    dataset: &VirtualDataset,
) -> Result<Handle, Hdf5Error> {
    let creation = dataset_properties()?;
    let kind = element_type(dataset.element);
    let whole = space(&dataset.shape, None)?;
    fill_value(&creation, kind, dataset.element.bytes(), dataset.fill.as_deref(), path)?;
    for part in &dataset.parts {
        let what = || format!("make {} a part of {path}", part.file);
        let [file, source] = [name(&part.file)?, name(&part.dataset)?];
        let mut from = dataset.shape.clone();
        let Some(first) = from.first_mut() else { continue };
        *first = part.length;
        let selected = |start| SelectedRun { start, count: part.count, step: part.step };
        match (&part.across, from.get_mut(1)) {
            (Some(across), Some(second)) => {
                *second = across.end - across.start;
                run_of(&whole, &dataset.shape, selected(part.to), std::slice::from_ref(across))?;
            }
            _ => run_of(&whole, &dataset.shape, selected(part.to), &part.within)?,
        }
        let there = space(&from, None)?;
        run_of(&there, &from, selected(part.from), &part.within)?;
        // SAFETY: zero-terminated texts, and open spaces.
        let status = unsafe {
            ffi::H5Pset_virtual(creation.id(), whole.id(), file.as_ptr(), source.as_ptr(), there.id())
        };
        checked(status, what)?;
    }
    let whole = space(&dataset.shape, None)?;
    created(at, path, member, kind, &whole, creation.id(), H5P_DEFAULT)
}

/// The name of the file itself in a virtual dataset.
const SAME_FILE: &str = ".";

/// Creates a virtual dataset over frames of the same file. It always has as many frames as these.
fn rearranged_dataset(
    at: hid_t,
    path: &str,
    member: &str,
    frames: &RearrangedFrames,
) -> Result<Handle, Hdf5Error> {
    let creation = dataset_properties()?;
    let kind = number_type(frames.element);
    fill_value(&creation, kind, frames.element.bytes(), Some(&frames.fill), path)?;
    for part in &frames.parts {
        part.ascending().iter().try_for_each(|places| map_part(&creation, frames, places, part.pieces()))?;
    }
    let whole = growing_space(&frames.scan, &frames.image)?;
    created(at, path, member, kind, &whole, creation.id(), H5P_DEFAULT)
}

/// Shows a range of each frame at its place in the image, which has this number of pieces at this distance.
fn map_part(
    creation: &Handle,
    frames: &RearrangedFrames,
    places: &[Vec<Range<u64>>; 2],
    pieces: [u64; 2],
) -> Result<(), Hdf5Error> {
    let [from, to] = places;
    let [file, source] = [name(SAME_FILE)?, name(&frames.source)?];
    let there = growing_selection(&frames.scan, &frames.frame, from, [1, 0])?;
    let here = growing_selection(&frames.scan, &frames.image, to, pieces)?;
    // SAFETY: zero-terminated texts, and open spaces.
    let status =
        unsafe { ffi::H5Pset_virtual(creation.id(), here.id(), file.as_ptr(), source.as_ptr(), there.id()) };
    checked(status, || format!("place {from:?} at {to:?}"))
}

/// A space of frames without any frame yet, whose first dimension has no limit.
fn growing_space(scan: &[u64], frame: &[u64]) -> Result<Handle, Hdf5Error> {
    let dimensions: Vec<u64> = [0].iter().chain(scan).chain(frame).copied().collect();
    let mut maxima = dimensions.clone();
    maxima[0] = H5S_UNLIMITED;
    space(&dimensions, Some(&maxima))
}

/// Selects ranges of every frame, however many frames there will be. `ranges` has one for each dimension of a frame.
/// The last one may repeat: `repeat` has the number of times, and the distance from each to the next.
fn growing_selection(
    scan: &[u64],
    frame: &[u64],
    ranges: &[Range<u64>],
    repeat: [u64; 2],
) -> Result<Handle, Hdf5Error> {
    let selected = growing_space(scan, frame)?;
    let lies = |range: &Range<u64>, side: &u64| range.start < range.end && range.end <= *side;
    let [times, distance] = repeat;
    let behind = times.saturating_sub(1).saturating_mul(distance);
    let fits = ranges.len() == frame.len()
        && ranges.iter().zip(frame).all(|(range, side)| lies(range, side))
        && ranges
            .iter()
            .zip(frame)
            .next_back()
            .is_some_and(|(range, side)| range.end.saturating_add(behind) <= *side);
    if !fits {
        return Err(Hdf5Error::Description { what: format!("{ranges:?} are to be ranges of {frame:?}") });
    }
    let whole = scan.iter().map(|side| 0..*side);
    let ranges: Vec<Range<u64>> = whole.chain(ranges.iter().cloned()).collect();
    let start: Vec<u64> = [0].into_iter().chain(ranges.iter().map(|range| range.start)).collect();
    let block: Vec<u64> = [1].into_iter().chain(ranges.iter().map(|range| range.end - range.start)).collect();
    let mut count = vec![1; start.len()];
    count[0] = H5S_UNLIMITED;
    let mut step = block.clone();
    let last = start.len() - 1;
    count[last] = times;
    step[last] = block[last].max(distance);
    let [start, step, count, block] = [&start, &step, &count, &block].map(Vec::as_ptr);
    // SAFETY: each array has as many numbers as the space has dimensions.
    let status =
        unsafe { ffi::H5Sselect_hyperslab(selected.id(), ffi::H5S_SELECT_SET, start, step, count, block) };
    checked(status, || format!("select {ranges:?} of {frame:?}"))?;
    Ok(selected)
}

/// Positions along a dimension.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SelectedRun {
    pub(crate) start: u64,
    pub(crate) count: u64,
    /// Distance from each position to the next.
    pub(crate) step: u64,
}

impl From<Range<u64>> for SelectedRun {
    fn from(range: Range<u64>) -> Self {
        SelectedRun { start: range.start, count: range.end - range.start, step: 1 }
    }
}

/// Selects a run along the first dimension of a space, and ranges along those of the others that are not whole.
pub(crate) fn run_of(
    space: &Handle,
    shape: &[u64],
    first: impl Into<SelectedRun>,
    within: &[Range<u64>],
) -> Result<(), Hdf5Error> {
    let first = first.into();
    let mut start = vec![0; shape.len()];
    let mut size = shape.to_vec();
    let mut step = vec![1; shape.len()];
    let within = within.iter().cloned().map(SelectedRun::from);
    for (dimension, run) in std::iter::once(first).chain(within).enumerate().take(shape.len()) {
        (start[dimension], size[dimension], step[dimension]) = (run.start, run.count, run.step);
    }
    let null = std::ptr::null();
    let [start, step, size] = [&start, &step, &size].map(Vec::as_ptr);
    // SAFETY: each array has as many numbers as the space has dimensions.
    let status =
        unsafe { ffi::H5Sselect_hyperslab(space.id(), ffi::H5S_SELECT_SET, start, step, size, null) };
    checked(status, || format!("select {first:?} of {shape:?}"))
}
