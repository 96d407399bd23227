//! The thread of one dump: it opens the recording, finds the part, and copies it block by block as the recorder
//! writes it.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::OwnedFd,
    os::unix::fs::MetadataExt,
    path::PathBuf,
    sync::atomic::Ordering,
};

use nilometer_model::{ByteRate, Bytes, Nanos};
use nilometer_recording::{
    reader::{Recording, Trust},
    view::{Extent, LimitPosition, PartLimit, RecordingView},
};
use nilometer_storage::{Clock, new_file::NewFile};
use rustix::fs::{Advice, AtFlags};

use super::{
    blocks::DumpReader,
    pace::{DumpRateLimit, buffer_fill, pause_after, speed_share},
    progress::DumpProgress,
    report::{DUMP_SUMMARY_SUFFIX, DumpReport, DumpState, DumpWait},
    request::DumpLimits,
};
use crate::{latest_frame::step_back, publisher::Publisher, state::ServiceState};

/// The recording of a dump.
#[derive(Debug, Clone)]
pub(super) struct DumpSource {
    pub(super) name: String,
    /// The directories of its lanes.
    pub(super) directories: Vec<PathBuf>,
    /// The figures of the recorder.
    pub(super) published: Publisher,
}

/// A dump to make.
#[derive(Debug)]
pub(super) struct DumpJob {
    pub(super) source: DumpSource,
    pub(super) limits: DumpLimits,
    pub(super) rate: Option<ByteRate>,
    /// The directory for the file, opened when the service checked it.
    pub(super) directory: OwnedFd,
    pub(super) progress: DumpProgress,
}

/// The reason why a dump has no file.
#[derive(Debug)]
enum DumpFailure {
    Cancelled,
    Failed(String),
}

/// The interval between two looks at a recording that has no new frames, and at the recorder's buffer.
const LOOK: Nanos = Nanos::from_millis(100);
/// The pause of a dump that has every frame so far.
const WAIT: Nanos = Nanos::from_millis(20);
/// The search for the end of the part takes at most one part in this of the time.
const SEARCH_PAUSE: u64 = 20;
/// Bytes that it copies before it looks at the recorder's buffer again. A block may be larger.
const PIECE: usize = 1 << 20;
/// The most bytes of a block, which a dump holds in memory.
const BLOCK_MAX: u64 = 256 << 20;
/// Bytes after which it waits until they are on storage, so that they don't fill the page cache.
const SYNC: u64 = 32 << 20;

impl DumpSource {
    /// The label of its data stream, if its name has one.
    pub(super) fn label(&self) -> Option<&str> {
        // A label has no underscore.
        self.name.rsplit_once("_ds").map(|(_, label)| label)
    }

    /// Returns true while the recorder may still write to the recording.
    fn is_running(&self) -> bool {
        self.published.read(|published| {
            let active = matches!(published.report.state, ServiceState::Armed | ServiceState::Recording);
            // The report has the name of the scan, and a data stream's recording has one of its own.
            active && published.pictured.iter().any(|pictured| pictured.name() == self.name)
        })
    }

    /// The share of full speed that the fill of the recorder's buffer allows. The fullest of several data
    /// streams decides.
    fn speed_share(&self) -> f64 {
        if !self.is_running() {
            return 1.0;
        }
        let ring = |published: &crate::publisher::Published| {
            let status = &published.report.recording.as_ref()?.status;
            let whole = buffer_fill(status.ring.in_use, status.ring.slots);
            Some(status.data_streams.iter().map(|stream| stream.buffer_share).fold(whole, f64::max))
        };
        self.published.read(ring).map_or(1.0, speed_share)
    }
}

/// Makes the dump, and reports its end.
pub(super) fn run(job: &DumpJob) {
    step_back();
    let outcome = job.dump();
    job.progress.change(|report| {
        report.waits_for = None;
        match outcome {
            Ok(()) => report.state = DumpState::Complete,
            Err(DumpFailure::Cancelled) => report.state = DumpState::Cancelled,
            Err(DumpFailure::Failed(why)) => {
                report.state = DumpState::Failed;
                report.error = Some(why);
            }
        }
    });
}

