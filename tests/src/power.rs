//! What a disk holds when the machine loses its power: a copy of the disk at one moment. What a program has written and not
//! synced is in memory then, and not in the copy.

use std::{fs::File, path::Path, process::Command};

use tempfile::TempDir;

use crate::{FileSystem, file_system::must};

/// A file system on a file that can be copied in an instant: it lies on XFS, which shares what two files have in common.
#[derive(Debug)]
pub struct PowerLoss {
    /// Unmounted before what it lies on.
    disk: FileSystem,
    points: TempDir,
    outer: FileSystem,
}

impl PowerLoss {
    /// ext4 of so many MiB.
    pub fn ext4(mebibytes: u64) -> Self {
        let outer = FileSystem::xfs(mebibytes + 400);
        let points = tempfile::tempdir().expect("a temporary directory");
        let image = outer.path().join("disk");
        let file = File::create(&image).expect("an image");
        file.set_len(mebibytes << 20).expect("a sparse file");
        must(Command::new("mkfs.ext4").args(["-q", "-m", "0"]).arg(&image));
        let disk = mounted(&points, "disk", &image);
        PowerLoss { disk, points, outer }
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        self.disk.path()
    }

    /// The same disk as it is found after a loss of power at this moment.
    pub fn after_power_loss(&self, name: &str) -> FileSystem {
        let (image, copy) = (self.outer.path().join("disk"), self.outer.path().join(name));
        must(Command::new("cp").arg("--reflink=always").arg(&image).arg(&copy));
        mounted(&self.points, name, &copy)
    }
}

fn mounted(points: &TempDir, name: &str, image: &Path) -> FileSystem {
    let point = points.path().join(name);
    std::fs::create_dir(&point).expect("a mount point");
    FileSystem::mounted_at(&point, &["-o", "loop"], image)
}
