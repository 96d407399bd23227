//! `nilometer size` from outside: a published study, limits from a record, and what is refused.

use std::{fs, path::Path, time::Duration};

use nilometer_model::{Bytes, Goal, Ingest, Instrument, Nanos, Phase, Sample};
use nilometer_plan::{Cell, Key, RecordingRun, Results, TargetEntry};
use nilometer_record::Record;
use nilometer_tests::{Ended, run, start};
use tempfile::TempDir;

/// A node and a server as in the study of WA105, apart from the server's rate.
const NODE: [&str; 10] =
    ["--link", "40 Gbit/s", "--links", "2", "--cores", "16", "--cores-per-gb", "0.5", "--memory", "64 GB"];

fn size(directory: &Path, name: &str, more: &[&str]) -> Ended {
    let arguments: Vec<&str> = ["size", name].into_iter().chain(more.iter().copied()).collect();
    start(directory, &arguments).end(Duration::from_mins(1))
}

fn json(directory: &Path, name: &str, more: &[&str]) -> serde_json::Value {
    let ended = size(directory, name, &[more, &["--format", "json"]].concat());
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    serde_json::from_str(&ended.stdout).expect("valid JSON")
}

/// The text without its columns and line breaks.
fn as_words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn wa105_is_sized_and_checked() {
    let ended = run(&[&["size", "wa105", "--write-rate", "1.1 GB/s", "--spare", "1"][..], &NODE].concat());
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    for part in [
        "13 streams bring 16.3 GB/s (130 Gbit/s); 18.8 GB/s are read meanwhile.",
        "3 recorders with 6 network links in all, and 40 storage servers, and 1 of each to spare.",
        "The existing 1 PB may be full after 17.1 h.",
        "(given: --write-rate)",
        "longest stall 1 s (assumed",
        "nothing was lost",
        "With one storage server fewer, and nothing kept free, the streams are too much",
    ] {
        assert!(as_words(&ended.stdout).contains(part), "{part} is missing in:\n{}", ended.stdout);
    }
    assert!(ended.stdout.lines().all(|line| line.chars().count() <= 100), "{}", ended.stdout);
}

/// The study counts neither a headroom nor readers nor the copy to the archive: 36 servers of 462 MB/s, or 15 of 1.1 GB/s.
#[test]
fn a_facility_of_ones_own_names_instruments_beside_it() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let instruments = home.path().join("sub");
    fs::create_dir(&instruments).expect("a directory");
    let flow = include_str!("../../../instruments/wa105-raw.toml").replace("wa105-raw", "flow");
    fs::write(instruments.join("flow.toml"), flow).expect("a file");
    let facility = "title = \"Ours\"\n[[instrument]]\nname = \"flow.toml\"\nreaders = { count = 0 }\n";
    fs::write(instruments.join("ours.toml"), facility).expect("a file");
    for (rate, servers) in [("462 MB/s", 36), ("1.1 GB/s", 15)] {
        let more =
            [&NODE[..], &["--write-rate", rate, "--headroom", "0 %", "--check", "5 s", "--writers", "32"]]
                .concat();
        let json = json(home.path(), "sub/ours.toml", &more);
        assert_eq!((&json["servers"], &json["recorders"]), (&servers.into(), &2.into()), "{json}");
        assert_eq!(json["simulation"]["duration_s"], 5.0);
        assert_eq!(json["simulation"]["lost"], 0, "{json}");
    }
}

const RECORD: &str = "evaluation.sqlite";

/// A camera's frames into raw files.
const CAMERA: &str = "name = \"camera\"\ntitle = \"A camera\"\nsource = \"a test\"\nshape = [1000, 1000]\n\
                      pixel = \"uint8\"\nframe_rate = \"250 Hz\"\n";

/// As the record has it.
fn recorded() -> RecordingRun {
    RecordingRun {
        goal: Goal::Limit,
        duration: Nanos::from_millis(10_000),
        buffer: Bytes(1 << 30),
        keep: Bytes(1 << 30),
        ..RecordingRun::new(Instrument::parse(CAMERA, "camera").expect("valid"))
    }
}

