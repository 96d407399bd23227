//! Assembles rows of a dataset from their chunks.

use std::os::unix::fs::FileExt;

use nilometer_codec::ElementSize;
use nilometer_hdf5::{ChunkPlace, reads_next, still_reads};
use nilometer_model::FrameCompression;
use nilometer_recording::chunk;

use super::{LoneDamage, LoneFile, LoneVerified, Unpacking};

/// How much longer a stored chunk may be than an unpacked one: a share of it, and a number of bytes.
const LONGER: u64 = 4;
const LONGER_BYTES: u64 = 64 << 10;

/// Fletcher's checksum: its registered number, and its bytes at the end of a chunk.
const FLETCHER: u32 = 3;
const FLETCHER_BYTES: u64 = 4;
/// Elements filled at once.
const FILLED_AT_ONCE: usize = 4096;
/// Bytes of a chunk read at once.
const AT_ONCE: usize = 16 << 20;

/// Memory for the rows of one row of chunks.
pub(super) struct Slab<'a> {
    of: &'a LoneFile,
    /// Dimensions of a chunk.
    chunk: Vec<u64>,
    rows: Vec<u8>,
    stored: Vec<u8>,
    unpacked: Vec<u8>,
}

impl<'a> Slab<'a> {
    pub(super) fn of(file: &'a LoneFile) -> Self {
        Slab { of: file, chunk: file.chunk(), rows: Vec::new(), stored: Vec::new(), unpacked: Vec::new() }
    }

    /// Reads the rows of the chunks that begin with row `first`.
    pub(super) fn read(&mut self, first: u64, verified: &mut LoneVerified) -> &[u8] {
        let dimensions = &self.of.shape.dimensions;
        let mut sides = dimensions.clone();
        sides[0] = self.chunk[0].min(dimensions[0] - first);
        let count = sides.iter().product::<u64>();
        self.fill(count);
        let mut begin = vec![0; dimensions.len()];
        begin[0] = first;
        loop {
            self.take_chunk(&begin, &sides, verified);
            if !self.go_on(&mut begin) {
                return &self.rows;
            }
        }
    }

    /// Fills the rows with `count` elements of the dataset's fill value.
    fn fill(&mut self, count: u64) {
        let fill = &self.of.shape.fill;
        let bytes = count as usize * fill.len();
        self.rows.clear();
        if fill.iter().all(|byte| *byte == 0) {
            self.rows.resize(bytes, 0);
            return;
        }
        let piece = fill.repeat(FILLED_AT_ONCE);
        while self.rows.len() < bytes {
            let length = piece.len().min(bytes - self.rows.len());
            self.rows.extend_from_slice(&piece[..length]);
        }
    }

    /// Moves on to the next chunk of these rows; false after the last.
    fn go_on(&self, begin: &mut [u64]) -> bool {
        for at in (1..begin.len()).rev() {
            begin[at] += self.chunk[at];
            if begin[at] < self.of.shape.dimensions[at] {
                return true;
            }
            begin[at] = 0;
        }
        false
    }

    /// Reads a chunk into the rows, which have these sides, or records its damage.
    fn take_chunk(&mut self, begin: &[u64], sides: &[u64], verified: &mut LoneVerified) {
        let size = self.clipped(begin);
        let place = self.of.places.get(begin).copied();
        let is_there = place.is_some() || self.of.shape.chunk.is_none() && self.of.shape.is_there;
        if !is_there {
            self.each_frame(begin, &size, |frame| verified.missing.add(frame));
            return;
        }
        reads_next(format_args!("the chunk at {begin:?} of {}", self.of.name));
        if let Err(why) = self.unpack(begin, &size, place) {
            let mut frame = None;
            self.each_frame(begin, &size, |number| {
                frame.get_or_insert(number);
                verified.damaged.add(number);
            });
            verified.damage(LoneDamage { begin: begin.into(), frame: frame.unwrap_or(0), why });
            return;
        }
        // The library unpacks only the part inside the dataset, our codecs the whole chunk.
        let unpacked = if self.of.unpacking == Unpacking::ByLibrary { &size } else { &self.chunk };
        let place = std::iter::once(0).chain(begin[1..].iter().copied()).collect::<Vec<_>>();
        let from = BlockPlace { sides: unpacked, begin: &vec![0; place.len()] };
        let into = BlockPlace { sides, begin: &place };
        put_block(&self.unpacked, from, &mut self.rows, into, &size, self.of.shape.element);
    }

    /// The part of a chunk inside the dataset.
    fn clipped(&self, begin: &[u64]) -> Vec<u64> {
        let sides = self.of.shape.dimensions.iter().zip(begin).zip(&self.chunk);
        sides.map(|((side, begin), chunk)| (*chunk).min(side - begin)).collect()
    }

