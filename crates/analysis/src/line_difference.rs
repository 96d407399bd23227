//! Explains the figure of another program. It compares the cell as the program's line describes it with variants,
//! round by round. Each variant reverses one assumption.

use nilometer_model::statistics::Summary;

use crate::{
    Quantity,
    effect::{Answer, Effect, pooled_variance},
};

/// Rates measured in the same rounds as the line's own cell.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedRates {
    /// The assumption that differs from the line.
    pub name: String,
    /// Bytes or operations per second, by round; `None` if the round has no valid figure.
    pub rates: Vec<Option<f64>>,
}

/// The line's own cell, and the variants measured beside it.
#[derive(Debug, Clone, PartialEq)]
pub struct LineDifference {
    /// The quantity of the rates.
    pub quantity: Quantity,
    /// The cell as the line describes it.
    pub own: NamedRates,
    /// The program itself, if it was run.
    pub program: Option<NamedRates>,
    /// The source of the program's data alone, if it may be slower than the storage.
    pub source: Option<NamedRates>,
    /// Variants with one assumption reversed each.
    pub turned: Vec<NamedRates>,
    /// The variant with all of them reversed, if there are several.
    pub all: Option<NamedRates>,
}

impl LineDifference {
    /// The table: a line for each variant, with its difference and the share of the whole difference that it
    /// explains.
    pub fn text(&self, margin: f64) -> String {
        let rows =
            self.program.iter().chain(&self.source).chain([&self.own]).chain(&self.turned).chain(&self.all);
        let widest = rows.map(|of| of.name.chars().count()).max().unwrap_or(0) + 2;
        let mut lines = Vec::new();
        let mut row = |indent: usize, of: &NamedRates, words: String| {
            let name = format!("{:indent$}{}", "", of.name);
            let mean = of.mean(self.quantity);
            lines.push(format!("{name:<widest$}  {mean:>10}  {words}").trim_end().to_owned());
        };
        if let Some(program) = &self.program {
            row(0, program, self.words(program, margin));
        }
        if let Some(source) = &self.source {
            row(0, source, self.words(source, margin));
        }
        row(0, &self.own, String::new());
        let whole = self.all.as_ref().and_then(|all| self.effect(all)).filter(|all| counts(all, margin));
        for of in &self.turned {
            row(2, of, format!("{}{}", self.words(of, margin), self.share(of, whole.as_ref(), margin)));
        }
        if let Some(all) = &self.all {
            row(0, all, self.words(all, margin));
        }
        lines.push(String::new());
        lines.push(self.answer(margin));
        lines.join("\n")
    }

    /// The ratio to the line's own cell, in pairs of the same round; `None` without pairs.
    fn effect(&self, of: &NamedRates) -> Option<Effect> {
        let pairs = of.rates.iter().zip(&self.own.rates);
        let logs: Vec<f64> = pairs.filter_map(|(one, own)| Some(((*one)? / (*own)?).ln())).collect();
        let logs: Vec<f64> = logs.into_iter().filter(|log| log.is_finite()).collect();
        let (variance, freedom) = pooled_variance(std::iter::once(logs.as_slice()));
        Effect::of_cell(&logs, variance, freedom)
    }

    fn words(&self, of: &NamedRates, margin: f64) -> String {
        match self.effect(of) {
            None => "no valid repeat".into(),
            Some(effect) => effect.words(margin, "it", "the line's cell"),
        }
    }

    /// `, 97 % of the difference`: the share of the logarithm.
    fn share(&self, of: &NamedRates, whole: Option<&Effect>, margin: f64) -> String {
        let effect = self.effect(of).filter(|effect| counts(effect, margin));
        match (effect, whole) {
            (Some(effect), Some(whole)) => {
                format!("; explains {:.0} % of all", 100.0 * effect.log_ratio / whole.log_ratio)
            }
            _ => String::new(),
        }
    }

    /// The sentence below the table. An assumption explains the figure only if the cell reproduces it. Otherwise
    /// something else causes the figure, and no row of the table names it.
    fn answer(&self, margin: f64) -> String {
        let strongest = self.strongest(margin);
        match self.reproduction(margin, strongest.as_ref()) {
            Reproduction::NotMeasured => {
                format!("{NOT_MEASURED} {}", of_the_cell(strongest.as_ref(), margin))
            }
            Reproduction::Missed(gap) => {
                let source = if self.waits_for_source(margin) { WAITS_FOR_SOURCE } else { "" };
                format!("{}{source}", missed_words(&gap))
            }
            Reproduction::Open(gap) => {
                let words = gap.words(margin, "it", "its cell");
                format!("{OPEN} ({words}): no conclusion. More rounds decide.")
            }
            Reproduction::Reached => match strongest {
                Some(strongest) => {
                    format!("The figure rests most of all on what \"{}\" turns round.", strongest.name)
                }
                None => none_of_these(margin),
            },
        }
    }

