//! Journals with right checksums and numbers that no recorder writes: whoever reads them ends in time, in bounded memory and
//! without a panic, in any thread.
//!
//! Each input follows from a seed: a recording that is right but for a few numbers, which are drawn from those that hurt (0, 1,
//! powers of two and their neighbours, the greatest). All that the commands `scan`, `verify`, `mount`, `export` and `replay` ask of
//! a recording is asked. Arithmetic is checked in this build: a number that wraps around is a panic too.

use std::{
    fs::{self, File},
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use nilometer_acquisition::export::{Export, Exporting, SLOTS, read_back};
use nilometer_intake::{
    replay::{Replay, Replaying},
    transport::{Outlet, Sent},
};
use nilometer_model::{ByteRate, EngineKind};
use nilometer_recording::{
    journal::{JOURNAL_VERSION, RECORD},
    reader::{Recording, Trust, with_below},
    verify,
    view::{Extent, ReadAhead, RecordingView, Scan},
};
use nilometer_storage::{
    Clock, Drive,
    engine::{Options, on_directory},
    new_file::NewFile,
};
use nilometer_wire::Packet;

/// What takes longer does not end.
const LIMIT: Duration = Duration::from_mins(2);
/// Bytes of memory that all of it may take at its peak: a frame may have 1 GiB that is made again from a seed.
const MEMORY_MAX: u64 = 3 << 30;
/// A copy of more than this is not written.
const COPIED_MAX: u64 = 4 << 20;

fn inputs() -> u64 {
    if std::env::var_os("NILOMETER_LONG").is_some() { 20_000 } else { 300 }
}

/// Panics in any thread since the test began.
static PANICS: AtomicUsize = AtomicUsize::new(0);

/// Random numbers from a seed (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// A number that hurts.
    fn hostile(&mut self) -> u64 {
        match self.below(8) {
            0 => 0,
            1 => u64::MAX - self.below(3),
            2 => self.next(),
            3 => 1,
            4 => (1_u64 << self.below(64)).wrapping_sub(1),
            5 => 1_u64 << self.below(64),
            6 => (1_u64 << self.below(64)).wrapping_add(1),
            _ => self.below(1000),
        }
    }

    /// This number as a rule.
    fn or_hostile(&mut self, right: u64, one_in: u64) -> u64 {
        if self.one_in(one_in) { self.hostile() } else { right }
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }
}

/// A journal that is put together record by record.
#[derive(Default)]
struct Journal {
    bytes: Vec<u8>,
    records: u64,
}

impl Journal {
    fn add(&mut self, kind: u32, numbers: [u64; 6]) {
        let mut record = [0; RECORD];
        record[4..8].copy_from_slice(&kind.to_le_bytes());
        record[8..16].copy_from_slice(&self.records.to_le_bytes());
        for (place, number) in record[16..].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        let checksum = crc32fast::hash(&record[4..]);
        record[..4].copy_from_slice(&checksum.to_le_bytes());
        self.bytes.extend(record);
        self.records += 1;
    }

    /// As many records as the text takes.
    fn text(&mut self, kind: u32, text: &str) {
        for part in text.as_bytes().chunks(48) {
            let mut bytes = [0; 48];
            bytes[..part.len()].copy_from_slice(part);
            let words = bytes.as_chunks::<8>().0;
            self.add(kind, std::array::from_fn(|at| u64::from_le_bytes(words[at])));
        }
    }
}

fn pair(low: u64, high: u64) -> u64 {
    low & 0xffff_ffff | high << 32
}

