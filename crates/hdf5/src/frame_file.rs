//! A file being written.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::CString,
};

use crate::{
    ColumnValue, FileWrite, Hdf5Error,
    driver::{self, CHUNK_IN_PLACE, SharedImage, while_opening},
    ffi::{self, H5P_DEFAULT},
    handle::{Handle, PropertyClass, checked, element_type, keep_in_group, name, properties, space},
    image::FileImage,
    plant::{self, GrowingDataset, Planted, run_of},
    tree::{FrameColumn, FramesShape, TreeGroup, WriteTime},
};

pub use crate::plant::COLUMN_CHUNK;

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hdf5FileOptions {
    /// Readers may open the file while it grows (single writer, multiple readers).
    pub watched: bool,
    /// The first byte that the writer may use, except for the superblock, which always begins the file. Another
    /// writer has already filled the bytes before it.
    pub begin: u64,
    /// Each of several datasets counts its own frames from 0, and has its own length. Otherwise a frame has the
    /// same index in all datasets.
    pub apart: bool,
    /// Number of the first image in the file, from 1, for attributes that state it from the start.
    pub first_image: Option<u64>,
}

impl Default for Hdf5FileOptions {
    fn default() -> Self {
        Hdf5FileOptions { watched: true, begin: 0, apart: false, first_image: None }
    }
}

/// A chunk of a frame whose bytes are in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredChunk {
    /// Index of the dataset of frames that it belongs to, in the order of the tree.
    pub dataset: usize,
    /// Index of the frame in that dataset, from 0. For a stack: the first frame in the chunk.
    pub frame: u64,
    /// Index of the chunk within the frame, in the order of [`FramesShape::offset`]; 0 if a frame is one chunk.
    pub tile: u64,
    /// Position of its first byte in the file.
    pub offset: u64,
    /// Number of bytes.
    pub bytes: u32,
    /// The bytes are plain pixels, though the dataset has a filter.
    pub unfiltered: bool,
}

/// A file of frames while it is written. Nothing here waits for storage: take each write from
/// [`Hdf5File::next_write`] and carry them out in that order, each when the one before is done.
///
/// You write the frames yourself: [`Hdf5File::allocate`] gives the position, and you call [`Hdf5File::insert`]
/// once the frame is written. A reader finds the frames when the writes queued by [`Hdf5File::flush`] are done.
#[derive(Debug)]
pub struct Hdf5File {
    planted: Planted,
    /// Closed after the datasets.
    file: Handle,
    image: SharedImage,
    name: CString,
    /// Number of frames that the columns have room for.
    frames: u64,
    /// Number of frames that each dataset of frames has room for.
    lengths: Vec<u64>,
    /// The option [`Hdf5FileOptions::apart`].
    apart: bool,
    inserted: Vec<StoredChunk>,
    /// Position of the chunk being inserted, reused for each chunk.
    position: Vec<u64>,
    /// For each column, values not written yet, by frame.
    values: Vec<BTreeMap<u64, ColumnValue>>,
    /// For each column, the chunks that exist.
    chunks: Vec<BTreeSet<u64>>,
}

