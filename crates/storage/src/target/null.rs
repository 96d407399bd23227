//! A target that discards all data: the rate of the tool itself, and the ceiling of every measurement.

use std::path::PathBuf;

use nilometer_model::{
    Bytes, Capabilities, Capability, DirectIo, FileSystemSpace, StorageProfile, TargetAddress,
    TargetDescription,
};

use super::{Target, TargetError};
use crate::engine::{Engine, EngineError, Null, Options};

/// A target on which every operation succeeds at once in the calling thread and does nothing.
#[derive(Debug)]
pub struct NullTarget(TargetDescription);

/// More than any run writes: 4 EiB.
const SPACE: Bytes = Bytes(1 << 62);

impl NullTarget {
    /// Creates the target `null:`.
    pub fn new() -> Self {
        let space = FileSystemSpace { size: SPACE, free: SPACE, used: None, inodes: None, free_inodes: None };
        NullTarget(TargetDescription {
            address: TargetAddress::Null,
            capabilities: Capabilities::all().without(&[Capability::Keep]),
            file_system: "null".into(),
            mount_point: PathBuf::new(),
            source: "none".into(),
            options: String::new(),
            device: None,
            space,
            writable: true,
            direct: DirectIo::Real { alignment: 1 },
            striping: None,
            stripe_size: None,
            profile: StorageProfile::default(),
            facts: vec![("purpose".into(), "what the tool itself can do".into())],
        })
    }

    /// Creates a target that passes for another, so that a recorder works as it does there: through the cache
    /// or past it, in whole blocks or not.
    #[must_use]
    pub fn in_place_of(other: &TargetDescription) -> Self {
        NullTarget(other.clone())
    }
}

impl Default for NullTarget {
    fn default() -> Self {
        NullTarget::new()
    }
}

impl Target for NullTarget {
    fn description(&self) -> &TargetDescription {
        &self.0
    }

    /// Ignores the kind of engine in the options: there is nothing to wait for.
    fn engine(&self, options: &Options) -> Result<Box<dyn Engine>, EngineError> {
        Ok(Box::new(Null::new(options.depth as usize, options.clock)))
    }

    fn space(&self) -> Result<FileSystemSpace, TargetError> {
        Ok(self.0.space)
    }

    fn clear(&self) -> Result<(), TargetError> {
        Ok(())
    }

    fn remove(&self) -> Result<(), TargetError> {
        Ok(())
    }
}
