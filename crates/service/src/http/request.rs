//! HTTP/1.1 as far as a recorder needs it (RFC 9112): one request a connection, with a length, not chunked. Pure: bytes in,
//! a request out.

/// What came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HttpRequest {
    pub(super) method: String,
    /// Without what stands behind `?`.
    pub(super) path: String,
    pub(super) host: Option<String>,
    /// The page that sent it, if a browser did.
    pub(super) origin: Option<String>,
    /// What says who asks.
    pub(super) authorization: Option<String>,
    pub(super) body: Vec<u8>,
}

/// A request that is none, or is not served: the status to be answered, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BadRequest(pub(super) u16, pub(super) &'static str);

/// Bytes of the request line and the headers, at the most, and of a body.
pub(super) const HEAD_MAX: usize = 8 << 10;
pub(super) const BODY_MAX: usize = 64 << 10;
const HEADERS_MAX: usize = 64;
const END: &[u8] = b"\r\n\r\n";

/// The request in front of these bytes; none if it is not whole yet.
pub(super) fn parse(bytes: &[u8]) -> Result<Option<HttpRequest>, BadRequest> {
    let Some(end) = bytes.windows(END.len()).position(|window| window == END) else {
        return if bytes.len() > HEAD_MAX {
            Err(BadRequest(431, "its headers are too long"))
        } else {
            Ok(None)
        };
    };
    if end > HEAD_MAX {
        return Err(BadRequest(431, "its headers are too long"));
    }
    let head = std::str::from_utf8(&bytes[..end]).map_err(|_| BadRequest(400, "its headers are no text"))?;
    let mut lines = head.split("\r\n");
    let (method, path) = request_line(lines.next().unwrap_or_default())?;
    let headers = lines.map(header).collect::<Result<Vec<_>, _>>()?;
    let length = body_length(&headers)?;
    let body = &bytes[end + END.len()..];
    if body.len() < length {
        return Ok(None);
    }
    let one = |name: &str| headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
    let host = one("host");
    let origin = one("origin");
    let authorization = one("authorization");
    Ok(Some(HttpRequest { method, path, host, origin, authorization, body: body[..length].to_vec() }))
}

/// `POST /arm HTTP/1.1`.
fn request_line(line: &str) -> Result<(String, String), BadRequest> {
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(BadRequest(400, "its first line is not METHOD PATH HTTP/1.1"));
    };
    if !matches!(version, "HTTP/1.1" | "HTTP/1.0") {
        return Err(BadRequest(505, "write HTTP/1.1"));
    }
    let is_word = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
    if !is_word || !target.starts_with('/') {
        return Err(BadRequest(400, "its first line is not METHOD PATH HTTP/1.1"));
    }
    let path = target.split('?').next().unwrap_or_default();
    Ok((method.into(), path.into()))
}

/// A header: its name in lower case, and its value.
fn header(line: &str) -> Result<(String, String), BadRequest> {
    let bad = BadRequest(400, "a header is not NAME: VALUE");
    let (name, value) = line.split_once(':').ok_or(bad.clone())?;
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) || value.contains(['\0', '\r', '\n']) {
        return Err(bad);
    }
    Ok((name.to_ascii_lowercase(), value.trim().into()))
}

fn body_length(headers: &[(String, String)]) -> Result<usize, BadRequest> {
    if headers.len() > HEADERS_MAX {
        return Err(BadRequest(431, "it has too many headers"));
    }
    if headers.iter().any(|(name, _)| name == "transfer-encoding") {
        return Err(BadRequest(501, "send a body with its Content-Length, not chunked"));
    }
    let mut lengths = headers.iter().filter(|(name, _)| name == "content-length").map(|(_, value)| value);
    let first = lengths.next();
    let second = lengths.next();
    let digits = first.is_none_or(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
    if second.is_some() || !digits {
        return Err(BadRequest(400, "its Content-Length is no number"));
    }
    let length = first.map_or(0, |text| text.parse().unwrap_or(usize::MAX));
    if length > BODY_MAX {
        return Err(BadRequest(413, "its body is longer than 64 KiB"));
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ARM: &[u8] =
        b"POST /arm?x=1 HTTP/1.1\r\nHost: 127.0.0.1:9620\r\nContent-Length: 5\r\nOrigin: http://e\r\n\r\n{\"a\"}";

    #[test]
    fn a_request_is_read_when_it_is_whole() {
        for end in 0..ARM.len() {
            assert_eq!(parse(&ARM[..end]), Ok(None), "{end} bytes");
        }
        let request = parse(ARM).expect("valid").expect("whole");
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/arm"));
        assert_eq!(request.host.as_deref(), Some("127.0.0.1:9620"));
        assert_eq!(request.origin.as_deref(), Some("http://e"));
        assert_eq!(request.body, b"{\"a\"}");
        assert!(parse(b"GET /status HTTP/1.0\r\n\r\n").expect("valid").is_some(), "a header is not needed");
    }

    #[test]
    fn what_is_too_long_or_wrong_is_refused_before_it_is_read() {
        let long = format!("GET / HTTP/1.1\r\nx: {}", "y".repeat(HEAD_MAX));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(HEADERS_MAX + 1));
        for (text, status) in [
            (long.as_str(), 431),
            (many.as_str(), 431),
            ("GET / HTTP/1.1\r\nContent-Length: 65537\r\n\r\n", 413),
            ("GET / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n", 413),
            ("GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", 400),
            ("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 501),
            ("GET / HTTP/2\r\n\r\n", 505),
            ("get / HTTP/1.1\r\n\r\n", 400),
            ("GET /\r\n\r\n", 400),
            ("GET status HTTP/1.1\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\nno header\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\n a: b\r\n\r\n", 400),
            ("\r\n\r\n", 400),
        ] {
            assert_eq!(parse(text.as_bytes()).expect_err(text).0, status, "{text}");
        }
        assert_eq!(parse(b"GET /\xff HTTP/1.1\r\n\r\n").expect_err("no text").0, 400);
    }

    #[test]
    fn requests_that_are_almost_valid_are_read_or_refused() {
        let chunked = b"POST /arm HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
        let get = b"GET /status HTTP/1.0\r\n\r\n";
        nilometer_fuzz::fuzz("http", vec![ARM.to_vec(), chunked.to_vec(), get.to_vec()], |input| {
            if let Ok(Some(request)) = parse(input) {
                assert!(request.body.len() <= input.len());
            }
        });
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            drop(parse(&bytes));
            let whole = [&b"POST / HTTP/1.1\r\n"[..], &bytes, END].concat();
            prop_assert!(!matches!(parse(&whole), Ok(None)) || String::from_utf8_lossy(&whole).to_lowercase().contains("content-length"));
        }
    }
}
