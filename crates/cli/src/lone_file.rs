//! A file of HDF5 without a journal, read by `verify` and `export`: one that an export made, or any other program.

use std::{
    fs, io,
    io::Write,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::atomic::Ordering,
};

use anyhow::{Context, anyhow, ensure};
use nilometer_acquisition::lone_file::{LoneFile, LoneVerified};
use nilometer_model::Bytes;
use nilometer_recording::Ranges;
use nilometer_storage::new_file::NewFile;

use crate::{
    Blame, Failure, Outcome,
    recording_text::{in_line, ranges},
    share::Share,
    signals::stop_on_signal,
    tell,
};

/// The only path that was named, if it is a file.
pub(crate) fn named_file(paths: &[PathBuf]) -> Option<&Path> {
    match paths {
        [only] if only.is_file() => Some(only),
        _ => None,
    }
}

/// Refuses the name of a dataset where directories of a recording are named.
pub(crate) fn check_dataset(dataset: Option<&String>) -> anyhow::Result<()> {
    ensure!(
        dataset.is_none(),
        "--dataset: only for a file of HDF5 without a journal: name the file, or leave it out"
    );
    Ok(())
}

/// Reads every chunk of a file, and names what is missing or can't be read.
pub(crate) fn verify(path: &Path, dataset: Option<&str>) -> Outcome {
    let file = LoneFile::open(path, dataset).input()?;
    let stop = stop_on_signal().run()?;
    let mut share = Share::new("read", all_bytes(&file));
    let verified = file.verify(|done| {
        share.tell(Bytes(done));
        !stop.load(Ordering::Relaxed)
    });
    share.clear();
    let verified = verified.map_err(|why| Failure::Run(anyhow!(why)))?;
    tell::result(tell::visible(&told(&file, &verified)));
    if verified.is_whole() {
        return Ok(());
    }
    Err(Failure::Run(anyhow!("the file is not whole: {}", faults(&verified))))
}

/// Writes the frames of a file into one new file, one behind the other.
pub(crate) fn export(path: &Path, dataset: Option<&str>, to: &Path) -> Outcome {
    let file = LoneFile::open(path, dataset).input()?;
    let place = place(path, to).input()?;
    let stop = stop_on_signal().run()?;
    let shown = place.path();
    let cant_make = || format!("can't make {}", shown.display());
    let new = NewFile::create(&place.directory, &place.name).with_context(cant_make).run()?;
    let mut share = Share::new("written", all_bytes(&file));
    let mut written = 0;
    let verified = file.each_slab(|bytes| {
        if stop.load(Ordering::Relaxed) {
            return Err("interrupted: nothing is left there".into());
        }
        new.file().write_all(bytes).map_err(|error| format!("can't write it: {error}"))?;
        written += bytes.len() as u64;
        share.tell(Bytes(written));
        Ok(())
    });
    share.clear();
    let verified = verified.map_err(|why| Failure::Run(anyhow!(why)))?;
    // Who may read what it is made of may read it.
    let mode = fs::metadata(path).run()?.mode() & 0o666;
    new.finish(mode).with_context(|| format!("can't name it {}", shown.display())).run()?;
    let mut text = format!("written     {}, {}\n", in_line(shown.display()), Bytes(written));
    text.push_str(&told(&file, &verified));
    tell::result(tell::visible(&text));
    if verified.is_whole() {
        return Ok(());
    }
    let filled = "the fill value of the dataset stands for them";
    Err(Failure::Run(anyhow!("written, and not whole: {}; {filled}", faults(&verified))))
}

fn all_bytes(file: &LoneFile) -> Bytes {
    Bytes(file.frames().saturating_mul(file.frame_size()))
}

/// The file that is made.
struct NewPlace {
    directory: PathBuf,
    name: String,
}

impl NewPlace {
    fn path(&self) -> PathBuf {
        self.directory.join(&self.name)
    }
}

fn place(of: &Path, to: &Path) -> anyhow::Result<NewPlace> {
    let stem = of.file_stem().unwrap_or_default().to_string_lossy();
    let place = if to.is_dir() { to.join(format!("{stem}.raw")) } else { to.to_owned() };
    ensure!(place.symlink_metadata().is_err(), "{} exists: name a new file", place.display());
    let name = place.file_name().and_then(|name| name.to_str());
    let name = name.with_context(|| format!("--to {}: name a file or a directory", place.display()))?;
    Ok(NewPlace { directory: directory_of(&place), name: name.into() })
}

