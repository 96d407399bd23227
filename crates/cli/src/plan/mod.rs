//! `nilometer plan`: lists the plans, and shows the measurements of one.

mod keys;
mod schema;

use std::path::Path;

use anyhow::bail;
use clap::{Args, Subcommand, ValueEnum};
use nilometer_model::{Phase, catalogue::BuiltIn, statistics::detectable};
use nilometer_plan::{
    ACCEPTANCE_TEMPLATE, CONDITION_TEMPLATE, Cell, CensusText, Estimate, EstimatedSpeed, Measurement,
    NetworkRun, PLANS, PlanSources, ResolvedPlan, parse_from,
};
use nilometer_record::text_digest;
use nilometer_storage::user_file::{self, NamedText, UserFileError, find, instrument};

use crate::{Blame, Outcome, tell};

/// List the built-in plans, or show the measurements of one
#[derive(Debug, Args)]
pub(crate) struct Plan {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List names and titles
    List,
    /// List every key of a plan, with its values and its default
    Keys {
        /// Print the keys in this form
        #[arg(long, value_enum, default_value_t)]
        format: KeysFormat,
    },
    /// Print a commented file for `evaluate --condition`, to start your own from
    Condition,
    /// Print commented criteria of an acceptance, to start your own plan from
    Accept,
    /// Show every cell of a plan: its duration, its space, and the smallest difference that it can see
    Show {
        /// A built-in name, or the path of a .toml file
        name: String,
        #[command(flatten)]
        scale: Scale,
        /// Print the plan's file unchanged, to start your own from
        #[arg(long, conflicts_with = "scale")]
        toml: bool,
    },
}

/// The form in which `plan keys` prints the keys of a plan.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum KeysFormat {
    /// Text for a terminal
    #[default]
    Terminal,
    /// Markdown for the documentation
    Markdown,
    /// A JSON schema, for an editor that checks a plan while you write it
    JsonSchema,
}

/// The factor of a plan's sizes.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Scale {
    /// Multiply all sizes and counts of items, such as by 0.01 or 1/100: a published study in minutes
    #[arg(long, default_value = "1", value_parser = factor, help_heading = "Measurement")]
    scale: f64,
}

impl Scale {
    /// The factor; `None` if it is 1 and changes nothing.
    pub(crate) fn given(self) -> Option<f64> {
        (self.scale.to_bits() != 1_f64.to_bits()).then_some(self.scale)
    }
}

/// Reads `0.01` or `1/100`.
fn factor(text: &str) -> anyhow::Result<f64> {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let value = match text.split_once('/') {
        Some((above, below)) => number(above).zip(number(below)).map(|(above, below)| above / below),
        None => number(text),
    };
    match value {
        Some(value) if value > 0.0 && value <= 1e6 => Ok(value),
        _ => bail!("write a number above 0, such as 0.01 or 1/100"),
    }
}

impl Plan {
    pub(crate) fn execute(&self) -> Outcome {
        match &self.action {
            Action::List => {
                let width = PLANS.map(|plan| plan.name.len()).into_iter().max().unwrap_or_default();
                for BuiltIn { name, text } in PLANS {
                    let title = read(text, name, 1.0).input()?.title;
                    tell::result_line(format_args!("{name:<width$}  {title}"));
                }
            }
            Action::Keys { format: KeysFormat::Terminal } => tell::result_line(keys::text()),
            Action::Keys { format: KeysFormat::Markdown } => {
                tell::result_to_copy(format_args!("{}\n", keys::markdown()));
            }
            Action::Keys { format: KeysFormat::JsonSchema } => {
                tell::result_to_copy(format_args!("{:#}\n", schema::schema()));
            }
            Action::Condition => tell::result_to_copy(CONDITION_TEMPLATE),
            Action::Accept => tell::result_to_copy(ACCEPTANCE_TEMPLATE),
            Action::Show { name, toml: true, .. } => {
                let NamedText { name: file, text } = find(name, &PLANS, "plan").input()?;
                read(&text, &file, 1.0).input()?;
                tell::result_to_copy(text);
            }
            Action::Show { name, scale, toml: false } => {
                tell::result_line(tell::visible(&shown(&load(name, *scale).input()?.on_processes(&[1]))));
            }
        }
        Ok(())
    }
}

/// Loads a plan by its name or path.
pub(crate) fn load(name: &str, Scale { scale }: Scale) -> anyhow::Result<ResolvedPlan> {
    let NamedText { name: file, text } = find(name, &PLANS, "plan")?;
    read(&text, &file, scale)
}

/// Reads a plan from its text, with the instruments of the catalogue.
pub(crate) fn read(text: &str, file: &str, scale: f64) -> anyhow::Result<ResolvedPlan> {
    let catalogue = &|name: &str| instrument(name).map_err(explained);
    let censuses = &|path: &str| census(file, path).map_err(explained);
    Ok(parse_from(text, file, scale, &PlanSources { catalogue, censuses })?)
}