impl Hdf5File {
    /// Creates a file, and queues all of the tree except the parts written at its end. Messages use `label` as
    /// its name.
    ///
    /// # Errors
    /// Fails if the tree contains something that HDF5 does not support.
    pub fn create(label: &str, tree: &TreeGroup, options: Hdf5FileOptions) -> Result<Self, Hdf5Error> {
        let image = SharedImage::default();
        if options.begin > 0 {
            driver::lock(&image).begin_behind(options.begin);
        }
        let name = name(label)?;
        let creation = properties(PropertyClass::FileCreation)?;
        keep_in_group(&creation, tree)?;
        let access = access()?;
        // SAFETY: open identifiers, and a zero-terminated text.
        let file = unsafe {
            let what = || format!("make {label}");
            // The driver allocates all space.
            let none = ffi::H5F_FSPACE_STRATEGY_NONE;
            checked(ffi::H5Pset_file_space_strategy(creation.id(), none, false, 1), what)?;
            let create = || ffi::H5Fcreate(name.as_ptr(), ffi::H5F_ACC_TRUNC, creation.id(), access.id());
            Handle::of(while_opening(&image, create), what)?
        };
        let mut planted = Planted { first_image: options.first_image, ..Planted::default() };
        planted.group(file.id(), "", tree, WriteTime::Opening)?;
        plant::hard_links(file.id(), "", tree)?;
        if options.watched {
            // SAFETY: the file is open.
            checked(unsafe { ffi::H5Fstart_swmr_write(file.id()) }, || format!("let readers into {label}"))?;
        }
        let values = vec![BTreeMap::new(); planted.columns.len()];
        let chunks = vec![BTreeSet::new(); planted.columns.len()];
        let lengths = vec![0; planted.frames.len()];
        let mut made = Hdf5File {
            planted,
            file,
            image,
            name,
            frames: 0,
            lengths,
            apart: options.apart,
            inserted: Vec::new(),
            position: Vec::new(),
            values,
            chunks,
        };
        made.flush()?;
        Ok(made)
    }

