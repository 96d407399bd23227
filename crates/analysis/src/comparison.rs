//! Compares targets: by stage and phase over all its cells, and cell by cell.

use std::collections::BTreeMap;

use nilometer_model::{
    Phase, Seed,
    statistics::{ROUNDS_LEAST, Summary},
};

use crate::{
    CellOutcome, PairBasis, Quantity,
    by_round::{CellRounds, RoundLog, round_means},
    compare::{CellLogs, unpaired},
    effect::{Answer, Effect},
};

/// The comparison of targets in a phase of a stage, over all its cells.
#[derive(Debug, Clone)]
pub struct Question {
    /// The phase.
    pub phase: Phase,
    /// The quantity of the rates.
    pub quantity: Quantity,
    /// The targets by their rates, the fastest first.
    pub order: Vec<usize>,
    /// All pairs of at most three targets, else each with the fastest.
    pub comparisons: Vec<Comparison>,
}

/// The comparison of two targets.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The one with the higher rates: index into the results' targets.
    pub first: usize,
    /// The other.
    pub second: usize,
    /// The first against the second, over all cells.
    pub effect: Effect,
    /// The probability of such a large difference if there is none.
    pub p: f64,
    /// Effects by cell.
    pub cells: Vec<(usize, Effect)>,
    /// Number of further rounds needed before anything can be decided.
    pub rounds_missing: usize,
}

/// More targets than this are compared with the fastest only.
const ALL_PAIRS_MOST: usize = 3;

/// Compares the targets in a phase of a stage, with paired or unpaired repeats.
pub(crate) fn question(phase: Phase, outcomes: &[&CellOutcome<'_>], basis: PairBasis) -> Question {
    let quantity = Quantity::for_all(outcomes);
    let compared =
        |order: &[usize]| in_order(order, |first, second| compare(outcomes, quantity, basis, first, second));
    let contradiction = |comparison: &Comparison| {
        let is_slower = comparison.effect.answer(0.0) == Answer::Slower;
        is_slower.then_some((comparison.first, comparison.second))
    };
    let (order, comparisons) = agreeing(order(outcomes, quantity), compared, contradiction);
    Question { phase, quantity, order, comparisons }
}

/// All pairs of at most three, else each with the first.
pub(crate) fn in_order<C>(order: &[usize], compare: impl Fn(usize, usize) -> Option<C>) -> Vec<C> {
    let mut comparisons = Vec::new();
    for (place, &first) in order.iter().enumerate() {
        if place == 0 || order.len() <= ALL_PAIRS_MOST {
            let behind = &order[place + 1..];
            comparisons.extend(behind.iter().filter_map(|&second| compare(first, second)));
        }
    }
    comparisons
}

/// Changes an order until no comparison contradicts it by calling a later target faster.
///
/// The order uses all cells, a comparison only the cells that both targets have. If some were measured in more
/// cells than others, the two can contradict each other; the comparison is then right. `contradiction` returns
/// the faster and the slower target.
pub(crate) fn agreeing<C>(
    mut order: Vec<usize>,
    compared: impl Fn(&[usize]) -> Vec<C>,
    contradiction: impl Fn(&C) -> Option<(usize, usize)>,
) -> (Vec<usize>, Vec<C>) {
    let mut comparisons = compared(&order);
    // Three targets that beat each other in turn have no order, so the number of changes is limited.
    for _ in 0..order.len() {
        let Some((first, second)) = comparisons.iter().find_map(&contradiction) else { break };
        order.retain(|&one| one != second);
        let place = order.iter().position(|&one| one == first).unwrap_or(0);
        order.insert(place, second);
        comparisons = compared(&order);
    }
    (order, comparisons)
}

/// Orders targets by the mean over cells of the logarithm of their rate, relative to that of all targets in the
/// cell.
fn order(outcomes: &[&CellOutcome<'_>], quantity: Quantity) -> Vec<usize> {
    let mut scores: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for cell in outcomes.chunk_by(|a, b| a.cell == b.cell) {
        let log = |outcome: &&CellOutcome<'_>| {
            let rate = outcome.summary(quantity)?.mean;
            (rate > 0.0).then(|| (outcome.target, rate.ln()))
        };
        let logs: Vec<(usize, f64)> = cell.iter().filter_map(log).collect();
        let Some(all) = Summary::of(&logs.iter().map(|(_, log)| *log).collect::<Vec<_>>()) else { continue };
        for (target, log) in logs {
            scores.entry(target).or_default().push(log - all.mean);
        }
    }
    let score = |scores: &[f64]| Summary::of(scores).map_or(0.0, |summary| summary.mean);
    let mut order: Vec<(usize, f64)> = scores.iter().map(|(target, all)| (*target, score(all))).collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1));
    order.into_iter().map(|(target, _)| target).collect()
}

