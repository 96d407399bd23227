//! The two requests that the page repeats: its data as JSON, and the latest frame as a picture.

use nilometer_model::Moment;
use nilometer_storage::Calendar;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::answers::{BYTES, HttpResponse, json_answer};
use crate::{console::LiveReport, latest_frame::FrameAnswer};

/// The data of the page.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct LivePage {
    /// The time of the answer.
    #[schemars(with = "String")]
    now: Moment,
    #[serde(flatten)]
    live: LiveReport,
}

/// The answer without a picture.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct NoPicture {
    /// The reason.
    none: String,
}

/// Everything except the picture.
pub(super) fn live(live: LiveReport) -> HttpResponse {
    json_answer(200, &LivePage { now: Moment(Calendar::now().time), live })
}

/// A line of JSON that describes the picture, followed by one byte a pixel. Without a picture it is JSON with
/// the reason, and no error: most recordings have no pictures.
pub(super) fn latest_frame(answer: FrameAnswer) -> HttpResponse {
    let frame = match answer {
        Ok(frame) => frame,
        Err(why) => return json_answer(200, &NoPicture { none: why }),
    };
    let head = json!(&*frame).to_string() + "\n";
    HttpResponse(200, BYTES, [head.as_bytes(), frame.codes()].concat())
}
