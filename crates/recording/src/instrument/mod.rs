//! Simulated instruments: frames like the real ones, made before the clock starts, that can be told apart and verified
//! without keeping them.
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

/// Content that can't be made.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// No intensity makes such frames.
    #[error(
        "compressibility = {wished}: {kind} of this shape reaches {least:.2} to {greatest:.2} with bitshuffle and LZ4"
    )]
    OutOfReach {
        /// Of the data.
        kind: String,
        /// What was asked for.
        wished: f64,
        /// At the highest intensity.
        least: f64,
        /// At the lowest.
        greatest: f64,
    },
    /// The frames came out otherwise than the sample that the intensity was found with.
    #[error("compressibility = {wished}: the frames came out with {measured:.2}; write an intensity instead")]
    NotMet {
        /// What was asked for.
        wished: f64,
        /// What the frames have.
        measured: f64,
    },
    /// The pool does not fit.
    #[error("distinct = {distinct}: frames of {frame} make more than the {most} that are kept in memory")]
    TooMany {
        /// Frames asked for.
        distinct: u64,
        /// A frame.
        frame: Bytes,
        /// The limit.
        most: Bytes,
    },
    /// The same recipe and seed make other frames here.
    #[error("this build of nilometer makes other frames from the same seed")]
    Otherwise,
    /// A journal says that its frames are the user's own files.
    #[error(
        "the journal names `{0}` as what they are made from, and only files that the user names are read"
    )]
    NotNamed(String),
    /// No file is there.
    #[error("no file `{0}`")]
    NoFiles(String),
    /// A file that can't be a frame.
    #[error("{}: {why}", file.display())]
    File {
        /// Which.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// Memory for prepared frames: as a rule, and at most.
const POOL: u64 = 256 << 20;
const POOL_MAX: u64 = 4 << 30;
/// More are not made as a rule.
const DISTINCT: u64 = 32;
/// Frames that are made and tried before those that are kept.
const MADE_AT_ONCE: u64 = 4;

impl Content {
    /// Makes what is needed to deliver frames, on all processors; takes seconds. `shape` has the slowest dimension first.
    pub fn prepare(data: &Data, shape: &[u64], pixel: PixelType, seed: Seed) -> Result<Self, ContentError> {
        Content::prepare_stamped(data, shape, pixel, Stamp::new(seed, pixel))
    }

    /// The same with the stamp of another version.
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

    /// Memory that is taken to deliver frames of so many bytes, at the most: those that are repeated, and a few while they are made.
    pub fn memory(data: &Data, frame: Bytes) -> Bytes {
        let kept = match data.kind {
            DataKind::Incompressible => 1,
            _ => data.distinct.unwrap_or_else(|| (POOL / frame.0.max(1)).clamp(1, DISTINCT)),
        };
        Bytes((kept + MADE_AT_ONCE).saturating_mul(frame.0))
    }

    /// What it can be made from again; none for the user's own files.
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

    /// Makes a slot ready, once: [`Content::fill`] then makes any frame in it. What is beyond the frame becomes zero.
    pub fn prepare_slot(&self, slot: &mut [u8]) {
        match self {
            Content::Pattern(pattern) => pattern.prepare(slot),
            Content::Pool(_) => slot.fill(0),
        }
    }

    /// Makes frame `number` in a slot that was made ready.
    #[inline]
    pub fn fill(&self, number: u64, slot: &mut [u8]) {
        match self {
            Content::Pattern(pattern) => pattern.stamp(number, slot),
            Content::Pool(pool) => pool.fill(number, slot),
        }
    }

    /// Makes frame `number` in a slot that holds frame `before`. Where only stamps differ, only these are touched; other
    /// bytes of the slot may have been written over, and stay so.
    #[inline]
    pub fn change(&self, before: u64, number: u64, slot: &mut [u8]) {
        match self {
            Content::Pattern(pattern) => pattern.stamp(number, slot),
            Content::Pool(pool) => pool.change(before, number, slot),
        }
    }

    /// After so many frames they differ in their stamps only.
    pub fn distinct(&self) -> u64 {
        match self {
            Content::Pattern(_) => 1,
            Content::Pool(pool) => pool.distinct() as u64,
        }
    }

    /// Whether these bytes are frame `number`; if not, the first page of 4096 bytes that is wrong.
    pub fn verify(&self, number: u64, frame: &[u8]) -> Result<(), usize> {
        match self {
            Content::Pattern(pattern) => pattern.verify(number, frame),
            Content::Pool(pool) => pool.verify(number, frame),
        }
    }

    /// How many times smaller bitshuffle with LZ4 makes the frames, as measured on them.
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

/// So many frames by the recipe of their kind.
fn frames(data: &Data, grid: Grid, seed: Seed, count: usize) -> Vec<Vec<u8>> {
    let intensity = data.intensity.unwrap_or(1.0);
    let scene = recipe::scene(&data.kind, grid, seed, intensity).expect("it is made by a recipe");
    pool::by_all_processors(count, |frame| {
        let mut bytes = vec![0; grid.frame_bytes()];
        scene.rows(frame as u64, 0..grid.rows, &mut bytes);
        bytes
    })
}

/// How many frames are made.
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
