//! `nilometer mount`, run from outside. The mount is undone even if the test fails.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::{
    Ended, Running,
    file_system::tried,
    program::{nilometer, start},
};

/// Returns true if this user may mount a FUSE file system. Otherwise it says that the test is skipped, or
/// panics in CI.
pub fn may_show() -> bool {
    let root = rustix::process::geteuid().is_root();
    if Path::new("/dev/fuse").exists() && (root || tried(Command::new("fusermount3").arg("--version"))) {
        return true;
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "this test needs /dev/fuse, and fusermount3 where it is not root's"
    );
    eprintln!(
        "skipped: this test needs /dev/fuse, and fusermount3 where it is not root's: scripts/bootstrap test"
    );
    false
}

/// Recordings mounted as files.
#[derive(Debug)]
pub struct Mounted {
    running: Option<Running>,
    point: TempDir,
}

/// Unmounting takes a moment.
const LIMIT: Duration = Duration::from_secs(20);

impl Mounted {
    /// Mounts the recordings in these directories on a directory of its own.
    pub fn of(directories: &[PathBuf]) -> Self {
        Mounted::with(directories, &[])
    }

    /// The same with more options.
    pub fn with(directories: &[PathBuf], options: &[&str]) -> Self {
        nilometer();
        let point = tempfile::tempdir().expect("a temporary directory");
        let mut arguments = vec!["mount".into(), "--at".into(), point.path().to_owned()];
        arguments.extend(options.iter().map(PathBuf::from));
        arguments.extend_from_slice(directories);
        // Held from the beginning, so that its mount is undone even if the program dies.
        let mut mounted = Mounted { running: Some(start(&std::env::temp_dir(), &arguments)), point };
        mounted.running.as_mut().expect("it was started").await_said("mounted on");
        mounted
    }

    /// The mount point.
    pub fn path(&self) -> &Path {
        self.point.path()
    }

    /// The path of a file below the mount point.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Sends a signal to the program.
    pub fn signal(&self, signal: Signal) {
        self.running.as_ref().expect("it runs").signal(signal);
    }

    /// Sends SIGTERM to the program. Returns its end, and true if nothing is mounted any more.
    pub fn end(mut self) -> (Ended, bool) {
        let running = self.running.take().expect("it ends once");
        running.signal(Signal::TERM);
        (running.end(LIMIT), !self.is_mounted())
    }

    /// Unmounts it from outside, and returns the program's end.
    pub fn unmounted(mut self) -> Ended {
        let running = self.running.take().expect("it ends once");
        let fusermount = tried(Command::new("fusermount3").arg("-u").arg(self.path()));
        assert!(fusermount || tried(Command::new("umount").arg(self.path())), "nobody has it open");
        running.end(LIMIT)
    }

    fn is_mounted(&self) -> bool {
        let device = |path: &Path| fs::metadata(path).map(|there| there.dev()).ok();
        device(self.path()) != device(self.path().parent().expect("it has one"))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        drop(self.running.take());
        // The program may die with its mount in place. Unmounting a directory that is no mount does no harm.
        if self.is_mounted() && !tried(Command::new("umount").arg("--lazy").arg(self.path())) {
            tried(Command::new("fusermount3").args(["-u", "-z"]).arg(self.path()));
        }
    }
}
