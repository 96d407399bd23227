//! Records made up from known truths. The sentences about them must be true, and wrong no more often than
//! promised.

use nilometer_model::{
    Invalid, Nanos, NetworkCell, NetworkProtocol, NetworkSample, Phase, RandomStream, Sample, Seed,
    TrafficPattern, Waited,
};
use nilometer_plan::{Key, Measured, Results, TargetEntry};

use nilometer_analysis::{
    LeftFigure, NamedRecord, PairBasis, RecordsCompared, SubjectPair,
    effect::Answer,
    made_up::{network_stage, writes},
};

mod zero;

use crate::{Palette, TextLayout, against_text, compared_html, compared_json, compared_text};

/// Normally distributed, about.
fn noise(stream: &mut RandomStream) -> f64 {
    (0..12).map(|_| stream.unit()).sum::<f64>() - 6.0
}

/// Makes a campaign of `cells` cells on the paths. Each repeat takes a second, with this spread.
struct MadeUp {
    started: &'static str,
    paths: &'static [&'static str],
    cells: u32,
    repeats: u32,
    spread: f64,
    seed: u64,
}

const MONDAY: MadeUp = MadeUp {
    started: "2026-11-23T08:00:00Z",
    paths: &["/data"],
    cells: 4,
    repeats: 6,
    spread: 0.03,
    seed: 1,
};

impl MadeUp {
    /// Makes results with the rate of each cell on each target.
    fn results(&self, rate: impl Fn(usize, usize) -> f64) -> Results {
        let target = |path: &&str| TargetEntry {
            path: (*path).into(),
            file_system: "ext4".into(),
            ..TargetEntry::default()
        };
        let mut stream = Seed(self.seed).stream();
        let mut samples = Vec::new();
        for repeat in 0..self.repeats {
            for cell in 0..self.cells as usize {
                for at in 0..self.paths.len() {
                    let rate = rate(cell, at) * (self.spread * noise(&mut stream)).exp();
                    samples.push(measured(Key { target: at, cell, repeat, phase: Phase::Write }, rate));
                }
            }
        }
        Results {
            started: self.started.into(),
            version: "0.1.0".into(),
            title: "A test".into(),
            margin: 5.0,
            repeats: self.repeats,
            targets: self.paths.iter().map(target).collect(),
            cells: (1..=self.cells).map(|workers| writes("large", "1 MiB", workers)).collect(),
            samples,
            ..Results::default()
        }
    }
}

fn measured(key: Key, rate: f64) -> Measured {
    #[expect(clippy::cast_sign_loss, reason = "rates are positive")]
    let bytes = rate as u64;
    let wall = Nanos::from_millis(1000);
    let sample = Sample {
        bytes,
        operations: bytes >> 20,
        wall,
        machine: Nanos::from_millis(100),
        ..Sample::new(Nanos(0))
    };
    Measured { key, sample }
}

const NAMES: [&str; 9] = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];

pub(super) fn compared(results: &[Results]) -> RecordsCompared<'_> {
    let named = NAMES.iter().zip(results).map(|(name, results)| NamedRecord { name, results });
    RecordsCompared::of(&named.collect::<Vec<_>>())
}

fn pair_of<'a>(compared: &'a RecordsCompared<'_>) -> &'a SubjectPair {
    &compared.stages[0].questions[0].pairs[0]
}

#[test]
fn records_are_compared_cell_by_cell_and_over_all_cells() {
    let before = MONDAY.results(|_, _| 1e9);
    let after = MadeUp { started: "2026-11-24T08:00:00Z", seed: 2, ..MONDAY };
    let after = after.results(|cell, _| if cell == 0 { 0.5e9 } else { 0.8e9 });
    let all = [before, after];
    let compared = compared(&all);
    let pair = pair_of(&compared);
    assert_eq!((pair.basis, pair.first, pair.cells.len()), (PairBasis::Repeats, 0, 4));
    let truth = ((1.0_f64 / 0.5).ln() + 3.0 * (1.0_f64 / 0.8).ln()) / 4.0;
    assert!(pair.effect.low < truth && truth < pair.effect.high, "{pair:?}");
    let text = compared_text(&compared, TextLayout::plain());
    assert!(text.contains("A is 40 % faster than B") || text.contains("A is 41 % faster than B"), "{text}");
    assert!(text.contains("/data 2026-11-23") && text.contains("by Welch's method"), "{text}");
    let against = compared.against(5.0).expect("the same target");
    // Four cells, and their mean.
    assert_eq!((against.worse.len(), against.compared, against.figures), (5, 4, 4), "{against:?}");
    assert!(against_text(&compared, &against).contains("worse: /data 2026-11-24: large, workers 1, write: "));
    let reversed: Vec<Results> = all.iter().rev().cloned().collect();
    let better = self::compared(&reversed);
    let against = better.against(5.0).expect("the same target");
    assert!(against.worse.is_empty(), "{against:?}");
    assert_eq!(
        against_text(&better, &against),
        "nothing got worse by more than 5 %: 4 of 4 figures of a compared\n"
    );
}

