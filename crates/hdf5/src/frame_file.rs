//! A file that is being written.

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
    /// Readers may have it open while it grows (single writer, multiple readers).
    pub watched: bool,
    /// All but the superblock, which files begin with, gets its room behind so many bytes: what is in front of that is in
    /// the file already.
    pub begin: u64,
    /// Each of several datasets has frames of its own, counted from 0, and is as long as these are many. Else a frame has the
    /// same place in all.
    pub apart: bool,
}

impl Default for Hdf5FileOptions {
    fn default() -> Self {
        Hdf5FileOptions { watched: true, begin: 0, apart: false }
    }
}

/// A chunk of a frame whose bytes are in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredChunk {
    /// Which of the file's datasets of frames it belongs to, in the order of the tree.
    pub dataset: usize,
    /// Which frame of it, from 0: the first of those that the chunk has something of.
    pub frame: u64,
    /// Which chunk of the frame, in the order of [`FramesShape::offset`]: 0 where a frame is one.
    pub tile: u64,
    /// Where its bytes begin in the file.
    pub offset: u64,
    /// How many they are.
    pub bytes: u32,
    /// They are those of the pixels, though the dataset has a filter.
    pub unfiltered: bool,
}

/// A file of frames while it is written. Nothing here waits for storage: what is to be written comes out of
/// [`Hdf5File::next_write`], and is to be carried out in this order, each when the one before is done.
///
/// The frames themselves are written by the owner: [`Hdf5File::allocate`] says where, and [`Hdf5File::insert`] is told
/// once they are there. A reader finds them when what [`Hdf5File::flush`] queued is written.
#[derive(Debug)]
pub struct Hdf5File {
    planted: Planted,
    /// Closed behind the datasets.
    file: Handle,
    image: SharedImage,
    name: CString,
    /// Frames that there is room for in the columns.
    frames: u64,
    /// The same of each dataset of frames.
    lengths: Vec<u64>,
    /// See [`Hdf5FileOptions::apart`].
    apart: bool,
    inserted: Vec<StoredChunk>,
    /// Where the chunk begins that is put into the index.
    position: Vec<u64>,
    /// Of each column, what is to be written.
    values: Vec<BTreeMap<u64, ColumnValue>>,
    /// Of each column, the chunks that are there.
    chunks: Vec<BTreeSet<u64>>,
}

impl Hdf5File {
    /// A new file: all of the tree that is not to be written at its end is queued. The name is for messages.
    ///
    /// # Errors
    /// If the tree describes what HDF5 can't have.
    pub fn create(label: &str, tree: &TreeGroup, options: Hdf5FileOptions) -> Result<Self, Hdf5Error> {
        let image = SharedImage::default();
        if options.begin > 0 {
            driver::lock(&image).begin_behind(options.begin);
        }
        let name = name(label)?;
        let creation = properties(PropertyClass::FileCreation)?;
        keep_in_group(&creation, tree)?;
        let access = access()?;
        // SAFETY: identifiers that are open, and a text that ends with zero.
        let file = unsafe {
            let what = || format!("make {label}");
            // All room is given by the driver.
            let none = ffi::H5F_FSPACE_STRATEGY_NONE;
            checked(ffi::H5Pset_file_space_strategy(creation.id(), none, false, 1), what)?;
            let create = || ffi::H5Fcreate(name.as_ptr(), ffi::H5F_ACC_TRUNC, creation.id(), access.id());
            Handle::of(while_opening(&image, create), what)?
        };
        let mut planted = Planted::default();
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

    /// Room for so many bytes of a frame, which begins and ends at a multiple of the alignment: what is left behind its
    /// bytes is nobody's.
    pub fn allocate(&mut self, bytes: u64, alignment: u64) -> u64 {
        self.image().allocate(bytes, alignment)
    }

    /// A frame is written.
    pub fn insert(&mut self, chunk: StoredChunk) {
        self.inserted.push(chunk);
    }

    /// The value of a frame in a column, by its place among [`Hdf5File::columns`].
    pub fn set(&mut self, column: usize, frame: u64, value: impl Into<ColumnValue>) {
        self.values[column].insert(frame, value.into());
    }

    /// The values of so many frames get their places in a column, in chunks of [`COLUMN_CHUNK`], so that they can be written
    /// in place later: those of which nothing is known too.
    pub fn place_column(&mut self, column: usize, frames: u64) {
        for first in (0..frames).step_by(COLUMN_CHUNK as usize) {
            let is_there = self.chunks[column].contains(&(first / COLUMN_CHUNK));
            if !is_there && self.values[column].range(first..first + COLUMN_CHUNK).next().is_none() {
                self.set(column, first, ColumnValue::Unknown);
            }
        }
    }

    /// What was inserted and set is to be seen by readers: queues what has to be written for that.
    ///
    /// Frames come before what columns say of them. Flushed at once, columns would be written first: whoever reads in between,
    /// or after a kill there, would find frames said to be whole that are not there.
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

    /// What the library holds back is queued.
    fn queue_all(&self) -> Result<(), Hdf5Error> {
        // SAFETY: the file is open.
        checked(unsafe { ffi::H5Fflush(self.file.id(), ffi::H5F_SCOPE_LOCAL) }, || "flush".into())
    }

    /// The datasets get as long as what was inserted and set.
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
        // SAFETY: as many numbers as the dataset has dimensions.
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
            // SAFETY: it has one dimension.
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
        // SAFETY: a place in each dimension; the driver knows the pointer, and nobody reads there.
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
        // SAFETY: as many values as both spaces have selected.
        let status = unsafe {
            let from = run.as_ptr().cast();
            ffi::H5Dwrite(dataset.handle.id(), kind, memory.id(), file.id(), H5P_DEFAULT, from)
        };
        checked(status, || format!("write {}", dataset.description.key))
    }

