//! Arranges the published figures of a network table and one's own.
//!
//! A stage measures the network once for all targets. A record's figures therefore stand there once, with the letters
//! of its targets.

use nilometer_model::{CampaignMachine, NetworkLink, NetworkResults};
use nilometer_plan::{FigureKind, MappedLine, PublishedStudy, PublishedTable, Results, ShownScale};

use super::{
    arrange::{CountedSentences, published_lines},
    own_figure::{OwnFigure, bytes_of},
    repeated::{LineParameters, RepeatedPlans},
    table::{OwnTarget, PaperCell, PaperLine, PaperTable},
    traffic::{LineTraffic, OwnTraffic, TrafficGap},
};

/// A record with the letters of its targets.
#[derive(Debug)]
struct OwnRecord<'a> {
    letters: String,
    results: &'a Results,
}

/// A line's figures in a record, or the reason why it has none.
struct AskedTraffic<'a> {
    line: &'a MappedLine,
    letters: &'a str,
    words: String,
    of_line: LineTraffic,
    found: Result<OwnTraffic, TrafficGap>,
    /// The figures that a gain is over; `None` if the line has no gain.
    base: Option<Result<OwnTraffic, TrafficGap>>,
}

/// The table of a study with the figures of these targets' records.
pub(super) fn network_table(
    study: &PublishedStudy,
    table: &PublishedTable,
    plans: &RepeatedPlans,
    own: &[OwnTarget<'_>],
) -> PaperTable {
    let records = records_of(own);
    let mut lines = Vec::new();
    let mut gaps = CountedSentences::default();
    for line in &table.line {
        lines.extend(published_lines(study, table, line));
        for asked in records.iter().flat_map(|record| asked(line, plans, record)) {
            lines.push(own_line(table, &asked));
            if let Some(why) = asked.gap(table) {
                gaps.add(asked.letters, why);
            }
        }
    }
    let mut notes = table.notes.clone();
    notes.extend(records.iter().filter_map(shorter_trials));
    notes.extend(records.iter().map(links_of));
    PaperTable {
        name: table.name.clone(),
        row: table.row.clone(),
        on: Some("on"),
        columns: table.figures.iter().map(|kind| kind.heading(&table.unit)).collect(),
        lines,
        notes,
        gaps: gaps.words(),
    }
}

/// The records of these targets, each once.
fn records_of<'a>(own: &[OwnTarget<'a>]) -> Vec<OwnRecord<'a>> {
    let mut records: Vec<OwnRecord<'a>> = Vec::new();
    for target in own {
        match records.iter_mut().find(|record| std::ptr::eq(record.results, target.results)) {
            Some(record) => record.letters = format!("{} {}", record.letters, target.letter),
            None => records.push(OwnRecord { letters: target.letter.clone(), results: target.results }),
        }
    }
    records
}

/// All lines of one's own for a published line, in the order of its parameters.
fn asked<'a>(
    line: &'a MappedLine,
    plans: &RepeatedPlans,
    record: &'a OwnRecord<'_>,
) -> Vec<AskedTraffic<'a>> {
    let stage = plans.network_stage(line, record.results);
    let of = |parameters| asked_of(line, parameters, stage, &record.letters);
    LineParameters::of(line).into_iter().map(of).collect()
}

fn asked_of<'a>(
    line: &'a MappedLine,
    parameters: LineParameters,
    stage: Option<&NetworkResults>,
    letters: &'a str,
) -> AskedTraffic<'a> {
    let of_line = LineTraffic::of(parameters.values());
    AskedTraffic {
        line,
        letters,
        words: parameters.words,
        found: measured(line, &of_line, stage),
        base: of_line.base().map(|base| measured(line, &base, stage)),
        of_line,
    }
}

fn measured(
    line: &MappedLine,
    of_line: &LineTraffic,
    stage: Option<&NetworkResults>,
) -> Result<OwnTraffic, TrafficGap> {
    let none = || {
        let MappedLine { stage, plan, .. } = line;
        TrafficGap::NotMeasured(format!("the record has no stage `{stage}` of the plan {plan}"))
    };
    of_line.measured(stage.ok_or_else(none)?)
}

fn own_line(table: &PublishedTable, asked: &AskedTraffic<'_>) -> PaperLine {
    let separator = if asked.words.is_empty() { "" } else { ", " };
    let cells = table.figures.iter().map(|kind| asked.cell(*kind, &table.unit)).collect();
    PaperLine {
        row: asked.line.name.clone(),
        on: format!("{}{separator}{}", asked.letters, asked.words),
        cells,
    }
}

