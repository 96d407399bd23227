//! Lists of a recording stage become a matrix of recordings, and nonsense is refused with its place.

use super::super::{ResolvedPlan, parse_with};
use super::*;

const PLAN: &str = r#"
title = "a test"
repeats = 2
[[stage]]
name = "images"
[stage.ingest]
instrument = "camera"
frames = 100
rate = ["1 Hz", "50 Hz"]
"#;

fn camera(name: &str) -> Result<Instrument, String> {
    let data = match name {
        "camera" => "incompressible",
        "detector" => "diffraction",
        "packets" | "modules" => {
            let [telescope, detector] = [
                include_str!("../../../../instruments/fila10g-1g.toml"),
                include_str!("../../../../instruments/jungfrau-4m.toml"),
            ];
            let text = if name == "packets" { telescope } else { detector };
            return Instrument::parse(text, name).map_err(|error| error.to_string());
        }
        _ => return Err(format!("no instrument `{name}`: write one of camera, detector")),
    };
    let text = format!(
        "name = \"{name}\"\ntitle = \"t\"\nsource = \"s\"\nshape = [10, 20]\npixel = \"int32\"\nframe_rate = \"5 Hz\"\n\
         data = \"{data}\"\n"
    );
    Instrument::parse(&text, name).map_err(|error| error.to_string())
}

fn read(text: &str, scale: f64) -> Result<ResolvedPlan, String> {
    parse_with(text, "my.toml", scale, &camera).map_err(|error| error.to_string())
}

#[test]
fn lists_make_a_matrix_of_recordings() {
    let plan = read(PLAN, 1.0).expect("a valid plan");
    let told: Vec<_> = plan.recordings().map(|(_, run)| run.to_string()).collect();
    assert_eq!(
        told,
        [
            "camera at 1 Hz at 800 B/s for 100 s, buffer 1 GiB",
            "camera at 50 Hz at 40 kB/s for 2 s, buffer 1 GiB"
        ]
    );
    let run = |plan: &ResolvedPlan, at: usize| plan.cells[at].as_recording().expect("a recording").clone();
    assert_eq!((plan.cells[0].stage.as_str(), run(&plan, 0).repeats), ("images", 2));
    assert_eq!((run(&plan, 1).instrument.name.as_str(), plan.workloads().count()), ("camera", 0));
    let half = read(PLAN, 0.5).expect("a valid plan");
    assert_eq!(run(&half, 1).duration, Nanos::from_millis(1000), "as many frames less");
    // 51 frames of 800 B and a sixteenth, instead of 2 GiB.
    assert_eq!([run(&plan, 1).keep, run(&half, 1).keep], [Bytes(2 << 30), Bytes(43_350)]);
    let hundredth = read(PLAN, 0.01).expect("a valid plan");
    assert_eq!(run(&hundredth, 1).duration, Nanos::from_millis(400), "enough to show something");
    let more =
        format!("{PLAN}format = [\"raw\", \"cbf\"]\nbuffer = [\"1 MB\", \"2 MB\"]\nshape = [30, 40]\n");
    let more = read(&more, 1.0).expect("a valid plan");
    let names: std::collections::BTreeSet<_> = more.cells.iter().map(ToString::to_string).collect();
    assert_eq!((more.cells.len(), names.len(), run(&more, 0).instrument.shape), (8, 8, vec![30, 40]));
    let files = PLAN.replace("rate = [\"1 Hz\", \"50 Hz\"]", "format = \"hdf5\"\nframes_per_file = [1, 10]");
    let files = read(&files, 1.0).expect("a valid plan");
    let kept: Vec<_> = files.recordings().map(|(_, run)| run.instrument.recording.frames_per_file).collect();
    assert_eq!(kept, [Some(1), Some(10)]);
    assert!(
        files.cells[1].to_string().starts_with("camera as hdf5, 10 frames a file at"),
        "{}",
        files.cells[1]
    );
    let encoded = PLAN.replace("rate = [\"1 Hz\", \"50 Hz\"]", "format = \"cbf\"\nencoders = [1, 2]");
    let encoded = read(&encoded, 1.0).expect("a valid plan");
    let encoders: Vec<_> = encoded.recordings().map(|(_, run)| run.instrument.recording.encoders).collect();
    assert_eq!(encoders, [Some(1), Some(2)]);
    assert!(
        encoded.cells[1].to_string().starts_with("camera as cbf, encoded by 2 at"),
        "{}",
        encoded.cells[1]
    );
}

