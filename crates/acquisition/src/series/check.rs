//! Which frames of the series a message brings. Pure: it is told what messages say.

use std::ops::Range;

use nilometer_recording::Ranges;
use nilometer_wire::series::{
    ArrayData, ChannelData, Packing, SeriesImage, SeriesName, SeriesStart, bytes_of,
};

use super::{SeriesRefusal, SeriesTally};

/// Says what is wrong with a frame.
pub(super) type Refused = (SeriesRefusal, Option<String>);

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
        let frames = start.images.checked_mul(start.channels.len() as u64).filter(|frames| *frames > 0);
        frames.ok_or("it has no images, or more than can be counted")?;
        Ok(SeriesCheck { start, came: Ranges::default(), frame_bytes, ended: false, closed: false })
    }

    /// What its start said.
    pub fn start(&self) -> &SeriesStart {
        &self.start
    }

    /// Frames that it has: images times channels.
    pub fn frames(&self) -> u64 {
        self.start.images * self.channels()
    }

    /// Bytes of a frame, unpacked.
    pub fn frame_bytes(&self) -> u64 {
        self.frame_bytes
    }

    /// All frames are there.
    pub fn is_complete(&self) -> bool {
        self.came.iter().next() == Some(0..self.frames())
    }

    /// Behind the last frame that came.
    pub fn came_upto(&self) -> u64 {
        self.came.iter().last().map_or(0, |range| range.end)
    }

    /// Its end message came, or another series began behind it.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Frames that did not come, in order.
    pub fn missing(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let ends = self.came.iter().map(|range| range.start).chain([self.frames()]);
        let begins = [0].into_iter().chain(self.came.iter().map(|range| range.end));
        begins.zip(ends).map(|(begin, end)| begin..end).filter(|range| !range.is_empty())
    }

    /// Another series begins behind it. A complete one is over then, without its end message.
    pub(super) fn is_followed(&mut self) {
        self.ended |= self.is_complete();
    }

    /// No frame is taken any more.
    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    /// Another start message came. Whether it is of this series: one that says of it what the first said.
    pub(super) fn starts_again(&self, start: &SeriesStart) -> Result<(), Refused> {
        self.is_ours(&start.series)?;
        let ours = &self.start;
        let same = (ours.images, &ours.shape, ours.element) == (start.images, &start.shape, start.element);
        if same && ours.channels == start.channels {
            return Ok(());
        }
        Err((SeriesRefusal::Shape, Some("a second start says other things of the series".to_owned())))
    }

    /// An end message came. Whether it is of this series.
    pub(super) fn ends(&mut self, series: &SeriesName) -> Result<(), Refused> {
        self.is_ours(series)?;
        self.ended = true;
        Ok(())
    }

    /// Whether an image is of this series.
    pub(super) fn is_ours(&self, series: &SeriesName) -> Result<(), Refused> {
        if *series == self.start.series {
            return Ok(());
        }
        let SeriesName { number, unique } = series;
        let shown: String = unique.chars().take(40).collect();
        Err((SeriesRefusal::Foreign, Some(format!("series {number} {shown:?} is another one"))))
    }

    /// Which frame a channel of an image is. Its bytes are given if they are there: they may say how many they unpack to.
    pub(super) fn frame(
        &self,
        image: &SeriesImage,
        data: &ChannelData,
        bytes: Option<&[u8]>,
    ) -> Result<u64, Refused> {
        let number = self.number(image.image, &data.channel)?;
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

    fn number(&self, image: u64, channel: &str) -> Result<u64, Refused> {
        if image >= self.start.images {
            let fault = format!("image {image} of a series of {}", self.start.images);
            return Err((SeriesRefusal::Number, Some(fault)));
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
