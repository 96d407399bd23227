//! Parses an object store's answers in XML: listings, upload ids and errors.

use nilometer_storage::{Errno, listing};
use roxmltree::{Document, Node};

use crate::{client::NamedEntry, http::HttpAnswer};

/// One page of the objects with a common prefix.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ObjectListing {
    pub(super) objects: Vec<ListedObject>,
    /// Prefixes up to the next slash, including it.
    pub(super) below: Vec<String>,
    /// The token for the next page.
    pub(super) next: Option<String>,
}

/// An object in a listing.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ListedObject {
    pub(super) key: String,
    pub(super) size: u64,
}

impl ObjectListing {
    /// Parses a listing.
    pub(super) fn of(text: &[u8]) -> Result<Self, Errno> {
        let text = std::str::from_utf8(text).map_err(|_| Errno::EIO)?;
        let document = Document::parse(text).map_err(|_| Errno::EIO)?;
        let root = document.root_element();
        let mut listing = ObjectListing::default();
        for node in root.children().filter(Node::is_element) {
            match node.tag_name().name() {
                "Contents" => {
                    let size = of(node, "Size").and_then(|size| size.parse().ok()).ok_or(Errno::EIO)?;
                    let key = of(node, "Key").ok_or(Errno::EIO)?.to_owned();
                    listing.objects.push(ListedObject { key, size });
                }
                "CommonPrefixes" => listing.below.extend(of(node, "Prefix").map(str::to_owned)),
                "NextContinuationToken" => listing.next = node.text().map(str::to_owned),
                _ => {}
            }
        }
        Ok(listing)
    }

    /// Returns the names in the directory of this prefix, which ends in a slash or is empty.
    pub(super) fn names(&self, prefix: &str) -> Vec<NamedEntry> {
        let within = |text: &str, kind: u8| {
            let name = text.strip_prefix(prefix)?.trim_end_matches('/');
            // The directory's own marker is not one of its entries.
            (!name.is_empty()).then(|| (name.as_bytes().to_vec(), kind))
        };
        let files = self.objects.iter().filter_map(|object| within(&object.key, listing::FILE));
        files.chain(self.below.iter().filter_map(|below| within(below, listing::DIRECTORY))).collect()
    }
}

fn of<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    node.children().find(|child| child.tag_name().name() == name)?.text()
}

/// Parts of an object that were never combined.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct UnfinishedUpload {
    pub(super) key: String,
    pub(super) id: String,
}

/// Parses a listing of unfinished uploads; `None` if the text is no such listing.
pub(super) fn unfinished(text: &[u8]) -> Option<Vec<UnfinishedUpload>> {
    let text = std::str::from_utf8(text).ok()?;
    let document = Document::parse(text).ok()?;
    let uploads = document.root_element().children().filter(|node| node.tag_name().name() == "Upload");
    let one = |node| {
        Some(UnfinishedUpload { key: of(node, "Key")?.to_owned(), id: of(node, "UploadId")?.to_owned() })
    };
    uploads.map(one).collect()
}

/// Returns the text of the first element of this name.
pub(super) fn element(text: &[u8], name: &str) -> Option<String> {
    let text = std::str::from_utf8(text).ok()?;
    let document = Document::parse(text).ok()?;
    let node = document.descendants().find(|node| node.tag_name().name() == name)?;
    node.text().map(str::to_owned)
}

/// Returns the code of an error, such as `NoSuchKey`.
pub(super) fn error_code(text: &[u8]) -> Option<String> {
    // A slow store sends blanks first.
    let text = std::str::from_utf8(text.trim_ascii_start()).ok()?;
    let document = Document::parse(text).ok()?;
    let error = Some(document.root_element()).filter(|root| root.tag_name().name() == "Error")?;
    Some(of(error, "Code").unwrap_or("Error").to_owned())
}

