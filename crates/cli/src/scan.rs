//! `nilometer scan`: summarizes recordings for their operator.

use std::{
    io,
    path::{Path, PathBuf},
};

use clap::Args;
use nilometer_model::{ByteRate, Bytes, Format, Nanos, packets::Station};
use nilometer_recording::{
    OVERWRITTEN,
    foreign::{FrameFindings, read_through},
    reader::{OpenError, Trust},
    view::{Extent, Hole, Jump, Read, RecordingView, Scan as Scanned, SourceLoss},
};
use nilometer_wire::Stamp;
use serde_json::{Value, json};

use crate::{
    Blame, Failure, Outcome,
    foreign_text::{NOT_KNOWN, foreign_lines, foreign_missing, foreign_value, walked_lines, walked_value},
    json_list::JsonList,
    lone_file::refuse_unknown_files,
    recording_text::{clock_line, gaps, in_line, not_come, sources, unreadable},
    share::Share,
    stored_at::StoredAt,
    tell,
    verify::range,
};

/// Summarize recordings: format, stations, threads, times, rate, missing frames
#[derive(Debug, Args)]
pub(crate) struct Scan {
    /// The directories of recordings, or those above them. Scan joins all lanes that it finds there. Also
    /// recordings of other programs: files of VDIF, Mark5B or Mark 6, captures, and directories of chunks (vbs)
    #[arg(required = true)]
    directories: Vec<PathBuf>,
    /// Read every frame, not only the first and the last, and print facts that the journals lack
    #[arg(long)]
    all: bool,
    /// Print JSON: a list of recordings
    #[arg(long)]
    json: bool,
}

fn is_journal(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "journal")
}

/// The advice for somebody who passes a file.
const FOR_FILES: &str = "for an HDF5 file without a journal use `nilometer verify FILE`";

impl Scan {
    pub(crate) fn execute(&self) -> Outcome {
        refuse_unknown_files(&self.directories, FOR_FILES).input()?;
        let stored = StoredAt::named(&self.directories).input()?;
        let (recordings, mut unread) = stored.open_each(Trust::Acknowledged).input()?;
        if recordings.is_empty() && unread.iter().all(|(path, _)| is_journal(path)) {
            // A missing directory, or a journal of another version, gets its own message.
            stored.open(Trust::Acknowledged).input()?;
        }
        let mut listing = Listing { json: self.json.then(JsonList::new), is_empty: true };
        let mut faults = ScanFaults::default();
        for recording in recordings {
            // One at a time: memory does not grow with their number, and each summary appears when it is
            // ready.
            let whole = match recording.map_err(unopened) {
                Ok(recording) => RecordingView::new(recording, Extent::All),
                Err(fault) => {
                    unread.push(fault);
                    continue;
                }
            };
            let scan = self.scan(&whole);
            listing.tell(&whole, &scan).run()?;
            faults.note(&whole, self.all);
        }
        listing.json.iter().for_each(JsonList::end);
        unreadable(&unread).iter().for_each(tell::note);
        let unread = unread.first().map(|(path, error)| format!("{}: {error}", in_line(path.display())));
        faults.ended(unread)
    }

    fn scan(&self, whole: &RecordingView) -> ScannedRecording {
        let scan = Scanned::of(whole);
        if !self.all {
            return ScannedRecording { scan, walked: None };
        }
        let mut share = Share::new("read", Bytes(scan.bytes));
        let tell = |done| share.tell(Bytes(done));
        let is_foreign = whole.recording(|recording| recording.foreign().is_some());
        let scanned = if is_foreign {
            let walked = read_through(whole, tell);
            let read = walked.as_ref().map(read_of);
            ScannedRecording { scan: Scanned { read, ..scan }, walked }
        } else {
            ScannedRecording { scan: scan.read_all(whole, tell), walked: None }
        };
        share.clear();
        scanned
    }
}

