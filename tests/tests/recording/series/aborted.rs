//! Series that do not begin and end well, as a beamline has them every week: aborted, restarted, of another length than announced,
//! described in part. No image of them is lost without a word.

use nilometer_recording::reader::{Recording, Trust};
use nilometer_tests::{Ended, await_some, run, start};
use nilometer_wire::series::{MetadataField, MetadataValue, SeriesName};
use rustix::process::Signal;

use crate::series::{
    detector::{Detector, IMAGES, image_of, name, start_of},
    lab::{LIMIT, SeriesLab},
};

fn earlier() -> SeriesName {
    SeriesName { number: 6, unique: "an earlier series".to_owned() }
}

/// Records what a detector sends meanwhile, with these options.
fn recorded(
    lab: &SeriesLab,
    detector: &mut Detector,
    options: &[&str],
    send: impl FnOnce(&mut Detector),
) -> Ended {
    let at = detector.at.clone();
    let arguments = ["record", "--to", "to", "--name", "scan", "--from", &at, "--buffer", "64 MiB"];
    let recorder = start(lab.home.path(), &[&arguments[..], options].concat());
    send(detector);
    recorder.end(LIMIT)
}

/// Whether the file has these images and no more, and `verify` finds nothing wrong.
fn has_images(lab: &SeriesLab, images: u64) {
    let verified = run(&["verify".as_ref(), lab.recording().as_os_str()]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    let Some(found) = lab.found() else { return };
    assert_eq!(found.numbers("right"), (0..images.cast_signed()).collect::<Vec<_>>(), "{found:?}");
    assert!(found.shape().starts_with(&format!("[{images},")), "{found:?}");
}

#[test]
fn images_left_from_a_series_whose_start_was_missed_are_counted() {
    let lab = SeriesLab::new();
    let mut detector = Detector::new(&lab);
    let ended = recorded(&lab, &mut detector, &[], |detector| {
        (40..43).for_each(|image| detector.send_of(&earlier(), image));
        detector.end_of(&earlier());
        detector.begin(Vec::new());
        (0..IMAGES).for_each(|image| detector.send(image));
        detector.end();
    });
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("4 before the start"), "{ended:?}");
    has_images(&lab, IMAGES);
}

/// Runs each case in a thread of its own: a recorder waits for seconds for images behind the end of a series.
fn at_once(cases: &[&[&str]], case: impl Fn(&[&str]) + Sync) {
    std::thread::scope(|scope| {
        for options in cases {
            scope.spawn(|| case(options));
        }
    });
}

/// Records a series with these options, of which 5 of 100 000 images come.
fn ends_early(options: &[&str]) {
    let lab = SeriesLab::new();
    let mut detector = Detector::new(&lab);
    let ended = recorded(&lab, &mut detector, options, |detector| {
        detector.begin_series(&name(), 100_000, Vec::new());
        (0..5).for_each(|image| detector.send(image));
        detector.end();
    });
    assert_eq!(ended.code, Some(1), "{options:?}: {ended:?}");
    assert!(ended.stderr.contains("99995 of 100000 frames did not come"), "{options:?}: {ended:?}");
    if options != ["--scan", "?x1"] {
        return has_images(&lab, 5);
    }
    let Some(found) = lab.found() else { return };
    assert!(found.shape().starts_with("[5,"), "{found:?}");
}

#[test]
fn a_series_that_ends_early_has_a_dataset_that_ends_behind_its_last_image() {
    let layouts: [&[&str]; 5] = [
        &[],
        &["--frames-per-file", "3"],
        &["--chunk", "50x60"],
        &["--compression", "none"],
        &["--scan", "?x1"],
    ];
    at_once(&layouts, ends_early);
}

/// Records a series with these options, of which 20 images come, and not 3.
fn goes_on(options: &[&str]) {
    let lab = SeriesLab::new();
    let mut detector = Detector::new(&lab);
    let ended = recorded(&lab, &mut detector, options, |detector| {
        detector.begin_series(&name(), 3, Vec::new());
        (0..20).for_each(|image| detector.send(image));
        detector.end();
    });
    assert_eq!(ended.code, Some(0), "{options:?}: {ended:?}");
    assert!(ended.stdout.contains("3 frames announced, 17 more came, complete"), "{ended:?}");
    has_images(&lab, 20);
}

#[test]
fn more_images_than_announced_are_kept() {
    at_once(&[&[], &["--frames-per-file", "7"]], goes_on);
}

