//! A recording as it was asked for, with everything looked up and checked, and made ready: directories, memory, the
//! socket.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, atomic::AtomicBool},
};

use anyhow::{Context, ensure};
use nilometer_acquisition::{
    Feed, LayoutOptions, Network, PART, Port, Recorder, RecordingPlan, Retention, Setup, StoredFrames, Until,
    assembly::ReorderWindow,
    sink::{Durability, LaneOptions, RawLayout, lanes_of},
    suited_engine,
    transport::{
        Transport,
        udp::{Allowed, Listening, ROOM},
    },
};
use nilometer_model::{Bytes, Instrument, Nanos, packets::Packets};
use nilometer_recording::{Missing, Stream, journal::Head};
use nilometer_storage::{
    Calendar, Clock, PATIENCE, Target, in_time,
    target::{Directory, run_id},
    user_file,
};
use nilometer_wire::{Known, WireFormat};

use super::{
    inlets::{Threads, inlets},
    options::{Allow, RecordOptions},
};
use crate::{
    Blame, Failure,
    describe::described_directory,
    recorded::{KEPT, check_buffer, check_name, check_place, make},
    tell,
};

/// See the module.
#[derive(Debug)]
pub(crate) struct Settings {
    instrument: Instrument,
    packets: Packets,
    wishes: RecordOptions,
}

/// A recording that is ready to begin.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) recorder: Recorder,
    pub(crate) targets: Vec<Arc<Directory>>,
    pub(crate) name: String,
    /// Where packets are awaited.
    pub(crate) at: SocketAddr,
    /// How many bytes of them may wait in the kernel.
    pub(crate) room: Bytes,
    pub(crate) durability: Durability,
    /// Of the first lane.
    layout: RawLayout,
}

const BUFFER: Bytes = Bytes(1 << 30);
const RESERVE: Bytes = Bytes(1 << 30);
const HANG_AFTER: Nanos = Nanos::from_millis(60_000);
/// Larger chunks would keep too much memory waiting for one disk.
const CHUNK_MOST: u64 = 2 << 30;
/// From 1970-01-01 to 2000-01-01 00:00 UTC, in seconds.
const YEAR_2000: u64 = 946_684_800;

impl Settings {
    /// All that can be refused before the storage is looked at.
    pub(crate) fn of(wishes: RecordOptions) -> anyhow::Result<Self> {
        let instrument = asked(&wishes)?;
        ensure!(!wishes.to.is_empty(), "no --to: name the directory that the recording goes to");
        let name = &instrument.name;
        let packets = instrument.packets.clone().with_context(|| {
            format!("{name}: it has no `packets`: nothing says how it comes over a network")
        })?;
        let settings = Settings { instrument, packets, wishes };
        settings.check_limits()?;
        Ok(settings)
    }

    fn check_limits(&self) -> anyhow::Result<()> {
        if let Some(name) = &self.wishes.name {
            check_name(name)?;
        }
        let RecordOptions { packets, duration, start, stop, hang_after, .. } = &self.wishes;
        let time = |time: &Option<Nanos>| time.map(|time| time.0);
        let least =
            [("--packets", *packets), ("--duration", time(duration)), ("--hang-after", time(hang_after))];
        for (option, value) in least {
            ensure!(value != Some(0), "{option} 0: write more than 0");
        }
        if let (Some(start), Some(stop)) = (start, stop) {
            ensure!(start < stop, "--stop {stop}: write a time after --start {start}");
        }
        if let Some(stop) = stop {
            ensure!(stop.0 > Calendar::now().time, "--stop {stop}: that is over, write a time to come");
        }
        Ok(())
    }

    /// What was asked.
    pub(crate) fn wishes(&self) -> &RecordOptions {
        &self.wishes
    }

    /// What is recorded.
    pub(crate) fn instrument(&self) -> &Instrument {
        &self.instrument
    }

    /// How long storage may be silent.
    pub(crate) fn patience(&self) -> Nanos {
        self.wishes.hang_after.unwrap_or(HANG_AFTER)
    }

