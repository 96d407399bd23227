//! A new directory below one that the user named, for files that stay: a recording belongs to the user.

use std::{
    fs::{File, Metadata},
    io::{self, Write},
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use nilometer_model::{Coldness, DeviceTraffic, FileSystemSpace, StripeLayout, TargetDescription};
use rustix::{
    fs::{self, AtFlags, FileType, FlockOperation, Mode, OFlags},
    io::{Errno, retry_on_intr},
};

use super::{
    super::{KeptDirectory, Target, TargetError},
    chilled, directory_of, joined, layout_in_force, layout_of_new_file, space,
    stripe::{kept_beside, set_layout},
};
use crate::{
    engine::{self, Engine, EngineError, Options},
    new_file::{self, NewFile},
};

/// A new directory for files that stay. This target touches nothing outside it and removes nothing in it.
#[derive(Debug)]
pub struct Directory {
    description: TargetDescription,
    path: PathBuf,
    parent: OwnedFd,
    root: OwnedFd,
}

impl Directory {
    /// Makes the directory of this name at the described path. It must not exist.
    pub fn create(description: TargetDescription, name: &str) -> Result<Self, TargetError> {
        let below = directory_of(&description)?;
        let path = below.join(name);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = || fs::open(below, flags, Mode::empty());
        let parent = retry_on_intr(open).map_err(TargetError::io(below, "open"))?;
        fs::mkdirat(&parent, name, Mode::from_raw_mode(0o755))
            .map_err(TargetError::io(&path, "make the directory"))?;
        // Files that were reported as durable in it must still have a name after a loss of power.
        retry_on_intr(|| fs::fsync(&parent)).map_err(TargetError::io(below, "sync"))?;
        let open = || fs::openat(&parent, name, flags, Mode::empty());
        let root = retry_on_intr(open).map_err(TargetError::io(&path, "open"))?;
        // Held while something is recorded here, to show that to others. Without file locks they can't see
        // it.
        fs::flock(&root, FlockOperation::NonBlockingLockExclusive).ok();
        Ok(Directory { description, path, parent, root })
    }

    /// Opens the directory of this name that another process of the same recording has just made and shares.
    /// `identity` is its inode, by which this process recognises it: another machine may see another device.
    ///
    /// Takes its share of the lock. Most file systems keep the locks of directories on each machine, so the lock of
    /// the maker does not show on others. A process may also outlive the maker.
    pub fn join(description: TargetDescription, name: &str, identity: u64) -> Result<Self, TargetError> {
        let below = directory_of(&description)?;
        let path = below.join(name);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = || fs::open(below, flags, Mode::empty());
        let parent = retry_on_intr(open).map_err(TargetError::io(below, "open"))?;
        let join = "record into the directory that process 0 has made";
        let open = || fs::openat(&parent, name, flags, Mode::empty());
        let root = retry_on_intr(open).map_err(TargetError::io(&path, join))?;
        let stat = fs::fstat(&root).map_err(TargetError::io(&path, join))?;
        if stat.st_ino != identity {
            let source = io::Error::other("here another directory has this path");
            return Err(TargetError::Io { path, action: join, source });
        }
        hold_together(&root).map_err(TargetError::io(&path, "lock"))?;
        Ok(Directory { description, path, parent, root })
    }

    /// The number by which another process recognises the directory: its inode.
    pub fn identity(path: &Path) -> io::Result<u64> {
        Ok(fs::stat(path)?.st_ino)
    }

    /// Moves a file of this directory up into its parent, under a name that must be free there. The file then
    /// has these mode bits, reduced by this process's umask, and survives a loss of power.
    pub fn move_up(&self, name: &str, to: &str, mode: impl FnOnce(&Metadata) -> u32) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file: File = retry_on_intr(|| fs::openat(&self.root, name, flags, Mode::empty()))?.into();
        file.set_permissions(new_file::permissions(mode(&file.metadata()?)))?;
        file.sync_all()?;
        new_file::rename_new(self.root.as_fd(), name, self.parent.as_fd(), to)?;
        Ok(retry_on_intr(|| fs::fsync(&self.parent))?)
    }

    /// Removes the directory if it is empty: for one that turned out not to be needed.
    pub fn remove_if_empty(self) -> Result<(), TargetError> {
        self.remove_unused(&[])
    }

    fn kept(&self) -> TargetError {
        TargetError::Kept {
            path: self.path.clone(),
            why: "a recording stays until its user removes it".into(),
        }
    }
}

/// Takes the lock that the processes of one recording hold together. Without file locks nobody holds any.
fn hold_together(root: &OwnedFd) -> Result<(), Errno> {
    match joined::take_share(root) {
        Err(Errno::WOULDBLOCK) => Err(Errno::WOULDBLOCK),
        _ => Ok(()),
    }
}

impl KeptDirectory for Directory {
    fn path(&self) -> &Path {
        &self.path
    }