/// Writes a recording of this seed.
fn craft(directory: &Path, seed: u64) {
    let mut random = Random(seed);
    let how_often = random.of(&[1 << 40, 60, 20, 6]);
    let vdif = random.one_in(2);
    let (packet, of_block) = (random.of(&[1032, 8032, 64]), random.of(&[1, 4, 10]));
    let frame = random.or_hostile(if vdif { packet * of_block } else { 1000 }, 2 * how_often);
    // Blocks of a few bytes take as long to read as others: megabytes of them are not worth the time.
    let frame = if (1..256).contains(&frame) { 256 + frame } else { frame };
    let stride = if random.one_in(how_often) { random.hostile() } else { frame };
    let lanes = random.of(&[1, 1, 2, 3]);
    let storing = random.below(5);
    let per_file = random.or_hostile(5, how_often);
    let told_lanes = random.or_hostile(lanes, how_often);
    for lane in 0..lanes {
        let mut journal = Journal::default();
        let told = random.or_hostile(lane, 2 * how_often);
        let version = pair(JOURNAL_VERSION.into(), storing | random.of(&[0, 0, 0, 1, 2, 3]) << 16);
        let vdif_version = pair(JOURNAL_VERSION.into(), storing | 2 << 16);
        let version = if vdif { vdif_version } else { version };
        journal.add(1, [7, pair(told, told_lanes), frame, stride, per_file, version]);
        if vdif {
            journal.text(8, &stream(&mut random, packet, how_often));
        } else if random.one_in(3) {
            journal.text(6, &origin(&mut random, frame, how_often));
        }
        let lies = Lies { lane, lanes, frame, how_often };
        lies.entries(&mut random, &mut journal);
        fs::write(directory.join(format!("r.{lane}.journal")), &journal.bytes).expect("room");
        let file = match storing {
            0 => format!("r.{lane}.00000000.raw"),
            3 => "r.00000000".into(),
            2 => "r.raw".into(),
            _ => format!("r.{lane}.raw"),
        };
        let file = if vdif { file.replace(".raw", ".vdif") } else { file };
        fs::write(directory.join(file), frames(&mut random, packet)).expect("room");
    }
}

/// What packets the blocks are made of.
fn stream(random: &mut Random, packet: u64, how_often: u64) -> String {
    let mut n = |right: u64| random.or_hostile(right, 2 * how_often);
    let (count, size, rate, begins) = (n(1), n(packet), n(100), n(800_000_000));
    let (frame, payload, bits, channels) = (n(10_000), n(packet - 32), n(2), n(1));
    let (offset, bytes, thread, edv) = (n(0), n(8), n(0) & 0xffff, n(0) & 0xff);
    let wire = format!(
        r#"{{"packets":{{"port":46227,"serial":{{"at":{{"offset":{offset},"bytes":{bytes}}}}},"prefix":"8 B","format":{{"vdif":{{"payload":"{payload} B","stations":null,"threads":[{thread}],"edv":{edv},"header":"full","bits":{bits},"channels":{channels}}}}}}},"frame":"{frame} B","frames_per_second":{rate},"begins":{begins}}}"#
    );
    let described = format!(
        r#"{{"packets":{{"port":1,"format":{{"dummy_udp":{{"payload":"{size} B","packets":{count}}}}}}},"frame":"{frame} B","frames_per_second":null,"begins":0}}"#
    );
    let wire = match random.below(8) {
        0 => "null".into(),
        1 => described,
        _ => wire,
    };
    format!(r#"{{"format":"vdif","packets":[[{count},{size}]],"missing":"fill","wire":{wire}}}"#)
}

/// What simulated frames are made from.
fn origin(random: &mut Random, frame: u64, how_often: u64) -> String {
    let kind =
        random.of(&["incompressible", "incompressible", "diffraction", "tomography", "liquid_argon", "vlbi"]);
    let kind = if random.one_in(8) { "files:/dev/zero" } else { kind };
    let rows = random.of(&[1, 10]);
    let distinct = random.or_hostile(2, how_often);
    let intensity = random.of(&["null", "0.5", "1e300", "0", "-1", "1e-300"]);
    let width = random.or_hostile(frame / rows, 4 * how_often);
    format!(
        r#"{{"data":{{"kind":"{kind}","intensity":{intensity},"compressibility":null,"distinct":{distinct}}},"shape":[{rows},{width}],"pixel":"uint8","seed":1,"checksum":1}}"#
    )
}

/// What a journal says, one number in so many of it wrong.
struct Lies {
    lane: u64,
    lanes: u64,
    frame: u64,
    how_often: u64,
}

impl Lies {
    /// What became of frames.
    fn entries(&self, random: &mut Random, journal: &mut Journal) {
        let Lies { lane, lanes, frame, how_often, .. } = *self;
        for count in 0..random.below(40) {
            let checksum = random.below(2) << 32;
            let mut n = |right: u64| random.or_hostile(right, how_often);
            let number = n(count * lanes + lane);
            let (file, position, due) = (n(0), n(count), n(count * 1_000_000));
            let (offset, encoding) = (n(count.wrapping_mul(frame)), n(0));
            let (stored, size) = (n(frame), n(frame));
            let encoded = file & ((1 << 48) - 1) | encoding << 48;
            let found = [number, encoded, offset, due, checksum, pair(stored, size)];
            let [gap, at, packets] = [n(count), n(1), n(2)];
            match random.below(20) {
                0 => journal.add(3, [file, 0, 0, 0, 0, 0]),
                1 if random.one_in(4) => journal.add(4, [file, 0, 0, 0, 0, 0]),
                2 => journal.add(9, [file, position, 0, 0, 0, 0]),
                5 => journal.add(10, [gap, 0, 0, 0, 0, 0]),
                6 => journal.add(11, [number, due, 0, 0, 0, 0]),
                3 | 4 => {
                    journal.add(7, [number, at, packets, gap & 1, 0, 0]);
                    journal.add(12, found);
                }
                _ => journal.add(12, found),
            }
        }
        if random.one_in(2) {
            let frames = random.or_hostile(80, 4);
            let last = random.or_hostile(0, how_often);
            journal.add(5, [1, frames, last, 0, 0, 0]);
        }
    }
}

/// Bytes of a file of frames: VDIF headers that nearly follow each other, and whatever comes.
fn frames(random: &mut Random, packet: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for count in 0..random.below(20) {
        let mut frame = vec![0; packet as usize];
        let count = random.or_hostile(count, 30);
        let words = [
            count / 100,
            (53 << 24) | (count % 100),
            (1 << 29) | (packet / 8),
            (1 << 26) | 0x4e6d,
            random.of(&[0, 1 << 24]),
        ];
        for (to, word) in frame.chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&(word as u32).to_le_bytes());
        }
        bytes.extend(frame);
    }
    bytes
}

