//! The summary of a recording, for a reader and for a program. Unknown facts are null.

use std::path::PathBuf;

use nilometer_model::{ByteRate, Bytes, Format, Nanos, observed::ClockReading, packets::Station};
use nilometer_recording::{
    foreign::FrameFindings,
    reader::Recording,
    view::{Jump, Read, RecordingView, Scan},
};
use nilometer_report::{NamedFact, RecordingFindings, Tone, in_line};
use nilometer_wire::Stamp;
use serde_json::{Value, json};

use crate::{
    foreign_text::{ForeignOrigin, foreign_missing, lacking_fault, not_known, walked_facts, walked_value},
    recording_json::{files_value, gaps_value, jumps_value, ranges_value, sources_value},
    recording_listing::RecordingResult,
    recording_text::{clock_fact, gaps, not_come, sources, unreadable},
    tell,
};

/// The findings about a recording.
#[derive(Debug)]
pub(super) struct ScannedRecording {
    name: String,
    format: Format,
    lanes: LaneFacts,
    frame_size: u64,
    /// `None` if it has a journal.
    origin: Option<ForeignOrigin>,
    unreadable: Vec<(PathBuf, String)>,
    /// The first journal or block that could not be read.
    pub(super) fault: Option<String>,
    scan: Scan,
    /// The findings from all headers, if it has no journal and the user wants all read.
    walked: Option<FrameFindings>,
}

/// The state of the lanes, by their journals.
#[derive(Debug)]
struct LaneFacts {
    recording: u64,
    all: u32,
    here: usize,
    ended: usize,
    is_over: bool,
    clock: Option<ClockReading>,
}

/// The most runs of missing blocks, and the most jumps, that the text has.
const SHOWN: usize = 10;

impl ScannedRecording {
    pub(super) fn of(whole: &RecordingView, scan: Scan, walked: Option<FrameFindings>) -> Self {
        let fault = first_fault(whole);
        let format = stored_format(whole);
        whole.recording(|recording| {
            let unreadable = recording.unreadable.iter().map(|(path, why)| (path.clone(), why.to_string()));
            ScannedRecording {
                name: recording.name().into(),
                format,
                lanes: LaneFacts::of(recording),
                frame_size: whole.frame_size(),
                origin: ForeignOrigin::of(recording),
                unreadable: unreadable.collect(),
                fault,
                scan,
                walked,
            }
        })
    }

    fn of_format(&self) -> String {
        let (stations, threads) = names(&self.scan);
        let mut words = vec![self.format.name().to_owned()];
        if let Some(header) = &self.scan.survey.header {
            let version = header.edv().map_or("legacy header".into(), |edv| format!("EDV {edv}"));
            words.push(version);
            let channels = tell::counted(1 << header.channels_log2, "channel");
            words.push(format!("{channels} of {}", tell::counted(header.bits.into(), "bit")));
            words.push(format!("station {}", stations.join(" ")));
            let plural = if threads.len() == 1 { "" } else { "s" };
            let threads: Vec<_> = threads.iter().map(u16::to_string).collect();
            words.push(format!("thread{plural} {}", threads.join(" ")));
        }
        words.join(", ")
    }

    fn missing(&self) -> NamedFact {
        let ScannedRecording { origin, scan, walked, .. } = self;
        if origin.is_some() {
            return NamedFact::new("missing", foreign_missing(scan.missing_frames, walked.as_ref()));
        }
        let mut words = not_come(scan);
        if scan.missing_frames > 0 {
            words.push(format!("{} frames are in blocks that are not here", scan.missing_frames));
        }
        if words.is_empty() {
            return NamedFact::new("missing", "none, by the journals");
        }
        NamedFact::toned(Tone::Bad, "missing", words.join(", "))
    }
}