#[test]
fn targets_of_one_record_stay_paired() {
    // The drift between rounds is ten times the difference between the targets.
    let both = MadeUp { paths: &["/fast", "/slow"], spread: 0.001, ..MONDAY };
    let mut first = both.results(|_, target| if target == 0 { 1.1e9 } else { 1e9 });
    for measured in &mut first.samples {
        measured.sample.bytes *= u64::from(1 + measured.key.repeat);
    }
    let other = MadeUp { paths: &["/third"], seed: 3, ..MONDAY }.results(|_, _| 1e7);
    let all = [first, other];
    let compared = compared(&all);
    let pair = pair_of(&compared);
    assert_eq!((pair.basis, pair.first, pair.second), (PairBasis::Rounds, 0, 1));
    assert!(pair.effect.answer(5.0) == Answer::Faster && pair.effect.high < 0.1, "{pair:?}");
    let bases: Vec<PairBasis> = compared.stages[0].questions[0].pairs.iter().map(|pair| pair.basis).collect();
    assert_eq!(bases, [PairBasis::Rounds, PairBasis::Repeats, PairBasis::Repeats]);
}

/// The same storage twice: *faster* or *slower* in at most 5 % of comparisons, and a baseline is held as often.
#[test]
fn what_is_alike_is_rarely_called_different() {
    let mut different = [0; 3];
    for seed in 0..200 {
        let first = MadeUp { seed: 1000 + 2 * seed, repeats: 3, spread: 0.1, ..MONDAY }.results(|_, _| 1e9);
        let second = MadeUp { seed: 1001 + 2 * seed, repeats: 3, spread: 0.1, ..MONDAY };
        let all = [first, second.results(|_, _| 1e9)];
        let compared = compared(&all);
        let pair = pair_of(&compared);
        let says = |effect: &nilometer_analysis::effect::Effect| {
            usize::from(matches!(effect.answer(0.0), Answer::Faster | Answer::Slower))
        };
        different[0] += says(&pair.effect);
        different[1] += pair.cells.iter().map(|cell| says(&cell.effect)).sum::<usize>();
        different[2] += usize::from(!compared.against(0.0).expect("the same").worse.is_empty());
    }
    // Limits for 200, 800 and 200 comparisons: 5 % of the first two, 2.5 % of the last, which is one-sided,
    // plus some chance.
    assert!(different[0] <= 18 && different[1] <= 55 && different[2] <= 12, "{different:?}");
    assert!(different[0] > 1 && different[1] > 15, "intervals that never err are too wide: {different:?}");
}

#[test]
fn cells_that_only_some_have_and_what_differs_besides_are_told() {
    let before = MONDAY.results(|_, _| 1e9);
    let mut after =
        MadeUp { cells: 6, seed: 5, started: "2026-11-24T08:00:00Z", ..MONDAY }.results(|_, _| 1e9);
    after.version = "0.2.0".into();
    let all = [before, after];
    let compared = compared(&all);
    let text = compared_text(&compared, TextLayout::plain());
    assert!(text.contains("only B has: workers 5, write; workers 6, write"), "{text}");
    assert!(text.contains("program version: 0.1.0 (A), 0.2.0 (B)"), "{text}");
    assert_eq!(pair_of(&compared).cells.len(), 4);
}

