//! A sender of series that misbehaves as detectors, their control programs and networks do. It aborts, starts
//! again, counts from the same number, and forgets starts and ends. It sends messages twice, too late, too
//! often, in another order, and on several connections.
//!
//! The seed determines which of these happen. Each scenario ends with a good series.

use nilometer_model::{RandomStream, Seed};
use nilometer_wire::{
    series::{ElementType, ImageTimes, Packing, SeriesName, SeriesStart},
    stream1,
    stream2::{self, ImageChannel, MessagePiece},
};

/// Rows of images that are kept as a whole, and of images whose pixels lie apart.
const ROWS: [u64; 2] = [20, 60];
const COLUMNS: u64 = 50;
/// Maximum number of images in a series.
const IMAGES_MAX: u64 = 12;

/// A series of a scenario.
#[derive(Debug, Clone)]
pub struct ScenarioSeries {
    /// Its name. Several series may have the same one, if a detector counts from the same number again.
    pub name: SeriesName,
    /// Images that its start announces; 0 if it gives no number.
    pub announced: u64,
    /// True if its start is sent.
    pub starts: bool,
    /// True if its start leaves out values that the first image contains.
    pub incomplete: bool,
}

/// The kind of a message, with the series to which it belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SentKind {
    /// The start of a series of the scenario, by its index.
    Start(usize),
    /// An image of one, by its number.
    Image(usize, u64),
    /// The end of one.
    End(usize),
    /// Bytes that are no message of a series.
    Garbage,
}

/// A message to be sent.
#[derive(Debug, Clone)]
pub struct SentMessage {
    /// The index of its connection.
    pub connection: usize,
    /// Its kind.
    pub kind: SentKind,
    /// Its parts.
    pub parts: Vec<Vec<u8>>,
    /// The connection ends within it.
    pub is_cut: bool,
    /// Milliseconds of silence before it.
    pub pause_ms: u64,
}

/// A scenario: series and messages to be sent.
#[derive(Debug, Clone)]
pub struct SenderScenario {
    /// The series, the good one last.
    pub series: Vec<ScenarioSeries>,
    /// The messages, in the order in which they are sent.
    pub messages: Vec<SentMessage>,
    /// Number of connections.
    pub connections: usize,
    rows: u64,
    version: u8,
}

impl SenderScenario {
    /// The scenario of a seed, on one connection or on several.
    pub fn of(seed: Seed) -> Self {
        let mut random = seed.stream();
        let connections = if random.below(3) == 0 { 2 + random.below(2) as usize } else { 1 };
        Self::with_connections(random, connections)
    }

    /// The scenario of a seed on one connection.
    pub fn on_one_connection(seed: Seed) -> Self {
        Self::with_connections(seed.stream(), 1)
    }

    fn with_connections(mut random: RandomStream, connections: usize) -> Self {
        let rows = ROWS[random.below(2) as usize];
        let version = 1 + random.below(2) as u8;
        let mut scenario =
            SenderScenario { series: Vec::new(), messages: Vec::new(), connections, rows, version };
        let is_unique = version == 2 && random.below(3) > 0;
        for _ in 0..random.below(6) {
            scenario.misbehave(&mut random, is_unique);
        }
        scenario.behave(is_unique);
        scenario.deal(&mut random);
        scenario
    }

    /// Pixels of an image: its series and number, and some noise.
    pub fn pixels(&self, series: usize, image: u64) -> Vec<u8> {
        let mut bytes = vec![0; self.frame_bytes()];
        Seed(series as u64 * 1000 + image).stream().fill(&mut bytes);
        bytes[..8].copy_from_slice(&(series as u64 * 1000 + image + 1).to_le_bytes());
        bytes
    }

    /// Bytes of an image.
    pub fn frame_bytes(&self) -> usize {
        (self.rows * COLUMNS * 2) as usize
    }

    /// The index of the good series.
    pub fn good(&self) -> usize {
        self.series.len() - 1
    }

    /// Adds a series in which anything may go wrong.
    fn misbehave(&mut self, random: &mut RandomStream, is_unique: bool) {
        // A detector that was switched off counts from the same number.
        let number = if random.below(4) == 0 { 1 } else { 1 + self.series.len() as u64 };
        let images = 1 + random.below(IMAGES_MAX);
        let announced = match random.below(5) {
            0 => 0,
            1 => 1 + random.below(IMAGES_MAX),
            _ => images,
        };
        let starts = random.below(6) > 0;
        let incomplete = random.below(5) == 0;
        let at = self.add(number, announced, ScenarioFlags { is_unique, starts, incomplete });
        if starts {
            self.send(SentKind::Start(at));
        }
        let sent = if random.below(3) == 0 { random.below(images) } else { images };
        for image in 0..sent {
            match random.below(12) {
                // It is lost on its way.
                0 => continue,
                1 => self.send(SentKind::Image(at, image)),
                2 if starts => self.send(SentKind::Start(at)),
                3 => self.send(SentKind::Garbage),
                _ => {}
            }
            self.send(SentKind::Image(at, image));
        }
        if random.below(3) > 0 {
            self.send(SentKind::End(at));
        }
        if random.below(6) == 0 {
            self.send(SentKind::End(at));
            self.send(SentKind::Image(at, 0));
        }
    }

