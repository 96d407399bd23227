//! `nilometer export --format hdf5`: a recording into one file of HDF5, through a recorder that gets its frames from there.

use std::{
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::{Context, anyhow, ensure};
use clap::Args;
use nilometer_acquisition::{
    Ending, Feed, LayoutOptions, Outcome as Recorded, Recorder, RecordingPlan, Setup, StoredFrames,
    export::{DamagedFrames, FramesRead, RecordedFrames, StackFault, read_back_stacks},
    sink::{LaneOptions, RawLayout, lanes_of},
    suited_engine,
};
use nilometer_hdf5_recording::{ExportWishes, Hdf5Contents, index_faults, lone_file::RewriteWishes};
use nilometer_model::{
    ByteRate, Bytes, ChunkShape, Coldness, Format, FrameCompression, Nanos, Storing, TargetDescription,
};
use nilometer_recording::{
    OVERWRITTEN, Verified,
    journal::FrameExtent,
    reader::{Recording, Trust},
    verify_while,
    view::{Extent, RecordingView},
};
use nilometer_service::compression_parser;
use nilometer_storage::{
    Clock, PATIENCE, Target, in_time,
    new_file::partial_directory,
    process::processors,
    target::{Directory, KeptDirectory, run_id},
    user_file,
};

use super::{Export, not_here};
use crate::{
    Blame, Failure, Outcome,
    describe::directory_of,
    recording_text::{in_line, ranges, what},
    share::Share,
    signals::stop_on_signal,
    tell,
};

/// What is said of a file of HDF5.
#[derive(Debug, Args)]
#[command(next_help_heading = "Into HDF5")]
pub(super) struct Hdf5Options {
    /// How frames are compressed [default: as they are in the recording, or as the instrument says]
    #[arg(long, value_name = "COMPRESSION", value_parser = compression_parser())]
    compression: Option<FrameCompression>,
    /// Pixels of a chunk, slowest dimension first: 256x256 cuts frames into such tiles; with a number of frames in front,
    /// 64x512x512, a chunk has something of so many [default: as it is in the recording, else a frame]
    #[arg(long, value_name = "FRAMESxROWSxCOLUMNS")]
    chunk: Option<ChunkShape>,
    /// What the recording is of, a name of the catalogue or the path of a .toml file: it says what pixels its frames have, and
    /// what else goes into the file, where the recording does not say that itself
    #[arg(long, value_name = "INSTRUMENT")]
    instrument: Option<String>,
    /// Leave the journal beside the file, so that both are a recording: for verify, repair, mount, and to export it back
    #[arg(long)]
    journal: bool,
}

/// How long storage may be silent after the last frame.
const HANG_AFTER: Nanos = Nanos::from_millis(60_000);
/// No filter compresses more slowly, as a rule.
const SLOWEST: ByteRate = ByteRate(4e6);
/// How often it is told how far it is.
const TOLD: Nanos = Nanos::from_millis(200);
const SUFFIX: &str = ".h5";

impl Hdf5Options {
    /// What holds of a file without a journal, which has no instrument and gets no journal.
    pub(super) fn of_lone_file(&self) -> anyhow::Result<RewriteWishes> {
        let others = [("--instrument", self.instrument.is_some()), ("--journal", self.journal)];
        if let Some((option, _)) = others.into_iter().find(|(_, given)| *given) {
            return Err(anyhow!(
                "{option}: only for recordings: of a file of HDF5 without a journal all else is copied as it is; say \
                 --compression and --chunk, or leave it out"
            ));
        }
        Ok(RewriteWishes { compression: self.compression, chunk: self.chunk })
    }

    /// The first of these options that is given.
    pub(super) fn given(&self) -> Option<&'static str> {
        let options = [
            ("--compression", self.compression.is_some()),
            ("--chunk", self.chunk.is_some()),
            ("--instrument", self.instrument.is_some()),
            ("--journal", self.journal),
        ];
        options.into_iter().find(|(_, given)| *given).map(|(name, _)| name)
    }
}

/// A file of HDF5 that is to be made.
struct Hdf5Export<'a> {
    export: &'a Export,
    whole: Arc<RecordingView>,
    contents: Hdf5Contents,
    description: TargetDescription,
    /// The file's name, and that of the recording that it is.
    name: String,
    stem: String,
}

/// What was made, before it has its name.
struct MadeFile {
    partial: PartialDirectory,
    read: Arc<FramesRead>,
    outcome: Recorded,
}

/// The directory in which a file is made: what is left there is removed with it.
struct PartialDirectory {
    directory: Arc<Directory>,
    names: Vec<String>,
}

impl Drop for PartialDirectory {
    fn drop(&mut self) {
        // What can't be removed has a name that says what it is.
        drop(self.directory.remove_unused(&self.names));
    }
}

