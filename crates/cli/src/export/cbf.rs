//! `nilometer export --format cbf`: writes each frame of a recording in HDF5 as a CBF file.

use std::{
    io::Write,
    ops::Range,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use anyhow::{Context, anyhow, ensure};
use nilometer_hdf5_recording::{RecordedPictures, picture_name};
use nilometer_model::{Bytes, FileSystemKind, Format};
use nilometer_recording::{reader::Recording, view::RecordingView};
use nilometer_report::in_line;
use nilometer_storage::new_file::NewFile;

use super::{Export, lacking::lacks_blocks, not_here};
use crate::{
    Blame, Failure, Outcome, describe::described_directory, share::Share, signals::stop_on_signal, tell,
};

/// The pictures that an export wrote, and the frames that it could not read.
#[derive(Debug, Default)]
struct WrittenPictures {
    first: Option<u64>,
    last: u64,
    count: u64,
    bytes: u64,
    unreadable: u64,
    why: Option<String>,
}

/// The frames of an export, and the directory of their files.
#[derive(Debug)]
struct PictureExport<'a> {
    to: &'a Path,
    shown: Range<u64>,
    /// Lines about frames that are not in the recording.
    absent: Vec<String>,
}

/// Exports the frames of a recording into a directory, a file each.
pub(super) fn export(export: &Export, whole: &RecordingView) -> Outcome {
    let to = directory(export).input()?;
    let stop = stop_on_signal().run()?;
    let shown = if whole.is_part() { whole.shown_frames() } else { 0..u64::MAX };
    let absent = not_here(whole, "in no file");
    let into = PictureExport { to, shown, absent };
    whole.recording(|recording| exported(recording, &into, &stop))?;
    lacks_blocks(whole)
}

fn exported(recording: &Recording, into: &PictureExport<'_>, stop: &AtomicBool) -> Outcome {
    let mut pictures = RecordedPictures::of(recording).map_err(|why| anyhow!(why)).input()?;
    let made = write(recording, &mut pictures, into, stop).run()?;
    tell::result(tell::visible(&summary(recording, &pictures, into, &made)));
    let Some(why) = made.why else { return Ok(()) };
    let count = made.unreadable;
    Err(Failure::Run(anyhow!("written without {count} frames that can't be read: {why}")))
}

/// The directory for the files. Refuses options that only one file has.
fn directory(export: &Export) -> anyhow::Result<&Path> {
    export.check_plain()?;
    let others = [("--verify", export.verify), ("--rate", export.rate.is_some())];
    if let Some((option, _)) = others.into_iter().find(|(_, given)| *given) {
        return Err(anyhow!(
            "{option}: not for --format cbf, which writes a file for each frame: leave it out"
        ));
    }
    let to = export.to.as_path();
    ensure!(to.is_dir(), "--to {}: name a directory that exists, for a CBF file of each frame", to.display());
    let description = described_directory(to)?;
    export.expect.map_or(Ok(()), |kind: FileSystemKind| description.expect_kind(kind))?;
    ensure!(
        description.writable,
        "{}: can't be written: name a directory that this user may write to",
        to.display()
    );
    Ok(to)
}

fn file_name(recording: &Recording, number: u64) -> String {
    format!("{}.{}", picture_name(recording.name(), number), Format::Cbf.suffix())
}

/// Writes the pictures, each under its name only when it is whole.
fn write(
    recording: &Recording,
    pictures: &mut RecordedPictures,
    into: &PictureExport<'_>,
    stop: &AtomicBool,
) -> anyhow::Result<WrittenPictures> {
    let PictureExport { to, shown, .. } = into;
    let frame_size = recording.head().frame_size;
    let mut made = WrittenPictures::default();
    let mut share = Share::new("written", Bytes(recording.index.expected() * frame_size));
    let mut frames = recording.frames();
    let mut file = Vec::new();
    for (number, place) in recording.index.frames.iter().filter(|(number, _)| shown.contains(number)) {
        ensure!(!stop.load(Ordering::Relaxed), "interrupted: {} files are written, and whole", made.count);
        share.tell(Bytes(number * frame_size));
        let frame = match frames.at(place) {
            Ok(frame) => frame,
            Err(error) => {
                made.unreadable += 1;
                made.why.get_or_insert_with(|| format!("frame {number}: {error}"));
                continue;
            }
        };
        file.clear();
        pictures.put(recording.name(), number, frame, &mut file);
        let name = file_name(recording, number);
        let new = NewFile::create(to, &name)?;
        new.file().write_all(&file).with_context(|| format!("can't write {name}"))?;
        new.finish(0o666).with_context(|| format!("can't name it {}", to.join(&name).display()))?;
        made.first.get_or_insert(number);
        made.last = number;
        made.count += 1;
        made.bytes += file.len() as u64;
    }
    share.clear();
    Ok(made)
}

fn summary(
    recording: &Recording,
    pictures: &RecordedPictures,
    into: &PictureExport<'_>,
    made: &WrittenPictures,
) -> String {
    let to = into.to;
    let path = |number| in_line(to.join(file_name(recording, number)).display());
    let mut lines = Vec::new();
    if let Some(first) = made.first {
        let [first, last] = [first, made.last].map(path);
        lines.push(format!("written     {} CBF files, {}: {first} to {last}", made.count, Bytes(made.bytes)));
    }
    let header = pictures.header();
    let rotation = match (pictures.axis(), header.start_angle, header.angle_increment) {
        (Some(axis), Some(start), Some(step)) => {
            format!("{} from {} degrees, {} degrees a picture", axis.name(), start.degrees(), step.degrees())
        }
        _ => "none is stated".into(),
    };
    lines.push(format!("rotation    {rotation}"));
    lines.extend(into.absent.iter().cloned());
    lines.join("\n") + "\n"
}
