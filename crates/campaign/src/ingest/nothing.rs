//! A target on which nothing is stored: what a recorder costs by itself.

use std::sync::Arc;

use nilometer_model::{FileSystemSpace, TargetDescription};
use nilometer_storage::{
    Engine, EngineError, Target, TargetError,
    engine::{Null, Options},
};

/// Described as another one, whose writes do nothing and always succeed.
#[derive(Debug)]
pub(super) struct Nothing(pub(super) Arc<dyn Target>);

impl Target for Nothing {
    fn description(&self) -> &TargetDescription {
        self.0.description()
    }

    fn engine(&self, options: &Options) -> Result<Box<dyn Engine>, EngineError> {
        Ok(Box::new(Null::new(options.depth as usize, options.clock)))
    }

    fn space(&self) -> Result<FileSystemSpace, TargetError> {
        self.0.space()
    }

    fn stripe(&self, count: Option<u32>) -> Result<Option<u32>, TargetError> {
        self.0.stripe(count)
    }

    fn clear(&self) -> Result<(), TargetError> {
        Ok(())
    }

    fn remove(&self) -> Result<(), TargetError> {
        Ok(())
    }
}
