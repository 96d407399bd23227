//! Identifiers of the library that are released when dropped, and names in the form that it takes.

use std::{ffi::CString, sync::OnceLock};

use crate::{
    Hdf5Error,
    column::{ColumnElement, TEXT_BYTES},
    error::do_not_print,
    ffi::{self, hid_t},
    tree::{DatasetContent, NumberType, TreeGroup, TreeNode, WriteTime},
};

/// An identifier. Dropping it closes its object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Handle(hid_t);

impl Handle {
    /// Takes the identifier that a call returned, or the error if it failed.
    pub(crate) fn of(id: hid_t, what: impl FnOnce() -> String) -> Result<Self, Hdf5Error> {
        if id < 0 { Err(Hdf5Error::last(what())) } else { Ok(Handle(id)) }
    }

    pub(crate) fn id(&self) -> hid_t {
        self.0
    }

    /// Forgets the identifier, because another call has closed it.
    pub(crate) fn forget(self) {
        std::mem::forget(self);
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the identifier is ours and was not released.
        unsafe { ffi::H5Idec_ref(self.0) };
    }
}

/// Returns the error if a call failed.
pub(crate) fn checked(status: ffi::herr_t, what: impl FnOnce() -> String) -> Result<(), Hdf5Error> {
    if status < 0 { Err(Hdf5Error::last(what())) } else { Ok(()) }
}

pub(crate) fn name(text: &str) -> Result<CString, Hdf5Error> {
    let name = CString::new(text).ok().filter(|name| !name.is_empty());
    name.ok_or_else(|| Hdf5Error::Name { name: text.into() })
}

/// Prepares the library for this thread. It starts once, and loads no plug-ins of the user: other code compresses
/// chunks, and a plug-in could interfere with datasets.
pub(crate) fn begin() {
    static STARTED: OnceLock<()> = OnceLock::new();
    STARTED.get_or_init(|| {
        // SAFETY: no arguments, and a number.
        let started = unsafe { ffi::H5open().min(ffi::H5PLset_loading_state(0)) };
        assert!(started >= 0, "it needs nothing but memory to start");
    });
    do_not_print();
}

/// The library's type for numbers.
pub(crate) fn number_type(element: NumberType) -> hid_t {
    begin();
    // SAFETY: set when the library was started, and never after.
    unsafe {
        match element {
            NumberType::Uint8 => ffi::H5T_STD_U8LE_g,
            NumberType::Uint16 => ffi::H5T_STD_U16LE_g,
            NumberType::Uint32 => ffi::H5T_STD_U32LE_g,
            NumberType::Uint64 => ffi::H5T_STD_U64LE_g,
            NumberType::Int8 => ffi::H5T_STD_I8LE_g,
            NumberType::Int16 => ffi::H5T_STD_I16LE_g,
            NumberType::Int32 => ffi::H5T_STD_I32LE_g,
            NumberType::Int64 => ffi::H5T_STD_I64LE_g,
            NumberType::Float32 => ffi::H5T_IEEE_F32LE_g,
            NumberType::Float64 => ffi::H5T_IEEE_F64LE_g,
        }
    }
}

/// The library's type for the values of a column.
pub(crate) fn element_type(element: ColumnElement) -> hid_t {
    match element {
        ColumnElement::Number(number) => number_type(number),
        ColumnElement::Text(_) => column_text_type(),
    }
}

/// UTF-8 of [`TEXT_BYTES`], padded with zeroes. Created once and never released.
fn column_text_type() -> hid_t {
    static TYPE: OnceLock<hid_t> = OnceLock::new();
    begin();
    *TYPE.get_or_init(|| {
        // SAFETY: the type exists since the library was started.
        let (kind, made) = unsafe {
            let kind = ffi::H5Tcopy(ffi::H5T_C_S1_g);
            let size = ffi::H5Tset_size(kind, TEXT_BYTES);
            let padding = ffi::H5Tset_strpad(kind, ffi::H5T_STR_NULLPAD);
            (kind, size.min(padding).min(ffi::H5Tset_cset(kind, ffi::H5T_CSET_UTF8)))
        };
        assert!(kind >= 0 && made >= 0, "it needs nothing but memory");
        kind
    })
}

/// A property list of a class.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PropertyClass {
    FileCreation,
    FileAccess,
    GroupCreation,
    DatasetCreation,
    DatasetAccess,
}

