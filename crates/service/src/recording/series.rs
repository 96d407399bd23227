//! Prepares a recording of a series of frames when the series begins. Only its start describes the frames.
//!
//! ```text
//! place checked -> sockets -> start of a series -> description, layout, lanes, memory -> its images are received
//! ```

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use nilometer_acquisition::{Feed, SeriesFeed, StoredFrames, sink::RawLayout};
use nilometer_hdf5_recording::{Hdf5Contents, settled_compression};
use nilometer_intake::{
    series::{AwaitedSeries, DescribedSeries, LentReceiver, SeriesReceiver, SeriesRelay, SeriesStorage},
    transport::zeromq::{MessageLimits, PullSocket},
};
use nilometer_model::{
    Bytes, CbfHeader, DataKind, Format, FrameCompression, Frequency, Instrument, Moment, Nanos, PixelType,
    Readers, RecordingLayout, Storing, TargetDescription,
};
use nilometer_recording::journal::Head;
use nilometer_ring::{MemoryPart, MemoryPlan};
use nilometer_storage::{Calendar, Clock, target::run_id};
use nilometer_wire::series::SeriesStart;

use super::{
    awaited_peers::AwaitedRefusals,
    joining::{JoiningValues, tell_left_out},
    kept_connections::{ConnectionTerms, KeptConnections},
    needed_memory::RecordingNeeds,
    options::SeriesChoice,
    place::{check_mounted, check_place, check_slots, make_striped},
    prepare::{Arranged, PreparedRecording},
    series_name::{stated_name, unique_name},
    settings::RecordingSettings,
    source::{RecordedSource, SeriesSource, until},
};
use crate::error::{OperatorLog, ServiceError};

const NO_SERIES: &str = "packets are no series";
/// The longest pause between two looks at the time and at signals.
const LOOK: Nanos = Nanos::from_millis(50);

/// Connections on which a series may begin. All checks that need no series have passed.
#[derive(Debug)]
pub(crate) struct OpenedSeries {
    receiver: LentReceiver,
    joining: Option<JoiningValues>,
    clock: Clock,
    id: u64,
    /// The name of the next recording. `None` if the stream gives it.
    pub(crate) name: Option<String>,
    /// Keeps the connections between two series. `None` if the recorder takes one series only.
    kept: Option<KeptConnections>,
    /// The calendar's time when the clock is at zero.
    start: Moment,
}

/// The arrangement by which the frames of a series are recorded.
struct ArrangedSeries {
    instrument: Instrument,
    contents: Hdf5Contents,
    storage: SeriesStorage,
    frames: StoredFrames,
}

impl RecordingSettings {
    /// Opens the connections of a series, or takes kept ones that have the same terms. `None` if packets are
    /// recorded.
    pub(crate) fn open_series(
        &self,
        kept: Option<&KeptConnections>,
        log: OperatorLog,
    ) -> Result<Option<OpenedSeries>, ServiceError> {
        let RecordedSource::Series(source) = &self.source else { return Ok(None) };
        let id = self.share.as_ref().map_or_else(|| run_id().0, |share| share.id);
        let name = (!self.records_every_series()).then(|| self.name_of(id, source.name()));
        let described = self.described()?;
        check_mounted(Format::Hdf5, &described)?;
        self.check_memory_of_series()?;
        for description in described {
            // If the stream gives the name later, check with a name that no recording has.
            let name = name.clone().unwrap_or_else(|| self.name_of(id, source.name()));
            let directory = self.share.as_ref().map_or(&name, |share| &share.directory);
            check_place(&description, directory, self.reserve(), "frame", Bytes(1))?;
        }
        let clock = self.share.as_ref().map_or_else(Clock::start, |share| share.clock);
        let start = self.share.as_ref().map_or_else(|| Calendar::start_of(clock), |share| share.start);
        let joining = self.joining()?;
        let terms = ConnectionTerms { ends: source.endpoints()?, allowed: self.wishes.allowed()? };
        let receiver = match kept.and_then(|kept| kept.take(&terms, log)) {
            Some(mut receiver) => {
                receiver.begin_next(clock.now(), until(&self.wishes));
                receiver
            }
            None => Box::new(self.receiver(terms)?),
        };
        let receiver = LentReceiver::new(receiver, kept.map(|kept| kept.receiver.clone()));
        Ok(Some(OpenedSeries { receiver, joining, clock, id, name, kept: kept.cloned(), start }))
    }

