//! Identifiers of the library that are given back, and names as it wants them.

use std::{ffi::CString, sync::OnceLock};

use crate::{
    Hdf5Error,
    column::{ColumnElement, TEXT_BYTES},
    error::do_not_print,
    ffi::{self, hid_t},
    tree::{DatasetContent, NumberType, TreeGroup, TreeNode, WriteTime},
};

/// An identifier: what it stands for is closed with it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Handle(hid_t);

impl Handle {
    /// What a call gave, unless it failed.
    pub(crate) fn of(id: hid_t, what: impl FnOnce() -> String) -> Result<Self, Hdf5Error> {
        if id < 0 { Err(Hdf5Error::last(what())) } else { Ok(Handle(id)) }
    }

    pub(crate) fn id(&self) -> hid_t {
        self.0
    }

    /// It was closed by another call.
    pub(crate) fn forget(self) {
        std::mem::forget(self);
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: it is ours and was not given back.
        unsafe { ffi::H5Idec_ref(self.0) };
    }
}

/// What a call answered, unless it failed.
pub(crate) fn checked(status: ffi::herr_t, what: impl FnOnce() -> String) -> Result<(), Hdf5Error> {
    if status < 0 { Err(Hdf5Error::last(what())) } else { Ok(()) }
}

pub(crate) fn name(text: &str) -> Result<CString, Hdf5Error> {
    let name = CString::new(text).ok().filter(|name| !name.is_empty());
    name.ok_or_else(|| Hdf5Error::Name { name: text.into() })
}

/// Begins to use the library in this thread. It is started once, and loads no plug-ins of the user: chunks are compressed by
/// others, and what it might load would have its say about the datasets.
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

/// The library's type for what is in a column.
pub(crate) fn element_type(element: ColumnElement) -> hid_t {
    match element {
        ColumnElement::Number(number) => number_type(number),
        ColumnElement::Text(_) => column_text_type(),
    }
}

/// UTF-8 of [`TEXT_BYTES`], zeroes behind it: made once, and never given back.
fn column_text_type() -> hid_t {
    static TYPE: OnceLock<hid_t> = OnceLock::new();
    begin();
    *TYPE.get_or_init(|| {
        // SAFETY: the type is there since the library was started.
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

/// More links and attributes than any object has here are kept in the object itself. Then one block changes when one is
/// added, and a reader finds a whole object whenever the writing ends; an index of them would be several blocks.
const COMPACT: u32 = 60_000;

/// Links that may be added to a group when its file is complete, and the length of a name, about: so much room is in a group
/// from the start, for what is added is in the same block then.
const ADDED: usize = 16;
const NAME: u32 = 24;

/// Of a dataset.
pub(crate) fn keep_in_object(properties: &Handle) -> Result<(), Hdf5Error> {
    // SAFETY: an identifier that is open.
    let status = unsafe { ffi::H5Pset_attr_phase_change(properties.id(), COMPACT, 0) };
    checked(status, || "choose how attributes are kept".into())
}

/// Of a group that is made with these members.
pub(crate) fn keep_in_group(properties: &Handle, group: &TreeGroup) -> Result<(), Hdf5Error> {
    let what = || "choose how links are kept".to_owned();
    let [most, least] = if is_indexed(group) { INDEXED } else { [COMPACT, 0] };
    let room = u32::try_from(group.members.len() + ADDED).unwrap_or(COMPACT).min(COMPACT);
    // SAFETY: an identifier that is open.
    unsafe {
        checked(ffi::H5Pset_link_phase_change(properties.id(), most, least), what)?;
        checked(ffi::H5Pset_est_link_info(properties.id(), room, NAME), what)?;
    }
    keep_in_object(properties)
}

/// Of a group with more members the links get an index by name, a B-tree: without one each of them is compared for a name that is
/// looked up, and for one that is added.
const UNINDEXED_MAX: usize = 512;
/// As the library has it: more links are in an index, and fewer are not.
const INDEXED: [u32; 2] = [8, 6];

/// Whether links have an index: only where all is there from the start. What is added to a complete file must change one block,
/// and columns are where those are added that nobody announced.
fn is_indexed(group: &TreeGroup) -> bool {
    group.members.len() > UNINDEXED_MAX && group.members.iter().all(|(_, node)| is_there_from_the_start(node))
}

fn is_there_from_the_start(node: &TreeNode) -> bool {
    let TreeNode::Dataset(dataset) = node else { return true };
    match dataset.content {
        DatasetContent::Value(_, when) => when == WriteTime::Opening,
        DatasetContent::Frames(_) | DatasetContent::Virtual(_) => true,
        DatasetContent::Column(_) => false,
    }
}

/// How many dimensions, as the library counts them.
pub(crate) fn rank(dimensions: &[u64]) -> i32 {
    i32::try_from(dimensions.len()).unwrap_or(i32::MAX)
}

/// A space of these dimensions, which may grow to those: as far as they like where it is `None`.
pub(crate) fn space(dimensions: &[u64], maxima: Option<&[u64]>) -> Result<Handle, Hdf5Error> {
    begin();
    let maxima = maxima.map_or(std::ptr::null(), <[u64]>::as_ptr);
    // SAFETY: both have as many numbers as the rank says.
    let id = unsafe {
        if dimensions.is_empty() {
            ffi::H5Screate(ffi::H5S_SCALAR)
        } else {
            ffi::H5Screate_simple(rank(dimensions), dimensions.as_ptr(), maxima)
        }
    };
    Handle::of(id, || format!("make a space of {dimensions:?}"))
}
