//! Files that others wrote: plans and conditions are read or refused, whatever is in them.

use std::path::Path;

use nilometer_fuzz::{corpus, fuzz};
use nilometer_plan::{Condition, parse};

#[test]
fn plans_are_read_or_refused() {
    let plans = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans");
    fuzz("plan", corpus(&plans), |input| {
        if let Ok(text) = std::str::from_utf8(input) {
            drop(parse(text, "p.toml", 1.0).map(|plan| plan.cells.iter().map(ToString::to_string).count()));
        }
    });
}

#[test]
fn conditions_are_read_or_refused() {
    let condition =
        "name = \"c\"\nenter = \"true\"\nleave = \"true\"\nsettle = \"5 s\"\ntime_limit = \"1 min\"\n";
    fuzz("condition", vec![condition.into()], |input| {
        if let Ok(text) = std::str::from_utf8(input) {
            drop(Condition::parse(text, "c.toml"));
        }
    });
}

/// A parser that follows each opening by a call of its own runs out of the stack in these.
#[test]
fn texts_that_open_again_and_again_are_refused() {
    for part in ["a={", "a=[", "a=[[", "{", "a={{}", "a=[{]", "a={[]", "a.", "[a.", "[[a"] {
        let text = part.repeat(1_000_000 / part.len());
        parse(&text, "p.toml", 1.0).map(drop).expect_err(part);
    }
}
