//! What one element gives: from options first, then from a record, then assumed where an assumption is harmless.

use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use clap::Args;
use nilometer_analysis::{MeasuredLimits, letter, measured_limits};
use nilometer_model::{
    ByteRate, Bytes, Nanos, Results,
    sizing::{Figure, Limits},
};

/// The options that say what one element gives.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// A record of `evaluate --for INSTRUMENT`, whose measured limits are taken
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Which target of the record: its path, letter, or number from 1
    #[arg(long, value_name = "TARGET", requires = "record")]
    target: Option<String>,
    /// What one storage server (or target) takes when it is only written
    #[arg(long, value_name = "RATE")]
    write_rate: Option<ByteRate>,
    /// What it gives when it is only read [default: as much as it takes]
    #[arg(long, value_name = "RATE")]
    read_rate: Option<ByteRate>,
    /// Space of one storage server [default: not looked at]
    #[arg(long, value_name = "SIZE")]
    space: Option<Bytes>,
    /// What one writer stream of a recorder gets of the storage [default: as measured, else what a server takes]
    #[arg(long, value_name = "RATE")]
    writer_rate: Option<ByteRate>,
    /// Writer streams of a recorder [default: one a core]
    #[arg(long, value_name = "NUMBER")]
    writers: Option<u64>,
    /// A network link into a recorder, such as "10 Gbit/s"
    #[arg(long, value_name = "RATE")]
    link: Option<ByteRate>,
    /// Links of a recorder over which instruments deliver [default: 1]
    #[arg(long, value_name = "NUMBER")]
    links: Option<u64>,
    /// Processor cores of a recorder
    #[arg(long, value_name = "NUMBER")]
    cores: Option<f64>,
    /// Processor cores that recording 1 GB/s keeps busy, such as 0.2
    #[arg(long, value_name = "NUMBER")]
    cores_per_gb: Option<f64>,
    /// Memory of a recorder for frames that are not yet written, such as "64 GiB"
    #[arg(long, value_name = "SIZE")]
    memory: Option<Bytes>,
    /// The longest time for which the storage takes nothing [default: as measured, else 1 s]
    #[arg(long, value_name = "TIME")]
    stall: Option<Nanos>,
}

const COUNT_MOST: u64 = 1000;
const STALL_ASSUMED: Nanos = Nanos(1_000_000_000);
const STALL_MOST: Nanos = Nanos(3_600_000_000_000);

impl Options {
    /// All limits, or one message about all that are missing or make no sense.
    pub(crate) fn found(&self, (headroom, spare): (f64, u64)) -> anyhow::Result<Limits> {
        self.check()?;
        let measured = self.measured()?;
        let write = given(self.write_rate, "--write-rate").or(measured.write.clone());
        let link = given(self.link, "--link");
        let cores = given(self.cores, "--cores").or(measured.cores);
        let cost = given(self.cores_per_gb, "--cores-per-gb").or(measured.cost);
        let memory = given(self.memory, "--memory").or(measured.memory);
        let (Some(write), Some(link), Some(cores), Some(cost), Some(memory)) =
            (&write, &link, &cores, &cost, &memory)
        else {
            let missing = [
                ("what a storage server takes (--write-rate)", write.is_none()),
                ("a network link (--link)", link.is_none()),
                ("a recorder's processor (--cores)", cores.is_none()),
                ("what recording costs of it (--cores-per-gb)", cost.is_none()),
                ("a recorder's memory (--memory)", memory.is_none()),
            ];
            bail!(self.unknown(missing.into_iter().filter(|(_, missing)| *missing).map(|(what, _)| what)));
        };
        let (writer, writers) = self.writing(measured.writer, write, cores.value);
        Ok(Limits {
            read: given(self.read_rate, "--read-rate")
                .unwrap_or_else(|| Figure::assumed(write.value, "as much as it takes")),
            space: given(self.space, "--space"),
            links: given(self.links, "--links")
                .unwrap_or_else(|| Figure::assumed(1, "one for the instruments")),
            stall: given(self.stall, "--stall")
                .or(measured.stall)
                .unwrap_or_else(|| Figure::assumed(STALL_ASSUMED, "longer than usual ones")),
            headroom: Figure::given(headroom, "--headroom"),
            spare: Figure::given(spare, "--spare"),
            write: write.clone(),
            link: link.clone(),
            cores: cores.clone(),
            cost: cost.clone(),
            memory: memory.clone(),
            writer,
            writers,
        })
    }