    /// Opens the end at which other processes of the recording pass on starts and ends. Only they know the key.
    ///
    /// # Errors
    ///
    /// The recorder can't listen at this address.
    pub fn open_relay(&self, at: IpAddr, key: u64) -> Result<SeriesRelay, ServiceError> {
        let opened = SeriesRelay::open(at, key, self.message_limits());
        opened.map_err(|error| {
            ServiceError::Failed(format!("can't listen to the other processes at {at}: {error}"))
        })
    }

    /// Prepares this process's share of a series, once the series begins. The relay leads to the processes that
    /// record the rest.
    ///
    /// # Errors
    ///
    /// The same as those of [`Self::prepare`].
    pub fn prepare_share(
        &self,
        relay: SeriesRelay,
        stop: Arc<AtomicBool>,
        log: OperatorLog,
    ) -> Result<PreparedRecording, ServiceError> {
        let mut opened =
            self.open_series(None, log)?.ok_or_else(|| ServiceError::Failed(NO_SERIES.into()))?;
        opened.receiver.share_with(relay);
        self.prepare_series(opened, stop, log)
    }

    /// Returns true if each series becomes a recording.
    pub fn records_every_series(&self) -> bool {
        self.wishes.series == Some(SeriesChoice::Every)
    }

    /// Waits for the start time, if there is one, and then for a series, and prepares its recording. If that
    /// fails, the connections stay for the next series.
    pub(crate) fn prepare_series(
        &self,
        mut opened: OpenedSeries,
        stop: Arc<AtomicBool>,
        log: OperatorLog,
    ) -> Result<PreparedRecording, ServiceError> {
        let RecordedSource::Series(source) = &self.source else {
            return Err(ServiceError::Failed(NO_SERIES.into()));
        };
        let series = self.await_series(source, &mut opened, &stop, log)?;
        let arranged = self.arrange_series(source, &series, &opened, log)?;
        let OpenedSeries { receiver, joining, clock, id, name, .. } = opened;
        let name = name.map_or_else(|| self.name_of_series(source, &series), Ok)?;
        let described = self.described()?;
        let slot = Bytes(arranged.storage.slot_size() as u64);
        let needs = self.series_needs(&arranged, &described, &series);
        let (plan, memory) =
            self.settled_plan(&needs, &name, Bytes(2 * slot.0), |buffer| check_slots(buffer, slot))?;
        let ArrangedSeries { instrument, contents, storage, .. } = arranged;
        let directory = self.share.as_ref().map_or(&name, |share| &share.directory);
        let targets = make_striped(described, directory, &self.wishes.stripes(), &log)?;
        let mut layout = RawLayout { hdf5: Some(contents), ..plan.layout(&name, id, 0) };
        if let Some(share) = &self.share {
            layout.head = Head { lane: share.first_lane, lanes: share.lanes, ..layout.head };
        }
        log(&format!("stored as {plan}"));
        let values = joining.as_ref().map(|joining| joining.values.clone());
        let feed = Feed::Series(SeriesFeed { receiver, storage, values });
        let slots = plan.slots();
        let SeriesStart { images, channels, .. } = &series.start;
        let frames_due = images.saturating_mul(channels.len() as u64);
        let arranged = Arranged { targets, layout, clock, stop, instrument, slots, memory, frames_due };
        let prepared = self.prepare_recorder(arranged, name, feed, log)?;
        let series_id = Some(series.start.series.number);
        Ok(PreparedRecording { from: source.text(), series_id, ..prepared }.joining(joining))
    }

