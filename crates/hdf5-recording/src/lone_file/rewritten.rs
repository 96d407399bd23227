//! Rewrites a file without a journal with other chunks, as `h5repack` does, but with as many threads as there are
//! processors.
//!
//! ```text
//! slabs of the file -> a band: rows of the dataset, as many as new chunks have
//!                   -> threads: cut, compress -> the library
//! ```

use std::{fs::File, thread};

use nilometer_codec::ElementSize;
use nilometer_hdf5::{BrokenObject, NewChunks, RewrittenFile, StoredShape, tree::NumberType};
use nilometer_model::{ByteRate, Bytes, ChunkShape, FrameCompression};
use nilometer_recording::{chunk, journal::Encoding};
use nilometer_storage::process::{available_memory, processors};

use super::{
    FRAME_RANK, LoneFile, LoneVerified, Unpacking,
    plain_copy::{Throttle, wait},
    slab::{BlockPlace, Slab, put_block},
};
use crate::{frame_filter, repair::path_of, settled_for};

/// The user's wishes for the new file. Anything not set stays as in the old one.
#[derive(Debug, Clone, Copy, Default)]
pub struct RewriteWishes {
    /// The compression of chunks.
    pub compression: Option<FrameCompression>,
    /// Dimensions of a chunk: all of the dataset's, or the last ones.
    pub chunk: Option<ChunkShape>,
}

/// The storage of the dataset in the new file.
#[derive(Debug, Clone, PartialEq)]
pub struct ChunkPlan {
    /// Dimensions of a chunk.
    pub chunk: Vec<u64>,
    /// The compression of chunks.
    pub compression: FrameCompression,
    element: ElementSize,
    /// Rows of the dataset that are put together: a multiple of a chunk's rows.
    band: u64,
}

/// The result of a rewrite.
#[derive(Debug, Clone)]
pub struct RewrittenFrames {
    /// The result of reading the old file.
    pub verified: LoneVerified,
    /// Bytes of all frames.
    pub bytes: u64,
    /// CRC-32 (ISO-HDLC) of them.
    pub checksum: u32,
    /// Number of chunks written.
    pub chunks: u64,
    /// Bytes of these chunks.
    pub stored: u64,
    /// Other objects of the file that were not copied.
    pub left_out: Vec<BrokenObject>,
}

/// Bytes of a chunk, at the most: some programs count them in 31 bits.
const CHUNK_MAX: u64 = 1 << 31;
/// Chunks per thread in a band, if there is memory for it.
const CHUNKS_A_THREAD: u64 = 4;
/// Bytes of a band, unless a row of chunks has more.
const BAND: u64 = 64 << 20;

impl LoneFile {
    /// Plans the storage of its frames by these wishes.
    ///
    /// # Errors
    /// If the wishes are impossible; the message has the alternatives.
    pub fn chunk_plan(&self, wishes: RewriteWishes) -> Result<ChunkPlan, String> {
        let chunk = self.new_chunk(wishes.chunk)?;
        let shape = &self.shape;
        let element = ElementSize::of(shape.element as u64).zip(number_of(shape));
        let (element, number) =
            element.ok_or_else(|| format!("elements of {} are not written", shape.kind))?;
        let compression = match (wishes.compression, self.unpacking) {
            (Some(compression), _) => settled_for(compression, number, &chunk)?,
            (None, Unpacking::Here(FrameCompression::Filter(filter))) => {
                return Err(format!(
                    "--compression: plug-ins fit their filters to chunks: name the filter, as {}",
                    filter.text()
                ));
            }
            (None, Unpacking::Here(compression)) => compression,
            (None, Unpacking::ByLibrary) if shape.filters.is_empty() => FrameCompression::None,
            (None, Unpacking::ByLibrary) => {
                return Err(
                    "--compression: Nilometer can't write the filters of this file: choose none, lz4, zstd, bslz4, \
                     bszstd or filter:NUMBER,VALUES"
                        .into(),
                );
            }
        };
        let plan = ChunkPlan { band: self.band(&chunk), chunk, compression, element };
        self.check_band(&plan)?;
        Ok(plan)
    }

    fn new_chunk(&self, wished: Option<ChunkShape>) -> Result<Vec<u64>, String> {
        let dimensions = &self.shape.dimensions;
        let rank = dimensions.len();
        let frame = FRAME_RANK.min(rank - 1);
        let chunk = match (wished, &self.shape.chunk) {
            (Some(wished), _) => {
                let sides = wished.sides();
                let missing = rank.checked_sub(sides.len()).ok_or_else(|| {
                    format!("--chunk {wished}: {} has {rank} dimensions: write as many, or fewer", self.name)
                })?;
                [vec![1; missing], sides.to_vec()].concat()
            }
            (None, Some(chunk)) => chunk.clone(),
            (None, None) => [vec![1; rank - frame], dimensions[rank - frame..].to_vec()].concat(),
        };
        let said = || chunk.iter().map(u64::to_string).collect::<Vec<_>>().join("x");
        let bytes = chunk.iter().fold(self.shape.element as u64, |all, side| all.saturating_mul(*side));
        if wished.is_some() && chunk.iter().zip(dimensions).any(|(chunk, side)| chunk > side) {
            return Err(format!("--chunk {}: {} has {dimensions:?}: write at most that", said(), self.name));
        }
        if bytes >= CHUNK_MAX {
            return Err(format!(
                "--chunk {}: a chunk has less than {}, and this has {}",
                said(),
                Bytes(CHUNK_MAX),
                Bytes(bytes)
            ));
        }
        Ok(chunk)
    }

