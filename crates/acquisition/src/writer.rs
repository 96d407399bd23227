//! The writer empties the ring: it takes full slots, has frames encoded if needed, has a sink store them, and
//! gives the slots back.

use std::{collections::VecDeque, sync::Arc};

use nilometer_model::{Histogram, Nanos};
use nilometer_recording::Due;
use nilometer_ring::{Frame, FrameCount, MessageDamage, Ring, StoredCounts, Taken};
use nilometer_storage::{Completion, Errno, Step, Wait, Workload, process::Usage};

use crate::sink::{EncodeStage, LaneFiles, Stored};

/// A lane of the recorder as a workload.
#[derive(Debug)]
pub struct Writer {
    ring: Arc<Ring>,
    seat: usize,
    sink: LaneFiles,
    state: State,
    /// Frames taken from the ring but not yet submitted.
    taken: VecDeque<Frame>,
    /// The stage that encodes frames first, if any.
    encode: Option<EncodeStage>,
    /// The event to pass to the sink once it has all frames before it.
    told: Option<Told>,
    stored: Stored,
    totals: WriterTotals,
    counts: Arc<StoredCounts>,
}

/// An event in the ring between frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    /// A chunk begins with this frame. The writer has submitted none of its frames yet.
    Begins(u64),
    Ends,
    /// The recording is over, with this length.
    Closed(Due),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Taking,
    Finishing,
    Failed,
}

/// Totals of a lane.
#[derive(Debug, Clone, Default)]
pub struct WriterTotals {
    /// Frames acknowledged.
    pub stored: u64,
    /// Times from a frame being due to its slot being free again.
    pub lateness: Histogram,
    /// Times from a frame being due to it surviving the loss of power, if requested.
    pub durable: Histogram,
    /// The longest time until a slot was free, exactly.
    pub longest: Nanos,
    /// The lane's fault, if it failed.
    pub fault: Option<Errno>,
    /// Number of acknowledged frames that arrived damaged: their compressed bytes can't be unpacked, or differ from
    /// the sender's hash.
    pub damaged: u64,
    /// Number of damaged frames that differ from the sender's hash.
    pub altered: u64,
    /// True if its storage was full up to the reserve, and the lane ended in order before the recording did.
    pub full: bool,
}

impl Writer {
    /// Creates a writer in a seat of the ring.
    pub fn new(ring: Arc<Ring>, seat: usize, sink: LaneFiles) -> Self {
        let totals = WriterTotals::default();
        let stored = Stored { acknowledged: Vec::with_capacity(16), durable: Vec::new() };
        let taken = VecDeque::with_capacity(ring.batch());
        let counts = Arc::default();
        let (encode, told, state) = (None, None, State::Taking);
        Writer { ring, seat, sink, state, taken, encode, told, stored, totals, counts }
    }

    /// Encodes frames before the sink gets them.
    #[must_use]
    pub fn encoding(self, encode: Option<EncodeStage>) -> Self {
        Writer { encode, ..self }
    }

    /// Counts in `counts`, which other threads can read during the run.
    #[must_use]
    pub fn counting(self, counts: Arc<StoredCounts>) -> Self {
        Writer { counts, ..self }
    }

    /// The sink.
    pub fn sink(&self) -> &LaneFiles {
        &self.sink
    }

    /// Processor time of the threads that encode frames for it.
    pub fn encode_usage(&self) -> Usage {
        self.encode.as_ref().map(EncodeStage::usage).unwrap_or_default()
    }

    /// Totals so far.
    pub fn totals(&self) -> &WriterTotals {
        &self.totals
    }

    fn fail(&mut self, now: Nanos, errno: Errno) {
        if self.state != State::Failed {
            self.state = State::Failed;
            self.totals.fault = Some(errno);
            self.ring.leave(now, self.seat);
        }
        for mut frame in self.sink.abandon() {
            self.strip(&mut frame);
            self.ring.give_back(now, frame);
        }
        self.give_back_taken(now);
    }

    /// Ends the lane in order because its storage is full. It completes its open files and leaves the other
    /// frames to the other lanes.
    fn retire(&mut self, now: Nanos) {
        self.state = State::Finishing;
        self.told = None;
        self.totals.full = true;
        self.ring.leave(now, self.seat);
        self.give_back_taken(now);
        self.sink.finish(None);
    }

    /// Has the sink write its collected frames while no frame waits.
    fn pause(&mut self, now: Nanos, asks_at: Option<Nanos>) -> Step {
        self.sink.flush();
        if self.ring.is_closed() {
            self.sink.put_open();
        }
        let issued = self.sink.next(now).map(|(operation, due)| Step::Issue(operation, due));
        let wakes_at = asks_at.into_iter().chain(self.sink.wakes_at()).min();
        issued.unwrap_or(Step::Wait(wakes_at.map_or(Wait::News, Wait::Until)))
    }

    fn give_back_taken(&mut self, now: Nanos) {
        let encoding = self.encode.as_mut().map(EncodeStage::abandon).unwrap_or_default();
        for frame in encoding.into_iter().chain(self.taken.drain(..)) {
            self.ring.give_back(now, frame);
        }
    }

