//! Reads files: the frames in their index, and the values in their columns. A reader of frames reads them at the
//! positions that the index gives, without the library.

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

/// A file open for reading.
#[derive(Debug)]
pub struct ReadFile {
    file: Handle,
    /// The bytes of the file, if it is in memory.
    _image: Option<SharedImage>,
}

/// A dataset of a [`ReadFile`].
#[derive(Debug)]
pub struct ReadDataset {
    handle: Handle,
    dimensions: Vec<u64>,
    label: String,
    /// Filled at the first request for a chunk.
    chunks: OnceCell<ChunkPlaces>,
}

/// The chunk index of a dataset.
#[derive(Debug)]
pub(crate) struct ChunkPlaces {
    rank: usize,
    /// The chunks by their first element in the dataset.
    pub(crate) places: HashMap<Box<[u64]>, ChunkPlace>,
    /// The error that may hide further chunks.
    pub(crate) fault: Option<Hdf5Error>,
}

/// Chunks between two notes that the library is still reading the index.
const CHUNKS_NOTED: usize = 4096;

/// Puts a chunk of the library's iteration into the [`ChunkPlaces`] at `into`.
unsafe extern "C" fn put_chunk(
    begin: *const hsize_t,
    unfiltered: c_uint,
    offset: haddr_t,
    bytes: hsize_t,
    into: *mut c_void,
) -> c_int {
    // SAFETY: `into` is the pointer passed to the library for this call alone.
    let chunks = unsafe { &mut *into.cast::<ChunkPlaces>() };
    // SAFETY: the library passes one number per dimension.
    let begin = unsafe { std::slice::from_raw_parts(begin, chunks.rank) };
    if offset != HADDR_UNDEF {
        chunks.places.insert(begin.into(), ChunkPlace { offset, bytes, unfiltered });
    }
    if chunks.places.len().is_multiple_of(CHUNKS_NOTED) {
        still_reads();
    }
    0
}

/// The position of a chunk's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkPlace {
    /// From the start of the file, in bytes.
    pub offset: u64,
    /// The number of bytes.
    pub bytes: u64,
    /// The dataset's filters that were skipped for this chunk, one bit each.
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
        // SAFETY: a zero-terminated text.
        let id = unsafe { ffi::H5Fopen(path.as_ptr(), ffi::H5F_ACC_RDONLY, H5P_DEFAULT) };
        Ok(ReadFile { file: Handle::of(id, || format!("open {label}"))?, _image: None })
    }

    /// Opens a file from its bytes.
    ///
    /// # Errors
    /// If they are no HDF5 file, or damaged.
    pub fn of_bytes(bytes: &[u8]) -> Result<Self, Hdf5Error> {
        let image = SharedImage::default();
        driver::lock(&image).load(bytes);
        let access = frame_file::access()?;
        // SAFETY: an open identifier, and a zero-terminated text.
        let open = || unsafe { ffi::H5Fopen(c"bytes".as_ptr(), ffi::H5F_ACC_RDONLY, access.id()) };
        let file = Handle::of(while_opening(&image, open), || "open these bytes".into())?;
        Ok(ReadFile { file, _image: Some(image) })
    }

    /// Opens the dataset at a path.
    ///
    /// # Errors
    /// If there is none.
    pub fn dataset(&self, path: &str) -> Result<ReadDataset, Hdf5Error> {
        reads_next(path);
        let text = name(path)?;
        // SAFETY: a zero-terminated text.
        let id = unsafe { ffi::H5Dopen2(self.file.id(), text.as_ptr(), H5P_DEFAULT) };
        ReadDataset::of(Handle::of(id, || format!("open the dataset {path}"))?, path)
    }
}

/// Reads groups and attributes of a file from any source.
impl ReadFile {
    /// The names of a group's members, in order; at most the first `MEMBERS_MAX`.
    ///
    /// # Errors
    /// If there is no such group.
    pub fn members(&self, path: &str) -> Result<Vec<String>, Hdf5Error> {
        Ok(self.first_members(path, MEMBERS_MAX)?.into_iter().map(|member| member.name).collect())
    }

    /// Opens the object with this token, which a link of this file has. No name is searched for.
    pub(crate) fn object(&self, token: ffi::H5O_token_t, path: &str) -> Result<Handle, Hdf5Error> {
        reads_next(path);
        // SAFETY: an open identifier, and numbers.
        let id = unsafe { ffi::H5Oopen_by_token(self.file.id(), token) };
        Handle::of(id, || format!("open {path}"))
    }

    /// The token of the object at a path of this file.
    pub(crate) fn token_of(&self, path: &str) -> Result<ffi::H5O_token_t, Hdf5Error> {
        let text = name(path)?;
        let mut info = ffi::H5L_info2_t::default();
        // SAFETY: a zero-terminated text, and a structure to be filled.
        let status = unsafe { ffi::H5Lget_info2(self.file.id(), text.as_ptr(), &raw mut info, H5P_DEFAULT) };
        checked(status, || format!("find {path}"))?;
        Ok(ffi::H5O_token_t { words: info.u })
    }

