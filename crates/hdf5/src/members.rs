//! What is in a group of a file that may be anybody's.

use std::{
    ffi::{CStr, c_char, c_void},
    ptr::null_mut,
};

use crate::{
    Hdf5Error,
    ffi::{self, herr_t, hid_t},
    handle::{Handle, checked},
};

/// Members of a group that are looked at.
pub(crate) const MEMBERS_MAX: usize = 10_000;

/// Bytes of a name: more than any has that this program makes.
const NAME_MAX: usize = 1024;

/// A member of a group.
#[derive(Debug)]
pub(crate) struct GroupMember {
    pub(crate) name: String,
    /// Which object of the file it is; none if it is a link that may lead elsewhere.
    pub(crate) object: Option<ffi::H5O_token_t>,
}

/// What is in a group.
#[derive(Debug)]
pub(crate) struct GroupMembers {
    pub(crate) members: Vec<GroupMember>,
    /// So many more are looked at, those too whose name is no text, or too long.
    left: usize,
    /// Of those that were looked at, how many have such names.
    unnamed: usize,
    /// Why there may be others, which can't be read.
    pub(crate) fault: Option<Hdf5Error>,
}

impl GroupMembers {
    /// The members of a group that is open, in the order of their names: of no more than the first so many.
    pub(crate) fn of(group: &Handle, path: &str, most: usize) -> Self {
        let mut listed = GroupMembers { members: Vec::new(), left: most, unnamed: 0, fault: None };
        // One walk: asked for by its number, the library walks to each of them from the first.
        // SAFETY: the function is given what it expects, and nobody else has it meanwhile.
        let status = unsafe {
            let into = (&raw mut listed).cast();
            let first = null_mut();
            ffi::H5Literate2(group.id(), ffi::H5_INDEX_NAME, ffi::H5_ITER_INC, first, put_member, into)
        };
        listed.fault = checked(status, || format!("list the group {path}")).err();
        listed
    }

    /// There are more, or some of them have names that are no text.
    pub(crate) fn is_cut(&self) -> bool {
        self.left == 0 || self.unnamed > 0
    }
}

/// Puts a member that the library names into the [`GroupMembers`] behind `into`, unless there are too many.
unsafe extern "C" fn put_member(
    _group: hid_t,
    name: *const c_char,
    link: *const ffi::H5L_info2_t,
    into: *mut c_void,
) -> herr_t {
    // SAFETY: it is what was given to the library, for this call alone.
    let members = unsafe { &mut *into.cast::<GroupMembers>() };
    // SAFETY: a text that ends with zero, and what the library knows of the link.
    let (name, link) = unsafe { (CStr::from_ptr(name), &*link) };
    members.left = members.left.saturating_sub(1);
    let text = name.to_str().ok().filter(|name| name.len() < NAME_MAX);
    members.unnamed += usize::from(text.is_none());
    let object = (link.r#type == ffi::H5L_TYPE_HARD).then_some(ffi::H5O_token_t { words: link.u });
    members.members.extend(text.map(|name| GroupMember { name: name.into(), object }));
    herr_t::from(members.left == 0)
}
