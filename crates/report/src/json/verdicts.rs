//! Verdicts for programs.

use serde::Serialize;

use nilometer_analysis::{Decision, Verdict, letter};

/// The answer for an instrument on a target.
#[derive(Serialize)]
pub(super) struct Answered {
    instrument: String,
    target: String,
    carried: bool,
    /// `carries`, `does not carry` or `not decided`.
    decision: &'static str,
    bytes_per_second: f64,
    /// The target's sustained rate.
    limit_bytes_per_second: Option<f64>,
    /// The 95 % interval of the sustained rate. A lower bound has no upper end.
    limit_interval_bytes_per_second: Option<[Option<f64>; 2]>,
    /// True if rate and margin are lower bounds, because the recorder waited for a processor.
    limit_is_lower_bound: bool,
    /// The limit over the instrument's rate.
    margin: Option<f64>,
    /// The 95 % interval of the margin. A lower bound has no upper end.
    margin_interval: Option<[Option<f64>; 2]>,
    /// The recording at the instrument's pace behind the answer, or null if it decides nothing.
    recording: Option<Paced>,
    sentence: String,
    /// Further remarks.
    more: Vec<String>,
}

/// The result of a recording at the instrument's pace.
#[derive(Serialize)]
struct Paced {
    duration_s: f64,
    frames_due: u64,
    frames_lost: u64,
    /// Without an acknowledged frame while some waited.
    longest_stall_s: f64,
    /// From due until it could be read.
    latest_frame_s: f64,
    /// The buffer size that covers the longest stall.
    covering_buffer_bytes: u64,
}

impl Paced {
    fn of(verdict: &Verdict) -> Option<Paced> {
        let trial = verdict.trial()?;
        Some(Paced {
            duration_s: trial.duration.seconds(),
            frames_due: trial.due,
            frames_lost: trial.lost,
            longest_stall_s: trial.longest_stall.seconds(),
            latest_frame_s: trial.latest.seconds(),
            covering_buffer_bytes: trial.covering(verdict.rate).0,
        })
    }
}

pub(super) fn answered(verdict: &Verdict) -> Answered {
    let is_lower_bound = verdict.limit.is_some_and(|limit| limit.is_lower_bound());
    let interval = |low: f64, high: f64| [Some(low), (!is_lower_bound).then_some(high)];
    Answered {
        instrument: verdict.instrument.label(),
        target: letter(verdict.target),
        carried: verdict.decision() == Decision::Carries,
        decision: verdict.decision().name(),
        bytes_per_second: verdict.rate.0,
        limit_bytes_per_second: verdict.limit.map(|limit| limit.rate.0),
        limit_interval_bytes_per_second: verdict.limit.map(|limit| interval(limit.low.0, limit.high.0)),
        limit_is_lower_bound: is_lower_bound,
        margin: verdict.margin(),
        margin_interval: verdict.margins().map(|margin| interval(margin.low, margin.high)),
        recording: Paced::of(verdict),
        sentence: verdict.to_string(),
        more: verdict.more(),
    }
}
