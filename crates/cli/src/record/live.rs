//! The progress of a recording, on stderr: on a terminal a line that is rewritten every second, elsewhere a
//! line every ten seconds.

use nilometer_acquisition::Status;
use nilometer_model::{Moment, Nanos};
use nilometer_storage::Calendar;

use super::{
    disks::failures,
    figures::{line, silent},
    recording_screen::RecordingScreen,
};
use crate::{screen::Screen, status_line::StatusLine, tell};

/// The form of the progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LiveForm {
    /// None: only warnings.
    Quiet,
    Line,
    /// A view that fills the terminal; a line if there is no terminal.
    Screen,
}

/// Prints the progress of a recording.
#[derive(Debug)]
pub(super) struct Live {
    line: StatusLine,
    /// The view that fills the terminal, in place of the line.
    screen: Option<RecordingScreen>,
    every: Option<Nanos>,
    next: Nanos,
    /// The time of the last check for silence, and the sources that were silent then.
    looked: Nanos,
    silent: Vec<String>,
    /// The failures of directories that it has reported.
    reported: Vec<String>,
}

const ON_TERMINAL: Nanos = Nanos::from_millis(1000);
const ELSEWHERE: Nanos = Nanos::from_millis(10_000);
/// The time between two checks for silent sources.
const LOOK: Nanos = Nanos::from_millis(250);

impl Live {
    /// Begins to show the progress of the recording `name`.
    pub(super) fn new(name: &str, form: LiveForm, now: Nanos) -> Self {
        let every = if StatusLine::is_possible() { ON_TERMINAL } else { ELSEWHERE };
        let fills = form == LiveForm::Screen && Screen::is_possible();
        Live {
            line: StatusLine::default(),
            screen: fills.then(|| RecordingScreen::open(name)),
            every: (form != LiveForm::Quiet).then_some(every),
            next: now + every,
            looked: now,
            silent: Vec::new(),
            reported: Vec::new(),
        }
    }

    /// Reports at once, quiet or not, each directory that takes no more and each sender and thread that became silent.
    pub(super) fn warn(&mut self, now: Nanos, status: impl FnOnce() -> Status) {
        if now.since(self.looked) < LOOK {
            return;
        }
        self.looked = now;
        let status = status();
        self.report_failures(&status);
        let silent = silent(&status);
        let new: Vec<_> = silent.iter().filter(|one| !self.silent.contains(one)).cloned().collect();
        if !new.is_empty() {
            self.line.clear();
            tell::note(new.join("; "));
        }
        self.silent = silent;
    }

    fn report_failures(&mut self, status: &Status) {
        for failure in failures(&status.lanes) {
            let text = failure.to_string();
            if self.reported.contains(&text) {
                continue;
            }
            self.line.clear();
            let time = Moment(Calendar::now().time).time_of_day();
            let going_on = status.lanes.iter().filter(|lane| lane.state == "writing").count();
            tell::note(format_args!("{time} {text}, {going_on} of {} go on", status.lanes.len()));
            self.reported.push(text);
        }
    }

    /// Prints the progress, if it is due.
    pub(super) fn tell(&mut self, now: Nanos, status: impl FnOnce() -> Status) {
        let Some(every) = self.every.filter(|_| now >= self.next) else { return };
        self.next = now + every;
        let status = status();
        if let Some(screen) = &mut self.screen {
            screen.show(&status);
            return;
        }
        let text = line(&status);
        if StatusLine::is_possible() {
            self.line.rewrite(|width| text.chars().take(width).collect());
        } else {
            tell::note(text);
        }
    }

    /// Removes the line, and reports failures since the last check.
    pub(super) fn end(&mut self, status: &Status) {
        self.screen = None;
        self.line.clear();
        self.report_failures(status);
    }
}
