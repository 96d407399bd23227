//! Packets of 8040 bytes over loopback onto tmpfs, by the whole recorder, beside bare loops: one that receives, and one
//! that copies as many packets into files of the same size, of which as many stay.
//!
//! What counts is the processor time of the threads that receive and write. The bound is that of the bare receiver and 1.2
//! times that of the bare copy.

use std::{fs, os::unix::fs::FileExt, path::Path, sync::Arc};

use anyhow::Context;
use nilometer_acquisition::{
    Feed, Network, Recorder, Setup, Stream, Until,
    assembly::{Limits, Missing, frames_of_block},
    format::WireFormat,
    instrument::Content,
    journal::Head,
    sink::RawLayout,
    suited_engine,
    transport::udp::{Listening, UdpInlet},
};
use nilometer_model::{Bytes, DataKind, Format, Frequency, Nanos, PixelType, Storing};
use nilometer_storage::{
    Clock, Target,
    process::Usage,
    target::{Posix, probe},
};
use tempfile::TempDir;

use crate::{
    contest::{Bound, Contest, Contestant, Cost, Limit, Outcome, Quantity, Stop},
    measure,
    ours::SEED,
    place,
    receiving::{Load, bare_receiver, send},
    sending::{BODY, PREFIX, Serial},
};

/// 8 Gbit/s, for two seconds.
const LOAD: Load = Load { segments: true, rate: Frequency(124_000.0), packets: 250_000 };
/// The same for twenty.
const LASTING: Load = Load { packets: 2_480_000, ..LOAD };
/// Blocks of a file, and files that stay.
const BLOCKS: u64 = 64;
const KEEP: u64 = 4;
const SLOTS: usize = 256;
const SILENCE: Nanos = Nanos::from_millis(200);

const BARE: &str = "bare, GRO, and 1.2 times a bare copy";
const OURS: &str = "nilometer, the recorder";

/// See the module.
pub(crate) fn run(stop: &Stop) -> anyhow::Result<Outcome> {
    let place = Place::new()?;
    let contest = Contest {
        title: place.title(LOAD),
        quantity: Quantity::CpuPerOperation,
        phases: &["record"],
        rounds: 9,
        contestants: vec![
            Contestant::new(BARE, || Ok(vec![place.bare()?])),
            Contestant::new(OURS, || Ok(vec![place.recorded(LOAD)?.cost])),
        ],
        bounds: vec![Bound { subject: OURS, peer: BARE, limit: Limit::Times(1.0) }],
    };
    contest.run(stop)
}

/// The recorder alone, for twenty seconds: what counts is that nothing is lost.
pub(crate) fn lasting(stop: &Stop) -> anyhow::Result<Outcome> {
    let place = Place::new()?;
    let record = || {
        let recorded = place.recorded(LASTING)?;
        anyhow::ensure!(recorded.share == 1.0, "only {:.3} % were recorded", recorded.share * 100.0);
        Ok(vec![recorded.cost])
    };
    let contest = Contest {
        title: place.title(LASTING),
        quantity: Quantity::CpuPerOperation,
        phases: &["record"],
        rounds: 5,
        contestants: vec![Contestant::new(OURS, record)],
        bounds: Vec::new(),
    };
    contest.run(stop)
}

/// What packets carry, and where they go.
struct Place {
    noise: Content,
    target: Arc<Posix>,
    frames: u64,
    _directory: TempDir,
}

struct Recorded {
    cost: Cost,
    /// Of the packets that were sent.
    share: f64,
}

impl Place {
    fn new() -> anyhow::Result<Self> {
        let directory = place::in_memory()?;
        Ok(Place {
            noise: Content::prepare(&DataKind::Vlbi.into(), &[BODY as u64 * 4], PixelType::Uint2, SEED)?,
            target: Arc::new(Posix::create(probe(directory.path())?, 1)?),
            frames: frames_of_block(BODY, 4096).context("such frames fill pages")?,
            _directory: directory,
        })
    }

    fn title(&self, load: Load) -> String {
        let (size, system) = (PREFIX + BODY, &self.target.description().file_system);
        format!("packets: {} packets of {size} bytes at 8 Gbit/s onto {system}", load.packets)
    }

