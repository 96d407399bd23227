//! Sends frames over TCP, as a detector does by the DECTRIS stream.

use std::sync::atomic::Ordering;

use anyhow::{anyhow, bail, ensure};
use clap::Args;
use nilometer_intake::{
    series::{SendOverflow, SendQueueLimits, SentSeries, SimulatedSeries, StreamVersion},
    transport::{
        faults::FaultCounts,
        zeromq::{PushSocket, ZmqEndpoint},
    },
};
use nilometer_model::{
    ByteRate, Bytes, FrameCompression, Frequency, Instrument, Length, Moment, Nanos, PixelType, Schedule,
    Seed,
};
use nilometer_recording::instrument::Content;
use nilometer_storage::{Calendar, Clock, process::processors};
use nilometer_wire::series::{ElementType, MetadataField, MetadataValue, SeriesName, SeriesStart};

use super::{
    Asked,
    faulty::{FaultOptions, fault_lines},
};
use crate::{Blame, Outcome, signals::stop_on_signal, tell};

/// The options of the stream.
#[derive(Debug, Args)]
#[command(next_help_heading = "Over TCP")]
pub(super) struct Stream {
    /// Connect to a receiver that waits at the address, instead of waiting for one as a detector does
    #[arg(long)]
    connect: bool,
    /// Send this version of the DECTRIS stream: 2 (CBOR), or 1 (JSON and blobs)
    #[arg(long = "stream-version", value_name = "VERSION", value_parser = clap::value_parser!(u8).range(1..=2))]
    version: Option<u8>,
    /// Simulate a detector with COUNT thresholds, each with its own frame in every image (version 2 only)
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=64))]
    channels: Option<u64>,
    /// Let this many images wait for a receiver. A further image that is due is dropped, as a detector does
    /// [default: the images of 5 s, at most 1 GiB]
    #[arg(long, value_name = "IMAGES", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    queue: Option<u64>,
    /// Wait for a slower receiver instead of dropping images: nothing is lost, and the receiver sets the rate
    #[arg(long)]
    wait: bool,
}

/// The images that may wait by default: those of this time, up to these bytes.
const QUEUE_TIME: Nanos = Nanos::from_millis(5_000);
const QUEUE_BYTES: u64 = 1 << 30;
/// The most images that may overtake one: all of them are in memory.
const DISTANCE_MAX: u64 = 1000;

