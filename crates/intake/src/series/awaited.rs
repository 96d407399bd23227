//! Awaits the start of a series. Only then the size of its frames is known, and its recording can be laid
//! out.

use std::{io, ops::Range};

use nilometer_model::Nanos;
use nilometer_storage::{Buffer, Clock};
use nilometer_wire::series::SeriesStart;

use super::{
    DescribedSeries, FrameIntake, RefusedFrame, SeriesFrame, SeriesReceiver, SeriesUntil, SlotAnswer,
};
use crate::transport::zeromq::ZmqMessage;

/// Interval between reports of discarded images during a wait.
const SAID_EACH: Nanos = Nanos::from_millis(5000);
/// Maximum bytes of a frame, as for instruments.
const FRAME_MAX: u64 = 2 << 30;

/// How a wait for a series ended.
#[derive(Debug)]
pub enum AwaitedSeries {
    /// It begins.
    Begun(Box<DescribedSeries>),
    /// One began that can't be recorded, with the reason.
    Unusable(String),
    /// The wait was stopped.
    Stopped,
}

impl SeriesReceiver {
    /// Receives until a series begins. Its images wait meanwhile, at the sender if they exceed the network's
    /// buffers.
    ///
    /// A detector that does not describe itself gets the name `name`. `say` reports images that are
    /// discarded.
    ///
    /// # Errors
    /// If no message can arrive any more.
    pub fn await_start(
        &mut self,
        clock: Clock,
        is_over: &dyn Fn() -> bool,
        name: &str,
        say: &dyn Fn(&str),
    ) -> io::Result<AwaitedSeries> {
        let mut awaiting = AwaitedStart { name: name.to_owned(), described: None };
        let mut discarded = self.tally().refused_all();
        let mut said = Nanos(0);
        self.turned = None;
        while !is_over() {
            let now = clock.now();
            self.excuse_halt(now, &mut awaiting);
            self.turn(now, &mut awaiting)?;
            if let Some(described) = awaiting.described.take() {
                self.pass_on_all(is_over)?;
                self.tell(now);
                return Ok(AwaitedSeries::Begun(Box::new(described)));
            }
            if let Some(fault) = self.take_unusable() {
                self.pass_on_all(is_over)?;
                return Ok(AwaitedSeries::Unusable(fault));
            }
            let refused = self.tally().refused_all();
            if refused > discarded && (said == Nanos(0) || now.since(said) >= SAID_EACH) {
                say(&format!(
                    "{refused} frames or messages of other series or of none are discarded meanwhile"
                ));
                (discarded, said) = (refused, now);
            }
        }
        Ok(AwaitedSeries::Stopped)
    }

    /// Awaits the next series, with other limits. Messages queued behind the last one are its beginning.
    pub fn begin_next(&mut self, now: Nanos, until: SeriesUntil) {
        self.reset(now, until);
    }
}

/// Takes a start, and no frame.
#[derive(Debug)]
struct AwaitedStart {
    name: String,
    described: Option<DescribedSeries>,
}

impl FrameIntake for AwaitedStart {
    fn slot(&mut self, _: Nanos, _: usize) -> SlotAnswer {
        SlotAnswer::Wait
    }

    fn give_back(&mut self, slot: Buffer) {
        drop(slot);
    }

    fn begin(&mut self, _: Nanos, start: &SeriesStart, message: &ZmqMessage) -> Result<(), String> {
        let bytes = nilometer_wire::series::bytes_of(&start.shape, start.element);
        if bytes.is_none_or(|bytes| bytes > FRAME_MAX) {
            return Err(format!("images of {:?}: one has at most 2 GiB", start.shape));
        }
        self.described = Some(DescribedSeries::of(start, message, &self.name));
        Ok(())
    }

    fn take(&mut self, _: Nanos, frame: SeriesFrame) -> Result<(), RefusedFrame> {
        // This intake gave no slot for it.
        Err(RefusedFrame { slot: frame.data, fault: "it came before its series".into() })
    }

    fn missing(&mut self, _: Nanos, _: Range<u64>) {}
}
