//! HTTP/1.1 as far as a recorder needs it (RFC 9112): one request a connection, with a length, not chunked. The
//! parser turns bytes into a request without I/O.

use httparse::{EMPTY_HEADER, Header, Request, Status};

/// A request from a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HttpRequest {
    pub(super) method: String,
    /// The path without `?` and the query.
    pub(super) path: String,
    pub(super) host: Option<String>,
    /// The page that sent it, if a browser did.
    pub(super) origin: Option<String>,
    /// The header that identifies the client.
    pub(super) authorization: Option<String>,
    pub(super) body: Vec<u8>,
}

/// An invalid or unsupported request: the status of the answer, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BadRequest(pub(super) u16, pub(super) &'static str);

/// The most bytes of the request line and headers together. `BODY_MAX` is the limit of a body.
pub(super) const HEAD_MAX: usize = 8 << 10;
pub(super) const BODY_MAX: usize = 64 << 10;
const HEADERS_MAX: usize = 64;
const NOT_A_REQUEST: BadRequest = BadRequest(400, "its first line is not METHOD PATH HTTP/1.1");
const NOT_A_HEADER: BadRequest = BadRequest(400, "a header is not NAME: VALUE");

/// The request at the start of these bytes, or `None` if it is not complete yet.
pub(super) fn parse(bytes: &[u8]) -> Result<Option<HttpRequest>, BadRequest> {
    // The parser would skip leading blank lines.
    if bytes.first().is_some_and(u8::is_ascii_whitespace) {
        return Err(NOT_A_REQUEST);
    }
    let mut headers = [EMPTY_HEADER; HEADERS_MAX];
    let mut request = Request::new(&mut headers);
    let end = match request.parse(bytes).map_err(refused)? {
        Status::Complete(end) if end <= HEAD_MAX => end,
        Status::Partial if bytes.len() <= HEAD_MAX => return Ok(None),
        _ => return Err(BadRequest(431, "its headers are too long")),
    };
    let (head, body) = bytes.split_at(end);
    let head = std::str::from_utf8(head).map_err(|_| BadRequest(400, "its headers are no text"))?;
    // The parser also accepts lines that end in LF alone. A proxy on the way may read two of them as one.
    if head.replace("\r\n", "").contains('\n') {
        return Err(BadRequest(400, "its lines do not end in CR LF"));
    }
    let (method, path) = asked(&request).ok_or(NOT_A_REQUEST)?;
    let length = body_length(request.headers)?;
    if body.len() < length {
        return Ok(None);
    }
    let one = |name: &str| values(request.headers, name).next().map(Into::into);
    let host = one("host");
    let origin = one("origin");
    let authorization = one("authorization");
    Ok(Some(HttpRequest { method, path, host, origin, authorization, body: body[..length].to_vec() }))
}

/// The refusal of a head that the parser can't read.
fn refused(error: httparse::Error) -> BadRequest {
    match error {
        // A blank in the target also leads here.
        httparse::Error::Version => BadRequest(505, NOT_A_REQUEST.1),
        httparse::Error::TooManyHeaders => BadRequest(431, "it has too many headers"),
        httparse::Error::HeaderName | httparse::Error::HeaderValue => NOT_A_HEADER,
        _ => NOT_A_REQUEST,
    }
}

/// The method and path of `POST /arm?now HTTP/1.1`. `None` if the method is not all capital letters, or the
/// target is no path.
fn asked(request: &Request<'_, '_>) -> Option<(String, String)> {
    let method = request.method.filter(|word| word.bytes().all(|byte| byte.is_ascii_uppercase()))?;
    let target = request.path.filter(|target| target.starts_with('/'))?;
    let path = target.split('?').next().unwrap_or_default();
    Some((method.into(), path.into()))
}

/// The values of all headers of this name.
fn values<'a>(headers: &'a [Header<'_>], name: &str) -> impl Iterator<Item = &'a str> {
    let named = headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name));
    named.map(|header| std::str::from_utf8(header.value).unwrap_or_default())
}

fn body_length(headers: &[Header<'_>]) -> Result<usize, BadRequest> {
    if values(headers, "transfer-encoding").next().is_some() {
        return Err(BadRequest(501, "send a body with its Content-Length, not chunked"));
    }
    let mut lengths = values(headers, "content-length");
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
            ("GET / HTTP/1.1\r\na: b\nhost: c\r\n\r\n", 400),
            ("GET / HTTP/1.1\r\na: b\u{1}\r\n\r\n", 400),
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
            let whole = [&b"POST / HTTP/1.1\r\n"[..], &bytes, b"\r\n\r\n"].concat();
            prop_assert!(!matches!(parse(&whole), Ok(None)) || String::from_utf8_lossy(&whole).to_lowercase().contains("content-length"));
        }
    }
}