fn compare(
    outcomes: &[&CellOutcome<'_>],
    quantity: Quantity,
    basis: PairBasis,
    first: usize,
    second: usize,
) -> Option<Comparison> {
    if basis == PairBasis::Repeats {
        return compare_apart(outcomes, quantity, first, second);
    }
    let of_cell = |cell: &[&CellOutcome<'_>]| {
        let of = |target| cell.iter().find(|outcome| outcome.target == target);
        Some(CellRounds { row: cell[0].cell, values: differences(of(first)?, of(second)?, quantity) })
    };
    let cells: Vec<CellRounds> = outcomes.chunk_by(|a, b| a.cell == b.cell).filter_map(of_cell).collect();
    let found = round_means(&cells)?;
    let overall = found.overall.difference();
    Some(Comparison {
        first,
        second,
        effect: overall.effect(),
        p: overall.p(),
        rounds_missing: ROUNDS_LEAST.saturating_sub(found.rounds),
        cells: found.cells.iter().map(|(cell, mean)| (*cell, mean.difference().effect())).collect(),
    })
}

/// Compares unpaired repeats by Welch's method.
fn compare_apart(
    outcomes: &[&CellOutcome<'_>],
    quantity: Quantity,
    first: usize,
    second: usize,
) -> Option<Comparison> {
    let logs = |outcome: &CellOutcome<'_>| -> Vec<RoundLog> {
        let rates = outcome.usable().map(|measured| (measured.key.repeat, quantity.of(&measured.sample)));
        let positive = rates.filter(|(_, rate)| *rate > 0.0);
        positive.map(|(round, rate)| RoundLog { round, log: rate.ln() }).collect()
    };
    let of_cell = |cell: &[&CellOutcome<'_>]| {
        let of = |target| cell.iter().find(|outcome| outcome.target == target).map(|outcome| logs(outcome));
        Some(CellLogs { row: cell[0].cell, first: of(first)?, second: of(second)? })
    };
    let cells: Vec<CellLogs> = outcomes.chunk_by(|a, b| a.cell == b.cell).filter_map(of_cell).collect();
    let found = unpaired(&cells)?;
    Some(Comparison {
        first,
        second,
        effect: found.overall.effect(),
        p: found.overall.p(),
        cells: found.cells.iter().map(|(cell, difference)| (*cell, difference.effect())).collect(),
        rounds_missing: 0,
    })
}

/// A fixed seed, so that the same record always gives the same report.
pub(crate) const SEED: Seed = Seed(0x6e69_6c6f);

/// The log-ratios of repeats from the same round in which both are valid.
pub(crate) fn differences(a: &CellOutcome<'_>, b: &CellOutcome<'_>, quantity: Quantity) -> Vec<RoundLog> {
    let rates = |outcome: &CellOutcome<'_>| -> BTreeMap<u32, f64> {
        let rates = outcome.usable().map(|measured| (measured.key.repeat, quantity.of(&measured.sample)));
        rates.filter(|(_, rate)| *rate > 0.0).collect()
    };
    let others = rates(b);
    let ratio = |(round, rate): (u32, f64)| Some(RoundLog { round, log: (rate / others.get(&round)?).ln() });
    rates(a).into_iter().filter_map(ratio).collect()
}

impl Comparison {
    /// The sentence, with the targets' names; it mentions cells that contradict each other.
    pub fn words(&self, margin: f64, first: &str, second: &str) -> String {
        let mut words = self.effect.words(margin, first, second);
        if self.rounds_missing > 0 {
            let rounds = if self.rounds_missing == 1 { "round" } else { "rounds" };
            words = format!("{words}: {} more {rounds} could decide", self.rounds_missing);
        }
        let count = |answer| self.cells.iter().filter(|(_, effect)| effect.answer(margin) == answer).count();
        let faster = count(Answer::Faster);
        let slower = count(Answer::Slower);
        if faster > 0 && slower > 0 {
            let all = self.cells.len();
            words = format!(
                "{words}; it depends on the parameters: {first} is faster in {faster}, {second} in {slower} of {all} cells"
            );
        }
        words
    }
}

