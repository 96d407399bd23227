//! Files that are read: which frames their index has, and what stands in their columns. Whoever reads frames reads them at
//! the places that the index says, without the library.

use std::{
    cell::OnceCell,
    collections::HashMap,
    ffi::{c_int, c_uint, c_void},
    path::Path,
};

use crate::{
    Hdf5Error,
    driver::{self, SharedImage, while_opening},
    ffi::{self, H5P_DEFAULT, H5S_ALL, HADDR_UNDEF, haddr_t, hsize_t},
    frame_file,
    handle::{self, Handle, checked, name, number_type},
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
            let null = std::ptr::null_mut();
            let rank = ffi::H5Sget_simple_extent_dims(space.id(), dimensions.as_mut_ptr(), null);
            checked(rank, what)?;
            let rank = usize::try_from(rank).unwrap_or_default();
            let dimensions = dimensions[..rank].to_vec();
            Ok(ReadDataset { handle, dimensions, label: path.into(), chunks: OnceCell::new() })
        }
    }
}

/// `H5S_MAX_RANK`.
const RANK_MAX: usize = 32;

/// Numbers of a dataset that are read at once, at the most: of one for each frame nobody would wait for the end.
const NUMBERS_MAX: u64 = 1 << 28;

impl ReadDataset {
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
