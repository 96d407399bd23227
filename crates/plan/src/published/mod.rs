//! The tables of five published studies: their lines, and the cells of built-in plans that measure these lines again.
//!
//! `reference/NAME.csv` has the published figures and `reference/NAME.toml` the tables. Both are built in.

mod figures;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer};

pub use figures::PublishedFigure;

use crate::built_in::PUBLISHED;

/// A published study: its tables and its figures.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedStudy {
    /// The name of its files, and the source of its figures, such as `uci-2014`.
    pub name: &'static str,
    /// Its title, with its year if the study states one.
    pub title: String,
    /// Its tables, in the order of its publication.
    pub tables: Vec<PublishedTable>,
    /// Published rows that no built-in plan measures.
    pub left_out: Vec<LeftOutRows>,
    /// Its figures, in the order of its publication.
    pub figures: Vec<PublishedFigure>,
}

/// The file of a study's tables.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StudyFile {
    title: String,
    table: Vec<PublishedTable>,
    #[serde(default)]
    left_out: Vec<LeftOutRows>,
}

/// A table of a study.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedTable {
    /// Its number or name in the study.
    pub name: String,
    /// The heading of the column with the names of its lines.
    pub row: String,
    /// Its arrangement.
    pub lines: TableLines,
    /// The unit of its figures, except those with a unit of their own.
    pub unit: String,
    /// The kinds of its figures, in the order of its columns.
    pub figures: Vec<FigureKind>,
    /// Differences between the study's measurement and the plan's.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Its lines.
    pub line: Vec<MappedLine>,
}

/// The arrangement of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TableLines {
    /// A line has the figures of a system.
    Systems,
    /// A line has the figures of a run of a system.
    Runs,
    /// A line has a figure of all systems, a column each.
    Figures,
}

/// A kind of figure in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureKind {
    /// Bytes or operations a second.
    Rate,
    /// The greatest rate of operations over repeats.
    Max,
    /// The least rate of operations over repeats.
    Min,
    /// The mean rate of operations over repeats.
    Mean,
    /// Wall time.
    Real,
    /// Processor time in user space.
    User,
    /// Processor time in the kernel.
    Sys,
    /// Real time less user and system time.
    Wait,
    /// The time of a run: the mean over nodes, with its standard error.
    Time,
    /// The load average just before a run: the mean over nodes, with its standard error.
    Load,
    /// Input and output of disks just before a run: the mean over nodes, with its standard error.
    BackgroundIo,
    /// Processor time of the process, in percent of the wall time.
    Processor,
    /// Processor time of the whole machine above its idle level, in percent of the wall time.
    MachineProcessor,
    /// Bytes a second over a network, the sum of several measurements that one after the other made.
    Sum,
    /// The gain of several processes over one, in percent of the rate.
    Gain,
    /// Segments of TCP sent again, or packets of UDP lost. The study has it as a remark.
    SentAgain,
    /// A rate as a share of the links of all servers. The study has it as a remark.
    LinkShare,
}

/// The phase of lines that a stage of the network measures again. The CSV of a record has the same word.
const NETWORK_PHASE: &str = "network";

/// A line of a table.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MappedLine {
    /// Its name.
    pub name: String,
    /// The test of its published figures; `None` if the study has none, or drew them only.
    pub test: Option<String>,
    /// The parameters of its published figures; `None` means any.
    pub params: Option<String>,
    /// The built-in plan that measures it again.
    pub plan: String,
    /// The stage of that plan.
    pub stage: String,
    /// The name of the phase, or `network` for trials of the network.
    pub phase: String,
    /// The parameters of the cell, as the plan has them. With several values each is a line of its own.
    #[serde(default)]
    pub parameters: BTreeMap<String, ParameterTexts>,
}

/// The values of a parameter, as a plan has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterTexts(pub Vec<String>);

/// Published rows without a line in a table, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOutRows {
    /// The number or name of their table.
    pub table: String,
    /// Their test; `None` means any.
    pub test: Option<String>,
    /// The reason why no table has them.
    pub why: String,
}

