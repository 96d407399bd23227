//! The sentences below a history of runs.

use nilometer_model::Phase;

use super::compared::{compared, history};
use crate::{TextLayout, compared_text};

/// Eleven sentences about nothing hid the only step.
#[test]
fn a_step_comes_first_and_all_that_stayed_shares_a_sentence() {
    let runs = history();
    let mut compared = compared(&runs);
    let sequences = &mut compared.histories[0].sequences;
    let mut level = sequences[0].clone();
    level.steps.clear();
    for phase in [Phase::Read, Phase::Rewrite] {
        level.phase = phase;
        sequences.insert(0, level.clone());
    }
    level.stage = "small".into();
    sequences.push(level);
    let text = compared_text(&compared, TextLayout::plain());
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let stayed =
        "large, rewrite, read; small, rewrite: no step and no trend above 5 % that noise does not explain";
    let places = [" STEP, ", stayed].map(|part| words.find(part).unwrap_or_else(|| panic!("{part}: {text}")));
    assert!(places[0] < places[1] && words.matches("no step").count() == 1, "{text}");
}
