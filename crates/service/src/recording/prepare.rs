//! A recording ready to begin: its directories, memory and sockets exist, and packets already wait in the
//! kernel.

use std::{
    path::Path,
    sync::{Arc, Mutex, atomic::AtomicBool},
};

use nilometer_acquisition::{
    EngineWish, Feed, Network, Port, Recorder, Setup, StoredFrames,
    sink::{Durability, LaneOptions, RawLayout, lanes_of},
};
use nilometer_hdf5_recording::{FileWishes, GrowingMaster, GrowthTerms, Hdf5Contents, MasterError};
use nilometer_intake::{
    ScanStreams, Until,
    joined::JoinedValues,
    transport::{
        Transport,
        udp::{Listening, received_memory},
    },
};
use nilometer_model::{
    Bytes, FileNames, Format, Instrument, Moment, Nanos, TargetAddress, TargetDescription, check_expected,
    packets::PacketPartKind,
};
use nilometer_recording::{Stream, journal::Head};
use nilometer_remote::describe_in_child;
use nilometer_ring::{MemoryPart, MemoryPlan};
use nilometer_storage::{
    Calendar, Clock, Target,
    target::{KeptDirectory, run_id},
};
use nilometer_wire::{Known, WireFormat};

use super::{
    addresses::PacketPlace,
    common_engine::common_engine,
    inlets::{InletThreads, inlets},
    joining::{JoiningValues, tell_left_out},
    kept_connections::KeptConnections,
    known_stream::{known, said},
    listening::texts,
    needed_memory::RecordingNeeds,
    options::RecordOptions,
    place::{check_stripes, discard_unused, make_striped},
    routes::StreamRoute,
    settings::RecordingSettings,
    source::{PacketSource, RecordedSource},
};
use crate::error::{OperatorLog, ServiceError, require};

/// A recording that is ready to begin.
#[derive(Debug)]
pub struct PreparedRecording {
    /// The recorder, which has everything but records nothing yet.
    pub recorder: Recorder,
    /// The directories of the recording, a lane each.
    pub targets: Vec<Arc<dyn KeptDirectory>>,
    /// The name in the options, or the instrument and a number.
    pub name: String,
    /// The source: the first port for packets, or the address of frames over TCP.
    pub from: String,
    /// The instrument, from its file or from the description in a series.
    pub instrument: Instrument,
    /// The bytes of packets that may wait in the kernel at each port, as the kernel granted them.
    pub room: Option<Bytes>,
    /// The point at which data survives a loss of power.
    pub durability: Durability,
    /// The layout of the first lane.
    pub(super) layout: RawLayout,
    /// Values that are joined to frames, if there are any.
    pub(super) joining: Option<JoiningValues>,
    /// The number of bits of the frame counter in packets; 64 if frames do not come in packets.
    pub number_bits: u32,
    /// Bytes of a frame in the blocks of packets; `None` if frames do not come in packets.
    pub(super) frame_bytes: Option<u64>,
    /// The detector's number of the series; `None` if frames do not come over TCP.
    pub(super) series_id: Option<u64>,
    /// The contents for the whole detector, if this is an HDF5 recording of some of its modules.
    pub(super) whole: Option<Hdf5Contents>,
    /// The master file that is there while frames come, in the layout of DECTRIS.
    pub(super) master: Mutex<Option<GrowingMaster>>,
}

/// Everything from which a recorder is made.
#[derive(Debug)]
pub(super) struct Arranged {
    pub(super) targets: Vec<Arc<dyn KeptDirectory>>,
    /// The layout of the first lane.
    pub(super) layout: RawLayout,
    pub(super) clock: Clock,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) instrument: Instrument,
    /// The number of slots in the ring.
    pub(super) slots: usize,
    /// The plan of all its memory.
    pub(super) memory: MemoryPlan,
    /// The number of frames announced; 0 if nobody announced it.
    pub(super) frames_due: u64,
}

/// The fewest packets outside any known sequence that the recorder can keep.
const CANDIDATES_LEAST: u64 = 64;
/// The longest time in which blocks wait and none is stored, before that counts as a stall.
const ALLOWANCE: Nanos = Nanos::from_millis(10);

impl RecordingSettings {
    /// Prepares the recording; a series only once it begins. If `stop` is set, the recording ends in order.
    ///
    /// # Errors
    ///
    /// The options do not suit this storage or network. Or a thread, memory or a lane is unavailable; then
    /// everything made is removed.
    pub fn prepare(
        &self,
        stop: Arc<AtomicBool>,
        log: OperatorLog,
    ) -> Result<PreparedRecording, ServiceError> {
        self.prepare_keeping(stop, log, None)
    }

