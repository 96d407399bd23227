//! The parts that comparisons of stages and of networks have in common, for programs.

use nilometer_analysis::{PairBasis, Quantity, SubjectPair, letter};
use serde::Serialize;

use super::{Ratio, ratio};

#[derive(Serialize)]
pub(super) struct Pair {
    first: String,
    second: String,
    /// `rounds`: repeats are pairs; `repeats`: Welch's method.
    basis: &'static str,
    #[serde(flatten)]
    ratio: Ratio,
    words: String,
    cells: Vec<CellOfPair>,
}

#[derive(Serialize)]
struct CellOfPair {
    /// Index into the `cells` of the comparison.
    cell: usize,
    #[serde(flatten)]
    ratio: Ratio,
}

#[derive(Serialize)]
pub(super) struct Only<'a> {
    pub(super) subjects: Vec<String>,
    pub(super) cells: &'a [String],
}

pub(super) fn letters(subjects: &[usize]) -> Vec<String> {
    subjects.iter().map(|subject| letter(*subject)).collect()
}

pub(super) const fn unit(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Bytes => "bytes_per_second",
        Quantity::Operations | Quantity::Time => "operations_per_second",
    }
}

pub(super) fn pair_of(of: &SubjectPair, rows: &[usize], margin: f64, words: String) -> Pair {
    let cells = of.cells.iter().filter_map(|cell| {
        let place = rows.iter().position(|row| *row == cell.row)?;
        Some(CellOfPair { cell: place, ratio: ratio(&cell.effect, margin) })
    });
    Pair {
        first: letter(of.first),
        second: letter(of.second),
        basis: match of.basis {
            PairBasis::Rounds => "rounds",
            PairBasis::Repeats => "repeats",
        },
        ratio: ratio(&of.effect, margin),
        words,
        cells: cells.collect(),
    }
}
