//! A directory of an automounter is what it mounts, which it does when it is asked for: a real one, of the kernel.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use nilometer_tests::{await_some, may_mount, python, root, run};
use tempfile::TempDir;

/// Its directory, with nothing mounted yet. It is ended, and what it mounted unmounted, when this is dropped.
struct Automounter {
    child: Child,
    point: TempDir,
}

impl Automounter {
    /// None where the kernel has no autofs, or there is no Python.
    #[expect(clippy::print_stderr, reason = "who reads what a test says learns that it was skipped")]
    fn start() -> Option<Self> {
        let known = std::fs::read_to_string("/proc/filesystems").expect("the kernel's list");
        if !known.lines().any(|line| line.ends_with("\tautofs")) {
            eprintln!("skipped: this kernel has no autofs");
            return None;
        }
        let point = tempfile::tempdir().expect("a temporary directory");
        let script = root().join("tests/tests/systems/automounter.py");
        let mut command = python(&["ctypes"])?;
        command.arg(script).arg(point.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let child = command.spawn().expect("python3 is there");
        let mut automounter = Automounter { child, point };
        let said = automounter.child.stdout.take().expect("it is piped");
        let mut line = String::new();
        BufReader::new(said).read_line(&mut line).expect("it says something");
        assert_eq!(line.trim(), "ready");
        Some(automounter)
    }

    fn path(&self) -> &Path {
        self.point.path()
    }
}

impl Drop for Automounter {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.kill().ok();
        self.child.wait().ok();
        let point = self.point.path().to_owned();
        await_some("the end of all mounts there", move || {
            let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
            if !mounts.lines().any(|line| line.split(' ').nth(1).map(PathBuf::from) == Some(point.clone())) {
                return Some(());
            }
            Command::new("umount").arg(&point).stderr(Stdio::null()).status().ok();
            None
        });
    }
}

#[test]
fn a_directory_is_what_an_automounter_mounts_there() {
    if !may_mount() {
        return;
    }
    let Some(automounter) = Automounter::start() else { return };
    let path = automounter.path().to_string_lossy().into_owned();
    let refused = run(&["describe", "--expect", "autofs", &path]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("is on tmpfs (tmpfs of behind"), "{}", refused.stderr);
}