impl DumpJob {
    fn dump(&self) -> Result<(), DumpFailure> {
        let view = self.open()?;
        let block = view.frames_of_block() * view.frame_size();
        if block > BLOCK_MAX {
            let why = format!(
                "its frames are larger than {}: export them when the recording has ended",
                Bytes(BLOCK_MAX)
            );
            return Err(DumpFailure::Failed(why));
        }
        let new = self.create(&view)?;
        let limits = self.fixed_limits(&view)?;
        let begin = self.begin(&view, limits.begin)?;
        let mut copy = DumpCopy {
            job: self,
            view: &view,
            file: new.file(),
            begin,
            end: DumpEnd { limit: limits.end, frame: None, below: 0, look_at: Nanos(0) },
            at: begin * view.frame_size(),
            blocks: DumpReader::new(&view, self.progress.clone()),
            buffer: vec![0; PIECE.max(block as usize)],
            clock: Clock::start(),
            limit: DumpRateLimit::new(self.rate),
            unsynced: 0,
            looked: Nanos(0),
        };
        copy.run()?;
        let DumpCopy { clock, at, .. } = copy;
        self.finish(&view, new)?;
        // The file is durable by now, and the time includes that.
        let done = (at - begin * view.frame_size()) as f64;
        self.progress.change(|report| report.bytes_per_second = done / clock.now().seconds().max(1e-9));
        Ok(())
    }

    /// Opens the recording. It has no journal before its first block is written.
    fn open(&self) -> Result<RecordingView, DumpFailure> {
        loop {
            let is_running = self.source.is_running();
            match Recording::open(&self.source.directories, Trust::Acknowledged) {
                Ok(recording) => return Ok(RecordingView::new(recording, Extent::Mark)),
                Err(_) if is_running => self.wait(DumpWait::Frames, LOOK)?,
                Err(error) => return Err(DumpFailure::Failed(error.to_string())),
            }
        }
    }

    /// Makes the file under a temporary name, after a look whether its own name and that of its summary are free. The
    /// summary of an older dump would describe this one wrongly.
    fn create(&self, view: &RecordingView) -> Result<NewFile, DumpFailure> {
        let mut path = self.progress.report().path;
        path.as_mut_os_string().push(format!(".{}", view.format().name()));
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let failed =
            |error: io::Error| DumpFailure::Failed(format!("can't make {}: {error}", path.display()));
        let is_there =
            |name: &str| rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        for suffix in ["", DUMP_SUMMARY_SUFFIX] {
            if is_there(&format!("{name}{suffix}")) {
                let why = format!("{}{suffix} exists: write another name", path.display());
                return Err(DumpFailure::Failed(why));
            }
        }
        let directory = self.directory.try_clone().map_err(failed)?;
        let new = NewFile::create_in(directory, name).map_err(failed)?;
        self.progress.change(|report| report.path = path);
        Ok(new)
    }

    /// Fixes limits that count from the first or the last frame. Before the first frame there is nothing to count
    /// from.
    fn fixed_limits(&self, view: &RecordingView) -> Result<DumpLimits, DumpFailure> {
        while view.length() == 0 && !self.refresh(view) {
            self.wait(DumpWait::Frames, LOOK)?;
        }
        let fixed =
            |limit: PartLimit| view.fixed(limit).map_err(|error| DumpFailure::Failed(error.to_string()));
        Ok(DumpLimits {
            begin: self.limits.begin.map(fixed).transpose()?,
            end: self.limits.end.map(fixed).transpose()?,
        })
    }

    /// Finds the first frame of the part, counted from the view's first, and waits for it if it is yet to come.
    fn begin(&self, view: &RecordingView, limit: Option<PartLimit>) -> Result<u64, DumpFailure> {
        let Some(limit) = limit else {
            self.progress.change(|report| report.first_frame = Some(view.shown_frames().start));
            return Ok(0);
        };
        loop {
            let ended = self.refresh(view);
            let position =
                view.begin_position(limit).map_err(|error| DumpFailure::Failed(error.to_string()))?;
            let frame = match position {
                LimitPosition::At(frame) => frame,
                LimitPosition::Before => 0,
                LimitPosition::Beyond if ended => {
                    return Err(DumpFailure::Failed(format!("the recording ended before {limit}")));
                }
                LimitPosition::Beyond => {
                    self.wait(DumpWait::Frames, LOOK)?;
                    continue;
                }
            };
            // A recording that never lost a frame has none before its first.
            let is_late = position == LimitPosition::Before && has_overwritten(view);
            self.progress.change(|report| {
                report.begins_late = is_late;
                report.first_frame = Some(view.shown_frames().start + frame);
            });
            return Ok(frame);
        }
    }

