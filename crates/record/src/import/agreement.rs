//! Compares figures that a file gives twice: a rate, and the bytes and the time from which it follows. Both are
//! rounded. If they differ by more than rounding explains, this program misunderstands one of them, and refuses
//! the file.

use super::Fault;

/// A figure that a file gives, beside the same figure as it follows from others of the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct SameFigure<'a> {
    /// The name of the figure that the file gives.
    pub(super) name: &'a str,
    /// Its value.
    pub(super) given: f64,
    /// The names of the figures that it follows from.
    pub(super) source: &'a str,
    /// The value that follows.
    pub(super) follows: f64,
    pub(super) unit: &'a str,
    /// The largest distance that the printed digits explain, beside [`ROUNDED`].
    pub(super) slack: f64,
}

/// Programs print three digits of a figure at the least; figures that follow from each other differ by less
/// than this share.
const ROUNDED: f64 = 0.01;

impl SameFigure<'_> {
    /// # Errors
    /// Both figures, if they are not the same.
    pub(super) fn check(&self, line: u64) -> Result<(), Fault> {
        let SameFigure { name, given, source, follows, unit, slack } = *self;
        let most = given.abs().max(follows.abs());
        // A comparison of NaN is false: that is no agreement either.
        if (given - follows).abs() <= ROUNDED * most + slack {
            return Ok(());
        }
        let [given, follows] = [given, follows].map(digits);
        let why = format!("{name} is {given} {unit}, and {follows} {unit} by {source}: one of them is wrong");
        Err(Fault { line: (line > 0).then_some(line), why })
    }
}

/// A number with as many decimals as a reader can compare.
fn digits(number: f64) -> String {
    if number.abs() >= 100.0 { format!("{number:.0}") } else { format!("{number:.4}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_no_contradiction_and_a_factor_of_a_unit_is_one() {
        let figure = SameFigure {
            name: "bw",
            given: 1000.0,
            source: "bytes and time",
            follows: 1009.0,
            unit: "KiB/s",
            slack: 0.0,
        };
        assert_eq!(figure.check(7), Ok(()));
        for follows in [1024.0, 976.5, 0.0, f64::NAN] {
            let fault = SameFigure { follows, ..figure }.check(7).expect_err("they differ");
            assert_eq!(fault.line, Some(7));
            assert!(fault.why.contains("bw is 1000 KiB/s"), "{fault:?}");
        }
        assert_eq!(SameFigure { follows: 1024.0, slack: 20.0, ..figure }.check(7), Ok(()));
    }
}
