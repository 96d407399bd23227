//! Loads beside workloads and recordings, workloads that are held to a rate, and cells that are repeated until they are known:
//! by the real program on real directories.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use nilometer_model::{Invalid, Phase};
use nilometer_plan::{Measured, Results};
use nilometer_tests::{
    Ended, FaultyDisk, Running, await_some, camera, may_have_faulty_disks, run_directories, start,
};
use rusqlite::{Connection, OpenFlags};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

const STREAM: &str = "file_size = \"4 MiB\"\nblock_size = \"256 KiB\"\naccess = \"buffered\"\n";

/// A directory with a plan of one stage and a target.
fn home(head: &str, stage: &str) -> TempDir {
    let home = tempfile::tempdir().expect("a temporary directory");
    let plan = format!("title = \"load\"\nreserve = \"0 B\"\n{head}\n[[stage]]\nname = \"files\"\n{stage}");
    fs::write(home.path().join("plan.toml"), plan).expect("space");
    fs::write(home.path().join("camera.toml"), camera(100)).expect("space");
    fs::create_dir(home.path().join("target")).expect("space");
    home
}

fn evaluate(home: &Path) -> Running {
    start(home, &["evaluate", "target", "--plan", "./plan.toml", "--record", "r.sqlite"])
}

fn ended(home: &TempDir) -> Ended {
    let ended = evaluate(home.path()).end(Duration::from_mins(10));
    assert!(ended.has_answered(), "{}{}", ended.stdout, ended.stderr);
    assert_eq!(run_directories(&home.path().join("target")), Vec::<PathBuf>::new());
    ended
}

fn results(home: &TempDir) -> Results {
    nilometer_record::read(&home.path().join("r.sqlite")).expect("a record")
}

/// The samples of the target, without those of the tool by itself.
fn samples(results: &Results) -> Vec<&Measured> {
    results.samples.iter().filter(|measured| measured.key.target == 0).collect()
}

fn load(results: &Results, measured: &Measured) -> u32 {
    results.cells[measured.key.cell].background().map_or(0, |load| load.workers)
}

#[test]
fn what_a_load_did_is_recorded_at_each_level_and_its_cost_is_told() {
    let stage = format!(
        "[stage.workload.stream]\n{STREAM}[stage.background]\nworkers = [0, 1, 2]\n[stage.background.workload.tree]\nlevels = 1\nbranching = 2\nitems = 20\n"
    );
    let home = home("repeats = 3", &stage);
    let said = ended(&home).stdout;
    assert!(said.contains("BESIDE A LOAD: write") && said.contains("alone: "), "{said}");
    let results = results(&home);
    for measured in samples(&results) {
        let done = measured.sample.background;
        assert_eq!(done.is_some(), load(&results, measured) > 0, "{:?}", measured.key);
        assert!(done.is_none_or(|done| done.wall >= measured.sample.wall && done.errors == 0), "{done:?}");
    }
    let died = |measured: &&&Measured| matches!(measured.sample.invalid, Some(Invalid::NoBackground(_)));
    let died: Vec<_> =
        samples(&results).iter().filter(died).map(|measured| measured.sample.invalid.clone()).collect();
    assert!(died.is_empty(), "{died:?}");
    let operations: u64 = samples(&results)
        .iter()
        .filter_map(|measured| measured.sample.background)
        .map(|done| done.operations)
        .sum();
    assert!(operations > 0, "it worked meanwhile");
    let report = start(home.path(), &["report", "r.sqlite", "--format", "json"]).end(Duration::from_mins(1));
    let report: Value = serde_json::from_str(&report.stdout).expect("JSON");
    let beside = report["beside_loads"].as_array().expect("a list");
    assert_eq!(beside.len(), 2, "write and read: {beside:?}");
    // A level counts only if its load did something, which it may not on a busy machine.
    let levels = beside[0]["levels"].as_array().expect("a list").len();
    let sentences = beside[0]["sentences"].as_array().expect("a list");
    let is_idle =
        |sentence: &&Value| sentence.as_str().is_some_and(|text| text.contains("did nothing beside it"));
    assert_eq!(levels + sentences.iter().filter(is_idle).count(), 2, "{beside:?}");
    let check = start(home.path(), &["check", "r.sqlite"]).end(Duration::from_mins(1));
    assert_eq!(check.code, Some(0), "{}{}", check.stdout, check.stderr);
}

