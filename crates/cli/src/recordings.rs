//! The recordings of `--for`: each instrument alone, and those of one list together, with their readers.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
};

use anyhow::{Context, Result, anyhow, ensure};
use clap::{ArgGroup, Args};
use nilometer_model::{ByteRate, Bytes, Goal, Instrument, Nanos, Readers, Subnet, UnitError};
use nilometer_plan::{Cell, Condition, Fill, RecordingRun, Route, USUAL_KEEP};
use nilometer_storage::user_file;

use crate::{facility, instrument_changes::InstrumentChanges};

/// The group of options that ask for recordings: those that name instruments, and `--resume`.
pub(crate) const RECORDED: &str = "recorded";

/// The instruments to record, and the options of their recordings.
#[derive(Debug, Args)]
#[command(next_help_heading = "Recordings", group(ArgGroup::new(RECORDED).multiple(true)))]
pub(crate) struct Recordings {
    /// Record this instrument and report whether the storage carries it: a name of the catalogue, or a .toml
    /// file. `6*pilatus-6m+pco-edge`, or a facility, records all together, and each kind alone. Repeat the
    /// option for more
    #[arg(long = "for", value_name = "INSTRUMENT", group = RECORDED)]
    instruments: Vec<String>,
    /// Record each instrument for this time
    #[arg(long, default_value = "40 s", requires = "instruments")]
    duration: Nanos,
    /// Buffer frames in this much memory between an instrument and the storage
    #[arg(long, default_value = "1 GiB", requires = "instruments")]
    buffer: Bytes,
    /// Keep the latest frames of a recording, up to this size or this level of the target, such as "90 %".
    /// Default: all packets at the instrument's own rate; otherwise 2 GiB, more than most devices cache
    #[arg(long, requires = "instruments")]
    keep: Option<Keep>,
    /// Record each instrument once more in a condition. This .toml file names it, with the commands that
    /// begin and end it. With --resume, only this file's commands may run
    #[arg(long, value_name = "FILE", requires = RECORDED)]
    condition: Option<PathBuf>,
    /// Let N readers follow each recording; they read and check every frame. Several numbers, such as 0,1,2,
    /// run one after the other [default: none, and then the instrument's number]
    #[arg(long, value_delimiter = ',', value_name = "N", value_parser = reader_count, requires = "instruments")]
    readers: Vec<u32>,
    /// Let readers read a frame only this time after it was due [default: the instrument's, or at once]
    #[arg(long, requires = "instruments")]
    reader_distance: Option<Nanos>,
    /// Limit each reader to this rate. Several, such as "50 MB/s,200 MB/s", run one after the other. They show
    /// the rate at which a dump costs frames [default: the instrument's, or the rate of the frames]
    #[arg(long, value_delimiter = ',', value_name = "RATE", value_parser = reader_rate, requires = "instruments")]
    reader_rate: Vec<ByteRate>,
    /// Copy every recording to this directory on other storage while it grows. A plan whose load copies, such as
    /// migration, copies from the targets to it
    #[arg(long, value_name = "DIRECTORY")]
    copy_to: Option<PathBuf>,
    /// Find the highest rate without loss with this buffer, and the smallest buffer at the instrument's own
    /// rate
    #[arg(long, requires = "instruments")]
    find_limit: bool,
    /// Generate all frames in the recorder's process. By default an instrument with known packets sends them
    /// over loopback to the recorder of packets
    #[arg(long, requires = "instruments")]
    in_place: bool,
    /// Send packets from another machine, over the network between machines that record together (`mpirun`,
    /// docs/cluster.md)
    #[arg(long, requires = "instruments", conflicts_with = "in_place")]
    over_network: bool,
    /// Use this network, such as 10.1.0.0/16 [default: the network of each machine's first address]
    #[arg(long, value_name = "SUBNET", requires = "over_network")]
    network: Option<Subnet>,
    /// Record an instrument on the first N machines together. Several numbers, such as 1,2,4, run one after
    /// the other [default: all that were started]
    #[arg(long, value_delimiter = ',', value_name = "N", value_parser = process_count, requires = "instruments")]
    nodes: Vec<u32>,
    /// Use N processes on each machine [default: all that were started]
    #[arg(long, value_delimiter = ',', value_name = "N", value_parser = process_count, requires = "instruments")]
    processes: Vec<u32>,
    /// Run each trial of a search for this time
    #[arg(long, default_value = "5 s", requires = "find_limit")]
    trial: Nanos,
    #[command(flatten)]
    changes: InstrumentChanges,
}

