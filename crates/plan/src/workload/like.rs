//! `like`: the census whose distribution a tree has. A plan names its file; cells and records have the distribution.

use std::{fmt, sync::Arc};

use nilometer_model::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{
    like_tree::{LikeTree, ValueClass},
    tree_census::TreeCensus,
};

/// The tree that a tree resembles.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum TreeLike {
    /// None: the tree has the usual spread.
    #[default]
    None,
    /// The census at this path, as a plan has it.
    Named(String),
    /// This census.
    Of(Arc<NamedCensus>),
}

/// The distribution of a census, with its origin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedCensus {
    /// The path in the plan.
    pub path: String,
    /// The SHA-256 of the file in hexadecimal.
    pub sha256: String,
    /// The distribution.
    pub counts: TreeCensus,
}

/// The text of a census.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CensusText {
    /// The text.
    pub text: String,
    /// Its SHA-256 in hexadecimal.
    pub sha256: String,
}

impl TreeLike {
    /// True without a census.
    pub fn is_none(&self) -> bool {
        *self == TreeLike::None
    }

    /// The distribution of the census, if it has been read.
    pub fn counts(&self) -> Option<&TreeCensus> {
        self.census().map(|census| &census.counts)
    }

    /// The census, if it has been read.
    pub(super) fn census(&self) -> Option<&Arc<NamedCensus>> {
        match self {
            TreeLike::Of(census) => Some(census),
            TreeLike::None | TreeLike::Named(_) => None,
        }
    }
}

impl NamedCensus {
    /// The phrase in reports for a tree with this many files.
    pub(super) fn phrase(&self, files: u32) -> Option<String> {
        let NamedCensus { path, sha256, counts } = self;
        let tree = LikeTree::of(counts, files);
        let [median, largest] = [tree.median()?, *tree.sizes.last()?].map(size_range);
        let depth = tree.levels.len() - 1;
        let hash = sha256.get(..HASH_SHOWN).unwrap_or(sha256);
        Some(format!("like {path} {hash} (median {median}; largest {largest}; {depth} levels deep)"))
    }
}

/// Digits of a hash that reports show.
const HASH_SHOWN: usize = 12;

/// The sizes of a class: `4 KiB to 8 KiB`.
fn size_range(class: ValueClass) -> String {
    match class.least {
        0 => "empty".into(),
        1 => "1 B".into(),
        least => format!("{} to {}", Bytes(least), Bytes(least.saturating_mul(2))),
    }
}

impl Serialize for TreeLike {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            TreeLike::None => serializer.serialize_none(),
            TreeLike::Named(path) => serializer.serialize_str(path),
            TreeLike::Of(census) => census.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for TreeLike {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PathOrCensus)
    }
}

struct PathOrCensus;

impl<'de> de::Visitor<'de> for PathOrCensus {
    type Value = TreeLike;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the path of a census, such as \"census.json\"")
    }

    fn visit_unit<E: de::Error>(self) -> Result<TreeLike, E> {
        Ok(TreeLike::None)
    }

    fn visit_str<E: de::Error>(self, path: &str) -> Result<TreeLike, E> {
        if path.is_empty() {
            return Err(E::invalid_value(de::Unexpected::Str(path), &self));
        }
        Ok(TreeLike::Named(path.to_owned()))
    }

    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<TreeLike, A::Error> {
        let census = NamedCensus::deserialize(de::value::MapAccessDeserializer::new(map))?;
        Ok(TreeLike::Of(Arc::new(census)))
    }
}
