//! A table of a study with own figures, ready to be shown.

use nilometer_model::TargetDescription;
use nilometer_plan::Results;

use super::own_figure::OwnFigure;

/// A target of a record.
#[derive(Debug, Clone)]
pub struct OwnTarget<'a> {
    /// Its letter in the report.
    pub letter: String,
    /// The results of its record.
    pub results: &'a Results,
    /// Index into [`Results::targets`].
    pub target: usize,
}

/// A study with its tables.
#[derive(Debug, Clone, PartialEq)]
pub struct PaperStudy {
    /// Its title.
    pub title: String,
    /// The name of its files in `reference/`.
    pub name: &'static str,
    /// The scale of own figures, a sentence for each target; empty without own figures.
    pub own: Vec<String>,
    /// True if a record was imported from the study's table.
    pub is_imported: bool,
    /// The tables with own figures; all tables if there are none.
    pub tables: Vec<PaperTable>,
    /// Other tables and rows, with the place or the reason.
    pub elsewhere: Vec<String>,
}

/// A table with the study's lines, columns and units.
#[derive(Debug, Clone, PartialEq)]
pub struct PaperTable {
    /// Its number or name in the study.
    pub name: String,
    /// The heading of the names of lines.
    pub row: String,
    /// The heading of the second name of a line, a system or a figure; `None` if lines have one name.
    pub on: Option<&'static str>,
    /// The headings of its figures, with units.
    pub columns: Vec<String>,
    /// Its lines.
    pub lines: Vec<PaperLine>,
    /// Differences between the study's measurement and one's own, and the work of own figures.
    pub notes: Vec<String>,
    /// Reasons for missing own figures.
    pub gaps: Vec<String>,
}

/// A line of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct PaperLine {
    /// The name of the line.
    pub row: String,
    /// Its system or figure.
    pub on: String,
    /// A cell for each column.
    pub cells: Vec<PaperCell>,
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum PaperCell {
    /// The study's own figure, in the column's unit.
    Published(String),
    /// The study has no such figure.
    Unpublished,
    /// One's own, and its unit if the column has none.
    Own(OwnFigure, &'static str),
}

impl OwnTarget<'_> {
    /// Returns true if it stands for several targets, over which only recordings are made.
    pub(super) fn is_joined(&self) -> bool {
        let campaign = self.results.campaign.as_ref();
        let description = campaign.and_then(|campaign| campaign.targets.get(self.target));
        description.is_some_and(TargetDescription::is_joined)
    }

    /// The factor for the sizes of its plan.
    pub(super) fn scale(&self) -> f64 {
        self.results.campaign.as_ref().map_or(1.0, |campaign| campaign.plan.scale)
    }

    /// The number of machines of its campaign.
    pub(super) fn nodes(&self) -> usize {
        self.results.campaign.as_ref().map_or(1, |campaign| campaign.plan.node_ranks.len().max(1))
    }

    /// Returns true if each run of several processes on it has the state of each node before, as records have from
    /// schema 10 on.
    pub(super) fn has_node_starts(&self) -> bool {
        let own = self.results.samples.iter().filter(|measured| measured.key.target == self.target);
        let mut runs = own.filter(|measured| !measured.sample.parts.is_empty()).peekable();
        runs.peek().is_some() && runs.all(|measured| !measured.sample.node_starts.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use nilometer_model::{Nanos, NodeStart, Phase, RankPart, Sample};
    use nilometer_plan::{Key, Measured};

    use super::*;

    #[test]
    fn a_target_has_the_state_of_nodes_if_each_of_its_runs_of_several_processes_has_it() {
        let measured = |target, parts: usize, starts: usize| Measured {
            key: Key { target, cell: 0, repeat: 0, phase: Phase::Write },
            sample: Sample {
                parts: vec![RankPart::default(); parts],
                node_starts: vec![NodeStart::default(); starts],
                ..Sample::new(Nanos(0))
            },
        };
        let has = |samples: &[Measured]| {
            let results = Results { samples: samples.into(), ..Results::default() };
            OwnTarget { letter: "A".into(), results: &results, target: 0 }.has_node_starts()
        };
        assert!(has(&[measured(0, 2, 2), measured(0, 0, 0)]), "a single process has none");
        assert!(!has(&[measured(1, 2, 2), measured(0, 2, 0)]), "that of another target does not count");
        assert!(!has(&[measured(0, 2, 2), measured(0, 2, 0)]), "a repeat of schema 9 has none");
        assert!(!has(&[]));
    }
}
