//! A place on storage without a mount, by URL (RFC 3986): protocol, server and path.

use std::{fmt, str::FromStr};

/// The protocols of storage without a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UrlScheme {
    /// `XRootD`, and EOS.
    XRootD,
    /// `XRootD` with encryption.
    XRootDEncrypted,
    /// NFS through a client in this program.
    Nfs,
    /// Objects, as S3 has them.
    S3,
    /// The file system of Hadoop.
    Hdfs,
}

impl UrlScheme {
    /// All of them.
    pub const ALL: [UrlScheme; 5] =
        [UrlScheme::XRootD, UrlScheme::XRootDEncrypted, UrlScheme::Nfs, UrlScheme::S3, UrlScheme::Hdfs];

    /// The scheme in a URL, before `://`.
    pub const fn name(self) -> &'static str {
        match self {
            UrlScheme::XRootD => "root",
            UrlScheme::XRootDEncrypted => "roots",
            UrlScheme::Nfs => "nfs",
            UrlScheme::S3 => "s3",
            UrlScheme::Hdfs => "hdfs",
        }
    }

    /// A URL, as an example.
    pub const fn example(self) -> &'static str {
        match self {
            UrlScheme::XRootD | UrlScheme::XRootDEncrypted => "root://server//store/data",
            UrlScheme::Nfs => "nfs://server/export/data",
            UrlScheme::S3 => "s3://bucket/data",
            UrlScheme::Hdfs => "hdfs://server:9870/data",
        }
    }

    /// The separator between server and path: `XRootD` writes a path from the root with two slashes.
    const fn separator(self) -> &'static str {
        match self {
            UrlScheme::XRootD | UrlScheme::XRootDEncrypted => "/",
            UrlScheme::Nfs | UrlScheme::S3 | UrlScheme::Hdfs => "",
        }
    }
}

/// A URL in normal form: more or fewer slashes make no difference.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TargetUrl {
    /// The protocol.
    pub scheme: UrlScheme,
    /// The server, with user and port if given; for S3 the bucket.
    pub authority: String,
    /// The path there, with a slash before each part of it and none at its end; empty for the root.
    pub path: String,
    /// The text after a `?`.
    pub query: Option<String>,
}

/// A text that is no valid URL, or no place for files.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}`: {why}")]
pub struct TargetUrlError {
    text: String,
    why: String,
}

impl TargetUrl {
    /// The same place with one more component in the path.
    #[must_use]
    pub fn join(&self, name: &str) -> Self {
        TargetUrl { path: format!("{}/{name}", self.path), ..self.clone() }
    }

    /// The parent, and the last component of the path; `None` for the root.
    pub fn split_last(&self) -> Option<(Self, &str)> {
        let (above, name) = self.path.rsplit_once('/')?;
        Some((TargetUrl { path: above.into(), ..self.clone() }, name))
    }

    /// The value of a key in the query.
    pub fn query_value(&self, key: &str) -> Option<&str> {
        let pairs = self.query.as_deref().unwrap_or_default().split('&');
        pairs.filter_map(|pair| pair.split_once('=')).find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// Returns true if a text begins with a known scheme.
    pub fn is_one(text: &str) -> bool {
        let scheme = text.split_once("://").map(|(scheme, _)| scheme);
        scheme.is_some_and(|scheme| UrlScheme::ALL.iter().any(|known| known.name() == scheme))
    }
}

/// The parts of a path, each with a slash before it.
fn normal_path(path: &str) -> Result<String, &'static str> {
    let mut normal = String::new();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            return Err("`..` leads out of the path: write it without");
        }
        normal.push('/');
        normal.push_str(part);
    }
    Ok(normal)
}

/// Checks that a server or bucket is given and may stand in a record, without a password.
fn check_authority(authority: &str) -> Result<(), &'static str> {
    if authority.is_empty() {
        return Err("name a server");
    }
    let user = authority.rsplit_once('@').map(|(user, _)| user);
    if user.is_some_and(|user| user.contains(':')) {
        return Err(
            "a password would be kept in records: leave it out, and give it as the system's own client takes it",
        );
    }
    Ok(())
}