impl Question {
    /// A sentence for each comparison.
    pub fn sentences(&self, margin: f64, name: impl Fn(usize) -> String) -> Vec<String> {
        let words = |c: &Comparison| c.words(margin, &name(c.first), &name(c.second));
        self.comparisons.iter().map(words).collect()
    }

    /// The compared targets from the fastest to the slowest. Between compared neighbours is `>` for faster,
    /// `=` for no difference that counts, or `?` for undecided. `None` for fewer than three targets: the
    /// sentence is enough for them.
    pub fn ranking(&self, margin: f64, name: impl Fn(usize) -> String) -> Option<String> {
        let order: Vec<usize> =
            self.order.iter().copied().filter(|target| self.has_compared(*target)).collect();
        if order.len() < 3 {
            return None;
        }
        let mut text = name(order[0]);
        for pair in order.windows(2) {
            let found = self.comparisons.iter().find(|c| (c.first, c.second) == (pair[0], pair[1]));
            let sign = match found.map(|comparison| comparison.effect.answer(margin)) {
                Some(Answer::Faster) => " > ",
                Some(Answer::Alike) => " = ",
                Some(_) => " ? ",
                None => ", ",
            };
            text = text + sign + &name(pair[1]);
        }
        Some(text)
    }

    /// Names the targets without a comparison, which share no cell with the others. `None` if there are none,
    /// or if nothing was compared.
    pub fn apart(&self, name: impl Fn(usize) -> String) -> Option<String> {
        let apart: Vec<String> = self
            .order
            .iter()
            .filter(|target| !self.has_compared(**target))
            .map(|target| name(*target))
            .collect();
        let verb = if apart.len() == 1 { "shares" } else { "share" };
        let is_some = !apart.is_empty() && !self.comparisons.is_empty();
        is_some.then(|| format!("not compared: {} {verb} no cell with the others", apart.join(", ")))
    }

    fn has_compared(&self, target: usize) -> bool {
        self.comparisons.iter().any(|comparison| [comparison.first, comparison.second].contains(&target))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Faster targets have lower numbers here; pairs in `unknown` were not compared.
    fn compared(order: &[usize], unknown: &[(usize, usize)]) -> Vec<(usize, usize)> {
        let pair = |first: usize, second: usize| {
            let is_known = !unknown.contains(&(first.min(second), first.max(second)));
            is_known.then_some((first, second))
        };
        in_order(order, pair)
    }

    fn slower(pair: &(usize, usize)) -> Option<(usize, usize)> {
        (pair.0 > pair.1).then_some(*pair)
    }

    #[test]
    fn no_comparison_contradicts_the_order() {
        let (order, pairs) = agreeing(vec![1, 0, 2, 3], |order| compared(order, &[]), slower);
        assert_eq!(order, [0, 1, 2, 3]);
        assert_eq!(pairs, [(0, 1), (0, 2), (0, 3)]);
        let (order, pairs) = agreeing(vec![2, 1, 0], |order| compared(order, &[]), slower);
        assert_eq!((order, pairs), (vec![0, 1, 2], vec![(0, 1), (0, 2), (1, 2)]));
        let (order, _) = agreeing(vec![1, 0], |order| compared(order, &[(0, 1)]), slower);
        assert_eq!(order, [1, 0], "nothing contradicts it");
    }

    #[test]
    fn a_target_without_a_comparison_has_no_place_in_the_order() {
        let effect = Effect { log_ratio: 0.5, low: 0.4, high: 0.6, pairs: 6 };
        let faster =
            |second| Comparison { first: 0, second, effect, p: 0.01, cells: vec![], rounds_missing: 0 };
        let comparisons = vec![faster(1), faster(3)];
        let question =
            Question { phase: Phase::Write, quantity: Quantity::Bytes, order: vec![0, 2, 1, 3], comparisons };
        let name = |target: usize| ["A", "B", "C", "D"][target].to_owned();
        assert_eq!(question.ranking(5.0, name).as_deref(), Some("A > B, D"));
        assert_eq!(question.apart(name).as_deref(), Some("not compared: C shares no cell with the others"));
        let alone = Question { comparisons: vec![], ..question };
        assert_eq!((alone.apart(name), alone.ranking(5.0, name)), (None, None));
    }

    #[test]
    fn targets_that_beat_each_other_in_turn_end_too() {
        // Each is slower than the next one of three.
        let slower = |pair: &(usize, usize)| ((pair.0 + 1) % 3 == pair.1).then_some(*pair);
        let (order, pairs) = agreeing(vec![0, 1, 2], |order| compared(order, &[]), slower);
        assert_eq!((order.len(), pairs.len()), (3, 3));
    }
}