    /// A recorder may write to several servers at once, with a writer stream for each.
    fn writing(
        &self,
        measured: Option<Figure<ByteRate>>,
        write: &Figure<ByteRate>,
        cores: f64,
    ) -> (Figure<ByteRate>, Figure<u64>) {
        let writer = given(self.writer_rate, "--writer-rate").or(measured);
        let writer = writer.unwrap_or_else(|| Figure::assumed(write.value, "what a server takes"));
        #[expect(clippy::cast_sign_loss, reason = "clamped to 1 and more")]
        let a_core = cores.clamp(1.0, COUNT_MOST as f64) as u64;
        let writers = given(self.writers, "--writers");
        (writer, writers.unwrap_or_else(|| Figure::assumed(a_core, "one a core, onto as many servers")))
    }

    fn unknown(&self, missing: impl Iterator<Item = &'static str>) -> String {
        let missing: Vec<_> = missing.collect();
        let told = match &self.record {
            Some(path) => format!("{} does not tell", path.display()),
            None => "nobody said".into(),
        };
        let record = match &self.record {
            Some(_) => "",
            None => {
                ", or name a --record of `nilometer evaluate --for INSTRUMENT`, which tells all but the link"
            }
        };
        format!("{told}: {}; write these options{record}", missing.join(", "))
    }

    /// What makes no sense, with what would.
    fn check(&self) -> anyhow::Result<()> {
        let rates = [
            ("--write-rate", self.write_rate),
            ("--read-rate", self.read_rate),
            ("--writer-rate", self.writer_rate),
            ("--link", self.link),
        ];
        for (option, rate) in rates {
            ensure!(
                rate.is_none_or(|rate| rate.0 > 0.0 && rate.0.is_finite()),
                "{option}: write a rate above zero"
            );
        }
        for (option, number) in [("--links", self.links), ("--writers", self.writers)] {
            let valid = number.is_none_or(|number| (1..=COUNT_MOST).contains(&number));
            ensure!(valid, "{option}: write 1 to {COUNT_MOST}");
        }
        for (option, size) in [("--memory", self.memory), ("--space", self.space)] {
            ensure!(size.is_none_or(|size| size.0 > 0), "{option}: write a size above zero");
        }
        let cores = self.cores.is_none_or(|cores| cores > 0.0 && cores.is_finite());
        ensure!(cores, "--cores: write a number above zero");
        let cost = self.cores_per_gb.is_none_or(|cost| cost >= 0.0 && cost.is_finite());
        ensure!(cost, "--cores-per-gb: write zero or more");
        ensure!(self.stall.is_none_or(|stall| stall <= STALL_MOST), "--stall: write at most {STALL_MOST}");
        Ok(())
    }

    fn measured(&self) -> anyhow::Result<MeasuredLimits> {
        let Some(path) = &self.record else { return Ok(MeasuredLimits::default()) };
        let results = nilometer_record::read(path)?;
        let target =
            target(&results, self.target.as_deref()).with_context(|| format!("{}", path.display()))?;
        Ok(measured_limits(&results, target, &path.display().to_string()))
    }
}

fn given<T>(value: Option<T>, option: &str) -> Option<Figure<T>> {
    value.map(|value| Figure::given(value, option))
}

/// The target that is meant.
fn target(results: &Results, name: Option<&str>) -> anyhow::Result<usize> {
    let paths = results.targets.iter().map(|target| target.path.as_str()).enumerate();
    let is_meant = |(index, path): &(usize, &str)| {
        name.is_some_and(|name| name == *path || name == letter(*index) || name == (index + 1).to_string())
    };
    if let Some((index, _)) = paths.clone().find(is_meant) {
        return Ok(index);
    }
    let shown: Vec<_> = paths.map(|(index, path)| format!("{} ({path})", letter(index))).collect();
    match (name, shown.len()) {
        (_, 0) => bail!("the record has no target"),
        (None, 1) => Ok(0),
        (None, _) => bail!("the record has several targets: write --target with one of {}", shown.join(", ")),
        (Some(name), _) => bail!("no target `{name}`: write one of {}", shown.join(", ")),
    }
}
