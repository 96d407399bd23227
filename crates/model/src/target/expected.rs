//! The expected file system of a target. A campaign refuses a path on another one. After a failed mount the
//! path is just the directory below, which measures well.

use super::{FileSystemKind, TargetAddress, TargetDescription};

/// A target that is not as expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotExpected {
    /// It is on another file system.
    #[error("{address}: is on {is}, not on the expected {expected}: mount it, or expect one of {names}", names = FileSystemKind::names())]
    Another {
        /// Its address.
        address: TargetAddress,
        /// Its file system, its mount point and the mounted device or server.
        is: String,
        /// The expected file system.
        expected: FileSystemKind,
    },
    /// The number of types is neither one nor the number of targets.
    #[error(
        "you expect {expected} types of file systems of {targets} targets: name one for all, or one for each in their order"
    )]
    Count {
        /// Number of types.
        expected: usize,
        /// Number of targets.
        targets: usize,
    },
}

impl TargetDescription {
    /// Returns an error unless the file system is of this kind.
    pub fn expect_kind(&self, expected: FileSystemKind) -> Result<(), NotExpected> {
        if self.profile.kind == expected {
            return Ok(());
        }
        let mounted = match self.directory() {
            Some(_) => format!(", mounted at {}", self.mount_point.display()),
            None => String::new(),
        };
        let is = format!("{} ({} of {}{mounted})", self.profile.kind, self.file_system, self.source);
        Err(NotExpected::Another { address: self.address.clone(), is, expected })
    }
}

/// Accepts no types, one for all targets, or one for each; refuses other numbers.
pub fn check_expected_count(expected: usize, targets: usize) -> Result<(), NotExpected> {
    if expected <= 1 || expected == targets { Ok(()) } else { Err(NotExpected::Count { expected, targets }) }
}

/// Refuses targets that are not on the expected file systems: one for all, one for each, or none expected.
/// `null:` is on no file system and does not count.
pub fn check_expected(targets: &[TargetDescription], expected: &[FileSystemKind]) -> Result<(), NotExpected> {
    let stored = || targets.iter().filter(|target| target.is_on_storage());
    check_expected_count(expected.len(), stored().count())?;
    let kinds = |index: usize| expected.get(index).or(expected.first());
    let mut pairs = stored().enumerate().filter_map(|(index, target)| Some((target, *kinds(index)?)));
    pairs.try_for_each(|(target, kind)| target.expect_kind(kind))
}
