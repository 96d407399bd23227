//! Lists the members of a group, in a file from any source.

use std::{
    ffi::{CStr, c_char, c_void},
    ptr::null_mut,
};

use crate::{
    Hdf5Error,
    ffi::{self, herr_t, hid_t},
    handle::{Handle, checked},
};

/// Members of a group that are listed, at the most.
pub(crate) const MEMBERS_MAX: usize = 10_000;

/// Bytes of a name: longer than any name that this program makes.
const NAME_MAX: usize = 1024;

/// A member of a group.
#[derive(Debug)]
pub(crate) struct GroupMember {
    pub(crate) name: String,
    /// Its object in the file; `None` if it is a link that may lead elsewhere.
    pub(crate) object: Option<ffi::H5O_token_t>,
}

/// The members of a group, as far as they are listed.
#[derive(Debug)]
pub(crate) struct GroupMembers {
    pub(crate) members: Vec<GroupMember>,
    /// Members that may still be listed. Members with a name that is too long or not UTF-8 count too.
    left: usize,
    /// Members with such names so far.
    unnamed: usize,
    /// The error that may hide further members.
    pub(crate) fault: Option<Hdf5Error>,
}

impl GroupMembers {
    /// Lists the members of an open group in the order of their names, at most the first `most`.
    pub(crate) fn of(group: &Handle, path: &str, most: usize) -> Self {
        let mut listed = GroupMembers { members: Vec::new(), left: most, unnamed: 0, fault: None };
        // One walk: if you ask for members by index, the library walks from the first to each of them.
        // SAFETY: the function gets the pointer that it expects, and nobody else uses it meanwhile.
        let status = unsafe {
            let into = (&raw mut listed).cast();
            let first = null_mut();
            ffi::H5Literate2(group.id(), ffi::H5_INDEX_NAME, ffi::H5_ITER_INC, first, put_member, into)
        };
        listed.fault = checked(status, || format!("list the group {path}")).err();
        listed
    }

    /// Returns true if the list is incomplete: the limit was reached, or some names are too long or not UTF-8.
    pub(crate) fn is_cut(&self) -> bool {
        self.left == 0 || self.unnamed > 0
    }
}

/// Puts a member of the library's iteration into the [`GroupMembers`] at `into`, up to the limit.
unsafe extern "C" fn put_member(
    _group: hid_t,
    name: *const c_char,
    link: *const ffi::H5L_info2_t,
    into: *mut c_void,
) -> herr_t {
    // SAFETY: `into` is the pointer passed to the library for this call alone.
    let members = unsafe { &mut *into.cast::<GroupMembers>() };
    // SAFETY: a zero-terminated text, and the library's information about the link.
    let (name, link) = unsafe { (CStr::from_ptr(name), &*link) };
    members.left = members.left.saturating_sub(1);
    let text = name.to_str().ok().filter(|name| name.len() < NAME_MAX);
    members.unnamed += usize::from(text.is_none());
    let object = (link.r#type == ffi::H5L_TYPE_HARD).then_some(ffi::H5O_token_t { words: link.u });
    members.members.extend(text.map(|name| GroupMember { name: name.into(), object }));
    herr_t::from(members.left == 0)
}