    /// Frees the buffer that holds the encoded bytes of a frame.
    fn strip(&mut self, frame: &mut Frame) {
        if let Some(encode) = &mut self.encode {
            encode.strip(frame);
        }
    }

    /// Returns the next frame for the sink.
    fn ready(&mut self, now: Nanos) -> Option<Frame> {
        match &mut self.encode {
            None if self.told.is_some() => None,
            None => self.taken.pop_front(),
            Some(encode) => encode.next(now),
        }
    }

    /// Passes frames to the sink and, before that, to the encode stage. Returns true if one moved on.
    fn hand_on(&mut self, now: Nanos) -> bool {
        if self.sink.has_room()
            && let Some(frame) = self.ready(now)
        {
            self.sink.submit(frame);
            return true;
        }
        let Some(encode) = self.encode.as_mut().filter(|encode| encode.has_room() && self.told.is_none())
        else {
            return false;
        };
        let Some(frame) = self.taken.pop_front() else { return false };
        encode.submit(frame);
        true
    }

    /// Passes the ring's event to the sink, if the sink has all frames before it and room for the following
    /// ones.
    fn tell(&mut self) -> bool {
        let has_all = self.encode.as_ref().is_none_or(EncodeStage::is_empty) && self.sink.has_room();
        let Some(told) = self.told.take_if(|_| has_all) else { return false };
        match told {
            Told::Begins(first) => self.sink.begin(first),
            Told::Ends => self.sink.end(),
            Told::Closed(due) => {
                self.sink.finish(Some(due));
                self.state = State::Finishing;
            }
        }
        true
    }

    /// Takes frames from the ring, if they can move on, and returns the ring's answer.
    fn take(&mut self, now: Nanos) -> Option<Taken> {
        let can_go_on = match &self.encode {
            None => self.sink.has_room(),
            Some(encode) => encode.has_room(),
        };
        if !can_go_on || !self.taken.is_empty() || self.told.is_some() {
            return None;
        }
        let taken = self.ring.take(now, self.seat, &mut self.taken);
        self.told = match taken {
            Taken::Chunk => Some(Told::Begins(self.taken.front().map_or(0, |frame| frame.number))),
            Taken::Over => Some(Told::Ends),
            Taken::Closed(due) => Some(Told::Closed(due)),
            Taken::Frames | Taken::Nothing | Taken::Later(_) => None,
        };
        Some(taken)
    }

    /// Returns the event to wait for while frames can't move on.
    fn wait(&self, now: Nanos) -> Wait {
        let encoding = self.encode.as_ref().is_some_and(|encode| !encode.is_empty());
        match self.sink.wakes_at() {
            _ if !encoding => self.sink.wait(now),
            Some(time) => Wait::Until(time),
            None => Wait::News,
        }
    }

    /// Counts frames by their result, and frees the slots of acknowledged ones.
    fn settle(&mut self, now: Nanos) {
        let Stored { acknowledged, durable } = &mut self.stored;
        for frame in acknowledged.iter_mut() {
            if let Some(encode) = &mut self.encode {
                encode.strip(frame);
            }
            let late = now.since(frame.due);
            self.totals.stored += 1;
            if let Some(damage) = frame.damage() {
                self.totals.damaged += 1;
                self.totals.altered += u64::from(damage == MessageDamage::Hash);
                self.counts.add_damaged(1);
            }
            self.counts.acknowledged.add(FrameCount::of(frame, frame.data.len() as u64));
            self.totals.lateness.add(late.0);
            self.totals.longest = self.totals.longest.max(late);
        }
        for frame in durable.drain(..) {
            self.totals.durable.add(now.since(frame.due).0);
            self.counts.durable.add(frame);
        }
        if !acknowledged.is_empty() {
            self.ring.release(now, acknowledged);
        }
    }
}

impl Workload for Writer {
    fn next(&mut self, now: Nanos) -> Step {
        while self.state != State::Failed {
            if let Some((operation, due)) = self.sink.next(now) {
                return Step::Issue(operation, due);
            }
            if self.state == State::Taking && self.sink.is_full() {
                self.retire(now);
                continue;
            }
            if self.state == State::Finishing {
                return if self.sink.is_finished() { Step::Done } else { Step::Wait(self.sink.wait(now)) };
            }
            if self.hand_on(now) || self.tell() {
                continue;
            }
            match self.take(now) {
                Some(Taken::Nothing) => return self.pause(now, None),
                Some(Taken::Later(time)) => return self.pause(now, Some(time)),
                Some(_) => {}
                None => return Step::Wait(self.wait(now)),
            }
        }
        // The sink may still close its files.
        self.sink.next(now).map_or(Step::Done, |(operation, due)| Step::Issue(operation, due))
    }

    fn completed(&mut self, completion: Completion) {
        let finished = completion.finished;
        let result = self.sink.completed(completion, &mut self.stored);
        self.settle(finished);
        if let Err(errno) = result {
            self.fail(finished, errno);
        }
    }
}
