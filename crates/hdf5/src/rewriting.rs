//! A file that is another one, with other chunks of one dataset. All else is copied by the library; chunks of the one come from the
//! owner as they are to be stored.

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

/// How a dataset is stored in the file that is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewChunks {
    /// Dimensions of a chunk, the slowest first: as many as the dataset has.
    pub chunk: Vec<u64>,
    /// What chunks go through, if they do.
    pub filter: Option<FrameFilter>,
}

/// A file that is being made of another one.
#[derive(Debug)]
pub struct RewrittenFile {
    /// Closed before the file is.
    dataset: Handle,
    file: Handle,
    /// What was not copied, and why.
    left_out: Vec<BrokenObject>,
}

/// Groups in each other, at the most.
const DEPTH_MAX: usize = 64;
/// Bytes of the value of an attribute, at the most: the library itself allows 64 KiB in most files.
const ATTRIBUTE_MAX: u64 = 1 << 30;

impl RewrittenFile {
    /// Makes a file at a path, in the place of what is there, with all that is in another one but the chunks of a dataset, which has
    /// this path there.
    ///
    /// # Errors
    /// If it can't be made, or the dataset can't be stored so. What else can't be copied is left out.
    pub fn create(
        of: &ReadFile,
        dataset: &ReadDataset,
        at: &Path,
        chunks: &NewChunks,
    ) -> Result<Self, Hdf5Error> {
        let label = at.to_string_lossy();
        let path = name(&label)?;
        let access = properties(PropertyClass::FileAccess)?;
        // SAFETY: identifiers that are open, and a text that ends with zero.
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

    /// Stores a chunk that begins at this place of the dataset: what the filter made of its elements, or these themselves.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn put_chunk(&mut self, begin: &[u64], bytes: &[u8], unfiltered: bool) -> Result<(), Hdf5Error> {
        let mask = u32::from(unfiltered);
        let from = bytes.as_ptr().cast();
        // SAFETY: a number for each dimension, which the owner has, and so many bytes.
        let status = unsafe {
            ffi::H5Dwrite_chunk(self.dataset.id(), H5P_DEFAULT, mask, begin.as_ptr(), bytes.len(), from)
        };
        checked(status, || format!("write the chunk at {begin:?}"))
    }

    /// All is written. What was not copied, and why.
    ///
    /// # Errors
    /// If what the library held back can't be written.
    pub fn close(self) -> Result<Vec<BrokenObject>, Hdf5Error> {
        let RewrittenFile { dataset, file, left_out } = self;
        drop(dataset);
        // SAFETY: it is open, and not used any more.
        let closed = checked(unsafe { ffi::H5Fclose(file.id()) }, || "close the file".into());
        file.forget();
        closed.map(|()| left_out)
    }
}

/// Copies the objects of a file into another one, each once, whatever its names.
struct ObjectCopy<'a> {
    of: &'a ReadFile,
    file: hid_t,
    dataset: &'a ReadDataset,
    /// Which object the dataset is.
    token: ffi::H5O_token_t,
    chunks: &'a NewChunks,
    /// The first names of those that are there.
    made: BTreeMap<ffi::H5O_token_t, String>,
    rewritten: Option<Handle>,
    left_out: Vec<BrokenObject>,
}

impl ObjectCopy<'_> {
    fn leave_out(&mut self, path: String, why: &Hdf5Error) {
        self.left_out.push(BrokenObject { path, why: why.to_string() });
    }

    /// Copies attributes and members of a group into one that is there.
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

    /// Copies a member, or leaves it out; an error if it is the dataset itself.
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

    /// Whether the dataset is in this group, as it was named.
    fn leads_to_frames(&self, path: &str) -> bool {
        self.dataset.label().strip_prefix(path).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Copies an object that is not there yet.
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
        // SAFETY: an identifier that is open.
        if unsafe { ffi::H5Iget_type(opened.id()) } != ffi::H5I_GROUP {
            // SAFETY: identifiers that are open, and texts that end with zero.
            let status = unsafe {
                ffi::H5Ocopy(from.id(), text.as_ptr(), into, text.as_ptr(), H5P_DEFAULT, H5P_DEFAULT)
            };
            return checked(status, || format!("copy {path}"));
        }
        if path.matches('/').count() > DEPTH_MAX {
            let what = format!("{path} is in more than {DEPTH_MAX} groups");
            return Err(Hdf5Error::Description { what });
        }
        // SAFETY: identifiers that are open, and a text that ends with zero.
        let made = unsafe {
            let what = || format!("make the group {path}");
            let creation = Handle::of(ffi::H5Gget_create_plist(opened.id()), what)?;
            let id = ffi::H5Gcreate2(into, text.as_ptr(), H5P_DEFAULT, creation.id(), H5P_DEFAULT);
            Handle::of(id, what)?
        };
        self.group(&opened, made.id(), path)
    }

    /// The dataset, as it is to be.
    fn chunked(&mut self, into: hid_t, member: &str) -> Result<Handle, Hdf5Error> {
        let label = self.dataset.label();
        let what = || format!("make the dataset {label}");
        let text = name(member)?;
        let from = self.dataset.id();
        let NewChunks { chunk, filter } = self.chunks;
        // SAFETY: identifiers that are open, a text that ends with zero, as many dimensions and values as are said.
        let made = unsafe {
            let stored = Handle::of(ffi::H5Dget_type(from), what)?;
            // A type that has a name in the one file has none in the other.
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
        // SAFETY: the function is given what it expects, and nobody else has it meanwhile.
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

/// Puts the name of an attribute into the names behind `into`.
unsafe extern "C" fn put_attribute(
    _object: hid_t,
    name: *const c_char,
    _info: *const c_void,
    into: *mut c_void,
) -> herr_t {
    // SAFETY: it is what was given to the library, for this call alone, and a text that ends with zero.
    unsafe { (*into.cast::<Vec<std::ffi::CString>>()).push(CStr::from_ptr(name).into()) };
    0
}

/// A soft or external link: it leads where it led.
fn copied_link(from: hid_t, into: hid_t, member: &str) -> Result<(), Hdf5Error> {
    let text = name(member)?;
    // SAFETY: identifiers that are open, and texts that end with zero.
    let status = unsafe { ffi::H5Lcopy(from, text.as_ptr(), into, text.as_ptr(), H5P_DEFAULT, H5P_DEFAULT) };
    checked(status, || format!("copy the link {member}"))
}

/// Another name of what is there.
fn linked(file: hid_t, first: &str, into: hid_t, member: &str) -> Result<(), Hdf5Error> {
    let [there, here] = [name(first)?, name(member)?];
    // SAFETY: identifiers that are open, and texts that end with zero.
    let status =
        unsafe { ffi::H5Lcreate_hard(file, there.as_ptr(), into, here.as_ptr(), H5P_DEFAULT, H5P_DEFAULT) };
    checked(status, || format!("link {member} to {first}"))
}

fn copied_attribute(from: hid_t, into: hid_t, attribute: &CStr) -> Result<(), Hdf5Error> {
    let what = || "copy it".to_owned();
    let text = attribute.as_ptr();
    // SAFETY: identifiers that are open, and a text that ends with zero; there is room for the value as type and space say, and
    // what the library allocated for its parts is given back to it.
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
        // Texts of any length are pointers there.
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
