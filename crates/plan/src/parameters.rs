//! The parameters of a workload, listed once for both forms: as written in a plan, where each may be a list,
//! and as one combination.

use nilometer_model::{Bytes, Capability, Nanos, Phase};

use super::{Access, MpiIoCalls};

/// The properties of a workload's parameters that a campaign needs, for any workload.
pub trait Parameters {
    /// The phrases in reports, to be joined with commas. Reports print phrases that all cells of a stage
    /// share only once.
    fn phrases(&self) -> Vec<String>;

    /// The phases, in order.
    fn phases(&self) -> Vec<Phase>;

    /// The most bytes that an operation moves.
    fn block_size(&self) -> Bytes;

    /// Through the page cache or past it; `None` if no data are moved.
    fn access(&self) -> Option<Access>;

    /// Its properties that hold for all phases.
    fn traits(&self) -> WorkloadTraits {
        WorkloadTraits::default()
    }

    /// The space that all workers together leave on the target until the cell is cleared.
    fn footprint(&self, workers: u32) -> Footprint;

    /// The work of all workers together in a phase.
    fn work(&self, phase: Phase, workers: u32) -> Work;

    /// Sizes of operations and distances in files, each with the parameter that determines it. Past the page
    /// cache each must be a multiple of the target's alignment.
    fn alignments(&self, _workers: u32) -> Vec<(&'static str, Bytes)> {
        vec![("block_size", self.block_size())]
    }

    /// The least time of a phase of all workers together, on the fastest storage.
    fn least_time(&self, _phase: Phase, _workers: u32) -> Nanos {
        Nanos(0)
    }

    /// The time that the workers of a process together wait in a phase without using the storage. It stands
    /// for the computing of their program.
    fn think_time(&self, _phase: Phase) -> Nanos {
        Nanos(0)
    }

    /// The capabilities that a target must have beside [`Phase::needs`].
    fn needs(&self) -> Vec<Capability> {
        Vec::new()
    }

    /// Returns true if a time limit may end the phase: later phases can do with less.
    fn may_end_early(&self, phase: Phase) -> bool {
        !phase.is_setup()
    }

    /// Returns true if, on several nodes, the phase uses only files that another node wrote and no process
    /// here has touched.
    fn reads_what_others_wrote(&self, _phase: Phase) -> bool {
        false
    }

    /// Returns true if the phase begins with empty caches of this machine, for names and inodes too. All data
    /// then come from the storage.
    fn drops_caches(&self, _phase: Phase) -> bool {
        false
    }

    /// The least bytes that the storage delivers for this work after caches were dropped: at least this for
    /// an entry's name and inode.
    fn least_delivered(&self, done: Work) -> Bytes {
        Bytes(done.operations.saturating_mul(ENTRY_LEAST))
    }

    /// Refuses work that MPI-IO can't do with these calls.
    fn check_mpi_io(&self, _calls: MpiIoCalls) -> Result<(), String> {
        Err("this workload can't use it: write `stream`, or another engine".into())
    }

    /// Takes the numbers of its tree from a census, if it has one.
    fn follow_census(&mut self) {}

    /// Makes it larger or smaller by a factor, in whole blocks and items, at least one.
    fn scale(&mut self, factor: f64);

    /// Refuses values that make no sense on any target.
    fn check(&self, workers: u32) -> Result<(), String>;
}

/// Properties of a workload with its parameters that hold for all phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is so by itself")]
pub struct WorkloadTraits {
    /// A worker reads data of another one without knowing its progress.
    pub needs_all_of_others: bool,
    /// Workers use the data of their counterparts on the next node.
    pub shifts_by_node: bool,
    /// Its operations are sequential in files and go through the page cache, so the storage sees larger ones.
    pub in_sequence_through_the_cache: bool,
    /// All workers of a process share one task. Functions with a number of workers then get the number of
    /// processes.
    pub one_a_process: bool,
    /// Each worker has its own files and needs no data of others, so any of them can work while the others
    /// rest.
    pub has_workers_apart: bool,
    /// The workers of all processes write and read one file.
    pub shares_a_file: bool,
    /// The least number of processes.
    pub least_processes: u32,
}