impl<'de> Deserialize<'de> for ParameterTexts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(u64),
            Text(String),
            Numbers(Vec<u64>),
            Texts(Vec<String>),
        }
        Ok(ParameterTexts(match Written::deserialize(deserializer)? {
            Written::Number(number) => vec![number.to_string()],
            Written::Text(text) => vec![text],
            Written::Numbers(numbers) => numbers.iter().map(u64::to_string).collect(),
            Written::Texts(texts) => texts,
        }))
    }
}

impl FigureKind {
    /// Its name in the head of a column, with its unit.
    pub fn heading(self, unit: &str) -> String {
        let name = match self {
            FigureKind::Rate => "rate",
            FigureKind::Max => "max",
            FigureKind::Min => "min",
            FigureKind::Mean => "mean",
            FigureKind::Real => "real",
            FigureKind::User => "user",
            FigureKind::Sys => "sys",
            FigureKind::Wait => "wait",
            FigureKind::Time => "time ± SEM",
            FigureKind::Load => return "load ± SEM".into(),
            FigureKind::BackgroundIo => return "background I/O ± SEM".into(),
            FigureKind::Processor => return "CPU [%]".into(),
            FigureKind::MachineProcessor => return "CPU of the machine [%]".into(),
            FigureKind::Sum => "sum",
            FigureKind::Gain => return "gain [%]".into(),
            FigureKind::SentAgain => return "sent again or lost".into(),
            FigureKind::LinkShare => return "share of the servers' links".into(),
        };
        format!("{name} [{unit}]")
    }

    /// The metrics of its published rows; empty if the studies publish no such figure.
    const fn metrics(self) -> &'static [&'static str] {
        match self {
            FigureKind::Rate | FigureKind::LinkShare => &["throughput"],
            FigureKind::Max => &["max"],
            FigureKind::Min => &["min"],
            FigureKind::Mean => &["mean"],
            FigureKind::Real => &["real"],
            FigureKind::User => &["user"],
            FigureKind::Sys => &["sys"],
            FigureKind::Wait => &["wait"],
            FigureKind::Time | FigureKind::Load | FigureKind::BackgroundIo => &["time"],
            FigureKind::Sum => &["sum"],
            FigureKind::Gain => &["gain"],
            FigureKind::SentAgain => &["throughput", "sum"],
            FigureKind::Processor | FigureKind::MachineProcessor => &[],
        }
    }
}

impl PublishedStudy {
    /// All studies. The program has them in its executable.
    pub fn all() -> Vec<PublishedStudy> {
        PUBLISHED.iter().map(|(name, tables, figures)| PublishedStudy::read(name, tables, figures)).collect()
    }

    /// The built-in plans that measure a study again, by name.
    pub fn plans() -> Vec<String> {
        let studies = PublishedStudy::all();
        let lines = studies.iter().flat_map(|study| &study.tables).flat_map(|table| &table.line);
        lines.map(|line| line.plan.clone()).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The studies' files are part of the program: a test reads each of them.
    fn read(name: &'static str, tables: &str, figures: &str) -> Self {
        let StudyFile { title, table, left_out } =
            toml::from_str(tables).unwrap_or_else(|error| panic!("reference/{name}.toml: {error}"));
        PublishedStudy { name, title, tables: table, left_out, figures: figures::read(name, figures) }
    }

    /// The published figures of a kind in a line of a table, in the order of publication.
    pub fn figures_of<'a>(
        &'a self,
        table: &'a PublishedTable,
        line: &'a MappedLine,
        kind: FigureKind,
    ) -> impl Iterator<Item = &'a PublishedFigure> {
        let of_line = move |figure: &&PublishedFigure| line.has(table, figure);
        self.figures
            .iter()
            .filter(of_line)
            .filter(move |figure| kind.metrics().contains(&figure.metric.as_str()))
            .filter(|figure| !figure.is_printed_twice())
    }
}

