//! Finds the cells of records that measured the lines of published tables again.

use std::collections::BTreeMap;

use nilometer_model::{Instrument, NetworkResults, NetworkStage, Phase, catalogue::INSTRUMENTS};
use nilometer_plan::{Cell, MappedLine, PLANS, PublishedStudy, ResolvedPlan, Results, parse_with};

use super::table::OwnTarget;
use crate::parameters::{CommonParameters, of_words, parameters};

/// The built-in plans that measure studies again, at full size.
pub(super) struct RepeatedPlans(BTreeMap<String, ResolvedPlan>);

/// The values of a line's parameters, one each: the cell of a line of one's own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LineParameters {
    values: Vec<(String, String)>,
    /// The parameters that tell it from others of the same line, in words.
    pub(super) words: String,
}

/// A cell of a record that measured a line again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RepeatedCell {
    /// Index into [`Results::cells`].
    pub(super) cell: usize,
    pub(super) phase: Phase,
    /// Index into the cells of the built-in plan at full size.
    pub(super) full: usize,
}

/// The reason why a target has no figure of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LineGap {
    /// It lets nobody choose this layout of files: the first cell stands for all.
    Layout,
    /// Any other reason, in words.
    Because(String),
}

/// The parameter with the number of machines, and its value for all of them.
const NODES: &str = "nodes";
const ALL: &str = "all";

impl RepeatedPlans {
    pub(super) fn of(studies: &[PublishedStudy]) -> Self {
        let lines = studies.iter().flat_map(|study| &study.tables).flat_map(|table| &table.line);
        let mut plans = BTreeMap::new();
        for line in lines {
            plans.entry(line.plan.clone()).or_insert_with(|| plan(&line.plan));
        }
        RepeatedPlans(plans)
    }

    /// Returns true if a record measured this plan, alone or with others.
    pub(super) fn is_in(&self, plan: &str, results: &Results) -> bool {
        let stages = results.cells.iter().map(|cell| &cell.stage);
        let mut all = stages.chain(results.network.iter().map(|stage| &stage.stage));
        all.any(|stage| self.stage_of(plan, results, stage).is_some())
    }

    /// The results of a line's stage of the network in a record; `None` if it has none.
    pub(super) fn network_stage<'a>(
        &self,
        line: &MappedLine,
        results: &'a Results,
    ) -> Option<&'a NetworkResults> {
        let is_it = |of: &&NetworkStage| self.stage_of(&line.plan, results, &of.stage) == Some(&line.stage);
        results.network.iter().find(is_it).map(|of| &of.results)
    }

    /// The name of a record's stage in the plan, or `None` if it is not of this plan. A campaign with several plans
    /// puts the plan's name before it.
    fn stage_of<'a>(&self, plan: &str, results: &Results, stage: &'a str) -> Option<&'a str> {
        let built_in = self.0.get(plan)?;
        let with_plan = stage.strip_prefix(plan).and_then(|rest| rest.strip_prefix(": "));
        let stage = with_plan.or(is_titled(results, &built_in.title).then_some(stage))?;
        let is_there = built_in.cells.iter().any(|known| known.stage == stage)
            || built_in.network.iter().any(|known| known.stage == stage);
        is_there.then_some(stage)
    }

    /// The cell of a target's record for a line with these parameters.
    pub(super) fn cell_of(
        &self,
        line: &MappedLine,
        parameters: &LineParameters,
        target: &OwnTarget<'_>,
    ) -> Result<RepeatedCell, LineGap> {
        let results = target.results;
        let phase = Phase::from_name(&line.phase).expect("a test reads each line");
        let of_stage = |cell: &Cell| self.stage_of(&line.plan, results, &cell.stage) == Some(&line.stage);
        if !results.cells.iter().any(of_stage) {
            let MappedLine { stage, plan, .. } = line;
            return Err(LineGap::Because(format!("the record has no stage `{stage}` of the plan {plan}")));
        }
        let no_such = || LineGap::Because(format!("the plan {} has no such cell at this scale", line.plan));
        let (full, wanted) = self.wanted(line, parameters, target).ok_or_else(no_such)?;
        let is_it = |cell: &Cell| of_stage(cell) && has(cell, &wanted) && parameters.has_nodes(cell, target);
        let none = || LineGap::Because(format!("the record has no cell with {}", words(&wanted)));
        let cell = results.cells.iter().position(is_it).ok_or_else(none)?;
        let key = (cell, phase, target.target);
        let mut keys = results.samples.iter().map(|measured| measured.key);
        let is_measured = keys.any(|of| (of.cell, of.phase, of.target) == key);
        if is_measured { Ok(RepeatedCell { cell, phase, full }) } else { Err(gap(target, cell)) }
    }

    /// The cell of the plan at full size, and the values of a line's parameters at the scale of a target's record.
    fn wanted(
        &self,
        line: &MappedLine,
        line_parameters: &LineParameters,
        target: &OwnTarget<'_>,
    ) -> Option<(usize, CommonParameters)> {
        let wanted = line_parameters.at_full_size();
        let cells = self.0.get(&line.plan)?.cells.iter().enumerate();
        let (full, cell) =
            cells.filter(|(_, cell)| cell.stage == line.stage).find(|(_, cell)| has(cell, &wanted))?;
        let run = cell.as_workload()?.at_scale(target.scale())?;
        let scaled = parameters(&Cell::workload(&line.stage, run));
        let values = wanted.keys().filter_map(|name| Some((name.clone(), scaled.get(name)?.clone())));
        Some((full, values.collect()))
    }
}