/// Reads the census that the plan in `file` names by a path relative to itself.
fn census(file: &str, path: &str) -> Result<CensusText, UserFileError> {
    let directory = Path::new(file).parent().unwrap_or(Path::new(""));
    let text = user_file::read(&directory.join(path), "census")?;
    let sha256 = text_digest(&text);
    Ok(CensusText { text, sha256 })
}

/// The whole chain of an error, as a message.
fn explained(error: UserFileError) -> String {
    format!("{:#}", anyhow::Error::from(error))
}

/// All measurements of a plan, their duration and their needs.
pub(crate) fn shown(plan: &ResolvedPlan) -> String {
    let mut lines = vec![plan.title.clone(), String::new()];
    lines.extend(head(plan));
    let mut shown = String::new();
    for cell in &plan.cells {
        let what = match &cell.measurement {
            Measurement::Workload(run) => format!("{} ({})", run.workload.name(), phases(cell)),
            Measurement::Recording(_) => "recordings".into(),
            Measurement::Imported(run) => format!("imported from {}", run.source),
        };
        // Cells of a stage may differ only in their phases: `ls -lR` and `du`.
        let heading = format!("{}: {what}", cell.stage);
        if heading != shown {
            lines.extend([String::new(), heading.clone()]);
            shown = heading;
        }
        lines.push(format!("  {cell}"));
    }
    for run in &plan.network {
        lines.extend([
            String::new(),
            format!("{}: the network between machines, once for all targets", run.stage),
        ]);
        lines.push(format!("  {run}"));
        lines.extend(network_trials(plan, run));
    }
    if !plan.merged.is_empty() {
        lines.extend([String::new(), "left out, since the scale makes it the same".to_owned()]);
        lines.extend(
            plan.merged.iter().map(|cell| format!("  {}", cell.replace(": the same as ", "\n    as "))),
        );
    }
    if !plan.accept.is_empty() {
        lines.extend([String::new(), "accepted if".to_owned()]);
        lines.extend(plan.accept.criteria.iter().map(|criterion| format!("  {criterion}")));
    }
    lines.join("\n")
}

/// The time of a stage of the network, and the trials that it leaves out.
fn network_trials(plan: &ResolvedPlan, run: &NetworkRun) -> Vec<String> {
    let machines = plan.network_machines(run);
    let time = plan.network_stage_time(run);
    let cells = number_of(run.cells(machines).len(), "cell");
    let mut lines = vec![format!("  {cells} between {machines} machines: {time} at the least")];
    lines.extend(run.left_out(machines).iter().map(|why| format!("  left out: {why}")));
    lines
}

/// The measured phases of a cell.
fn phases(cell: &Cell) -> String {
    let names: Vec<_> = cell.measured_phases().iter().map(|phase| phase.name()).collect();
    match names.as_slice() {
        [first, .., last] if names.len() > 4 => format!("{} phases from {first} to {last}", names.len()),
        _ => names.join(", "),
    }
}

fn head(plan: &ResolvedPlan) -> Vec<String> {
    let Estimate { time, space, written } = plan.estimate(1, EstimatedSpeed::ASSUMED);
    let (entries, bytes) = (space.entries, space.bytes);
    let EstimatedSpeed { rate, operations, .. } = EstimatedSpeed::ASSUMED;
    let mut rows = Vec::new();
    let workloads = plan.workloads().count();
    if workloads == 0 && plan.recordings().next().is_none() {
        let machines = plan.network.iter().map(|run| plan.network_machines(run)).max().unwrap_or(2);
        rows.push(("takes", format!("{time} between {machines} machines")));
    } else if workloads == 0 {
        rows.push(("takes", format!("{time} a target")));
    } else {
        rows.push((
            "measures",
            format!("{} in {}", number_of(workloads, "cell"), number_of(plan.repeats as usize, "round")),
        ));
        rows.extend(by_layout(plan).map(|words| ("", words)));
        if !plan.merged.is_empty() {
            rows.push((
                "left out",
                format!("{} cells that the scale makes the same as others", plan.merged.len()),
            ));
        }
        rows.extend([
            ("takes", format!("{time} a target, if it does {rate} and {operations} operations a second")),
            (
                "needs",
                format!("{bytes} and {entries} files and directories, and {} more stay free", plan.reserve),
            ),
            ("writes", format!("{written} in all to each target")),
        ]);
    }
    let searches = plan.recordings().filter(|(_, run)| run.goal.searches()).count();
    let recordings: u32 =
        plan.recordings().filter(|(_, run)| !run.goal.searches()).map(|(_, run)| run.repeats).sum();
    if recordings > 0 {
        let limits =
            if searches > 0 { format!(", and {searches} searches for limits") } else { String::new() };
        rows.push(("records", format!("{} a target{limits}", number_of(recordings as usize, "recording"))));
    }
    rows.extend(shows_nothing(plan).into_iter().flatten().map(|words| ("", words)));
    if plan.warm_up > 0 {
        rows.push(("warm-up", format!("{} without results", number_of(plan.warm_up as usize, "round"))));
    }
    if let Some(source) = plan.source.as_ref().filter(|_| needs_source(plan)) {
        rows.push(("copies", format!("come from {source}, or from --source")));
    }
    rows.push(("ends", format!("after {} at the latest", plan.time_limit)));
    rows.extend(sees(plan));
    rows.iter().map(|(key, value)| format!("{key:<9} {value}")).collect()
}

