//! A start message as it came. Detectors and firmware differ in what they leave out: the type of pixels (DECTRIS, 2022), the number
//! of images, with `header_detail` "none" everything but the series. The first image then says what its own are.

use super::{ElementType, MetadataField, SeriesError, SeriesImage, SeriesName, SeriesStart};

/// A series begins, as far as its start message describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesAnnouncement {
    /// The series.
    pub series: SeriesName,
    /// Images of the series, each of all channels. None if the message has no number, or 0: until the end.
    pub images: Option<u64>,
    /// Pixels of an image, the slowest dimension first.
    pub shape: Option<Vec<u64>>,
    /// The type of a pixel.
    pub element: Option<ElementType>,
    /// Names of the channels, in their order: one at least.
    pub channels: Option<Vec<String>>,
    /// All other fields of the message, as they stand there.
    pub fields: Vec<MetadataField>,
    /// Fields with a value that they can't have.
    pub unread: Vec<SeriesError>,
}

impl SeriesAnnouncement {
    /// The start with all that a recording needs. None if the message leaves something out and no image says it.
    pub fn completed(&self, first: Option<&SeriesImage>) -> Option<SeriesStart> {
        let array = first.and_then(|image| image.channels.first()).map(|channel| &channel.array);
        let shape = self.shape.clone().or_else(|| array.map(|array| array.shape.clone()));
        let element = self.element.or_else(|| array.map(|array| array.element));
        let names = |image: &SeriesImage| image.channels.iter().map(|data| data.channel.clone()).collect();
        let channels = self.channels.clone().or_else(|| first.map(names));
        Some(SeriesStart {
            series: self.series.clone(),
            images: self.images.unwrap_or(0),
            shape: shape?,
            element: element?,
            channels: channels?,
            fields: self.fields.clone(),
        })
    }
}

impl From<SeriesStart> for SeriesAnnouncement {
    fn from(start: SeriesStart) -> Self {
        SeriesAnnouncement {
            series: start.series,
            images: Some(start.images).filter(|images| *images > 0),
            shape: Some(start.shape),
            element: Some(start.element),
            channels: Some(start.channels),
            fields: start.fields,
            unread: Vec::new(),
        }
    }
}
