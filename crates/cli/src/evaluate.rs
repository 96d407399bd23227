//! `nilometer evaluate`: runs a plan on targets and says what they can carry.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::{Context, bail};
use clap::Args;
use nilometer_analysis::report::terminal;
use nilometer_campaign::{Campaign, Progress, Resolved, environment, resolve, within};
use nilometer_model::{
    Bytes, CellEntry, Instrument, Invalid, Measured, Nanos, Results, Seed, TargetEntry,
    plan::{Cells, IngestCell},
};
use nilometer_record::Record;
use nilometer_storage::{Target, target::Posix};

use crate::{
    Blame, Outcome,
    catalogue::{INSTRUMENTS, find},
    describe::described,
    plan::{Scale, load},
};

/// Measures storage, and says what it can carry
#[derive(Debug, Args)]
pub(crate) struct Evaluate {
    /// Directories on the storage systems to be evaluated
    #[arg(required = true)]
    targets: Vec<PathBuf>,
    /// What to measure: a built-in plan (see `nilometer plan list`), or the path of a .toml file; may be given several
    /// times
    #[arg(long = "plan", value_name = "PLAN", default_value = "quick")]
    plans: Vec<String>,
    /// How often each cell is measured, instead of what the plan says
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeats: Option<u32>,
    #[command(flatten)]
    scale: Scale,
    /// Where copies come from, in plans that copy from a disk
    #[arg(long, value_name = "DIRECTORY")]
    source: Option<PathBuf>,
    /// End after this time at the latest, instead of the plan's limit
    #[arg(long)]
    time_limit: Option<Nanos>,
    /// Record this instrument and say whether the storage carries it: a name of the catalogue, or the path of a .toml
    /// file; may be given several times
    #[arg(long = "for", value_name = "INSTRUMENT")]
    instruments: Vec<String>,
    /// How long each instrument is recorded
    #[arg(long, default_value = "40 s")]
    duration: Nanos,
    /// Memory between an instrument and the storage
    #[arg(long, default_value = "1 GiB")]
    buffer: Bytes,
    /// Where the record goes [default: evaluation.sqlite, or the next free number]
    #[arg(long)]
    record: Option<PathBuf>,
    /// The seed of all random decisions, instead of the plan's
    #[arg(long)]
    seed: Option<u64>,
}

impl Evaluate {
    pub(crate) fn execute(&self) -> Outcome {
        let resolved = self.resolved().input()?;
        let path = self.record.clone().unwrap_or_else(free_name);
        let head = head(&resolved).run()?;
        let record = Record::create(&path, &head, resolved.plan.warm_up).input()?;
        warn_of_record_on_target(&path, &resolved);
        let targets = make_targets(&resolved).run()?;
        let (stop, patience) = (stop_on_signal().run()?, resolved.plan.hang_after);
        let campaign = Campaign { targets: targets.clone(), stop: stop.clone(), resolved, record };
        let record = campaign.run(&mut |progress| tell(&progress, &head)).run()?;
        drop(record);
        let results = nilometer_record::read(&path).run()?;
        print!("\n{}", terminal(&results));
        println!("\nRecord: {}", path.display());
        remove_targets(targets, &results, patience).run()?;
        went_well(&results, stop.load(Ordering::Relaxed)).run()
    }

    /// The plan against the described targets: all that can be refused is refused here.
    fn resolved(&self) -> anyhow::Result<Resolved> {
        let plans = self.plans.iter().map(|name| Ok((stem(name), load(name, self.scale)?)));
        let plans = plans.collect::<anyhow::Result<Vec<_>>>()?;
        let mut plan = Cells::joined(plans).expect("clap gives at least the default");
        plan.repeats = self.repeats.unwrap_or(plan.repeats);
        plan.seed = self.seed.unwrap_or(plan.seed);
        plan.time_limit = self.time_limit.unwrap_or(plan.time_limit);
        let source = self.source.as_ref().map(|source| source.display().to_string());
        plan.source = source.or(plan.source);
        for name in &self.instruments {
            plan.ingests.extend(self.ingests(name)?);
        }
        let descriptions =
            self.targets.iter().map(|path| described(path)).collect::<anyhow::Result<Vec<_>>>()?;
        let resolved = resolve(plan, descriptions)?;
        match resolved.plan.source.clone() {
            Some(source) if resolved.copies() => Ok(resolved.with_source(described(Path::new(&source))?)?),
            _ => Ok(resolved),
        }
    }

    /// What is recorded for an instrument: first as fast as the storage takes it, then at its own pace.
    fn ingests(&self, name: &str) -> anyhow::Result<[IngestCell; 2]> {
        let (file, text) = find(name, &INSTRUMENTS, "instrument")?;
        let instrument = Instrument::parse(&text, &file)?;
        let paced = IngestCell {
            instrument,
            paced: true,
            duration: self.duration,
            buffer: self.buffer,
            keep: KEEP,
            repeats: 1,
        };
        let limit =
            IngestCell { paced: false, duration: LIMIT_DURATION, repeats: LIMIT_REPEATS, ..paced.clone() };
        Ok([limit, paced])
    }
}