impl RecordingResult for ScannedRecording {
    fn findings(&self) -> RecordingFindings {
        let ScannedRecording { name, lanes, frame_size, origin, scan, walked, .. } = self;
        let mut facts = vec![NamedFact::new("recording", format_args!("{name}, {}", self.of_format()))];
        match origin {
            Some(origin) => facts.extend(origin.named_facts()),
            None => facts.push(lanes.fact()),
        }
        facts.extend(lanes.clock.map(clock_fact));
        let frames = format!("{} of {}, {} in all", scan.frames, Bytes(*frame_size), Bytes(scan.bytes));
        facts.push(NamedFact::new("frames", frames));
        facts.extend(times(scan));
        facts.push(self.missing());
        let rate = scan.survey.frames_per_second;
        facts.extend(walked.iter().flat_map(|walked| walked_facts(walked, *frame_size, rate)));
        facts.extend(origin.as_ref().map(|_| not_known()));
        facts.extend(sources(scan));
        facts.extend(gaps(scan, "--json"));
        let absent = |(first, count): &(u64, u64)| {
            NamedFact::toned(Tone::Bad, "no block", format_args!("{count} from block {first}"))
        };
        facts.extend(scan.missing.iter().take(SHOWN).map(absent));
        let read = scan.read.as_ref().filter(|_| origin.is_none());
        facts.extend(read.into_iter().flat_map(|read| read_facts(read, scan)));
        facts.extend(unreadable(&self.unreadable));
        let conclusion = self.fault.as_ref().map(|why| (Tone::Bad, format!("Can't be read: {why}")));
        RecordingFindings { name: name.clone(), conclusion, facts }
    }

    fn value(&self) -> Value {
        let ScannedRecording { lanes, origin, scan, walked, .. } = self;
        let rate = scan.survey.frames_per_second;
        let (stations, threads) = names(scan);
        let at = |frame: Option<(u64, Stamp)>| {
            frame.map(|(frame, stamp)| json!({ "frame": frame, "utc": moment(stamp, rate) }))
        };
        let seconds = scan.seconds();
        let header = scan.survey.header;
        let walk = walked.as_ref().map_or(Value::Null, |walked| walked_value(walked, rate));
        json!({
            "name": self.name, "recording": format!("{:016x}", lanes.recording),
            "format": self.format.name(), "lanes": lanes.all, "lanes_here": lanes.here, "lanes_ended": lanes.ended,
            "clock": lanes.clock, "ended": lanes.is_over, "stations": stations, "threads": threads,
            "edv": header.and_then(|header| header.edv()), "bits": header.map(|header| header.bits),
            "channels": header.map(|header| 1_u64 << header.channels_log2),
            "frame_bytes": self.frame_size, "frames": scan.frames, "bytes": scan.bytes,
            "first": at(scan.first), "last": at(scan.last), "seconds": seconds, "frames_per_second": rate,
            "bytes_per_second": seconds.map(|seconds| scan.bytes as f64 / seconds),
            "filled_frames": scan.filled, "left_out_frames": scan.left_out, "missing_frames": scan.missing_frames,
            "missing_blocks": ranges_value(&scan.missing), "gaps": gaps_value(&scan.gaps),
            "missing_by_source": sources_value(&scan.sources),
            "read": scan.read.as_ref().map(|read| read_value(read, rate)),
            "without_journal": origin.as_ref().map_or(Value::Null, ForeignOrigin::value), "walk": walk,
            "unreadable": files_value(&self.unreadable), "fault": self.fault,
        })
    }
}

impl LaneFacts {
    fn of(recording: &Recording) -> Self {
        let index = &recording.index;
        LaneFacts {
            recording: recording.head().recording,
            all: recording.head().lanes,
            here: index.heads.len(),
            ended: index.ended,
            is_over: recording.is_over(),
            clock: index.clock,
        }
    }

