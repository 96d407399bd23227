//! Files of a Mark 6 group: each disk has some of the blocks of a stream, in no fixed order.
//!
//! ```text
//! file header, 20 B: 0xFEED6666, version 2, block size, packet format, packet size
//! block: number (4 B), size with these 8 B (4 B), data
//! ```
//!
//! All numbers are little-endian and signed (`mark6sg` of `DiFX`, and jive5ab, `mk6info.cc`).

use std::{io, path::PathBuf, sync::Arc};

use nilometer_model::{Bytes, Storing};

use super::{
    foreign_file::{ForeignFile, lane_of, source_file},
    joined_blocks::{BlockLayout, JoinedBlocks, PlacedBlock},
    plain_file::{NOT_RECOGNIZED, notes_of},
    shape::{StreamShape, read_up_to},
};
use crate::{
    ForeignFacts, ForeignKind,
    reader::Recording,
    recording_storage::{MountedDirectories, StoredFile},
};

/// The first bytes of a file.
pub(super) const MAGIC: [u8; 4] = 0xfeed_6666_u32.to_le_bytes();
/// The version that this reads, the only one that recorders write today.
const VERSION: u32 = 2;
const FILE_HEADER: usize = 20;
const BLOCK_HEADER: usize = 8;
/// Largest block.
const BLOCK_MAX: u32 = 1 << 30;

/// The blocks of a file, as far as their headers go on.
#[derive(Debug, Default, PartialEq, Eq)]
struct FileBlocks {
    /// Number, offset and size of the data of each.
    blocks: Vec<(u32, u64, u32)>,
    /// Why the headers do not go on to the end of the file.
    fault: Option<String>,
}

impl FileBlocks {
    /// Reads the headers of all blocks in a file of this length.
    fn read(file: &dyn StoredFile, length: u64) -> io::Result<Self> {
        let mut found = FileBlocks::default();
        let mut header = [0; FILE_HEADER];
        if read_up_to(file, &mut header, 0)? < FILE_HEADER {
            found.fault = Some("it is shorter than the header of a file".into());
            return Ok(found);
        }
        let [_, version, most, ..] = words::<5>(&header);
        if version != VERSION {
            found.fault = Some(format!("it is of version {version}: only version {VERSION} can be read"));
            return Ok(found);
        }
        let most = most.min(BLOCK_MAX);
        let mut at = FILE_HEADER as u64;
        while found.fault.is_none() && at < length {
            at = found.block(file, at, length, most)?;
        }
        Ok(found)
    }

    /// Reads the header of the block at an offset. Returns the offset of the next block.
    fn block(&mut self, file: &dyn StoredFile, at: u64, length: u64, most: u32) -> io::Result<u64> {
        let mut header = [0; BLOCK_HEADER];
        let there = read_up_to(file, &mut header, at)?;
        let [number, size] = words::<2>(&header);
        let is_header = there == BLOCK_HEADER
            && i32::try_from(number).is_ok()
            && size > BLOCK_HEADER as u32
            && size <= most;
        if !is_header {
            let left = Bytes(length - at);
            self.fault =
                Some(format!("no header of a block is at byte {at}: {left} from there on are not read"));
            return Ok(length);
        }
        let begin = at + BLOCK_HEADER as u64;
        let end = at + u64::from(size);
        if end > length {
            let cut = Bytes(end - length);
            self.fault = Some(format!("block {number} at byte {at} is cut: {cut} of it are not there"));
        }
        let data = end.min(length) - begin;
        if data > 0 {
            self.blocks.push((number, begin, data as u32));
        }
        Ok(end)
    }
}

fn words<const N: usize>(bytes: &[u8]) -> [u32; N] {
    let words = bytes.as_chunks().0;
    std::array::from_fn(|at| u32::from_le_bytes(words[at]))
}

/// Opens the recording of these files, of which there is at least one.
pub(super) fn open(name: &str, files: &[PathBuf]) -> io::Result<Recording> {
    let mut sources = Vec::new();
    let mut faults = Vec::new();
    for path in files {
        let read = source_file(path).and_then(|source| {
            let blocks = FileBlocks::read(&*source.opened.file, source.length)?;
            Ok((source, blocks))
        });
        match read {
            Ok((source, blocks)) => {
                faults.extend(blocks.fault.iter().map(|fault| format!("{}: {fault}", path.display())));
                sources.push((source, blocks));
            }
            Err(error) => faults.push(format!("{} can't be read: {error}", path.display())),
        }
    }
    let Some((source, at)) = first_block(&sources) else {
        let why = format!("it has no blocks of Mark 6: {}", faults.join("; "));
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    };
    let shape = StreamShape::find(&*source.opened.file, at)?.filter(|(_, begin)| *begin == at);
    let shape = shape.map(|(shape, _)| shape);
    let near = source.near;
    let notes = shape.map_or_else(|| vec![NOT_RECOGNIZED.into()], |shape| notes_of(&shape, 0));
    let (mut blocks, each) = joined(shape, sources);
    let twice = each.into_iter().filter(|block| !blocks.add(*block)).count();
    faults
        .extend((twice > 0).then(|| format!("{twice} blocks are there twice: the first one of each counts")));
    let files = files.len() as u64;
    let facts = ForeignFacts { kind: ForeignKind::Mark6, files, in_step: true, faults, notes };
    Ok(blocks.recording(name, near, Arc::new(MountedDirectories), facts))
}

