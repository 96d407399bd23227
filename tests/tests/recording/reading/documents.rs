//! `verify` and `scan` in each format: Markdown, a page and JSON have the facts that the lines have.

use std::{
    fs,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use nilometer_tests::{Ended, await_some, start};
use nilometer_wire::vdif::VdifHeader;
use serde_json::Value;

use super::{about, frames_in, names, recorded};

/// The result of a command in each format.
struct Formats {
    code: Option<i32>,
    lines: String,
    markdown: String,
    page: String,
    /// The element of the only recording.
    json: Value,
}

impl Formats {
    /// Runs a command about one recording in each format. Asserts that every fact of its lines is in all of them.
    fn of(command: &str, recording: &Path, more: &[&str]) -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        let path = home.path().join("page.html");
        let run = |options: &[&str]| about(command, &[recording], &[more, options].concat());
        let lines = run(&[]);
        let html = path.to_str().expect("plain names");
        let markdown = run(&["--format", "markdown", "--html", html]);
        let json = run(&["--format", "json"]);
        for other in [&markdown, &json] {
            assert_eq!(other.code, lines.code, "{other:?}");
        }
        assert!(markdown.stderr.contains(&format!("Page: {html}")), "{markdown:?}");
        assert_eq!(json.stdout, run(&["--json"]).stdout, "an alias");
        let list: Vec<Value> = serde_json::from_str(&json.stdout).unwrap_or_else(|_| panic!("{json:?}"));
        let formats = Formats {
            code: lines.code,
            lines: lines.stdout,
            markdown: markdown.stdout,
            page: fs::read_to_string(path).expect("a page"),
            json: list.into_iter().next().expect("one recording"),
        };
        assert_eq!(names(home.path()), ["page.html"], "no unfinished page stays");
        formats.assert_equal_facts();
        formats
    }

    fn assert_equal_facts(&self) {
        let markdown = unescaped(&self.markdown.replace('\\', ""));
        let page = unescaped(&self.page);
        assert!(self.lines.lines().count() > 3, "{}", self.lines);
        for line in self.lines.lines() {
            let (name, fact) = line.split_at(12);
            for text in [name.trim_end(), fact] {
                assert!(markdown.contains(text), "{text}: {markdown}");
                assert!(page.contains(text), "{text}: {page}");
            }
        }
        assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"), "{page}");
    }

    fn assert_numbers(&self, expected: &[(&str, u64)]) {
        for (key, number) in expected {
            assert_eq!(self.json[key], *number, "{key} of {}", self.json);
        }
    }
}

/// Text of a page or of Markdown without entities.
fn unescaped(text: &str) -> String {
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    entities.iter().fold(text.to_owned(), |text, (entity, letter)| text.replace(entity, letter))
}

#[test]
fn a_healthy_recording_is_whole_in_each_format() {
    let disk = tempfile::tempdir().expect("a temporary directory");
    let lane = recorded(&[disk.path()], 8, &[]).swap_remove(0);
    let verified = Formats::of("verify", &lane, &[]);
    assert_eq!(verified.code, Some(0));
    let whole = "Whole: all frames agree with the simulated instrument";
    assert!(verified.markdown.contains(whole) && verified.page.contains(whole), "{}", verified.markdown);
    assert!(verified.markdown.starts_with("# Recordings read back\n\n## scan\n"), "{}", verified.markdown);
    verified.assert_numbers(&[("right", 8), ("missing", 0), ("damaged", 0), ("lanes_ended", 1)]);
    let scanned = Formats::of("scan", disk.path(), &[]);
    assert_eq!(scanned.code, Some(0));
    scanned.assert_numbers(&[("frames", 8), ("missing_frames", 0)]);
    assert!(scanned.lines.contains("missing     none, by the journals"), "{}", scanned.lines);
}

#[test]
fn a_damaged_recording_has_its_damage_in_each_format() {
    let disk = tempfile::tempdir().expect("a temporary directory");
    let lane = recorded(&[disk.path()], 8, &[]).swap_remove(0);
    let file = fs::File::options().write(true).open(frames_in(&lane)).expect("it is ours");
    file.write_all_at(b"!", 17).expect("space");
    let verified = Formats::of("verify", &lane, &[]);
    assert_eq!(verified.code, Some(1));
    let not_whole = "Not whole: 1 frames are damaged";
    assert!(verified.markdown.contains(not_whole) && verified.page.contains(not_whole), "{}", verified.page);
    assert!(verified.lines.contains("damaged     frame 0 "), "{}", verified.lines);
    verified.assert_numbers(&[("right", 7), ("damaged", 1)]);
    // Its only file is gone.
    fs::remove_file(frames_in(&lane)).expect("it is ours");
    let scanned = Formats::of("scan", disk.path(), &["--all"]);
    let fault = format!("Can't be read: {}", scanned.json["fault"].as_str().expect("a fault"));
    assert!(unescaped(&scanned.page).contains(&fault), "{}", scanned.page);
    assert_eq!(scanned.code, Some(1));
}

/// A file of VDIF frames in which some seconds are missing.
fn vdif(path: &Path) {
    let frame = |second: u32| {
        let header = VdifHeader {
            invalid: false,
            epoch: 50,
            second,
            frame: 0,
            version: 1,
            channels_log2: 0,
            length: 128,
            complex: false,
            bits: 2,
            thread: 3,
            station: 0x4d63,
            extended: Some([0; 4]),
        };
        let mut bytes = vec![7; header.length];
        header.write(&mut bytes);
        bytes
    };
    let frames: Vec<u8> = [1, 2, 3, 7, 8].into_iter().flat_map(frame).collect();
    fs::write(path, frames).expect("space");
}