/// `1 cell`, or `2 cells`.
fn number_of(count: usize, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

/// Names the recordings that are too short to prove storage too slow, and the least duration.
fn shows_nothing(plan: &ResolvedPlan) -> Option<[String; 2]> {
    let mut stages: Vec<&str> = plan.recordings_that_show_nothing().map(|(stage, _)| stage).collect();
    stages.dedup();
    let first = stages.first()?;
    let more = if stages.len() > 1 { format!(" and {} more", stages.len() - 1) } else { String::new() };
    let longest = plan.recordings_that_show_nothing().map(|(_, run)| run.shows_after()).max()?;
    Some([
        format!("not long enough to show that storage is too slow: `{first}`{more}"),
        format!("(a buffer may hold all frames; record at least {:.0} s)", longest.seconds().ceil()),
    ])
}

/// The number of cells left on a target that does not let Nilometer choose the layout of files. Only a run
/// knows its target.
fn by_layout(plan: &ResolvedPlan) -> Option<String> {
    let same = plan.cells_by_layout();
    let rest = plan.workloads().count() - same;
    let words =
        format!("{rest} on a target without a choice of file layouts: the other {same} differ in it alone");
    (same > 0).then_some(words)
}

fn needs_source(plan: &ResolvedPlan) -> bool {
    plan.workloads().any(|(_, _, run)| run.phases().contains(&Phase::Source))
}

/// The difference between two targets that the plan can see, for several spreads of the repeats.
fn sees(plan: &ResolvedPlan) -> Vec<(&'static str, String)> {
    let Some((_, first, _)) = plan.workloads().next() else { return Vec::new() };
    let cells = plan.workloads().filter(|(_, stage, _)| *stage == first).count();
    let percent = |value: Option<f64>| value.map_or("none".into(), |v| format!("{:.1} %", 100.0 * v));
    let mut lines = Vec::new();
    for (key, spread) in [("sees", 0.02), ("", 0.1)] {
        let (cell, stage) = detectable(cells, plan.repeats, spread);
        let found = format!(
            "differences above {} in a cell, {} in `{first}` as a whole, if repeats spread by {:.0} %",
            percent(cell),
            percent(stage),
            100.0 * spread
        );
        lines.push((key, found));
    }
    lines
}

#[cfg(test)]
mod tests {
    use nilometer_model::Bytes;

    use super::*;

    #[test]
    fn scales_are_numbers_above_zero() {
        assert!((factor("1/100").expect("a fraction") - 0.01).abs() < 1e-12);
        assert!((factor("0.5").expect("a number") - 0.5).abs() < 1e-12);
        for wrong in ["0", "-1", "1/0", "half", "nan", ""] {
            assert!(factor(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn cells_that_differ_in_layouts_alone_are_counted() {
        let [wa105, quick] = ["wa105", "quick"].map(|name| {
            let found = PLANS.iter().find(|plan| plan.name == name).expect("it is built in");
            shown(&read(found.text, name, 1.0).expect(name))
        });
        let counted = "12 on a target without a choice of file layouts: the other 36 differ in it alone";
        assert!(wa105.contains("48 cells in 3 rounds") && wa105.contains(counted), "{wa105}");
        assert!(!quick.contains("layout"), "{quick}");
    }

    #[test]
    fn a_stage_of_the_network_has_its_time_and_the_trials_that_it_leaves_out() {
        let text = "title = \"t\"\nrepeats = 2\n[[stage]]\nname = \"s\"\n[stage.network]\npattern = \"clients_to_servers\"\n\
                    clients = 2\nservers = 9\nflows = [1, 6]\nprocesses = [1, 6]\nduration = \"5 s\"\n";
        let shown = shown(&read(text, "t.toml", 1.0).expect("valid").on_processes(&[1]));
        for line in [
            "takes     60 s between 11 machines",
            "  6 cells between 11 machines: 60 s at the least",
            "  left out: processes = 6 with flows = 1: each process needs a flow of its own",
        ] {
            assert!(shown.lines().any(|shown| shown == line), "{line}: {shown}");
        }
    }

    #[test]
    fn every_built_in_plan_is_shown_within_a_terminal_and_fits_at_a_small_scale() {
        for BuiltIn { name, text } in PLANS {
            for scale in [1.0, 0.01, 1e-6] {
                let plan = read(text, name, scale).expect(name);
                let shown = shown(&plan);
                // A cell beside a load names both. A terminal breaks its line.
                let lines = shown.lines().filter(|line| !line.contains(", beside "));
                let widest = lines.map(|line| line.chars().count()).max().unwrap_or(0);
                let measures = ["sees", "records", "the network between machines"];
                let is_complete =
                    shown.contains("takes") && measures.iter().any(|words| shown.contains(words));
                assert!(widest <= 110 && is_complete, "{shown}");
                assert!(
                    scale >= 1.0 || plan.estimate(1, EstimatedSpeed::ASSUMED).space.bytes < Bytes(5 << 30),
                    "{name}"
                );
            }
        }
    }
}
