//! `nilometer export`: writes a recording into one file, or onto a central store.

mod cbf;
mod hdf5;
mod headers;
mod lacking;

use std::{
    fs::File,
    io,
    ops::ControlFlow,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::{Context, anyhow, ensure};
use clap::{Args, builder::PossibleValuesParser};
use nilometer_acquisition::export::{self, DamagedBlocks, ExportFault, ExportReadBack, Exporting, SLOTS};
use nilometer_hdf5_recording::lone_file::RewriteWishes;
use nilometer_model::{ByteRate, Bytes, EngineKind, FileSystemKind, TargetDescription};
use nilometer_recording::{
    OVERWRITTEN,
    reader::{Recording, Trust},
    view::{Extent, RecordingView},
};
use nilometer_report::in_line;
use nilometer_storage::{
    Clock, Drive, Engine,
    engine::{EngineError, Options, on_directory},
    new_file::{NewFile, partial_files, remove_dead},
};

use self::hdf5::Hdf5Options;
use crate::{
    Blame, Failure, Outcome,
    describe::{described_directory, directory_of},
    foreign_mode::ForeignMode,
    foreign_text::ForeignOrigin,
    lone_file::{self, LoneExport},
    part::{PartOptions, part_line},
    recording_text::{absent_journals, facts_lines, ranges, unreadable, what},
    share::Share,
    signals::stop_on_signal,
    stored_at::{refuse_missing, refuse_urls},
    tell,
};

/// Export a recording into one new file, with all frames in order. In place of missing frames, it writes
/// frames marked invalid; with --format hdf5, the file is HDF5
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The directories of the recording, those of all lanes; an HDF5 file without a journal; or a recording of
    /// another program, as for scan
    #[arg(required = true)]
    directories: Vec<PathBuf>,
    /// Write this new file, or a file with the recording's name in this directory
    #[arg(long, value_name = "FILE|DIRECTORY")]
    pub(crate) to: PathBuf,
    /// Refuse another file system for the file, such as the one below a missing mount (ext4, nfs, lustre and
    /// others; an unknown word lists them)
    #[arg(long, value_name = "TYPE")]
    expect: Option<FileSystemKind>,
    /// Write the bytes of all frames one after the other, or HDF5, or a CBF file for each frame of a recording in
    /// HDF5. In HDF5 each frame keeps its number, and missing ones are blank [default: plain]
    #[arg(long, value_parser = PossibleValuesParser::new(FORMS))]
    format: Option<String>,
    #[command(flatten)]
    part: PartOptions,
    #[command(flatten)]
    foreign: ForeignMode,
    /// Write at most at this rate
    #[arg(long)]
    rate: Option<ByteRate>,
    /// Read the file back: every due frame must be there, and agree with its checksum or its seed [exit code
    /// 5 if not]
    #[arg(long)]
    verify: bool,
    /// Write a table in CSV of the packets' headers that the recorder kept, a row for each packet, and no frames
    #[arg(long, conflicts_with_all = ["format", "rate", "verify", "dataset", "fill_missing"])]
    headers: bool,
    /// Read frames from this dataset of an HDF5 file without a journal [default: /entry/data/data, else the
    /// one with the most dimensions]
    #[arg(long, value_name = "PATH")]
    dataset: Option<String>,
    /// Export an HDF5 file without a journal even if it claims far more frames than it has. Each missing one
    /// becomes the fill value
    #[arg(long)]
    fill_missing: bool,
    #[command(flatten)]
    hdf5: Hdf5Options,
}

/// The forms of an export.
const FORMS: [&str; 3] = ["plain", HDF5, CBF];
const HDF5: &str = "hdf5";
const CBF: &str = "cbf";
/// Reasons why a part can't be exported.
const HEADERS_OF_LONE_FILE: &str = "only a recording with a journal has headers of packets: leave it out";
const PART_OF_LONE_FILE: &str = "an HDF5 file without a journal has no times: leave it out";
const PART_IN_HDF5: &str = "only for a plain export, because frames in HDF5 keep their numbers: leave it out, or write --format plain";

/// A file's directory and name.
struct NamedFile {
    directory: PathBuf,
    name: String,
}

impl NamedFile {
    /// Describes the storage of the directory, and refuses another kind than the expected one.
    fn described(&self, expected: Option<FileSystemKind>) -> anyhow::Result<TargetDescription> {
        let description = described_directory(&self.directory)?;
        expected.map_or(Ok(()), |kind| description.expect_kind(kind))?;
        Ok(description)
    }
}

/// The number of writes in flight.
const DEPTH: u32 = 4;

impl Export {
    /// The file that the command reads, if the argument is no recording.
    pub(crate) fn lone_file(&self) -> Option<&Path> {
        self.foreign.lone_file(&self.directories)
    }