#[test]
fn a_recording_of_another_program_is_never_whole_in_each_format() {
    let disk = tempfile::tempdir().expect("a temporary directory");
    let file = disk.path().join("all.vdif");
    vdif(&file);
    let verified = Formats::of("verify", &file, &[]);
    assert_eq!(verified.code, Some(1));
    assert!(verified.page.contains("Not whole: 1 times time does not go on"), "{}", verified.page);
    verified.assert_numbers(&[("frames", 5)]);
    assert_eq!(verified.json["walk"]["first_jumps"][0]["frame"], 3, "{}", verified.json);
    let scanned = Formats::of("scan", &file, &["--all"]);
    assert!(scanned.lines.contains("not known   without a journal"), "{}", scanned.lines);
    assert_eq!(scanned.json["without_journal"]["kind"], "file", "{}", scanned.json);
}

/// The pages in a directory that are not finished.
fn unfinished(directory: &Path) -> Vec<String> {
    names(directory).into_iter().filter(|name| name.ends_with(".partial")).collect()
}

#[test]
fn what_a_killed_command_left_of_a_page_is_removed_and_no_file_of_the_user() {
    let disk = tempfile::tempdir().expect("a temporary directory");
    let [large, small] = ["large.vdif", "small.vdif"].map(|name| disk.path().join(name));
    vdif(&large);
    vdif(&small);
    // Zeros that take no space, and longer to read than until it is killed.
    fs::File::options()
        .write(true)
        .open(&large)
        .and_then(|file| file.set_len(1 << 40))
        .expect("it is sparse");
    let page = disk.path().join("page.html");
    let mine = disk.path().join("page.html.new");
    fs::write(&mine, "somebody's").expect("space");
    let html = ["--html", page.to_str().expect("plain names")];
    let clean = || about("clean", &[disk.path()], &[]);
    let again = || about("verify", &[&small], &html);
    for remove in [&clean as &dyn Fn() -> Ended, &again] {
        let large = large.to_str().expect("plain names");
        let running = start(disk.path(), &["verify", large, html[0], html[1]]);
        await_some("the unfinished page", || (!unfinished(disk.path()).is_empty()).then_some(()));
        running.killed();
        assert_eq!(unfinished(disk.path()).len(), 1, "nobody could remove it yet");
        await_some("its end", || {
            remove();
            unfinished(disk.path()).is_empty().then_some(())
        });
    }
    assert!(page.exists());
    assert_eq!(fs::read_to_string(&mine).expect("it stays"), "somebody's");
}

#[test]
fn several_recordings_are_sections_of_one_document() {
    let disk = tempfile::tempdir().expect("a temporary directory");
    for name in ["first", "second"] {
        let above = disk.path().join(name);
        fs::create_dir(&above).expect("space");
        recorded(&[&above], 5, &[]);
    }
    let page = disk.path().join("page.html");
    let html = page.to_str().expect("plain names");
    let paths: Vec<PathBuf> = ["first/scan", "second/scan"].map(|name| disk.path().join(name)).into();
    for command in ["verify", "scan"] {
        let ended = about(command, &paths, &["--format", "markdown", "--html", html]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(ended.stdout.matches("\n## scan\n").count(), 2, "{ended:?}");
        assert_eq!(ended.stdout.lines().filter(|line| line.starts_with("# ")).count(), 1, "{ended:?}");
        let page = fs::read_to_string(&page).expect("a page");
        assert_eq!(page.matches("<h2>scan</h2>").count(), 2, "{page}");
        assert_eq!(page.matches("</html>").count(), 1, "{page}");
    }
}

#[test]
fn a_page_replaces_no_other_file_and_nothing_is_read() {
    let disk = tempfile::tempdir().expect("a temporary directory");
    let lane = recorded(&[disk.path()], 5, &[]).swap_remove(0);
    let other = disk.path().join("notes.txt");
    fs::write(&other, "mine").expect("space");
    for command in ["verify", "scan"] {
        let ended = about(command, &[&lane], &["--html", other.to_str().expect("plain names")]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stdout.is_empty() && ended.stderr.contains("no page of Nilometer"), "{ended:?}");
    }
    assert_eq!(fs::read_to_string(other).expect("it is there"), "mine");
}

#[test]
fn a_hostile_name_commands_no_reader_of_any_format() {
    let disk = tempfile::tempdir().expect("a temporary directory");
    let lane = recorded(&[disk.path()], 8, &[]).swap_remove(0);
    for name in names(&lane) {
        let hostile = name.replace("scan", "scan\n# <b>all is well\u{1b}[31m\u{9b}2J");
        fs::rename(lane.join(&name), lane.join(hostile)).expect("one directory");
    }
    let page = disk.path().join("page.html");
    let html = page.to_str().expect("plain names");
    for command in ["verify", "scan"] {
        let ended = about(command, &[&lane], &["--format", "markdown", "--html", html]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let page = fs::read_to_string(&page).expect("a page");
        for text in [&ended.stdout, &page] {
            let commands = |letter: char| letter.is_control() && letter != '\n';
            assert!(!text.contains(commands), "{text:?}");
            assert!(!text.contains("<b>all"), "{text}");
        }
        let forged = ended.stdout.lines().filter(|line| line.starts_with("# "));
        assert_eq!(forged.count(), 1, "the title alone: {ended:?}");
        let json = about(command, &[&lane], &["--format", "json"]);
        let list: Value = serde_json::from_str(&json.stdout).expect("JSON");
        assert!(list[0]["name"].as_str().is_some_and(|name| name.contains('\u{1b}')), "{list}");
        assert!(!json.stdout.contains(['\u{1b}', '\u{9b}']), "{json:?}");
    }
}