    /// Takes in new records of the journals. Returns true if no more will come.
    fn refresh(&self, view: &RecordingView) -> bool {
        let is_running = self.source.is_running();
        let has_news = view.refresh();
        if !is_running && !has_news && !view.is_over() {
            // The recorder is gone, and did not end the recording in order.
            view.settle();
            return true;
        }
        view.is_over()
    }

    fn check_stop(&self) -> Result<(), DumpFailure> {
        if self.progress.stop.load(Ordering::Relaxed) { Err(DumpFailure::Cancelled) } else { Ok(()) }
    }

    /// Waits, and reports the reason.
    fn wait(&self, reason: DumpWait, time: Nanos) -> Result<(), DumpFailure> {
        self.check_stop()?;
        self.see_buffer();
        self.progress.change(|report| report.waits_for = Some(reason));
        std::thread::sleep(time.duration());
        self.check_stop()
    }

    /// Returns the share of full speed that the recorder's buffer allows, and reports it.
    fn see_buffer(&self) -> f64 {
        let share = self.source.speed_share();
        self.progress.change(|report| report.speed_share = share);
        share
    }

    /// Gives the file its name, and writes the summary beside it.
    fn finish(&self, view: &RecordingView, new: NewFile) -> Result<(), DumpFailure> {
        let report = self.progress.report();
        let failed = |error: io::Error| {
            DumpFailure::Failed(format!("can't name it {}: {error}", report.path.display()))
        };
        let mode = view.access().mode_in_group(new.file().metadata().map_err(failed)?.gid());
        new.finish(mode).map_err(failed)?;
        let summary = DumpReport { state: DumpState::Complete, waits_for: None, ..report };
        if let Err(error) = self.put_summary(&summary, mode) {
            self.progress.change(|report| report.error = Some(format!("can't write its summary: {error}")));
        }
        Ok(())
    }

    fn put_summary(&self, summary: &DumpReport, mode: u32) -> io::Result<()> {
        let name = summary.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let new = NewFile::create_in(self.directory.try_clone()?, &format!("{name}{DUMP_SUMMARY_SUFFIX}"))?;
        let text = serde_json::to_string_pretty(summary).map_err(io::Error::other)? + "\n";
        new.file().write_all(text.as_bytes())?;
        new.finish(mode)
    }
}

/// Returns true if the recording lacks frames before the view's first, or at its begin.
fn has_overwritten(view: &RecordingView) -> bool {
    let first = view.shown_frames().start;
    first > 0 || view.is_overwritten(0..view.frame_size())
}

/// The end of the part, if a command or the recording set it.
#[derive(Debug)]
struct DumpEnd {
    limit: Option<PartLimit>,
    /// The frame after the last one, counted from the view's first.
    frame: Option<u64>,
    /// The end lies beyond this number of frames.
    below: u64,
    /// The time of the next search.
    look_at: Nanos,
}

/// A dump that copies.
#[derive(Debug)]
struct DumpCopy<'a> {
    job: &'a DumpJob,
    view: &'a RecordingView,
    file: &'a File,
    /// The first frame of the part, counted from the view's first.
    begin: u64,
    end: DumpEnd,
    /// The offset in the view of the next byte.
    at: u64,
    blocks: DumpReader<'a>,
    buffer: Vec<u8>,
    clock: Clock,
    limit: DumpRateLimit,
    /// Bytes in the file that it has not synced.
    unsynced: u64,
    /// The time of the last look at the journals.
    looked: Nanos,
}

