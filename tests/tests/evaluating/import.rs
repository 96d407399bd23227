//! `nilometer import` from outside: fio runs for real, published tables give verdicts, and what is none of these is refused and
//! leaves no record. What IOR, mdtest and elbencho print is replayed in the unit tests of the record.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use nilometer_tests::{Ended, root, start, tool};
use serde_json::Value;

fn nilometer_in(home: &Path, arguments: &[&str]) -> Ended {
    start(home, arguments).end(Duration::from_mins(2))
}

/// A published table as a record, with more options.
fn published(home: &Path, name: &str, options: &[&str]) -> String {
    let table = root().join("reference").join(name).with_added_extension("csv");
    let record = format!("{name}.sqlite");
    let table = table.display().to_string();
    let mut arguments = vec!["import", &table, "--record", &record];
    arguments.extend(options);
    let ended = nilometer_in(home, &arguments);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    record
}

fn report(home: &Path, record: &str) -> Value {
    let ended = nilometer_in(home, &["report", record, "--format", "json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    serde_json::from_str(&ended.stdout).expect("JSON")
}

/// The letter of a target.
fn letter(report: &Value, path: &str) -> String {
    let targets = report["targets"].as_array().expect("a list");
    let found = targets.iter().find(|target| target["path"] == path);
    found.unwrap_or_else(|| panic!("no {path}"))["letter"].as_str().expect("a text").to_owned()
}

/// What is said of two targets in a stage: the ratio of the first to the second, its interval, and the answer.
fn said(home: &Path, record: &str, stage: &str, first: &str, second: &str) -> Value {
    let report = report(home, record);
    let [first, second] = [first, second].map(|path| letter(&report, path));
    let pairs = report["comparisons"].as_array().expect("a list");
    let is_it =
        |pair: &&Value| pair["stage"] == stage && pair["first"] == *first && pair["second"] == *second;
    pairs.iter().find(is_it).unwrap_or_else(|| panic!("{stage}: {first} and {second}: {pairs:?}")).clone()
}

#[test]
fn fios_own_output_is_reported_and_compared() {
    let Some(mut fio) = tool("fio") else { return };
    drop(fio.arg("--version").stdout(Stdio::null()).status());
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path();
    for (name, format) in [("1.json", "json"), ("2.json", "json+"), ("3.json", "json")] {
        let ended = Command::new("fio")
            .args(["--name=writes", "--size=8M", "--bs=64k", "--rw=write", "--numjobs=2", "--end_fsync=1"])
            .args([
                format!("--output-format={format}"),
                format!("--output={name}"),
                "--directory=.".to_owned(),
            ])
            .current_dir(path)
            .status();
        assert!(ended.expect("it starts").success(), "{name}");
    }
    let ended = nilometer_in(
        path,
        &["import", "1.json", "2.json", "3.json", "--target", "/here", "--record", "fio.sqlite"],
    );
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("3 samples of 1 cell on 1 target"), "{}", ended.stderr);
    let report = report(path, "fio.sqlite");
    let figure = &report["figures"][0];
    assert_eq!((figure["phase"].as_str(), figure["valid"].as_u64()), (Some("write"), Some(3)), "{figure}");
    assert!(figure["latency"]["p99_s"].as_f64().is_some_and(|p99| p99 > 0.0), "{figure}");
    // fio says itself what all its jobs wrote in which time.
    let text = fs::read_to_string(path.join("1.json")).expect("fio's document");
    let document: Value = serde_json::from_str(&text[text.find('{').expect("JSON")..]).expect("JSON");
    let jobs = document["jobs"].as_array().expect("a list");
    let bytes: u64 = jobs.iter().filter_map(|job| job["write"]["io_bytes"].as_u64()).sum();
    assert_eq!(bytes, 16 << 20);
    let once = nilometer_in(path, &["import", "1.json", "--target", "/here", "--record", "once.sqlite"]);
    assert_eq!(once.code, Some(0), "{once:?}");
    let compared = nilometer_in(path, &["compare", "once.sqlite", "fio.sqlite"]);
    assert_eq!(compared.code, Some(0), "{compared:?}");
    let again = nilometer_in(path, &["import", "1.json", "--record", "once.sqlite"]);
    assert!(again.code == Some(2) && again.stderr.contains("exists already"), "{again:?}");
}

/// The claims of studies that their own figures do not carry, and what the figures say: docs/studies.md.
#[test]
fn published_figures_decide_and_not_what_was_concluded_of_them() {
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path();
    let uci = published(path, "uci-2014", &[]);
    let make = said(path, &uci, "make bzImage", "Glfs2", "FhGFS2");
    let cell = make["cells"].as_array().expect("a list");
    let eight = cell
        .iter()
        .find(|cell| cell["cell"].as_str().is_some_and(|name| name.contains("-j8, 9")))
        .expect("-j8");
    assert_eq!(eight["answer"], "faster", "kernel make at -j8 is no win for FhGFS: {eight}");
    let dd = said(path, &uci, "dd write", "Glfs2", "FhGFS2");
    let ratio = dd["ratio"].as_f64().expect("a ratio");
    assert!((1.5..1.9).contains(&ratio), "not almost twice as fast: {dd}");
    let nus = published(path, "nus-gpfs", &[]);
    let copies = said(path, &nus, "dd copy from the local disk", "GPFS (InfiniBand)", "NFS (1 GbE)");
    let ratio = copies["ratio"].as_f64().expect("a ratio");
    assert!((4.0..4.5).contains(&ratio), "not ten times: {copies}");
    assert_eq!(copies["answer"], "undecided", "four sizes were copied once each: {copies}");
    let pandata = published(path, "pandata-2012", &["--any-params"]);
    let removal = said(path, &pandata, "mdtest tree removal", "Lustre 1.8 (Diamond)", "GPFS (SLS)");
    assert_eq!(removal["answer"], "faster", "{removal}");
    let wa105 = published(path, "wa105-2016", &[]);
    let terminal = nilometer_in(path, &["report", &wa105]);
    assert_eq!(terminal.code, Some(0), "{terminal:?}");
    assert!(terminal.stdout.contains("462 MB/s"), "{}", terminal.stdout);
}

#[test]
fn what_can_not_be_taken_leaves_no_record() {
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path();
    fs::write(path.join("good.csv"), "source,system,test,params,metric,value,unit\ns,A,t,,time,3,s\n")
        .expect("space");
    fs::write(path.join("bad.csv"), "source,system,test,params,metric,value,unit\ns,A,t,,time,3\n")
        .expect("space");
    fs::write(path.join("foreign"), [0xff, 0xfe, 0x00]).expect("space");
    for (file, part) in [
        ("bad.csv", "bad.csv:2: 6 columns, and the header has 7"),
        ("foreign", "foreign:1: not UTF-8 text"),
        ("none", "none: can't read it"),
        ("/dev/null", "not a regular file"),
    ] {
        let ended = nilometer_in(path, &["import", "good.csv", file, "--record", "r.sqlite"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        assert!(ended.stderr.contains(part), "`{part}` is missing in: {}", ended.stderr);
        assert!(!path.join("r.sqlite").exists(), "{file}");
    }
    let hostile = "source,system,test,params,metric,value,unit\ns,\"a'); DROP TABLE sample; --\",\"<script>\",,time,3,s\n";
    fs::write(path.join("hostile.csv"), hostile).expect("space");
    let ended = nilometer_in(path, &["import", "hostile.csv", "--record", "h.sqlite"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let page = nilometer_in(path, &["report", "h.sqlite", "--format", "html", "-o", "-"]);
    assert!(page.code == Some(0) && !page.stdout.contains("<script>"), "names are text");
}
