//! The address of a target: a directory, or `scheme:` and the rest for storage without a mount.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

use super::{TargetDescription, TargetUrl, TargetUrlError};

/// The address of a target. Texts and records hold a path or a scheme. A path that looks like a scheme needs
/// `./` before it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TargetAddress {
    /// A directory of a mounted file system.
    Directory(PathBuf),
    /// `null:` accepts all data and discards them: the ceiling of the tool itself.
    Null,
    /// Storage that a client in this program reaches, without the kernel's file systems.
    Url(TargetUrl),
    /// Several addresses that one recording is striped over. A campaign joins its targets so; users never
    /// write it.
    Joined(Vec<TargetAddress>),
}

impl TargetAddress {
    /// The directory, if it is one.
    pub fn directory(&self) -> Option<&Path> {
        match self {
            TargetAddress::Directory(path) => Some(path),
            TargetAddress::Null | TargetAddress::Url(_) | TargetAddress::Joined(_) => None,
        }
    }

    /// The URL, if it is one.
    pub fn url(&self) -> Option<&TargetUrl> {
        match self {
            TargetAddress::Url(url) => Some(url),
            TargetAddress::Null | TargetAddress::Directory(_) | TargetAddress::Joined(_) => None,
        }
    }

    /// The members of a joined address; empty for a single one.
    pub fn members(&self) -> &[TargetAddress] {
        match self {
            TargetAddress::Joined(members) => members,
            TargetAddress::Null | TargetAddress::Directory(_) | TargetAddress::Url(_) => &[],
        }
    }

    /// The address that a user gave as a path: a URL if it has a known scheme, else a directory.
    ///
    /// # Errors
    /// It begins like a URL but is invalid.
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
    /// Always a directory, even if its name looks like a URL.
    fn from(path: PathBuf) -> Self {
        TargetAddress::Directory(path)
    }
}

impl From<&Path> for TargetAddress {
    fn from(path: &Path) -> Self {
        TargetAddress::Directory(path.into())
    }
}

/// A text that is not an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetAddressError {
    /// Text after `null:`.
    #[error("`{0}`: nothing stands behind `null:`; a directory of that name is written `./{0}`")]
    BehindNull(String),
    /// An invalid URL, or one that is no place for files.
    #[error(transparent)]
    NoUrl(#[from] TargetUrlError),
}

/// Returns true if a text begins with a scheme and two slashes, like network addresses (RFC 3986, section
/// 3.1).
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
            TargetAddress::Joined(members) => {
                let names: Vec<String> = members.iter().map(ToString::to_string).collect();
                f.write_str(&names.join(TargetDescription::BETWEEN))
            }
        }
    }
}

impl Serialize for TargetAddress {
    /// Writes a text, or a list for several. A path must be UTF-8.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            TargetAddress::Directory(path) => match path.to_str() {
                Some(text) => serializer.serialize_str(text),
                None => Err(ser::Error::custom(format!(
                    "{}: the path is not UTF-8, which records are written in: name it by a link with another name",
                    path.display()
                ))),
            },
            TargetAddress::Null | TargetAddress::Url(_) => serializer.collect_str(self),
            TargetAddress::Joined(members) => serializer.collect_seq(members),
        }
    }
}

impl<'de> Deserialize<'de> for TargetAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrList)
    }
}

struct TextOrList;

impl<'de> de::Visitor<'de> for TextOrList {
    type Value = TargetAddress;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an address, or a list of them")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<TargetAddress, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<TargetAddress, A::Error> {
        let mut members = Vec::new();
        while let Some(text) = list.next_element::<String>()? {
            members.push(text.parse().map_err(de::Error::custom)?);
        }
        if members.is_empty() {
            return Err(de::Error::invalid_length(0, &self));
        }
        Ok(TargetAddress::Joined(members))
    }
}

/// The handle of a campaign's data on a target, as text. With it a later run finds and removes them after a
/// kill. For a directory it is the path of the subdirectory that the campaign made.
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
    fn several_are_a_list_of_texts() {
        let text = r#"["/a","s3://bucket/x"]"#;
        let address: TargetAddress = serde_json::from_str(text).expect("a list");
        assert_eq!((address.to_string().as_str(), address.members().len()), ("/a + s3://bucket/x", 2));
        assert_eq!(serde_json::to_string(&address).expect("a list"), text);
        for wrong in ["[]", "[[\"/a\"]]", "[1]", "3", "{}"] {
            assert!(serde_json::from_str::<TargetAddress>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_path_that_can_not_be_recorded_is_named() {
        use std::os::unix::ffi::OsStrExt;
        let path = Path::new(std::ffi::OsStr::from_bytes(b"/data/\xff"));
        let error = serde_json::to_string(&TargetAddress::from(path)).expect_err("no text").to_string();
        assert!(error.contains("/data/") && error.contains("not UTF-8"), "{error}");
    }

    #[test]
    fn a_url_may_be_named_where_a_directory_may() {
        let named = |text: &str| TargetAddress::of_named(Path::new(text));
        assert_eq!(named("root://a//b").expect("a URL").to_string(), "root://a//b");
        assert_eq!(named("gsiftp://a"), Ok(TargetAddress::Directory("gsiftp://a".into())), "as before");
        assert!(named("root://").is_err());
    }
}
