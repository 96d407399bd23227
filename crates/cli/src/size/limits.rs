//! The limits of one element: from options, else from a record, else assumed if an assumption is harmless.

use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use clap::Args;
use nilometer_analysis::{MeasuredLimits, letter, measured_limits};
use nilometer_campaign::environment;
use nilometer_model::{ByteRate, Bytes, Instrument, LinkRate, Nanos};
use nilometer_plan::{
    Results,
    sizing::{Demand, Figure, Kind, LimitOrigin, Limits},
};

/// The options that set the limits of one element.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Take measured limits from this record of `evaluate --for INSTRUMENT`
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Take the limits of this target of the record: its path, letter, or number from 1
    #[arg(long, value_name = "TARGET", requires = "record")]
    target: Option<String>,
    /// Rate at which one storage server (or target) takes writes alone [default: the measured one]
    #[arg(long, value_name = "RATE")]
    write_rate: Option<ByteRate>,
    /// Rate at which it delivers reads alone [default: the rate of writes]
    #[arg(long, value_name = "RATE")]
    read_rate: Option<ByteRate>,
    /// Space of one storage server [default: ignored]
    #[arg(long, value_name = "SIZE")]
    space: Option<Bytes>,
    /// Rate that one writer stream of a recorder reaches [default: the measured one, else a server's rate]
    #[arg(long, value_name = "RATE")]
    writer_rate: Option<ByteRate>,
    /// Writer streams of a recorder [default: one a core]
    #[arg(long, value_name = "NUMBER")]
    writers: Option<u64>,
    /// Network link into a recorder, such as "10 Gbit/s" [default: the slowest Ethernet that carries a
    /// stream]
    #[arg(long, value_name = "RATE")]
    link: Option<LinkRate>,
    /// Links of a recorder over which instruments deliver [default: 1]
    #[arg(long, value_name = "NUMBER")]
    links: Option<u64>,
    /// Processor cores of a recorder [default: the number of the record's machine, else of this one]
    #[arg(long, value_name = "NUMBER")]
    cores: Option<f64>,
    /// Processor cores that recording 1 GB/s of frames keeps busy, such as 0.2. Default: as measured with the
    /// same format, storing and data; else 0.4, and 1.6 if frames are packed
    #[arg(long, value_name = "NUMBER")]
    cores_per_gb: Option<f64>,
    /// Memory of a recorder for frames that wait, such as "64 GiB" [default: half the memory of the record's
    /// machine, else of this one]
    #[arg(long, value_name = "SIZE")]
    memory: Option<Bytes>,
    /// Longest time in which the storage takes no data [default: the measured one, else 1 s]
    #[arg(long, value_name = "TIME")]
    stall: Option<Nanos>,
}

const COUNT_MOST: u64 = 1000;
const STALL_ASSUMED: Nanos = Nanos(1_000_000_000);
/// The share of each limit that stays free, if the user gives none.
const HEADROOM_USUAL: f64 = 0.2;
const STALL_MOST: Nanos = Nanos(3_600_000_000_000);
/// Rates of Ethernet, in Gbit/s.
const LINKS: [f64; 7] = [1.0, 10.0, 25.0, 40.0, 100.0, 200.0, 400.0];
const GIGABIT: f64 = 125e6;
/// The memory of a machine that does not state its own.
const MEMORY_LEAST: Bytes = Bytes(1 << 30);

/// The limits of one element, and the remarks that you must read before you use the answer.
#[derive(Debug)]
pub(crate) struct FoundLimits {
    pub(crate) limits: Limits,
    pub(crate) remarks: Vec<String>,
}

impl Options {
    /// True if an option gives the rate of a storage server, or a record of it.
    pub(crate) fn name_a_rate(&self) -> bool {
        self.write_rate.is_some() || self.record.is_some()
    }

    /// All limits, or one message about missing or senseless values. The demand must have the kinds of these
    /// instruments. It gets the facts about them from the record and the options.
    pub(crate) fn found(
        &self,
        headroom: Option<f64>,
        spare: u64,
        demand: &mut Demand,
        instruments: &[Instrument],
    ) -> anyhow::Result<FoundLimits> {
        self.check()?;
        let measured = self.measured(instruments)?;
        let Some(write) = given(self.write_rate, "--write-rate").or(measured.write.clone()) else {
            bail!(self.no_write_rate(&measured));
        };
        self.put_into(demand, &measured);
        let here = Machine::this();
        let cores = given(self.cores, "--cores").or(measured.cores.clone()).unwrap_or(here.cores);
        let (writer, writers) = self.writing(measured.writer.clone(), &write, cores.value);
        let headroom = given(headroom, "--headroom")
            .unwrap_or_else(|| Figure::assumed(HEADROOM_USUAL, "the default of --headroom"));
        let limits = Limits {
            read: given(self.read_rate, "--read-rate")
                .unwrap_or_else(|| Figure::assumed(write.value, "equal to the write rate")),
            space: given(self.space, "--space"),
            link: given(self.link.map(|link| link.0), "--link")
                .unwrap_or_else(|| ethernet(demand, headroom.value)),
            links: given(self.links, "--links")
                .unwrap_or_else(|| Figure::assumed(1, "one for the instruments")),
            stall: given(self.stall, "--stall")
                .or(measured.stall.clone())
                .unwrap_or_else(|| Figure::assumed(STALL_ASSUMED, "longer than usual ones")),
            headroom,
            spare: Figure::given(spare, "--spare"),
            memory: given(self.memory, "--memory").or(measured.memory.clone()).unwrap_or(here.memory),
            write,
            cores,
            writer,
            writers,
        };
        let remarks = self.remarks(demand, &measured);
        Ok(FoundLimits { limits, remarks })
    }