#[test]
fn invalid_samples_count_for_nothing_and_are_named() {
    let before = MONDAY.results(|_, _| 1e9);
    let mut after = MadeUp { seed: 5, started: "2026-11-24T08:00:00Z", ..MONDAY }.results(|_, _| 1e9);
    for measured in after.samples.iter_mut().filter(|measured| measured.key.cell == 0) {
        measured.sample.bytes = 1 << 20;
        measured.sample.invalid = Some(Invalid::WarmRead);
    }
    let all = [before, after];
    let compared = compared(&all);
    assert!(pair_of(&compared).cells.iter().all(|cell| cell.row != 0));
    let against = compared.against(5.0).expect("the same target");
    assert!(against.worse.is_empty(), "{against:?}");
    let left: Vec<String> = against.left.iter().map(LeftFigure::words).collect();
    assert_eq!(left, ["/data 2026-11-24: large, workers 1, write: INVALID now"]);
}

/// Runs of other days, all of whose cells are 5 % faster or slower together.
fn on_days(days: &[f64], now: f64) -> Vec<Results> {
    let run =
        |(number, day): (u64, &f64)| MadeUp { seed: 60 + number, ..MONDAY }.results(|_, _| 1e9 * day.exp());
    (0..).zip(days.iter().chain([&now])).map(run).collect()
}

#[test]
fn several_baselines_count_how_much_days_differ() {
    let days = [0.05, -0.06, 0.04, -0.05, 0.01];
    let slower = on_days(&days, -0.09);
    let last = [slower[0].clone(), slower[5].clone()];
    let one = compared(&last);
    assert!(!one.against(5.0).expect("the same target").worse.is_empty(), "one day shows no other day");
    let several = compared(&slower).with_baselines(5);
    let against = several.against(5.0).expect("the same target");
    assert!(against.worse.is_empty(), "{against:?}");
    let spread = against.spread.expect("five baselines");
    assert!(spread.runs == 5 && spread.seen_least > 10.0 && spread.seen_most < 50.0, "{spread:?}");
    let text = against_text(&several, &against);
    let first = "nothing is shown to have got worse by more than 5 %: 0 of 4 figures of a, b, c, d, e compared, 4 not decided";
    assert!(text.starts_with(first), "{text}");
    assert!(text.contains("the spread between 5 baselines counts: they show a loss of more than "), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&compared_json(&several, Some(&against))).expect("JSON");
    assert_eq!(json["against"]["spread"]["baselines"], 5);
    let fallen = on_days(&days, -0.7);
    let several = compared(&fallen).with_baselines(5);
    let against = several.against(5.0).expect("the same target");
    assert_eq!(against.worse.len(), 5, "{against:?}");
    assert!(against.worse.iter().all(|worse| worse.subject == 5), "no baseline is held against another");
}

#[test]
fn two_baselines_that_differ_show_no_loss_and_say_so() {
    let all = on_days(&[0.05, -0.05], -0.4);
    let two = compared(&all).with_baselines(2);
    let against = two.against(5.0).expect("the same target");
    assert!(against.worse.is_empty(), "{against:?}");
    let text = against_text(&two, &against);
    assert!(text.ends_with("the 2 baselines differ too much, or are too few, to show a loss\n"), "{text}");
}

/// The first two of four cells are INVALID, and did no less than they did.
fn spoilt(mut results: Results) -> Results {
    for measured in results.samples.iter_mut().filter(|measured| measured.key.cell < 2) {
        let waited = Waited { waited: Nanos(3), of: Nanos(9), allowed: Nanos(1), throttled: Nanos(0) };
        measured.sample.invalid = Some(Invalid::Starved(Some(waited)));
    }
    results
}

#[test]
fn what_a_baseline_did_at_the_least_is_enough_to_call_a_figure_worse() {
    let before = spoilt(MONDAY.results(|_, _| 1e9));
    let after = MadeUp { seed: 5, started: "2026-11-24T08:00:00Z", ..MONDAY };
    let after = after.results(|cell, _| if cell == 0 { 0.1e9 } else { 1e9 });
    let all = [before, after];
    let compared = compared(&all);
    let against = compared.against(5.0).expect("the same target");
    assert_eq!((against.figures, against.compared, against.left.len()), (4, 3, 1), "{against:?}");
    let [worse] = against.worse.as_slice() else { panic!("one figure: {against:?}") };
    assert!(
        worse.what == "large, workers 1, write"
            && worse.words.contains(", at least 1.01 GB/s in the baseline"),
        "{worse:?}"
    );
    assert_eq!(against.left[0].why, "only a lower bound in the baseline");
}

