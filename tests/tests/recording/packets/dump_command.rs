//! The command `nilometer dump`: it asks a recorder for a part, waits for the file, and its exit code says how it went.

use std::{fs, net::TcpListener, path::Path};

use nilometer_tests::{Ended, Running, await_some, run, start};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{
    dumped::DumpLab,
    lab::{FRAME, FRAMES_OF_BLOCK, LIMIT},
};

impl DumpLab {
    /// Starts the command for this recorder.
    fn command(&self, options: &[&str]) -> Running {
        let address = self.http.to_string();
        let dumps = self.dumps.to_str().expect("plain names");
        start(Path::new("/"), &[&["dump", "--http", &address, "--to", dumps], options].concat())
    }

    /// Runs the command to its end.
    fn commanded(&self, options: &[&str]) -> Ended {
        self.command(options).end(LIMIT)
    }

    fn dumped(&self, name: &str) -> Vec<u8> {
        fs::read(self.dumps.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Waits until the recorder has this number of dumps, and the last one waits for frames.
    fn await_waiting(&self, dumps: usize) {
        await_some("a dump that waits for frames", || {
            let all = self.json(200, "GET", "/dumps", &json!(null));
            let last = all["dumps"].as_array().filter(|list| list.len() == dumps)?.last()?.clone();
            (last["waits_for"] == "frames").then_some(())
        });
    }
}

#[test]
fn a_part_is_dumped_by_a_command_and_its_exit_code_says_how_it_went() {
    let mut lab = DumpLab::new(40 * FRAMES_OF_BLOCK as u64, "8 MB", None);
    let sent = lab.lab.sent(40 * FRAMES_OF_BLOCK as u64);
    lab.parts.send_up_to(1000);
    lab.await_stored(7 * FRAMES_OF_BLOCK as u64);
    let whole = lab.commanded(&["--begin", "130", "--end", "640", "--name", "numbers"]);
    assert_eq!(whole.code, Some(0), "{whole:?}");
    assert!(whole.stdout.starts_with("dump        1 of scan: complete\nfile        /"), "{whole:?}");
    assert!(whole.stdout.contains("frames      510 from frame 130, "), "{whole:?}");
    assert!(lab.dumped("numbers.vdif") == sent[130 * FRAME..640 * FRAME]);
    // The last 100 ms are 200 frames, up to the newest on storage.
    let last = lab.commanded(&["--last", "100ms", "--name", "last", "--json"]);
    assert_eq!(last.code, Some(0), "{last:?}");
    let report: Value = serde_json::from_str(&last.stdout).expect("JSON");
    let report = &report["dumps"][0];
    assert_eq!((&report["frames"], &report["state"]), (&200.into(), &"complete".into()), "{report}");
    let first = report["first_frame"].as_u64().expect("a number") as usize;
    assert!(lab.dumped("last.vdif") == sent[first * FRAME..(first + 200) * FRAME]);
    // The ring of 8 MB has lost its oldest frames by now.
    lab.parts.send_up_to(30 * FRAMES_OF_BLOCK as u64);
    lab.await_stored(29 * FRAMES_OF_BLOCK as u64);
    let late =
        lab.commanded(&["--begin", "0", "--end", &(25 * FRAMES_OF_BLOCK).to_string(), "--name", "late"]);
    assert_eq!(late.code, Some(5), "{late:?}");
    assert!(late.stdout.contains("begins late") && late.stderr.contains("not whole"), "{late:?}");
    let gone = lab.commanded(&["--begin", "0", "--end", "1"]);
    assert_eq!(gone.code, Some(1), "{gone:?}");
    assert!(gone.stdout.contains(": failed\n") && gone.stderr.contains("has no file"), "{gone:?}");
    for (options, part) in [
        (&["--name", "../x"][..], "name: "),
        (&["--data-stream", "A"], "data_stream: "),
        (&["--begin", "soon"], "packet:1200"),
        (&["--begin", "20", "--end", "10"], "end: "),
    ] {
        let refused = lab.commanded(options);
        assert!(refused.code == Some(2) && refused.stderr.contains(part), "{part}: {refused:?}");
    }
    lab.parts.send_up_to(40 * FRAMES_OF_BLOCK as u64);
    assert_eq!(lab.running.end(LIMIT).code, Some(0));
}

#[test]
fn an_interrupted_command_ends_its_dump() {
    let mut lab = DumpLab::new(1000, "16 MB", None);
    lab.parts.send_up_to(300);
    let waiting = lab.command(&["--begin", "3000", "--end", "5000"]);
    lab.await_waiting(1);
    waiting.signal(Signal::INT);
    let ended = waiting.end(LIMIT);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.contains(": cancelled\n"), "{ended:?}");
    assert_eq!(lab.report(1)["state"], "cancelled");
    lab.parts.send_up_to(1000);
    assert_eq!(lab.running.end(LIMIT).code, Some(0));
    assert_eq!(fs::read_dir(&lab.dumps).expect("it is there").count(), 0, "no partial files");
}

#[test]
fn a_dump_that_ends_with_the_recorder_is_told_too() {
    let mut lab = DumpLab::new(1000, "16 MB", None);
    let sent = lab.lab.sent(1000);
    lab.parts.send_up_to(600);
    let open = lab.command(&["--begin", "100", "--name", "rest"]);
    lab.await_waiting(1);
    lab.parts.send_up_to(1000);
    assert_eq!(lab.running.end(LIMIT).code, Some(0));
    let ended = open.end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("frames      900 from frame 100"), "{ended:?}");
    assert!(fs::read(lab.dumps.join("rest.vdif")).expect("it is there") == sent[100 * FRAME..]);
}

#[test]
fn a_recorder_that_was_killed_leaves_no_success() {
    let mut lab = DumpLab::new(1000, "16 MB", None);
    lab.parts.send_up_to(300);
    let open = lab.command(&["--begin", "3000"]);
    lab.await_waiting(1);
    lab.running.signal(Signal::KILL);
    let ended = open.end(LIMIT);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        ended.stderr.contains("does not answer") && ended.stderr.contains("the dump may be complete"),
        "{ended:?}"
    );
}

#[test]
fn an_address_without_a_recorder_is_named() {
    let free =
        TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
    let address = free.to_string();
    let ended = run(&["dump", "--http", &address, "--to", "/", "--last", "1s"]);
    assert!(ended.code == Some(1) && ended.stderr.contains(&address), "{ended:?}");
    let ended = run(&["dump", "--http", "nowhere", "--to", "/"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("HOST:PORT"), "{ended:?}");
    let ended = run(&["dump", "--http", "https://127.0.0.1:1", "--to", "/"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("--ca"), "{ended:?}");
}
