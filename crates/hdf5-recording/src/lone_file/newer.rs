//! Recognises files of a newer version of HDF5: they are whole, but this library does not know the form of some
//! objects.
//!
//! Since superblock version 2 every block of metadata has a checksum, which the library compares before it reads
//! the block. A version that it does not know is therefore no damage there.

use std::{fs::File, os::unix::fs::FileExt};

use nilometer_hdf5::Hdf5Error;

use super::{BrokenObject, LoneFileError};

/// The version of the superblock follows the signature.
const VERSION_AT: usize = 8;
/// The first version of the superblock with which all metadata have checksums.
const WITH_CHECKSUMS: u8 = 2;

/// Returns the error, or that a newer version of HDF5 made the file, if that is the cause.
pub(super) fn or(error: LoneFileError, file: &File) -> LoneFileError {
    match (&error, cause(&error, file)) {
        (LoneFileError::Hdf5 { path, .. } | LoneFileError::Broken { path, .. }, Some(why)) => {
            LoneFileError::Newer { path: path.clone(), why }
        }
        _ => error,
    }
}

/// Marks objects that a newer version of HDF5 made.
pub(super) fn mark(objects: &mut [BrokenObject], file: &File) {
    if superblock_version(file).is_none_or(|version| version < WITH_CHECKSUMS) {
        return;
    }
    for object in objects.iter_mut().filter(|object| is_of_version(&object.why)) {
        object.why.push_str(": it is newer than this library, HDF5 1.14.6, and not read");
    }
}

/// The thing that the library does not know; `None` if the file is damaged, or something else is wrong.
fn cause(error: &LoneFileError, file: &File) -> Option<String> {
    let version = superblock_version(file)?;
    match error {
        LoneFileError::Hdf5 { source: Hdf5Error::Refused { what, why }, .. } => {
            let is_newer = version >= WITH_CHECKSUMS && is_of_version(why);
            is_newer.then(|| format!("can't {what}: {why}"))
        }
        LoneFileError::Broken { objects, .. } if version >= WITH_CHECKSUMS => {
            let is_newer = |object: &BrokenObject| is_of_version(&object.why);
            objects.iter().all(is_newer).then(|| format!("{}: {}", objects[0].path, objects[0].why))
        }
        _ => None,
    }
}

/// The version of the superblock, if it is at the start of the file.
fn superblock_version(file: &File) -> Option<u8> {
    let mut begin = [0; VERSION_AT + 1];
    file.read_exact_at(&mut begin, 0).ok()?;
    Some(begin[VERSION_AT])
}

/// Returns true if the library refused an object because of its version: `bad version number for layout message`.
fn is_of_version(why: &str) -> bool {
    let why = why.to_lowercase();
    why.contains("version")
        && ["bad", "unknown", "unsupported", "wrong", "invalid", "out of range"]
            .iter()
            .any(|word| why.contains(word))
}

#[cfg(test)]
mod tests {
    use std::{io::Write, path::PathBuf};

    use super::*;

    fn file(version: u8) -> File {
        let mut file = tempfile::tempfile().expect("a temporary file");
        file.write_all(b"\x89HDF\r\n\x1a\n").expect("room");
        file.write_all(&[version; 40]).expect("room");
        file
    }

    fn broken(whys: &[&str]) -> LoneFileError {
        let objects = whys.iter().map(|why| BrokenObject { path: "/entry".into(), why: (*why).into() });
        LoneFileError::Broken { path: PathBuf::from("x.h5"), objects: objects.collect(), others: Vec::new() }
    }

    #[test]
    fn an_unknown_version_is_newer_only_where_checksums_prove_that_it_is_no_damage() {
        const LAYOUT: &str = "HDF5 can't open /entry: bad version number for layout message";
        let is_newer = |error, version| matches!(or(error, &file(version)), LoneFileError::Newer { .. });
        assert!(is_newer(broken(&[LAYOUT]), 3) && is_newer(broken(&[LAYOUT]), 2));
        assert!(!is_newer(broken(&[LAYOUT]), 0), "a flipped bit is the same");
        assert!(!is_newer(broken(&["HDF5 can't open /entry: incorrect metadata checksum"]), 3));
        assert!(!is_newer(broken(&[LAYOUT, "HDF5 can't open /b: incorrect metadata checksum"]), 3));
        let error = or(broken(&[LAYOUT]), &file(3));
        assert!(!error.is_damage() && error.to_string().contains("newer than this library"), "{error}");
    }
}
