//! A purchase: three offers against criteria that were fixed before, the page, and a record that somebody else checks.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use nilometer_tests::{
    Ended, FaultyDisk, FileSystem, Running, await_some, camera, command_of, may_have_faulty_disks, nilometer,
    start,
};
use serde_json::Value;

/// Frames of 1 MB, so many a second; files that are large enough for each to be synced.
const FRAME_RATE: u64 = 20;
const FILES: &str = "recording.frames_per_file = 68\n";
/// Bytes a second of a disk that is far below what offers are asked for.
const THROTTLED: u64 = 12_000_000;
/// Those of the others: far above it.
const SOUND: u64 = 60_000_000;

const OFFERS: &str = r#"
title = "Storage for a camera"
repeats = 2
reserve = "0 B"
[accept]
price = ["100 EUR", "80 EUR", "60 EUR"]
[[accept.instrument]]
name = "./camera.toml"
duration = "5 s"
buffer = "64 MiB"
keep = "100 MB"
rate = "20 MB/s"
longest_stall = "3 s"
sync_flushes = true
"#;

fn run(home: &Path, arguments: &[&str]) -> Ended {
    start(home, arguments).end(Duration::from_mins(10))
}

fn home_with(plan: &str) -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("a temporary directory");
    fs::write(home.path().join("offers.toml"), plan).expect("space");
    fs::write(home.path().join("camera.toml"), camera(FRAME_RATE) + FILES).expect("space");
    home
}

/// What was found of an offer: the answer, and that of the criterion whose demand contains this.
fn found<'a>(report: &'a Value, offer: usize, demand: &str) -> (&'a str, &'a str) {
    let offer = &report["acceptance"][offer];
    let criteria = offer["criteria"].as_array().expect("criteria");
    let contains =
        |criterion: &&Value| criterion["demand"].as_str().is_some_and(|text| text.contains(demand));
    let criterion = criteria.iter().find(contains).expect(demand);
    (offer["answer"].as_str().expect("an answer"), criterion["answer"].as_str().expect("an answer"))
}

#[test]
fn a_throttled_offer_and_one_that_does_not_sync_fail_and_others_can_check_that() {
    if !may_have_faulty_disks() {
        return;
    }
    let home = home_with(OFFERS);
    let (sound, slow) = (FaultyDisk::ext4_at_rate(1000, SOUND), FaultyDisk::ext4_at_rate(1000, THROTTLED));
    let liar = FaultyDisk::ext4_without_barriers_at_rate(1000, SOUND);
    let offers = [&sound, &slow, &liar].map(FaultyDisk::path);
    let names = offers.each_ref().map(|path| path.to_str().expect("a plain name"));
    let evaluate =
        ["evaluate", names[0], names[1], names[2], "--plan", "./offers.toml", "--record", "o.sqlite"];
    let ended = run(home.path(), &evaluate);
    assert_eq!(ended.code, Some(3), "two offers fail: {}{}", ended.stdout, ended.stderr);
    assert!(
        ended.stdout.contains("FAIL") && ended.stderr.contains("FAIL"),
        "{}{}",
        ended.stdout,
        ended.stderr
    );

    let report = run(home.path(), &["report", "o.sqlite", "--format", "json"]);
    let report: Value = serde_json::from_str(&report.stdout).expect("JSON");
    // A busy machine may leave a question open, but no answer may be wrong.
    let [rate, flushes] = ["at least", "flushes"].map(|demand| found(&report, 0, demand).1);
    assert!(rate != "not met" && flushes != "not met", "{}", report["acceptance"]);
    // Then it may lose frames in earnest: its own slowness is what was measured.
    let lost = ["lost", "stall"].map(|demand| found(&report, 0, demand).1).contains(&"not met");
    assert!(found(&report, 0, "lost").0 != "FAIL" || lost, "{}", report["acceptance"]);
    let (answer, rate) = found(&report, 1, "at least");
    assert!(answer != "PASS" && rate != "met", "{}", report["acceptance"]);
    assert_eq!(found(&report, 2, "flushes"), ("FAIL", "not met"), "{}", report["acceptance"]);

    let page = fs::read_to_string(home.path().join("o.acceptance.html")).expect("a page");
    for part in [
        "Storage for a camera",
        "100 EUR",
        "FAIL",
        "got no flush of its cache",
        "program, sha256",
        "plan ./offers.toml",
    ] {
        assert!(page.contains(part), "{part} is missing in the page");
    }
    agrees_elsewhere(home.path(), &page);
}

