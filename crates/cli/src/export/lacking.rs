//! The faults of an export that is written and lacks blocks of its recording.

use anyhow::anyhow;
use nilometer_hdf5_recording::is_held;
use nilometer_recording::view::RecordingView;

use crate::{Failure, Outcome, foreign_text::lacking_fault, recording_text::what, tell};

/// The fault of an export whose recording has unreadable blocks.
pub(super) fn unread(whole: &RecordingView) -> Outcome {
    let faults = whole.faults();
    let Some(why) = &faults.first else { return Ok(()) };
    let count = whole.faulted();
    let what = whole.recording(what);
    Err(Failure::Run(anyhow!(
        "written, but {count} {what} can't be read and are marked as invalid, such as {why}"
    )))
}

/// The fault of an export from files without a journal of which packets or bytes are left out.
pub(super) fn left_out(whole: &RecordingView) -> Outcome {
    match whole.recording(lacking_fault) {
        Some(why) => Err(Failure::Run(anyhow!("written, but {why}"))),
        None => Ok(()),
    }
}

/// The newest blocks of a running recording, among which those that are missing may still come: other lanes may have
/// later ones already.
const NEWEST: u64 = 4096;

/// The fault of an export from a recording that lacks blocks, such as those of a directory that is gone. Blocks that a
/// running recorder may still write are no fault.
pub(super) fn lacks_blocks(whole: &RecordingView) -> Outcome {
    let missing = whole.missing_blocks();
    let count: u64 = missing.iter().map(|(_, count)| count).sum();
    if count == 0 {
        return Ok(());
    }
    let all = whole.due_blocks();
    let what = whole.recording(what);
    let newest = whole.shown_blocks().end.saturating_sub(NEWEST);
    let are_new = missing.iter().all(|(first, _)| *first >= newest);
    if are_new && !whole.is_over() && whole.recording(is_held) {
        tell::note(format_args!(
            "the recording goes on: {count} of {all} {what} are not in it, all among the newest, and may still come"
        ));
        return Ok(());
    }
    Err(Failure::Run(anyhow!("written, but {count} of {all} {what} are missing from the recording")))
}
