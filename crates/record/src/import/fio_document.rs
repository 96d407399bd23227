//! A document of fio, as it is written: versions 2 and 3, from one machine or from several (`--client`).

use std::collections::BTreeMap;

use nilometer_model::Histogram;
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};

use super::{Fault, agreement::SameFigure, fio_latency::Latency, json_fault::json_fault, sections::Section};

#[derive(Deserialize)]
pub(super) struct Document {
    #[serde(rename = "fio version")]
    pub(super) version: String,
    /// Seconds since 1970, when the document was written.
    #[serde(default)]
    timestamp: u64,
    #[serde(default)]
    timestamp_ms: u64,
    #[serde(rename = "global options", default)]
    global: JobOptions,
    #[serde(default)]
    pub(super) jobs: Vec<Job>,
    /// A job of each host, and their sum.
    #[serde(default)]
    pub(super) client_stats: Vec<Job>,
}

#[derive(Deserialize)]
pub(super) struct Job {
    pub(super) jobname: String,
    #[serde(default)]
    pub(super) groupid: u64,
    #[serde(default)]
    pub(super) error: i64,
    /// Seconds since fio was started.
    #[serde(default)]
    pub(super) elapsed: u64,
    #[serde(rename = "job options", default)]
    options: JobOptions,
    /// Percent of its time.
    #[serde(default)]
    pub(super) usr_cpu: f64,
    #[serde(default)]
    pub(super) sys_cpu: f64,
    #[serde(default)]
    pub(super) hostname: String,
    pub(super) read: Option<Direction>,
    pub(super) write: Option<Direction>,
    /// Reads and writes in one figure (`--unified_rw_reporting`).
    pub(super) mixed: Option<Direction>,
    #[serde(default)]
    pub(super) trim: Direction,
    #[serde(default)]
    pub(super) sync: Direction,
}

/// Reads or writes of a job.
#[derive(Deserialize, Default)]
pub(super) struct Direction {
    /// Bytes; before fio 3.0 units of 1024 bytes.
    #[serde(default)]
    pub(super) io_bytes: u64,
    /// Units of 1024 bytes; fio 3.0 has it, and those before do not.
    io_kbytes: Option<u64>,
    /// Units of 1024 bytes a second.
    #[serde(default)]
    bw: f64,
    #[serde(default)]
    bw_bytes: f64,
    #[serde(default)]
    iops: f64,
    /// `None` before fio 2.2.
    pub(super) total_ios: Option<u64>,
    /// Milliseconds.
    #[serde(default)]
    pub(super) runtime: u64,
    #[serde(default)]
    clat_ns: Latency,
    #[serde(default)]
    lat_ns: Latency,
    /// Microseconds, before fio 3.0.
    #[serde(default)]
    clat: Latency,
    #[serde(default)]
    lat: Latency,
}

/// Options by their names. A job file may give one several times, and fio's document then has it several times.
#[derive(Default)]
pub(super) struct JobOptions(Vec<(String, String)>);

impl<'de> Deserialize<'de> for JobOptions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OptionsVisitor)
    }
}

struct OptionsVisitor;

impl<'de> Visitor<'de> for OptionsVisitor {
    type Value = JobOptions;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("options with their values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JobOptions, A::Error> {
        let mut options = Vec::new();
        while let Some(option) = map.next_entry()? {
            options.push(option);
        }
        Ok(JobOptions(options))
    }
}

impl JobOptions {
    /// All values of an option.
    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The sum that a document of several hosts ends with.
pub(super) const ALL_CLIENTS: &str = "All clients";

impl Document {
    pub(super) fn read(section: &Section<'_>) -> Result<Self, Fault> {
        let mut documents = serde_json::Deserializer::from_str(section.text).into_iter::<Document>();
        let document = match documents.next() {
            Some(Ok(document)) => document,
            Some(Err(error)) => return Err(json_fault(&error).below(section.lines_above)),
            None => return Err(Fault::whole("cut off: fio's document is missing")),
        };
        document.check().map_err(|fault| Fault { line: Some(section.lines_above + 1), ..fault })?;
        Ok(document)
    }

    /// The jobs that its figures are of.
    pub(super) fn measured(&self) -> impl Iterator<Item = &Job> {
        let hosts = self.client_stats.iter().filter(|job| job.jobname != ALL_CLIENTS);
        let has_hosts = hosts.clone().next().is_some();
        let sum = self.client_stats.iter().filter(move |_| !has_hosts);
        self.jobs.iter().chain(hosts).chain(sum)
    }

    /// Milliseconds since 1970, when fio wrote it; zero if it does not say.
    pub(super) fn written_ms(&self) -> u64 {
        if self.timestamp_ms > 0 { self.timestamp_ms } else { self.timestamp.saturating_mul(1000) }
    }