/// A directory with a camera's file, and a record of two targets, of which the first took 400 MB/s of it at 0.5 processor
/// seconds a GB.
fn home() -> TempDir {
    let home = tempfile::tempdir().expect("a temporary directory");
    let target =
        |path: &str| TargetEntry { path: path.into(), file_system: "ext4".into(), ..TargetEntry::default() };
    fs::write(home.path().join("camera.toml"), CAMERA).expect("a file");
    let cell = Cell::recording("ingest", recorded());
    let head = Results {
        title: "A test".into(),
        margin: 5.0,
        repeats: 1,
        targets: vec![target("/data"), target("/other")],
        cells: vec![cell.clone(), cell],
        environment: [("processors", "8"), ("memory", "64000000 kB")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .to_vec(),
        ..Results::default()
    };
    let mut record = Record::create(&home.path().join(RECORD), &head, 0).expect("a new record");
    for (cell, paced) in [(0, false), (1, true)] {
        let ingest = Ingest {
            count: 1,
            goal: if paced { Goal::Pace } else { Goal::Limit },
            frame_size: Bytes(1_000_000),
            longest_stall: Nanos::from_millis(250),
            ..Ingest::default()
        };
        let mut sample = Sample {
            bytes: 4_000_000_000,
            wall: Nanos::from_millis(10_000),
            user: Nanos::from_millis(2000),
            ingest: Some(ingest),
            ..Sample::new(Nanos(0))
        };
        (0..1000).for_each(|at| sample.series.add(Nanos::from_millis(10 * at), 4_000_000));
        record.add(Key { target: 0, cell, repeat: 0, phase: Phase::Ingest }, &sample).expect("space");
    }
    home
}

#[test]
fn limits_come_from_a_record_and_options_come_first() {
    let home = home();
    for name in ["A", "1", "/data"] {
        let more = ["--record", RECORD, "--target", name, "--link", "10 Gbit/s"];
        let ended = size(home.path(), "./camera.toml", &more);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
        for part in [
            "a server writes 400 MB/s (measured: evaluation.sqlite: /data, camera, at full speed)",
            "cores for 1 GB/s 0.500 (measured: evaluation.sqlite",
            "longest stall 250 ms (measured: evaluation.sqlite",
            "memory for frames 32.8 GB (measured: evaluation.sqlite: half of its machine's memory)",
            "1 recorder with 1 network link in all, and 1 storage server.",
        ] {
            assert!(as_words(&ended.stdout).contains(part), "{part} is missing in:\n{}", ended.stdout);
        }
    }
    let more = [
        "--record",
        RECORD,
        "--target",
        "A",
        "--link",
        "10 Gbit/s",
        "--write-rate",
        "1 GB/s",
        "--cores",
        "4",
    ];
    let json = json(home.path(), "pilatus-6m", &more);
    assert_eq!(json["servers"], 1);
    let cores = json["assumptions"]
        .as_array()
        .and_then(|all| all.iter().find(|one| one["what"] == "cores of a recorder"));
    assert_eq!(cores.map(|cores| (&cores["value"], &cores["from"])), Some((&"4".into(), &"given".into())));
}

/// A raw recording says nothing of what packing costs, and that it does not is said with the answer.
#[test]
fn what_recording_costs_is_not_taken_from_another_format() {
    let home = home();
    let more = ["--record", RECORD, "--target", "A", "--cores", "8"];
    let json = json(home.path(), "pilatus-6m", &more);
    assert_eq!(json["kinds"][0]["cores_for_a_gigabyte"], 1.6, "not the 0.5 of the camera");
    let remarks = json["remarks"].as_array().expect("remarks");
    assert_eq!(remarks.len(), 1, "{json}");
    let remark = remarks[0].as_str().expect("a sentence");
    for part in
        ["pilatus-6m", "NOT measured but assumed", "camera (raw, files, incompressible)", "--for pilatus-6m"]
    {
        assert!(remark.contains(part), "{part} is missing in: {remark}");
    }
}

/// 156 MB/s reach the storage, not the 622 MB/s of the pixels; all else is answered by the program itself.
#[test]
fn what_is_packed_needs_the_space_that_it_is_written_into() {
    let more = ["--write-rate", "400 MB/s", "--retention", "1 day", "--cores", "4"];
    let ended = run(&[&["size", "pilatus-6m"][..], &more].concat());
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    for part in [
        "and 1 storage server.",
        "1 stream brings 622 MB/s (4.98 Gbit/s), of which ~156 MB/s are written.",
        "A buffer of ~13.5 TB for data that comes in 24 h",
        "10 Gbit/s (assumed: the slowest Ethernet that carries a stream)",
        "156 MB/s of pilatus-6m, packed 4.0 times (assumed",
    ] {
        assert!(ended.stdout.contains(part), "{part} is missing in:\n{}", ended.stdout);
    }
}

#[test]
fn what_was_given_comes_back_as_given() {
    let ended = run(&[
        "size",
        "pco-edge",
        "--write-rate",
        "1 GB/s",
        "--link",
        "10 Gbit/s",
        "--memory",
        "64 GiB",
        "--cores",
        "8",
        "--cores-per-gb",
        "0.2",
    ]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    assert!(
        ended.stdout.contains("64 GiB a recorder") && !ended.stdout.contains("68.7 GB"),
        "{}",
        ended.stdout
    );
    for stage in ["network  ", "processor  ", "memory  ", "storage rate  "] {
        let line = ended.stdout.lines().find(|line| line.trim_start().starts_with(stage)).expect(stage);
        assert!(line.contains(" given"), "{line}");
    }
}

#[test]
fn what_can_not_be_is_refused_with_what_would_help() {
    let home = home();
    let write = |name: &str, text: &str| fs::write(home.path().join(name), text).expect("a file");
    write("typo.toml", "title = \"t\"\n[[instrument]]\nname = \"pilatus-6m\"\ncuont = 2\n");
    write("none.toml", "title = \"t\"\n[[instrument]]\nname = \"pilatus\"\n");
    write("zero.toml", "title = \"t\"\n[[instrument]]\nname = \"pilatus-6m\"\ncount = 0\n");
    let given: &[&str] = &[&NODE[..], &["--write-rate", "1 GB/s"]].concat();
    let with = |more: &[&'static str]| [given, more].concat();
    let cases: [(&str, Vec<&str>, &[&str]); 17] = [
        ("pilatus-6m", vec![], &["give --write-rate, or name a --record"]),
        (
            "pilatus-6m",
            vec!["--record", RECORD, "--target", "B", "--link", "1 GB/s"],
            &["has no rate of ", "give --write-rate"],
        ),
        ("pilatus-6m", vec!["--record", RECORD], &["several targets", "A (/data), B (/other)", "--target"]),
        ("pilatus-6m", vec!["--record", RECORD, "--target", "C"], &["no target `C`", "B (/other)"]),
        ("pilatus-6m", vec!["--record", "gone.sqlite"], &["gone.sqlite: no such record"]),
        ("pilatus", with(&[]), &["no instrument or facility `pilatus`", "did you mean", "pilatus-6m"]),
        ("typo.toml", with(&[]), &["typo.toml", "line 4", "`cuont`", "`count`"]),
        ("zero.toml", with(&[]), &["zero.toml", "line 4", "write 1 to 100000"]),
        ("none.toml", with(&[]), &["none.toml: instrument `pilatus`", "pilatus-6m"]),
        ("gone.toml", with(&[]), &["gone.toml", "No such file"]),
        ("pilatus-6m", with(&["--spare", "1", "--writers", "0"]), &["--writers: write 1 to 1000"]),
        ("pilatus-6m", with(&["--retention", "0 s"]), &["--retention is zero"]),
        ("pilatus-6m", with(&["--check", "9000 days"]), &["--check 9000 days", "shorter"]),
        ("wa105", with(&["--space", "1 PB"]), &[]),
        (
            "wa105-raw",
            with(&["--space", "1 PB", "--copy-out", "20 Gbit/s"]),
            &["no space is enough", "--copy-out"],
        ),
        (
            "pilatus-6m",
            with(&["--writer-rate", "10 MB/s"]),
            &["of pilatus-6m needs 156 MB/s", "20 % kept free", "--writers"],
        ),
        ("jungfrau-4m", with(&[]), &["one stream of jungfrau-4m needs", "of network", "--link"]),
    ];
    for (name, more, parts) in cases {
        let ended = size(home.path(), name, &more);
        if parts.is_empty() {
            assert_eq!(ended.code, Some(0), "a time to keep data makes a space that is enough: {ended:?}");
            continue;
        }
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{name} {more:?}: {ended:?}");
        assert_eq!(ended.stderr.matches("nilometer: ").count(), 1, "one message: {}", ended.stderr);
        for part in parts {
            assert!(ended.stderr.contains(part), "`{part}` is missing in: {}", ended.stderr);
        }
    }
}

#[test]
fn a_number_or_unit_that_makes_no_sense_is_refused() {
    for (option, value, part) in [
        ("--headroom", "95", "from 0 to 90"),
        ("--headroom", "much", "number of percent"),
        ("--link", "10 Gb/s", "Gbit/s"),
        ("--retention", "3 weeks", "days"),
        ("--write-rate", "-1 GB/s", "negative"),
    ] {
        let option = format!("{option}={value}");
        let ended = run(&["size", "wa105", &option]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{option}: {ended:?}");
        assert!(ended.stderr.contains(part), "{option}: {}", ended.stderr);
    }
}
