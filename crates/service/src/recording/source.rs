//! The source of a recording: an instrument that sends packets, or a series of frames over TCP.

use std::{
    path::{Path, PathBuf},
    sync::OnceLock,
};

use nilometer_hdf5_recording::{check_compression, settle_instrument};
use nilometer_intake::{joined::MetadataSource, series::SeriesUntil, transport::zeromq::ZmqEndpoint};
use nilometer_model::{
    ChunkShape, DECTRIS_FRAMES_PER_FILE, DECTRIS_LAYOUT, Format, FrameCompression, Instrument, ScanShape,
    Storing,
    packets::{PacketPart, PacketPartKind, PacketShare, Packets},
};
use nilometer_storage::user_file;

use super::{
    addresses::{ListenAddress, StreamAddress},
    options::RecordOptions,
};
use crate::error::{ServiceError, require};

/// An instrument that sends packets, or a sender of a series of frames.
#[derive(Debug)]
pub(super) enum RecordedSource {
    Packets(Box<PacketSource>),
    Series(Box<SeriesSource>),
}

/// An instrument that sends packets.
#[derive(Debug)]
pub(super) struct PacketSource {
    pub(super) instrument: Instrument,
    /// The description of its packets.
    pub(super) packets: Packets,
    /// The number of ports of the whole instrument before those of this part.
    pub(super) ports_before: u16,
    /// The part that this recorder takes.
    pub(super) part: PacketPartKind,
    /// The whole instrument.
    pub(super) whole: Instrument,
}

/// A detector, or any program, that sends frames.
#[derive(Debug)]
pub(super) struct SeriesSource {
    /// The facts in the catalogue, beside those in the series itself.
    pub(super) instrument: Option<Instrument>,
    /// The compression of its frames in the recording.
    pub(super) compression: FrameCompression,
    pub(super) frames_per_file: Option<u64>,
    /// The layout of its files, if the options or the instrument name one.
    pub(super) layout: Option<PathBuf>,
    pub(super) scan: Option<ScanShape>,
    pub(super) chunk: Option<ChunkShape>,
    /// The ends of all its connections, at least one.
    pub(super) ends: Vec<SeriesEnd>,
}

/// One end of its connections.
#[derive(Debug)]
pub(super) struct SeriesEnd {
    /// The address as the user wrote it.
    pub(super) address: StreamAddress,
    /// True if this machine listens there; otherwise it connects.
    binds: bool,
    /// The address from a single look-up, so that the recorder uses the one that was checked.
    resolved: OnceLock<ZmqEndpoint>,
}

impl RecordedSource {
    /// The source in the options: the part of it that this recorder takes.
    pub(super) fn of(wishes: &RecordOptions, share: PacketShare) -> Result<Self, ServiceError> {
        let ends = SeriesEnd::all(wishes);
        if !ends.is_empty() {
            let mut source = SeriesSource::of(wishes, ends)?;
            if share != PacketShare::ALL {
                source.check_share(wishes)?;
                // Each process has one file for all its frames.
                source.frames_per_file = None;
            }
            return Ok(RecordedSource::Series(Box::new(source)));
        }
        require(wishes.series.is_none(), || {
            "--series: only for frames over TCP (--from), and packets are recorded: leave it out".into()
        })?;
        let mut instrument = asked(wishes)?;
        instrument.recording.write_as(wishes.format.unwrap_or(instrument.recording.format));
        if wishes.compression.is_some() {
            instrument.recording.compression = wishes.compression;
        }
        if let Some(frames) = wishes.frames_per_file {
            require(instrument.recording.format == Format::Hdf5, || {
                format!("--frames-per-file {frames}: only of HDF5; write --format hdf5, or leave it out")
            })?;
            instrument.recording.store(Storing::Files);
            instrument.recording.frames_per_file = Some(frames);
        }
        if wishes.layout.is_some() {
            instrument.recording.layout.clone_from(&wishes.layout);
        }
        instrument.recording.fill_files();
        instrument.recording.scan = wishes.scan.or(instrument.recording.scan);
        check_scan(wishes, instrument.recording.scan)?;
        require(wishes.align.is_none() || instrument.recording.format == Format::Hdf5, || {
            "--align: only of HDF5; write --format hdf5, or leave it out".into()
        })?;
        instrument.recording.chunk = wishes.chunk.or(instrument.recording.chunk);
        instrument
            .check()
            .map_err(|why| ServiceError::AskedWrongly(format!("{}: {why}", instrument.name)))?;
        PacketSource::of(instrument, share).map(Box::new).map(RecordedSource::Packets)
    }

