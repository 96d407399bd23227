//! The plan by which values are joined to frames. The layout of the files decides it.

use nilometer_hdf5::{layout::FrameDatasets, tree::ColumnElement};

/// How values are joined to the frames of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JoinPlan {
    /// Names with a column or another place from the start, and the type of their values.
    pub columns: Vec<(String, ColumnElement)>,
    /// Names among these whose values arrive with the images.
    pub of_images: Vec<String>,
    /// The group for values of other names, if they get a place.
    pub others: Option<String>,
    /// Frames of an image. A value of an image applies to all of them.
    pub channels: u64,
    /// Number of images, if known.
    pub images: Option<u64>,
    /// The datasets of frames, if there are several.
    pub datasets: Option<FrameDatasets>,
}
