//! Checks that a writer with a sink is a proper workload and loses no frame.

use std::sync::Arc;

use nilometer_model::Nanos;
use nilometer_ring::{Chronicle, Frame, FrameTurn, Ring};
use nilometer_storage::{
    Buffer, Completion, Step, Wait, Workload,
    testing::conformance::{Demands, workload_suite},
};

use crate::{
    Writer, ring_of,
    sink::{EncodeStage, LaneFiles},
};

/// Frames per recording.
const FRAMES: u64 = 40;

/// Checks that a sink acknowledges or gives back each frame that it took, once, and that it ends.
///
/// Runs it with `file_slots` slots for open files, at every depth, with the fewest ring slots that it works
/// with. Runs it without faults, and with all operations failing from some point on.
///
/// `make` returns the same sink each time, with its encode stage if it needs one. Both must handle 40 frames.
pub fn sink_suite(file_slots: u32, make: &mut dyn FnMut() -> (LaneFiles, Option<EncodeStage>)) {
    let demands = Demands { buffers: 1, bytes: make().0.needs().slot, slots: file_slots };
    workload_suite(demands, &|_| {}, &mut |slots| {
        let (sink, encode) = make();
        Box::new(Fed::new(slots, sink, encode))
    });
}

/// A writer with a source that fills its ring while there is room.
struct Fed {
    ring: Arc<Ring>,
    writer: Writer,
    /// Number of frames fed so far.
    number: u64,
    spares: Vec<Buffer>,
    closed: bool,
    /// Operations in flight.
    in_flight: u64,
}

impl Fed {
    fn new(slots: Vec<Buffer>, sink: LaneFiles, encode: Option<EncodeStage>) -> Self {
        let ring = ring_of(sink.needs(), slots, 1, Chronicle::new(1, Nanos(0)), FrameTurn::ALL);
        let writer = Writer::new(ring.clone(), 0, sink).encoding(encode);
        Fed { ring, writer, number: 0, spares: Vec::new(), closed: false, in_flight: 0 }
    }

    /// Feeds frames while there is room, and closes the ring after the last. Returns true if anything changed.
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

    /// Checks that the writer stored every frame, or that a fault left no lane to take it.
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
            // The writer may have given slots back before it asked for a frame.
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
