//! A plain file: one frame after the other.

use std::{io, ops::Range, path::Path, sync::Arc};

use nilometer_model::{Bytes, Format, Storing, packets::VlbiMode};
use nilometer_wire::{Stamps, mark5b::Mark5bHeader};

use super::{
    foreign_file::{ForeignFile, lane_of, source_file},
    joined_blocks::{BlockLayout, JoinedBlocks, PlacedBlock, block_size},
    recognition::recognized,
    shape::{StreamShape, is_fill, read_up_to},
};
use crate::{
    ForeignFacts, ForeignKind,
    reader::Recording,
    recording_storage::{MountedDirectories, RecordingStorage, StoredFile},
};

/// The note about a stream of unknown frames.
pub(super) const NOT_RECOGNIZED: &str = "its frames are neither VDIF nor Mark5B: nothing checks its content";
/// Number of headers in the middle that opening a file checks.
const PROBES: u64 = 16;

/// Opens a file of frames. `None` if its beginning is no stream of frames.
pub(super) fn open(path: &Path, name: &str) -> io::Result<Option<Recording>> {
    let source = source_file(path)?;
    let found = recognized(&*source.opened.file)?;
    found.map(|(shape, begin)| open_from(source, name, &shape, begin)).transpose()
}

/// Opens a file from its first frame on, which has this shape and offset.
fn open_from(source: ForeignFile, name: &str, shape: &StreamShape, begin: u64) -> io::Result<Recording> {
    let notes = notes_of(shape, begin);
    let mut faults = rest_of(shape, begin..source.length);
    let astray = first_astray(&*source.opened.file, shape, begin..source.length)?;
    let in_step = astray.is_none();
    faults.extend(astray.map(|at| format!("no frame begins at byte {at}, where one should")));
    let facts = ForeignFacts { kind: ForeignKind::PlainFile, files: 1, in_step, faults, notes };
    let storage = Arc::new(MountedDirectories);
    Ok(of_bytes(source, name, shape, begin, storage, facts))
}

/// Opens a file of frames of this mode. The inner error says why it has none.
pub(super) fn open_as(path: &Path, name: &str, mode: &VlbiMode) -> io::Result<Result<Recording, String>> {
    if mode.stored() == Format::Raw {
        return open_raw(path, name, mode.frame_size().0).map(Ok);
    }
    let source = source_file(path)?;
    // The user vouches for frames: two headers are enough.
    let Some((shape, begin)) = StreamShape::find(&*source.opened.file, 0)? else {
        return Ok(Err(format!(
            "--mode {mode}: it has no such frames: no two headers of VDIF or Mark5B follow each other"
        )));
    };
    if !shape.is_of(mode) {
        return Ok(Err(format!("--mode {mode}: {}", other_frames(&shape))));
    }
    open_from(source, name, &shape, begin).map(Ok)
}

/// The frames of a file, in a message about others.
fn other_frames(shape: &StreamShape) -> String {
    format!(
        "its frames are {} of {} B: leave --mode out, or write theirs",
        shape.format.name(),
        shape.frame_size
    )
}

/// Opens a file of frames without a known header, one after the other from its first byte.
fn open_raw(path: &Path, name: &str, frame_size: u64) -> io::Result<Recording> {
    let source = source_file(path)?;
    let shape = StreamShape::raw(frame_size);
    let faults = rest_of(&shape, 0..source.length);
    let notes = vec![NOT_RECOGNIZED.into()];
    let facts = ForeignFacts { kind: ForeignKind::PlainFile, files: 1, in_step: true, faults, notes };
    Ok(of_bytes(source, name, &shape, 0, Arc::new(MountedDirectories), facts))
}

/// Returns the recording of a file whose frames begin at an offset, one after the other.
pub(super) fn of_bytes(
    source: ForeignFile,
    name: &str,
    shape: &StreamShape,
    begin: u64,
    storage: Arc<dyn RecordingStorage>,
    facts: ForeignFacts,
) -> Recording {
    let block_size = block_size(shape.frame_size, 0);
    let layout = BlockLayout {
        shape: Some(*shape),
        block_size,
        stride: block_size,
        blocks_per_file: u64::from(u32::MAX),
        storing: Storing::Files,
    };
    let ForeignFile { length, near, .. } = source;
    let mut blocks = JoinedBlocks::new(layout, vec![lane_of(source)]);
    let size = length.saturating_sub(begin);
    blocks.add_all(PlacedBlock { number: 0, lane: 0, file: 0, offset: begin, size });
    blocks.recording(name, near, storage, facts)
}

/// Notes for a reader of any stream without a journal.
pub(super) fn notes_of(shape: &StreamShape, begin: u64) -> Vec<String> {
    let mut notes = Vec::new();
    if begin > 0 {
        notes
            .push(format!("the first frame begins at byte {begin}: {} before it are left out", Bytes(begin)));
    }
    if shape.format == Format::Mark5b {
        notes.push(
            "Mark5B counts days up to 1000: the times are those nearest to the time of the file".into(),
        );
    }
    notes
}

/// The bytes after the last whole frame, in words.
fn rest_of(shape: &StreamShape, among: Range<u64>) -> Vec<String> {
    let length = among.end.saturating_sub(among.start);
    let frames = length / shape.frame_size;
    let rest = length % shape.frame_size;
    let at = among.end - rest;
    let size = Bytes(shape.frame_size);
    let line = || format!("after {frames} frames, {} of {size} are left from byte {at} on", Bytes(rest));
    (rest > 0).then(line).into_iter().collect()
}

/// Looks at a few headers in a file. Returns the first offset at which a frame should begin and does not.
fn first_astray(file: &dyn StoredFile, shape: &StreamShape, among: Range<u64>) -> io::Result<Option<u64>> {
    let frames = among.end.saturating_sub(among.start) / shape.frame_size;
    let last = u128::from(frames.saturating_sub(1));
    for probe in 1..=PROBES {
        let frame = last * u128::from(probe) / u128::from(PROBES);
        let at = among.start + frame as u64 * shape.frame_size;
        if !is_frame(file, shape, at)? {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// Returns true if a frame of the stream begins at an offset, or one that replaces it.
fn is_frame(file: &dyn StoredFile, shape: &StreamShape, at: u64) -> io::Result<bool> {
    let mut head = [0; Stamps::BYTES];
    let length = read_up_to(file, &mut head, at)?;
    let head = &head[..length];
    let is_alike = StreamShape::of(head).is_some_and(|other| other.frame_size == shape.frame_size);
    Ok(is_alike || is_fill(head) || head.len() < Mark5bHeader::SIZE)
}
