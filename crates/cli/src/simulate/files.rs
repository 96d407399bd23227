//! The options of recording into directories that stay.

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context, ensure};
use clap::{Args, builder::PossibleValuesParser};
use nilometer_acquisition::{
    ChosenEngine, EngineWish, Feed, LayoutOptions, RecordingPlan, Setup, StoredFrames,
    sink::{LaneOptions, RawLayout, lanes_memory, lanes_of},
    suited_engine,
};
use nilometer_cluster::launched_here;
use nilometer_hdf5_recording::{AskedFiles, FileWishes, Hdf5Contents, UserLayout, UserLayoutError};
use nilometer_intake::joined::JoinedValues;
use nilometer_model::{
    Bytes, ChunkShape, FileNames, FileSystemKind, Format, FrameCompression, Instrument, Moment, Nanos,
    ScanShape, Storing, StripeLayout, TargetDescription,
};
use nilometer_recording::instrument::Content;
use nilometer_ring::{Delivery, FrameTurn, MemoryPart, MemoryPlan, Pace, WhenFull};
use nilometer_service::{
    RecordingEngine, ServiceError, compression_parser,
    recording::{
        memory::{MemoryWishes, account, program_memory},
        place::{check_align, check_mounted, check_name, check_place, check_slots, check_stripes},
    },
};
use nilometer_storage::{Clock, Target};

use super::Asked;
use crate::together::Together;

/// The options of files and of the recorder.
#[derive(Debug, Args)]
#[command(next_help_heading = "Into directories")]
pub(super) struct Files {
    /// Give the recording this name [default: the instrument and a number]
    #[arg(long)]
    name: Option<String>,
    /// Refuse directories on other file systems, such as the one below a missing mount. Give one type for all
    /// directories, or one for each, in their order: ext4, nfs, lustre and others; an unknown word lists them
    #[arg(long, value_name = "TYPE", value_delimiter = ',')]
    expect: Vec<FileSystemKind>,
    /// Store frames in such files, instead of the instrument's choice: many files; one that grows for each
    /// writer; or one shared by a directory's writers. Also chunks scattered over all directories as VLBI
    /// recorders do, or one file for each position of a scan, with the instrument's frames a file
    #[arg(long, value_parser = PossibleValuesParser::new(Storing::ALL.map(Storing::name)))]
    storing: Option<String>,
    /// Write frames in this format, instead of the instrument's: plain bytes, CBF files as Pilatus detectors
    /// make them, or HDF5
    #[arg(long, value_parser = PossibleValuesParser::new(Format::ALL.map(Format::name)))]
    format: Option<String>,
    /// Compress frames in HDF5 this way, instead of the instrument's
    #[arg(long, value_name = "COMPRESSION", value_parser = compression_parser())]
    compression: Option<FrameCompression>,
    /// Lay out HDF5 files by this file, instead of NeXus: XML as for areaDetector's file plug-in, or TOML. The
    /// word `dectris` makes the files of DECTRIS' file writer
    #[arg(long, value_name = "FILE")]
    layout: Option<PathBuf>,
    /// Arrange frames in HDF5 as a scan, slowest dimension first [default: a row of frames]. Write 20x30 for
    /// 20 lines of 30 frames, or ?x30 for as many lines as come
    #[arg(long, value_name = "LINESxFRAMES")]
    scan: Option<ScanShape>,
    /// Cut frames in HDF5 into chunks of this many pixels, slowest dimension first; each chunk is compressed
    /// alone [default: a frame]
    #[arg(long, value_name = "ROWSxCOLUMNS")]
    chunk: Option<ChunkShape>,
    /// Begin frames larger than SIZE at multiples of it in HDF5 files. SIZE is a power of 2, at least 4 KiB
    /// [default: the stripe size, if the storage states one]
    #[arg(long, value_name = "SIZE")]
    align: Option<Bytes>,
    /// Spread each file over N storage devices. On storage that can, such as Lustre
    /// [default: unchanged]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    stripe_count: Option<u32>,
    /// Spread each file in pieces of SIZE, if the storage can [default: unchanged]
    #[arg(long, value_name = "SIZE")]
    stripe_size: Option<Bytes>,
    /// Use this many writers in each directory, each with its own lane. Default: 1; 2 into a shared file, and
    /// if all frames pass the cache of one directory
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=64))]
    writers: Option<u32>,
    /// Encode frames by this many threads, at least one a writer, if the format needs encoding [default: the
    /// number of processors]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1024))]
    encoders: Option<u32>,
    /// Buffer frames in this much memory between the instrument and the storage [default: 1 GiB, or the rest
    /// of --memory or of the available memory]
    #[arg(long)]
    buffer: Option<Bytes>,
    /// Limit all memory of the recorder, with its buffer, the simulated instrument and the program [default:
    /// no limit beyond those of its parts]
    #[arg(long)]
    memory: Option<Bytes>,
    /// If the buffer is full for a frame, stop the recording, lose that frame, or lose the oldest waiting one
    /// instead [default: drop-newest]
    #[arg(long, value_name = "POLICY")]
    #[arg(value_parser = PossibleValuesParser::new(WhenFull::ALL.map(WhenFull::name)))]
    full: Option<String>,
    /// Keep this much space free on each storage. A directory without more space takes no more frames
    /// [default: 1 GiB]
    #[arg(long)]
    reserve: Option<Bytes>,
    /// Write with this engine: one system call at a time, the kernel's `io_uring`, or a pool of threads [default:
    /// `io_uring` past the page cache, or pool if a trial of the storage shows it far faster; sync into the cache]
    #[arg(long, value_name = "ENGINE")]
    engine: Option<RecordingEngine>,
    /// Write a checksum of each frame into the journal
    #[arg(long)]
    checksums: bool,
    /// Give storage up as hung if it does not answer for this time after the last frame [default: 60 s]
    #[arg(long)]
    hang_after: Option<Nanos>,
}