#[test]
fn what_is_not_decided_and_what_is_invalid_is_counted_and_not_called_held() {
    let before = spoilt(MONDAY.results(|_, _| 1e9));
    let after = MadeUp { seed: 5, started: "2026-11-24T08:00:00Z", spread: 0.4, ..MONDAY };
    let all = [before, after.results(|_, _| 1e9)];
    let compared = compared(&all);
    let against = compared.against(5.0).expect("the same target");
    assert!(against.worse.is_empty() && against.share() < 0.51, "{against:?}");
    let text = against_text(&compared, &against);
    let first = "nothing is shown to have got worse by more than 5 %: 0 of 4 figures of a compared, 2 not decided (at worst ";
    assert!(
        text.starts_with(first) && text.contains(" %), 2 only a lower bound in the baseline\n"),
        "{text}"
    );
    assert!(text.contains("not decided: /data 2026-11-24: large, workers 3, write: "), "{text}");
    assert!(
        text.contains(
            "not compared: /data 2026-11-24: large, workers 1, write: only a lower bound in the baseline"
        ),
        "{text}"
    );
}

#[test]
fn figures_that_are_not_measured_any_more_are_not_held() {
    let all = [MONDAY.results(|_, _| 1e9), MadeUp { seed: 5, cells: 3, ..MONDAY }.results(|_, _| 1e9)];
    let compared = compared(&all);
    let against = compared.against(5.0).expect("the same target");
    assert_eq!((against.figures, against.compared), (4, 3), "{against:?}");
    assert!(against_text(&compared, &against).contains(", 1 not measured now\n"));
}

/// Six runs of a target, the last three of which are slower by a third.
pub(super) fn history() -> Vec<Results> {
    let days = ["2026-11-20", "2026-11-21", "2026-11-22", "2026-11-23", "2026-11-24", "2026-11-25"];
    let run = |(number, day): (usize, &&'static str)| {
        let mut results = MadeUp { seed: 40 + number as u64, ..MONDAY }
            .results(|_, _| if number < 3 { 1.2e9 } else { 0.8e9 });
        results.started = format!("{day}T03:00:00Z");
        results
    };
    days.iter().enumerate().map(run).collect()
}

#[test]
fn the_step_of_a_history_is_named_whatever_the_order_of_the_records() {
    let mut runs = history();
    runs.swap(0, 4);
    let compared = compared(&runs);
    let history = &compared.histories[0];
    assert_eq!(history.runs, [4, 1, 2, 3, 0, 5], "in time");
    let step = history.sequences[0].steps[0];
    assert_eq!((step.before, step.after, step.is_last), (2, 3, false));
    let truth = (0.8_f64 / 1.2).ln();
    assert!(step.effect.low < truth && truth < step.effect.high && step.p < 0.05, "{step:?}");
    assert_eq!(compared.shown, [4, 5], "the first and the last are compared");
    let text = compared_text(&compared, TextLayout::plain());
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, told) = words.split_once("large, write: STEP, ").unwrap_or_else(|| panic!("{text}"));
    let (change, rest) = told.split_once(" since ").expect("a day");
    assert!(change.contains(" % slower ("), "{change}");
    assert!(rest.starts_with("23 Nov, run D (1.20 to 0.79") && rest.contains(" GB/s); p < 0.001"), "{rest}");
    let page = compared_html(&compared);
    assert!(page.contains("<li class=\"no\">large, write: STEP, ") && page.ends_with("</html>\n"));
    let json: serde_json::Value = serde_json::from_str(&compared_json(&compared, None)).expect("JSON");
    assert_eq!(json["histories"][0]["sequences"][0]["steps"][0]["before"], "C");
    assert_eq!(json["against"], serde_json::Value::Null);
}

