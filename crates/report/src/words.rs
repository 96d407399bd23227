//! The notation of figures and sentences in every report.

use nilometer_model::{FileSystemKind, FilesSeen, LocksSeen, Phase, Sample, statistics::Summary};
use nilometer_plan::{Results, TargetEntry};

use nilometer_analysis::{
    AcrossMachines, CellOutcome, Cores, MatrixAnswer, Quantity, RateUnit, Reason, StageFigures, Verdict,
    letter,
};

use crate::document::{Cell, Tone};

/// Stands for a missing figure.
pub(super) const NONE: &str = "–";

/// `97 %`.
pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// Returns a parameter's name for readers: `block size` for `block_size`.
pub(super) fn parameter(name: &str) -> String {
    name.replace('_', " ")
}

/// Half the interval in percent of the mean: `± 10 %`; nothing from one repeat.
pub(super) fn interval(summary: &Summary) -> String {
    // Nothing is a share of no work at all.
    let half = summary.half_width().filter(|_| summary.mean != 0.0).map(|half| 100.0 * half / summary.mean);
    half.map_or_else(String::new, |half| format!("±{half:>3.0} %"))
}

/// Returns the mean with its interval, or `None` if no repeat is valid.
pub(super) fn rate(outcome: &CellOutcome<'_>, unit: RateUnit) -> Option<String> {
    let summary = outcome.summary(unit.quantity())?;
    Some(format!("{} {}", unit.show(summary.mean), interval(&summary)).trim_end().to_owned())
}

/// Returns `at least 412 MB/s`, if no repeat is valid but a lower bound follows. For a time it is an upper
/// bound.
pub(super) fn at_least(outcome: &CellOutcome<'_>, unit: RateUnit) -> Option<String> {
    let quantity = unit.quantity();
    let bound = if quantity == Quantity::Time { "at most" } else { "at least" };
    Some(format!("{bound} {}", unit.show(outcome.lower_bound(quantity)?)))
}

/// Fewer valid repeats than this give no interval that means much.
const REPEATS_FEW: usize = 3;

/// True if the figure rests on few of its repeats, or on half of them. A plan with few repeats has no marks:
/// the head of the report has their number.
pub(super) fn rests_on_few(outcome: &CellOutcome<'_>) -> bool {
    let all = outcome.samples.len();
    let valid = outcome.valid;
    valid > 0 && valid < all && (valid < REPEATS_FEW || 2 * valid <= all)
}

/// Returns the mean for places without the reasons of invalid repeats. If it rests on few, their number
/// replaces the interval: `1.62 GB/s (1/6)`.
pub(super) fn marked_rate(outcome: &CellOutcome<'_>, unit: RateUnit) -> Option<String> {
    if !rests_on_few(outcome) {
        return rate(outcome, unit);
    }
    let mean = outcome.summary(unit.quantity())?.mean;
    Some(format!("{} ({}/{})", unit.show(mean).trim_end(), outcome.valid, outcome.samples.len()))
}

/// Returns the words for a figure without a mean. `INVALID` without a valid repeat, and zero if all valid repeats
/// moved nothing. Otherwise they have another unit.
pub(super) fn without_mean(outcome: &CellOutcome<'_>, unit: RateUnit) -> String {
    let has_stopped = |sample: &Sample| sample.bytes == 0 && sample.operations == 0;
    match outcome.valid {
        0 => "INVALID".to_owned(),
        _ if valid(outcome).all(has_stopped) => unit.show(0.0).trim_end().to_owned(),
        _ => "other unit".to_owned(),
    }
}

/// Returns the mean, else the lower bound, else why there is neither.
pub(super) fn rate_or_bound(outcome: &CellOutcome<'_>, unit: RateUnit) -> String {
    let known = marked_rate(outcome, unit).or_else(|| at_least(outcome, unit));
    known.unwrap_or_else(|| without_mean(outcome, unit))
}

