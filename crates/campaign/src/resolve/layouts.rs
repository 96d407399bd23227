//! Checks that the files and frames of recordings can be as the plan asks.

use nilometer_model::{Seed, TargetDescription};
use nilometer_plan::RecordingRun;
use nilometer_recording::instrument::Content;

use super::ResolveError;

/// Checks that each target lets Nilometer choose the stripes that recordings ask for.
pub(super) fn check_stripes(
    stage: &str,
    runs: &[&RecordingRun],
    onto: &[TargetDescription],
) -> Result<(), ResolveError> {
    for run in runs {
        let layout = run.swept.layout();
        let checked = onto.iter().try_for_each(|on| on.check_stripes(&layout));
        checked.map_err(|refused| ResolveError::Stripes { stage: stage.to_owned(), refused })?;
    }
    Ok(())
}

/// Checks that frames can have the compressibility that the plan asks for.
pub(super) fn check_frames(stage: &str, run: &RecordingRun) -> Result<(), ResolveError> {
    if run.swept.compressibility.is_none() {
        return Ok(());
    }
    let instrument = &run.instrument;
    let checked = Content::check(&instrument.data, &instrument.shape, instrument.pixel, Seed(0));
    checked.map_err(|error| ResolveError::Frames {
        stage: stage.to_owned(),
        instrument: instrument.name.clone(),
        why: error.to_string(),
    })
}
