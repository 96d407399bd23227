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

/// An address with a known scheme that says more, or less, than the scheme allows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{address}`: nothing stands behind `null:`; a directory of that name is written `./{address}`")]
pub struct TargetAddressError {
    address: String,
}

impl FromStr for TargetAddress {
    type Err = TargetAddressError;

    fn from_str(text: &str) -> Result<Self, TargetAddressError> {
        match text.strip_prefix("null:") {
            Some("") => Ok(TargetAddress::Null),
            Some(_) => Err(TargetAddressError { address: text.into() }),
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
        assert!(TargetAddress::SCHEMES.iter().all(|scheme| scheme.parse() == Ok(TargetAddress::Null)));
    }
}