#[test]
fn the_first_image_says_what_the_start_leaves_out() {
    for (key, images) in
        [(&b"image_dtype"[..], 6), (b"channels", 6), (b"image_size_x", 6), (b"number_of_images", 6)]
    {
        let lab = SeriesLab::new();
        let mut detector = Detector::new(&lab);
        let ended = recorded(&lab, &mut detector, &[], |detector| {
            let mut message = start_of(&name(), 6, Vec::new());
            let at = message.windows(key.len()).position(|word| word == key).expect("it is there");
            message[at] = b'_';
            detector.send_raw(&message);
            (0..images).for_each(|image| detector.send(image));
            detector.end();
        });
        assert_eq!(ended.code, Some(0), "{ended:?}");
        has_images(&lab, images);
    }
}

#[test]
fn a_start_that_can_not_be_recorded_is_said_at_once() {
    let lab = SeriesLab::new();
    let mut detector = Detector::new(&lab);
    let ended = recorded(&lab, &mut detector, &[], |detector| {
        // No series of its own.
        let mut message = start_of(&SeriesName { number: 7, unique: String::new() }, 6, Vec::new());
        let at = message.windows(9).position(|word| word == b"series_id").expect("it is there");
        message[at] = b'_';
        detector.send_raw(&message);
    });
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let said = "a series can't be recorded: the start message has no series_id";
    assert!(ended.stderr.contains(said), "{ended:?}");
    let many = recorded(&lab, &mut detector, &[], |detector| {
        detector.begin_series(&name(), 1 << 33, Vec::new());
    });
    assert_eq!(many.code, Some(1), "{many:?}");
    assert!(many.stderr.contains("series 7 can't be recorded: 8589934592 frames"), "{many:?}");
}

#[test]
fn a_series_that_began_behind_another_is_told() {
    let lab = SeriesLab::new();
    let mut detector = Detector::new(&lab);
    let ended = recorded(&lab, &mut detector, &[], |detector| {
        detector.begin_series(&earlier(), IMAGES, Vec::new());
        (0..5).for_each(|image| detector.send_of(&earlier(), image));
        detector.begin(Vec::new());
    });
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.contains("ended by the start of another series before all came"), "{ended:?}");
    assert!(ended.stderr.contains("they are of another series, which began behind this one"), "{ended:?}");
    has_images(&lab, 5);
}

#[test]
fn values_that_can_not_be_read_cost_no_pixels() {
    let lab = SeriesLab::new();
    let mut detector = Detector::new(&lab);
    let ended = recorded(&lab, &mut detector, &[], |detector| {
        detector.begin(vec![MetadataField::new("count_time", MetadataValue::Text("long".into()))]);
        for image in 0..IMAGES {
            let mut message = image_of(&name(), image, |_| {});
            // A time of three numbers.
            let field = b"\x6astart_time\x83\x01\x02\x03";
            message[0] += 1;
            message.extend(field);
            detector.send_raw(&message);
        }
        detector.end();
    });
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let unread = IMAGES + 1;
    assert!(ended.stdout.contains(&format!("unread      {unread} values beside pixels")), "{ended:?}");
    has_images(&lab, IMAGES);
}

#[test]
fn every_series_is_recorded_until_it_is_stopped() {
    let lab = SeriesLab::new();
    let mut detector = Detector::new(&lab);
    let arguments = ["record", "--to", "to", "--name", "scan", "--from", &detector.at, "--series", "every"];
    let mut recorder = start(lab.home.path(), &[&arguments[..], &["--buffer", "64 MiB"]].concat());
    for number in 1..4 {
        let series = SeriesName { number, unique: format!("series {number}") };
        detector.begin_series(&series, 6, Vec::new());
        // The second is aborted.
        let images = if number == 2 { 3 } else { 6 };
        (0..images).for_each(|image| detector.send_of(&series, image));
        if number != 2 {
            detector.end_of(&series);
        }
    }
    recorder.await_said("series 3 begins");
    let summary = lab.home.path().join("to/scan-3/scan-3.summary.json");
    await_some("three recordings", || summary.exists().then_some(()));
    recorder.signal(Signal::INT);
    let ended = recorder.end(LIMIT);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("1 of 3 series are not whole"), "{ended:?}");
    for (number, images) in [(1, 6), (2, 3), (3, 6)] {
        let path = lab.home.path().join(format!("to/scan-{number}"));
        let recording = Recording::open(&[path], Trust::Acknowledged).expect("it is there");
        assert_eq!(recording.index.frames.numbers(0..u64::MAX).count(), images, "{number}");
    }
}
