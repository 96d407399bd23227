//! The difference of two things: the logarithm of a ratio with its interval, and the words for it.
//!
//! Differences are log-ratios of pairs from the same round, so that a common drift cancels.

use nilometer_model::statistics::student;

/// The logarithm of a ratio, with its interval at 95 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effect {
    /// The mean over pairs.
    pub log_ratio: f64,
    /// The interval's lower end; minus infinity from too few pairs.
    pub low: f64,
    /// The interval's upper end; infinity from too few pairs.
    pub high: f64,
    /// Number of pairs.
    pub pairs: usize,
}

/// The greatest ratio of the ends of an interval that is shown.
const WIDEST: f64 = 1000.0;

/// The meaning of an interval, given the smallest difference that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The first is faster by more than the margin.
    Faster,
    /// The first is slower by more than the margin.
    Slower,
    /// They differ by less than the margin.
    Alike,
    /// The data do not decide.
    Undecided,
}

impl Effect {
    /// The effect of one cell: the spread of its pairs is pooled with that of other cells, `variance` with
    /// `freedom` degrees of freedom ([`pooled_variance`]). `None` without pairs.
    pub fn of_cell(differences: &[f64], variance: f64, freedom: usize) -> Option<Effect> {
        let log_ratio = mean(differences)?;
        let pairs = differences.len();
        let half =
            if freedom == 0 { f64::INFINITY } else { student(freedom) * (variance / pairs as f64).sqrt() };
        Some(Effect { log_ratio, low: log_ratio - half, high: log_ratio + half, pairs })
    }

    /// The meaning of the interval if a difference below `margin` percent does not count.
    pub fn answer(&self, margin: f64) -> Answer {
        let edge = (margin / 100.0).ln_1p();
        match self {
            Effect { low, .. } if *low >= edge => Answer::Faster,
            Effect { high, .. } if *high <= -edge => Answer::Slower,
            Effect { low, high, .. } if *low > -edge && *high < edge => Answer::Alike,
            _ => Answer::Undecided,
        }
    }

    /// The effect with the two sides exchanged.
    #[must_use]
    pub fn reversed(&self) -> Effect {
        Effect { log_ratio: -self.log_ratio, low: -self.high, high: -self.low, pairs: self.pairs }
    }

    /// The sentence, with the names of the first and the second.
    pub fn words(&self, margin: f64, first: &str, second: &str) -> String {
        match self.answer(margin) {
            Answer::Faster => format!("{first} is {}", self.stated(SPEED, second)),
            Answer::Slower => format!("{second} is {}", self.reversed().stated(SPEED, first)),
            Answer::Undecided if self.says_something() => {
                format!("not decided: {first} is {} {second}", self.between(SPEED))
            }
            _ => self.none_words(margin, first, second),
        }
    }

    /// The sentence for a cost, such as processor time per GB: more of it is no advantage.
    pub fn need_words(&self, margin: f64, first: &str, second: &str) -> String {
        match self.answer(margin) {
            Answer::Faster => format!("{first} needs {}", self.stated(NEED, second)),
            Answer::Slower => format!("{second} needs {}", self.reversed().stated(NEED, first)),
            Answer::Undecided if self.says_something() => {
                format!("not decided: {first} needs {} {second}", self.between(NEED))
            }
            _ => self.none_words(margin, first, second),
        }
    }

    /// Returns true if the interval is narrow enough to mean more than too few repeats.
    fn says_something(&self) -> bool {
        self.high - self.low < WIDEST.ln()
    }

    /// The words if no difference counts, or the data do not decide.
    fn none_words(&self, margin: f64, first: &str, second: &str) -> String {
        if self.answer(margin) == Answer::Alike {
            return format!("{first} and {second}: no difference larger than {margin} %");
        }
        format!("{first} and {second}: not decided, too few repeats")
    }

    /// `1.8 times as fast as B (1.6 to 2.0)`, or `12 % faster than B (9 to 15 %)`.
    fn stated(&self, sides: Sides, than: &str) -> String {
        let [ratio, low, high] = [self.log_ratio, self.low, self.high].map(f64::exp);
        let Sides { more, times, .. } = sides;
        if ratio >= 1.5 {
            let digits = usize::from(ratio < 9.95);
            return format!("{ratio:.digits$} {times} {than} ({low:.digits$} to {high:.digits$})");
        }
        let [ratio, low, high] = [ratio, low, high].map(|ratio| percent(ratio - 1.0));
        format!("{ratio} % {more} than {than} ({low} to {high} %)")
    }

    /// `23 % slower (18 to 28 %)`, for a loss: as a share of the other's rate.
    pub fn loss_words(&self) -> String {
        let [share, least, most] = [self.log_ratio, self.high, self.low].map(lost);
        format!("{share} % slower ({least} to {most} %)")
    }

    /// The change from the second to the first, told forwards: `23 % slower (18 to 28 %)`, `12 % faster (9 to
    /// 15 %)`, or `1.8 times as fast (1.6 to 2.0)`. A slower one is a share of the rate before.
    pub fn change_words(&self) -> String {
        if self.log_ratio < 0.0 {
            return self.loss_words();
        }
        let [ratio, low, high] = [self.log_ratio, self.low, self.high].map(f64::exp);
        if ratio >= 1.5 {
            let digits = usize::from(ratio < 9.95);
            return format!("{ratio:.digits$} times as fast ({low:.digits$} to {high:.digits$})");
        }
        let [ratio, low, high] = [ratio, low, high].map(|ratio| percent(ratio - 1.0));
        format!("{ratio} % faster ({low} to {high} %)")
    }

    /// `between 3 % slower and 20 % faster than`.
    fn between(&self, sides: Sides) -> String {
        let distance = |log_ratio: f64| percent(log_ratio.exp_m1().abs());
        let word = |log_ratio: f64| if log_ratio < 0.0 { sides.less } else { sides.more };
        let (low, high) = (self.low, self.high);
        if word(low) == word(high) {
            let nearer = if low < 0.0 { high } else { low };
            let farther = if low < 0.0 { low } else { high };
            let [least, most] = [nearer, farther].map(distance);
            return format!("between {least} % and {most} % {} than", word(low));
        }
        format!("between {} % {} and {} % {} than", distance(low), word(low), distance(high), word(high))
    }
}

/// The words for a difference.
#[derive(Debug, Clone, Copy)]
struct Sides {
    less: &'static str,
    more: &'static str,
    times: &'static str,
}

const SPEED: Sides = Sides { less: "slower", more: "faster", times: "times as fast as" };
const NEED: Sides = Sides { less: "less", more: "more", times: "times as much as" };

/// A share in percent, with tenths if it is small.
/// The loss in percent. Near 100 % a tenth shows that some is left.
fn lost(log_ratio: f64) -> String {
    let percents = -100.0 * log_ratio.exp_m1();
    if percents > 99.0 && percents < 100.0 {
        return format!("{:.1}", (10.0 * percents).floor() / 10.0);
    }
    percent(percents / 100.0)
}

fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent < 9.95 { format!("{percent:.1}") } else { format!("{percent:.0}") }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The variance of pairs, or of repeats, around the mean of their cell, over all cells; with its degrees of
/// freedom.
pub fn pooled_variance<'a>(cells: impl Iterator<Item = &'a [f64]>) -> (f64, usize) {
    let (mut squares, mut freedom) = (0.0, 0);
    for cell in cells {
        let Some(mean) = mean(cell) else { continue };
        squares += cell.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        freedom += cell.len() - 1;
    }
    (squares / freedom.max(1) as f64, freedom)
}

#[cfg(test)]
mod tests;