impl Default for WorkloadTraits {
    fn default() -> Self {
        WorkloadTraits {
            needs_all_of_others: false,
            shifts_by_node: false,
            in_sequence_through_the_cache: false,
            one_a_process: false,
            has_workers_apart: true,
            shares_a_file: false,
            least_processes: 1,
        }
    }
}

/// Bytes of the name and the inode of an entry, and of the operations on it each, that no file system can do without.
const ENTRY_LEAST: u64 = 64;

/// Space taken on a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Footprint {
    /// Bytes of all files.
    pub bytes: Bytes,
    /// Files and directories.
    pub entries: u64,
}

impl Footprint {
    /// The space for `times` of it at once.
    #[must_use]
    pub const fn times(self, times: u64) -> Self {
        let Footprint { bytes: Bytes(bytes), entries } = self;
        Footprint { bytes: Bytes(bytes.saturating_mul(times)), entries: entries.saturating_mul(times) }
    }

    /// Both at the same time.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Footprint {
            bytes: Bytes(self.bytes.0.saturating_add(other.bytes.0)),
            entries: self.entries.saturating_add(other.entries),
        }
    }
}

/// The work of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// Bytes moved.
    pub bytes: u64,
    /// Operations.
    pub operations: u64,
}

impl Work {
    /// `bytes` moved by `block` at a time.
    pub fn moved(bytes: Bytes, block: Bytes) -> Self {
        Work { bytes: bytes.0, operations: bytes.0.div_ceil(block.0.max(1)) }
    }

    /// Operations on names.
    pub fn named(operations: u64) -> Self {
        Work { bytes: 0, operations }
    }
}

/// `size` times `factor` in whole blocks, at least one.
pub(super) fn scaled(size: Bytes, factor: f64, block: Bytes) -> Bytes {
    Bytes(scaled_count(size.0 / block.0.max(1), factor) * block.0)
}

/// `count` times `factor`, at least one.
pub(super) fn scaled_count(count: u64, factor: f64) -> u64 {
    #[expect(clippy::cast_sign_loss, reason = "both are positive")]
    let scaled = (count as f64 * factor).round() as u64;
    scaled.max(1)
}

pub(super) fn check_block(key: &str, block: Bytes) -> Result<(), String> {
    if block.0 == 0 || block.0 > 1 << 30 {
        return Err(format!("{key} = \"{block}\": write 1 B to 1 GiB"));
    }
    Ok(())
}

/// A file that is a whole number of blocks.
pub(super) fn whole_blocks(file: Bytes, block: Bytes) -> Result<(), String> {
    check_block("block_size", block)?;
    if file.0 == 0 || !file.0.is_multiple_of(block.0) {
        return Err(format!("file_size = \"{file}\" is not a whole number of blocks of \"{block}\""));
    }
    Ok(())
}

/// A rule about two keys of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeyRule {
    /// The key that has the rule.
    pub(super) key: &'static str,
    /// The key that may stand in its place.
    pub(super) other: &'static str,
    /// They exclude each other.
    pub(super) excludes: bool,
    /// One of them must be there.
    pub(super) needs_one: bool,
}

impl KeyRule {
    /// Returns true if keys of a plan break the rule.
    pub(super) fn is_broken_by(&self, written: &[&str]) -> bool {
        let [one, other] = [self.key, self.other].map(|key| written.contains(&key));
        if one && other { self.excludes } else { self.needs_one && !one && !other }
    }
}