/// On a copy, the words are derived again, and a byte that was changed is found.
fn agrees_elsewhere(home: &Path, page: &str) {
    let elsewhere = tempfile::tempdir().expect("a temporary directory");
    let copy = elsewhere.path().join("copy.sqlite");
    fs::copy(home.join("o.sqlite"), &copy).expect("space");
    let checked = run(elsewhere.path(), &["check", "copy.sqlite"]);
    assert_eq!(checked.code, Some(0), "{}{}", checked.stdout, checked.stderr);
    let sum = checked.stdout.lines().find_map(|line| line.strip_prefix("sha256   ")).expect("a sum");
    assert!(page.contains(sum), "the page has the sum of the record");
    assert_eq!(run(elsewhere.path(), &["check", "copy.sqlite", "--sha256", sum]).code, Some(0));
    let other = run(elsewhere.path(), &["check", "copy.sqlite", "--sha256", &"0".repeat(64)]);
    assert_eq!(other.code, Some(3), "{}", other.stderr);

    let whole = fs::read(&copy).expect("a file");
    let words = whole.windows(16).position(|part| part == b"nothing is lost:").expect("a conclusion");
    for at in [words, whole.len() / 2, whole.len() - 1] {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        fs::write(&copy, &changed).expect("space");
        let checked = run(elsewhere.path(), &["check", "copy.sqlite"]);
        assert!(matches!(checked.code, Some(1..=3)), "byte {at}: {}{}", checked.stdout, checked.stderr);
    }
    let open = rusqlite_says(&whole, &copy);
    assert!(open.contains("says") && open.contains("follows"), "{open}");
}

/// Somebody changes what a record says with a tool of SQLite.
fn rusqlite_says(whole: &[u8], copy: &Path) -> String {
    fs::write(copy, whole).expect("space");
    let change = "UPDATE conclusion SET words = 'PASS' WHERE words = 'FAIL'";
    let script = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.commit()";
    let changed = std::process::Command::new("python3").args(["-c", script]).arg(copy).arg(change).status();
    assert!(changed.expect("python starts").success());
    let checked = run(copy.parent().expect("a directory"), &["check", "copy.sqlite"]);
    assert_eq!(checked.code, Some(3), "{}{}", checked.stdout, checked.stderr);
    checked.stdout
}

#[test]
fn criteria_that_can_not_be_decided_are_refused_before_anything_starts() {
    let home = home_with(OFFERS);
    let target = home.path().join("target");
    fs::create_dir(&target).expect("space");
    let machine = std::thread::available_parallelism().map_or(1, Into::into);
    let cores = format!("cores = {{ machine = {machine} }}");
    for (from, to, options, part) in [
        ("", "", &[][..], "price has 3 texts, and there are 1 targets"),
        ("\"100 EUR\", ", "", &["--scale", "1/10"], "leave --scale out"),
        ("price =", "# price =", &["--repeats", "1"], "leave --repeats out"),
        ("price =", "# price =", &["--plan", "none"], "--plan none: name an instrument"),
        ("price =", "# price =", &["--for", "pco-4000", "--duration", "1 ms"], "too short"),
    ] {
        refused(home.path(), &OFFERS.replace(from, to), options, part);
    }
    let free = OFFERS.replace("price =", "# price =");
    refused(home.path(), &free.replace("sync_flushes = true", &cores), &[], "can't be exceeded");
    refused(
        home.path(),
        &free.replace("longest_stall = \"3 s\"", "lost = \"1 a day\""),
        &[],
        "write duration = ",
    );
    let tmpfs = may_have_faulty_disks().then(|| FileSystem::tmpfs("size=900m"));
    if let Some(tmpfs) = &tmpfs {
        fs::write(home.path().join("offers.toml"), &free).expect("space");
        let path = tmpfs.path().to_str().expect("a plain name");
        let ended = run(home.path(), &["evaluate", path, "--plan", "./offers.toml"]);
        assert!(
            ended.code == Some(2) && ended.stderr.contains("sync_flushes: this machine sees no device"),
            "{}",
            ended.stderr
        );
    }
}

