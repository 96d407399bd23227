//! Limits of a part of a recording, by time or by number.
//!
//! ```text
//! --begin, --end -> PartLimit -> frame in the view -> bytes that the view shows
//! ```
//!
//! Times of the calendar are those in the headers of VDIF and Mark5B frames. Other frames have no such times; the
//! journal has the time at which each was due, on the clock of its recording. A time after the first frame
//! therefore works for all recordings.

use std::{fmt, str::FromStr};

use nilometer_model::{Moment, Nanos};
use nilometer_wire::Stamp;

use super::{RecordingView, scan::last_stamp};
use crate::reader::{Checksums, Recording};

/// A position in a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartLimit {
    /// A time of the calendar, by the headers of frames.
    Time(Moment),
    /// A time after the first frame.
    After(Nanos),
    /// A time before the end of the last frame.
    BeforeEnd(Nanos),
    /// The number of a frame, as `scan` and `verify` count them.
    Frame(u64),
    /// The number of a packet.
    Packet(u64),
    /// A time on the recording's own clock, by the journals. Users don't write it: [`RecordingView::fixed`] makes it.
    Due(Nanos),
}

/// The begin and the end of a part. `None` is that of the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PartLimits {
    /// The part begins with the first frame at or after this position.
    pub begin: Option<PartLimit>,
    /// The part ends before the first frame at or after this position.
    pub end: Option<PartLimit>,
}

/// The place of a limit among the frames that a view shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitPosition {
    /// It lies before the first frame.
    Before,
    /// The first frame at or after it, counted from the view's first frame. At the end of the view this is the
    /// number of its frames.
    At(u64),
    /// It lies after the last frame.
    Beyond,
}

/// Why a limit selects no part.
#[derive(Debug, thiserror::Error)]
pub enum PartLimitError {
    /// The text is no limit.
    #[error(
        "`{0}`: write 2026-11-28T18:00:00 or 2026y332d18h00m00s in UTC, +30s after the first frame, -30s before the \
         end, a number such as 1200, or packet:1200"
    )]
    Text(String),
    /// The frames have no times of the calendar.
    #[error(
        "{limit}: frames of {name} have no times of the calendar; write +30s after its first frame, -30s before its \
         end, or a number; {range}"
    )]
    NoTimes {
        /// The limit as the user wrote it.
        limit: PartLimit,
        /// The recording.
        name: String,
        /// The range of the recording.
        range: String,
    },
    /// The limit lies outside the recording.
    #[error("{limit} lies outside {name}; {range}")]
    Outside {
        /// The limit as the user wrote it.
        limit: PartLimit,
        /// The recording.
        name: String,
        /// The range of the recording.
        range: String,
    },
    /// No frame lies between the limits.
    #[error("no frame of {name} lies between the two limits; {range}")]
    NoFrame {
        /// The recording.
        name: String,
        /// The range of the recording.
        range: String,
    },
    /// A journal can't be read.
    #[error("can't read the times in a journal of {name}: {source}")]
    Journal {
        /// The recording.
        name: String,
        /// The error of the storage.
        source: std::io::Error,
    },
}

impl FromStr for PartLimit {
    type Err = PartLimitError;

    fn from_str(text: &str) -> Result<Self, PartLimitError> {
        let wrong = || PartLimitError::Text(text.into());
        let number = |digits: &str| digits.parse().map_err(|_| wrong());
        if let Some(packet) = text.strip_prefix("packet:") {
            return Ok(PartLimit::Packet(number(packet)?));
        }
        if let Some(duration) = text.strip_prefix('+') {
            return duration.parse().map(PartLimit::After).map_err(|_| wrong());
        }
        if let Some(duration) = text.strip_prefix('-') {
            return duration.parse().map(PartLimit::BeforeEnd).map_err(|_| wrong());
        }
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(PartLimit::Frame(number(text)?));
        }
        // The times here are always in UTC, so its letter may be left out.
        let time = text.parse().or_else(|_| format!("{text}Z").parse());
        time.map(PartLimit::Time).map_err(|_| wrong())
    }
}

impl fmt::Display for PartLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PartLimit::Time(time) => time.fmt(f),
            PartLimit::After(wait) => write!(f, "+{wait}"),
            PartLimit::BeforeEnd(time) => write!(f, "-{time}"),
            PartLimit::Frame(number) => write!(f, "frame {number}"),
            PartLimit::Packet(number) => write!(f, "packet {number}"),
            PartLimit::Due(time) => write!(f, "{time} on the recorder's clock"),
        }
    }
}

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
mod tests {
    use std::sync::Arc;