    /// Adds a good series.
    fn behave(&mut self, is_unique: bool) {
        let images = 2 + IMAGES_MAX / 2;
        let at = self.add(1000, images, ScenarioFlags { is_unique, starts: true, incomplete: false });
        self.send(SentKind::Start(at));
        (0..images).for_each(|image| self.send(SentKind::Image(at, image)));
        self.send(SentKind::End(at));
    }

    #[expect(clippy::needless_pass_by_value, reason = "it belongs to the series that is added")]
    fn add(&mut self, number: u64, announced: u64, flags: ScenarioFlags) -> usize {
        let ScenarioFlags { is_unique, starts, incomplete } = flags;
        let at = self.series.len();
        let unique = if is_unique { format!("series {at}") } else { String::new() };
        let name = SeriesName { number, unique };
        self.series.push(ScenarioSeries { name, announced, starts, incomplete });
        at
    }

    fn send(&mut self, kind: SentKind) {
        let parts = self.parts(kind);
        self.messages.push(SentMessage { connection: 0, kind, parts, is_cut: false, pause_ms: 0 });
    }

    /// Distributes messages to connections, with pauses, some in another order, some cut off. The good series
    /// is only distributed over several connections.
    /// to the good series, except that its messages come by several connections.
    fn deal(&mut self, random: &mut RandomStream) {
        let good = self.good();
        let is_good = |message: &SentMessage| match message.kind {
            SentKind::Start(at) | SentKind::Image(at, _) | SentKind::End(at) => at == good,
            SentKind::Garbage => false,
        };
        for at in 1..self.messages.len() {
            let fixed = is_good(&self.messages[at]) || is_good(&self.messages[at - 1]);
            if random.below(15) == 0 && !fixed {
                self.messages.swap(at - 1, at);
            }
        }
        // With several connections the start of a series may stand behind the pause of another. No receiver
        // waits longer than a second.
        let pause_max = if self.connections == 1 { 3000 } else { 50 };
        for message in &mut self.messages {
            message.connection = random.below(self.connections as u64) as usize;
            message.is_cut = random.below(25) == 0 && !is_good(message);
            if random.below(20) == 0 {
                message.pause_ms = random.below(pause_max);
            }
        }
    }

    fn parts(&self, kind: SentKind) -> Vec<Vec<u8>> {
        match kind {
            SentKind::Start(at) => self.start(at),
            SentKind::Image(at, image) => self.image(at, image),
            SentKind::End(at) if self.version == 1 => vec![stream1::encode_end(&self.series[at].name)],
            SentKind::End(at) => vec![stream2::encode_end(&self.series[at].name)],
            SentKind::Garbage if self.version == 1 => vec![b"{\"htype\": \"dstatus-1.0\"}".to_vec()],
            SentKind::Garbage => vec![b"no message".to_vec()],
        }
    }

    fn start(&self, at: usize) -> Vec<Vec<u8>> {
        let ScenarioSeries { name, announced, incomplete, .. } = &self.series[at];
        let start = SeriesStart {
            series: name.clone(),
            images: *announced,
            shape: vec![self.rows, COLUMNS],
            element: ElementType::Uint16,
            channels: vec![self.channel().to_owned()],
            fields: Vec::new(),
        };
        match (self.version, incomplete) {
            (1, false) => stream1::encode_header(&start).expect("two dimensions"),
            (1, true) => stream1::encode_header(&start).expect("two dimensions").drain(..1).collect(),
            (_, false) => vec![stream2::encode_start(&start).expect("a start that the format has")],
            // Firmware of 2022 leaves the type of pixels out: its key has another name.
            (_, true) => {
                let mut message = stream2::encode_start(&start).expect("a start that the format has");
                let at = message.windows(11).position(|word| word == b"image_dtype").expect("it is there");
                message[at] = b'x';
                vec![message]
            }
        }
    }

    fn image(&self, at: usize, image: u64) -> Vec<Vec<u8>> {
        let bytes = self.pixels(at, image);
        let shape = [self.rows, COLUMNS];
        let channel = ImageChannel {
            name: self.channel(),
            shape: &shape,
            element: ElementType::Uint16,
            packing: Packing::Plain,
            bytes: &bytes,
        };
        let name = &self.series[at].name;
        let times = ImageTimes::default();
        if self.version == 1 {
            let pieces = stream1::encode_image(name, image, &times, &channel, "").expect("it has a word");
            return pieces.iter().map(|piece| piece.bytes().to_vec()).collect();
        }
        let channels = [channel];
        let pieces = stream2::encode_image(name, image, &times, &channels).expect("it has a word");
        vec![pieces.iter().flat_map(MessagePiece::bytes).copied().collect()]
    }

    fn channel(&self) -> &'static str {
        if self.version == 1 { stream1::CHANNEL } else { "threshold_1" }
    }
}

struct ScenarioFlags {
    is_unique: bool,
    starts: bool,
    incomplete: bool,
}
