//! Features of storage systems, as in the feature tables of studies. A cell holds the answer and its basis:
//! measured on the mount, published for the system, or a hint without a source.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{
    FileSystemKind,
    published::{PUBLISHED, licence_source},
};

macro_rules! features {
    ($($(#[$doc:meta])* $feature:ident = $word:literal,)*) => {
        /// A feature in which storage systems differ.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum StorageFeature {
            $($(#[$doc])* $feature,)*
        }

        impl StorageFeature {
            /// All, in the order of tables.
            pub const ALL: &'static [StorageFeature] = &[$(StorageFeature::$feature),*];

            /// Its name in tables.
            pub const fn name(self) -> &'static str {
                match self { $(StorageFeature::$feature => $word,)* }
            }
        }
    };
}

features! {
    /// Does it keep the guarantees of POSIX?
    Posix = "POSIX",
    /// The servers of names and attributes.
    MetadataServer = "metadata server",
    /// Remote direct memory access, as over InfiniBand.
    Rdma = "RDMA",
    /// One file over several devices.
    Striping = "striping of a file",
    /// Protection against the loss of a part.
    Failover = "failover",
    /// Limits on the space of users or directories.
    Quota = "quota",
    /// Read-only states of the past.
    Snapshots = "snapshots",
    /// Ways to move data to other devices.
    Migration = "data migration",
    /// The terms on which it may be used.
    Licence = "licence",
    /// The makers or communities that answer for faults.
    Support = "support",
    /// Atomic rename over an existing file.
    Rename = "rename over a file",
    /// Two names of one file.
    HardLinks = "hard links",
    /// Locks of files: `flock` and `fcntl`.
    Locks = "locks",
    /// I/O past the page cache.
    DirectIo = "O_DIRECT",
    /// Reserves space before writing.
    Preallocation = "fallocate",
    /// Shared mapping of a file into memory.
    SharedMapping = "shared mmap",
    /// Attributes that users define.
    ExtendedAttributes = "extended attributes",
    /// Writing at the end, wherever that is.
    Append = "append",
}

/// The basis of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeatureBasis {
    /// Nilometer tried it on the mount.
    Measured,
    /// The system's documentation states it; Nilometer did not try it.
    Published,
    /// Nobody looked it up: a hint that the reader must check.
    Unsourced,
}

/// A cell of a feature table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeatureFinding {
    /// The row of the table.
    pub feature: StorageFeature,
    /// `yes`, `no`, or a short description.
    pub answer: String,
    /// The basis of the answer.
    pub basis: FeatureBasis,
    /// The file that states it, by repository and path; `None` without a single such file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

impl FeatureFinding {
    /// The answer of a trial: `yes`, or `no` and the reason.
    pub fn measured(feature: StorageFeature, tried: Result<(), String>) -> Self {
        let answer = tried.map_or_else(|why| format!("no: {why}"), |()| "yes".into());
        FeatureFinding { feature, answer, basis: FeatureBasis::Measured, source: None }
    }
}

impl FeatureBasis {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            FeatureBasis::Measured => "measured",
            FeatureBasis::Published => "published",
            FeatureBasis::Unsourced => "no source",
        }
    }
}

impl fmt::Display for FeatureFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FeatureFinding { answer, basis, source, .. } = self;
        let basis = basis.name();
        match source {
            Some(source) => write!(f, "{answer} ({basis}: {source})"),
            None => write!(f, "{answer} ({basis})"),
        }
    }
}

/// The published features of a file system; empty if nothing is published here.
pub fn published_features(kind: FileSystemKind) -> Vec<FeatureFinding> {
    let system = PUBLISHED.iter().find(|system| system.kinds.contains(&kind));
    let answers = system.map(|system| StorageFeature::ALL.iter().zip(system.answers)).into_iter().flatten();
    let finding = |(&feature, answer): (&StorageFeature, &str)| {
        let (basis, source) = published_basis(kind, feature);
        FeatureFinding { feature, answer: answer.to_owned(), basis, source }
    };
    answers.filter(|(_, answer)| !answer.is_empty()).map(finding).collect()
}

/// The basis of an answer that nobody measured, and its source.
fn published_basis(kind: FileSystemKind, feature: StorageFeature) -> (FeatureBasis, Option<String>) {
    match (feature, licence_source(kind)) {
        (StorageFeature::Licence, Some(source)) => (FeatureBasis::Published, Some(source.into())),
        (StorageFeature::Licence | StorageFeature::Support, _) => (FeatureBasis::Unsourced, None),
        _ => (FeatureBasis::Published, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_published_is_said_in_the_order_of_the_table() {
        let lustre = published_features(FileSystemKind::Lustre);
        let features: Vec<_> = lustre.iter().map(|finding| finding.feature).collect();
        assert_eq!(features, StorageFeature::ALL[..10], "what a mount can be asked is not taken from paper");
        assert_eq!(lustre[3].to_string(), "yes, each file its own layout (published)");
        let licence = "GPL-2.0 with Linux-syscall-note (published: lustre/lustre-release, COPYING)";
        assert_eq!(lustre[8].to_string(), licence);
        assert_eq!(lustre[9].to_string(), "community, DDN, HPE and others (no source)");
        let gpfs = published_features(FileSystemKind::Gpfs);
        assert_eq!(gpfs[8].to_string(), "commercial (no source)", "nobody looked it up");
        assert!(published_features(FileSystemKind::Unknown).is_empty());
        assert!(published_features(FileSystemKind::Fuse).is_empty());
    }

    #[test]
    fn what_was_tried_says_why_not() {
        let refused = FeatureFinding::measured(StorageFeature::Preallocation, Err("not supported".into()));
        assert_eq!(refused.to_string(), "no: not supported (measured)");
        let text = serde_json::to_string(&refused).expect("plain data");
        assert_eq!(serde_json::from_str::<FeatureFinding>(&text).ok(), Some(refused));
    }
}