    use nilometer_model::Storing;

    use super::*;
    use crate::view::{
        Extent, ReadAhead,
        laid_out::{LaidOut, PACKET_CASES, PacketCase, laid_out},
    };

    /// Nine blocks in two lanes, of which three are missing.
    fn with_holes(course: PacketCase) -> (LaidOut, Vec<u8>) {
        let there = [Some(0), Some(1), None, Some(0), Some(1), Some(1), None, None, Some(0)];
        laid_out(course, Storing::Files, 2, &there, 3)
    }

    fn part(
        lanes: &LaidOut,
        begin: Option<PartLimit>,
        end: Option<PartLimit>,
    ) -> Result<RecordingView, PartLimitError> {
        lanes.whole(Extent::All).limited(&PartLimits { begin, end })
    }

    #[test]
    fn a_part_has_the_bytes_between_its_limits() {
        for course in PACKET_CASES {
            let (lanes, reference) = with_holes(course);
            let size = lanes.whole(Extent::All).frame_size();
            let frames = reference.len() as u64 / size;
            for (begin, end) in
                [(0, 1), (3, 9), (5, 6), (8, 12), (9, frames), (0, frames), (frames - 1, frames)]
            {
                let whole = part(&lanes, Some(PartLimit::Frame(begin)), Some(PartLimit::Frame(end)));
                let whole = Arc::new(whole.expect("it lies in the recording"));
                let expected = &reference[(begin * size) as usize..(end * size) as usize];
                let mut read = vec![0; expected.len() + 100];
                assert_eq!(whole.read_at(0, &mut read), expected.len());
                assert!(read[..expected.len()] == *expected, "{course:?} {begin} {end}");
                let count = ReadAhead::small(whole.clone()).read_at(0, &mut read);
                assert!(read[..count] == *expected, "{course:?} {begin} {end}, read ahead");
                assert_eq!((whole.shown_frames(), whole.is_complete()), (begin..end, true));
                assert!(whole.only_file().is_none());
            }
        }
    }

    #[test]
    fn a_part_knows_its_own_missing_blocks_and_hidden_bytes() {
        let (lanes, reference) = with_holes(PACKET_CASES[4]);
        let whole = part(&lanes, Some(PartLimit::Frame(6)), Some(PartLimit::Frame(26))).expect("it is there");
        assert_eq!((whole.shown_blocks(), whole.due_blocks()), (1..7, 6));
        assert_eq!(whole.missing_blocks(), [(2, 1), (6, 1)]);
        let size = whole.frame_size();
        assert_eq!(whole.filled(0..u64::MAX), [2 * size..6 * size, 18 * size..20 * size]);
        let [before, after] = whole.hidden_of(1).expect("it can be read");
        assert!(before == reference[4 * size as usize..6 * size as usize] && after.is_empty());
        assert_eq!(whole.range_of(1), 0..2 * size);
    }

    #[test]
    fn a_time_is_that_of_the_first_frame_from_it_on() {
        let whole = [Some(0), Some(1), Some(1), Some(0), Some(0)];
        let cases = PACKET_CASES[..4].iter().map(|course| laid_out(*course, Storing::Files, 2, &whole, 4));
        // Frames of one thread have known times in gaps too.
        let cases = cases.chain(PACKET_CASES[2..4].iter().map(|course| with_holes(*course)));
        for (lanes, reference) in cases {
            let view = lanes.whole(Extent::All);
            let rate = view.survey().frames_per_second;
            assert!(rate.is_some());
            let headers = reference.chunks(view.frame_size() as usize);
            let times = headers.map(|frame| view.read_stamp(frame).expect("a header").moment(rate));
            let times: Vec<Moment> = times.collect();
            for time in times.iter().skip(1) {
                let expected = times.iter().position(|other| other >= time).expect("itself") as u64;
                let found = part(&lanes, Some(PartLimit::Time(*time)), None).expect("it is in the recording");
                assert_eq!(found.shown_frames(), expected..times.len() as u64, "{time} of {times:?}");
                let since = PartLimit::After(time.0.since(times[0].0));
                let found = part(&lanes, Some(since), None).expect("it is in the recording");
                assert_eq!(found.shown_frames().start, expected, "{since}");
            }
        }
    }