    /// Waits for the start time, if there is one, and then for a series.
    fn await_series(
        &self,
        source: &SeriesSource,
        opened: &mut OpenedSeries,
        stop: &AtomicBool,
        log: OperatorLog,
    ) -> Result<DescribedSeries, ServiceError> {
        let name = opened.name.as_deref().unwrap_or_else(|| source.name());
        if let Some(start) = self.wishes.start.filter(|start| Calendar::left_until(*start) > Nanos(0)) {
            log(&format!("{name} is prepared, and listens from {start} on"));
            while Calendar::left_until(start) > Nanos(0) && !stop.load(Ordering::Relaxed) {
                std::thread::sleep(Calendar::left_until(start).min(LOOK).duration());
            }
        }
        log(&format!("waiting for a series from {}", source.text()));
        let end = self.wishes.stop;
        let told = AwaitedRefusals::new(opened.receiver.live());
        let is_over = || {
            told.tell(log);
            stop.load(Ordering::Relaxed) || end.is_some_and(|end| Calendar::left_until(end) == Nanos(0))
        };
        let awaited = opened.receiver.await_start(opened.clock, &is_over, source.name(), &log);
        let awaited = awaited.map_err(ServiceError::failed)?;
        told.tell(log);
        if let Some(kept) = opened.kept.as_ref().filter(|_| !matches!(awaited, AwaitedSeries::Stopped)) {
            kept.begin();
        }
        let mut series = match awaited {
            AwaitedSeries::Begun(series) => *series,
            AwaitedSeries::Unusable(why) => return Err(ServiceError::Failed(why)),
            AwaitedSeries::Stopped => {
                return Err(ServiceError::Failed(
                    "stopped before a series began: nothing was recorded".into(),
                ));
            }
        };
        source.complete(&mut series);
        log(&began(&series));
        if let Some(sender) = opened.receiver.sender() {
            log(&format!("it comes from {sender}"));
        }
        Ok(series)
    }

    /// Arranges the recording of a series: its instrument, contents and storage.
    fn arrange_series(
        &self,
        source: &SeriesSource,
        series: &DescribedSeries,
        opened: &OpenedSeries,
        log: OperatorLog,
    ) -> Result<ArrangedSeries, ServiceError> {
        let wrong = |why: String| ServiceError::Failed(format!("the series: {why}"));
        let mut instrument = source.instrument_of(series);
        let compression = source.settled(series).map_err(ServiceError::Failed)?;
        instrument.recording.compression = Some(compression);
        instrument.check().map_err(wrong)?;
        let SeriesStart { images, channels, .. } = &series.start;
        if let Some(scan) = source.scan.filter(|_| *images > 0) {
            scan.check_frames(*images).map_err(wrong)?;
        }
        let wishes = self.file_wishes(opened.joining.as_ref(), log);
        let start = opened.start;
        let contents = Hdf5Contents::of_series(series, &instrument.recording, start, &wishes);
        let contents = contents.ok_or_else(|| {
            ServiceError::Failed(format!("frames of {} can't be stored", series.start.element.name()))
        })?;
        tell_left_out(&contents, log);
        let channels = channels.len() as u64;
        let images_max = source.scan.and_then(|scan| scan.frames());
        let storage = SeriesStorage {
            frame_size: contents.frame_size,
            encoding: contents.encoding(),
            in_order: contents.has_several_datasets(),
            frames_max: images_max.map(|images| images.saturating_mul(channels)),
        };
        let line = source.scan.map_or(1, |scan| scan.line());
        let together = line.saturating_mul(channels);
        let slot_min = storage.slot_size() as u64;
        let frames = StoredFrames { together, slot_min, ..StoredFrames::of(&instrument) };
        Ok(ArrangedSeries { instrument, contents, storage, frames })
    }

