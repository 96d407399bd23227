//! The page cache of one file: drops it and inspects it, because a drop is only a request and a figure needs
//! the fact. It also drops everything the kernel caches of all file systems. The kernel lists none of that,
//! so only the bytes a device then delivers show the drop.

use std::{
    fs::File,
    io,
    os::fd::{AsFd, OwnedFd},
    ptr,
};

use rustix::{
    fs,
    io::{Errno, retry_on_intr},
};

const PAGE: usize = 4096;
/// The file is mapped in windows of this size.
const WINDOW: u64 = 1 << 30;

/// Writes the file's dirty pages out, drops the file from the page cache, and counts the pages that stayed.
pub(super) fn drop_pages(file: &OwnedFd) -> Result<u64, Errno> {
    retry_on_intr(|| fs::fdatasync(file))?;
    fs::fadvise(file, 0, None, fs::Advice::DontNeed)?;
    resident_pages(file).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// Root writes to this file to make the kernel drop clean caches (proc(5)).
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";
/// Drops data, names and inodes.
const EVERYTHING: &str = "3";

/// Writes the file system of this directory out, and drops all unused pages, names and inodes of the machine.
/// Returns false if that is not permitted. It drops twice: a journal holds pages of metadata and releases
/// them only in the drop's second part.
pub(super) fn drop_all(directory: impl AsFd) -> Result<bool, Errno> {
    fs::syncfs(directory)?;
    for _ in 0..2 {
        match std::fs::write(DROP_CACHES, EVERYTHING) {
            Ok(()) => {}
            Err(error) if is_not_ours_to_drop(&error) => return Ok(false),
            Err(error) => return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
        }
    }
    Ok(true)
}

/// Returns true if this process may not drop caches: containers have the file read-only, or not at all.
fn is_not_ours_to_drop(error: &io::Error) -> bool {
    use io::ErrorKind::{NotFound, PermissionDenied, ReadOnlyFilesystem};
    matches!(error.kind(), NotFound | PermissionDenied | ReadOnlyFilesystem)
}

/// Counts the pages of the file that are in the page cache (mincore(2)).
pub(super) fn resident_pages(file: impl AsFd) -> io::Result<u64> {
    let size = fs::fstat(&file).map_err(io::Error::from)?.st_size.cast_unsigned();
    let file = File::from(file.as_fd().try_clone_to_owned()?);
    (0..size)
        .step_by(WINDOW as usize)
        .map(|start| resident_in(&file, start, (size - start).min(WINDOW) as usize))
        .sum()
}

/// Maps the file's first page as shared memory, without touching it.
pub(super) fn map_shared(file: &OwnedFd) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let descriptor = file.as_raw_fd();
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice; nothing reads or writes through it.
    let map = unsafe { libc::mmap(ptr::null_mut(), PAGE, access, libc::MAP_SHARED, descriptor, 0) };
    if map == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping made above; nothing refers to it.
    unsafe { libc::munmap(map, PAGE) };
    Ok(())
}

fn resident_in(file: &File, start: u64, length: usize) -> io::Result<u64> {
    use std::os::fd::AsRawFd;
    let descriptor = file.as_raw_fd();
    let offset = start.cast_signed();
    // SAFETY: a new mapping at an address of the kernel's choice; nothing reads or writes through it.
    let map =
        unsafe { libc::mmap(ptr::null_mut(), length, libc::PROT_NONE, libc::MAP_SHARED, descriptor, offset) };
    if map == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let mut pages = vec![0_u8; length.div_ceil(PAGE)];
    // SAFETY: the mapping has `length` bytes, the vector a byte for each of its pages.
    let result = unsafe { libc::mincore(map, length, pages.as_mut_ptr()) };
    let error = io::Error::last_os_error();
    // SAFETY: the mapping made above; nothing refers to it.
    unsafe { libc::munmap(map, length) };
    if result == 0 { Ok(pages.iter().filter(|&&page| page & 1 != 0).count() as u64) } else { Err(error) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn written_pages_are_seen() {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&vec![1; 10 * PAGE]).expect("space");
        assert_eq!(resident_pages(&file).expect("mincore"), 10);
    }
}