    #[test]
    fn a_time_before_the_end_counts_from_the_last_frame() {
        let whole = [Some(0), Some(1), Some(1), Some(0), Some(0)];
        // Frames without times in their headers need a journal on storage.
        for course in &PACKET_CASES[..4] {
            let (lanes, _) = laid_out(*course, Storing::Files, 2, &whole, 4);
            let view = lanes.whole(Extent::All);
            let nothing = view.end_position(PartLimit::BeforeEnd(Nanos(0))).expect("it has times");
            assert_eq!(nothing, LimitPosition::At(view.frames()), "{course:?}");
            let long = view.begin_position(PartLimit::BeforeEnd(Nanos::from_seconds(1e8))).expect("times");
            assert_eq!(long, LimitPosition::Before, "{course:?}");
            let fixed = view.fixed(PartLimit::BeforeEnd(Nanos(0))).expect("it has times");
            assert!(matches!(fixed, PartLimit::Time(_)), "{fixed:?}");
            assert_eq!(view.end_position(fixed).expect("it has times"), nothing, "{course:?}");
        }
    }

    #[test]
    fn a_number_lies_before_in_or_beyond_the_frames_shown() {
        let (lanes, _) = with_holes(PACKET_CASES[0]);
        let view = lanes.whole(Extent::All);
        let frames = view.frames();
        let of = |number| view.end_position(PartLimit::Frame(number)).expect("it has numbers");
        assert_eq!([of(0), of(frames)], [LimitPosition::At(0), LimitPosition::At(frames)]);
        assert_eq!(of(frames + 1), LimitPosition::Beyond);
        let (_lanes, later) = crate::view::laid_out::overtaken();
        let before = later.first_number().checked_sub(1).map(|number| later.position_of_number(number));
        assert!(before.is_none_or(|before| before == LimitPosition::Before));
    }

    #[test]
    fn limits_outside_the_recording_are_refused_with_its_range() {
        let (lanes, _) = with_holes(PACKET_CASES[2]);
        let early = "2000-01-01T00:00:00".parse().expect("a time");
        let late = "2100y001d00h00m00s".parse().expect("a time");
        for limit in [
            early,
            late,
            PartLimit::Frame(36),
            PartLimit::Packet(1000),
            PartLimit::After(Nanos::from_seconds(1e6)),
        ] {
            for (begin, end) in [(Some(limit), None), (None, Some(limit))] {
                let why = part(&lanes, begin, end).expect_err("it lies outside").to_string();
                assert!(why.contains("it has frames 0 to 34, from 20"), "{why}");
            }
        }
        for (begin, end) in [(5, 5), (7, 6), (35, 35)] {
            let why = part(&lanes, Some(PartLimit::Frame(begin)), Some(PartLimit::Frame(end)));
            assert!(matches!(why, Err(PartLimitError::NoFrame { .. })), "{why:?}");
        }
        let (raw, _) = with_holes(PACKET_CASES[4]);
        let why = part(&raw, Some(early), None).expect_err("it has no headers").to_string();
        assert!(why.contains("have no times of the calendar"), "{why}");
    }

    #[test]
    fn limits_are_read_as_stations_write_them() {
        let time = "2026-11-28T18:00:00Z".parse().map(PartLimit::Time).expect("a time");
        for text in ["2026-11-28T18:00:00", "2026-11-28T18:00:00Z", "2026y332d18h00m00s"] {
            assert_eq!(text.parse::<PartLimit>().expect(text), time);
        }
        assert_eq!(
            "+30s".parse::<PartLimit>().expect("a time"),
            PartLimit::After(Nanos::from_millis(30_000))
        );
        assert_eq!(
            "-30s".parse::<PartLimit>().expect("a time"),
            PartLimit::BeforeEnd(Nanos::from_millis(30_000))
        );
        assert_eq!("1200".parse::<PartLimit>().expect("a number"), PartLimit::Frame(1200));
        assert_eq!("packet:7".parse::<PartLimit>().expect("a number"), PartLimit::Packet(7));
        for wrong in
            ["", "x", "+", "-5", "packet:", "packet:x", "2026-13-01T00:00:00", "99999999999999999999"]
        {
            let why = wrong.parse::<PartLimit>().expect_err(wrong).to_string();
            assert!(why.contains("2026y332d18h00m00s"), "{why}");
        }
    }
}
