//! The recordings of an instrument at its own pace and at full speed: alone, with readers, and in company. Also
//! the searches for the highest rate carried.

mod lateness;
mod over_time;
mod passes;
mod surface;
mod table;
mod trials;
mod windows;

use std::fmt;

use nilometer_model::{ByteRate, Bytes, Goal, Ingest, ReaderLoad};
use nilometer_plan::Measured;

use nilometer_analysis::{Study, StudyRecording, stages_of};

use self::passes::drawn_passes;
use super::stage::key;
use crate::{
    chart::Chart,
    document::{Block, Heading, Section},
};

/// The other activity during a recording. Reports use this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Setting<'a> {
    /// The instruments recorded at the same time; empty if there were none.
    company: &'a str,
    /// The readers of the recording.
    readers: ReaderLoad,
}

impl<'a> Setting<'a> {
    fn of(ingest: &'a Ingest) -> Self {
        Setting { company: &ingest.company, readers: ReaderLoad::of(ingest) }
    }

    /// Returns the number of readers, short enough for a label next to a point.
    fn sign(&self) -> String {
        let ReaderLoad { count, copied, .. } = self.readers;
        let limit = self.readers.limit().map_or_else(String::new, |limit| format!(" at {limit}"));
        format!("{count}{}{limit}", if copied { " + copy" } else { "" })
    }

    fn has_readers(&self) -> bool {
        self.readers.count > 0 || self.readers.copied
    }

    fn is_alone(&self) -> bool {
        self.company.is_empty() && !self.has_readers()
    }
}

impl fmt::Display for Setting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_alone() {
            return f.write_str("by itself");
        }
        if !self.company.is_empty() {
            let gap = if self.has_readers() { ", " } else { "" };
            write!(f, "together with the others ({}){gap}", self.company)?;
        }
        if self.has_readers() { write!(f, "beside {}", self.readers) } else { Ok(()) }
    }
}

/// The other activity during a recording, in words.
pub(crate) fn meanwhile(ingest: &Ingest) -> String {
    Setting::of(ingest).to_string()
}

/// A section for each instrument, with its charts.
pub(crate) fn recordings(study: &Study<'_>, recordings: &[StudyRecording<'_>]) -> Vec<Section> {
    let all = recordings.iter().enumerate();
    all.flat_map(|(number, recording)| of_instrument(study, recording, number)).collect()
}

fn of_instrument(study: &Study<'_>, recording: &StudyRecording<'_>, number: usize) -> Vec<Section> {
    let ingests = || recording.samples.iter().filter_map(|measured| measured.sample.ingest.as_ref());
    let paced = ingests().find(|ingest| !ingest.goal.searches());
    let Some(ingest) = paced.or_else(|| ingests().next()) else { return Vec::new() };
    let rate = ByteRate::of(ingest.frame_size.0, ingest.period);
    let mut targets: Vec<usize> = recording.samples.iter().map(|measured| measured.key.target).collect();
    targets.dedup();
    let name = recording.instrument.to_string();
    let blocks = [Block::soft(described(study, recording, ingest, rate))]
        .into_iter()
        .chain(key(study.results, &targets));
    let heading = Heading::with("Recordings of ", name.as_str());
    let mut sections = vec![Section::new(heading, blocks.collect()).at(format!("recording-{number}"), name)];
    for setting in drawn(recording) {
        sections.extend(paced_charts(study, recording, setting, rate));
    }
    sections.extend(unpaced(recording, rate));
    sections.extend(trials::trials(study, recording));
    sections.push(table::table(study, recording));
    sections
}

fn described(study: &Study<'_>, recording: &StudyRecording<'_>, ingest: &Ingest, rate: ByteRate) -> String {
    let stages = stages_of(study.results, &recording.samples).join(", ");
    let stages = if stages.is_empty() { stages } else { format!("{stages}: ") };
    let buffer = Bytes(ingest.slots * ingest.frame_size.0 * u64::from(ingest.count));
    format!("{stages}frames of {} every {}, {rate}; a buffer of {buffer}", ingest.frame_size, ingest.period)
}

