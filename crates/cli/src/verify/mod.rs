//! `nilometer verify`: checks that a recording is whole, and lists exactly the parts that are not.

mod foreign;
mod journaled;

use std::path::{Path, PathBuf};

use anyhow::{anyhow, ensure};
use clap::Args;
use nilometer_recording::reader::{Recording, Trust, Unreadable};
use nilometer_report::in_line;

use crate::{
    Blame, Failure, Outcome,
    compared_frames::{ComparedFrames, undecided},
    document_options::{DocumentFormat, DocumentOptions},
    foreign_mode::ForeignMode,
    lone_file,
    percentage::percent,
    recording_listing::{ListingHead, RecordingListing},
    stored_at::refuse_missing,
};
use foreign::ForeignReading;
use journaled::JournaledReading;

/// Read recordings back, frame by frame, and list missing and damaged frames
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
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
    /// End with exit code 4 (not decided) unless this share of the frames, such as "100 %", has a checksum or
    /// comes from the simulated instrument
    #[arg(long, value_name = "PERCENT", default_value = "0 %", value_parser = share)]
    compared_least: f64,
    #[command(flatten)]
    foreign: ForeignMode,
    #[command(flatten)]
    document: DocumentOptions,
}

/// The text that `verify --help` prints about exit codes.
const EXIT_CODES: &str = "\
Exit codes:
  0  no fault: every frame can be read, and agrees with its checksum or with
     the simulated instrument if there is one. It names packets that never came
  1  a fault: frames are missing or damaged
  2  wrong input: nothing was read
  4  not decided: no fault was found, but too few frames have a checksum to
     compare them with for --compared-least";

fn share(text: &str) -> Result<f64, String> {
    percent(text, 100.0, "100 %").map(|percent| percent / 100.0)
}

impl Verify {
    /// The file that the command reads, if the argument is no recording.
    pub(crate) fn lone_file(&self) -> Option<&Path> {
        self.foreign.lone_file(&self.directories)
    }

    pub(crate) fn execute(&self) -> Outcome {
        refuse_missing(&self.directories).input()?;
        self.document.check().input()?;
        if let Some(file) = self.lone_file() {
            if self.durable {
                return Err(Failure::Input(anyhow!(DURABLE_WITHOUT_JOURNAL)));
            }
            return lone_file::verify(file, self.dataset.as_deref(), self.compared_least, &self.document);
        }
        lone_file::check_dataset(self.dataset.as_ref()).input()?;
        lone_file::refuse_parts(&self.directories).input()?;
        let trust = if self.durable { Trust::Durable } else { Trust::Acknowledged };
        let stored = self.foreign.stored_at(&self.directories).input()?;
        let (recordings, unread) = stored.open_those_named(trust).input()?;
        self.verify_each(recordings, &unread)
    }

    /// Reads each recording, and names those that are not whole.
    fn verify_each(
        &self,
        recordings: impl ExactSizeIterator<Item = Recording>,
        unread: &Unreadable,
    ) -> Outcome {
        let is_one = recordings.len() == 1;
        let mut listing = RecordingListing::begin(&self.document, self.head()).run()?;
        let mut unread = unread_words(unread);
        let mut not_whole = unread.clone();
        let mut doubts = Vec::new();
        let mut first_refusal = None;
        for recording in recordings {
            let name = in_line(recording.name());
            if !is_one {
                listing.announce(&name);
            }
            let read = match self.read(recording) {
                Ok(read) => read,
                Err(error) => {
                    let words = format!("{name}: {error:#}");
                    unread.push(words.clone());
                    not_whole.push(words);
                    first_refusal.get_or_insert(error);
                    continue;
                }
            };
            let compared = read.compared();
            let faults = read.told(&mut listing).run()?;
            let is_named = !is_one || self.document.format() == DocumentFormat::Json;
            let subject = if is_named { &name } else { "the recording" };
            if !faults.is_empty() {
                not_whole.push(format!("{subject} is not whole: {}", faults.join("; ")));
            } else if let Some(why) = compared.doubt(self.compared_least) {
                doubts.push(if is_named { format!("{name}: {why}") } else { why });
            }
        }
        // The list must be complete for programs, even if a recording could not be read.
        listing.end(&unread).run()?;
        match first_refusal {
            Some(error) if is_one => Err(Failure::Input(error)),
            _ => ended(&not_whole).and_then(|()| undecided(&doubts)),
        }
    }

    const fn head(&self) -> ListingHead {
        let origin = if self.durable { "Only frames that survive a loss of power count." } else { "" };
        ListingHead { title: "Recordings read back", origin }
    }

    /// Reads a recording back.
    fn read(&self, recording: Recording) -> anyhow::Result<VerifiedReading> {
        if recording.foreign().is_some() {
            ensure!(!self.durable, DURABLE_WITHOUT_JOURNAL);
            return Ok(VerifiedReading::Foreign(Box::new(ForeignReading::of(recording))));
        }
        Ok(VerifiedReading::Journaled(Box::new(JournaledReading::of(recording, self.durable)?)))
    }
}

/// A recording that was read back.
enum VerifiedReading {
    Journaled(Box<JournaledReading>),
    Foreign(Box<ForeignReading>),
}

impl VerifiedReading {
    /// The frames that were compared with a truth.
    fn compared(&self) -> ComparedFrames {
        match self {
            VerifiedReading::Journaled(reading) => reading.compared(),
            VerifiedReading::Foreign(reading) => ComparedFrames::without_journal(reading.frames_read()),
        }
    }

    /// Writes the findings. Returns the reasons if it is not whole.
    fn told(self, listing: &mut RecordingListing) -> anyhow::Result<Vec<String>> {
        match self {
            VerifiedReading::Journaled(reading) => listing.push(reading.as_ref()).map(|()| reading.faults),
            VerifiedReading::Foreign(reading) => listing.push(reading.as_ref()).map(|()| reading.faults),
        }
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