/// The unit of figures that stand beside each other.
pub(super) fn unit_of<'a, 'b: 'a>(
    outcomes: impl IntoIterator<Item = &'a CellOutcome<'b>>,
    quantity: Quantity,
) -> RateUnit {
    let rate = |outcome: &CellOutcome<'_>| {
        let mean = outcome.summary(quantity).map(|summary| summary.mean);
        mean.or_else(|| outcome.lower_bound(quantity))
    };
    RateUnit::shared(quantity, outcomes.into_iter().filter_map(rate))
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// `2 Nov`, or `2 Nov 2026`, for `2026-11-02`. Any other text stays as it is.
pub(super) fn day(date: &str, with_year: bool) -> String {
    let parts: Vec<&str> = date.split('-').collect();
    let [year, month, day] = parts[..] else { return date.to_owned() };
    let month = month.parse().ok().and_then(|month: usize| MONTHS.get(month.checked_sub(1)?));
    let Some(month) = month else { return date.to_owned() };
    let day = day.trim_start_matches('0');
    if with_year { format!("{day} {month} {year}") } else { format!("{day} {month}") }
}

/// A rate of operations with their name: `49 files/s` for `49 /s`.
pub(super) fn of_things(phase: Phase, rate: &str) -> String {
    let things = match phase {
        Phase::CreateFiles
        | Phase::StatFiles
        | Phase::ReadFiles
        | Phase::RenameFiles
        | Phase::RemoveFiles
        | Phase::OpenFiles
        | Phase::Unpack
        | Phase::Search => "files",
        Phase::MakeTree
        | Phase::MakeDirectories
        | Phase::StatDirectories
        | Phase::RemoveDirectories
        | Phase::RemoveTree => "directories",
        _ => "operations",
    };
    let is_of_bytes = rate.ends_with("B/s");
    rate.strip_suffix("/s")
        .filter(|_| !is_of_bytes)
        .map_or_else(|| rate.to_owned(), |number| format!("{} {things}/s", number.trim_end()))
}

/// The mark before a row.
pub(super) fn marked(mark: Option<String>) -> Cell {
    Cell::toned(Tone::Bad, mark.unwrap_or_default())
}

/// A quantile of the latency.
pub(super) fn quantile(outcome: &CellOutcome<'_>, fraction: f64) -> String {
    outcome.quantile(fraction).map_or_else(|| NONE.into(), |latency| latency.to_string())
}

/// The same in at most seven characters: minutes as seconds.
pub(super) fn short_quantile(outcome: &CellOutcome<'_>, fraction: f64) -> String {
    match outcome.quantile(fraction) {
        Some(latency) if latency.seconds() >= 119.5 => format!("{:.0} s", latency.seconds()),
        _ => quantile(outcome, fraction),
    }
}

/// Processors kept busy, one of the three ways.
pub(super) fn cores(outcome: &CellOutcome<'_>, way: fn(&Cores) -> f64) -> String {
    outcome.cores.as_ref().map_or_else(|| NONE.into(), |cores| format!("{:.2}", way(cores)))
}

/// The names of the columns of [`times`].
pub(super) const TIMES: [&str; 4] = ["real", "user", "system", "wait"];

/// Returns the parts of the time, as means over repeats.
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

/// Returns the standard name of the file system if its type in the mount table is ambiguous, as `fuse` is.
pub(super) fn file_system(target: &TargetEntry) -> &str {
    let kind = target.description.as_ref().map(|description| description.profile.kind);
    match kind {
        Some(kind) if target.file_system == "fuse" && kind != FileSystemKind::Unknown => kind.name(),
        _ => &target.file_system,
    }
}

/// `/data (ext4)`.
pub(super) fn target(results: &Results, index: usize) -> String {
    match results.targets.get(index) {
        Some(target) if target.file_system.is_empty() => target.path.clone(),
        Some(target) => format!("{} ({})", target.path, file_system(target)),
        None => letter(index),
    }
}

/// The note below the table of the storage.
pub(super) const MATRIX: &str = "Nilometer found these properties on the mount; it takes those marked as \
                                 published from publications and did not try them. Check those without a source yourself. A dash \
                                 means unknown.";

