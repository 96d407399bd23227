//! Streams, links, processors, memory and writers of the simulation, in front of the storage.

use std::ops::Range;

use nilometer_model::{Bytes, Nanos};

use super::{
    Agenda, Demand, Kind, Limits, Phases, Place, SimulationResult, Sizing, SizingTrial, recorder,
    storage::{Job, Storage},
};

/// The time of a reader's piece, which is as large as a frame, in seconds.
const PIECE_SECONDS: (f64, f64) = (1e-4, 2e-3);

/// The most frames of each stream before a link or a processor. One each may arrive at the same moment. After
/// links frames can be closer than before, by one more.
const BEFORE_LINK: f64 = 1.01;
const BEFORE_PROCESSOR: f64 = 2.01;

pub(super) struct Chain<'a> {
    kinds: &'a [Kind],
    limits: &'a Limits,
    duration: f64,
    streams: Vec<Stream>,
    recorders: Vec<Recorder>,
    readers: Vec<Reader>,
    servers: u64,
    storage: Storage<Purpose>,
    agenda: Agenda<Event>,
    books: Books,
}

/// A stream of an instrument.
struct Stream {
    kind: usize,
    recorder: usize,
    link: usize,
    /// The next frame that is due.
    number: u64,
    /// The time by which it is ahead of its schedule.
    phase: Nanos,
}

struct Recorder {
    /// Bytes a second that it must be able to write.
    writes: f64,
    links: Vec<Station>,
    processor: Station,
    writers: Vec<f64>,
    memory: f64,
    room: f64,
    high: f64,
    /// Added to the memory, because pieces are coarser than frames.
    coarseness: f64,
}

/// One that serves in the order of arrival, a piece at a time.
#[derive(Clone)]
struct Station {
    /// Bytes a second.
    rate: f64,
    /// The most that may wait before it.
    room: f64,
    free_at: f64,
}

struct Reader {
    piece: f64,
    every: f64,
}

/// A piece of a stream.
#[derive(Debug, Clone, Copy)]
struct Piece {
    stream: usize,
    due: f64,
}

#[derive(Debug, Clone, Copy)]
enum Purpose {
    Write(Piece),
    Read(usize),
}

#[derive(Debug, Clone, Copy)]
enum Event {
    Due(usize),
    Received(Piece),
    Processed(Piece),
    Issued(Piece),
    Reads(usize),
    Done(Purpose),
}

/// The counts of the simulation.
#[derive(Default)]
struct Books {
    came: u64,
    lost: u64,
    lost_at: Option<Place>,
    longest_wait: f64,
    /// Bytes that arrived, or that readers requested, and that are not done.
    open: f64,
    /// The least and the most that were open in the second, the third and the fourth quarter.
    quarters: [Option<(f64, f64)>; 3],
}

impl Station {
    fn new(rate: f64, room: f64) -> Self {
        Station { rate, room, free_at: 0.0 }
    }

    /// The time at which a piece that arrives now has passed; `None` if there is no room for it.
    fn take(&mut self, now: f64, bytes: f64) -> Option<f64> {
        let begun = self.free_at.max(now);
        if (begun - now) * self.rate + bytes > self.room {
            return None;
        }
        self.free_at = begun + bytes / self.rate;
        Some(self.free_at)
    }
}

impl<'a> Chain<'a> {
    /// `demand` is the inflow, `kinds` are its kinds as simulated.
    pub(super) fn new(
        trial: &SizingTrial,
        demand: &Demand,
        kinds: &'a [Kind],
        limits: &'a Limits,
        sizing: &Sizing,
    ) -> Self {
        let mut streams = Vec::new();
        let mut recorders = Vec::new();
        for (at, kind) in kinds.iter().enumerate() {
            let first = recorders.len();
            let count = sizing.recorders[at].count;
            let filled = |index: u64| kind.streams / count + u64::from(index < kind.streams % count);
            let fine = &demand.kinds[at];
            recorders.extend((0..count).map(|index| Recorder::new(fine, kind, filled(index), limits)));
            streams.extend((0..kind.streams).map(|index| Stream {
                kind: at,
                recorder: first + (index % count) as usize,
                link: (index / count % limits.links.value) as usize,
                number: 0,
                phase: phase(trial.phases, at, kind, index / kind.in_step),
            }));
        }
        let rates = demand.kinds.iter().map(|kind| kind.reading).chain(demand.copy_out);
        let frame = kinds.iter().map(|kind| kind.frame.0 as f64).fold(0.0, f64::max);
        let reading = rates.filter(|rate| rate.0 > 0.0);
        let readers: Vec<Reader> = reading.map(|rate| Reader::new(rate.0, frame)).collect();
        let writing = recorders.iter().map(|recorder| recorder.writes / limits.write.value.0);
        let reading = readers.iter().map(|reader| reader.piece / reader.every / limits.read.value.0);
        let storage = Storage::new(sizing.servers, writing.chain(reading), stall(trial, limits));
        Chain {
            kinds,
            limits,
            duration: trial.duration.seconds(),
            streams,
            recorders,
            readers,
            servers: sizing.servers,
            storage,
            agenda: Agenda::new(),
            books: Books::default(),
        }
    }

