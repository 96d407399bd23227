//! Storage systems with known properties: their speed in the long run, their stalls, the volume of their cache, the
//! cost of readers.
//!
//! Everything is scaled down: a frame has 64 KiB (smaller ones are written together) instead of several MB, and rates
//! are as much lower, so that a recording of 40 s at 100 frames a second is computed in milliseconds. Times are as
//! they are.

use std::sync::Arc;

use nilometer_model::{ByteRate, Nanos, RandomStream, Seed};
use nilometer_recording::journal;
use nilometer_storage::testing::{Cost, Device, Speed, WriteCache};

/// Bytes of a frame, of 256 x 256 pixels.
pub const FRAME_SIZE: u64 = 64 << 10;
/// Bytes that the device writes for a frame: the frame and its record in the journal.
const WRITTEN: u64 = FRAME_SIZE + journal::RECORD as u64;
/// Longer than any campaign.
const CAMPAIGN: f64 = 400.0;
/// Pieces in which the speed changes.
const PIECE: Nanos = Nanos::from_millis(50);

/// A kind of storage, by the property that makes it hard to judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StorageKind {
    /// Always the same rate.
    Constant,
    /// Noise of 20 %, anew in each piece of time.
    Noise,
    /// Noise that lasts half a second.
    LastingNoise,
    /// A drift of 3 % within seconds.
    Drift,
    /// Stalls that the buffer covers.
    Stalls,
    /// Stalls longer than the buffer lasts.
    StallsBeyondBuffer,
    /// A cache that takes some seconds of data faster than the device.
    Cache,
    /// A cache before a device with stalls.
    CacheAndStalls,
    /// Readers that cost a share of the rate.
    Readers,
    /// The processor compresses frames slower than the storage takes them.
    Compression,
}

impl StorageKind {
    /// All kinds.
    pub const ALL: [StorageKind; 10] = [
        StorageKind::Constant,
        StorageKind::Noise,
        StorageKind::LastingNoise,
        StorageKind::Drift,
        StorageKind::Stalls,
        StorageKind::StallsBeyondBuffer,
        StorageKind::Cache,
        StorageKind::CacheAndStalls,
        StorageKind::Readers,
        StorageKind::Compression,
    ];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            StorageKind::Constant => "constant",
            StorageKind::Noise => "noise of 20 %",
            StorageKind::LastingNoise => "noise that lasts 0.5 s",
            StorageKind::Drift => "drift of 3 % in 2 to 20 s",
            StorageKind::Stalls => "stalls of 0.3 to 3 s",
            StorageKind::StallsBeyondBuffer => "stalls beyond the buffer",
            StorageKind::Cache => "cache of 3 to 25 s",
            StorageKind::CacheAndStalls => "cache and stalls",
            StorageKind::Readers => "readers that cost a share",
            StorageKind::Compression => "bound by compression",
        }
    }

    fn stalls(self) -> bool {
        matches!(self, StorageKind::Stalls | StorageKind::StallsBeyondBuffer | StorageKind::CacheAndStalls)
    }
}

/// A storage system and the instrument that is recorded on it.
#[derive(Debug, Clone)]
pub struct StorageCase {
    /// The property that makes it hard to judge.
    pub kind: StorageKind,
    /// Frames a second.
    pub frame_rate: f64,
    /// Memory between the instrument and the storage, in frames.
    pub slots: u64,
    /// The rate that the storage takes in the long run, as a multiple of the instrument's.
    pub margin: f64,
    /// Its stalls; `None` if it never stands still.
    pub stalls: Option<StallPattern>,
    cache: Option<WriteCache>,
    /// The share of its speed that readers take.
    pub readers_cost: f64,
    /// The factor by which frames shrink before they are written. The processor then takes the rest of a frame's time.
    pub compression: Option<f64>,
    shares: Arc<[f64]>,
}

/// A storage system stands still at the end of each period, in seconds.
#[derive(Debug, Clone, Copy)]
pub struct StallPattern {
    /// From one stall to the next.
    pub period: f64,
    /// The length of a stall.
    pub length: f64,
    phase: f64,
}

fn between(stream: &mut RandomStream, least: f64, most: f64) -> f64 {
    least + (most - least) * stream.unit()
}

fn normal(stream: &mut RandomStream) -> f64 {
    (-2.0 * (1.0 - stream.unit()).ln()).sqrt() * (std::f64::consts::TAU * stream.unit()).cos()
}

impl StorageCase {
    /// A random storage system for each seed.
    pub fn new(kind: StorageKind, seed: Seed) -> StorageCase {
        StorageCase::with_margin(kind, seed, [0.5, 2.5])
    }

    /// A storage system that takes between `least` and `most` times the instrument's rate.
    pub fn with_margin(kind: StorageKind, seed: Seed, [least, most]: [f64; 2]) -> StorageCase {
        let mut stream = seed.named(kind.name()).stream();
        let frame_rate = between(&mut stream, 60.0, 150.0);
        let margin = between(&mut stream, least.ln(), most.ln()).exp();
        StorageCase::drawn(kind, &mut stream, frame_rate, margin)
    }

    /// A storage system that takes `margin` times the instrument's rate.
    pub fn of(kind: StorageKind, seed: Seed, frame_rate: f64, margin: f64) -> StorageCase {
        StorageCase::drawn(kind, &mut seed.named(kind.name()).stream(), frame_rate, margin)
    }

