//! The engine that writes a recording into all of its directories.

use std::sync::Arc;

use nilometer_acquisition::{ChosenEngine, EngineWish, suited_engine};
use nilometer_storage::{Clock, target::KeptDirectory};

use crate::error::ServiceError;

/// Chooses the engine that works in all directories.
///
/// # Errors
///
/// The user named an engine that does not work in one of them.
pub(super) fn common_engine(
    targets: &[Arc<dyn KeptDirectory>],
    wish: EngineWish,
    clock: Clock,
) -> Result<ChosenEngine, ServiceError> {
    let engines = targets.iter().map(|target| suited_engine(target.as_ref(), wish, clock));
    let engines = engines.collect::<Result<Vec<_>, _>>().map_err(ServiceError::failed)?;
    ChosenEngine::for_all(engines)
        .ok_or_else(|| ServiceError::Failed("the recording has no directory".into()))
}
