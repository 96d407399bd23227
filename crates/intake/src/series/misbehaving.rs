//! A sender that misbehaves costs only counted images of a series with a start, and the good series behind it
//! is complete. For each seed, all messages pass the reception, which records one series after another.

use std::collections::{BTreeMap, VecDeque};

use nilometer_model::{RandomStream, Seed};
use nilometer_storage::Arena;

use super::{
    admission::WAIT_FOR,
    reception::SeriesReception,
    waiting_room::{WaitingLimits, WaitingRoom},
    *,
};
use crate::{
    conformance::{SenderScenario, SentKind, SentMessage},
    transport::zeromq::{MessageRoom, RoomAnswer, RoomRequest},
};

const SLOTS: usize = 3;

/// Seeds in a run.
fn seeds() -> u64 {
    if std::env::var_os("NILOMETER_LONG").is_some() { 20_000 } else { 600 }
}

/// An intake whose slots have a length of their own, so that it finds out about slots of others.
#[derive(Debug)]
struct LimitedIntake {
    slot_length: usize,
    free: Vec<Buffer>,
    /// Slots that are being written, and until when.
    busy: VecDeque<(Nanos, Buffer)>,
    /// No slot is given before the recording is prepared.
    prepared: bool,
    random: RandomStream,
    start: Option<SeriesStart>,
    frames: BTreeMap<u64, Vec<u8>>,
    missing: u64,
}

impl LimitedIntake {
    fn new(slot_length: usize, seed: Seed) -> Self {
        LimitedIntake {
            slot_length,
            free: Arena::shared_out(SLOTS, slot_length).1,
            busy: VecDeque::new(),
            prepared: false,
            random: seed.stream(),
            start: None,
            frames: BTreeMap::new(),
            missing: 0,
        }
    }

    fn all_slots(&self) -> usize {
        self.free.len() + self.busy.len()
    }
}

impl FrameIntake for LimitedIntake {
    fn slot(&mut self, _: Nanos, length: usize) -> SlotAnswer {
        assert!(length <= self.slot_length);
        let free = self.free.pop_if(|_| self.prepared);
        free.map_or(SlotAnswer::Wait, SlotAnswer::Free)
    }

    fn give_back(&mut self, slot: Buffer) {
        assert_eq!(slot.len(), self.slot_length, "a slot of another ring");
        self.free.push(slot);
    }

    fn begin(&mut self, _: Nanos, start: &SeriesStart, _: &ZmqMessage) -> Result<(), String> {
        self.start = Some(start.clone());
        Ok(())
    }

    fn take(&mut self, now: Nanos, frame: SeriesFrame) -> Result<(), RefusedFrame> {
        assert_eq!(frame.data.len(), self.slot_length, "a slot of another ring");
        let bytes = frame.data[..frame.length].to_vec();
        assert!(self.frames.insert(frame.number, bytes).is_none(), "it is there");
        let stored = now + Nanos::from_millis(self.random.below(30));
        self.busy.push_back((stored, frame.data));
        Ok(())
    }

    fn tend(&mut self, now: Nanos) {
        while let Some((_, slot)) = self.busy.pop_front_if(|(stored, _)| *stored <= now) {
            self.free.push(slot);
        }
    }

    fn missing(&mut self, _: Nanos, frames: Range<u64>) {
        self.missing += frames.end - frames.start;
    }
}

/// A recording that ended.
struct EndedRecording {
    start: SeriesStart,
    frames: BTreeMap<u64, Vec<u8>>,
}

/// The network, and a recorder that records one series after the other.
struct SimulatedReception<'a> {
    scenario: &'a SenderScenario,
    random: RandomStream,
    reception: SeriesReception,
    connections: Vec<VecDeque<(usize, SentMessage)>>,
    /// Messages that come slowly: room was given, and their bytes are not all there.
    coming: Vec<Option<(ZmqMessage, SentKind)>>,
    now: Nanos,
    quiet_until: Nanos,
    /// When something was delivered last.
    delivered: Nanos,
    /// Images that were delivered as a whole, in order.
    images: Vec<(usize, u64)>,
    /// Other messages that were.
    others: u64,
    refused: u64,
    recordings: Vec<EndedRecording>,
}

struct ReceptionRoom<'a> {
    now: Nanos,
    reception: &'a mut SeriesReception,
    intake: &'a mut LimitedIntake,
}