/// Returns the settings to draw: alone, with the most readers, and in each company. The table has the others.
fn drawn<'a>(recording: &StudyRecording<'a>) -> Vec<Setting<'a>> {
    let ingests = recording.samples.iter().filter_map(|measured| measured.sample.ingest.as_ref());
    let mut settings: Vec<Setting<'a>> =
        ingests.filter(|ingest| ingest.goal == Goal::Pace).map(Setting::of).collect();
    settings.sort_unstable();
    settings.dedup();
    let most = settings.iter().rfind(|setting| setting.company.is_empty()).copied();
    settings.retain(|setting| setting.is_alone() || !setting.company.is_empty() || Some(*setting) == most);
    settings
}

/// Returns the worst recording of each target, which decides its verdict; see [`badness`].
fn chosen<'a>(recording: &StudyRecording<'a>, goal: Goal, setting: Setting<'_>) -> Vec<&'a Measured> {
    let badness = |measured: &Measured| badness(measured, goal);
    let is_wanted = |measured: &&&'a Measured| {
        let ingest = measured.sample.ingest.as_ref();
        measured.sample.invalid.is_none()
            && ingest.is_some_and(|ingest| ingest.goal == goal && Setting::of(ingest) == setting)
    };
    let mut chosen: Vec<&'a Measured> = Vec::new();
    for measured in recording.samples.iter().filter(is_wanted) {
        match chosen.iter_mut().find(|known| known.key.target == measured.key.target) {
            Some(known) if badness(measured) > badness(known) => *known = measured,
            Some(_) => {}
            None => chosen.push(measured),
        }
    }
    chosen
}

/// Ranks a recording among others with this goal. At full speed the slowest is the worst. At the instrument's
/// pace it is the one with the most losses, then the one with the longest stall.
fn badness(measured: &Measured, goal: Goal) -> (f64, f64) {
    if goal == Goal::Limit {
        return (-measured.sample.sustained_rate().0, 0.0);
    }
    let ingest = measured.sample.ingest.as_ref();
    ingest.map_or((0.0, 0.0), |ingest| (ingest.lost as f64, ingest.longest_stall.0 as f64))
}

const PACED: &str = "Rate: data that the storage acknowledged; dashed, data that the instrument delivers. \
                     Buffer: frames that wait in memory; dashed, its size; a mark at the top shows lost \
                     frames. Delay: percentiles over frames; dashed, the longest stall that the buffer can \
                     bridge. Strip below the rate: stalls, in which frames waited and the storage acknowledged \
                     none.";

fn paced_charts(
    study: &Study<'_>,
    recording: &StudyRecording<'_>,
    setting: Setting<'_>,
    rate: ByteRate,
) -> Option<Section> {
    let samples = &chosen(recording, Goal::Pace, setting);
    let mut charts: Vec<Chart> = over_time::rate("rate over time", samples, rate).into_iter().collect();
    charts.extend(over_time::ring("buffer in use over time", samples));
    charts.extend(lateness::charts(study, samples));
    if charts.is_empty() {
        return None;
    }
    let drawn =
        format!("Drawn: of each target, the recording that decides{}.", drawn_passes(recording, samples));
    let source = lateness::source(samples).map(|source| format!(" {source}")).unwrap_or_default();
    let blocks = vec![Block::charts(charts), Block::soft(format!("{PACED} {drawn}{source}"))];
    Some(Section::part(Heading::with("At the instrument's rate", format!(", {setting}")), blocks))
}

/// Shows full-speed recordings, and the rates of the readers and the writer.
fn unpaced(recording: &StudyRecording<'_>, rate: ByteRate) -> Option<Section> {
    let alone = Setting { company: "", readers: ReaderLoad::NONE };
    let limit = chosen(recording, Goal::Limit, alone);
    let mut charts: Vec<Chart> = over_time::rate("rate over time", &limit, rate).into_iter().collect();
    let surface = surface::charts(recording);
    let (beside, note) = if surface.is_empty() {
        ("", "")
    } else {
        (", and beside readers", " The numbers at the points count readers.")
    };
    charts.extend(surface);
    if charts.is_empty() {
        return None;
    }
    let drawn = format!("Drawn: of each target, the slowest pass{}.", drawn_passes(recording, &limit));
    let note = format!("Dashed: the instrument's rate. Strip below: stalls. {drawn}{note}");
    let heading = Heading::with("Full speed", beside);
    Some(Section::part(heading, vec![Block::charts(charts), Block::soft(note)]))
}
