//! Sizing: the number of elements needed, from the data of instruments and the capacity of one element.
//!
//! The chain is: streams of instruments -> network links of a recorder -> its processor -> its memory -> its writer
//! streams -> storage servers -> a buffer of days. Readers and the copy to an archive read from the servers.
//!
//! # The closed formula
//!
//! The headroom is first subtracted from all limits. A stream brings frames of `f` bytes at the rate `p`
//! within bursts of `B` seconds, and at `m` with its pauses. The most it brings in any time `t` is the
//! arrival curve
//!
//! ```text
//! a(t) = f + min(p t, (p - m) B + m t)
//! ```
//!
//! The least that a writer at rate `d` has written after `t` seconds, stalls of `T` included, is the service
//! curve `d (t - T)`, from `T` on. The most that can wait in memory is the greatest vertical distance of the
//! two curves. Both bend only at `T` and `B`, so the maximum is there.
//!
//! Sources: Cruz, "A calculus for network delay, part I", IEEE Transactions on Information Theory 37, 1991;
//! Le Boudec and Thiran, "Network Calculus", 2001, theorem 1.4.1.
//!
//! Take a recorder with `L` links of rate `l`, a processor that moves `c`, memory `M` and `w` writers of rate
//! `s`. It carries `q` streams if
//!
//! ```text
//! network     q <= L floor(l / p)              a stream is not split, and nothing waits before a link
//! processor   q p <= c
//! memory      q (h + a(T)) <= M
//! writers     d(q) <= w s,  where  d(q) = max(q m, (q (h + a(B)) - M) / (B - T))
//! ```
//!
//! Each stream has `h = 3 f + p (f / s + f / W)` in hand while it is written. The second term of `d` counts
//! only for `B > T`. It is the rate at which a burst must be written so that it does not fill the memory.
//!
//! If the recorder makes frames `k` times smaller, a writer and a server take `k s` and `k W` of them. Links,
//! processor and memory see frames as they arrive, the storage sees them compressed.
//!
//! The greatest such `q` gives the recorders of a kind; its streams are spread evenly over them. Let `D` be
//! the sum of `d / k` over all recorders, and `R` the rate of readers and the copy. A server takes `W` or
//! gives `G`. The least number of servers is
//!
//! ```text
//! servers     N >= D / W + R / G
//! ```
//!
//! The buffer of days holds the data of the retention time, or the data that wait for the copy, whichever are
//! more. All instruments may begin their day at the same moment.
//!
//! [`simulation`] checks this, event by event.

mod capacity;
mod demand;
mod figure;
mod limits;
mod recorder;
pub mod simulation;
#[cfg(test)]
mod tests;

pub use capacity::BufferCapacity;
pub use demand::{Demand, Kind};
pub use figure::{Figure, LimitOrigin};
pub use limits::Limits;

use std::fmt;

use nilometer_model::{ByteRate, Bytes};

/// The number of elements needed, with the reasons.
#[derive(Debug, Clone, PartialEq)]
pub struct Sizing {
    /// The recorders of each kind of instrument, in the order of [`Demand::kinds`].
    pub recorders: Vec<Recorders>,
    /// The least number of recorders that could do if they served all kinds of instruments.
    pub shared_least: u64,
    /// Storage servers, without spare ones.
    pub servers: u64,
    /// The demand on each stage, in the order in which data pass it.
    pub stages: Vec<SizingStage>,
    /// The buffer of days.
    pub buffer: BufferCapacity,
}

/// The recorders of one kind of instrument. They differ by at most one stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recorders {
    /// The number of recorders, without spare ones.
    pub count: u64,
    /// Streams of the fullest one.
    pub streams: u64,
    /// Network links for incoming streams, over all recorders.
    pub links: u64,
    /// The rate at which the fullest one must take frames out of its memory, before compression.
    pub drain: ByteRate,
    /// The rate at which it must write.
    pub write: ByteRate,
}

/// A stage of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Links into recorders.
    Network,
    /// Processors of recorders.
    Processor,
    /// Memory of recorders.
    Memory,
    /// Writer streams of recorders.
    Writers,
    /// Rate of the storage servers.
    Storage,
    /// Space of the storage servers.
    Space,
}

