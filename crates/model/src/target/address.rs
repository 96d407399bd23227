//! How a target is named: as a directory, or as `scheme:` and the rest for what no kernel mounts.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

/// Where a target is. As text, and in records, it is a path or begins with a scheme: a path that looks like one is written
/// with `./` before it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TargetAddress {
    /// A directory of a mounted file system.
    Directory(PathBuf),
    /// `null:` takes everything and keeps nothing: the ceiling of the tool itself.
    Null,
}

impl TargetAddress {
    /// What an address may begin with instead of being a path, each with its colon.
    pub const SCHEMES: [&str; 1] = ["null:"];

    /// The directory, if it is one.
    pub fn directory(&self) -> Option<&Path> {
        match self {
            TargetAddress::Directory(path) => Some(path),
            TargetAddress::Null => None,
        }
    }
}

impl Default for TargetAddress {
    /// The working directory.
    fn default() -> Self {
        TargetAddress::Directory(".".into())
    }
}

impl From<PathBuf> for TargetAddress {
    /// Always a directory, whatever its name looks like.
    fn from(path: PathBuf) -> Self {
        TargetAddress::Directory(path)
    }
}

impl From<&Path> for TargetAddress {
    fn from(path: &Path) -> Self {
        TargetAddress::Directory(path.into())
    }
}

/// A text that is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetAddressError {
    /// A known scheme that says more than it allows.
    #[error("`{0}`: nothing stands behind `null:`; a directory of that name is written `./{0}`")]
    BehindNull(String),
    /// A scheme that is not known.
    #[error("`{0}`: only mounted directories and `null:` can be evaluated: mount it, and name the directory")]
    UnknownScheme(String),
}

/// Whether a text begins with a scheme as addresses on networks do: RFC 3986, section 3.1, and two slashes.
fn has_scheme(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once("://") else { return false };
    let is_inner = |letter: char| letter.is_ascii_alphanumeric() || "+-.".contains(letter);
    scheme.starts_with(|letter: char| letter.is_ascii_alphabetic()) && scheme.chars().all(is_inner)
}

impl FromStr for TargetAddress {
    type Err = TargetAddressError;

    fn from_str(text: &str) -> Result<Self, TargetAddressError> {
        match text.strip_prefix("null:") {
            Some("") => Ok(TargetAddress::Null),
            Some(_) => Err(TargetAddressError::BehindNull(text.into())),
            None if has_scheme(text) => Err(TargetAddressError::UnknownScheme(text.into())),
            None => Ok(TargetAddress::Directory(text.into())),
        }
    }
}

impl fmt::Display for TargetAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TargetAddress::Directory(path) => path.display().fmt(f),
            TargetAddress::Null => f.write_str("null:"),
        }
    }
}

impl Serialize for TargetAddress {
    /// As text. A path that is no UTF-8 can't be.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            TargetAddress::Directory(path) => match path.to_str() {
                Some(text) => serializer.serialize_str(text),
                None => Err(ser::Error::custom("path contains invalid UTF-8 characters")),
            },
            TargetAddress::Null => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for TargetAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// What a campaign makes on a target, as text by which it is found again and removed after a kill: of a directory the path of
/// the one that was made in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunHandle(pub String);

impl fmt::Display for RunHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_path_unless_it_begins_with_a_scheme() {
        for (text, expected) in [
            ("null:", TargetAddress::Null),
            ("./null:", TargetAddress::Directory("./null:".into())),
            ("/data", TargetAddress::Directory("/data".into())),
            ("a:b", TargetAddress::Directory("a:b".into())),
        ] {
            let address: TargetAddress = text.parse().expect("valid");
            assert_eq!((&address, address.to_string().as_str()), (&expected, text));
            let json = serde_json::to_string(&address).expect("it is text");
            assert_eq!(serde_json::from_str::<TargetAddress>(&json).ok(), Some(expected));
        }
        let error = "null:/data".parse::<TargetAddress>().expect_err("what would that be").to_string();
        assert!(error.contains("`./null:/data`"), "{error}");
        for url in ["s3://bucket/x", "root://host//eos"] {
            let error = url.parse::<TargetAddress>().expect_err(url).to_string();
            assert!(error.contains("mount it, and name the directory"), "{error}");
        }
        assert!(TargetAddress::SCHEMES.iter().all(|scheme| scheme.parse() == Ok(TargetAddress::Null)));
    }
}
