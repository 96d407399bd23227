//! The name node's answers in JSON: the status of a path, listings, and refusals.

use nilometer_storage::{
    Errno,
    listing::{self, Stat},
};
use serde_json::Value;

use crate::{client::NamedEntry, http::HttpAnswer};

/// The status of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HdfsStatus {
    pub(super) name: String,
    pub(super) stat: Stat,
    /// The inode number, which identifies a file under any name, or 0 if the server does not report it.
    pub(super) inode: u64,
    pub(super) replication: u32,
    pub(super) block: u64,
}

impl HdfsStatus {
    fn in_value(value: &Value) -> Option<Self> {
        let number = |key: &str| value.get(key).and_then(Value::as_u64);
        let directory = value.get("type")?.as_str()? == "DIRECTORY";
        Some(HdfsStatus {
            name: value.get("pathSuffix").and_then(Value::as_str).unwrap_or_default().to_owned(),
            stat: Stat { size: if directory { 0 } else { number("length")? }, directory },
            inode: number("fileId").unwrap_or_default(),
            replication: number("replication").unwrap_or_default() as u32,
            block: number("blockSize").unwrap_or_default(),
        })
    }

    /// Parses the status of a single path.
    pub(super) fn of(text: &[u8]) -> Result<Self, Errno> {
        Self::in_value(&json(text)?["FileStatus"]).ok_or(Errno::EIO)
    }

    /// Converts the status to an entry of a listing.
    fn entry(self) -> Option<NamedEntry> {
        let kind = if self.stat.directory { listing::DIRECTORY } else { listing::FILE };
        // The listing of a file contains only the file itself, without a name.
        (!self.name.is_empty()).then(|| (self.name.into_bytes(), kind))
    }
}

fn json(text: &[u8]) -> Result<Value, Errno> {
    serde_json::from_slice(text).map_err(|_| Errno::EIO)
}

/// One part of a directory's listing.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HdfsListing {
    pub(super) entries: Vec<NamedEntry>,
    /// The last name, if more follow.
    pub(super) last: Option<String>,
}

impl HdfsListing {
    /// Parses a part of a listing.
    pub(super) fn of(text: &[u8]) -> Result<Self, Errno> {
        let value = json(text)?;
        let listing = &value["DirectoryListing"];
        let statuses = listing["partialListing"]["FileStatuses"]["FileStatus"].as_array();
        let statuses: Option<Vec<_>> = statuses.ok_or(Errno::EIO)?.iter().map(HdfsStatus::in_value).collect();
        let statuses = statuses.ok_or(Errno::EIO)?;
        let left = listing["remainingEntries"].as_u64().unwrap_or_default();
        let last = statuses.last().map(|status| status.name.clone()).filter(|_| left > 0);
        Ok(HdfsListing { entries: statuses.into_iter().filter_map(HdfsStatus::entry).collect(), last })
    }
}

/// Returns true if the server did the operation. Servers answer `false` for missing files.
pub(super) fn is_done(text: &[u8]) -> Result<bool, Errno> {
    json(text)?["boolean"].as_bool().ok_or(Errno::EIO)
}

/// Returns the first bean in an answer from `/jmx`.
pub(super) fn bean(text: &[u8]) -> Option<Value> {
    json(text).ok()?["beans"].get(0).cloned()
}

/// A server's refusal of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HdfsRefusal {
    pub(super) errno: Errno,
    pub(super) why: String,
}

/// Returns the refusal in an answer, if it is one.
pub(super) fn refusal(answer: &HttpAnswer) -> Option<HdfsRefusal> {
    // A redirect to a data node is a success.
    if answer.is_success() || answer.status == 307 {
        return None;
    }
    let value = json(&answer.text).unwrap_or_default();
    let told = &value["RemoteException"];
    let text = |key: &str| told[key].as_str().unwrap_or_default();
    let message = text("message").lines().next().unwrap_or_default();
    let errno = errno_of(answer.status, text("exception"), message);
    let why = match (text("exception"), message) {
        ("", _) => in_no_words(answer),
        (exception, message) => format!("{exception}: {message}"),
    };
    Some(HdfsRefusal { errno, why })
}

/// Explains an answer from a port that does not speak `WebHDFS`.
fn in_no_words(answer: &HttpAnswer) -> String {
    let said = String::from_utf8_lossy(&answer.text);
    if said.contains("IPC port") {
        return "this is the port of Hadoop's own protocol: name the name node's HTTP port, 9870 if nobody chose another"
            .into();
    }
    match answer.status {
        401 => "it wants Kerberos (SPNEGO), which this client does not speak".into(),
        status => format!("status {status}, and not in the words of WebHDFS"),
    }
}

/// Error numbers of exceptions by their names.
const EXCEPTIONS: [(&str, Errno); 18] = [
    ("FileNotFoundException", Errno::ENOENT),
    ("FileAlreadyExistsException", Errno::EEXIST),
    ("AccessControlException", Errno::EACCES),
    ("SecurityException", Errno::EACCES),
    ("AuthorizationException", Errno::EACCES),
    ("InvalidToken", Errno::EACCES),
    ("PathIsNotEmptyDirectoryException", Errno::ENOTEMPTY),
    ("ParentNotDirectoryException", Errno::ENOTDIR),
    ("SafeModeException", Errno::EROFS),
    ("NSQuotaExceededException", Errno::EDQUOT),
    ("DSQuotaExceededException", Errno::EDQUOT),
    ("QuotaByStorageTypeExceededException", Errno::EDQUOT),
    ("AlreadyBeingCreatedException", Errno(libc::EBUSY)),
    ("RecoveryInProgressException", Errno(libc::EBUSY)),
    ("StandbyException", Errno(libc::EBUSY)),
    ("RetriableException", Errno(libc::EBUSY)),
    ("UnsupportedOperationException", Errno::EOPNOTSUPP),
    ("IllegalArgumentException", Errno::EINVAL),
];