impl PublishedTable {
    /// Returns true if stages of the network measure its lines again. Such a table has no other lines.
    pub fn is_of_network(&self) -> bool {
        self.line.iter().all(MappedLine::is_of_network)
    }
}

impl MappedLine {
    /// Returns true if a stage of the network measures it again.
    pub fn is_of_network(&self) -> bool {
        self.phase == NETWORK_PHASE
    }

    /// Returns true if a published figure belongs to this line of a table.
    fn has(&self, table: &PublishedTable, figure: &PublishedFigure) -> bool {
        figure.table == table.name
            && self.test.as_deref() == Some(&figure.test)
            && self.params.as_ref().is_none_or(|params| *params == figure.params)
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use nilometer_model::{Instrument, Phase, catalogue::INSTRUMENTS, catalogue::look_up};

    use super::*;
    use crate::{PLANS, ResolvedPlan, parse_with};

    fn instrument(name: &str) -> Result<Instrument, String> {
        let found = look_up(name, &INSTRUMENTS, "instrument").map_err(|error| error.to_string())?;
        let built_in = found.ok_or("a path")?;
        Instrument::parse(built_in.text, built_in.name).map_err(|error| error.to_string())
    }

    fn plan(name: &str) -> ResolvedPlan {
        let built_in = PLANS.iter().find(|plan| plan.name == name).expect(name);
        parse_with(built_in.text, name, 1.0, &instrument).expect(name)
    }

    #[test]
    fn every_published_table_is_built_in() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../reference");
        let paths = fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").path());
        let tables = paths.filter(|path| path.extension().is_some_and(|extension| extension == "csv"));
        let mut names: Vec<String> =
            tables.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned()).collect();
        names.sort();
        assert_eq!(names, PublishedStudy::all().iter().map(|study| study.name).collect::<Vec<_>>());
    }

    #[test]
    fn every_published_row_is_in_a_table_or_left_out_with_a_reason() {
        for study in PublishedStudy::all() {
            for figure in &study.figures {
                let tables = study.tables.iter();
                let in_tables = tables.flat_map(|table| table.line.iter().map(move |line| (table, line)));
                let is_shown = in_tables.clone().any(|(table, line)| line.has(table, figure));
                let is_left_out = study.left_out.iter().any(|rows| {
                    rows.table == figure.table && rows.test.as_ref().is_none_or(|test| *test == figure.test)
                });
                assert_ne!(is_shown, is_left_out, "{}: {figure:?}", study.name);
            }
            for (table, line) in study.tables.iter().flat_map(|of| of.line.iter().map(move |line| (of, line)))
            {
                let has = study.figures.iter().any(|figure| line.has(table, figure));
                assert_eq!(has, line.test.is_some(), "{}: table {}: {line:?}", study.name, table.name);
            }
        }
    }

    #[test]
    fn every_line_names_a_stage_and_a_phase_of_its_plan() {
        for line in PublishedStudy::all().iter().flat_map(|study| &study.tables).flat_map(|table| &table.line)
        {
            let plan = plan(&line.plan);
            if line.is_of_network() {
                assert!(plan.network.iter().any(|run| run.stage == line.stage), "{line:?}");
                continue;
            }
            let phase = Phase::from_name(&line.phase).expect(&line.phase);
            let mut cells = plan.cells.iter().filter(|cell| cell.stage == line.stage);
            assert!(cells.any(|cell| cell.measured_phases().contains(&phase)), "{line:?}");
        }
    }

    #[test]
    fn the_matrix_of_wa105_has_48_cells_in_the_plan_and_in_the_table() {
        assert_eq!(plan("wa105").cells.len(), 48);
        let studies = PublishedStudy::all();
        let tables = studies.iter().flat_map(|study| &study.tables);
        let matrix = tables.into_iter().find(|table| table.name == "matrix").expect("WA105's");
        let cells =
            |line: &MappedLine| line.parameters.values().map(|values| values.0.len()).product::<usize>();
        assert_eq!(matrix.line.iter().map(cells).sum::<usize>(), 48);
    }
}
