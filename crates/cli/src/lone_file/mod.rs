//! An HDF5 file without a journal, read by `verify` and `export`: one that an export made, or any other
//! program.

mod export;
mod guard;
mod progress;
mod reading;

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::Ordering,
};

use anyhow::{anyhow, bail, ensure};
use nilometer_hdf5_recording::lone_file::{LoneFile, LoneFileError};
use nilometer_model::Bytes;
use nilometer_recording::foreign::is_foreign_file;
use nilometer_report::in_line;
use nilometer_storage::user_file;

use crate::{
    Blame, Failure, Outcome,
    compared_frames::{ComparedFrames, undecided},
    document_options::DocumentOptions,
    recording_listing::{ListingHead, RecordingListing},
    share::Share,
    signals::stop_on_signal,
};
pub(crate) use export::{LoneExport, export};
pub(crate) use guard::guarded;
use reading::LoneReading;

/// The only path of the command line, if it is a file, and neither a recording of another program nor a record.
pub(crate) fn named_file(paths: &[PathBuf]) -> Option<&Path> {
    match paths {
        [only] if only.is_file() && !is_foreign_file(only) && !is_record(only) => Some(only),
        _ => None,
    }
}

/// Refuses a file if a command takes directories of recordings. The message has the advice `instead`.
pub(crate) fn refuse_files(paths: &[PathBuf], instead: &str) -> anyhow::Result<()> {
    let Some(file) = paths.iter().find(|path| path.is_file()) else { return Ok(()) };
    if let Some(directory) = journal_beside(file) {
        bail!("{}: a file of a recording: name its directory, {}", file.display(), directory.display());
    }
    bail!("{}: a file; name the directories of a recording; {instead}", file.display());
}

/// Refuses a file that is no recording of another program. The message has the advice `instead`.
pub(crate) fn refuse_unknown_files(paths: &[PathBuf], instead: &str) -> anyhow::Result<()> {
    refuse_parts(paths)?;
    match paths.iter().find(|path| path.is_file() && !is_foreign_file(path)) {
        Some(unknown) => refuse_files(std::slice::from_ref(unknown), &format!("{FOREIGN_FILES}; {instead}")),
        None => Ok(()),
    }
}

/// Files of other programs that can be read.
const FOREIGN_FILES: &str = "or a file of VDIF, Mark5B, Mark 6, pcap or pcapng";

/// The first bytes of a database (<https://www.sqlite.org/fileformat.html>, section 1.3).
const DATABASE: &[u8] = b"SQLite format 3\0";

/// Returns true if a file is the record of an evaluation. Some records look like packets.
fn is_record(path: &Path) -> bool {
    user_file::beginning(path).is_ok_and(|begins| begins.as_bytes().starts_with(DATABASE))
}

/// Refuses the record of an evaluation, and a file of a lane: its journal knows more than its headers.
pub(crate) fn refuse_parts(paths: &[PathBuf]) -> anyhow::Result<()> {
    if let Some(record) = paths.iter().find(|path| is_record(path)) {
        let record = record.display();
        bail!("{record}: no recording, but the record of an evaluation: nilometer check {record}");
    }
    for file in paths.iter().filter(|path| path.is_file()) {
        if journals_beside(file).iter().any(|journal| is_of_lane(file, journal)) {
            let directory = directory_of(file);
            bail!("{}: a file of a recording: name its directory, {}", file.display(), directory.display());
        }
    }
    Ok(())
}

/// Returns true if a journal `NAME.LANE.journal` may describe a file: it is `NAME.LANE.SUFFIX`, or a chunk.
fn is_of_lane(file: &Path, journal: &str) -> bool {
    let Some(name) = file.file_name().and_then(|name| name.to_str()) else { return false };
    let Some((recording, lane)) = journal.rsplit_once('.') else { return false };
    let Some(rest) = name.strip_prefix(recording).and_then(|rest| rest.strip_prefix('.')) else {
        return false;
    };
    let is_number = |text: &str| text.len() == 8 && text.bytes().all(|digit| digit.is_ascii_digit());
    rest.strip_prefix(lane).is_some_and(|suffix| suffix.starts_with('.')) || is_number(rest)
}

