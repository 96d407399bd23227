//! Storage systems of which everything is known: how fast they are in the long run, when they stand still, what their cache
//! takes, what readers cost.
//!
//! Everything is scaled down: a frame has 64 KiB (smaller ones are written together) instead of several MB, and rates are as
//! much lower, so that a recording of 40 s at 100 frames a second is computed in milliseconds. Times are as they are.

use std::sync::Arc;

use nilometer_model::{ByteRate, Nanos, RandomStream, Seed};
use nilometer_recording::journal;
use nilometer_storage::testing::{Cost, Device, Speed, WriteCache};

/// Bytes of a frame, of 256 x 256 pixels.
pub(super) const FRAME: u64 = 64 << 10;
/// The same with its record in the journal: what the device has to write.
const WRITTEN: u64 = FRAME + journal::RECORD as u64;
/// Longer than any campaign.
const CAMPAIGN: f64 = 400.0;
/// Pieces in which the speed changes.
const PIECE: Nanos = Nanos::from_millis(50);

/// A kind of storage, by what makes it hard to judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Constant,
    Noise,
    LastingNoise,
    Drift,
    Stalls,
    StallsBeyondBuffer,
    Cache,
    CacheAndStalls,
    Readers,
    Compression,
}

impl Kind {
    pub(super) const ALL: [Kind; 10] = [
        Kind::Constant,
        Kind::Noise,
        Kind::LastingNoise,
        Kind::Drift,
        Kind::Stalls,
        Kind::StallsBeyondBuffer,
        Kind::Cache,
        Kind::CacheAndStalls,
        Kind::Readers,
        Kind::Compression,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Constant => "constant",
            Kind::Noise => "noise of 20 %",
            Kind::LastingNoise => "noise that lasts 0.5 s",
            Kind::Drift => "drift of 3 % in 2 to 20 s",
            Kind::Stalls => "stalls of 0.3 to 3 s",
            Kind::StallsBeyondBuffer => "stalls beyond the buffer",
            Kind::Cache => "cache of 3 to 25 s",
            Kind::CacheAndStalls => "cache and stalls",
            Kind::Readers => "readers that cost a share",
            Kind::Compression => "bound by compression",
        }
    }

    fn stalls(self) -> bool {
        matches!(self, Kind::Stalls | Kind::StallsBeyondBuffer | Kind::CacheAndStalls)
    }
}

/// A storage system and the instrument that is recorded on it.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) kind: Kind,
    /// Frames a second.
    pub(super) frame_rate: f64,
    /// Memory between the instrument and the storage, in frames.
    pub(super) slots: u64,
    /// How many times the instrument's rate the storage takes in the long run.
    pub(super) margin: f64,
    /// How long it stands still, and how often: each so many seconds.
    pub(super) stalls: Option<Stalls>,
    cache: Option<WriteCache>,
    /// What readers take of its speed.
    pub(super) readers_cost: f64,
    /// How many times smaller frames are when they are written; the rest of the time of a frame is the processor's.
    pub(super) compression: Option<f64>,
    shares: Arc<[f64]>,
}

/// It stands still at the end of each period.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stalls {
    pub(super) period: f64,
    pub(super) length: f64,
    phase: f64,
}

fn between(stream: &mut RandomStream, least: f64, most: f64) -> f64 {
    least + (most - least) * stream.unit()
}

fn normal(stream: &mut RandomStream) -> f64 {
    (-2.0 * (1.0 - stream.unit()).ln()).sqrt() * (std::f64::consts::TAU * stream.unit()).cos()
}

impl Case {
    /// Another one for each seed.
    pub(super) fn new(kind: Kind, seed: Seed) -> Case {
        Case::with_margin(kind, seed, [0.5, 2.5])
    }