    pub(super) fn run(mut self) -> SimulationResult {
        for stream in 0..self.streams.len() {
            let Stream { kind, phase, .. } = self.streams[stream];
            self.streams[stream].number = self.kinds[kind].schedule.frames_in(phase);
            self.announce(stream);
        }
        for reader in 0..self.readers.len() {
            self.agenda.add(self.readers[reader].every, Event::Reads(reader));
        }
        while let Some((now, event)) = self.agenda.next() {
            if now > self.duration {
                break;
            }
            self.happen(now, event);
        }
        self.found()
    }

    fn happen(&mut self, now: f64, event: Event) {
        match event {
            Event::Due(stream) => self.due(now, stream),
            Event::Received(piece) => self.received(now, piece),
            Event::Processed(piece) => self.processed(now, piece),
            Event::Issued(piece) => {
                let Stream { kind, recorder, .. } = self.streams[piece.stream];
                let work = self.kinds[kind].packed() / self.limits.write.value.0;
                self.storage.ask(Job { asker: recorder, work, purpose: Purpose::Write(piece) });
            }
            Event::Reads(reader) => self.reads(now, reader),
            Event::Done(purpose) => self.done(now, purpose),
        }
        while let Some((until, job)) = self.storage.begin(now) {
            self.agenda.add(until, Event::Done(job.purpose));
        }
    }

    /// Puts the next frame of a stream on the agenda.
    fn announce(&mut self, stream: usize) {
        let Stream { kind, number, phase, .. } = self.streams[stream];
        let due = self.kinds[kind].schedule.due(number).since(phase);
        self.agenda.add(due.seconds(), Event::Due(stream));
    }

    fn due(&mut self, now: f64, stream: usize) {
        let Stream { kind, recorder, link, .. } = self.streams[stream];
        let bytes = self.kinds[kind].frame.0 as f64;
        self.books.came += 1;
        self.open(now, bytes);
        match self.recorders[recorder].links[link].take(now, bytes) {
            Some(through) => self.agenda.add(through, Event::Received(Piece { stream, due: now })),
            None => self.lose(Place::Network, bytes),
        }
        self.streams[stream].number += 1;
        self.announce(stream);
    }

    fn received(&mut self, now: f64, piece: Piece) {
        let Stream { kind, recorder, .. } = self.streams[piece.stream];
        let bytes = self.kinds[kind].frame.0 as f64;
        match self.recorders[recorder].processor.take(now, bytes) {
            Some(through) => self.agenda.add(through, Event::Processed(piece)),
            None => self.lose(Place::Processor, bytes),
        }
    }

    /// A frame takes its place in memory, and the writer that is free first.
    fn processed(&mut self, now: f64, piece: Piece) {
        let Stream { kind, recorder, .. } = self.streams[piece.stream];
        let bytes = self.kinds[kind].frame.0 as f64;
        let packed = self.kinds[kind].packed();
        let recorder = &mut self.recorders[recorder];
        if recorder.memory + bytes > recorder.room {
            return self.lose(Place::Memory, bytes);
        }
        recorder.memory += bytes;
        recorder.high = recorder.high.max(recorder.memory);
        let writer =
            recorder.writers.iter_mut().min_by(|a, b| a.total_cmp(b)).expect("a recorder has writers");
        *writer = self.storage.after(writer.max(now), packed / self.limits.writer.value.0);
        self.agenda.add(*writer, Event::Issued(piece));
    }

    fn reads(&mut self, now: f64, reader: usize) {
        let Reader { piece, every } = self.readers[reader];
        let asker = self.recorders.len() + reader;
        let work = piece / self.limits.read.value.0;
        self.open(now, piece);
        self.storage.ask(Job { asker, work, purpose: Purpose::Read(reader) });
        self.agenda.add(now + every, Event::Reads(reader));
    }

    fn done(&mut self, now: f64, purpose: Purpose) {
        self.storage.end();
        match purpose {
            Purpose::Read(reader) => self.books.open -= self.readers[reader].piece,
            Purpose::Write(piece) => {
                let Stream { kind, recorder, .. } = self.streams[piece.stream];
                let bytes = self.kinds[kind].frame.0 as f64;
                self.recorders[recorder].memory -= bytes;
                self.books.open -= bytes;
                self.books.longest_wait = self.books.longest_wait.max(now - piece.due);
            }
        }
    }

