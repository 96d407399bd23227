//! A short report is a screen, and leaves out nothing that a reader must know of its figures.

use nilometer_model::{Invalid, Nanos, Phase};
use nilometer_plan::Event;

use super::{
    recorded::recorded,
    results, studied,
    zoo::{TREE, sweep},
};
use crate::{Detail, TextLayout, markdown, terminal};
use nilometer_analysis::{Study, made_up::writes};

fn short(study: &Study<'_>) -> String {
    terminal(study, Detail::Short, TextLayout::plain())
}

/// Nine stages as those of `plans/quick.toml`, with 26 figures.
fn first_look() -> nilometer_plan::Results {
    let stages = ["cached", "shared", "small", "in flight", "frames", "walk"];
    let cells = stages
        .iter()
        .map(|stage| writes(stage, "1048576 B", 1))
        .chain([writes("large files", "1048576 B", 1), writes("large files", "1048576 B", 2)]);
    let mut all = results(1, cells.collect(), &[Phase::Write, Phase::Read], 6);
    let tree = results(1, vec![writes("many files", "4096 B", 2)], &TREE, 6);
    let count = all.cells.len();
    all.cells.extend(tree.cells);
    all.samples.extend(tree.samples.into_iter().map(|mut measured| {
        measured.key.cell += count;
        measured
    }));
    all
}

#[test]
fn a_first_look_at_one_target_is_one_screen() {
    let results = first_look();
    let text = short(&studied(&results));
    let lines = text.lines().count();
    assert!(lines <= 40, "{lines} lines: {text}");
    for part in ["large files, workers 2", "walk", "many files", "file creation", "5 more figures"] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
    assert!(!text.contains("tree creation") && !text.contains("PREDICTED"), "{text}");
}

#[test]
fn a_figure_that_is_not_to_be_used_says_so_before_anything_else() {
    let mut results = results(1, sweep(), &[Phase::Write], 4);
    for measured in &mut results.samples {
        let is_spoilt = measured.key.cell == 0 || measured.key.repeat == 0;
        measured.sample.invalid = is_spoilt.then(|| Invalid::Refused("nobody".into()));
    }
    let study = studied(&results);
    let full = terminal(&study, Detail::Full, TextLayout::plain());
    let rows = |mark: &str| full.lines().filter(|line| line.trim_start().starts_with(mark)).count();
    assert_eq!(rows("INVALID  "), 1, "{full}");
    assert_eq!(rows("INVALID 1/4  "), sweep().len() - 1, "{full}");
    let page = markdown(&study, Detail::Short);
    assert!(page.lines().any(|line| line.starts_with("| **INVALID 1/4** |")), "{page}");
}

#[test]
fn notes_that_a_short_report_leaves_out_are_counted() {
    let mut results = results(1, vec![writes("one", "1048576 B", 1)], &[Phase::Write], 6);
    let what = format!("{}/data: a cell, round 1: spoilt", Event::AGAIN);
    results.events = vec![Event { at: Nanos(0), what }];
    let study = studied(&results);
    let text = short(&study);
    assert!(text.contains("1 note more with --all") && !text.contains("spoilt by this machine"), "{text}");
    let full = terminal(&study, Detail::Full, TextLayout::plain());
    assert!(full.contains("spoilt by this machine") && !full.contains("more with --all"), "{full}");
}

#[test]
fn of_many_cells_the_fastest_stands_for_all() {
    let cells = ["4096 B", "65536 B", "1048576 B", "4194304 B"]
        .into_iter()
        .flat_map(|block| [1, 2].map(|workers| writes("matrix", block, workers)));
    let results = results(1, cells.collect(), &[Phase::Write], 4);
    let study = studied(&results);
    let text = short(&study);
    assert_eq!(text.matches("fastest of 8").count(), 1, "{text}");
    let mut spoilt = results.clone();
    let first = spoilt.samples.iter_mut().filter(|measured| measured.key.cell == 0);
    first.for_each(|measured| measured.sample.invalid = Some(Invalid::Refused("nobody".into())));
    let told = short(&studied(&spoilt));
    assert!(told.contains("7 more figures (1 with INVALID repeats)"), "{told}");
    // Each cell is faster than the one before.
    let best = study.stages[0].figures.best(Phase::Write, 0).expect("a figure");
    let rate = study.stages[0].figures.quantity(best).show(best.rate.expect("valid repeats").mean);
    assert!(text.contains(&rate), "{rate} is not in {text}");
    assert!(text.contains("7 more figures"), "{text}");
}

#[test]
fn predictions_are_for_those_who_ask_or_who_record() {
    let asked = "the rate of each instrument";
    let measured = results(1, vec![writes("one", "1048576 B", 1)], &[Phase::Write], 6);
    let study = studied(&measured);
    assert!(!short(&study).contains(asked));
    assert!(terminal(&study, Detail::Predicted, TextLayout::plain()).contains(asked));
    let both = recorded(results(1, vec![writes("one", "1048576 B", 1)], &[Phase::Write], 6));
    let study = studied(&both);
    let text = short(&study);
    assert!(text.contains("VERDICT for") && !text.contains("hungry"), "only those recorded: {text}");
    let asked = terminal(&study, Detail::Predicted, TextLayout::plain());
    assert!(asked.contains("PREDICTED:") && asked.contains("hungry"), "{asked}");
}
