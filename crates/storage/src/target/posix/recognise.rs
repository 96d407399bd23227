//! Recognises the storage below a directory. The mount table names a type and statfs(2) confirms it. If
//! neither is enough, the code queries the mount itself; `/sys` shows the devices below. A query may hang for
//! ever (see [`super::probe`]).

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
    path::{Path, PathBuf},
};

use nilometer_model::{FileSystemKind, StorageProfile};
use rustix::fs::{Mode, OFlags};

use super::{
    layers::{btrfs_devices, device_of_name, device_of_number},
    mounts::{Mount, mount_of, mount_of_id},
};

/// A directory's mount, and the storage recognised there.
#[derive(Debug)]
pub(super) struct Recognised {
    pub(super) mount: Mount,
    pub(super) profile: StorageProfile,
    /// The mounted block device, by its name in `/sys/class/block`.
    pub(super) device: Option<String>,
}

/// The directory in which the kernel describes its devices.
pub(super) const SYS: &str = "/sys";

/// Recognises the storage of a directory whose path has no symlinks.
pub(super) fn recognise(directory: &Path) -> io::Result<Recognised> {
    // Opening makes an automounter mount: only then does the table contain the file system.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(directory, flags, Mode::empty())?;
    // Mount points of other users need not be text.
    let table = std::fs::read("/proc/self/mountinfo")?;
    let table = String::from_utf8_lossy(&table);
    let mount = mount_id(&opened).and_then(|id| mount_of_id(id, &table));
    let mount = mount.or_else(|| mount_of(directory, &table)).ok_or_else(not_mounted)?;
    // The magic number has 32 bits, although the C library may use another type.
    let magic = rustix::fs::fstatfs(&opened)?.f_type.cast_unsigned() as u32;
    let called = FileSystemKind::of_mount(&mount.file_system, &mount.source);
    let kind = asked(called, &mount.mount_point, directory).confirmed_by(magic);
    let (layers, device) = below(&mount, kind);
    Ok(Recognised { profile: StorageProfile { kind, layers, ..StorageProfile::default() }, mount, device })
}

/// Returns the mount of an open directory. Its path alone could name a mount that another covers.
fn mount_id(opened: &OwnedFd) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", opened.as_raw_fd())).ok()?;
    text.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim().parse().ok()
}

/// In a chroot whose root is no mount, the mount table has no entry for it.
fn not_mounted() -> io::Error {
    let why = "/proc/self/mountinfo has none (a chroot needs one at its root: mount --bind ROOT ROOT)";
    io::Error::new(io::ErrorKind::NotFound, why)
}

/// Queries the mount itself if several systems share its type, or if any program may have chosen its source.
fn asked(called: FileSystemKind, mount_point: &Path, directory: &Path) -> FileSystemKind {
    let has = |name: &str| mount_point.join(name).symlink_metadata().is_ok();
    match called {
        // Both files can be opened by name, but are not listed.
        FileSystemKind::MooseFs if !has(".masterinfo") => FileSystemKind::Fuse,
        FileSystemKind::Nfs if directory.join(".(tags)()").symlink_metadata().is_ok() => {
            FileSystemKind::DCache
        }
        FileSystemKind::Fuse if has(".masterinfo") && has(".stats") => FileSystemKind::MooseFs,
        FileSystemKind::Fuse if has_attribute(directory, "xroot.url") => FileSystemKind::XRootD,
        _ => called,
    }
}

fn has_attribute(path: &Path, name: &str) -> bool {
    rustix::fs::getxattr(path, name, &mut [0; 4096]).is_ok()
}

/// Returns the block devices below a mount, and the name of the mounted one.
fn below(mount: &Mount, kind: FileSystemKind) -> (Vec<nilometer_model::BlockLayer>, Option<String>) {
    let sys = Path::new(SYS);
    if let Some(device) = device_of_number(sys, &mount.numbers) {
        let name = device.name.clone();
        return (vec![device], Some(name));
    }
    let name = device_of_source(&mount.source);
    let layers = match (kind, &name) {
        (FileSystemKind::Btrfs, Some(name)) => btrfs_devices(sys, name),
        (_, Some(name)) => device_of_name(sys, name).into_iter().collect(),
        (_, None) => Vec::new(),
    };
    (layers, name)
}

/// Returns the name in `/sys/class/block` of a mounted device, given the mount's source.
fn device_of_source(source: &str) -> Option<String> {
    let path: PathBuf = Path::new(source).canonicalize().ok().filter(|path| path.starts_with("/dev"))?;
    let name = path.file_name()?.to_str()?.to_owned();
    Path::new(SYS).join("class/block").join(&name).exists().then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_directory_is_on_something_certain_or_remote() {
        let here = Path::new(".").canonicalize().expect("it is there");
        let Recognised { mount, profile, device } = recognise(&here).expect("it is mounted");
        assert!(here.starts_with(&mount.mount_point));
        if let Some(device) = device {
            assert_eq!(profile.layers.iter().filter(|layer| layer.name == device).count(), 1, "{profile:?}");
        }
    }

    #[test]
    fn an_automounter_alone_is_not_what_it_mounts() {
        // The table before and after somebody opened the directory (proc_pid_mountinfo(5)): a replay.
        const BEFORE: &str = "50 22 0:40 / /data rw - autofs systemd-1 rw,fd=30,direct";
        let after = format!("{BEFORE}\n51 50 0:41 / /data rw - nfs4 server:/export rw,vers=4.2");
        let kind = |table: &str| {
            let mount = mount_of(Path::new("/data"), table).expect("it is in the table");
            FileSystemKind::of_mount(&mount.file_system, &mount.source)
        };
        assert_eq!((kind(BEFORE), kind(&after)), (FileSystemKind::Autofs, FileSystemKind::Nfs));
    }
}
