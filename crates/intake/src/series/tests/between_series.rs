//! How one series ends and the next begins.

use super::*;

#[test]
fn a_series_is_over_when_nothing_of_it_comes_and_later_frames_are_late() {
    let second = Nanos::from_millis(1000);
    let until = SeriesUntil {
        begin: second + second,
        silence: second,
        after_end: Nanos(second.0 / 2),
        duration: Nanos::MAX,
        after_last: Nanos(second.0 / 2),
    };
    let mut lab = Lab::new(4, until);
    let over = |lab: &Lab, millis| lab.receiver.is_over(lab.clock.now() + Nanos::from_millis(millis));
    assert_eq!(over(&lab, 2000), Some(SeriesEnding::NoSeries));
    lab.deliver(&starts(&start()));
    lab.deliver(&image(3));
    lab.deliver(&says(5, &[channel("low", &pixels(10))]));
    // The receiver saw the last message by now at the latest, and the test itself takes some time.
    assert_eq!(over(&lab, 1000), Some(SeriesEnding::Silent));
    lab.deliver(&[stream2::encode_end(&name())]);
    assert_eq!(over(&lab, 500), Some(SeriesEnding::Ended));
    lab.receiver.finish(lab.clock.now(), &mut lab.intake);
    assert_eq!(lab.intake.missing, [0..6, 8..10, 11..20]);
    lab.deliver(&image(4));
    assert_eq!((lab.refused(SeriesRefusal::Late), lab.receiver.tally().frames), (2, 3));
    let live = lab.receiver.live();
    assert_eq!(live.lock().expect("one thread").frames, Some(20));
}

/// A lab with all images of its series, and when the last one had not come yet.
fn complete() -> (Lab, Nanos) {
    let mut lab = Lab::new(4, SeriesUntil::default());
    lab.deliver(&starts(&start()));
    let mut before = lab.clock.now();
    for number in 0..10 {
        before = lab.clock.now();
        lab.deliver(&image(number));
    }
    (lab, before)
}

impl Lab {
    /// How the series ended a number of milliseconds after a moment. The test itself may wait for a
    /// processor. To check that the series is not over, pass a moment before the message; to check that it
    /// is, pass one after it.
    fn over_later(&self, moment: Nanos, millis: u64) -> Option<SeriesEnding> {
        self.receiver.is_over(moment + Nanos::from_millis(millis))
    }
}

#[test]
fn a_complete_series_is_over_with_its_end_or_a_little_later() {
    let (mut lab, before) = complete();
    assert_eq!(lab.over_later(before, 4000), None);
    assert_eq!(lab.over_later(lab.clock.now(), 5000), Some(SeriesEnding::Complete));
    lab.deliver(&[stream2::encode_end(&name())]);
    assert_eq!(lab.over_later(lab.clock.now(), 0), Some(SeriesEnding::Complete));
    assert_eq!(lab.receiver.tally().ends, 1);
}

#[test]
fn images_beyond_those_that_were_announced_are_kept() {
    let (mut lab, _) = complete();
    lab.deliver(&image(10));
    let before = lab.clock.now();
    lab.deliver(&image(12));
    assert_eq!(lab.over_later(before, 4000), None);
    let before = lab.clock.now();
    lab.deliver(&[stream2::encode_end(&name())]);
    // The number of frames is open: those of other connections may be on their way.
    assert_eq!(lab.over_later(before, 4000), None);
    assert_eq!(lab.over_later(lab.clock.now(), 5000), Some(SeriesEnding::Ended));
    lab.deliver(&image(11));
    assert_eq!(lab.over_later(lab.clock.now(), 5000), Some(SeriesEnding::Complete));
    assert_eq!((lab.refused(SeriesRefusal::Number), lab.receiver.tally().frames), (0, 26));
    // No image of the series has such a number, and blank frames up to it would fill the disk.
    lab.deliver(&image(1 << 30));
    assert_eq!((lab.refused(SeriesRefusal::Number), lab.intake.free.len()), (2, 4));
}

/// Another series.
fn other() -> SeriesStart {
    SeriesStart { series: SeriesName { number: 4, unique: "another".to_owned() }, ..start() }
}

