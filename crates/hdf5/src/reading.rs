//! Files that are read: which frames their index has, and what stands in their columns. Whoever reads frames reads them at
//! the places that the index says, without the library.

use std::{
    ffi::{c_uint, c_void},
    path::Path,
};

use crate::{
    Hdf5Error,
    driver::{self, SharedImage, while_opening},
    ffi::{self, H5P_DEFAULT, H5S_ALL, HADDR_UNDEF},
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
            Ok(ReadDataset { handle, dimensions, label: path.into() })
        }
    }
}

/// `H5S_MAX_RANK`.
const RANK_MAX: usize = 32;

impl ReadDataset {
    /// Its dimensions, the slowest first.
    pub fn dimensions(&self) -> &[u64] {
        &self.dimensions
    }

    /// Where the chunk is that has the element at this place, if it is there.
    ///
    /// # Errors
    /// If the index is damaged, or the place is not in the dataset.
    pub fn chunk(&self, place: &[u64]) -> Result<Option<ChunkPlace>, Hdf5Error> {
        if place.len() != self.dimensions.len() {
            let what =
                format!("{} has {} dimensions, not {}", self.label, self.dimensions.len(), place.len());
            return Err(Hdf5Error::Description { what });
        }
        let mut unfiltered: c_uint = 0;
        let mut offset = HADDR_UNDEF;
        let mut bytes = 0;
        // SAFETY: a place in each dimension, and three numbers to be filled.
        let status = unsafe {
            let id = self.handle.id();
            ffi::H5Dget_chunk_info_by_coord(
                id,
                place.as_ptr(),
                &raw mut unfiltered,
                &raw mut offset,
                &raw mut bytes,
            )
        };
        checked(status, || format!("find the chunk at {place:?} of {}", self.label))?;
        Ok((offset != HADDR_UNDEF).then_some(ChunkPlace { offset, bytes, unfiltered }))
    }

    /// All its numbers, as whole numbers.
    ///
    /// # Errors
    /// If they can't be read so.
    pub fn numbers(&self) -> Result<Vec<i64>, Hdf5Error> {
        let count = self.dimensions.iter().product::<u64>();
        let mut numbers = vec![0_i64; count as usize];
        // SAFETY: room for as many numbers as there are.
        unsafe { self.read(NumberType::Int64, numbers.as_mut_ptr().cast())? };
        Ok(numbers)
    }

    /// All its numbers.
    ///
    /// # Errors
    /// If they can't be read so.
    pub fn floats(&self) -> Result<Vec<f64>, Hdf5Error> {
        let count = self.dimensions.iter().product::<u64>();
        let mut numbers = vec![0.0_f64; count as usize];
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
