//! Datasets of files from any source: a list of them, how each is stored, the positions of its chunks, and blocks
//! that the library unpacks itself.

use std::{
    collections::BTreeSet,
    ffi::{c_int, c_uint},
    ptr::null_mut,
};

use crate::{
    Hdf5Error,
    ffi::{self, H5P_DEFAULT},
    handle::{Handle, checked, rank, space},
    members::{GroupMembers, MEMBERS_MAX},
    plant::run_of,
    reading::{ChunkPlace, ChunkPlaces, RANK_MAX, ReadDataset, ReadFile},
    reading_note::reads_next,
};

/// Bytes of the longest number types. A foreign file may claim any size for a type.
const ELEMENT_MAX: usize = 16;

/// The storage of a dataset of numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredShape {
    /// Its dimensions, the slowest first.
    pub dimensions: Vec<u64>,
    /// Bytes of an element.
    pub element: usize,
    /// The type of its elements, with its `NumPy` name: `uint16`.
    pub kind: String,
    /// Dimensions of a chunk; `None` if the dataset is stored in one piece.
    pub chunk: Option<Vec<u64>>,
    /// The filters of its chunks, in the order of their application.
    pub filters: Vec<StoredFilter>,
    /// The value of elements that were never written.
    pub fill: Vec<u8>,
    /// True if any of its data is stored.
    pub is_there: bool,
    /// Bytes stored, according to the file.
    pub stored: u64,
}

/// A filter of a dataset's chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFilter {
    /// Its registered number.
    pub number: u32,
    /// The numbers (`cd_values`) that the file stores for it.
    pub values: Vec<u32>,
}

impl StoredFilter {
    /// Returns true if the library has the filter built in.
    pub fn is_in_library(&self) -> bool {
        // SAFETY: the function takes only a number.
        c_int::try_from(self.number).is_ok_and(|number| unsafe { ffi::H5Zfilter_avail(number) } > 0)
    }
}

/// A chunk, with its position in the dataset and in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedChunk {
    /// Its first element, one index per dimension.
    pub begin: Vec<u64>,
    /// The position of its bytes.
    pub place: ChunkPlace,
}

/// Objects that a walk visits, and the depth of groups, at the most.
const OBJECTS_MAX: usize = 10_000;
const DEPTH_MAX: usize = 64;

/// Filters of a dataset, and values of each, at the most.
const FILTERS_MAX: c_uint = 32;
const VALUES_MAX: usize = 64;

/// The datasets of a file that may have frames, and its damaged parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundDatasets {
    /// Their paths: each dataset once, under its first name.
    pub paths: Vec<String>,
    /// The damaged objects. Nothing behind them was found.
    pub broken: Vec<BrokenObject>,
}

/// An object of a file, or a part of one, that can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenObject {
    /// Its path.
    pub path: String,
    /// The library's error.
    pub why: String,
}

impl ReadFile {
    /// Lists the datasets of numbers with at least `rank_least` dimensions that lie wholly in this file. Damage
    /// hides no dataset that can be reached by another path.
    pub fn datasets_of_numbers(&self, rank_least: usize) -> FoundDatasets {
        let mut walk = ObjectWalk {
            file: self,
            rank_least,
            seen: BTreeSet::new(),
            groups: Vec::new(),
            found: FoundDatasets::default(),
        };
        match self.root() {
            Ok(root) => walk.list(&root, ""),
            Err(error) => walk.note("/", &error),
        }
        while let Some(group) = walk.groups.pop() {
            match self.object(group.token, &group.path) {
                Ok(opened) => walk.list(&opened, &group.path),
                Err(error) => walk.note(&group.path, &error),
            }
        }
        walk.found
    }
}

/// An object that a link of a group leads to.
struct LinkedObject {
    path: String,
    token: ffi::H5O_token_t,
}