    /// Like [`Self::prepare`], with connections of a series that outlive its recording.
    ///
    /// # Errors
    ///
    /// The same as those of [`Self::prepare`].
    pub fn prepare_keeping(
        &self,
        stop: Arc<AtomicBool>,
        log: OperatorLog,
        kept: Option<&KeptConnections>,
    ) -> Result<PreparedRecording, ServiceError> {
        match (&self.source, self.open_series(kept, log)?) {
            (RecordedSource::Packets(source), _) => self.prepare_packets(source, stop, log),
            (RecordedSource::Series(_), Some(opened)) => self.prepare_series(opened, stop, log),
            (RecordedSource::Series(_), None) => Err(ServiceError::Failed("it has no connection".into())),
        }
    }

    /// The name of the recording with this number.
    pub(super) fn name_of(&self, id: u64, instrument: &str) -> String {
        self.wishes.name.clone().unwrap_or_else(|| format!("{instrument}-{id:016x}"))
    }

    fn prepare_packets(
        &self,
        source: &PacketSource,
        stop: Arc<AtomicBool>,
        log: OperatorLog,
    ) -> Result<PreparedRecording, ServiceError> {
        let PacketSource { instrument, packets, .. } = source;
        require(self.wishes.stream_suffixes().is_empty(), || {
            "data streams are recorded by one process: leave out --data-stream and labels of --listen".into()
        })?;
        let formats = formats(source).map_err(ServiceError::AskedWrongly)?;
        let format = formats[0].as_ref();
        let described = self.described()?;
        let places = source.places(&self.wishes.listen)?;
        let sockets = self.listening(source, &places)?;
        let geometry = format.geometry();
        let blocks = stored(source, geometry.frame_size());
        let id = run_id().0;
        let name = self.name_of(id, &instrument.name);
        let planned = self.planned_contents(instrument);
        let needs = RecordingNeeds {
            frames: blocks,
            described: &described,
            instrument,
            contents: planned.as_ref(),
            source: self.packet_memory(source, &sockets),
            sockets: self.socket_count(source, &sockets),
            candidates: CANDIDATES_LEAST * geometry.packet_size() as u64,
            frames_due: self.frames_due(instrument),
        };
        let least = self.least_buffer(blocks, format);
        let check = |buffer| self.check_memory(blocks, format, buffer);
        let (plan, memory) = self.settled_plan(&needs, &name, least, check)?;
        let from = texts(&places);
        let inlets = match &self.route {
            Some(route) => vec![route.inlet(&sockets, &from)?],
            None => inlets(&sockets, &from, packets.ports(), self.threads())?,
        };
        let joining = self.joining()?;
        let room = Bytes(inlets.iter().map(|inlet| inlet.room()).min().unwrap_or(0));
        let targets = make_striped(described, &name, &self.wishes.stripes(), &log)?;
        let stream = Stream::new(packets.stored(), geometry, self.missing());
        let frames_of_block = blocks.size / geometry.frame_size() as u64;
        let number_bits = geometry.number_bits;
        let frame_bytes = Some(geometry.frame_size() as u64);
        // For readers of the recording, the rate in the instrument's file is better than none.
        let stream = stream.sent_as(packets, &said(instrument));
        let network = self.network(formats, inlets, frames_of_block);
        let clock = Clock::start();
        let wishes = self.file_wishes(joining.as_ref(), log);
        let start = Calendar::start_of(clock);
        let hdf5 = Hdf5Contents::asked(instrument, start, &wishes);
        let whole = whole_contents(source, start, &wishes);
        if let Some(contents) = &hdf5 {
            tell_left_out(contents, log);
        }
        let layout = RawLayout { stream: Some(stream), hdf5, ..plan.layout(&name, id, 0) };
        log(&format!("stored as {plan}"));
        let slots = plan.slots();
        let instrument = instrument.clone();
        // Nobody announces how many frames come in packets.
        let arranged = Arranged { targets, layout, clock, stop, instrument, slots, memory, frames_due: 0 };
        let prepared = self.prepare_recorder(arranged, name, Feed::Network(network), log)?;
        let room = Some(room);
        let prepared = PreparedRecording { from, room, number_bits, frame_bytes, whole, ..prepared };
        Ok(prepared.joining(joining))
    }

