//! Disks of a known rate behind a link of a known rate. One nbdkit limits each connection, and all of them
//! together. An nbdfuse for each disk shows it as a file, with ext4 on a loop device on top.

use std::{
    fs::{self, File},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use crate::{
    await_some,
    file_system::{FileSystem, must, tried},
};

/// Time that a disk may catch up after moving fewer bytes than it could, in seconds. It is short, so that a
/// file of some seconds is written at the stated rate.
const BURST: &str = "burstiness=0.2";

/// Disks behind a link. Dropping it unmounts and removes them.
#[derive(Debug)]
pub struct SharedLink {
    volumes: Vec<FileSystem>,
    shown: Vec<Child>,
    server: Child,
    /// Holds the images in memory, so that only nbdkit limits the rate.
    memory: Option<FileSystem>,
    directory: TempDir,
}

impl SharedLink {
    /// Makes `count` disks of `mebibytes` MiB. Each moves at most `each` bytes a second, all together at most
    /// `all`.
    pub fn ext4(count: usize, mebibytes: u64, each: u64, all: u64) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let memory = FileSystem::tmpfs(&format!("size={}m", count as u64 * mebibytes + 16));
        let socket = directory.path().join("socket");
        let server = serve(&socket, memory.path(), each, all).spawn().expect("nbdkit starts");
        let mut link =
            SharedLink { volumes: Vec::new(), shown: Vec::new(), server, memory: Some(memory), directory };
        await_some("nbdkit", || UnixStream::connect(&socket).ok());
        for index in 0..count {
            link.add(index, mebibytes, &socket);
        }
        link
    }

    fn add(&mut self, index: usize, mebibytes: u64, socket: &Path) {
        let name = format!("disk-{index}");
        let images = self.memory.as_ref().expect("it is there until the end").path();
        let image = File::create(images.join(&name)).and_then(|image| image.set_len(mebibytes << 20));
        image.expect("a sparse file");
        let shown = self.at(&name);
        File::create(&shown).expect("a file to mount on");
        let mut show = Command::new("nbdfuse");
        show.args(["--connections", "1"]).arg(&shown);
        show.arg(format!("nbd+unix:///{name}?socket={}", socket.display()));
        self.shown.push(quiet(&mut show).spawn().expect("nbdfuse starts"));
        await_some("nbdfuse", || fs::metadata(&shown).is_ok_and(|disk| disk.len() > 0).then_some(()));
        // mkfs leaves nothing to be written later, during a measurement.
        let whole = ["-E", "lazy_itable_init=0,lazy_journal_init=0"];
        must(Command::new("mkfs.ext4").args(["-q", "-m", "0"]).args(whole).arg(&shown));
        let point = self.at(&format!("mounted-{index}"));
        fs::create_dir(&point).expect("a directory to mount on");
        self.volumes.push(FileSystem::mounted_at(&point, &["-o", "loop"], &shown));
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The mount points of the disks.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.volumes.iter().map(|volume| volume.path().to_path_buf()).collect()
    }
}

fn serve(socket: &Path, images: &Path, each: u64, all: u64) -> Command {
    let mut serve = Command::new("nbdkit");
    serve.args(["--foreground", "--unix"]).arg(socket).arg("file");
    serve.arg(format!("dir={}", images.display())).arg("--filter=rate");
    serve.args([format!("connection-rate={}", 8 * each), format!("rate={}", 8 * all), BURST.into()]);
    quiet(&mut serve);
    serve
}

fn quiet(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}

impl Drop for SharedLink {
    fn drop(&mut self) {
        self.volumes.clear();
        for (index, shown) in self.shown.iter_mut().enumerate() {
            let disk = self.directory.path().join(format!("disk-{index}"));
            // The loop device lets go a moment after the file system.
            let unmounted = (0..50).any(|_| {
                let unmounted = tried(Command::new("umount").arg(&disk));
                if !unmounted {
                    std::thread::sleep(std::time::Duration::from_millis(50));
                }
                unmounted
            });
            if !unmounted {
                tried(Command::new("umount").arg("--lazy").arg(&disk));
                drop(shown.kill());
            }
            drop(shown.wait());
        }
        drop(self.server.kill());
        drop(self.server.wait());
        drop(self.memory.take());
    }
}
