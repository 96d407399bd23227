//! Pictures of the latest frame, for people who watch a recording. Nilometer makes one only on request, on a
//! thread that neither the recorder nor any other answer waits for. There is at most one picture a second, and
//! at most one at a time for all clients. Making pictures takes at most a fifth of the time.
//!
//! ```text
//! GET /latest-frame -> LatestFrames -> (thread) PictureReader -> LastFrameReader -> reduce -> LatestFrame
//! ```

mod last_frame;
mod layout;
mod reduce;
mod source;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use nilometer_model::Nanos;
use nilometer_storage::{Clock, DetachedTask, NoOutcome};

pub(crate) use last_frame::LastFrameReader;
pub(crate) use layout::check_frames;
use source::PictureReader;
pub(crate) use source::{LatestFrame, PictureSource};

/// Makes pictures on request and keeps the latest.
#[derive(Debug)]
pub(crate) struct LatestFrames {
    clock: Clock,
    state: Mutex<PictureState>,
}

/// A picture, or the reason why there is none.
pub(crate) type FrameAnswer = Result<Arc<LatestFrame>, String>;

#[derive(Debug, Default)]
struct PictureState {
    source: Option<Arc<PictureSource>>,
    /// The reader, while no read is running.
    reader: Option<PictureReader>,
    reading: Option<Reading>,
    answer: Option<FrameAnswer>,
    /// No read begins before this moment.
    next: Nanos,
}

/// The result of a read: `None` if the frame is the same as before.
type FrameRead = Result<Option<LatestFrame>, String>;

/// A read in progress. Storage that hangs keeps it there, and with it one thread for each recording.
#[derive(Debug)]
struct Reading {
    task: DetachedTask<(PictureReader, FrameRead)>,
    begun: Nanos,
}

/// The shortest interval between pictures.
const EVERY: Nanos = Nanos::from_millis(1000);
/// The pause after a read, as a multiple of the time that it took.
const PAUSE: u64 = 4;
/// The longest that a client waits for a picture in progress.
const PATIENCE: Nanos = Nanos::from_millis(800);
const STEP: Duration = Duration::from_millis(5);
/// The nice value of the reading thread: the recorder goes first if both need the processor.
const NICE: i32 = 10;

impl LatestFrames {
    pub(crate) fn new() -> Self {
        LatestFrames { clock: Clock::start(), state: Mutex::default() }
    }

    /// The latest picture of this recording. If one is in progress, it waits for that up to `PATIENCE`.
    pub(crate) fn latest(&self, source: &Arc<PictureSource>) -> FrameAnswer {
        if let Some(why) = source.refusal() {
            return Err(why.clone());
        }
        let asked = self.clock.now();
        loop {
            let state = self.advance(source);
            let is_over = self.clock.now().since(asked) >= PATIENCE;
            if state.reading.is_none() || is_over {
                let silent = || Err("the storage has not answered yet".into());
                return state.answer.clone().unwrap_or_else(silent);
            }
            drop(state);
            thread::sleep(STEP);
        }
    }

    /// Takes in a finished read, and begins another if that is due.
    fn advance(&self, source: &Arc<PictureSource>) -> MutexGuard<'_, PictureState> {
        let now = self.clock.now();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.turn_to(source);
        state.take_in(now);
        if state.reading.is_none() && now >= state.next {
            state.begin(source, now);
        }
        state
    }
}

impl PictureState {
    /// Turns to this recording. It drops everything of another, including a read in progress.
    fn turn_to(&mut self, source: &Arc<PictureSource>) {
        if self.source.as_ref().is_none_or(|known| !Arc::ptr_eq(known, source)) {
            let next = self.next;
            *self = PictureState { source: Some(source.clone()), next, ..PictureState::default() };
        }
    }

    fn take_in(&mut self, now: Nanos) {
        let Some(Reading { task, begun }) = &self.reading else { return };
        let outcome = match task.outcome() {
            Err(NoOutcome::Unfinished) => return,
            Ok((reader, read)) => {
                self.reader = Some(reader);
                read
            }
            Err(NoOutcome::Gone) => Err("a fault of the recorder itself: see its log".into()),
        };
        self.next = next_read(*begun, now, EVERY);
        self.reading = None;
        match outcome {
            Ok(Some(frame)) => self.answer = Some(Ok(Arc::new(frame))),
            // The frame is still the same.
            Ok(None) => {}
            Err(why) => self.answer = Some(Err(why)),
        }
    }

    fn begin(&mut self, source: &Arc<PictureSource>, now: Nanos) {
        let reader = self.reader.take().unwrap_or_else(|| PictureReader::new(source.clone()));
        match DetachedTask::begin("latest-frame", move || read(reader)) {
            Ok(task) => self.reading = Some(Reading { task, begun: now }),
            Err(error) => self.answer = Some(Err(format!("can't start a thread: {error}"))),
        }
    }
}

/// The moment of the next read: at least `every` after the last one began, and after a pause of several times its
/// length.
pub(crate) fn next_read(begun: Nanos, now: Nanos, every: Nanos) -> Nanos {
    begun + every.max(Nanos((PAUSE + 1) * now.since(begun).0))
}

/// Gives this thread a low priority. Linux has a priority for each thread (setpriority(2), "C library/kernel
/// differences"). A failure does no harm.
pub(crate) fn step_back() {
    rustix::process::setpriority_process(None, NICE).unwrap_or_default();
}

/// Reads the latest frame. It may wait for storage, so it runs on a thread of its own.
fn read(mut reader: PictureReader) -> (PictureReader, FrameRead) {
    step_back();
    let read = reader.read();
    (reader, read)
}

#[cfg(test)]
mod tests;