/// The demand on a stage, or the capacity of an element of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Amount {
    /// Bytes a second, of storage.
    Rate(ByteRate),
    /// Bytes a second of a network, shown in bits.
    Network(ByteRate),
    /// Processor cores kept busy.
    Cores(f64),
    /// Bytes.
    Size(Bytes),
}

/// The result for a stage.
#[derive(Debug, Clone, PartialEq)]
pub struct SizingStage {
    /// The place of the stage in the chain.
    pub place: Place,
    /// The demand of all instruments together.
    pub demand: Amount,
    /// The capacity of one element, headroom included: a recorder, or a storage server.
    pub limit: Amount,
    /// Elements that this stage alone asks for.
    pub needed: u64,
    /// Share of the fullest element that is used, with as many as are there in the end.
    pub used: f64,
    /// The kind of instrument whose recorder is the fullest; none for storage.
    pub kind: Option<usize>,
}

/// The reason why no number of elements suffices.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SizingError {
    /// A stream can't be split, and one element does not carry one.
    #[error("one stream of {kind} needs {needs} of {}; one {} gives {gives}, {percent:.0} % kept free",
        .place.what(), .place.element())]
    Stream {
        /// The instrument.
        kind: String,
        /// The place that is too small.
        place: Place,
        /// The need of a stream.
        needs: Amount,
        /// The capacity of one element, less the headroom.
        gives: Amount,
        /// The headroom.
        percent: f64,
    },
    /// No space is enough.
    #[error(
        "{growth} come more than are copied out: no space is enough, so a number of servers can't be found by space"
    )]
    Growing {
        /// The data that accumulate every second.
        growth: ByteRate,
    },
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Amount::Rate(rate) => rate.to_string(),
            Amount::Network(rate) => rate.bits(),
            Amount::Cores(cores) => format!("{cores:.*} cores", usize::from(*cores < 9.95)),
            Amount::Size(bytes) => bytes.to_string(),
        };
        f.pad(&text)
    }
}

impl Place {
    /// All, in the order in which data pass them.
    pub const ALL: [Place; 6] =
        [Place::Network, Place::Processor, Place::Memory, Place::Writers, Place::Storage, Place::Space];

    /// The word in reports.
    pub const fn what(self) -> &'static str {
        match self {
            Place::Network => "network",
            Place::Processor => "processor",
            Place::Memory => "memory",
            Place::Writers => "writer streams",
            Place::Storage => "storage rate",
            Place::Space => "storage space",
        }
    }

    /// The word for an element.
    pub const fn element(self) -> &'static str {
        match self {
            Place::Storage | Place::Space => "storage server",
            _ => "recorder",
        }
    }

    /// Returns true if it belongs to the storage rather than a recorder.
    pub const fn is_storage(self) -> bool {
        matches!(self, Place::Storage | Place::Space)
    }
}

/// Finds the number of elements that carry the inflow.
pub fn size(demand: &Demand, limits: &Limits) -> Result<Sizing, SizingError> {
    let buffer = capacity::buffer(demand);
    let recorders = demand.kinds.iter().map(|kind| recorders(kind, limits));
    let recorders = recorders.collect::<Result<Vec<_>, _>>()?;
    let by_rate = busy_servers(demand, limits, &recorders) / limits.usable();
    let by_rate = recorder::ceil(by_rate).max(1);
    let by_space = limits.space.as_ref().map(|space| by_space(&buffer, limits, space.value)).transpose()?;
    let servers = by_rate.max(by_space.unwrap_or(0));
    let mut stages: Vec<SizingStage> =
        Place::ALL[..4].iter().map(|place| stage(*place, demand, limits, &recorders)).collect();
    stages.push(storage_stage(demand, limits, &recorders, by_rate, servers));
    let space = limits.space.as_ref().zip(buffer.needed);
    stages.extend(space.map(|(space, needed)| SizingStage {
        place: Place::Space,
        demand: Amount::Size(needed),
        limit: Amount::Size(space.value),
        needed: by_space.unwrap_or(0),
        used: needed.0 as f64 / (space.value.0 as f64 * servers as f64),
        kind: None,
    }));
    Ok(Sizing { recorders, shared_least: shared_least(demand, limits), servers, stages, buffer })
}

