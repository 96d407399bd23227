//! The threads of a stream, each a lane: in which order their frames come, and which of them a missing one is of.

use crate::serial::Serial;

/// More are none of one stream.
const LANES_MAX: usize = 1024;

/// A thread of a station.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Name {
    /// The station; 0 where the stream has one alone.
    pub(super) station: u16,
    pub(super) thread: u16,
}

/// When a frame is: seconds since 2000, and its number in the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) second: u64,
    pub(super) frame: u64,
}

impl Moment {
    /// Frames since 2000.
    pub(super) fn count(self, rate: u64) -> u64 {
        self.second * rate + self.frame
    }
}

#[derive(Debug)]
struct Lane {
    name: Name,
    /// The serial number and the moment of the last frame that came.
    last: Option<(u64, Moment)>,
    /// Frames that came.
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
    /// Others may come.
    open: bool,
    /// If some are named here, only these may.
    named: Vec<Name>,
}

impl Lanes {
    /// These, in the order in which they come. Where they are `open`, others are taken as they come.
    pub(super) fn new(names: &[Name], open: bool) -> Self {
        Lanes { lanes: names.iter().copied().map(Lane::new).collect(), open, named: Vec::new() }
    }

    /// Some of these, as they come; any, if there are none.
    pub(super) fn coming(names: &[Name]) -> Self {
        Lanes { lanes: Vec::new(), open: true, named: names.to_vec() }
    }

    /// Other senders have lanes of their own: only those that came are here.
    pub(super) fn share(&mut self) {
        if !self.open {
            self.named = self.lanes.iter().map(|lane| lane.name).collect();
            self.open = true;
        }
        self.lanes.retain(|lane| lane.came > 0);
    }

    /// Each with the frames that came of it.
    pub(super) fn counts(&self) -> impl Iterator<Item = (Name, u64)> {
        self.lanes.iter().map(|lane| (lane.name, lane.came))
    }

    /// How many are known.
    pub(super) fn count(&self) -> usize {
        self.lanes.len()
    }

    pub(super) fn name(&self, lane: usize) -> Name {
        self.lanes[lane].name
    }

    /// Which it is.
    #[inline]
    pub(super) fn find(&self, name: Name) -> Option<usize> {
        self.lanes.iter().position(|lane| lane.name == name)
    }

    /// Which it is, for a packet that came.
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

    /// Notes a frame that came; serial number and moment of the one before in its lane.
    #[inline]
    pub(super) fn came(&mut self, lane: usize, serial: u64, moment: Moment) -> Option<(u64, Moment)> {
        let lane = &mut self.lanes[lane];
        // A packet that is not where it is expected is looked at twice.
        lane.came += u64::from(lane.last != Some((serial, moment)));
        lane.last.replace((serial, moment))
    }

    /// How many frames of a lane so many packets are; none if they are of different lanes.
    pub(super) fn steps(&self, packets: i64) -> Option<i64> {
        let count = self.count().cast_signed() as i64;
        (packets % count == 0).then(|| packets / count)
    }

    /// The lane of the frame that is `ahead` packets later than one of `lane`, and how many frames later in time: by the order
    /// in which lanes were named.
    pub(super) fn in_order(&self, lane: usize, ahead: i64) -> (usize, i64) {
        let count = self.count().cast_signed() as i64;
        let at = lane.cast_signed() as i64 + ahead;
        (at.rem_euclid(count) as usize, at.div_euclid(count))
    }

    /// The same for a frame of this moment, by the serial numbers with which frames came, `rate` of them a second. None where
    /// they do not tell.
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
        // What is further off is from before a pause.
        (found.1.abs_diff(ahead.div_euclid(count)) <= 1).then_some(found)
    }
}
