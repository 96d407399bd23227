//! The capacity of one element: a recorder, a network link, a storage server. Each figure has its origin.

use nilometer_model::{ByteRate, Bytes, Nanos};

use super::{Figure, Kind};

/// The capacity of one element of each stage. All rates, counts and times are above zero, except as noted.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// A network link, in one direction.
    pub link: Figure<ByteRate>,
    /// Links of a recorder for incoming streams.
    pub links: Figure<u64>,
    /// Processor cores of a recorder.
    pub cores: Figure<f64>,
    /// Memory of a recorder for frames that are not yet written.
    pub memory: Figure<Bytes>,
    /// The longest time for which the storage takes nothing. May be zero.
    pub stall: Figure<Nanos>,
    /// The rate that one writer stream of a recorder gets from the storage.
    pub writer: Figure<ByteRate>,
    /// Writer streams of a recorder.
    pub writers: Figure<u64>,
    /// The rate of one storage server if it only writes.
    pub write: Figure<ByteRate>,
    /// The rate of one storage server if it only reads.
    pub read: Figure<ByteRate>,
    /// Space of one storage server. `None` skips the check of space.
    pub space: Option<Figure<Bytes>>,
    /// Share of each limit that is left free, from 0 to less than 1.
    pub headroom: Figure<f64>,
    /// Number of recorders, and of servers, that may fail at once.
    pub spare: Figure<u64>,
}

impl Limits {
    /// Share of each limit that is used.
    pub fn usable(&self) -> f64 {
        1.0 - self.headroom.value
    }

    /// The limits less the headroom, and no headroom: the load that elements may carry.
    #[must_use]
    pub fn without_headroom(&self) -> Self {
        let usable = self.usable();
        let mut less = self.clone();
        for rate in [&mut less.link, &mut less.writer, &mut less.write, &mut less.read] {
            rate.value.0 *= usable;
        }
        less.cores.value *= usable;
        less.memory.value = scaled(less.memory.value, usable);
        if let Some(space) = &mut less.space {
            space.value = scaled(space.value, usable);
        }
        less.headroom.value = 0.0;
        less
    }

    /// Bytes a second of a kind's frames that the processor of a recorder moves.
    pub fn processing(&self, kind: &Kind) -> f64 {
        let cost = kind.cost.value;
        if cost == 0.0 { f64::INFINITY } else { self.cores.value / cost * 1e9 }
    }
}

#[expect(clippy::cast_sign_loss, reason = "a share of a size is not negative")]
fn scaled(size: Bytes, share: f64) -> Bytes {
    Bytes((size.0 as f64 * share) as u64)
}