#[test]
fn a_load_that_dies_is_named_beside_each_figure() {
    let stage = format!(
        "[stage.workload.stream]\n{STREAM}[stage.background]\nphase = \"write\"\nrate = \"8 MB/s\"\n[stage.background.workload.stream]\n{STREAM}"
    );
    let home = home("repeats = 40", &stage);
    let running = evaluate(home.path());
    let target = home.path().join("target");
    let of_load = working_load(&target);
    fs::remove_dir_all(&of_load).ok();
    let ended = running.end(Duration::from_mins(10));
    assert!(ended.stdout.contains("the load beside it did not last"), "{}{}", ended.stdout, ended.stderr);
    let results = results(&home);
    let why: Vec<String> = samples(&results)
        .iter()
        .filter_map(|measured| match &measured.sample.invalid {
            Some(why @ (Invalid::NoBackground(_) | Invalid::Refused(_))) => Some(why.to_string()),
            _ => None,
        })
        .collect();
    assert!(
        why.iter().any(|why| why.contains("the load beside it did not last: operations failed in write")),
        "{why:?}"
    );
}

/// The directory of the load, as soon as it works there.
fn working_load(target: &Path) -> PathBuf {
    let there = || run_directories(target).into_iter().find(|run| is_of_load(run));
    let of_load = await_some("the directory of the load", there);
    await_some("what the load writes", || of_load.join("n_w0").exists().then(|| of_load.clone()))
}

/// Whether a run's directory is that of a load, which is the second one that the record names.
fn is_of_load(run: &Path) -> bool {
    let record = run.parent().and_then(Path::parent).expect("two above").join("r.sqlite");
    let Ok(connection) = Connection::open_with_flags(record, OpenFlags::SQLITE_OPEN_READ_ONLY) else {
        return false;
    };
    let second =
        connection.query_row("SELECT directory FROM run WHERE id = 2", [], |row| row.get::<_, String>(0));
    second.is_ok_and(|directory| run.ends_with(Path::new(&directory).file_name().unwrap_or_default()))
}

#[test]
fn a_recording_beside_a_load_has_a_verdict_of_its_own() {
    let stage = "[stage.ingest]\ninstrument = \"./camera.toml\"\nduration = \"1 s\"\nbuffer = \"64 MiB\"\nkeep = \"64 MiB\"\n[stage.background]\nworkers = [0, 1]\nrate_iops = 200\n[stage.background.workload.tree]\nlevels = 1\nbranching = 2\nitems = 20\n";
    let home = home("repeats = 1", stage);
    let said = ended(&home).stdout;
    assert!(said.contains("beside 1 worker of tree at 200 operations/s"), "{said}");
    let results = results(&home);
    let states: Vec<_> = samples(&results)
        .iter()
        .filter(|measured| measured.key.phase == Phase::Ingest)
        .map(|measured| {
            let ingest = measured.sample.ingest.as_ref().expect("a recording");
            assert_eq!(ingest.condition, "", "a load is no condition");
            (ingest.load.starts_with("beside 1 worker"), measured.sample.background.is_some())
        })
        .collect();
    assert!(states.contains(&(false, false)) && states.contains(&(true, true)), "{states:?}");
}

/// An instrument of 10 MB/s beside files that are written at a rate, so that each phase lasts for a while.
const BESIDE_CAMERA: &str = "rate = \"16 MB/s\"\n[stage.workload.stream]\nfile_size = \"8 MiB\"\nblock_size = \"256 KiB\"\naccess = \"buffered\"\n\
                             [stage.background]\ncount = [0, 1, 2]\n[stage.background.ingest]\ninstrument = \"./camera.toml\"\nrate = \"10 Hz\"\n\
                             buffer = \"64 MB\"\nkeep = \"64 MB\"\n";

/// Frames of the load that came and that were lost, of the samples at a level.
fn frames_at(results: &Results, level: u32) -> Vec<(u64, u64)> {
    let of_level = samples(results).into_iter().filter(|measured| load(results, measured) == level);
    let frames = of_level.filter_map(|measured| measured.sample.background?.frames);
    frames.map(|frames| (frames.due, frames.lost)).collect()
}

/// Frames that came in a second in which the load was there, at a level.
fn rate_at(results: &Results, level: u32) -> f64 {
    let of_level = samples(results).into_iter().filter(|measured| load(results, measured) == level);
    let done: Vec<_> = of_level.filter_map(|measured| measured.sample.background).collect();
    let frames: u64 = done.iter().filter_map(|done| done.frames).map(|frames| frames.due).sum();
    frames as f64 / done.iter().map(|done| done.wall.seconds()).sum::<f64>()
}

