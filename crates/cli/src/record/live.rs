//! The progress of a recording, on stderr: on a terminal a line that is rewritten every second, elsewhere a
//! line every ten seconds.

use nilometer_acquisition::{LaneStatus, Status};
use nilometer_model::{Moment, Nanos};
use nilometer_storage::Calendar;

use super::{
    disks::failures,
    figures::{fitting_line, line, silent},
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
            tell::note(format_args!("{time} {text}, {}", going_on(&status.lanes)));
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
        if StatusLine::is_possible() {
            self.line.rewrite(|width| fitting_line(&status, width));
        } else {
            tell::note(line(&status));
        }
    }

    /// Removes the line, and reports failures since the last check.
    pub(super) fn end(&mut self, status: &Status) {
        self.screen = None;
        self.line.clear();
        self.report_failures(status);
    }
}

/// `3 of 4 go on`: the directories that still take data.
fn going_on(lanes: &[LaneStatus]) -> String {
    let writing = lanes.iter().filter(|lane| lane.state == "writing").count();
    match (writing, lanes.len()) {
        (0, 1) => "and no other directory takes its place".into(),
        (0, all) => format!("none of {all} goes on"),
        (1, all) => format!("1 of {all} goes on"),
        (some, all) => format!("{some} of {all} go on"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directories_that_go_on_are_counted_in_plain_words() {
        let lane = |state| LaneStatus { state, ..LaneStatus::default() };
        let told =
            |states: &[&'static str]| going_on(&states.iter().map(|state| lane(state)).collect::<Vec<_>>());
        assert_eq!(told(&["full"]), "and no other directory takes its place");
        assert_eq!(told(&["full", "failed"]), "none of 2 goes on");
        assert_eq!(told(&["full", "writing"]), "1 of 2 goes on");
        assert_eq!(told(&["writing", "failed", "writing"]), "2 of 3 go on");
    }
}
