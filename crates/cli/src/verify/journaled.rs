//! Verifies a recording with a journal: every frame is there, and is as it was recorded.

use std::{collections::BTreeSet, path::PathBuf};

use nilometer_hdf5_recording::{RepairError, index_faults};
use nilometer_model::{Bytes, Format, observed::ClockReading};
use nilometer_recording::{
    Damaged, OVERWRITTEN, Verified,
    reader::{Index, OpenError, Recording, Trust},
    verify,
    view::{Continuity, Extent, Jump, RecordingView, Scan},
};
use nilometer_report::{NamedFact, RecordingFindings, Tone};
use nilometer_storage::process::BootId;
use serde_json::{Value, json};

use crate::{
    compared_frames::{ComparedFrames, NO_CHECKSUMS},
    recording_json::{files_value, gaps_value, jumps_value, ranges_value, sources_value},
    recording_listing::RecordingResult,
    recording_text::{
        absent_lanes, clock_fact, gaps, journals_not_here, not_come, ranges, sources, unreadable, what,
    },
};

/// The findings about a recording with a journal, from all its frames.
pub(super) struct JournaledReading {
    journals: JournalFacts,
    verified: Verified,
    scan: Scan,
    /// Readable frames that may still be damaged.
    unproved: u64,
    /// Damaged frames with their places, as far as `verified` lists them.
    damaged: Vec<DamagedPlace>,
    headers: Option<HeaderFindings>,
    /// HDF5 files whose index does not agree with the journals, with the reason.
    torn: Vec<(PathBuf, String)>,
    /// The reasons why it is not whole, in words.
    pub(super) faults: Vec<String>,
}

/// The facts that the journals state.
struct JournalFacts {
    name: String,
    recording: u64,
    /// The unit of a recording: frames, or blocks of packets.
    what: &'static str,
    frame_size: u64,
    clock: Option<ClockReading>,
    lanes: u32,
    lanes_here: usize,
    lanes_ended: usize,
    /// Lanes without a journal here, as first numbers and counts.
    absent: Vec<(u64, u64)>,
    expected: u64,
    frames_per_file: u64,
    /// Files with several consecutive frames each.
    chunks: usize,
    /// Chunks that readers miss if they go by the numbers in names.
    unnumbered_chunks: usize,
    removed: u64,
    unreadable: Vec<(PathBuf, String)>,
}

/// The conclusion about a recording that is as it was written, and never had all frames.
const LACKS: &str = "Frames are lacking";

/// A damaged frame.
struct DamagedPlace {
    frame: u64,
    file: PathBuf,
    offset: u64,
    why: String,
}

/// The findings about the headers of packets.
struct HeaderFindings {
    continuity: Continuity,
    /// Frames that never arrived, by the journal.
    noted: u64,
}

impl JournaledReading {
    /// Reads a recording back. `is_durable` is true if only durable frames count.
    pub(super) fn of(recording: Recording, is_durable: bool) -> anyhow::Result<Self> {
        let whole = RecordingView::new(recording, Extent::All);
        let mut verified = verify(&whole);
        let scan = Scan::of(&whole);
        let unproved = if is_durable { 0 } else { unproved(&whole, &verified)? };
        let headers = verified.headers.take();
        let headers = headers.map(|of| HeaderFindings { continuity: of.continuity, noted: of.noted });
        whole.recording(|recording| {
            let torn = torn(recording, &verified)?;
            let damaged = verified.damaged.iter().map(|of| DamagedPlace::of(recording, of)).collect();
            let journals = JournalFacts::of(recording);
            let is_ended = recording.index.due.is_some();
            let mut reading = JournaledReading {
                journals,
                verified,
                scan,
                unproved,
                damaged,
                headers,
                torn,
                faults: vec![],
            };
            reading.faults = reading.found_faults(is_ended);
            Ok(reading)
        })
    }