#[test]
fn an_instrument_beside_a_workload_is_recorded_at_levels_and_has_a_verdict() {
    let home = home("repeats = 2", BESIDE_CAMERA);
    let said = ended(&home).stdout;
    assert!(said.contains("BESIDE A LOAD: write") && said.contains("the recorder stored "), "{said}");
    let results = results(&home);
    let frames = [0, 1, 2].map(|level| frames_at(&results, level));
    assert!(frames[0].is_empty(), "{frames:?}");
    // Two phases, twice. How long each is depends on how busy the machine is.
    let rates = [1, 2].map(|level| rate_at(&results, level));
    assert!(frames[1].len() == 4 && rates[0] > 7.0 && rates[1] > rates[0], "{rates:?}: {frames:?}");
    let report = start(home.path(), &["report", "r.sqlite", "--format", "json"]).end(Duration::from_mins(1));
    let report: Value = serde_json::from_str(&report.stdout).expect("JSON");
    let levels = &report["beside_loads"][0]["levels"];
    assert_eq!(levels[0]["load"], "camera at 10 Hz at 10 MB/s", "{levels}");
    let known = [0, 1].map(|level| levels[level]["load_bytes_per_second"].as_f64());
    // On a busy machine no phase of a level may be valid.
    for (level, rate) in known.iter().enumerate() {
        assert_eq!(
            levels[level]["load_frames_due"].as_u64().is_some_and(|due| due > 0),
            rate.is_some(),
            "{levels}"
        );
    }
    if let [Some(one), Some(two)] = known {
        assert!(two > one, "{levels}");
    }
    let check = start(home.path(), &["check", "r.sqlite"]).end(Duration::from_mins(1));
    assert_eq!(check.code, Some(0), "{}{}", check.stdout, check.stderr);
}

/// The disk takes 16 MB/s, and the instrument delivers 100.
#[test]
fn an_instrument_that_loses_frames_beside_a_workload_is_named() {
    if !may_have_faulty_disks() {
        return;
    }
    let disk = FaultyDisk::ext4_at_rate(2048, 16_000_000);
    let stage = BESIDE_CAMERA
        .replace("[0, 1, 2]", "[0, 1]")
        .replace("10 Hz", "100 Hz")
        .replace("\"64 MB\"", "\"16 MB\"");
    let home = home("repeats = 2", &stage);
    let target = disk.path();
    let target = target.to_str().expect("plain letters");
    let arguments = ["evaluate", target, "--plan", "./plan.toml", "--record", "r.sqlite"];
    let ended = start(home.path(), &arguments).end(Duration::from_mins(10));
    assert!(ended.has_answered(), "{}{}", ended.stdout, ended.stderr);
    let results = results(&home);
    let frames = frames_at(&results, 1);
    assert!(frames.iter().map(|(_, lost)| lost).sum::<u64>() > 0, "{frames:?}");
    let valid = samples(&results)
        .into_iter()
        .filter(|measured| load(&results, measured) == 1 && measured.sample.invalid.is_none());
    let lost = valid.filter_map(|measured| measured.sample.background?.frames).any(|frames| frames.lost > 0);
    // On a machine that is busy with other things the figures may be INVALID.
    assert_eq!(ended.stdout.contains("beside it loses frames: "), lost, "{}", ended.stdout);
}

/// A camera of 10 MB/s that is recorded, beside none, one and two others that deliver a frame every half second.
const CAMERA_BESIDE: &str = "[stage.ingest]\ninstrument = \"./camera.toml\"\nrate = \"10 Hz\"\nduration = \"2 s\"\nbuffer = \"64 MB\"\n\
                             keep = \"64 MB\"\n[stage.background]\ncount = [0, 1, 2]\n[stage.background.ingest]\n\
                             instrument = \"./camera.toml\"\nrate = \"2 Hz\"\nbuffer = \"16 MB\"\nkeep = \"16 MB\"\n";

#[test]
fn an_instrument_beside_recordings_is_recorded_at_levels_and_all_have_verdicts() {
    let home = home("repeats = 2", CAMERA_BESIDE);
    let said = ended(&home).stdout;
    assert!(said.contains("beside camera at 2 Hz at 2 MB/s"), "{said}");
    let results = results(&home);
    let frames = [0, 1, 2].map(|level| frames_at(&results, level));
    assert!(frames[0].is_empty() && frames[1].len() == 2 && frames[2].len() == 2, "{frames:?}");
    // Two a second of each, some of which may be counted before.
    let rates = [1, 2].map(|level| rate_at(&results, level));
    assert!(rates[0] >= 1.0 && rates[1] > rates[0], "{rates:?}: {frames:?}");
    for measured in samples(&results) {
        let ingest = measured.sample.ingest.as_ref().expect("a recording");
        assert_eq!(ingest.load.is_empty(), load(&results, measured) == 0, "{}", ingest.load);
        // Its own frames are due when it begins, however long the load took to.
        assert!(ingest.due >= 19 && ingest.due <= 21, "{} due in two seconds of 10 Hz", ingest.due);
    }
    let report = start(home.path(), &["report", "r.sqlite", "--format", "json"]).end(Duration::from_mins(1));
    let report: Value = serde_json::from_str(&report.stdout).expect("JSON");
    let verdicts = report["verdicts"].as_array().expect("a list");
    assert_eq!(verdicts.len(), 1, "of the camera that is recorded: {verdicts:?}");
    // Only of recordings that may be used is it told what was lost beside them.
    let is_usable = |measured: &&Measured| load(&results, measured) > 0 && measured.sample.invalid.is_none();
    let told = verdicts[0]["more"].to_string();
    let is_told = told.contains("; the load beside it: ");
    assert_eq!(is_told, samples(&results).iter().any(is_usable), "{told}");
    let check = start(home.path(), &["check", "r.sqlite"]).end(Duration::from_mins(1));
    assert_eq!(check.code, Some(0), "{}{}", check.stdout, check.stderr);
}

