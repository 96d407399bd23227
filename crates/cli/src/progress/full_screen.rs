//! The progress of a campaign as a view that fills the terminal.

use nilometer_campaign::{Now, SoFar};
use nilometer_plan::Results;

use super::{called, figures, roughly};
use crate::screen::{Screen, ScreenContent};

/// A view of a campaign: its place, its figures, the rate as a curve, and a line for each measurement.
#[derive(Debug)]
pub(super) struct CampaignScreen {
    screen: Screen,
    content: ScreenContent,
}

/// The most lines that the view keeps.
const LINES_MOST: usize = 500;

impl CampaignScreen {
    pub(super) fn open(title: &str) -> Self {
        let content = ScreenContent { title: title.into(), ..ScreenContent::default() };
        CampaignScreen { screen: Screen::open(), content }
    }

    /// Adds a line to the list.
    pub(super) fn add(&mut self, line: String) {
        self.content.list.push(line);
        let excess = self.content.list.len().saturating_sub(LINES_MOST);
        self.content.list.drain(..excess);
        self.screen.draw(&self.content);
    }

    /// Shows the running phase.
    pub(super) fn show(&mut self, head: &Results, now: &Now<'_>, recent: SoFar) {
        let target = match now.targets {
            [one] => called(head, *one).to_owned(),
            several => format!("{} targets at once", several.len()),
        };
        let share = now.done as f64 / now.of.max(1) as f64;
        let left = now.left.map(|left| format!(", {} left", roughly(left))).unwrap_or_default();
        let is_alarm = now.so_far.frames_lost > 0 || now.so_far.errors > 0;
        let phase =
            format!("{target}: {} {}, repeat {}", now.phase.name(), head.cells[now.cell], now.repeat + 1);
        self.content.gauge = Some((share, format!("{} of {}{left}", now.done, now.of)));
        self.content.figures = vec![figures(now, recent), phase];
        self.content.is_alarm = is_alarm;
        self.content.curve = Some(curve(recent));
        self.screen.draw(&self.content);
    }
}

/// The rate of the last second: bytes, or operations if the phase moves none.
fn curve(recent: SoFar) -> (String, u64) {
    let seconds = recent.elapsed.seconds().max(1e-9);
    let (name, count) = match recent.bytes {
        0 => ("operations a second", recent.operations),
        bytes => ("bytes a second", bytes),
    };
    #[expect(clippy::cast_sign_loss, reason = "no rate is negative")]
    let rate = (count as f64 / seconds) as u64;
    (name.into(), rate)
}
