//! The start of a series, awaited before a recording of it can be laid out: only then it is known what its frames are.

use std::{io, ops::Range};

use nilometer_model::Nanos;
use nilometer_storage::{Buffer, Clock};
use nilometer_wire::series::SeriesStart;

use super::{DescribedSeries, FrameIntake, RefusedFrame, SeriesFrame, SeriesReceiver, SlotAnswer};
use crate::transport::zeromq::ZmqMessage;

/// No dataset has more chunks: the index of one that grows counts them in 32 bits (`H5D_EARRAY_MAX_NELMTS_BITS`).
const FRAMES_MAX: u64 = u32::MAX as u64;
/// Bytes of a frame, as of an instrument's.
const FRAME_MAX: u64 = 2 << 30;

impl SeriesReceiver {
    /// Receives until a series begins that can be recorded; none if it is to stop before. Its images wait meanwhile: at the
    /// sender, as far as the network does not hold them. A detector that does not describe itself is called by this name.
    ///
    /// # Errors
    /// If nothing can come any more.
    pub fn await_start(
        &mut self,
        clock: Clock,
        is_over: &dyn Fn() -> bool,
        name: &str,
    ) -> io::Result<Option<DescribedSeries>> {
        let mut awaiting = AwaitedStart { name: name.to_owned(), described: None };
        while !is_over() {
            self.turn(clock.now(), &mut awaiting)?;
            if let Some(described) = awaiting.described.take() {
                return Ok(Some(described));
            }
        }
        Ok(None)
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
        let frames = start.images.saturating_mul(start.channels.len() as u64);
        if frames > FRAMES_MAX {
            return Err(format!("{frames} frames: a recording has at most {FRAMES_MAX}"));
        }
        let bytes = nilometer_wire::series::bytes_of(&start.shape, start.element);
        if bytes.is_none_or(|bytes| bytes > FRAME_MAX) {
            return Err(format!("images of {:?}: one has at most 2 GiB", start.shape));
        }
        self.described = Some(DescribedSeries::of(start, message, &self.name));
        Ok(())
    }

    fn take(&mut self, _: Nanos, frame: SeriesFrame) -> Result<(), RefusedFrame> {
        // It gave no slot for it.
        Err(RefusedFrame { slot: frame.data, fault: "it came before its series".into() })
    }

    fn missing(&mut self, _: Nanos, _: Range<u64>) {}
}
