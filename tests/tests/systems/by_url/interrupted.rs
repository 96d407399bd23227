//! Servers of NFS that end or stand still in the middle of a campaign; servers that ask for credentials which nobody here has.
//! Each is told once, and nothing waits beyond its time.

use std::{
    collections::BTreeSet,
    fs::{self, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use nilometer_plan::Results;
use nilometer_tests::{Testbed, await_some, run_directories, tool};

use crate::by_url::{LASTING, begun, broken::Stopped, program};

/// A campaign on NFS whose file grows.
struct OnNfs {
    testbed: Testbed,
    place: tempfile::TempDir,
    running: Child,
    export: PathBuf,
}

impl OnNfs {
    /// By this plan.
    fn begun(plan: &str) -> Option<Self> {
        let testbed = Testbed::of_client("nfs", "nfs")?;
        let place = tempfile::tempdir().expect("a temporary directory");
        let running = begun(&testbed, &testbed.url("nfs"), plan, place.path());
        let export = testbed.folder().join("nfs/data/export");
        await_some("a file that grows", || {
            let file = run_directories(&export).pop()?.join("n_w0");
            (fs::metadata(&file).ok()?.len() > 1 << 20).then_some(())
        });
        Some(OnNfs { testbed, place, running, export })
    }

    fn ended(self) -> EndedOnNfs {
        let OnNfs { testbed, place, running, export } = self;
        let output = running.wait_with_output().expect("it ends");
        let results = nilometer_record::read(&place.path().join("record.sqlite")).expect("a record");
        EndedOnNfs { said: said(&output), code: output.status.code(), results, testbed, export }
    }
}

/// How it ended, and what it recorded.
struct EndedOnNfs {
    said: String,
    code: Option<i32>,
    results: Results,
    testbed: Testbed,
    export: PathBuf,
}

impl EndedOnNfs {
    /// The errors of all samples, as they are recorded.
    fn errors(&self) -> BTreeSet<String> {
        let of = self.results.samples.iter().flat_map(|measured| measured.sample.errors.keys());
        of.map(|errno| format!("{errno:?}")).collect()
    }

    fn has_hung(&self) -> bool {
        let mut samples = self.results.samples.iter();
        samples.any(|measured| measured.sample.invalid == Some(nilometer_model::Invalid::Hung))
    }

    /// Removes what is left on the server, if something is, and nothing stays.
    fn is_cleaned(&self) {
        let cleaned = program(&self.testbed, &["clean", &self.testbed.url("nfs")]);
        assert_eq!(cleaned.code, Some(0), "{cleaned:?}");
        assert_eq!(run_directories(&self.export), Vec::<PathBuf>::new());
    }
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// What was under way fails, with its number and at once: nothing waits for a server that is gone.
#[test]
fn an_nfs_server_that_is_killed_is_a_fault() {
    let Some(on) = OnNfs::begun(LASTING) else { return };
    on.testbed.must("harm", &["nfs", "kill-server", "1"]);
    let ended = on.ended();
    assert_eq!(ended.code, Some(1), "{}", ended.said);
    assert!(!ended.errors().is_empty() && !ended.has_hung(), "{}", ended.said);
    ended.testbed.must("harm", &["nfs", "restart-server", "1"]);
    ended.is_cleaned();
}

/// One that stands still is waited for, and given up after the time that storage has.
#[test]
fn an_nfs_server_that_stands_still_is_given_up() {
    let plan = LASTING.replace("repeats = 1", "repeats = 1\nhang_after = \"3 s\"");
    let Some(on) = OnNfs::begun(&plan) else { return };
    let stopped = Stopped::server(&on.testbed, "nfs");
    let ended = on.ended();
    assert_eq!(ended.code, Some(1), "{}", ended.said);
    assert!(ended.has_hung(), "{}", ended.said);
    drop(stopped);
    ended.is_cleaned();
}

/// What the library can't do by NFS 4 is refused before anything is begun, and the same server takes NFS 3.
#[test]
fn nfs_4_is_refused_with_the_reason() {
    let Some(testbed) = Testbed::of_client("nfs", "nfs") else { return };
    let url = testbed.url("nfs");
    let by_4 = url.replace("version=3", "version=4");
    for command in ["describe", "evaluate", "verify", "clean"] {
        let refused = program(&testbed, &[command, &by_4]);
        let lines = refused.stderr.lines().filter(|line| line.contains("by NFS 4")).count();
        assert!(refused.code == Some(2) && lines == 1, "{command}: {refused:?}");
    }
    let described = program(&testbed, &["describe", &url]);
    assert!(described.code == Some(0) && described.stdout.contains("NFS 3, by libnfs"), "{described:?}");
    assert_eq!(run_directories(&testbed.folder().join("nfs/data/export")), Vec::<PathBuf>::new());
}

/// The server takes shared secrets only (`sss`), and this user has none.
#[test]
fn credentials_that_are_refused_are_told() {
    let Some(testbed) = Testbed::of_client("xrootd", "xrootd") else { return };
    let Some(keys) = tool("xrdsssadmin") else { return };
    let run = testbed.folder().join("xrootd/private/run");
    make_secret(keys, &run.join("keys"));
    let mut configuration =
        OpenOptions::new().append(true).open(run.join("xrootd.cfg")).expect("a configuration");
    let asks = "xrootd.seclib libXrdSec.so\nsec.protocol sss -s /run/keys\nsec.protbind * only sss\n";
    configuration.write_all(asks.as_bytes()).expect("room");
    testbed.must("harm", &["xrootd", "kill-server", "1"]);
    testbed.must("harm", &["xrootd", "restart-server", "1"]);
    let url = testbed.url("xrootd");
    await_some("a server that listens", || {
        testbed.must("enter", &["ss", "-ltn"]).contains(":1094 ").then_some(())
    });
    let scan = format!("{url}/scan");
    for arguments in [&["describe", &url][..], &["evaluate", &url], &["clean", &url], &["verify", &scan]] {
        let refused = program(&testbed, arguments);
        let told = refused.stderr.lines().filter(|line| !line.trim().is_empty()).count();
        let words =
            refused.stderr.contains("the server refuses") || refused.stderr.contains("Permission denied");
        assert!(refused.code != Some(0) && words && told <= 2, "{arguments:?}: {refused:?}");
    }
}

/// A file with one secret, which the server can read.
fn make_secret(mut program: Command, file: &Path) {
    program.args(["-k", "one", "-u", "nobody", "add"]).arg(file);
    program.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut running = program.spawn().expect("it starts");
    // It asks whether to make the file.
    running.stdin.take().expect("a pipe").write_all(b"y\n").expect("it reads");
    assert!(running.wait().expect("it ends").success());
    let owner = Command::new("chown").arg("xrootd").arg(file).status().expect("it starts");
    assert!(owner.success());
}
