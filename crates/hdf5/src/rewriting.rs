//! Makes a copy of a file with other chunks in one dataset. The library copies everything else; the caller
//! provides that dataset's chunks as they are to be stored.

use std::{
    collections::BTreeMap,
    ffi::{CStr, c_char, c_void},
    path::Path,
};

use crate::{
    BrokenObject, Hdf5Error, ReadDataset, ReadFile,
    ffi::{self, H5P_DEFAULT, herr_t, hid_t},
    handle::{Handle, PropertyClass, checked, name, properties, rank},
    members::{GroupMember, GroupMembers, MEMBERS_MAX},
    reading_note::reads_next,
    tree::FrameFilter,
};

/// The storage of the dataset in the new file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewChunks {
    /// Dimensions of a chunk, the slowest first: as many as the dataset has.
    pub chunk: Vec<u64>,
    /// The filter of the chunks; `None` if they have none.
    pub filter: Option<FrameFilter>,
}

/// A new file, while it is made from another one.
#[derive(Debug)]
pub struct RewrittenFile {
    /// Closed before the file is.
    dataset: Handle,
    file: Handle,
    /// The objects that were not copied, each with the reason.
    left_out: Vec<BrokenObject>,
}

/// Depth of groups, at the most.
const DEPTH_MAX: usize = 64;
/// Bytes of an attribute's value, at the most: the library itself allows 64 KiB in most files.
const ATTRIBUTE_MAX: u64 = 1 << 30;

impl RewrittenFile {
    /// Creates a file at `at`, replacing any file there. It copies everything from the other file except the
    /// chunks of `dataset`, which keeps its path.
    ///
    /// # Errors
    /// If the file can't be made, or the dataset can't be stored in this way. Other objects that can't be copied
    /// are left out.
    pub fn create(
        of: &ReadFile,
        dataset: &ReadDataset,
        at: &Path,
        chunks: &NewChunks,
    ) -> Result<Self, Hdf5Error> {
        let label = at.to_string_lossy();
        let path = name(&label)?;
        let access = properties(PropertyClass::FileAccess)?;
        // SAFETY: open identifiers, and a zero-terminated text.
        let file = unsafe {
            let version = ffi::H5F_LIBVER_V110;
            let bounds = ffi::H5Pset_libver_bounds(access.id(), version, version);
            checked(bounds, || "choose how files are made".into())?;
            ffi::H5Fcreate(path.as_ptr(), ffi::H5F_ACC_TRUNC, H5P_DEFAULT, access.id())
        };
        let file = Handle::of(file, || format!("make {label}"))?;
        let root = of.root()?;
        let mut copy = ObjectCopy {
            of,
            file: file.id(),
            dataset,
            token: of.token_of(dataset.label())?,
            chunks,
            made: BTreeMap::new(),
            rewritten: None,
            left_out: Vec::new(),
        };
        copy.group(&root, file.id(), "")?;
        let ObjectCopy { rewritten, left_out, .. } = copy;
        let missing = || Hdf5Error::Description { what: format!("{} is not found again", dataset.label()) };
        Ok(RewrittenFile { dataset: rewritten.ok_or_else(missing)?, file, left_out })
    }

    /// Stores the chunk that begins at this element of the dataset. Its bytes come from the filter, or are the
    /// elements themselves if `unfiltered`.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn put_chunk(&mut self, begin: &[u64], bytes: &[u8], unfiltered: bool) -> Result<(), Hdf5Error> {
        let mask = u32::from(unfiltered);
        let from = bytes.as_ptr().cast();
        // SAFETY: the caller gives one number per dimension, and the buffer has the length passed.
        let status = unsafe {
            ffi::H5Dwrite_chunk(self.dataset.id(), H5P_DEFAULT, mask, begin.as_ptr(), bytes.len(), from)
        };
        checked(status, || format!("write the chunk at {begin:?}"))
    }

    /// Finishes the file. Returns the objects that were not copied, each with the reason.
    ///
    /// # Errors
    /// If the library can't write the data that it still holds.
    pub fn close(self) -> Result<Vec<BrokenObject>, Hdf5Error> {
        let RewrittenFile { dataset, file, left_out } = self;
        drop(dataset);
        // SAFETY: the file is open, and not used any more.
        let closed = checked(unsafe { ffi::H5Fclose(file.id()) }, || "close the file".into());
        file.forget();
        closed.map(|()| left_out)
    }
}

/// Copies the objects of a file into another one. An object with several names is copied once.
struct ObjectCopy<'a> {
    of: &'a ReadFile,
    file: hid_t,
    dataset: &'a ReadDataset,
    /// The token of the dataset.
    token: ffi::H5O_token_t,
    chunks: &'a NewChunks,
    /// The objects copied so far, each with its first name.
    made: BTreeMap<ffi::H5O_token_t, String>,
    rewritten: Option<Handle>,
    left_out: Vec<BrokenObject>,
}