    /// The reasons why it is not whole. `is_ended` is true if the recording ended in order.
    fn found_faults(&self, is_ended: bool) -> Vec<String> {
        let JournaledReading { journals, verified, headers, torn, unproved, .. } = self;
        let JournalFacts { what, expected, removed, lanes, lanes_here, lanes_ended, .. } = journals;
        let lanes_ended_in_order = *lanes_ended == *lanes as usize;
        let torn = torn.len();
        let mut faults = Vec::new();
        let mut fault = |count: u64, text: String| faults.extend((count > 0).then_some(text));
        if verified.overwritten > 0 {
            fault(1, OVERWRITTEN.into());
        } else {
            let missing = verified.missing_frames();
            let nothing = verified.right == 0 && *expected == 0 && *removed == 0;
            fault(u64::from(nothing), "there is nothing in it".into());
            fault(missing, format!("{missing} {what} are missing"));
            let damaged = verified.damaged_frames;
            fault(damaged, format!("{damaged} {what} are damaged"));
            let jumps = headers.as_ref().map_or(0, |headers| headers.continuity.jumps);
            fault(jumps, format!("{jumps} times time does not go on, and the journal notes no gap there"));
            let absent = u64::from(*lanes).saturating_sub(*lanes_here as u64);
            let named = "name the directories of all lanes";
            fault(absent, format!("no journal here for {absent} of {lanes} lanes ({named})"));
            let unended = if lanes_ended_in_order {
                "its journals do not say how many frames were due, so frames after the last one may be missing"
            } else {
                "it did not end in order, and frames after the last one may be missing"
            };
            fault(u64::from(!is_ended), unended.into());
        }
        let mends = "`nilometer repair` mends them";
        fault(torn as u64, format!("readers of HDF5 do not find all in {torn} files: {mends}"));
        fault(*unproved, format!("{unproved} {what} may be damaged"));
        faults
    }

    /// Frames that are certainly there.
    fn right(&self) -> u64 {
        self.verified.right - self.unproved
    }

    /// Frames that can be read, without anything to compare them with.
    fn unchecked(&self) -> u64 {
        self.verified.unchecked - self.unproved
    }

    /// The frames that were compared with a truth.
    pub(super) fn compared(&self) -> ComparedFrames {
        let Verified { right, unchecked, made_again, .. } = self.verified;
        let compared = if made_again { right } else { right - unchecked };
        ComparedFrames { compared, readable: right, what: self.journals.what, lacking: NO_CHECKSUMS }
    }

    fn conclusion(&self) -> (Tone, String) {
        let what = self.journals.what;
        if !self.faults.is_empty() {
            return (Tone::Bad, format!("Not whole: {}", self.faults.join("; ")));
        }
        let kept = if self.journals.removed > 0 { " that were kept" } else { "" };
        match (compared_with(&self.verified), self.unchecked(), self.not_come()) {
            (Some(truth), 0, 0) => (Tone::Good, format!("Whole: all {what}{kept} agree with {truth}")),
            (Some(truth), 0, lost) => {
                let text =
                    format!("{LACKS}: all {what}{kept} agree with {truth}, and {lost} frames never came");
                (Tone::Bad, text)
            }
            (None, 0, _) => (Tone::Doubtful, format!("Not decided: no {what} are left to compare")),
            (_, unchecked, 0) => {
                let text = format!("Not decided: no {what} are missing, but {unchecked} have no checksum");
                (Tone::Doubtful, text)
            }
            (_, unchecked, lost) => {
                let text =
                    format!("{LACKS}: {lost} frames never came, and {unchecked} {what} have no checksum");
                (Tone::Bad, text)
            }
        }
    }

    /// Frames that never came over the network.
    fn not_come(&self) -> u64 {
        self.scan.filled + self.scan.left_out
    }