#[test]
fn what_an_instrument_that_is_a_load_can_not_have_is_refused() {
    for (from, to, part) in [
        ("count = [0, 1, 2]", "workers = 2", "background: workers: an instrument has none; write count"),
        ("count = [0, 1, 2]", "count = 70", "background: count = 70: write 0 to 64"),
        ("keep = \"64 MB\"", "duration = \"1 s\"", "background: duration: the recording of a load"),
        ("./camera.toml", "none-such", "background: no instrument `none-such`"),
        ("[stage.background.ingest]\ninstrument", "#", "background: write the load"),
    ] {
        let stage = BESIDE_CAMERA.replacen(from, to, 1);
        assert_ne!(stage, BESIDE_CAMERA, "{from}");
        let stage = if to == "#" { stage.split("# =").next().unwrap_or_default().to_owned() } else { stage };
        let home = home("", &stage);
        let ended = evaluate(home.path()).end(Duration::from_mins(1));
        assert!(ended.code == Some(2) && ended.stderr.contains(part), "{part}: {}", ended.stderr);
        assert!(!home.path().join("r.sqlite").exists(), "nothing is started");
    }
}

#[test]
fn a_workload_that_is_held_to_a_rate_takes_no_less_time_than_that() {
    let home =
        home("repeats = 1", &format!("workers = 2\nrate = \"16 MB/s\"\n[stage.workload.stream]\n{STREAM}"));
    ended(&home);
    let results = results(&home);
    let written = samples(&results)
        .into_iter()
        .find(|measured| measured.key.phase == Phase::Write)
        .expect("it was written");
    // Two files of 4 MiB; the last block is due one block before the end.
    let due = (2.0 * 4.0 - 0.5) * f64::from(1 << 20) / 16e6;
    assert!(written.sample.wall.seconds() >= due, "{} s, due {due} s", written.sample.wall.seconds());
    assert!(written.sample.bytes == 8 << 20 && written.sample.invalid != Some(Invalid::Errors));
}

/// Runs this campaign until a sample on its target is valid. A busy machine may spoil all, and then no more repeats
/// help.
fn results_with_a_valid_sample(head: &str, stage: &str) -> Results {
    for _ in 0..50 {
        let home = home(head, stage);
        ended(&home);
        let results = results(&home);
        if samples(&results).iter().any(|measured| measured.sample.invalid.is_none()) {
            return results;
        }
    }
    panic!("no sample is valid in 50 campaigns");
}

#[test]
fn cells_are_repeated_until_they_are_known_or_as_often_as_is_allowed() {
    let stage = format!("[stage.workload.stream]\n{STREAM}");
    let results = results_with_a_valid_sample("repeats = 2\nprecision = 0.1\nrepeats_most = 4", &stage);
    let repeats = samples(&results).iter().map(|measured| measured.key.repeat).max();
    assert_eq!(repeats, Some(3), "no file is written four times at the same rate, to a thousandth");
    let noted = results.events.iter().any(|event| event.what.contains("measured 2 more rounds, of at most "));
    assert!(noted, "{:?}", results.events);
}

#[test]
fn an_interrupted_load_leaves_nothing() {
    let stage = format!(
        "[stage.workload.stream]\n{STREAM}[stage.background]\n[stage.background.workload.stream]\n{STREAM}"
    );
    let home = home("repeats = 900", &stage);
    let running = evaluate(home.path());
    let target = home.path().join("target");
    working_load(&target);
    running.signal(Signal::INT);
    let ended = running.end(Duration::from_mins(5));
    assert_eq!(ended.code, Some(1), "{}{}", ended.stdout, ended.stderr);
    assert_eq!(run_directories(&target), Vec::<PathBuf>::new());
}
