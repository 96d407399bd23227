//! The comparison with a baseline, for the terminal: losses, undecided figures, and figures that could not be
//! compared.

use nilometer_analysis::{AgainstBaseline, LeftFigure, OpenFigure, RecordsCompared, RunSpread};

/// Describes the comparison with a baseline: one line for each loss, or one line if there is none. Then one
/// line for each undecided figure and each figure that could not be compared.
pub fn against_text(compared: &RecordsCompared<'_>, against: &AgainstBaseline) -> String {
    let mut lines: Vec<String> = against
        .worse
        .iter()
        .map(|worse| format!("worse: {}: {}: {}", compared.name(worse.subject), worse.what, worse.words))
        .collect();
    if lines.is_empty() {
        lines.push(nothing_worse(compared, against));
    }
    let open = against.open.iter().map(|figure| undecided(compared, against, figure));
    lines.extend(shortened(open.collect()));
    let left = against.left.iter().map(|left| format!("not compared: {}", left.words()));
    lines.extend(shortened(left.collect()));
    lines.extend(against.beside.iter().map(|words| format!("not compared: {words}")));
    lines.join("\n") + "\n" + &against.spread.map(spread_of_runs).unwrap_or_default()
}

/// Names an undecided figure. Its interval is that of a single test; the decision counts all tests together.
fn undecided(compared: &RecordsCompared<'_>, against: &AgainstBaseline, figure: &OpenFigure) -> String {
    let name = compared.name(figure.subject);
    format!("not decided: {name}: {}: {}{}", figure.what, figure.change(), by_chance(against, figure))
}

/// The reason why a figure is undecided although its own interval is a loss.
fn by_chance(against: &AgainstBaseline, figure: &OpenFigure) -> String {
    let is_loss_alone = figure.percent.is_some_and(|[.., high]| high < -against.threshold);
    if !is_loss_alone {
        return String::new();
    }
    format!("; alone it would be a loss, among {} tests it may be chance", against.tests)
}

/// Longer lists of one kind end with a count of the rest.
const LINES_MOST: usize = 10;

fn shortened(mut lines: Vec<String>) -> Vec<String> {
    let more = lines.len().saturating_sub(LINES_MOST);
    if more > 1 {
        lines.truncate(LINES_MOST);
        lines.push(format!("... and {more} more"));
    }
    lines
}

/// Baselines that can only show larger losses than this, in percent, are useless.
const LOSS_SHOWN_MOST: f64 = 90.0;

/// States the smallest loss that stands out from the spread of several baselines.
fn spread_of_runs(spread: RunSpread) -> String {
    let RunSpread { runs, seen_least, seen_most } = spread;
    let percent = |share: f64| format!("{share:.0} %");
    if seen_least >= LOSS_SHOWN_MOST {
        return format!("the {runs} baselines differ too much, or are too few, to show a loss\n");
    }
    let least = percent(seen_least);
    let most = percent(seen_most);
    let range = if least == most { least } else { format!("{least} to {most}, by figure") };
    format!("the spread between {runs} baselines counts: they show a loss of more than {range}\n")
}

fn nothing_worse(compared: &RecordsCompared<'_>, against: &AgainstBaseline) -> String {
    let AgainstBaseline { threshold, compared: count, figures, open, .. } = against;
    let baselines = compared.records[..compared.baselines].iter().map(|record| record.name);
    let baseline = baselines.collect::<Vec<_>>().join(", ");
    let plural = if *figures == 1 { "" } else { "s" };
    let of = format!("{count} of {figures} figure{plural} of {baseline} compared");
    if count == figures {
        return format!("nothing got worse by more than {threshold} %: {of}");
    }
    let mut parts = vec![of];
    let means = open.iter().filter_map(|of| Some(of.percent?[0]));
    if let Some(least) = means.min_by(f64::total_cmp) {
        let worst = if open.len() > 1 { "at worst " } else { "" };
        parts.push(format!("{} not decided ({worst}{least:+.0} %)", open.len()));
    } else if !open.is_empty() {
        parts.push(format!("{} not decided", open.len()));
    }
    parts.extend(counted(&against.left).into_iter().map(|(why, count)| format!("{count} {why}")));
    format!("nothing is shown to have got worse by more than {threshold} %: {}", parts.join(", "))
}

/// Counts the figures that could not be compared by reason, in the order of first appearance.
fn counted(left: &[LeftFigure]) -> Vec<(&str, usize)> {
    let mut reasons: Vec<(&str, usize)> = Vec::new();
    for LeftFigure { why, .. } in left {
        match reasons.iter_mut().find(|(known, _)| known == why) {
            Some((_, count)) => *count += 1,
            None => reasons.push((why, 1)),
        }
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `not decided: -97 % (-100 to -53 %)` contradicts itself without the reason.
    #[test]
    fn an_interval_that_is_a_loss_by_itself_says_why_nothing_is_decided() {
        let against = AgainstBaseline {
            threshold: 5.0,
            figures: 10,
            tests: 12,
            compared: 5,
            worse: Vec::new(),
            open: Vec::new(),
            left: Vec::new(),
            beside: Vec::new(),
            spread: None,
        };
        let figure = |percent| OpenFigure { subject: 0, what: String::new(), percent, why: None };
        let reason = |percent| by_chance(&against, &figure(percent));
        let told = "; alone it would be a loss, among 12 tests it may be chance";
        assert_eq!(reason(Some([-97.0, -100.0, -53.0])), told);
        assert_eq!(reason(Some([-30.0, -68.0, 54.0])), "");
        assert_eq!(reason(Some([-9.0, -14.0, -4.0])), "", "a loss below the threshold is none");
        assert_eq!(reason(None), "");
    }
}