impl MessageRoom for ReceptionRoom<'_> {
    fn room(&mut self, asked: RoomRequest<'_>) -> RoomAnswer {
        self.reception.room(self.now, asked, self.intake)
    }

    fn give_back(&mut self, buffer: Buffer) {
        self.reception.give_back(buffer, self.intake);
    }
}

impl<'a> SimulatedReception<'a> {
    fn new(scenario: &'a SenderScenario, seed: Seed) -> Self {
        let until = until();
        let mut reception = SeriesReception::new(until);
        let mut random = seed.named("network").stream();
        // Room for few images that came before their start, so that senders wait. Short messages arrive as a
        // whole, and their sender can't wait with them.
        let least = if scenario.frame_bytes() < 4096 { 64 } else { 1 };
        let limits = WaitingLimits { images: least + random.below(4) as usize, bytes: 200_000 };
        reception.early = WaitingRoom::limited(limits);
        let mut connections = vec![VecDeque::new(); scenario.connections];
        for (order, message) in scenario.messages.iter().enumerate() {
            connections[message.connection].push_back((order, message.clone()));
        }
        SimulatedReception {
            scenario,
            random,
            reception,
            coming: connections.iter().map(|_| None).collect(),
            connections,
            now: Nanos(0),
            quiet_until: Nanos(0),
            delivered: Nanos(0),
            images: Vec::new(),
            others: 0,
            refused: 0,
            recordings: Vec::new(),
        }
    }

    /// Records until nothing comes any more.
    fn run(&mut self) {
        while let Some(mut intake) = self.await_start() {
            // It takes its time until the recording is prepared.
            self.now += Nanos::from_millis(self.random.below(2500));
            self.delivered = self.now;
            intake.prepared = true;
            self.reception.resume(self.now);
            while self.reception.is_over(self.now).is_none() {
                self.step(&mut intake);
            }
            self.reception.finish(self.now, &mut intake);
            self.end(intake);
        }
    }

    /// Until a series begins. None if nothing comes any more.
    fn await_start(&mut self) -> Option<LimitedIntake> {
        let number = self.recordings.len();
        let length = self.scenario.frame_bytes() + 64 * (1 + number);
        let mut intake = LimitedIntake::new(length, Seed(number as u64));
        loop {
            self.step(&mut intake);
            drop(self.reception.take_unusable());
            if intake.start.is_some() {
                return Some(intake);
            }
            let is_drained =
                self.connections.iter().all(VecDeque::is_empty) && self.coming.iter().all(Option::is_none);
            if is_drained && self.now.since(self.delivered) > WAIT_FOR + WAIT_FOR + WAIT_FOR {
                self.refused += self.reception.tally.refused_all();
                return None;
            }
        }
    }

    /// Ends the recording, and begins the next some time later, with another clock.
    fn end(&mut self, intake: LimitedIntake) {
        let coming = self.coming.iter().flatten().flat_map(|(message, _)| message.apart.iter().flatten());
        let away = coming.filter(|buffer| buffer.len() == intake.slot_length).count();
        assert_eq!(intake.all_slots() + away, SLOTS, "no slot is lost");
        let check = self.reception.series().expect("it began");
        let came = intake.frames.len() as u64;
        assert_eq!(came + intake.missing, check.frames(), "what did not come is missing");
        assert_eq!(came, self.reception.tally.frames);
        self.refused += self.reception.tally.refused_all();
        let start = intake.start.expect("it began");
        self.recordings.push(EndedRecording { start, frames: intake.frames });
        self.now = Nanos::from_millis(self.random.below(100));
        (self.delivered, self.quiet_until) = (self.now, Nanos(0));
        self.reception.begin_next(self.now, until());
    }

    /// A message, or a little time.
    fn step(&mut self, intake: &mut LimitedIntake) {
        self.now += Nanos::from_millis(1);
        self.reception.tend(self.now, intake);
        if let Some(queued) = self.reception.take_queued(self.now) {
            self.reception.accept(self.now, queued, intake);
            self.delivered = self.now;
            return;
        }
        if self.reception.is_closed() || self.now < self.quiet_until || !self.deliver(intake) {
            self.now += Nanos::from_millis(9);
        }
    }