    fn row_bytes(&self) -> u64 {
        let element = self.shape.element as u64;
        self.shape.dimensions[1..].iter().fold(element, |all, side| all.saturating_mul(*side))
    }

    /// Enough rows to keep all processors busy.
    fn band(&self, chunk: &[u64]) -> u64 {
        let along = self.shape.dimensions[1..].iter().zip(&chunk[1..]);
        let in_row = along.map(|(side, chunk)| side.div_ceil(*chunk)).product::<u64>().max(1);
        let wanted = (CHUNKS_A_THREAD * processors().len() as u64).div_ceil(in_row);
        let room = BAND / self.row_bytes().saturating_mul(chunk[0]).max(1);
        wanted.min(room).max(1) * chunk[0]
    }

    /// Bytes of memory for a band, its chunks, and a slab.
    pub fn memory_to_rewrite(&self, plan: &ChunkPlan) -> u64 {
        self.row_bytes().saturating_mul(2 * plan.band + self.chunk()[0])
    }

    /// Checks that a band, its chunks and a slab fit into memory.
    fn check_band(&self, plan: &ChunkPlan) -> Result<(), String> {
        let needed = self.memory_to_rewrite(plan);
        match available_memory() {
            Some(Bytes(available)) if needed > available / 2 => Err(format!(
                "--chunk: rows of such chunks are put together in {} of memory, and {} are available: write fewer frames in a \
                 chunk",
                Bytes(needed),
                Bytes(available)
            )),
            _ => Ok(()),
        }
    }

    /// Makes the new file, and reads at most at the given rate. It calls `go_on` regularly with the bytes of
    /// frames done, and stops when that returns false. Chunks without any existing frame are left out.
    ///
    /// # Errors
    /// Why it can't be made, or that it was interrupted.
    pub fn rewrite(
        &self,
        plan: &ChunkPlan,
        into: &File,
        at_most: Option<ByteRate>,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<RewrittenFrames, String> {
        let chunks =
            NewChunks { chunk: plan.chunk.clone(), filter: frame_filter(plan.compression, plan.element) };
        let file = RewrittenFile::create(&self.read, &self.dataset, &path_of(into), &chunks);
        let file = file.map_err(|error| error.to_string())?;
        let mut writer = BandWriter { of: self, plan, file, chunks: 0, stored: 0 };
        let throttle = Throttle::of(at_most);
        let mut checksum = crc32fast::Hasher::new();
        let mut verified = self.begun();
        let mut slab = Slab::of(self);
        let mut band = Vec::new();
        let mut bytes = 0;
        let mut first = 0;
        let rows = if self.shape.dimensions.contains(&0) { 0 } else { self.shape.dimensions[0] };
        let of_band = (plan.band * self.row_bytes()) as usize;
        for row in (0..rows).step_by(usize::try_from(self.chunk()[0]).unwrap_or(usize::MAX)) {
            let mut read = slab.read(row, &mut verified);
            checksum.update(read);
            bytes += read.len() as u64;
            while !read.is_empty() {
                let (taken, rest) = read.split_at(read.len().min(of_band - band.len()));
                band.extend_from_slice(taken);
                read = rest;
                if band.len() == of_band {
                    writer.write(first, &band, &verified)?;
                    first += plan.band;
                    band.clear();
                }
            }
            wait(&throttle, bytes, go_on)?;
        }
        writer.write(first, &band, &verified)?;
        self.take_flags(&mut verified);
        let BandWriter { file, chunks, stored, .. } = writer;
        let left_out = file.close().map_err(|error| error.to_string())?;
        Ok(RewrittenFrames { verified, bytes, checksum: checksum.finalize(), chunks, stored, left_out })
    }
}

/// The number type of such elements.
fn number_of(shape: &StoredShape) -> Option<NumberType> {
    NumberType::ALL.into_iter().find(|number| format!("{number:?}").to_lowercase() == shape.kind)
}

/// Writes bands into the new file.
struct BandWriter<'a> {
    of: &'a LoneFile,
    plan: &'a ChunkPlan,
    file: RewrittenFile,
    chunks: u64,
    stored: u64,
}

