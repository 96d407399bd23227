//! The memory of a recording, settled before it begins. The ring gets all that the bound leaves for it. If a
//! bound is too small, the error names the smallest sufficient one.
//!
//! ```text
//! --buffer, --memory, the available memory --> MemoryWishes -+
//! all parts of a recording with such a buffer ---------------+-> the buffer, and the account with it
//! ```

use nilometer_intake::transport::zeromq::{SEND_BUFFER, SUBSCRIBERS_MAX};
use nilometer_model::Bytes;
use nilometer_ring::{MemoryPart, MemoryPlan};
use nilometer_storage::process;

use crate::error::{ServiceError, require};

/// The buffer without `--buffer` and `--memory`.
pub const USUAL_BUFFER: Bytes = Bytes(1 << 30);
/// The program in both of its processes: libraries, stacks, and free memory of its allocator.
const PROGRAM: u64 = 64 << 20;
/// HTTP and Mark 5 commands: the most connections, and their requests.
const SERVICE: u64 = 16 << 20;
/// Frames of the preview: those on their way to viewers, and the one that is being read.
pub(crate) const PREVIEW_FRAMES: u64 = 4;
/// Positions of frames that the preview keeps at most, in bytes.
pub(crate) const PREVIEW_INDEX: u64 = 64 << 20;
/// The step of stated bounds, so that a user can type them as printed.
const STEP: u64 = 1 << 20;

/// The user's wishes for memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryWishes {
    /// The memory between the source of frames and the storage.
    pub buffer: Option<Bytes>,
    /// All memory of the recorder.
    pub memory: Option<Bytes>,
    /// Recorders on this machine that begin together: each takes its share of the available memory.
    pub sharing: u32,
    /// Data streams of the scan, at least 1. Buffer and memory are for all of them, and each gets an equal share.
    pub streams: u64,
    /// The memory that was available before the first data stream took its share. `None` to ask the kernel.
    pub available: Option<Bytes>,
}

/// The parts that every recorder has, for any recording.
pub fn program_memory() -> MemoryPlan {
    MemoryPlan::default().with(MemoryPart::Program, PROGRAM).with(MemoryPart::Service, SERVICE)
}

/// The memory of a preview of frames of this size: the frames, the stored form of one, and their positions. The
/// kernel's buffers count too, and are twice as large as asked for (socket(7)).
pub(super) fn preview_memory(frame: Bytes) -> MemoryPlan {
    let frames = frame.0.saturating_mul(PREVIEW_FRAMES + 1);
    let sockets = (SUBSCRIBERS_MAX * 2 * SEND_BUFFER) as u64;
    MemoryPlan::default().with(MemoryPart::Preview, frames + PREVIEW_INDEX + sockets)
}

/// Metadata of files take at most this share of a bound, for any number of announced frames. Without a bound
/// they take at most `INDEX_MAX`.
const INDEX_SHARE: u64 = 4;
const INDEX_MAX: u64 = 256 << 20;

/// The tries to find a sufficient bound. Shares are far below 1, so few suffice.
const TRIES: u32 = 1000;

/// The parts of a recording within a bound of its memory. The metadata of files grow with its frames, and a detector
/// may announce more frames than it sends.
pub fn account(parts: MemoryPlan, memory: Option<Bytes>) -> MemoryPlan {
    let most = memory.map_or(INDEX_MAX, |memory| memory.0 / INDEX_SHARE);
    parts.at_most(MemoryPart::FileIndex, most)
}

impl MemoryWishes {
    /// The buffer of a recording, or of one data stream, with the parts `parts_of(buffer, memory)`, which grow with it
    /// and with the bound of its memory. It has at least `least` bytes.
    ///
    /// # Errors
    /// The memory is too small, or not available. The error names the values that are possible.
    pub fn settle(
        &self,
        least: Bytes,
        parts_of: impl Fn(Bytes, Option<Bytes>) -> MemoryPlan,
    ) -> Result<Bytes, ServiceError> {
        let available = self.available.or_else(process::available_memory);
        let available = available.map(|all| Bytes(self.own(all).0 / u64::from(self.sharing.max(1))));
        self.settle_within(available, least, parts_of)
    }

