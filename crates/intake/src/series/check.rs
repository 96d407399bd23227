//! Finds the frames of a series in its messages. The logic is pure: it gets decoded messages.

use std::ops::Range;

use nilometer_recording::Ranges;
use nilometer_wire::series::{
    ArrayData, ChannelData, Packing, SeriesAnnouncement, SeriesImage, SeriesName, SeriesStart, bytes_of,
};

use super::{SeriesRefusal, SeriesTally};

/// The reason to refuse a frame, and details.
pub(super) type Refused = (SeriesRefusal, Option<String>);

/// Maximum number of frames, because a dataset has no more chunks: the index of a growing one counts them in
/// 32 bits (`H5D_EARRAY_MAX_NELMTS_BITS`).
pub(super) const FRAMES_MAX: u64 = u32::MAX as u64;
/// How far an image number may exceed the highest announced or received one. A higher number is broken, and
/// blank frames up to it would fill the disk.
const BEYOND_MAX: u64 = 1 << 16;

/// The meaning of a start message for the current series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StartMeaning {
    /// It begins the current series: several senders may send it, each once.
    Same,
    /// It equals the first start and has no unique name. Either it is the same series, or the detector began
    /// anew with the same number. The next image decides.
    Repeated,
    /// Another series begins: the current one is over.
    Next,
    /// It belongs to the current series but contradicts its start.
    Contradiction,
}

/// A series that is being received.
#[derive(Debug, Clone)]
pub struct SeriesCheck {
    start: SeriesStart,
    came: Ranges,
    /// Bytes of a frame, unpacked.
    frame_bytes: u64,
    /// Its end message has arrived.
    ended: bool,
    /// It is over: further frames are late.
    closed: bool,
}

impl SeriesCheck {
    /// Begins a series.
    ///
    /// # Errors
    /// If it has more frames, or bytes of a frame, than can be numbered.
    pub fn new(start: SeriesStart) -> Result<Self, String> {
        let frame_bytes = bytes_of(&start.shape, start.element).filter(|bytes| *bytes > 0);
        let frame_bytes = frame_bytes.ok_or("its images have no pixels, or more than can be counted")?;
        if start.channels.is_empty() {
            return Err("it has no channel".to_owned());
        }
        let frames = start.images.checked_mul(start.channels.len() as u64);
        if let Some(frames) = frames.filter(|frames| *frames > FRAMES_MAX) {
            return Err(format!("{frames} frames: a recording has at most {FRAMES_MAX}"));
        }
        frames.ok_or("it has more images than can be counted")?;
        Ok(SeriesCheck { start, came: Ranges::default(), frame_bytes, ended: false, closed: false })
    }

    /// Its start message.
    pub fn start(&self) -> &SeriesStart {
        &self.start
    }

    /// Number of announced frames, images times channels. `None` if the start has no number of images.
    pub fn announced(&self) -> Option<u64> {
        Some(self.start.images * self.channels()).filter(|frames| *frames > 0)
    }

    /// Number of its frames: the announced ones, and those received beyond them.
    pub fn frames(&self) -> u64 {
        self.announced().unwrap_or(0).max(self.came_upto())
    }

    /// Returns true if it has more frames than announced, so that their total is unknown.
    pub(super) fn exceeds(&self) -> bool {
        self.announced().is_none_or(|frames| self.came_upto() > frames)
    }

    /// Bytes of a frame, unpacked.
    pub fn frame_bytes(&self) -> u64 {
        self.frame_bytes
    }

    /// Returns true if all announced frames are there, and none is missing behind these. False without an
    /// announced number.
    pub fn is_complete(&self) -> bool {
        self.announced().is_some() && self.is_gapless()
    }

    /// Returns true if no frame is missing: of the announced ones, or without a number, of those before the
    /// last one.
    pub(super) fn is_gapless(&self) -> bool {
        self.came.iter().next() == Some(0..self.frames())
    }

    /// Returns true if it has any frame.
    pub(super) fn came_any(&self) -> bool {
        self.came.iter().next().is_some()
    }

    /// The number after the last frame received.
    pub fn came_upto(&self) -> u64 {
        self.came.iter().last().map_or(0, |range| range.end)
    }

    /// Returns true if its end message has arrived.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Missing frames, in order.
    pub fn missing(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let ends = self.came.iter().map(|range| range.start).chain([self.frames()]);
        let begins = [0].into_iter().chain(self.came.iter().map(|range| range.end));
        begins.zip(ends).map(|(begin, end)| begin..end).filter(|range| !range.is_empty())
    }

    /// Returns true if no more frames are taken.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Takes no more frames from now on.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    /// The meaning of a start message that arrives now.
    pub(super) fn meets(&self, start: &SeriesAnnouncement) -> StartMeaning {
        let ours = &self.start;
        if !start.series.is_same(&ours.series) {
            return StartMeaning::Next;
        }
        let is_unique = !start.series.unique.is_empty();
        let images = start.images.unwrap_or(0);
        let same = images == ours.images
            && start.shape.as_ref().is_none_or(|shape| *shape == ours.shape)
            && start.element.is_none_or(|element| element == ours.element)
            && start.channels.as_ref().is_none_or(|channels| *channels == ours.channels);
        #[expect(clippy::match_same_arms, reason = "in the order in which they are decided")]
        match (same, is_unique) {
            (true, true) => StartMeaning::Same,
            (false, true) => StartMeaning::Contradiction,
            (false, false) => StartMeaning::Next,
            (true, false) if self.ended && self.is_complete() => StartMeaning::Next,
            (true, false) if self.came_any() => StartMeaning::Repeated,
            (true, false) => StartMeaning::Same,
        }
    }

