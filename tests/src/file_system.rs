//! File systems on sparse files and in memory, at mount points of the tests' own.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use tempfile::TempDir;

use crate::await_some;

/// Returns true if this user may mount. Otherwise it says that the test is skipped, or panics if `CI` or
/// `NILOMETER_REQUIRE_ROOT` is set.
pub fn may_mount() -> bool {
    if rustix::process::geteuid().is_root() && Path::new("/dev/loop-control").exists() {
        return true;
    }
    let required = ["CI", "NILOMETER_REQUIRE_ROOT"].iter().any(|name| std::env::var_os(name).is_some());
    assert!(!required, "this test mounts file systems: it needs root and loop devices");
    eprintln!("skipped: this test mounts file systems, which needs root and loop devices");
    false
}

/// A mounted file system of a test's own. Dropping it thaws, unmounts and removes it.
#[derive(Debug)]
pub struct FileSystem {
    point: PathBuf,
    /// Holds the mount point, and the image if there is one. `None` if the caller holds them.
    directory: Option<TempDir>,
}

impl FileSystem {
    /// ext4 on a sparse file of `mebibytes` MiB, without space that only root may use.
    pub fn ext4(mebibytes: u64) -> Self {
        Self::on_image(mebibytes, &["mkfs.ext4", "-q", "-m", "0"])
    }

    /// ext4 on a sparse file of `mebibytes` MiB, with room for `inodes` files and directories.
    pub fn ext4_for(mebibytes: u64, inodes: u32) -> Self {
        Self::on_image(mebibytes, &["mkfs.ext4", "-q", "-m", "0", "-N", &inodes.to_string()])
    }

    /// XFS on a sparse file of `mebibytes` MiB, at least 300.
    pub fn xfs(mebibytes: u64) -> Self {
        Self::on_image(mebibytes, &["mkfs.xfs", "-q"])
    }

    /// btrfs on a sparse file of `mebibytes` MiB, at least 128.
    pub fn btrfs(mebibytes: u64) -> Self {
        Self::on_image(mebibytes, &["mkfs.btrfs", "-q"])
    }

    /// btrfs on a sparse file of `mebibytes` MiB, with a quota of `quota` MiB.
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

    /// ramfs: the program does not know it as local to one machine.
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

    /// Mounts `what` at a directory that the caller holds.
    pub(crate) fn mounted_at(point: &Path, options: &[&str], what: &Path) -> Self {
        must(Command::new("mount").args(options).arg(what).arg(point));
        FileSystem { point: point.into(), directory: None }
    }

    /// The mount point.
    pub fn path(&self) -> &Path {
        &self.point
    }

    /// Unmounts the image, runs `between`, and mounts it again. The device number changes if `between` takes
    /// the one that became free. Only for images.
    pub fn remount_after(&mut self, between: impl FnOnce()) {
        let image = self.directory.as_ref().expect("an image").path().join("image");
        await_some("the end of what was just started elsewhere and holds all open files", || {
            tried(Command::new("umount").arg(&self.point)).then_some(())
        });
        between();
        must(Command::new("mount").args(["-o", "loop"]).arg(image).arg(&self.point));
    }

    /// Gives a tmpfs another size, in MiB.
    pub fn resize(&self, mebibytes: u64) {
        must(Command::new("mount").args(["-o", &format!("remount,size={mebibytes}m")]).arg(&self.point));
    }

    /// Makes every later write fail.
    pub fn make_read_only(&self) {
        must(Command::new("mount").args(["-o", "remount,bind,ro"]).arg(&self.point));
    }

    /// Makes every change wait until the file system is thawed; nothing else ends the wait.
    pub fn freeze(&self) {
        must(Command::new("fsfreeze").arg("--freeze").arg(&self.point));
    }

    /// The opposite of [`FileSystem::freeze`].
    pub fn thaw(&self) {
        must(Command::new("fsfreeze").arg("--unfreeze").arg(&self.point));
    }

    /// Makes every further operation fail, as if the disk were gone with all names made so far on it. XFS and
    /// ext4.
    pub fn shut_down(&self) {
        must(Command::new("xfs_io").args(["-x", "-c", "shutdown -f"]).arg(&self.point));
    }
}

impl Drop for FileSystem {
    fn drop(&mut self) {
        tried(Command::new("fsfreeze").arg("--unfreeze").arg(&self.point));
        // A killed process lets go of its files a moment later.
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
