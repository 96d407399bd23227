//! `nilometer evaluate`: runs a plan on targets and reports the load that they carry.

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
    Bytes, FileSystemKind, Instrument, Invalid, Nanos, NetworkStage, TargetAddress, catalogue,
};
use nilometer_network::NetworkLead;
use nilometer_plan::{AppliedSetting, Cell, Condition, Key, PlannedCampaign, RankNodes, ResolvedPlan};
use nilometer_record::Record;
use nilometer_remote::describe_in_child;
use nilometer_report::{Detail, terminal};
use nilometer_storage::Target;

use crate::{
    Blame, Failure, Outcome, acceptance,
    dry_run::dry_run,
    ended::{ended, ended_whole},
    explained,
    occupied::{refuse_in_use, refuse_twice, warn_of_record_on_target},
    plan::{Scale, load},
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

/// Measure storage and report the instruments that it can carry
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Evaluate {
    /// Directories on the storage systems, or URLs: root://, nfs://, s3:// and hdfs:// need a build with their
    /// clients; `null:` discards all data
    #[arg(required_unless_present = "resume", value_parser = target_argument())]
    pub(crate) targets: Vec<TargetAddress>,
    /// Run this plan: a built-in name (see `nilometer plan list`), or the path of a .toml file. Repeat the
    /// option for several plans; `none` makes only the recordings of --for [default: quick]
    #[arg(long = "plan", value_name = "PLAN", help_heading = "Measurement")]
    plans: Vec<String>,
    /// Refuse targets on other file systems, such as the one below a missing mount. Give one type for all
    /// targets, or one for each, in their order: ext4, nfs, lustre and others; an unknown word lists them
    #[arg(long, value_name = "TYPE", value_delimiter = ',', help_heading = "Measurement")]
    expect: Vec<FileSystemKind>,
    /// Measure each cell and recording of a plan this many times, instead of the plan's number. Recordings of
    /// --for repeat as often as their answer needs
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = "Measurement")]
    repeats: Option<u32>,
    #[command(flatten)]
    scale: Scale,
    /// Copy from this directory, in plans that copy from a disk
    #[arg(long, value_name = "DIRECTORY", help_heading = "Measurement")]
    source: Option<PathBuf>,
    /// End after this time at the latest, instead of the plan's limit
    #[arg(long, help_heading = "Measurement")]
    pub(crate) time_limit: Option<Nanos>,
    /// Write the record to this file [default: evaluation.sqlite, or the next free number]
    #[arg(long, help_heading = "The record")]
    pub(crate) record: Option<PathBuf>,
    /// Sign the record with this SSH key when the campaign has ended. `check --signed-by` finds the signer
    #[arg(long, value_name = "KEY", help_heading = "The record")]
    sign: Option<PathBuf>,
    /// Continue the interrupted or killed campaign of the record, with the record's targets and plan
    #[arg(long, group = RECORDED, help_heading = "The record")]
    pub(crate) resume: bool,
    /// With --resume: run commands and read files named in the record's plan, even if another user or another
    /// machine made the record
    #[arg(long, requires = "resume", help_heading = "The record")]
    pub(crate) trust_record: bool,
    /// Seed all random decisions with this number, instead of the plan's
    #[arg(long, help_heading = "Measurement")]
    seed: Option<u64>,
    /// Keep this much space free on each target, instead of the plan's amount
    #[arg(long, value_name = "SIZE", help_heading = "Measurement")]
    reserve: Option<Bytes>,
    /// Start nothing: print the measurements, their duration and space, and the commands that conditions
    /// would run
    #[arg(long, short = 'n', conflicts_with = "resume", help_heading = "Measurement")]
    dry_run: bool,
    #[command(flatten)]
    pub(crate) progress: ProgressOptions,
    // This field is the last: its heading applies to all options after it.
    #[command(flatten)]
    recordings: Recordings,
}

