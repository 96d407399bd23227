//! Sentences about losses: those that happened, and the bound that a recording without any proves.

use nilometer_model::{FramesBeside, Nanos, statistics::poisson_upper};

/// `no frame of 300 lost, the longest stall was 8 ms`.
pub(crate) fn lost_words(frames: &FramesBeside) -> String {
    let FramesBeside { due, lost, late, allowance, longest_stall } = frames;
    let what = match lost {
        0 => format!("no frame of {due} lost"),
        lost => {
            format!("{:.2} % of frames ({lost} of {due}) lost", 100.0 * *lost as f64 / (*due).max(1) as f64)
        }
    };
    let late = if *late == 0 { String::new() } else { format!(", {late} later than {allowance}") };
    format!("{what}{late}, the longest stall was {longest_stall}")
}

/// Periods for the rate of losses, the shortest first.
const COUNTED_IN: [(&str, f64); 3] = [("an hour", 3600.0), ("a day", 86_400.0), ("a year", 31_557_600.0)];

/// The bound on the rate of losses after a recording of this duration without loss, and the duration that proves
/// less. A loss is an event: one stall may lose a thousand frames, so the bound does not limit the number of
/// frames.
pub(crate) fn fewer_losses(duration: Nanos) -> Vec<String> {
    let most = poisson_upper(0) / duration.seconds().max(1e-9);
    let in_time = |(_, seconds): &&(&str, f64)| most * seconds >= 1.0;
    let (time, seconds) = COUNTED_IN.iter().find(in_time).unwrap_or(&COUNTED_IN[2]);
    let mut said = vec![format!("fewer than {} losses {time} are proved (95 %)", rounded_up(most * seconds))];
    let day = Nanos::from_seconds(COUNTED_IN[1].1 * poisson_upper(0));
    if duration < day {
        let hours = (day.seconds() / 3600.0).ceil();
        said.push(format!("to prove fewer than one a day, record {hours:.0} h"));
    }
    said
}

/// Rounds up to two digits.
fn rounded_up(value: f64) -> String {
    let step = 10_f64.powf((value.log10().floor() - 1.0).max(0.0));
    format!("{:.0}", (value / step).ceil() * step)
}
