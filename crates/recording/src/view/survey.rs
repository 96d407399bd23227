//! Survey of a recording's headers: the order of threads, and the frame rate. Reads only a few headers.

use nilometer_model::packets::PacketFormat;

use super::RecordingView;
use nilometer_wire::{Stamp, Stamps, vdif};

/// Order of threads and frame rate, from a few headers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// Station and thread of the frames of one moment, in their order. Both are 0 if the format has none. Empty
    /// if frames have no times.
    pub lanes: Vec<(u16, u16)>,
    /// Frames per second of each thread.
    pub frames_per_second: Option<u64>,
    /// The first VDIF header.
    pub header: Option<vdif::VdifHeader>,
}

/// Limit on the frames of one moment.
const LANES_MAX: u64 = 1024;
/// Number of frames in the middle to check for lanes absent at the beginning: several small blocks of a sender.
const LATER: u64 = 64;
/// Number of blocks at the beginning in which to look for a frame.
const FIRST: u64 = 4096;
/// Number of seconds whose end to look for.
const SECONDS: u64 = 4;

impl Survey {
    pub(super) fn of(whole: &RecordingView) -> Self {
        let Some(stamps) = whole.stamps else { return Survey::default() };
        let Some(first) = whole.first_stamp() else { return Survey::default() };
        let header = (stamps == Stamps::Vdif).then(|| whole.vdif_header(first)).flatten();
        let lanes = lanes(whole, first);
        let told = header.and_then(|header| header.frames_per_second());
        let frames_per_second = told
            .or_else(|| seen(whole, first, lanes.len() as u64))
            .or_else(|| said(whole, lanes.len() as u64));
        Survey { lanes, frames_per_second, header }
    }
}

impl RecordingView {
    /// Returns the first frame with a readable header.
    pub fn first_stamp(&self) -> Option<u64> {
        // In a ring in progress the recorder may have overwritten any number of blocks before this one.
        let first = self.next_there(self.first_block())?;
        let end = self.shown_blocks().end.min(first.saturating_add(FIRST));
        let frames = (first..end).map(|block| self.range_of(block).start.div_ceil(self.frame_size));
        frames.into_iter().find(|frame| self.stamp(*frame).is_some())
    }

    fn vdif_header(&self, frame: u64) -> Option<vdif::VdifHeader> {
        let mut bytes = [0; vdif::VdifHeader::SIZE];
        let length = self.frame_size.min(bytes.len() as u64) as usize;
        let (block, within, _) = self.piece(frame * self.frame_size);
        self.head(block, within, &mut bytes[..length])?;
        vdif::VdifHeader::parse(&bytes)
    }
}

/// Returns the lanes of the first moment that is complete.
fn lanes(whole: &RecordingView, first: u64) -> Vec<(u16, u16)> {
    let mut moments: Vec<Vec<Stamp>> = Vec::new();
    for stamp in (first..first + 4 * LANES_MAX).map_while(|frame| whole.stamp(frame)) {
        let same = |moment: &Vec<Stamp>| (moment[0].second, moment[0].frame) == (stamp.second, stamp.frame);
        match moments.iter_mut().find(|moment| same(moment)) {
            Some(moment) if moment.iter().all(|other| other.lane() != stamp.lane()) => moment.push(stamp),
            Some(_) => break,
            None => moments.push(vec![stamp]),
        }
        // The first moment may have begun before the recording, and the third is incomplete.
        if moments.len() == 3 {
            break;
        }
    }
    let most = moments.into_iter().max_by_key(Vec::len).unwrap_or_default();
    let mut lanes: Vec<_> = most.iter().map(Stamp::lane).collect();
    // With several senders, one may have begun alone.
    let middle = whole.frames() / 2;
    for stamp in (middle..middle + LATER).filter_map(|frame| whole.stamp(frame)) {
        if !lanes.contains(&stamp.lane()) {
            lanes.push(stamp.lane());
        }
    }
    lanes
}

/// Returns the rate in the journal: that of each thread if the journal names threads, or else a share of the
/// total.
fn said(whole: &RecordingView, lanes: u64) -> Option<u64> {
    let wire = whole.wire()?;
    let rate = wire.known().frames_per_second?;
    match &wire.packets.format {
        PacketFormat::Vdif(vdif) if vdif.threads.is_none() => {
            let all = rate * vdif.lanes();
            (lanes > 0 && all.is_multiple_of(lanes)).then(|| all / lanes)
        }
        _ => Some(rate),
    }
}

/// Returns the rate from the highest frame number at the end of a second.
fn seen(whole: &RecordingView, first: u64, lanes: u64) -> Option<u64> {
    let begin = whole.stamp(first)?.second;
    (begin..begin + SECONDS).find_map(|second| {
        let end = end_of(whole, first, second)?;
        let behind = whole.stamp(end)?;
        let last = (end.saturating_sub(lanes)..end).filter_map(|frame| whole.stamp(frame));
        let last =
            last.filter(|stamp| stamp.second == second && !stamp.invalid).map(|stamp| stamp.frame).max()?;
        (behind.frame == 0 && behind.second == second + 1).then_some(last + 1)
    })
}

/// Finds the first frame after a second by bisection, between a frame not after it and one after it.
fn end_of(whole: &RecordingView, first: u64, second: u64) -> Option<u64> {
    let frames = whole.frames();
    let (mut below, mut step) = (first, 1024);
    let mut above = loop {
        let next = (below + step).min(frames.checked_sub(1)?);
        match whole.stamp(next) {
            Some(stamp) if stamp.second > second => break next,
            _ if next == frames - 1 => return None,
            Some(_) => below = next,
            None => {}
        }
        step *= 2;
    };
    while above - below > 1 {
        let middle = below.midpoint(above);
        match whole.stamp(middle) {
            Some(stamp) if stamp.second > second => above = middle,
            Some(_) => below = middle,
            // The second may end in the hole.
            None => return None,
        }
    }
    Some(above)
}
