//! What a figure of another program rests on: rates of the same cell with one assumption turned round at a time, round by round,
//! against the cell as the program's line says.

use nilometer_model::statistics::Summary;

use crate::{
    Quantity,
    effect::{Answer, Effect, pooled_variance},
};

/// What was measured in the same rounds as the line's own cell.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedRates {
    /// What is other than in the line.
    pub name: String,
    /// Bytes or operations a second, by round; none where that round has no valid figure.
    pub rates: Vec<Option<f64>>,
}

/// The line's own cell and what was measured beside it.
#[derive(Debug, Clone, PartialEq)]
pub struct LineDifference {
    /// In what rates are.
    pub quantity: Quantity,
    /// As the line says.
    pub own: NamedRates,
    /// The program itself, if it was run.
    pub program: Option<NamedRates>,
    /// One assumption turned round each.
    pub turned: Vec<NamedRates>,
    /// All of them turned round, where there are several.
    pub all: Option<NamedRates>,
}

impl LineDifference {
    /// The table: a line each, with what it differs by and how much of the whole difference that explains.
    pub fn text(&self, margin: f64) -> String {
        let rows = self.program.iter().chain([&self.own]).chain(&self.turned).chain(&self.all);
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

    /// Against the line's own cell, in pairs of the same round; none without pairs.
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

    /// `, 97 % of the difference`: the part of the logarithm.
    fn share(&self, of: &NamedRates, whole: Option<&Effect>, margin: f64) -> String {
        let effect = self.effect(of).filter(|effect| counts(effect, margin));
        match (effect, whole) {
            (Some(effect), Some(whole)) => {
                format!("; explains {:.0} % of all", 100.0 * effect.log_ratio / whole.log_ratio)
            }
            _ => String::new(),
        }
    }

    fn answer(&self, margin: f64) -> String {
        let strength = |of: &&NamedRates| self.effect(of).filter(|effect| counts(effect, margin));
        let strongest = self.turned.iter().filter(|of| strength(of).is_some()).max_by(|a, b| {
            let of = |of: &NamedRates| strength(&of).map_or(0.0, |effect| effect.log_ratio.abs());
            of(a).total_cmp(&of(b))
        });
        match strongest {
            Some(of) => format!("The figure rests most of all on what \"{}\" turns round.", of.name),
            None => format!("None of these makes a difference that is known to be larger than {margin} %."),
        }
    }
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
        assert!(text.ends_with("known to be larger than 5 %."), "{text}");
        assert!(text.contains("no valid repeat") && text.contains("too few repeats"), "{text}");
    }
}