    /// The instrument before the stream begins; `None` if only the stream describes it.
    pub(super) fn instrument(&self) -> Option<&Instrument> {
        match self {
            RecordedSource::Packets(source) => Some(&source.instrument),
            RecordedSource::Series(source) => source.instrument.as_ref(),
        }
    }
}

impl PacketSource {
    /// The part of a checked instrument that one of several recorders takes.
    fn of(instrument: Instrument, share: PacketShare) -> Result<Self, ServiceError> {
        packets_of(&instrument)?;
        let part = instrument.packet_part(share).map_err(ServiceError::AskedWrongly)?;
        let PacketPart { instrument: own, ports_before, kind: part } = part;
        check_part(part, &instrument)?;
        own.check().map_err(|why| {
            ServiceError::AskedWrongly(format!("{part} of {} by itself: {why}", instrument.name))
        })?;
        let whole = settled(instrument)?;
        let instrument = settled(own)?;
        let packets = packets_of(&instrument)?.clone();
        Ok(PacketSource { instrument, packets, ports_before, part, whole })
    }
}

/// The description of an instrument's packets, or an error if it has none.
fn packets_of(instrument: &Instrument) -> Result<&Packets, ServiceError> {
    instrument.packets.as_ref().ok_or_else(|| {
        ServiceError::AskedWrongly(format!(
            "{}: it has no `packets`, so the recorder does not know its network format; if it sends frames over \
             TCP, add --from tcp://HOST:PORT",
            instrument.name
        ))
    })
}

fn settled(mut instrument: Instrument) -> Result<Instrument, ServiceError> {
    let settled = settle_instrument(&mut instrument);
    settled.map_err(|why| ServiceError::AskedWrongly(format!("{}: {why}", instrument.name)))?;
    Ok(instrument)
}

impl SeriesEnd {
    fn all(wishes: &RecordOptions) -> Vec<Self> {
        let end = |address: &StreamAddress, binds| SeriesEnd {
            address: address.clone(),
            binds,
            resolved: OnceLock::new(),
        };
        let connected = wishes.from.iter().map(|address| end(address, false));
        let bound = wishes.listen.iter().filter_map(|listen| match listen {
            ListenAddress::Frames(address) => Some(end(address, true)),
            ListenAddress::Packets(_) => None,
        });
        connected.chain(bound).collect()
    }

    /// The resolved address. The first call looks it up.
    pub(super) fn resolved(&self) -> Result<ZmqEndpoint, ServiceError> {
        if let Some(endpoint) = self.resolved.get() {
            return Ok(*endpoint);
        }
        let text = self.address.text();
        let found = if self.binds { ZmqEndpoint::bind(text) } else { ZmqEndpoint::connect(text) };
        let found = found.map_err(ServiceError::asked_wrongly)?;
        Ok(*self.resolved.get_or_init(|| found))
    }

    /// Returns true if these options name this end.
    pub(super) fn is_of(&self, wishes: &RecordOptions) -> bool {
        if self.binds {
            return wishes.listen.contains(&ListenAddress::Frames(self.address.clone()));
        }
        wishes.from.contains(&self.address)
    }

    /// The option that names it.
    pub(super) fn option(&self) -> &'static str {
        if self.binds { "listen" } else { "from" }
    }
}

impl SeriesSource {
    fn of(wishes: &RecordOptions, ends: Vec<SeriesEnd>) -> Result<Self, ServiceError> {
        if let Some(option) = of_packets(wishes) {
            return Err(ServiceError::AskedWrongly(format!(
                "{option}: only for packets, and frames over TCP are recorded: leave it out"
            )));
        }
        wishes.allowed()?;
        let waits = ends.iter().any(|end| end.binds)
            || wishes.metadata.iter().any(|text| MetadataSource::waits_at(text));
        require(waits || wishes.allow.is_empty(), || {
            "--allow: this recorder connects to others, so it has no senders to allow: leave it out, or write \
             --listen tcp://*:PORT"
                .into()
        })?;
        require(wishes.format != Some(Format::Raw), || {
            "--format raw: frames that come over TCP go into HDF5, leave it out".into()
        })?;
        require(!wishes.checksums, || {
            "--checksums: frames over TCP are stored compressed as received, without checksums: leave it out"
                .into()
        })?;
        require(wishes.frames_per_file != Some(0), || "--frames-per-file 0: write at least 1".into())?;
        let instrument = named(wishes)?;
        let of_instrument =
            instrument.as_ref().map(|instrument| instrument.recording.clone()).unwrap_or_default();
        let compression = wishes.compression.or(of_instrument.compression);
        let frames_per_file = wishes.frames_per_file.or(of_instrument.frames_per_file);
        // The usual compression of detectors that send this stream.
        let compression = compression.unwrap_or(FrameCompression::Bslz4);
        check_compression(compression).map_err(ServiceError::AskedWrongly)?;
        let layout = wishes.layout.clone().or(of_instrument.layout);
        let is_dectris = layout.as_deref().is_some_and(|layout| layout == Path::new(DECTRIS_LAYOUT));
        let frames_per_file = frames_per_file.or(is_dectris.then_some(DECTRIS_FRAMES_PER_FILE));
        let scan = wishes.scan.or(of_instrument.scan);
        check_scan(wishes, scan)?;
        let chunk = wishes.chunk.or(of_instrument.chunk);
        if let (Some(scan), Some(frames)) = (scan, frames_per_file) {
            require(frames.is_multiple_of(scan.line()), || {
                let line = scan.line();
                format!(
                    "--frames-per-file {frames}: a file has whole lines of the scan {scan}, write a multiple of {line}"
                )
            })?;
        }
        Ok(SeriesSource { instrument, compression, frames_per_file, layout, scan, chunk, ends })
    }