/// With exit code 2 and one message; no record is made.
fn refused(home: &Path, plan: &str, options: &[&str], part: &str) {
    fs::write(home.join("offers.toml"), plan).expect("space");
    let plan = if options.first() == Some(&"--plan") { &[][..] } else { &["--plan", "./offers.toml"] };
    let ended = run(home, &[&["evaluate", "target"][..], plan, options].concat());
    assert!(
        ended.code == Some(2) && ended.stderr.contains(part),
        "{part}: {:?} {}",
        ended.code,
        ended.stderr
    );
    let records = fs::read_dir(home).expect("a directory").flatten();
    let made =
        records.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "sqlite"));
    assert_eq!(made.count(), 0, "{part}");
}

/// So little that any disk here carries it, whatever else the machine does.
const MODEST: &str = r#"
title = "Storage for a slow camera"
reserve = "0 B"
[[accept.instrument]]
name = "./slow.toml"
duration = "4 s"
buffer = "64 MiB"
"#;

#[test]
fn what_is_met_is_a_pass_and_a_record_without_a_seal_is_not_decided() {
    let home = home_with(MODEST);
    fs::create_dir(home.path().join("target")).expect("space");
    fs::write(home.path().join("slow.toml"), camera(5).replace("\"camera\"", "\"slow\"")).expect("space");
    let evaluate = ["evaluate", "target", "--plan", "./offers.toml", "--record"];
    let passed = run(home.path(), &[&evaluate[..], &["passed.sqlite"]].concat());
    assert_eq!(passed.code, Some(0), "{}{}", passed.stdout, passed.stderr);
    assert!(passed.stdout.contains("PASS"), "{}", passed.stdout);
    let checked = run(home.path(), &["check", "passed.sqlite"]);
    assert!(
        checked.code == Some(0) && checked.stdout.contains("PASS"),
        "{}{}",
        checked.stdout,
        checked.stderr
    );

    fs::write(home.path().join("offers.toml"), MODEST.replace("\"4 s\"", "\"10 min\"")).expect("space");
    let running = start(home.path(), &[&evaluate[..], &["killed.sqlite"]].concat());
    let record = home.path().join("killed.sqlite");
    await_some("the record", || record.exists().then_some(()));
    running.killed();
    let checked = run(home.path(), &["check", "killed.sqlite"]);
    assert_eq!(checked.code, Some(4), "{}{}", checked.stdout, checked.stderr);
}

