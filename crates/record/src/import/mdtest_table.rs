//! Rows of mdtest's tables: an operation with its greatest, least and mean figure over iterations and their deviation.

use nilometer_command_lines::MDTEST_OPERATIONS;
use nilometer_model::Phase;

use super::{Fault, agreement::SameFigure, stand_in::Known, table::number};

/// A row of a table.
#[derive(Debug, Clone)]
pub(super) struct OperationRow {
    pub(super) name: String,
    pub(super) over: Iterations,
}

/// Figures over all iterations.
#[derive(Debug, Clone, Copy)]
pub(super) struct Iterations {
    pub(super) greatest: f64,
    pub(super) least: f64,
    mean: f64,
    deviation: f64,
}

/// Objects of operations: a row begins with one of them.
const OBJECTS: [&str; 3] = ["Directory ", "File ", "Tree "];

/// The two lines above the rows.
pub(super) fn is_heading(text: &str) -> bool {
    text.is_empty() || text.starts_with("Operation") || text.starts_with("---")
}

impl OperationRow {
    /// A row, with a colon behind its name or without; `None` of a line that is no row.
    pub(super) fn read(text: &str, line: u64) -> Result<Option<Self>, Fault> {
        if !OBJECTS.iter().any(|object| text.starts_with(object)) {
            return Ok(None);
        }
        let mut words = text.split_whitespace();
        let name: Vec<&str> = words.by_ref().take(2).map(|word| word.trim_end_matches(':')).collect();
        let rest: Vec<&str> = words.filter(|word| *word != ":").collect();
        let numbers: Option<Vec<f64>> = rest.iter().map(|word| number(word)).collect();
        let numbers = numbers.ok_or_else(|| {
            Fault::at(line, format!("`{}`: write numbers that are at least zero", rest.join(" ")))
        })?;
        // With `--show-perrank-statistics` the figures of ranks stand before those of iterations.
        let over = match numbers[..] {
            [greatest, least, mean, deviation] | [_, _, _, greatest, least, mean, deviation] => {
                Iterations { greatest, least, mean, deviation }
            }
            _ => {
                let found = numbers.len();
                let why = format!("{found} figures: greatest, least, mean and deviation are 4");
                return Err(Fault::at(line, why));
            }
        };
        Ok(Some(OperationRow { name: name.join(" "), over }))
    }

    /// The phase of the operation; `Phase::Given` if no workload has it, such as `File rename`.
    pub(super) fn phase(&self) -> Phase {
        let known = MDTEST_OPERATIONS.iter().find(|operation| operation.name == self.name);
        known.map_or(Phase::Given, |operation| operation.phase)
    }
}

impl Iterations {
    /// A figure for each iteration, or values that stand in for them.
    pub(super) fn values(self, iterations: u64, line: u64) -> Result<Vec<f64>, Fault> {
        let Iterations { greatest, least, mean, deviation } = self;
        let known = Known { least, greatest, mean, count: Some(iterations), deviation: Some(deviation) };
        known.values().ok_or_else(|| {
            Fault::at(line, format!("a mean of {mean} between {least} and {greatest}: that can't be"))
        })
    }
}

/// The number of items that mdtest announces.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MdtestItems {
    pub(super) count: Option<f64>,
    /// True if a time limit makes it create fewer items.
    pub(super) is_limited: bool,
}

/// mdtest prints times with three decimals.
const TIME_DIGIT: f64 = 1e-3;

impl MdtestItems {
    /// Checks a row of the table of times against the table of rates. The fastest iteration has the greatest
    /// rate and the least time.
    pub(super) fn check(self, times: &OperationRow, rates: &Iterations, line: u64) -> Result<(), Fault> {
        for (rate, seconds) in [(rates.greatest, times.over.least), (rates.least, times.over.greatest)] {
            let is_tree = times.name.starts_with("Tree");
            let Some(count) = self.count.filter(|_| !is_tree && rate > 0.0) else { continue };
            self.check_one(count, rate, seconds, line)?;
        }
        Ok(())
    }

    fn check_one(self, count: f64, rate: f64, seconds: f64, line: u64) -> Result<(), Fault> {
        let done = rate * seconds;
        let slack = rate * TIME_DIGIT;
        // A limited run may do fewer operations than the options say.
        if self.is_limited && done <= count + slack {
            return Ok(());
        }
        let source = "the rate and the time";
        let name = "the number of items";
        SameFigure { name, given: count, source, follows: done, unit: "items", slack }.check(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_with_and_without_a_colon() {
        for text in [
            "File creation     :  3.0 1.0 2.0 0.5",
            "File creation: 3.0 1.0 2.0 0.5",
            "File creation 3 1 2 0.5",
        ] {
            let row = OperationRow::read(text, 1).expect("valid").expect("a row");
            assert_eq!((row.name.as_str(), row.phase()), ("File creation", Phase::CreateFiles));
            assert!((row.over.greatest - 3.0).abs() < 1e-9, "{row:?}");
        }
        let row = OperationRow::read("File rename 9 8 7 6 5 5.5 0.5", 1).expect("valid").expect("a row");
        assert_eq!((row.phase(), row.over.greatest), (Phase::Given, 6.0));
        assert!(OperationRow::read("V-0: Rank 0", 1).expect("no row").is_none());
        assert!(OperationRow::read("File creation 3.0 1.0", 1).is_err());
    }

    #[test]
    fn times_that_contradict_rates_are_refused_with_both_figures() {
        let items = MdtestItems { count: Some(8000.0), is_limited: false };
        let rates = Iterations { greatest: 4000.0, least: 4000.0, mean: 4000.0, deviation: 0.0 };
        let times = |seconds: &str| {
            let text = format!("File stat {seconds} {seconds} {seconds} 0.000");
            OperationRow::read(&text, 1).expect("valid").expect("a row")
        };
        assert_eq!(items.check(&times("2.000"), &rates, 1), Ok(()));
        let fault = items.check(&times("4.000"), &rates, 9).expect_err("twice as many");
        assert!(fault.why.contains("8000 items") && fault.why.contains("16000 items"), "{fault:?}");
        let limited = MdtestItems { is_limited: true, ..items };
        assert_eq!(limited.check(&times("1.000"), &rates, 1), Ok(()), "half of them");
        assert!(limited.check(&times("4.000"), &rates, 1).is_err());
    }
}