    /// The frames that were read back, and the truth that they were compared with.
    fn read_back(&self) -> Vec<NamedFact> {
        let JournaledReading { journals, verified, unproved, .. } = self;
        let what = journals.what;
        let counted = |count: u64| format!("{count} {what}, {}", Bytes(count * journals.frame_size));
        let readable = if verified.made_again { 0 } else { self.unchecked() };
        let right = self.right() - readable;
        let truth = if verified.made_again {
            "frames of the simulated instrument"
        } else {
            "checksums of the journal"
        };
        let mut facts = Vec::new();
        if right > 0 || readable == 0 {
            facts
                .push(NamedFact::new("right", format_args!("{}, compared with the {truth}", counted(right))));
        }
        if readable > 0 {
            let text = format!("{}, not verified: they have no checksum", counted(readable));
            facts.push(NamedFact::toned(Tone::Doubtful, "readable", text));
        }
        facts.extend(journals.clock.map(clock_fact));
        if *unproved > 0 {
            let text = format!(
                "{unproved} {what}: the machine went down while they were recorded, or it is another one; they were not \
                 durable, and have no checksum"
            );
            facts.push(NamedFact::toned(Tone::Doubtful, "unproved", text));
        }
        facts
    }

    /// Frames or blocks that are not there and, in blocks that are, frames that did not come over the network.
    fn missing(&self) -> NamedFact {
        let mut words = not_come(&self.scan);
        let count = self.verified.missing_frames();
        if count > 0 {
            let what = self.journals.what;
            words.insert(0, format!("{count} {what}: {}", ranges(&self.verified.missing)));
        }
        if words.is_empty() {
            return NamedFact::new("missing", "none");
        }
        NamedFact::toned(Tone::Bad, "missing", words.join("; "))
    }

    fn damages(&self) -> Vec<NamedFact> {
        let what = self.journals.what;
        let one = what.trim_end_matches('s');
        let bad = |text: String| NamedFact::toned(Tone::Bad, "damaged", text);
        let place = |DamagedPlace { frame, file, offset, why }: &DamagedPlace| {
            let file = file.display();
            bad(format!("{one} {frame} {why}: it begins at byte {offset} of {file}"))
        };
        let mut facts: Vec<_> = self.damaged.iter().map(place).collect();
        let unnamed = self.verified.damaged_frames - self.damaged.len() as u64;
        facts.extend((unnamed > 0).then(|| bad(format!("{unnamed} {what} more"))));
        facts
    }
}

impl RecordingResult for JournaledReading {
    fn findings(&self) -> RecordingFindings {
        let JournaledReading { journals, verified, scan, headers, torn, .. } = self;
        let mut facts = journals.lanes_facts();
        facts.extend(self.read_back());
        facts.extend(journals.stored_facts());
        let what = journals.what;
        if verified.overwritten > 0 {
            let text = format!("{} {what}, while they were read", verified.overwritten);
            facts.push(NamedFact::toned(Tone::Bad, "overwritten", text));
        }
        if let Some(why) = &verified.not_made_again {
            let text = format!("frames can't be made again: {why}");
            facts.push(NamedFact::toned(Tone::Doubtful, "simulated", text));
        }
        facts.push(self.missing());
        facts.extend(sources(scan));
        facts.extend(gaps(scan, "`nilometer scan --json`"));
        facts.extend(headers.iter().flat_map(HeaderFindings::facts));
        facts.extend(self.damages());
        facts.extend(unreadable(&journals.unreadable));
        let index = |(path, why): &(PathBuf, String)| {
            NamedFact::toned(Tone::Bad, "index", format_args!("{}: {why}", path.display()))
        };
        facts.extend(torn.iter().map(index));
        RecordingFindings { name: journals.name.clone(), conclusion: Some(self.conclusion()), facts }
    }

