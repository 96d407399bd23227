//! JSON of fio (`--output-format=json`, or `json+` with all bins of its histograms): a sample for each direction of each job.
//!
//! Jobs of one name in one group run at the same time (`numjobs` without `group_reporting`): they are the workers of one sample.
//! Repeats are further files.

use std::collections::BTreeMap;

use nilometer_model::{
    Histogram, Nanos,
    plan::{ImportedRun, Phase},
};
use serde::Deserialize;

use super::{
    Fault,
    gathered::{Gathered, GivenFigure, GivenWork, count},
    ior::json_fault,
};

#[derive(Deserialize)]
struct Document {
    #[serde(rename = "fio version")]
    version: String,
    #[serde(default)]
    timestamp_ms: u64,
    #[serde(rename = "global options", default)]
    global: BTreeMap<String, String>,
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
struct Job {
    jobname: String,
    #[serde(default)]
    groupid: u64,
    #[serde(default)]
    error: i64,
    #[serde(rename = "job options", default)]
    options: BTreeMap<String, String>,
    /// Percent of its time.
    #[serde(default)]
    usr_cpu: f64,
    #[serde(default)]
    sys_cpu: f64,
    read: Direction,
    write: Direction,
}

/// What was read, or written.
#[derive(Deserialize, Default)]
struct Direction {
    #[serde(default)]
    io_bytes: u64,
    #[serde(default)]
    total_ios: u64,
    /// Milliseconds.
    #[serde(default)]
    runtime: u64,
    #[serde(default)]
    clat_ns: Latency,
    #[serde(default)]
    lat_ns: Latency,
}

#[derive(Deserialize, Default)]
struct Latency {
    #[serde(default, rename = "N")]
    count: u64,
    #[serde(default)]
    max: u64,
    #[serde(default)]
    percentile: BTreeMap<String, u64>,
    #[serde(default)]
    bins: BTreeMap<String, u64>,
}

pub(super) fn parse(text: &str, gathered: &mut Gathered<'_>) -> Result<(), Fault> {
    // What fio has to say stands before and behind its document.
    let skipped = text.lines().take_while(|line| !line.starts_with('{')).count();
    let begin = text.lines().take(skipped).map(|line| line.len() + 1).sum::<usize>();
    let document = text.get(begin..).unwrap_or_default();
    let mut documents = serde_json::Deserializer::from_str(document).into_iter::<Document>();
    let document = match documents.next() {
        Some(Ok(document)) => document,
        Some(Err(error)) => {
            let fault = json_fault(&error);
            return Err(Fault { line: fault.line.map(|line| line + skipped as u64), ..fault });
        }
        None => return Err(Fault::whole("cut off: fio's document is missing")),
    };
    let mut groups: BTreeMap<(u64, &str), Vec<&Job>> = BTreeMap::new();
    for job in &document.jobs {
        groups.entry((job.groupid, &job.jobname)).or_default().push(job);
    }
    for jobs in groups.into_values() {
        if let Some(failed) = jobs.iter().find(|job| job.error != 0) {
            gathered.leave_out(format!("jobs that failed (error {})", failed.error));
            continue;
        }
        add(&document, &jobs, Phase::Read, gathered)?;
        add(&document, &jobs, Phase::Write, gathered)?;
    }
    Ok(())
}

fn add(document: &Document, jobs: &[&Job], phase: Phase, gathered: &mut Gathered<'_>) -> Result<(), Fault> {
    let did: Vec<&Direction> = jobs.iter().map(|job| job.direction(phase)).collect();
    let total = |value: fn(&Direction) -> u64| -> Option<u64> {
        did.iter().try_fold(0_u64, |sum, direction| sum.checked_add(value(direction)))
    };
    let overflow =
        || Fault::whole(format!("job `{}`: its counts are larger than a record can hold", jobs[0].jobname));
    let bytes = total(|direction| direction.io_bytes).ok_or_else(overflow)?;
    let operations = total(|direction| direction.total_ios).ok_or_else(overflow)?;
    let runtime = did.iter().map(|direction| direction.runtime).max().unwrap_or(0);
    if operations == 0 {
        return Ok(());
    }
    if runtime == 0 {
        gathered.leave_out("jobs that took less than a millisecond, which is how finely fio gives times");
        return Ok(());
    }
    let [bytes, operations] =
        [count(bytes as f64, 0).map(|_| bytes), count(operations as f64, 0).map(|_| operations)];
    let seconds = runtime as f64 / 1e3;
    let share = |of: fn(&Job) -> f64| -> f64 { jobs.iter().map(|job| of(job) / 100.0).sum() };
    let busy = |share: f64| count(share.clamp(0.0, 1e6) * seconds * 1e9, 0).map(Nanos);
    let did = GivenWork {
        bytes: bytes.map_err(|_| overflow())?,
        operations: operations.map_err(|_| overflow())?,
        wall: Nanos(runtime.checked_mul(1_000_000).ok_or_else(overflow)?),
        user: busy(share(|job| job.usr_cpu))?,
        system: busy(share(|job| job.sys_cpu))?,
        started: Nanos(document.timestamp_ms.saturating_mul(1_000_000)),
        latency: latency(&did).ok_or_else(overflow)?,
    };
    let run = run(document, jobs);
    let stage = jobs[0].jobname.clone();
    gathered.add(GivenFigure { target: target(document, jobs[0]), stage, run, phase, did });
    Ok(())
}

impl Job {
    fn direction(&self, phase: Phase) -> &Direction {
        if phase == Phase::Read { &self.read } else { &self.write }
    }
}

/// Of all jobs together: of their bins, or of the percentiles that are given.
fn latency(all: &[&Direction]) -> Option<Histogram> {
    let mut histogram = Histogram::default();
    for direction in all {
        let Direction { lat_ns, clat_ns, .. } = direction;
        let of = if lat_ns.bins.is_empty() && lat_ns.percentile.is_empty() { clat_ns } else { lat_ns };
        of.add_to(&mut histogram)?;
    }
    Some(histogram)
}

impl Latency {
    fn add_to(&self, histogram: &mut Histogram) -> Option<()> {
        for (value, count) in &self.bins {
            add_many(histogram, value.parse().ok()?, *count);
        }
        if self.bins.is_empty() {
            self.add_percentiles(histogram);
        }
        Some(())
    }

