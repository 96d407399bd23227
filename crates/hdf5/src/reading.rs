//! Files that are read: which frames their index has, and what stands in their columns. Whoever reads frames reads them at
//! the places that the index says, without the library.

use std::{
    cell::OnceCell,
    collections::HashMap,
    ffi::{CStr, c_char, c_int, c_uint, c_void},
    path::Path,
    ptr::null_mut,
};

use crate::{
    Hdf5Error,
    column::{ColumnElement, TEXT_BYTES},
    driver::{self, SharedImage, while_opening},
    ffi::{self, H5P_DEFAULT, H5S_ALL, HADDR_UNDEF, haddr_t, hid_t, hsize_t},
    frame_file,
    handle::{self, Handle, checked, element_type, name, number_type, space},
    members::{GroupMember, GroupMembers, MEMBERS_MAX},
    plant::run_of,
    reading_note::{reads_next, still_reads},
    tree::NumberType,
};

/// A file that is open to be read.
#[derive(Debug)]
pub struct ReadFile {
    file: Handle,
    /// Where it is in memory.
    _image: Option<SharedImage>,
}

/// A dataset of it.
#[derive(Debug)]
pub struct ReadDataset {
    handle: Handle,
    dimensions: Vec<u64>,
    label: String,
    /// Once a chunk was asked for.
    chunks: OnceCell<ChunkPlaces>,
}

/// The index of a dataset.
#[derive(Debug)]
pub(crate) struct ChunkPlaces {
    rank: usize,
    /// By where each begins in the dataset.
    pub(crate) places: HashMap<Box<[u64]>, ChunkPlace>,
    /// Why there may be others, which can't be read.
    pub(crate) fault: Option<Hdf5Error>,
}

/// Chunks between two notes that the library still reads the index.
const CHUNKS_NOTED: usize = 4096;

/// Puts a chunk that the library names into the [`ChunkPlaces`] behind `into`.
unsafe extern "C" fn put_chunk(
    begin: *const hsize_t,
    unfiltered: c_uint,
    offset: haddr_t,
    bytes: hsize_t,
    into: *mut c_void,
) -> c_int {
    // SAFETY: it is what was given to the library, for this call alone.
    let chunks = unsafe { &mut *into.cast::<ChunkPlaces>() };
    // SAFETY: a number for each dimension.
    let begin = unsafe { std::slice::from_raw_parts(begin, chunks.rank) };
    if offset != HADDR_UNDEF {
        chunks.places.insert(begin.into(), ChunkPlace { offset, bytes, unfiltered });
    }
    if chunks.places.len().is_multiple_of(CHUNKS_NOTED) {
        still_reads();
    }
    0
}

/// Where the bytes of a chunk are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkPlace {
    /// From the start of the file, in bytes.
    pub offset: u64,
    /// How many bytes.
    pub bytes: u64,
    /// The filters of the dataset that were left out, a bit each.
    pub unfiltered: u32,
}

impl ReadFile {
    /// Opens a file, also one that is being written.
    ///
    /// # Errors
    /// If it is no HDF5 file, or damaged.
    pub fn open(path: &Path) -> Result<Self, Hdf5Error> {
        handle::begin();
        let label = path.to_string_lossy();
        reads_next("the superblock");
        let path = name(&label)?;
        // SAFETY: a text that ends with zero.
        let id = unsafe { ffi::H5Fopen(path.as_ptr(), ffi::H5F_ACC_RDONLY, H5P_DEFAULT) };
        Ok(ReadFile { file: Handle::of(id, || format!("open {label}"))?, _image: None })
    }

    /// Opens what these bytes are the file of.
    ///
    /// # Errors
    /// If they are no HDF5 file, or damaged.
    pub fn of_bytes(bytes: &[u8]) -> Result<Self, Hdf5Error> {
        let image = SharedImage::default();
        driver::lock(&image).load(bytes);
        let access = frame_file::access()?;
        // SAFETY: an identifier that is open, and a text that ends with zero.
        let open = || unsafe { ffi::H5Fopen(c"bytes".as_ptr(), ffi::H5F_ACC_RDONLY, access.id()) };
        let file = Handle::of(while_opening(&image, open), || "open these bytes".into())?;
        Ok(ReadFile { file, _image: Some(image) })
    }

    /// A dataset by its path.
    ///
    /// # Errors
    /// If there is none.
    pub fn dataset(&self, path: &str) -> Result<ReadDataset, Hdf5Error> {
        reads_next(path);
        let text = name(path)?;
        // SAFETY: a text that ends with zero.
        let id = unsafe { ffi::H5Dopen2(self.file.id(), text.as_ptr(), H5P_DEFAULT) };
        ReadDataset::of(Handle::of(id, || format!("open the dataset {path}"))?, path)
    }
}