/// A chunk in its stored form.
struct PackedChunk {
    bytes: Vec<u8>,
    unfiltered: bool,
}

impl BandWriter<'_> {
    /// Writes the rows of a band from this one on; the last band may have fewer rows.
    fn write(&mut self, first: u64, band: &[u8], verified: &LoneVerified) -> Result<(), String> {
        let rows = band.len() as u64 / self.of.row_bytes().max(1);
        if rows == 0 {
            return Ok(());
        }
        let begins = self.begins(first, rows, verified);
        let source = Band { shape: &self.of.shape, plan: self.plan, first, rows, bytes: band };
        for (begin, packed) in begins.iter().zip(source.all_packed(&begins)) {
            let PackedChunk { bytes, unfiltered } = packed?;
            let put = self.file.put_chunk(begin, &bytes, unfiltered);
            put.map_err(|error| format!("can't write it: {error}"))?;
            self.chunks += 1;
            self.stored += bytes.len() as u64;
        }
        Ok(())
    }

    /// The positions of the new chunks in these rows that contain an existing frame.
    fn begins(&self, first: u64, rows: u64, verified: &LoneVerified) -> Vec<Vec<u64>> {
        let of_row: u64 = self.of.lead()[1..].iter().product();
        let is_there = |frame: u64| !verified.missing.contains(frame) && !verified.damaged.contains(frame);
        let mut begins = Vec::new();
        for row in (first..first + rows).step_by(self.plan.chunk[0] as usize) {
            let end = (row + self.plan.chunk[0]).min(first + rows);
            if (row * of_row..end * of_row).any(is_there) {
                self.add_row(row, &mut begins);
            }
        }
        begins
    }

    /// Adds all chunks that begin with a row.
    fn add_row(&self, row: u64, begins: &mut Vec<Vec<u64>>) {
        let dimensions = &self.of.shape.dimensions;
        let mut begin = vec![0; dimensions.len()];
        begin[0] = row;
        loop {
            begins.push(begin.clone());
            let next = (1..begin.len()).rev().find(|at| begin[*at] + self.plan.chunk[*at] < dimensions[*at]);
            let Some(next) = next else { return };
            begin[next] += self.plan.chunk[next];
            begin[next + 1..].fill(0);
        }
    }
}

/// Rows of the dataset, put together.
struct Band<'a> {
    shape: &'a StoredShape,
    plan: &'a ChunkPlan,
    first: u64,
    rows: u64,
    bytes: &'a [u8],
}

impl Band<'_> {
    /// Packs the chunks at these positions, with as many threads as there are processors.
    fn all_packed(&self, begins: &[Vec<u64>]) -> Vec<Result<PackedChunk, String>> {
        let threads = processors().len().clamp(1, begins.len().max(1));
        let mut parts: Vec<_> = thread::scope(|scope| {
            let share = |number: usize| begins.iter().skip(number).step_by(threads);
            let pack = |number| scope.spawn(move || share(number).map(|begin| self.packed(begin)).collect());
            let running: Vec<_> = (0..threads).map(pack).collect();
            running
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|_| Vec::new()).into_iter())
                .collect()
        });
        let failed = || Err("a thread that packs chunks ended".to_owned());
        (0..begins.len()).map(|at| parts[at % threads].next().unwrap_or_else(failed)).collect()
    }

    /// Cuts out and packs a chunk, with fill values beyond the edges of the dataset.
    fn packed(&self, begin: &[u64]) -> Result<PackedChunk, String> {
        let StoredShape { dimensions, element, fill, .. } = self.shape;
        let ChunkPlan { chunk, compression, element: kind, .. } = self.plan;
        let mut sides = dimensions.clone();
        sides[0] = self.rows;
        let mut place = begin.to_vec();
        place[0] -= self.first;
        let size: Vec<u64> =
            sides.iter().zip(&place).zip(chunk).map(|((side, at), chunk)| (*chunk).min(side - at)).collect();
        let elements = chunk.iter().product::<u64>() as usize;
        let mut plain = if size == *chunk { vec![0; elements * element] } else { fill.repeat(elements) };
        let from = BlockPlace { sides: &sides, begin: &place };
        let into = BlockPlace { sides: chunk, begin: &vec![0; chunk.len()] };
        put_block(self.bytes, from, &mut plain, into, &size, *element);
        if *compression == FrameCompression::None {
            return Ok(PackedChunk { bytes: plain, unfiltered: false });
        }
        let most = Encoding::of_chunk(*compression, *kind).length_max(plain.len() as u64);
        let mut packed = vec![0; most as usize];
        match chunk::encode(*compression, *kind, &plain, &mut packed).map_err(|error| error.to_string())? {
            Some(length) => {
                packed.truncate(length);
                Ok(PackedChunk { bytes: packed, unfiltered: false })
            }
            // The filter did not make it smaller.
            None => Ok(PackedChunk { bytes: plain, unfiltered: true }),
        }
    }
}