    pub(crate) fn execute(&self) -> Outcome {
        refuse_missing(&self.directories).input()?;
        refuse_urls([&self.to]).input()?;
        if let Some(file) = self.lone_file() {
            if self.format.as_deref() == Some(CBF) {
                let why = "only recordings with a journal become CBF files: write --format hdf5";
                return Err(anyhow!("--format cbf: {}: {why}", file.display())).input();
            }
            if self.headers {
                return Err(anyhow!("--headers: {}: {HEADERS_OF_LONE_FILE}", file.display())).input();
            }
            self.part.refuse(PART_OF_LONE_FILE).input()?;
            if self.expect.is_some() {
                self.named(String::new).and_then(|named| named.described(self.expect)).input()?;
            }
            let asked = LoneExport {
                dataset: self.dataset.as_deref(),
                to: &self.to,
                rate: self.rate,
                verify: self.verify,
                fill_missing: self.fill_missing,
                rewriting: self.rewriting().input()?,
            };
            return lone_file::export(file, asked);
        }
        lone_file::check_dataset(self.dataset.as_ref()).input()?;
        lone_file::check_fill_missing(self.fill_missing).input()?;
        lone_file::refuse_parts(&self.directories).input()?;
        let recording =
            self.foreign.stored_at(&self.directories).input()?.open(Trust::Acknowledged).input()?;
        let whole = self.part.of(RecordingView::new(recording, Extent::All)).input()?;
        if whole.recording(|recording| recording.foreign().is_some()) {
            self.check_foreign().input()?;
        }
        if self.format.as_deref() == Some(HDF5) {
            self.part.refuse(PART_IN_HDF5).input()?;
            return hdf5::export(self, whole);
        }
        if self.format.as_deref() == Some(CBF) {
            return cbf::export(self, &whole);
        }
        if self.headers {
            return headers::export(self, &whole);
        }
        let named = self.place(&whole, whole.format().name()).input()?;
        let description = named.described(self.expect).input()?;
        let name = named.name;
        self.check_plain().input()?;
        self.check(&whole, &description, &name, Bytes(whole.length())).input()?;
        let path = directory_of(&description).join(&name);
        let stop = stop_on_signal().run()?;
        let cant_make = || format!("can't make {}", path.display());
        let new = NewFile::create(directory_of(&description), &name).with_context(cant_make).run()?;
        let checksum = self.write(&whole, &new, &description, &stop).run()?;
        let copied = if self.verify { Some(read_back(&whole, &new, checksum, &stop).run()?) } else { None };
        let group = new.file().metadata().run()?.gid();
        new.finish(whole.access().mode_in_group(group))
            .with_context(|| format!("can't name it {}", path.display()))
            .run()?;
        tell::result(tell::visible(&summary(&whole, checksum, &path, copied.as_ref())));
        not_whole(copied.as_ref())?;
        lacking::unread(&whole)?;
        lacking::lacks_blocks(&whole)?;
        lacking::left_out(&whole)
    }

    /// Writes the whole file, and returns its checksum.
    fn write(
        &self,
        whole: &Arc<RecordingView>,
        new: &NewFile,
        description: &TargetDescription,
        stop: &Arc<AtomicBool>,
    ) -> anyhow::Result<u32> {
        let exporting = Exporting {
            name: new.temporary().to_owned(),
            direct: description.direct_alignment().is_some(),
            at_most: self.rate,
            depth: DEPTH as usize,
        };
        let mut engine = engine(description)?;
        let mut export = export::Export::new(whole.clone(), exporting, stop.clone(), engine.waker())?;
        let mut share = Share::new("written", Bytes(whole.length()));
        drive(&mut export, engine.as_mut(), &mut share);
        share.clear();
        ended(&export, description)?;
        Ok(export.checksum())
    }

    /// The directory and name of the file. A name made here gets this suffix.
    fn place(&self, whole: &RecordingView, suffix: &str) -> anyhow::Result<NamedFile> {
        self.named(|| format!("{}.{suffix}", whole.name()))
    }

    /// The file of `--to`; if that is a directory, a file in it with the name from `given`.
    fn named(&self, given: impl FnOnce() -> String) -> anyhow::Result<NamedFile> {
        if self.to.is_dir() {
            return Ok(NamedFile { directory: self.to.clone(), name: given() });
        }
        let name = self.to.file_name().and_then(|name| name.to_str());
        let name = name.with_context(|| format!("--to {}: name a file or a directory", self.to.display()))?;
        let above = self.to.parent().filter(|above| !above.as_os_str().is_empty());
        let directory = above.map_or_else(|| ".".into(), Path::to_owned);
        Ok(NamedFile { directory, name: name.into() })
    }