    /// Frame numbers count from 0. `what` is the unit that it counts.
    fn value(&self) -> Value {
        let JournaledReading { verified, scan, unproved, damaged, headers, torn, faults, .. } = self;
        let mut value = self.journals.value();
        let right = self.right();
        let verdict = json!({
            "whole": faults.is_empty(), "faults": faults, "right": right,
            "right_bytes": right * self.journals.frame_size, "compared_with": compared_with(verified),
            "without_checksum": self.unchecked(), "unproved": unproved, "overwritten": verified.overwritten,
            "not_made_again": verified.not_made_again.as_ref().map(ToString::to_string),
            "missing": verified.missing_frames(), "missing_ranges": ranges_value(&verified.missing),
            "did_not_come_and_filled": scan.filled, "did_not_come_and_left_out": scan.left_out,
            "gaps": gaps_value(&scan.gaps), "missing_by_source": sources_value(&scan.sources),
            "damaged": verified.damaged_frames,
            "damaged_frames": damaged.iter().map(DamagedPlace::value).collect::<Vec<_>>(),
            "torn_files": files_value(torn), "headers": headers.as_ref().map(HeaderFindings::value),
        });
        if let (Value::Object(all), Value::Object(verdict)) = (&mut value, verdict) {
            all.extend(verdict);
        }
        value
    }
}

impl JournalFacts {
    fn of(recording: &Recording) -> Self {
        let index = &recording.index;
        let head = recording.head();
        let unreadable = recording.unreadable.iter().map(|(path, why)| (path.clone(), why.to_string()));
        JournalFacts {
            name: recording.name().into(),
            recording: head.recording,
            what: what(recording),
            frame_size: head.frame_size,
            clock: index.clock,
            lanes: head.lanes,
            lanes_here: index.heads.len(),
            lanes_ended: index.ended,
            absent: absent_lanes(recording),
            expected: index.expected(),
            frames_per_file: head.frames_per_file,
            chunks: index.chunks.len(),
            unnumbered_chunks: index.chunks.values().filter(|names| names.last.is_none()).count(),
            removed: index.removed.count(),
            unreadable: unreadable.collect(),
        }
    }

    fn lanes_facts(&self) -> Vec<NamedFact> {
        let JournalFacts { name, recording, what, frame_size, lanes, lanes_here, lanes_ended, .. } = self;
        let frame_size = Bytes(*frame_size);
        let absent = journals_not_here(name, &self.absent);
        let lanes = format!("{lanes_here} of {lanes}, {lanes_ended} ended in order{absent}");
        let tone = if absent.is_empty() { Tone::Plain } else { Tone::Bad };
        vec![
            NamedFact::new("recording", format_args!("{recording:016x}, {what} of {frame_size}")),
            NamedFact::toned(tone, "lanes", lanes),
            NamedFact::new("expected", format_args!("{} {what}", self.expected)),
        ]
    }

    fn stored_facts(&self) -> Vec<NamedFact> {
        let JournalFacts { what, removed, .. } = self;
        // Files of one frame each are as many as frames.
        let is_told = self.chunks > 0 && self.frames_per_file != 1;
        let chunks = is_told.then(|| self.chunks_fact());
        let removed =
            (*removed > 0).then(|| NamedFact::new("removed", format_args!("{removed} {what}, to make room")));
        chunks.into_iter().chain(removed).collect()
    }

    /// The number of chunks, and a warning if other readers do not find all of them.
    fn chunks_fact(&self) -> NamedFact {
        let JournalFacts { chunks, unnumbered_chunks, .. } = self;
        if *unnumbered_chunks == 0 {
            return NamedFact::new("chunks", chunks);
        }
        let text = format!(
            "{chunks}; {unnumbered_chunks} found no number between those of directories that had dropped out: readers that go \
             by the numbers miss them"
        );
        NamedFact::toned(Tone::Doubtful, "chunks", text)
    }

