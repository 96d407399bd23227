//! Random numbers with the distributions of detector noise, normal and Poisson, from the streams of
//! [`Seed`](nilometer_model::Seed).

use nilometer_model::RandomStream;

const LAYERS: usize = 128;
/// Start of the tail and area of a layer, for 128 layers.
const TAIL: f64 = 3.442_619_855_899;
const AREA: f64 = 9.912_563_035_262_17e-3;

/// Normal numbers with mean 0 and deviation 1, by layers of equal area (Doornik, "An improved ziggurat method
/// to generate normal random samples", 2005, ZIGNOR).
#[derive(Debug, Clone)]
pub(super) struct Normal {
    /// The right end of each layer, and the share of the layer that lies under the curve at any height.
    ends: [f64; LAYERS + 1],
    inner: [f64; LAYERS],
}

impl Normal {
    pub(super) fn new() -> Self {
        let mut ends = [0.0; LAYERS + 1];
        let mut height = density(TAIL);
        ends[0] = AREA / height;
        ends[1] = TAIL;
        for layer in 2..LAYERS {
            ends[layer] = (-2.0 * (AREA / ends[layer - 1] + height).ln()).sqrt();
            height = density(ends[layer]);
        }
        Normal { inner: std::array::from_fn(|layer| ends[layer + 1] / ends[layer]), ends }
    }

    #[inline]
    pub(super) fn draw(&self, stream: &mut RandomStream) -> f64 {
        loop {
            let bits = stream.next();
            let layer = bits as usize % LAYERS;
            // 53 bits that do not choose the layer.
            let across = (bits >> 11) as f64 * (2.0 / (1_u64 << 53) as f64) - 1.0;
            let drawn = across * self.ends[layer];
            if across.abs() < self.inner[layer] {
                return drawn;
            }
            if layer == 0 {
                return tail(stream).copysign(across);
            }
            let low = density(self.ends[layer]);
            let high = density(self.ends[layer + 1]);
            if low + stream.unit() * (high - low) < density(drawn) {
                return drawn;
            }
        }
    }
}

fn density(x: f64) -> f64 {
    (-0.5 * x * x).exp()
}

/// A number beyond the layers (Marsaglia, "Generating a variable from the tail of the normal distribution", 1964).
#[cold]
fn tail(stream: &mut RandomStream) -> f64 {
    loop {
        // 1 - unit() is never 0.
        let x = (1.0 - stream.unit()).ln() / TAIL;
        let y = (1.0 - stream.unit()).ln();
        if -2.0 * y >= x * x {
            return TAIL - x;
        }
    }
}

/// Above this mean, `Poisson` draws counts by rejection.
const SEARCHED_MAX: f64 = 10.0;

/// Counts with one mean, which must be at most 1e8.
#[derive(Debug, Clone, Copy)]
pub(super) enum Poisson {
    /// Goes through the counts from 0. Holds the mean, and the probability of 0.
    Searched { mean: f64, none: f64 },
    /// Draws by rejection (Hörmann, "The transformed rejection method for generating Poisson random variables",
    /// 1993, PTRS).
    Rejected { mean: f64, log_mean: f64, a: f64, b: f64, log_alpha: f64, sure: f64 },
}

impl Poisson {
    pub(super) fn new(mean: f64) -> Self {
        if mean < SEARCHED_MAX {
            return Poisson::Searched { mean, none: (-mean).exp() };
        }
        let b = 0.931 + 2.53 * mean.sqrt();
        let a = -0.059 + 0.024_83 * b;
        let log_alpha = (1.1239 + 1.1328 / (b - 3.4)).ln();
        let sure = 0.9277 - 3.6224 / (b - 2.0);
        Poisson::Rejected { mean, log_mean: mean.ln(), a, b, log_alpha, sure }
    }

    #[inline]
    pub(super) fn draw(&self, stream: &mut RandomStream) -> i32 {
        match *self {
            Poisson::Searched { mean, none } => searched(mean, none, stream.unit()),
            Poisson::Rejected { .. } => self.rejected(stream),
        }
    }