    /// Makes the recorder and everything it needs. If that fails, it removes everything made.
    pub(super) fn prepare_recorder(
        &self,
        arranged: Arranged,
        name: String,
        feed: Feed,
        log: OperatorLog,
    ) -> Result<PreparedRecording, ServiceError> {
        let setup = self.setup(&arranged, feed);
        let Arranged { targets, layout, instrument, memory, frames_due, .. } = arranged;
        let ring = memory.bound(MemoryPart::Ring);
        log(&format!(
            "preparing {ring} of memory; all parts of the recorder take at most {}",
            memory.total()
        ));
        match setup.and_then(|setup| Recorder::prepare(setup).map_err(ServiceError::failed)) {
            Ok(recorder) => {
                recorder.memory().state(&memory);
                if recorder.engine().why().is_some() {
                    log(&format!("engine {}", recorder.engine()));
                }
                let durability = layout.durability;
                let master = match self.growing_master(&targets, &layout, frames_due) {
                    Ok(master) => master,
                    Err(error) => {
                        drop(recorder);
                        remove_unused(targets, &layout);
                        return Err(ServiceError::failed(error));
                    }
                };
                let from = String::new();
                Ok(PreparedRecording {
                    recorder,
                    targets,
                    name,
                    from,
                    instrument,
                    room: None,
                    durability,
                    layout,
                    joining: None,
                    number_bits: u64::BITS,
                    frame_bytes: None,
                    series_id: None,
                    whole: None,
                    master: Mutex::new(master),
                })
            }
            Err(error) => {
                remove_unused(targets, &layout);
                Err(error)
            }
        }
    }

    /// Begins the master file that is there while frames come, if the layout is that of DECTRIS.
    fn growing_master(
        &self,
        targets: &[Arc<dyn KeptDirectory>],
        layout: &RawLayout,
        frames_due: u64,
    ) -> Result<Option<GrowingMaster>, MasterError> {
        let (Some(contents), Some(first)) = (&layout.hdf5, targets.first()) else { return Ok(None) };
        if layout.head.names == FileNames::Recorder {
            return Ok(None);
        }
        let name = layout.name.clone();
        let terms = GrowthTerms { name, head: layout.head, frames_due, at_most: self.patience() };
        GrowingMaster::begin(contents, first, terms).map(Some)
    }

    /// Describes the directories in which the recording goes.
    pub(super) fn described(&self) -> Result<Vec<TargetDescription>, ServiceError> {
        let mut described = Vec::new();
        for path in &self.wishes.to {
            let address = TargetAddress::of_named(Path::new(path)).map_err(ServiceError::asked_wrongly)?;
            described.push(describe_in_child(&address).map_err(ServiceError::asked_wrongly)?);
        }
        check_expected(&described, &self.wishes.expect).map_err(ServiceError::asked_wrongly)?;
        check_stripes(&self.wishes.stripes(), &described)?;
        Ok(described)
    }

    /// The sockets for packets at these places.
    fn listening(
        &self,
        source: &PacketSource,
        places: &[PacketPlace],
    ) -> Result<Vec<Listening>, ServiceError> {
        let RecordOptions { interface, busy_poll, .. } = &self.wishes;
        if let Some(interface) = interface
            && let Some(PacketPlace { at, .. }) = places.iter().find(|place| !place.at.ip().is_multicast())
        {
            return Err(ServiceError::AskedWrongly(format!(
                "--interface {interface}: udp://{at} is no group; leave --interface out, or --listen to a group"
            )));
        }
        let mut sockets = source.sockets(places);
        let room = self.socket_buffer(self.socket_count(source, &sockets));
        let allowed = self.wishes.allowed()?;
        for socket in &mut sockets {
            socket.interface = *interface;
            socket.room = room;
            socket.allowed = allowed.clone();
            socket.busy_poll = busy_poll.unwrap_or(0);
        }
        Ok(sockets)
    }

    /// The number of sockets for packets: each thread that receives has one at each port.
    fn socket_count(&self, source: &PacketSource, sockets: &[Listening]) -> u64 {
        source.ports_at(sockets).saturating_mul(self.threads().each as u64)
    }

    /// The memory for receiving packets, apart from the ring and from socket buffers.
    fn packet_memory(&self, source: &PacketSource, sockets: &[Listening]) -> MemoryPlan {
        let waiting = source.ports_at(sockets).saturating_mul(received_memory(self.threads().each));
        let waiting = waiting.saturating_add(self.route.as_ref().map_or(0, |_| StreamRoute::memory()));
        MemoryPlan::default().with(MemoryPart::ReorderWindows, waiting)
    }

    /// The number of frames in the duration option; 0 without that.
    #[expect(clippy::cast_sign_loss, reason = "neither is negative")]
    fn frames_due(&self, instrument: &Instrument) -> u64 {
        let seconds = self.wishes.duration.map_or(0.0, Nanos::seconds);
        (seconds * instrument.frame_rate.0).ceil() as u64
    }

    /// The contents of an instrument's files, as far as they take memory; `None` if the files are not HDF5.
    fn planned_contents(&self, instrument: &Instrument) -> Option<Hdf5Contents> {
        let several = self.layout.as_ref().is_some_and(|layout| layout.has_several_datasets());
        let joined = several.then(|| Arc::new(JoinedValues::without_source()));
        let wishes = FileWishes { layout: self.layout.clone(), joined };
        Hdf5Contents::asked(instrument, Moment(Nanos(0)), &wishes)
    }

