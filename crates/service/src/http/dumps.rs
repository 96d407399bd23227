//! Dumps by HTTP: the JSON of a request becomes a dump, and its report an answer.

use super::{
    answers::{HttpResponse, json_answer, refusal},
    orders::no_object,
};
use crate::dump::{BegunDumps, DumpRefusal, Dumps};

/// Begins a dump, or one for each data stream. They go on behind the answer.
pub(super) fn begin_dump(dumps: &Dumps, body: &[u8]) -> HttpResponse {
    let request = match serde_json::from_slice(body) {
        Ok(request) => request,
        Err(error) => return refusal(400, &no_object(&error)),
    };
    match dumps.begin(&request) {
        Ok(reports) => json_answer(202, &BegunDumps::of(reports)),
        Err(DumpRefusal::AskedWrongly(why)) => refusal(400, &why),
        Err(DumpRefusal::NoRecording) => refusal(409, "there is no recording yet: start one first"),
        Err(DumpRefusal::TooMany(why)) => refusal(429, &why),
        Err(DumpRefusal::Failed(why)) => refusal(500, &why),
    }
}

/// Ends a dump, if it still runs.
pub(super) fn end_dump(dumps: &Dumps, id: &str) -> HttpResponse {
    let report = id.parse().ok().and_then(|id| dumps.end(id));
    report.map_or_else(
        || refusal(404, "there is no dump of this number: GET /dumps lists them"),
        |report| json_answer(200, &report),
    )
}
