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
    ffi::{self, H5P_DEFAULT, H5S_ALL, HADDR_UNDEF, haddr_t, herr_t, hid_t, hsize_t},
    frame_file,
    handle::{self, Handle, checked, element_type, name, number_type, space},
    plant::run_of,
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
struct ChunkPlaces {
    rank: usize,
    /// By where each begins in the dataset.
    places: HashMap<Box<[u64]>, ChunkPlace>,
}

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

    pub(crate) fn id(&self) -> hid_t {
        self.file.id()
    }

    /// A dataset by its path.
    ///
    /// # Errors
    /// If there is none.
    pub fn dataset(&self, path: &str) -> Result<ReadDataset, Hdf5Error> {
        let what = || format!("open the dataset {path}");
        let text = name(path)?;
        let mut dimensions = [0; RANK_MAX];
        // SAFETY: a text that ends with zero; there is room for as many dimensions as there can be.
        unsafe {
            let handle = Handle::of(ffi::H5Dopen2(self.file.id(), text.as_ptr(), H5P_DEFAULT), what)?;
            let space = Handle::of(ffi::H5Dget_space(handle.id()), what)?;
            let rank = ffi::H5Sget_simple_extent_dims(space.id(), dimensions.as_mut_ptr(), null_mut());
            checked(rank, what)?;
            let rank = usize::try_from(rank).unwrap_or_default();
            let dimensions = dimensions[..rank].to_vec();
            Ok(ReadDataset { handle, dimensions, label: path.into(), chunks: OnceCell::new() })
        }
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

    /// What is in a group and in this file, each with a number that it has alone, whatever its names.
    pub(crate) fn own_members(&self, path: &str) -> Result<Vec<(String, [u64; 2])>, Hdf5Error> {
        let members = self.first_members(path, MEMBERS_MAX)?.into_iter();
        Ok(members.filter_map(|member| Some((member.name, member.object?))).collect())
    }

    fn first_members(&self, path: &str, most: usize) -> Result<Vec<GroupMember>, Hdf5Error> {
        let what = || format!("open the group {path}");
        if path != "/" && !self.is_own(path)? {
            return Err(Hdf5Error::Description { what: format!("{path} leads out of the file") });
        }
        let text = name(path)?;
        // SAFETY: a text that ends with zero.
        let id = unsafe { ffi::H5Oopen(self.file.id(), text.as_ptr(), H5P_DEFAULT) };
        let group = Handle::of(id, what)?;
        let mut members = GroupMembers { members: Vec::new(), left: most };
        // One walk: asked for by its number, the library walks to each of them from the first.
        // SAFETY: the function is given what it expects, and nobody else has it meanwhile.
        let status = unsafe {
            let into = (&raw mut members).cast();
            let first = null_mut();
            ffi::H5Literate2(group.id(), ffi::H5_INDEX_NAME, ffi::H5_ITER_INC, first, put_member, into)
        };
        checked(status, || format!("list the group {path}"))?;
        Ok(members.members)
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
        let what = || format!("read how {path} is stored");
        // SAFETY: identifiers that are open.
        let is_inside = unsafe {
            let properties = Handle::of(ffi::H5Dget_create_plist(dataset.handle.id()), what)?;
            ffi::H5Pget_external_count(properties.id()) == 0
                && ffi::H5Pget_layout(properties.id()) != ffi::H5D_VIRTUAL
        };
        if is_inside { Ok(dataset) } else { Err(elsewhere()) }
    }

    /// Whether no part of a path is a link that may lead elsewhere.
    fn is_own(&self, path: &str) -> Result<bool, Hdf5Error> {
        let ends = path.char_indices().skip(1).filter(|(_, letter)| *letter == '/').map(|(at, _)| at);
        for end in ends.chain([path.len()]) {
            let part = name(&path[..end])?;
            let mut info = ffi::H5L_info2_t { r#type: 0, corder_valid: false, corder: 0, cset: 0, u: [0; 2] };
            // SAFETY: a text that ends with zero, and a structure to be filled.
            let status =
                unsafe { ffi::H5Lget_info2(self.file.id(), part.as_ptr(), &raw mut info, H5P_DEFAULT) };
            checked(status, || format!("find {path}"))?;
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

/// Members of a group that are looked at.
const MEMBERS_MAX: usize = 10_000;

/// Bytes of a name: more than any has that this program makes.
const NAME_MAX: usize = 1024;

/// A member of a group.
#[derive(Debug)]
struct GroupMember {
    name: String,
    /// Which object of the file it is; none if it is a link that may lead elsewhere.
    object: Option<[u64; 2]>,
}

/// What is in a group.
#[derive(Debug)]
struct GroupMembers {
    members: Vec<GroupMember>,
    /// So many more are looked at, those too whose name is no text, or too long.
    left: usize,
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
    let object = (link.r#type == ffi::H5L_TYPE_HARD).then_some(link.u);
    members.members.extend(text.map(|name| GroupMember { name: name.into(), object }));
    herr_t::from(members.left == 0)
}

/// `H5S_MAX_RANK`.
pub(crate) const RANK_MAX: usize = 32;

/// Numbers of a dataset that are read at once, at the most: of one for each frame nobody would wait for the end.
const NUMBERS_MAX: u64 = 1 << 28;

/// Texts that are read at once: 1 MiB of them.
const TEXTS_AT_ONCE: usize = (1 << 20) / TEXT_BYTES;

impl ReadDataset {
    pub(crate) fn id(&self) -> hid_t {
        self.handle.id()
    }

    /// Its path.
    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    /// Where its chunks are, by their begins.
    pub(crate) fn all_places(&self) -> Result<HashMap<Box<[u64]>, ChunkPlace>, Hdf5Error> {
        Ok(self.all_chunks()?.places)
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
        let chunks = self.all_chunks()?;
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

    fn all_chunks(&self) -> Result<ChunkPlaces, Hdf5Error> {
        let mut chunks = ChunkPlaces { rank: self.dimensions.len(), places: HashMap::new() };
        let into = (&raw mut chunks).cast();
        // SAFETY: the function is given what it expects, and nobody else has it meanwhile.
        let status = unsafe { ffi::H5Dchunk_iter(self.handle.id(), H5P_DEFAULT, put_chunk, into) };
        checked(status, || format!("find the chunks of {}", self.label))?;
        Ok(chunks)
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
mod tests {
    use super::*;
    use crate::{
        Hdf5File, Hdf5FileOptions,
        tree::{NumberArray, TreeGroup},
    };

    #[test]
    fn the_members_of_a_group_are_named_in_order_and_of_too_many_the_first() {
        let many = (0..300).fold(TreeGroup::default(), |group, number| {
            group.value(&format!("d{number:06}"), NumberArray::int(number))
        });
        let tree = TreeGroup::default().group("many", many).group("none", TreeGroup::default());
        let file = Hdf5File::create("many", &tree, Hdf5FileOptions::default()).expect("it can be");
        let mut closed = file.close(0, &TreeGroup::default()).expect("it can be");
        let mut bytes = vec![0; closed.size() as usize];
        while let Some(write) = closed.next_write() {
            let begin = write.offset as usize;
            bytes[begin..begin + write.bytes.len()].copy_from_slice(&write.bytes);
        }
        let read = ReadFile::of_bytes(&bytes).expect("it is a file");
        let expected: Vec<_> = (0..300).map(|number| format!("d{number:06}")).collect();
        assert_eq!(read.members("/many").expect("it is there"), expected);
        for most in [1, 299, 300, 301] {
            let first = read.first_members("/many", most).expect("it is there").into_iter();
            let names: Vec<_> = first.map(|member| member.name).collect();
            assert_eq!(names, expected[..most.min(300)], "{most}");
        }
        assert_eq!(read.members("/none").expect("it is there"), Vec::<String>::new());
        assert_eq!(read.members("/").expect("every file has one"), ["many", "none"]);
        assert!(read.members("/nowhere").is_err());
    }
}