    fn image(&self) -> std::sync::MutexGuard<'_, FileImage> {
        driver::lock(&self.image)
    }

    /// The datasets of frames, in the order of the tree.
    pub fn datasets(&self) -> impl Iterator<Item = &FramesShape> {
        self.planted.frames.iter().map(|dataset| &dataset.description)
    }

    /// The columns, in the order of the tree.
    pub fn columns(&self) -> impl Iterator<Item = &FrameColumn> {
        self.planted.columns.iter().map(|dataset| &dataset.description)
    }

    /// Allocates `bytes` for a frame. The room begins and ends at a multiple of the alignment; the rest of it
    /// stays unused.
    pub fn allocate(&mut self, bytes: u64, alignment: u64) -> u64 {
        self.image().allocate(bytes, alignment)
    }

    /// Records that a chunk is written, for the next flush.
    pub fn insert(&mut self, chunk: StoredChunk) {
        self.inserted.push(chunk);
    }

    /// Sets the value of a frame in a column, by the column's index in [`Hdf5File::columns`].
    pub fn set(&mut self, column: usize, frame: u64, value: impl Into<ColumnValue>) {
        self.values[column].insert(frame, value.into());
    }

    /// Allocates a column's values for the first `frames` frames, in chunks of [`COLUMN_CHUNK`]. All of them,
    /// even the unknown ones, can then be written in place later.
    pub fn place_column(&mut self, column: usize, frames: u64) {
        for first in (0..frames).step_by(COLUMN_CHUNK as usize) {
            let is_there = self.chunks[column].contains(&(first / COLUMN_CHUNK));
            if !is_there && self.values[column].range(first..first + COLUMN_CHUNK).next().is_none() {
                self.set(column, first, ColumnValue::Unknown);
            }
        }
    }

    /// Queues the writes that make inserted chunks and set values visible to readers.
    ///
    /// Frames come before their values in columns. A single flush would write columns first. A reader in between,
    /// or after a kill at that point, would then find frames marked whole that are not there.
    ///
    /// # Errors
    /// If HDF5 refuses.
    pub fn flush(&mut self) -> Result<(), Hdf5Error> {
        self.grow()?;
        let inserted = std::mem::take(&mut self.inserted);
        for chunk in &inserted {
            self.index(*chunk)?;
        }
        if !inserted.is_empty() {
            self.queue_all()?;
        }
        for column in 0..self.values.len() {
            let values = std::mem::take(&mut self.values[column]);
            self.put(column, &values)?;
        }
        self.queue_all()?;
        self.image().queue_superblock();
        Ok(())
    }

    /// Queues the writes that the library holds back.
    fn queue_all(&self) -> Result<(), Hdf5Error> {
        // SAFETY: the file is open.
        checked(unsafe { ffi::H5Fflush(self.file.id(), ffi::H5F_SCOPE_LOCAL) }, || "flush".into())
    }

    /// Extends the datasets to cover the inserted chunks and set values.
    fn grow(&mut self) -> Result<(), Hdf5Error> {
        let set = self.values.iter().filter_map(|values| values.last_key_value()).map(|(frame, _)| *frame);
        let mut last = set.max();
        for dataset in 0..self.lengths.len() {
            let chunks = self.inserted.iter().filter(|chunk| chunk.dataset == dataset);
            let of_dataset = chunks.map(|chunk| chunk.frame).max();
            if self.apart {
                self.grow_dataset(dataset, upto(of_dataset))?;
            } else {
                last = last.max(of_dataset);
            }
        }
        self.grow_to(upto(last))
    }

    fn grow_dataset(&mut self, dataset: usize, frames: u64) -> Result<(), Hdf5Error> {
        if frames <= self.lengths[dataset] {
            return Ok(());
        }
        let GrowingDataset { handle, description } = &self.planted.frames[dataset];
        let dimensions = description.dimensions(frames);
        // SAFETY: the array has as many numbers as the dataset has dimensions.
        let status = unsafe { ffi::H5Dset_extent(handle.id(), dimensions.as_ptr()) };
        checked(status, || format!("have {frames} frames"))?;
        self.lengths[dataset] = frames;
        Ok(())
    }

    fn grow_to(&mut self, frames: u64) -> Result<(), Hdf5Error> {
        if frames <= self.frames {
            return Ok(());
        }
        let what = || format!("have {frames} frames");
        let alike = if self.apart { 0 } else { self.lengths.len() };
        for dataset in 0..alike {
            self.grow_dataset(dataset, frames)?;
        }
        for column in &self.planted.columns {
            // SAFETY: the column has one dimension.
            checked(unsafe { ffi::H5Dset_extent(column.handle.id(), [frames].as_ptr()) }, what)?;
        }
        self.frames = frames;
        Ok(())
    }

    fn index(&mut self, chunk: StoredChunk) -> Result<(), Hdf5Error> {
        let StoredChunk { dataset, frame, tile, offset, bytes, unfiltered } = chunk;
        let dataset = &self.planted.frames[dataset];
        dataset.description.put_offset(frame, tile, &mut self.position);
        driver::lock(&self.image).place(offset, bytes.into());
        let from = CHUNK_IN_PLACE.as_ptr().cast();
        let mask = u32::from(unfiltered);
        // SAFETY: one number per dimension; the driver recognises the pointer, and nobody reads from it.
        let status = unsafe {
            let id = dataset.handle.id();
            ffi::H5Dwrite_chunk(id, H5P_DEFAULT, mask, self.position.as_ptr(), bytes as usize, from)
        };
        let asked = !self.image().forget_place();
        checked(status, || format!("have frame {frame} with {bytes} B"))?;
        if asked {
            return Ok(());
        }
        Err(Hdf5Error::Description { what: format!("frame {frame} is there already") })
    }

    fn put(&mut self, column: usize, values: &BTreeMap<u64, ColumnValue>) -> Result<(), Hdf5Error> {
        let mut run: Vec<u8> = Vec::new();
        let mut first = 0;
        let mut next = 0;
        self.chunks[column].extend(values.keys().map(|frame| frame / COLUMN_CHUNK));
        for (frame, value) in values {
            if *frame != next && !run.is_empty() {
                self.put_run(column, first, &run)?;
                run.clear();
            }
            if run.is_empty() {
                first = *frame;
            }
            run.extend(value.bytes(&self.planted.columns[column].description));
            next = frame + 1;
        }
        if run.is_empty() { Ok(()) } else { self.put_run(column, first, &run) }
    }

    fn put_run(&self, column: usize, first: u64, run: &[u8]) -> Result<(), Hdf5Error> {
        let dataset = &self.planted.columns[column];
        let kind = element_type(dataset.description.element);
        let count = (run.len() / dataset.description.element.bytes()) as u64;
        let memory = space(&[count], None)?;
        let file = space(&[self.frames], None)?;
        run_of(&file, &[self.frames], first..first + count, &[])?;
        // SAFETY: the buffer holds the values that both spaces select.
        let status = unsafe {
            let from = run.as_ptr().cast();
            ffi::H5Dwrite(dataset.handle.id(), kind, memory.id(), file.id(), H5P_DEFAULT, from)
        };
        checked(status, || format!("write {}", dataset.description.key))
    }

    /// The next write to carry out, when the one before is done.
    pub fn next_write(&mut self) -> Option<FileWrite> {
        self.image().next_write()
    }

    /// Puts back the unfinished rest of a write; it becomes the next one.
    pub fn put_back(&mut self, write: FileWrite) {
        self.image().put_back(write);
    }

    /// Bytes of memory that the metadata take. They grow with the frames in the file.
    pub fn memory(&self) -> u64 {
        self.image().memory()
    }

    /// End of the allocated space, in bytes from the start of the file. You may reserve the file up to here.
    pub fn end(&self) -> u64 {
        self.image().end()
    }

    /// Ends the file after the last frame. All datasets get the length `frames`, or only the columns if each
    /// dataset counts its own frames. The parts of the tree that belong at the end are queued with their current
    /// values. [`ClosedFile`] has the remaining writes.
    ///
    /// # Errors
    /// If HDF5 refuses.
    pub fn close(mut self, frames: u64, tree: &TreeGroup) -> Result<ClosedFile, Hdf5Error> {
        self.grow()?;
        self.grow_to(frames)?;
        self.flush()?;
        let Hdf5File { planted, file, image, name, .. } = self;
        drop(planted);
        close(file)?;
        driver::lock(&image).queue_superblock();
        driver::lock(&image).begin_addition();
        let access = access()?;
        // SAFETY: an open identifier, and a zero-terminated text.
        let open = || unsafe { ffi::H5Fopen(name.as_ptr(), ffi::H5F_ACC_RDWR, access.id()) };
        let file = Handle::of(while_opening(&image, open), || "open it again".into())?;
        Planted::default().group(file.id(), "", tree, WriteTime::Closing)?;
        close(file)?;
        driver::lock(&image).queue_addition();
        Ok(ClosedFile { image })
    }
}