/// The file of a recording that can't be opened, and the reason.
fn unopened(error: OpenError) -> (PathBuf, io::Error) {
    match error {
        OpenError::Directory { path, source } => (path, source),
        OpenError::Foreign { path, why } => (path, io::Error::other(why)),
        other => (PathBuf::new(), io::Error::other(other)),
    }
}

/// The findings from all headers, as those from all frames of a recording with a journal.
fn read_of(walked: &FrameFindings) -> Read {
    let continuity = &walked.continuity;
    Read {
        invalid: continuity.invalid,
        unknown: continuity.unknown,
        jumps: continuity.jumps,
        first_jumps: continuity.first_jumps.clone(),
        lanes: continuity.lanes().collect(),
    }
}

/// The findings about a recording.
#[derive(Debug)]
struct ScannedRecording {
    scan: Scanned,
    /// The findings from all headers, if it has no journal and the user wants all read.
    walked: Option<FrameFindings>,
}

/// Writes each recording as soon as it was scanned: paragraphs, or the elements of one list of JSON.
#[derive(Debug)]
struct Listing {
    json: Option<JsonList>,
    /// True until the first paragraph.
    is_empty: bool,
}

impl Listing {
    fn tell(&mut self, whole: &RecordingView, scan: &ScannedRecording) -> serde_json::Result<()> {
        if let Some(list) = &mut self.json {
            let mut value = value(whole, &scan.scan);
            value["without_journal"] = whole.recording(foreign_value);
            value["walk"] = scan.walked.as_ref().map_or(Value::Null, walked_value);
            return list.push(&value);
        }
        let before = if std::mem::take(&mut self.is_empty) { "" } else { "\n" };
        tell::result(tell::visible(&format!("{before}{}", text(whole, scan))));
        Ok(())
    }
}

/// The first fault of the scanned recordings.
#[derive(Debug, Default)]
struct ScanFaults {
    first: Option<String>,
    overwritten: bool,
}

impl ScanFaults {
    /// Takes in the faults of a recording. `all` is true if every frame was read.
    fn note(&mut self, whole: &RecordingView, all: bool) {
        self.overwritten |= all && whole.is_overwritten(0..u64::MAX);
        if self.first.is_none() {
            self.first = first_fault(whole);
        }
    }

    /// The command's outcome: `unread` names the first directory or journal of no known recording that can't
    /// be read.
    fn ended(self, unread: Option<String>) -> Outcome {
        ensure_read(self.overwritten).run()?;
        let first = unread.or(self.first);
        first.map_or(Ok(()), |why| Err(Failure::Run(anyhow::anyhow!("can't be read: {why}"))))
    }
}

/// The first journal or block of a recording that could not be read.
fn first_fault(whole: &RecordingView) -> Option<String> {
    let journal = whole.recording(|recording| {
        let (path, error) = recording.unreadable.first()?;
        Some(format!("{}: {error}", in_line(path.display())))
    });
    journal.or_else(|| whole.faults().first)
}

/// Refuses a result if the recorder overwrote frames during the reading.
fn ensure_read(overwritten: bool) -> anyhow::Result<()> {
    anyhow::ensure!(!overwritten, OVERWRITTEN);
    Ok(())
}

/// The most runs of missing blocks, and the most jumps, that the text has.
const SHOWN: usize = 10;

/// The summary as text, one line for each fact.
fn text(whole: &RecordingView, scanned: &ScannedRecording) -> String {
    let ScannedRecording { scan, walked } = scanned;
    let mut lines = vec![format!("recording   {}, {}", in_line(whole.name()), of_format(whole, scan))];
    let foreign = whole.recording(foreign_lines);
    let is_foreign = !foreign.is_empty();
    lines.extend(if is_foreign { foreign } else { vec![lanes(whole)] });
    lines.extend(whole.recording(|recording| clock_line(&recording.index)));
    lines.push(format!(
        "frames      {} of {}, {} in all",
        scan.frames,
        Bytes(whole.frame_size()),
        Bytes(scan.bytes)
    ));
    lines.extend(times(scan));
    let missing =
        if is_foreign { foreign_missing(scan.missing_frames, walked.as_ref()) } else { missing(scan) };
    lines.push(format!("missing     {missing}"));
    let rate = scan.survey.frames_per_second;
    lines.extend(walked.iter().flat_map(|walked| walked_lines(walked, whole.frame_size(), rate)));
    lines.extend(is_foreign.then(|| NOT_KNOWN.to_owned()));
    lines.extend(sources(scan));
    lines.extend(gaps(scan, "--json"));
    lines.extend(
        scan.missing
            .iter()
            .take(SHOWN)
            .map(|(first, count)| format!("no block    {count} from block {first}")),
    );
    lines.extend(if is_foreign { Vec::new() } else { read(scan) });
    lines.extend(whole.recording(|recording| unreadable(&recording.unreadable)));
    lines.join("\n") + "\n"
}