    /// Opens the root group.
    pub(crate) fn root(&self) -> Result<Handle, Hdf5Error> {
        // SAFETY: an open identifier, and a zero-terminated text.
        let id = unsafe { ffi::H5Oopen(self.file.id(), c"/".as_ptr(), H5P_DEFAULT) };
        Handle::of(id, || "open /".into())
    }

    fn first_members(&self, path: &str, most: usize) -> Result<Vec<GroupMember>, Hdf5Error> {
        let what = || format!("open the group {path}");
        if path != "/" && !self.is_own(path)? {
            return Err(Hdf5Error::Description { what: format!("{path} leads out of the file") });
        }
        let text = name(path)?;
        // SAFETY: a zero-terminated text.
        let id = unsafe { ffi::H5Oopen(self.file.id(), text.as_ptr(), H5P_DEFAULT) };
        let listed = GroupMembers::of(&Handle::of(id, what)?, path, most);
        match listed.fault {
            Some(fault) => Err(fault),
            None => Ok(listed.members),
        }
    }

    /// Opens a dataset that lies wholly in this file: no link leads to it, and no other file holds its numbers. A
    /// foreign file could otherwise make you read any file of the user.
    ///
    /// # Errors
    /// If there is none, or it is elsewhere.
    pub fn own_dataset(&self, path: &str) -> Result<ReadDataset, Hdf5Error> {
        let elsewhere = || Hdf5Error::Description { what: format!("{path} leads out of the file") };
        self.is_own(path)?.then_some(()).ok_or_else(elsewhere)?;
        let dataset = self.dataset(path)?;
        if dataset.is_inside()? { Ok(dataset) } else { Err(elsewhere()) }
    }