/// Returns true if a record has a campaign with this title of a plan.
fn is_titled(results: &Results, title: &str) -> bool {
    results.campaign.as_ref().is_some_and(|campaign| campaign.plan.title == title)
}

/// The plan is part of the program: a test reads each of them.
fn plan(name: &str) -> ResolvedPlan {
    let built_in = PLANS.iter().find(|plan| plan.name == name).unwrap_or_else(|| panic!("no plan {name}"));
    let instrument = |name: &str| {
        let known = INSTRUMENTS.iter().find(|known| known.name == name).ok_or("no such instrument")?;
        Instrument::parse(known.text, name).map_err(|error| error.to_string())
    };
    parse_with(built_in.text, name, 1.0, &instrument).expect("a test reads each of them")
}

/// Returns true if a cell has all of these values.
fn has(cell: &Cell, wanted: &CommonParameters) -> bool {
    let found = parameters(cell);
    wanted.iter().all(|(name, value)| found.get(name) == Some(value))
}

fn words(parameters: &CommonParameters) -> String {
    let words: Vec<String> =
        parameters.iter().map(|(name, value)| format!("{} {value}", name.replace('_', " "))).collect();
    words.join(", ")
}

/// The reason why a target has no sample of a cell.
fn gap(target: &OwnTarget<'_>, cell: usize) -> LineGap {
    let entry = target.results.targets.get(target.target);
    if let Some(why) = entry.and_then(|entry| entry.left_out.as_ref()) {
        return LineGap::Because(format!("the campaign left the target out: {why}"));
    }
    let campaign = target.results.campaign.as_ref();
    let unable = campaign.filter(|campaign| !campaign.suits(cell, target.target));
    match unable.map(|campaign| campaign.lacking(cell, target.target)) {
        Some(lacking) if lacking.is_empty() => LineGap::Layout,
        Some(lacking) => {
            let names: Vec<_> = lacking.iter().map(|capability| capability.name()).collect();
            LineGap::Because(format!("the target lacks {}", names.join(", ")))
        }
        None => LineGap::Because("the campaign ended before it, or needs more targets for it".into()),
    }
}

impl LineParameters {
    /// One for each combination of a line's values.
    pub(super) fn of(line: &MappedLine) -> Vec<LineParameters> {
        let mut all = vec![LineParameters::default()];
        for (name, texts) in &line.parameters {
            let is_swept = texts.0.len() > 1;
            let longer =
                all.iter().flat_map(|before| texts.0.iter().map(|text| before.and(name, text, is_swept)));
            all = longer.collect();
        }
        all
    }

    /// The values, each with the name of its parameter.
    pub(super) fn values(&self) -> &[(String, String)] {
        &self.values
    }

    fn and(&self, name: &str, text: &str, is_swept: bool) -> Self {
        let mut with = self.clone();
        with.values.push((name.to_owned(), text.to_owned()));
        if is_swept {
            let words = format!("{} {text}", name.replace('_', " "));
            let known = std::mem::take(&mut with.words);
            with.words = if known.is_empty() { words } else { format!("{known}, {words}") };
        }
        with
    }

    /// The values in the plan at full size, except the number of machines, which the launcher determines.
    fn at_full_size(&self) -> CommonParameters {
        let values = self.values.iter().filter(|(name, _)| name != NODES);
        values.map(|(name, text)| (name.clone(), of_words(text))).collect()
    }

    /// Returns true if as many machines measured a cell as the line states, or if the line states no number.
    fn has_nodes(&self, cell: &Cell, target: &OwnTarget<'_>) -> bool {
        let Some((_, text)) = self.values.iter().find(|(name, _)| name == NODES) else { return true };
        let all = target.nodes() as u32;
        let wanted = if text == ALL { Some(all) } else { text.parse().ok() };
        let used = cell.as_workload().and_then(|run| run.nodes).unwrap_or(all);
        wanted == Some(used)
    }
}
