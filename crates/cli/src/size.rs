//! `nilometer size`: computes the recorders, links, storage servers and space that an instrument or a
//! facility needs.

use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};
use clap::{Args, ValueEnum};
use nilometer_model::{ByteRate, Bytes, Facility, Instrument, Nanos, Seed, catalogue};
use nilometer_plan::sizing::{
    Demand, Limits, Place, Sizing, SizingError,
    simulation::{Phases, SizingTrial, fullest},
};
use nilometer_report::{
    Checked, InstrumentRooms, Sized, rooms_html, rooms_json, rooms_markdown, rooms_text, sizing_html,
    sizing_json, sizing_markdown, sizing_text,
};

use crate::{
    Blame, Outcome, facility::load, instrument_changes::InstrumentChanges, page_file, percentage::percent,
    report::layout, tell,
};
use limits::FoundLimits;

mod limits;
mod room;

/// Compute the recorders, links and servers that an instrument needs
///
/// Takes an instrument or a facility. The rates of one element come from a record of `nilometer evaluate
/// --for INSTRUMENT`, or from options. The answer lists everything that it rests on, and a simulation in
/// virtual time checks it.
#[derive(Debug, Args)]
pub(crate) struct Size {
    /// An instrument of the catalogue, a built-in facility (wa105), or the path of a .toml file with either
    ///
    /// A directory in its place: for how long each instrument of the catalogue can be recorded there
    #[arg(value_name = "NAME|DIRECTORY")]
    name: String,
    /// Print for how long these directories have room for the instrument. With --write-rate or --record, size the
    /// recorders too
    #[arg(value_name = "DIRECTORY")]
    to: Vec<PathBuf>,
    /// Leave this free on each storage of the directories
    #[arg(long, value_name = "SIZE", default_value = "1 GiB")]
    reserve: Bytes,
    #[command(flatten)]
    changes: InstrumentChanges,
    #[command(flatten)]
    limits: limits::Options,
    /// Leave this share of each limit free, in percent [default: 20]
    #[arg(long, value_name = "PERCENT", value_parser = headroom)]
    headroom: Option<f64>,
    /// Add spare recorders and servers, so that this many of each may fail at once: 1 for N+1
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=1000))]
    spare: u64,
    /// Keep data for at least this time, such as "3 days" [default: the facility's]
    #[arg(long, value_name = "TIME")]
    retention: Option<Nanos>,
    /// Copy data to an archive at this rate [default: the facility's]
    #[arg(long, value_name = "RATE")]
    copy_out: Option<ByteRate>,
    /// Assume this much space [default: the facility's]
    #[arg(long, value_name = "SIZE")]
    capacity: Option<Bytes>,
    /// Simulate this much time, instead of as much as takes about a second
    #[arg(long, value_name = "TIME")]
    check: Option<Nanos>,
    /// Seed the random phases of the simulation with this number
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print the answer in this form
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Write the answer as a page, which opens offline
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Text of at most 100 columns
    Text,
    /// Text for an issue or a document
    Markdown,
    /// JSON for programs
    Json,
}

const HEADROOM_MOST: f64 = 90.0;

/// Reads `20` or `20 %` as 0.2.
fn headroom(text: &str) -> Result<f64, String> {
    percent(text, HEADROOM_MOST, "20 %").map(|percent| percent / 100.0)
}

/// With more pieces than the first limit, streams are simulated only for `--check`; beyond the second, never.
const PIECES_UNASKED: f64 = 2e6;
const PIECES_MOST: f64 = 2e8;

impl Size {
    pub(crate) fn execute(&self) -> Outcome {
        page_file::check_option(self.html.as_deref()).input()?;
        if let Some(rooms) = self.rooms().input()? {
            self.tell_rooms(&rooms)?;
            if !self.limits.name_a_rate() {
                return Ok(());
            }
        }
        let (facility, instruments) = self.facility().input()?;
        let mut demand = Demand::of(&facility, &instruments);
        let found = self.limits.found(self.headroom, self.spare, &mut demand, &instruments).input()?;
        let FoundLimits { limits, remarks } = found;
        let trial = self.trial(&demand, &limits).input()?;
        let sizing =
            nilometer_plan::sizing::size(&demand, &limits).map_err(|error| advised(&error)).input()?;
        let checked = trial.map(|trial| checked(trial, &demand, &limits, &sizing));
        let title = &facility.title;
        let sized =
            Sized { title, demand: &demand, limits: &limits, sizing: &sizing, remarks: &remarks, checked };
        match self.format {
            Format::Text => tell::result_unchanged(sizing_text(&sized, layout())),
            Format::Markdown => tell::result_to_copy(sizing_markdown(&sized)),
            Format::Json => tell::json_result(sizing_json(&sized)),
        }
        page_file::write_option(self.html.as_deref(), || sizing_html(&sized)).run()
    }

    fn tell_rooms(&self, rooms: &InstrumentRooms) -> Outcome {
        match self.format {
            Format::Text => tell::result_unchanged(rooms_text(rooms, layout())),
            Format::Markdown => tell::result_to_copy(rooms_markdown(rooms)),
            Format::Json => tell::json_result(format_args!("{:#}\n", rooms_json(rooms))),
        }
        page_file::write_option(self.html.as_deref(), || rooms_html(rooms)).run()
    }

