//! The share that each parameter explains alone, if cells are missing. A share that two of them could explain
//! counts once, for the first one taken (sequential sums of squares, type I). Shares therefore never add up to
//! more than the total.
//!
//! The model of a rate's logarithm is a mean plus a summand for the value of each parameter taken so far. Least
//! squares are found iteratively: each turn sets a parameter's summands to the mean residual of their cells,
//! until nothing changes. In a complete matrix, the first turn is enough, and a share is that of a one-way
//! analysis in any order.

/// The mean logarithm of a cell's rates, and their number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CellMean {
    pub(crate) log: f64,
    pub(crate) count: f64,
}

/// Limits of the iteration: further turns would change nothing visible.
const TURNS_MOST: usize = 100;
const CHANGE_LEAST: f64 = 1e-9;

/// The part of the sum of squares between cells that each parameter adds to those before it. `values` has a row
/// for each parameter: the number of each cell's value.
pub(crate) fn added_squares(cells: &[CellMean], values: &[Vec<usize>]) -> Vec<f64> {
    let mut explained = 0.0;
    let mut added = Vec::new();
    for taken in 1..=values.len() {
        let now = explained_squares(cells, &values[..taken]);
        added.push((now - explained).max(0.0));
        explained = now.max(explained);
    }
    added
}

/// The sum of squares between cells, around the mean of all rates.
pub(crate) fn squares_between(cells: &[CellMean]) -> f64 {
    let mean = mean(cells);
    cells.iter().map(|cell| cell.count * (cell.log - mean).powi(2)).sum()
}

fn mean(cells: &[CellMean]) -> f64 {
    let count: f64 = cells.iter().map(|cell| cell.count).sum();
    cells.iter().map(|cell| cell.count * cell.log).sum::<f64>() / count.max(1.0)
}

/// The part that all of these parameters explain by themselves.
fn explained_squares(cells: &[CellMean], values: &[Vec<usize>]) -> f64 {
    let all = squares_between(cells);
    let mean = mean(cells);
    let mut left: Vec<f64> = cells.iter().map(|cell| cell.log - mean).collect();
    let mut rest = all;
    for _ in 0..TURNS_MOST {
        for of_parameter in values {
            take_means(cells, of_parameter, &mut left);
        }
        let now = cells.iter().zip(&left).map(|(cell, left)| cell.count * left * left).sum();
        let change = rest - now;
        rest = now;
        if change <= CHANGE_LEAST * all {
            break;
        }
    }
    all - rest
}

/// Subtracts from each cell the mean residual of cells with the same value.
fn take_means(cells: &[CellMean], values: &[usize], left: &mut [f64]) {
    let most = values.iter().max().map_or(0, |most| most + 1);
    let mut sums = vec![0.0; most];
    let mut counts = vec![0.0; most];
    for ((cell, &value), left) in cells.iter().zip(values).zip(left.iter()) {
        sums[value] += cell.count * left;
        counts[value] += cell.count;
    }
    for (&value, left) in values.iter().zip(left) {
        *left -= sums[value] / f64::max(counts[value], f64::MIN_POSITIVE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(logs: &[f64]) -> Vec<CellMean> {
        logs.iter().map(|&log| CellMean { log, count: 3.0 }).collect()
    }

    fn close(found: &[f64], expected: &[f64]) {
        let near = found.iter().zip(expected).all(|(one, other)| (one - other).abs() < 1e-6);
        assert!(near && found.len() == expected.len(), "{found:?}, not {expected:?}");
    }

    #[test]
    fn in_a_whole_matrix_the_order_changes_nothing() {
        // 2 x 3 cells: 1 for the first parameter, 0, 2 and 4 for the second, and 0.5 for their interaction.
        let cells = cells(&[0.0, 2.0, 4.0, 1.0, 3.0, 5.5]);
        let (first, second) = (vec![0, 0, 0, 1, 1, 1], vec![0, 1, 2, 0, 1, 2]);
        let one = added_squares(&cells, &[first.clone(), second.clone()]);
        let other = added_squares(&cells, &[second, first]);
        close(&one, &[other[1], other[0]]);
        assert!(one.iter().sum::<f64>() < squares_between(&cells));
    }

    #[test]
    fn what_two_could_both_explain_counts_once() {
        // One of 2 x 2 cells is missing: rates follow from the first parameter alone, and the second correlates
        // with it.
        let cells = cells(&[0.0, 1.0, 1.0]);
        let (first, second) = (vec![0, 1, 1], vec![0, 0, 1]);
        let all = squares_between(&cells);
        close(&added_squares(&cells, &[first.clone(), second.clone()]), &[all, 0.0]);
        let turned = added_squares(&cells, &[second, first]);
        assert!(turned[0] > 0.2 * all && turned[1] > 0.2 * all, "{turned:?} of {all}");
        close(&[turned[0] + turned[1]], &[all]);
    }

    #[test]
    fn small_differences_have_the_same_shares_as_large_ones() {
        let shares = |scale: f64| {
            let cells = cells(&[0.0, 1.0, 1.0, 4.0, 2.0].map(|log| log * scale));
            let added = added_squares(&cells, &[vec![0, 1, 1, 0, 2], vec![0, 0, 1, 1, 1]]);
            added.iter().map(|added| added / squares_between(&cells)).collect::<Vec<_>>()
        };
        close(&shares(1e-4), &shares(1.0));
    }

    #[test]
    fn the_shares_of_ragged_matrices_never_add_up_to_more_than_there_is() {
        // Random numbers from a seed, with any cells missing.
        let mut state = 7_u64;
        let mut drawn = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize
        };
        for _ in 0..200 {
            let places: Vec<[usize; 3]> =
                (0..24).filter(|_| drawn() % 3 > 0).map(|at| [at % 2, at / 2 % 3, at / 6]).collect();
            let cells: Vec<CellMean> = places
                .iter()
                .map(|place| CellMean {
                    log: place[0] as f64 + 2.0 * place[1] as f64 + (drawn() % 100) as f64 / 25.0,
                    count: (1 + drawn() % 4) as f64,
                })
                .collect();
            let values: Vec<Vec<usize>> =
                (0..3).map(|of| places.iter().map(|place| place[of]).collect()).collect();
            let added = added_squares(&cells, &values);
            let all = squares_between(&cells);
            assert!(added.iter().all(|added| *added >= 0.0), "{added:?}");
            assert!(added.iter().sum::<f64>() <= all * (1.0 + 1e-9), "{added:?} of {all}: {places:?}");
        }
        close(&added_squares(&[], &[Vec::new()]), &[0.0]);
    }
}
