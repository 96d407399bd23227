//! `nilometer evaluate`: runs a plan on targets and says what they can carry.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::{anyhow, ensure};
use clap::Args;
use nilometer_analysis::{Study, conclusions};
use nilometer_campaign::{
    Campaign, MeasuredRates, Ran, Trials, dismiss, make_archive, make_load_places, make_targets, record_head,
    resolve, with_archive, with_ceiling, with_source,
};
use nilometer_cluster::{CampaignRanks, Cluster};
use nilometer_model::{
    Bytes, FileSystemKind, Instrument, Invalid, Nanos, NetworkStage, TargetAddress, TargetDescription,
    catalogue,
};
use nilometer_network::NetworkLead;
use nilometer_plan::{AppliedSetting, Cell, Condition, Key, PlannedCampaign, RankNodes, ResolvedPlan};
use nilometer_record::Record;
use nilometer_remote::describe_in_child;
use nilometer_report::{Detail, terminal};
use nilometer_storage::Target;

use crate::{
    Blame, Failure, Outcome, acceptance,
    ended::{ended, ended_whole},
    explained,
    occupied::{refuse_in_use, refuse_twice, warn_of_record_on_target},
    plan::{self, Scale, load},
    progress::{ProgressOptions, Show},
    ranks,
    recordings::{RECORDED, Recordings},
    report,
    resume::{recorded_at, resumed},
    signals::stop_on_signal,
    signature::{self, SigningKey},
    target_argument::target_argument,
    tell,
    tidied::{remove_targets, removed},
};

/// Measures storage, and says what it can carry
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Evaluate {
    /// Directories on the storage systems to be evaluated, or URLs (root://, nfs://, s3://, hdfs://) where the program has a
    /// client for them; `null:` takes everything and keeps nothing
    #[arg(required_unless_present = "resume", value_parser = target_argument())]
    pub(crate) targets: Vec<TargetAddress>,
    /// What to measure: a built-in plan (see `nilometer plan list`), or the path of a .toml file; may be given several
    /// times; `none` for the recordings of --for only [default: quick]
    #[arg(long = "plan", value_name = "PLAN", help_heading = "What is measured")]
    plans: Vec<String>,
    /// Refuse targets that are on another file system, such as the one below a mount that is missing: one type for all, or one
    /// for each in their order (ext4, nfs, lustre ...; another word lists them)
    #[arg(long, value_name = "TYPE", value_delimiter = ',', help_heading = "What is measured")]
    expect: Vec<FileSystemKind>,
    /// How often each cell is measured, and each recording of a plan is made, instead of what the plan says; recordings of --for
    /// are made as often as their answer needs
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = "What is measured")]
    repeats: Option<u32>,
    #[command(flatten)]
    scale: Scale,
    /// Where copies come from, in plans that copy from a disk
    #[arg(long, value_name = "DIRECTORY", help_heading = "What is measured")]
    source: Option<PathBuf>,
    /// End after this time at the latest, instead of the plan's limit
    #[arg(long, help_heading = "What is measured")]
    pub(crate) time_limit: Option<Nanos>,
    /// Where the record goes [default: evaluation.sqlite, or the next free number]
    #[arg(long, help_heading = "The record")]
    pub(crate) record: Option<PathBuf>,
    /// Sign the record when the campaign has ended, with this SSH key; `check --signed-by` says by whom it is signed
    #[arg(long, value_name = "KEY", help_heading = "The record")]
    sign: Option<PathBuf>,
    /// Go on with the campaign of the record, where it was interrupted or killed: targets and plan are the record's
    #[arg(long, group = RECORDED, help_heading = "The record")]
    pub(crate) resume: bool,
    /// With --resume: run the commands and read the files that the record's plan names, also if they are not named again,
    /// and if the record is somebody else's
    #[arg(long, requires = "resume", help_heading = "The record")]
    pub(crate) trust_record: bool,
    /// The seed of all random decisions, instead of the plan's
    #[arg(long, help_heading = "What is measured")]
    seed: Option<u64>,
    /// What stays free on each target, instead of what the plan says
    #[arg(long, value_name = "SIZE", help_heading = "What is measured")]
    reserve: Option<Bytes>,
    /// Start nothing: say what would be measured, how long that takes, how much space it needs, and which commands conditions
    /// would run
    #[arg(long, short = 'n', conflicts_with = "resume", help_heading = "What is measured")]
    dry_run: bool,
    #[command(flatten)]
    pub(crate) progress: ProgressOptions,
    // Last: its heading is that of all options behind it.
    #[command(flatten)]
    recordings: Recordings,
}