    /// Returns true for the layout of DECTRIS.
    pub(super) fn is_dectris(&self) -> bool {
        self.layout.as_deref().is_some_and(|layout| layout == Path::new(DECTRIS_LAYOUT))
    }

    /// The resolved ends of its connections.
    pub(super) fn endpoints(&self) -> Result<Vec<ZmqEndpoint>, ServiceError> {
        self.ends.iter().map(SeriesEnd::resolved).collect()
    }

    /// The addresses as the user wrote them.
    pub(super) fn text(&self) -> String {
        let texts: Vec<_> = self.ends.iter().map(|end| end.address.text()).collect();
        texts.join(", ")
    }

    /// The default name of its recordings.
    pub(super) fn name(&self) -> &str {
        self.instrument.as_ref().map_or("detector", |instrument| &instrument.name)
    }
}

/// Refuses a scan if several processes record modules: each would start the lines at another frame.
fn check_part(part: PacketPartKind, instrument: &Instrument) -> Result<(), ServiceError> {
    let is_all = part == PacketPartKind::All;
    require(is_all || instrument.recording.scan.is_none(), || {
        "--scan: several processes record parts of frames, leave it out or start one".into()
    })
}

/// Refuses a scan if only the latest frames stay. The recorder would remove lines, and the position of the rest
/// in the scan would be unknown.
fn check_scan(wishes: &RecordOptions, scan: Option<ScanShape>) -> Result<(), ServiceError> {
    require(scan.is_none() || wishes.keep.is_none(), || {
        "--scan: a scan keeps all frames, leave --keep out".into()
    })
}

/// The conditions that end a series.
pub(super) fn until(wishes: &RecordOptions) -> SeriesUntil {
    let usual = SeriesUntil::default();
    let silence = wishes.silence.unwrap_or(usual.silence);
    let duration = wishes.duration.unwrap_or(usual.duration);
    SeriesUntil { silence, duration, ..usual }
}

/// The first option given that holds for packets only.
fn of_packets(wishes: &RecordOptions) -> Option<&'static str> {
    let packets = wishes.listen.iter().any(|listen| matches!(listen, ListenAddress::Packets(_)));
    let options = [
        ("--mode", wishes.mode.is_some()),
        ("--listen udp://", packets),
        ("--interface", wishes.interface.is_some()),
        ("--data-stream", !wishes.data_stream.is_empty()),
        ("--packets", wishes.packets.is_some()),
        ("--missing", wishes.missing.is_some()),
        ("--window", wishes.window.is_some()),
        ("--receive-buffer", wishes.receive_buffer.is_some()),
        ("--busy-poll", wishes.busy_poll.is_some()),
        ("--receive-threads", wishes.receive_threads.is_some()),
        ("--cpus", !wishes.cpus.is_empty()),
        ("--chunk-size", wishes.chunk_size.is_some()),
    ];
    options.into_iter().find(|(_, given)| *given).map(|(name, _)| name)
}

fn named(wishes: &RecordOptions) -> Result<Option<Instrument>, ServiceError> {
    let named = wishes.instrument.as_deref().map(user_file::instrument).transpose();
    named.map_err(ServiceError::asked_wrongly)
}

/// The instrument in the options, as its mode changes it.
fn asked(wishes: &RecordOptions) -> Result<Instrument, ServiceError> {
    let named = named(wishes)?;
    let nothing = "no instrument: name one of the catalogue, a .toml file, or its --mode; for frames over TCP add \
                   --from tcp://HOST:PORT";
    let instrument = match &wishes.mode {
        Some(mode) => mode.instrument(named.as_ref()),
        None => named.ok_or_else(|| nothing.into()),
    };
    instrument.map_err(ServiceError::AskedWrongly)
}
