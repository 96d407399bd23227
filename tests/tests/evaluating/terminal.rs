//! The program outlives the terminal, the pipe and the log that it talks to, and ends in order when they go.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{PipeReader, Write, pipe},
    os::unix::ffi::OsStringExt,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use nilometer_tests::{await_some, command_of, free_port, nilometer, run, run_directories, start};
use rustix::{
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    process::{Pid, Signal, kill_process},
};
use tempfile::TempDir;

const PLAN: &str = "title = \"two\"\nrepeats = 2\nreserve = \"0 B\"\n[[stage]]\nname = \"w\"\n[stage.workload.stream]\n\
                    file_size = \"4 MiB\"\nblock_size = \"1 MiB\"\naccess = \"buffered\"\n";
const LIMIT: Duration = Duration::from_mins(2);

/// A directory with a plan and an empty target.
fn place() -> TempDir {
    let place = tempfile::tempdir().expect("a temporary directory");
    fs::create_dir(place.path().join("target")).expect("a directory");
    fs::write(place.path().join("plan.toml"), PLAN).expect("space");
    place
}

fn command<S: AsRef<OsStr>>(place: &Path, arguments: &[S]) -> Command {
    let mut command = command_of(nilometer());
    command.args(arguments).current_dir(place).stdin(Stdio::null());
    command
}

const EVALUATE: [&str; 4] = ["evaluate", "target", "--plan", "plan.toml"];

/// The end of a pipe of which nobody holds the other.
fn left() -> Stdio {
    let (reader, writer) = pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

/// The end of a pipe that is full; it stays so while the other end is held.
fn full() -> (PipeReader, Stdio) {
    let (reader, mut writer) = pipe().expect("a pipe");
    let flags = fcntl_getfl(&writer).expect("flags");
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK).expect("flags");
    while writer.write(&[b'x'; 4096]).is_ok() {}
    fcntl_setfl(&writer, flags).expect("flags");
    (reader, writer.into())
}

fn full_disk() -> Stdio {
    File::options().write(true).open("/dev/full").expect("/dev/full is there").into()
}

