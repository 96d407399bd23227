//! `nilometer export` of an HDF5 file without a journal: its frames as plain bytes, or another file with
//! other chunks.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use anyhow::{Context, anyhow, ensure};
use nilometer_hdf5_recording::lone_file::{
    BrokenObject, ChunkPlan, LoneFile, LoneVerified, PlainCopy, RewriteWishes, checksum_of_copy,
};
use nilometer_model::{ByteRate, Bytes};
use nilometer_report::in_line;
use nilometer_storage::new_file::NewFile;

use super::{
    all_bytes, directory_of, guard, opened,
    reading::{BROKEN_SHOWN, LoneReading, by_times},
};
use crate::{
    Blame, Failure, Outcome, recording_listing::RecordingResult, recording_text::facts_lines, share::Share,
    signals::stop_on_signal, tell,
};

/// The options of an export of one file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoneExport<'a> {
    pub(crate) dataset: Option<&'a str>,
    pub(crate) to: &'a Path,
    /// The highest rate of writing.
    pub(crate) rate: Option<ByteRate>,
    /// True if the export reads the file back, and requires all frames in it.
    pub(crate) verify: bool,
    /// True if the export fills all missing frames, even if the file claims very many.
    pub(crate) fill_missing: bool,
    /// The chunks of another HDF5 file; `None` for plain bytes.
    pub(crate) rewriting: Option<RewriteWishes>,
}

/// Writes the frames of a file into one new file, one after the other, or in other chunks.
pub(crate) fn export(path: &Path, asked: LoneExport<'_>) -> Outcome {
    ensure_rate(asked.rate).input()?;
    let file = opened(path, asked.dataset)?;
    let plan = asked.rewriting.map(|wishes| file.chunk_plan(wishes)).transpose();
    let plan = plan.map_err(|why| anyhow!("{}: {why}", path.display())).input()?;
    bound(&file, &asked).input()?;
    let memory = plan.as_ref().map_or(0, |plan| file.memory_to_rewrite(plan));
    guard::allow_memory(memory.saturating_add(file.memory_needed())).run()?;
    let suffix = if plan.is_some() { "rewritten.h5" } else { "raw" };
    let place = NewPlace::of(path, asked.to, suffix).input()?;
    let stop = stop_on_signal().run()?;
    let shown = place.path();
    let cant_make = || format!("can't make {}", shown.display());
    let new = NewFile::create(&place.directory, &place.name).with_context(cant_make).run()?;
    let making = Making { file: &file, asked, new: &new, place: &place, stop: &stop };
    let made = match &plan {
        Some(plan) => making.rewritten(plan),
        None => making.plain(),
    };
    let Made { verified, text, left_out } = made.run()?;
    // The readers of the source may read the copy.
    let access = fs::metadata(path).run()?.mode() & 0o666;
    new.finish(access).with_context(|| format!("can't name it {}", shown.display())).run()?;
    let reading = LoneReading::of(&file, verified);
    let lines: String = facts_lines(reading.findings().facts).map(|line| line + "\n").collect();
    tell::result(text + &lines);
    whole(&reading, left_out, asked.verify)
}

/// Limits the output by the size of the file.
fn bound(file: &LoneFile, asked: &LoneExport<'_>) -> anyhow::Result<()> {
    let path = file.path().display();
    if !asked.fill_missing {
        file.check_claim().map_err(|why| {
            anyhow!("{path}: {why}: --fill-missing writes the fill value for all that is missing")
        })?;
        let others = fs::metadata(file.path())?.len().saturating_mul(OTHERS);
        let frames = file.claimed().saturating_mul(PADDED);
        guard::limit_output(frames.saturating_add(others).saturating_add(METADATA))?;
    }
    Ok(())
}

/// Padding fills chunks at the edges of a dataset: at most this many times the bytes of its frames are
/// written.
const PADDED: u64 = 16;
/// Other objects that go into another HDF5 file take at most `OTHERS` times the bytes of the source. The
/// metadata of the new chunks take at most `METADATA` bytes.
const OTHERS: u64 = 64;
const METADATA: u64 = 1 << 30;

/// A file in the making.
struct Making<'a> {
    file: &'a LoneFile,
    asked: LoneExport<'a>,
    new: &'a NewFile,
    place: &'a NewPlace,
    stop: &'a AtomicBool,
}

/// A complete file that does not have its name yet.
struct Made {
    verified: LoneVerified,
    /// The results, one line each.
    text: String,
    /// The number of objects and attributes that were not copied.
    left_out: usize,
}

