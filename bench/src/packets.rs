//! Packets of 8040 bytes over loopback onto tmpfs, by the whole recorder, beside bare loops: one that receives, and one
//! that copies as many packets into a file of the same size. It has 4 GiB, which are written again and again.
//!
//! What counts is the processor time of the threads that receive and write. The bound is that of the bare receiver and 1.2
//! times that of the bare copy. And nothing may be lost at 0.6 of the rate that a bare `recvmmsg` loop takes just before.
//!
//! Onto a disk, past the cache: a fifth more is offered than dd wrote just before, and at least 90 % of dd's rate has to be
//! kept.

use std::{cell::Cell, fs, os::unix::fs::FileExt, path::Path, sync::Arc, thread, time::Duration};

use anyhow::Context;
use nilometer_acquisition::{
    EngineWish, Feed, Network, Port, Recorder, Setup,
    sink::{LaneOptions, RawLayout, lanes_of},
    suited_engine,
};
use nilometer_intake::{
    Traffic, Until,
    assembly::ReorderWindow,
    transport::udp::{Listening, UdpInlet},
};
use nilometer_model::{
    DataKind, FileNames, Format, Frequency, Nanos, PixelType, Storing, packets::frames_of_block,
};
use nilometer_recording::{Missing, Stream, instrument::Content, journal::Head};
use nilometer_storage::{
    Clock, Target,
    process::Usage,
    target::{Posix, probe},
};
use nilometer_wire::WireFormat;
use tempfile::TempDir;

use crate::{
    contest::{Bound, Contest, Contestant, Cost, Limit, Outcome, Quantity, Stop},
    measure,
    ours::{GIB, SEED},
    peers, place,
    receiving::{Load, bare_receiver, lossless, send},
    sending::{BODY, PREFIX, Serial},
};

/// 8 Gbit/s, for eight seconds: twice round.
const LOAD: Load = Load { segments: true, rate: Frequency(124_000.0), packets: 1_000_000 };
/// Of the rate that the bare loop takes, and for how many seconds.
const SHARE: f64 = 0.6;
const LASTING: f64 = 20.0;
/// On the disk for thirty.
const LASTING_ON_DISK: Load = Load { packets: 3_720_000, ..LOAD };
/// Where the disk takes less, in bytes a second, that is not asked of it.
const DISK_OF_LASTING: f64 = 1.2e9;
/// What dd writes, in GiB, and what is offered after it: so many times as fast.
const OFFERED: u64 = 4;
const FASTER: f64 = 1.2;
/// On a disk it is one file, as `nilometer record` makes it, that is synced by parts of so many blocks.
const PART: u64 = 256;
/// In memory it is a ring of so many parts of so many blocks: 4 GiB.
const BLOCKS: u64 = 64;
const PARTS: u64 = 65;
/// What the recorder calls that file.
const RING: &str = "n_packets.0.vdif";
/// So long after that it begins.
const REST: Duration = Duration::from_secs(4);
/// 1 GiB, as `nilometer record` takes.
const SLOTS: usize = 1024;
const SILENCE: Nanos = Nanos::from_millis(200);

const BARE: &str = "bare, GRO, and 1.2 times a bare copy";
const DD: &str = "dd oflag=direct bs=4M conv=fsync";
const OURS: &str = "nilometer, the recorder";

/// See the module.
pub(crate) fn run(stop: &Stop) -> anyhow::Result<Outcome> {
    let place = Place::in_memory()?;
    let contest = Contest {
        title: place.title(LOAD),
        quantity: Quantity::CpuPerOperation,
        phases: &["record"],
        rounds: 9,
        contestants: vec![
            Contestant::new(BARE, || Ok(vec![place.bare()?])),
            Contestant::new(OURS, || Ok(vec![place.recorded(LOAD)?.at_least(0.9)?])),
        ],
        bounds: vec![Bound { subject: OURS, peer: BARE, limit: Limit::Times(1.0) }],
    };
    contest.run(stop)
}

/// The recorder alone, for twenty seconds: what counts is that nothing is lost.
pub(crate) fn lasting(stop: &Stop) -> anyhow::Result<Outcome> {
    let place = Place::in_memory()?;
    let bare = lossless(&place.noise, LASTING)?.0;
    eprintln!("  a bare recvmmsg loop takes {:.1} Gbit/s", gigabits(Frequency(bare)));
    place.contest(stop, Load::lasting(Frequency(SHARE * bare), LASTING), 5)
}

/// Of packets of this rate.
fn gigabits(rate: Frequency) -> f64 {
    rate.0 * (PREFIX + BODY) as f64 * 8e-9
}

