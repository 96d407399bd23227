//! The table of instruments and targets in words, for all reports for people.

use nilometer_model::ByteRate;

use nilometer_analysis::{
    Basis, LimitKind, LimitSource, MeasuredLimit, Predictions, Prospect, Prospects, Quantity, Study,
    Withheld, Without, letter,
};

use super::words::NONE;

/// Stands in front of a rate that is assumed.
const ASSUMED: &str = "~";
/// Returns the title of the table.
pub(super) fn title(predictions: &Predictions) -> &'static str {
    match (predictions.records(), predictions.predicts()) {
        (true, true) => "Recorded and predicted",
        (false, true) => "Predicted",
        (false, false) => "Not predicted",
        (true, false) => "Recorded",
    }
}

/// Returns the rows of instruments with a result on one of these targets. A sentence explains the others.
pub(super) fn known_rows<'a>(
    predictions: &'a Predictions,
    targets: &'a [usize],
) -> impl Iterator<Item = &'a Prospects> {
    let is_known = |row: &Prospects, target: &usize| row.on.get(*target).is_some_and(Result::is_ok);
    predictions.rows.iter().filter(move |row| targets.iter().any(|target| is_known(row, target)))
}

/// The subtitle.
pub(super) const SUBTITLE: &str = "storage rate as a multiple of the rate of each instrument";

/// `3.5 x`, `no: 0.8 x`, or `?`.
pub(super) fn says(prospect: Option<&Prospect>) -> String {
    let Some(Prospect { carried, margin, .. }) = prospect else { return NONE.into() };
    match (carried, margin.map(times)) {
        (Some(true), Some(times)) => times,
        (Some(true), None) => "yes".into(),
        (Some(false), Some(times)) => format!("no: {times}"),
        (Some(false), None) => "no".into(),
        (None, Some(times)) => format!("?: {times}"),
        (None, None) => "?".into(),
    }
}

/// Formats an instrument's written rate, with a mark if it is assumed.
pub(super) fn rate(row: &Prospects) -> String {
    let mark = if row.assumed.is_empty() { "" } else { ASSUMED };
    format!("{mark}{}", row.rate)
}

/// Formats a margin. It rounds down below one, so that an insufficient margin does not look sufficient.
fn times(margin: f64) -> String {
    match margin {
        margin if margin < 1.0 => format!("{:.2} x", (margin * 100.0).floor() / 100.0),
        margin if margin < 9.95 => format!("{margin:.1} x"),
        margin => format!("{margin:.0} x"),
    }
}

/// Returns true if a verdict supports it.
pub(super) fn is_recorded(prospect: Option<&Prospect>) -> bool {
    prospect.is_some_and(|prospect| prospect.basis == Basis::Recorded)
}

/// `1.87 GB/s written (large files, 537 MB at a time)`.
pub(super) fn limit(limit: &MeasuredLimit) -> String {
    let bytes = Quantity::Bytes.show(limit.value);
    let value = match limit.kind {
        LimitKind::Files => format!("{} files made", Quantity::Operations.show(limit.value)),
        LimitKind::Written => format!("{bytes} written"),
        LimitKind::Shared => format!("{bytes} written into a shared file"),
        LimitKind::Packed => format!("{bytes} of frames packed"),
    };
    let data = limit.data.map_or(String::new(), |data| format!(", {} at a time", decimal(data)));
    match &limit.from {
        LimitSource::Stage(stage) => format!("{value} ({stage}{data})"),
        LimitSource::Recording(who) => format!("{value} ({who} was recorded)"),
    }
}

fn decimal(bytes: u64) -> String {
    ByteRate(bytes as f64).to_string().replace("/s", "")
}

/// Returns the caveats of a table with these predictions, a paragraph each, or none if it only has recordings.
pub(super) fn notes(study: &Study<'_>, predictions: &Predictions) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(rests_on(study, predictions));
    notes.extend(assumed(predictions));
    let open = [Without::Packing, Without::FileSync, Without::Stalls];
    notes.extend(open.into_iter().filter_map(|of| without(predictions, of)));
    notes.extend(withheld(study, predictions));
    notes
}

/// Describes the limits. A user who asked for an instrument knows how to record it.
fn rests_on(study: &Study<'_>, predictions: &Predictions) -> Option<String> {
    let advice = if study.missing.instruments { "" } else { ": write --for NAME to record an instrument" };
    let used = predictions.used();
    let of_target = |limits: &[&MeasuredLimit]| {
        let words: Vec<String> = limits.iter().map(|of| limit(of)).collect();
        format!("{} {}", letter(limits[0].target), words.join(" and "))
    };
    let limits: Vec<String> = used.chunk_by(|a, b| a.target == b.target).map(of_target).collect();
    (!limits.is_empty()).then(|| {
        format!(
            "Predicted, not recorded, from the lower ends of measured intervals: {}. A prediction ignores \
             stalls{advice}.",
            limits.join("; ")
        )
    })
}