/// Recorders of one kind: as few as carry it, evenly filled.
fn recorders(kind: &Kind, limits: &Limits) -> Result<Recorders, SizingError> {
    let by_stage = recorder::streams_by(kind, limits);
    if let Some((place, _)) = by_stage.iter().find(|(_, streams)| *streams == 0) {
        return Err(too_small(kind, *place, limits));
    }
    let most = by_stage.iter().map(|(_, streams)| *streams).min().unwrap_or(1);
    let count = kind.streams.div_ceil(most);
    Ok(spread(kind, count, limits))
}

/// Recorders if each could be filled with streams of several kinds: as many as the fullest stage asks for.
fn shared_least(demand: &Demand, limits: &Limits) -> u64 {
    let mut parts = [0.0; 4];
    for kind in &demand.kinds {
        for (part, (_, streams)) in parts.iter_mut().zip(recorder::streams_by(kind, limits)) {
            *part += kind.streams as f64 / streams as f64;
        }
    }
    recorder::ceil(parts.into_iter().fold(0.0, f64::max))
}

/// A kind's streams on `count` recorders, even if they do not carry them.
fn spread(kind: &Kind, count: u64, limits: &Limits) -> Recorders {
    let streams = kind.streams.div_ceil(count);
    let fuller = kind.streams - count * (kind.streams / count);
    let of_link = recorder::floor(limits.without_headroom().link.value.0 / kind.peak()).max(1);
    let links = |streams: u64| streams.div_ceil(of_link).min(limits.links.value);
    let drain = recorder::drain(kind, streams, limits);
    Recorders {
        count,
        streams,
        links: fuller * links(streams) + (count - fuller) * links(kind.streams / count),
        drain: ByteRate(drain),
        write: ByteRate(drain / kind.packing.value),
    }
}

fn too_small(kind: &Kind, place: Place, limits: &Limits) -> SizingError {
    let less = limits.without_headroom();
    let (needs, gives) = match place {
        Place::Network => (kind.peak(), Amount::Network(less.link.value)),
        Place::Processor => (kind.peak() * kind.cost.value / 1e9, Amount::Cores(less.cores.value)),
        Place::Memory => (recorder::backlog(kind, 1, f64::INFINITY, limits), Amount::Size(less.memory.value)),
        _ => (recorder::drain(kind, 1, limits) / kind.packing.value, Amount::Rate(ByteRate(writing(&less)))),
    };
    let needs = match gives {
        Amount::Rate(_) => Amount::Rate(ByteRate(needs)),
        Amount::Network(_) => Amount::Network(ByteRate(needs)),
        Amount::Cores(_) => Amount::Cores(needs),
        Amount::Size(_) => Amount::Size(bytes(needs)),
    };
    SizingError::Stream {
        kind: kind.name.clone(),
        place,
        needs,
        gives,
        percent: 100.0 * limits.headroom.value,
    }
}

/// Bytes a second that the writer streams of a recorder write.
fn writing(limits: &Limits) -> f64 {
    limits.writer.value.0 * limits.writers.value as f64
}

#[expect(clippy::cast_sign_loss, reason = "waiting data are not negative")]
fn bytes(number: f64) -> Bytes {
    Bytes(number.max(0.0).ceil() as u64)
}

/// Bytes a second that all recorders of a kind must take out of their memory.
fn drained(kind: &Kind, recorders: &Recorders, limits: &Limits) -> f64 {
    let fewer = kind.streams / recorders.count;
    let fuller = kind.streams - recorders.count * fewer;
    fuller as f64 * recorder::drain(kind, fewer + 1, limits)
        + (recorders.count - fuller) as f64 * recorder::drain(kind, fewer, limits)
}

/// Bytes a second that all recorders write, as they are packed.
fn all_written(demand: &Demand, limits: &Limits, recorders: &[Recorders]) -> f64 {
    let written =
        |(kind, recorders): (&Kind, &Recorders)| drained(kind, recorders, limits) / kind.packing.value;
    demand.kinds.iter().zip(recorders).map(written).sum()
}

/// Servers that writes and reads keep busy, in parts of a server.
fn busy_servers(demand: &Demand, limits: &Limits, recorders: &[Recorders]) -> f64 {
    all_written(demand, limits, recorders) / limits.write.value.0 + demand.reading().0 / limits.read.value.0
}

fn by_space(buffer: &BufferCapacity, limits: &Limits, space: Bytes) -> Result<u64, SizingError> {
    let needed = buffer.needed.ok_or(SizingError::Growing { growth: buffer.growth })?;
    Ok(recorder::ceil(needed.0 as f64 / (space.0 as f64 * limits.usable())))
}