/// What `evaluate` says with its exit code.
const EXIT_CODES: &str = "\
Exit codes:
  0  carried: no frame of any instrument was lost; without --for: measured
  1  a fault of the storage or of the campaign: something failed, hung, was left out or interrupted
  2  asked wrongly: nothing was started
  3  not carried: frames of an instrument were lost on a target, whatever else went wrong; of a plan with [accept]: FAIL
  4  not decided: the data don't say whether an instrument is carried; without --for: every figure of a stage is INVALID; of a plan with [accept]: INVALID";

/// A campaign that can run.
#[derive(Debug)]
pub(crate) struct Ready {
    /// Where the record is.
    pub(crate) path: PathBuf,
    pub(crate) resolved: PlannedCampaign,
    pub(crate) record: Record,
    /// What is in the record already, and why it must not be used, if so.
    pub(crate) done: BTreeMap<Key, Option<Invalid>>,
    /// Of these, the trials of searches.
    pub(crate) trials: Trials,
    /// And the rates of workloads.
    pub(crate) rates: MeasuredRates,
    /// Which targets are used.
    pub(crate) in_use: Vec<bool>,
    /// What was measured of the network.
    pub(crate) network: Vec<NetworkStage>,
}

/// A campaign with its places on the targets.
struct Prepared {
    ready: Ready,
    targets: Vec<Option<Arc<dyn Target>>>,
    archive: Option<Arc<dyn Target>>,
    load_places: Vec<Option<Arc<dyn Target>>>,
    stop: Arc<AtomicBool>,
}

/// All processes of a campaign, and the network between them, as far as it is measured.
struct Joined {
    ranks: CampaignRanks,
    network: Vec<NetworkLead>,
}

impl Prepared {
    /// All processes take part; where some can't, nothing is left of what was made.
    fn joined(&self, cluster: &dyn Cluster, nodes: RankNodes, resumed: bool) -> Result<Joined, Failure> {
        let plan = &self.ready.resolved.plan;
        let joined = ranks::join_all(cluster, &self.targets, plan.hang_after, nodes).and_then(|ranks| {
            let network = ranks::network_stages(cluster, plan, &self.ready.network)?;
            Ok(Joined { ranks, network })
        });
        joined.inspect_err(|_| {
            let all = self.targets.iter().chain(&self.load_places).chain([&self.archive]).flatten();
            for target in all {
                // What stays is found by `clean`, and the message says why nothing began.
                drop(removed(plan.hang_after, target));
            }
            if !resumed {
                drop(std::fs::remove_file(&self.ready.path));
            }
        })
    }