#[test]
fn what_is_no_record_is_refused() {
    let home = home_with(OFFERS);
    fs::write(home.path().join("note.txt"), "no record").expect("space");
    for (file, part) in [("note.txt", "not a record of nilometer"), ("missing", "no such record")] {
        let ended = run(home.path(), &["check", file]);
        assert!(ended.code == Some(2) && ended.stderr.contains(part), "{}", ended.stderr);
    }
    let ended = run(home.path(), &["check", "note.txt", "--sha256", "abc"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("64 hexadecimal digits"), "{}", ended.stderr);
}

const WAITS: &str = "title = \"waits\"\nrepeats = 2\nreserve = \"0 B\"\n[[stage]]\nname = \"w\"\n[stage.workload.wait]\nduration = \"10 ms\"\noperations = 3\n";

fn make_key(home: &Path, name: &str) {
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f", name])
        .current_dir(home)
        .status();
    assert!(made.expect("ssh-keygen (scripts/bootstrap test)").success());
}

#[test]
fn a_signed_record_says_by_whom_and_a_seal_claims_no_more_than_it_shows() {
    let home = home_with(WAITS);
    make_key(home.path(), "key");
    make_key(home.path(), "other");
    fs::create_dir(home.path().join("target")).expect("space");
    let evaluate = ["evaluate", "target", "--plan", "./offers.toml", "--record", "r.sqlite", "--sign"];
    let refused = run(home.path(), &[&evaluate[..], &["nokey"]].concat());
    assert!(refused.code == Some(2) && refused.stderr.contains("--sign nokey: it can't sign"), "{refused:?}");
    assert!(!home.path().join("r.sqlite").exists(), "nothing was begun");
    let signed = run(home.path(), &[&evaluate[..], &["key"]].concat());
    assert!(signed.has_answered() && signed.stdout.contains("Signed: r.sqlite.sig"), "{signed:?}");
    let by = |signers: &str| run(home.path(), &["check", "r.sqlite", "--signed-by", signers]);
    let good = by("key.pub");
    assert!(good.code == Some(0) && good.stdout.contains("signed   by ED25519 key SHA256:"), "{good:?}");
    let other = by("other.pub");
    assert!(other.code == Some(3) && !other.stdout.contains("agrees"), "{other:?}");
    let unasked = run(home.path(), &["check", "r.sqlite"]);
    assert!(unasked.stdout.contains("seal     consistent: the seal of "), "{unasked:?}");
    assert!(unasked.stdout.contains("signed   not checked"), "{unasked:?}");
    fs::remove_file(home.path().join("r.sqlite.sig")).expect("the signature");
    assert_eq!(by("key.pub").code, Some(4), "nobody signed it");
}

/// A directory with a program `ssh-keygen` that does this.
fn keygen_that(home: &Path, does: &str) -> PathBuf {
    let directory = home.join("keygen");
    fs::create_dir_all(&directory).expect("space");
    let program = directory.join("ssh-keygen");
    fs::write(&program, format!("#!/bin/sh\n{does}\n")).expect("space");
    fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("it is ours");
    directory
}

/// Runs the program with this search path.
fn run_with_path(home: &Path, path: &str, arguments: &[&str]) -> Ended {
    let mut command = command_of(nilometer());
    command.args(arguments).current_dir(home).env("PATH", path);
    Running::of(command).end(Duration::from_mins(10))
}

#[test]
fn a_signature_that_nobody_can_check_or_make_is_a_fault_and_never_waited_for() {
    let home = home_with(WAITS);
    let at = home.path();
    make_key(at, "key");
    fs::create_dir(at.join("target")).expect("space");
    let usual = std::env::var("PATH").expect("a search path");
    // It signs the test text and hangs when it should sign the record.
    let once = format!("[ -e once ] && exec sleep 1000\ntouch once\nPATH='{usual}' exec ssh-keygen \"$@\"");
    let path = format!("{}:{usual}", keygen_that(at, &once).display());
    let evaluate = ["evaluate", "target", "--plan", "./offers.toml", "--record", "r.sqlite", "--sign", "key"];
    let unsigned = run_with_path(at, &path, &evaluate);
    let by_hand = "ssh-keygen -Y sign -n nilometer -f key r.sqlite";
    let told =
        format!("the record is whole, but not signed; sign it with `{by_hand}`: ssh-keygen gave no answer");
    assert!(unsigned.stderr.contains(&told), "{unsigned:?}");
    assert!(unsigned.code != Some(0) && !at.join("r.sqlite.sig").exists(), "{unsigned:?}");
    let signed = Command::new("sh").args(["-c", by_hand]).current_dir(at).status();
    assert!(signed.expect("ssh-keygen (scripts/bootstrap test)").success());
    let check = ["check", "r.sqlite", "--signed-by", "key.pub"];
    let good = run(at, &check);
    assert_eq!(good.code, Some(0), "{good:?}");
    let hangs = keygen_that(at, "exec sleep 1000");
    let paths = [
        ("/nowhere".to_owned(), "can't run ssh-keygen"),
        (format!("{}:{usual}", hangs.display()), "gave no answer"),
    ];
    for (path, why) in paths {
        let unchecked = run_with_path(at, &path, &check);
        assert_eq!(unchecked.code, Some(1), "{unchecked:?}");
        assert!(unchecked.stderr.contains("the signature could not be checked: "), "{unchecked:?}");
        assert!(unchecked.stderr.contains(why) && !unchecked.stdout.contains("agrees"), "{unchecked:?}");
    }
    let missing =
        run_with_path(at, "/nowhere", &["evaluate", "target", "--plan", "./offers.toml", "--sign", "key"]);
    assert!(
        missing.code == Some(2) && missing.stderr.contains("--sign key: can't run ssh-keygen"),
        "{missing:?}"
    );
    fs::write(at.join("r.sqlite.sig"), "no signature").expect("space");
    let wrong = run(at, &check);
    assert_eq!(wrong.code, Some(3), "{wrong:?}");
    assert!(wrong.stderr.contains("the signature is not one of this record"), "{wrong:?}");
}
