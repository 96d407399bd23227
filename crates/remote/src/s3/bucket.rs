//! Signed requests for a bucket, and questions that block until the answer.

use std::time::{Duration, SystemTime};

use nilometer_storage::Errno;

use super::{
    settings::S3Settings,
    sign::{self, SignedRequest},
    words::{error_code, refusal},
};
use crate::{
    http::{HttpAnswer, HttpBody, HttpClient, HttpMethod, HttpRequest},
    percent::{self, encoded},
};

/// A bucket of an object store, with the user's keys.
#[derive(Debug)]
pub(super) struct Bucket {
    pub(super) settings: S3Settings,
}

/// A request for a bucket, before it is signed.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    method: HttpMethod,
    key: &'a str,
    pub(super) query: String,
    pub(super) headers: Vec<String>,
    pub(super) body: HttpBody,
}

impl<'a> Asked<'a> {
    /// Makes a request about one object.
    pub(super) fn object(method: HttpMethod, key: &'a str) -> Self {
        Asked { method, key, query: String::new(), headers: Vec::new(), body: HttpBody::Empty }
    }

    /// Makes a request about all objects with a common prefix.
    pub(super) fn listing(query: &[(&str, &str)]) -> Self {
        let query = percent::query(&[&[("list-type", "2")], query].concat());
        Asked { query, ..Asked::object(HttpMethod::Get, "") }
    }

    /// Makes a request for the unfinished uploads of keys with this prefix.
    pub(super) fn unfinished(prefix: &str) -> Self {
        Asked {
            query: percent::query(&[("uploads", ""), ("prefix", prefix)]),
            ..Asked::object(HttpMethod::Get, "")
        }
    }
}

/// The reason why a bucket does not answer properly.
#[derive(Debug)]
pub(super) struct BucketFault {
    pub(super) errno: Errno,
    pub(super) why: String,
}

impl Bucket {
    pub(super) fn certificates(&self) -> Option<String> {
        self.settings.certificates.clone()
    }

    /// Builds the request, signed with the current time.
    pub(super) fn request(&self, asked: Asked<'_>) -> HttpRequest {
        let S3Settings { endpoint, host, base, region, keys, .. } = &self.settings;
        let Asked { method, key, query, headers, body } = asked;
        let mut path = format!("{base}/{}", encoded(key, true));
        if key.is_empty() && !base.is_empty() {
            path.pop();
        }
        let signed = SignedRequest { method, host, path: &path, query: &query };
        let mut all = sign::headers(signed, keys, region, SystemTime::now());
        all.extend(headers);
        let query = if query.is_empty() { query } else { format!("?{query}") };
        let url = format!("{endpoint}{path}{query}");
        HttpRequest { method, url, headers: all, body, flight: None, into_buffer: 0 }
    }

    /// Sends a request and waits for the answer.
    pub(super) fn ask(&self, asked: Asked<'_>, limit: Duration) -> Result<HttpAnswer, BucketFault> {
        let answer = HttpClient::new(self.certificates()).ask(self.request(asked), limit);
        let answer = answer.map_err(|fault| BucketFault { errno: fault.errno, why: fault.why })?;
        match refusal(&answer) {
            None => Ok(answer),
            Some(errno) => {
                let code = error_code(&answer.text).unwrap_or_else(|| "no reason".into());
                Err(BucketFault { errno, why: format!("{code}, status {}", answer.status) })
            }
        }
    }
}
