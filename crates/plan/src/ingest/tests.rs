//! The least duration of a recording.

use super::*;

#[test]
fn a_recording_of_a_few_frames_is_refused_with_the_least_that_is_accepted() {
    let cell = |rate: &str, duration| {
        let text = format!(
            "name = \"camera\"\ntitle = \"t\"\nsource = \"s\"\nshape = [10, 20]\npixel = \"int32\"\nframe_rate = \"{rate}\"\n"
        );
        RecordingRun { duration, ..RecordingRun::new(Instrument::parse(&text, "camera").expect("valid")) }
    };
    for (rate, least) in [("5 Hz", 4000), ("50 Hz", 400), ("1 kHz", 100)] {
        let least = Nanos::from_millis(least);
        assert_eq!(cell(rate, least).check_duration("--duration"), Ok(()));
        for short in [Nanos(0), Nanos(least.0 - 1)] {
            let why = cell(rate, short).check_duration("--duration 1 ms").expect_err("too short");
            assert!(
                why.starts_with("--duration 1 ms: ") && why.contains(&format!("at least {least} ")),
                "{why}"
            );
        }
    }
}