    /// The bound of the memory of one data stream, if the user set one for all.
    pub fn memory_of_stream(&self) -> Option<Bytes> {
        self.memory.map(|memory| self.own(memory))
    }

    /// The share of one data stream.
    fn own(&self, bytes: Bytes) -> Bytes {
        Bytes(bytes.0 / self.streams.max(1))
    }

    /// The sum over all data streams.
    fn whole(&self, bytes: Bytes) -> Bytes {
        Bytes(bytes.0.saturating_mul(self.streams.max(1)))
    }

    /// Settles the buffer of one data stream within `available` bytes.
    fn settle_within(
        &self,
        available: Option<Bytes>,
        least: Bytes,
        parts_of: impl Fn(Bytes, Option<Bytes>) -> MemoryPlan,
    ) -> Result<Bytes, ServiceError> {
        let bound = self.memory_of_stream();
        let total = |buffer: Bytes| parts_of(buffer, bound).total();
        if let (Some(memory), Some(available)) = (self.memory, available) {
            require(self.own(memory) <= available, || {
                format!("--memory {memory}: write at most the {}", self.words(available))
            })?;
        }
        match (self.buffer, self.memory) {
            (Some(buffer), None) => {
                let own = self.own(buffer);
                require(available.is_none_or(|available| own.0 <= available.0 / 2), || {
                    let available = self.words(available.unwrap_or(Bytes(0)));
                    format!("--buffer {buffer}: write at most half of the {available}")
                })?;
                Ok(own)
            }
            (Some(buffer), Some(memory)) => {
                let own = self.own(buffer);
                require(total(own) <= self.own(memory), || {
                    let sufficient = sufficient(own, &parts_of);
                    let needed = self.whole(sufficient);
                    format!(
                        "--memory {memory}: with --buffer {buffer} it takes {needed} ({}); write --memory \
                         \"{needed}\", or a smaller --buffer",
                        self.parts(&parts_of(own, Some(sufficient)))
                    )
                })?;
                Ok(own)
            }
            (None, Some(memory)) => {
                largest(least, self.own(memory), self.own(memory), total).ok_or_else(|| {
                    let sufficient = sufficient(least, &parts_of);
                    let needed = self.whole(sufficient);
                    ServiceError::AskedWrongly(format!(
                        "--memory {memory}: it takes {needed} at the least ({}); write --memory \"{needed}\"",
                        self.parts(&parts_of(least, Some(sufficient)))
                    ))
                })
            }
            (None, None) => {
                let half = available.map_or(Bytes(u64::MAX), |available| Bytes(available.0 / 2));
                let most = USUAL_BUFFER.max(least);
                largest(least, most, half, total).ok_or_else(|| {
                    let needed = self.whole(total(least));
                    let available = self.words(available.unwrap_or(Bytes(0)));
                    ServiceError::AskedWrongly(format!(
                        "it takes {needed} of memory at the least ({}), which is more than half of the {available}",
                        self.parts(&parts_of(least, None))
                    ))
                })
            }
        }
    }

    /// The parts of a recording in words, with the number of data streams that have them.
    fn parts(&self, plan: &MemoryPlan) -> String {
        match self.streams {
            0 | 1 => words_of(plan),
            streams => format!("for each of {streams} data streams: {}", words_of(plan)),
        }
    }

    /// The available memory of all data streams, from that of one, in words.
    fn words(&self, available: Bytes) -> String {
        let available = self.whole(available);
        let limit = process::memory_limit_words();
        let share = match self.sharing {
            0 | 1 => String::new(),
            sharing => format!(", the share of one of {sharing} processes on this machine"),
        };
        format!("{available} of memory that are available{limit}{share}")
    }
}

/// The largest buffer between these two with which all parts together take at most `memory`.
fn largest(least: Bytes, most: Bytes, memory: Bytes, total: impl Fn(Bytes) -> Bytes) -> Option<Bytes> {
    let fits = |buffer: u64| total(Bytes(buffer)) <= memory;
    if !fits(least.0) {
        return None;
    }
    if fits(most.0) {
        return Some(most.max(least));
    }
    let (mut below, mut above) = (least.0, most.0);
    while above - below > 1 {
        let middle = below.midpoint(above);
        if fits(middle) {
            below = middle;
        } else {
            above = middle;
        }
    }
    Some(Bytes(below))
}

