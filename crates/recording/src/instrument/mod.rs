//! Simulated instruments. Nilometer makes realistic frames before the clock starts, and can later identify and
//! verify each of them without keeping it.
//!
//! ```text
//! recipe (diffraction, tomography, ...) or the user's files -> pool of distinct frames -> copy and stamp -> slot
//! ```

mod argon;
mod diffraction;
mod files;
mod noise;
mod origin;
mod pattern;
mod pool;
mod recipe;
mod scene;
mod stamp;
mod tomography;
mod tune;
mod vlbi;

pub use origin::Origin;
pub use pattern::Pattern;
pub use pool::FramePool;

use std::path::PathBuf;

use nilometer_model::{Bytes, Data, DataKind, PixelType, Seed};

use scene::Grid;
use stamp::Stamp;

/// The content of an instrument's frames.
#[derive(Debug, Clone)]
pub enum Content {
    /// Random bytes, made in place.
    Pattern(Pattern),
    /// Prepared frames, copied.
    Pool(FramePool),
}

/// The reason why content can't be made.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// No intensity makes frames of this compressibility.
    #[error(
        "compressibility = {wished}: {kind} of this shape reaches {least:.2} to {greatest:.2} with bitshuffle and LZ4"
    )]
    OutOfReach {
        /// Kind of the data.
        kind: String,
        /// Compressibility that the user asked for.
        wished: f64,
        /// Compressibility at the highest intensity.
        least: f64,
        /// Compressibility at the lowest intensity.
        greatest: f64,
    },
    /// The frames compress otherwise than the sample that the search for the intensity used.
    #[error("compressibility = {wished}: the frames came out with {measured:.2}; write an intensity instead")]
    NotMet {
        /// Compressibility that the user asked for.
        wished: f64,
        /// Compressibility of the frames.
        measured: f64,
    },
    /// The pool does not fit in memory.
    #[error("distinct = {distinct}: frames of {frame} make more than the {most} that are kept in memory")]
    TooMany {
        /// Number of frames that the user asked for.
        distinct: u64,
        /// Bytes of a frame.
        frame: Bytes,
        /// The limit.
        most: Bytes,
    },
    /// The same recipe and seed make other frames with this build.
    #[error("this build of nilometer makes other frames from the same seed")]
    Otherwise,
    /// The journal names the user's own files as the source of its frames.
    #[error(
        "the journal names `{0}` as the source of its frames, but Nilometer reads only files that you name"
    )]
    NotNamed(String),
    /// No file matches the name.
    #[error("no file `{0}`")]
    NoFiles(String),
    /// The file can't be a frame.
    #[error("{}: {why}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The reason.
        why: String,
    },
}

/// Memory for prepared frames: default and maximum.
const POOL: u64 = 256 << 20;
const POOL_MAX: u64 = 4 << 30;
/// Most distinct frames by default.
const DISTINCT: u64 = 32;
/// Spare frames in the estimate of memory, for the time while the pool is made.
const MADE_AT_ONCE: u64 = 4;

impl Content {
    /// Makes everything needed to deliver frames. Uses all processors and takes seconds. `shape` has the
    /// slowest dimension first.
    pub fn prepare(data: &Data, shape: &[u64], pixel: PixelType, seed: Seed) -> Result<Self, ContentError> {
        Content::prepare_stamped(data, shape, pixel, Stamp::new(seed, pixel))
    }

    /// Does the same with the stamp of another version.
    fn prepare_stamped(
        data: &Data,
        shape: &[u64],
        pixel: PixelType,
        stamp: Stamp,
    ) -> Result<Self, ContentError> {
        let grid = Grid::new(shape, pixel);
        let seed = stamp.seed;
        match &data.kind {
            DataKind::Incompressible => incompressible(data, grid, seed),
            DataKind::Files(pattern) => Ok(Content::Pool(FramePool::new(files::load(pattern, grid)?, stamp))),
            _ => Ok(Content::Pool(made(data, shape, stamp, pixel)?)),
        }
    }

    /// Checks that frames can have the compressibility that the user asked for, if any. Makes two parts of a frame.
    ///
    /// # Errors
    /// The message has the range that frames of this kind and shape reach.
    pub fn check(data: &Data, shape: &[u64], pixel: PixelType, seed: Seed) -> Result<(), ContentError> {
        let grid = Grid::new(shape, pixel);
        match (&data.kind, data.compressibility) {
            (_, None) | (DataKind::Files(_), _) => Ok(()),
            (DataKind::Incompressible, _) => incompressible(data, grid, seed).map(drop),
            (kind, Some(wished)) => tune::checked_reach(kind, grid, seed, wished).map(drop),
        }
    }

    /// Upper bound on the memory needed to deliver frames of this size: the distinct frames, and a few while
    /// they are made.
    pub fn memory(data: &Data, frame: Bytes) -> Bytes {
        let kept = match data.kind {
            DataKind::Incompressible => 1,
            _ => data.distinct.unwrap_or_else(|| (POOL / frame.0.max(1)).clamp(1, DISTINCT)),
        };
        Bytes((kept + MADE_AT_ONCE).saturating_mul(frame.0))
    }