/// The remaining writes of a closed file.
#[derive(Debug)]
pub struct ClosedFile {
    image: SharedImage,
}

impl ClosedFile {
    /// The next write to carry out, when the one before is done.
    pub fn next_write(&mut self) -> Option<FileWrite> {
        driver::lock(&self.image).next_write()
    }

    /// Puts back the unfinished rest of a write; it becomes the next one.
    pub fn put_back(&mut self, write: FileWrite) {
        driver::lock(&self.image).put_back(write);
    }

    /// Bytes of memory that the metadata take.
    pub fn memory(&self) -> u64 {
        driver::lock(&self.image).memory()
    }

    /// Size of the file in bytes.
    pub fn size(&self) -> u64 {
        driver::lock(&self.image).written()
    }
}

/// The number of items, if this is the index of the last.
fn upto(last: Option<u64>) -> u64 {
    last.map_or(0, |last| last.saturating_add(1))
}

fn close(file: Handle) -> Result<(), Hdf5Error> {
    // SAFETY: the file is open, and not used any more.
    let closed = checked(unsafe { ffi::H5Fclose(file.id()) }, || "close it".into());
    file.forget();
    closed
}

/// Access properties: our driver, and the format that HDF5 1.10 and later read.
pub(crate) fn access() -> Result<Handle, Hdf5Error> {
    let access = properties(PropertyClass::FileAccess)?;
    let what = || "choose how files are opened".to_owned();
    // SAFETY: open identifiers; the driver takes no information.
    unsafe {
        checked(ffi::H5Pset_driver(access.id(), driver::driver(), std::ptr::null()), what)?;
        checked(ffi::H5Pset_libver_bounds(access.id(), ffi::H5F_LIBVER_V110, ffi::H5F_LIBVER_V110), what)?;
    }
    Ok(access)
}
