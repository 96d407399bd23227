//! A part has the frames between its limits, and limits outside the recording are refused.

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
        for (begin, end) in [(0, 1), (3, 9), (5, 6), (8, 12), (9, frames), (0, frames), (frames - 1, frames)]
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
fn a_part_up_to_the_end_has_the_newest_block_whether_its_frames_have_times_or_not() {
    let whole = [Some(0), Some(1), Some(1), Some(0), Some(0)];
    for course in PACKET_CASES {
        let (lanes, _) = laid_out(course, Storing::Files, 2, &whole, 4);
        let view = lanes.whole(Extent::All);
        let fixed = view.fixed(PartLimit::BeforeEnd(Nanos(0))).expect("it has an end");
        let end = view.end_position(fixed).expect("it has an end");
        assert_eq!(end, LimitPosition::At(view.frames()), "{course:?}");
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