/// What stands in groups and attributes of a file that may be anybody's.
impl ReadFile {
    /// The names of what is in a group, in order; of no more than the first thousands.
    ///
    /// # Errors
    /// If there is no such group.
    pub fn members(&self, path: &str) -> Result<Vec<String>, Hdf5Error> {
        Ok(self.first_members(path, MEMBERS_MAX)?.into_iter().map(|member| member.name).collect())
    }

    /// The object with this token, which a link of this file has. It is not looked for by a name.
    pub(crate) fn object(&self, token: ffi::H5O_token_t, path: &str) -> Result<Handle, Hdf5Error> {
        reads_next(path);
        // SAFETY: an identifier that is open, and numbers.
        let id = unsafe { ffi::H5Oopen_by_token(self.file.id(), token) };
        Handle::of(id, || format!("open {path}"))
    }

    /// The token of the object at a path of this file.
    pub(crate) fn token_of(&self, path: &str) -> Result<ffi::H5O_token_t, Hdf5Error> {
        let text = name(path)?;
        let mut info = ffi::H5L_info2_t::default();
        // SAFETY: a text that ends with zero, and a structure to be filled.
        let status = unsafe { ffi::H5Lget_info2(self.file.id(), text.as_ptr(), &raw mut info, H5P_DEFAULT) };
        checked(status, || format!("find {path}"))?;
        Ok(ffi::H5O_token_t { words: info.u })
    }

    /// The group that all others are in.
    pub(crate) fn root(&self) -> Result<Handle, Hdf5Error> {
        // SAFETY: an identifier that is open, and a text that ends with zero.
        let id = unsafe { ffi::H5Oopen(self.file.id(), c"/".as_ptr(), H5P_DEFAULT) };
        Handle::of(id, || "open /".into())
    }

    fn first_members(&self, path: &str, most: usize) -> Result<Vec<GroupMember>, Hdf5Error> {
        let what = || format!("open the group {path}");
        if path != "/" && !self.is_own(path)? {
            return Err(Hdf5Error::Description { what: format!("{path} leads out of the file") });
        }
        let text = name(path)?;
        // SAFETY: a text that ends with zero.
        let id = unsafe { ffi::H5Oopen(self.file.id(), text.as_ptr(), H5P_DEFAULT) };
        let listed = GroupMembers::of(&Handle::of(id, what)?, path, most);
        match listed.fault {
            Some(fault) => Err(fault),
            None => Ok(listed.members),
        }
    }

    /// A dataset that is in this file, all of it: no link leads to it, and its numbers are in no other file. Another one might be
    /// any file of the user's.
    ///
    /// # Errors
    /// If there is none, or it is elsewhere.
    pub fn own_dataset(&self, path: &str) -> Result<ReadDataset, Hdf5Error> {
        let elsewhere = || Hdf5Error::Description { what: format!("{path} leads out of the file") };
        self.is_own(path)?.then_some(()).ok_or_else(elsewhere)?;
        let dataset = self.dataset(path)?;
        if dataset.is_inside()? { Ok(dataset) } else { Err(elsewhere()) }
    }