/// The file with the block of the lowest number, and the offset of its data.
fn first_block(sources: &[(ForeignFile, FileBlocks)]) -> Option<(&ForeignFile, u64)> {
    let each = sources.iter().flat_map(|(source, of)| of.blocks.iter().map(move |block| (source, block)));
    each.min_by_key(|(_, (number, ..))| *number).map(|(source, (_, at, _))| (source, *at))
}

/// An empty index for the blocks of these files, and all blocks.
fn joined(
    shape: Option<StreamShape>,
    sources: Vec<(ForeignFile, FileBlocks)>,
) -> (JoinedBlocks, Vec<PlacedBlock>) {
    let sizes = sources.iter().flat_map(|(_, of)| &of.blocks).map(|(_, _, size)| u64::from(*size));
    let block_size = sizes.max().unwrap_or(1);
    let layout = BlockLayout {
        shape: shape.filter(|shape| shape.frame_size <= block_size),
        block_size,
        stride: block_size + BLOCK_HEADER as u64,
        blocks_per_file: u64::from(u32::MAX),
        storing: Storing::Growing,
    };
    let mut each = Vec::new();
    let mut lanes = Vec::new();
    for (source, of) in sources {
        let lane = lanes.len();
        for (number, offset, size) in of.blocks {
            each.push(PlacedBlock { number: number.into(), lane, file: 0, offset, size: size.into() });
        }
        lanes.push(lane_of(source));
    }
    (JoinedBlocks::new(layout, lanes), each)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::testing::InMemory;

    fn file(blocks: &[(u32, &[u8])]) -> Vec<u8> {
        let mut bytes: Vec<u8> =
            [0xfeed_6666_u32, 2, 108, 0, 50].iter().flat_map(|word| word.to_le_bytes()).collect();
        for (number, data) in blocks {
            bytes.extend(number.to_le_bytes());
            bytes.extend((data.len() as u32 + 8).to_le_bytes());
            bytes.extend(*data);
        }
        bytes
    }

    fn read(bytes: Vec<u8>) -> FileBlocks {
        let length = bytes.len() as u64;
        FileBlocks::read(&InMemory(bytes), length).expect("memory can be read")
    }

    #[test]
    fn blocks_are_found_by_their_headers() {
        let found = read(file(&[(3, &[1; 100]), (1, &[2; 50]), (7, &[3; 100])]));
        assert_eq!(
            found,
            FileBlocks { blocks: vec![(3, 28, 100), (1, 136, 50), (7, 194, 100)], fault: None }
        );
    }

    #[test]
    fn the_walk_ends_with_a_reason_where_no_header_follows() {
        let whole = file(&[(3, &[1; 100]), (1, &[2; 50])]);
        for (bytes, blocks, word) in [
            (whole[..whole.len() - 10].to_vec(), 2, "cut: 10 B"),
            (whole[..132].to_vec(), 1, "byte 128"),
            ([&whole[..], &[0; 64]].concat(), 2, "64 B from there on"),
            (file(&[(3, &[1; 101])]), 0, "no header of a block is at byte 20"),
            (file(&[(1 << 31, &[1; 20])]), 0, "no header of a block is at byte 20"),
            (whole[..19].to_vec(), 0, "shorter"),
            ([&whole[..4], &[9, 0, 0, 0], &whole[8..]].concat(), 0, "version 9"),
        ] {
            let found = read(bytes);
            assert_eq!(found.blocks.len(), blocks, "{found:?}");
            assert!(found.fault.as_ref().is_some_and(|fault| fault.contains(word)), "{found:?}");
        }
    }

    #[test]
    fn no_bytes_break_the_walk() {
        let corpus = vec![file(&[(3, &[1; 100]), (1, &[2; 50]), (7, &[3; 100])]), file(&[])];
        nilometer_fuzz::fuzz("headers of Mark 6", corpus, |bytes| {
            let found = read(bytes.to_vec());
            let data: u64 = found.blocks.iter().map(|(.., size)| u64::from(*size)).sum();
            assert!(data <= bytes.len() as u64);
        });
    }
}