const RESERVE: Bytes = Bytes(1 << 30);
const HANG_AFTER: Nanos = Nanos::from_millis(60_000);

impl Files {
    /// The recording's name; `None` without `--name`.
    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The expected file systems.
    pub(super) fn expected(&self) -> &[FileSystemKind] {
        &self.expect
    }

    /// The number of threads that encode frames; `None` without `--encoders`.
    pub(super) fn encoders(&self) -> Option<u32> {
        self.encoders
    }

    /// The first of these options on the command line that is not in `those`.
    pub(super) fn given_beside(&self, those: &[&str]) -> Option<&'static str> {
        let options = [
            ("--name", self.name.is_some()),
            ("--expect", !self.expect.is_empty()),
            ("--storing", self.storing.is_some()),
            ("--format", self.format.is_some()),
            ("--compression", self.compression.is_some()),
            ("--layout", self.layout.is_some()),
            ("--scan", self.scan.is_some()),
            ("--chunk", self.chunk.is_some()),
            ("--align", self.align.is_some()),
            ("--stripe-count", self.stripe_count.is_some()),
            ("--stripe-size", self.stripe_size.is_some()),
            ("--writers", self.writers.is_some()),
            ("--buffer", self.buffer.is_some()),
            ("--memory", self.memory.is_some()),
            ("--full", self.full.is_some()),
            ("--encoders", self.encoders.is_some()),
            ("--reserve", self.reserve.is_some()),
            ("--engine", self.engine.is_some()),
            ("--checksums", self.checksums),
            ("--hang-after", self.hang_after.is_some()),
        ];
        options.into_iter().find(|(name, given)| *given && !those.contains(name)).map(|(name, _)| name)
    }

    /// Changes the instrument's way of storing as the options require.
    pub(super) fn change(&self, instrument: &mut Instrument) {
        if let Some(named) = &self.format {
            let format = Format::ALL.into_iter().find(|format| format.name() == named);
            instrument.recording.write_as(format.unwrap_or_default());
        }
        if let Some(named) = &self.storing {
            let storing = Storing::ALL.into_iter().find(|storing| storing.name() == named);
            instrument.recording.store(storing.unwrap_or_default());
        }
        if self.compression.is_some() {
            instrument.recording.compression = self.compression;
        }
        if self.layout.is_some() {
            instrument.recording.layout.clone_from(&self.layout);
        }
        instrument.recording.fill_files();
        let recording = &mut instrument.recording;
        recording.scan = self.scan.or(recording.scan);
        recording.chunk = self.chunk.or(recording.chunk);
        if instrument.compressed && recording.format == Format::Hdf5 {
            // Frames have the form in which the detector would send them.
            recording.compression.get_or_insert(FrameCompression::Bslz4);
        }
        if self.encoders.is_some() {
            instrument.recording.encoders = self.encoders;
        }
    }

    /// The requested layout of files on storage devices.
    pub(super) fn stripes(&self) -> StripeLayout {
        let Files { stripe_count, stripe_size, .. } = *self;
        StripeLayout { stripe_count, stripe_size, ..StripeLayout::default() }
    }

    pub(super) fn patience(&self) -> Nanos {
        self.hang_after.unwrap_or(HANG_AFTER)
    }

    pub(super) fn reserve(&self) -> Bytes {
        self.reserve.unwrap_or(RESERVE)
    }

    /// The layout of the instrument's frames in these directories, and the account of the memory that it
    /// takes.
    pub(super) fn plan(
        &self,
        asked: &Asked,
        to: &[TargetDescription],
        wishes: &FileWishes,
    ) -> Result<(RecordingPlan, MemoryPlan), ServiceError> {
        let instrument = &asked.instrument;
        let contents = Hdf5Contents::asked(instrument, Moment(Nanos(0)), wishes);
        let wishes_for_memory = MemoryWishes {
            buffer: self.buffer,
            memory: self.memory,
            sharing: launched_here(),
            streams: 1,
            available: None,
        };
        let planned = |buffer, memory| {
            let plan = self.plan_with(instrument, to, buffer);
            let parts = account(self.memory_plan(asked, &plan, contents.as_ref()), memory);
            (plan, parts)
        };
        let frame = instrument.frame_size();
        let least = Bytes(2 * frame.0);
        let buffer = wishes_for_memory.settle(least, |buffer, memory| planned(buffer, memory).1)?;
        check_slots(buffer, frame)?;
        Ok(planned(buffer, self.memory))
    }

    fn memory_plan(
        &self,
        asked: &Asked,
        plan: &RecordingPlan,
        contents: Option<&Hdf5Contents>,
    ) -> MemoryPlan {
        let instrument = &asked.instrument;
        #[expect(clippy::cast_sign_loss, reason = "neither is negative")]
        let due = (asked.duration.seconds() * instrument.frame_rate.0).ceil() as u64;
        let frames = asked.frames.unwrap_or(due).min(due);
        let layout = RawLayout { hdf5: contents.cloned(), ..plan.layout("", 0, 0) };
        let lanes = lanes_memory(&layout, plan.lanes() as usize, self.lane_options(instrument), frames);
        let content = Content::memory(&instrument.data, instrument.frame_size());
        let source = MemoryPlan::default().with(MemoryPart::Instrument, content.0);
        plan.ring_memory().and(lanes).and(source).and(program_memory())
    }

    fn lane_options(&self, instrument: &Instrument) -> LaneOptions {
        let encoders = instrument.recording.encoders.map(|count| count as usize);
        LaneOptions { reserve: Some(self.reserve()), encoders }
    }

    fn plan_with(&self, instrument: &Instrument, to: &[TargetDescription], buffer: Bytes) -> RecordingPlan {
        let options = LayoutOptions {
            writers: self.writers,
            reserve: self.reserve(),
            checksums: self.checksums,
            align: self.align.or(self.stripe_size),
            completes_shared: true,
            ..LayoutOptions::with_buffer(buffer)
        };
        // This process makes them frame by frame, even if they would come over a network.
        let frames = StoredFrames { packets: false, ..StoredFrames::of(instrument) };
        RecordingPlan::of(frames, to, &options)
    }

    /// Refuses all that can be refused, before anything exists.
    pub(super) fn check(
        &self,
        instrument: &Instrument,
        plan: &RecordingPlan,
        to: &[TargetDescription],
        together: &Together<'_>,
    ) -> anyhow::Result<()> {
        let name = together.shared.name.as_str();
        check_name(name)?;
        together.check_storing(plan.storing(), &instrument.recording)?;
        if let Some(align) = self.align {
            ensure!(
                instrument.recording.format == Format::Hdf5,
                "--align {align}: only in HDF5; write --format hdf5, or leave it out"
            );
            check_align(align)?;
        }
        let is_shared = instrument.recording.storing == Storing::Shared;
        ensure!(
            self.storing.is_none() || is_shared || instrument.recording.format != Format::Hdf5,
            "--storing: HDF5 is one file, or files of the instrument's frames_per_file; leave it out, or write \
             --storing shared"
        );
        ensure!(
            to.len() == 1 || !instrument.recording.is_one_dataset(),
            "--storing shared: all writers have one HDF5 file, in one directory; name one with --to"
        );
        ensure!(
            instrument.recording.storing != Storing::Scattered || !name.contains('.'),
            "--name {name}: readers of scattered recordings take no name with a dot: write another --name"
        );
        plan.check_lines().map_err(anyhow::Error::msg)?;
        check_mounted(instrument.recording.format, to)?;
        ensure!(self.stripe_size != Some(Bytes(0)), "--stripe-size 0 B: write more than 0");
        check_stripes(&self.stripes(), to)?;
        plan.check_storage(to).map_err(anyhow::Error::msg)?;
        for description in to {
            check_place(description, &together.directory(), self.reserve(), "file", Bytes(plan.file_size()))?;
        }
        Ok(())
    }

    pub(super) fn setup(
        &self,
        asked: &Asked,
        plan: &RecordingPlan,
        lanes: Vec<(Arc<dyn Target>, RawLayout)>,
        content: Content,
        turn: FrameTurn,
        clock: Clock,
    ) -> anyhow::Result<Setup> {
        let instrument = &asked.instrument;
        let wish = EngineWish {
            deep: lanes.iter().all(|(_, layout)| layout.is_deep()),
            kind: self.engine.map(Into::into),
        };
        let engines = lanes.iter().map(|(target, _)| suited_engine(target.as_ref(), wish, clock));
        let engine = ChosenEngine::for_all(engines.collect::<Result<Vec<_>, _>>()?);
        let when_full = WhenFull::ALL.into_iter().find(|policy| Some(policy.name()) == self.full.as_deref());
        let delivery = Delivery {
            pace: Pace::Due(instrument.schedule()),
            duration: asked.duration,
            frames: asked.frames.unwrap_or(u64::MAX),
            turn,
            when_full: when_full.unwrap_or_default(),
        };
        let options = self.lane_options(instrument);
        Ok(Setup {
            engine: engine.context("a recording has a lane")?,
            slots: plan.slots(),
            feed: Feed::Instrument { content, delivery },
            lanes: lanes_of(lanes, options)?,
            stop: Arc::default(),
            allowance: instrument.allowance(),
            hang_after: self.patience(),
        })
    }
}

