//! An instrument as the load: the shipped recorder with a simulated instrument in front of it. It is made ready
//! before a phase, and ended after it. Its losses meanwhile are the cost of the phase to the instrument.

use std::sync::Arc;

use nilometer_acquisition::{Outcome, Recorder};
use nilometer_model::{BackgroundDone, FramesBeside, Invalid, Nanos, Sample, Seed};
use nilometer_plan::RecordingRun;
use nilometer_storage::{Target, within};

use super::{LOOK_EVERY, SharedLoad, not_lasting};
use crate::{
    ingest::{ready_recorder, sample_of_all},
    supervise::GLANCE,
    task::Run,
};

/// Instruments on a target, each with a recorder of its own.
#[derive(Debug)]
pub(super) struct RecorderLoad {
    run: Run,
    target: Arc<dyn Target>,
    instruments: RecordingRun,
    /// The numbers of those that this process records.
    numbers: Vec<u32>,
    seed: Seed,
    /// The number of times they were made ready; each time their files have other names.
    times: u64,
    recorders: Vec<Recorder>,
}

impl RecorderLoad {
    pub(super) fn new(
        run: &Run,
        target: &Arc<dyn Target>,
        instruments: RecordingRun,
        shared: SharedLoad<'_>,
    ) -> Self {
        let numbers = shared.share.instruments.clone();
        RecorderLoad {
            run: run.clone(),
            target: target.clone(),
            instruments: RecordingRun { count: numbers.len() as u32, ..instruments },
            numbers,
            // Each instrument has a number of its own among those of all processes.
            seed: shared.seed.named("background"),
            times: 0,
            recorders: Vec::new(),
        }
    }

    pub(super) fn target(&self) -> &Arc<dyn Target> {
        &self.target
    }

    /// Makes the recorders ready, if none is left from before.
    pub(super) fn renew(&mut self) -> Result<(), Invalid> {
        self.recorders.clear();
        let cleared = within(self.run.hang_after, &self.target, |target| target.clear());
        cleared.and_then(|cleared| cleared).map_err(|error| not_lasting(&error.to_string()))?;
        self.times += 1;
        for number in &self.numbers {
            let name = format!("n_b{}.{number}", self.times);
            let seed = self.seed.part(u64::from(*number));
            let ready = ready_recorder(&self.run, &self.target, &self.instruments, seed, &name);
            self.recorders.push(ready.map_err(|why| not_lasting(&why.to_string()))?);
        }
        Ok(())
    }

    pub(super) fn begin(&mut self) -> Result<(), Invalid> {
        let begun = self.recorders.iter_mut().try_for_each(Recorder::begin);
        begun.map_err(|error| not_lasting(&error.to_string()))
    }

    /// Waits until each has stored or lost a frame.
    pub(super) fn awaited(&mut self) -> Result<(), Invalid> {
        let clock = self.run.clock;
        let began = clock.now();
        while !self.recorders.iter().all(|recorder| has_begun(recorder, clock.now())) {
            if clock.now().since(began) > self.run.hang_after {
                return Err(not_lasting("it hangs"));
            }
            std::thread::sleep(LOOK_EVERY.duration());
        }
        Ok(())
    }

    /// The counts of all recorders together, since they began.
    pub(super) fn done(&self) -> BackgroundDone {
        let now = self.run.clock.now();
        let none = BackgroundDone { frames: Some(FramesBeside::default()), ..BackgroundDone::default() };
        let all = self.recorders.iter().map(|recorder| done(recorder, now));
        BackgroundDone { wall: now, ..all.fold(none, BackgroundDone::and) }
    }

    pub(super) fn stop(&self) {
        self.recorders.iter().for_each(Recorder::stop);
    }

    /// Waits for their end. Returns an error if one hung or failed, or if the tool itself, and not the storage,
    /// caused a loss.
    pub(super) fn ended(&mut self) -> Result<(), Invalid> {
        let patience = self.run.hang_after + GLANCE + GLANCE;
        let mut outcomes = Vec::new();
        for mut recorder in self.recorders.drain(..) {
            outcomes.push(recorder.wait(patience).ok_or_else(|| not_lasting("it hangs"))?);
        }
        if outcomes.is_empty() {
            return Ok(());
        }
        lasted(&self.instruments, outcomes)
    }
}

/// Returns true if a first frame was stored or lost.
fn has_begun(recorder: &Recorder, now: Nanos) -> bool {
    let done = done(recorder, now);
    done.operations > 0 || done.frames.is_some_and(|frames| frames.lost > 0)
}

fn done(recorder: &Recorder, now: Nanos) -> BackgroundDone {
    let ring = recorder.ring();
    let seen = ring.glance(now);
    let chronicle = ring.chronicle();
    let (bytes, stored) =
        chronicle.work.bins().iter().fold((0, 0), |sum, bin| (sum.0 + bin.bytes, sum.1 + bin.operations));
    let lost = seen.books.lost();
    let frames = FramesBeside {
        due: stored + lost + seen.in_use as u64,
        lost,
        late: chronicle.late,
        allowance: chronicle.allowance,
        longest_stall: seen.longest_stall,
    };
    let operations = stored;
    BackgroundDone { bytes, operations, frames: Some(frames), ..BackgroundDone::default() }
}

/// Checks that the recordings are a valid load. A failed recording is none, nor one that hung, nor one whose
/// losses the tool itself caused.
fn lasted(instruments: &RecordingRun, outcomes: Vec<Outcome>) -> Result<(), Invalid> {
    let sample: Sample = sample_of_all(instruments, outcomes);
    match sample.invalid {
        Some(why) => Err(not_lasting(&format!("its recording is INVALID: {why}"))),
        None => Ok(()),
    }
}