    /// Returns true if all frames of an image have arrived before.
    pub(super) fn has_image(&self, image: &SeriesImage) -> bool {
        let number = |data: &ChannelData| self.number(image.image, &data.channel, None).ok();
        image.channels.iter().all(|data| number(data).is_some_and(|number| self.came.contains(number)))
    }

    /// Records an end message.
    ///
    /// # Errors
    ///
    /// If it belongs to another series.
    pub(super) fn ends(&mut self, series: &SeriesName) -> Result<(), Refused> {
        self.is_ours(series)?;
        self.ended = true;
        Ok(())
    }

    /// Returns `Ok` if an image belongs to this series.
    pub(super) fn is_ours(&self, series: &SeriesName) -> Result<(), Refused> {
        if series.is_same(&self.start.series) {
            return Ok(());
        }
        let SeriesName { number, unique } = series;
        let shown: String = unique.chars().take(40).collect();
        Err((SeriesRefusal::Foreign, Some(format!("series {number} {shown:?} is another one"))))
    }

    /// Returns the frame number of a channel of an image. `bytes` are its bytes if available, since they may
    /// state their unpacked size. `room` is the number of frames in a storage that can't grow.
    pub(super) fn frame(
        &self,
        image: &SeriesImage,
        data: &ChannelData,
        bytes: Option<&[u8]>,
        room: Option<u64>,
    ) -> Result<u64, Refused> {
        let number = self.number(image.image, &data.channel, room)?;
        if self.closed {
            return Err((SeriesRefusal::Late, None));
        }
        if self.came.contains(number) {
            return Err((SeriesRefusal::Duplicate, None));
        }
        self.suits(&data.array, bytes)?;
        Ok(number)
    }

    /// Records a frame that was handed on.
    pub(super) fn came(&mut self, number: u64) {
        self.came.add(number);
    }

    fn channels(&self) -> u64 {
        self.start.channels.len() as u64
    }

    /// Maximum number of images at this moment.
    fn images_max(&self, room: Option<u64>) -> u64 {
        let channels = self.channels();
        let there = self.frames().div_ceil(channels);
        let most = room.unwrap_or(FRAMES_MAX) / channels;
        there.saturating_add(BEYOND_MAX).min(most)
    }

    fn number(&self, image: u64, channel: &str, room: Option<u64>) -> Result<u64, Refused> {
        if image >= self.images_max(room) {
            let announced = match self.start.images {
                0 => "an unknown number of images".to_owned(),
                images => images.to_string(),
            };
            return Err((SeriesRefusal::Number, Some(format!("image {image} of a series of {announced}"))));
        }
        let Some(index) = self.start.channels.iter().position(|name| name == channel) else {
            let shown: String = channel.chars().take(40).collect();
            let names = self.start.channels.join(", ");
            let fault = format!("channel {shown:?} is none of {names}");
            return Err((SeriesRefusal::Channel, Some(fault)));
        };
        // This is below the number of frames, which has been checked.
        Ok(image * self.channels() + index as u64)
    }

    fn suits(&self, array: &ArrayData, bytes: Option<&[u8]>) -> Result<(), Refused> {
        let start = &self.start;
        if array.shape != start.shape || array.element != start.element || array.big_endian {
            let order = if array.big_endian { "big-endian " } else { "" };
            let is = format!("{:?} of {order}{}", array.shape, array.element.name());
            let fault =
                format!("an image of {is} in a series of {:?} of {}", start.shape, start.element.name());
            return Err((SeriesRefusal::Shape, Some(fault)));
        }
        if let Packing::BitshuffleLz4 { element } = array.packing
            && usize::from(element) != array.element.bytes()
        {
            let fault = format!("{} shuffled as elements of {element} B", array.element.name());
            return Err((SeriesRefusal::Packing, Some(fault)));
        }
        let Some(bytes) = bytes else { return Ok(()) };
        // One LZ4 block does not state its size: decoding it will show.
        let says = match array.packing {
            Packing::Lz4Block => Some(self.frame_bytes),
            packing => packing.unpacked_bytes(bytes),
        };
        if says == Some(self.frame_bytes) {
            return Ok(());
        }
        let says = says.map_or("too few to say".to_owned(), |says| format!("{says} B"));
        let fault = format!("a frame that unpacks to {says}, not {} B", self.frame_bytes);
        Err((SeriesRefusal::Packing, Some(fault)))
    }
}

impl SeriesTally {
    /// Counts a refused frame.
    pub(super) fn count(&mut self, refused: Refused) {
        let (why, fault) = refused;
        self.refuse(why, fault);
    }
}
