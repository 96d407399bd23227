//! The two requests that the page repeats: its data as JSON, and the latest frame as a picture.

use nilometer_model::Moment;
use nilometer_storage::Calendar;
use serde_json::json;

use super::{BYTES, HttpResponse, JSON};
use crate::{console::LiveReport, latest_frame::FrameAnswer};

/// Everything except the picture.
pub(super) fn live(live: &LiveReport) -> String {
    let LiveReport { report, history, ended } = live;
    let now = Moment(Calendar::now().time);
    let page = json!({ "now": now, "report": report, "history": history, "ended": ended });
    page.to_string() + "\n"
}

/// A line of JSON that describes the picture, followed by one byte a pixel. Without a picture it is JSON with
/// the reason, and no error: most recordings have no pictures.
pub(super) fn latest_frame(answer: FrameAnswer) -> HttpResponse {
    let frame = match answer {
        Ok(frame) => frame,
        Err(why) => return HttpResponse(200, JSON, (json!({ "none": why }).to_string() + "\n").into()),
    };
    let head = json!(&*frame).to_string() + "\n";
    HttpResponse(200, BYTES, [head.as_bytes(), frame.codes()].concat())
}