/// The text that `evaluate --help` prints about exit codes.
const EXIT_CODES: &str = "\
Exit codes:
  0  carried: no frame of any instrument was lost; without --for: measured
  1  a fault: a failure, hang or interruption of the storage or the campaign prevented an answer
  2  wrong input: nothing was started
  3  not carried: a target lost frames of an instrument, even if something else failed; with [accept] in the plan: FAIL
  4  not decided: the data don't show whether an instrument is carried; without --for: every figure of a stage is INVALID; with [accept] in the plan: NOT DECIDED";

/// A campaign that can run.
#[derive(Debug)]
pub(crate) struct Ready {
    /// The path of the record.
    pub(crate) path: PathBuf,
    pub(crate) resolved: PlannedCampaign,
    pub(crate) record: Record,
    /// The measurements that the record already has. If one must not be used, with the reason.
    pub(crate) done: BTreeMap<Key, Option<Invalid>>,
    /// The trials of searches among them.
    pub(crate) trials: Trials,
    /// The measured rates of workloads among them.
    pub(crate) rates: MeasuredRates,
    /// One entry for each target: true if the campaign uses it.
    pub(crate) in_use: Vec<bool>,
    /// The measurements of the network.
    pub(crate) network: Vec<NetworkStage>,
}

/// A campaign and its directories on the targets.
struct Prepared {
    ready: Ready,
    targets: Vec<Option<Arc<dyn Target>>>,
    archive: Option<Arc<dyn Target>>,
    load_places: Vec<Option<Arc<dyn Target>>>,
    stop: Arc<AtomicBool>,
}

/// All processes of a campaign, and the measured part of the network between them.
struct Joined {
    ranks: CampaignRanks,
    network: Vec<NetworkLead>,
}