/// The directory that a file is in.
fn directory_of(file: &Path) -> PathBuf {
    let above = file.parent().filter(|above| !above.as_os_str().is_empty());
    above.map_or_else(|| ".".into(), Path::to_owned)
}

/// What there is, a line each.
fn told(file: &LoneFile, verified: &LoneVerified) -> String {
    let shape = file.shape();
    let right = file.frames() - united(&[&verified.missing, &verified.damaged]);
    let filters: Vec<_> = shape.filters.iter().map(|filter| filter.number.to_string()).collect();
    let filters =
        if filters.is_empty() { "no filter".into() } else { format!("filter {}", filters.join(", ")) };
    let mut lines = vec![
        format!("file        {}", in_line(file.path().display())),
        format!("dataset     {}: {} of {}", in_line(file.dataset()), by_times(&shape.dimensions), shape.kind),
    ];
    lines.push(match &shape.chunk {
        Some(chunk) => format!(
            "chunks      {} of {}, each {}, {filters}",
            verified.chunks,
            file.chunks_due(),
            by_times(chunk)
        ),
        None => "chunks      none: it is stored in one piece".into(),
    });
    lines.push(format!(
        "readable    {right} of {} frames of {}, unpacked; without a journal there are no checksums to compare them with",
        file.frames(),
        Bytes(file.frame_size())
    ));
    lines.push(format!("missing     {}", counted(&verified.missing)));
    if !verified.not_whole.is_empty() {
        lines.push(format!("not whole   {}, as the recorder noted", counted(&verified.not_whole)));
    }
    for damage in &verified.damages {
        let at = by_commas(&damage.begin);
        lines.push(format!(
            "damaged     chunk at ({at}), frame {} on: {}",
            damage.frame,
            in_line(&damage.why)
        ));
    }
    let unnamed = verified.damaged_chunks - verified.damages.len() as u64;
    lines.extend((unnamed > 0).then(|| format!("damaged     {unnamed} chunks more")));
    if !verified.damaged.is_empty() {
        lines.push(format!("damaged     {}", counted(&verified.damaged)));
    }
    let others: Vec<_> = file.others().iter().take(SHOWN).map(in_line).collect();
    if !others.is_empty() {
        let more = file.others().len().saturating_sub(SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        lines.push(format!("not read    {}{more}: --dataset names another", others.join(", ")));
    }
    lines.extend(journal_beside(file.path()).map(|directory| {
        format!("journal     beside it is one: name {} to compare with it", in_line(directory.display()))
    }));
    lines.join("\n") + "\n"
}

/// As many other datasets are named.
const SHOWN: usize = 5;

/// The directory of a file, if a journal is in it.
fn journal_beside(path: &Path) -> Option<PathBuf> {
    let directory = directory_of(path);
    let entries = fs::read_dir(&directory).and_then(Iterator::collect::<io::Result<Vec<_>>>).ok()?;
    let is_journal =
        |name: &std::ffi::OsStr| Path::new(name).extension().is_some_and(|kind| kind == "journal");
    entries.iter().any(|entry| is_journal(&entry.file_name())).then_some(directory)
}

fn united(all: &[&Ranges]) -> u64 {
    let mut one = Ranges::default();
    for range in all.iter().flat_map(|ranges| ranges.iter()) {
        one.extend(range);
    }
    one.count()
}

fn counted(frames: &Ranges) -> String {
    if frames.is_empty() {
        return "none".into();
    }
    let named: Vec<_> = frames.iter().map(|range| (range.start, range.end - range.start)).collect();
    format!("{} frames: {}", frames.count(), ranges(&named))
}

fn faults(verified: &LoneVerified) -> String {
    let counts = [(&verified.missing, "missing"), (&verified.damaged, "damaged")];
    let words = counts.into_iter().filter(|(frames, _)| !frames.is_empty());
    words.map(|(frames, what)| format!("{} frames are {what}", frames.count())).collect::<Vec<_>>().join("; ")
}

fn by_times(sides: &[u64]) -> String {
    sides.iter().map(u64::to_string).collect::<Vec<_>>().join(" x ")
}

fn by_commas(place: &[u64]) -> String {
    place.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}
