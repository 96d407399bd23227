//! The progress of a campaign, on stderr. For people: a line for each sample, and on a terminal two lines in
//! place for the running phase. For programs: one JSON object a line. With `--quiet`: nothing.

mod full_screen;
mod object;

use std::collections::VecDeque;

use clap::{Args, ValueEnum};

use nilometer_campaign::{BufferLevel, CampaignStep, Now, Progress, SoFar};
use nilometer_model::{ByteRate, Bytes, Goal, Ingest, Nanos, Sample};
use nilometer_plan::{
    Measured, Results,
    search::{SearchEnd, Trial},
};

use nilometer_storage::Clock;

use self::full_screen::CampaignScreen;
use crate::{network_line::last_measured, screen::Screen, status_line::StatusLine, tell};

/// The options of commands that print progress.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct ProgressOptions {
    /// Print progress on stderr in this form
    #[arg(long, value_enum, default_value_t = ProgressForm::Text, value_name = "FORM", help_heading = "While it runs")]
    progress: ProgressForm,
    /// Print no progress: only results and faults
    #[arg(long, short, conflicts_with = "progress", help_heading = "While it runs")]
    quiet: bool,
}

/// The form of progress on stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ProgressForm {
    /// One line for each measurement
    Text,
    /// A view that fills the terminal
    Screen,
    /// One JSON object a line, about once a second and for each measurement
    Json,
}

/// Prints the progress of a campaign.
#[derive(Debug)]
pub(crate) struct Show<'a> {
    head: &'a Results,
    options: ProgressOptions,
    clock: Clock,
    /// The time at which programs last got the running phase; `None` before the first.
    told: Option<Nanos>,
    recent: Recent,
    line: StatusLine,
    /// The view that fills the terminal, if the user asked for it and there is a terminal.
    screen: Option<CampaignScreen>,
    /// One entry for each target: true if the campaign no longer uses it.
    left_out: Vec<bool>,
}

impl<'a> Show<'a> {
    /// Starts with no progress. `head` has the names of targets and cells.
    pub(crate) fn new(head: &'a Results, options: ProgressOptions) -> Self {
        let fills = options.progress == ProgressForm::Screen && !options.quiet && Screen::is_possible();
        Show {
            head,
            options,
            screen: fills.then(|| CampaignScreen::open(&head.title)),
            clock: Clock::start(),
            told: None,
            recent: Recent::default(),
            line: StatusLine::default(),
            left_out: vec![false; head.targets.len()],
        }
    }

    /// Prints one step of the progress.
    pub(crate) fn tell(&mut self, progress: &Progress<'_>) {
        if let Progress::LeftOut { target, .. } = progress {
            self.left_out[*target] = true;
        }
        match self.options {
            // A target that drops out is a fault, and `--quiet` prints faults.
            ProgressOptions { quiet: true, .. } if !matches!(progress, Progress::LeftOut { .. }) => {}
            ProgressOptions { progress: ProgressForm::Json, .. } => self.tell_object(progress),
            ProgressOptions { progress: ProgressForm::Text | ProgressForm::Screen, .. } => {
                self.tell_text(progress);
            }
        }
    }

    fn tell_object(&mut self, progress: &Progress<'_>) {
        let mut recent = SoFar::default();
        if let Progress::Now(now) = progress {
            recent = self.recent.see(now.so_far);
            let time = self.clock.now();
            if self.told.is_some_and(|told| time.since(told) < OBJECTS_EVERY) {
                return;
            }
            self.told = Some(time);
        }
        tell::note_object(&object::object(self.head, progress, recent));
    }

    fn tell_text(&mut self, progress: &Progress<'_>) {
        match progress {
            Progress::Now(now) => self.rewrite(now),
            other => {
                let Some(line) = event_line(self.head, other) else { return };
                if let Some(screen) = &mut self.screen {
                    screen.add(line);
                } else {
                    self.clear();
                    tell::note(line);
                }
            }
        }
    }

    /// Removes the lines of the running phase, before other output.
    pub(crate) fn clear(&mut self) {
        self.screen = None;
        self.line.clear();
    }

    /// One entry for each target, in the order of the plan: true if the campaign gave it up.
    pub(crate) fn left_out(&self) -> &[bool] {
        &self.left_out
    }

    fn rewrite(&mut self, now: &Now<'_>) {
        let recent = self.recent.see(now.so_far);
        let head = self.head;
        if let Some(screen) = &mut self.screen {
            screen.show(head, now, recent);
            return;
        }
        self.line.rewrite(|width| status(head, now, recent, width));
    }
}