    fn file_size(&self) -> u64 {
        self.frames * BODY as u64 * BLOCKS
    }

    fn touch_memory(&self) {
        place::touch_memory(((KEEP + 3) * self.file_size()) as usize + SLOTS * BODY * self.frames as usize);
    }

    fn bare(&self) -> anyhow::Result<Cost> {
        self.touch_memory();
        let receive = bare_receiver(&self.noise, LOAD, true)?;
        let copy = copy(self.target.directory(), self.file_size())?;
        self.target.clear()?;
        Ok(Cost { cpu: receive.cpu + 1.2 * copy.cpu, ..receive })
    }

    fn recorded(&self, load: Load) -> anyhow::Result<Recorded> {
        self.touch_memory();
        let recorded = recorded(&self.noise, load, &self.target, self.frames)?;
        self.target.clear()?;
        Ok(recorded)
    }
}

/// Each packet into the file that is open, from memory that stays in the processor's cache.
fn copy(directory: &Path, file_size: u64) -> anyhow::Result<Cost> {
    let packets = vec![1; 64 * BODY];
    let path = |file| directory.join(format!("n_bare_{file}"));
    measure::thread(LOAD.packets as f64, || {
        let mut open = None;
        for (packet, bytes) in (0..LOAD.packets).zip(packets.chunks_exact(BODY).cycle()) {
            let (file, offset) = (packet * BODY as u64 / file_size, packet * BODY as u64 % file_size);
            if offset == 0 {
                open = Some(fs::File::create_new(path(file))?);
                file.checked_sub(KEEP).map_or(Ok(()), |old| fs::remove_file(path(old)))?;
            }
            open.as_ref().context("the first packet opens a file")?.write_all_at(bytes, offset)?;
        }
        Ok(())
    })
}

fn recorded(noise: &Content, load: Load, target: &Arc<Posix>, frames: u64) -> anyhow::Result<Recorded> {
    let listening = Listening { room: Bytes(64 << 20), ..Listening::at("127.0.0.1:0".parse()?) };
    let inlet = UdpInlet::open(&listening)?;
    let address = inlet.address()?;
    let mut recorder = Recorder::prepare(setup(inlet, target, frames)?)?;
    recorder.begin()?;
    send(noise, load, address)?;
    let outcome = recorder.wait_to_end();
    let placed = outcome.traffic.as_ref().map_or(0, |traffic| traffic.tally.placed);
    let share = placed as f64 / load.packets as f64;
    eprintln!("  recorded {:.2} %", share * 100.0);
    anyhow::ensure!(share > 0.9 && !outcome.hung, "only {:.1} % were recorded", share * 100.0);
    let lanes = outcome.lanes.iter().flatten().map(|lane| lane.usage);
    let usage = lanes.fold(outcome.source, Usage::and);
    let cost = Cost { amount: placed as f64, cpu: usage.total().seconds(), wall: outcome.wall.seconds() };
    Ok(Recorded { cost, share })
}

fn setup(inlet: UdpInlet, target: &Arc<Posix>, frames: u64) -> anyhow::Result<Setup> {
    let (format, size) = (Serial::new(), frames * BODY as u64);
    let head = Head {
        recording: 1,
        lane: 0,
        lanes: 1,
        frame_size: size,
        stride: size,
        frames_per_file: BLOCKS,
        storing: Storing::Files,
        format: Format::Vdif,
    };
    let stream = Some(Stream::new(Format::Vdif, format.geometry(), Missing::Filled));
    let layout = RawLayout { keep: Some(KEEP), stream, ..RawLayout::suited("n_packets".into(), head, false) };
    let network = Network {
        transport: Box::new(inlet),
        format: Box::new(format),
        frames_of_block: frames,
        limits: Limits::default(),
        missing: Missing::Filled,
        until: Until { silence: SILENCE, ..Until::default() },
    };
    Ok(Setup {
        engine: suited_engine(target.as_ref(), false, Clock::start())?,
        lanes: vec![(target.clone(), layout)],
        slots: SLOTS,
        feed: Feed::Network(network),
        reserve: None,
        stop: Arc::default(),
        allowance: Nanos::from_millis(10),
        hang_after: Nanos::from_millis(60_000),
    })
}