    /// Returns true if no part of a path is a link that may lead elsewhere.
    fn is_own(&self, path: &str) -> Result<bool, Hdf5Error> {
        let ends = path.char_indices().skip(1).filter(|(_, letter)| *letter == '/').map(|(at, _)| at);
        for end in ends.chain([path.len()]) {
            let part = name(&path[..end])?;
            let mut info = ffi::H5L_info2_t::default();
            // SAFETY: a zero-terminated text, and a structure to be filled.
            let status =
                unsafe { ffi::H5Lget_info2(self.file.id(), part.as_ptr(), &raw mut info, H5P_DEFAULT) };
            if status < 0 {
                let unreadable = Hdf5Error::last(format!("find {path}"));
                // SAFETY: a zero-terminated text.
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

    /// Returns true if an object has an attribute.
    ///
    /// # Errors
    /// If there is no such object.
    pub fn has_attribute(&self, path: &str, attribute: &str) -> Result<bool, Hdf5Error> {
        let object = name(path)?;
        let text = name(attribute)?;
        // SAFETY: zero-terminated texts.
        let has =
            unsafe { ffi::H5Aexists_by_name(self.file.id(), object.as_ptr(), text.as_ptr(), H5P_DEFAULT) };
        checked(has, || format!("look for the attribute {attribute} of {path}"))?;
        Ok(has > 0)
    }

    /// Reads an attribute that is one text; `None` if it has another type.
    ///
    /// # Errors
    /// If there is none, or it is not UTF-8.
    pub fn text_attribute(&self, path: &str, attribute: &str) -> Result<Option<String>, Hdf5Error> {
        let what = || format!("read the attribute {attribute} of {path}");
        reads_next(format_args!("{path}, attribute {attribute}"));
        let object = name(path)?;
        let text = name(attribute)?;
        // SAFETY: zero-terminated texts, and open identifiers. The text that the library allocated is given back
        // to it.
        unsafe {
            let file = self.file.id();
            let opened = ffi::H5Aopen_by_name(file, object.as_ptr(), text.as_ptr(), H5P_DEFAULT, H5P_DEFAULT);
            let opened = Handle::of(opened, what)?;
            let kind = Handle::of(ffi::H5Aget_type(opened.id()), what)?;
            let space = Handle::of(ffi::H5Aget_space(opened.id()), what)?;
            let rank = ffi::H5Sget_simple_extent_dims(space.id(), null_mut(), null_mut());
            if rank != 0 || ffi::H5Tget_class(kind.id()) != ffi::H5T_STRING {
                return Ok(None);
            }
            let bytes = if ffi::H5Tis_variable_str(kind.id()) > 0 {
                let mut read: *mut c_char = null_mut();
                checked(ffi::H5Aread(opened.id(), kind.id(), (&raw mut read).cast()), what)?;
                if read.is_null() {
                    return Ok(None);
                }
                let bytes = CStr::from_ptr(read).to_bytes().to_vec();
                ffi::H5free_memory(read.cast());
                bytes
            } else {
                let length = ffi::H5Tget_size(kind.id());
                if length > FIXED_TEXT_MAX {
                    return Ok(None);
                }
                let mut bytes = vec![0_u8; length];
                checked(ffi::H5Aread(opened.id(), kind.id(), bytes.as_mut_ptr().cast()), what)?;
                let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(length);
                bytes.truncate(end);
                bytes
            };
            let not_text = |_| Hdf5Error::Description { what: format!("{} and find no text", what()) };
            String::from_utf8(bytes).map(Some).map_err(not_text)
        }
    }
}

/// `H5S_MAX_RANK`.
pub(crate) const RANK_MAX: usize = 32;

/// Numbers that are read at once, at the most. With one per frame, nobody would wait for the end of such a recording.
const NUMBERS_MAX: u64 = 1 << 28;

/// Bytes of an attribute of fixed length, at the most: an object header has no room for more.
const FIXED_TEXT_MAX: usize = 1 << 16;

/// Texts that are read at once: 1 MiB.
const TEXTS_AT_ONCE: usize = (1 << 20) / TEXT_BYTES;

impl ReadDataset {
    /// Wraps an open dataset that has this path.
    pub(crate) fn of(handle: Handle, path: &str) -> Result<Self, Hdf5Error> {
        let what = || format!("open the dataset {path}");
        let mut dimensions = [0; RANK_MAX];
        // SAFETY: open identifiers; the buffer has room for the maximum rank.
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

    /// Returns true if the file that contains the dataset also holds all its numbers.
    pub(crate) fn is_inside(&self) -> Result<bool, Hdf5Error> {
        let what = || format!("read how {} is stored", self.label);
        // SAFETY: open identifiers.
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

    /// The positions of the chunks whose index entries can be read.
    pub(crate) fn readable_chunks(&self) -> ChunkPlaces {
        reads_next(format_args!("the index of {}", self.label));
        let mut chunks = ChunkPlaces { rank: self.dimensions.len(), places: HashMap::new(), fault: None };
        let into = (&raw mut chunks).cast();
        // SAFETY: the function gets the pointer that it expects, and nobody else uses it meanwhile.
        let status = unsafe { ffi::H5Dchunk_iter(self.handle.id(), H5P_DEFAULT, put_chunk, into) };
        chunks.fault = checked(status, || format!("find the chunks of {}", self.label)).err();
        chunks
    }

    /// Its dimensions, the slowest first.
    pub fn dimensions(&self) -> &[u64] {
        &self.dimensions
    }

    /// The position of the chunk that begins with the element at `place`; `None` if the file has no such chunk.
    /// The first call reads the whole index, because the library would search it from the start for each chunk.
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

    /// The type of its elements as a column: whole numbers, fractions, or texts of a fixed size. `None` if they
    /// are something else.
    ///
    /// # Errors
    /// If its type can't be read.
    pub fn column_element(&self) -> Result<Option<ColumnElement>, Hdf5Error> {
        let what = || format!("read the type of {}", self.label);
        // SAFETY: open identifiers.
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

    /// The number of elements, or an error if they may not fit into memory: the file can come from any source.
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
        // SAFETY: the buffer has room for all numbers.
        unsafe { self.read(NumberType::Int64, numbers.as_mut_ptr().cast())? };
        Ok(numbers)
    }

    /// All its numbers.
    ///
    /// # Errors
    /// If they can't be read so.
    pub fn floats(&self) -> Result<Vec<f64>, Hdf5Error> {
        let mut numbers = vec![0.0_f64; self.count()?];
        // SAFETY: the buffer has room for all numbers.
        unsafe { self.read(NumberType::Float64, numbers.as_mut_ptr().cast())? };
        Ok(numbers)
    }

    /// Passes each non-empty text of a row to `take`, with its position. A text is cut to the size of a column's
    /// text and at the first byte that is not UTF-8. A damaged text does not affect the others.
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
            // SAFETY: the buffer has room for the texts that both spaces select.
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

    /// Reads all its numbers as this type.
    ///
    /// # Safety
    /// The buffer has room for as many numbers of the type as the dataset has.
    unsafe fn read(&self, element: NumberType, into: *mut c_void) -> Result<(), Hdf5Error> {
        reads_next(&self.label);
        let kind = number_type(element);
        // SAFETY: the caller provides the room.
        let status = unsafe { ffi::H5Dread(self.handle.id(), kind, H5S_ALL, H5S_ALL, H5P_DEFAULT, into) };
        checked(status, || format!("read {}", self.label))
    }
}

/// The part of a text up to the first byte that is not UTF-8: the text may have been cut inside a character.
fn whole_characters(text: &[u8]) -> &str {
    match std::str::from_utf8(text) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&text[..error.valid_up_to()]).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