    /// The same, which takes between so many times what the instrument delivers.
    pub(super) fn with_margin(kind: Kind, seed: Seed, [least, most]: [f64; 2]) -> Case {
        let mut stream = seed.named(kind.name()).stream();
        let frame_rate = between(&mut stream, 60.0, 150.0);
        let margin = between(&mut stream, least.ln(), most.ln()).exp();
        let stalls = kind.stalls().then(|| Stalls::random(&mut stream));
        let shares = shares(kind, &mut stream);
        let readers_cost = if kind == Kind::Readers { between(&mut stream, 0.05, 0.5) } else { 0.0 };
        let compression = (kind == Kind::Compression).then(|| between(&mut stream, 2.0, 6.0));
        let mut case = Case {
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
        case.slots = case.buffer(&mut stream);
        if matches!(kind, Kind::Cache | Kind::CacheAndStalls) {
            let volume = between(&mut stream, 3.0, 25.0) * case.speed();
            #[expect(clippy::cast_sign_loss, reason = "no volume is below zero")]
            let bytes = volume as u64;
            case.cache = Some(WriteCache { bytes, times: between(&mut stream, 1.3, 4.0) });
        }
        case
    }

    /// Frames that the buffer holds: 1.5 s of them, or half as many again as a stall needs, or half as many.
    fn buffer(&self, stream: &mut RandomStream) -> u64 {
        let seconds = match (self.kind, self.stalls) {
            (Kind::StallsBeyondBuffer, Some(stalls)) => between(stream, 0.3, 0.8) * stalls.length,
            (_, Some(stalls)) => between(stream, 1.3, 2.0) * stalls.length + 0.2,
            _ => 1.5,
        };
        #[expect(clippy::cast_sign_loss, reason = "no time is below zero")]
        let slots = (seconds * self.frame_rate) as u64;
        slots.max(8)
    }

    /// What the instrument delivers.
    pub(super) fn rate(&self) -> ByteRate {
        ByteRate(self.frame_rate * FRAME as f64)
    }

    /// What the storage takes of frames in the long run.
    pub(super) fn truth(&self) -> ByteRate {
        ByteRate(self.margin * self.rate().0)
    }

    /// What the device writes a second when it does not stand still: frames with their records.
    fn speed(&self) -> f64 {
        let going = self.stalls.map_or(1.0, |stalls| 1.0 - stalls.length / stalls.period);
        self.truth().0 / going * WRITTEN as f64 / FRAME as f64
    }

    /// The frames that a stall needs: those that come meanwhile, and those around it that are on their way.
    pub(super) fn frames_of_stall(&self) -> Option<f64> {
        self.stalls.map(|stalls| stalls.length * self.frame_rate + 2.0)
    }

    /// Whether frames must be lost if it is recorded for long, beside readers where there are some: it is too slow, or stands
    /// still for longer than the buffer lasts. None so close to both that no recording of this length can tell.
    pub(super) fn must_lose(&self) -> Option<bool> {
        let fill = self.frames_of_stall().map_or(0.0, |frames| frames / self.slots as f64);
        let beside_readers = self.margin * (1.0 - self.readers_cost);
        match (beside_readers, fill) {
            (margin, _) if margin < 0.9 => Some(true),
            (_, fill) if fill > 1.1 => Some(true),
            (margin, fill) if margin > 1.1 && fill < 0.9 => Some(false),
            _ => None,
        }
    }

    /// The device from so many seconds of the campaign on, beside readers or not. Each recording finds the cache empty.
    pub(super) fn device(&self, at: f64, with_readers: bool) -> Device {
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

impl Stalls {
    /// Up to a quarter of the time.
    fn random(stream: &mut RandomStream) -> Stalls {
        let period = between(stream, 3.0, 12.0);
        let length = (period * between(stream, 0.05, 0.25)).max(0.3);
        Stalls { period, length, phase: period * stream.unit() }
    }

    /// Those of the next minutes.
    fn from(&self, at: f64) -> Vec<(Nanos, Nanos)> {
        let first = ((at - self.phase) / self.period).floor();
        let stall = |number: u32| {
            let end = self.phase + (first + f64::from(number) + 1.0) * self.period - at;
            (Nanos::from_seconds((end - self.length).max(0.0)), Nanos::from_seconds(end.max(0.0)))
        };
        (0..200).map(stall).filter(|(from, to)| from < to).collect()
    }
}

/// How the speed changes over a campaign, with a mean of one.
fn shares(kind: Kind, stream: &mut RandomStream) -> Arc<[f64]> {
    let (spread, lasting) = match kind {
        Kind::Constant => (0.0, 0.0),
        Kind::Noise => (0.2, 0.0),
        Kind::LastingNoise => (0.1, 0.5),
        Kind::Drift => (0.03, between(stream, 2.0, 20.0)),
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
