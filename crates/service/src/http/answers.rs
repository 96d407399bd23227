//! Answers of the HTTP server: their statuses, types of content and JSON.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::state::{ServiceReport, ServiceState};

/// An answer: status, type of the content, content.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HttpResponse(pub(super) u16, pub(super) &'static str, pub(super) Vec<u8>);

pub(super) const JSON: &str = "application/json";
pub(super) const BYTES: &str = "application/octet-stream";
pub(super) const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
pub(super) const HTML: &str = "text/html; charset=utf-8";
pub(super) const EVENTS: &str = "text/event-stream";

/// A status of an answer, with the words of HTTP and its meaning here.
#[derive(Debug)]
pub(super) struct AnswerStatus {
    pub(super) code: u16,
    reason: &'static str,
    pub(super) meaning: &'static str,
}

/// All statuses that the server sends.
pub(super) const STATUSES: [AnswerStatus; 16] = [
    status(200, "OK", "The answer."),
    status(202, "Accepted", "The order goes on: it takes longer than the answer."),
    status(400, "Bad Request", "The request is invalid."),
    status(401, "Unauthorized", "The service requires a token, and the request has no valid one."),
    status(403, "Forbidden", "The token is to read only, or a browser sent the command."),
    status(404, "Not Found", "There is no such path, or no such dump."),
    status(405, "Method Not Allowed", "The path has another method."),
    status(408, "Request Timeout", "The request did not arrive in time."),
    status(409, "Conflict", "Not possible in this state."),
    status(413, "Content Too Large", "The body is longer than 64 KiB."),
    status(429, "Too Many Requests", "The allowed number of dumps is running."),
    status(431, "Request Header Fields Too Large", "The headers are too long or too many."),
    status(500, "Internal Server Error", "The service tried and failed."),
    status(501, "Not Implemented", "The body has no Content-Length."),
    status(503, "Service Unavailable", "The service is busy with other requests."),
    status(505, "HTTP Version Not Supported", "The request is not HTTP/1.1."),
];

const fn status(code: u16, reason: &'static str, meaning: &'static str) -> AnswerStatus {
    AnswerStatus { code, reason, meaning }
}

/// The words of HTTP for a status.
pub(super) fn reason(code: u16) -> &'static str {
    STATUSES.iter().find(|status| status.code == code).map_or("Internal Server Error", |status| status.reason)
}

/// The reason why the service refused a request, or failed.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ErrorAnswer {
    error: String,
    /// The state of the recorder, if the request was an order.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<ServiceState>,
}

/// An answer with this value and a line end.
pub(super) fn json_answer(status: u16, value: &impl Serialize) -> HttpResponse {
    HttpResponse(status, JSON, (json!(value).to_string() + "\n").into())
}

pub(super) fn report(status: u16, report: &ServiceReport) -> HttpResponse {
    json_answer(status, report)
}

pub(super) fn refusal(status: u16, why: &str) -> HttpResponse {
    json_answer(status, &ErrorAnswer { error: why.into(), state: None })
}

pub(super) fn refused(status: u16, why: &str, now: &ServiceReport) -> HttpResponse {
    json_answer(status, &ErrorAnswer { error: why.into(), state: Some(now.state) })
}