/// The wishes for the files of an instrument: its layout, read and checked.
pub(super) fn file_wishes(
    instrument: &Instrument,
    tell: impl Fn(&str),
) -> Result<FileWishes, UserLayoutError> {
    let is_file = instrument.recording.names() == FileNames::Recorder;
    let path = instrument.recording.layout.as_ref().filter(|_| is_file);
    let layout = path.map(|path| UserLayout::read(path)).transpose()?;
    for warning in layout.iter().flat_map(UserLayout::warnings) {
        tell(&warning);
    }
    // Nothing assigns frames to several datasets: the recorder counts the dataset of each.
    let several = layout.as_ref().is_some_and(UserLayout::has_several_datasets);
    let joined = several.then(|| Arc::new(JoinedValues::without_source()));
    Ok(FileWishes { layout: layout.map(Arc::new), joined })
}

/// Checks that the layout can describe files of this kind.
pub(super) fn check_layout(
    wishes: &FileWishes,
    instrument: &Instrument,
    writers: usize,
    kept: bool,
) -> anyhow::Result<()> {
    let recording = &instrument.recording;
    let asked = AskedFiles {
        writers,
        kept,
        per_file: recording.frames_per_file.is_some(),
        scan: recording.scan.is_some(),
        tiles: recording.chunk.is_some(),
    };
    if recording.names() == FileNames::Dectris {
        return asked.check_for_dectris().map_err(anyhow::Error::msg);
    }
    wishes.layout.as_ref().map_or(Ok(()), |layout| layout.check(asked)).map_err(anyhow::Error::msg)
}