    fn rejected(&self, stream: &mut RandomStream) -> i32 {
        let Poisson::Rejected { mean, log_mean, a, b, log_alpha, sure } = *self else {
            unreachable!("only called for it")
        };
        loop {
            let u = stream.unit() - 0.5;
            let v = 1.0 - stream.unit();
            let edge = 0.5 - u.abs();
            let count = ((2.0 * a / edge + b) * u + mean + 0.43).floor();
            if edge >= 0.07 && v <= sure {
                return count as i32;
            }
            if count < 0.0 || (edge < 0.013 && v > edge) {
                continue;
            }
            let accepted = v.ln() + log_alpha - (a / (edge * edge) + b).ln();
            if accepted <= count * log_mean - mean - log_factorial(count) {
                return count as i32;
            }
        }
    }
}

/// Returns the first count at which the cumulative probability exceeds `drawn`.
#[inline]
fn searched(mean: f64, none: f64, drawn: f64) -> i32 {
    let (mut count, mut share, mut left) = (0, none, drawn);
    while left > share && share > 1e-300 {
        left -= share;
        count += 1;
        share *= mean / f64::from(count);
    }
    count
}

/// Returns ln(n!), by Stirling's series.
///
/// Only counts with means above ten need it. Its greatest error, 0.04 at 0, applies to a probability below
/// 1e-4.
fn log_factorial(count: f64) -> f64 {
    let x = count + 1.0;
    let series = 1.0 / (12.0 * x) - 1.0 / (360.0 * x * x * x);
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series
}

#[cfg(test)]
mod tests {
    use nilometer_model::Seed;

    use super::*;

    /// Returns mean, variance and skew.
    fn moments(values: &[f64]) -> [f64; 3] {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let moment = |power| values.iter().map(|value| (value - mean).powi(power)).sum::<f64>() / count;
        [mean, moment(2), moment(3) / moment(2).powf(1.5)]
    }

    #[test]
    fn normal_numbers_are_normal() {
        let (normal, mut stream) = (Normal::new(), Seed(1).stream());
        let values: Vec<f64> = (0..400_000).map(|_| normal.draw(&mut stream)).collect();
        let [mean, variance, skew] = moments(&values);
        assert!(
            mean.abs() < 0.01 && (variance - 1.0).abs() < 0.01 && skew.abs() < 0.02,
            "{mean} {variance} {skew}"
        );
        for (within, share) in
            [(0.5, 0.382_92), (1.0, 0.682_69), (2.0, 0.954_50), (3.0, 0.997_300), (3.6, 0.999_682)]
        {
            let found =
                values.iter().filter(|value| value.abs() < within).count() as f64 / values.len() as f64;
            let error = (share * (1.0 - share) / values.len() as f64).sqrt();
            assert!((found - share).abs() < 4.0 * error, "{found} of {share} within {within}");
        }
    }

    #[test]
    fn counts_have_the_mean_as_their_variance() {
        for mean in [0.02, 0.5, 3.0, 9.99, 10.0, 30.0, 1000.0, 25_000.0] {
            let (poisson, mut stream) = (Poisson::new(mean), Seed(2).stream());
            let values: Vec<f64> = (0..200_000).map(|_| f64::from(poisson.draw(&mut stream))).collect();
            let [found, variance, skew] = moments(&values);
            assert!((found - mean).abs() < 5.0 * (mean / 2e5_f64).sqrt(), "{found} of {mean}");
            assert!((variance / mean - 1.0).abs() < 0.02 + 0.01 / mean.sqrt(), "{variance} of {mean}");
            assert!((skew - mean.powf(-0.5)).abs() < 0.05 + 0.02 / mean.sqrt(), "{skew} of {mean}");
        }
    }

    #[test]
    fn factorials_are_right_where_they_are_needed() {
        let exact = (1..=20).map(f64::from).map(f64::ln).sum::<f64>();
        assert!((log_factorial(20.0) - exact).abs() < 1e-9);
        assert!(log_factorial(0.0).abs() < 0.01 && log_factorial(1.0).abs() < 0.001);
    }
}
