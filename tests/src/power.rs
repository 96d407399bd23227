//! The content of a disk after a loss of power: a copy of the disk at one moment. Bytes written and not synced
//! are only in memory then, and not in the copy.

use std::{fs::File, path::Path, process::Command};

use tempfile::TempDir;

use crate::{FileSystem, file_system::must};

/// A file system on a file that is copied in an instant. The file lies on XFS, which shares the common blocks
/// of two files.
#[derive(Debug)]
pub struct PowerLoss {
    /// Unmounted before the file system below it.
    disk: FileSystem,
    points: TempDir,
    outer: FileSystem,
}

impl PowerLoss {
    /// ext4 of `mebibytes` MiB.
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

    /// The mount point.
    pub fn path(&self) -> &Path {
        self.disk.path()
    }

    /// The same disk after a loss of power at this moment.
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