    /// Where packets are awaited.
    pub(crate) fn listens_at(&self) -> String {
        let usual = || format!("udp://{}:{}", Ipv4Addr::LOCALHOST, self.packets.port);
        self.wishes.listen.as_ref().map_or_else(usual, ToString::to_string)
    }

    /// Makes everything ready. When `stop` is set, the recording ends in order.
    pub(crate) fn prepare(&self, stop: Arc<AtomicBool>) -> Result<Prepared, Failure> {
        let formats = self.formats().map_err(anyhow::Error::msg).input()?;
        let format = &formats[0];
        let described = self.wishes.to.iter().map(|path| described_directory(path));
        let described = described.collect::<Result<Vec<_>, _>>().input()?;
        let blocks = StoredFrames::blocks(format.geometry().frame_size(), self.packets.stored());
        let id = run_id().0;
        let name = self.wishes.name.clone().unwrap_or_else(|| format!("{}-{id:016x}", self.instrument.name));
        self.check_memory(blocks, format.as_ref()).input()?;
        self.check_chunks(blocks, &name).input()?;
        self.check_kept(blocks).input()?;
        let plan = RecordingPlan::of(blocks, &described, &self.layout_options());
        let least = plan.ring_size().map_or(("block", Bytes(blocks.size)), |size| (KEPT, size));
        for description in &described {
            let beside = described.iter().filter(|other| other.shares_space_with(description)).count() as u64;
            let (what, size) = least;
            let size = if plan.ring_size().is_some() { Bytes(size.0.saturating_mul(beside)) } else { size };
            check_place(description, &name, self.reserve(), what, size).input()?;
        }
        let listening = self.listening().input()?;
        let inlets = inlets(&listening, self.packets.ports(), self.threads()).input()?;
        let room = Bytes(inlets.iter().map(|inlet| inlet.room()).min().unwrap_or(0));
        let targets = make(described, &name).input()?;
        let stream = Stream::new(self.packets.stored(), format.geometry(), self.missing());
        let frames_of_block = blocks.size / format.geometry().frame_size() as u64;
        // What its file says of the rate is better than nothing for whoever reads the recording.
        let stream = stream.sent_as(&self.packets, &said(&self.instrument));
        let network = self.network(formats, inlets, frames_of_block);
        let layout = RawLayout { stream: Some(stream), ..plan.layout(&name, id, 0) };
        let durability = layout.durability;
        let setup = self.setup(&targets, &layout, network, stop);
        tell::note(format_args!("stored as {plan}"));
        tell::note(format_args!("preparing {} of memory", self.buffer()));
        match setup.and_then(|setup| Ok(Recorder::prepare(setup)?)) {
            Ok(recorder) => {
                Ok(Prepared { recorder, targets, name, at: listening.at, room, durability, layout })
            }
            Err(error) => {
                remove_unused(targets, &layout);
                Err(Failure::Run(error))
            }
        }
    }

    fn buffer(&self) -> Bytes {
        self.wishes.buffer.unwrap_or(BUFFER)
    }

    fn reserve(&self) -> Bytes {
        self.wishes.reserve.unwrap_or(RESERVE)
    }

    fn limits(&self) -> ReorderWindow {
        let limits = ReorderWindow::default();
        ReorderWindow { window: self.wishes.window.unwrap_or(limits.window), ..limits }
    }

    fn missing(&self) -> Missing {
        self.wishes.missing.unwrap_or_default()
    }

    fn check_memory(&self, blocks: StoredFrames, format: &dyn WireFormat) -> anyhow::Result<()> {
        let buffer = self.buffer();
        let window = self.limits().window;
        check_buffer(buffer, Bytes(blocks.size))?;
        let waiting = window.saturating_mul(format.geometry().packet_size() as u64);
        let needed = Bytes(waiting.saturating_add(4 * blocks.size));
        ensure!(buffer >= needed, "--buffer {buffer}: a window of {window} packets needs {needed}");
        Ok(())
    }