/// Onto a disk, as much as dd wrote just before, and faster.
pub(crate) fn on_disk(stop: &Stop) -> anyhow::Result<Outcome> {
    let place = Place::on_disk()?;
    let rate = Cell::new(place.dd()?.rate());
    let dd = || {
        let cost = place.dd()?;
        rate.set(cost.rate());
        Ok(vec![cost])
    };
    let packets = (OFFERED << 30) / BODY as u64;
    let record = || {
        let load = Load { rate: Frequency(FASTER * rate.get() * GIB / BODY as f64), packets, ..LOAD };
        let Recorded { cost, .. } = place.recorded(load)?;
        Ok(vec![Cost { amount: cost.amount * BODY as f64 / GIB, ..cost }])
    };
    let contest = Contest {
        title: format!(
            "packets-disk: {OFFERED} GiB offered {FASTER} times as fast as dd, past the cache, on {}",
            place.file_system()
        ),
        quantity: Quantity::WallPerGib,
        phases: &["record"],
        rounds: 7,
        contestants: vec![Contestant::new(DD, dd), Contestant::new(OURS, record)],
        bounds: vec![Bound { subject: OURS, peer: DD, limit: Limit::Times(1.0 / 0.9) }],
    };
    Ok(contest.run(stop)?.also(Quantity::CpuPerGib, Vec::new()))
}

/// Onto a disk for thirty seconds: what counts is that nothing is lost.
pub(crate) fn lasting_on_disk(stop: &Stop) -> anyhow::Result<Outcome> {
    let place = Place::on_disk()?;
    let disk = place.dd()?.rate() * GIB;
    anyhow::ensure!(disk >= DISK_OF_LASTING, "dd writes {:.2} GB/s here, too slow for 8 Gbit/s", disk / 1e9);
    place.contest(stop, LASTING_ON_DISK, 3)
}

/// What packets carry, and where they go.
struct Place {
    noise: Content,
    target: Arc<Posix>,
    frames: u64,
    /// Past the cache.
    direct: bool,
    directory: TempDir,
}

struct Recorded {
    cost: Cost,
    /// Of the packets that were sent.
    share: f64,
}

impl Recorded {
    /// Its cost, which says something if so much was recorded.
    fn at_least(self, share: f64) -> anyhow::Result<Cost> {
        anyhow::ensure!(self.share >= share, "only {:.3} % were recorded", self.share * 100.0);
        Ok(self.cost)
    }
}

impl Place {
    fn in_memory() -> anyhow::Result<Self> {
        Place::new(place::in_memory()?, false)
    }

    fn on_disk() -> anyhow::Result<Self> {
        Place::new(place::on_disk()?, true)
    }

    fn new(directory: TempDir, direct: bool) -> anyhow::Result<Self> {
        Ok(Place {
            noise: Content::prepare(&DataKind::Vlbi.into(), &[BODY as u64 * 4], PixelType::Uint2, SEED)?,
            target: Arc::new(Posix::create(probe(directory.path())?, 1)?),
            frames: frames_of_block(BODY, 4096).context("such frames fill pages")?,
            direct,
            directory,
        })
    }

    fn file_system(&self) -> &str {
        &self.target.description().file_system
    }

    fn title(&self, load: Load) -> String {
        let (size, system) = (PREFIX + BODY, self.file_system());
        let rate = gigabits(load.rate);
        format!("packets: {} packets of {size} bytes at {rate:.1} Gbit/s onto {system}", load.packets)
    }

    /// So many recordings of which none may lose a packet.
    fn contest(&self, stop: &Stop, load: Load, rounds: usize) -> anyhow::Result<Outcome> {
        let record = || Ok(vec![self.recorded(load)?.at_least(1.0)?]);
        let contest = Contest {
            title: self.title(load),
            quantity: Quantity::CpuPerOperation,
            phases: &["record"],
            rounds,
            contestants: vec![Contestant::new(OURS, record)],
            bounds: Vec::new(),
        };
        contest.run(stop)
    }

    /// One file of zeroes.
    fn dd(&self) -> anyhow::Result<Cost> {
        let (from, to) = (Path::new("/dev/zero"), self.directory.path().join("n_dd"));
        let cost = peers::dd((OFFERED as f64, 4), from, &to, &["oflag=direct", "conv=fsync"])?;
        fs::remove_file(to)?;
        self.settle()?;
        Ok(cost)
    }

    /// The disk is at rest before the next one begins.
    fn settle(&self) -> anyhow::Result<()> {
        Ok(rustix::fs::syncfs(fs::File::open(self.directory.path())?)?)
    }

    /// The ring is as it is in every round but the first: all its pages are there. The host of a virtual machine takes back what
    /// was freed, and stops the processors for that: it has done so when the recording begins.
    fn come_round(&self) -> anyhow::Result<()> {
        let file = fs::File::options().write(true).open(self.target.directory().join(RING))?;
        fill(&file, self.ring_size())?;
        thread::sleep(REST);
        Ok(())
    }