/// All that the commands ask of recordings in a directory.
fn read(directory: &Path) {
    let named = [directory.to_owned()];
    let below = with_below(&named).expect("it is there");
    for trust in [Trust::Acknowledged, Trust::Durable] {
        // Both ways of finding them.
        drop(Recording::open(&named, trust));
        let (recordings, _) = Recording::open_each(&below, trust).expect("it is there");
        for recording in recordings {
            let whole = Arc::new(RecordingView::new(recording, Extent::All));
            scanned(&whole);
            drop(verify(&whole));
            exported(&whole, directory);
        }
    }
    let journals: Vec<PathBuf> = (0..3).map(|lane| directory.join(format!("r.{lane}.journal"))).collect();
    for recording in Recording::open_journals(&journals, &below, Trust::Acknowledged).0 {
        let whole = Arc::new(RecordingView::new(recording, Extent::Mark));
        whole.refresh();
        whole.settle();
        mounted(&whole);
        replayed(&whole);
    }
}

fn scanned(whole: &RecordingView) {
    let scan = Scan::of(whole).read_all(whole, |_| {});
    let rate = scan.survey.frames_per_second;
    let seconds = scan.seconds();
    assert!(seconds.is_none_or(|seconds| seconds > 0.0), "{seconds:?}");
    for (_, stamp) in scan.first.into_iter().chain(scan.last) {
        drop(stamp.moment(rate).to_string());
    }
    for jump in scan.read.iter().flat_map(|read| &read.first_jumps) {
        drop((jump.stamp.moment(rate).to_string(), jump.before.moment(None).to_string()));
    }
}