#[test]
fn readers_of_several_rates_make_a_matrix() {
    let several = "readers = [{ count = 0 }, { count = 1, rate = \"100 kB/s\" }, { count = 1 }]";
    let plan = PLAN.replace("rate = [\"1 Hz\", \"50 Hz\"]", several);
    let plan = read(&plan, 1.0).expect("a valid plan");
    let names: Vec<_> = plan.recordings().map(|(_, run)| run.to_string()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(!names[0].contains("reader") && names[1].ends_with(", 1 reader at 100 kB/s each"), "{names:?}");
    assert!(names[2].ends_with(", 1 reader"), "{names:?}");
}

#[test]
fn chunks_lanes_and_ways_of_reading_make_a_matrix() {
    let more = "format = \"hdf5\"\nchunk = [\"10x20\", \"5x5\"]\ncompression = [\"none\", \"bslz4\"]\nwriters = [1, 2]\n\
                read = [\"frames\", \"line\"]\ngoal = \"limit\"";
    let plan = PLAN.replace("rate = [\"1 Hz\", \"50 Hz\"]", more);
    let plan = read(&plan, 1.0).expect("a valid plan");
    let names: std::collections::BTreeSet<_> = plan.cells.iter().map(ToString::to_string).collect();
    assert_eq!((plan.cells.len(), names.len()), (16, 16), "{names:?}");
    let last = plan.cells.last().expect("there are some");
    assert!(last.to_string().starts_with("camera as hdf5 in 5x5, bslz4, 2 lanes at full speed"), "{last}");
    assert!(last.to_string().ends_with("read by line"), "{last}");
    let phases: Vec<_> = last.measured_phases().iter().map(|phase| phase.name()).collect();
    assert_eq!(phases, ["ingest", "write", "read"]);
}

#[test]
fn compressibility_and_stripes_make_a_matrix() {
    let more = "compressibility = [2, 8.5]\nstripe_count = [1, 4]\nstripe_size = [\"1 MiB\", \"4 MiB\"]";
    let plan = PLAN.replace("rate = [\"1 Hz\", \"50 Hz\"]", more).replace("\"camera\"", "\"detector\"");
    let plan = read(&plan, 1.0).expect("a valid plan");
    let names: std::collections::BTreeSet<_> = plan.cells.iter().map(ToString::to_string).collect();
    assert_eq!((plan.cells.len(), names.len()), (8, 8), "{names:?}");
    let last = plan.cells[7].as_recording().expect("a recording");
    assert_eq!(last.label(), "detector, compressibility 8.5, stripe count 4, stripes of 4 MiB");
    assert_eq!(last.instrument.data.compressibility, Some(8.5));
    assert_eq!(last.swept.layout().to_string(), "stripe count 4 of 4 MiB");
    let kept = serde_json::to_string(last).expect("a record keeps it");
    assert_eq!(&serde_json::from_str::<RecordingRun>(&kept).expect("it is read again"), last);
}

#[test]
fn packets_are_recorded_in_chunks_of_several_sizes() {
    let sized_of = |instrument: &str, more: &str| {
        let sized = format!("frames = 100\nchunk_size = [\"16 MB\", \"64 MB\"]\n{more}");
        read(&PLAN.replace("frames = 100", &sized).replace("\"camera\"", &format!("\"{instrument}\"")), 1.0)
    };
    let sized = |more: &str| sized_of("packets", more);
    let plan = sized("").expect("a valid plan");
    let labels: std::collections::BTreeSet<_> = plan.recordings().map(|(_, run)| run.label()).collect();
    assert_eq!(labels.len(), 4, "{labels:?}");
    assert!(labels.iter().any(|label| label.ends_with(", in chunks of 64 MB")), "{labels:?}");
    for (more, part) in [
        ("goal = \"limit\"", "at full speed the oldest frames are overwritten"),
        ("keep = \"8 kB\"", "removes its oldest frames has no chunks"),
    ] {
        let why = sized(more).expect_err(more);
        assert!(
            why.starts_with("my.toml:5: ") && why.contains(": chunk_size: ") && why.contains(part),
            "{why}"
        );
    }
    let why = sized_of("camera", "").expect_err("no packets");
    assert!(why.contains("chunk_size: only packets are recorded in chunks"), "{why}");
    let why = sized_of("modules", "format = \"hdf5\"").expect_err("a file of HDF5");
    assert!(why.contains("chunk_size: files of HDF5 have frames_per_file"), "{why}");
}

#[test]
fn all_writers_share_one_file_of_hdf5_and_no_chunks_of_it() {
    let stored = |storing: &str| {
        let more = format!("frames = 100\nformat = \"hdf5\"\nstoring = \"{storing}\"");
        read(&PLAN.replace("frames = 100", &more), 1.0)
    };
    let plan = stored("shared").expect("a valid plan");
    assert!(plan.recordings().all(|(_, run)| run.is_one_dataset()));
    let why = stored("scattered").expect_err("HDF5 has no such files");
    assert!(why.contains("my.toml:5") && why.contains("\"shared\" for one file"), "{why}");
}

#[test]
fn what_makes_no_sense_is_refused_with_its_place() {
    for (from, to, parts) in [
        (
            "\"camera\"",
            "\"camra\"",
            &["my.toml:5: stage `images`: no instrument `camra`", "one of camera"][..],
        ),
        ("frames = 100", "", &["my.toml:5", "frames = N or duration"]),
        ("frames = 100", "frames = 0", &["my.toml:5", "more than 0"]),
        ("frames = 100", "frames = 19", &["my.toml:5", "frames = 19: too short", "at least 20 s"]),
        ("frames = 100", "duration = \"1 ms\"", &["my.toml:5", "duration = \"1 ms\": too short"]),
        ("frames = 100", "frames = 1\nduration = \"1 s\"", &["my.toml:5", "one of them"]),
        ("\"1 Hz\"", "\"0 Hz\"", &["my.toml:5", "more than 0 Hz"]),
        ("\"1 Hz\"", "\"1 fps\"", &["line 9", "the unit `fps`"]),
        ("frames = 100", "frames = 100\nbuffer = \"1 kB\"", &["my.toml:5", "two frames of 800 B"]),
        ("frames = 100", "frames = 100\nformat = \"tiff\"", &["line 9", "`raw`, `cbf`, `hdf5`"]),
        (
            "frames = 100",
            "frames = 100\nread = \"line\"",
            &["my.toml:5", "it works only with recordings in HDF5"],
        ),
        ("frames = 100", "frames = 100\nread = \"lines\"", &["line 9", "`line`"]),
        ("frames = 100", "frames = 100\nwriters = 0", &["my.toml:5", "writers: write 1 to 64"]),
        ("frames = 100", "frames = 100\ngoal = \"search\"", &["line 9", "`limit`"]),
        (
            "frames = 100",
            "frames = 100\nformat = \"hdf5\"\nchunk = \"11x20\"",
            &["my.toml:5", "larger than a frame"],
        ),
        ("frames = 100", "frames = 100\nencoders = 2", &["my.toml:5", "frames are written as they are"]),
        ("frames = 100", "frames = 100\nformat = \"cbf\"\nencoders = 0", &["my.toml:5", "write 1 to 1024"]),
        ("frames = 100", "frames = 100\nreaders = { copy = true }", &["my.toml:5", "--copy-to"]),
        ("frames = 100", "frames = 100\nstripe_count = [1, 0]", &["my.toml:5", "more than 0"]),
        ("frames = 100", "frames = 100\nstripe_count = -1", &["line 9", "`-1`"]),
        (
            "frames = 100",
            "frames = 100\nstripe_size = \"1 MiB\"\nonto = \"nothing\"",
            &["my.toml:5", "nothing is stored"],
        ),
        (
            "[stage.ingest]",
            "stripe_count = 2\n[stage.ingest]",
            &["my.toml:5", "stripe_count: write it in [stage.ingest]"],
        ),
        (
            "frames = 100",
            "frames = 100\ncompressibility = 3",
            &["my.toml:5", "incompressible data of camera have none"],
        ),
        ("frames = 100", "frames = 100\ncompressibility = [2, 0]", &["my.toml:5", "above 0"]),
        ("instrument", "instrumnt", &["line 7", "`instrument`"]),
        ("[stage.ingest]", "workers = 2\n[stage.ingest]", &["my.toml:5", "a recording has none"]),
        (
            "[stage.ingest]",
            "[stage.workload.small_writes]\ntotal = \"1 MB\"\n[stage.ingest]",
            &["my.toml:5", "one of them"],
        ),
    ] {
        let text = PLAN.replace(from, to);
        assert_ne!(text, PLAN);
        let error = read(&text, 1.0).expect_err(to);
        assert!(parts.iter().all(|part| error.contains(part)), "{parts:?} in {error}");
    }
    let neither = PLAN.split("[stage.ingest]").next().expect("a head");
    assert!(read(neither, 1.0).expect_err("nothing is measured").contains("[stage.ingest]"));
}