    /// Returns the recipe that makes the content again. `None` for the user's own files.
    pub fn origin(&self) -> Option<Origin> {
        match self {
            Content::Pattern(pattern) => Some(pattern.origin()),
            Content::Pool(pool) => pool.origin().cloned(),
        }
    }

    /// Bytes of a frame.
    pub fn frame_size(&self) -> usize {
        match self {
            Content::Pattern(pattern) => pattern.frame_size(),
            Content::Pool(pool) => pool.frame_size(),
        }
    }

    /// Prepares a slot once, so that [`Content::fill`] can make any frame in it. Zeroes the bytes after the
    /// frame.
    pub fn prepare_slot(&self, slot: &mut [u8]) {
        match self {
            Content::Pattern(pattern) => pattern.prepare(slot),
            Content::Pool(_) => slot.fill(0),
        }
    }

    /// Makes frame `number` in a prepared slot.
    #[inline]
    pub fn fill(&self, number: u64, slot: &mut [u8]) {
        match self {
            Content::Pattern(pattern) => pattern.stamp(number, slot),
            Content::Pool(pool) => pool.fill(number, slot),
        }
    }

    /// Makes frame `number` in a slot that holds frame `before`.
    ///
    /// If the two frames differ only in their stamps, this touches only the stamps. It does not restore other
    /// bytes of the slot that have since changed.
    #[inline]
    pub fn change(&self, before: u64, number: u64, slot: &mut [u8]) {
        match self {
            Content::Pattern(pattern) => pattern.stamp(number, slot),
            Content::Pool(pool) => pool.change(before, number, slot),
        }
    }

    /// Number of distinct frames. Frames this far apart differ only in their stamps.
    pub fn distinct(&self) -> u64 {
        match self {
            Content::Pattern(_) => 1,
            Content::Pool(pool) => pool.distinct() as u64,
        }
    }

    /// Checks that these bytes are frame `number`. The error is the index of the first wrong page of 4096
    /// bytes.
    pub fn verify(&self, number: u64, frame: &[u8]) -> Result<(), usize> {
        match self {
            Content::Pattern(pattern) => pattern.verify(number, frame),
            Content::Pool(pool) => pool.verify(number, frame),
        }
    }

    /// Returns the ratio by which bitshuffle with LZ4 shrinks the frames, measured on them.
    pub fn ratio(&self) -> f64 {
        match self {
            Content::Pattern(pattern) => {
                let mut frame = vec![0; pattern.frame_size()];
                pattern.prepare(&mut frame);
                pattern.stamp(0, &mut frame);
                frame.len() as f64 / pool::compressed_bytes(&frame, 1) as f64
            }
            Content::Pool(pool) => pool.ratio(),
        }
    }
}

fn incompressible(data: &Data, grid: Grid, seed: Seed) -> Result<Content, ContentError> {
    match data.compressibility {
        Some(wished) if !tune::is_near(1.0, wished, tune::TOLERANCE) => {
            let kind = data.kind.to_string();
            Err(ContentError::OutOfReach { kind, wished, least: 1.0, greatest: 1.0 })
        }
        _ => Ok(Content::Pattern(Pattern::new(seed, grid.frame_bytes()))),
    }
}

fn made(data: &Data, shape: &[u64], stamp: Stamp, pixel: PixelType) -> Result<FramePool, ContentError> {
    let grid = Grid::new(shape, pixel);
    let distinct = distinct(data, grid)?;
    let resolved = Data { compressibility: None, distinct: Some(distinct as u64), ..data.clone() };
    let frames = |intensity: Option<f64>| {
        let resolved = Data { intensity, ..resolved.clone() };
        let frames = frames(&resolved, grid, stamp.seed, distinct);
        FramePool::new(frames, stamp).with_origin(resolved, shape, pixel)
    };
    let usual = data.kind.usual_intensity();
    let Some(wished) = data.compressibility else { return Ok(frames(data.intensity.or(usual))) };
    let found = tune::intensity(&data.kind, grid, stamp.seed, wished)?;
    let pool = frames(usual.map(|_| found));
    match pool.ratio() {
        measured if tune::is_near(measured, wished, tune::TOLERANCE) => Ok(pool),
        measured => Err(ContentError::NotMet { wished, measured }),
    }
}

/// Makes `count` frames by the recipe of their kind.
fn frames(data: &Data, grid: Grid, seed: Seed, count: usize) -> Vec<Vec<u8>> {
    let intensity = data.intensity.unwrap_or(1.0);
    let scene = recipe::scene(&data.kind, grid, seed, intensity).expect("it is made by a recipe");
    pool::by_all_processors(count, |frame| {
        let mut bytes = vec![0; grid.frame_bytes()];
        scene.rows(frame as u64, 0..grid.rows, &mut bytes);
        bytes
    })
}

/// Returns the number of distinct frames to make.
fn distinct(data: &Data, grid: Grid) -> Result<usize, ContentError> {
    let frame = grid.frame_bytes() as u64;
    let distinct = data.distinct.unwrap_or_else(|| (POOL / frame).clamp(1, DISTINCT));
    if distinct > 1 && distinct * frame > POOL_MAX {
        return Err(ContentError::TooMany { distinct, frame: Bytes(frame), most: Bytes(POOL_MAX) });
    }
    Ok(distinct as usize)
}

#[cfg(test)]
mod tests;
