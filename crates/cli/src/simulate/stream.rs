//! Frames over TCP, as a detector sends them by the DECTRIS stream.

use std::sync::atomic::Ordering;

use anyhow::{anyhow, bail, ensure};
use clap::Args;
use nilometer_acquisition::{
    series::{SentSeries, SimulatedSeries, StreamVersion},
    transport::zeromq::{PushSocket, ZmqEndpoint},
};
use nilometer_model::{
    ByteRate, Bytes, FrameCompression, Frequency, Instrument, Length, Nanos, PixelType, Seed,
};
use nilometer_recording::instrument::Content;
use nilometer_storage::{Clock, process::processors};
use nilometer_wire::series::{ElementType, MetadataField, MetadataValue, SeriesName, SeriesStart};

use super::Asked;
use crate::{Blame, Outcome, signals::stop_on_signal, tell};

/// How frames are sent.
#[derive(Debug, Args)]
#[command(next_help_heading = "Over TCP")]
pub(super) struct Stream {
    /// Connect to a receiver that waits there, instead of waiting for one as a detector does
    #[arg(long)]
    connect: bool,
    /// The version of the DECTRIS stream: 2 (CBOR), or 1 (JSON and blobs)
    #[arg(long = "stream-version", value_name = "VERSION", value_parser = clap::value_parser!(u8).range(1..=2))]
    version: Option<u8>,
    /// Thresholds of a detector, each with a frame of its own in every image; version 2 only
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=64))]
    channels: Option<u64>,
}

impl Stream {
    /// The first of these options that is given.
    pub(super) fn given(&self) -> Option<&'static str> {
        let options = [
            ("--connect", self.connect),
            ("--stream-version", self.version.is_some()),
            ("--channels", self.channels.is_some()),
        ];
        options.into_iter().find(|(_, given)| *given).map(|(name, _)| name)
    }

    /// Sends what was asked for.
    pub(super) fn send(&self, asked: &Asked, to: &str, encoders: Option<u32>) -> Outcome {
        let series = self.series(asked, encoders).input()?;
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

    fn series(&self, asked: &Asked, encoders: Option<u32>) -> anyhow::Result<SimulatedSeries> {
        let Asked { instrument, duration, frames, seed } = asked;
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
            fields: fields(instrument),
        };
        let content =
            Content::prepare(&instrument.data, &instrument.shape, instrument.pixel, seed.named("content"))?;
        let threads = encoders.map_or_else(|| processors().len(), |count| count as usize);
        Ok(SimulatedSeries { start, version, compression, schedule, content, threads })
    }
}

/// What an instrument compresses by, as far as a stream has it.
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

/// What the catalogue knows of a detector, in the words and units of the stream.
fn fields(instrument: &Instrument) -> Vec<MetadataField> {
    let number = |name: &str, number| MetadataField::new(name, MetadataValue::Float(number));
    let cbf = instrument.cbf;
    let mut fields = vec![
        MetadataField::new("detector_description", MetadataValue::Text(instrument.title.clone())),
        number("frame_time", instrument.frame_rate.period().seconds()),
    ];
    fields.extend(cbf.exposure_time.map(|time| number("count_time", time.seconds())));
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

/// What was sent, a line each.
fn summary(sent: &SentSeries, series: &SimulatedSeries, asked: &Asked) -> String {
    let seconds = sent.wall.seconds().max(1e-9);
    let frames = sent.images * series.start.channels.len() as u64;
    let plain = Bytes(frames * asked.instrument.frame_size().0);
    let quantile = |share| Nanos(sent.lateness.quantile(share));
    let Seed(seed) = asked.seed;
    let lines = [
        format!("due         {} images, {}", series.start.images, asked.instrument.frame_rate),
        format!(
            "sent        {} images, {} of {plain}, {}, {}",
            sent.images,
            Bytes(sent.bytes),
            ByteRate(sent.bytes as f64 / seconds),
            Frequency(sent.images as f64 / seconds)
        ),
        format!("late        half by {}, at most {}", quantile(0.5), Nanos(sent.lateness.max())),
        format!("seed        {seed}"),
    ];
    lines.join("\n") + "\n"
}

/// How much later than due the last image may leave: more, and the pace was another.
const BEHIND_MAX: Nanos = Nanos::from_millis(100);

/// What was not sent, or not in time, becomes the exit code.
fn went_well(sent: &SentSeries, series: &SimulatedSeries, interrupted: bool) -> anyhow::Result<()> {
    let mut wrong = Vec::new();
    if sent.stopped {
        wrong.push(format!(
            "{} of {} images were not sent",
            series.start.images - sent.images,
            series.start.images
        ));
    }
    let due = series.schedule.due(series.start.images.saturating_sub(1));
    if !sent.stopped && sent.wall.since(due) > BEHIND_MAX.max(Nanos(due.0 / 100)) {
        wrong.push(format!(
            "the pace was not kept: it took {} instead of {due}; the receiver or this machine is slower",
            sent.wall
        ));
    }
    if interrupted {
        wrong.push("interrupted".into());
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("; "));
    Ok(())
}