    fn ring_size(&self) -> u64 {
        self.frames * BODY as u64 * BLOCKS * PARTS
    }

    /// As much as a recording needs.
    fn touch_memory(&self) {
        place::touch_memory(self.ring_size() as usize + SLOTS * BODY * self.frames as usize);
    }

    fn bare(&self) -> anyhow::Result<Cost> {
        self.touch_memory();
        let receive = bare_receiver(&self.noise, LOAD, true)?;
        let copy = copy(self.target.directory(), self.ring_size())?;
        self.target.clear()?;
        Ok(Cost { cpu: receive.cpu + 1.2 * copy.cpu, ..receive })
    }

    fn recorded(&self, load: Load) -> anyhow::Result<Recorded> {
        self.touch_memory();
        let recorded = recorded(self, load)?;
        self.target.clear()?;
        self.settle()?;
        Ok(recorded)
    }
}

/// Each packet into a file that is there and is written again when it is full, from memory that stays in the processor's
/// cache.
fn copy(directory: &Path, size: u64) -> anyhow::Result<Cost> {
    let packets = vec![1; 64 * BODY];
    let file = fs::File::create_new(directory.join("n_bare"))?;
    fill(&file, size)?;
    thread::sleep(REST);
    measure::thread(LOAD.packets as f64, || {
        let places = (0..size / BODY as u64).map(|packet| packet * BODY as u64);
        let among = places.cycle().take(LOAD.packets as usize);
        for (offset, bytes) in among.zip(packets.chunks_exact(BODY).cycle()) {
            file.write_all_at(bytes, offset)?;
        }
        Ok(())
    })
}

/// Makes all pages of a file.
fn fill(file: &fs::File, size: u64) -> anyhow::Result<()> {
    let ones = vec![1; 1 << 20];
    for offset in (0..size).step_by(ones.len()) {
        file.write_all_at(&ones[..ones.len().min((size - offset) as usize)], offset)?;
    }
    Ok(())
}

fn recorded(place: &Place, load: Load) -> anyhow::Result<Recorded> {
    let inlet = UdpInlet::open(&Listening::at("127.0.0.1:0".parse()?))?;
    let address = inlet.address()?;
    let mut recorder = Recorder::prepare(setup(inlet, place, load)?)?;
    if !place.direct {
        place.come_round()?;
    }
    recorder.begin()?;
    send(&place.noise, load, address)?;
    let outcome = recorder.wait_to_end();
    let Traffic { tally, counted, .. } = outcome.traffic.unwrap_or_default();
    let (placed, books) = (tally.placed, outcome.books);
    let share = placed as f64 / load.packets as f64;
    eprintln!(
        "  recorded {:.2} %; the kernel dropped {}, {} of {} slots in use at the most",
        share * 100.0,
        counted.dropped,
        books.high,
        books.slots
    );
    anyhow::ensure!(!outcome.hung, "the disk hangs: {:?}", outcome.faults);
    let lanes = outcome.lanes.iter().flatten().map(|lane| lane.usage);
    let usage = lanes.fold(outcome.source, Usage::and);
    let cost = Cost { amount: placed as f64, cpu: usage.total().seconds(), wall: outcome.wall.seconds() };
    Ok(Recorded { cost, share })
}

fn setup(inlet: UdpInlet, place: &Place, load: Load) -> anyhow::Result<Setup> {
    let Place { target, frames, direct, .. } = place;
    let (frames, direct) = (*frames, *direct);
    let (format, size) = (Serial::new(), frames * BODY as u64);
    let head = Head {
        recording: 1,
        lane: 0,
        lanes: 1,
        frame_size: size,
        stride: size,
        frames_per_file: if direct { PART } else { BLOCKS },
        storing: if direct { Storing::Shared } else { Storing::Ring },
        format: Format::Vdif,
        names: FileNames::default(),
    };
    let stream = Some(Stream::new(Format::Vdif, format.geometry(), Missing::Filled));
    let layout =
        RawLayout { keep: Some(PARTS - 2), stream, ..RawLayout::suited("n_packets".into(), head, direct) };
    let network = Network {
        ports: vec![Port { transport: Box::new(inlet), format: Box::new(format) }],
        frames_of_block: frames,
        limits: ReorderWindow::default(),
        missing: Missing::Filled,
        until: Until { packets: load.packets, silence: SILENCE, ..Until::default() },
        cpu: None,
        beside: None,
    };
    Ok(Setup {
        engine: suited_engine(target.as_ref(), EngineWish::usual(direct), Clock::start())?,
        lanes: lanes_of(vec![(target.clone(), layout)], LaneOptions::default())?,
        slots: SLOTS,
        feed: Feed::Network(network),
        stop: Arc::default(),
        allowance: Nanos::from_millis(10),
        hang_after: Nanos::from_millis(60_000),
    })
}
