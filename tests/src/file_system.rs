//! File systems on sparse files and in memory, mounted where nobody else looks.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use tempfile::TempDir;

use crate::await_some;

/// Whether this user may mount. If not, the test is skipped with a word, or fails where everything must be tested.
pub fn may_mount() -> bool {
    if rustix::process::geteuid().is_root() && Path::new("/dev/loop-control").exists() {
        return true;
    }
    let required = ["CI", "NILOMETER_REQUIRE_ROOT"].iter().any(|name| std::env::var_os(name).is_some());
    assert!(!required, "this test mounts file systems: it needs root and loop devices");
    eprintln!("skipped: this test mounts file systems, which needs root and loop devices");
    false
}

/// A mounted file system of a test's own. Thawed, unmounted and removed when it is dropped.
#[derive(Debug)]
pub struct FileSystem {
    point: PathBuf,
    /// Holds the mount point, and the image if there is one. None where something else does.
    directory: Option<TempDir>,
}

impl FileSystem {
    /// ext4 on a sparse file of so many MiB, without space that only root may use.
    pub fn ext4(mebibytes: u64) -> Self {
        Self::on_image(mebibytes, &["mkfs.ext4", "-q", "-m", "0"])
    }

    /// ext4 on a sparse file of so many MiB, for so many files and directories.
    pub fn ext4_for(mebibytes: u64, inodes: u32) -> Self {
        Self::on_image(mebibytes, &["mkfs.ext4", "-q", "-m", "0", "-N", &inodes.to_string()])
    }

    /// XFS on a sparse file of so many MiB, at least 300.
    pub fn xfs(mebibytes: u64) -> Self {
        Self::on_image(mebibytes, &["mkfs.xfs", "-q"])
    }

    /// btrfs on a sparse file of so many MiB, at least 128.
    pub fn btrfs(mebibytes: u64) -> Self {
        Self::on_image(mebibytes, &["mkfs.btrfs", "-q"])
    }

    /// btrfs on a sparse file of so many MiB, on which a quota of fewer holds.
    pub fn btrfs_with_quota(mebibytes: u64, quota: u64) -> Self {
        let system = Self::btrfs(mebibytes);
        must(Command::new("btrfs").args(["quota", "enable"]).arg(system.path()));
        must(Command::new("btrfs").args(["qgroup", "limit", &format!("{quota}M")]).arg(system.path()));
        system
    }

    fn on_image(mebibytes: u64, make: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let image = directory.path().join("image");
        let file = File::create(&image).expect("an image");
        file.set_len(mebibytes << 20).expect("a sparse file");
        must(Command::new(make[0]).args(&make[1..]).arg(&image));
        Self::mounted(directory, &["-o", "loop"], &image)
    }

    /// tmpfs with these mount options, such as `size=16m`.
    pub fn tmpfs(options: &str) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        Self::mounted(directory, &["-t", "tmpfs", "-o", options], Path::new("tmpfs"))
    }

    /// ramfs: none of those that one machine has for itself, as far as the program knows.
    pub fn ramfs() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        Self::mounted(directory, &["-t", "ramfs"], Path::new("ramfs"))
    }

    fn mounted(directory: TempDir, options: &[&str], what: &Path) -> Self {
        let point = directory.path().join("mounted");
        std::fs::create_dir(&point).expect("a mount point");
        must(Command::new("mount").args(options).arg(what).arg(&point));
        FileSystem { point, directory: Some(directory) }
    }

    /// Shows `what` at `point`, as `mount --bind` does.
    pub fn bind(what: &Path, point: &Path) -> Self {
        Self::mounted_at(point, &["--bind"], what)
    }

    /// Mounts `what` at a place that somebody else holds.
    pub(crate) fn mounted_at(point: &Path, options: &[&str], what: &Path) -> Self {
        must(Command::new("mount").args(options).arg(what).arg(point));
        FileSystem { point: point.into(), directory: None }
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.point
    }

    /// Mounted anew, on another device number if `between` takes the one that is free after the unmount. Images only.
    pub fn remount_after(&mut self, between: impl FnOnce()) {
        let image = self.directory.as_ref().expect("an image").path().join("image");
        await_some("the end of what was just started elsewhere and holds all open files", || {
            tried(Command::new("umount").arg(&self.point)).then_some(())
        });
        between();
        must(Command::new("mount").args(["-o", "loop"]).arg(image).arg(&self.point));
    }

    /// From here on nothing can be written.
    pub fn make_read_only(&self) {
        must(Command::new("mount").args(["-o", "remount,bind,ro"]).arg(&self.point));
    }

    /// Every change waits until the file system is thawed, and nothing can end the wait.
    pub fn freeze(&self) {
        must(Command::new("fsfreeze").arg("--freeze").arg(&self.point));
    }

    /// The opposite of [`FileSystem::freeze`].
    pub fn thaw(&self) {
        must(Command::new("fsfreeze").arg("--unfreeze").arg(&self.point));
    }

    /// As if the disk were gone, with all names made so far on it: every further operation fails. XFS and ext4.
    pub fn shut_down(&self) {
        must(Command::new("xfs_io").args(["-x", "-c", "shutdown -f"]).arg(&self.point));
    }
}

impl Drop for FileSystem {
    fn drop(&mut self) {
        tried(Command::new("fsfreeze").arg("--unfreeze").arg(&self.point));
        // What a killed process still holds is let go a moment later.
        for _ in 0..50 {
            if tried(Command::new("umount").arg(&self.point)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        tried(Command::new("umount").arg("--lazy").arg(&self.point));
        drop(self.directory.take());
    }
}

pub(crate) fn must(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("can't start {command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed: {said}");
}

pub(crate) fn tried(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}