    /// What is to be written next, when the write before it is done.
    pub fn next_write(&mut self) -> Option<FileWrite> {
        self.image().next_write()
    }

    /// The rest of a write that was not done: it is the next one.
    pub fn put_back(&mut self, write: FileWrite) {
        self.image().put_back(write);
    }

    /// Bytes of memory that its metadata take. They grow with the frames that are in it.
    pub fn memory(&self) -> u64 {
        self.image().memory()
    }

    /// Where all that was given room ends, in bytes from the start of the file: as far as it may be reserved.
    pub fn end(&self) -> u64 {
        self.image().end()
    }

    /// No frame comes any more: the datasets get this length, or the columns alone if each has frames of its own; what of the
    /// tree is to be written at the end is queued, with the values that it has now. [`ClosedFile`] has the rest of the writes.
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
        // SAFETY: an identifier that is open, and a text that ends with zero.
        let open = || unsafe { ffi::H5Fopen(name.as_ptr(), ffi::H5F_ACC_RDWR, access.id()) };
        let file = Handle::of(while_opening(&image, open), || "open it again".into())?;
        Planted::default().group(file.id(), "", tree, WriteTime::Closing)?;
        close(file)?;
        driver::lock(&image).queue_addition();
        Ok(ClosedFile { image })
    }
}

/// What is left to be written of a file that is closed.
#[derive(Debug)]
pub struct ClosedFile {
    image: SharedImage,
}

impl ClosedFile {
    /// What is to be written next, when the write before it is done.
    pub fn next_write(&mut self) -> Option<FileWrite> {
        driver::lock(&self.image).next_write()
    }

    /// The rest of a write that was not done: it is the next one.
    pub fn put_back(&mut self, write: FileWrite) {
        driver::lock(&self.image).put_back(write);
    }

    /// Bytes of memory that its metadata take.
    pub fn memory(&self) -> u64 {
        driver::lock(&self.image).memory()
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        driver::lock(&self.image).written()
    }
}

/// How many there are up to the last.
fn upto(last: Option<u64>) -> u64 {
    last.map_or(0, |last| last.saturating_add(1))
}

fn close(file: Handle) -> Result<(), Hdf5Error> {
    // SAFETY: it is open, and not used any more.
    let closed = checked(unsafe { ffi::H5Fclose(file.id()) }, || "close it".into());
    file.forget();
    closed
}

/// By our driver, in the format that HDF5 1.10 and later read.
pub(crate) fn access() -> Result<Handle, Hdf5Error> {
    let access = properties(PropertyClass::FileAccess)?;
    let what = || "choose how files are opened".to_owned();
    // SAFETY: identifiers that are open; the driver takes no information.
    unsafe {
        checked(ffi::H5Pset_driver(access.id(), driver::driver(), std::ptr::null()), what)?;
        checked(ffi::H5Pset_libver_bounds(access.id(), ffi::H5F_LIBVER_V110, ffi::H5F_LIBVER_V110), what)?;
    }
    Ok(access)
}
