//! `nilometer export --format hdf5`: writes a recording into one HDF5 file, through a recorder that reads its
//! frames.

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
    Ending, EngineWish, Feed, LayoutOptions, Outcome as Recorded, Recorder, RecordingPlan, Setup,
    StoredFrames,
    export::{DamagedFrames, FramesRead, RecordedFrames, StackFault, read_back_stacks},
    sink::{LaneOptions, RawLayout, lanes_of},
    suited_engine,
};
use nilometer_hdf5_recording::{ExportWishes, Hdf5Contents, index_faults, lone_file::RewriteWishes};
use nilometer_model::{
    ByteRate, Bytes, ChunkShape, Coldness, FileNames, Format, FrameCompression, Nanos, Storing,
    TargetDescription,
};
use nilometer_recording::{
    OVERWRITTEN, Verified,
    journal::FrameExtent,
    reader::{Recording, Trust},
    verify_while,
    view::{Extent, RecordingView},
};
use nilometer_report::in_line;
use nilometer_service::compression_parser;
use nilometer_storage::{
    Clock, PATIENCE, Target, in_time,
    new_file::partial_directory,
    process::processors,
    target::{Directory, KeptDirectory, run_id},
    user_file,
};

use super::{Export, lacking::lacks_blocks, not_here};
use crate::{
    Blame, Failure, Outcome,
    describe::directory_of,
    recording_text::{ranges, what},
    share::Share,
    signals::stop_on_signal,
    tell,
};

/// The options of an export into HDF5.
#[derive(Debug, Args)]
#[command(next_help_heading = "Into HDF5")]
pub(super) struct Hdf5Options {
    /// Compress frames this way [default: the recording's, or the instrument's]
    #[arg(long, value_name = "COMPRESSION", value_parser = compression_parser())]
    compression: Option<FrameCompression>,
    /// Cut frames into chunks of this many pixels, slowest dimension first. A chunk of 256x256 is a tile of
    /// one frame, one of 64x512x512 spans 64 frames [default: the recording's, else a frame]
    #[arg(long, value_name = "FRAMESxROWSxCOLUMNS")]
    chunk: Option<ChunkShape>,
    /// Describe the frames by this instrument: a name of the catalogue, or the path of a .toml file. It adds
    /// the type of pixels, and other facts for the file, if the recording lacks them
    #[arg(long, value_name = "INSTRUMENT")]
    instrument: Option<String>,
    /// Leave the journal beside the file, so that both are a recording: for verify, repair, mount, and
    /// another export
    #[arg(long)]
    journal: bool,
}

/// The longest silence of storage after the last frame.
const HANG_AFTER: Nanos = Nanos::from_millis(60_000);
/// The rate that the slowest filter reaches, as a rule.
const SLOWEST: ByteRate = ByteRate(4e6);
/// The time between two updates of the progress.
const TOLD: Nanos = Nanos::from_millis(200);
const SUFFIX: &str = ".h5";

impl Hdf5Options {
    /// The wishes for a file without a journal, which has no instrument and gets no journal.
    pub(super) fn of_lone_file(&self) -> anyhow::Result<RewriteWishes> {
        let others = [("--instrument", self.instrument.is_some()), ("--journal", self.journal)];
        if let Some((option, _)) = others.into_iter().find(|(_, given)| *given) {
            return Err(anyhow!(
                "{option}: only for recordings; leave it out: an HDF5 file without a journal takes --compression \
                 and --chunk"
            ));
        }
        Ok(RewriteWishes { compression: self.compression, chunk: self.chunk })
    }

    /// The first of these options on the command line.
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

/// The export of a recording into an HDF5 file.
struct Hdf5Export<'a> {
    export: &'a Export,
    whole: Arc<RecordingView>,
    contents: Hdf5Contents,
    description: TargetDescription,
    /// The file's name, and the name of the recording in it.
    name: String,
    stem: String,
}

/// A complete file that does not have its name yet.
struct MadeFile {
    partial: PartialDirectory,
    read: Arc<FramesRead>,
    outcome: Recorded,
}

/// The directory in which a file grows. Dropping it removes the directory, with all that is left in it.
struct PartialDirectory {
    directory: Arc<Directory>,
    names: Vec<String>,
}

impl Drop for PartialDirectory {
    fn drop(&mut self) {
        // If the removal fails, the name of the directory shows its purpose.
        drop(self.directory.remove_unused(&self.names));
    }
}