    fn execute(
        self,
        cluster: Arc<dyn Cluster>,
        joined: Joined,
        key: Option<&SigningKey>,
        progress: ProgressOptions,
    ) -> Outcome {
        let Prepared { ready, targets, archive, load_places, stop } = self;
        let Joined { ranks, network } = joined;
        let head = record_head(&ready.resolved, VERSION);
        let Ready { path, resolved, record, done, trials, rates, .. } = ready;
        let patience = resolved.plan.hang_after;
        let in_use = targets.clone();
        let second = archive.clone();
        let ending = stop.clone();
        let campaign = Campaign {
            targets: in_use,
            archive: second,
            load_places: load_places.clone(),
            resolved,
            record,
            done,
            trials,
            rates,
            stop,
            cluster,
            ranks,
            network,
        };
        let mut show = Show::new(&head, progress);
        let ran = campaign.run(&mut |progress| show.tell(&progress));
        show.clear();
        // Where the record can't be written any more, a phase may still run.
        ending.store(true, Ordering::Relaxed);
        let answer = ran.run().and_then(|ran| answered(ran, &path, key));
        let tidied = remove_targets(targets, show.left_out(), patience);
        let beside = load_places.into_iter().flatten().map(|place| removed(patience, &place));
        let tidied = beside.fold(tidied, Result::and);
        let tidied = tidied.and(archive.map_or(Ok(()), |archive| removed(patience, &archive)));
        match (answer, tidied) {
            // A frame that was lost is the answer, whatever can't be tidied up; any other answer is a fault then.
            (Err(failure @ Failure::NotCarried(_)), _) | (Err(failure), Ok(())) => Err(failure),
            (Err(Failure::Run(error)), Err(untidy)) => {
                Err(Failure::Run(anyhow!("{}; and {}", explained(&error), explained(&untidy))))
            }
            (_, tidied) => tidied.run(),
        }
    }
}

impl Evaluate {
    pub(crate) fn execute(&self) -> Outcome {
        // Before there are others that would wait for this process.
        let stop = stop_on_signal().run()?;
        let cluster = ranks::cluster()?;
        if cluster.rank() > 0 {
            return ranks::follow_first(cluster.as_ref(), &stop);
        }
        let nodes = ranks::present(cluster.as_ref(), self)?;
        if self.dry_run {
            dismiss(cluster.as_ref());
            self.refuse_taken_record().input()?;
            tell::result(self.would_do(&self.resolved(&nodes).input()?));
            return Ok(());
        }
        let key = self.signing_key().input().inspect_err(|_| dismiss(cluster.as_ref()))?;
        let prepared = self.prepared(&nodes, stop).inspect_err(|_| dismiss(cluster.as_ref()))?;
        let joined = prepared.joined(cluster.as_ref(), nodes, self.resume)?;
        prepared.execute(cluster, joined, key.as_ref(), self.progress)
    }

    /// The key that the record is to be signed with, which works.
    fn signing_key(&self) -> anyhow::Result<Option<SigningKey>> {
        let Some(key) = &self.sign else { return Ok(None) };
        let record = if self.resume { Some(recorded_at(self)) } else { self.record.clone() };
        if let Some(record) = &record {
            let signature = signature::beside(record);
            let shown = signature.display();
            ensure!(signature.symlink_metadata().is_err(), "--sign: {shown} exists: remove it first");
        }
        SigningKey::tried(key).map(Some)
    }

    /// All that is made before the first phase.
    fn prepared(&self, nodes: &RankNodes, stop: Arc<AtomicBool>) -> Result<Prepared, Failure> {
        let mut ready = if self.resume { resumed(self, nodes)? } else { self.begun(nodes)? };
        warn_of_record_on_target(&ready.path, &ready.resolved);
        let targets = make_targets(&ready.resolved, &ready.in_use, &mut ready.record).run()?;
        let archive = make_archive(&ready.resolved, &mut ready.record).run()?;
        let load_places = make_load_places(&ready.resolved, &ready.in_use, &mut ready.record).run()?;
        Ok(Prepared { ready, targets, archive, load_places, stop })
    }

    /// A campaign from its beginning, in a record of its own.
    fn begun(&self, nodes: &RankNodes) -> Result<Ready, Failure> {
        let resolved = self.resolved(nodes).input()?;
        let path = self.record.clone().unwrap_or_else(free_name);
        let mut head = record_head(&resolved, VERSION);
        head.environment.extend(acceptance::sums(&resolved.plan, &self.plans).input()?);
        let record = Record::create(&path, &head, resolved.plan.warm_up).input()?;
        let in_use = vec![true; resolved.targets.len()];
        let done = BTreeMap::new();
        let trials = Trials::default();
        let rates = MeasuredRates::default();
        Ok(Ready { path, resolved, record, done, trials, rates, in_use, network: Vec::new() })
    }

