//! The user's own frames: CBF files, or files with the bytes of a frame.

use std::{io::Read, path::Path};

use nilometer_model::{Bytes, PixelType};

use super::{ContentError, POOL_MAX, scene::Grid};
use crate::{cbf, recording_file::open_named};

/// Loads the frames of the files that match `pattern`, sorted by name. `*` matches any text.
pub(super) fn load(pattern: &str, grid: Grid) -> Result<Vec<Vec<u8>>, ContentError> {
    let names = glob::glob(pattern)
        .map_err(|error| ContentError::File { file: pattern.into(), why: error.msg.into() })?;
    let mut frames = Vec::new();
    for name in names {
        let file = name.map_err(|error| {
            let why = error.error().to_string();
            ContentError::File { file: error.path().into(), why }
        })?;
        let read = frame(&file, grid).map_err(|why| ContentError::File { file, why })?;
        frames.push(read);
        let distinct = frames.len() as u64;
        let frame = Bytes(grid.frame_bytes() as u64);
        if distinct > 1 && distinct * frame.0 > POOL_MAX {
            return Err(ContentError::TooMany { distinct, frame, most: Bytes(POOL_MAX) });
        }
    }
    if frames.is_empty() { Err(ContentError::NoFiles(pattern.into())) } else { Ok(frames) }
}

/// Returns the bytes of a frame, or the reason why the file has none.
fn frame(file: &Path, grid: Grid) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = open_named(file).and_then(|mut file| file.read_to_end(&mut bytes));
    read.map_err(|error| error.to_string())?;
    if cbf::is_cbf(&bytes) { from_cbf(&bytes, grid) } else { from_raw(bytes, grid) }
}

fn from_raw(bytes: Vec<u8>, grid: Grid) -> Result<Vec<u8>, String> {
    if bytes.len() == grid.frame_bytes() {
        return Ok(bytes);
    }
    let [has, wanted] = [bytes.len(), grid.frame_bytes()].map(|bytes| Bytes(bytes as u64));
    Err(format!("has {has}, a frame of this instrument {wanted} ({} B)", wanted.0))
}

fn from_cbf(bytes: &[u8], grid: Grid) -> Result<Vec<u8>, String> {
    if grid.pixel != PixelType::Int32 {
        return Err("has pixels of int32, this instrument has others".into());
    }
    let (shape, pixels) = cbf::read(bytes).map_err(|error| error.to_string())?;
    let [height, width] = shape;
    if shape != [grid.rows, grid.width] {
        return Err(format!(
            "has {height} rows of {width} pixels, this instrument {} of {}",
            grid.rows, grid.width
        ));
    }
    Ok(pixels.into_iter().flat_map(i32::to_le_bytes).collect())
}
