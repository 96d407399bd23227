//! A writer with a sink is a proper workload, and no frame is lost by it.

use std::sync::Arc;

use nilometer_model::Nanos;
use nilometer_ring::{Chronicle, Frame, FrameTurn, Ring};
use nilometer_storage::{
    Buffer, Completion, Step, Wait, Workload,
    testing::conformance::{Demands, workload_suite},
};

use crate::{
    Writer, ring_of,
    sink::{EncodeStage, Sink},
};

/// Frames of a recording.
const FRAMES: u64 = 40;

/// Checks a sink that works with so many slots for open files, at every depth, with as few slots of the ring as it works
/// with, whole and with everything failing from some operation on: each frame that it took is acknowledged or given back,
/// once, and it ends. `make` gives the same sink each time, with what encodes frames for it; what it makes must take 40 frames.
pub fn sink_suite(file_slots: u32, make: &mut dyn FnMut() -> (Box<dyn Sink>, Option<EncodeStage>)) {
    let demands = Demands { buffers: 1, bytes: make().0.needs().slot, slots: file_slots };
    workload_suite(demands, &|_| {}, &mut |slots| {
        let (sink, encode) = make();
        Box::new(Fed::new(slots, sink, encode))
    });
}

/// A writer, and what puts frames into its ring as long as there is room.
struct Fed {
    ring: Arc<Ring>,
    writer: Writer<Box<dyn Sink>>,
    /// Frames that came so far.
    number: u64,
    spares: Vec<Buffer>,
    closed: bool,
    /// Operations.
    in_flight: u64,
}

impl Fed {
    fn new(slots: Vec<Buffer>, sink: Box<dyn Sink>, encode: Option<EncodeStage>) -> Self {
        let ring = ring_of(sink.needs(), slots, 1, Chronicle::new(1, Nanos(0)), FrameTurn::ALL);
        let writer = Writer::new(ring.clone(), 0, sink).encoding(encode);
        Fed { ring, writer, number: 0, spares: Vec::new(), closed: false, in_flight: 0 }
    }

    /// Puts frames in while there is room; closes the ring behind the last. Whether anything changed.
    fn feed(&mut self, now: Nanos) -> bool {
        let before = (self.number, self.closed);
        let mut frames = Vec::new();
        while self.number < FRAMES {
            self.ring.put(now, &mut frames, &mut self.spares, false);
            let Some(data) = self.spares.pop() else { break };
            frames.push(Frame::new(self.number, now, now, data));
            self.number += 1;
        }
        self.ring.put(now, &mut frames, &mut self.spares, false);
        if self.number == FRAMES && !self.closed {
            self.closed = true;
            self.ring.close(FRAMES);
        }
        before != (self.number, self.closed)
    }

    /// Every frame that came is stored, or nobody was left to take it.
    fn account(&self) {
        let stored = self.writer.totals().stored;
        let lost = self.ring.books().lost();
        assert_eq!(stored + lost, self.number, "{stored} frames were stored, and {lost} given back");
        let fault = self.writer.totals().fault;
        assert!(lost == 0 || fault.is_some(), "{lost} frames were given back without a fault");
    }
}

impl Workload for Fed {
    fn next(&mut self, now: Nanos) -> Step {
        loop {
            let step = self.writer.next(now);
            match step {
                Step::Issue(..) => self.in_flight += 1,
                Step::Done if self.in_flight == 0 => self.account(),
                _ => {}
            }
            // It may have given slots back before it asked for a frame.
            let waits = matches!(step, Step::Wait(Wait::News)) && !self.ring.is_abandoned();
            if !waits || !self.feed(now) {
                return step;
            }
        }
    }

    fn completed(&mut self, completion: Completion) {
        self.in_flight -= 1;
        self.writer.completed(completion);
    }
}
