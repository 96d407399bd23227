//! Which figures stand beside a rate in a terminal: half of the operations took at most p50, 99 % at most p99, and so on, the
//! longest, and the processors that were kept busy. Where there is no room for all, the less telling ones are left out.

use nilometer_analysis::CellOutcome;

use super::words;

/// A column beside the rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum LatencyColumn {
    /// A quantile of the latency: its name, and the share of operations that took no longer.
    Quantile(&'static str, f64),
    /// Processors that the program kept busy.
    Cores,
}

/// In the order in which they stand.
const ALL: [LatencyColumn; 6] = [
    LatencyColumn::Quantile("p50", 0.5),
    LatencyColumn::Quantile("p99", 0.99),
    LatencyColumn::Quantile("p99.9", 0.999),
    LatencyColumn::Quantile("p99.99", 0.9999),
    LatencyColumn::Quantile("max", 1.0),
    LatencyColumn::Cores,
];
/// The same by what they tell: places in [`ALL`].
const MOST_TELLING: [usize; 6] = [1, 4, 0, 5, 2, 3];
/// What must be left for the parameters of a cell.
const LEFT_LEAST: usize = 29;

impl LatencyColumn {
    /// Characters of it, with the space before it.
    pub(super) const fn width(self) -> usize {
        match self {
            LatencyColumn::Quantile(..) => 8,
            LatencyColumn::Cores => 7,
        }
    }

    /// Its name in the first row.
    pub(super) fn heading(self) -> String {
        self.in_column(match self {
            LatencyColumn::Quantile(name, _) => name,
            LatencyColumn::Cores => "cores",
        })
    }

    /// What stands in it.
    pub(super) fn figure(self, outcome: &CellOutcome<'_>) -> String {
        self.in_column(&match self {
            LatencyColumn::Quantile(_, share) => words::short_quantile(outcome, share),
            LatencyColumn::Cores => words::cores(outcome, |cores| cores.own),
        })
    }

    fn in_column(self, text: &str) -> String {
        format!(" {text:>width$}", width = self.width() - 1)
    }
}

/// Those that there is room for in so many characters, in their order.
pub(super) fn shown(room: usize) -> Vec<LatencyColumn> {
    let mut left = room;
    let mut chosen: Vec<usize> = Vec::new();
    for place in MOST_TELLING {
        let width = ALL[place].width();
        if left >= LEFT_LEAST + width {
            left -= width;
            chosen.push(place);
        }
    }
    chosen.sort_unstable();
    chosen.into_iter().map(|place| ALL[place]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_less_telling_columns_are_left_out_first() {
        let names = |room: usize| {
            let columns = shown(room).into_iter().map(LatencyColumn::heading);
            columns.map(|name| name.trim().to_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(77), "p50 p99 p99.9 p99.99 max cores");
        assert_eq!(names(57), "p50 p99 max");
        assert_eq!(names(40), "p99");
        assert_eq!(names(30), "");
    }
}