#[test]
fn the_next_series_does_not_wait_for_the_end_of_a_complete_one() {
    let (mut lab, _) = complete();
    lab.send(&starts(&other()));
    while !lab.receiver.has_next() {
        lab.turn();
    }
    assert_eq!(lab.receiver.is_over(lab.clock.now()), Some(SeriesEnding::Complete));
    lab.receiver.finish(lab.clock.now(), &mut lab.intake);
    lab.receiver.abandon_next(lab.clock.now());
    assert_eq!(lab.refused(SeriesRefusal::Foreign), 1);
}

/// An image of another series.
fn image_of(series: &SeriesName, number: u64) -> Vec<Vec<u8>> {
    let bytes = [pixels(2 * number), pixels(2 * number + 1)];
    let channels = [channel("low", &bytes[0]), channel("high", &bytes[1])];
    let pieces = stream2::encode_image(series, number, &ImageTimes::default(), &channels);
    vec![pieces.expect("they have words").iter().flat_map(MessagePiece::bytes).copied().collect()]
}

#[test]
fn a_start_without_an_end_before_it_ends_the_series_and_begins_the_next() {
    let mut lab = Lab::new(4, SeriesUntil::default());
    lab.deliver(&starts(&start()));
    (0..3).for_each(|number| lab.deliver(&image(number)));
    lab.send(&starts(&other()));
    (0..10).for_each(|number| lab.send(&image_of(&other().series, number)));
    lab.send(&[stream2::encode_end(&other().series)]);
    while lab.receiver.is_over(lab.clock.now()).is_none() {
        lab.turn();
    }
    assert_eq!(lab.receiver.is_over(lab.clock.now()), Some(SeriesEnding::Followed));
    lab.receiver.finish(lab.clock.now(), &mut lab.intake);
    assert_eq!((lab.receiver.tally().frames, lab.intake.free.len()), (6, 4));
    // The next recording begins, with another clock.
    lab.clock = Clock::start();
    lab.receiver.begin_next(lab.clock.now(), SeriesUntil::default());
    lab.intake.frames.clear();
    lab.intake.free = Arena::shared_out(4, FRAME + 200).1;
    while lab.receiver.is_over(lab.clock.now()).is_none() {
        lab.turn();
    }
    let tally = lab.receiver.tally();
    assert_eq!((tally.frames, tally.starts, tally.ends, tally.refused_all()), (20, 1, 1, 0));
    assert!(lab.intake.frames.iter().all(|(number, (bytes, _))| *bytes == pixels(*number)));
    assert!(lab.intake.free.iter().all(|slot| slot.len() == FRAME + 200), "no slot of the ring before");
}

#[test]
fn a_detector_that_begins_anew_counts_from_the_same_number() {
    let mut lab = Lab::new(2, SeriesUntil::default());
    let series = SeriesName { number: 1, unique: String::new() };
    let start = SeriesStart { series: series.clone(), images: 3, ..start() };
    let header = stream1::encode_header(&start).expect("two dimensions");
    let image = |number: u64| {
        let bytes = pixels(number);
        let channel = channel(stream1::CHANNEL, &bytes);
        let parts = stream1::encode_image(&series, number, &ImageTimes::default(), &channel, "");
        parts.expect("it has a word").iter().map(|part| part.bytes().to_vec()).collect::<Vec<_>>()
    };
    lab.deliver(&header);
    lab.deliver(&image(0));
    // The same start, as several senders send it: the image behind it is a new one.
    lab.send(&header);
    lab.deliver(&image(1));
    assert_eq!((lab.receiver.tally().starts, lab.receiver.tally().frames), (2, 2));
    // The detector was switched off and on: its first image is there already.
    lab.send(&header);
    lab.send(&image(0));
    while lab.receiver.is_over(lab.clock.now()) != Some(SeriesEnding::Followed) {
        lab.turn();
    }
    lab.receiver.finish(lab.clock.now(), &mut lab.intake);
    lab.receiver.begin_next(lab.clock.now(), SeriesUntil::default());
    lab.intake.frames.clear();
    (1..3).for_each(|number| lab.send(&image(number)));
    lab.send(&[stream1::encode_end(&series)]);
    while lab.receiver.is_over(lab.clock.now()) != Some(SeriesEnding::Complete) {
        lab.turn();
    }
    let tally = lab.receiver.tally();
    assert_eq!((tally.frames, tally.refused_all(), lab.intake.free.len()), (3, 0, 2));
}