    /// Puts the file into the directory made by this target, even if another entry has its path by now.
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let file = NewFile::create_in(self.root.try_clone()?, name)?;
        file.file().write_all(bytes)?;
        file.finish(0o666)
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let new = format!(".{name}.new");
        // A replacement that was killed may have left it.
        match fs::unlinkat(&self.root, new.as_str(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        self.put(&new, bytes)?;
        fs::renameat(&self.root, new.as_str(), &self.root, name)?;
        Ok(retry_on_intr(|| fs::fsync(&self.root))?)
    }

    fn share_lock(&self) -> Result<(), TargetError> {
        hold_together(&self.root).map_err(TargetError::io(&self.path, "lock"))
    }

    /// Does not touch another entry that has the directory's path by now.
    fn remove_unused(&self, names: &[String]) -> Result<(), TargetError> {
        for name in names {
            let there = fs::statat(&self.root, name.as_str(), AtFlags::SYMLINK_NOFOLLOW);
            if there.is_ok_and(|there| FileType::from_raw_mode(there.st_mode).is_file()) {
                match fs::unlinkat(&self.root, name.as_str(), AtFlags::empty()) {
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(errno) => return Err(TargetError::io(&self.path.join(name), "remove")(errno)),
                }
            }
        }
        let failed = TargetError::io(&self.path, "remove");
        let name = self.path.file_name().unwrap_or_default();
        let ours = fs::fstat(&self.root).map(|stat| (stat.st_dev, stat.st_ino));
        let there = fs::statat(&self.parent, name, AtFlags::SYMLINK_NOFOLLOW);
        if there.map(|stat| (stat.st_dev, stat.st_ino)) != ours {
            return Err(failed(Errno::NOENT));
        }
        fs::unlinkat(&self.parent, name, AtFlags::REMOVEDIR).map_err(failed)
    }
}

impl Target for Directory {
    fn description(&self) -> &TargetDescription {
        &self.description
    }

    fn engine(&self, options: &Options) -> Result<Box<dyn Engine>, EngineError> {
        let engine = options.kind.name();
        let setup = |source| EngineError::Setup { engine, what: "open the directory", source };
        engine::on_directory(self.root.try_clone().map_err(setup)?, options)
    }

    fn space(&self) -> Result<FileSystemSpace, TargetError> {
        space(directory_of(&self.description)?)
    }

    fn chill(&self, name: &str) -> Result<Coldness, TargetError> {
        chilled(&self.root, &self.path, name, &self.description)
    }

    fn traffic(&self) -> Option<DeviceTraffic> {
        super::device_traffic(&self.description)
    }

    /// Sets the layout on the new directory alone. Call it before any file is there: files keep their layout.
    fn lay_out(&self, asked: &StripeLayout) -> Result<Option<StripeLayout>, TargetError> {
        let Some(control) = self.description.striping else { return Ok(None) };
        let asked = control.choosable(asked);
        if asked == StripeLayout::default() {
            return Ok(None);
        }
        let inherited = control.choosable(&layout_in_force(control, self.root.as_fd(), &self.path)?);
        let inherited = kept_beside(control, &asked, inherited);
        set_layout(control, &self.path, &asked.or(inherited))?;
        layout_of_new_file(control, self.root.as_fd(), &self.path).map(Some)
    }

    fn clear(&self) -> Result<(), TargetError> {
        Err(self.kept())
    }