/// Parts of messages, for exceptions that share a common name.
const MESSAGES: [(&str, Errno); 5] = [
    ("There are 0 datanode(s) running", Errno::EIO),
    ("could only be written to 0 of the", Errno::ENOSPC),
    ("rename destination directory is not empty", Errno::ENOTEMPTY),
    ("is a directory or file under source", Errno::EINVAL),
    ("maximum path component name limit", Errno(libc::ENAMETOOLONG)),
];

fn errno_of(status: u32, exception: &str, message: &str) -> Errno {
    if let Some((_, errno)) = EXCEPTIONS.iter().find(|(name, _)| *name == exception) {
        // In safe mode this exception may wrap the real one.
        let in_safe_mode = *errno == Errno(libc::EBUSY) && message.contains("safe mode");
        return if in_safe_mode { Errno::EROFS } else { *errno };
    }
    if let Some((_, errno)) = MESSAGES.iter().find(|(words, _)| message.contains(words)) {
        return *errno;
    }
    match status {
        401 => Errno::EACCES,
        404 => Errno::ENOENT,
        _ => Errno::EIO,
    }
}

/// Returns true if a read began beyond the end of the file. Servers report an error; here it is an empty read.
pub(super) fn is_behind_the_end(why: &str) -> bool {
    why.starts_with("EOFException") || why.contains(" out of the range [0, ")
}

/// Returns true for a rename of a directory over a file, or of a file over a directory.
pub(super) fn is_of_two_kinds(why: &str) -> bool {
    why.contains("must both be directories")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u32, exception: &str, message: &str) -> HdfsRefusal {
        let text = serde_json::json!({"RemoteException": {"exception": exception, "message": message}});
        refusal(&HttpAnswer::said(status, &text.to_string())).expect("it is refused")
    }

    #[test]
    fn what_is_at_a_path_is_read() {
        let text = br#"{"FileStatus":{"accessTime":0,"blockSize":67108864,"childrenNum":0,"fileId":16390,"group":"supergroup",
            "length":24930,"modificationTime":0,"owner":"root","pathSuffix":"","permission":"644","replication":2,
            "storagePolicy":0,"type":"FILE"}}"#;
        let status = HdfsStatus::of(text).expect("a status");
        assert_eq!((status.stat, status.inode), (Stat { size: 24930, directory: false }, 16390));
        assert_eq!((status.replication, status.block), (2, 64 << 20));
        assert_eq!(HdfsStatus::of(b"{}"), Err(Errno::EIO));
        assert_eq!(HdfsStatus::of(b"<html>"), Err(Errno::EIO));
    }

    #[test]
    fn a_listing_says_what_follows_it() {
        let text = |left: u64| {
            let status =
                |name: &str, kind: &str| serde_json::json!({"pathSuffix": name, "type": kind, "length": 1});
            let statuses = [status("a", "FILE"), status("b", "DIRECTORY")];
            serde_json::json!({"DirectoryListing": {"partialListing": {"FileStatuses": {"FileStatus": statuses}},
                                                    "remainingEntries": left}})
            .to_string()
        };
        let whole = HdfsListing::of(text(0).as_bytes()).expect("a listing");
        let entries = vec![(b"a".to_vec(), listing::FILE), (b"b".to_vec(), listing::DIRECTORY)];
        assert_eq!(whole, HdfsListing { entries, last: None });
        assert_eq!(HdfsListing::of(text(3).as_bytes()).expect("a part").last.as_deref(), Some("b"));
        assert_eq!(HdfsListing::of(b"{}"), Err(Errno::EIO));
    }

    #[test]
    fn exceptions_are_errors_of_files() {
        assert_eq!(refusal(&HttpAnswer::said(201, "")), None);
        assert_eq!(refusal(&HttpAnswer::said(307, "")), None);
        assert_eq!(refused(404, "FileNotFoundException", "File does not exist: /x").errno, Errno::ENOENT);
        let safe = refused(
            403,
            "RetriableException",
            "org...SafeModeException: Cannot create. Name node is in safe mode.",
        );
        assert_eq!(safe.errno, Errno::EROFS);
        let full = "File /f could only be written to 0 of the 1 minReplication nodes. There are 3 datanode(s) running";
        assert_eq!(refused(403, "IOException", full).errno, Errno::ENOSPC);
        let dead = "File /f could only be written to 0 of the 1 minReplication nodes. There are 0 datanode(s) running";
        assert_eq!(refused(403, "IOException", dead).errno, Errno::EIO);
        let behind = refused(403, "IOException", "Offset=9 out of the range [0, 5); OPEN, path=/f");
        assert!(behind.errno == Errno::EIO && is_behind_the_end(&behind.why));
        let ipc = refusal(&HttpAnswer::said(
            404,
            "It looks like you are making an HTTP request to a Hadoop IPC port.",
        ));
        assert!(ipc.expect("it is refused").why.contains("9870"));
    }
}
