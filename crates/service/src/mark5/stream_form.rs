//! The form of a stream in the replies to `scan_check?` and `file_check?`.
//!
//! Source in the repository of jive5ab at 971c3d6: `vsi_format` in `src/scan_check.cc`.

use nilometer_model::{Format, packets::VlbiMode};
use nilometer_recording::view::{RecordingView, Survey};
use nilometer_wire::{mark5b::Mark5bHeader, vdif::VdifHeader};

/// The tracks of a Mark5B stream, whose headers do not say their number.
const MARK5B_TRACKS: u64 = 32;

/// Format, tracks and rate of a stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct StreamForm {
    pub(super) format: &'static str,
    /// Bits of all channels of one moment.
    pub(super) tracks: u64,
    /// Mbit/s of a track, without headers.
    pub(super) track_rate: f64,
    /// Bytes of a frame with its header, or `None` for Mark5B, whose frames are all alike.
    pub(super) frame: Option<u64>,
}

impl StreamForm {
    pub(super) fn of_mode(mode: &VlbiMode) -> Self {
        let tracks = mode.tracks();
        StreamForm {
            format: mode.format(),
            tracks,
            track_rate: mode.rate().megabits() / tracks.max(1) as f64,
            frame: (mode.format() != "mark5b").then(|| mode.frame_size().0),
        }
    }

    /// The form that the headers of a recording give. `None` if they give no rate.
    pub(super) fn of_headers(view: &RecordingView, survey: &Survey) -> Option<Self> {
        let frames_per_second = survey.frames_per_second?;
        let bits_per_second = |payload: u64| (frames_per_second * payload * 8) as f64;
        if view.format() == Format::Mark5b {
            let payload = view.frame_size() - Mark5bHeader::SIZE as u64;
            let track_rate = bits_per_second(payload) / 1e6 / MARK5B_TRACKS as f64;
            return Some(StreamForm { format: "mark5b", tracks: MARK5B_TRACKS, track_rate, frame: None });
        }
        let header = survey.header?;
        let components = if header.complex { 2 } else { 1 };
        let tracks_of_thread = (1 << header.channels_log2) * u64::from(header.bits) * components;
        let payload = header.length.saturating_sub(header.size()) as u64;
        Some(StreamForm {
            format: format_of(&header),
            tracks: tracks_of_thread * survey.lanes.len() as u64,
            track_rate: bits_per_second(payload) / 1e6 / tracks_of_thread as f64,
            frame: Some(header.length as u64),
        })
    }
}

fn format_of(header: &VdifHeader) -> &'static str {
    match (header.extended.is_some(), header.complex) {
        (true, false) => "VDIF",
        (false, false) => "VDIF (legacy)",
        (true, true) => "VDIF (complex)",
        (false, true) => "VDIF (legacy complex)",
    }
}
