//! A disk that fails, delays or stops on command. nbdkit's filters work on an image, and nbdfuse shows it as a
//! file. A file system lies on a loop device on top. The kernel sees a disk whose requests fail or wait.

use std::{
    fs::{self, File},
    io::{Read, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use tempfile::TempDir;

use crate::{
    await_some,
    file_system::{FileSystem, may_mount, must, tried},
};

/// Returns true if this user may mount, and the programs are there. Otherwise it says that the test is skipped,
/// or panics in CI.
pub fn may_have_faulty_disks() -> bool {
    if !may_mount() {
        return false;
    }
    let there = ["nbdkit", "nbdfuse"].iter().all(|name| tried(Command::new(name).arg("--version")));
    if there && Path::new("/dev/fuse").exists() {
        return true;
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "this test needs nbdkit, nbdfuse and /dev/fuse: scripts/bootstrap test"
    );
    eprintln!("skipped: this test needs nbdkit, nbdfuse and /dev/fuse: scripts/bootstrap test");
    false
}

/// The properties of a disk.
#[derive(Debug, Clone, Copy)]
struct Disk {
    /// The program that makes the file system, with its options.
    make: &'static [&'static str],
    mebibytes: u64,
    /// Delay of each write.
    delay: Duration,
    /// Most bytes a second. `None` if not limited.
    rate: Option<u64>,
    /// Options of `mount`.
    mounted: &'static str,
}

const fn at_rate(mebibytes: u64, rate: u64) -> Disk {
    Disk { make: EXT4, mebibytes, delay: Duration::ZERO, rate: Some(rate), mounted: "loop" }
}

const EXT4: &[&str] = &["mkfs.ext4", "-q", "-m", "0"];
const XFS: &[&str] = &["mkfs.xfs", "-q"];

/// A file system on a disk of a test's own that you can make fail. Dropping it mends the disk, unmounts it and
/// removes it.
#[derive(Debug)]
pub struct FaultyDisk {
    /// `None` only during a remount.
    volume: Option<FileSystem>,
    daemon: Child,
    directory: TempDir,
    mounted: &'static str,
}

impl FaultyDisk {
    /// ext4 on a disk of `mebibytes` MiB that delays every write by `delay`.
    pub fn ext4(mebibytes: u64, delay: Duration) -> Self {
        Self::on(Disk { make: EXT4, mebibytes, delay, rate: None, mounted: "loop" })
    }

    /// ext4 on a disk in memory of `mebibytes` MiB that moves `rate` bytes a second. After a time in which it
    /// moved fewer it catches up, by at most two seconds' worth.
    pub fn ext4_at_rate(mebibytes: u64, rate: u64) -> Self {
        Self::on(at_rate(mebibytes, rate))
    }

    /// The same, but the file system does not tell its disk to flush its cache when a file is synced.
    pub fn ext4_without_barriers_at_rate(mebibytes: u64, rate: u64) -> Self {
        Self::on(Disk { mounted: "loop,barrier=0", ..at_rate(mebibytes, rate) })
    }

    /// The same with XFS, of at least 300 MiB.
    pub fn xfs_at_rate(mebibytes: u64, rate: u64) -> Self {
        Self::on(Disk { make: XFS, ..at_rate(mebibytes, rate) })
    }

    fn on(like: Disk) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let at = |name: &str| directory.path().join(name);
        let image = File::create(at("image")).and_then(|image| image.set_len(like.mebibytes << 20));
        image.expect("a sparse file");
        File::create(at("disk")).expect("a file to mount on");
        fs::create_dir(at("mounted")).expect("a directory to mount on");
        let daemon = serve(directory.path(), like).spawn();
        let mut disk = FaultyDisk {
            volume: None,
            daemon: daemon.expect("nbdfuse starts"),
            directory,
            mounted: like.mounted,
        };
        disk.await_served();
        must(Command::new(like.make[0]).args(&like.make[1..]).arg(disk.at("disk")));
        disk.mount();
        disk
    }

    fn await_served(&self) {
        let disk = self.at("disk");
        await_some("nbdfuse", || fs::metadata(&disk).is_ok_and(|disk| disk.len() > 0).then_some(()));
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn mount(&mut self) {
        self.volume =
            Some(FileSystem::mounted_at(&self.at("mounted"), &["-o", self.mounted], &self.at("disk")));
    }

    /// The mount point.
    pub fn path(&self) -> PathBuf {
        self.at("mounted")
    }

    /// Makes every later read from the disk fail with EIO.
    pub fn fail_reads(&self) {
        File::create(self.at("pread")).expect("a file");
    }

    /// Makes every later write to the disk fail with EIO.
    pub fn fail_writes(&self) {
        File::create(self.at("pwrite")).expect("a file");
    }

    /// Makes reads and writes succeed again.
    pub fn mend(&self) {
        for kind in ["pread", "pwrite"] {
            drop(fs::remove_file(self.at(kind)));
        }
    }

    /// Mends the disk and mounts it again, so that the kernel's caches are empty.
    pub fn remount(&mut self) {
        self.mend();
        drop(self.volume.take());
        self.mount();
    }

    /// Makes the disk answer no request from now on.
    pub fn pause(&self) {
        assert_eq!(self.control(b'p').ok(), Some(b'P'));
    }

    /// The opposite of [`FaultyDisk::pause`].
    pub fn resume(&self) {
        assert_eq!(self.control(b'r').ok(), Some(b'R'));
    }

    /// Sends a letter to nbdkit's pause filter, which answers when it is done.
    fn control(&self, letter: u8) -> std::io::Result<u8> {
        let mut control = UnixStream::connect(self.at("control"))?;
        control.write_all(&[letter])?;
        let mut answer = [0];
        control.read_exact(&mut answer)?;
        Ok(answer[0])
    }
}

/// nbdkit with its filters, shown as the file `disk`. It serves the image in this directory, or memory if the
/// rate is limited: then only the filter limits it.
fn serve(directory: &Path, like: Disk) -> Command {
    let at = |name: &str| directory.join(name);
    let mut serve = Command::new("nbdfuse");
    serve.arg(at("disk")).args(["--command", "nbdkit", "--single", "--exit-with-parent"]);
    match like.rate {
        Some(_) => serve.arg("memory").arg(format!("{}M", like.mebibytes)),
        None => serve.arg("file").arg(at("image")),
    };
    serve.args(["--filter=pause", "--filter=delay", "--filter=error"]);
    serve.arg(format!("pause-control={}", at("control").display()));
    serve.arg(format!("delay-write={}ms", like.delay.as_millis()));
    for kind in ["pread", "pwrite"] {
        serve.args([format!("error-{kind}=EIO"), format!("error-{kind}-rate=100%")]);
        serve.arg(format!("error-{kind}-file={}", at(kind).display()));
    }
    if let Some(rate) = like.rate {
        serve.args(["--filter=rate".into(), format!("rate={}", 8 * rate)]);
    }
    serve.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    serve
}

impl Drop for FaultyDisk {
    fn drop(&mut self) {
        self.mend();
        drop(self.control(b'r'));
        drop(self.volume.take());
        let disk = self.at("disk");
        // The loop device lets go a moment after the file system.
        let unmounted = (0..50).any(|_| {
            let unmounted = tried(Command::new("umount").arg(&disk));
            if !unmounted {
                std::thread::sleep(Duration::from_millis(50));
            }
            unmounted
        });
        if !unmounted {
            tried(Command::new("umount").arg("--lazy").arg(&disk));
            drop(self.daemon.kill());
        }
        drop(self.daemon.wait());
    }
}