/// The time between two objects about the running phase.
const OBJECTS_EVERY: Nanos = Nanos::from_millis(1000);

impl ProgressOptions {
    /// Switches all further output on stderr to this form.
    pub(crate) fn apply(self) {
        if self.progress == ProgressForm::Json {
            tell::notes_as_json();
        }
    }
}

/// The line of an event. `None` for the running phase, which has a line of its own.
fn event_line(head: &Results, progress: &Progress<'_>) -> Option<String> {
    Some(match progress {
        Progress::Now(_) => return None,
        Progress::Measured { done, of, left, measured, trial } => {
            let what = trial.map(|number| tried(head, number, measured));
            let what = what.unwrap_or_else(|| line(head, measured));
            let left = left.map(|left| format!(" ({} left)", roughly(left))).unwrap_or_default();
            format!("[{done}/{of}] {what}{left}")
        }
        Progress::Searches { target, cell, bound } => {
            format!("{}: searching: {}: {bound}", called(head, *target), head.cells[*cell])
        }
        Progress::Found { target, cell, found } => {
            format!("{}: {}: searched: {found}", called(head, *target), head.cells[*cell].stage)
        }
        Progress::LeftOut { target, why } => {
            format!("{}: left out from here on: {why}", called(head, *target))
        }
        Progress::Network { results, done, of, .. } => {
            format!("[network {done}/{of}] {}", last_measured(results).unwrap_or_default())
        }
        Progress::Event(what) => format!("note: {what}"),
    })
}

/// A target's name before a colon.
fn called(head: &Results, index: usize) -> &str {
    head.targets[index].path.trim_end_matches(':')
}

/// The line of a sample.
fn line(head: &Results, Measured { key, sample }: &Measured) -> String {
    let target = called(head, key.target);
    let cell = &head.cells[key.cell];
    let phase = key.phase.name();
    let result = result(sample);
    format!("{target}: {phase} {cell}: {result}")
}

/// The line of one trial of a search: its settings and its outcome.
fn tried(head: &Results, number: u32, Measured { key, sample }: &Measured) -> String {
    let target = called(head, key.target);
    let instrument = &head.cells[key.cell].stage;
    let what = match &sample.ingest {
        Some(ingest) if ingest.goal == Goal::Buffer => {
            let buffer = Bytes(ingest.slots * ingest.frame_size.0);
            format!("buffer of {buffer} ({} frames)", ingest.slots)
        }
        Some(ingest) => ByteRate::of(ingest.frame_size.0, ingest.period).to_string(),
        None => "not begun".into(),
    };
    format!("{target}: {instrument}: trial {number}: {what}: {}", came_of(sample))
}

/// The outcome of a trial.
fn came_of(sample: &Sample) -> String {
    let lost = sample.ingest.as_ref().map_or(0, Ingest::losses);
    match (&sample.invalid, Trial::of(sample).map(|trial| trial.ended)) {
        (Some(why), _) => format!("INVALID: {why}"),
        (None, Some(SearchEnd::Lost)) if lost == 0 => "would lose: the buffer was still filling".into(),
        (None, Some(SearchEnd::Lost)) => format!("lost {lost}"),
        _ => "carried".into(),
    }
}

fn result(sample: &Sample) -> String {
    match &sample.invalid {
        Some(why) => format!("INVALID: {why}"),
        None if sample.bytes > 0 => sample.rate().to_string(),
        None => format!("{:.0} operations/s", sample.operation_rate()),
    }
}

/// The running phase, in two lines of at most `width` columns: its place in the campaign, and its figures. To
/// fit, names get shorter first.
fn status(head: &Results, now: &Now<'_>, recent: SoFar, width: usize) -> String {
    let target = match now.targets {
        [one] => called(head, *one).to_owned(),
        several => format!("{} targets at once", several.len()),
    };
    let front = format!("[{}/{}] ", now.done, now.of);
    let left = now.left.map(|left| format!(", {} left", roughly(left))).unwrap_or_default();
    let back = format!(", repeat {}{left}", now.repeat + 1);
    let what = format!("{target}: {} {}", now.phase.name(), head.cells[now.cell]);
    let room = width.saturating_sub(front.chars().count() + back.chars().count());
    let first = front + &shortened(&what, room) + &back;
    let second = format!("  {}", figures(now, recent));
    [first, second].map(|line| line.chars().take(width).collect::<String>()).join("\n")
}