    /// Returns true if the cell for the line has another figure than the line itself.
    pub fn is_missed(&self, margin: f64) -> bool {
        matches!(self.reproduction(margin, None), Reproduction::Missed(_))
    }

    fn waits_for_source(&self, margin: f64) -> bool {
        let effect = self.source.as_ref().and_then(|source| self.effect(source));
        effect.is_some_and(|effect| effect.answer(margin) == Answer::Slower)
    }

    /// The assumption with the largest difference, if one certainly counts.
    fn strongest(&self, margin: f64) -> Option<StrongestAssumption<'_>> {
        let counted = self.turned.iter().filter_map(|of| {
            let effect = self.effect(of).filter(|effect| counts(effect, margin))?;
            Some(StrongestAssumption { name: &of.name, effect })
        });
        counted.max_by(|a, b| a.effect.log_ratio.abs().total_cmp(&b.effect.log_ratio.abs()))
    }

    /// Compares the line's own figure with that of its cell. An interval may include equality but be as wide as
    /// the effect of the strongest assumption. It then shows nothing: the cell might be wrong by that much.
    fn reproduction(&self, margin: f64, strongest: Option<&StrongestAssumption<'_>>) -> Reproduction {
        let Some(gap) = self.program.as_ref().and_then(|program| self.effect(program)) else {
            return Reproduction::NotMeasured;
        };
        if gap.answer(margin) == Answer::Alike {
            return Reproduction::Reached;
        }
        if gap.low > 0.0 || gap.high < 0.0 {
            return Reproduction::Missed(gap);
        }
        let farthest = gap.low.abs().max(gap.high.abs());
        match strongest {
            Some(strongest) if farthest < nearest(&strongest.effect) => Reproduction::Reached,
            _ => Reproduction::Open(gap),
        }
    }
}

/// An assumption with a certain effect, and that effect.
struct StrongestAssumption<'a> {
    name: &'a str,
    effect: Effect,
}

/// The agreement of a cell with the figure of its line.
enum Reproduction {
    /// The program was not run, or returned no figure.
    NotMeasured,
    /// The figures agree, to within the interval.
    Reached,
    /// The figures differ: the ratio of the line's own figure to that of the cell.
    Missed(Effect),
    /// The interval is too wide to decide.
    Open(Effect),
}

const NOT_MEASURED: &str =
    "The line's own figure was not measured: nothing shows that the cell stands for it.";
const WAITS_FOR_SOURCE: &str =
    " The source of its data alone is slower than the cell: the line waits for it.";
const OPEN: &str = "It is not decided whether the cell reproduces the line's own figure";

/// The strongest assumption of the cell, if the line's own figure is unknown.
fn of_the_cell(strongest: Option<&StrongestAssumption<'_>>, margin: f64) -> String {
    match strongest {
        Some(strongest) => format!("Within the cell alone, \"{}\" changes the figure most.", strongest.name),
        None => none_of_these(margin),
    }
}

fn none_of_these(margin: f64) -> String {
    format!("None of these makes a difference significantly larger than {margin} %.")
}

/// The factor between the line's own figure and its cell.
fn missed_words(gap: &Effect) -> String {
    let is_lower = gap.log_ratio < 0.0;
    let gap = if is_lower { gap.reversed() } else { *gap };
    let [ratio, low, high] = [gap.log_ratio, gap.low, gap.high].map(factor_of);
    let side = if is_lower { "slower" } else { "faster" };
    format!(
        "The line itself is {side} than its cell by a factor of {ratio} ({low} to {high}): the cell lacks \
         the cause. No conclusion about the rest."
    )
}

/// `28`, `3.4` or `1.20`, from its logarithm.
fn factor_of(log_ratio: f64) -> String {
    let ratio = log_ratio.exp();
    let digits = if ratio >= 9.95 { 0 } else { 1 + usize::from(ratio < 1.95) };
    format!("{ratio:.digits$}")
}

/// The end of an effect's interval that is closest to no difference.
fn nearest(effect: &Effect) -> f64 {
    effect.low.abs().min(effect.high.abs())
}

fn counts(effect: &Effect, margin: f64) -> bool {
    matches!(effect.answer(margin), Answer::Faster | Answer::Slower)
}