impl FromStr for TargetUrl {
    type Err = TargetUrlError;

    fn from_str(text: &str) -> Result<Self, TargetUrlError> {
        let failed = |why: String| TargetUrlError { text: text.escape_debug().to_string(), why };
        let parts = text.split_once("://");
        let known = |name: &str| UrlScheme::ALL.into_iter().find(|scheme| scheme.name() == name);
        let found = parts.and_then(|(name, rest)| Some((known(name)?, rest)));
        let Some((scheme, rest)) = found else {
            let names = UrlScheme::ALL.map(|scheme| format!("`{}://`", scheme.name())).join(", ");
            return Err(failed(format!(
                "write a mounted directory, `null:`, or a URL that begins with {names}; for any other storage, \
                 mount it, and name the directory"
            )));
        };
        let odd = |letter: char| letter.is_control() || letter == '#';
        if rest.contains(odd) {
            return Err(failed("a control character or `#` in it: write it without".into()));
        }
        let (place, query) = rest.split_once('?').map_or((rest, None), |(place, query)| (place, Some(query)));
        let (authority, path) = place.split_once('/').unwrap_or((place, ""));
        let wrong = |why: &str| failed(format!("{why}; an example: {}", scheme.example()));
        check_authority(authority).map_err(wrong)?;
        let path = normal_path(path).map_err(wrong)?;
        let query = query.filter(|query| !query.is_empty()).map(str::to_owned);
        Ok(TargetUrl { scheme, authority: authority.into(), path, query })
    }
}

impl fmt::Display for TargetUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TargetUrl { scheme, authority, path, query } = self;
        let path = if path.is_empty() { "/" } else { path };
        write!(f, "{}://{authority}{}{path}", scheme.name(), scheme.separator())?;
        query.as_ref().map_or(Ok(()), |query| write!(f, "?{query}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_place_has_one_text() {
        for (written, expected) in [
            ("root://server:1094//store/data/", "root://server:1094//store/data"),
            ("root://server/store//data", "root://server//store/data"),
            ("root://server", "root://server//"),
            ("roots://user@server//a/./b", "roots://user@server//a/b"),
            ("nfs://10.0.0.1//export/x?version=3", "nfs://10.0.0.1/export/x?version=3"),
            ("nfs://[::1]:2049/export?", "nfs://[::1]:2049/export"),
            ("s3://bucket", "s3://bucket/"),
            ("hdfs://name:9870/user/me/", "hdfs://name:9870/user/me"),
        ] {
            let url: TargetUrl = written.parse().expect(written);
            assert_eq!(url.to_string(), expected);
            assert_eq!(expected.parse(), Ok(url), "its text is read back");
        }
    }

    #[test]
    fn names_are_joined_and_split_again() {
        let url: TargetUrl = "root://server//store?x=1&y=2".parse().expect("a URL");
        let below = url.join("scan");
        assert_eq!(below.to_string(), "root://server//store/scan?x=1&y=2");
        assert_eq!(below.split_last(), Some((url.clone(), "scan")));
        assert_eq!((url.query_value("y"), url.query_value("z")), (Some("2"), None));
        assert_eq!("s3://bucket/".parse::<TargetUrl>().expect("a bucket").split_last(), None);
    }

    #[test]
    fn what_is_no_place_is_refused_in_one_line() {
        for (text, part) in [
            ("gsiftp://server/x", "`s3://`"),
            ("root:///store", "name a server; an example: root://server//store/data"),
            ("nfs://server/../etc", "`..` leads out"),
            ("s3://key:secret@bucket/x", "password"),
            ("root://server//a\nb", "control character"),
            ("root://server//a#b", "`#`"),
            ("data", "write a mounted directory"),
        ] {
            let error = text.parse::<TargetUrl>().expect_err(text).to_string();
            assert!(error.contains(part) && !error.contains('\n'), "{error}");
        }
        assert!(
            TargetUrl::is_one("root://x") && !TargetUrl::is_one("gsiftp://x") && !TargetUrl::is_one("/data")
        );
    }
}
