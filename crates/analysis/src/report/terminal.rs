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
            writeln!(text, "\n{:<52}   {:>21} {:>9} {:>9}", stage.to_uppercase(), "rate", "p99", "cores")?;
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
    write!(text, "{phase:<6} {cell:<45} {target:>2}")?;
    let p99 = Nanos(outcome.latency.quantile(0.99)).to_string();
    let cores = outcome.cores.map_or_else(String::new, |cores| format!("{:.2}", cores.mean));
    if outcome.valid > 0 {
        write!(text, " {:>22} {p99:>9} {cores:>9}", rate(outcome))?;
    }
    writeln!(text)?;
    for (why, count) in &outcome.invalid {
        let of = outcome.valid + outcome.invalid.iter().map(|(_, count)| count).sum::<usize>();
        writeln!(text, "       INVALID in {count} of {of} repeats: {why}")?;
    }
    Ok(())
}

/// The mean with its interval in percent; entries a second where no data are moved.
fn rate(outcome: &Outcome) -> String {
    match (&outcome.rate, &outcome.operations) {
        (Some(rate), _) => format!("{} {}", ByteRate(rate.mean), interval(rate)),
        (None, Some(operations)) => format!("{:.0} /s {}", operations.mean, interval(operations)),
        (None, None) => "-".into(),
    }
}

fn interval(summary: &Summary) -> String {
    match summary.half_width() {
        Some(half) => format!("±{:>3.0} %", 100.0 * half / summary.mean),
        None => "      ".into(),
    }
}