    /// The memory that a series needs.
    fn series_needs<'a>(
        &self,
        arranged: &'a ArrangedSeries,
        described: &'a [TargetDescription],
        series: &DescribedSeries,
    ) -> RecordingNeeds<'a> {
        let SeriesStart { images, channels, .. } = &series.start;
        // Messages of other processes have the same limit as those of the detector.
        let ends = if self.share.is_some() { 2 } else { 1 };
        let connections = self.connection_memory().0.saturating_mul(ends);
        RecordingNeeds {
            frames: arranged.frames,
            described,
            instrument: &arranged.instrument,
            contents: Some(&arranged.contents),
            source: MemoryPlan::default().with(MemoryPart::Connections, connections),
            sockets: 0,
            candidates: 0,
            frames_due: images.saturating_mul(channels.len() as u64),
        }
    }

    /// A unique name for the recording of a series: the one in the stream, or one with the number of the series.
    fn name_of_series(
        &self,
        source: &SeriesSource,
        series: &DescribedSeries,
    ) -> Result<String, ServiceError> {
        let numbered = || {
            let name = self.wishes.name.as_deref().unwrap_or_else(|| source.name());
            format!("{name}-{}", series.start.series.number)
        };
        unique_name(&self.wishes.to, &stated_name(&series.start).unwrap_or_else(numbered))
    }

    /// The limits for messages of a series.
    fn message_limits(&self) -> MessageLimits {
        MessageLimits { memory: self.connection_memory().0, ..MessageLimits::default() }
    }

    fn receiver(&self, terms: ConnectionTerms) -> Result<SeriesReceiver, ServiceError> {
        let limits = self.message_limits();
        let opened = PullSocket::open(&terms.ends, limits);
        let socket = opened.map_err(|error| {
            ServiceError::AskedWrongly(format!(
                "can't listen at {error}: name an address of this machine and a free port"
            ))
        })?;
        Ok(SeriesReceiver::new(socket.allowing(terms.allowed), until(&self.wishes)))
    }
}

impl SeriesSource {
    /// Adds facts in the catalogue that the series does not state.
    fn complete(&self, series: &mut DescribedSeries) {
        let Some(instrument) = &self.instrument else { return };
        series.counts |=
            matches!(instrument.data.kind, DataKind::Diffraction) && series.start.shape.len() == 2;
        series.description.description.get_or_insert_with(|| instrument.title.clone());
    }

    /// The compression of a series. A chunk is a frame of one of its channels.
    fn settled(&self, series: &DescribedSeries) -> Result<FrameCompression, String> {
        let start = &series.start;
        let channel = (start.channels.len() > 1).then_some(1);
        let chunk: Vec<u64> = channel.into_iter().chain(start.shape.iter().copied()).collect();
        settled_compression(self.compression, start.element.pixel(), &chunk)
    }

    /// The instrument that sends a series. The description in the series replaces the catalogue's facts about
    /// frames.
    fn instrument_of(&self, series: &DescribedSeries) -> Instrument {
        let start = &series.start;
        let rate = series.description.frame_time.filter(|time| *time > 0.0).map(|time| 1.0 / time);
        let known = self.instrument.clone().unwrap_or_else(|| unknown(self.name()));
        let recording = RecordingLayout {
            format: Format::Hdf5,
            storing: if self.frames_per_file.is_some() { Storing::Files } else { Storing::Growing },
            compression: Some(self.compression),
            scan: self.scan,
            chunk: self.chunk,
            layout: self.layout.clone(),
            // Whole images.
            frames_per_file: self
                .frames_per_file
                .map(|images| images.saturating_mul(start.channels.len() as u64)),
            ..known.recording
        };
        Instrument {
            shape: start.shape.clone(),
            pixel: start.element.pixel(),
            frame_rate: rate.map_or(known.frame_rate, Frequency),
            streams: 1,
            burst: None,
            recording,
            compressed: false,
            published: None,
            packets: None,
            ..known
        }
    }
}

/// An instrument with only a name.
fn unknown(name: &str) -> Instrument {
    Instrument {
        name: name.into(),
        title: String::new(),
        source: "the stream itself".into(),
        assumed: Vec::new(),
        shape: Vec::new(),
        pixel: PixelType::Uint8,
        frame_rate: Frequency(1.0),
        streams: 1,
        burst: None,
        recording: RecordingLayout::default(),
        cbf: CbfHeader::default(),
        modules: None,
        data: DataKind::Incompressible.into(),
        readers: Readers::default(),
        compressed: false,
        published: None,
        packets: None,
    }
}

/// A line about a series that begins.
fn began(series: &DescribedSeries) -> String {
    let start = &series.start;
    let sides: Vec<_> = start.shape.iter().rev().map(ToString::to_string).collect();
    let channels = match start.channels.len() {
        1 => String::new(),
        many => format!(" in {many} channels"),
    };
    let name = start.series.number;
    let images = match start.images {
        0 => "images until it ends".to_owned(),
        images => format!("{images} images"),
    };
    let shape = sides.join(" x ");
    let element = start.element.name();
    format!("series {name} begins: {images} of {shape} pixels of {element}{channels}")
}
