//! `nilometer copy`: copies a recording to another place.

use std::{
    fmt::Display,
    io::{self, ErrorKind},
    path::PathBuf,
    sync::atomic::Ordering,
};

use anyhow::{anyhow, ensure};
use clap::Args;
use nilometer_model::{ByteRate, Bytes, Nanos};
use nilometer_recording::{
    copy::{CopyError, CopyNews, CopyResult, CopySettings, copy},
    reader::{Recording, Trust},
};
use nilometer_report::in_line;

use crate::{
    Blame, Failure, Outcome,
    lone_file::refuse_files,
    recording_text::{absent_journals, facts_lines, unreadable},
    share::Share,
    signals::stop_on_signal,
    stored_at::refuse_urls,
    tell,
};

/// Copy a recording with all its files, and check every block on the way. After an interruption the same
/// command goes on where it was
#[derive(Debug, Args)]
pub(crate) struct CopyCommand {
    /// The directories of the recording, those of all lanes
    #[arg(required = true)]
    directories: Vec<PathBuf>,
    /// Make a directory with the recording's name in this directory. With several, the lanes go to them in
    /// turn
    #[arg(long, required = true, value_name = "DIRECTORY")]
    to: Vec<PathBuf>,
    /// Copy at most at this rate, also while a recorder uses the same file systems [default: no limit, and wait
    /// for recorders]
    #[arg(long)]
    rate: Option<ByteRate>,
}

/// The advice for somebody who passes a file.
const FOR_FILES: &str = "copy an HDF5 file without a journal with cp";
/// The most damaged blocks to name.
const NAMED: usize = 20;

impl CopyCommand {
    pub(crate) fn execute(&self) -> Outcome {
        refuse_files(&self.directories, FOR_FILES).input()?;
        refuse_urls(self.directories.iter().chain(&self.to)).input()?;
        self.check().input()?;
        let recording = Recording::open(&self.directories, Trust::Acknowledged).input()?;
        let stop = stop_on_signal().run()?;
        let settings = CopySettings { to: self.to.clone(), at_most: self.rate };
        let length = length_of(&recording);
        let mut share = Share::new("copied", length);
        let mut done = Bytes(0);
        let copied = copy(&recording, &settings, &mut |news| {
            if let CopyNews::Done(bytes) = news {
                done = Bytes(bytes);
            }
            report(news, &mut share);
            !stop.load(Ordering::Relaxed)
        });
        share.clear();
        let copied = copied.map_err(|error| blame(error, done))?;
        tell::result(tell::visible(&summary(&recording, &copied)));
        went_well(&recording, &copied)
    }

    fn check(&self) -> anyhow::Result<()> {
        ensure!(self.rate.is_none_or(|rate| rate.0 > 0.0), "--rate 0: write more than 0");
        for to in &self.to {
            ensure!(to.is_dir(), "--to {}: it is no directory: make it first", to.display());
        }
        Ok(())
    }
}

/// The bytes of all frames.
fn length_of(recording: &Recording) -> Bytes {
    Bytes(recording.index.frames.iter().map(|(_, place)| u64::from(place.extent.length)).sum())
}

fn report(news: CopyNews, share: &mut Share) {
    match news {
        CopyNews::Done(bytes) => share.tell(Bytes(bytes)),
        CopyNews::Waits(process) => tell::note(format_args!(
            "waiting: process {process} records or measures on the same file system; --rate copies beside it"
        )),
        CopyNews::GoesOn => tell::note("going on: nothing is recorded there now"),
    }
}

/// Tells wrong input from failures of the run. After `done` bytes a failure says how to go on.
fn blame(error: CopyError, done: Bytes) -> Failure {
    match &error {
        CopyError::Storage { source, .. } if done > Bytes(0) => {
            let hint = way_on(source, done);
            Failure::Run(anyhow!("{error}; {hint}"))
        }
        CopyError::Storage { .. } | CopyError::Interrupted => Failure::Run(error.into()),
        _ => Failure::Input(error.into()),
    }
}

/// How to go on after the storage of the copy failed behind `done` bytes.
fn way_on(fault: &io::Error, done: Bytes) -> String {
    let first = match fault.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "make room there",
        _ => "mend the storage",
    };
    format!("the copy keeps the {done} that it has: {first}, then the same command goes on with it")
}

fn summary(recording: &Recording, copied: &CopyResult) -> String {
    let mut lines: Vec<String> =
        copied.directories.iter().map(|path| format!("copied      {}", in_line(path.display()))).collect();
    let found = match copied.found {
        0 => String::new(),
        found => format!(", {} of it by an earlier copy", Bytes(found)),
    };
    lines.push(format!("bytes       {}{found}", Bytes(copied.bytes)));
    lines.push(format!(
        "blocks      {} are right, {} have no checksum and are as they were read",
        copied.right, copied.unchecked
    ));
    if copied.waited > Nanos(0) {
        lines.push(format!("waited      {} for recorders", copied.waited));
    }
    for (number, path) in copied.damaged.iter().take(NAMED) {
        lines.push(format!("damaged     block {number} in {}", in_line(path.display())));
    }
    let more = copied.damaged.len().saturating_sub(NAMED);
    if more > 0 {
        lines.push(format!("            and {more} more"));
    }
    for (path, why) in &copied.unreadable {
        lines.push(format!("not copied  {}: {}", in_line(path.display()), in_line(why)));
    }
    let absent = absent_journals(recording);
    if !absent.is_empty() {
        lines.push(format!(
            "lanes       {} of {}{absent}",
            recording.index.heads.len(),
            recording.head().lanes
        ));
    }
    lines.extend(facts_lines(unreadable(&recording.unreadable)));
    lines.join("\n") + "\n"
}

/// Turns parts that the copy lacks, and damage, into a failure.
fn went_well(recording: &Recording, copied: &CopyResult) -> Outcome {
    let lanes =
        recording.head().lanes as usize - recording.index.heads.len().min(recording.head().lanes as usize);
    let mut why = Vec::new();
    let mut count = |number: usize, text: &dyn Display| {
        if number > 0 {
            why.push(format!("{number} {text}"));
        }
    };
    count(copied.damaged.len(), &"blocks are damaged in the recording and in the copy");
    count(copied.unreadable.len(), &"files can't be read");
    count(lanes, &"lanes are not here");
    if why.is_empty() {
        return Ok(());
    }
    Err(Failure::NotWhole(anyhow!("copied, but not whole: {}; keep the recording", why.join("; "))))
}
