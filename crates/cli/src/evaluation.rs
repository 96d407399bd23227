//! The run of `nilometer evaluate`: a plan on targets, and the report of the load that they carry.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::{Context, anyhow, ensure};
use nilometer_analysis::{Study, conclusions};
use nilometer_campaign::{
    Campaign, MeasuredRates, Ran, SharedPlaces, TargetPlaces, Trials, dismiss, make_archive,
    make_load_places, make_targets, record_head, resolve, with_ceiling,
};
use nilometer_cluster::{CampaignRanks, Cluster};
use nilometer_model::catalogue;
use nilometer_network::NetworkLead;
use nilometer_plan::{PlannedCampaign, RankNodes};
use nilometer_record::Record;
use nilometer_remote::describe_in_child;
use nilometer_report::{Detail, terminal};
use nilometer_storage::Target;

use crate::{
    Blame, Failure, Outcome, acceptance,
    dry_run::dry_run,
    ended::{ended, ended_whole},
    evaluate::Evaluate,
    explained,
    occupied::{refuse_in_use, refuse_twice, warn_of_record_on_target},
    page_file,
    progress::{ProgressOptions, Show},
    ranks,
    ready_campaign::{ReadyCampaign, sourced},
    report,
    resume::resumed,
    signals::stop_on_signal,
    signature::{self, SigningKey},
    tell,
    tidied::{remove_targets, removed},
    version,
};

/// A campaign and its directories on the targets.
struct Prepared {
    ready: ReadyCampaign,
    targets: Vec<Option<Arc<dyn Target>>>,
    archive: Option<Arc<dyn Target>>,
    load_places: Vec<TargetPlaces>,
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
        let places = SharedPlaces { targets: &self.targets, loads: &self.load_places };
        let joined = ranks::join_all(cluster, places, plan.hang_after, nodes).and_then(|ranks| {
            let network = ranks::network_stages(cluster, plan, &self.ready.network)?;
            Ok(Joined { ranks, network })
        });
        joined.inspect_err(|_| {
            let all =
                self.targets.iter().chain(self.load_places.iter().flatten()).chain([&self.archive]).flatten();
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
        let head = record_head(&ready.resolved, version::PACKAGE);
        let ReadyCampaign { path, resolved, record, done, trials, rates, .. } = ready;
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
        let beside = load_places.into_iter().flatten().flatten().map(|place| removed(patience, &place));
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
        let prepared =
            self.prepared(cluster.as_ref(), &nodes, stop).inspect_err(|_| dismiss(cluster.as_ref()))?;
        let joined = prepared.joined(cluster.as_ref(), nodes, self.resume)?;
        prepared.execute(cluster, joined, key.as_ref(), self.progress)
    }

    /// The signing key, after a signature as a test.
    fn signing_key(&self) -> anyhow::Result<Option<SigningKey>> {
        let Some(key) = &self.sign else { return Ok(None) };
        let record = if self.resume { Some(self.recorded_at()) } else { self.record.clone() };
        if let Some(record) = &record {
            let signature = signature::beside(record);
            let shown = signature.display();
            ensure!(signature.symlink_metadata().is_err(), "--sign: {shown} exists: remove it first");
        }
        SigningKey::tried(key).map(Some)
    }

    /// Makes everything that must exist before the first phase.
    fn prepared(
        &self,
        cluster: &dyn Cluster,
        nodes: &RankNodes,
        stop: Arc<AtomicBool>,
    ) -> Result<Prepared, Failure> {
        let mut ready =
            if self.resume { resumed(self, cluster, nodes)? } else { self.begun(cluster, nodes)? };
        warn_of_record_on_target(&ready.path, &ready.resolved);
        let targets = make_targets(&ready.resolved, &ready.in_use, &mut ready.record).run()?;
        let archive = make_archive(&ready.resolved, &mut ready.record).run()?;
        let load_places = make_load_places(&ready.resolved, &ready.in_use, &mut ready.record).run()?;
        Ok(Prepared { ready, targets, archive, load_places, stop })
    }

    /// Starts a new campaign in a record of its own.
    fn begun(&self, cluster: &dyn Cluster, nodes: &RankNodes) -> Result<ReadyCampaign, Failure> {
        let resolved = self.resolved(nodes).input()?;
        ranks::check_network(cluster, &resolved.plan, &[])?;
        let path = self.record.clone().unwrap_or_else(free_name);
        let mut head = record_head(&resolved, version::PACKAGE);
        head.environment.extend(acceptance::sums(&resolved.plan, &self.plans).input()?);
        let record = Record::create(&path, &head, resolved.plan.warm_up).input()?;
        let in_use = vec![true; resolved.targets.len()];
        let done = BTreeMap::new();
        let trials = Trials::default();
        let rates = MeasuredRates::default();
        Ok(ReadyCampaign { path, resolved, record, done, trials, rates, in_use, network: Vec::new() })
    }

    /// Checks the plan against the described targets. Everything that can be refused is refused here.
    fn resolved(&self, nodes: &RankNodes) -> anyhow::Result<PlannedCampaign> {
        let mut plan = self.plans()?;
        acceptance::refuse_changes(&plan, self.scale, self.repeats)?;
        plan.cells.extend(self.recordings.cells()?);
        let descriptions = self.targets.iter().map(describe_in_child).collect::<Result<Vec<_>, _>>()?;
        refuse_twice(&descriptions)?;
        let resolved = sourced(resolve(self.changed(plan, nodes), descriptions)?)?;
        match refuse_in_use(&resolved) {
            // A look at the plan disturbs nobody.
            Err(occupied) if self.dry_run => tell::note(format!("note: {occupied}")),
            free => free?,
        }
        Ok(with_ceiling(resolved))
    }

    /// Refuses a record that a real run would refuse too.
    fn refuse_taken_record(&self) -> anyhow::Result<()> {
        let taken = self.record.iter().find(|record| record.symlink_metadata().is_ok());
        let shown = taken.map(|record| record.display().to_string()).unwrap_or_default();
        ensure!(taken.is_none(), "--record {shown}: it exists: choose another, or go on with --resume");
        Ok(())
    }
}

/// `evaluation.sqlite`, or the first `evaluation-N.sqlite` that is free and has no page either.
fn free_name() -> PathBuf {
    let numbered = (2..).map(|number| PathBuf::from(format!("evaluation-{number}.sqlite")));
    let mut names = std::iter::once(PathBuf::from("evaluation.sqlite")).chain(numbered);
    let is_free = |name: &Path| name.symlink_metadata().is_err();
    names.find(|name| is_free(name) && is_free(&page_file::page_of(name))).expect("numbers do not end")
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
        tell::note(format_args!("{}", explained(unsigned.error())));
    }
    answer.and(signed)
}

/// The message about a record without its signature.
fn unsigned(key: &SigningKey, record: &Path) -> String {
    format!("the record is whole, but not signed; sign it with `{}`", key.command(record))
}

fn signed(key: &SigningKey, record: &Path) -> Outcome {
    let signature = key.sign(record).with_context(|| unsigned(key, record)).run()?;
    tell::result_line(format_args!("Signed: {}", signature.display()));
    Ok(())
}
