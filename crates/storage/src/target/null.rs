//! A target that takes everything and keeps nothing: what the tool itself can do, the ceiling of all that is measured.

use std::path::PathBuf;

use nilometer_model::{
    Bytes, Capabilities, Capability, DirectIo, FileSystemSpace, StorageProfile, TargetAddress,
    TargetDescription,
};

use super::{Target, TargetError};
use crate::engine::{Engine, EngineError, Null, Options};

/// Every operation succeeds at once in the calling thread, and does nothing.
#[derive(Debug)]
pub struct NullTarget(TargetDescription);

/// More than is ever written: 4 EiB.
const SPACE: Bytes = Bytes(1 << 62);

impl NullTarget {
    /// What `null:` is.
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

    /// It passes for another target, so that a recorder works as it does there: through the cache or past it, in whole
    /// blocks or not.
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

    /// Whatever engine the options name: there is nothing to wait for.
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