/// Reads at both ends and in between, as a mount does.
fn mounted(whole: &Arc<RecordingView>) {
    let ahead = ReadAhead::new(whole.clone());
    let length = whole.length();
    let mut bytes = vec![0; 1 << 17];
    for offset in
        [0, length / 3, length / 2, length.saturating_sub(1 << 17), length.saturating_sub(1), length]
    {
        for step in 0..3 {
            ahead.read_at(offset.saturating_add(step << 17), &mut bytes);
        }
        whole.read_at(offset, &mut bytes);
        whole.filled(offset..offset.saturating_add(1 << 20));
        whole.is_overwritten(offset..offset.saturating_add(1 << 20));
    }
    drop((whole.only_file(), whole.journals(), whole.is_readable(), whole.faults()));
    whole.faulted_since(&mut 0);
}

fn exported(whole: &Arc<RecordingView>, directory: &Path) {
    if whole.length() == 0 || whole.length() > COPIED_MAX {
        return;
    }
    let new = NewFile::create(directory, "copy").expect("room");
    let exporting = Exporting { name: new.temporary().to_owned(), direct: false, at_most: None, depth: 1 };
    let root = OwnedFd::from(File::open(directory).expect("it is there"));
    let options = Options { kind: EngineKind::Sync, depth: 1, slots: SLOTS, clock: Clock::start() };
    let mut engine = on_directory(root, &options).expect("an engine");
    let mut export = Export::new(whole.clone(), exporting, Arc::default(), engine.waker()).expect("a thread");
    Drive::new(&mut export, engine.as_mut()).run(|_| {});
    if export.is_whole() {
        let copied = read_back(whole, new.file(), |_| Ok(())).expect("it was written");
        assert_eq!(copied.checksum, export.checksum());
    }
}

/// A network that ends the replay after a few packets.
#[derive(Debug)]
struct Few(Arc<AtomicBool>, u64);

impl Outlet for Few {
    fn send(&mut self, packets: &[Packet<'_>]) -> io::Result<()> {
        self.1 += packets.len() as u64;
        self.0.store(self.1 >= 20, Ordering::Relaxed);
        Ok(())
    }

    fn burst(&self, _: usize) -> usize {
        8
    }

    fn room(&self) -> u64 {
        1 << 20
    }

    fn totals(&self) -> Sent {
        Sent::default()
    }
}

fn replayed(whole: &Arc<RecordingView>) {
    // One that was not ended is waited for, a minute.
    if !whole.is_over() {
        return;
    }
    drop(Replay::new(whole.clone(), Replaying::default()));
    let fast = Replaying { rate: Some(ByteRate(1e12)), ..Replaying::default() };
    let Ok(replay) = Replay::new(whole.clone(), fast) else { return };
    let stop = Arc::new(AtomicBool::new(false));
    let mut outlets: Vec<Box<dyn Outlet>> = vec![Box::new(Few(stop.clone(), 0))];
    drop(replay.run(&mut outlets, Clock::start(), &stop, |_| {}));
}

/// The most memory that this process had, in bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("the kernel tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the kernel tells");
    line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).expect("a number") << 10
}

/// Reads the recording of a seed, in a thread of its own. A panic, of whichever thread, or no end is told with the seed.
fn tried(seed: u64) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let disk = directory.path().join("disk");
    fs::create_dir(&disk).expect("room");
    craft(&disk, seed);
    let (told, ended) = mpsc::sync_channel(1);
    thread::spawn(move || {
        read(&disk);
        told.send(())
    });
    let ended = ended.recv_timeout(LIMIT);
    let panics = PANICS.swap(0, Ordering::Relaxed);
    assert!(ended.is_ok() && panics == 0, "seed {seed}: {panics} panics, and {ended:?}");
}

#[test]
fn no_number_of_a_journal_panics_hangs_or_takes_all_memory() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        tell(info);
    }));
    let inputs = inputs();
    (0..inputs).for_each(tried);
    assert!(peak() < MEMORY_MAX, "{} B", peak());
    eprintln!("{inputs} recordings were read; {} MB at the most", peak() / 1_000_000);
}