/// Refuses `--dataset` with directories of a recording.
pub(crate) fn check_dataset(dataset: Option<&String>) -> anyhow::Result<()> {
    ensure!(
        dataset.is_none(),
        "--dataset: only for a file of HDF5 without a journal: name the file, or leave it out"
    );
    Ok(())
}

/// Refuses `--fill-missing` with directories of a recording: they always fill missing frames.
pub(crate) fn check_fill_missing(is_given: bool) -> anyhow::Result<()> {
    ensure!(
        !is_given,
        "--fill-missing: only for a file of HDF5 without a journal: missing frames of a recording are always filled; leave it \
         out"
    );
    Ok(())
}

/// Opens a file's frames. A damaged file is a fault, not wrong input.
fn opened(path: &Path, dataset: Option<&str>) -> Result<LoneFile, Failure> {
    LoneFile::open(path, dataset).map_err(|error| {
        let other = match &error {
            LoneFileError::Broken { others, .. } if !others.is_empty() => {
                format!("; --dataset names others that may have frames: {}", some_of(others))
            }
            _ => String::new(),
        };
        let is_damage = error.is_damage();
        let why = anyhow!("{error}{other}");
        if is_damage { Failure::Run(why) } else { Failure::Input(why) }
    })
}

/// Reads every chunk of a file, and names the missing and unreadable ones. The outcome is not decided if fewer frames
/// than the share `compared_least` could be compared with anything: without a journal, none can.
pub(crate) fn verify(
    path: &Path,
    dataset: Option<&str>,
    compared_least: f64,
    document: &DocumentOptions,
) -> Outcome {
    let file = opened(path, dataset)?;
    guard::allow_memory(file.memory_needed()).run()?;
    let stop = stop_on_signal().run()?;
    let mut listing = RecordingListing::begin(document, HEAD).run()?;
    let mut share = Share::new("read", all_bytes(&file));
    let verified = file.verify(|done| {
        share.tell(Bytes(done));
        !stop.load(Ordering::Relaxed)
    });
    share.clear();
    let verified = verified.map_err(|why| Failure::Run(anyhow!(why)))?;
    let reading = LoneReading::of(&file, verified);
    listing.push(&reading).run()?;
    listing.end(&[]).run()?;
    match reading.complaint() {
        None => {
            let doubt = ComparedFrames::without_journal(reading.readable()).doubt(compared_least);
            undecided(&doubt.into_iter().collect::<Vec<_>>())
        }
        Some(faults) => Err(Failure::Run(anyhow!("the file is not whole: {faults}"))),
    }
}

const HEAD: ListingHead = ListingHead { title: "A file read back", origin: "" };

fn all_bytes(file: &LoneFile) -> Bytes {
    Bytes(file.claimed())
}

/// The directory that a file is in.
fn directory_of(file: &Path) -> PathBuf {
    let above = file.parent().filter(|above| !above.as_os_str().is_empty());
    above.map_or_else(|| ".".into(), Path::to_owned)
}

/// The most other datasets in the text.
const SHOWN: usize = 5;

/// The first of these names.
fn some_of(names: &[String]) -> String {
    let shown: Vec<_> = names.iter().take(SHOWN).map(in_line).collect();
    let more = names.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

/// The directory of a file, if a journal is in it.
fn journal_beside(path: &Path) -> Option<PathBuf> {
    (!journals_beside(path).is_empty()).then(|| directory_of(path))
}

/// The journals in the directory of a file, as `NAME.LANE`.
fn journals_beside(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory_of(path)).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let names =
        entries.unwrap_or_default().into_iter().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| Some(name.strip_suffix(".journal")?.to_owned())).collect()
}