fn storage_stage(
    demand: &Demand,
    limits: &Limits,
    recorders: &[Recorders],
    needed: u64,
    servers: u64,
) -> SizingStage {
    let busy = busy_servers(demand, limits, recorders);
    SizingStage {
        place: Place::Storage,
        demand: Amount::Rate(ByteRate(all_written(demand, limits, recorders) + demand.reading().0)),
        limit: Amount::Rate(limits.write.value),
        needed,
        used: busy / servers as f64,
        kind: None,
    }
}

/// A stage of the recorders.
fn stage(place: Place, demand: &Demand, limits: &Limits, recorders: &[Recorders]) -> SizingStage {
    let each = || demand.kinds.iter().zip(recorders);
    let alone = |kind: &Kind| {
        let streams = recorder::streams_by(kind, limits).into_iter().find(|(at, _)| *at == place);
        streams.map_or(0, |(_, most)| kind.streams.div_ceil(most.max(1)))
    };
    let fullest = each().map(|(kind, recorders)| used(place, kind, recorders, limits)).enumerate();
    let (fullest, used) = fullest.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0));
    let all = |of: &dyn Fn(&Kind, &Recorders) -> f64| {
        each().map(|(kind, recorders)| of(kind, recorders)).sum::<f64>()
    };
    let (asked, limit) = match place {
        Place::Network => (Amount::Network(demand.peak()), link_rate(limits)),
        Place::Processor => (
            Amount::Cores(all(&|kind, _| kind.streams as f64 * kind.peak() * kind.cost.value / 1e9)),
            Amount::Cores(limits.cores.value),
        ),
        Place::Memory => (
            Amount::Size(bytes(all(&|kind, of| {
                recorder::backlog(kind, kind.streams, drained(kind, of, limits), limits)
            }))),
            Amount::Size(limits.memory.value),
        ),
        _ => (
            Amount::Rate(ByteRate(all_written(demand, limits, recorders))),
            Amount::Rate(ByteRate(writing(limits))),
        ),
    };
    let needed = demand.kinds.iter().map(alone).sum();
    SizingStage { place, demand: asked, limit, needed, used, kind: Some(fullest) }
}

fn link_rate(limits: &Limits) -> Amount {
    Amount::Network(ByteRate(limits.link.value.0 * limits.links.value as f64))
}

/// Share of a limit that the fullest recorder of a kind uses.
fn used(place: Place, kind: &Kind, recorders: &Recorders, limits: &Limits) -> f64 {
    let streams = recorders.streams;
    match place {
        Place::Network => streams.div_ceil(limits.links.value) as f64 * kind.peak() / limits.link.value.0,
        Place::Processor => streams as f64 * kind.peak() / limits.processing(kind),
        Place::Memory => {
            recorder::backlog(kind, streams, recorders.drain.0, limits) / limits.memory.value.0 as f64
        }
        _ => recorders.write.0 / writing(limits),
    }
}

impl Sizing {
    /// The stage with the least left free: the first to be overloaded by more.
    pub fn limiting(&self) -> &SizingStage {
        let fullest = self.stages.iter().rev().max_by(|a, b| a.used.total_cmp(&b.used));
        fullest.expect("there are stages in every sizing")
    }

    /// Recorders of all kinds, without spare ones.
    pub fn recorder_count(&self) -> u64 {
        self.recorders.iter().map(|recorders| recorders.count).sum()
    }

    /// Network links into recorders, of all of them.
    pub fn links(&self) -> u64 {
        self.recorders.iter().map(|recorders| recorders.links).sum()
    }

    /// The sizing with one recorder or server of the limiting stage fewer; `None` if there was only one.
    pub fn one_fewer(&self, demand: &Demand, limits: &Limits) -> Option<Sizing> {
        let mut fewer = self.clone();
        let limiting = self.limiting();
        if let Some(at) = limiting.kind {
            let count = self.recorders[at].count.checked_sub(1).filter(|count| *count > 0)?;
            fewer.recorders[at] = spread(&demand.kinds[at], count, limits);
        } else {
            fewer.servers = self.servers.checked_sub(1).filter(|count| *count > 0)?;
        }
        Some(fewer)
    }
}
