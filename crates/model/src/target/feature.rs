//! What storage systems offer, as the feature tables of studies ask: a cell says what, and whether it was measured on the
//! mount or is published of the system.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{FileSystemKind, published::PUBLISHED};

macro_rules! features {
    ($($(#[$doc:meta])* $feature:ident = $word:literal,)*) => {
        /// Something that storage systems differ in.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum StorageFeature {
            $($(#[$doc])* $feature,)*
        }

        impl StorageFeature {
            /// All, in the order of tables.
            pub const ALL: &'static [StorageFeature] = &[$(StorageFeature::$feature),*];

            /// What tables call it.
            pub const fn name(self) -> &'static str {
                match self { $(StorageFeature::$feature => $word,)* }
            }
        }
    };
}

features! {
    /// Whether programs find what POSIX promises.
    Posix = "POSIX",
    /// What keeps names and attributes.
    MetadataServer = "metadata server",
    /// Remote direct memory access, as over InfiniBand.
    Rdma = "RDMA",
    /// One file over several devices.
    Striping = "striping of a file",
    /// What survives the loss of a part.
    Failover = "failover",
    /// Limits on what users or directories take.
    Quota = "quota",
    /// What keeps a state of the past.
    Snapshots = "snapshots",
    /// What moves data to other devices.
    Migration = "data migration",
    /// A file gets the name of another at once.
    Rename = "rename over a file",
    /// Two names of one file.
    HardLinks = "hard links",
    /// Locks of files: `flock` and `fcntl`.
    Locks = "locks",
    /// Past the page cache.
    DirectIo = "O_DIRECT",
    /// Space that is reserved before it is written.
    Preallocation = "fallocate",
    /// A file as memory that is shared.
    SharedMapping = "shared mmap",
    /// Attributes of users' own.
    ExtendedAttributes = "extended attributes",
    /// Writing at the end, wherever that is.
    Append = "append",
}

/// How an answer is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeatureBasis {
    /// It was tried on the mount.
    Measured,
    /// It is what the system's documentation says, and was not tried.
    Published,
}

/// A cell of a feature table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeatureFinding {
    /// Which row.
    pub feature: StorageFeature,
    /// `yes`, `no`, or what and how.
    pub answer: String,
    /// How that is known.
    pub basis: FeatureBasis,
}

impl FeatureFinding {
    /// As it was tried: `yes`, or `no` and why.
    pub fn measured(feature: StorageFeature, tried: Result<(), String>) -> Self {
        let answer = tried.map_or_else(|why| format!("no: {why}"), |()| "yes".into());
        FeatureFinding { feature, answer, basis: FeatureBasis::Measured }
    }
}

impl fmt::Display for FeatureFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let basis = match self.basis {
            FeatureBasis::Measured => "measured",
            FeatureBasis::Published => "published",
        };
        write!(f, "{} ({basis})", self.answer)
    }
}

/// What is published of a file system; nothing of one that is not known.
pub fn published_features(kind: FileSystemKind) -> Vec<FeatureFinding> {
    let system = PUBLISHED.iter().find(|system| system.kinds.contains(&kind));
    let answers = system.map(|system| StorageFeature::ALL.iter().zip(system.answers)).into_iter().flatten();
    let finding = |(&feature, answer): (&StorageFeature, &str)| FeatureFinding {
        feature,
        answer: answer.to_owned(),
        basis: FeatureBasis::Published,
    };
    answers.filter(|(_, answer)| !answer.is_empty()).map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_published_is_said_in_the_order_of_the_table() {
        let lustre = published_features(FileSystemKind::Lustre);
        let features: Vec<_> = lustre.iter().map(|finding| finding.feature).collect();
        assert_eq!(features, StorageFeature::ALL[..8], "what a mount can be asked is not taken from paper");
        assert_eq!(lustre[3].to_string(), "yes, each file its own layout (published)");
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