    /// The facility and its instruments, with the values of the options in place of its own.
    fn facility(&self) -> anyhow::Result<(Facility, Vec<Instrument>)> {
        let (mut facility, instruments) = self.loaded()?;
        facility.retention = self.retention.or(facility.retention);
        facility.copy_out = self.copy_out.or(facility.copy_out);
        facility.capacity = self.capacity.or(facility.capacity);
        let zero = [
            ("--retention", self.retention.is_some_and(|keep| keep.0 == 0)),
            ("--copy-out", self.copy_out.is_some_and(|rate| rate.0 <= 0.0)),
            ("--capacity", self.capacity.is_some_and(|space| space.0 == 0)),
            ("--check", self.check.is_some_and(|time| time.0 == 0)),
        ];
        if let Some((option, _)) = zero.into_iter().find(|(_, zero)| *zero) {
            bail!("{option} is zero: write more, or leave it out");
        }
        Ok((facility, instruments))
    }

    /// The facility and its instruments, with the changes of the options.
    fn loaded(&self) -> anyhow::Result<(Facility, Vec<Instrument>)> {
        let (facility, mut instruments) = load(&self.name)?;
        for instrument in &mut instruments {
            self.changes.apply(instrument)?;
        }
        Ok((facility, instruments))
    }

    /// The directories of the question; `None` if it has none.
    fn rooms(&self) -> anyhow::Result<Option<InstrumentRooms>> {
        let place = Path::new(&self.name);
        // An instrument of the catalogue may have the name of a directory here.
        let is_place = place.is_dir() && !catalogue::has_instrument(&self.name);
        if self.to.is_empty() && !is_place {
            return Ok(None);
        }
        let is_single = matches!(self.format, Format::Json) || self.html.is_some();
        ensure!(
            !(is_single && self.limits.name_a_rate()),
            "--format json and --html take one answer: leave the directories out, or --write-rate and --record"
        );
        if is_place {
            ensure!(
                !self.limits.name_a_rate(),
                "{}: a directory has no rate: name an instrument first",
                self.name
            );
            let to: Vec<_> = std::iter::once(place.to_owned()).chain(self.to.iter().cloned()).collect();
            return room::find(&to, self.reserve, Vec::new()).map(Some);
        }
        room::find(&self.to, self.reserve, self.loaded()?.1).map(Some)
    }

    /// The simulation to run; `None` if it would take long and `--check` is missing.
    fn trial(&self, demand: &Demand, limits: &Limits) -> anyhow::Result<Option<SizingTrial>> {
        let trial = SizingTrial::suited(demand, limits, self.check, Phases::Random(Seed(self.seed)));
        let pieces = trial.pieces(demand);
        ensure!(
            self.check.is_none() || pieces <= PIECES_MOST,
            "--check {}: {pieces:.1e} pieces of streams would come, and at most {PIECES_MOST:.0e} are simulated: write a \
             shorter time",
            trial.duration
        );
        let affordable = pieces <= if self.check.is_some() { PIECES_MOST } else { PIECES_UNASKED };
        Ok(affordable.then_some(trial))
    }
}

/// Adds the options that would help to the error.
fn advised(error: &SizingError) -> anyhow::Error {
    let options = match error {
        SizingError::Growing { .. } => "a higher --copy-out, or leave --space out",
        SizingError::Stream { place: Place::Network, .. } => "a faster --link, or less --headroom",
        SizingError::Stream { place: Place::Processor, .. } => {
            "more --cores, fewer --cores-per-gb, or less --headroom"
        }
        SizingError::Stream { place: Place::Memory, .. } => {
            "more --memory, a shorter --stall, or less --headroom"
        }
        SizingError::Stream { .. } => "more --writers, a higher --writer-rate, or less --headroom",
    };
    anyhow::anyhow!("{error}: write {options}")
}

/// The most days of the buffer that are simulated.
const DAYS_MOST: u64 = 60;

fn checked(trial: SizingTrial, demand: &Demand, limits: &Limits, sizing: &Sizing) -> Checked {
    let found = trial.run(demand, limits, sizing);
    let worst = SizingTrial { phases: Phases::Together, ..trial };
    let fewer = Some(sizing).filter(|sizing| sizing.limiting().place != Place::Space);
    let fewer = fewer.and_then(|sizing| sizing.one_fewer(demand, limits));
    let fewer = fewer.map(|fewer| worst.run(demand, &limits.without_headroom(), &fewer));
    let is_asked = demand.retention.is_some() || demand.copy_out.is_some() || demand.capacity.is_some();
    let days = demand.retention.map_or(0, |keep| keep.0.div_ceil(86_400_000_000_000)) + 3;
    let Phases::Random(seed) = trial.phases else { return Checked { trial, found, fewer, days: None } };
    let days = (is_asked && days <= DAYS_MOST).then(|| {
        let (most, full) = fullest(demand, days, Some(seed));
        (days, most, full)
    });
    Checked { trial, found, fewer, days }
}
