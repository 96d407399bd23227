//! A series of frames made ready to be recorded: that is when it begins, as only then it is known what its frames are.
//!
//! ```text
//! place checked -> sockets -> start of a series -> description, layout, lanes, memory -> its images are received
//! ```

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use nilometer_acquisition::{
    Feed, SeriesFeed, StoredFrames,
    series::{DescribedSeries, SeriesReceiver, SeriesStorage},
    sink::{Hdf5Contents, RawLayout, settled_compression},
    transport::zeromq::{MessageLimits, PullSocket},
};
use nilometer_model::{
    Bytes, CbfHeader, DataKind, Format, FrameCompression, Frequency, Instrument, Nanos, PixelType, Readers,
    RecordingLayout, Storing,
};
use nilometer_storage::{Calendar, Clock, target::run_id};

use super::{
    joining::{JoiningValues, tell_left_out},
    place::{check_buffer, check_mounted, check_place, make},
    prepare::{Arranged, PreparedRecording},
    settings::RecordingSettings,
    source::{RecordedSource, SeriesSource, until},
};
use crate::error::{OperatorLog, ServiceError};

/// Longest without a look at the time and at signals.
const LOOK: Nanos = Nanos::from_millis(50);

/// Connections on which a series may begin. All that can be refused before was.
#[derive(Debug)]
pub(crate) struct OpenedSeries {
    receiver: SeriesReceiver,
    joining: Option<JoiningValues>,
    clock: Clock,
    id: u64,
    /// Of the recording that is to be.
    pub(crate) name: String,
}

impl RecordingSettings {
    /// Opens the connections of a series; none if packets are recorded.
    pub(crate) fn open_series(&self) -> Result<Option<OpenedSeries>, ServiceError> {
        let RecordedSource::Series(source) = &self.source else { return Ok(None) };
        let id = run_id().0;
        let name = self.name_of(id, source.name());
        let described = self.described()?;
        check_mounted(Format::Hdf5, &described)?;
        for description in described {
            check_place(&description, &name, self.reserve(), "frame", Bytes(1))?;
        }
        let clock = Clock::start();
        let receiver = self.receiver(source)?;
        Ok(Some(OpenedSeries { receiver, joining: self.joining()?, clock, id, name }))
    }

    /// Waits for the time to begin, if there is one, and then for a series, and makes everything ready for it.
    pub(crate) fn prepare_series(
        &self,
        opened: OpenedSeries,
        stop: Arc<AtomicBool>,
        log: OperatorLog,
    ) -> Result<PreparedRecording, ServiceError> {
        let RecordedSource::Series(source) = &self.source else {
            return Err(ServiceError::Failed("packets are no series".into()));
        };
        let OpenedSeries { mut receiver, joining, clock, id, name } = opened;
        if let Some(start) = self.wishes.start {
            log(&format!("{name} is prepared, and listens from {start} on"));
            while Calendar::left_until(start) > Nanos(0) && !stop.load(Ordering::Relaxed) {
                std::thread::sleep(Calendar::left_until(start).min(LOOK).duration());
            }
        }
        log(&format!("waiting for a series from {}", source.text()));
        let end = self.wishes.stop;
        let is_over =
            || stop.load(Ordering::Relaxed) || end.is_some_and(|end| Calendar::left_until(end) == Nanos(0));
        let series = receiver.await_start(clock, &is_over, source.name()).map_err(ServiceError::failed)?;
        let Some(mut series) = series else {
            return Err(ServiceError::Failed("stopped before a series began: nothing was recorded".into()));
        };
        source.complete(&mut series);
        log(&began(&series));
        let mut instrument = source.instrument_of(&series);
        let compression = source.settled(&series).map_err(ServiceError::Failed)?;
        instrument.recording.compression = Some(compression);
        instrument.check().map_err(|why| ServiceError::Failed(format!("the series: {why}")))?;
        if let Some(scan) = source.scan {
            scan.check_frames(series.start.images)
                .map_err(|why| ServiceError::Failed(format!("the series: {why}")))?;
        }
        let wishes = self.file_wishes(joining.as_ref(), log);
        let start = Calendar::start_of(clock);
        let contents = Hdf5Contents::of_series(&series, &instrument.recording, start, &wishes);
        let contents = contents.ok_or_else(|| {
            ServiceError::Failed(format!("frames of {} can't be stored", series.start.element.name()))
        })?;
        tell_left_out(&contents, log);
        let storage = SeriesStorage {
            frame_size: contents.frame_size,
            encoding: contents.encoding(),
            in_order: contents.has_several_datasets(),
        };
        check_buffer(self.buffer(), Bytes(storage.slot_size() as u64))?;
        let described = self.described()?;
        let line = source.scan.map_or(1, |scan| scan.line());
        let together = line.saturating_mul(series.start.channels.len() as u64);
        let frames = StoredFrames { together, ..StoredFrames::of(&instrument) };
        let plan = self.checked_plan(frames, &described, &name)?;
        let targets = make(described, &name)?;
        let layout = RawLayout { hdf5: Some(contents), ..plan.layout(&name, id, 0) };
        log(&format!("stored as {plan}"));
        let feed = Feed::Series(SeriesFeed { receiver: Box::new(receiver), storage, values: wishes.joined });
        let arranged = Arranged { targets, layout, clock, stop, instrument };
        let prepared = self.prepare_recorder(arranged, name, feed, log)?;
        Ok(PreparedRecording { from: source.text(), ..prepared }.joining(joining))
    }

    fn receiver(&self, source: &SeriesSource) -> Result<SeriesReceiver, ServiceError> {
        let opened = PullSocket::open(&source.endpoints()?, MessageLimits::default());
        let socket = opened.map_err(|error| {
            ServiceError::AskedWrongly(format!(
                "can't listen at {error}: name an address of this machine and a free port"
            ))
        })?;
        Ok(SeriesReceiver::new(socket, until(&self.wishes)))
    }
}

impl SeriesSource {
    /// What the catalogue knows of a detector and its series does not say.
    fn complete(&self, series: &mut DescribedSeries) {
        let Some(instrument) = &self.instrument else { return };
        series.counts |=
            matches!(instrument.data.kind, DataKind::Diffraction) && series.start.shape.len() == 2;
        series.description.description.get_or_insert_with(|| instrument.title.clone());
    }

    /// How the frames of a series are compressed: a chunk is a frame of one of its channels.
    fn settled(&self, series: &DescribedSeries) -> Result<FrameCompression, String> {
        let start = &series.start;
        let channel = (start.channels.len() > 1).then_some(1);
        let chunk: Vec<u64> = channel.into_iter().chain(start.shape.iter().copied()).collect();
        settled_compression(self.compression, start.element.pixel(), &chunk)
    }

    /// The instrument that sends a series: what is known of it, as the series says that its frames are.
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

/// One of which nothing is known but its name.
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
        data: DataKind::Incompressible.into(),
        readers: Readers::default(),
        compressed: false,
        published: None,
        packets: None,
    }
}

/// What begins, in a line.
fn began(series: &DescribedSeries) -> String {
    let start = &series.start;
    let sides: Vec<_> = start.shape.iter().rev().map(ToString::to_string).collect();
    let channels = match start.channels.len() {
        1 => String::new(),
        many => format!(" in {many} channels"),
    };
    let name = start.series.number;
    let images = start.images;
    let shape = sides.join(" x ");
    let element = start.element.name();
    format!("series {name} begins: {images} images of {shape} pixels of {element}{channels}")
}
