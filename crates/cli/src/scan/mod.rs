//! `nilometer scan`: summarizes recordings for their operator.

mod scanned;

use std::{
    io,
    path::{Path, PathBuf},
};

use clap::Args;
use nilometer_model::Bytes;
use nilometer_recording::{
    OVERWRITTEN,
    foreign::{FrameFindings, read_through},
    reader::{OpenError, Trust},
    view::{Extent, Read, RecordingView, Scan as Scanned},
};
use nilometer_report::in_line;

use crate::{
    Blame, Failure, Outcome,
    document_options::DocumentOptions,
    foreign_mode::ForeignMode,
    recording_listing::{ListingHead, RecordingListing},
    recording_text::{facts_lines, unreadable},
    share::Share,
    stored_at::refuse_missing,
    tell,
};
use scanned::ScannedRecording;

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
    #[command(flatten)]
    foreign: ForeignMode,
    #[command(flatten)]
    document: DocumentOptions,
}

fn is_journal(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "journal")
}

/// The advice for somebody who passes a file.
const FOR_FILES: &str = "for an HDF5 file without a journal use `nilometer verify FILE`";

impl Scan {
    pub(crate) fn execute(&self) -> Outcome {
        refuse_missing(&self.directories).input()?;
        self.document.check().input()?;
        self.foreign.refuse_unknown_files(&self.directories, FOR_FILES).input()?;
        let stored = self.foreign.stored_at(&self.directories).input()?;
        let (recordings, mut unread) = stored.open_each(Trust::Acknowledged).input()?;
        if recordings.is_empty() && unread.iter().all(|(path, _)| is_journal(path)) {
            // A missing directory, or a journal of another version, gets its own message.
            stored.open(Trust::Acknowledged).input()?;
        }
        let mut listing = RecordingListing::begin(&self.document, self.head()).run()?;
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
            let scanned = self.scan(&whole);
            listing.push(&scanned).run()?;
            faults.note(&whole, scanned.fault, self.all);
        }
        let words = |(path, error): &(PathBuf, io::Error)| format!("{}: {error}", in_line(path.display()));
        let words: Vec<String> = unread.iter().map(words).collect();
        listing.end(&words).run()?;
        facts_lines(unreadable(&unread)).for_each(tell::note);
        faults.ended(words.into_iter().next())
    }

    const fn head(&self) -> ListingHead {
        let origin = if self.all { "Every frame was read." } else { "By the journals and a few frames." };
        ListingHead { title: "Recordings", origin }
    }

    fn scan(&self, whole: &RecordingView) -> ScannedRecording {
        let scan = Scanned::of(whole);
        if !self.all {
            return ScannedRecording::of(whole, scan, None);
        }
        let mut share = Share::new("read", Bytes(scan.bytes));
        let tell = |done| share.tell(Bytes(done));
        let is_foreign = whole.recording(|recording| recording.foreign().is_some());
        let scanned = if is_foreign {
            let walked = read_through(whole, tell);
            let read = walked.as_ref().map(read_of);
            ScannedRecording::of(whole, Scanned { read, ..scan }, walked)
        } else {
            ScannedRecording::of(whole, scan.read_all(whole, tell), None)
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

/// The first fault of the scanned recordings.
#[derive(Debug, Default)]
struct ScanFaults {
    first: Option<String>,
    overwritten: bool,
}

impl ScanFaults {
    /// Takes in the faults of a recording. `all` is true if every frame was read.
    fn note(&mut self, whole: &RecordingView, fault: Option<String>, all: bool) {
        self.overwritten |= all && whole.is_overwritten(0..u64::MAX);
        self.first = self.first.take().or(fault);
    }

    /// The command's outcome: `unread` names the first directory or journal of no known recording that can't
    /// be read.
    fn ended(self, unread: Option<String>) -> Outcome {
        ensure_read(self.overwritten).run()?;
        let first = unread.or(self.first);
        first.map_or(Ok(()), |why| Err(Failure::Run(anyhow::anyhow!("can't be read: {why}"))))
    }
}

/// Refuses a result if the recorder overwrote frames during the reading.
fn ensure_read(overwritten: bool) -> anyhow::Result<()> {
    anyhow::ensure!(!overwritten, OVERWRITTEN);
    Ok(())
}