impl ObjectCopy<'_> {
    fn leave_out(&mut self, path: String, why: &Hdf5Error) {
        self.left_out.push(BrokenObject { path, why: why.to_string() });
    }

    /// Copies attributes and members of a group into an existing group.
    fn group(&mut self, from: &Handle, into: hid_t, path: &str) -> Result<(), Hdf5Error> {
        let named = if path.is_empty() { "/" } else { path };
        self.attributes(from.id(), into, named);
        reads_next(format_args!("the members of {named}"));
        let listed = GroupMembers::of(from, named, MEMBERS_MAX);
        let is_cut = listed.is_cut();
        for member in &listed.members {
            self.member(from, into, member, &format!("{path}/{}", member.name))?;
        }
        let more = || Hdf5Error::Description {
            what: format!("members behind the first {MEMBERS_MAX}, or with names that are no UTF-8"),
        };
        if let Some(why) = listed.fault.or_else(|| is_cut.then(more)) {
            self.leave_out(named.into(), &why);
        }
        Ok(())
    }

    /// Copies a member, or leaves it out if that fails. Fails only if it is the dataset itself or leads to it.
    fn member(
        &mut self,
        from: &Handle,
        into: hid_t,
        member: &GroupMember,
        path: &str,
    ) -> Result<(), Hdf5Error> {
        if member.object == Some(self.token) && self.rewritten.is_none() {
            self.rewritten = Some(self.chunked(into, &member.name)?);
            self.made.insert(self.token, path.into());
            return Ok(());
        }
        let copied = match member.object {
            None => copied_link(from.id(), into, &member.name),
            Some(token) => match self.made.get(&token) {
                Some(first) => linked(self.file, first, into, &member.name),
                None => self.object(from, into, token, path),
            },
        };
        match copied {
            Err(why) if self.leads_to_frames(path) => return Err(why),
            Err(why) => self.leave_out(path.into(), &why),
            Ok(()) => {}
        }
        Ok(())
    }

    /// Returns true if the dataset's path goes through this group.
    fn leads_to_frames(&self, path: &str) -> bool {
        self.dataset.label().strip_prefix(path).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Copies an object that the new file does not have yet.
    fn object(
        &mut self,
        from: &Handle,
        into: hid_t,
        token: ffi::H5O_token_t,
        path: &str,
    ) -> Result<(), Hdf5Error> {
        let opened = self.of.object(token, path)?;
        let text = name(path.rsplit('/').next().unwrap_or_default())?;
        self.made.insert(token, path.into());
        // SAFETY: an open identifier.
        if unsafe { ffi::H5Iget_type(opened.id()) } != ffi::H5I_GROUP {
            // SAFETY: open identifiers, and zero-terminated texts.
            let status = unsafe {
                ffi::H5Ocopy(from.id(), text.as_ptr(), into, text.as_ptr(), H5P_DEFAULT, H5P_DEFAULT)
            };
            return checked(status, || format!("copy {path}"));
        }
        if path.matches('/').count() > DEPTH_MAX {
            let what = format!("{path} is in more than {DEPTH_MAX} groups");
            return Err(Hdf5Error::Description { what });
        }
        // SAFETY: open identifiers, and a zero-terminated text.
        let made = unsafe {
            let what = || format!("make the group {path}");
            let creation = Handle::of(ffi::H5Gget_create_plist(opened.id()), what)?;
            let id = ffi::H5Gcreate2(into, text.as_ptr(), H5P_DEFAULT, creation.id(), H5P_DEFAULT);
            Handle::of(id, what)?
        };
        self.group(&opened, made.id(), path)
    }

    /// Creates the dataset with its new chunks.
    fn chunked(&mut self, into: hid_t, member: &str) -> Result<Handle, Hdf5Error> {
        let label = self.dataset.label();
        let what = || format!("make the dataset {label}");
        let text = name(member)?;
        let from = self.dataset.id();
        let NewChunks { chunk, filter } = self.chunks;
        // SAFETY: open identifiers, a zero-terminated text, and arrays with the lengths passed.
        let made = unsafe {
            let stored = Handle::of(ffi::H5Dget_type(from), what)?;
            // A type that has a name in the old file has none in the new one.
            let kind = Handle::of(ffi::H5Tcopy(stored.id()), what)?;
            let space = Handle::of(ffi::H5Dget_space(from), what)?;
            let creation = Handle::of(ffi::H5Dget_create_plist(from), what)?;
            checked(ffi::H5Pset_chunk(creation.id(), rank(chunk), chunk.as_ptr()), what)?;
            if ffi::H5Pget_nfilters(creation.id()) > 0 {
                checked(ffi::H5Premove_filter(creation.id(), ffi::H5Z_FILTER_ALL), what)?;
            }
            if let Some(FrameFilter { number, values }) = filter {
                let number = number.cast_signed();
                let optional = ffi::H5Z_FLAG_OPTIONAL;
                let values_at = values.as_ptr();
                let set = ffi::H5Pset_filter(creation.id(), number, optional, values.len(), values_at);
                checked(set, what)?;
            }
            checked(ffi::H5Pset_alloc_time(creation.id(), ffi::H5D_ALLOC_TIME_INCR), what)?;
            let [kind, space, creation] = [kind.id(), space.id(), creation.id()];
            let id = ffi::H5Dcreate2(into, text.as_ptr(), kind, space, H5P_DEFAULT, creation, H5P_DEFAULT);
            Handle::of(id, what)?
        };
        self.attributes(from, made.id(), label);
        Ok(made)
    }

    /// Copies the attributes of an object.
    fn attributes(&mut self, from: hid_t, into: hid_t, path: &str) {
        let mut names: Vec<std::ffi::CString> = Vec::new();
        let put = (&raw mut names).cast();
        let first = std::ptr::null_mut();
        // SAFETY: the function gets the pointer that it expects, and nobody else uses it meanwhile.
        let status = unsafe {
            ffi::H5Aiterate2(from, ffi::H5_INDEX_NAME, ffi::H5_ITER_INC, first, put_attribute, put)
        };
        if let Err(why) = checked(status, || format!("list the attributes of {path}")) {
            self.leave_out(path.into(), &why);
        }
        for attribute in names {
            reads_next(format_args!("{path}, attribute {}", attribute.to_string_lossy()));
            if let Err(why) = copied_attribute(from, into, &attribute) {
                self.leave_out(format!("{path}, attribute {}", attribute.to_string_lossy()), &why);
            }
        }
    }
}

