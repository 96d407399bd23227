//! All recordings of instruments, for programs: those that decide verdicts, and the others.

use nilometer_model::{ByteRate, Goal, Ingest, ReaderLoad};
use nilometer_plan::{Measured, Results};
use serde::Serialize;

use nilometer_analysis::{StudyRecording, letter};

/// All recordings of an instrument, or of several together.
#[derive(Serialize)]
pub(super) struct InstrumentRecordings {
    instrument: String,
    /// By target, in chronological order.
    samples: Vec<RecordingFigures>,
}

/// The figures of a recording.
#[derive(Serialize)]
struct RecordingFigures {
    target: String,
    cell: String,
    /// The repeat, from 1 on.
    repeat: u64,
    /// `pace`: at its own rate; `limit`: at full speed; `search`, `buffer`: one trial of many.
    goal: &'static str,
    /// The reason why its figures can't be used.
    invalid: Option<String>,
    /// The rate of arrivals; null at full speed, where frames arrive as soon as there is room.
    bytes_per_second: Option<f64>,
    /// The sustained rate of the storage at full speed; null otherwise, as the storage waits for frames.
    stored_bytes_per_second: Option<f64>,
    duration_s: f64,
    frames_due: u64,
    frames_stored: u64,
    frames_lost: u64,
    /// Frames acknowledged later than the allowance after they were due.
    frames_late: u64,
    /// Times longer than the allowance in which frames waited and the storage acknowledged none.
    stalls: u64,
    stalled_s: f64,
    longest_stall_s: f64,
    /// The fewest bytes in any whole second; null if the recording was shorter.
    slowest_second_bytes: Option<u64>,
    slots: u64,
    /// The most slots in use at once.
    slots_in_use_most: u64,
    /// Readers that read frames meanwhile, without a copy.
    readers: usize,
    /// True if one more reader copied the frames to a second target.
    copied: bool,
    /// The most that each reader should read; null without a limit.
    reader_limit_bytes_per_second: Option<f64>,
    /// The instruments recorded at the same time; empty if there were none.
    company: String,
    /// The background load; empty if there was none.
    load: String,
    /// The condition that the target was brought into; empty if it was left as it is.
    condition: String,
}

pub(super) fn instrument_recordings(
    results: &Results,
    recording: &StudyRecording<'_>,
) -> InstrumentRecordings {
    let StudyRecording { instrument, samples } = recording;
    let samples = samples.iter().filter_map(|measured| {
        let ingest = measured.sample.ingest.as_ref()?;
        Some(recording_figures(results, measured, ingest))
    });
    InstrumentRecordings { instrument: instrument.to_string(), samples: samples.collect() }
}

fn recording_figures(results: &Results, measured: &Measured, ingest: &Ingest) -> RecordingFigures {
    let Measured { key, sample } = measured;
    let at_full_speed = ingest.goal == Goal::Limit;
    let readers = ReaderLoad::of(ingest);
    let arrivals = ByteRate::of(ingest.frame_size.0, ingest.period).0;
    RecordingFigures {
        target: letter(key.target),
        cell: results.cells.get(key.cell).map(ToString::to_string).unwrap_or_default(),
        repeat: u64::from(key.repeat) + 1,
        goal: ingest.goal.name(),
        invalid: sample.invalid.as_ref().map(ToString::to_string),
        bytes_per_second: (!at_full_speed).then_some(arrivals),
        stored_bytes_per_second: at_full_speed.then(|| sample.sustained_rate().0),
        duration_s: ingest.duration.seconds(),
        frames_due: ingest.due,
        frames_stored: ingest.stored,
        frames_lost: ingest.lost,
        frames_late: ingest.late,
        stalls: ingest.stall_count,
        stalled_s: ingest.stalled.seconds(),
        longest_stall_s: ingest.longest_stall.seconds(),
        slowest_second_bytes: ingest.slowest_second.map(|bytes| bytes.0),
        slots: ingest.slots,
        slots_in_use_most: ingest.slots_high,
        readers: readers.count,
        copied: readers.copied,
        reader_limit_bytes_per_second: readers.limit().map(|limit| limit.0),
        company: ingest.company.clone(),
        load: ingest.load.clone(),
        condition: ingest.condition.clone(),
    }
}
