//! Datasets of files that anybody may have written: which there are, how each is stored, where its chunks are, and blocks of them
//! that the library unpacks itself.

use std::{
    collections::BTreeSet,
    ffi::{c_int, c_uint},
    ptr::null_mut,
};

use crate::{
    Hdf5Error,
    ffi::{self, H5P_DEFAULT},
    handle::{Handle, checked, name, rank, space},
    plant::run_of,
    reading::{ChunkPlace, RANK_MAX, ReadDataset, ReadFile},
};

/// The longest numbers that there are, in bytes; the size of a type is whatever a stranger's file says.
const ELEMENT_MAX: usize = 16;

/// How a dataset of numbers is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredShape {
    /// The slowest first.
    pub dimensions: Vec<u64>,
    /// Bytes of an element.
    pub element: usize,
    /// What its elements are, as `NumPy` names it: `uint16`.
    pub kind: String,
    /// Dimensions of a chunk; none if it is stored in one piece.
    pub chunk: Option<Vec<u64>>,
    /// What chunks went through, in this order.
    pub filters: Vec<StoredFilter>,
    /// The element where nothing was written.
    pub fill: Vec<u8>,
    /// Something is stored of it.
    pub is_there: bool,
}

/// A filter that chunks went through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFilter {
    /// Its registered number.
    pub number: u32,
    /// What the file says of it.
    pub values: Vec<u32>,
}

impl StoredFilter {
    /// The library has it in itself.
    pub fn is_in_library(&self) -> bool {
        // SAFETY: a number.
        c_int::try_from(self.number).is_ok_and(|number| unsafe { ffi::H5Zfilter_avail(number) } > 0)
    }
}

/// A chunk, and where it begins in its dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedChunk {
    /// In elements of each dimension.
    pub begin: Vec<u64>,
    /// Where its bytes are.
    pub place: ChunkPlace,
}

/// Objects that are looked at, and groups in each other, at the most.
const OBJECTS_MAX: usize = 10_000;
const DEPTH_MAX: usize = 64;

/// Filters of a dataset, and values of each.
const FILTERS_MAX: c_uint = 32;
const VALUES_MAX: usize = 64;

impl ReadFile {
    /// The paths of the datasets of numbers that are in this file, with all that they have, and have at least so many dimensions:
    /// each once, by the first of its names.
    ///
    /// # Errors
    /// If the file is damaged.
    pub fn datasets_of_numbers(&self, rank_least: usize) -> Result<Vec<String>, Hdf5Error> {
        let mut seen = BTreeSet::new();
        let mut found = Vec::new();
        let mut groups = vec![String::new()];
        while let Some(group) = groups.pop() {
            let path = if group.is_empty() { "/" } else { &group };
            let mut below = Vec::new();
            for (name, object) in self.own_members(path)? {
                if !seen.insert(object) || seen.len() > OBJECTS_MAX {
                    continue;
                }
                let path = format!("{group}/{name}");
                match self.object_kind(&path)? {
                    ffi::H5I_GROUP if path.matches('/').count() < DEPTH_MAX => below.push(path),
                    ffi::H5I_DATASET => {
                        let dataset = self.own_dataset(&path);
                        let is_one = |dataset: ReadDataset| {
                            dataset.dimensions().len() >= rank_least && dataset.stored().is_ok()
                        };
                        found.extend(dataset.is_ok_and(is_one).then_some(path));
                    }
                    _ => {}
                }
            }
            groups.extend(below.into_iter().rev());
        }
        Ok(found)
    }

    fn object_kind(&self, path: &str) -> Result<c_int, Hdf5Error> {
        let text = name(path)?;
        // SAFETY: a text that ends with zero, and an identifier that is open.
        unsafe {
            let object = ffi::H5Oopen(self.id(), text.as_ptr(), H5P_DEFAULT);
            let object = Handle::of(object, || format!("open {path}"))?;
            Ok(ffi::H5Iget_type(object.id()))
        }
    }
}

impl ReadDataset {
    /// How it is stored.
    ///
    /// # Errors
    /// If it has no numbers, or the file is damaged.
    pub fn stored(&self) -> Result<StoredShape, Hdf5Error> {
        let what = || format!("read how {} is stored", self.label());
        // SAFETY: identifiers that are open; there is room for as many dimensions as there can be, and for an element.
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
            let mut fill = vec![0; element];
            // What says that there is none leaves zeroes.
            ffi::H5Pget_fill_value(properties.id(), kind.id(), fill.as_mut_ptr().cast());
            Ok(StoredShape {
                dimensions: self.dimensions().to_vec(),
                element,
                kind: format!("{letter}{}", 8 * element),
                chunk,
                filters: filters_of(&properties, &what)?,
                fill,
                is_there: ffi::H5Dget_storage_size(self.id()) > 0,
            })
        }
    }

    /// All its chunks, in the order of their begins.
    ///
    /// # Errors
    /// If the index is damaged.
    pub fn placed_chunks(&self) -> Result<Vec<PlacedChunk>, Hdf5Error> {
        let places = self.all_places()?;
        let mut chunks: Vec<_> =
            places.into_iter().map(|(begin, place)| PlacedChunk { begin: begin.into(), place }).collect();
        chunks.sort_unstable_by(|one, other| one.begin.cmp(&other.begin));
        Ok(chunks)
    }

    /// A block of elements as they are in the file, unpacked by the library's own filters.
    ///
    /// # Errors
    /// If it can't be read, or there is room for another number of bytes.
    pub fn read_block(&self, begin: &[u64], size: &[u64], into: &mut [u8]) -> Result<(), Hdf5Error> {
        let what = || format!("read {}", self.label());
        let elements = size.iter().try_fold(1_u64, |all, side| all.checked_mul(*side));
        // SAFETY: an identifier that is open.
        let kind = Handle::of(unsafe { ffi::H5Dget_type(self.id()) }, what)?;
        // SAFETY: an identifier that is open.
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
        // SAFETY: room for as many elements as both spaces have selected.
        let status = unsafe {
            let into = into.as_mut_ptr().cast();
            ffi::H5Dread(self.id(), kind.id(), memory.id(), file.id(), H5P_DEFAULT, into)
        };
        checked(status, what)
    }
}

fn filters_of(properties: &Handle, what: &dyn Fn() -> String) -> Result<Vec<StoredFilter>, Hdf5Error> {
    // SAFETY: an identifier that is open.
    let count = unsafe { ffi::H5Pget_nfilters(properties.id()) };
    checked(count, what)?;
    let mut filters = Vec::new();
    for at in 0..c_uint::try_from(count).unwrap_or_default().min(FILTERS_MAX) {
        let mut values = [0; VALUES_MAX];
        let mut length = VALUES_MAX;
        let mut flags = 0;
        // SAFETY: room for as many values as are said, and for none of the name.
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