/// Walks through all objects of a file and opens each by its token. For a name, the library would search the
/// members of its group, in some groups one by one.
struct ObjectWalk<'a> {
    file: &'a ReadFile,
    rank_least: usize,
    seen: BTreeSet<ffi::H5O_token_t>,
    /// Groups still to be listed, the next last.
    groups: Vec<LinkedObject>,
    found: FoundDatasets,
}

impl ObjectWalk<'_> {
    fn note(&mut self, path: &str, error: &Hdf5Error) {
        self.found.broken.push(BrokenObject { path: path.into(), why: error.to_string() });
    }

    /// Visits all members of a group.
    fn list(&mut self, group: &Handle, path: &str) {
        let named = if path.is_empty() { "/" } else { path };
        reads_next(format_args!("the members of {named}"));
        let listed = GroupMembers::of(group, named, MEMBERS_MAX);
        let before = self.groups.len();
        for member in listed.members {
            let Some(token) = member.object else { continue };
            if self.seen.len() < OBJECTS_MAX && self.seen.insert(token) {
                self.visit(LinkedObject { path: format!("{path}/{}", member.name), token });
            }
        }
        self.groups[before..].reverse();
        if let Some(fault) = listed.fault {
            self.note(named, &fault);
        }
    }

    fn visit(&mut self, object: LinkedObject) {
        let opened = match self.file.object(object.token, &object.path) {
            Ok(opened) => opened,
            Err(error) => return self.note(&object.path, &error),
        };
        // SAFETY: an open identifier.
        match unsafe { ffi::H5Iget_type(opened.id()) } {
            ffi::H5I_GROUP if object.path.matches('/').count() < DEPTH_MAX => self.groups.push(object),
            ffi::H5I_DATASET => match self.has_frames(opened, &object.path) {
                Ok(true) => self.found.paths.push(object.path),
                // A dataset without numbers is no error.
                Ok(false) | Err(Hdf5Error::Description { .. }) => {}
                Err(error) => self.note(&object.path, &error),
            },
            _ => {}
        }
    }

    /// Returns true if a dataset may have frames.
    fn has_frames(&self, opened: Handle, path: &str) -> Result<bool, Hdf5Error> {
        let dataset = ReadDataset::of(opened, path)?;
        let may = dataset.dimensions().len() >= self.rank_least && dataset.is_inside()?;
        Ok(may && dataset.stored().map(|_| true)?)
    }
}

/// The positions of a dataset's chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedChunks {
    /// In the order of their first elements.
    pub chunks: Vec<PlacedChunk>,
    /// The error that hides the rest of the index, if there is one.
    pub fault: Option<Hdf5Error>,
}

impl ReadDataset {
    /// Reads how the dataset is stored.
    ///
    /// # Errors
    /// If it has no numbers, or the file is damaged.
    pub fn stored(&self) -> Result<StoredShape, Hdf5Error> {
        let what = || format!("read how {} is stored", self.label());
        // SAFETY: open identifiers; the buffers have room for the maximum rank, and for an element.
        unsafe {
            let kind = Handle::of(ffi::H5Dget_type(self.id()), what)?;
            let properties = Handle::of(ffi::H5Dget_create_plist(self.id()), what)?;
            let element = ffi::H5Tget_size(kind.id());
            let letter = match (ffi::H5Tget_class(kind.id()), ffi::H5Tget_sign(kind.id())) {
                (ffi::H5T_INTEGER, ffi::H5T_SGN_NONE) => "uint",
                (ffi::H5T_INTEGER, _) => "int",
                (ffi::H5T_FLOAT, _) => "float",
                _ => return Err(Hdf5Error::Description { what: format!("{} has no numbers", self.label()) }),
            };
            let mut chunk = [0; RANK_MAX];
            let is_chunked = ffi::H5Pget_layout(properties.id()) == ffi::H5D_CHUNKED;
            if is_chunked {
                let read = ffi::H5Pget_chunk(properties.id(), rank(&chunk), chunk.as_mut_ptr());
                checked(read, what)?;
            }
            let chunk = is_chunked.then(|| chunk[..self.dimensions().len()].to_vec());
            if element > ELEMENT_MAX {
                return Err(Hdf5Error::Description {
                    what: format!("{} has elements of {element} B, more than {ELEMENT_MAX}", self.label()),
                });
            }
            let stored = ffi::H5Dget_storage_size(self.id());
            let mut fill = vec![0; element];
            // If no fill value is defined, the buffer keeps its zeroes.
            ffi::H5Pget_fill_value(properties.id(), kind.id(), fill.as_mut_ptr().cast());
            Ok(StoredShape {
                dimensions: self.dimensions().to_vec(),
                element,
                kind: format!("{letter}{}", 8 * element),
                chunk,
                filters: filters_of(&properties, &what)?,
                fill,
                is_there: stored > 0,
                stored,
            })
        }
    }

