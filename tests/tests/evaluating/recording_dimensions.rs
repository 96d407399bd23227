//! Dimensions of recordings in a plan: the compressibility of frames, and stripes.

use std::{fs, time::Duration};

use nilometer_plan::{Measured, Results};
use nilometer_tests::{Ended, camera, run_directories, start};
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_mins(5);

const PLAN: &str = r#"
title = "dimensions"
repeats = 1
reserve = "0 B"
[[stage]]
name = "frames"
[stage.ingest]
instrument = "detector.toml"
frames = 40
buffer = "64 MiB"
keep = "64 MiB"
"#;

/// A directory with a target, a detector in HDF5, and this plan.
fn home(more: &str) -> TempDir {
    let home = tempfile::tempdir().expect("a temporary directory");
    let hdf5 = "data = \"diffraction\"\nrecording.format = \"hdf5\"\nrecording.compression = \"bslz4\"\n";
    let detector = camera(20).replace("uint8", "uint16").replace("[1000, 1000]", "[300, 300]") + hdf5;
    fs::write(home.path().join("detector.toml"), detector).expect("space");
    fs::write(home.path().join("plan.toml"), format!("{PLAN}{more}")).expect("space");
    fs::create_dir(home.path().join("target")).expect("space");
    home
}

fn ended(home: &TempDir, arguments: &[&str]) -> Ended {
    start(home.path(), arguments).end(LIMIT)
}

fn evaluated(home: &TempDir, record: &str) -> Ended {
    ended(home, &["evaluate", "target", "--plan", "plan.toml", "--record", record])
}

/// The bytes of frames over those written, of the recording with this compressibility.
fn ratio(results: &Results, factor: f64) -> f64 {
    let is_it = |measured: &&Measured| {
        let run = results.recording(measured.key);
        run.is_some_and(|run| run.swept.compressibility == Some(factor))
    };
    let measured = results.samples.iter().find(is_it).expect("a recording for each factor");
    let ingest = measured.sample.ingest.as_ref().expect("a recording");
    (ingest.stored * ingest.frame_size.0) as f64 / ingest.written.0 as f64
}

#[test]
fn frames_that_compress_better_leave_less_to_write_and_reports_name_them() {
    let home = home("compressibility = [4, 16]\n");
    let said = evaluated(&home, "own.sqlite");
    assert!(said.has_answered(), "{said:?}");
    let results = nilometer_record::read(&home.path().join("own.sqlite")).expect("a record");
    // Frames meet the factor within 10 %, and a file has more than frames.
    for (factor, ratios) in [(4.0, 3.0..5.5), (16.0, 11.0..20.0)] {
        let ratio = ratio(&results, factor);
        assert!(ratios.contains(&ratio), "{factor}: {ratio}");
    }
    let text = ended(&home, &["report", "own.sqlite", "--all"]).stdout;
    let json = ended(&home, &["report", "own.sqlite", "--format", "json"]).stdout;
    assert!(evaluated(&home, "again.sqlite").has_answered());
    let compared = ended(&home, &["compare", "own.sqlite", "again.sqlite"]);
    for name in ["camera, compressibility 4", "camera, compressibility 16"] {
        for (what, shown) in [("report", &text), ("json", &json), ("compare", &compared.stdout)] {
            let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(shown.contains(name), "`{name}` in {what}: {shown}");
        }
    }
}

#[test]
fn factors_that_no_frame_reaches_and_stripes_that_nobody_can_choose_are_refused() {
    for (more, parts) in [
        (
            "compressibility = [4, 5000]\n",
            &["stage `frames`", "compressibility = 5000: diffraction", " reaches "][..],
        ),
        (
            "stripe_count = [1, 4]\n",
            &["stage `frames`: stripe_count = 1: ", "leave it out", "Lustre, BeeGFS"],
        ),
        ("stripe_size = \"1 MiB\"\n", &["stripe_size = \"1 MiB\": ", "leave it out"]),
    ] {
        let home = home(more);
        let refused = evaluated(&home, "own.sqlite");
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{refused:?}");
        assert!(parts.iter().all(|part| refused.stderr.contains(part)), "{parts:?}: {refused:?}");
        assert!(!home.path().join("own.sqlite").exists(), "no record: {refused:?}");
        assert!(run_directories(&home.path().join("target")).is_empty(), "{refused:?}");
    }
}

#[test]
fn recorders_refuse_stripes_that_nobody_can_choose_before_anything_is_made() {
    let home = home("");
    let simulate = ["simulate", "detector.toml", "--to", "target", "--frames", "20"];
    let record = ["record", "jungfrau-4m", "--to", "target", "--packets", "1"];
    for (command, option, part) in [
        (&simulate[..], ["--stripe-count", "4"], "--stripe-count 4: "),
        (&simulate, ["--stripe-size", "1 MiB"], "--stripe-size 1 MiB: "),
        (&record, ["--stripe-count", "4"], "--stripe-count 4: "),
        (&record, ["--stripe-size", "1 MiB"], "--stripe-size 1 MiB: "),
        (&simulate, ["--stripe-count", "0"], "1.."),
        (&record, ["--stripe-count", "0"], "--stripe-count 0: write more than 0"),
    ] {
        let refused = ended(&home, &[command, &option].concat());
        assert!(refused.code == Some(2) && refused.stderr.contains(part), "{option:?}: {refused:?}");
        let count = fs::read_dir(home.path().join("target")).expect("listed").count();
        assert_eq!(count, 0, "nothing was made: {refused:?}");
    }
}