    /// All properties but rate and margin are random.
    fn drawn(kind: StorageKind, stream: &mut RandomStream, frame_rate: f64, margin: f64) -> StorageCase {
        let stalls = kind.stalls().then(|| StallPattern::random(stream));
        let shares = shares(kind, stream);
        let readers_cost = if kind == StorageKind::Readers { between(stream, 0.05, 0.5) } else { 0.0 };
        let compression = (kind == StorageKind::Compression).then(|| between(stream, 2.0, 6.0));
        let mut case = StorageCase {
            kind,
            frame_rate,
            slots: 0,
            margin,
            stalls,
            cache: None,
            readers_cost,
            compression,
            shares,
        };
        case.slots = case.buffer(stream);
        if matches!(kind, StorageKind::Cache | StorageKind::CacheAndStalls) {
            let volume = between(stream, 3.0, 25.0) * case.speed();
            #[expect(clippy::cast_sign_loss, reason = "no volume is below zero")]
            let bytes = volume as u64;
            case.cache = Some(WriteCache { bytes, times: between(stream, 1.3, 4.0) });
        }
        case
    }

    /// Frames that the buffer holds: 1.5 s of them, or half as many again as a stall needs, or half as many.
    fn buffer(&self, stream: &mut RandomStream) -> u64 {
        let seconds = match (self.kind, self.stalls) {
            (StorageKind::StallsBeyondBuffer, Some(stalls)) => between(stream, 0.3, 0.8) * stalls.length,
            (_, Some(stalls)) => between(stream, 1.3, 2.0) * stalls.length + 0.2,
            _ => 1.5,
        };
        #[expect(clippy::cast_sign_loss, reason = "no time is below zero")]
        let slots = (seconds * self.frame_rate) as u64;
        slots.max(8)
    }

    /// The rate of the instrument.
    pub fn rate(&self) -> ByteRate {
        ByteRate(self.frame_rate * FRAME_SIZE as f64)
    }

    /// The rate of frames that the storage takes in the long run.
    pub fn truth(&self) -> ByteRate {
        ByteRate(self.margin * self.rate().0)
    }

    /// Bytes that the device writes a second when it does not stand still: frames with their records.
    fn speed(&self) -> f64 {
        let going = self.stalls.map_or(1.0, |stalls| 1.0 - stalls.length / stalls.period);
        self.truth().0 / going * WRITTEN as f64 / FRAME_SIZE as f64
    }

    /// The frames that the buffer needs for a stall: those that arrive meanwhile, and those in flight around it.
    pub fn frames_of_stall(&self) -> Option<f64> {
        self.stalls.map(|stalls| stalls.length * self.frame_rate + 2.0)
    }

    /// True if a long recording must lose frames, beside readers if there are any: the storage is too slow, or stands
    /// still for longer than the buffer lasts. `None` if it is so close to both that no recording of this length can
    /// tell.
    pub fn must_lose(&self) -> Option<bool> {
        let fill = self.frames_of_stall().map_or(0.0, |frames| frames / self.slots as f64);
        let beside_readers = self.margin * (1.0 - self.readers_cost);
        match (beside_readers, fill) {
            (margin, _) if margin < 0.9 => Some(true),
            (_, fill) if fill > 1.1 => Some(true),
            (margin, fill) if margin > 1.1 && fill < 0.9 => Some(false),
            _ => None,
        }
    }

    /// The device from second `at` of the campaign on, beside readers or not. Each recording finds the cache empty.
    pub fn device(&self, at: f64, with_readers: bool) -> Device {
        let share = if with_readers { 1.0 - self.readers_cost } else { 1.0 };
        let picoseconds = 1e12 / (self.speed() * share);
        #[expect(clippy::cast_sign_loss, reason = "no time is below zero")]
        let cost = Cost { base: Nanos(0), picoseconds_per_byte: picoseconds as u64 };
        Device {
            write: cost,
            stalls: self.stalls.map_or_else(Vec::new, |stalls| stalls.from(at)),
            speed: Some(Speed { width: PIECE, begun: Nanos::from_seconds(at), shares: self.shares.clone() }),
            cache: self.cache,
            hollow: true,
            ..Device::default()
        }
    }
}

impl StallPattern {
    /// A pattern that takes up to a quarter of the time.
    fn random(stream: &mut RandomStream) -> StallPattern {
        let period = between(stream, 3.0, 12.0);
        let length = (period * between(stream, 0.05, 0.25)).max(0.3);
        StallPattern { period, length, phase: period * stream.unit() }
    }

    /// The stalls of the next minutes, from second `at` on.
    fn from(&self, at: f64) -> Vec<(Nanos, Nanos)> {
        let first = ((at - self.phase) / self.period).floor();
        let stall = |number: u32| {
            let end = self.phase + (first + f64::from(number) + 1.0) * self.period - at;
            (Nanos::from_seconds((end - self.length).max(0.0)), Nanos::from_seconds(end.max(0.0)))
        };
        (0..200).map(stall).filter(|(from, to)| from < to).collect()
    }
}

/// The speed over a campaign, in pieces, with a mean of one.
fn shares(kind: StorageKind, stream: &mut RandomStream) -> Arc<[f64]> {
    let (spread, lasting) = match kind {
        StorageKind::Constant => (0.0, 0.0),
        StorageKind::Noise => (0.2, 0.0),
        StorageKind::LastingNoise => (0.1, 0.5),
        StorageKind::Drift => (0.03, between(stream, 2.0, 20.0)),
        _ => (0.05, 0.0),
    };
    #[expect(clippy::cast_sign_loss, reason = "a number of pieces")]
    let count = (CAMPAIGN / PIECE.seconds()) as usize;
    let kept = if lasting > 0.0 { (-PIECE.seconds() / lasting).exp() } else { 0.0 };
    let mut away = spread * normal(stream);
    let next = |_| {
        away = kept * away + (1.0 - kept * kept).sqrt() * spread * normal(stream);
        (1.0 + away).max(0.1)
    };
    (0..count).map(next).collect()
}
