//! Servers that break while they are used by URL, and names that two want at the same moment.

use std::fs;

use nilometer_tests::{Testbed, await_some, nilometer, run_directories};
use rustix::process::{Pid, Signal, kill_process};

use crate::by_url::{LASTING, begun, inside, program};

/// The server is killed while a file is written: the fault is data, and the campaign ends by itself.
#[test]
fn a_server_that_is_killed_is_a_fault() {
    let Some(testbed) = Testbed::of_client("xrootd", "xrootd") else { return };
    let place = tempfile::tempdir().expect("a temporary directory");
    let running = begun(&testbed, &testbed.url("xrootd"), LASTING, place.path());
    let store = testbed.folder().join("xrootd/private/run/store");
    await_some("a file that grows", || {
        let run = run_directories(&store).pop()?;
        let sizes = fs::read_dir(&run).ok()?.filter_map(|entry| Some(entry.ok()?.metadata().ok()?.len()));
        sizes.into_iter().any(|size| size > 1 << 20).then_some(())
    });
    testbed.must("harm", &["xrootd", "kill-server", "1"]);
    let output = running.wait_with_output().expect("it ends");
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{said}");
    let results = nilometer_record::read(&place.path().join("record.sqlite")).expect("a record");
    assert!(results.samples.iter().any(|measured| !measured.sample.errors.is_empty()), "{said}");
    testbed.must("harm", &["xrootd", "restart-server", "1"]);
    let cleaned = program(&testbed, &["clean", &testbed.url("xrootd")]);
    assert_eq!(cleaned.code, Some(0), "{cleaned:?}");
    assert!(run_directories(&store).is_empty());
}

/// A process that stands still until this is dropped.
pub(crate) struct Stopped(Pid);

impl Stopped {
    pub(crate) fn server(testbed: &Testbed, system: &str) -> Self {
        let pid = testbed.system(system)["servers"][0]["pid"].as_i64().expect("a process");
        let pid = Pid::from_raw(i32::try_from(pid).expect("a process")).expect("a process");
        kill_process(pid, Signal::STOP).expect("it runs");
        Stopped(pid)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // It may be gone.
        kill_process(self.0, Signal::CONT).ok();
    }
}

/// Nothing waits for ever for a server that stands still: one message, and nothing was done.
#[test]
fn a_server_that_hangs_is_given_up() {
    let Some(testbed) = Testbed::of_client("xrootd", "xrootd") else { return };
    let url = testbed.url("xrootd");
    let stopped = Stopped::server(&testbed, "xrootd");
    for (arguments, part) in [(["describe", &url], "is the server hung?"), (["clean", &url], "timed out")] {
        let ended = program(&testbed, &arguments);
        assert!(ended.code != Some(0) && ended.stderr.contains(part), "{arguments:?}: {ended:?}");
    }
    drop(stopped);
    let after = program(&testbed, &["clean", &url]);
    assert_eq!(after.code, Some(0), "{after:?}");
}

/// `XRootD` makes a directory twice without saying so: of recorders that begin at the same moment one has the name all the same.
#[test]
fn of_two_recorders_of_one_name_one_has_it() {
    let Some(testbed) = Testbed::of_client("xrootd", "xrootd") else { return };
    let url = testbed.url("xrootd");
    let program_path = nilometer().to_str().expect("plain letters");
    let arguments = [
        program_path,
        "simulate",
        "pco-edge",
        "--to",
        &url,
        "--duration",
        "1 s",
        "--name",
        "scan",
        "--reserve",
        "0 B",
        "--rate",
        "10 Hz",
    ];
    let begin =
        || inside(&testbed, &arguments).stdout(std::process::Stdio::null()).spawn().expect("it starts");
    let running = [begin(), begin(), begin()];
    let codes = running.map(|child| child.wait_with_output().expect("it ends").status.code());
    assert_eq!(codes.iter().filter(|code| **code == Some(2)).count(), 2, "{codes:?}");
    let store = testbed.folder().join("xrootd/private/run/store");
    assert!(store.join("scan").is_dir() && !store.join(".scan.claim").exists());
    fs::write(store.join(".other.claim"), "").expect("root writes there");
    let other = arguments.map(|argument| if argument == "scan" { "other" } else { argument });
    let refused = program(&testbed, &other[1..]);
    assert!(refused.code == Some(2) && refused.stderr.contains(".other.claim"), "{refused:?}");
    assert!(!store.join("other").exists(), "nothing was made");
}