    /// The wishes for a file without a journal, if the export makes another HDF5 file of it.
    fn rewriting(&self) -> anyhow::Result<Option<RewriteWishes>> {
        if self.format.as_deref() == Some(HDF5) {
            return self.hdf5.of_lone_file().map(Some);
        }
        self.check_plain().map(|()| None)
    }

    /// Refuses other forms than a plain file for a recording without a journal.
    fn check_foreign(&self) -> anyhow::Result<()> {
        match self.format.as_deref() {
            None | Some("plain") => Ok(()),
            Some(format) => Err(anyhow!(
                "--format {format}: only for a recording with a journal: write --format plain, or leave it out"
            )),
        }
    }

    /// Refuses options of HDF5 in a plain export.
    fn check_plain(&self) -> anyhow::Result<()> {
        match self.hdf5.given() {
            Some(option) => {
                Err(anyhow!("{option}: only for a file of HDF5: write --format hdf5, or leave it out"))
            }
            None => Ok(()),
        }
    }

    /// Checks that the file may be made, and that its `needed` bytes fit.
    fn check(
        &self,
        whole: &RecordingView,
        description: &TargetDescription,
        name: &str,
        needed: Bytes,
    ) -> anyhow::Result<()> {
        let path = directory_of(description).join(name);
        ensure!(path.symlink_metadata().is_err(), "{} exists: name a new file", path.display());
        ensure!(
            description.writable,
            "{}: can't be written: name a directory that this user may write to",
            directory_of(description).display()
        );
        ensure!(self.rate.is_none_or(|rate| rate.0 > 0.0), "--rate 0: write more than 0");
        let free = description.space.free;
        ensure!(whole.length() > 0, "{}: nothing is recorded there yet", whole.name());
        remove_dead_exports(directory_of(description), name);
        let left = partial_files(directory_of(description), name);
        if !left.is_empty() {
            tell::note(format_args!(
                "in {}, {} is of an export that was killed, or that still writes",
                directory_of(description).display(),
                left.join(" and ")
            ));
        }
        ensure!(
            needed <= free,
            "{} has {free} free, and the recording needs {needed}",
            directory_of(description).display()
        );
        Ok(())
    }
}

/// Removes the partial files of killed exports with this name.
pub(crate) fn remove_dead_exports(directory: &Path, name: &str) {
    for path in remove_dead(directory, Some(name)).removed {
        tell::note(format_args!("removed {}, of an export that was killed", path.display()));
    }
}

/// The engine that writes into the directory.
fn engine(description: &TargetDescription) -> anyhow::Result<Box<dyn Engine>> {
    let directory = || File::open(directory_of(description)).context("can't open the directory");
    let kind = description.deep_engine();
    let options = Options { kind, depth: DEPTH, slots: SLOTS, clock: Clock::start() };
    match on_directory(std::os::fd::OwnedFd::from(directory()?), &options) {
        Err(EngineError::NotPermitted { .. }) => {
            let options = Options { kind: EngineKind::Pool, ..options };
            Ok(on_directory(std::os::fd::OwnedFd::from(directory()?), &options)?)
        }
        engine => Ok(engine?),
    }
}

/// Writes the file, as far as possible.
fn drive(export: &mut export::Export, engine: &mut dyn Engine, share: &mut Share) {
    let mut written = 0;
    Drive::new(export, engine).run_while(|completion| {
        if completion.operation.kind.is_data() {
            written += u64::from(completion.result.unwrap_or(0));
            share.tell(Bytes(written));
        }
        ControlFlow::Continue(())
    });
}

/// Checks that the whole file is written.
fn ended(export: &export::Export, description: &TargetDescription) -> anyhow::Result<()> {
    let path = directory_of(description).display();
    match export.fault() {
        _ if export.is_whole() => Ok(()),
        _ if export.is_overwritten() => Err(anyhow!("nothing is left in {path}: {OVERWRITTEN}")),
        Some(ExportFault::Destination(errno)) => {
            Err(anyhow!("can't write to {path}, and nothing is left there: {errno}"))
        }
        Some(fault) => Err(anyhow!("nothing is left in {path}: {fault}")),
        None => Err(anyhow!("interrupted: nothing is left in {path}")),
    }
}

fn summary(whole: &RecordingView, checksum: u32, path: &Path, copied: Option<&ExportReadBack>) -> String {
    let mut lines = vec![format!("written     {}", in_line(path.display()))];
    lines.extend(part_line(whole).map(|part| format!("part        {part}")));
    lines.extend([
        format!(
            "frames      {} of {}, {} in all",
            whole.frames(),
            Bytes(whole.frame_size()),
            Bytes(whole.length())
        ),
        format!("checksum    CRC-32 {checksum:08x}"),
    ]);
    lines.extend(not_here(whole, "marked as invalid"));
    lines.extend(unreadable_line(whole));
    let origin = whole.recording(ForeignOrigin::of);
    lines.extend(origin.iter().flat_map(|origin| facts_lines(origin.named_facts())));
    lines.extend(
        copied.into_iter().flat_map(|copied| whole.recording(|recording| compared(recording, copied))),
    );
    lines.join("\n") + "\n"
}