/// What a plan is called where there are several: its name, or that of its file.
fn stem(name: &str) -> String {
    Path::new(name).file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// How often, and how long each time, the limit of the storage is looked for before an instrument is recorded.
const LIMIT_REPEATS: u32 = 3;
const LIMIT_DURATION: Nanos = Nanos::from_millis(5_000);
/// What stays of a recording: enough to be behind the caches of a device, not enough to fill it.
const KEEP: Bytes = Bytes(2 << 30);

/// `evaluation.sqlite`, or the first `evaluation-N.sqlite` that is free.
fn free_name() -> PathBuf {
    let numbered = (2..).map(|number| PathBuf::from(format!("evaluation-{number}.sqlite")));
    let mut names = std::iter::once(PathBuf::from("evaluation.sqlite")).chain(numbered);
    names.find(|name| !name.exists()).expect("numbers do not end")
}

fn warn_of_record_on_target(record: &Path, resolved: &Resolved) {
    use std::os::unix::fs::MetadataExt;
    let device = |path: &Path| std::fs::metadata(path).ok().map(|metadata| metadata.dev());
    let parent = record.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if let Some(target) = resolved.targets.iter().find(|target| device(&target.path) == device(parent)) {
        let target = target.path.display();
        eprintln!(
            "note: the record lies on the storage under test ({target}); it is written between phases only"
        );
    }
}

fn head(resolved: &Resolved) -> anyhow::Result<Results> {
    let mut targets = Vec::new();
    for description in &resolved.targets {
        targets.push(TargetEntry {
            path: description.path.display().to_string(),
            file_system: description.file_system.clone(),
            description: serde_json::to_string(description)?,
            left_out: None,
        });
    }
    let mut cells = Vec::new();
    for cell in &resolved.plan.cells {
        let parameters = serde_json::to_string(cell)?;
        cells.push(CellEntry { stage: cell.stage.clone(), name: cell.to_string(), parameters });
    }
    for ingest in &resolved.plan.ingests {
        let (stage, parameters) = (ingest.instrument.name.clone(), serde_json::to_string(ingest)?);
        cells.push(CellEntry { stage, name: ingest.to_string(), parameters });
    }
    Ok(Results {
        title: resolved.plan.title.clone(),
        version: env!("CARGO_PKG_VERSION").into(),
        plan: serde_json::to_string(resolved)?,
        margin: resolved.plan.margin,
        repeats: resolved.plan.repeats,
        targets,
        cells,
        environment: environment(),
        ..Results::default()
    })
}

fn make_targets(resolved: &Resolved) -> anyhow::Result<Vec<Arc<dyn Target>>> {
    let id = run_id();
    let source = resolved.source.as_ref();
    let mut targets: Vec<Arc<dyn Target>> = Vec::new();
    for (index, description) in resolved.targets.iter().enumerate() {
        let id = id.part(index as u64);
        let mut target = Posix::create(description.clone(), id.0)?;
        if let Some(source) = source {
            // One each, since several targets may be written at the same time.
            target = target.with_source(Posix::create(source.clone(), id.named("source").0)?)?;
        }
        targets.push(Arc::new(target));
    }
    Ok(targets)
}

/// Different for each run: names of run directories are never used twice.
fn run_id() -> Seed {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Seed(since_epoch.as_nanos() as u64).part(u64::from(std::process::id()))
}

/// The first interrupt ends the campaign after the current phase, the second ends the program.
fn stop_on_signal() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 1, stop.clone())
            .context("can't watch for signals")?;
        signal_hook::flag::register(signal, stop.clone()).context("can't watch for signals")?;
    }
    Ok(stop)
}

fn tell(progress: &Progress<'_>, head: &Results) {
    match progress {
        Progress::Measured { done, of, measured: Measured { key, sample } } => {
            let (target, cell) = (&head.targets[key.target].path, &head.cells[key.cell].name);
            let phase = key.phase.name();
            let result = match &sample.invalid {
                Some(why) => format!("INVALID: {why}"),
                None if sample.bytes > 0 => sample.rate().to_string(),
                None => format!("{:.0} operations/s", sample.operation_rate()),
            };
            eprintln!("[{done}/{of}] {target}: {phase} {cell}: {result}");
        }
        Progress::LeftOut { target, why } => {
            eprintln!("{}: left out from here on: {why}", head.targets[*target].path);
        }
    }
}

/// A target that was left out is not touched again, not even to tidy up.
fn remove_targets(targets: Vec<Arc<dyn Target>>, results: &Results, patience: Nanos) -> anyhow::Result<()> {
    let mut outcome = Ok(());
    for (target, entry) in targets.into_iter().zip(&results.targets) {
        if entry.left_out.is_some() {
            eprintln!("{0}: what is left there can be removed with `nilometer clean {0}`", entry.path);
            std::mem::forget(target);
            continue;
        }
        let removed = within(patience, &target, |target| target.remove()).and_then(|removed| removed);
        outcome = outcome.and(removed);
    }
    Ok(outcome?)
}

/// Failures of the storage are in the report; here they become the exit code.
fn went_well(results: &Results, interrupted: bool) -> anyhow::Result<()> {
    let failed = |measured: &&Measured| {
        matches!(measured.sample.invalid, Some(Invalid::Hung | Invalid::Errors | Invalid::Refused(_)))
    };
    let (failed, all) = (results.samples.iter().filter(failed).count(), results.samples.len());
    if failed > 0 {
        bail!("{failed} of {all} samples failed: the report says which");
    }
    if let Some(target) = results.targets.iter().find(|target| target.left_out.is_some()) {
        bail!("{} was left out: the report says why", target.path);
    }
    if interrupted {
        bail!("interrupted: the record holds what was measured until then");
    }
    Ok(())
}
