//! What a target is expected to be: a path on something else is refused, because a mount that is missing leaves the directory
//! below, which measures well.

use super::{FileSystemKind, TargetAddress, TargetDescription};

/// A target is not what was expected of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotExpected {
    /// It is on another file system.
    #[error("{address}: is on {is} and not on {expected}, as is expected of it: mount it, or expect one of {names}", names = FileSystemKind::names())]
    Another {
        /// Where.
        address: TargetAddress,
        /// What it is, where it is mounted, and what is.
        is: String,
        /// What was expected.
        expected: FileSystemKind,
    },
    /// There are neither one for all nor one for each.
    #[error(
        "{expected} types of file systems are expected of {targets} targets: name one for all, or one for each in their order"
    )]
    Count {
        /// How many types.
        expected: usize,
        /// How many targets.
        targets: usize,
    },
}

impl TargetDescription {
    /// Refuses it if it is not of this kind.
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

/// Refuses a number of types that is neither none, nor one for all, nor one for each.
pub fn check_expected_count(expected: usize, targets: usize) -> Result<(), NotExpected> {
    if expected <= 1 || expected == targets { Ok(()) } else { Err(NotExpected::Count { expected, targets }) }
}

/// Refuses targets that are not what is expected: of all of them the same, or of each by itself; nothing of any. `null:` is on
/// no file system, and counts for nothing.
pub fn check_expected(targets: &[TargetDescription], expected: &[FileSystemKind]) -> Result<(), NotExpected> {
    let stored = || targets.iter().filter(|target| target.is_on_storage());
    check_expected_count(expected.len(), stored().count())?;
    let kinds = |index: usize| expected.get(index).or(expected.first());
    let mut pairs = stored().enumerate().filter_map(|(index, target)| Some((target, *kinds(index)?)));
    pairs.try_for_each(|(target, kind)| target.expect_kind(kind))
}
