//! A start message as received. Detectors and firmware leave out different fields: the type of pixels (DECTRIS,
//! 2022), the number of images, or with `header_detail` "none" everything except the series. The first image
//! then supplies its own values.

use super::{ElementType, MetadataField, SeriesError, SeriesImage, SeriesName, SeriesStart};

/// The start of a series, as far as its message describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesAnnouncement {
    /// The series.
    pub series: SeriesName,
    /// Number of images in the series, each of all channels. `None` if the message has no number or 0; the
    /// series then lasts until its end message.
    pub images: Option<u64>,
    /// Pixels of an image, the slowest dimension first.
    pub shape: Option<Vec<u64>>,
    /// The type of a pixel.
    pub element: Option<ElementType>,
    /// Names of the channels, in order. At least one.
    pub channels: Option<Vec<String>>,
    /// All other fields of the message, unchanged.
    pub fields: Vec<MetadataField>,
    /// Fields with an invalid value.
    pub unread: Vec<SeriesError>,
}

impl SeriesAnnouncement {
    /// Returns the start with everything that a recording needs. `None` if the message lacks a field that the
    /// first image does not supply.
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