/// The format of its files: a view shows the pixels that are packed in CBF files.
fn stored_format(whole: &RecordingView) -> Format {
    match whole.recording(|recording| recording.head().format) {
        format @ (Format::Cbf | Format::Hdf5) => format,
        _ => whole.format(),
    }
}

fn of_format(whole: &RecordingView, scan: &Scanned) -> String {
    let (stations, threads) = names(scan);
    let mut words = vec![stored_format(whole).name().to_owned()];
    if let Some(header) = &scan.survey.header {
        let version = header.edv().map_or("legacy header".into(), |edv| format!("EDV {edv}"));
        words.push(version);
        words.push(
            counted(1 << header.channels_log2, "channel")
                + &format!(" of {}", counted(header.bits.into(), "bit")),
        );
        words.push(format!("station {}", stations.join(" ")));
        let plural = if threads.len() == 1 { "" } else { "s" };
        let threads: Vec<_> = threads.iter().map(u16::to_string).collect();
        words.push(format!("thread{plural} {}", threads.join(" ")));
    }
    words.join(", ")
}

/// `1 bit`, `2 bits`.
fn counted(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Stations and threads, as far as the frames or the journal name them.
fn names(scan: &Scanned) -> (Vec<String>, Vec<u16>) {
    let seen = scan.read.iter().flat_map(|read| &read.lanes);
    let mut stations: Vec<u16> = scan.survey.lanes.iter().chain(seen.clone()).map(|lane| lane.0).collect();
    let mut threads: Vec<u16> = scan.survey.lanes.iter().chain(seen).map(|lane| lane.1).collect();
    for list in [&mut stations, &mut threads] {
        list.sort_unstable();
        list.dedup();
    }
    (stations.into_iter().map(|station| Station(station).to_string()).collect(), threads)
}

fn lanes(whole: &RecordingView) -> String {
    whole.recording(|recording| {
        let index = &recording.index;
        let head = recording.head();
        let here = index.heads.len();
        let ended = match index.ended {
            0 => "not ended".to_owned(),
            ended if ended >= here => "ended in order".to_owned(),
            ended => format!("{ended} ended in order"),
        };
        format!("lanes       {here} of {}, {ended}, recording {:016x}", head.lanes, head.recording)
    })
}

/// The time of a frame.
fn moment(stamp: Stamp, rate: Option<u64>) -> String {
    stamp.moment(rate).to_string()
}

fn times(scan: &Scanned) -> Vec<String> {
    let rate = scan.survey.frames_per_second;
    let Some(((_, first), (_, last))) = scan.first.zip(scan.last) else { return Vec::new() };
    let mut lines = vec![
        format!("first       {}, frame {} of its second", moment(first, rate), first.frame),
        format!("last        {}, frame {} of its second", moment(last, rate), last.frame),
    ];
    match (rate, scan.seconds()) {
        (Some(each), Some(seconds)) => {
            let bytes = ByteRate(scan.bytes as f64 / seconds);
            let threads = match scan.survey.lanes.len() {
                1 => String::new(),
                threads => format!(" of each of {threads} threads"),
            };
            let time = Nanos::from_seconds(seconds);
            lines.push(format!("rate        {bytes} ({}), {each} frames/s{threads}, {time}", bytes.bits()));
        }
        (Some(_), None) => lines.push("rate        not known: the last frame is before the first".into()),
        (None, _) => lines.push("rate        not known: no second ends in it".into()),
    }
    lines
}

fn missing(scan: &Scanned) -> String {
    let mut words = not_come(scan);
    if scan.missing_frames > 0 {
        words.push(format!("{} frames are in blocks that are not here", scan.missing_frames));
    }
    if words.is_empty() { "none, by the journals".into() } else { words.join(", ") }
}

fn read(scan: &Scanned) -> Vec<String> {
    let Some(read) = &scan.read else { return Vec::new() };
    if scan.first.is_none() {
        return vec!["read        all; its frames have no times".into()];
    }
    let mut lines = vec![format!(
        "read        all: {} frames are marked as invalid, {} have no header, {} times time does not go on",
        read.invalid, read.unknown, read.jumps
    )];
    let rate = scan.survey.frames_per_second;
    for Jump { frame, before, stamp } in read.first_jumps.iter().take(SHOWN) {
        lines.push(format!(
            "jump        frame {frame}: from {} to {}",
            moment(*before, rate),
            moment(*stamp, rate)
        ));
    }
    lines
}

/// The packets of a sender and thread that did not come, as JSON.
fn source_value(source: &SourceLoss) -> Value {
    let station = source.thread.and_then(|(station, _)| station).map(|station| Station(station).to_string());
    json!({
        "sender": source.sender.map(|sender| sender.to_string()), "station": station,
        "thread": source.thread.map(|(_, thread)| thread), "missing_packets": source.packets,
    })
}

/// The summary as JSON; unknown facts are null.
fn value(whole: &RecordingView, scan: &Scanned) -> Value {
    let (stations, threads) = names(scan);
    let rate = scan.survey.frames_per_second;
    let at = |frame: Option<(u64, Stamp)>| {
        frame.map(|(frame, stamp)| json!({ "frame": frame, "utc": moment(stamp, rate) }))
    };
    let gap = |hole: &Hole| {
        let Hole { frame, packets, filled, sender: of } = *hole;
        json!({ "frame": frame, "packets": packets, "filled": filled, "sender": of.map(|sender| sender.to_string()) })
    };
    let jump = |jump: &Jump| json!({ "frame": jump.frame, "from": moment(jump.before, rate), "to": moment(jump.stamp, rate) });
    let read = scan.read.as_ref().map(|read| {
        json!({
            "invalid": read.invalid, "without_header": read.unknown, "jumps": read.jumps,
            "first_jumps": read.first_jumps.iter().map(jump).collect::<Vec<_>>(),
        })
    });
    let seconds = scan.seconds();
    let header = scan.survey.header;
    whole.recording(|recording| {
        json!({
            "name": whole.name(), "recording": format!("{:016x}", recording.head().recording),
            "format": stored_format(whole).name(), "lanes": recording.head().lanes, "lanes_here": recording.index.heads.len(),
            "clock": recording.index.clock, "ended": recording.is_over(), "stations": stations, "threads": threads,
            "edv": header.and_then(|header| header.edv()), "bits": header.map(|header| header.bits),
            "channels": header.map(|header| 1_u64 << header.channels_log2),
            "frame_bytes": whole.frame_size(), "frames": scan.frames, "bytes": scan.bytes,
            "first": at(scan.first), "last": at(scan.last), "seconds": seconds, "frames_per_second": rate,
            "bytes_per_second": seconds.map(|seconds| scan.bytes as f64 / seconds),
            "filled_frames": scan.filled, "left_out_frames": scan.left_out, "missing_frames": scan.missing_frames,
            "missing_blocks": scan.missing.iter().map(|&(first, count)| range(first, count)).collect::<Vec<_>>(),
            "gaps": scan.gaps.iter().map(gap).collect::<Vec<_>>(),
            "missing_by_source": scan.sources.iter().map(source_value).collect::<Vec<_>>(), "read": read,
        })
    })
}