    /// Whether no part of a path is a link that may lead elsewhere.
    fn is_own(&self, path: &str) -> Result<bool, Hdf5Error> {
        let ends = path.char_indices().skip(1).filter(|(_, letter)| *letter == '/').map(|(at, _)| at);
        for end in ends.chain([path.len()]) {
            let part = name(&path[..end])?;
            let mut info = ffi::H5L_info2_t::default();
            // SAFETY: a text that ends with zero, and a structure to be filled.
            let status =
                unsafe { ffi::H5Lget_info2(self.file.id(), part.as_ptr(), &raw mut info, H5P_DEFAULT) };
            if status < 0 {
                let unreadable = Hdf5Error::last(format!("find {path}"));
                // SAFETY: a text that ends with zero.
                let is_absent = unsafe { ffi::H5Lexists(self.file.id(), part.as_ptr(), H5P_DEFAULT) } == 0;
                let absent = Hdf5Error::Description { what: format!("can't find {path}") };
                return Err(if is_absent { absent } else { unreadable });
            }
            if info.r#type != ffi::H5L_TYPE_HARD {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether an object has an attribute.
    ///
    /// # Errors
    /// If there is no such object.
    pub fn has_attribute(&self, path: &str, attribute: &str) -> Result<bool, Hdf5Error> {
        let object = name(path)?;
        let text = name(attribute)?;
        // SAFETY: texts that end with zero.
        let has =
            unsafe { ffi::H5Aexists_by_name(self.file.id(), object.as_ptr(), text.as_ptr(), H5P_DEFAULT) };
        checked(has, || format!("look for the attribute {attribute} of {path}"))?;
        Ok(has > 0)
    }

    /// An attribute that is one text; none if it is something else.
    ///
    /// # Errors
    /// If there is none, or it is not UTF-8.
    pub fn text_attribute(&self, path: &str, attribute: &str) -> Result<Option<String>, Hdf5Error> {
        let what = || format!("read the attribute {attribute} of {path}");
        reads_next(format_args!("{path}, attribute {attribute}"));
        let object = name(path)?;
        let text = name(attribute)?;
        // SAFETY: texts that end with zero, and identifiers that are open. What the library allocated for the one text is
        // given back to it.
        unsafe {
            let file = self.file.id();
            let opened = ffi::H5Aopen_by_name(file, object.as_ptr(), text.as_ptr(), H5P_DEFAULT, H5P_DEFAULT);
            let opened = Handle::of(opened, what)?;
            let kind = Handle::of(ffi::H5Aget_type(opened.id()), what)?;
            let space = Handle::of(ffi::H5Aget_space(opened.id()), what)?;
            let rank = ffi::H5Sget_simple_extent_dims(space.id(), null_mut(), null_mut());
            if rank != 0 || ffi::H5Tis_variable_str(kind.id()) <= 0 {
                return Ok(None);
            }
            let mut read: *mut c_char = null_mut();
            checked(ffi::H5Aread(opened.id(), kind.id(), (&raw mut read).cast()), what)?;
            if read.is_null() {
                return Ok(None);
            }
            let bytes = CStr::from_ptr(read).to_bytes().to_vec();
            ffi::H5free_memory(read.cast());
            let not_text = |_| Hdf5Error::Description { what: format!("{} and find no text", what()) };
            String::from_utf8(bytes).map(Some).map_err(not_text)
        }
    }
}

/// `H5S_MAX_RANK`.
pub(crate) const RANK_MAX: usize = 32;

/// Numbers of a dataset that are read at once, at the most: of one for each frame nobody would wait for the end.
const NUMBERS_MAX: u64 = 1 << 28;

/// Texts that are read at once: 1 MiB of them.
const TEXTS_AT_ONCE: usize = (1 << 20) / TEXT_BYTES;

impl ReadDataset {
    /// Of a dataset that is open, with this path.
    pub(crate) fn of(handle: Handle, path: &str) -> Result<Self, Hdf5Error> {
        let what = || format!("open the dataset {path}");
        let mut dimensions = [0; RANK_MAX];
        // SAFETY: identifiers that are open; there is room for as many dimensions as there can be.
        let rank = unsafe {
            let space = Handle::of(ffi::H5Dget_space(handle.id()), what)?;
            ffi::H5Sget_simple_extent_dims(space.id(), dimensions.as_mut_ptr(), null_mut())
        };
        checked(rank, what)?;
        let dimensions = dimensions[..usize::try_from(rank).unwrap_or_default()].to_vec();
        Ok(ReadDataset { handle, dimensions, label: path.into(), chunks: OnceCell::new() })
    }

    pub(crate) fn id(&self) -> hid_t {
        self.handle.id()
    }

    /// Whether all its numbers are in the file that it is in.
    pub(crate) fn is_inside(&self) -> Result<bool, Hdf5Error> {
        let what = || format!("read how {} is stored", self.label);
        // SAFETY: identifiers that are open.
        unsafe {
            let properties = Handle::of(ffi::H5Dget_create_plist(self.handle.id()), what)?;
            Ok(ffi::H5Pget_external_count(properties.id()) == 0
                && ffi::H5Pget_layout(properties.id()) != ffi::H5D_VIRTUAL)
        }
    }

    /// Its path.
    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    /// Where those of its chunks are whose entries in the index can be read.
    pub(crate) fn readable_chunks(&self) -> ChunkPlaces {
        reads_next(format_args!("the index of {}", self.label));
        let mut chunks = ChunkPlaces { rank: self.dimensions.len(), places: HashMap::new(), fault: None };
        let into = (&raw mut chunks).cast();
        // SAFETY: the function is given what it expects, and nobody else has it meanwhile.
        let status = unsafe { ffi::H5Dchunk_iter(self.handle.id(), H5P_DEFAULT, put_chunk, into) };
        chunks.fault = checked(status, || format!("find the chunks of {}", self.label)).err();
        chunks
    }

    /// Its dimensions, the slowest first.
    pub fn dimensions(&self) -> &[u64] {
        &self.dimensions
    }

    /// Where the chunk is that begins with the element at this place, if it is there. The whole index is read when the first is
    /// asked for: the library goes through it from its begin for each chunk that it is asked for.
    ///
    /// # Errors
    /// If the index is damaged, or the place has other dimensions than the dataset.
    pub fn chunk(&self, place: &[u64]) -> Result<Option<ChunkPlace>, Hdf5Error> {
        if place.len() != self.dimensions.len() {
            let what =
                format!("{} has {} dimensions, not {}", self.label, self.dimensions.len(), place.len());
            return Err(Hdf5Error::Description { what });
        }
        if let Some(chunks) = self.chunks.get() {
            return Ok(chunks.places.get(place).copied());
        }
        let mut chunks = self.readable_chunks();
        if let Some(fault) = chunks.fault.take() {
            return Err(fault);
        }
        Ok(self.chunks.get_or_init(|| chunks).places.get(place).copied())
    }

    /// What its elements would be in a column: whole numbers, fractions, or texts that have the same room each; none if they are
    /// nothing of it.
    ///
    /// # Errors
    /// If its type can't be read.
    pub fn column_element(&self) -> Result<Option<ColumnElement>, Hdf5Error> {
        let what = || format!("read the type of {}", self.label);
        // SAFETY: identifiers that are open.
        unsafe {
            let kind = Handle::of(ffi::H5Dget_type(self.handle.id()), what)?;
            Ok(match ffi::H5Tget_class(kind.id()) {
                ffi::H5T_INTEGER => Some(ColumnElement::INT),
                ffi::H5T_FLOAT => Some(ColumnElement::FLOAT),
                ffi::H5T_STRING if ffi::H5Tis_variable_str(kind.id()) == 0 => Some(ColumnElement::TEXT),
                _ => None,
            })
        }
    }

    /// How many numbers it has, of which there is memory for all: a file may be anybody's.
    fn count(&self) -> Result<usize, Hdf5Error> {
        let count = self.dimensions.iter().try_fold(1_u64, |all, side| all.checked_mul(*side));
        count.filter(|count| *count <= NUMBERS_MAX).map(|count| count as usize).ok_or_else(|| {
            let what = format!("{} has more numbers than can be read: {:?}", self.label, self.dimensions);
            Hdf5Error::Description { what }
        })
    }

    /// All its numbers, as whole numbers.
    ///
    /// # Errors
    /// If they can't be read so.
    pub fn numbers(&self) -> Result<Vec<i64>, Hdf5Error> {
        let mut numbers = vec![0_i64; self.count()?];
        // SAFETY: room for as many numbers as there are.
        unsafe { self.read(NumberType::Int64, numbers.as_mut_ptr().cast())? };
        Ok(numbers)
    }

    /// All its numbers.
    ///
    /// # Errors
    /// If they can't be read so.
    pub fn floats(&self) -> Result<Vec<f64>, Hdf5Error> {
        let mut numbers = vec![0.0_f64; self.count()?];
        // SAFETY: room for as many numbers as there are.
        unsafe { self.read(NumberType::Float64, numbers.as_mut_ptr().cast())? };
        Ok(numbers)
    }

    /// The texts of a row that are not empty, each with its place: as much of them as has room in a column, and is UTF-8. One
    /// that is damaged takes no other with it.
    ///
    /// # Errors
    /// If they can't be read so.
    pub fn each_text(&self, take: &mut dyn FnMut(u64, &str)) -> Result<(), Hdf5Error> {
        let what = || format!("read {}", self.label);
        let [length] = self.dimensions[..] else {
            return Err(Hdf5Error::Description { what: format!("{} is no row", self.label) });
        };
        let kind = element_type(ColumnElement::TEXT);
        let mut bytes = Vec::new();
        for first in (0..length).step_by(TEXTS_AT_ONCE) {
            let count = (length - first).min(TEXTS_AT_ONCE as u64);
            let memory = space(&[count], None)?;
            let file = space(&self.dimensions, None)?;
            run_of(&file, &self.dimensions, first..first + count, &[])?;
            bytes.resize(count as usize * TEXT_BYTES, 0);
            // SAFETY: room for as many texts as both spaces have selected.
            let status = unsafe {
                let into = bytes.as_mut_ptr().cast();
                ffi::H5Dread(self.handle.id(), kind, memory.id(), file.id(), H5P_DEFAULT, into)
            };
            checked(status, what)?;
            for (place, text) in (first..).zip(bytes.chunks(TEXT_BYTES)) {
                let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
                let text = whole_characters(text);
                if !text.is_empty() {
                    take(place, text);
                }
            }
        }
        Ok(())
    }

    /// All its numbers as this type.
    ///
    /// # Safety
    /// There is room for as many numbers of the type as the dataset has.
    unsafe fn read(&self, element: NumberType, into: *mut c_void) -> Result<(), Hdf5Error> {
        reads_next(&self.label);
        let kind = number_type(element);
        // SAFETY: the caller has room.
        let status = unsafe { ffi::H5Dread(self.handle.id(), kind, H5S_ALL, H5S_ALL, H5P_DEFAULT, into) };
        checked(status, || format!("read {}", self.label))
    }
}

/// What of a text is UTF-8, up to the first byte that is not: it may have been cut inside of a character.
fn whole_characters(text: &[u8]) -> &str {
    match std::str::from_utf8(text) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&text[..error.valid_up_to()]).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