    fn open(&mut self, now: f64, bytes: f64) {
        self.books.open += bytes;
        let quarter = self.duration / 4.0;
        if now >= quarter {
            let at = if now < 2.0 * quarter { 0 } else { 1 + usize::from(now >= 3.0 * quarter) };
            let quarter = &mut self.books.quarters[at];
            let open = self.books.open;
            *quarter = Some(quarter.map_or((open, open), |(low, high)| (low.min(open), high.max(open))));
        }
    }

    fn lose(&mut self, place: Place, bytes: f64) {
        self.books.lost += 1;
        self.books.lost_at.get_or_insert(place);
        self.books.open -= bytes;
    }

    /// Returns true if the open bytes grew from quarter to quarter, at their minimum as at their maximum.
    /// Bursts alone would bring them down again. A frame of every fourth stream and a piece of each reader
    /// may be more by chance.
    fn grows(&self) -> bool {
        let frames: f64 = self.kinds.iter().map(|kind| kind.streams as f64 * kind.frame.0 as f64).sum();
        let pieces: f64 = self.readers.iter().map(|reader| reader.piece).sum();
        let [Some(second), Some(third), Some(fourth)] = self.books.quarters else { return false };
        let more = |before: f64, after: f64| after > before + frames / 4.0 + pieces;
        let rises =
            |before: (f64, f64), after: (f64, f64)| more(before.0, after.0) && more(before.1, after.1);
        rises(second, third) && rises(third, fourth)
    }

    fn found(self) -> SimulationResult {
        let memory =
            self.recorders.iter().map(|recorder| recorder.high - recorder.coarseness).fold(0.0, f64::max);
        #[expect(clippy::cast_sign_loss, reason = "the fold begins with 0")]
        SimulationResult {
            came: self.books.came,
            lost: self.books.lost,
            lost_at: self.books.lost_at,
            memory: Bytes(memory as u64),
            longest_wait: Nanos::from_seconds(self.books.longest_wait),
            servers_busy: self.storage.worked / (self.servers as f64 * self.duration),
            grows: self.grows(),
        }
    }
}

impl Recorder {
    /// `fine` is the kind as it is, `kind` as it is simulated.
    fn new(fine: &Kind, kind: &Kind, streams: u64, limits: &Limits) -> Self {
        let frame = kind.frame.0 as f64;
        let links = limits.links.value;
        let link = |link: u64| {
            let over = streams / links + u64::from(link < streams % links);
            Station::new(limits.link.value.0, BEFORE_LINK * over as f64 * frame)
        };
        let coarseness = coarseness(fine, kind, limits) * streams as f64;
        Recorder {
            writes: recorder::drain(fine, streams, limits) / fine.packing.value,
            links: (0..links).map(link).collect(),
            processor: Station::new(limits.processing(fine), BEFORE_PROCESSOR * streams as f64 * frame),
            writers: vec![0.0; limits.writers.value as usize],
            memory: 0.0,
            room: limits.memory.value.0 as f64 + coarseness,
            high: 0.0,
            coarseness,
        }
    }
}

impl Reader {
    fn new(rate: f64, frame: f64) -> Self {
        let piece = frame.clamp(rate * PIECE_SECONDS.0, rate * PIECE_SECONDS.1);
        Reader { piece, every: piece / rate }
    }
}

/// Memory that a stream needs more because its pieces are coarser than its frames.
fn coarseness(fine: &Kind, coarse: &Kind, limits: &Limits) -> f64 {
    let need = |kind: &Kind| kind.frame.0 as f64 + recorder::in_hand(kind, limits);
    need(coarse) - need(fine)
}

/// The time by which an instrument is ahead of the beginning of a burst.
fn phase(phases: Phases, kind: usize, of: &Kind, instrument: u64) -> Nanos {
    match phases {
        Phases::Together => Nanos(0),
        Phases::Random(seed) => {
            let mut stream = seed.named("phase").part(kind as u64).part(instrument).stream();
            Nanos::from_seconds(stream.unit() * of.cycle())
        }
    }
}

/// The time of the storage's stall: in the first quarter, so that the later ones show its effects.
fn stall(trial: &SizingTrial, limits: &Limits) -> Range<f64> {
    let begun = match trial.phases {
        Phases::Together => 0.0,
        Phases::Random(seed) => seed.named("stall").stream().unit() * trial.duration.seconds() / 4.0,
    };
    begun..begun + limits.stall.value.seconds()
}
