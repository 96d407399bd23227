//! Attributes of files that a test shows by FUSE.

use std::time::UNIX_EPOCH;

use fuser::{FileAttr, FileType, INodeNo};

/// A file or directory of root with this number and size. All its bytes are on disk.
pub(crate) fn shown_file(ino: INodeNo, kind: FileType, size: u64) -> FileAttr {
    FileAttr {
        ino,
        size,
        blocks: size.div_ceil(512),
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind,
        perm: 0o700,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}
