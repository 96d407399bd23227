//! The growth of a workload with the number of elements that run it at once, in words and as rows of a table.

use nilometer_analysis::{AtOnce, ElementGrowth, GrowthKnee, OddElement, RateUnit, effect::Effect, letter};

use super::words;

/// The headings of the columns.
pub(super) const COLUMNS: [&str; 4] = ["at once", "rate", "efficiency", "the tool alone"];

/// The explanation of the table.
pub(super) const LEGEND: &str = "the first N at once: all their data over the time until the last was done. \
                                 Efficiency is that rate over the sum of each one's rate alone. The tool \
                                 alone: its rate onto `null:`, with as many workers";

/// The tool affects a rate that is not below its own rate by this factor.
const NEAR: f64 = 3.0;

/// `write`, or `write, block size 1 MiB`.
pub(super) fn heading(growth: &ElementGrowth) -> String {
    let phase = growth.phase.name();
    if growth.label.is_empty() { phase.into() } else { format!("{phase}, {}", growth.label) }
}

/// Makes the row for one number of elements, with texts in the order of [`COLUMNS`].
pub(super) fn row(growth: &ElementGrowth, at: &AtOnce) -> [String; 4] {
    let unit = unit(growth);
    let rate = at
        .rate
        .as_ref()
        .map(|rate| format!("{} {}", unit.show(rate.mean), words::interval(rate)).trim_end().to_owned());
    let ceiling = at.ceiling.map(|ceiling| unit.show(ceiling));
    [
        at.count().to_string(),
        rate.unwrap_or_else(|| "INVALID".into()),
        at.share.as_ref().map_or_else(|| words::NONE.into(), share),
        ceiling.unwrap_or_else(|| words::NONE.into()),
    ]
}

/// The unit that all numbers of elements share.
fn unit(growth: &ElementGrowth) -> RateUnit {
    let rates =
        growth.counts.iter().flat_map(|at| at.rate.map(|rate| rate.mean).into_iter().chain(at.ceiling));
    RateUnit::shared(growth.quantity, rates)
}

/// An interval's end above this share, in percent, only shows that little is certain.
const SHARE_MOST: f64 = 1000.0;

/// Formats a share as `83 % (81 to 85 %)`. It leaves out the interval if there are too few repeats, and the
/// upper end if that is above [`SHARE_MOST`].
fn share(effect: &Effect) -> String {
    let [share, low, high] = [effect.log_ratio, effect.low, effect.high].map(|log| 100.0 * log.exp());
    if effect.high.is_infinite() {
        format!("{share:.0} %")
    } else if high > SHARE_MOST {
        format!("{share:.0} % ({low:.0} % or more)")
    } else {
        format!("{share:.0} % ({low:.0} to {high:.0} %)")
    }
}

/// Describes the knee, its limit, and odd elements.
pub(super) fn sentences(growth: &ElementGrowth, margin: f64) -> Vec<String> {
    let mut sentences = vec![knee(growth, margin)];
    sentences.extend(near_ceiling(growth));
    sentences.extend(growth.odd.iter().map(|odd| odd_one(odd, margin)));
    sentences
}

fn knee(growth: &ElementGrowth, margin: f64) -> String {
    let Some(most) = growth.counts.iter().rfind(|at| at.rate.is_some()) else { return String::new() };
    match growth.knee {
        GrowthKnee::At(count) => {
            let figure = figure(growth, count);
            format!(
                "the knee is at {count}: {figure}; more add nothing ({})",
                beyond(growth, count, most.count(), margin)
            )
        }
        GrowthKnee::Beyond => {
            let count = most.count();
            format!(
                "no knee up to {count} at once, which do more than any smaller number: {}",
                figure(growth, count)
            )
        }
        GrowthKnee::Undecided(count) => {
            let beyond = beyond(growth, count, most.count(), margin);
            format!("the knee is not decided, from {count} on: {beyond}")
        }
    }
}

/// Compares the largest number of elements with `count`, which is the knee or may be it.
fn beyond(growth: &ElementGrowth, count: usize, most: usize, margin: f64) -> String {
    let Some(effect) = &growth.beyond_knee else { return "too few repeats".into() };
    let words = effect.words(margin, &at_once(most), &at_once(count));
    // The words before already say if the result is decided.
    words.replace("not decided: ", "").replace("not decided, ", "")
}

fn at_once(count: usize) -> String {
    if count == 1 { "the first alone".into() } else { format!("{count} at once") }
}

/// `3 at once do 250 MB/s, 83 % (81 to 85 %) of what they do alone`.
fn figure(growth: &ElementGrowth, count: usize) -> String {
    let Some(at) = growth.counts.iter().find(|at| at.count() == count) else { return at_once(count) };
    let rate = at.rate.as_ref().map(|rate| growth.quantity.show(rate.mean)).unwrap_or_default();
    let share = at.share.as_ref().map(|effect| format!(", {} of the sum of each alone", share(effect)));
    let does = if count == 1 { "does" } else { "do" };
    format!("{} {does} {rate}{}", at_once(count), share.unwrap_or_default())
}

/// Warns that the tool itself may limit the highest rate.
fn near_ceiling(growth: &ElementGrowth) -> Option<String> {
    let rate = |at: &&AtOnce| at.rate.as_ref().map_or(0.0, |rate| rate.mean);
    let highest = growth.counts.iter().max_by(|a, b| rate(a).total_cmp(&rate(b)))?;
    let ceiling = highest.ceiling.filter(|ceiling| *ceiling < NEAR * rate(&highest))?;
    let times = ceiling / rate(&highest);
    let shown = growth.quantity.show(ceiling);
    Some(format!(
        "the tool alone does {shown} with as many workers, {times:.1} times as much: it may limit this rate"
    ))
}

fn odd_one(odd: &OddElement, margin: f64) -> String {
    let target = letter(odd.target);
    format!("{target} is the odd one: {}", odd.effect.words(margin, &target, "the median of the others"))
}
