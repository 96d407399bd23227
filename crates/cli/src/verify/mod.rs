//! `nilometer verify`: checks that a recording is whole, and lists exactly the parts that are not.

mod foreign;
mod json;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::anyhow;
use clap::Args;
use nilometer_hdf5_recording::{RepairError, index_faults};
use nilometer_model::{Bytes, Format};
use nilometer_recording::{
    Damaged, Headers, OVERWRITTEN, Verified,
    reader::{Index, OpenError, Recording, Trust, Unreadable},
    verify,
    view::{Extent, Jump, RecordingView, Scan},
};
use nilometer_storage::process::BootId;
use nilometer_wire::Stamp;

use crate::{
    Blame, Failure, Outcome,
    json_list::JsonList,
    lone_file,
    recording_text::{absent_lanes, clock_line, gaps, in_line, not_come, ranges, sources, unreadable, what},
    stored_at::StoredAt,
    tell,
};
use json::Judged;
pub(crate) use json::range;

/// Read recordings back, frame by frame, and list missing and damaged frames
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// The directories of a recording, those of all lanes, or of several. Also their URLs (root://, nfs://,
    /// s3://, hdfs://), an HDF5 file without a journal, or a recording of another program, as for scan
    #[arg(required = true)]
    directories: Vec<PathBuf>,
    /// Count only frames that survive the loss of power, not all acknowledged ones
    #[arg(long)]
    durable: bool,
    /// Read frames from this dataset of an HDF5 file without a journal [default: /entry/data/data, else the
    /// one with the most dimensions]
    #[arg(long, value_name = "PATH")]
    dataset: Option<String>,
    /// Print JSON: a list of recordings, or of the one file
    #[arg(long)]
    json: bool,
}

impl Verify {
    /// The file that the command reads, if the argument is no recording.
    pub(crate) fn lone_file(&self) -> Option<&Path> {
        lone_file::named_file(&self.directories)
    }

    pub(crate) fn execute(&self) -> Outcome {
        if let Some(file) = self.lone_file() {
            if self.durable {
                return Err(Failure::Input(anyhow!(DURABLE_WITHOUT_JOURNAL)));
            }
            return lone_file::verify(file, self.dataset.as_deref(), self.json);
        }
        lone_file::check_dataset(self.dataset.as_ref()).input()?;
        lone_file::refuse_parts(&self.directories).input()?;
        let trust = if self.durable { Trust::Durable } else { Trust::Acknowledged };
        let stored = StoredAt::named(&self.directories).input()?;
        let (mut recordings, unread) = stored.open_those_named(trust).input()?;
        if self.json {
            return self.list(recordings, &unread);
        }
        if recordings.len() == 1
            && let Some(only) = recordings.next()
        {
            let faults = self.tell_of(only).input()?;
            return ended(faults.map(|faults| format!("the recording is not whole: {faults}")).as_slice());
        }
        let mut not_whole = unread_words(&unread);
        for (at, recording) in recordings.enumerate() {
            let name = in_line(recording.name());
            let gap = if at == 0 { "" } else { "\n" };
            tell::result(tell::visible(&format!("{gap}name        {name}\n")));
            let faults = self.tell_of(recording).input()?;
            not_whole.extend(faults.map(|faults| format!("{name} is not whole: {faults}")));
        }
        ended(&not_whole)
    }

    /// Prints the recordings as JSON.
    fn list(&self, recordings: impl Iterator<Item = Recording>, unread: &Unreadable) -> Outcome {
        let mut list = JsonList::new();
        let mut not_whole = unread_words(unread);
        let mut listed = Ok(());
        for recording in recordings {
            let name = in_line(recording.name());
            let faults = match recording.foreign() {
                Some(_) => self.check_foreign().and_then(|()| {
                    let read = foreign::ForeignReading::of(recording);
                    list.push(&read.value())?;
                    Ok(read.complaint())
                }),
                None => self.judged(recording, |judged| {
                    list.push(&judged.value())?;
                    Ok((!judged.faults.is_empty()).then(|| judged.faults.join("; ")))
                }),
            };
            match faults.input() {
                Ok(faults) => not_whole.extend(faults.map(|faults| format!("{name} is not whole: {faults}"))),
                Err(error) => listed = listed.and(Err(error)),
            }
        }
        // The list must be complete for programs, even if a recording could not be read.
        list.end();
        listed.and_then(|()| ended(&not_whole))
    }