/// The figures of the running phase: rate and latency of the last second, level of the buffer, faults until
/// now.
fn figures(now: &Now<'_>, recent: SoFar) -> String {
    let mut parts = vec![throughput(recent)];
    parts.extend(mean_latency(recent).map(|latency| format!("latency {latency} in the mean")));
    if let Some(BufferLevel { frames, most, room }) = now.so_far.buffer {
        let percent = |frames: u64| 100 * frames / room.max(1);
        parts.push(format!("buffer {} %, at most {} %", percent(frames), percent(most)));
    }
    for (count, what) in [(now.so_far.frames_lost, "LOST"), (now.so_far.errors, "ERRORS")] {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    }
    parts.join(", ")
}

/// The mean latency of the last second's operations. `None` if none was finished, or the phase has no
/// latencies.
fn mean_latency(recent: SoFar) -> Option<Nanos> {
    let known = recent.operations > 0 && recent.latency_sum > Nanos(0);
    known.then(|| Nanos(recent.latency_sum.0 / recent.operations))
}

fn shortened(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.into();
    }
    let kept: String = text.chars().take(room.saturating_sub(3)).collect();
    format!("{kept}...")
}

fn throughput(recent: SoFar) -> String {
    let seconds = recent.elapsed.seconds().max(1e-9);
    match recent {
        SoFar { step: CampaignStep::Settling, .. } => "waiting for write-back to settle".into(),
        SoFar { step: CampaignStep::Preparing(memory), .. } => format!("preparing {memory} of memory"),
        SoFar { step: CampaignStep::ReadingOn, .. } => "readers come to the end".into(),
        SoFar { step: CampaignStep::ReadingBack(0), .. } => "ending".into(),
        SoFar { step: CampaignStep::ReadingBack(frames), .. } => format!("reading back {frames} frames"),
        SoFar { elapsed: Nanos(0), .. } => "preparing".into(),
        SoFar { bytes: 0, operations: 0, .. } => "running".into(),
        SoFar { bytes: 0, operations, .. } => format!("{:.0} operations/s", operations as f64 / seconds),
        SoFar { bytes, elapsed, .. } => ByteRate::of(bytes, elapsed).to_string(),
    }
}

/// A time in words: `50 s`, `14 min`, `3 h 20 min`.
fn roughly(time: Nanos) -> String {
    #[expect(clippy::cast_sign_loss, reason = "a time is never negative")]
    let seconds = time.seconds().round() as u64;
    match seconds {
        0..100 => format!("{seconds} s"),
        100..6000 => format!("{} min", (seconds + 30) / 60),
        _ => {
            let minutes = seconds.div_ceil(60);
            format!("{} h {} min", minutes / 60, minutes % 60)
        }
    }
}

/// The work of a phase over about the last second.
#[derive(Debug, Default)]
struct Recent(VecDeque<SoFar>);

impl Recent {
    const OVER: Nanos = Nanos::from_millis(1000);

    /// Adds the work until now, and returns the recent work.
    fn see(&mut self, now: SoFar) -> SoFar {
        if self.0.back().is_some_and(|last| last.elapsed > now.elapsed || last.operations > now.operations) {
            self.0.clear();
        }
        if self.0.is_empty() {
            self.0.push_back(SoFar::default());
        }
        self.0.push_back(now);
        while self.0.get(1).is_some_and(|second| now.elapsed.since(second.elapsed) >= Self::OVER) {
            self.0.pop_front();
        }
        let first = self.0.front().copied().unwrap_or_default();
        SoFar {
            bytes: now.bytes - first.bytes.min(now.bytes),
            operations: now.operations - first.operations,
            latency_sum: now.latency_sum.since(first.latency_sum),
            elapsed: now.elapsed.since(first.elapsed),
            ..now
        }
    }
}

#[cfg(test)]
mod tests {
    use nilometer_model::{Invalid, Phase};
    use nilometer_plan::{Key, TargetEntry, parse};

    use super::*;
    use crate::status_line::WIDTHS;

    fn head() -> Results {
        let target = |path: &str| TargetEntry { path: path.into(), ..TargetEntry::default() };
        let plan = "title = \"t\"\n[[stage]]\nname = \"s\"\nworkers = 2\n[stage.workload.stream]\nfile_size = \"512 MiB\"\n\
                    block_size = \"1 MiB\"\naccess = \"direct\"\n";
        let cells = parse(plan, "t.toml", 1.0).expect("a valid plan").cells;
        Results { targets: vec![target("/mnt/a"), target("/mnt/b")], cells, ..Results::default() }
    }

