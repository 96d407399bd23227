//! JSON of fio (`--output-format=json`, or `json+` with all bins of its histograms): a sample for each
//! direction of each job.
//!
//! Jobs of one name in one group run at the same time (`numjobs` without `group_reporting`, or a job on several
//! hosts): they are the workers of one sample. Repeats are further documents and further files.

use std::collections::{BTreeMap, BTreeSet};

use nilometer_command_lines::{fio_option_makes_test, fio_value};
use nilometer_model::{Bytes, Histogram, Nanos, Phase};
use nilometer_plan::ImportedRun;

use super::{
    Fault,
    fio_document::{ALL_CLIENTS, Direction, Document, Job},
    fio_runs::is_interim,
    gathered::{Gathered, GivenFigure, GivenWork, count},
    sections::Section,
};

/// Takes the last document of each run.
pub(super) fn parse(sections: &[&Section<'_>], gathered: &mut Gathered<'_>) -> Result<(), Fault> {
    let documents = sections.iter().map(|section| Document::read(section)).collect::<Result<Vec<_>, _>>()?;
    for (place, document) in documents.iter().enumerate() {
        if documents.get(place + 1).is_some_and(|next| is_interim(document, next)) {
            gathered
                .leave_out("interim states of a run of fio (--status-interval), of which the last counts");
        } else {
            take(document, gathered)?;
        }
    }
    Ok(())
}

fn take(document: &Document, gathered: &mut Gathered<'_>) -> Result<(), Fault> {
    let mut groups: BTreeMap<(u64, &str), Vec<&Job>> = BTreeMap::new();
    for job in document.measured() {
        groups.entry((job.groupid, &job.jobname)).or_default().push(job);
    }
    let sums = document.client_stats.iter().filter(|job| job.jobname == ALL_CLIENTS).count();
    if sums > 0 && groups.keys().any(|(_, name)| *name != ALL_CLIENTS) {
        gathered.leave_out_many("sums over all clients, which follow from their figures", sums as u64);
    }
    for jobs in groups.into_values() {
        if let Some(failed) = jobs.iter().find(|job| job.error != 0) {
            gathered.leave_out(format!("jobs that failed (error {})", failed.error));
            continue;
        }
        for phase in [Phase::Read, Phase::Write, Phase::Mix] {
            add(document, &jobs, phase, gathered)?;
        }
        name_the_rest(&jobs, gathered);
    }
    Ok(())
}

/// Counts figures of jobs that import does not take.
fn name_the_rest(jobs: &[&Job], gathered: &mut Gathered<'_>) {
    for job in jobs {
        if job.trim.operations() > 0.0 || job.trim.io_bytes > 0 {
            gathered.leave_out("trims of fio");
        }
        if job.sync.operations() > 0.0 {
            gathered.leave_out("latencies of fio's syncs");
        }
        if job.mixed.is_some() && job.has_directions() {
            gathered.leave_out("sums of reads and writes (unified_rw_reporting=both)");
        }
    }
}

/// Adds the results of jobs that ran at the same time as one sample.
fn add(document: &Document, jobs: &[&Job], phase: Phase, gathered: &mut Gathered<'_>) -> Result<(), Fault> {
    let did: Vec<&Direction> = jobs.iter().filter_map(|job| job.direction(phase)).collect();
    let operations: f64 = did.iter().map(|direction| direction.operations()).sum();
    let runtime = did.iter().map(|direction| direction.runtime).max().unwrap_or(0);
    let kibibytes = document.counts_kibibytes();
    let bytes: f64 = did.iter().map(|direction| direction.bytes(kibibytes)).sum();
    if operations == 0.0 && bytes == 0.0 {
        return Ok(());
    }
    if runtime == 0 {
        gathered.leave_out("jobs that took less than a millisecond, the resolution of fio's times");
        return Ok(());
    }
    let seconds = runtime as f64 / 1e3;
    let share = |of: fn(&Job) -> f64| -> f64 { jobs.iter().map(|job| of(job) / 100.0).sum() };
    let busy = |share: f64| count(share.clamp(0.0, 1e6) * seconds * 1e9, 0).map(Nanos);
    let overflow = |_| too_large(jobs[0]);
    let did = GivenWork {
        bytes: count(bytes, 0).map_err(overflow)?,
        operations: count(operations, 0).map_err(overflow)?,
        wall: Nanos(runtime.checked_mul(1_000_000).ok_or_else(|| too_large(jobs[0]))?),
        user: busy(share(|job| job.usr_cpu))?,
        system: busy(share(|job| job.sys_cpu))?,
        started: Nanos(document.written_ms().saturating_mul(1_000_000)),
        latency: latency(&did).ok_or_else(|| too_large(jobs[0]))?,
    };
    let run = run(document, jobs, bytes / operations);
    let stage = jobs[0].jobname.clone();
    gathered.add(GivenFigure { target: document.target(jobs[0]), stage, run, phase, did });
    Ok(())
}

fn too_large(job: &Job) -> Fault {
    Fault::whole(format!("job `{}`: its counts are larger than a record can hold", job.jobname))
}

impl Job {
    /// `mixed` counts only if reads and writes are not given apart.
    fn direction(&self, phase: Phase) -> Option<&Direction> {
        match phase {
            Phase::Read => self.read.as_ref(),
            Phase::Write => self.write.as_ref(),
            _ => self.mixed.as_ref().filter(|_| !self.has_directions()),
        }
    }
}

/// Returns the latencies of all jobs together, from their bins or from percentiles.
fn latency(all: &[&Direction]) -> Option<Histogram> {
    let mut histogram = Histogram::default();
    for direction in all {
        direction.add_latencies(&mut histogram)?;
    }
    Some(histogram)
}

/// The first options in a cell's name, and their names there. Others that make a test follow.
const TOLD: [(&str, &str); 12] = [
    ("rw", ""),
    ("readwrite", ""),
    ("bs", "block size"),
    ("blocksize", "block size"),
    ("size", "size"),
    ("ioengine", "engine"),
    ("iodepth", "depth"),
    ("numjobs", "jobs"),
    ("direct", "direct"),
    ("fsync", "fsync"),
    ("end_fsync", "end_fsync"),
    ("rwmixread", "reads in percent"),
];

/// Sizes of operations are multiples of a sector.
const SECTOR: f64 = 512.0;

/// Bytes of an operation as they follow from the counts; `None` if operations were of different sizes.
fn operation_size(bytes: f64) -> Option<Bytes> {
    let whole = (bytes / SECTOR).round() * SECTOR;
    #[expect(clippy::cast_sign_loss, reason = "it is at least zero")]
    let size = Bytes(whole as u64);
    (whole > 0.0 && (whole - bytes).abs() < 0.01 * whole).then_some(size)
}

/// `operation` is the mean size of one in bytes: before version 2.2 fio's document has no options, and tests
/// with blocks of different sizes would be repeats of one.
fn run(document: &Document, jobs: &[&Job], operation: f64) -> ImportedRun {
    let told = TOLD.iter().filter_map(|(name, word)| {
        Some(((*word).to_owned(), fio_value(name, document.option(jobs[0], name)?)))
    });
    let mut parameters: Vec<(String, String)> = told.collect();
    let others = document.options(jobs[0]).into_iter();
    let others = others.filter(|(name, _)| TOLD.iter().all(|(known, _)| known != name));
    let others = others.filter(|(name, _)| fio_option_makes_test(name));
    parameters.extend(others.map(|(name, value)| (name.to_owned(), fio_value(name, value))));
    if parameters.is_empty() {
        let size = operation_size(operation).into_iter();
        parameters.extend(size.map(|size| ("operations of".to_owned(), size.to_string())));
    }
    let hosts: BTreeSet<&str> = jobs.iter().map(|job| job.hostname.as_str()).collect();
    if hosts.len() > 1 {
        parameters.push(("hosts".to_owned(), hosts.len().to_string()));
    }
    let version = document.version.trim_start_matches("fio-");
    ImportedRun { source: format!("fio {version}"), task: String::new(), parameters, figure: String::new() }
}