    /// As many values as lie between two percentiles are those of the upper one.
    fn add_percentiles(&self, histogram: &mut Histogram) {
        let share = |(percent, value): (&String, &u64)| Some((percent.parse::<f64>().ok()?, *value));
        let mut shares: Vec<(f64, u64)> = self.percentile.iter().filter_map(share).collect();
        shares.retain(|(percent, _)| (0.0..=100.0).contains(percent));
        shares.sort_by(|one, other| one.0.total_cmp(&other.0));
        if !shares.is_empty() {
            shares.push((100.0, self.max));
        }
        let mut below = 0;
        for (percent, value) in shares {
            #[expect(clippy::cast_sign_loss, reason = "it is at least zero")]
            let up_to = (self.count as f64 * percent / 100.0).round() as u64;
            add_many(histogram, value, up_to.saturating_sub(below));
            below = below.max(up_to);
        }
    }
}

fn add_many(histogram: &mut Histogram, value: u64, count: u64) {
    if count == 0 {
        return;
    }
    let mut one = Histogram::default();
    one.add(value);
    for (bucket, _) in one.buckets() {
        histogram.add_bucket(bucket, count);
    }
}

/// Options that say what is done, in the order in which they are told, and as they are told here.
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

fn option<'a>(document: &'a Document, job: &'a Job, name: &str) -> Option<&'a str> {
    job.options.get(name).or_else(|| document.global.get(name)).map(String::as_str)
}

fn run(document: &Document, jobs: &[&Job]) -> ImportedRun {
    let told = TOLD.iter().filter_map(|(name, word)| {
        let value = option(document, jobs[0], name)?;
        Some(((*word).to_owned(), value.to_owned()))
    });
    let version = document.version.trim_start_matches("fio-");
    let parameters = told.collect();
    ImportedRun { source: format!("fio {version}"), task: String::new(), parameters, figure: String::new() }
}

/// The directory or the file of a job.
fn target(document: &Document, job: &Job) -> String {
    let place = option(document, job, "directory").or_else(|| option(document, job, "filename"));
    place.unwrap_or("fio").to_owned()
}
