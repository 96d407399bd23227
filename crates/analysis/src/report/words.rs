//! How figures and sentences are written in every report.

use nilometer_model::{FileSystemKind, Results, TargetEntry, statistics::Summary};

use crate::{
    AcrossMachines, CellOutcome, Cores, MatrixAnswer, Quantity, Reason, Study, StudyStage, Verdict, letter,
};

/// What stands for a figure that is not there.
pub(super) const NONE: &str = "–";

/// Half the interval in percent of the mean: `± 10 %`; nothing from one repeat.
pub(super) fn interval(summary: &Summary) -> String {
    let half = summary.half_width().map(|half| 100.0 * half / summary.mean);
    half.map_or_else(String::new, |half| format!("±{half:>3.0} %"))
}

/// The mean with its interval; none where no repeat is valid.
pub(super) fn rate(outcome: &CellOutcome<'_>, quantity: Quantity) -> Option<String> {
    let summary = outcome.summary(quantity)?;
    Some(format!("{} {}", quantity.show(summary.mean), interval(&summary)).trim_end().to_owned())
}

/// `at least 412 MB/s`, where no repeat is valid and a lower bound follows all the same.
pub(super) fn at_least(outcome: &CellOutcome<'_>, quantity: Quantity) -> Option<String> {
    Some(format!("at least {}", quantity.show(outcome.lower_bound(quantity)?)))
}

/// The mean, else the lower bound, else that it is invalid.
pub(super) fn rate_or_bound(outcome: &CellOutcome<'_>, quantity: Quantity) -> String {
    let known = rate(outcome, quantity).or_else(|| at_least(outcome, quantity));
    known.unwrap_or_else(|| "INVALID".into())
}

/// A quantile of the latency.
pub(super) fn quantile(outcome: &CellOutcome<'_>, fraction: f64) -> String {
    outcome.quantile(fraction).map_or_else(|| NONE.into(), |latency| latency.to_string())
}

/// Processors kept busy, one of the three ways.
pub(super) fn cores(outcome: &CellOutcome<'_>, way: fn(&Cores) -> f64) -> String {
    outcome.cores.as_ref().map_or_else(|| NONE.into(), |cores| format!("{:.2}", way(cores)))
}

/// The names of the columns of [`times`].
pub(super) const TIMES: [&str; 4] = ["real", "user", "system", "wait"];

/// Where the time went, as means over repeats.
pub(super) fn times(outcome: &CellOutcome<'_>) -> [String; 4] {
    outcome.times.map_or([NONE; 4].map(str::to_owned), |times| {
        [times.real, times.user, times.system, times.wait].map(|time| time.to_string())
    })
}

/// `INVALID in 1 of 6 repeats: why`, one for each reason.
pub(super) fn invalid(outcome: &CellOutcome<'_>) -> Vec<String> {
    let of = outcome.samples.len();
    let line = |reason: &Reason| format!("INVALID in {} of {of} repeats: {reason}", reason.count);
    outcome.invalid.iter().map(line).collect()
}

/// By its standard name, where the type in the mount table is that of several.
fn file_system(target: &TargetEntry) -> &str {
    let kind = target.description.as_ref().map(|description| description.profile.kind);
    match kind {
        Some(kind) if target.file_system == "fuse" && kind != FileSystemKind::Unknown => kind.name(),
        _ => &target.file_system,
    }
}

/// `/data (ext4)`.
pub(super) fn target(results: &Results, index: usize) -> String {
    match results.targets.get(index) {
        Some(target) => format!("{} ({})", target.path, file_system(target)),
        None => letter(index),
    }
}

/// Below the table of the storage.
pub(super) const MATRIX: &str = "What is marked as published is what is written of the system, and was not tried; the rest \
                                 was found on the mount. A dash stands where nothing is known.";

/// A cell of the table of the storage.
pub(super) fn answer(answer: &MatrixAnswer) -> String {
    match answer {
        MatrixAnswer { words, .. } if words.is_empty() => NONE.into(),
        MatrixAnswer { words, is_published: true } => format!("{words} (published)"),
        MatrixAnswer { words, is_published: false } => words.clone(),
    }
}

/// When, how often, with what and where it was measured, as far as the record says it.
pub(super) fn origin(results: &Results) -> String {
    let mut parts = Vec::new();
    if !results.started.is_empty() {
        parts.push(format!("begun {} UTC", results.started.replace('T', " ").trim_end_matches('Z')));
    }
    let rounds = if results.repeats == 1 { "round" } else { "rounds" };
    parts.push(format!("{} {rounds}", results.repeats));
    if let Some(host) = fact(results, "host") {
        parts.push(format!("on {host}"));
    }
    if !results.version.is_empty() {
        parts.push(format!("nilometer {}", results.version));
    }
    parts.join(", ")
}

/// A fact about the environment.
pub(super) fn fact<'a>(results: &'a Results, key: &str) -> Option<&'a str> {
    results.environment.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
}

/// `NAME, RATE` or `NAME, RATE (STAGE)`.
pub(super) fn instrument(verdict: &Verdict) -> String {
    let stages = verdict.stages.join(", ");
    let stages = if stages.is_empty() { stages } else { format!(" ({stages})") };
    format!("{}, {}{stages}", verdict.who(), verdict.rate)
}

/// The comparisons of a study: stage, phase, and a sentence for each pair.
pub(super) fn comparisons<'a>(study: &'a Study<'_>) -> Vec<(&'a str, &'static str, Vec<String>)> {
    let margin = study.results.margin;
    let questions =
        study.stages.iter().flat_map(|stage| stage.questions.iter().map(|question| (stage.name, question)));
    let sentences = questions.map(|(stage, question)| {
        let mut sentences = question.sentences(margin, letter);
        if let Some(ranking) = question.ranking(margin, letter).filter(|_| !sentences.is_empty()) {
            sentences.insert(0, ranking);
        }
        (stage, question.phase.name(), sentences)
    });
    sentences.filter(|(_, _, sentences)| !sentences.is_empty()).collect()
}

/// What the words of comparisons rest on.
pub(super) fn margin_note(results: &Results) -> String {
    format!(
        "A difference below {} % does not count. In brackets: 95 % intervals of the ratio, from pairs of the same round.",
        results.margin
    )
}

/// Figures of a stage that several processes came to, and what each machine had of them, in words.
pub(super) fn across_machines<'a, 'b>(stage: &'a StudyStage<'b>) -> Vec<(&'a CellOutcome<'b>, String)> {
    let outcomes = stage.outcomes.iter();
    outcomes
        .filter_map(|outcome| {
            let quantity = stage.quantity(outcome);
            Some((outcome, AcrossMachines::of(outcome, quantity)?.words(quantity)))
        })
        .collect()
}
