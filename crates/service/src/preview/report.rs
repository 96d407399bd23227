//! The counts of the preview in reports.

use schemars::JsonSchema;
use serde::Serialize;

/// The preview: its viewers, and the frames that they got or missed since the program began.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub(crate) struct PreviewReport {
    /// The address and port for viewers.
    pub(crate) address: String,
    /// The number of viewers that are connected now.
    pub(crate) viewers: usize,
    /// The number of frames read for viewers.
    pub(crate) frames: u64,
    /// The number of frames sent, counted for each viewer.
    pub(crate) sent: u64,
    /// The number of frames that viewers missed because they still took an earlier one, counted for each viewer.
    pub(crate) dropped: u64,
    /// The number of connections closed because a viewer held up a frame for too long.
    pub(crate) closed: u64,
    /// The reason why viewers get no frames now.
    pub(crate) none: Option<String>,
}