impl Making<'_> {
    /// Runs the work until a signal ends it, and shows its progress.
    fn shown<T>(&self, what: &'static str, work: impl FnOnce(&mut dyn FnMut(u64) -> bool) -> T) -> T {
        let mut share = Share::new(what, all_bytes(self.file));
        let done = work(&mut |bytes| {
            share.tell(Bytes(bytes));
            !self.stop.load(Ordering::Relaxed)
        });
        share.clear();
        done
    }

    fn plain(&self) -> anyhow::Result<Made> {
        let LoneExport { rate, verify, .. } = self.asked;
        let copy = self.shown("written", |go_on| self.file.write_frames(&mut self.new.file(), rate, go_on));
        let PlainCopy { verified, bytes, checksum } = copy.map_err(anyhow::Error::msg)?;
        let mut text = format!(
            "written     {}, {}\nchecksum    CRC-32 {checksum:08x}\n",
            in_line(self.place.path().display()),
            Bytes(bytes)
        );
        if verify {
            let read = self.shown("read back", |go_on| checksum_of_copy(self.new.file(), go_on));
            alike(checksum, read.context("can't read it back")?)?;
            text.push_str("verified    read back: its checksum is the same\n");
        }
        Ok(Made { verified, text, left_out: 0 })
    }

    fn rewritten(&self, plan: &ChunkPlan) -> anyhow::Result<Made> {
        let LoneExport { rate, verify, .. } = self.asked;
        let made = self.shown("written", |go_on| self.file.rewrite(plan, self.new.file(), rate, go_on));
        let made = made.map_err(anyhow::Error::msg)?;
        let mut lines = vec![
            format!("written     {}", in_line(self.place.path().display())),
            format!(
                "in chunks   {} of {}, compressed as {}: {}, {:.2} times smaller",
                made.chunks,
                by_times(&plan.chunk),
                plan.compression.name(),
                Bytes(made.stored),
                made.bytes as f64 / made.stored.max(1) as f64
            ),
            format!("checksum    CRC-32 {:08x}, of its frames", made.checksum),
        ];
        lines.extend(
            made.left_out
                .iter()
                .take(BROKEN_SHOWN)
                .map(|BrokenObject { path, why }| format!("not copied  {}: {}", in_line(path), in_line(why))),
        );
        let unnamed = made.left_out.len().saturating_sub(BROKEN_SHOWN);
        lines.extend((unnamed > 0).then(|| format!("not copied  {unnamed} more")));
        if verify {
            let path = self.place.directory.join(self.new.temporary());
            let copy = LoneFile::open(&path, Some(self.file.dataset())).context("can't read it back")?;
            guard::allow_memory(copy.memory_needed())?;
            let read = self.shown("read back", |go_on| copy.checksum_of_frames(self.new.file(), go_on));
            alike(made.checksum, read.map_err(anyhow::Error::msg).context("can't read it back")?)?;
            lines.push("verified    read back: the checksum of its frames is the same".into());
        }
        let text = lines.join("\n") + "\n";
        Ok(Made { verified: made.verified, text, left_out: made.left_out.len() })
    }
}

/// Checks that the same bytes come back.
fn alike(written: u32, read: u32) -> anyhow::Result<()> {
    ensure!(
        written == read,
        "it differs when read back (CRC-32 {read:08x} in place of {written:08x}); export removed it"
    );
    Ok(())
}

fn ensure_rate(rate: Option<ByteRate>) -> anyhow::Result<()> {
    ensure!(rate.is_none_or(|rate| rate.0 > 0.0), "--rate 0: write more than 0");
    Ok(())
}

/// Turns missing parts into a failure.
fn whole(reading: &LoneReading, left_out: usize, asked: bool) -> Outcome {
    if reading.complaint().is_none() && left_out == 0 {
        return Ok(());
    }
    let filled = if reading.has_all_frames() {
        "all frames of this dataset are there"
    } else {
        "the fill value of the dataset stands for frames that are not there"
    };
    let mut why = Vec::new();
    if let Some(faults) = reading.complaint() {
        why.push(format!("the file is not whole: {faults}; {filled}"));
    }
    if left_out > 0 {
        why.push(format!("{left_out} objects or attributes are not copied"));
    }
    let why = anyhow!("written, and {}", why.join("; "));
    Err(if asked { Failure::NotWhole(why) } else { Failure::Run(why) })
}

/// The place of the new file.
struct NewPlace {
    directory: PathBuf,
    name: String,
}

impl NewPlace {
    /// The place for a copy of a file. A name made here gets this suffix.
    fn of(file: &Path, to: &Path, suffix: &str) -> anyhow::Result<Self> {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let place = if to.is_dir() { to.join(format!("{stem}.{suffix}")) } else { to.to_owned() };
        ensure!(place.symlink_metadata().is_err(), "{} exists: name a new file", place.display());
        let name = place.file_name().and_then(|name| name.to_str());
        let name = name.with_context(|| format!("--to {}: name a file or a directory", place.display()))?;
        Ok(NewPlace { directory: directory_of(&place), name: name.into() })
    }

    fn path(&self) -> PathBuf {
        self.directory.join(&self.name)
    }
}