    /// Whether other readers of chunks will take them.
    fn check_chunks(&self, blocks: StoredFrames, name: &str) -> anyhow::Result<()> {
        if !self.is_scattered() {
            let why = match self.wishes.keep {
                Some(_) => "what only the latest --keep is kept of has no chunks",
                None => "one directory has no chunks, name several --to",
            };
            ensure!(self.wishes.chunk_size.is_none(), "--chunk-size: {why}");
            return Ok(());
        }
        ensure!(!name.contains('.'), "--name {name}: readers of chunks take no name with a dot in it");
        let chunk = self.chunk_size();
        let buffer = self.buffer();
        let lanes = self.wishes.to.len() as u64;
        ensure!(
            chunk.0 >= blocks.size && chunk.0 <= CHUNK_MOST,
            "--chunk-size {chunk}: write {} to {}",
            Bytes(blocks.size),
            Bytes(CHUNK_MOST)
        );
        let needed = Bytes(chunk.0.saturating_mul(lanes));
        ensure!(
            buffer >= needed,
            "--buffer {buffer}: {lanes} directories that write at once need {needed}, a chunk of {chunk} each; name a \
             larger buffer or smaller chunks"
        );
        Ok(())
    }

    fn is_scattered(&self) -> bool {
        self.wishes.to.len() > 1 && self.wishes.keep.is_none()
    }

    /// Whether each directory keeps a block at least.
    fn check_kept(&self, blocks: StoredFrames) -> anyhow::Result<()> {
        let Some(keep) = self.wishes.keep else { return Ok(()) };
        let least = Bytes(blocks.size.saturating_mul(self.wishes.to.len() as u64));
        ensure!(keep >= least, "--keep {keep}: write {least}, which is a block in each directory, or more");
        Ok(())
    }

    fn layout_options(&self) -> LayoutOptions {
        LayoutOptions {
            retention: self.wishes.keep.map_or(Retention::All, Retention::Latest),
            chunk_size: self.wishes.chunk_size,
            reserve: self.reserve(),
            checksums: self.wishes.checksums,
            ..LayoutOptions::with_buffer(self.buffer())
        }
    }

    fn chunk_size(&self) -> Bytes {
        self.wishes.chunk_size.unwrap_or(Bytes(PART))
    }

    /// Where packets are awaited, looked up.
    pub(crate) fn address(&self) -> anyhow::Result<SocketAddr> {
        match &self.wishes.listen {
            Some(address) => Ok(address.resolve()?),
            None => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, self.packets.port))),
        }
    }

    fn listening(&self) -> anyhow::Result<Listening> {
        let RecordOptions { interface, allow, receive_buffer, busy_poll, .. } = &self.wishes;
        let at = self.address()?;
        if let Some(interface) = interface {
            let hint = "leave --interface out, or --listen to a group";
            ensure!(at.ip().is_multicast(), "--interface {interface}: udp://{at} is no group; {hint}");
        }
        Ok(Listening {
            at,
            interface: *interface,
            room: receive_buffer.unwrap_or(ROOM),
            allowed: allowed(allow)?,
            busy_poll: busy_poll.unwrap_or(0),
        })
    }

    fn threads(&self) -> Threads<'_> {
        Threads { each: self.wishes.receive_threads.unwrap_or(1), cpus: &self.wishes.cpus }
    }

    /// One for each port.
    fn formats(&self) -> Result<Vec<Box<dyn WireFormat>>, String> {
        let known = known(&self.instrument, &self.packets);
        (0..self.packets.ports())
            .map(|port| nilometer_wire::of(&self.packets, &Known { port, ..known }))
            .collect()
    }

    fn network(
        &self,
        formats: Vec<Box<dyn WireFormat>>,
        inlets: Vec<Box<dyn Transport>>,
        frames_of_block: u64,
    ) -> Network {
        let until = Until::default();
        let port = |(transport, format)| Port { transport, format };
        Network {
            ports: inlets.into_iter().zip(formats).map(port).collect(),
            frames_of_block,
            limits: self.limits(),
            missing: self.missing(),
            until: Until {
                duration: self.wishes.duration.unwrap_or(until.duration),
                packets: self.wishes.packets.unwrap_or(until.packets),
                silence: self.wishes.silence.unwrap_or(until.silence),
            },
            cpu: self.wishes.cpus.first().copied(),
        }
    }

    fn setup(
        &self,
        targets: &[Arc<Directory>],
        layout: &RawLayout,
        network: Network,
        stop: Arc<AtomicBool>,
    ) -> anyhow::Result<Setup> {
        let lane = |(lane, target): (u32, &Arc<Directory>)| {
            let layout = RawLayout { head: Head { lane, ..layout.head }, ..layout.clone() };
            (target.clone() as Arc<dyn Target>, layout)
        };
        let options = LaneOptions { reserve: Some(self.reserve()), ..LaneOptions::default() };
        Ok(Setup {
            engine: suited_engine(targets[0].as_ref(), layout.is_deep(), Clock::start())?,
            slots: layout.spacing().slots(self.buffer()),
            lanes: lanes_of((0..).zip(targets).map(lane).collect(), options)?,
            feed: Feed::Network(network),
            stop,
            allowance: Nanos::from_millis(10),
            hang_after: self.patience(),
        })
    }
}

