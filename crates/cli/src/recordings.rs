//! What is recorded for `--for`: each instrument by itself and those that are named together, with their readers.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use nilometer_model::{
    ByteRate, Bytes, Instrument, Nanos,
    plan::{Goal, IngestCell, Readers},
};

use crate::instrument;

/// Which instruments are recorded, and how.
#[derive(Debug, Args)]
#[command(next_help_heading = "Recordings")]
pub(crate) struct Recordings {
    /// Record this instrument and say whether the storage carries it: a name of the catalogue, or the path of a .toml
    /// file; `6*pilatus-6m+pco-edge` records seven at the same time, and each kind by itself; may be given several
    /// times
    #[arg(long = "for", value_name = "INSTRUMENT")]
    instruments: Vec<String>,
    /// How long each instrument is recorded
    #[arg(long, default_value = "40 s", requires = "instruments")]
    duration: Nanos,
    /// Memory between an instrument and the storage
    #[arg(long, default_value = "1 GiB", requires = "instruments")]
    buffer: Bytes,
    /// What stays of a recording: older frames are removed. Enough to be behind the caches of a device, not enough to
    /// fill it
    #[arg(long, default_value = "2 GiB", requires = "instruments")]
    keep: Bytes,
    /// How many readers follow each recording, reading every frame and checking it; several numbers, as in 0,1,2, are
    /// measured one after the other
    #[arg(long, value_delimiter = ',', value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1000),
        requires = "instruments")]
    readers: Vec<u32>,
    /// How long after it was due a frame is read, at the earliest
    #[arg(long, default_value = "0 s", requires = "readers")]
    reader_distance: Nanos,
    /// How fast each reader reads, at the most [default: as fast as frames come]
    #[arg(long, requires = "readers")]
    reader_rate: Option<ByteRate>,
    /// Copy every recording to a directory on other storage while it is made
    #[arg(long, value_name = "DIRECTORY", requires = "instruments")]
    copy_to: Option<PathBuf>,
    /// Search for the highest rate that is carried without loss with this buffer, and for the smallest buffer at the
    /// instrument's own rate
    #[arg(long, requires = "instruments")]
    find_limit: bool,
    /// How long a trial of such a search lasts
    #[arg(long, default_value = "5 s", requires = "find_limit")]
    trial: Nanos,
}

/// How often, and how long each time at the most, the limit of the storage is looked for before an instrument is
/// recorded.
const LIMIT_REPEATS: u32 = 3;
const LIMIT_DURATION: Nanos = Nanos::from_millis(20_000);
/// As many recorders are more than any node has.
const COUNT_MOST: u32 = 1000;

impl Recordings {
    /// Whether anything is to be recorded.
    pub(crate) fn any(&self) -> bool {
        !self.instruments.is_empty()
    }

    /// Where recordings are copied to.
    pub(crate) fn copy_to(&self) -> Option<String> {
        self.copy_to.as_ref().map(|path| path.display().to_string())
    }

    /// All recordings, in the order in which they are made.
    pub(crate) fn cells(&self) -> Result<Vec<IngestCell>> {
        let mut cells = Vec::new();
        for (number, asked) in (0..).zip(&self.instruments) {
            let members: Vec<_> = asked.split('+').map(member).collect::<Result<_>>()?;
            for (instrument, count) in &members {
                self.alone(instrument, *count, &mut cells);
            }
            if members.len() > 1 {
                let together = members.into_iter().map(|(instrument, count)| IngestCell {
                    company: Some(number),
                    ..self.cell(instrument, count, self.levels().last().copied().unwrap_or_default())
                });
                cells.extend(together);
            }
        }
        Ok(cells)
    }

    /// What is recorded of an instrument by itself: as fast as the storage takes it, the search if it is asked for, and
    /// at its own pace; the first and the last with each number of readers.
    fn alone(&self, instrument: &Instrument, count: u32, cells: &mut Vec<IngestCell>) {
        let paced = |readers| self.cell(instrument.clone(), count, readers);
        for readers in self.levels() {
            let (duration, repeats) = (LIMIT_DURATION, if readers.none() { LIMIT_REPEATS } else { 1 });
            cells.push(IngestCell { goal: Goal::Limit, duration, repeats, ..paced(readers) });
        }
        if self.find_limit {
            let (duration, readers) = (self.trial, Readers::default());
            cells.extend([Goal::Search, Goal::Buffer].map(|goal| IngestCell {
                goal,
                duration,
                ..paced(readers)
            }));
        }
        cells.extend(self.levels().into_iter().map(paced));
    }

    fn cell(&self, instrument: Instrument, count: u32, readers: Readers) -> IngestCell {
        let (duration, buffer, keep) = (self.duration, self.buffer, self.keep);
        let (goal, repeats, company) = (Goal::Pace, 1, None);
        IngestCell { instrument, count, goal, duration, buffer, keep, repeats, readers, company }
    }

    /// Who reads, in order: nobody first.
    fn levels(&self) -> Vec<Readers> {
        let level =
            |count, copy| Readers { count, distance: self.reader_distance, rate: self.reader_rate, copy };
        let mut counts = self.readers.clone();
        counts.sort_unstable();
        counts.dedup();
        if counts.is_empty() {
            counts.push(0);
        }
        let mut levels: Vec<Readers> = counts.iter().map(|&count| level(count, false)).collect();
        let most = counts.last().copied().unwrap_or_default();
        levels.extend(self.copy_to.as_ref().map(|_| level(most, true)));
        levels
    }
}

/// An instrument of a list, and how many of it: `name` or `N*name`.
fn member(asked: &str) -> Result<(Instrument, u32)> {
    let (count, name) = match asked.split_once('*') {
        Some((count, name)) => {
            (count.trim().parse().with_context(|| format!("--for {asked}: `{count}` is no number"))?, name)
        }
        None => (1, asked),
    };
    ensure!((1..=COUNT_MOST).contains(&count), "--for {asked}: write 1 to {COUNT_MOST} of an instrument");
    if name.trim().is_empty() {
        bail!("--for {asked}: an instrument is missing: write a+b, or 6*a+b");
    }
    Ok((instrument::load(name.trim())?, count))
}