/// The exit code of a child that ends within the limit.
fn code(mut child: Child) -> Option<i32> {
    let deadline = LIMIT.as_millis() / 5;
    for _ in 0..deadline {
        if let Some(status) = child.try_wait().expect("a child of ours") {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    kill_process(Pid::from_child(&child), Signal::KILL).expect("a child of ours");
    panic!("no end within {LIMIT:?}");
}

/// How many samples a record has, as its report says.
fn samples(record: &Path) -> usize {
    let text = run(&[Path::new("report"), record, Path::new("--format"), Path::new("csv")]).stdout;
    text.lines().count().saturating_sub(1)
}

#[test]
fn a_campaign_goes_on_when_nobody_listens_any_more() {
    let (_held, never_read) = full();
    // On a busy machine figures may be INVALID, which is 4.
    let nobody: [(&str, Stdio, Stdio, [i32; 2]); 4] = [
        ("both pipes are closed", left(), left(), [0, 4]),
        ("the log's disk is full", Stdio::null(), full_disk(), [0, 4]),
        ("nobody empties the pipe", Stdio::null(), never_read, [0, 4]),
        ("there is no room for the results", full_disk(), Stdio::null(), [1, 4]),
    ];
    for (case, stdout, stderr, expected) in nobody {
        let place = place();
        let child =
            command(place.path(), &EVALUATE).stdout(stdout).stderr(stderr).spawn().expect("it starts");
        let code = code(child);
        assert!(code.is_some_and(|code| expected.contains(&code)), "{case}: {code:?}");
        assert!(samples(&place.path().join("evaluation.sqlite")) >= 4, "{case}: a write and a read, twice");
        assert!(run_directories(&place.path().join("target")).is_empty(), "{case}");
    }
}

#[test]
fn a_listing_that_nobody_reads_to_its_end_is_no_fault() {
    let place = place();
    let recorded =
        ["simulate", "pco-edge", "--to", "target", "--name", "s", "--frames", "3", "--buffer", "64 MiB"];
    let made = start(place.path(), &recorded).end(LIMIT);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let listings: [(&[&str], &[i32]); 9] = [
        (&["plan", "list"], &[0]),
        (&["plan", "keys"], &[0]),
        (&["plan", "show", "quick"], &[0]),
        (&["instrument", "list"], &[0]),
        (&["describe", "target"], &[0]),
        (&["scan", "target"], &[0]),
        (&["verify", "target/s"], &[0]),
        (&["clean", "target"], &[0]),
        // What it finds of this machine may be bad, which is an answer.
        (&["doctor"], &[0, 1]),
    ];
    for (arguments, expected) in listings {
        let ended = command(place.path(), arguments).stdout(left()).output().expect("it starts");
        let (code, stderr) = (ended.status.code(), String::from_utf8_lossy(&ended.stderr));
        assert!(code.is_some_and(|code| expected.contains(&code)), "{arguments:?}: {code:?}: {stderr}");
        assert!(!stderr.contains("panicked"), "{arguments:?}: {stderr}");
        let ended = command(place.path(), arguments).stdout(full_disk()).output().expect("it starts");
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{arguments:?}: {stderr}");
        assert!(stderr.contains("can't write the results to stdout") || arguments == ["doctor"], "{stderr}");
    }
}

/// Starts a recording that a shell may prepare, sends it packets while it is asked `meanwhile`, and gives its exit code.
fn recorded(place: &Path, prepared: &str, more: &str, meanwhile: impl FnOnce(Pid, &dyn Fn())) -> Option<i32> {
    let port = free_port();
    let line = format!(
        "{prepared} exec {} record fila10g-512m --to target --name scan --listen udp://127.0.0.1:{port} \
         --buffer '64 MiB' --reserve '1 MiB' {more} 2>said >summary",
        nilometer().display()
    );
    let mut shell = command_of(Path::new("sh"));
    let child = shell.args(["-c", &line]).current_dir(place).stdin(Stdio::null()).spawn().expect("a shell");
    await_some("the recording", || {
        fs::read_to_string(place.join("said")).ok().filter(|said| said.contains("recording scan"))
    });
    let send = || {
        let to = format!("udp://127.0.0.1:{port}");
        let sent = run(&["simulate", "fila10g-512m", "--to", &to, "--rate", "8 MB/s", "--packets", "800"]);
        assert!(sent.has_sent_all(), "{}", sent.stderr);
    };
    meanwhile(Pid::from_child(&child), &send);
    code(child)
}

#[test]
fn a_recording_whose_terminal_is_closed_ends_in_order() {
    // A session that ends sends both.
    let both = [Signal::TERM, Signal::HUP, Signal::HUP];
    for signals in [&[Signal::HUP][..], &[Signal::TERM], &both] {
        let place = place();
        let ended = recorded(place.path(), "", "", |process, send| {
            send();
            for signal in signals {
                // It may be over by the second.
                kill_process(process, *signal).ok();
            }
        });
        assert_eq!(ended, Some(0), "{signals:?}");
        assert!(place.path().join("target/scan/scan.summary.json").exists(), "{signals:?}");
        let verified = run(&[Path::new("verify"), &place.path().join("target/scan")]);
        assert!(
            verified.code == Some(0) && verified.stdout.contains("ended in order"),
            "{}",
            verified.stdout
        );
    }
}

#[test]
fn a_recording_started_with_nohup_goes_on() {
    let place = place();
    let ended = recorded(place.path(), "trap '' HUP;", "--packets 800", |process, send| {
        kill_process(process, Signal::HUP).expect("it runs");
        send();
    });
    assert_eq!(ended, Some(0));
}

#[test]
fn a_campaign_whose_terminal_is_closed_leaves_nothing_behind() {
    let place = place();
    fs::write(place.path().join("plan.toml"), PLAN.replace("repeats = 2", "repeats = 1000")).expect("space");
    let campaign = start(place.path(), &EVALUATE);
    campaign.await_run_directory(&place.path().join("target"), &place.path().join("evaluation.sqlite"));
    campaign.signal(Signal::HUP);
    let ended = campaign.end(LIMIT);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("interrupted: "), "{}", ended.stderr);
    assert!(run_directories(&place.path().join("target")).is_empty());
}

/// Names as a user may have given them, and limits that an administrator may have set.
#[test]
fn odd_names_and_little_memory_that_may_be_locked_are_no_fault() {
    let place = place();
    fs::create_dir(place.path().join("-d")).expect("a directory");
    let described = start(place.path(), &["describe", "--", "-d"]).end(LIMIT);
    assert_eq!(described.code, Some(0), "{}", described.stderr);
    let odd = std::ffi::OsString::from_vec(b"r\xff.sqlite".to_vec());
    let mut arguments: Vec<std::ffi::OsString> = EVALUATE.iter().map(Into::into).collect();
    arguments.extend(["--record".into(), odd.clone()]);
    let child = command(place.path(), &arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    assert!(matches!(code(child.expect("it starts")), Some(0 | 4)));
    assert!(place.path().join(odd).exists());
    let line = format!(
        "ulimit -l 0; exec {} simulate pco-edge --to target --name s --frames 3 --buffer '64 MiB' 2>&1",
        nilometer().display()
    );
    let locked = Command::new("sh").args(["-c", &line]).current_dir(place.path()).output().expect("a shell");
    assert!(locked.status.success(), "{}", String::from_utf8_lossy(&locked.stdout));
}

/// The output of a command on a terminal of 80 columns, which `script` gives it.
fn on_a_terminal(place: &Path, arguments: &str) -> String {
    let command = format!("stty cols 80; {} {arguments}", nilometer().display());
    let output = Command::new("script")
        .args(["--quiet", "--return", "--command", &command, "/dev/null"])
        .current_dir(place)
        .stdin(Stdio::null())
        .output()
        .expect("script is there, as part of util-linux");
    String::from_utf8_lossy(&output.stdout).replace('\r', "")
}

fn width(line: &str) -> usize {
    line.chars().count()
}

#[test]
fn a_terminal_of_80_columns_breaks_no_word_of_a_list() {
    let place = place();
    for arguments in ["instrument list", "plan list", "plan show quick", "plan keys"] {
        let words: Vec<&str> = arguments.split(' ').collect();
        let plain = start(place.path(), &words).end(LIMIT).stdout;
        let shown = on_a_terminal(place.path(), arguments);
        assert!(plain.lines().any(|line| width(line) > 80), "{arguments}: nothing needs a break");
        assert!(shown.lines().all(|line| width(line) <= 80), "{arguments}: {shown}");
        assert!(shown.split_whitespace().eq(plain.split_whitespace()), "{arguments}: {shown}");
    }
    // Its figures change from run to run; a path of the kernel is one word.
    let doctor = on_a_terminal(place.path(), "doctor");
    assert!(doctor.lines().count() > 5, "{doctor}");
    let wide = doctor.lines().filter(|line| width(line) > 80);
    assert!(wide.clone().all(|line| line.split_whitespace().any(|word| width(word) > 40)), "{doctor}");
    let toml = on_a_terminal(place.path(), "instrument show template --toml");
    assert_eq!(toml, start(place.path(), &["instrument", "show", "template", "--toml"]).end(LIMIT).stdout);
}