    /// Checks that the bytes of a chunk are in the file, and enough for the library's filters. Some filters read
    /// their checksum without checking the length.
    fn check_place(&self, place: ChunkPlace) -> Result<(), String> {
        let end = place.offset.checked_add(place.bytes);
        if end.is_none_or(|end| end > self.of.bytes) {
            return Err(format!(
                "lies behind the end of the file, at {} with {} B",
                place.offset, place.bytes
            ));
        }
        let is_checked = self.of.shape.filters.iter().any(|filter| filter.number == FLETCHER);
        let least = if is_checked { FLETCHER_BYTES } else { 0 };
        if place.bytes <= least {
            return Err(format!("has {} B, too few to be unpacked", place.bytes));
        }
        Ok(())
    }

    fn unpack(&mut self, begin: &[u64], size: &[u64], place: Option<ChunkPlace>) -> Result<(), String> {
        let element = self.of.shape.element;
        if let Some(place) = place {
            self.check_place(place)?;
        }
        let (Unpacking::Here(compression), Some(place)) = (self.of.unpacking, place) else {
            self.unpacked.resize(size.iter().product::<u64>() as usize * element, 0);
            let read = self.of.dataset.read_block(begin, size, &mut self.unpacked);
            return read.map_err(|error| error.to_string());
        };
        let bytes = self.chunk.iter().product::<u64>() * element as u64;
        if place.bytes > bytes + bytes / LONGER + LONGER_BYTES {
            return Err(format!("has {} B by the index, but only {bytes} B unpacked", place.bytes));
        }
        self.stored.resize(place.bytes as usize, 0);
        for (piece, at) in self.stored.chunks_mut(AT_ONCE).zip((place.offset..).step_by(AT_ONCE)) {
            self.of.file.read_exact_at(piece, at).map_err(|error| format!("can't be read: {error}"))?;
            still_reads();
        }
        self.unpacked.resize(bytes as usize, 0);
        if place.unfiltered & 1 != 0 || compression == FrameCompression::None {
            if place.bytes != bytes {
                return Err(format!("has {} B, and not {bytes} B", place.bytes));
            }
            self.unpacked.copy_from_slice(&self.stored);
            return Ok(());
        }
        let element = ElementSize::of(element as u64).ok_or("has elements of an unknown size")?;
        chunk::decode(compression, element, &self.stored, &mut self.unpacked)
            .map_err(|error| error.to_string())
    }

    /// Passes the numbers of all frames that overlap a block of the dataset, in order.
    fn each_frame(&self, begin: &[u64], size: &[u64], mut take: impl FnMut(u64)) {
        let lead = self.of.lead();
        let mut at = vec![0; lead.len()];
        loop {
            let place = at.iter().zip(begin).map(|(at, begin)| at + begin);
            take(place.zip(lead).fold(0, |number, (place, side)| number * side + place));
            let next = (0..lead.len()).rev().find(|dimension| at[*dimension] + 1 < size[*dimension]);
            let Some(next) = next else { return };
            at[next] += 1;
            at[next + 1..].fill(0);
        }
    }
}

/// The position of a block in an array with these sides.
#[derive(Clone, Copy)]
pub(super) struct BlockPlace<'a> {
    pub(super) sides: &'a [u64],
    pub(super) begin: &'a [u64],
}

impl BlockPlace<'_> {
    /// The index of a row of the block.
    fn index(self, row: &[u64]) -> usize {
        index_of(self.sides, row.iter().zip(self.begin).map(|(row, begin)| row + begin))
    }
}

/// Copies a block of this size from one array into another; both have elements of `element` bytes.
pub(super) fn put_block(
    from: &[u8],
    from_at: BlockPlace<'_>,
    into: &mut [u8],
    into_at: BlockPlace<'_>,
    size: &[u64],
    element: usize,
) {
    let last = size.len() - 1;
    let run = size[last] as usize * element;
    let mut row: Vec<u64> = vec![0; size.len()];
    loop {
        let source = from_at.index(&row) * element;
        let target = into_at.index(&row) * element;
        into[target..target + run].copy_from_slice(&from[source..source + run]);
        let Some(next) = (0..last).rev().find(|at| row[*at] + 1 < size[*at]) else { return };
        row[next] += 1;
        row[next + 1..].fill(0);
    }
}

/// The index of the element at this place, in an array with these sides.
fn index_of(sides: &[u64], place: impl Iterator<Item = u64>) -> usize {
    sides.iter().zip(place).fold(0, |all, (side, at)| all * side + at) as usize
}