/// The most readers of one recording.
const READERS_MOST: u32 = 1000;

fn reader_count(text: &str) -> Result<u32> {
    let count = text.trim().parse().ok().filter(|count| *count <= READERS_MOST);
    count.ok_or_else(|| anyhow!("write a number from 0 to {READERS_MOST}, or several as in 0,1,2"))
}

fn reader_rate(text: &str) -> Result<ByteRate> {
    let rate: ByteRate = text.trim().parse()?;
    ensure!(rate.0 > 0.0, "a reader of no rate reads nothing: write more than 0");
    Ok(rate)
}

fn process_count(text: &str) -> Result<u32> {
    let count = text.trim().parse().ok().filter(|count| (1..=65_536).contains(count));
    count.ok_or_else(|| anyhow!("write a number from 1 to 65536, or several as in 1,2,4"))
}

/// The most recorders: more than any node has.
const COUNT_MOST: u32 = 1000;

impl Recordings {
    /// True if `--for` names an instrument.
    pub(crate) fn any(&self) -> bool {
        !self.instruments.is_empty()
    }

    /// The title of a campaign with only these recordings.
    pub(crate) fn title(&self) -> String {
        format!("Recordings of {}", self.instruments.join(", "))
    }

    /// The directory that recordings are copied to; `None` without `--copy-to`.
    pub(crate) fn copy_to(&self) -> Option<String> {
        self.copy_to.as_ref().map(|path| path.display().to_string())
    }

    /// All recordings: first those of each instrument alone, then those made together. The campaign runs them
    /// in the order of their purposes; see its `turns`.
    pub(crate) fn cells(&self) -> Result<Vec<Cell>> {
        let condition = self.condition()?;
        let mut runs = Vec::new();
        for (number, asked) in (0..).zip(&self.instruments) {
            let members = members(asked, &self.changes)?;
            for member in &members {
                let name = &member.instrument.name;
                let has_packets = member.instrument.packets.is_some() || !self.over_network;
                ensure!(has_packets, "--over-network: the network format of {name} is unknown; leave it out");
                self.check_durations(member)?;
                self.check_memory(member)?;
                self.alone(member, condition.as_ref(), &mut runs);
            }
            if members.len() > 1 {
                let all: f64 = members.iter().map(Member::rate).sum();
                let together = members.iter().map(|member| {
                    let cell = self.cell(member, self.levels(member).last().copied().unwrap_or_default());
                    let share = member.instrument.rate().0 / all;
                    let fill = cell.fill.map(|fill| Fill { share, ..fill });
                    RecordingRun { company: Some(number), fill, ..cell }
                });
                runs.extend(together);
            }
        }
        let runs = over(&self.nodes, runs, |run, count| run.swept.nodes = Some(count));
        let runs = over(&self.processes, runs, |run, count| run.swept.processes = Some(count));
        Ok(runs.into_iter().map(|run| Cell::recording(run.label(), run)).collect())
    }

    /// Refuses a recording that is too short to prove anything.
    fn check_durations(&self, member: &Member) -> Result<()> {
        let recording = self.cell(member, Readers::default());
        let trial = RecordingRun { duration: self.trial, ..recording.clone() };
        recording.check_duration(&format!("--duration {}", self.duration)).map_err(|why| anyhow!(why))?;
        if self.find_limit {
            trial.check_duration(&format!("--trial {}", self.trial)).map_err(|why| anyhow!(why))?;
        }
        Ok(())
    }