    fn value(&self) -> Value {
        json!({
            "name": self.name, "recording": format!("{:016x}", self.recording), "what": self.what,
            "frame_bytes": self.frame_size, "clock": self.clock, "lanes": self.lanes, "lanes_here": self.lanes_here,
            "lanes_ended": self.lanes_ended, "absent_lanes": ranges_value(&self.absent), "expected": self.expected,
            "chunks": self.chunks, "unnumbered_chunks": self.unnumbered_chunks, "removed": self.removed,
            "unreadable": files_value(&self.unreadable),
        })
    }
}

impl DamagedPlace {
    fn of(recording: &Recording, Damaged { number, place, why }: &Damaged) -> Self {
        DamagedPlace {
            frame: *number,
            file: recording.path(*place),
            offset: place.extent.offset,
            why: why.clone(),
        }
    }

    fn value(&self) -> Value {
        let file = self.file.display().to_string();
        json!({ "frame": self.frame, "file": file, "offset": self.offset, "why": self.why })
    }
}

/// The most jumps that the text names.
const SHOWN: usize = 20;

impl HeaderFindings {
    fn facts(&self) -> Vec<NamedFact> {
        let HeaderFindings { continuity, noted } = self;
        let Continuity { frames, invalid, first_jumps, .. } = continuity;
        let text = match (invalid, noted) {
            (0, 0) => format!("{frames} frames, none marked as invalid"),
            _ => format!(
                "{frames} frames; {invalid} are marked as invalid, and by the journal {noted} never arrived"
            ),
        };
        let mut facts = vec![NamedFact::new("headers", text)];
        facts.extend(first_jumps.iter().take(SHOWN).map(jump_fact));
        facts
    }

    fn value(&self) -> Value {
        let HeaderFindings { continuity, noted } = self;
        json!({
            "frames": continuity.frames, "invalid": continuity.invalid, "noted_as_not_come": noted,
            "jumps": continuity.jumps, "first_jumps": jumps_value(&continuity.first_jumps, None),
        })
    }
}

fn jump_fact(Jump { frame, before, stamp }: &Jump) -> NamedFact {
    let [before, at] = [before, stamp].map(|stamp| format!("{} frame {}", stamp.moment(None), stamp.frame));
    let thread = stamp.thread;
    let text = format!("thread {thread} goes on at {at} behind {before}: frame {frame} of the recording");
    NamedFact::toned(Tone::Bad, "jump", text)
}

/// The kind of truth that right frames were compared with; `None` if no frame had any.
fn compared_with(verified: &Verified) -> Option<&'static str> {
    match (verified.made_again, verified.right > verified.unchecked) {
        (true, _) => Some("the simulated instrument"),
        (false, true) => Some("the checksums of the journal"),
        (false, false) => None,
    }
}

/// The number of readable frames that may be damaged. If the machine went down while recording, frames that were
/// not durable may have any bytes, and without a checksum nothing shows it.
fn unproved(whole: &RecordingView, verified: &Verified) -> Result<u64, OpenError> {
    let went_down = whole.recording(|recording| {
        let Index { boot, due, .. } = &recording.index;
        boot.is_some() && *boot != BootId::now() && due.is_none()
    });
    if !went_down || verified.unchecked == 0 {
        return Ok(0);
    }
    let durable = whole.recording(|recording| recording.opened_anew(Trust::Durable))?;
    let there = whole.recording(|recording| recording.index.frames.len());
    Ok((there.saturating_sub(durable.index.frames.len()) as u64).min(verified.unchecked))
}

/// Files whose index does not agree with the journals, with the reason. Leaves out files with damaged frames: an
/// index should not have lost frames.
fn torn(recording: &Recording, verified: &Verified) -> Result<Vec<(PathBuf, String)>, RepairError> {
    if recording.head().format != Format::Hdf5 {
        return Ok(Vec::new());
    }
    let damaged: BTreeSet<PathBuf> =
        verified.damaged.iter().map(|damaged| recording.path(damaged.place)).collect();
    let mut faults = index_faults(recording)?;
    faults.retain(|(path, _)| !damaged.contains(path));
    Ok(faults)
}

#[cfg(test)]
mod tests;
