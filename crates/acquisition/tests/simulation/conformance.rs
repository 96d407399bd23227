//! A writer with its sink passes the suite that every workload passes, fed by a ring.

use std::sync::Arc;

use nilometer_acquisition::{
    Chronicle, Frame, Ring, Writer,
    journal::Head,
    sink::{Durability, Gauge, NullSink, RawFiles, RawLayout, Sink},
};
use nilometer_model::{Format, Nanos, Storing};
use nilometer_storage::{
    Buffer, Completion, Step, Wait, Workload,
    conformance::{Demands, workload_suite},
};

/// A writer, and what puts frames into its ring as long as there is room.
struct Fed<S> {
    ring: Arc<Ring>,
    writer: Writer<S>,
    number: u64,
    spares: Vec<Buffer>,
    closed: bool,
}

const FRAMES: u64 = 40;

impl<S: Sink> Fed<S> {
    fn new(slots: Vec<Buffer>, sink: S, parcels: Option<u64>) -> Self {
        let chronicle = Chronicle::new(1, Nanos(0));
        let ring = match parcels {
            Some(size) => Ring::of_parcels(slots, 1, chronicle, size),
            None => Ring::new(slots, 1, chronicle),
        };
        Fed { writer: Writer::new(ring.clone(), 0, sink), ring, number: 0, spares: Vec::new(), closed: false }
    }

    /// Puts frames in while there is room; closes the ring behind the last. Whether anything changed.
    fn feed(&mut self, now: Nanos) -> bool {
        let before = (self.number, self.closed);
        let mut frames = Vec::new();
        while self.number < FRAMES {
            self.ring.put(now, &mut frames, &mut self.spares, false);
            let Some(data) = self.spares.pop() else { break };
            frames.push(Frame { number: self.number, due: now, data, packed: None });
            self.number += 1;
        }
        self.ring.put(now, &mut frames, &mut self.spares, false);
        if self.number == FRAMES && !self.closed {
            self.closed = true;
            self.ring.close(FRAMES);
        }
        before != (self.number, self.closed)
    }
}

impl<S: Sink> Workload for Fed<S> {
    fn next(&mut self, now: Nanos) -> Step {
        loop {
            let step = self.writer.next(now);
            // It may have given slots back before it asked for a frame.
            let waits = matches!(step, Step::Wait(Wait::News)) && !self.ring.is_abandoned();
            if !waits || !self.feed(now) {
                return step;
            }
        }
    }

    fn completed(&mut self, completion: Completion) {
        self.writer.completed(completion);
    }
}

#[test]
fn a_writer_of_raw_files_is_a_proper_workload() {
    let head = Head {
        recording: 1,
        lane: 0,
        lanes: 1,
        frame_size: 1000,
        stride: 1000,
        frames_per_file: 1,
        storing: Storing::Files,
        format: Format::Raw,
    };
    let cases = [
        (Storing::Files, 1, None, Durability::EachFile),
        (Storing::Files, 1, Some(2), Durability::Never),
        (Storing::Files, 3, Some(2), Durability::EachFile),
        (Storing::Files, 100, None, Durability::Never),
        (Storing::Growing, 3, None, Durability::EachFile),
        (Storing::Growing, 100, None, Durability::Never),
        (Storing::Shared, 3, None, Durability::EachFile),
        (Storing::Shared, 7, None, Durability::Never),
        (Storing::Scattered, 3, None, Durability::EachFile),
        (Storing::Scattered, 1, None, Durability::Never),
    ];
    let raw = cases.map(|case| (Format::Raw, case));
    let cbf = [cases[0], cases[1]].map(|case| (Format::Cbf, case));
    for (format, (storing, frames_per_file, keep, durability)) in raw.into_iter().chain(cbf) {
        let head = Head { frames_per_file, storing, format, ..head };
        let suited = RawLayout::suited("n_r".into(), head, false);
        let layout = RawLayout {
            preallocate: storing.is_many_files(),
            keep,
            durability,
            checksums: true,
            picture: Some([10, 25]),
            ..suited
        };
        let demands = Demands { buffers: 1, bytes: 1000, slots: 5 };
        let parcels = (storing == Storing::Scattered).then_some(frames_per_file);
        workload_suite(demands, &|_| {}, &mut |slots| {
            Box::new(Fed::new(slots, RawFiles::new(layout.clone(), Gauge::with_reserve(0)), parcels))
        });
    }
}

#[test]
fn the_null_sink_acknowledges_everything() {
    let clock = nilometer_storage::Clock::start();
    let mut engine = nilometer_storage::engine::Null::new(1, clock);
    let mut fed = Fed::new(vec![Buffer::alone(100), Buffer::alone(100)], NullSink::default(), None);
    nilometer_storage::Drive::new(&mut fed, &mut engine).run(|_| {});
    assert_eq!((fed.writer.totals().stored, fed.ring.mark(), fed.ring.books().lost()), (FRAMES, FRAMES, 0));
}