    /// Refuses a buffer without room for two frames, and a recording that keeps nothing.
    fn check_memory(&self, member: &Member) -> Result<()> {
        let run = self.cell(member, Readers::default());
        run.check_buffer(&format!("--buffer {}", run.buffer)).map_err(|why| anyhow!(why))?;
        let keeps = run.fill.is_some() || run.keep.0 > 0;
        ensure!(keeps, "--keep {}: write more than 0", run.keep);
        Ok(())
    }

    /// The recordings of an instrument alone: at its own rate and at full speed, both with each number of
    /// readers. Searches follow if the options have them, then both again in the condition.
    fn alone(&self, member: &Member, condition: Option<&Condition>, cells: &mut Vec<RecordingRun>) {
        let paced: Vec<RecordingRun> =
            self.levels(member).into_iter().map(|readers| self.cell(member, readers)).collect();
        let limits: Vec<RecordingRun> = paced.iter().map(|paced| self.limit(paced)).collect();
        cells.extend(paced.into_iter().chain(limits));
        if self.find_limit {
            let trial = RecordingRun { duration: self.trial, ..self.cell(member, Readers::default()) };
            cells.extend([Goal::Search, Goal::Buffer].map(|goal| RecordingRun { goal, ..trial.clone() }));
        }
        if let Some(condition) = condition {
            let paced =
                RecordingRun { condition: Some(condition.clone()), ..self.cell(member, Readers::default()) };
            let limit = RecordingRun { repeats: paced.repeats, ..self.limit(&paced) };
            cells.extend([paced, limit]);
        }
    }

    /// The same recording at full speed, with the same readers.
    fn limit(&self, paced: &RecordingRun) -> RecordingRun {
        paced.at_full_speed(self.keep.is_some())
    }

    /// Reads the condition of the file; `None` without `--condition`.
    pub(crate) fn condition(&self) -> Result<Option<Condition>> {
        let Some(path) = &self.condition else { return Ok(None) };
        let file = path.display().to_string();
        let text = user_file::read(path, "condition")?;
        Condition::parse(&text, &file).map(Some).map_err(|why| anyhow!(why))
    }

    fn cell(&self, Member { instrument, count }: &Member, readers: Readers) -> RecordingRun {
        let (keep, fill) = match self.keep {
            Some(Keep::Size(size)) => (size, None),
            Some(Keep::Level(level)) => (Bytes(0), Some(Fill { level, share: 1.0 / f64::from(*count) })),
            None => (USUAL_KEEP, None),
        };
        let run = RecordingRun {
            count: *count,
            duration: self.duration,
            buffer: self.buffer,
            keep,
            fill,
            readers,
            route: self.route(instrument),
            network: self.network,
            ..RecordingRun::new(instrument.clone())
        };
        if self.keep.is_none() && run.route.has_packets() {
            return RecordingRun { keep: run.keep.max(run.all()), ..run };
        }
        run
    }

    /// The frames' way to the recorder: over a network, if the catalogue has the instrument's packets.
    fn route(&self, instrument: &Instrument) -> Route {
        match (&instrument.packets, self.in_place, self.over_network) {
            (Some(_), false, false) => Route::Loopback,
            (Some(_), false, true) => Route::Network,
            _ => Route::InPlace,
        }
    }

    /// The readers of each recording, in order: the numbers of `--readers`, or none and then the instrument's
    /// usual number, each with every rate. Copies come last.
    fn levels(&self, member: &Member) -> Vec<Readers> {
        let usual = member.instrument.readers;
        let distance = self.reader_distance.unwrap_or(usual.distance);
        let mut rates: Vec<Option<ByteRate>> = Vec::new();
        for rate in self.reader_rate.iter().copied().map(Some) {
            if !rates.contains(&rate) {
                rates.push(rate);
            }
        }
        if rates.is_empty() {
            rates.push(usual.rate);
        }
        // Without readers the rate makes no difference.
        let level = |count: u32, copy: bool| -> Vec<Readers> {
            let several = if count == 0 && !copy { 1 } else { rates.len() };
            rates[..several].iter().map(|&rate| Readers { count, distance, rate, copy }).collect()
        };
        let mut counts = if self.readers.is_empty() { vec![0, usual.count] } else { self.readers.clone() };
        counts.sort_unstable();
        counts.dedup();
        let mut levels: Vec<Readers> = counts.iter().flat_map(|&count| level(count, false)).collect();
        let most = counts.last().copied().unwrap_or_default();
        levels.extend(self.copy_to.iter().flat_map(|_| level(most, true)));
        levels
    }
}