#[test]
fn a_start_with_the_same_number_begins_the_next_series_whose_images_are_not_mixed_in() {
    let mut lab = Lab::new(8, SeriesUntil::default());
    let series = SeriesName { number: 1, unique: String::new() };
    let aborted = SeriesStart { series: series.clone(), images: 6, ..start() };
    let next = SeriesStart { images: 4, ..aborted.clone() };
    lab.deliver(&starts(&aborted));
    (0..3).for_each(|number| lab.deliver(&image_of(&series, number)));
    lab.send(&starts(&next));
    (0..4).for_each(|number| lab.send(&image_of(&series, number)));
    lab.send(&[stream2::encode_end(&series)]);
    while lab.receiver.is_over(lab.clock.now()).is_none() {
        lab.turn();
    }
    assert_eq!(lab.receiver.is_over(lab.clock.now()), Some(SeriesEnding::Followed));
    lab.receiver.finish(lab.clock.now(), &mut lab.intake);
    let tally = lab.receiver.tally();
    assert_eq!((tally.frames, tally.ends, tally.refused_all()), (6, 0, 0));
    lab.receiver.begin_next(lab.clock.now(), SeriesUntil::default());
    lab.intake.frames.clear();
    while lab.receiver.is_over(lab.clock.now()).is_none() {
        lab.turn();
    }
    assert_eq!(lab.receiver.is_over(lab.clock.now()), Some(SeriesEnding::Complete));
    let tally = lab.receiver.tally();
    assert_eq!((tally.frames, tally.starts, tally.ends, tally.refused_all()), (8, 1, 1, 0));
}

#[test]
fn images_left_over_from_an_earlier_series_come_before_the_start() {
    let mut lab = Lab::new(4, SeriesUntil::default());
    lab.send(&image(3));
    let next = SeriesStart { series: SeriesName { number: 4, unique: "b".to_owned() }, ..start() };
    lab.send(&starts(&next));
    while lab.receiver.tally().starts == 0 {
        lab.turn();
    }
    assert_eq!((lab.refused(SeriesRefusal::Early), lab.refused(SeriesRefusal::Foreign)), (2, 0));
    assert_eq!(lab.intake.free.len(), 4);
}

#[test]
fn images_without_a_start_are_given_up_in_the_end() {
    let mut lab = Lab::new(2, SeriesUntil::default());
    for number in 0..3 {
        lab.send(&image(number));
    }
    let mut now = lab.clock.now();
    while lab.refused(SeriesRefusal::Early) < 6 {
        now += Nanos::from_millis(100);
        lab.receiver.turn(now, &mut lab.intake).expect("the network is there");
    }
    assert_eq!(lab.intake.free.len(), 2);
}

#[test]
fn a_halt_of_the_receiver_is_no_silence_of_the_sender() {
    let second = Nanos::from_millis(1000);
    let until = SeriesUntil { begin: second, silence: second, ..SeriesUntil::default() };
    let mut lab = Lab::new(4, until);
    // Nothing is read for ten seconds, before the series and in it.
    let after_halt = |lab: &mut Lab| {
        let now = lab.clock.now();
        lab.receiver.excuse_halt(now, &mut lab.intake);
        let later = now + Nanos::from_millis(10_000);
        lab.receiver.excuse_halt(later, &mut lab.intake);
        later
    };
    let later = after_halt(&mut lab);
    assert_eq!(lab.receiver.is_over(later), None, "its start may be there");
    assert_eq!(lab.over_later(later, 1000), Some(SeriesEnding::NoSeries));
    lab.deliver(&starts(&start()));
    lab.deliver(&image(0));
    let later = after_halt(&mut lab);
    assert_eq!(lab.receiver.is_over(later), None, "its next image may be there");
    assert_eq!(lab.over_later(later, 1000), Some(SeriesEnding::Silent));
    assert_eq!(lab.intake.halts, 2);
}