    /// The cost of packing and of recording: from an option, from the record, or the usual one.
    fn put_into(&self, demand: &mut Demand, measured: &MeasuredLimits) {
        let record = self.record.as_ref().map_or_else(String::new, |path| path.display().to_string());
        for (kind, known) in demand.kinds.iter_mut().zip(&measured.kinds) {
            if let Some(cost) = &known.cost {
                kind.cost = cost.clone();
            }
            if let Some(value) = known.packing {
                let from = LimitOrigin::Measured(format!("{record}: files of such frames"));
                kind.pack(Figure { value, from });
            }
        }
        if let Some(cost) = given(self.cores_per_gb, "--cores-per-gb") {
            demand.kinds.iter_mut().for_each(|kind| kind.cost = cost.clone());
        }
    }

    fn remarks(&self, demand: &Demand, measured: &MeasuredLimits) -> Vec<String> {
        let Some(record) = self.record.as_ref().map(|path| path.display()) else { return Vec::new() };
        let unmeasured = demand.kinds.iter().filter(|kind| matches!(kind.cost.from, LimitOrigin::Assumed(_)));
        let names: Vec<&str> = unmeasured.map(|kind| kind.name.as_str()).collect();
        let mut remarks = Vec::new();
        if !names.is_empty() {
            let names = names.join(", ");
            let has = match measured.recorded.join(", ") {
                none if none.is_empty() => "has no recording".to_owned(),
                recorded => format!("has {recorded}, which differs in format, storing or data"),
            };
            remarks.push(format!(
                "The processor time for recording {names} is NOT measured but assumed: {record} {has}. Run \
                 `nilometer evaluate TARGET --for {}` to measure it.",
                names.replace(", ", "+")
            ));
        }
        let bound = measured.bound_elsewhere.join(", ");
        if !bound.is_empty() && self.write_rate.is_none() {
            remarks.push(format!(
                "{record}: the recording of {bound} waited for a processor or a network, not for the storage. Its \
                 rate is not used as that of a server."
            ));
        }
        remarks
    }

    /// A recorder may write to several servers at once, with a writer stream for each.
    fn writing(
        &self,
        measured: Option<Figure<ByteRate>>,
        write: &Figure<ByteRate>,
        cores: f64,
    ) -> (Figure<ByteRate>, Figure<u64>) {
        let writer = given(self.writer_rate, "--writer-rate").or(measured);
        let writer = writer.unwrap_or_else(|| Figure::assumed(write.value, "the rate of a server"));
        #[expect(clippy::cast_sign_loss, reason = "clamped to 1 and more")]
        let a_core = cores.clamp(1.0, COUNT_MOST as f64) as u64;
        let writers = given(self.writers, "--writers");
        (writer, writers.unwrap_or_else(|| Figure::assumed(a_core, "one a core, onto as many servers")))
    }

    /// The message that only the rate of a server itself can help.
    fn no_write_rate(&self, measured: &MeasuredLimits) -> String {
        let bound = measured.bound_elsewhere.join(", ");
        let why = match &self.record {
            Some(path) if bound.is_empty() => {
                format!("{} has no rate of writing large files: ", path.display())
            }
            Some(path) => format!(
                "{} has no rate of the storage, since the recording of {bound} waited for a processor or a network: ",
                path.display()
            ),
            None => String::new(),
        };
        let record = match &self.record {
            Some(_) => "or a record of `nilometer evaluate` that has written large files there",
            None => {
                "or name a --record of `nilometer evaluate --for INSTRUMENT`, which measures the rate and more"
            }
        };
        format!("{why}give --write-rate, {record}")
    }

    /// Refuses senseless values, and proposes better ones.
    fn check(&self) -> anyhow::Result<()> {
        let rates = [
            ("--write-rate", self.write_rate),
            ("--read-rate", self.read_rate),
            ("--writer-rate", self.writer_rate),
            ("--link", self.link.map(|link| link.0)),
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

    fn measured(&self, instruments: &[Instrument]) -> anyhow::Result<MeasuredLimits> {
        let Some(path) = &self.record else { return Ok(MeasuredLimits::default()) };
        let results = nilometer_record::read(path)?;
        let target =
            target(&results, self.target.as_deref()).with_context(|| format!("{}", path.display()))?;
        Ok(measured_limits(&results, target, &path.display().to_string(), instruments))
    }
}

/// This machine, in place of a recorder that no option describes.
struct Machine {
    cores: Figure<f64>,
    memory: Figure<Bytes>,
}

impl Machine {
    fn this() -> Self {
        let facts = environment(&[]);
        let results = Results { environment: facts, ..Results::default() };
        let known = measured_limits(&results, 0, "this machine", &[]);
        let cores = known.cores.map_or(1.0, |cores| cores.value);
        let memory = known.memory.map_or(MEMORY_LEAST, |memory| memory.value);
        Machine {
            cores: Figure::assumed(cores, "all cores of this machine"),
            memory: Figure::assumed(memory, "half of this machine's"),
        }
    }
}

/// The slowest Ethernet that carries a stream and leaves the headroom free.
fn ethernet(demand: &Demand, headroom: f64) -> Figure<ByteRate> {
    let fastest = demand.kinds.iter().map(Kind::peak).fold(0.0, f64::max);
    let carries = |gigabits: &f64| gigabits * GIGABIT * (1.0 - headroom) >= fastest;
    let link = LINKS.into_iter().find(carries).unwrap_or(LINKS[LINKS.len() - 1]);
    Figure::assumed(ByteRate(link * GIGABIT), "the slowest Ethernet that carries a stream")
}

fn given<T>(value: Option<T>, option: &str) -> Option<Figure<T>> {
    value.map(|value| Figure::given(value, option))
}

/// The number of the target with this name; without a name, of the only one.
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