/// A cell of the table of the storage.
pub(super) fn answer(answer: &MatrixAnswer) -> String {
    match answer {
        MatrixAnswer { words, .. } if words.is_empty() => NONE.into(),
        MatrixAnswer { words, basis: None, .. } => words.clone(),
        MatrixAnswer { words, basis: Some(basis), source: None } => format!("{words} ({})", basis.name()),
        MatrixAnswer { words, basis: Some(basis), source: Some(source) } => {
            format!("{words} ({}: {source})", basis.name())
        }
    }
}

/// Describes the time, number of repeats, tools and machine of the measurement, if the record has them.
pub(super) fn origin(results: &Results) -> String {
    let mut parts = Vec::new();
    if !results.started.is_empty() {
        parts.push(format!("begun {} UTC", results.started.replace('T', " ").trim_end_matches('Z')));
    }
    if let Some(files) = fact(results, "imported from") {
        parts.push(format!("imported from {files}"));
    } else if !results.has_only_recordings() {
        let rounds = if results.repeats == 1 { "round" } else { "rounds" };
        parts.push(format!("{} {rounds}", results.repeats));
    }
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

/// The comparisons of stages: stage, phase, and a sentence for each pair.
pub(super) fn comparisons<'a>(
    stages: &[&'a StageFigures<'_>],
    margin: f64,
) -> Vec<(&'a str, &'static str, Vec<String>)> {
    let questions =
        stages.iter().flat_map(|stage| stage.questions.iter().map(|question| (stage.name, question)));
    let sentences = questions.map(|(stage, question)| {
        let mut sentences = question.sentences(margin, letter);
        if let Some(ranking) = question.ranking(margin, letter).filter(|_| !sentences.is_empty()) {
            sentences.insert(0, ranking);
        }
        sentences.extend(question.apart(letter));
        (stage, question.phase.name(), sentences)
    });
    sentences.filter(|(_, _, sentences)| !sentences.is_empty()).collect()
}

/// Explains the basis of comparisons.
pub(super) fn margin_note(results: &Results) -> String {
    let is_imported = results.is_imported();
    let from =
        if is_imported { "by Welch's method, with runs as repeats" } else { "from pairs of the same round" };
    format!(
        "A difference below {} % does not count. In brackets: 95 % intervals of the ratio, {from}.",
        results.margin
    )
}

/// Returns the figures of a stage that several processes measured, with each machine's share and the visibility
/// of files, in words.
pub(super) fn across_machines<'a, 'b>(stage: &'a StageFigures<'b>) -> Vec<(&'a CellOutcome<'b>, String)> {
    let outcomes = stage.outcomes.iter();
    outcomes
        .filter_map(|outcome| {
            let quantity = stage.quantity(outcome);
            let machines = AcrossMachines::of(outcome, quantity);
            let talks = matches!(outcome.phase, Phase::Visibility | Phase::Locks);
            let machines = machines.filter(|_| !talks).map(|machines| machines.words(quantity));
            let seen = || seen(outcome).filter(|seen| seen.files > 0).map(|seen| seen_in_words(&seen));
            let locks = || Some(locks_in_words(&locks(outcome)?));
            Some((outcome, machines.or_else(seen).or_else(locks)?))
        })
        .collect()
}

/// Returns the visibility of files in all valid repeats, if it was tested.
pub(super) fn seen(outcome: &CellOutcome<'_>) -> Option<FilesSeen> {
    let all = valid(outcome).filter_map(|sample| sample.seen.as_ref());
    all.cloned().reduce(|one, other| one.and(&other))
}

/// Returns the results for locks in all valid repeats, if they were tested.
pub(super) fn locks(outcome: &CellOutcome<'_>) -> Option<LocksSeen> {
    let all = valid(outcome).filter_map(|sample| sample.locks.as_ref());
    all.cloned().reduce(|one, other| one.and(&other))
}