    /// Reads a recording, and prints its state. Returns the reason if it is not whole.
    fn tell_of(&self, recording: Recording) -> anyhow::Result<Option<String>> {
        if recording.foreign().is_some() {
            self.check_foreign()?;
            let read = foreign::ForeignReading::of(recording);
            tell::result(tell::visible(&read.told()));
            return Ok(read.complaint());
        }
        self.judged(recording, |judged| {
            tell::result(tell::visible(&told(judged)));
            Ok((!judged.faults.is_empty()).then(|| judged.faults.join("; ")))
        })
    }

    /// Refuses `--durable` for a recording without a journal.
    fn check_foreign(&self) -> anyhow::Result<()> {
        anyhow::ensure!(!self.durable, DURABLE_WITHOUT_JOURNAL);
        Ok(())
    }

    /// Reads a recording back.
    fn judged<T>(
        &self,
        recording: Recording,
        use_of: impl FnOnce(&Judged<'_>) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let whole = RecordingView::new(recording, Extent::All);
        let verified = verify(&whole);
        let scan = Scan::of(&whole);
        let unproved = self.unproved(&whole, &verified)?;
        let torn = whole.recording(|recording| torn(recording, &verified))?;
        whole.recording(|recording| {
            let mut faults = faults(recording, &verified);
            faults.extend((!torn.is_empty()).then(|| {
                format!(
                    "readers of HDF5 do not find all in {} files: `nilometer repair` mends them",
                    torn.len()
                )
            }));
            faults.extend((unproved > 0).then(|| format!("{unproved} {} may be damaged", what(recording))));
            use_of(&Judged {
                recording,
                verified: &verified,
                scan: &scan,
                unproved,
                torn: &torn,
                faults: &faults,
            })
        })
    }

    /// The number of readable frames that may be damaged. If the machine went down while recording, frames
    /// that were not durable may have any bytes, and without a checksum nothing shows it.
    fn unproved(&self, whole: &RecordingView, verified: &Verified) -> Result<u64, OpenError> {
        let went_down = whole.recording(|recording| {
            let Index { boot, due, .. } = &recording.index;
            boot.is_some() && *boot != BootId::now() && due.is_none()
        });
        if self.durable || !went_down || verified.unchecked == 0 {
            return Ok(0);
        }
        let durable = whole.recording(|recording| recording.opened_anew(Trust::Durable))?;
        let there = whole.recording(|recording| recording.index.frames.len());
        Ok((there.saturating_sub(durable.index.frames.len()) as u64).min(verified.unchecked))
    }
}

const DURABLE_WITHOUT_JOURNAL: &str =
    "--durable: a file without a journal does not tell which frames were durable; leave it out";

/// Directories and journals that belong to no recording.
fn unread_words(unread: &Unreadable) -> Vec<String> {
    unread.iter().map(|(path, why)| format!("{}: {why}", in_line(path.display()))).collect()
}

/// Success, if there are no faults.
fn ended(faults: &[String]) -> Outcome {
    if faults.is_empty() { Ok(()) } else { Err(Failure::Run(anyhow!("{}", faults.join("; ")))) }
}

/// Files whose index does not agree with the journals, with the reason. Leaves out files with damaged frames:
/// an index should not have lost frames.
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

/// The state of the recording, one line each. Among the right frames, `unproved` may still be damaged.
fn told(judged: &Judged<'_>) -> String {
    let &Judged { recording, verified, scan, unproved, torn, .. } = judged;
    let index = &recording.index;
    let head = recording.head();
    let what = what(recording);
    let mut lines = vec![
        format!("recording   {:016x}, {what} of {}", head.recording, Bytes(head.frame_size)),
        format!(
            "lanes       {} of {}, {} ended in order{}",
            index.heads.len(),
            head.lanes,
            index.ended,
            absent_lanes(recording)
        ),
        format!("expected    {} {what}", index.expected()),
    ];
    lines.extend(read_back(judged));
    lines.extend(clock_line(index));
    if unproved > 0 {
        lines.push(format!(
            "unproved    {unproved} {what}: the machine went down while they were recorded, or it is another one; they were \
             not durable, and have no checksum"
        ));
    }
    // Files of one frame each are as many as frames.
    if !index.chunks.is_empty() && head.frames_per_file != 1 {
        lines.push(format!("chunks      {}", chunks(index)));
    }
    if !index.removed.is_empty() {
        lines.push(format!("removed     {} {what}, to make room", index.removed.count()));
    }
    if verified.overwritten > 0 {
        lines.push(format!("overwritten {} {what}, while they were read", verified.overwritten));
    }
    if let Some(why) = &verified.not_made_again {
        lines.push(format!("simulated   frames can't be made again: {why}"));
    }
    lines.push(format!("missing     {}", missing(verified, what, scan)));
    lines.extend(sources(scan));
    lines.extend(gaps(scan, "`nilometer scan --json`"));
    lines.extend(verified.headers.iter().flat_map(times));
    for Damaged { number, place, why } in &verified.damaged {
        let path = recording.path(*place);
        let one = what.trim_end_matches('s');
        lines.push(format!(
            "damaged     {one} {number} {why}: it begins at byte {} of {}",
            place.extent.offset,
            in_line(path.display())
        ));
    }
    let unnamed = verified.damaged_frames - verified.damaged.len() as u64;
    lines.extend((unnamed > 0).then(|| format!("damaged     {unnamed} {what} more")));
    lines.extend(unreadable(&recording.unreadable));
    let index = |(path, why): &(PathBuf, String)| {
        format!("index       {}: {}", in_line(path.display()), in_line(why))
    };
    lines.extend(torn.iter().map(index));
    lines.join("\n") + "\n"
}

/// The frames that are right, and those that can be read and have nothing to be compared with.
fn read_back(judged: &Judged<'_>) -> Vec<String> {
    let &Judged { recording, verified, unproved, .. } = judged;
    let what = what(recording);
    let counted = |count: u64| format!("{count} {what}, {}", Bytes(count * recording.head().frame_size));
    let readable = verified.unchecked - unproved;
    let right = verified.right - verified.unchecked;
    if verified.made_again {
        let right = counted(right + readable);
        return vec![format!("right       {right}, compared with the frames of the simulated instrument")];
    }
    let mut lines = Vec::new();
    if right > 0 || readable == 0 {
        lines.push(format!("right       {}, compared with the checksums of the journal", counted(right)));
    }
    if readable > 0 {
        lines.push(format!("readable    {}, not verified: they have no checksum", counted(readable)));
    }
    lines
}

/// Frames or blocks that are not there and, in blocks that are, frames that did not come over the network.
fn missing(verified: &Verified, what: &str, scan: &Scan) -> String {
    let mut words = not_come(scan);
    let count = verified.missing_frames();
    if count > 0 {
        words.insert(0, format!("{count} {what}: {}", ranges(&verified.missing)));
    }
    if words.is_empty() { "none".into() } else { words.join("; ") }
}

/// The most jumps that the output names.
const SHOWN: usize = 20;

/// The lines about the headers of packets.
fn times(headers: &Headers) -> Vec<String> {
    let Headers { continuity, noted, .. } = headers;
    let mut lines = vec![format!(
        "headers     {} frames; {} are marked as invalid, and by the journal {noted} never arrived",
        continuity.frames, continuity.invalid
    )];
    let at = |stamp: Stamp| format!("{} frame {}", stamp.moment(None), stamp.frame);
    for Jump { frame, before, stamp } in continuity.first_jumps.iter().take(SHOWN) {
        lines.push(format!(
            "jump        thread {} goes on at {} behind {}: frame {frame} of the recording",
            stamp.thread,
            at(*stamp),
            at(*before)
        ));
    }
    lines
}

/// The number of chunks, and a warning if other readers do not find all of them.
fn chunks(index: &Index) -> String {
    let count = index.chunks.len();
    let unnumbered = index.chunks.values().filter(|names| names.last.is_none()).count();
    if unnumbered == 0 {
        return count.to_string();
    }
    format!(
        "{count}; {unnumbered} found no number between those of directories that had dropped out: readers that go by the \
         numbers miss them"
    )
}

/// The reasons why the recording is not whole; empty if it is.
fn faults(recording: &Recording, verified: &Verified) -> Vec<String> {
    let index = &recording.index;
    let lanes = recording.head().lanes as usize;
    if verified.overwritten > 0 {
        return vec![OVERWRITTEN.into()];
    }
    let mut faults = Vec::new();
    let mut fault = |count: usize, text: String| {
        if count > 0 {
            faults.push(text);
        }
    };
    let missing = verified.missing_frames();
    let what = what(recording);
    let nothing = verified.right == 0 && index.expected() == 0 && index.removed.is_empty();
    fault(usize::from(nothing), "there is nothing in it".into());
    fault(missing as usize, format!("{missing} {what} are missing"));
    fault(verified.damaged_frames as usize, format!("{} {what} are damaged", verified.damaged_frames));
    let jumps = verified.headers.as_ref().map_or(0, |headers| headers.continuity.jumps);
    fault(jumps as usize, format!("{jumps} times time does not go on, and the journal notes no gap there"));
    let absent = lanes.saturating_sub(index.heads.len());
    let named = "name the directories of all lanes";
    fault(absent, format!("{absent} of {lanes} lanes have no journal here ({named})"));
    let unended = usize::from(index.due.is_none());
    fault(unended, "it did not end in order, and frames after the last one may be missing".into());
    faults
}
