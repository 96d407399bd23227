//! The part of a recording between two limits: the frames at which it begins and ends.
//!
//! ```text
//! --begin, --end -> PartLimit -> frame in the view -> bytes that the view shows
//! ```
//!
//! Times of the calendar are those in the headers of VDIF and Mark5B frames. Other frames have no such times; the
//! journal has the time at which each was due, on the clock of its recording. A time after the first frame
//! therefore works for all recordings.

use nilometer_model::{Moment, Nanos};
use nilometer_wire::Stamp;

use super::{
    RecordingView,
    part_limit::{LimitPosition, PartLimit, PartLimitError, PartLimits},
    scan::last_stamp,
};
use crate::reader::{Checksums, Recording};

impl RecordingView {
    /// Shows only the part between these limits. It has whole frames.
    ///
    /// # Errors
    /// A limit lies outside the recording, or needs times that the recording does not have; or no frame lies
    /// between them.
    pub fn limited(mut self, limits: &PartLimits) -> Result<Self, PartLimitError> {
        let PartLimits { begin, end } = *limits;
        if begin.is_none() && end.is_none() {
            return Ok(self);
        }
        let survey = self.survey();
        let first = begin.map_or(Ok(0), |limit| self.frame_at(limit, u64::div_euclid))?;
        let last = end.map(|limit| self.frame_at(limit, u64::div_ceil)).transpose()?;
        if first >= last.unwrap_or_else(|| self.frames()) {
            return Err(PartLimitError::NoFrame { name: self.name.clone(), range: self.range_text() });
        }
        // The part may be too short to find the rate in it.
        *self.survey.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(survey);
        let size = self.frame_size;
        self.part = first * size..last.map_or(u64::MAX, |last| last * size);
        Ok(self)
    }

    /// The numbers of the frames that it shows.
    pub fn shown_frames(&self) -> std::ops::Range<u64> {
        let first = self.first_number() + self.part.start / self.frame_size;
        first..first + self.frames()
    }

    /// The number of the first frame of the recording.
    fn first_number(&self) -> u64 {
        self.state().blocks.first().saturating_mul(self.frames_of_block())
    }

    /// Returns the first frame at or after a limit. `share` turns packets into frames.
    fn frame_at(&self, limit: PartLimit, share: fn(u64, u64) -> u64) -> Result<u64, PartLimitError> {
        match self.position(limit, share)? {
            LimitPosition::At(frame) => Ok(frame),
            LimitPosition::Before | LimitPosition::Beyond => Err(self.outside(limit)),
        }
    }

    /// Returns the position of a part's begin. The view must show no part already.
    ///
    /// # Errors
    /// The limit needs times that the recording does not have, or a journal can't be read.
    pub fn begin_position(&self, limit: PartLimit) -> Result<LimitPosition, PartLimitError> {
        self.position(limit, u64::div_euclid)
    }

    /// Returns the position of a part's end: the frame after its last one. The view must show no part already.
    ///
    /// # Errors
    /// The limit needs times that the recording does not have, or a journal can't be read.
    pub fn end_position(&self, limit: PartLimit) -> Result<LimitPosition, PartLimitError> {
        self.position(limit, u64::div_ceil)
    }

    fn position(
        &self,
        limit: PartLimit,
        share: fn(u64, u64) -> u64,
    ) -> Result<LimitPosition, PartLimitError> {
        match limit {
            PartLimit::Time(time) => self.position_of_time(limit, time),
            PartLimit::After(wait) => match self.first_time() {
                Some(first) => self.position_of_time(limit, Moment(first.0 + wait)),
                None => self.position_due(limit),
            },
            PartLimit::BeforeEnd(time) => match self.end_time() {
                Some(end) => self.position_of_time(limit, Moment(Nanos(end.0.0.saturating_sub(time.0)))),
                None => self.position_due(limit),
            },
            PartLimit::Frame(number) => Ok(self.position_of_number(number)),
            PartLimit::Packet(number) => Ok(self.position_of_number(share(number, self.packets_of_frame()))),
            PartLimit::Due(_) => self.position_due(limit),
        }
    }