/// The line about blocks that should be there and can't be read; `None` if all can.
fn unreadable_line(whole: &RecordingView) -> Option<String> {
    let count = whole.faulted();
    let all = whole.due_blocks();
    let what = whole.recording(what);
    (count > 0).then(|| format!("unreadable  {count} of {all} {what} are marked as invalid"))
}

/// The frames that the recording lacks, one line each, with the stand-ins in the file.
fn not_here(whole: &RecordingView, stand_in: &str) -> Vec<String> {
    let missing = whole.missing_blocks();
    let all = whole.due_blocks();
    whole.recording(|recording| absent(recording, &missing, all, stand_in))
}

fn absent(recording: &Recording, missing: &[(u64, u64)], all: u64, stand_in: &str) -> Vec<String> {
    let index = &recording.index;
    let what = what(recording);
    let absent = absent_journals(recording);
    let mut lines = Vec::new();
    if !missing.is_empty() {
        let count: u64 = missing.iter().map(|(_, count)| count).sum();
        lines.push(format!(
            "missing     {count} of {all} {what} are not here and are {stand_in}: {}",
            ranges(missing)
        ));
    }
    if !absent.is_empty() {
        lines.push(format!("lanes       {} of {}{absent}", index.heads.len(), recording.head().lanes));
    }
    if index.due.is_none() {
        lines.push(format!("not ended   more {what} may be missing after the last of these"));
    }
    lines.extend(facts_lines(unreadable(&recording.unreadable)));
    lines
}

/// The results of reading back, one line each.
fn compared(recording: &Recording, copied: &ExportReadBack) -> Vec<String> {
    let what = what(recording);
    let checked = copied.right - copied.unchecked;
    let by = if copied.made_again {
        "equal those of the simulated instrument"
    } else {
        "are right by their checksums"
    };
    let unchecked = match copied.unchecked {
        0 => String::new(),
        count => format!(", {count} have no checksum and are as they were read"),
    };
    let mut lines =
        vec![format!("verified    read back: its checksum is the same; {checked} {what} {by}{unchecked}")];
    if let Some(why) = &copied.not_made_again {
        lines.push(format!("simulated   frames can't be made again: {why}"));
    }
    let DamagedBlocks { count, first } = &copied.damaged;
    let one = what.trim_end_matches('s');
    lines.extend(first.iter().map(|(number, why)| format!("damaged     {one} {number}: {why}")));
    let more = count - first.len() as u64;
    if more > 0 {
        lines.push(format!("            and {more} more"));
    }
    lines
}

/// The reason why the file is incomplete, if `--verify` found one.
fn not_whole(copied: Option<&ExportReadBack>) -> Outcome {
    let Some(copied) = copied.filter(|copied| !copied.is_whole()) else { return Ok(()) };
    let missing: u64 = copied.missing.iter().map(|(_, count)| count).sum();
    let mut why = Vec::new();
    if missing > 0 {
        why.push(format!("{missing} are missing"));
    }
    if copied.damaged.count > 0 {
        why.push(format!("{} are damaged", copied.damaged.count));
    }
    if !copied.ended {
        why.push("it did not end in order, and frames after the last one may be missing".into());
    }
    let why = why.join("; ");
    Err(Failure::NotWhole(anyhow!("written, but without parts of the recording: {why}; keep the recording")))
}

/// Reads the file back from the storage, before it gets its name.
fn read_back(
    whole: &RecordingView,
    new: &NewFile,
    checksum: u32,
    stop: &AtomicBool,
) -> anyhow::Result<ExportReadBack> {
    // The cache may differ from the storage.
    rustix::fs::fadvise(new.file(), 0, None, rustix::fs::Advice::DontNeed)?;
    let mut share = Share::new("read back", Bytes(whole.length()));
    let copied = export::read_back(whole, new.file(), |done| {
        share.tell(Bytes(done));
        let go_on = !stop.load(Ordering::Relaxed);
        go_on.then_some(()).ok_or_else(|| io::Error::other("interrupted: nothing is left there"))
    });
    share.clear();
    let copied = copied.context("can't read it back")?;
    ensure!(
        copied.checksum == checksum,
        "it differs when read back (CRC-32 {:08x} in place of {checksum:08x}); export removed it",
        copied.checksum
    );
    Ok(copied)
}
