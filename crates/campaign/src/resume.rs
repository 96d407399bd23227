//! Continues a campaign from its record: removes the files of the killed one, and uses targets again that were
//! left out.

use nilometer_model::{Nanos, RunHandle, TargetDescription};
use nilometer_plan::{Event, PlannedCampaign, Results};
use nilometer_record::{Begun, Record, RecordError};
use nilometer_remote::{clean_run, is_run_at};
use nilometer_storage::{Calendar, TargetError, in_time, target::Cleaned};

use crate::turns::Trials;

/// The trials of searches in a record; each follows from those before.
pub fn recorded_trials(results: &Results) -> Trials {
    let mut trials = Trials::default();
    for measured in &results.samples {
        if let Some(run) = results.recording(measured.key) {
            trials.add(run, measured.key, &measured.sample);
        }
    }
    trials
}

/// Removes the runs in a place that a killed campaign left. Returns true if there was one. `tell` receives a
/// message about each run that stays.
pub fn remove_left_runs(place: &TargetDescription, left: &[&RunHandle], tell: &mut dyn FnMut(&str)) -> bool {
    let there = left.iter().filter(|handle| is_run_at(handle, place));
    there.filter(|handle| remove(handle, tell)).count() > 0
}

/// The longest time for removing the files of a killed campaign.
const PATIENCE: Nanos = Nanos::from_millis(600_000);
/// The number of tries: a killed process releases its files only a moment later.
const TRIES: u32 = 40;
const STEP: Nanos = Nanos::from_millis(50);

/// Removes a run of a killed campaign. Returns true if it existed and is gone.
fn remove(run: &RunHandle, tell: &mut dyn FnMut(&str)) -> bool {
    let held = run.clone();
    let why = match in_time(PATIENCE, run.0.clone().into(), move || cleaned(&held)) {
        Ok(Ok(was_there)) => return was_there,
        Ok(Err(error)) | Err(error) => error,
    };
    tell(&format!(
        "{run}: the killed campaign left it, and it stays: {why}: `nilometer clean {run}` removes it"
    ));
    false
}

/// Returns true if the run existed and is gone.
fn cleaned(run: &RunHandle) -> Result<bool, TargetError> {
    let mut held = None;
    for _ in 0..TRIES {
        let Some(Cleaned { left, .. }) = clean_run(run)? else { return Ok(false) };
        match left.into_iter().next() {
            None => return Ok(true),
            Some(error @ TargetError::InUse { .. }) => held = Some(error),
            Some(error) => return Err(error),
        }
        std::thread::sleep(STEP.duration());
    }
    held.map_or(Ok(true), Err)
}

/// Notes that this version of the program continues the campaign, and gives targets that were left out another
/// chance.
///
/// # Errors
/// If the record can't be written.
pub fn go_on(
    record: &mut Record,
    resolved: &PlannedCampaign,
    begun: &Begun,
    in_use: &[bool],
    version: &str,
) -> Result<(), RecordError> {
    let note = |record: &mut Record, what: String| record.note(&Event { at: Calendar::now().time, what });
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy();
    let done = begun.done.len();
    let samples = if done == 1 { "sample" } else { "samples" };
    note(record, format!("resumed by nilometer {version} on {host}, with {done} {samples}"))?;
    for (index, why) in begun.left_out.iter().enumerate() {
        if let (Some(why), true) = (why, in_use[index]) {
            let path = &resolved.targets[index].address;
            record.take_back(index)?;
            note(record, format!("{path}: used again, after it was left out: {why}"))?;
        }
    }
    Ok(())
}