/// Exports a recording into a file of HDF5.
pub(super) fn export(export: &Export, whole: Arc<RecordingView>) -> Outcome {
    let instrument = export.hdf5.instrument.as_deref().map(user_file::instrument).transpose().input()?;
    let Hdf5Options { compression, chunk, .. } = export.hdf5;
    let wishes = ExportWishes { compression, chunk, instrument: instrument.as_ref() };
    let contents = Hdf5Contents::of_recording(&whole, wishes).map_err(|why| anyhow!(why)).input()?;
    let named = export.place(&whole, Format::Hdf5.suffix()).input()?;
    let stem = named.name.strip_suffix(SUFFIX).unwrap_or(&named.name).to_owned();
    let description = named.described(export.expect).input()?;
    let name = named.name;
    let made = Hdf5Export { export, whole, contents, description, name, stem };
    made.check().input()?;
    made.execute()
}

impl Hdf5Export<'_> {
    fn check(&self) -> anyhow::Result<()> {
        self.recorded(Arc::default()).slots().map_err(|why| anyhow!("{}: {why}", self.whole.name()))?;
        self.export.check(&self.whole, &self.description, &self.name, self.least())?;
        if self.export.hdf5.journal {
            let journal = self.directory().join(self.journal());
            ensure!(
                self.contents.stacked().is_none(),
                "--journal: a journal has a record of each frame, and chunks of several have none: leave it out, or the number of \
                 frames in --chunk"
            );
            ensure!(
                self.name.ends_with(SUFFIX),
                "--journal: it names files with the suffix {SUFFIX}: end the name of {} so",
                self.name
            );
            ensure!(journal.symlink_metadata().is_err(), "{} exists: name a new file", journal.display());
        }
        Ok(())
    }

    /// The least that it takes, as far as that is known before.
    fn least(&self) -> Bytes {
        let encoding = self.contents.encoding();
        let frame = self.whole.frame_size();
        let compresses = self.contents.compression != FrameCompression::None;
        let stacked = self.contents.stacked().is_some();
        self.whole.recording(|recording| {
            let places = recording.index.frames.iter().map(|(_, place)| place.extent);
            let bytes = places.map(|FrameExtent { encoding: stored, length, size, .. }| {
                let plain = u64::from(size);
                let alike =
                    if stored == encoding && !stacked { length.into() } else { plain.min(frame) / SMALLEST };
                // How small others become is not known.
                if compresses { alike } else { plain }
            });
            Bytes(bytes.sum())
        })
    }

    fn directory(&self) -> &Path {
        directory_of(&self.description)
    }

    fn path(&self) -> PathBuf {
        self.directory().join(&self.name)
    }

    fn journal(&self) -> String {
        format!("{}.0.journal", self.stem)
    }

    fn execute(&self) -> Outcome {
        let stop = stop_on_signal().run()?;
        let made = self.make(&stop).run()?;
        let verified = if self.export.verify { Some(self.read_back(&made, &stop).run()?) } else { None };
        self.finish(&made).with_context(|| format!("can't name it {}", self.path().display())).run()?;
        let damaged = made.read.damaged();
        tell::result(tell::visible(&self.summary(&made, &damaged, verified.as_ref())));
        self.not_whole(&damaged, verified.as_ref())?;
        if let Some((frame, why)) = damaged.first.first() {
            let count = damaged.count;
            return Err(Failure::Run(anyhow!(
                "written, with blank frames for {count} that can't be read or are damaged, of which frame {frame} is the first: \
                 {why}"
            )));
        }
        Ok(())
    }

    /// How the frames lie in the file: as in any recording into one file of HDF5.
    fn layout(&self) -> RawLayout {
        let frames = StoredFrames {
            size: self.contents.frame_size,
            format: Format::Hdf5,
            storing: Storing::Growing,
            per_file: None,
            together: 1,
            picture: None,
            packets: false,
            padded: true,
            slot_min: 0,
        };
        let stacked = self.contents.stacked().is_some();
        let checksums = self.export.hdf5.journal || self.export.verify && !stacked;
        let options = LayoutOptions { writers: Some(1), checksums, ..LayoutOptions::with_buffer(Bytes(0)) };
        let plan = RecordingPlan::of(frames, std::slice::from_ref(&self.description), &options);
        let stream = self.whole.recording(|recording| recording.index.stream.clone()).filter(|_| !stacked);
        let hdf5 = Some(self.contents.clone());
        RawLayout { stream, hdf5, ..plan.layout(&self.stem, run_id().0, 0) }
    }

    /// Makes the file, in a directory of its own beside where it is to be.
    fn make(&self, stop: &Arc<AtomicBool>) -> anyhow::Result<MadeFile> {
        let layout = self.layout();
        let partial = partial_directory(self.directory(), &self.name);
        let place = self.directory().to_owned();
        let description = self.description.clone();
        let made = in_time(PATIENCE, place, move || Directory::create(description, &partial));
        let directory = Arc::new(made.flatten()?);
        // Nobody else reads what does not have the rights of the recording yet.
        std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o700))?;
        let names = layout.names_before_frames();
        let partial = PartialDirectory { directory: directory.clone(), names };
        let proves = self.export.verify && self.contents.stacked().is_some();
        let read = Arc::new(if proves { FramesRead::proving() } else { FramesRead::default() });
        let recorded = self.recorded(read.clone());
        let clock = Clock::start();
        let slots = recorded.slots().map_err(|why| anyhow!(why))?;
        // A thread for more chunks of several frames than there is memory for would only have memory of its own.
        let encoders = self.contents.stacked().map(|_| slots.min(processors().len()));
        let target: Arc<dyn Target> = directory;
        let setup = Setup {
            engine: suited_engine(target.as_ref(), layout.is_deep(), clock)?,
            slots,
            feed: Feed::Recorded(recorded),
            lanes: lanes_of(vec![(target, layout)], LaneOptions { reserve: None, encoders })?,
            stop: stop.clone(),
            allowance: Nanos::from_millis(10),
            // That long it may take to compress a chunk of several frames.
            hang_after: HANG_AFTER + Nanos::from_seconds(self.contents.frame_size as f64 / SLOWEST.0),
        };
        let outcome = self.wait_for(Recorder::start(setup)?, &read);
        self.ended(&outcome, stop)?;
        Ok(MadeFile { partial, read, outcome })
    }

    /// Its frames, as they are to be read.
    fn recorded(&self, read: Arc<FramesRead>) -> RecordedFrames {
        let encoding = self.contents.encoding();
        let stack = self.contents.stacked().unwrap_or(1);
        RecordedFrames { whole: self.whole.clone(), encoding, stack, at_most: self.export.rate, read }
    }

    fn wait_for(&self, mut recorder: Recorder, read: &FramesRead) -> Recorded {
        let mut share = Share::new("read", Bytes(self.whole.length()));
        loop {
            if let Some(outcome) = recorder.wait(TOLD) {
                share.clear();
                return outcome;
            }
            share.tell(Bytes(read.bytes()));
        }
    }

    /// Whether all that could be read is in the file.
    fn ended(&self, outcome: &Recorded, stop: &AtomicBool) -> anyhow::Result<()> {
        let path = self.directory().display();
        ensure!(!stop.load(Ordering::Relaxed), "interrupted: nothing is left in {path}");
        let overwrites = self.whole.recording(|recording| recording.head().storing.kind().overwrites);
        if overwrites {
            let first = self.whole.recording(|recording| recording.index.first());
            self.whole.refresh();
            let now = self.whole.recording(|recording| recording.index.first());
            ensure!(first == now, "nothing is left in {path}: {OVERWRITTEN}");
        }
        let ending = outcome.endings().next().map(|(ending, _)| ending);
        let why = match ending {
            Some(Ending::InOrder) if outcome.faults.is_empty() => return Ok(()),
            Some(Ending::InOrder) => outcome.faults.join("; "),
            Some(Ending::Failed(errno)) => errno.to_string(),
            Some(Ending::Full) => "it is full".into(),
            Some(Ending::Hung) | None => "it does not answer".into(),
        };
        Err(anyhow!("can't write to {path}, and nothing is left there: {why}"))
    }

    /// Gives the file its name, and the journal if it is to stay.
    fn finish(&self, made: &MadeFile) -> std::io::Result<()> {
        let directory = &made.partial.directory;
        let access = self.whole.access();
        let bits = |metadata: &std::fs::Metadata| {
            access.mode_in_group(std::os::unix::fs::MetadataExt::gid(metadata))
        };
        directory.move_up(&format!("{}{SUFFIX}", self.stem), &self.name, bits)?;
        if self.export.hdf5.journal {
            directory.move_up(&self.journal(), &self.journal(), bits)?;
        }
        Ok(())
    }

    fn summary(&self, made: &MadeFile, damaged: &DamagedFrames, verified: Option<&ReadBack>) -> String {
        let written = made.outcome.written();
        let stacked = self.contents.stacked();
        let stored = stacked.map_or(made.outcome.stored(), |_| made.read.frames());
        let frame = self.whole.frame_size();
        let smaller = (stored * frame) as f64 / written.max(1) as f64;
        let mut lines = vec![
            format!("written     {}", in_line(self.path().display())),
            format!(
                "frames      {stored} of {}{}, compressed as {}: {}, {smaller:.2} times smaller",
                Bytes(frame),
                stacked.map(|frames| format!(", {frames} in a chunk")).unwrap_or_default(),
                self.contents.compression.name(),
                Bytes(written)
            ),
        ];
        lines.extend(self.whole.recording(|recording| not_here(recording, "blank, with the flag 1")));
        let incomplete = self.whole.recording(|recording| recording.index.gaps.len());
        if incomplete > 0 {
            let what = self.whole.recording(what);
            lines.push(format!(
                "incomplete  {incomplete} {what} lack packets: frames of them have the flag 2"
            ));
        }
        lines.extend(self.contents.left_out.iter().map(|what| format!("left out    {what}")));
        for (frame, why) in &damaged.first {
            lines.push(format!("damaged     frame {frame}: {why}"));
        }
        let more = damaged.count - damaged.first.len() as u64;
        if more > 0 {
            lines.push(format!("            and {more} more"));
        }
        lines.extend(verified.map(ReadBack::line));
        lines.join("\n") + "\n"
    }

    /// Why the file is not all that was recorded, if that was asked.
    fn not_whole(&self, damaged: &DamagedFrames, verified: Option<&ReadBack>) -> Outcome {
        if verified.is_none() {
            return Ok(());
        }
        let (missing, ended) =
            self.whole.recording(|recording| (recording.index.missing(), recording.index.due));
        let mut why = Vec::new();
        if !missing.is_empty() {
            why.push(format!("{} are missing", ranges(&missing)));
        }
        if damaged.count > 0 {
            why.push(format!("{} are damaged and blank", damaged.count));
        }
        if ended.is_none() {
            why.push("it was not ended in order, and what was due behind the last is not known".into());
        }
        if why.is_empty() {
            return Ok(());
        }
        let why = why.join("; ");
        Err(Failure::NotWhole(anyhow!(
            "written, and it is not all of the recording: {why}; keep the recording"
        )))
    }
}