impl Stream {
    /// The first of these options on the command line.
    pub(super) fn given(&self) -> Option<&'static str> {
        let options = [
            ("--connect", self.connect),
            ("--stream-version", self.version.is_some()),
            ("--channels", self.channels.is_some()),
            ("--queue", self.queue.is_some()),
            ("--wait", self.wait),
        ];
        options.into_iter().find(|(_, given)| *given).map(|(name, _)| name)
    }

    /// Sends the instrument's images.
    pub(super) fn send(
        &self,
        asked: &Asked,
        to: &str,
        encoders: Option<u32>,
        faults: &FaultOptions,
    ) -> Outcome {
        let series = self.series(asked, encoders, faults).input()?;
        let endpoint = if self.connect { ZmqEndpoint::connect(to) } else { ZmqEndpoint::bind(to) };
        let endpoint = endpoint.map_err(|error| anyhow!("--to {error}")).input()?;
        let opened = PushSocket::open(endpoint);
        let mut push = opened.map_err(|error| anyhow!("--to {to}: {error}")).input()?;
        let stop = stop_on_signal().run()?;
        let at = push.address().map_or_else(|| to.to_owned(), |address| format!("tcp://{address}"));
        let who = if self.connect { "connecting to" } else { "waiting for a receiver at" };
        let start = &series.start;
        tell::note(format_args!("{who} {at}, to send {} images of {}", start.images, asked.instrument.name));
        let sent = series.send(&mut push, Clock::start(), &stop).run()?;
        tell::result(summary(&sent, &series, asked));
        went_well(&sent, &series, stop.load(Ordering::Relaxed)).run()
    }

    fn series(
        &self,
        asked: &Asked,
        encoders: Option<u32>,
        faults: &FaultOptions,
    ) -> anyhow::Result<SimulatedSeries> {
        let Asked { instrument, duration, frames, seed } = asked;
        let distance = faults.distance();
        ensure!(
            distance <= DISTANCE_MAX,
            "--reorder-distance {distance}: for images write at most {DISTANCE_MAX}"
        );
        let version = if self.version == Some(1) { StreamVersion::One } else { StreamVersion::Two };
        let compression = compression_of(instrument, version)?;
        let schedule = instrument.schedule();
        let images = schedule.frames_in(*duration).min(frames.unwrap_or(u64::MAX)).max(1);
        let channels = self.channels.unwrap_or(1);
        ensure!(
            channels == 1 || version == StreamVersion::Two,
            "--channels {channels}: only version 2 has them"
        );
        ensure!(
            instrument.shape.len() == 2,
            "{}: images over TCP have rows and columns, and these are {:?}; write --shape \"COLUMNS x ROWS\"",
            instrument.name,
            instrument.shape
        );
        let element = element_of(instrument.pixel).ok_or_else(|| {
            anyhow!(
                "{}: pixels of {} are packed, and can't be sent so",
                instrument.name,
                instrument.pixel.name()
            )
        })?;
        let Seed(number) = *seed;
        let start = SeriesStart {
            series: SeriesName { number: number & 0xffff, unique: format!("nilometer-{number:016x}") },
            images,
            shape: instrument.shape.clone(),
            element,
            channels: (1..=channels).map(|number| format!("threshold_{number}")).collect(),
            fields: fields(instrument, version, compression),
        };
        let content =
            Content::prepare(&instrument.data, &instrument.shape, instrument.pixel, seed.named("content"))?;
        let threads = encoders.map_or_else(|| processors().len(), |count| count as usize);
        Ok(SimulatedSeries {
            start,
            version,
            compression,
            schedule,
            exposure: exposure(instrument),
            content,
            threads,
            queue: self.queue_limits(&schedule),
            overflow: if self.wait { SendOverflow::Wait } else { SendOverflow::Drop },
            first_dropped,
            faults: faults.faults(),
            seed: seed.named("faults"),
        })
    }

    fn queue_limits(&self, schedule: &Schedule) -> SendQueueLimits {
        if let Some(images) = self.queue {
            return SendQueueLimits { images: images as usize, bytes: u64::MAX };
        }
        let images = schedule.frames_in(QUEUE_TIME).max(1) as usize;
        SendQueueLimits { images, bytes: QUEUE_BYTES }
    }
}

/// The compression of an instrument, if the stream has it.
fn compression_of(instrument: &Instrument, version: StreamVersion) -> anyhow::Result<FrameCompression> {
    let compression = instrument.recording.compression.unwrap_or(FrameCompression::Bslz4);
    let sent = match compression {
        FrameCompression::None | FrameCompression::Bslz4 => true,
        FrameCompression::Lz4 => version == StreamVersion::Two,
        FrameCompression::Bszstd | FrameCompression::Zstd | FrameCompression::Filter(_) => false,
    };
    let name = compression.name();
    match sent {
        true => Ok(compression),
        false if compression == FrameCompression::Lz4 => {
            bail!("--compression lz4: in version 1 write bslz4 or none")
        }
        false => bail!("--compression {name}: detectors send none, bslz4 or lz4"),
    }
}

/// Reports the first drop at once: at the end it is too late to start the receiver again.
fn first_dropped(image: u64) {
    tell::note(format_args!(
        "image {image} finds the queue full: the sender drops it, and each later one that does"
    ));
}

/// The exposure time of an image: at most the time to the next one, also in a burst.
fn exposure(instrument: &Instrument) -> Nanos {
    let period = instrument.frame_rate.period();
    instrument.cbf.exposure_time.unwrap_or(period).min(period)
}