    /// Delivers a message for which there is room. Returns false if no connection had one.
    fn deliver(&mut self, intake: &mut LimitedIntake) -> bool {
        let order = |at: usize| match &self.coming[at] {
            Some(_) => Some(0),
            None => self.connections[at].front().map(|(order, _)| *order),
        };
        let mut heads: Vec<(usize, usize)> =
            (0..self.connections.len()).filter_map(|at| Some((order(at)?, at))).collect();
        heads.sort_unstable();
        if !heads.is_empty() && self.random.below(4) == 0 {
            let other = self.random.below(heads.len() as u64) as usize;
            heads.swap(0, other);
        }
        heads.into_iter().any(|(_, at)| self.deliver_on(at, intake))
    }

    fn deliver_on(&mut self, at: usize, intake: &mut LimitedIntake) -> bool {
        if self.coming[at].is_some() {
            if self.random.below(5) > 0 {
                return false;
            }
            let Some((message, kind)) = self.coming[at].take() else { return false };
            self.came(message, kind, intake);
            return true;
        }
        let Some((_, message)) = self.connections[at].front_mut() else { return false };
        let pause = std::mem::take(&mut message.pause_ms);
        if pause > 0 {
            self.quiet_until = self.now + Nanos::from_millis(pause);
            return false;
        }
        let mut room = ReceptionRoom { now: self.now, reception: &mut self.reception, intake };
        let Some(came) = ZmqMessage::delivered(&message.parts, &mut room) else { return false };
        let SentMessage { kind, is_cut, .. } = *message;
        self.connections[at].pop_front();
        self.delivered = self.now;
        if is_cut {
            came.apart.into_iter().flatten().for_each(|buffer| room.give_back(buffer));
            return true;
        }
        if self.random.below(10) == 0 {
            self.coming[at] = Some((came, kind));
        } else {
            self.came(came, kind, intake);
        }
        true
    }

    /// A message is whole.
    fn came(&mut self, message: ZmqMessage, kind: SentKind, intake: &mut LimitedIntake) {
        self.delivered = self.now;
        match kind {
            SentKind::Image(series, image) => self.images.push((series, image)),
            _ => self.others += 1,
        }
        let queued = self.reception.received(self.now, message);
        self.reception.accept(self.now, queued, intake);
    }

    fn check(&self) {
        let sent: BTreeMap<Vec<u8>, (usize, u64)> = self
            .images
            .iter()
            .map(|&(series, image)| (self.scenario.pixels(series, image), (series, image)))
            .collect();
        let mut frames = 0;
        for recording in &self.recordings {
            for (number, bytes) in &recording.frames {
                let (series, image) = sent[bytes];
                assert_eq!(image, *number, "each at its place");
                let name = &self.scenario.series[series].name;
                assert!(name.is_same(&recording.start.series), "each in its series");
                frames += 1;
            }
        }
        let unrecorded = self.images.len() as u64 - frames;
        assert!(
            self.refused >= unrecorded,
            "{} of {unrecorded} that are not recorded are counted",
            self.refused
        );
        assert!(self.refused <= unrecorded + self.others, "{} counted, {unrecorded} came", self.refused);
        if self.scenario.connections > 1 {
            // A late start on another connection looks like a detector that begins anew, and an image that
            // overtakes its start like a leftover one. The test has counted all of them above.
            return;
        }
        let good = self.scenario.good();
        let announced = self.scenario.series[good].announced;
        let whole = self.recordings.iter().find(|recording| {
            let all: Vec<_> = (0..announced).map(|image| self.scenario.pixels(good, image)).collect();
            recording.frames.values().eq(all.iter())
        });
        let recordings = || -> Vec<_> {
            self.recordings
                .iter()
                .map(|ended| (ended.start.series.number, ended.frames.keys().collect::<Vec<_>>()))
                .collect()
        };
        assert!(whole.is_some(), "the good series is whole: {:?}", recordings());
    }
}

fn until() -> SeriesUntil {
    SeriesUntil { silence: Nanos::from_millis(8000), ..SeriesUntil::default() }
}

#[test]
fn a_sender_that_misbehaves_costs_only_what_is_counted() {
    for seed in (0..seeds()).map(Seed) {
        let scenario = SenderScenario::of(seed);
        let outcome = std::panic::catch_unwind(|| {
            let mut simulated = SimulatedReception::new(&scenario, seed);
            simulated.run();
            simulated.check();
        });
        let kinds: Vec<_> =
            scenario.messages.iter().map(|message| (message.connection, message.kind)).collect();
        assert!(outcome.is_ok(), "seed {}: {:?} {kinds:?}", seed.0, scenario.series);
    }
}