/// No compression makes frames smaller than one part in so many, as a rule.
const SMALLEST: u64 = 250;

/// What reading a file back found.
struct ReadBack {
    right: u64,
    /// Of these, frames that have nothing to be compared with.
    unchecked: u64,
    /// It came from the storage.
    cold: Coldness,
}

impl ReadBack {
    fn line(&self) -> String {
        let checked = self.right - self.unchecked;
        let others = match self.unchecked {
            0 => String::new(),
            count => format!(", {count} have nothing to be compared with and can be read"),
        };
        let cold = match self.cold {
            Coldness::Proved | Coldness::NeverSeen => "from the storage",
            Coldness::NotProvable => "from the storage or from a cache of its client",
            Coldness::Contradicted => "also from the memory of this machine, which did not let go of it",
        };
        format!("verified    read back {cold}: {checked} frames are right{others}")
    }
}

impl Hdf5Export<'_> {
    /// Reads the file back from the storage, before it has its name.
    fn read_back(&self, made: &MadeFile, stop: &AtomicBool) -> anyhow::Result<ReadBack> {
        let directory = &made.partial.directory;
        // What is in the cache need not be what is on the storage.
        let cold = directory.chill(&format!("{}{SUFFIX}", self.stem)).context("can't read it back")?;
        let goes_on = || !stop.load(Ordering::Relaxed);
        if self.contents.stacked().is_some() {
            let path = directory.path().join(format!("{}{SUFFIX}", self.stem));
            let right = match read_back_stacks(&path, &self.contents, &made.read, &goes_on) {
                Err(StackFault::Interrupted) => Err(StackFault::Interrupted.into()),
                right => {
                    right.context("it is not as it should be when it is read back, and it is removed again")
                }
            }?;
            return Ok(ReadBack { right, unchecked: 0, cold });
        }
        let copy = Recording::open(&[directory.path().to_owned()], Trust::Acknowledged)
            .context("can't read it back")?;
        let torn = index_faults(&copy).context("can't read it back")?;
        if let Some((_, why)) = torn.first() {
            return Err(anyhow!("readers of HDF5 do not find all in it, and it is removed again: {why}"));
        }
        let verified = verify_while(&RecordingView::new(copy, Extent::All), &goes_on);
        let verified = verified.context("interrupted: nothing is left there")?;
        all_are_right(&verified, made.outcome.stored())?;
        let Verified { right, unchecked, .. } = verified;
        Ok(ReadBack { right, unchecked, cold })
    }
}

fn all_are_right(verified: &Verified, stored: u64) -> anyhow::Result<()> {
    let damaged = verified.damaged.first();
    ensure!(
        verified.damaged_frames == 0,
        "{} frames differ when they are read back, and it is removed again; the first is {}",
        verified.damaged_frames,
        damaged.map(|damaged| format!("frame {}, which {}", damaged.number, damaged.why)).unwrap_or_default()
    );
    let right = verified.right;
    ensure!(
        right == stored,
        "of {stored} frames {right} are found when it is read back, and it is removed again"
    );
    Ok(())
}