impl DumpCopy<'_> {
    fn run(&mut self) -> Result<(), DumpFailure> {
        let mut ended = false;
        loop {
            self.job.check_stop()?;
            self.find_end()?;
            let size = self.view.frame_size();
            let shown = self.view.length() / size * size;
            let end = self.end.frame.map(|frame| frame * size);
            if end.is_some_and(|end| self.at >= end) {
                return Ok(());
            }
            // Frames that arrived after the last search may lie beyond the end.
            let searched = self.end.limit.map_or(u64::MAX, |_| self.end.below.saturating_mul(size));
            let until = end.unwrap_or(searched).min(shown);
            if self.at < until {
                self.piece(until)?;
                ended |= self.look_again();
            } else if ended && until == shown {
                return self.ended_early();
            } else {
                ended |= self.job.refresh(self.view);
                self.job.wait(DumpWait::Frames, WAIT)?;
            }
        }
    }

    /// Takes in new records of the journals from time to time. Returns true if no more will come.
    fn look_again(&mut self) -> bool {
        let now = self.clock.now();
        if now.since(self.looked) < LOOK {
            return false;
        }
        self.looked = now;
        self.job.refresh(self.view)
    }

    /// The recording has no more frames.
    fn ended_early(&self) -> Result<(), DumpFailure> {
        if self.at == self.begin * self.view.frame_size() {
            return Err(DumpFailure::Failed("no frame of the recording lies in this part".into()));
        }
        self.job.progress.change(|report| {
            report.ends_early = self.end.limit.is_some();
            report.part_frames = Some(report.frames);
        });
        Ok(())
    }

    /// Finds the end of the part among the frames so far.
    fn find_end(&mut self) -> Result<(), DumpFailure> {
        let begun = self.clock.now();
        let Some(limit) = self.end.limit.filter(|_| self.end.frame.is_none() && begun >= self.end.look_at)
        else {
            return Ok(());
        };
        let failed = |why: String| Err(DumpFailure::Failed(why));
        let frames = self.view.frames();
        match self.view.end_position(limit) {
            Ok(LimitPosition::At(frame)) if frame <= self.begin => {
                return failed("no frame of the recording lies between begin and end".into());
            }
            Ok(LimitPosition::At(frame)) => self.end_at(frame),
            Ok(LimitPosition::Before) => {
                return failed(format!(
                    "the recording has no frame before {limit}: its oldest frame is later"
                ));
            }
            Ok(LimitPosition::Beyond) => self.end.below = frames,
            Err(error) => return failed(error.to_string()),
        }
        let took = self.clock.now().since(begun);
        self.end.look_at = self.clock.now() + LOOK.max(Nanos(took.0.saturating_mul(SEARCH_PAUSE)));
        Ok(())
    }

    /// Fixes the end of the part, counted from the view's first frame.
    fn end_at(&mut self, frame: u64) {
        self.end.frame = Some(frame);
        let part = frame - self.begin;
        self.job.progress.change(|report| report.part_frames = Some(part));
    }

    /// Copies a piece, and pauses as the fill of the recorder's buffer demands.
    fn piece(&mut self, until: u64) -> Result<(), DumpFailure> {
        let share = self.give_way()?;
        let begun = self.clock.now();
        let length = self.blocks.read(self.at..until, &mut self.buffer);
        let path = self.job.progress.report().path;
        let written = self.write(length);
        written.map_err(|error| {
            let directory = path.parent().unwrap_or(&path).display();
            DumpFailure::Failed(format!("can't write to {directory}, and nothing is left there: {error}"))
        })?;
        self.at += length as u64;
        let now = self.clock.now();
        let done = self.at - self.begin * self.view.frame_size();
        self.job.progress.change(|report| report.bytes_per_second = done as f64 / now.seconds().max(1e-9));
        let due = self.limit.after(begun, length as u64).max(now + pause_after(now.since(begun), share));
        self.sleep_until(due)
    }

    /// Waits while the recorder's buffer is too full. Returns the share of full speed.
    fn give_way(&self) -> Result<f64, DumpFailure> {
        loop {
            let share = self.job.see_buffer();
            if share > 0.0 {
                self.job.progress.change(|report| report.waits_for = None);
                return Ok(share);
            }
            self.job.wait(DumpWait::Buffer, LOOK)?;
        }
    }

    /// Sleeps, and looks for a stop in between.
    fn sleep_until(&self, time: Nanos) -> Result<(), DumpFailure> {
        while self.clock.now() < time {
            self.job.check_stop()?;
            self.clock.sleep_until(time.min(self.clock.now() + LOOK));
        }
        self.job.check_stop()
    }

    fn write(&mut self, length: usize) -> io::Result<()> {
        self.file.write_all(&self.buffer[..length])?;
        self.unsynced += length as u64;
        if self.unsynced >= SYNC {
            self.unsynced = 0;
            self.file.sync_data()?;
            rustix::fs::fadvise(self.file, 0, None, Advice::DontNeed)?;
        }
        Ok(())
    }
}
