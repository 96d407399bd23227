//! Texts in addresses of HTTP (RFC 3986, 2.1).

/// A text as it stands in a path or a query: all but letters, digits and `-_.~` as `%` and two digits.
pub(crate) fn encoded(text: &str, with_slashes: bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => encoded.push(byte.into()),
            b'/' if with_slashes => encoded.push('/'),
            _ => encoded.extend(['%', digit(byte >> 4), digit(byte & 15)]),
        }
    }
    encoded
}

/// A query in the order of its keys, in which S3 signs it.
pub(crate) fn query(pairs: &[(&str, &str)]) -> String {
    let mut pairs: Vec<_> = pairs
        .iter()
        .map(|(key, value)| format!("{}={}", encoded(key, false), encoded(value, false)))
        .collect();
    pairs.sort();
    pairs.join("&")
}

/// Four bits, as a hexadecimal digit.
pub(crate) fn digit(bits: u8) -> char {
    char::from_digit(bits.into(), 16).unwrap_or('0').to_ascii_uppercase()
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