/// The catalogue's facts about a detector, in the words and units of the stream: those of version 2.
fn fields(
    instrument: &Instrument,
    version: StreamVersion,
    compression: FrameCompression,
) -> Vec<MetadataField> {
    let number = |name: &str, number| MetadataField::new(name, MetadataValue::Float(number));
    let text = |name: &str, text: &str| MetadataField::new(name, MetadataValue::Text(text.to_owned()));
    let cbf = instrument.cbf;
    let mut fields = vec![
        text("arm_date", &Moment(Calendar::now().time).to_string()),
        text("detector_description", &instrument.title),
        number("frame_time", instrument.frame_rate.period().seconds()),
        number("count_time", exposure(instrument).seconds()),
    ];
    if version == StreamVersion::One {
        // In version 2 each image has its own.
        fields.push(text("compression", compression.name()));
    }
    for name in ["pixel_size_x", "pixel_size_y"] {
        fields.extend(cbf.pixel_size.map(|side| number(name, side.metres())));
    }
    if let Some(thickness) = cbf.sensor_thickness {
        fields.extend([text("sensor_material", "Si"), number("sensor_thickness", thickness.metres())]);
    }
    if let Some(beam) = cbf.beam_center {
        let [x, y] = beam.into();
        fields.extend([number("beam_center_x", x), number("beam_center_y", y)]);
    }
    fields.extend(cbf.wavelength.map(|length| number("incident_wavelength", length.angstrom())));
    fields.extend(cbf.detector_distance.map(Length::metres).map(|distance| {
        let axes = [0.0, 0.0, distance].map(MetadataValue::Float);
        MetadataField::new("detector_translation", MetadataValue::List(axes.into()))
    }));
    fields
}

fn element_of(pixel: PixelType) -> Option<ElementType> {
    ElementType::of_name(pixel.name())
}

/// The results of sending, one line each.
fn summary(sent: &SentSeries, series: &SimulatedSeries, asked: &Asked) -> String {
    let seconds = sent.wall.seconds().max(1e-9);
    let frames = sent.images * series.start.channels.len() as u64;
    let plain = Bytes(frames * asked.instrument.frame_size().0);
    let quantile = |share| Nanos(sent.lateness.quantile(share));
    let Seed(seed) = asked.seed;
    let mut lines = vec![
        format!("due         {} images, {}", series.start.images, asked.instrument.frame_rate),
        format!(
            "sent        {} images, {} of {plain}, {}, {}",
            sent.images,
            Bytes(sent.bytes),
            ByteRate(sent.bytes as f64 / seconds),
            Frequency(sent.images as f64 / seconds)
        ),
        format!("dropped     {}", dropped(sent)),
        format!("queue       at most {} images waited", sent.queued_most),
        format!("late        half by {}, at most {}", quantile(0.5), Nanos(sent.lateness.max())),
    ];
    let counts = FaultCounts {
        lost: sent.lost,
        losses: sent.losses,
        reordered: sent.reordered,
        duplicated: sent.duplicated,
        ..FaultCounts::default()
    };
    lines.extend(fault_lines(&series.faults, &counts, "images"));
    if sent.unsent > 0 {
        lines.push(format!("not taken   {} images, dropped at the end", sent.unsent));
    }
    if sent.made_late > 0 {
        lines.push(format!("made late   {} images, by this machine", sent.made_late));
    }
    lines.push(format!("seed        {seed}"));
    lines.join("\n") + "\n"
}

/// Counts the images that found the queue full, with the reason.
fn dropped(sent: &SentSeries) -> String {
    match (sent.dropped, sent.dropped_alone) {
        (0, _) => "none".into(),
        (all, 0) => format!("{all} images, as the queue was full"),
        (all, alone) => format!("{all} images, as the queue was full: {alone} while nobody was connected"),
    }
}

/// The most that the last image may be late. If it is later, the rate was not the instrument's.
const BEHIND_MAX: Nanos = Nanos::from_millis(100);

/// Turns images that were not sent, or sent late, into a failure.
fn went_well(sent: &SentSeries, series: &SimulatedSeries, interrupted: bool) -> anyhow::Result<()> {
    let mut wrong = Vec::new();
    let images = series.start.images;
    let unsent = images - sent.due + sent.unsent;
    if unsent > 0 {
        wrong.push(format!("{unsent} of {images} images were not sent"));
    }
    if sent.dropped > 0 {
        let why = "the receiver is slower; add --wait to wait for it";
        wrong.push(format!("{} of {images} images were dropped: {why}", sent.dropped));
    }
    let due = series.schedule.due(images.saturating_sub(1));
    if sent.due == images && sent.paced.since(due) > BEHIND_MAX.max(Nanos(due.0 / 100)) {
        let who = match series.overflow {
            SendOverflow::Drop => "this machine is slower",
            SendOverflow::Wait => "the receiver or this machine is slower",
        };
        wrong.push(format!("the pace was not kept: it took {} instead of {due}; {who}", sent.paced));
    }
    if interrupted {
        wrong.push("interrupted".into());
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("; "));
    Ok(())
}
