//! The report in a terminal: at most 100 columns, units everywhere.

use std::fmt::Write;

use nilometer_model::{ByteRate, Nanos, Results, statistics::Summary};

use crate::{Outcome, Verdict, outcomes, verdicts};

/// The whole report as text.
pub fn terminal(results: &Results) -> String {
    let mut text = String::new();
    write_report(&mut text, results).expect("writing to a string does not fail");
    text
}

fn write_report(text: &mut String, results: &Results) -> std::fmt::Result {
    writeln!(text, "{}\n", results.title)?;
    for (index, target) in results.targets.iter().enumerate() {
        write!(text, "  {}  {} ({})", letter(index), target.path, target.file_system)?;
        match &target.left_out {
            Some(why) => writeln!(text, ": left out: {why}")?,
            None => writeln!(text)?,
        }
    }
    let mut stage = "";
    for outcome in &outcomes(results) {
        let cell = &results.cells[outcome.cell];
        if cell.stage != stage {
            stage = &cell.stage;
            writeln!(text, "\n{:<61} {:>18} {:>9} {:>6}", stage.to_uppercase(), "rate", "p99", "cores")?;
        }
        write_outcome(text, outcome, &cell.name)?;
    }
    write_verdicts(text, results)
}

/// The answer: a sentence for each instrument on each target.
fn write_verdicts(text: &mut String, results: &Results) -> std::fmt::Result {
    for verdict in &verdicts(results) {
        let Verdict { target, instrument, rate, .. } = verdict;
        let target = &results.targets[*target];
        let sentence = format!("{} ({}): {verdict}.", target.path, target.file_system);
        writeln!(text, "\nVERDICT for {instrument}, {rate}")?;
        for line in wrapped(&sentence, WIDTH - 2) {
            writeln!(text, "  {line}")?;
        }
    }
    Ok(())
}

const WIDTH: usize = 100;

/// Lines of at most `width` characters, broken at spaces; a longer word stands alone.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The name of a target in tables.
fn letter(index: usize) -> String {
    let letter = char::from(b'A' + (index % 26) as u8);
    if index < 26 { letter.to_string() } else { format!("{letter}{}", index / 26) }
}

fn write_outcome(text: &mut String, outcome: &Outcome, cell: &str) -> std::fmt::Result {
    let (phase, target) = (outcome.phase.name(), letter(outcome.target));
    write!(text, "{phase:<6} {cell:<51} {target:>2}")?;
    let p99 = Nanos(outcome.latency.quantile(0.99)).to_string();
    let cores = outcome.cores.map_or_else(String::new, |cores| format!("{:.2}", cores.mean));
    if outcome.valid > 0 {
        write!(text, " {:>18} {p99:>9} {cores:>6}", rate(outcome))?;
    }
    writeln!(text)?;
    for (why, count) in &outcome.invalid {
        let of = outcome.valid + outcome.invalid.iter().map(|(_, count)| count).sum::<usize>();
        writeln!(text, "       INVALID in {count} of {of} repeats: {why}")?;
    }
    Ok(())
}

/// Smaller operations than this are counted, larger ones are weighed.
const SMALL: f64 = 65_536.0;

/// The mean with its interval in percent: bytes a second, or operations a second where these are small.
fn rate(outcome: &Outcome) -> String {
    match (&outcome.rate, &outcome.operations) {
        (Some(rate), Some(count)) if rate.mean / count.mean >= SMALL => {
            format!("{} {}", ByteRate(rate.mean), interval(rate))
        }
        (_, Some(count)) => format!("{}/s {}", thousands(count.mean), interval(count)),
        _ => "-".into(),
    }
}

/// A count with its decimal prefix.
fn thousands(count: f64) -> String {
    match count {
        count if count >= 999_500.0 => format!("{:.2} M", count / 1e6),
        count if count >= 999.5 => format!("{:.1} k", count / 1e3),
        count => format!("{count:.0} "),
    }
}

fn interval(summary: &Summary) -> String {
    match summary.half_width() {
        Some(half) => format!("±{:>3.0} %", 100.0 * half / summary.mean),
        None => "      ".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_model::{CellEntry, Invalid, Key, Measured, Sample, TargetEntry, plan::Phase};

    fn sample(repeat: u32, bytes: u64, operations: u64, invalid: Option<Invalid>) -> Measured {
        let key = Key { target: 0, cell: 0, repeat, phase: Phase::Write };
        let wall = Nanos(1_000_000_000);
        Measured { key, sample: Sample { bytes, operations, wall, invalid, ..Sample::new(Nanos(0)) } }
    }

    fn report(samples: Vec<Measured>) -> String {
        let cell =
            CellEntry { stage: "large".into(), name: "64 MiB by 1 MiB".into(), ..CellEntry::default() };
        let target =
            TargetEntry { path: "/data".into(), file_system: "xfs".into(), ..TargetEntry::default() };
        terminal(&Results {
            title: "A test".into(),
            targets: vec![target],
            cells: vec![cell],
            samples,
            ..Results::default()
        })
    }

    #[test]
    fn large_operations_are_weighed_small_ones_counted() {
        let large = report(vec![sample(0, 2_000_000_000, 100, None), sample(1, 2_000_000_000, 100, None)]);
        assert!(large.contains("2 GB/s ±  0 %"), "{large}");
        let small = report(vec![sample(0, 40_960_000, 10_000, None)]);
        assert!(small.contains("10.0 k/s"), "{small}");
    }

    #[test]
    fn what_is_invalid_is_said_and_no_line_is_too_long() {
        let text = report(vec![sample(0, 0, 0, Some(Invalid::WarmRead)), sample(1, 7, 1, None)]);
        assert!(text.contains("INVALID in 1 of 2 repeats: the read came from the page cache"), "{text}");
        assert_eq!(text.lines().filter(|line| line.chars().count() > WIDTH).count(), 0, "{text}");
    }

    #[test]
    fn lines_break_at_spaces() {
        assert_eq!(wrapped("aa bb cc", 5), ["aa bb", "cc"]);
        assert_eq!(wrapped("a longword b", 4), ["a", "longword", "b"]);
    }
}