#[test]
fn runs_of_one_day_are_drawn_in_their_order() {
    let mut runs = history();
    let page = compared_html(&compared(&runs));
    assert!(page.contains(">day of the run</text>") && page.contains(">22 Nov</text>"), "{page}");
    for (hour, run) in (10..).zip(&mut runs) {
        run.started = format!("2026-11-22T{hour}:00:00Z");
    }
    let page = compared_html(&compared(&runs));
    assert!(page.contains(">runs in the order of time</text>"), "{page}");
    let mark = |rest: &str| rest.split(['M', ' ']).nth(1).map(str::to_owned);
    let marks = page.split("<path class=\"m\" d=\"").skip(1).filter(|rest| rest.contains("<title>/data"));
    let places: std::collections::BTreeSet<String> = marks.filter_map(mark).collect();
    assert!(places.len() >= runs.len(), "no run may hide another: {places:?}");
}

#[test]
fn noise_makes_no_step() {
    let run = |number: u64| MadeUp { seed: 90 + number, ..MONDAY }.results(|_, _| 1e9);
    let mut runs: Vec<Results> = (0..8).map(run).collect();
    for (day, run) in (10..).zip(&mut runs) {
        run.started = format!("2026-11-{day}T03:00:00Z");
    }
    let compared = compared(&runs);
    assert!(compared.histories[0].sequences[0].steps.is_empty());
    let text = compared_text(&compared, TextLayout::plain());
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = "large, write: no step and no trend above 5 % that noise does not explain";
    assert!(words.contains(said), "{text}");
}

#[test]
fn the_text_fits_every_terminal_and_the_page_escapes_names() {
    let mut runs = history();
    runs[1].targets[0].path =
        "/a <b>/with a very long path that goes on and on, as paths below a mount of a project do".into();
    let compared = compared(&runs);
    for columns in 60..=100 {
        let text = compared_text(&compared, TextLayout::new(Palette::Plain, columns));
        for line in text.lines() {
            assert!(line.chars().count() <= columns, "{columns}: {line}");
        }
    }
    let page = compared_html(&compared);
    assert!(page.contains("/a &lt;b&gt;/with") && !page.contains("<b>/with"));
}

/// Makes a campaign with a network that carries `carries` bytes a second each way, except for `back` one way.
pub(super) fn with_network(seed: u64, started: &'static str, carries: u64, back: u64) -> Results {
    let mut results = MadeUp { started, seed, ..MONDAY }.results(|_, _| 1e9);
    let mut stage = network_stage(carries);
    let mut stream = Seed(seed).stream();
    for sample in &mut stage.results.samples {
        let rate = if sample.cell == 0 { carries } else { back };
        let seconds = 1.0 + 0.002 * noise(&mut stream);
        sample.flows[0].received.last = Nanos::from_seconds(seconds);
        sample.flows[0].received.bytes = rate;
    }
    results.network = vec![stage];
    results
}

const TUESDAY: &str = "2026-11-24T08:00:00Z";

#[test]
fn the_network_of_the_same_machines_is_compared_way_by_way() {
    let before = with_network(1, MONDAY.started, 1_000_000_000, 1_000_000_000);
    let after = with_network(2, TUESDAY, 1_000_000_000, 500_000_000);
    let all = [before, after];
    let compared = compared(&all);
    let network = &compared.networks[0];
    let words: Vec<&str> = network.rows.iter().map(|row| row.words.as_str()).collect();
    assert_eq!(words, ["node1 to node2, TCP, one flow", "node2 to node1, TCP, one flow"]);
    let pair = &network.pairs[0];
    assert_eq!((pair.first, pair.second, pair.basis), (0, 1, PairBasis::Repeats));
    let answers: Vec<Answer> = pair.cells.iter().map(|cell| cell.effect.answer(5.0)).collect();
    assert_eq!(answers, [Answer::Alike, Answer::Faster], "{pair:?}");
    let text = compared_text(&compared, TextLayout::plain());
    assert!(text.contains("BETWEEN: THE NETWORK BETWEEN MACHINES"), "{text}");
    let row = text.lines().find(|line| line.contains("node2 to node1")).expect("a row");
    assert!(row.contains("8 Gbit/s ±") && row.contains("4 Gbit/s ±") && row.ends_with(" % slower"), "{row}");
    let page = compared_html(&compared);
    assert!(page.contains("<h2>between: the network between machines</h2>"), "{page}");
    assert!(page.contains("<th scope=\"row\">node2 to node1, TCP, one flow</th>"));
    let json: serde_json::Value = serde_json::from_str(&compared_json(&compared, None)).expect("JSON");
    let told = &json["networks"][0];
    assert_eq!(
        (&told["stage"], &told["pairs"][0]["cells"][1]["answer"]),
        (&"between".into(), &"faster".into())
    );
    let mean = told["cells"][1]["figures"]["B"]["rate"]["mean"].as_f64().expect("measured");
    assert!((mean / 5e8 - 1.0).abs() < 0.01, "{mean}");
}

