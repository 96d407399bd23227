//! Percent-encoding for the addresses of HTTP (RFC 3986, 2.1).

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Characters to encode in a value of a query: everything except letters, digits and `-_.~`.
const IN_VALUES: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
const IN_PATHS: AsciiSet = IN_VALUES.remove(b'/');

/// Encodes a text for a path, which keeps its slashes, or for a query.
pub(crate) fn encoded(text: &str, with_slashes: bool) -> String {
    let set = if with_slashes { &IN_PATHS } else { &IN_VALUES };
    utf8_percent_encode(text, set).to_string()
}

/// Builds a query with its keys sorted, the order in which S3 signs it.
pub(crate) fn query(pairs: &[(&str, &str)]) -> String {
    let mut pairs: Vec<_> = pairs
        .iter()
        .map(|(key, value)| format!("{}={}", encoded(key, false), encoded(value, false)))
        .collect();
    pairs.sort();
    pairs.join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_queries_are_encoded() {
        assert_eq!(encoded("/a b/ü+&~", true), "/a%20b/%C3%BC%2B%26~");
        assert_eq!(
            query(&[("prefix", "d/"), ("list-type", "2"), ("uploads", "")]),
            "list-type=2&prefix=d%2F&uploads="
        );
    }
}
