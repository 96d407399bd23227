//! Where the program is, and where contestants write: directories and file systems of their own, gone when they are dropped.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context;
use tempfile::TempDir;

use crate::measure;

/// The program, which is built beside the bench.
pub(crate) fn program() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe()?.with_file_name("nilometer");
    anyhow::ensure!(program.exists(), "{}: missing: build it with `make dist`", program.display());
    Ok(program)
}

/// A directory of its own in memory (tmpfs).
pub(crate) fn in_memory() -> anyhow::Result<TempDir> {
    directory(Path::new("/dev/shm"))
}

/// A directory of its own below `$NILOMETER_BENCH_DIR`, or else below the current directory.
pub(crate) fn on_disk() -> anyhow::Result<TempDir> {
    let base = std::env::var_os("NILOMETER_BENCH_DIR").map_or_else(|| PathBuf::from("."), PathBuf::from);
    directory(&base.canonicalize().with_context(|| format!("{}: no such directory", base.display()))?)
}

fn directory(base: &Path) -> anyhow::Result<TempDir> {
    let made = tempfile::Builder::new().prefix("nilometer-bench-").tempdir_in(base);
    made.with_context(|| format!("{}: can't make a directory", base.display()))
}

/// A fresh file system in a file in memory, mounted through a loop device. Needs root.
#[derive(Debug)]
pub(crate) struct Volume {
    mounted: Mounted,
    // Dropped last: the image and the mount point lie in it.
    _home: TempDir,
}

#[derive(Debug)]
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Err(error) = succeed("umount", [&self.0]) {
            eprintln!("nilometer-bench: {} stays mounted: {error:#}", self.0.display());
        }
    }
}

const SIZE: u64 = 2 << 30;

impl Volume {
    /// With the kind's defaults, and what it otherwise does in the background after the first mount done at once.
    pub(crate) fn make(kind: &str) -> anyhow::Result<Self> {
        anyhow::ensure!(rustix::process::geteuid().is_root(), "only root can mount a fresh {kind}");
        let home = in_memory()?;
        let (image, point) = (home.path().join("image"), home.path().join("mount"));
        std::fs::File::create(&image)?.set_len(SIZE)?;
        std::fs::create_dir(&point)?;
        let options: &[&str] = match kind {
            "ext4" => &["-q", "-F", "-N", "400000", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"],
            _ => &["-q", "-K"],
        };
        let image = image.as_os_str();
        succeed(&format!("mkfs.{kind}"), options.iter().map(OsStr::new).chain([image]))?;
        succeed("mount", [OsStr::new("-o"), OsStr::new("loop"), image, point.as_os_str()])?;
        Ok(Volume { mounted: Mounted(point), _home: home })
    }

    /// Where it is mounted.
    pub(crate) fn path(&self) -> &Path {
        &self.mounted.0
    }
}

fn succeed(program: &str, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> anyhow::Result<()> {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(program);
    command.args(arguments).env("PATH", format!("{path}:/usr/sbin:/sbin"));
    measure::child(1.0, &mut command).map(drop)
}

/// Takes so much memory from the kernel, touches it and gives it back, so that the next to ask gets pages that are there.
pub(crate) fn touch_memory(bytes: usize) {
    let parts = (0..bytes).step_by(PART).map(|begin| PART.min(bytes - begin));
    let mut memory: Vec<_> = parts.map(nilometer_storage::Buffer::alone).collect();
    for part in &mut memory {
        part.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    }
    std::hint::black_box(&memory);
}

/// One buffer takes no more than 4 GiB.
const PART: usize = 1 << 30;