    /// The plan against the described targets: all that can be refused is refused here.
    fn resolved(&self, nodes: &RankNodes) -> anyhow::Result<PlannedCampaign> {
        let mut plan = self.plans()?;
        acceptance::refuse_changes(&plan, self.scale, self.repeats)?;
        plan.cells.extend(self.recordings.cells()?);
        let descriptions = self.targets.iter().map(describe_in_child).collect::<Result<Vec<_>, _>>()?;
        refuse_twice(&descriptions)?;
        let resolved = sourced(resolve(self.changed(plan, nodes), descriptions)?)?;
        refuse_in_use(&resolved)?;
        Ok(with_ceiling(resolved))
    }

    /// What a real run would refuse, too.
    fn refuse_taken_record(&self) -> anyhow::Result<()> {
        let taken = self.record.iter().find(|record| record.symlink_metadata().is_ok());
        let shown = taken.map(|record| record.display().to_string()).unwrap_or_default();
        ensure!(taken.is_none(), "--record {shown}: it exists: choose another, or go on with --resume");
        Ok(())
    }

    /// What a run with these options would do, and on what.
    fn would_do(&self, resolved: &PlannedCampaign) -> String {
        let mut lines = vec!["nothing is started (--dry-run)".to_owned()];
        let on = |target: &TargetDescription| {
            format!("on        {} ({}), {} free", target.address, target.file_system, target.space.free)
        };
        lines.extend(resolved.targets.iter().map(on));
        let record = self.record.clone().unwrap_or_else(free_name);
        lines.push(format!("record    {}", record.display()));
        let conditions = resolved.plan.recordings().filter_map(|(_, run)| run.condition.as_ref());
        let mut commands: Vec<&String> = Vec::new();
        let of_settings = resolved.plan.settings().flat_map(AppliedSetting::commands);
        for command in conditions.flat_map(|of| [&of.enter, &of.leave]).chain(of_settings) {
            if !commands.contains(&command) {
                commands.push(command);
            }
        }
        // A command is shown as it is, and not carried out by the terminal that shows it.
        lines.extend(commands.iter().map(|command| format!("runs      {}", command.escape_debug())));
        let shown = lines.join("\n");
        tell::visible(&format!("{shown}\n\n{}\n", plan::shown(&resolved.plan)))
    }

    /// The plans as they are written, as one.
    pub(crate) fn plans(&self) -> anyhow::Result<ResolvedPlan> {
        if self.plans == [NO_PLAN] {
            ensure!(self.recordings.any(), "--plan none: name an instrument with --for, or another plan");
            let default = load(DEFAULT_PLAN, self.scale)?;
            let repeats = self.repeats.unwrap_or(default.repeats);
            let title = self.recordings.title();
            return Ok(ResolvedPlan { title, repeats, cells: Vec::new(), ..default });
        }
        let names = if self.plans.is_empty() { vec![DEFAULT_PLAN.to_owned()] } else { self.plans.clone() };
        let plans = names.iter().map(|name| Ok((stem(name), load(name, self.scale)?)));
        let plans = plans.collect::<anyhow::Result<Vec<_>>>()?;
        let mut plan = ResolvedPlan::joined(plans).expect("there is at least the default");
        if let Some(repeats) = self.repeats {
            plan.set_repeats(repeats);
        }
        Ok(plan)
    }

