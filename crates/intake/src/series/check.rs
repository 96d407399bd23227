//! Which frames of the series a message brings. Pure: it is told what messages say.

use std::ops::Range;

use nilometer_recording::Ranges;
use nilometer_wire::series::{
    ArrayData, ChannelData, Packing, SeriesAnnouncement, SeriesImage, SeriesName, SeriesStart, bytes_of,
};

use super::{SeriesRefusal, SeriesTally};

/// Says what is wrong with a frame.
pub(super) type Refused = (SeriesRefusal, Option<String>);

/// No dataset has more chunks: the index of one that grows counts them in 32 bits (`H5D_EARRAY_MAX_NELMTS_BITS`).
pub(super) const FRAMES_MAX: u64 = u32::MAX as u64;
/// How far an image may be beyond all that were announced or came: farther is no image of the series, but a broken number, and
/// blank frames up to it would fill the disk.
const BEYOND_MAX: u64 = 1 << 16;

/// The meaning of a start message to the series that is received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StartMeaning {
    /// It begins this series: several senders say so, each once.
    Same,
    /// It says what the first start said, and has no unique name: the same as above, or the detector began anew and counts from
    /// the same number. The next image decides.
    Repeated,
    /// Another series begins: nothing more comes of this one.
    Next,
    /// It is of this series and says other things of it.
    Contradiction,
}

/// A series that is being received.
#[derive(Debug, Clone)]
pub struct SeriesCheck {
    start: SeriesStart,
    came: Ranges,
    /// Bytes of a frame, unpacked.
    frame_bytes: u64,
    /// Its last message came.
    ended: bool,
    /// It is over: what comes is late.
    closed: bool,
}

impl SeriesCheck {
    /// A series that begins.
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

    /// What its start said.
    pub fn start(&self) -> &SeriesStart {
        &self.start
    }

    /// Frames that its start announced, images times channels. None if it did not say how many.
    pub fn announced(&self) -> Option<u64> {
        Some(self.start.images * self.channels()).filter(|frames| *frames > 0)
    }

    /// Frames that it has: those that were announced, and those that came beyond them.
    pub fn frames(&self) -> u64 {
        self.announced().unwrap_or(0).max(self.came_upto())
    }

    /// More came than were announced, so that nobody knows how many will.
    pub(super) fn exceeds(&self) -> bool {
        self.announced().is_none_or(|frames| self.came_upto() > frames)
    }

    /// Bytes of a frame, unpacked.
    pub fn frame_bytes(&self) -> u64 {
        self.frame_bytes
    }

    /// All frames that were announced are there, and none is missing behind these. Of a series without a number nobody knows.
    pub fn is_complete(&self) -> bool {
        self.announced().is_some() && self.is_gapless()
    }

    /// No frame is missing of those that were announced, or of those before the last that came if nobody knows how many there are.
    pub(super) fn is_gapless(&self) -> bool {
        self.came.iter().next() == Some(0..self.frames())
    }

    /// Some frames came.
    pub(super) fn came_any(&self) -> bool {
        self.came.iter().next().is_some()
    }

    /// Behind the last frame that came.
    pub fn came_upto(&self) -> u64 {
        self.came.iter().last().map_or(0, |range| range.end)
    }

    /// Its end message came.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Frames that did not come, in order.
    pub fn missing(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let ends = self.came.iter().map(|range| range.start).chain([self.frames()]);
        let begins = [0].into_iter().chain(self.came.iter().map(|range| range.end));
        begins.zip(ends).map(|(begin, end)| begin..end).filter(|range| !range.is_empty())
    }

    /// No frame is taken any more.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// From now on no frame is taken.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    /// The meaning of a start message that comes now.
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

    /// Whether all frames of an image came before.
    pub(super) fn has_image(&self, image: &SeriesImage) -> bool {
        let number = |data: &ChannelData| self.number(image.image, &data.channel, None).ok();
        image.channels.iter().all(|data| number(data).is_some_and(|number| self.came.contains(number)))
    }

    /// An end message came. Whether it is of this series.
    pub(super) fn ends(&mut self, series: &SeriesName) -> Result<(), Refused> {
        self.is_ours(series)?;
        self.ended = true;
        Ok(())
    }

    /// Whether an image is of this series.
    pub(super) fn is_ours(&self, series: &SeriesName) -> Result<(), Refused> {
        if series.is_same(&self.start.series) {
            return Ok(());
        }
        let SeriesName { number, unique } = series;
        let shown: String = unique.chars().take(40).collect();
        Err((SeriesRefusal::Foreign, Some(format!("series {number} {shown:?} is another one"))))
    }

    /// Which frame a channel of an image is. Its bytes are given if they are there: they may say how many they unpack to. `room` is
    /// how many frames the storage has places for, if it can't grow.
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

    /// A frame is handed on.
    pub(super) fn came(&mut self, number: u64) {
        self.came.add(number);
    }

    fn channels(&self) -> u64 {
        self.start.channels.len() as u64
    }

    /// Images that it has places for at this moment.
    fn images_max(&self, room: Option<u64>) -> u64 {
        let channels = self.channels();
        let there = self.frames().div_ceil(channels);
        let most = room.unwrap_or(FRAMES_MAX) / channels;
        there.saturating_add(BEYOND_MAX).min(most)
    }

    fn number(&self, image: u64, channel: &str, room: Option<u64>) -> Result<u64, Refused> {
        if image >= self.images_max(room) {
            let announced = match self.start.images {
                0 => "a number of images that it did not say".to_owned(),
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
        // Below the number of frames, which was counted.
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
        // One LZ4 block says nothing: it is found out when it is read.
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
    /// Counts what was refused.
    pub(super) fn count(&mut self, refused: Refused) {
        let (why, fault) = refused;
        self.refuse(why, fault);
    }
}
