//! What one element gives: a recorder, a network link, a storage server. Each figure says where it is from.

use nilometer_model::{ByteRate, Bytes, Nanos};

use super::Kind;

/// A figure and where it is from.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure<T> {
    /// The figure.
    pub value: T,
    /// Where it is from.
    pub from: LimitOrigin,
}

/// Where a figure is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LimitOrigin {
    /// Measured: in which record, and how.
    Measured(String),
    /// Said by the user, with which option.
    Given(String),
    /// Written in the file of a facility or an instrument.
    Written(String),
    /// Nobody said or measured it: why it is taken so.
    Assumed(String),
}

/// What one element of each stage gives. All rates, counts and times are above zero unless it is said.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// A network link, in one direction.
    pub link: Figure<ByteRate>,
    /// Links of a recorder over which streams come in.
    pub links: Figure<u64>,
    /// Processor cores of a recorder.
    pub cores: Figure<f64>,
    /// Memory of a recorder for frames that are not yet written.
    pub memory: Figure<Bytes>,
    /// The longest time for which the storage takes nothing. May be zero.
    pub stall: Figure<Nanos>,
    /// What one writer stream of a recorder gets of the storage.
    pub writer: Figure<ByteRate>,
    /// Writer streams of a recorder.
    pub writers: Figure<u64>,
    /// What one storage server takes when it is only written.
    pub write: Figure<ByteRate>,
    /// What one storage server gives when it is only read.
    pub read: Figure<ByteRate>,
    /// Space of one storage server. None: not asked.
    pub space: Option<Figure<Bytes>>,
    /// Share of each limit that is left free, from 0 to less than 1.
    pub headroom: Figure<f64>,
    /// Recorders, and servers, of which so many may fail at once.
    pub spare: Figure<u64>,
}

impl<T> Figure<T> {
    /// A figure that somebody gave with an option.
    pub fn given(value: T, option: &str) -> Self {
        Figure { value, from: LimitOrigin::Given(option.into()) }
    }

    /// A figure that nobody gave.
    pub fn assumed(value: T, why: &str) -> Self {
        Figure { value, from: LimitOrigin::Assumed(why.into()) }
    }
}

impl Limits {
    /// Share of each limit that is used.
    pub fn usable(&self) -> f64 {
        1.0 - self.headroom.value
    }

    /// The same with every limit less by the headroom, and no headroom: what the elements may be filled with.
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