    /// A plan with what is said on the command line instead.
    fn changed(&self, mut plan: ResolvedPlan, nodes: &RankNodes) -> ResolvedPlan {
        plan.seed = self.seed.unwrap_or(plan.seed);
        plan.time_limit = self.time_limit.unwrap_or(plan.time_limit);
        plan.reserve = self.reserve.unwrap_or(plan.reserve);
        plan = plan.on_processes(&nodes.counts());
        plan.mpi_io_ranks = nodes.mpi_io_counts();
        if !self.expect.is_empty() {
            plan.expect.clone_from(&self.expect);
        }
        let source = self.source.as_ref().map(|source| source.display().to_string());
        plan.source = source.or(plan.source);
        plan.copy_to = self.recordings.copy_to().or(plan.copy_to);
        plan
    }

    /// The conditions and the instruments that are named on the command line, by themselves or by a plan.
    pub(crate) fn named(&self) -> anyhow::Result<(Vec<Condition>, Vec<Instrument>)> {
        let mut cells = self.recordings.cells()?;
        if !self.plans.is_empty() {
            cells.extend(self.plans()?.cells);
        }
        let runs = || cells.iter().filter_map(Cell::as_recording);
        let conditions = runs().filter_map(|run| run.condition.clone());
        let conditions = conditions.chain(self.recordings.condition()?).collect();
        let beside = cells.iter().filter_map(|cell| cell.background()?.recording());
        let instruments = runs().map(|run| run.instrument.clone());
        Ok((conditions, instruments.chain(beside.map(|run| run.instrument)).collect()))
    }

    /// The settings of the plans that are named on the command line.
    pub(crate) fn named_settings(&self) -> anyhow::Result<Vec<AppliedSetting>> {
        if self.plans.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.plans()?.settings().cloned().collect())
    }

    /// What is asked for, where nothing is said the same as `recorded`; its time limit may be another.
    pub(crate) fn plan_like(
        &self,
        recorded: &ResolvedPlan,
        nodes: &RankNodes,
    ) -> anyhow::Result<ResolvedPlan> {
        let mut plan = recorded.clone();
        if !self.plans.is_empty() {
            let ResolvedPlan { repeats, seed, reserve, .. } = *recorded;
            let source = recorded.source.clone();
            let expect = recorded.expect.clone();
            plan = ResolvedPlan { seed, reserve, source, expect, ..self.plans()? };
            // What was said when it began holds, unless it is said again.
            if self.repeats.is_none() && plan.repeats != repeats {
                plan.set_repeats(repeats);
            }
        } else if let Some(repeats) = self.repeats {
            plan.repeats = repeats;
        }
        if let Some(scale) = self.scale.given().filter(|_| self.plans.is_empty()) {
            plan.scale = scale;
        }
        // What was asked for by --for stands behind the cells of the plans.
        if self.recordings.any() {
            let asked = self.recordings.cells()?;
            if self.plans.is_empty() {
                remove_last_recordings(&mut plan.cells, asked.len());
            }
            plan.cells.extend(asked);
        } else if !self.plans.is_empty() {
            let planned = plan.recordings().count();
            let asked = recorded.cells.iter().filter(|cell| cell.as_recording().is_some()).skip(planned);
            plan.cells.extend(asked.cloned());
        }
        Ok(ResolvedPlan { time_limit: recorded.time_limit, ..self.changed(plan, nodes) })
    }
}

/// Without so many of its recordings, the last ones.
fn remove_last_recordings(cells: &mut Vec<Cell>, count: usize) {
    for _ in 0..count {
        if let Some(last) = cells.iter().rposition(|cell| cell.as_recording().is_some()) {
            cells.remove(last);
        }
    }
}

/// As records have it.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What is measured if no plan is named.
const DEFAULT_PLAN: &str = "quick";

/// In the place of a plan: nothing but recordings.
const NO_PLAN: &str = "none";