/// Returns true if the answer confirms the combined object. An empty answer does not: the connection may have
/// ended too early.
pub(super) fn is_put_together(text: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(text.trim_ascii_start()) else { return false };
    let root =
        |document: Document<'_>| document.root_element().tag_name().name() == "CompleteMultipartUploadResult";
    Document::parse(text).is_ok_and(root)
}

/// Returns the error in an answer, if it is one. A store may report a failed combination of parts with status
/// 200.
pub(super) fn refusal(answer: &HttpAnswer) -> Option<Errno> {
    let code = error_code(&answer.text);
    if answer.is_success() && code.is_none() {
        return None;
    }
    Some(match (answer.status, code.as_deref()) {
        (404, _) => Errno::ENOENT,
        (401 | 403, Some("QuotaExceeded")) => Errno::EDQUOT,
        (401 | 403, _) => Errno::EACCES,
        (405 | 501, _) => Errno::EOPNOTSUPP,
        (412, _) => Errno::EEXIST,
        (400, Some("EntityTooLarge")) => Errno(libc::EFBIG),
        (400, _) => Errno::EINVAL,
        (409 | 429 | 503, _) => Errno(libc::EBUSY),
        (507, _) => Errno::ENOSPC,
        _ => Errno::EIO,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_is_names_in_a_directory() {
        let text = b"<?xml version=\"1.0\"?><ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
                     <Prefix>d/</Prefix><Contents><Key>d/</Key><Size>0</Size></Contents><Contents><Key>d/a&amp;b</Key>\
                     <Size>3</Size></Contents><CommonPrefixes><Prefix>d/e/</Prefix></CommonPrefixes>\
                     <NextContinuationToken>more</NextContinuationToken></ListBucketResult>";
        let listing = ObjectListing::of(text).expect("a listing");
        let expected = [(b"a&b".to_vec(), listing::FILE), (b"e".to_vec(), listing::DIRECTORY)];
        assert_eq!(listing.names("d/"), expected);
        assert_eq!((listing.objects[1].size, listing.next.as_deref()), (3, Some("more")));
        assert_eq!(ObjectListing::of(b"<html>"), Err(Errno::EIO));
    }

    #[test]
    fn an_error_in_an_answer_is_one_whatever_its_status() {
        let answer = |status, text: &str| HttpAnswer::said(status, text);
        assert_eq!(refusal(&answer(200, "")), None);
        assert_eq!(refusal(&answer(200, "<CompleteMultipartUploadResult/>")), None);
        let said = answer(200, "<Error><Code>InternalError</Code><Message>x</Message></Error>");
        assert_eq!(refusal(&said), Some(Errno::EIO));
        let late = answer(200, " \r\n<?xml version=\"1.0\"?><Error><Code>InternalError</Code></Error>");
        assert_eq!(refusal(&late), Some(Errno::EIO), "behind blanks");
        assert_eq!(refusal(&answer(404, "")), Some(Errno::ENOENT));
        assert_eq!(
            refusal(&answer(412, "<Error><Code>PreconditionFailed</Code></Error>")),
            Some(Errno::EEXIST)
        );
    }

    #[test]
    fn an_object_is_put_together_if_the_store_says_so() {
        assert!(is_put_together(b"  \n<?xml version=\"1.0\"?><CompleteMultipartUploadResult xmlns=\"x\"/>"));
        for other in ["", "  ", "<Error/>", "<CompleteMultipartUploadResult>"] {
            assert!(!is_put_together(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn unfinished_uploads_are_a_listing_or_none() {
        let text = b"<ListMultipartUploadsResult><Upload><Key>d/a</Key><UploadId>1</UploadId></Upload>\
                     </ListMultipartUploadsResult>";
        let one = UnfinishedUpload { key: "d/a".into(), id: "1".into() };
        assert_eq!(unfinished(text), Some(vec![one]));
        assert_eq!(unfinished(b"<ListMultipartUploadsResult/>"), Some(Vec::new()));
        assert_eq!(unfinished(b"<html>"), None);
    }
}