impl Prepared {
    /// It does not begin: what was made for it is removed.
    pub(crate) fn discard(self) {
        let Prepared { recorder, targets, layout, .. } = self;
        if recorder.cancel() {
            remove_unused(targets, &layout);
        }
    }
}

/// Removes directories in which nothing was recorded, with the files that lanes make before the first frame. What is foreign
/// in one stays, and it with that. One that does not answer is given up.
fn remove_unused(targets: Vec<Arc<Directory>>, layout: &RawLayout) {
    for (lane, target) in (0..).zip(targets) {
        let Some(directory) = Arc::into_inner(target) else { continue };
        let own = RawLayout { head: Head { lane, ..layout.head }, ..layout.clone() };
        let names = own.names_before_frames();
        let path = directory.path().to_owned();
        drop(in_time(PATIENCE, path, move || drop(directory.remove_unused(&names))));
    }
}

/// Whose packets are taken.
fn allowed(allow: &[Allow]) -> anyhow::Result<Allowed> {
    let named = |allow: &Allow| match allow {
        Allow::Any => None,
        Allow::Only(address) => Some(*address),
    };
    match allow {
        [] => Ok(Allowed::First),
        [Allow::Any] => Ok(Allowed::Any),
        allow => {
            let named: Option<Vec<_>> = allow.iter().map(named).collect();
            Ok(Allowed::Named(named.context("--allow any is everybody: name no other beside it")?))
        }
    }
}

/// The instrument that is named, as its mode changes it.
fn asked(wishes: &RecordOptions) -> anyhow::Result<Instrument> {
    let named = wishes.instrument.as_deref().map(user_file::instrument).transpose()?;
    match &wishes.mode {
        Some(mode) => mode.instrument(named.as_ref()).map_err(anyhow::Error::msg),
        None => named.context("no instrument: name one of the catalogue, or a .toml file, or its --mode"),
    }
}

/// What an instrument's file says of its stream, and today's date.
fn said(instrument: &Instrument) -> Known {
    let today = (Calendar::now().time.0 / 1_000_000_000).saturating_sub(YEAR_2000);
    Known { begins: today, ..Known::of(instrument) }
}

/// What is known of a stream before it comes. Where packets have serial numbers, the frames of a second are learned from
/// them: the instrument may be set to another rate than its file says.
fn known(instrument: &Instrument, packets: &Packets) -> Known {
    let known = said(instrument);
    let frames_per_second = known.frames_per_second.filter(|_| packets.serial().is_none());
    Known { frames_per_second, ..known }
}
