//! The recordings of a campaign, by instrument.

use nilometer_plan::{Measured, Onto, RecordedInstrument, RecordingRun, Results};

/// All samples of an instrument, or of several together.
#[derive(Debug, Clone)]
pub struct StudyRecording<'a> {
    /// The instrument.
    pub instrument: RecordedInstrument,
    /// Samples by target, in chronological order.
    pub samples: Vec<&'a Measured>,
}

/// The recordings onto targets, in the order of the plan.
pub(crate) fn study_recordings(results: &Results) -> Vec<StudyRecording<'_>> {
    let mut samples: Vec<&Measured> =
        results.samples.iter().filter(|measured| measured.sample.ingest.is_some()).collect();
    samples.sort_by_key(|measured| (measured.key.cell, measured.key.target, measured.key.repeat));
    let mut recordings: Vec<StudyRecording<'_>> = Vec::new();
    for measured in samples {
        let run = results.recording(measured.key).filter(|run| run.onto == Onto::Target);
        let Some(instrument) = run.map(RecordingRun::recorded_instrument) else { continue };
        match recordings.iter_mut().find(|known| known.instrument == instrument) {
            Some(recording) => recording.samples.push(measured),
            None => recordings.push(StudyRecording { instrument, samples: vec![measured] }),
        }
    }
    for recording in &mut recordings {
        recording.samples.sort_by_key(|measured| measured.key.target);
    }
    recordings
}