    fn threads(&self) -> InletThreads<'_> {
        InletThreads { each: self.wishes.receive_threads.unwrap_or(1), cpus: &self.wishes.cpus }
    }

    /// The time to wait for a first packet, if the recording ends with a silence or after a duration. A sender
    /// takes seconds to begin, and users choose short times for the packets behind the first one.
    fn silence_at_start(&self) -> Option<Nanos> {
        const LEAST: Nanos = Nanos::from_millis(5000);
        let given = [self.wishes.silence, self.wishes.duration].into_iter().flatten();
        given.min().map(|time| time.max(LEAST))
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
            limits: self.reorder_window(),
            missing: self.missing(),
            until: Until {
                duration: self.wishes.duration.unwrap_or(until.duration),
                packets: self.wishes.packets.unwrap_or(until.packets),
                silence: self.wishes.silence.unwrap_or(until.silence),
                silence_at_start: self.silence_at_start().unwrap_or(until.silence_at_start),
            },
            cpu: self.wishes.cpus.first().copied(),
            beside: self.beside.as_ref().map(ScanStreams::join),
        }
    }

    fn setup(&self, arranged: &Arranged, feed: Feed) -> Result<Setup, ServiceError> {
        let Arranged { targets, layout, clock, stop, instrument, slots, .. } = arranged;
        let lane = |(lane, target): (u32, &Arc<dyn KeptDirectory>)| {
            let layout = RawLayout { head: Head { lane, ..layout.head }, ..layout.clone() };
            (target.clone() as Arc<dyn Target>, layout)
        };
        let encoders = instrument.recording.encoders.map(|count| count as usize);
        let options = LaneOptions { reserve: Some(self.reserve()), encoders };
        let wish = EngineWish { deep: layout.is_deep(), kind: self.wishes.engine.map(Into::into) };
        Ok(Setup {
            engine: common_engine(targets, wish, *clock)?,
            slots: *slots,
            lanes: lanes_of((layout.head.lane..).zip(targets).map(lane).collect(), options)
                .map_err(ServiceError::failed)?,
            feed,
            stop: stop.clone(),
            allowance: ALLOWANCE,
            hang_after: self.patience(),
        })
    }
}

impl PreparedRecording {
    /// The number of the recording: the same in all its journals, and in no other's.
    pub fn id(&self) -> u64 {
        self.layout.head.recording
    }

    /// Cancels the recording and removes its directories, if the storage answers.
    pub fn discard(self) {
        let PreparedRecording { recorder, targets, layout, .. } = self;
        if recorder.cancel() {
            remove_unused(targets, &layout);
        }
    }
}

/// The contents for the whole detector, if some of its modules are recorded in HDF5. Values joined to frames
/// stay with the modules.
fn whole_contents(source: &PacketSource, start: Moment, wishes: &FileWishes) -> Option<Hdf5Contents> {
    let PacketPartKind::Modules { .. } = source.part else { return None };
    let wishes = FileWishes { layout: wishes.layout.clone(), joined: None };
    Hdf5Contents::asked(&source.whole, start, &wishes)
}

/// Removes directories in which nothing was recorded, with the files that lanes make before the first frame.
fn remove_unused(targets: Vec<Arc<dyn KeptDirectory>>, layout: &RawLayout) {
    for (lane, target) in (layout.head.lane..).zip(targets) {
        let own = RawLayout { head: Head { lane, ..layout.head }, ..layout.clone() };
        discard_unused(target, own.names_before_frames());
    }
}

/// The unit of storage for packets: blocks of frames of this size, or each frame of a detector as a chunk. An
/// earlier check has refused instruments whose frames can't be chunks.
fn stored(source: &PacketSource, frame_size: usize) -> StoredFrames {
    match source.instrument.recording.format {
        Format::Hdf5 => StoredFrames { padded: false, ..StoredFrames::of(&source.instrument) },
        _ => StoredFrames::blocks(frame_size, source.packets.stored()),
    }
}

/// The wire formats, one for each port.
fn formats(source: &PacketSource) -> Result<Vec<Box<dyn WireFormat>>, String> {
    let PacketSource { instrument, packets, .. } = source;
    let is_of_modules = matches!(source.part, PacketPartKind::Modules { .. });
    let parts_before = if is_of_modules { source.ports_before } else { 0 };
    let known = Known { parts_before, ..known(instrument, packets) };
    (0..packets.ports()).map(|port| nilometer_wire::of(packets, &Known { port, ..known })).collect()
}