#[test]
fn a_network_that_carries_less_than_the_baseline_is_worse_and_one_without_is_told() {
    let before = with_network(1, MONDAY.started, 1_000_000_000, 1_000_000_000);
    let slower = with_network(2, TUESDAY, 1_000_000_000, 500_000_000);
    let all = [before.clone(), slower];
    let compared_with = compared(&all);
    let against = compared_with.against(5.0).expect("the same target");
    let worse: Vec<&str> = against.worse.iter().map(|worse| worse.what.as_str()).collect();
    assert_eq!(worse, ["between, network over 2 cells", "between, node2 to node1, TCP, one flow"]);
    assert!(against.worse[1].words.ends_with("4 Gbit/s, 8 Gbit/s in the baseline"), "{against:?}");
    let mut without = with_network(3, TUESDAY, 1_000_000_000, 1_000_000_000);
    let samples = &mut without.network[0].results.samples;
    samples.iter_mut().filter(|sample| sample.cell == 1).for_each(|sample| {
        sample.flows[0].received.failed = Some("no route to host".into());
    });
    let of_baseline =
        [without.clone(), with_network(4, "2026-11-25T08:00:00Z", 1_000_000_000, 1_000_000_000)];
    let all = [before, without];
    let compared_with = compared(&all);
    let against = compared_with.against(5.0).expect("the same target");
    assert!(against.worse.is_empty(), "{against:?}");
    let left: Vec<String> = against.left.iter().map(LeftFigure::words).collect();
    assert_eq!(left, ["/data 2026-11-24: between, node2 to node1, TCP, one flow: FAILED now"]);
    let failed_before = compared(&of_baseline);
    let against = failed_before.against(5.0).expect("the same target");
    let why: Vec<&str> = against.left.iter().map(|left| left.why).collect();
    assert_eq!(why, ["FAILED in the baseline"]);
    let text = compared_text(&compared_with, TextLayout::plain());
    assert!(text.contains("B FAILED: no route to host"), "{text}");
}

#[test]
fn machines_are_the_same_by_their_names_and_a_search_is_shown_and_decides_nothing() {
    let before = with_network(1, MONDAY.started, 1_000_000_000, 1_000_000_000);
    let mut after = with_network(2, TUESDAY, 1_000_000_000, 500_000_000);
    // The other machine has the first rank now.
    let stage = &mut after.network[0].results;
    stage.machines.reverse();
    let cell = NetworkCell { protocol: NetworkProtocol::Udp, ..stage.cells[0] };
    let flow = stage.samples[0].flows[0].clone();
    let all_to_all = NetworkCell { pattern: TrafficPattern::AllToAll, ..stage.cells[0] };
    stage.cells.extend([cell, all_to_all]);
    stage.samples.push(NetworkSample {
        cell: 2,
        repeat: 0,
        asked: Some(900_000_000),
        flows: vec![flow],
        intervals: Vec::new(),
    });
    let all = [before, after];
    let compared = compared(&all);
    let network = &compared.networks[0];
    assert_eq!(network.rows[1].words, "node2 to node1, TCP, one flow");
    let answers: Vec<Answer> = network.pairs[0].cells.iter().map(|of| of.effect.answer(5.0)).collect();
    assert_eq!(answers, [Answer::Faster, Answer::Alike], "what was there and back is the other way round");
    let only: Vec<&String> = network.lone.iter().flat_map(|lone| &lone.cells).collect();
    assert_eq!(only, ["node2 to node1, UDP without loss", "all to all, TCP, one flow"]);
    let text = compared_text(&compared, TextLayout::plain());
    let row = text.lines().find(|line| line.contains("UDP without loss")).expect("a row");
    assert!(row.trim_end().ends_with("8 Gbit/s"), "{row}");
}