    fn position_of_number(&self, number: u64) -> LimitPosition {
        match number.checked_sub(self.first_number()) {
            None => LimitPosition::Before,
            Some(frame) if frame > self.frames() => LimitPosition::Beyond,
            Some(frame) => LimitPosition::At(frame),
        }
    }

    /// The time in the first readable header.
    fn first_time(&self) -> Option<Moment> {
        let stamp = self.stamp(self.first_stamp()?)?;
        Some(stamp.moment(self.survey().frames_per_second))
    }

    /// The time at which the frame after the last one would begin.
    fn end_time(&self) -> Option<Moment> {
        let rate = self.survey().frames_per_second;
        let (_, last) = last_stamp(self)?;
        let frame = Nanos::from_seconds(1.0 / rate.unwrap_or(1) as f64);
        Some(Moment(last.moment(rate).0 + frame))
    }

    /// Returns the position of a time, by the headers.
    fn position_of_time(&self, limit: PartLimit, time: Moment) -> Result<LimitPosition, PartLimitError> {
        let Some((first, end)) = self.first_time().zip(self.end_time()) else {
            return Err(self.no_times(limit));
        };
        Ok(if time < first {
            LimitPosition::Before
        } else if time > end {
            LimitPosition::Beyond
        } else {
            LimitPosition::At(self.bisect(time))
        })
    }

    /// Finds the first frame at or after a time by bisection. Times of frames never decrease, except of those
    /// marked as invalid, which it skips.
    fn bisect(&self, time: Moment) -> u64 {
        let rate = self.survey().frames_per_second;
        let mut below = 0;
        let mut end = self.frames();
        // The frame before `below`, and the first one with a header from `below` on.
        let mut before: Option<Stamp> = None;
        let mut behind = end;
        while below < end {
            let middle = below.midpoint(end);
            match self.next_stamp(middle, end) {
                Some((frame, stamp)) if stamp.moment(rate) < time => {
                    below = frame + 1;
                    before = Some(stamp);
                }
                Some((frame, _)) => {
                    end = middle;
                    behind = frame;
                }
                None => end = middle,
            }
        }
        // Frames without a header fill the gap from `below` on.
        let Some((before, rate)) = before.zip(rate) else { return below };
        let lanes = self.survey().lanes.len().max(1) as u64;
        let each = 1.0 / rate as f64;
        let ahead = time.0.since(before.moment(Some(rate)).0).seconds() / each;
        // Rounding of times must not skip a frame.
        #[expect(clippy::cast_sign_loss, reason = "the maximum with 0 is not negative")]
        let frames = ((ahead - 0.01).ceil().max(0.0) as u64).saturating_sub(1) * lanes;
        (below + frames).min(behind)
    }

    /// Returns the first frame with a valid header among some frames.
    fn next_stamp(&self, from: u64, end: u64) -> Option<(u64, Stamp)> {
        let mut frame = from;
        while frame < end {
            let (block, ..) = self.piece(frame * self.frame_size);
            if self.next_there(block) != Some(block) {
                let next = self.next_there(block)?;
                frame = self.range_of(next).start.div_ceil(self.frame_size);
                continue;
            }
            let found = self.stamp(frame).filter(|stamp| !stamp.invalid);
            if let Some(stamp) = found {
                return Some((frame, stamp));
            }
            frame += 1;
        }
        None
    }