    /// The last value of an option: it is the one that fio used.
    pub(super) fn option<'a>(&'a self, job: &'a Job, name: &'a str) -> Option<&'a str> {
        job.options.all(name).last().or_else(|| self.global.all(name).last())
    }

    /// All options of a job by their names, each with its last value.
    pub(super) fn options<'a>(&'a self, job: &'a Job) -> BTreeMap<&'a str, &'a str> {
        let all = self.global.0.iter().chain(&job.options.0);
        all.map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }

    /// The directory or the files of a job. fio itself writes a colon between files.
    pub(super) fn target(&self, job: &Job) -> String {
        if let Some(directory) = self.option(job, "directory") {
            return directory.to_owned();
        }
        let mut files: Vec<&str> = job.options.all("filename").collect();
        if files.is_empty() {
            files = self.global.all("filename").collect();
        }
        if files.is_empty() { "fio".to_owned() } else { files.join(":") }
    }

    /// Before fio 3.0 bytes were counted in units of 1024.
    pub(super) fn counts_kibibytes(&self) -> bool {
        let version = self.version.trim_start_matches("fio-");
        let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
        major.is_some_and(|major| major < 3)
    }

    fn check(&self) -> Result<(), Fault> {
        let kibibytes = self.counts_kibibytes();
        for job in self.measured() {
            let directions = [&job.read, &job.write, &job.mixed];
            if directions.iter().all(|direction| direction.is_none()) {
                let name = &job.jobname;
                return Err(Fault::whole(format!("job `{name}` has no `read`, `write` or `mixed`")));
            }
            for direction in directions.into_iter().flatten() {
                direction.check(kibibytes)?;
            }
            job.check_mixed(kibibytes)?;
        }
        self.check_sum(kibibytes)
    }

    /// The last entry of several hosts is the sum of the others.
    fn check_sum(&self, kibibytes: bool) -> Result<(), Fault> {
        let Some(sum) = self.client_stats.iter().find(|job| job.jobname == ALL_CLIENTS) else {
            return Ok(());
        };
        let bytes = |job: &Job| job.bytes(kibibytes);
        let hosts = self.measured().map(bytes).sum::<f64>();
        let figure = SameFigure {
            name: "io_bytes of `All clients`",
            given: bytes(sum),
            source: "the sum of its hosts",
            follows: hosts,
            unit: "bytes",
            slack: 0.0,
        };
        figure.check(0)
    }
}

impl Job {
    fn bytes(&self, kibibytes: bool) -> f64 {
        let apart = [&self.read, &self.write].into_iter().flatten();
        let apart: f64 = apart.map(|direction| direction.bytes(kibibytes)).sum();
        if apart > 0.0 { apart } else { self.mixed.as_ref().map_or(0.0, |mixed| mixed.bytes(kibibytes)) }
    }

    /// Checks the sum of reads and writes if the document has all three.
    fn check_mixed(&self, kibibytes: bool) -> Result<(), Fault> {
        let (Some(mixed), true) = (&self.mixed, self.has_directions()) else { return Ok(()) };
        let figure = SameFigure {
            name: "io_bytes of `mixed`",
            given: mixed.bytes(kibibytes),
            source: "the sum of `read` and `write`",
            follows: self.bytes(kibibytes),
            unit: "bytes",
            slack: 0.0,
        };
        figure.check(0)
    }

    /// Reads and writes are given apart.
    pub(super) fn has_directions(&self) -> bool {
        self.read.is_some() || self.write.is_some()
    }
}

impl Direction {
    pub(super) fn bytes(&self, kibibytes: bool) -> f64 {
        let unit = if kibibytes && self.io_kbytes.is_none() { 1024.0 } else { 1.0 };
        self.io_bytes as f64 * unit
    }

    /// Operations that were counted, or that follow from their rate.
    pub(super) fn operations(&self) -> f64 {
        self.total_ios.map_or_else(|| (self.iops * self.seconds()).round(), |count| count as f64)
    }

    pub(super) fn seconds(&self) -> f64 {
        self.runtime as f64 / 1e3
    }

    /// Adds its latencies, in nanoseconds, to those of other jobs; `None` if one of them is no number.
    pub(super) fn add_latencies(&self, histogram: &mut Histogram) -> Option<()> {
        let Direction { lat_ns, clat_ns, lat, clat, .. } = self;
        let all = [(lat_ns, 1), (clat_ns, 1), (lat, 1000), (clat, 1000)];
        let Some((latency, unit)) = all.into_iter().find(|(latency, _)| latency.has_distribution()) else {
            return Some(());
        };
        #[expect(clippy::cast_sign_loss, reason = "it is at least zero")]
        latency.add_to(histogram, unit, self.operations() as u64)
    }

    /// Rates follow from counts and time. A rate of zero stands for one that fio did not compute.
    fn check(&self, kibibytes: bool) -> Result<(), Fault> {
        let bytes = self.bytes(kibibytes);
        if let Some(kbytes) = self.io_kbytes {
            same("io_kbytes", kbytes as f64, "io_bytes", bytes / 1024.0, "KiB")?;
        }
        if self.runtime == 0 {
            return Ok(());
        }
        let rate = bytes / self.seconds();
        // Times are whole milliseconds.
        let coarse = 1.0 + 1.0 / self.runtime as f64;
        let given = [
            ("bw", self.bw, rate / 1024.0, "KiB/s"),
            ("bw_bytes", self.bw_bytes, rate, "B/s"),
            ("iops", self.iops, self.operations() / self.seconds(), "1/s"),
        ];
        for (name, given, follows, unit) in given {
            let is_close = (given / follows).max(follows / given) <= coarse;
            if given > 0.0 && !is_close {
                same(name, given, "its counts and `runtime`", follows, unit)?;
            }
        }
        Ok(())
    }
}

/// Rates are printed as whole numbers.
fn same(name: &str, given: f64, source: &str, follows: f64, unit: &str) -> Result<(), Fault> {
    SameFigure { name, given, source, follows, unit, slack: 1.0 }.check(0)
}