    fn fact(&self) -> NamedFact {
        let LaneFacts { recording, all, here, ended, .. } = self;
        let ended = match *ended {
            0 => "not ended".to_owned(),
            ended if ended >= *here => "ended in order".to_owned(),
            ended => format!("{ended} ended in order"),
        };
        NamedFact::new("lanes", format_args!("{here} of {all}, {ended}, recording {recording:016x}"))
    }
}

/// The format of its files: a view shows the pixels that are packed in CBF files.
fn stored_format(whole: &RecordingView) -> Format {
    match whole.recording(|recording| recording.head().format) {
        format @ (Format::Cbf | Format::Hdf5) => format,
        _ => whole.format(),
    }
}

/// The first journal or block of a recording that could not be read.
fn first_fault(whole: &RecordingView) -> Option<String> {
    let journal = whole.recording(|recording| {
        let (path, error) = recording.unreadable.first()?;
        Some(format!("{}: {error}", in_line(path.display())))
    });
    journal.or_else(|| whole.faults().first).or_else(|| whole.recording(lacking_fault))
}

/// Stations and threads, as far as the frames or the journal name them.
fn names(scan: &Scan) -> (Vec<String>, Vec<u16>) {
    let seen = scan.read.iter().flat_map(|read| &read.lanes);
    let mut stations: Vec<u16> = scan.survey.lanes.iter().chain(seen.clone()).map(|lane| lane.0).collect();
    let mut threads: Vec<u16> = scan.survey.lanes.iter().chain(seen).map(|lane| lane.1).collect();
    for list in [&mut stations, &mut threads] {
        list.sort_unstable();
        list.dedup();
    }
    (stations.into_iter().map(|station| Station(station).to_string()).collect(), threads)
}

/// The time of a frame.
fn moment(stamp: Stamp, rate: Option<u64>) -> String {
    stamp.moment(rate).to_string()
}

fn times(scan: &Scan) -> Vec<NamedFact> {
    let rate = scan.survey.frames_per_second;
    let Some(((_, first), (_, last))) = scan.first.zip(scan.last) else { return Vec::new() };
    let at = |stamp: Stamp| format!("{}, frame {} of its second", moment(stamp, rate), stamp.frame);
    let speed = match (rate, scan.seconds()) {
        (Some(each), Some(seconds)) => {
            let bytes = ByteRate(scan.bytes as f64 / seconds);
            let threads = match scan.survey.lanes.len() {
                1 => String::new(),
                threads => format!(" of each of {threads} threads"),
            };
            let time = Nanos::from_seconds(seconds);
            let bits = bytes.bits();
            format!("{bytes} ({bits}), {each} frames/s{threads}, {time}")
        }
        (Some(_), None) => "not known: the last frame is before the first".into(),
        (None, _) => "not known: no second ends in it".into(),
    };
    vec![NamedFact::new("first", at(first)), NamedFact::new("last", at(last)), NamedFact::new("rate", speed)]
}

fn read_facts(read: &Read, scan: &Scan) -> Vec<NamedFact> {
    if scan.first.is_none() {
        return vec![NamedFact::new("read", "all; its frames have no times")];
    }
    let Read { invalid, unknown, jumps, .. } = read;
    let text = format!(
        "all: {invalid} frames are marked as invalid, {unknown} have no header, {jumps} times time does not go on"
    );
    let rate = scan.survey.frames_per_second;
    let jump = |Jump { frame, before, stamp }: &Jump| {
        let text = format!("frame {frame}: from {} to {}", moment(*before, rate), moment(*stamp, rate));
        NamedFact::toned(Tone::Bad, "jump", text)
    };
    let jumps = read.first_jumps.iter().take(SHOWN).map(jump);
    std::iter::once(NamedFact::new("read", text)).chain(jumps).collect()
}

fn read_value(read: &Read, rate: Option<u64>) -> Value {
    json!({
        "invalid": read.invalid, "without_header": read.unknown, "jumps": read.jumps,
        "first_jumps": jumps_value(&read.first_jumps, rate),
    })
}

#[cfg(test)]
mod tests;