    /// Returns a limit that stays where it is while the recording goes on. A time after the first frame becomes that
    /// time itself, because a recorder that keeps only the latest data overwrites its first frame. The same holds for
    /// a time before the last one.
    ///
    /// # Errors
    /// The limit needs times that the recording does not have, or has not yet; or a journal can't be read.
    pub fn fixed(&self, limit: PartLimit) -> Result<PartLimit, PartLimitError> {
        let times = self.first_time().zip(self.end_time());
        Ok(match (limit, times) {
            (PartLimit::After(wait), Some((first, _))) => PartLimit::Time(Moment(first.0 + wait)),
            (PartLimit::BeforeEnd(time), Some((_, end))) => {
                PartLimit::Time(Moment(Nanos(end.0.0.saturating_sub(time.0))))
            }
            // A block is due when its last packet came, so one that is due at the end belongs to the part.
            (PartLimit::BeforeEnd(Nanos(0)), None) => PartLimit::Frame(self.shown_frames().end),
            (PartLimit::After(_) | PartLimit::BeforeEnd(_), None) => {
                let first = self.next_there(self.first_block()).ok_or_else(|| self.no_times(limit))?;
                PartLimit::Due(self.due_limit(limit, first)?)
            }
            (limit, _) => limit,
        })
    }

    /// Returns the first frame that was due at a limit or later, by the journals.
    fn position_due(&self, limit: PartLimit) -> Result<LimitPosition, PartLimitError> {
        if self.recording(|recording| recording.foreign().is_some()) {
            return Err(self.no_times(limit));
        }
        let Some(first) = self.next_there(self.first_block()) else { return Ok(LimitPosition::Beyond) };
        let wanted = self.due_limit(limit, first)?;
        let mut records = self.recording(Recording::checksums);
        // The journals' reader gives the record of a block once.
        let mut next = Some(first);
        while let Some(block) = next {
            let due = self.due_of(&mut records, block)?;
            if block == first && wanted < due {
                return Ok(LimitPosition::Before);
            }
            if due >= wanted {
                return Ok(LimitPosition::At(self.range_of(block).start / self.frame_size));
            }
            next = self.next_there(block + 1);
        }
        Ok(LimitPosition::Beyond)
    }

    /// Returns the time of a limit on the recording's own clock; `first` is the first block that exists.
    fn due_limit(&self, limit: PartLimit, first: u64) -> Result<Nanos, PartLimitError> {
        match limit {
            PartLimit::After(wait) => {
                Ok(self.due_of(&mut self.recording(Recording::checksums), first)? + wait)
            }
            PartLimit::BeforeEnd(time) => Ok(Nanos(self.last_due(first)?.0.saturating_sub(time.0))),
            PartLimit::Due(time) => Ok(time),
            _ => Err(self.no_times(limit)),
        }
    }

    /// The time at which the last block was due; `first` is a block that exists.
    fn last_due(&self, first: u64) -> Result<Nanos, PartLimitError> {
        let end = self.shown_blocks().end;
        let last = self.recording(|recording| recording.index.frames.previous(end));
        self.due_of(&mut self.recording(Recording::checksums), last.unwrap_or(first).max(first))
    }

    /// The time at which a block was due, or 0 if the recorder has overwritten it meanwhile. Call this in the order
    /// of blocks.
    fn due_of(&self, records: &mut Checksums, block: u64) -> Result<Nanos, PartLimitError> {
        let place = self.places(block).into_iter().next();
        let record = place.map(|place| records.record_of(block, place)).transpose();
        let record = record.map_err(|source| PartLimitError::Journal { name: self.name.clone(), source })?;
        Ok(record.map_or(Nanos(0), |record| record.due))
    }

    fn no_times(&self, limit: PartLimit) -> PartLimitError {
        PartLimitError::NoTimes { limit, name: self.name.clone(), range: self.range_text() }
    }

    fn outside(&self, limit: PartLimit) -> PartLimitError {
        PartLimitError::Outside { limit, name: self.name.clone(), range: self.range_text() }
    }

    /// The range of the recording, for messages.
    fn range_text(&self) -> String {
        let first = self.first_number();
        let frames = format!("it has frames {first} to {}", first + self.frames().saturating_sub(1));
        if let Some((begin, end)) = self.first_time().zip(self.end_time()) {
            return format!("{frames}, from {begin} to {end}");
        }
        match self.recording(|recording| recording.index.recent_span()) {
            Some([(_, begin), (_, end)]) => format!("{frames}, received within {}", end.since(begin)),
            None => frames,
        }
    }
}

#[cfg(test)]
mod tests;