/// Generates three things from one list of parameters: the struct as written, the struct of one combination,
/// and the matrix between them.
///
/// A parameter with a value after it is optional in a plan. One with `#[serde(default)]` may be missing in a
/// record. `#[without(other)]` excludes another key. `#[or(other)]` may be missing if the other key is there, and
/// `#[unless(other)]` must then be missing. A cell with `: Clone` is no `Copy`.
macro_rules! parameters {
    (
        $(#[doc = $doc:literal])*
        $sweep:ident => $cell:ident $(: $clone:ident)? {
            $($(#[doc = $field_doc:literal])* $(#[serde($($serde:tt)*)])? $(#[unless($unless:ident)])? $(#[or($or:ident)])? $(#[without($without:ident)])?
                $field:ident: $type:ty $(= $default:expr)?,)*
        }
    ) => {
        $(#[doc = $doc])*
        /// The parameters as written: each may be a list.
        #[derive(Debug, Clone, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $sweep {
            $($(#[doc = $field_doc])* pub $field: parameters!(@written [$($unless)? $($or)?] $type $(, $default)?),)*
        }

        $(#[doc = $doc])*
        /// One combination.
        #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub struct $cell {
            $($(#[doc = $field_doc])* $(#[serde($($serde)*)])? pub $field: $type,)*
        }

        parameters!(@copy $cell $($clone)?);

        impl $sweep {
            /// All combinations, the last parameter changing fastest.
            pub(super) fn cells(&self) -> Vec<$cell> {
                let cells = vec![$cell {
                    $($field: parameters!(@first [$($unless)? $($or)?] self.$field $(, $default)?),)*
                }];
                $(let cells = parameters!(@over [$($unless)? $($or)?] self.$field, cells, $field $(, $default)?);)*
                cells
            }

            /// The keys that the plan has.
            pub(super) fn written(&self) -> Vec<&'static str> {
                let keys = [$(
                    (stringify!($field), parameters!(@is_written [$($unless)? $($or)?] self.$field $(, $default)?)),
                )*];
                keys.into_iter().filter(|(_, is_written)| *is_written).map(|(key, _)| key).collect()
            }

            /// The rules about its keys.
            pub(super) const RULES: &'static [crate::parameters::KeyRule] = &[$($(crate::parameters::KeyRule {
                key: stringify!($field),
                other: stringify!($unless),
                excludes: true,
                needs_one: true,
            },)? $(crate::parameters::KeyRule {
                key: stringify!($field),
                other: stringify!($or),
                excludes: false,
                needs_one: true,
            },)? $(crate::parameters::KeyRule {
                key: stringify!($field),
                other: stringify!($without),
                excludes: true,
                needs_one: false,
            },)?)*];
        }

        impl $cell {
            /// The parameters, for a reference.
            pub(super) fn keys() -> Vec<crate::PlanKey> {
                vec![$(crate::PlanKey::of::<parameters!(@key [$($unless)? $($or)?] $type)>(
                    stringify!($field),
                    None,
                    parameters!(@default $type $(, $default)?),
                    &[$($field_doc),*],
                ),)*]
            }
        }
    };
    (@default $type:ty) => { None };
    (@default $type:ty, $default:expr) => { Some(crate::plan_key::KeyDefault(<$type as crate::KeyValue>::shown(&$default))) };
    (@copy $cell:ident) => { impl Copy for $cell {} };
    (@copy $cell:ident Clone) => {};
    (@key [] $type:ty) => { crate::Sweep<$type> };
    (@key [$other:ident] $type:ty) => { Option<crate::Sweep<$type>> };
    (@written [] $type:ty) => { super::Sweep<$type> };
    (@written [$($other:ident)?] $type:ty $(, $default:expr)?) => { Option<super::Sweep<$type>> };
    (@first [] $from:expr) => { $from.first() };
    (@first [$other:ident] $from:expr) => { Default::default() };
    (@first [$($other:ident)?] $from:expr, $default:expr) => { $default };
    (@is_written [] $from:expr) => { true };
    (@is_written [$($other:ident)?] $from:expr $(, $default:expr)?) => { $from.is_some() };
    (@over [] $from:expr, $cells:ident, $field:ident) => {
        $from.over($cells, |cell, value| cell.$field = value)
    };
    (@over [$($other:ident)?] $from:expr, $cells:ident, $field:ident $(, $default:expr)?) => {
        match &$from {
            Some(sweep) => sweep.over($cells, |cell, value| cell.$field = value),
            None => $cells,
        }
    };
}
pub(super) use parameters;
