//! Files on tape: the census counts them and opens none, and `nilometer recall` measures when their bytes come. The
//! tape is a file system of the test's own, and delivers when the test says so.

use std::{fs, time::Duration};

use nilometer_tests::{Ended, Tape, await_some, may_show, run, start};
use serde_json::Value;

const LIMIT: Duration = Duration::from_mins(5);
const SIZE: u64 = 100_000;

fn json(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

#[test]
fn a_census_counts_files_on_tape_and_brings_none_back() {
    if !may_show() {
        return;
    }
    let tape = Tape::with_files(5, SIZE);
    let path = tape.path().to_str().expect("a plain name");
    let counted = json(&run(&["census", path, "--format", "json"]));
    assert_eq!([&counted["files"], &counted["offline"], &counted["sparse"]], [5, 5, 0]);
    assert_eq!(counted["offline_bytes"], 5 * SIZE);
    assert_eq!((tape.opened(), tape.on_disk()), (0, 0), "it opened no file");
    let text = run(&["census", path]).stdout;
    assert!(
        text.contains("no file has blocks: all are on tape, or the file system reports no blocks"),
        "{text}"
    );
    // This file system reports no hole, so files without blocks stay files on tape.
    let counted = json(&run(&["census", path, "--holes", "--format", "json"]));
    assert_eq!([&counted["offline"], &counted["sparse"]], [5, 0]);
    assert_eq!((tape.opened(), tape.on_disk()), (5, 0), "it opened them, and read nothing");
}

#[test]
fn a_file_with_holes_is_told_from_one_on_tape_if_the_user_allows_the_question() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let file = fs::File::create(home.path().join("hole")).expect("space");
    file.set_len(1 << 30).expect("a hole");
    fs::write(home.path().join("full"), vec![7; 1 << 16]).expect("space");
    let path = home.path().to_str().expect("a plain name");
    let of = |more: &[&str]| {
        let line: Vec<&str> = ["census", path, "--format", "json"].iter().chain(more).copied().collect();
        let counted = json(&run(&line));
        [counted["offline"].as_u64(), counted["sparse"].as_u64()].map(Option::unwrap_or_default)
    };
    assert_eq!((of(&[]), of(&["--holes"])), ([1, 0], [0, 1]));
    let text = run(&["census", path, "--holes"]).stdout;
    assert!(text.contains("1 file with hardly any blocks, because of holes"), "{text}");
}

#[test]
fn the_times_to_the_first_and_last_byte_begin_before_the_tape_delivers() {
    if !may_show() {
        return;
    }
    let tape = Tape::with_files(8, SIZE);
    let path = tape.path().to_str().expect("a plain name");
    let home = tempfile::tempdir().expect("a temporary directory");
    let running = start(home.path(), &["recall", path, "--files", "6", "--at-once", "3", "--format", "json"]);
    await_some("three reads at a time", || (tape.waiting() == 3).then_some(()));
    assert_eq!(tape.on_disk(), 0);
    tape.deliver();
    let ended = running.end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.stderr.contains("reading 6 files of 600 kB: 6 offline, so that 600 kB come back to disk"),
        "{}",
        ended.stderr
    );
    assert_eq!(tape.on_disk(), 6, "the others stay on tape");
    let said = json(&ended);
    let [group] = said["groups"].as_array().expect("a list").as_slice() else { panic!("one group: {said}") };
    assert_eq!(
        (&group["state"], &group["at_once"], &group["files"]),
        (&"offline".into(), &3.into(), &6.into())
    );
    let files = said["files"].as_array().expect("a list");
    for file in files {
        let [first, last] = ["first_byte_s", "last_byte_s"].map(|key| file[key].as_f64().expect("a time"));
        assert!(first > 0.0 && first <= last, "{file}");
    }
    // Files that are on disk now have a row of their own.
    let again: Vec<&str> = files.iter().filter_map(|file| file["path"].as_str()).collect();
    let line: Vec<&str> = ["recall", "--at-once", "1,2"].iter().chain(&again).copied().collect();
    let text = run(&line).stdout;
    assert!(text.contains("3 on disk") && !text.contains("offline"), "{text}");
}

#[test]
fn much_needs_a_yes_and_nothing_on_tape_is_said() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let large = home.path().join("large");
    fs::File::create(&large).and_then(|file| file.set_len(11_000_000_000)).expect("a hole");
    let path = home.path().to_str().expect("a plain name");
    let ended = run(&["recall", path]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(
        ended.stderr.contains("11 GB come back to disk") && ended.stderr.contains("add --yes"),
        "{ended:?}"
    );
    fs::remove_file(&large).expect("it is there");
    for (line, words) in [
        (vec!["recall", path], "no file in it is offline"),
        (vec!["recall", "/nowhere/at/all"], "/nowhere/at/all"),
        (vec!["recall", "/dev/null"], "no plain file"),
    ] {
        let ended = run(&line);
        assert!(ended.code == Some(2) && ended.stderr.contains(words), "{ended:?}");
    }
}

#[test]
fn a_recall_that_is_interrupted_tells_the_files_that_it_read() {
    if !may_show() {
        return;
    }
    let tape = Tape::with_files(1, SIZE);
    let home = tempfile::tempdir().expect("a temporary directory");
    let full = home.path().join("full");
    fs::write(&full, vec![7; 1 << 16]).expect("space");
    let files = [full, tape.files().remove(0)];
    let line: Vec<&str> =
        ["recall"].into_iter().chain(files.iter().filter_map(|path| path.to_str())).collect();
    let running = start(home.path(), &line);
    await_some("a read that waits", || (tape.waiting() == 1).then_some(()));
    running.signal(rustix::process::Signal::INT);
    tape.deliver();
    let ended = running.end(LIMIT);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.contains("1 on disk") && ended.stderr.contains("interrupted"), "{ended:?}");
}
