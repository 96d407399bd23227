//! Makes the messages of a series and its images.

use std::{io, sync::Arc};

use nilometer_model::{FrameCompression, Moment, Nanos};
use nilometer_wire::{
    series::{ImageTimes, Packing, SeriesError, SeriesStart, TimeRatio},
    stream1,
    stream2::{self, ImageChannel, MessagePiece},
};

use super::{
    SimulatedSeries, StreamVersion,
    pool::{PackedChannel, PackedImage, SharedChannel},
    queue::QueuedImage,
};
use crate::transport::zeromq::{OutgoingMessage, OutgoingPiece};

/// Tags of other messages than images. The tag of an image is twice its number, plus one for a second copy.
const START: u64 = u64::MAX - 1;
const END: u64 = u64::MAX;

/// The image in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SentImage {
    pub(super) number: u64,
    pub(super) is_copy: bool,
}

/// The image of a message with this tag. `None` if it is no image.
pub(super) fn image_of(tag: u64) -> Option<SentImage> {
    (tag < START).then_some(SentImage { number: tag / 2, is_copy: tag % 2 == 1 })
}

impl SimulatedSeries {
    pub(super) fn start_message(&self) -> io::Result<OutgoingMessage> {
        let parts = match self.version {
            StreamVersion::One => stream1::encode_header(&self.start).map_err(unsaid)?,
            StreamVersion::Two => vec![stream2::encode_start(&self.start).map_err(unsaid)?],
        };
        let parts = parts.into_iter().map(|part| vec![OutgoingPiece::Made(part)]).collect();
        Ok(OutgoingMessage::new(START, parts))
    }

    pub(super) fn end_message(&self) -> OutgoingMessage {
        let end = match self.version {
            StreamVersion::One => stream1::encode_end(&self.start.series),
            StreamVersion::Two => stream2::encode_end(&self.start.series),
        };
        OutgoingMessage::new(END, vec![vec![OutgoingPiece::Made(end)]])
    }

    /// Makes the message of an image of a series that began at `begun`.
    pub(super) fn image_message(&self, queued: &QueuedImage, begun: Moment) -> io::Result<OutgoingMessage> {
        let QueuedImage { number, is_copy, image } = queued;
        let series = &self.start.series;
        let packed = image.channels.iter().enumerate();
        let channels: Vec<_> = packed.map(|(number, packed)| self.channel(number, packed)).collect();
        let times = self.times(*number, begun);
        let parts = match (self.version, &channels[..], &image.channels[..]) {
            (StreamVersion::One, [only], [packed]) => {
                let parts = stream1::encode_image(series, *number, &times, only, &packed.hash);
                parts.map_err(unsaid)?.into_iter().map(|part| vec![part]).collect()
            }
            _ => vec![stream2::encode_image(series, *number, &times, &channels).map_err(unsaid)?],
        };
        let tag = 2 * number + u64::from(*is_copy);
        Ok(OutgoingMessage::new(tag, parts.into_iter().map(|part| shared(part, image)).collect()))
    }

    fn channel<'a>(&'a self, number: usize, packed: &'a PackedChannel) -> ImageChannel<'a> {
        let SeriesStart { shape, element, channels, .. } = &self.start;
        ImageChannel {
            name: &channels[number],
            shape,
            element: *element,
            packing: self.packing(),
            bytes: packed.bytes(),
        }
    }

    fn packing(&self) -> Packing {
        match self.compression {
            FrameCompression::Bslz4 => Packing::BitshuffleLz4 { element: self.start.element.bytes() as u8 },
            FrameCompression::Lz4 => Packing::Lz4,
            _ => Packing::Plain,
        }
    }

    /// When an image was taken, by the pace of the instrument, not by the time of sending.
    fn times(&self, image: u64, begun: Moment) -> ImageTimes {
        let ratio = |time: Nanos| Some(TimeRatio { numerator: time.0, denominator: 1_000_000_000 });
        let start = self.schedule.due(image);
        ImageTimes {
            start: ratio(start),
            stop: ratio(start + self.exposure),
            real: ratio(self.exposure),
            series_date: Some(begun.to_string()),
        }
    }
}

/// The pieces of a part, in the order of the channels. Pixels stay where they are.
fn shared(part: Vec<MessagePiece<'_>>, image: &Arc<PackedImage>) -> Vec<OutgoingPiece> {
    let mut pieces = Vec::with_capacity(part.len());
    let mut channel = 0;
    for piece in part {
        pieces.push(match piece {
            MessagePiece::Made(bytes) => OutgoingPiece::Made(bytes),
            MessagePiece::Pixels(_) => {
                channel += 1;
                OutgoingPiece::Shared(Arc::new(SharedChannel { image: image.clone(), channel: channel - 1 }))
            }
        });
    }
    pieces
}

fn unsaid(error: SeriesError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}
