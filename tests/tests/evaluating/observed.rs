//! Servers observed: `nilometer observe` beside a real campaign, killed and stopped, and the report that names the limit.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use nilometer_model::{Nanos, Phase, Sample};
use nilometer_plan::{Key, Results, TargetEntry};
use nilometer_record::Record;
use nilometer_storage::Calendar;
use nilometer_tests::{
    Ended, FaultyDisk, Running, await_some, may_have_faulty_disks, may_mount, nilometer, one_cell, start,
};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_mins(5);

fn home() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

fn lines(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// An observer that has looked.
fn observe(home: &Path, file: &str, more: &[&str]) -> Running {
    let arguments = [&["observe", "--out", file, "--interval", "100 ms"], more].concat();
    let running = start(home, &arguments);
    await_looks(&home.join(file), 1);
    running
}

fn await_looks(file: &Path, more: usize) {
    let before = lines(file).len();
    await_some("looks", || (lines(file).len() >= before + more).then_some(()));
}

fn killed(observer: Running) {
    assert_eq!(observer.killed().code, None, "a signal ended it");
}

/// When an observer looked, by its file.
fn looks(file: &Path) -> Vec<Nanos> {
    let times = lines(file).into_iter().filter_map(|line| line["look"]["time_us"].as_u64());
    times.map(|micros| Nanos(micros * 1000)).collect()
}

/// A record of one phase that was measured from one moment to another.
fn record_of(home: &Path, started: Nanos, ended: Nanos) -> PathBuf {
    let head = Results {
        title: "A test".into(),
        margin: 5.0,
        repeats: 1,
        targets: vec![TargetEntry {
            path: "/data".into(),
            file_system: "ext4".into(),
            ..TargetEntry::default()
        }],
        cells: one_cell("files"),
        ..Results::default()
    };
    let path = home.join(format!("{}.sqlite", started.0));
    let mut record = Record::create(&path, &head, 0).expect("a new record");
    let key = Key { target: 0, cell: 0, repeat: 0, phase: Phase::Write };
    let wall = ended.since(started);
    let sample = Sample { bytes: 1 << 27, operations: 128, wall, started, ..Sample::new(Nanos(0)) };
    record.add(key, &sample).expect("space");
    path
}

fn report(home: &Path, record: &Path, more: &[&str]) -> Ended {
    let record = record.display().to_string();
    start(home, &[&["report", &record], more].concat()).end(LIMIT)
}

fn observed(home: &Path, record: &Path, files: &[&str]) -> Value {
    let ended = report(home, record, &[files, &["--format", "json"]].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let mut document: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    document["observed"].take()
}

/// 8 MB/s behind a loop device: what it has caught up for is over after two seconds.
const SLOW: u64 = 8_000_000;
const PLAN: &str = "title = \"slow\"\nrepeats = 2\nreserve = \"0 B\"\n[[stage]]\nname = \"files\"\nworkers = 4\n[stage.workload.stream]\n\
                    file_size = \"12 MiB\"\nblock_size = \"1 MiB\"\naccess = \"direct\"\n";

/// On a busy machine its figures may be INVALID.
fn is_of_writing(cell: &Value) -> bool {
    cell["measured"].as_str().is_some_and(|measured| measured.starts_with("files, write"))
}

#[test]
fn the_disk_that_was_the_limit_of_a_campaign_is_named_though_the_observer_was_killed() {
    if !may_have_faulty_disks() {
        return;
    }
    let (disk, home) = (FaultyDisk::ext4_at_rate(256, SLOW), home());
    fs::write(home.path().join("plan.toml"), PLAN).expect("space");
    let observer = observe(home.path(), "server.jsonl", &[]);
    let target = disk.path().display().to_string();
    let evaluate = ["evaluate", &target, "--plan", "./plan.toml", "--record", "r.sqlite"];
    let ended = start(home.path(), &evaluate).end(LIMIT);
    assert!(ended.has_answered(), "{}{}", ended.stdout, ended.stderr);
    await_looks(&home.path().join("server.jsonl"), 1);
    killed(observer);
    let record = home.path().join("r.sqlite");
    let results = nilometer_record::read(&record).expect("a record");
    let device =
        results.targets[0].description.as_ref().and_then(|said| said.device.clone()).expect("a loop");
    let found = observed(home.path(), &record, &["server.jsonl"]);
    assert_eq!(found["machines"][0]["clock"], "it is the machine that measured: one clock");
    let write = found["cells"].as_array().expect("cells").iter().find(|cell| is_of_writing(cell));
    let write = write.expect("it was written");
    let full = write["resources"].as_array().expect("resources").iter().find(|one| one["of"] == *device);
    assert_eq!(full.expect("it was seen")["is_at_limit"], true, "{write:#}");
    let text = report(home.path(), &record, &["server.jsonl"]).stdout;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(&format!("disk {device} of {}: busy ", host())), "{text}");
    let page = report(home.path(), &record, &["server.jsonl", "--format", "html", "--output", "p.html"]);
    assert_eq!(page.code, Some(0), "{}", page.stderr);
    let page = fs::read_to_string(home.path().join("p.html")).expect("a page");
    assert!(page.contains("busiest disk over the time of the run") && page.contains(&device));
}

#[test]
fn a_torn_last_line_is_left_out_with_a_word_and_a_whole_one_that_is_broken_is_refused() {
    let home = home();
    let observer = observe(home.path(), "o.jsonl", &[]);
    let file = home.path().join("o.jsonl");
    await_looks(&file, 22);
    let ended = Calendar::now().time;
    killed(observer);
    let record = record_of(home.path(), looks(&file)[0], ended);
    let name = file.display().to_string();
    let whole = fs::read_to_string(&file).expect("a file");
    fs::write(&file, format!("{whole}{{\"look\":{{\"time_us\":17")).expect("space");
    let found = observed(home.path(), &record, &[&name]);
    let notes = found["machines"][0]["notes"].to_string();
    assert!(notes.contains("the last line of its file is not whole"), "{notes}");
    let seen = &found["cells"][0]["machines"][0];
    assert!(seen["spans"].as_u64().is_some_and(|spans| spans >= 10), "{seen}");
    let said = found["cells"][0]["sentences"][0].as_str().expect("a sentence");
    assert!(
        said.contains("nothing observed was at its limit; nearest was ") || said.contains(" limit"),
        "{said}"
    );
    fs::write(&file, format!("{whole}{{\"look\":{{\"time_us\":17\n")).expect("space");
    let refused = report(home.path(), &record, &[&name]);
    let line = whole.lines().count() + 1;
    let is_named = refused.stderr.contains(&format!("line {line}: ")) && refused.stderr.contains(&name);
    assert!(refused.code == Some(2) && is_named, "{refused:?}");
}

/// Whether one of these looks but the first is at a whole tenth of a second, or a little later.
fn is_even(looks: &[Nanos]) -> bool {
    looks.iter().skip(1).any(|time| time.0 % 100_000_000 < 50_000_000)
}

#[test]
fn an_observer_that_is_stopped_says_what_it_cost_and_one_with_a_duration_ends_itself() {
    let home = home();
    let observer = observe(home.path(), "o.jsonl", &[]);
    let file = home.path().join("o.jsonl");
    await_looks(&file, 3);
    // On a busy machine it is late for some.
    await_some("a look at a whole tenth of a second", || {
        let looks = looks(&file);
        is_even(&looks[..looks.len() - 1]).then_some(())
    });
    observer.signal(Signal::INT);
    let ended = observer.end(LIMIT);
    assert!(ended.code == Some(0) && ended.stderr.contains(" % of one"), "{ended:?}");
    let looks = looks(&file);
    let lines = lines(&file);
    let last = &lines.last().expect("lines")["ended"];
    assert!(last["own_processor_s"].as_f64().is_some_and(|own| own > 0.0), "{last}");
    assert_eq!(last["looks"].as_u64(), Some(lines.len() as u64 - 2), "all but the first and the last line");
    let header = &lines[0];
    assert_eq!(
        (header["format"].as_str(), header["host"].as_str()),
        (Some("nilometer-observed"), Some(&*host()))
    );
    assert!(is_even(&looks[..looks.len() - 1]), "at whole tenths of a second: {looks:?}");
    let piped = ["observe", "--out", "-", "--interval", "100 ms", "--duration", "5 s"];
    let piped = start(home.path(), &piped).end(LIMIT);
    let objects: Vec<Value> =
        piped.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(piped.code == Some(0) && objects.len() >= 4, "{piped:?}");
    assert!(
        objects[0]["processors"].as_u64() >= Some(1) && objects[1]["look"]["disks"].is_object(),
        "{objects:?}"
    );
}

#[test]
fn what_can_not_be_observed_into_is_refused_and_nothing_is_written_over() {
    let home = home();
    let path = |name: &str| home.path().join(name);
    fs::write(path("mine.txt"), "mine").expect("space");
    let running = observe(home.path(), "held.jsonl", &[]);
    for (out, interval, said) in [
        ("mine.txt", "1 s", "mine.txt: exists already"),
        ("held.jsonl", "1 s", "held.jsonl: another observer writes it"),
        ("no/such/place.jsonl", "1 s", "can't make no/such/place.jsonl"),
        ("%d.jsonl", "1 s", "behind % stands h"),
        ("new.jsonl", "1 ms", "write 100 ms to 60 min"),
        ("new.jsonl", "1", "has no unit"),
    ] {
        let ended = start(home.path(), &["observe", "--out", out, "--interval", interval]).end(LIMIT);
        assert!(ended.code == Some(2) && ended.stderr.contains(said), "{out}, {interval}: {ended:?}");
    }
    assert_eq!(fs::read_to_string(path("mine.txt")).expect("it is there"), "mine");
    assert!(!path("new.jsonl").exists());
    await_looks(&path("held.jsonl"), 2);
    drop(running);
}

#[test]
fn files_that_do_not_belong_to_a_run_are_refused_with_the_reason() {
    let home = home();
    let observer = observe(home.path(), "o.jsonl", &[]);
    let started = Calendar::now().time;
    await_looks(&home.path().join("o.jsonl"), 5);
    killed(observer);
    let two_seconds = |from: Nanos| record_of(home.path(), from, from + Nanos::from_millis(2000));
    let record = two_seconds(started);
    let earlier = two_seconds(Nanos(1_795_370_400_000_000_000));
    fs::write(home.path().join("foreign.jsonl"), "{\"a\":1}\n").expect("space");
    let shown = record.display().to_string();
    let offset = format!("{}=+1s", host());
    let both = "the run lasted from 2026-11-22T18:00:00Z to 2026-11-22T18:00:02Z: if a clock was wrong, correct it \
                with --offset";
    for (of, arguments, said) in [
        (&earlier, vec!["o.jsonl"], both),
        (&record, vec!["foreign.jsonl"], "foreign.jsonl: not a file of `nilometer observe`"),
        (&record, vec![shown.as_str()], "it is a record or another SQLite file"),
        (&record, vec!["none.jsonl"], "can't read the observations none.jsonl"),
        (&record, vec!["o.jsonl", "o.jsonl"], "at the same time: give one of them"),
        (&record, vec!["o.jsonl", "--format", "csv"], "choose --format terminal, html, markdown or json"),
        (&record, vec!["o.jsonl", "--offset", "other=+1s"], "--offset other: observed were"),
        (&record, vec!["o.jsonl", "--offset", "+1s"], "such as oss1=+0.35s"),
        (&record, vec!["--offset", &offset], "<OBSERVED>"),
    ] {
        let ended = report(home.path(), of, &arguments);
        assert!(ended.code == Some(2) && ended.stderr.contains(said), "{arguments:?}: {ended:?}");
    }
    let moved = report(home.path(), &record, &["o.jsonl", "--offset", &offset]);
    assert!(moved.code == Some(0) && moved.stdout.contains("+1 s was added"), "{moved:?}");
}

/// A host name of their own is all that observers of one directory need.
#[test]
fn each_of_several_machines_has_a_file_of_its_own() {
    if !may_mount() {
        return;
    }
    let home = home();
    let observers = ["oss1", "oss2"].map(|name| {
        let script = format!(
            "hostname {name} && exec {} observe --out '%h.jsonl' --interval '100 ms'",
            nilometer().display()
        );
        let mut command = Command::new("unshare");
        command.args(["--uts", "sh", "-c", &script]).current_dir(home.path());
        Running::of(command)
    });
    let files = ["oss1.jsonl", "oss2.jsonl"].map(|name| home.path().join(name));
    for file in &files {
        await_looks(file, 1);
    }
    let started = Calendar::now().time;
    for file in &files {
        await_looks(file, 20);
    }
    for observer in observers {
        observer.signal(Signal::TERM);
        assert_eq!(observer.end(LIMIT).code, Some(0));
    }
    let record = record_of(home.path(), started, Calendar::now().time);
    let found = observed(home.path(), &record, &["oss1.jsonl", "oss2.jsonl"]);
    let hosts = [&found["machines"][0]["host"], &found["machines"][1]["host"]];
    assert_eq!(hosts, ["oss1", "oss2"]);
    assert_eq!(found["cells"][0]["machines"].as_array().map(Vec::len), Some(2), "{found:#}");
}