/// Puts the name of an attribute into the names at `into`.
unsafe extern "C" fn put_attribute(
    _object: hid_t,
    name: *const c_char,
    _info: *const c_void,
    into: *mut c_void,
) -> herr_t {
    // SAFETY: `into` is the pointer passed to the library for this call alone; the name is a zero-terminated
    // text.
    unsafe { (*into.cast::<Vec<std::ffi::CString>>()).push(CStr::from_ptr(name).into()) };
    0
}

/// Copies a soft or external link with the same target.
fn copied_link(from: hid_t, into: hid_t, member: &str) -> Result<(), Hdf5Error> {
    let text = name(member)?;
    // SAFETY: open identifiers, and zero-terminated texts.
    let status = unsafe { ffi::H5Lcopy(from, text.as_ptr(), into, text.as_ptr(), H5P_DEFAULT, H5P_DEFAULT) };
    checked(status, || format!("copy the link {member}"))
}

/// Gives an existing object another name.
fn linked(file: hid_t, first: &str, into: hid_t, member: &str) -> Result<(), Hdf5Error> {
    let [there, here] = [name(first)?, name(member)?];
    // SAFETY: open identifiers, and zero-terminated texts.
    let status =
        unsafe { ffi::H5Lcreate_hard(file, there.as_ptr(), into, here.as_ptr(), H5P_DEFAULT, H5P_DEFAULT) };
    checked(status, || format!("link {member} to {first}"))
}

fn copied_attribute(from: hid_t, into: hid_t, attribute: &CStr) -> Result<(), Hdf5Error> {
    let what = || "copy it".to_owned();
    let text = attribute.as_ptr();
    // SAFETY: open identifiers, and a zero-terminated text. The buffer has room for the value, according to type
    // and space. Memory that the library allocated for parts of the value is given back to it.
    unsafe {
        let opened = Handle::of(ffi::H5Aopen(from, text, H5P_DEFAULT), what)?;
        let stored = Handle::of(ffi::H5Aget_type(opened.id()), what)?;
        let kind = Handle::of(ffi::H5Tcopy(stored.id()), what)?;
        let space = Handle::of(ffi::H5Aget_space(opened.id()), what)?;
        if ffi::H5Tdetect_class(kind.id(), ffi::H5T_REFERENCE) > 0 {
            let what = "it refers to objects by where they are in their file".into();
            return Err(Hdf5Error::Description { what });
        }
        let count = u64::try_from(ffi::H5Sget_simple_extent_npoints(space.id())).unwrap_or(0);
        let bytes = count.saturating_mul(ffi::H5Tget_size(kind.id()) as u64);
        if bytes > ATTRIBUTE_MAX {
            return Err(Hdf5Error::Description { what: format!("it has {bytes} B") });
        }
        // Texts of any length are stored as pointers.
        let mut value = vec![0_u64; (bytes as usize).div_ceil(size_of::<u64>()).max(1)];
        let memory: *mut c_void = value.as_mut_ptr().cast();
        checked(ffi::H5Aread(opened.id(), kind.id(), memory), what)?;
        let made = ffi::H5Acreate2(into, text, kind.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT);
        let written = Handle::of(made, what)
            .and_then(|made| checked(ffi::H5Awrite(made.id(), kind.id(), memory), what));
        ffi::H5Treclaim(kind.id(), space.id(), H5P_DEFAULT, memory);
        written
    }
}