impl AskedTraffic<'_> {
    /// A figure of the line. A line with a gain has no other figure, and the others have none.
    fn cell(&self, kind: FigureKind, unit: &str) -> PaperCell {
        let is_gain = kind == FigureKind::Gain;
        if is_gain != self.of_line.over_processes.is_some() {
            return PaperCell::Unpublished;
        }
        match (&self.found, &self.base) {
            (Err(gap), _) | (Ok(_), Some(Err(gap))) => PaperCell::Own(OwnFigure::Missing(gap.word()), ""),
            (Ok(found), Some(Ok(base))) => {
                let gain = 100.0 * (found.rate / base.rate - 1.0);
                PaperCell::Own(known(gain, found), "")
            }
            (Ok(found), None) => figure(kind, unit, found),
        }
    }

    /// The reason why the line lacks a figure of the table.
    fn gap(&self, table: &PublishedTable) -> Option<String> {
        match (&self.found, &self.base) {
            (Err(gap), _) | (Ok(_), Some(Err(gap))) => Some(gap.sentence()),
            (Ok(found), None) if found.server_links.is_none() => {
                let has_share = table.figures.contains(&FigureKind::LinkShare);
                has_share.then(|| "without a share: the speed of a server's link is unknown".into())
            }
            _ => None,
        }
    }
}

fn known(value: f64, of: &OwnTraffic) -> OwnFigure {
    OwnFigure::Known { value, valid: of.valid, all: of.all }
}

fn figure(kind: FigureKind, unit: &str, found: &OwnTraffic) -> PaperCell {
    match kind {
        FigureKind::SentAgain => match found.lost_share {
            Some(share) => PaperCell::Own(known(100.0 * share, found), "% of packets lost"),
            None => PaperCell::Own(known(found.sent_again, found), "segments"),
        },
        FigureKind::LinkShare => match found.server_links {
            Some(links) => PaperCell::Own(known(100.0 * found.rate / links.0, found), "%"),
            None => PaperCell::Own(OwnFigure::Missing("unknown"), ""),
        },
        _ => PaperCell::Own(known(found.rate / bytes_of(unit).unwrap_or(1.0), found), ""),
    }
}

/// The length of a record's trials, if it is not the plan's.
fn shorter_trials(record: &OwnRecord<'_>) -> Option<String> {
    let scale = record.results.campaign.as_ref().map_or(1.0, |campaign| campaign.plan.scale);
    let is_scaled = (scale - 1.0).abs() > f64::EPSILON;
    is_scaled.then(|| format!("{}: a trial lasts {} of the plan's time", record.letters, ShownScale(scale)))
}

/// The links of a record's machines: the settings that the plan does not change.
fn links_of(record: &OwnRecord<'_>) -> String {
    let mut kinds: Vec<String> = Vec::new();
    for kind in record.results.machines.iter().flat_map(link_kinds) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let kinds = if kinds.is_empty() { "unknown".to_owned() } else { kinds.join("; ") };
    format!("{}: links of the machines: {kinds}", record.letters)
}

fn link_kinds(machine: &CampaignMachine) -> Vec<String> {
    machine.links.iter().map(link_kind).collect()
}

/// `MTU 9000, bond 802.3ad`.
fn link_kind(link: &NetworkLink) -> String {
    let mtu = link.mtu.map_or_else(|| "MTU unknown".to_owned(), |mtu| format!("MTU {}", mtu.0));
    let bond = link.bond.as_ref().map_or_else(|| "no bond".to_owned(), |bond| format!("bond {}", bond.mode));
    format!("{mtu}, {bond}")
}

#[cfg(test)]
mod tests {
    use nilometer_plan::{PLANS, parse};

    use super::*;

    #[test]
    fn every_line_of_a_network_table_has_trials_in_its_plan() {
        let studies = PublishedStudy::all();
        let lines = studies.iter().flat_map(|study| &study.tables).flat_map(|table| &table.line);
        let mut count = 0;
        for line in lines.filter(|line| line.is_of_network()) {
            let text = PLANS.iter().find(|plan| plan.name == line.plan).expect("it is built in").text;
            let plan = parse(text, &line.plan, 1.0).expect("valid");
            let run = plan.network.iter().find(|run| run.stage == line.stage).expect("a test of plans");
            let cells = run.cells(11);
            for parameters in LineParameters::of(line) {
                let of_line = LineTraffic::of(parameters.values());
                for asked in std::iter::once(&of_line).chain(of_line.base().as_ref()) {
                    let found = cells.iter().filter(|cell| asked.has(cell)).count();
                    let expected = if run.stage.ends_with("one server at a time") { 9 } else { 1 };
                    assert_eq!(found, expected, "{line:?}, {asked:?}");
                }
                count += 1;
            }
        }
        assert_eq!(count, 5 + 8 + 12);
    }
}