/// Repeats each recording for each of these counts. Without counts, leaves them as they are.
fn over(counts: &[u32], runs: Vec<RecordingRun>, set: impl Fn(&mut RecordingRun, u32)) -> Vec<RecordingRun> {
    if counts.is_empty() {
        return runs;
    }
    // Recordings made together have the same count.
    let companies = runs.iter().filter_map(|run| run.company).max().map_or(0, |last| last + 1);
    let mut all = Vec::with_capacity(counts.len() * runs.len());
    for (number, count) in (0..).zip(counts) {
        for run in &runs {
            let company = run.company.map(|company| company + number * companies);
            let mut run = RecordingRun { company, ..run.clone() };
            set(&mut run, *count);
            all.push(run);
        }
    }
    all
}

/// The part of a recording that stays.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Keep {
    /// This many bytes.
    Size(Bytes),
    /// Frames up to this share of the target's space.
    Level(f64),
}

impl FromStr for Keep {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let Some(percent) = text.trim().strip_suffix('%') else {
            return text.parse().map(Keep::Size).map_err(|error: UnitError| error.to_string());
        };
        let level = percent.trim().parse::<f64>().ok().filter(|level| *level > 0.0 && *level <= 100.0);
        level
            .map(|level| Keep::Level(level / 100.0))
            .ok_or_else(|| "write more than 0 % and at most 100 %".into())
    }
}

/// Several instruments of one kind, recorded together.
struct Member {
    instrument: Instrument,
    count: u32,
}

impl Member {
    /// The rate of all of them together, in bytes a second.
    fn rate(&self) -> f64 {
        self.instrument.rate().0 * f64::from(self.count)
    }
}

/// The instruments of a list or of a facility. One instrument is a facility too.
fn members(asked: &str, changes: &InstrumentChanges) -> Result<Vec<Member>> {
    let path = Path::new(asked);
    let is_file = path.extension().is_some_and(|kind| kind == "toml") && path.is_file();
    if asked.contains(['+', '*']) && !is_file {
        let all = asked.split('+').map(|one| member(one, changes));
        return all.collect::<Result<_>>().with_context(|| format!("--for {asked}"));
    }
    let (facility, instruments) = facility::load(asked)?;
    let members = facility.instruments.iter().zip(instruments);
    let each = members.map(|(member, mut instrument)| {
        changes.apply(&mut instrument)?;
        of_facility(asked, member, instrument)
    });
    each.collect()
}

/// Reads an instrument of a list: `name` or `N*name`.
fn member(asked: &str, changes: &InstrumentChanges) -> Result<Member> {
    let (count, name) = asked.split_once('*').unwrap_or(("1", asked));
    let count: u32 =
        count.trim().parse().with_context(|| format!("`{count}` is no number: write a+b, or 6*a+b"))?;
    ensure!((1..=COUNT_MOST).contains(&count), "{asked}: write 1 to {COUNT_MOST} of an instrument");
    ensure!(!name.trim().is_empty(), "an instrument is missing: write a+b, or 6*a+b");
    let mut instrument = user_file::instrument(name.trim())?;
    changes.apply(&mut instrument)?;
    Ok(Member { instrument: instrument.delivered().into_owned(), count })
}