    fn remove(&self) -> Result<(), TargetError> {
        Err(self.kept())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::probe;

    #[test]
    fn it_is_new_and_what_is_in_it_stays() {
        let below = tempfile::tempdir().expect("a temporary directory");
        let description = probe(below.path()).expect("it can be described");
        let made = Directory::create(description.clone(), "scan-1").expect("it is new");
        assert!(made.path().is_dir());
        let error = Directory::create(description.clone(), "scan-1").expect_err("it exists").to_string();
        assert!(error.contains("scan-1") && error.contains("exists"), "{error}");
        std::fs::write(made.path().join("mine"), "x").expect("space");
        assert!(made.clear().is_err() && made.remove().is_err());
        let path = made.path().to_owned();
        assert!(made.remove_if_empty().is_err() && path.join("mine").exists());
        let empty = Directory::create(description, "scan-2").expect("it is new");
        empty.remove_if_empty().expect("it is empty");
        let description = probe(below.path()).expect("it can be described");
        let armed = Directory::create(description.clone(), "scan-3").expect("it is new");
        std::fs::write(armed.path().join("scan-3.0.journal"), "x").expect("space");
        armed
            .remove_unused(&["scan-3.0.journal".to_owned(), "scan-3.vdif".to_owned()])
            .expect("nothing foreign is in it");
        assert_eq!(std::fs::read_dir(below.path()).expect("listed").count(), 1);
    }

    #[test]
    fn another_process_joins_it_only_by_its_identity() {
        let below = tempfile::tempdir().expect("a temporary directory");
        let description = probe(below.path()).expect("it can be described");
        let made = Directory::create(description.clone(), "scan-1").expect("it is new");
        let identity = Directory::identity(made.path()).expect("it is there");
        let error =
            Directory::join(description.clone(), "scan-1", identity).expect_err("not shared").to_string();
        assert!(error.contains("can't lock"), "{error}");
        made.share_lock().expect("nobody else holds it");
        let joined = Directory::join(description.clone(), "scan-1", identity).expect("it is the same");
        joined.put("mine", b"x").expect("space");
        assert!(made.path().join("mine").is_file());
        for (name, identity) in [("scan-1", identity + 1), ("scan-2", identity)] {
            let error =
                Directory::join(description.clone(), name, identity).expect_err("another").to_string();
            assert!(error.contains(name) && error.contains("process 0 has made"), "{error}");
        }
    }

    #[test]
    fn each_process_that_records_into_it_holds_its_lock() {
        let below = tempfile::tempdir().expect("a temporary directory");
        let description = probe(below.path()).expect("it can be described");
        let made = Directory::create(description.clone(), "scan-1").expect("it is new");
        made.share_lock().expect("nobody else holds it");
        let identity = Directory::identity(made.path()).expect("it is there");
        let path = made.path().to_owned();
        let [one, other] = [(), ()]
            .map(|()| Directory::join(description.clone(), "scan-1", identity).expect("it is shared"));
        let is_free = || {
            let directory = File::open(&path).expect("it is there");
            fs::flock(&directory, FlockOperation::NonBlockingLockExclusive).is_ok()
        };
        for left in [made, one, other] {
            assert!(!is_free(), "the others hold it on");
            drop(left);
        }
        assert!(is_free());
    }

    #[test]
    fn two_processes_remove_the_same_unused_files() {
        let below = tempfile::tempdir().expect("a temporary directory");
        let description = probe(below.path()).expect("it can be described");
        let made = Directory::create(description.clone(), "scan-1").expect("it is new");
        made.share_lock().expect("nobody else holds it");
        let identity = Directory::identity(made.path()).expect("it is there");
        let joined = Directory::join(description, "scan-1", identity).expect("it is shared");
        for name in ["scan-1.h5", "scan-1.0.journal", "scan-1.1.journal"] {
            std::fs::write(made.path().join(name), "").expect("space");
        }
        let own = |journal: &str| ["scan-1.h5".to_owned(), journal.to_owned()];
        joined.remove_unused(&own("scan-1.1.journal")).expect_err("the other one's journal is in it");
        made.remove_unused(&own("scan-1.0.journal")).expect("nothing foreign is in it");
    }

    #[test]
    fn what_has_its_path_by_now_is_not_touched() {
        let below = tempfile::tempdir().expect("a temporary directory");
        let elsewhere = below.path().join("elsewhere");
        std::fs::create_dir(&elsewhere).expect("a directory");
        std::fs::write(elsewhere.join("resolv.conf"), "nameserver").expect("space");
        let description = probe(below.path()).expect("it can be described");
        let made = Directory::create(description, "resolv").expect("it is new");
        let path = made.path().to_owned();
        std::fs::write(path.join("resolv.conf"), "ours").expect("space");
        std::fs::rename(&path, below.path().join("away")).expect("the owner of the directory may");
        std::os::unix::fs::symlink(&elsewhere, &path).expect("a link");
        made.remove_unused(&["resolv.conf".to_owned()]).expect_err("it is not there any more");
        assert!(elsewhere.join("resolv.conf").exists() && path.symlink_metadata().is_ok());
        assert!(!below.path().join("away/resolv.conf").exists(), "the one in the held directory is ours");
    }

    #[test]
    fn a_file_is_put_where_the_directory_is_and_in_the_place_of_none() {
        let below = tempfile::tempdir().expect("a temporary directory");
        let elsewhere = below.path().join("elsewhere");
        std::fs::create_dir(&elsewhere).expect("a directory");
        let description = probe(below.path()).expect("it can be described");
        let made = Directory::create(description, "scan").expect("it is new");
        std::fs::rename(made.path(), below.path().join("away")).expect("the owner of the directory may");
        std::os::unix::fs::symlink(&elsewhere, made.path()).expect("a link");
        made.put("summary", b"all of it").expect("space");
        let there = || std::fs::read(below.path().join("away/summary")).expect("it is there");
        assert_eq!(there(), b"all of it");
        made.put("summary", b"another").expect_err("there is one");
        assert_eq!(there(), b"all of it");
        let names = |path: &Path| std::fs::read_dir(path).expect("listed").count();
        assert_eq!((names(&elsewhere), names(&below.path().join("away"))), (0, 1), "nothing is left behind");
    }
}
