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
/// Number of frames, and of blocks, in which to look for a valid frame.
const NEAR: u64 = 1024;
/// Number of seconds whose end to look for.
const SECONDS: u64 = 4;

impl Survey {
    pub(super) fn of(whole: &RecordingView) -> Self {
        let Some(stamps) = whole.stamps else { return Survey::default() };
        let Some(first) = whole.first_stamp() else { return Survey::default() };
        let header = (stamps == Stamps::Vdif).then(|| whole.vdif_header(first)).flatten();
        let lanes = lanes(whole, first);
        let told = header.and_then(|header| header.frames_per_second());
        let ends = ends_of_seconds(whole, first, lanes.len() as u64);
        let frames_per_second = surest(told, &ends).or_else(|| said(whole, lanes.len() as u64));
        Survey { lanes, frames_per_second, header }
    }
}

impl RecordingView {
    /// Returns the first frame with a readable header. One that is marked as invalid counts only if its time is near
    /// that of the first valid one: some senders have no time yet.
    pub fn first_stamp(&self) -> Option<u64> {
        // In a ring in progress the recorder may have overwritten any number of blocks before this one.
        let first = self.next_there(self.first_block())?;
        let end = self.shown_blocks().end.min(first.saturating_add(FIRST));
        let frames = (first..end).map(|block| self.range_of(block).start.div_ceil(self.frame_size));
        let (frame, stamp) = frames.into_iter().find_map(|frame| Some((frame, self.stamp(frame)?)))?;
        let valid = self.valid_stamp(frame).filter(|(_, valid)| !is_near(&stamp, valid));
        Some(valid.map_or(frame, |(frame, _)| frame))
    }

    /// Returns the first valid frame from this one on, and its stamp. Looks at some frames, then at one of each of some
    /// blocks. Without a valid one it returns the first with a header.
    fn valid_stamp(&self, frame: u64) -> Option<(u64, Stamp)> {
        let near = frame..frame.saturating_add(NEAR).min(self.frames());
        let mut any = None;
        let mut look = |frame| {
            let found = self.stamp(frame).map(|stamp| (frame, stamp));
            any = any.or(found);
            found.filter(|(_, stamp)| !stamp.invalid)
        };
        if let Some(found) = near.clone().find_map(&mut look) {
            return Some(found);
        }
        let mut block = self.piece_of(near.end)?;
        for _ in 0..NEAR {
            let Some(there) = self.next_there(block) else { break };
            if let Some(found) = look(self.range_of(there).start.div_ceil(self.frame_size)) {
                return Some(found);
            }
            block = there + 1;
        }
        any
    }

    /// The block in which a frame begins. `None` behind the last frame.
    fn piece_of(&self, frame: u64) -> Option<u64> {
        let offset = frame.checked_mul(self.frame_size).filter(|offset| *offset < self.length())?;
        Some(self.piece(offset).0)
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
    let Some(begin) = whole.stamp(first) else { return Vec::new() };
    let stamps = (first..first + 4 * LANES_MAX).map_while(|frame| whole.stamp(frame));
    for stamp in stamps.filter(|stamp| is_near(stamp, &begin)) {
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

/// Returns true if a stamp can be that of a frame next to a valid one. The time of a valid frame counts in any case.
pub(super) fn is_near(stamp: &Stamp, valid: &Stamp) -> bool {
    !stamp.invalid || stamp.second.abs_diff(valid.second) <= 1
}

/// Returns the surest rate, of that in the header and those at the ends of seconds. Lost frames make the latter too
/// low. Two that agree are right, and so is one of half the rate in the header: some writers state twice the rate.
fn surest(told: Option<u64>, ends: &[u64]) -> Option<u64> {
    let seen = ends.iter().max().copied();
    let (Some(told), Some(seen)) = (told, seen) else { return told.or(seen) };
    let agree = ends.iter().filter(|rate| **rate == seen).count() > 1;
    let is_seen = seen > told || agree || seen * 2 == told;
    Some(if is_seen { seen } else { told })
}

/// Returns the rates by the highest frame numbers at the ends of the first seconds.
fn ends_of_seconds(whole: &RecordingView, first: u64, lanes: u64) -> Vec<u64> {
    let Some(begin) = whole.stamp(first) else { return Vec::new() };
    let seconds = begin.second..begin.second.saturating_add(SECONDS);
    seconds.filter_map(|second| rate_of(whole, first, lanes, second)).collect()
}

/// Returns the rate by the highest frame number of a second, if it ends.
fn rate_of(whole: &RecordingView, first: u64, lanes: u64, second: u64) -> Option<u64> {
    let end = end_of(whole, first, second)?;
    let behind = whole.stamp(end)?;
    let last = (end.saturating_sub(lanes)..end).filter_map(|frame| whole.stamp(frame));
    let last =
        last.filter(|stamp| stamp.second == second && !stamp.invalid).map(|stamp| stamp.frame).max()?;
    (behind.frame == 0 && behind.second == second + 1).then_some(last + 1)
}

/// Finds the first frame after a second by bisection, between a frame not after it and one after it. A frame in a hole
/// is after the second if the next one behind the hole is.
fn end_of(whole: &RecordingView, first: u64, second: u64) -> Option<u64> {
    let frames = whole.frames();
    let is_after = |frame: u64| whole.valid_stamp(frame).is_some_and(|(_, stamp)| stamp.second > second);
    let (mut below, mut step) = (first, 1024);
    let mut above = loop {
        let next = (below + step).min(frames.checked_sub(1)?);
        if is_after(next) {
            break next;
        }
        if next == frames - 1 {
            return None;
        }
        below = next;
        step *= 2;
    };
    while above - below > 1 {
        let middle = below.midpoint(above);
        if is_after(middle) {
            above = middle;
        } else {
            below = middle;
        }
    }
    Some(above)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_seconds_are_surer_than_the_rate_in_the_header() {
        assert_eq!(surest(None, &[998, 1000, 1000]), Some(1000), "some are lost at the end of a second");
        assert_eq!((surest(None, &[]), surest(Some(1000), &[])), (None, Some(1000)));
        assert_eq!(surest(Some(2000), &[1000]), Some(1000), "a writer that does not halve it");
        assert_eq!(surest(Some(3000), &[1000, 999, 1000]), Some(1000));
        assert_eq!(surest(Some(1000), &[998]), Some(1000), "two are lost");
        assert_eq!(surest(Some(1000), &[1024]), Some(1024), "numbers can't be higher than the rate");
    }

    #[test]
    fn the_time_of_an_invalid_frame_counts_near_a_valid_one() {
        let valid = Stamp { second: 1000, frame: 0, station: 0, thread: 0, invalid: false };
        let of = |second, invalid| is_near(&Stamp { second, invalid, ..valid }, &valid);
        assert!(of(999, true) && of(1000, true) && of(0, false));
        assert!(!of(0, true) && !of(1002, true));
    }
}