/// What a plan is called where there are several: its name, or that of its file.
fn stem(name: &str) -> String {
    Path::new(name).file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// `evaluation.sqlite`, or the first `evaluation-N.sqlite` that is free and has no page either.
fn free_name() -> PathBuf {
    let numbered = (2..).map(|number| PathBuf::from(format!("evaluation-{number}.sqlite")));
    let mut names = std::iter::once(PathBuf::from("evaluation.sqlite")).chain(numbered);
    let is_free = |name: &Path| name.symlink_metadata().is_err();
    names.find(|name| is_free(name) && is_free(&report::page_of(name))).expect("numbers do not end")
}

/// With the storage that copies come from and go to, if there are any.
pub(crate) fn sourced(resolved: PlannedCampaign) -> anyhow::Result<PlannedCampaign> {
    let resolved = match resolved.plan.source.clone() {
        Some(source) if resolved.copies() => {
            with_source(resolved, describe_in_child(&Path::new(&source).into())?)?
        }
        _ => resolved,
    };
    match resolved.plan.copy_to.clone() {
        Some(archive) if resolved.plan.recordings().any(|(_, run)| run.readers.copy) => {
            Ok(with_archive(resolved, describe_in_child(&Path::new(&archive).into())?)?)
        }
        _ => Ok(resolved),
    }
}

/// Tells what was measured; the verdicts become the exit code.
fn answered(Ran { record, missing }: Ran, path: &Path, key: Option<&SigningKey>) -> Outcome {
    let results = nilometer_record::read(path).run()?;
    let study = Study::of(&results);
    let concluded = conclusions(&study);
    let study = study.with_catalogue(&catalogue::instruments());
    tell::result_unchanged(format_args!("\n{}", terminal(&study, Detail::Short, report::layout())));
    tell::result_line(format_args!("\nRecord: {}", path.display()));
    // The campaign is done and its record is kept: that no page could be written is said, and is no fault of the answer.
    match report::write_page(&study, path) {
        Ok(page) => tell::result_line(format_args!("Page:   {}", page.display())),
        Err(error) => tell::note(format_args!("no page was written: {}", explained(&error))),
    }
    if missing > 0 {
        if key.is_some() {
            tell::note(
                "the record is not signed, since its campaign has not ended: go on with --resume --sign",
            );
        }
        return ended(&study, missing, path);
    }
    // What was found is told by now, whether or not it can be noted.
    record.conclude(&concluded).run()?;
    let signed = key.map_or(Ok(()), |key| signed(key, path));
    let answer = ended_whole(&study, path);
    // That it is not signed is the lesser fault.
    if let (Err(_), Err(unsigned)) = (&answer, &signed) {
        tell::note(format_args!("the record is not signed: {}", explained(unsigned.error())));
    }
    answer.and(signed)
}

fn signed(key: &SigningKey, record: &Path) -> Outcome {
    let signature = key.sign(record).run()?;
    tell::result_line(format_args!("Signed: {}", signature.display()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_campaign::difference;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        evaluate: Evaluate,
    }

    fn asked(options: &[&str]) -> Evaluate {
        let line = ["evaluate"].iter().chain(options);
        <Line as clap::Parser>::try_parse_from(line).expect("valid options").evaluate
    }

    #[test]
    fn recordings_may_be_named_again_whoever_named_those_of_the_plan() {
        let first = asked(&[".", "--plan", "desy", "--for", "pco-edge"]);
        let mut recorded = first.plans().expect("a plan that is built in");
        assert!(recorded.recordings().count() > 0, "the plan has recordings");
        recorded.cells.extend(first.recordings.cells().expect("an instrument of the catalogue"));
        let differs = |options: &[&str]| {
            let again = asked(options).plan_like(&recorded, &RankNodes::alone()).expect("valid options");
            difference(&recorded, &again)
        };
        assert_eq!(differs(&["--resume", "--for", "pco-edge"]), None);
        assert_eq!(differs(&["--resume", "--plan", "desy", "--for", "pco-edge"]), None);
        assert_eq!(differs(&["--resume"]), None);
        let other = differs(&["--resume", "--for", "pco-4000"]).expect("another instrument");
        assert!(other.contains("cells["), "{other}");
    }
}