impl NamedRates {
    fn mean(&self, quantity: Quantity) -> String {
        let rates: Vec<f64> = self.rates.iter().flatten().copied().collect();
        Summary::of(&rates)
            .map_or_else(|| "-".into(), |summary| quantity.show(summary.mean).trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(name: &str, share: f64) -> NamedRates {
        let round = |round: u32| 1e9 * share * (1.0 + 0.1 * f64::from(round) + 0.002 * f64::from(round % 3));
        NamedRates { name: name.into(), rates: (0..8).map(|at| Some(round(at))).collect() }
    }

    fn difference() -> LineDifference {
        let mut cached = rates("past the page cache", 0.5);
        cached.rates[3] = None;
        LineDifference {
            quantity: Quantity::Bytes,
            own: rates("as the line says", 1.0),
            program: Some(rates("dd itself", 1.01)),
            source: None,
            turned: vec![rates("synced", 0.1), cached, rates("16 in flight", 1.0)],
            all: Some(rates("all of these", 0.1)),
        }
    }

    #[test]
    fn what_explains_the_difference_is_named_with_its_share() {
        let text = difference().text(5.0);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[0].starts_with("dd itself") && lines[0].contains("no difference larger than 5 %"),
            "{text}"
        );
        assert!(lines[2].starts_with("  synced") && lines[2].ends_with("explains 100 % of all"), "{text}");
        assert!(lines[3].contains("explains 30 % of all"), "{text}");
        assert!(!lines[4].contains("explains"), "{text}");
        assert!(text.ends_with("rests most of all on what \"synced\" turns round."), "{text}");
    }

    #[test]
    fn where_nothing_is_known_nothing_is_said_to_explain() {
        let mut none = difference();
        for of in &mut none.turned {
            of.rates.truncate(1);
        }
        none.program = None;
        none.all = Some(NamedRates { name: "all of these".into(), rates: Vec::new() });
        let text = none.text(5.0);
        assert!(text.contains("own figure was not measured") && text.ends_with("larger than 5 %."), "{text}");
        assert!(text.contains("no valid repeat") && text.contains("too few repeats"), "{text}");
    }

    /// A rate limit holds the program back: reversing assumptions in a cell without the limit explains nothing.
    #[test]
    fn a_cell_that_misses_the_figure_explains_nothing_of_it() {
        let with = |share: f64| LineDifference { program: Some(rates("fio itself", share)), ..difference() };
        let slower = with(1.0 / 28.0).text(5.0);
        assert!(
            slower.contains("The line itself is slower than its cell by a factor of 28 (28 to 28)"),
            "{slower}"
        );
        let faster = with(1.2).text(5.0);
        assert!(
            faster.contains("The line itself is faster than its cell by a factor of 1.20 (1.20 to 1.20)"),
            "{faster}"
        );
        for text in [slower, faster] {
            assert!(!text.contains("rests most") && !text.contains("None of these"), "{text}");
        }
    }

    #[test]
    fn a_source_that_is_slower_than_the_cell_is_named() {
        let with = |share: f64| LineDifference {
            program: Some(rates("dd itself", 0.2)),
            source: Some(rates("/dev/urandom alone", share)),
            ..difference()
        };
        let slow = with(0.21).text(5.0);
        assert!(slow.contains("/dev/urandom alone") && slow.ends_with("the line waits for it."), "{slow}");
        assert!(!with(3.0).text(5.0).contains("waits for it"));
        assert!(with(3.0).is_missed(5.0) && !difference().is_missed(5.0));
    }

    /// Pairs with a scatter so large that the cell may be wrong by a factor of 3.
    #[test]
    fn an_interval_that_is_wider_than_the_strongest_assumption_decides_nothing() {
        let mut scattered = difference();
        let program = scattered.program.as_mut().expect("it was run");
        for (round, rate) in program.rates.iter_mut().enumerate() {
            *rate = rate.map(|rate| if round % 2 == 0 { rate * 4.0 } else { rate / 4.0 });
        }
        scattered.turned.retain(|of| of.name != "synced");
        let text = scattered.text(5.0);
        assert!(text.contains("is not decided") && !text.contains("rests most"), "{text}");
        scattered.turned.push(rates("synced", 0.001));
        let text = scattered.text(5.0);
        assert!(text.ends_with("rests most of all on what \"synced\" turns round."), "{text}");
    }

    #[test]
    fn without_the_own_figure_only_the_cell_is_spoken_of() {
        let text = LineDifference { program: None, ..difference() }.text(5.0);
        assert!(text.contains("own figure was not measured") && !text.contains("rests most"), "{text}");
        assert!(text.ends_with("Within the cell alone, \"synced\" changes the figure most."), "{text}");
    }
}