/// Exports a recording into an HDF5 file.
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

    /// The least bytes that the file takes, as far as this can be foreseen.
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
                // Nobody can foresee how small compression makes others.
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
        lacks_blocks(&self.whole)
    }

    /// The layout of the frames in the file: that of any recording into one HDF5 file.
    fn layout(&self) -> RawLayout {
        let frames = StoredFrames {
            size: self.contents.frame_size,
            format: Format::Hdf5,
            storing: Storing::Growing,
            per_file: None,
            together: 1,
            names: FileNames::Recorder,
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

    /// Makes the file, in a directory of its own beside the file's later place.
    fn make(&self, stop: &Arc<AtomicBool>) -> anyhow::Result<MadeFile> {
        let layout = self.layout();
        let partial = partial_directory(self.directory(), &self.name);
        let place = self.directory().to_owned();
        let description = self.description.clone();
        let made = in_time(PATIENCE, place, move || Directory::create(description, &partial));
        let directory = Arc::new(made.flatten()?);
        // The file does not have the recording's permissions yet, so nobody else may read it.
        std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o700))?;
        let names = layout.names_before_frames();
        let partial = PartialDirectory { directory: directory.clone(), names };
        let proves = self.export.verify && self.contents.stacked().is_some();
        let read = Arc::new(if proves { FramesRead::proving() } else { FramesRead::default() });
        let recorded = self.recorded(read.clone());
        let clock = Clock::start();
        let slots = recorded.slots().map_err(|why| anyhow!(why))?;
        // With chunks of several frames, more threads than the memory has slots would only take memory of
        // their own.
        let encoders = self.contents.stacked().map(|_| slots.min(processors().len()));
        let target: Arc<dyn Target> = directory;
        let setup = Setup {
            engine: suited_engine(target.as_ref(), EngineWish::usual(layout.is_deep()), clock)?,
            slots,
            feed: Feed::Recorded(recorded),
            lanes: lanes_of(vec![(target, layout)], LaneOptions { reserve: None, encoders })?,
            stop: stop.clone(),
            allowance: Nanos::from_millis(10),
            // Compressing a chunk of several frames may take this long.
            hang_after: HANG_AFTER + Nanos::from_seconds(self.contents.frame_size as f64 / SLOWEST.0),
        };
        let outcome = self.wait_for(Recorder::start(setup)?, &read);
        self.ended(&outcome, stop)?;
        Ok(MadeFile { partial, read, outcome })
    }

    /// The frames, in the form in which the recorder reads them.
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

    /// Checks that the file has all frames that could be read.
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

    /// Gives the file its name, and the journal with `--journal`.
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
        lines.extend(not_here(&self.whole, "blank, with the flag 1"));
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

    /// The reason why the file is incomplete, if `--verify` found one.
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
            why.push("it did not end in order, and frames after the last one may be missing".into());
        }
        if why.is_empty() {
            return Ok(());
        }
        let why = why.join("; ");
        Err(Failure::NotWhole(anyhow!(
            "written, but without parts of the recording: {why}; keep the recording"
        )))
    }
}

/// The most by which compression makes frames smaller, as a rule.
const SMALLEST: u64 = 250;

/// The results of reading a file back.
struct ReadBack {
    right: u64,
    /// The frames among them without anything to compare with.
    unchecked: u64,
    /// Tells if the frames came from the storage.
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
    /// Reads the file back from the storage, before it gets its name.
    fn read_back(&self, made: &MadeFile, stop: &AtomicBool) -> anyhow::Result<ReadBack> {
        let directory = &made.partial.directory;
        // The cache may differ from the storage.
        let cold = directory.chill(&format!("{}{SUFFIX}", self.stem)).context("can't read it back")?;
        let goes_on = || !stop.load(Ordering::Relaxed);
        if self.contents.stacked().is_some() {
            let path = directory.path().join(format!("{}{SUFFIX}", self.stem));
            let right = match read_back_stacks(&path, &self.contents, &made.read, &goes_on) {
                Err(StackFault::Interrupted) => Err(StackFault::Interrupted.into()),
                right => right.context("it is not right when read back; export removed it"),
            }?;
            return Ok(ReadBack { right, unchecked: 0, cold });
        }
        let copy = Recording::open(&[directory.path().to_owned()], Trust::Acknowledged)
            .context("can't read it back")?;
        let torn = index_faults(&copy).context("can't read it back")?;
        if let Some((_, why)) = torn.first() {
            return Err(anyhow!("readers of HDF5 do not find all in it; export removed it: {why}"));
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
        "{} frames differ when read back; export removed the file; the first is {}",
        verified.damaged_frames,
        damaged.map(|damaged| format!("frame {}, which {}", damaged.number, damaged.why)).unwrap_or_default()
    );
    let right = verified.right;
    ensure!(
        right == stored,
        "only {right} of {stored} frames were right in the copy, so Nilometer removed it"
    );
    Ok(())
}
