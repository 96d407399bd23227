//! The volume that must be recorded before a recording can show that storage is too slow. Until then memory
//! on the way may hold the excess.

use nilometer_model::{Bytes, Goal, Nanos};

use super::{Onto, RecordingRun, ResolvedPlan};

/// A buffer overflows within this many times its size if storage is a tenth slower than the frames. This
/// volume is large enough for several stalls of the length that the buffer covers.
const TIMES_THE_BUFFER: u64 = 10;

/// A cache fills within this many times its size if storage is a twentieth slower than the frames. Until then
/// it hides that.
const TIMES_THE_CACHE: u64 = 20;

/// Bytes that must arrive before a recording can show that storage is too slow, behind a buffer and a page
/// cache of these sizes.
pub fn seen_after(buffer: Bytes, cache: Bytes) -> Bytes {
    let buffer = TIMES_THE_BUFFER.saturating_mul(buffer.0);
    Bytes(buffer.saturating_add(TIMES_THE_CACHE.saturating_mul(cache.0)))
}

impl RecordingRun {
    /// The least duration of a recording that shows by itself that the storage is too slow. It is longer if
    /// frames go through the page cache.
    pub fn shows_after(&self) -> Nanos {
        let buffers = Bytes(self.buffer.0.saturating_mul(u64::from(self.count)));
        let volume = seen_after(buffers, Bytes(0));
        Nanos::from_seconds(volume.0 as f64 / self.rate().0.max(1.0))
    }
}

impl ResolvedPlan {
    /// The recordings at an instrument's pace that can't show that the storage is too slow, each with its
    /// stage. They are too short, and no recording of the instrument is at full speed.
    pub fn recordings_that_show_nothing(&self) -> impl Iterator<Item = (&str, &RecordingRun)> {
        let recordings =
            self.cells.iter().filter_map(|cell| Some((cell.stage.as_str(), cell.as_recording()?)));
        recordings.filter(|(_, run)| {
            let is_paced = run.goal == Goal::Pace && run.onto == Onto::Target;
            is_paced && run.duration < run.shows_after() && !self.has_full_speed(run)
        })
    }

    /// Returns true if the plan also records this at the full speed of the storage.
    fn has_full_speed(&self, run: &RecordingRun) -> bool {
        let recorded = run.recorded_instrument();
        self.recordings()
            .any(|(_, other)| other.goal == Goal::Limit && other.recorded_instrument() == recorded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cell;
    use nilometer_model::Instrument;

    /// A recording at 256 MB/s with a buffer of 256 MiB, which 1.05 s fill.
    fn recording(goal: Goal, seconds: f64) -> RecordingRun {
        let text = "name = \"camera\"\ntitle = \"t\"\nsource = \"s\"\nshape = [1000, 1000]\npixel = \"uint8\"\nframe_rate = \"256 Hz\"\n";
        RecordingRun {
            goal,
            duration: Nanos::from_seconds(seconds),
            buffer: Bytes(256 << 20),
            ..RecordingRun::new(Instrument::parse(text, "camera").expect("a valid instrument"))
        }
    }

    /// The recordings of a plan that can show nothing.
    fn show_nothing(runs: &[RecordingRun]) -> Vec<String> {
        let text = "title = \"t\"\n[[stage]]\nname = \"s\"\n[stage.workload.stream]\nfile_size = \"1 MiB\"\nblock_size = \"1 MiB\"\naccess = \"direct\"\n";
        let mut plan = crate::parse(text, "p.toml", 1.0).expect("a valid plan");
        let cells = runs.iter().enumerate();
        plan.cells = cells.map(|(number, run)| Cell::recording(number.to_string(), run.clone())).collect();
        plan.recordings_that_show_nothing().map(|(stage, _)| stage.to_owned()).collect()
    }

    #[test]
    fn ten_times_the_buffer_has_to_come() {
        let runs = [0.08, 10.0, 11.0].map(|seconds| recording(Goal::Pace, seconds));
        assert_eq!(show_nothing(&runs), ["0", "1"]);
        assert_eq!(runs[0].shows_after(), Nanos::from_seconds(10.0 * 268_435_456.0 / 256e6));
        let nowhere = RecordingRun { onto: Onto::Nothing, ..runs[0].clone() };
        assert_eq!(show_nothing(&[nowhere]), [""; 0]);
    }

    #[test]
    fn a_recording_at_full_speed_shows_what_a_short_one_at_its_pace_does_not() {
        let mut runs = [recording(Goal::Pace, 0.08), recording(Goal::Limit, 0.08)];
        assert_eq!(show_nothing(&runs), [""; 0]);
        runs[1].count = 2;
        assert_eq!(show_nothing(&runs), ["0"], "two of them are another instrument");
    }
}
