//! The notation of a scale.

use std::fmt;

/// A scale as people write it: `1/300`, `0.5` as `1/2`, `0.75`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShownScale(pub f64);

impl fmt::Display for ShownScale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = (1.0 / self.0).round();
        let is_part = self.0 > 0.0 && whole >= 2.0 && (whole * self.0 - 1.0).abs() < 1e-9;
        if is_part { write!(f, "1/{whole}") } else { write!(f, "{}", self.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::ShownScale;

    #[test]
    fn a_part_of_a_whole_is_written_so() {
        let shown = [1.0 / 300.0, 0.05, 0.5, 0.75, 1.0, 2.5, 0.0].map(|scale| ShownScale(scale).to_string());
        assert_eq!(shown, ["1/300", "1/20", "1/2", "0.75", "1", "2.5", "0"]);
    }
}