/// Lists the assumed rates, grouped by the assumed values.
fn assumed(predictions: &Predictions) -> Option<String> {
    let is_known = |row: &&Prospects| row.on.iter().any(Result::is_ok);
    let rows = predictions.rows.iter().filter(is_known).filter(|row| !row.assumed.is_empty());
    let what = |row: &Prospects| {
        let words: Vec<String> = row.assumed.iter().map(|key| key.replace('_', " ")).collect();
        words.join(", ")
    };
    let groups = grouped(rows.map(|row| (what(row), row.instrument.as_str())));
    let of = |(what, names): &(String, Vec<&str>)| format!("{what} of {}", names.join(", "));
    let groups: Vec<String> = groups.iter().map(of).collect();
    (!groups.is_empty()).then(|| format!("{ASSUMED} depends on assumed values: {}.", groups.join("; ")))
}

/// Lists the predictions that an unmeasured factor leaves undecided.
fn without(predictions: &Predictions, what: Without) -> Option<String> {
    let lacks = |row: &&Prospects| row.on.iter().flatten().any(|prospect| prospect.without.contains(&what));
    let names: Vec<&str> = predictions.rows.iter().filter(lacks).map(|row| row.instrument.as_str()).collect();
    let why = match what {
        Without::Packing => {
            "the storage alone, without the processor time to pack frames, which only a recording shows"
        }
        Without::FileSync => {
            "files made in this machine's memory; only a recording shows how many the storage makes durable"
        }
        Without::Stalls => "the long-term rate alone, since a recording at no higher rate lost frames there",
    };
    (!names.is_empty()).then(|| format!("? by {why}: {}.", names.join(", ")))
}

/// Lists missing predictions with their reasons. Nobody expects one for several targets at once.
pub(super) fn withheld(study: &Study<'_>, predictions: &Predictions) -> Option<String> {
    let is_single = |target: &usize| {
        let description = study.results.targets.get(*target).and_then(|target| target.description.as_ref());
        description.is_none_or(|description| !description.is_joined())
    };
    let reasons = predictions.rows.iter().flat_map(|row| {
        let on = row.on.iter().enumerate();
        on.filter_map(move |(target, prospect)| {
            Some((target, prospect.as_ref().err()?, row.instrument.as_str()))
        })
    });
    let reasons = reasons.filter(|(target, ..)| is_single(target));
    let groups = grouped(reasons.map(|(target, why, name)| ((target, why), name)));
    let all: Vec<&str> = predictions.rows.iter().map(|row| row.instrument.as_str()).collect();
    let of = |((target, why), names): &((usize, &Withheld), Vec<&str>)| {
        format!("on {} {}: {why}", letter(*target), among(names, &all))
    };
    let groups: Vec<String> = groups.iter().map(of).collect();
    (!groups.is_empty()).then(|| format!("{NONE} not predicted: {}.", groups.join("; ")))
}

/// Names some of all, in whichever form is shorter.
fn among(names: &[&str], all: &[&str]) -> String {
    if names.len() <= 1 || names.len() * 2 <= all.len() {
        return names.join(", ");
    }
    let others: Vec<&str> = all.iter().copied().filter(|name| !names.contains(name)).collect();
    if others.is_empty() { format!("all {}", all.len()) } else { format!("all but {}", others.join(", ")) }
}

/// Groups names by a common property, in the order of its first appearance.
fn grouped<'a, K: PartialEq>(pairs: impl Iterator<Item = (K, &'a str)>) -> Vec<(K, Vec<&'a str>)> {
    let mut groups: Vec<(K, Vec<&str>)> = Vec::new();
    for (what, name) in pairs {
        match groups.iter_mut().find(|(known, _)| *known == what) {
            Some((_, names)) => names.push(name),
            None => groups.push((what, vec![name])),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::among;

    #[test]
    fn names_are_told_in_the_fewer_words() {
        let all = ["a", "b", "c", "d"];
        assert_eq!(among(&all, &all), "all 4");
        assert_eq!(among(&["a", "b", "d"], &all), "all but c");
        assert_eq!(among(&["a", "b"], &all), "a, b");
        assert_eq!(among(&["a"], &["a"]), "a");
    }
}