/// The memory in which a recording with such a buffer fits, as a number that is easy to type. Some parts take a share
/// of the bound, so they grow with it.
fn sufficient(buffer: Bytes, parts_of: impl Fn(Bytes, Option<Bytes>) -> MemoryPlan) -> Bytes {
    let mut bound = Bytes(0);
    for _ in 0..TRIES {
        let needed = stated(parts_of(buffer, Some(bound)).total());
        if needed <= bound {
            break;
        }
        bound = needed;
    }
    bound
}

/// Rounds up to a number that is easy to type.
fn stated(bytes: Bytes) -> Bytes {
    Bytes(bytes.0.div_ceil(STEP).saturating_mul(STEP))
}

/// The parts, the largest first.
fn words_of(plan: &MemoryPlan) -> String {
    let mut parts: Vec<_> = MemoryPart::ALL
        .into_iter()
        .map(|part| (plan.bound(part), part.name().replace('_', " ")))
        .filter(|(bound, _)| bound.0 > 0)
        .collect();
    parts.sort_by(|(a, _), (b, _)| b.cmp(a));
    let words: Vec<_> = parts.into_iter().map(|(bound, name)| format!("{name} {bound}")).collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// A ring with an eighth of its size beside it, and a fixed 50 MiB.
    fn parts(buffer: Bytes, _: Option<Bytes>) -> MemoryPlan {
        let ring = MemoryPlan::default().with(MemoryPart::Ring, buffer.0);
        ring.with(MemoryPart::EncodeStages, buffer.0 / 8).with(MemoryPart::Program, 50 * MIB)
    }

    fn settled(
        buffer: Option<u64>,
        memory: Option<u64>,
        available: u64,
        sharing: u32,
    ) -> Result<u64, String> {
        let mib = |mib: Option<u64>| mib.map(|mib| Bytes(mib * MIB));
        let wishes = MemoryWishes { buffer: mib(buffer), memory: mib(memory), ..of_streams(1) };
        let available = Some(Bytes(available * u64::from(sharing.max(1)) * MIB));
        settle(MemoryWishes { sharing, available, ..wishes })
    }

    fn of_streams(streams: u64) -> MemoryWishes {
        MemoryWishes { buffer: None, memory: None, sharing: 1, streams, available: None }
    }

    fn settle(wishes: MemoryWishes) -> Result<u64, String> {
        let settled = wishes.settle(Bytes(8 * MIB), parts);
        settled.map(|buffer| buffer.0 / MIB).map_err(|error| error.to_string())
    }

    /// The size that an error advises for an option, such as `--memory`.
    fn advised(error: &str, option: &str) -> Bytes {
        let advice = error.split_once(&format!("write {option} \"")).expect("it advises a size").1;
        advice.split('"').next().and_then(|size| size.parse().ok()).expect("a size")
    }

    #[test]
    fn data_streams_share_and_the_advice_for_all_of_them_is_taken() {
        let all = MemoryWishes { available: Some(Bytes(30_000 * MIB)), ..of_streams(3) };
        for (buffer, memory) in [(None, 100), (None, 176), (Some(192), 300), (None, 1)] {
            let buffer = buffer.map(|buffer| Bytes(buffer * MIB));
            let asked = MemoryWishes { buffer, memory: Some(Bytes(memory * MIB)), ..all };
            let error = settle(asked).expect_err("it is too little for three");
            assert!(error.starts_with(&format!("--memory {}: ", Bytes(memory * MIB))), "{error}");
            assert!(error.contains("(for each of 3 data streams: "), "{error}");
            let memory = Some(advised(&error, "--memory"));
            settle(MemoryWishes { memory, ..asked }).unwrap_or_else(|again| panic!("{error}, then {again}"));
            let less = memory.map(|memory| Bytes(memory.0 - 3 * MIB));
            settle(MemoryWishes { memory: less, ..asked }).expect_err("it advises no more than needed");
        }
        assert_eq!(settle(MemoryWishes { buffer: Some(Bytes(240 * MIB)), ..all }), Ok(80), "a third");
        assert_eq!(settle(all), Ok(1024), "each has the usual buffer");
    }

    #[test]
    fn parts_that_grow_with_the_bound_are_in_the_advice() {
        let growing = |buffer: Bytes, memory: Option<Bytes>| {
            let share = memory.map_or(0, |memory| memory.0 / 8);
            account(parts(buffer, memory).with(MemoryPart::SocketBuffers, share), memory)
        };
        for streams in [1, 2] {
            let all = MemoryWishes { available: Some(Bytes(30_000 * MIB)), ..of_streams(streams) };
            let settle =
                |memory| MemoryWishes { memory: Some(memory), ..all }.settle(Bytes(8 * MIB), growing);
            let error = settle(Bytes(20 * MIB)).expect_err("it is too little").to_string();
            let advised = advised(&error, "--memory");
            // 59 MiB are seven eighths of it.
            assert_eq!(advised, Bytes(streams * 68 * MIB), "{error}");
            settle(advised).unwrap_or_else(|again| panic!("{error}, then {again}"));
        }
    }

    #[test]
    fn the_available_memory_is_that_of_all_data_streams() {
        let all = MemoryWishes { available: Some(Bytes(400 * MIB)), ..of_streams(2) };
        let asked = |buffer, memory: Option<u64>| MemoryWishes {
            buffer: Some(Bytes(buffer * MIB)),
            memory: memory.map(|memory| Bytes(memory * MIB)),
            ..all
        };
        let error = settle(asked(202, None)).expect_err("more than half");
        assert!(error.contains("--buffer 202 MiB: write at most half of the 400 MiB"), "{error}");
        assert_eq!(settle(asked(200, None)), Ok(100));
        let error = settle(asked(16, Some(402))).expect_err("more than there is");
        assert!(error.contains("--memory 402 MiB: write at most the 400 MiB"), "{error}");
        assert!(!error.contains("processes"), "{error}");
        assert_eq!(settle(asked(16, Some(400))), Ok(8));
    }

    #[test]
    fn the_buffer_is_what_the_bound_leaves() {
        assert_eq!(settled(None, None, 10_000, 1), Ok(1024));
        assert_eq!(
            settled(None, Some(140), 10_000, 1),
            Ok(80),
            "90 are left of 140, for 80 and their eighth"
        );
        assert_eq!(settled(None, Some(59), 10_000, 1), Ok(8), "the smallest");
        assert_eq!(settled(Some(64), Some(122), 10_000, 1), Ok(64));
        assert_eq!(settled(None, Some(140), 140, 1), Ok(80), "all that is available may be asked for");
        assert_eq!(settled(None, None, 280, 1), Ok(80), "half of what a container allows");
    }

    #[test]
    fn a_bound_that_does_not_suffice_is_refused_with_the_smallest_that_does() {
        let error = settled(None, Some(58), 10_000, 1).expect_err("8 MiB do not fit");
        assert!(error.contains("--memory 58 MiB: it takes 59 MiB at the least (program 50 MiB, ring 8 MiB, encode stages 1 MiB)"), "{error}");
        assert!(error.ends_with("write --memory \"59 MiB\""), "{error}");
        let error = settled(Some(64), Some(100), 10_000, 1).expect_err("64 MiB do not fit");
        assert!(error.contains("with --buffer 64 MiB it takes 122 MiB"), "{error}");
        let error = settled(None, None, 100, 1).expect_err("half of it is too little");
        assert!(error.contains("more than half of the 100 MiB"), "{error}");
        let error = settled(Some(200), None, 300, 1).expect_err("more than half");
        assert!(
            error
                .contains("--buffer 200 MiB: write at most half of the 300 MiB of memory that are available"),
            "{error}"
        );
        let error = settled(None, Some(200), 100, 3).expect_err("there is less");
        assert!(error.contains("at most the 100 MiB") && error.contains("3 processes"), "{error}");
    }
}
