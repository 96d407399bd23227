//! How a target is named: as a directory, or as `scheme:` and the rest for what no kernel mounts.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

use super::{TargetUrl, TargetUrlError};

/// Where a target is. As text, and in records, it is a path or begins with a scheme: a path that looks like one is written
/// with `./` before it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TargetAddress {
    /// A directory of a mounted file system.
    Directory(PathBuf),
    /// `null:` takes everything and keeps nothing: the ceiling of the tool itself.
    Null,
    /// What a client in this program reaches, with no kernel between.
    Url(TargetUrl),
}

impl TargetAddress {
    /// The directory, if it is one.
    pub fn directory(&self) -> Option<&Path> {
        match self {
            TargetAddress::Directory(path) => Some(path),
            TargetAddress::Null | TargetAddress::Url(_) => None,
        }
    }

    /// The URL, if it is one.
    pub fn url(&self) -> Option<&TargetUrl> {
        match self {
            TargetAddress::Url(url) => Some(url),
            TargetAddress::Null | TargetAddress::Directory(_) => None,
        }
    }

    /// The address of what a user named by this path: a URL that was given where a directory may stand, or else the path.
    ///
    /// # Errors
    /// It begins as a URL does, and is none.
    pub fn of_named(path: &Path) -> Result<Self, TargetAddressError> {
        match path.to_str().filter(|text| TargetUrl::is_one(text)) {
            Some(text) => text.parse(),
            None => Ok(path.into()),
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
    /// A URL that is none of a place for files.
    #[error(transparent)]
    NoUrl(#[from] TargetUrlError),
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
            None if has_scheme(text) => Ok(TargetAddress::Url(text.parse()?)),
            None => Ok(TargetAddress::Directory(text.into())),
        }
    }
}

impl fmt::Display for TargetAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TargetAddress::Directory(path) => path.display().fmt(f),
            TargetAddress::Null => f.write_str("null:"),
            TargetAddress::Url(url) => url.fmt(f),
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
            TargetAddress::Null | TargetAddress::Url(_) => serializer.collect_str(self),
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
            ("s3://bucket/x", TargetAddress::Url("s3://bucket/x".parse().expect("a URL"))),
        ] {
            let address: TargetAddress = text.parse().expect("valid");
            assert_eq!((&address, address.to_string().as_str()), (&expected, text));
            let json = serde_json::to_string(&address).expect("it is text");
            assert_eq!(serde_json::from_str::<TargetAddress>(&json).ok(), Some(expected));
        }
        let error = "null:/data".parse::<TargetAddress>().expect_err("what would that be").to_string();
        assert!(error.contains("`./null:/data`"), "{error}");
        let error = "gsiftp://host//x".parse::<TargetAddress>().expect_err("no such client").to_string();
        assert!(error.contains("mount it, and name the directory"), "{error}");
    }

    #[test]
    fn a_url_may_be_named_where_a_directory_may() {
        let named = |text: &str| TargetAddress::of_named(Path::new(text));
        assert_eq!(named("root://a//b").expect("a URL").to_string(), "root://a//b");
        assert_eq!(named("gsiftp://a"), Ok(TargetAddress::Directory("gsiftp://a".into())), "as before");
        assert!(named("root://").is_err());
    }
}
