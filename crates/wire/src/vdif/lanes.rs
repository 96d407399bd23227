//! The threads of a stream, each a lane: the order of their frames, and the lane of a missing frame.

use crate::serial::Serial;

/// Limit on the lanes of a stream.
const LANES_MAX: usize = 1024;

/// A thread of a station.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Name {
    /// The station, or 0 if the stream has only one.
    pub(super) station: u16,
    pub(super) thread: u16,
}

/// Time of a frame: elapsed seconds since 2000, and its number in the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) second: u64,
    pub(super) frame: u64,
}

impl Moment {
    /// Returns the number of frames since 2000.
    pub(super) fn count(self, rate: u64) -> u64 {
        self.second * rate + self.frame
    }
}

#[derive(Debug)]
struct Lane {
    name: Name,
    /// Serial number and moment of the last frame received.
    last: Option<(u64, Moment)>,
    /// Number of frames received.
    came: u64,
}

impl Lane {
    fn new(name: Name) -> Self {
        Lane { name, last: None, came: 0 }
    }
}

/// The lanes of a stream.
#[derive(Debug)]
#[expect(clippy::struct_field_names, reason = "a stream has lanes")]
pub(super) struct Lanes {
    lanes: Vec<Lane>,
    /// True if other lanes may appear.
    open: bool,
    /// The only lanes that may appear, if this is not empty.
    named: Vec<Name>,
}

impl Lanes {
    /// Creates these lanes, in the order of their frames. If `open`, other lanes are added as they appear.
    pub(super) fn new(names: &[Name], open: bool) -> Self {
        Lanes { lanes: names.iter().copied().map(Lane::new).collect(), open, named: Vec::new() }
    }

    /// Creates an empty set to which lanes are added as they appear: only these, or any if `names` is empty.
    pub(super) fn coming(names: &[Name]) -> Self {
        Lanes { lanes: Vec::new(), open: true, named: names.to_vec() }
    }

    /// Keeps only the lanes received, because other senders have lanes of their own.
    pub(super) fn share(&mut self) {
        if !self.open {
            self.named = self.lanes.iter().map(|lane| lane.name).collect();
            self.open = true;
        }
        self.lanes.retain(|lane| lane.came > 0);
    }

    /// Returns each lane with the number of its frames received.
    pub(super) fn counts(&self) -> impl Iterator<Item = (Name, u64)> {
        self.lanes.iter().map(|lane| (lane.name, lane.came))
    }

    /// Number of known lanes.
    pub(super) fn count(&self) -> usize {
        self.lanes.len()
    }

    pub(super) fn name(&self, lane: usize) -> Name {
        self.lanes[lane].name
    }

    /// Returns the index of a lane.
    #[inline]
    pub(super) fn find(&self, name: Name) -> Option<usize> {
        self.lanes.iter().position(|lane| lane.name == name)
    }

    /// Returns the latest second of the last frames.
    pub(super) fn last_second(&self) -> Option<u64> {
        self.lanes.iter().filter_map(|lane| lane.last).map(|(_, moment)| moment.second).max()
    }

    /// Returns the index of a received packet's lane, and adds the lane if it may appear.
    #[inline]
    pub(super) fn admit(&mut self, name: Name) -> Option<usize> {
        let found = self.find(name);
        let may_come = || self.open && (self.named.is_empty() || self.named.contains(&name));
        if found.is_some() || !may_come() || self.count() == LANES_MAX {
            return found;
        }
        self.lanes.push(Lane::new(name));
        Some(self.count() - 1)
    }

    /// Records a received frame. Returns serial number and moment of the previous one in its lane.
    #[inline]
    pub(super) fn came(&mut self, lane: usize, serial: u64, moment: Moment) -> Option<(u64, Moment)> {
        let lane = &mut self.lanes[lane];
        // The receiver looks twice at a packet in an unexpected position.
        lane.came += u64::from(lane.last != Some((serial, moment)));
        lane.last.replace((serial, moment))
    }

    /// Returns the number of frames of a lane in `packets` packets. `None` if the ends are in different lanes.
    pub(super) fn steps(&self, packets: i64) -> Option<i64> {
        let count = self.count().cast_signed() as i64;
        (packets % count == 0).then(|| packets / count)
    }

    /// Returns the lane of the frame that is `ahead` packets later than one of `lane`, and its distance in
    /// frames of a lane. Uses the order in which the user named the lanes.
    pub(super) fn in_order(&self, lane: usize, ahead: i64) -> (usize, i64) {
        let count = self.count().cast_signed() as i64;
        let at = lane.cast_signed() as i64 + ahead;
        (at.rem_euclid(count) as usize, at.div_euclid(count))
    }

    /// Returns the same for a frame of this moment, from the serial numbers of received frames, with `rate`
    /// frames per second. `None` if these do not suffice.
    pub(super) fn by_serial(
        &self,
        serial: &Serial,
        lane: usize,
        moment: Moment,
        ahead: i64,
        rate: u64,
    ) -> Option<(usize, i64)> {
        let count = self.count().cast_signed() as i64;
        let frames = |from: Moment, to: Moment| to.count(rate).wrapping_sub(from.count(rate)).cast_signed();
        let (near, last) = self.lanes[lane].last?;
        let wanted = near.wrapping_add_signed(frames(last, moment).wrapping_mul(count).wrapping_add(ahead));
        let steps = |candidate: &Lane| {
            let (there, last) = candidate.last?;
            let distance = serial.distance(there, wanted);
            (distance % count == 0).then(|| frames(moment, last).wrapping_add(distance / count))
        };
        let found = self.lanes.iter().enumerate().find_map(|(at, lane)| Some((at, steps(lane)?)))?;
        // A lane that is further off was last received before a pause.
        (found.1.abs_diff(ahead.div_euclid(count)) <= 1).then_some(found)
    }
}