pub(crate) fn properties(class: PropertyClass) -> Result<Handle, Hdf5Error> {
    begin();
    // SAFETY: set when the library was started, and never after.
    let id = unsafe {
        ffi::H5Pcreate(match class {
            PropertyClass::FileCreation => ffi::H5P_CLS_FILE_CREATE_ID_g,
            PropertyClass::FileAccess => ffi::H5P_CLS_FILE_ACCESS_ID_g,
            PropertyClass::GroupCreation => ffi::H5P_CLS_GROUP_CREATE_ID_g,
            PropertyClass::DatasetCreation => ffi::H5P_CLS_DATASET_CREATE_ID_g,
            PropertyClass::DatasetAccess => ffi::H5P_CLS_DATASET_ACCESS_ID_g,
        })
    };
    Handle::of(id, || "make a property list".into())
}

/// Links and attributes that are kept in the object itself: more than any of our objects has. An addition then
/// changes one block, so that a reader finds a whole object whenever the writing ends. An index would take
/// several blocks.
const COMPACT: u32 = 60_000;

/// Links that may be added to a group after its file is complete, and a typical length of a name. The group has
/// room for them from the start, so that an addition stays in the same block.
const ADDED: usize = 16;
const NAME: u32 = 24;

/// Keeps the attributes of an object in the object itself.
pub(crate) fn keep_in_object(properties: &Handle) -> Result<(), Hdf5Error> {
    // SAFETY: an open identifier.
    let status = unsafe { ffi::H5Pset_attr_phase_change(properties.id(), COMPACT, 0) };
    checked(status, || "choose how attributes are kept".into())
}

/// Chooses the storage of links for a new group with these members.
pub(crate) fn keep_in_group(properties: &Handle, group: &TreeGroup) -> Result<(), Hdf5Error> {
    let what = || "choose how links are kept".to_owned();
    let [most, least] = if is_indexed(group) { INDEXED } else { [COMPACT, 0] };
    let room = u32::try_from(group.members.len() + ADDED).unwrap_or(COMPACT).min(COMPACT);
    // SAFETY: an open identifier.
    unsafe {
        checked(ffi::H5Pset_link_phase_change(properties.id(), most, least), what)?;
        checked(ffi::H5Pset_est_link_info(properties.id(), room, NAME), what)?;
    }
    keep_in_object(properties)
}

/// Groups with more members get a B-tree index of their links by name. Without it, each lookup and each addition
/// would compare all names.
const UNINDEXED_MAX: usize = 512;
/// The library's own defaults: above the first number links go into an index, below the second they leave it.
const INDEXED: [u32; 2] = [8, 6];

/// Returns true if a group's links have an index: only if all members are there from the start. An addition to a
/// complete file must change a single block, and groups with columns may get additions that were not announced.
fn is_indexed(group: &TreeGroup) -> bool {
    group.members.len() > UNINDEXED_MAX && group.members.iter().all(|(_, node)| is_there_from_the_start(node))
}

fn is_there_from_the_start(node: &TreeNode) -> bool {
    let TreeNode::Dataset(dataset) = node else { return true };
    match dataset.content {
        DatasetContent::Value(_, when) => when == WriteTime::Opening,
        DatasetContent::Frames(_) | DatasetContent::Virtual(_) | DatasetContent::Rearranged(_) => true,
        DatasetContent::Column(_) => false,
    }
}

/// The number of dimensions, in the library's type.
pub(crate) fn rank(dimensions: &[u64]) -> i32 {
    i32::try_from(dimensions.len()).unwrap_or(i32::MAX)
}

/// A space of these dimensions, which may grow to `maxima`; `None` means that they are fixed.
pub(crate) fn space(dimensions: &[u64], maxima: Option<&[u64]>) -> Result<Handle, Hdf5Error> {
    begin();
    let maxima = maxima.map_or(std::ptr::null(), <[u64]>::as_ptr);
    // SAFETY: both arrays have as many numbers as the rank says.
    let id = unsafe {
        if dimensions.is_empty() {
            ffi::H5Screate(ffi::H5S_SCALAR)
        } else {
            ffi::H5Screate_simple(rank(dimensions), dimensions.as_ptr(), maxima)
        }
    };
    Handle::of(id, || format!("make a space of {dimensions:?}"))
}