fn valid<'a>(outcome: &CellOutcome<'a>) -> impl Iterator<Item = &'a Sample> {
    outcome.samples.iter().map(|measured| &measured.sample).filter(|sample| sample.invalid.is_none())
}

fn locks_in_words(locks: &LocksSeen) -> String {
    let LocksSeen { tries, broken, passed, longest } = *locks;
    let kept = match broken {
        _ if tries == 0 => "no process tried to get the lock while another had it".to_owned(),
        0 => {
            format!("the lock is exclusive: none of {tries} attempts got it while another process had it")
        }
        _ => format!(
            "the lock is NOT exclusive: {broken} of {tries} attempts got it while another process had it"
        ),
    };
    format!("{kept}; passed on {passed} times, within {longest}")
}

fn seen_in_words(seen: &FilesSeen) -> String {
    let FilesSeen { files, missing, short, stale, out_of_order, never, longest } = *seen;
    let whole = if seen.kept_close_to_open() {
        format!(
            "all of {files} files were whole and right when opened after their close, the last {longest} \
             after it"
        )
    } else {
        format!(
            "close-to-open is NOT kept: of {files} files, {missing} were missing, {short} short and {stale} \
             stale after their close. Never whole and right: {never}; the others became so within {longest}"
        )
    };
    let order = match out_of_order {
        0 => "the second of two was never seen without the first".to_owned(),
        count => format!(
            "OUT OF ORDER {count} times: the second of two was there, and the first not, or not whole"
        ),
    };
    format!("{whole}; {order}")
}

#[cfg(test)]
mod tests {
    use nilometer_model::Nanos;

    use super::*;

    #[test]
    fn what_was_seen_is_said_as_kept_only_where_nothing_is_amiss() {
        let longest = Nanos::from_millis(3);
        let kept = FilesSeen { files: 12, longest, ..FilesSeen::default() };
        let words = seen_in_words(&kept);
        assert!(words.starts_with("all of 12 files were whole and right"), "{words}");
        assert!(words.ends_with("the second of two was never seen without the first"), "{words}");
        let amiss = [
            FilesSeen { missing: 1, ..kept.clone() },
            FilesSeen { short: 1, ..kept.clone() },
            FilesSeen { stale: 1, ..kept.clone() },
            FilesSeen { never: 1, ..kept.clone() },
        ];
        assert!(amiss.iter().all(|seen| seen_in_words(seen).starts_with("close-to-open is NOT kept: of 12")));
        let words = seen_in_words(&FilesSeen { out_of_order: 2, ..kept });
        assert!(words.contains("OUT OF ORDER 2 times"), "{words}");
    }

    #[test]
    fn a_lock_that_others_got_meanwhile_is_not_exclusive() {
        let locks = LocksSeen { tries: 8, broken: 0, passed: 4, longest: Nanos(1500) };
        let words = locks_in_words(&locks);
        assert!(words.contains("none of 8 attempts") && words.ends_with("4 times, within 1.5 us"), "{words}");
        let words = locks_in_words(&LocksSeen { broken: 1, ..locks });
        assert!(words.contains("NOT exclusive: 1 of 8 attempts"), "{words}");
        let words = locks_in_words(&LocksSeen { tries: 0, ..locks });
        assert!(words.contains("no process tried") && !words.contains("exclusive"), "{words}");
    }

    #[test]
    fn days_and_things_have_their_names() {
        assert_eq!(day("2026-11-02", false), "2 Nov");
        assert_eq!(day("2025-01-31", true), "31 Jan 2025");
        assert_eq!(
            ["2026-13-02", "", "yesterday"].map(|date| day(date, true)),
            ["2026-13-02", "", "yesterday"]
        );
        assert_eq!(of_things(Phase::CreateFiles, "49 /s"), "49 files/s");
        assert_eq!(of_things(Phase::StatFiles, "13.1 k/s"), "13.1 k files/s");
        assert_eq!(of_things(Phase::Write, "1.24 GB/s"), "1.24 GB/s");
        assert_eq!(of_things(Phase::Unpack, "33.4 s"), "33.4 s");
    }
}