/// The instruments of one kind in a facility. A node has room for at most [`COUNT_MOST`] of them.
fn of_facility(file: &str, member: &nilometer_model::Member, mut instrument: Instrument) -> Result<Member> {
    let count = u32::try_from(member.count).ok().filter(|count| *count <= COUNT_MOST);
    let count = count.with_context(|| {
        format!("{file}: count = {}: one node records at most {COUNT_MOST} of an instrument", member.count)
    })?;
    if let Some(readers) = member.readers {
        instrument.readers = readers;
    }
    Ok(Member { instrument: instrument.delivered().into_owned(), count })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        recordings: Recordings,
    }

    fn asked(options: &[&str]) -> Recordings {
        let line = ["evaluate"].iter().chain(options);
        <Line as clap::Parser>::try_parse_from(line).expect("valid options").recordings
    }

    #[test]
    fn the_limit_is_looked_for_as_often_with_each_number_of_readers() {
        let options = ["--for", "pco-edge", "--readers", "0,1,2", "--copy-to", "/elsewhere", "--find-limit"];
        let cells = asked(&options).cells().expect("an instrument of the catalogue");
        let cells: Vec<_> = cells.iter().filter_map(Cell::as_recording).collect();
        let of = |goal| cells.iter().filter(move |cell| cell.goal == goal);
        let levels = |goal| of(goal).map(|cell| (cell.readers.count, cell.readers.copy)).collect::<Vec<_>>();
        assert_eq!(levels(Goal::Limit), [(0, false), (1, false), (2, false), (2, true)]);
        assert_eq!(levels(Goal::Pace), levels(Goal::Limit));
        assert!(of(Goal::Limit).all(|cell| cell.repeats == 3));
        assert!(of(Goal::Pace).all(|cell| cell.repeats == 1));
        assert_eq!(cells[0].goal, Goal::Pace, "the answer comes first");
    }

    #[test]
    fn readers_run_once_with_each_rate() {
        let options = ["--for", "pco-edge", "--readers", "0,1", "--reader-rate", "50 MB/s,200 MB/s"];
        let cells = asked(&options).cells().expect("an instrument of the catalogue");
        let cells = cells.iter().filter_map(Cell::as_recording).filter(|cell| cell.goal == Goal::Pace);
        let levels: Vec<_> = cells.map(|cell| (cell.readers.count, cell.readers.rate)).collect();
        let of = |rate| Some(ByteRate(rate));
        assert_eq!((levels.len(), levels[0].0), (3, 0));
        assert_eq!(levels[1..], [(1, of(5e7)), (1, of(2e8))]);
    }

    #[test]
    fn too_short_recordings_are_refused_with_the_least_that_is_accepted() {
        for (options, parts) in [
            (&["--duration", "0s"][..], ["--duration 0 ns", "at least 4 s"]),
            (&["--duration", "3999 ms"], ["--duration 4", "at least 4 s"]),
            (&["--find-limit", "--trial", "0s"], ["--trial 0 ns", "at least 4 s"]),
        ] {
            let options = [&["--for", "pco-4000"][..], options].concat();
            let why = asked(&options).cells().expect_err("too short").to_string();
            assert!(parts.iter().all(|part| why.contains(part)), "{why}");
        }
        assert!(asked(&["--for", "pco-4000", "--duration", "4 s"]).cells().is_ok());
        assert!(asked(&["--for", "pco-4000"]).cells().is_ok(), "the length of no trial is asked");
    }

    #[test]
    fn a_facility_of_one_instrument_is_a_facility() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("facility.toml");
        let text = "title = \"one\"\n[[instrument]]\nname = \"pco-edge\"\nreaders = { count = 2 }\n";
        std::fs::write(&path, text).expect("space");
        let found = members(path.to_str().expect("a plain name"), &InstrumentChanges::default())
            .expect("a valid facility");
        let [Member { instrument, count: 1 }] = &found[..] else { panic!("one of one kind") };
        assert_eq!((instrument.name.as_str(), instrument.readers.count), ("pco-edge", 2));
        let [by_name] =
            &members("pco-edge", &InstrumentChanges::default()).expect("it is in the catalogue")[..]
        else {
            panic!("one")
        };
        assert_eq!((by_name.count, by_name.instrument.name.as_str()), (1, "pco-edge"));
        let [compressed] =
            &members("eiger2-16m", &InstrumentChanges::default()).expect("it is in the catalogue")[..]
        else {
            panic!("one")
        };
        let rate = compressed.instrument.rate().0;
        assert!((rate / 507e6 - 1.0).abs() < 0.01, "its frames come compressed: {rate}");
    }
}