impl Prepared {
    /// Brings all processes into the campaign. If one can't take part, removes every directory that was made.
    fn joined(&self, cluster: &dyn Cluster, nodes: RankNodes, resumed: bool) -> Result<Joined, Failure> {
        let plan = &self.ready.resolved.plan;
        let joined = ranks::join_all(cluster, &self.targets, plan.hang_after, nodes).and_then(|ranks| {
            let network = ranks::network_stages(cluster, plan, &self.ready.network)?;
            Ok(Joined { ranks, network })
        });
        joined.inspect_err(|_| {
            let all = self.targets.iter().chain(&self.load_places).chain([&self.archive]).flatten();
            for target in all {
                // `clean` finds directories that stay, and the message says why nothing started.
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
        // If writing to the record failed, a phase may still run.
        ending.store(true, Ordering::Relaxed);
        let answer = ran.run().and_then(|ran| answered(ran, &path, key));
        let tidied = remove_targets(targets, show.left_out(), patience);
        let beside = load_places.into_iter().flatten().map(|place| removed(patience, &place));
        let tidied = beside.fold(tidied, Result::and);
        let tidied = tidied.and(archive.map_or(Ok(()), |archive| removed(patience, &archive)));
        match (answer, tidied) {
            // A lost frame is the answer in any case. After any other, a directory that stays is a fault.
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
        // Before other processes start that would wait for this one.
        let stop = stop_on_signal().run()?;
        let cluster = ranks::cluster()?;
        if cluster.rank() > 0 {
            return ranks::follow_first(cluster.as_ref(), &stop);
        }
        let nodes = ranks::present(cluster.as_ref(), self)?;
        if self.dry_run {
            dismiss(cluster.as_ref());
            self.refuse_taken_record().input()?;
            tell::result(dry_run(
                &self.resolved(&nodes).input()?,
                &self.record.clone().unwrap_or_else(free_name),
            ));
            return Ok(());
        }
        let key = self.signing_key().input().inspect_err(|_| dismiss(cluster.as_ref()))?;
        let prepared = self.prepared(&nodes, stop).inspect_err(|_| dismiss(cluster.as_ref()))?;
        let joined = prepared.joined(cluster.as_ref(), nodes, self.resume)?;
        prepared.execute(cluster, joined, key.as_ref(), self.progress)
    }

    /// The signing key, after a signature as a test.
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

    /// Makes everything that must exist before the first phase.
    fn prepared(&self, nodes: &RankNodes, stop: Arc<AtomicBool>) -> Result<Prepared, Failure> {
        let mut ready = if self.resume { resumed(self, nodes)? } else { self.begun(nodes)? };
        warn_of_record_on_target(&ready.path, &ready.resolved);
        let targets = make_targets(&ready.resolved, &ready.in_use, &mut ready.record).run()?;
        let archive = make_archive(&ready.resolved, &mut ready.record).run()?;
        let load_places = make_load_places(&ready.resolved, &ready.in_use, &mut ready.record).run()?;
        Ok(Prepared { ready, targets, archive, load_places, stop })
    }

    /// Starts a new campaign in a record of its own.
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

    /// Checks the plan against the described targets. Everything that can be refused is refused here.
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

    /// Refuses a record that a real run would refuse too.
    fn refuse_taken_record(&self) -> anyhow::Result<()> {
        let taken = self.record.iter().find(|record| record.symlink_metadata().is_ok());
        let shown = taken.map(|record| record.display().to_string()).unwrap_or_default();
        ensure!(taken.is_none(), "--record {shown}: it exists: choose another, or go on with --resume");
        Ok(())
    }

    /// Merges the plans, as written, into one.
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

    /// Replaces values of the plan by those of the command line.
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

    /// The conditions and instruments that the command line names, directly or through a plan.
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

    /// The settings of the plans on the command line.
    pub(crate) fn named_settings(&self) -> anyhow::Result<Vec<AppliedSetting>> {
        if self.plans.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.plans()?.settings().cloned().collect())
    }

    /// The plan of this command line, with `recorded` for all that it leaves out; only its time limit may differ.
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
            // The first command line's number of repeats holds, unless this one has another.
            if self.repeats.is_none() && plan.repeats != repeats {
                plan.set_repeats(repeats);
            }
        } else if let Some(repeats) = self.repeats {
            plan.repeats = repeats;
        }
        if let Some(scale) = self.scale.given().filter(|_| self.plans.is_empty()) {
            plan.scale = scale;
        }
        // Recordings of --for follow the cells of the plans.
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

/// Removes the last `count` recordings.
fn remove_last_recordings(cells: &mut Vec<Cell>, count: usize) {
    for _ in 0..count {
        if let Some(last) = cells.iter().rposition(|cell| cell.as_recording().is_some()) {
            cells.remove(last);
        }
    }
}

/// The program's version, as records store it.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The plan that runs if the command line has none.
const DEFAULT_PLAN: &str = "quick";

/// The word in place of a plan for recordings alone.
const NO_PLAN: &str = "none";

/// A plan's name if there are several: its built-in name, or the stem of its file's name.
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

/// Adds the storage that the plan copies from and to, if it has any.
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

/// Prints the results, and turns the verdicts into the exit code.
fn answered(Ran { record, missing }: Ran, path: &Path, key: Option<&SigningKey>) -> Outcome {
    let results = nilometer_record::read(path).run()?;
    let study = Study::of(&results);
    let concluded = conclusions(&study);
    let study = study.with_catalogue(&catalogue::instruments());
    tell::result_unchanged(format_args!("\n{}", terminal(&study, Detail::Short, report::layout())));
    tell::result_line(format_args!("\nRecord: {}", path.display()));
    // The campaign is done, its record stored: without a page, a note suffices.
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
    // The results are printed by now, even if the record does not take the conclusions.
    record.conclude(&concluded).run()?;
    let signed = key.map_or(Ok(()), |key| signed(key, path));
    let answer = ended_whole(&study, path);
    // A missing signature is the lesser fault.
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