    fn now(targets: &[usize]) -> Now<'_> {
        let left = Some(Nanos::from_millis(840_000));
        Now {
            targets,
            cell: 0,
            repeat: 2,
            phase: Phase::Write,
            so_far: SoFar::default(),
            done: 12,
            of: 360,
            left,
        }
    }

    fn so_far(millis: u64, bytes: u64, operations: u64) -> SoFar {
        SoFar { bytes, operations, elapsed: Nanos::from_millis(millis), ..SoFar::default() }
    }

    #[test]
    fn the_line_says_what_runs_how_fast_and_how_long_still() {
        let recent = SoFar { latency_sum: Nanos::from_millis(1200), ..so_far(500, 600_000_000, 600) };
        let text = status(&head(), &now(&[0]), recent, 100);
        let lines = "[12/360] /mnt/a: write 512 MiB by 1 MiB, direct, 2 workers, repeat 3, 14 min left\n  1.2 GB/s, latency 2 ms \
                     in the mean";
        assert_eq!(text, lines);
        let text = status(&head(), &now(&[0, 1]), so_far(500, 0, 600), 60);
        assert_eq!(text, "[12/360] 2 targets at once: write ..., repeat 3, 14 min left\n  1200 operations/s");
        let level = BufferLevel { frames: 30, most: 80, room: 200 };
        let so_far = SoFar { buffer: Some(level), frames_lost: 7, ..so_far(500, 600_000_000, 600) };
        let text = status(&head(), &Now { so_far, ..now(&[0]) }, so_far, 100);
        assert!(text.ends_with("1.2 GB/s, buffer 15 %, at most 40 %, 7 LOST"), "{text}");
        for width in WIDTHS {
            let text = status(&head(), &now(&[1]), SoFar::default(), width);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
        }
    }

    #[test]
    fn what_takes_seconds_is_named() {
        let texts =
            [CampaignStep::Settling, CampaignStep::Preparing(Bytes(1 << 30)), CampaignStep::ReadingBack(180)]
                .map(|step| throughput(SoFar { step, ..SoFar::default() }));
        let expected =
            ["waiting for write-back to settle", "preparing 1 GiB of memory", "reading back 180 frames"];
        assert_eq!(texts, expected);
    }

    #[test]
    fn a_trial_says_its_number_what_was_tried_and_how_it_ended() {
        let key = Key { target: 0, cell: 0, repeat: 3, phase: Phase::Ingest };
        let trial = |goal, lost, invalid| {
            let ingest = Ingest {
                goal,
                lost,
                due: 600,
                slots: 100,
                period: Nanos::from_millis(10),
                frame_size: Bytes(10_000_000),
                ..Ingest::default()
            };
            let sample = Sample { ingest: Some(ingest), invalid, ..Sample::new(Nanos(0)) };
            tried(&head(), 17, &Measured { key, sample })
        };
        let [carried, lost] = [0, 12].map(|lost| trial(Goal::Search, lost, None));
        assert!(
            carried.starts_with("/mnt/a: ") && carried.ends_with(": trial 17: 1 GB/s: carried"),
            "{carried}"
        );
        assert!(lost.ends_with(": trial 17: 1 GB/s: lost 12"), "{lost}");
        let buffer = trial(Goal::Buffer, 0, None);
        assert!(
            buffer.contains("trial 17: buffer of ") && buffer.ends_with("(100 frames): carried"),
            "{buffer}"
        );
        let invalid = trial(Goal::Search, 0, Some(Invalid::Starved(None)));
        assert!(invalid.ends_with("INVALID: the tool itself waited for a processor"), "{invalid}");
    }

    #[test]
    fn times_are_rough() {
        let texts = [0, 99, 100, 5999, 12_000].map(|seconds| roughly(Nanos::from_millis(seconds * 1000)));
        assert_eq!(texts, ["0 s", "99 s", "2 min", "100 min", "3 h 20 min"]);
    }

    #[test]
    fn the_rate_is_of_the_last_second_and_of_one_phase() {
        let mut recent = Recent::default();
        assert_eq!(recent.see(so_far(200, 20, 2)), so_far(200, 20, 2));
        for step in 2..=10 {
            recent.see(so_far(200 * step, 20 * step, 2 * step));
        }
        // A stall: no operation was finished.
        assert_eq!(recent.see(so_far(2200, 200, 20)), so_far(1000, 80, 8));
        assert_eq!(recent.see(so_far(200, 5, 1)), so_far(200, 5, 1), "the next phase");
    }
}