    /// Lists all chunks whose index entries can be read.
    pub fn placed_chunks(&self) -> PlacedChunks {
        let ChunkPlaces { places, fault, .. } = self.readable_chunks();
        let mut chunks: Vec<_> =
            places.into_iter().map(|(begin, place)| PlacedChunk { begin: begin.into(), place }).collect();
        chunks.sort_unstable_by(|one, other| one.begin.cmp(&other.begin));
        PlacedChunks { chunks, fault }
    }

    /// Reads a block of elements, unpacked by the library's own filters.
    ///
    /// # Errors
    /// If the block can't be read, or `into` has another size.
    pub fn read_block(&self, begin: &[u64], size: &[u64], into: &mut [u8]) -> Result<(), Hdf5Error> {
        let what = || format!("read {}", self.label());
        reads_next(format_args!("{}, the elements at {begin:?}", self.label()));
        let elements = size.iter().try_fold(1_u64, |all, side| all.checked_mul(*side));
        // SAFETY: an open identifier.
        let kind = Handle::of(unsafe { ffi::H5Dget_type(self.id()) }, what)?;
        // SAFETY: an open identifier.
        let element = unsafe { ffi::H5Tget_size(kind.id()) } as u64;
        if elements.and_then(|elements| elements.checked_mul(element)) != Some(into.len() as u64) {
            let what = format!("{} has no {} B in {size:?}", self.label(), into.len());
            return Err(Hdf5Error::Description { what });
        }
        let memory = space(size, None)?;
        let file = space(self.dimensions(), None)?;
        let mut sides = begin.iter().zip(size).map(|(begin, size)| *begin..begin.saturating_add(*size));
        let Some(first) = sides.next() else { return Ok(()) };
        run_of(&file, self.dimensions(), first, &sides.collect::<Vec<_>>())?;
        // SAFETY: the buffer has room for the elements that both spaces select.
        let status = unsafe {
            let into = into.as_mut_ptr().cast();
            ffi::H5Dread(self.id(), kind.id(), memory.id(), file.id(), H5P_DEFAULT, into)
        };
        checked(status, what)
    }
}

fn filters_of(properties: &Handle, what: &dyn Fn() -> String) -> Result<Vec<StoredFilter>, Hdf5Error> {
    // SAFETY: an open identifier.
    let count = unsafe { ffi::H5Pget_nfilters(properties.id()) };
    checked(count, what)?;
    let mut filters = Vec::new();
    for at in 0..c_uint::try_from(count).unwrap_or_default().min(FILTERS_MAX) {
        let mut values = [0; VALUES_MAX];
        let mut length = VALUES_MAX;
        let mut flags = 0;
        // SAFETY: the buffers have the lengths passed, and the name's has none.
        let number = unsafe {
            let id = properties.id();
            let flags = &raw mut flags;
            let length = &raw mut length;
            ffi::H5Pget_filter2(id, at, flags, length, values.as_mut_ptr(), 0, null_mut(), null_mut())
        };
        checked(number, what)?;
        let values = values[..length.min(VALUES_MAX)].to_vec();
        filters.push(StoredFilter { number: c_uint::try_from(number).unwrap_or_default(), values });
    }
    Ok(filters)
}
