//! Every report on every kind of results: none panics, none lets a name become markup, none breaks its own form.

use nilometer_model::{
    Coldness, Histogram, Instrument, Invalid, Nanos, Phase, RandomStream, Sample, Seed, Series, Waited,
    WorkerTotals,
};
use nilometer_plan::{Cell, Key, Measured, Results, TargetEntry};

mod accepted;
mod accessible;
mod colours;
mod compared;
mod compared_recordings;
mod compared_roles;
mod documents;
mod histories;
mod malformed;
mod metrics;
mod missing;
mod observed;
mod recorded;
mod short;
mod zoo;

use super::{Detail, Palette, TextLayout, csv, figures_csv, html, json, markdown, terminal};
use malformed::malformed;
use nilometer_analysis::{
    Study,
    made_up::{LinkedElements, described, planned, writes},
};
use recorded::recorded;
use zoo::zoo;

const SECOND: u64 = 1_000_000_000;
/// A name that is markup in every format.
const WICKED: &str = "/data/<script>alert(1)</script>&\"'|`*_\u{1b}[31m/ünïcode/数据";

fn target(path: &str) -> TargetEntry {
    let description = Some(described(path));
    TargetEntry { path: path.into(), file_system: "xfs".into(), description, left_out: None }
}

/// Makes an instrument with a wicked name, and one with this many MB/s.
fn catalogue() -> Vec<Instrument> {
    let camera = |name: &str, megabytes: u32| {
        let text = format!(
            "name = \"c\"\ntitle = \"t\"\nsource = \"s\"\nshape = [1000, 1000]\npixel = \"uint8\"\n\
             frame_rate = \"{megabytes} Hz\"\n"
        );
        Instrument { name: name.into(), ..Instrument::parse(&text, "c").expect("valid") }
    };
    vec![camera(WICKED, 200), camera("hungry", 900_000)]
}

/// Studies the results as a report does.
fn studied(results: &Results) -> Study<'_> {
    Study::of(results).with_catalogue(&catalogue())
}

fn sample(stream: &mut RandomStream, rate: f64, operations: u64) -> Sample {
    let wall = Nanos::from_seconds(1.0 + 0.1 * stream.unit());
    let worker = |last| WorkerTotals { last_done: Nanos(last), ..WorkerTotals::default() };
    let mut series = Series::new(Nanos(0));
    (0..1000).for_each(|at| series.add(Nanos(at * 1_000_000), 1_000_000));
    let bytes = Nanos::from_seconds(rate).0 / SECOND;
    Sample {
        bytes,
        operations,
        wall,
        user: Nanos(SECOND / 5),
        machine: Nanos(SECOND / 2),
        series,
        workers: vec![worker(SECOND / 2), worker(SECOND)],
        coldness: Some(Coldness::Proved),
        ..Sample::new(Nanos(0))
    }
}

fn latencies(results: &mut Results) {
    let mut histogram = Histogram::default();
    (1..2000_u64).for_each(|number| histogram.add(number * number));
    for group in results.samples.iter().map(|measured| measured.key.group()) {
        results.latencies.insert(group, histogram.clone());
    }
}

/// Every cell in every phase on every target; each target is 30 % slower than the one before.
fn results(targets: usize, cells: Vec<Cell>, phases: &[Phase], repeats: u32) -> Results {
    let mut stream = Seed(1).stream();
    let mut samples = Vec::new();
    for repeat in 0..repeats {
        for cell in 0..cells.len() {
            for target in 0..targets {
                for &phase in phases {
                    let rate = 1e9 / 1.3_f64.powf(target as f64) * (1.0 + cell as f64);
                    let key = Key { target, cell, repeat, phase };
                    samples.push(Measured { key, sample: sample(&mut stream, rate, 1000) });
                }
            }
        }
    }
    let paths = (0..targets).map(|index| target(&format!("{WICKED}/{index}")));
    let mut results = Results {
        title: format!("A test of {WICKED}"),
        version: "0.1.0".into(),
        started: "2026-11-22T01:00:00Z".into(),
        campaign: Some(planned(cells.clone(), repeats)),
        margin: 5.0,
        repeats,
        targets: paths.collect(),
        cells,
        samples,
        environment: vec![("host".into(), WICKED.into()), ("command".into(), "nilometer evaluate".into())],
        ..Results::default()
    };
    latencies(&mut results);
    results
}

#[test]
fn pages_are_well_formed_and_need_nothing_from_elsewhere() {
    for specimen in zoo() {
        let name = specimen.name;
        let page = html(&specimen.study());
        assert_eq!(malformed(&page), None, "{name}");
        assert!(!page.contains("<script>alert") && !page.contains('\u{1b}'), "{name}");
        let foreign = page.replace("http://www.w3.org/2000/svg", "");
        for part in ["http:", "https:", "//", "url(", "@import", "src=", "<link", "<img", "NaN", "inf"] {
            let found =
                foreign.find(part).map(|at| foreign[at.saturating_sub(40)..].chars().take(90).collect());
            // A path of the test itself may hold two slashes.
            assert_eq!(found, None::<String>, "{name}: {part}");
        }
        assert!(page.len() < 3_000_000, "{name}: {} bytes", page.len());
    }
}

#[test]
fn a_page_says_what_was_found() {
    let results = recorded(results(2, vec![writes("one", "1048576 B", 1)], &[Phase::Write, Phase::Read], 6));
    let page = html(&studied(&results));
    for part in [
        "A is 30 % faster than B",
        "✗ No",
        "does not carry it",
        "delay from due until readable, durable or read",
        "percentile: % of frames with at most this delay",
        ">time since the start, s</text>",
        ">stalls</text>",
        "The seed of all random decisions was 77",
        "write: latency",
        "read: over time",
        "500 ms, 1 s",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
}

#[test]
fn the_terminal_is_never_wider_than_it_is_and_never_commanded() {
    for specimen in zoo() {
        let name = specimen.name;
        let study = specimen.study();
        for width in [60, 72, 80, 100] {
            let text = terminal(&study, Detail::Full, TextLayout::new(Palette::Plain, width));
            let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > width).collect();
            assert_eq!(wide, [""; 0], "{name} in {width} columns");
        }
        let text = terminal(&study, Detail::Full, TextLayout::plain());
        assert!(text.chars().all(|letter| letter == '\n' || !letter.is_control()), "{name}: {text:?}");
        assert!(text.lines().all(|line| line.trim_end() == line), "{name}: blanks at a line's end");
    }
}

#[test]
fn every_report_says_where_more_elements_add_nothing() {
    let mut elements = LinkedElements::alike(4, 1e8, 2.5e8);
    elements.rates[1] = 3e7;
    let odd = elements.results();
    let results = LinkedElements::alike(4, 1e8, 2.5e8).results();
    let study = studied(&results);
    let plain = TextLayout::plain();
    let knee = "the knee is at 3: 3 at once do 2";
    for (text, odd) in [
        (terminal(&study, Detail::Full, plain), terminal(&studied(&odd), Detail::Full, plain)),
        (html(&study), html(&studied(&odd))),
        (markdown(&study, Detail::Full), markdown(&studied(&odd), Detail::Full)),
        (json(&study), json(&studied(&odd))),
    ] {
        assert!(text.contains(knee), "{text}");
        let odd = odd.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(odd.contains("B is the odd one: the median of the others is 3."), "{odd}");
    }
    let page = html(&study);
    for part in [">knee</text>", ">elements at once</text>", ">sum</text>", "more than 3 at once add nothing"]
    {
        assert!(page.contains(part), "{part}");
    }
    let document: serde_json::Value = serde_json::from_str(&json(&study)).expect("JSON");
    let growth = &document["elements"][0];
    assert_eq!((&growth["knee"], &growth["knee_is_decided"]), (&3.into(), &true.into()));
    assert_eq!(growth["counts"][2]["targets"], serde_json::json!(["A", "B", "C"]));
    // Sentences about several cells at once are about all of them, and never about the ceiling of a single one.
    assert!(document["figures"].as_array().expect("figures").iter().all(|figure| {
        let alone = figure["parameters"]["volumes"] == "alone";
        figure["bytes_per_second_ceiling"].is_null() != alone
    }));
}

#[test]
fn the_terminal_ends_with_the_answers() {
    let results = recorded(results(2, vec![writes("one", "1048576 B", 1)], &[Phase::Write], 6));
    let text = terminal(&studied(&results), Detail::Full, TextLayout::plain());
    let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} is missing in: {text}"));
    assert!(place("\nONE\n") < place("COMPARED") && place("COMPARED") < place("VERDICT for"));
    assert!(text.contains("  one  write  A is 28 % faster than B (") && text.contains(" MB/s  ±"), "{text}");
}

#[test]
fn every_report_for_people_says_what_is_predicted_and_that_it_is() {
    let results = results(2, vec![writes("one", "1048576 B", 1)], &[Phase::Write], 6);
    let study = studied(&results);
    let table = "PREDICTED: storage rate as a multiple of the rate of each instrument";
    let text = terminal(&study, Detail::Full, TextLayout::plain());
    let (_, end) = text.split_once(table).unwrap_or_else(|| panic!("{text}"));
    assert!(end.contains("hungry") && end.contains("900 GB/s") && end.contains("no: 0.00 x"), "{end}");
    let words: Vec<&str> = end.split_whitespace().collect();
    let words = words.join(" ");
    let (_, short) =
        words.split_once("write --for NAME to record an instrument. IN SHORT ").expect("the end");
    assert!(
        short.contains("(xfs): 940 MB/s is the highest write rate measured, one (±3 %, 6 of 6 repeats)"),
        "{short}"
    );
    assert!(short.contains(", 200 MB/s, 4.6 times - Predicted from 911 MB/s written"), "{short}");
    for text in [end.to_owned(), html(&study), markdown(&study, Detail::Full)] {
        let text = text.replace(['\n', '\\'], " ").replace("   ", " ");
        for part in ["Predicted, not recorded", "written (one, ", "A prediction ignores stalls", "no: 0.00 x"]
        {
            assert!(text.contains(part), "{part} is missing in: {text}");
        }
    }
    let coloured = terminal(&study, Detail::Full, TextLayout::new(Palette::Coloured, 100));
    assert!(coloured.contains("\u{1b}[1;31m    no: 0.00 x"), "what is not carried is seen: {coloured}");
    let document: serde_json::Value = serde_json::from_str(&json(&study)).expect("JSON");
    let hungry = &document["instruments"][2];
    assert_eq!([&hungry["instrument"], &hungry["target"], &hungry["basis"]], ["hungry", "A", "predicted"]);
    assert_eq!((&hungry["carried"], &hungry["limit"]["stage"]), (&false.into(), &"one".into()));
    assert!(hungry["margin"].as_f64().is_some_and(|margin| margin > 0.0 && margin < 0.01), "{hungry}");
}

#[test]
fn the_table_tells_what_was_recorded_from_what_is_predicted() {
    let results = recorded(results(2, vec![writes("one", "1048576 B", 1)], &[Phase::Write], 6));
    let study = studied(&results);
    let text = terminal(&study, Detail::Full, TextLayout::plain());
    let (table, verdict) = text.split_once("VERDICT for").expect("verdicts come last");
    let (recorded, predicted) = table.split_once("PREDICTED:").expect("the other instruments");
    assert!(recorded.contains("RECORDED:") && recorded.contains("no: 2.0 x"), "{table}");
    assert!(!recorded.contains("hungry") && predicted.contains("hungry"), "{table}");
    assert!(!verdict.contains("PREDICTED"), "{verdict}");
    let page = html(&study);
    let places = ["<h1>Can ", "class=\"answer no\"", "Verdict for", "<h2>Recorded:", "<h2>Predicted:"];
    let places = places.map(|part| page.find(part).expect(part));
    assert!(places.is_sorted(), "the question and its answer open the page: {places:?}");
    assert_eq!(page.matches("<span class=\"toned no\">no: 2.0 x</span>").count(), 1);
    let text = markdown(&study, Detail::Full);
    assert!(text.contains("| **no: 2.0 x** | – |"), "{text}");
    assert!(text.find("## Verdict for") < text.find("## Recorded:"), "the answer first: {text}");
}

#[test]
fn without_anything_to_predict_from_only_those_who_ask_get_the_reason() {
    let results = results(1, vec![writes("one", "1048576 B", 1)], &[Phase::Read], 6);
    let study = studied(&results);
    let asked = terminal(&study, Detail::Predicted, TextLayout::plain());
    assert!(asked.contains("– not predicted: on A all 2: no sequential write was measured."), "{asked}");
    assert!(!asked.contains("hungry"), "a table of dashes says nothing: {asked}");
    assert!(!asked.contains("assumed"), "no rate is shown: {asked}");
    let others =
        [terminal(&study, Detail::Full, TextLayout::plain()), html(&study), markdown(&study, Detail::Full)];
    for text in others {
        assert!(!text.to_lowercase().contains("not predicted"), "nobody measured a limit: {text}");
    }
    let document: serde_json::Value = serde_json::from_str(&json(&study)).expect("JSON");
    let hungry = &document["instruments"][1];
    assert_eq!([&hungry["instrument"], &hungry["basis"]], ["hungry", "none"]);
    assert_eq!(hungry["why_not"], "no sequential write was measured");
}

#[test]
fn what_is_assumed_and_what_is_not_in_it_is_marked_and_explained() {
    let results = results(1, vec![writes("one", "1048576 B", 1)], &[Phase::Write], 6);
    let files = ["pilatus-6m", "eiger2-16m"].map(|name| {
        let path = format!("{}/../../instruments/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        Instrument::parse(&std::fs::read_to_string(&path).expect("a file"), name).expect("valid")
    });
    let study = Study::of(&results).with_catalogue(&files);
    for text in
        [terminal(&study, Detail::Full, TextLayout::plain()), html(&study), markdown(&study, Detail::Full)]
    {
        let text = text.replace('\\', "").split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "~507 MB/s",
            "~ depends on assumed values: pixel, frame rate, data of eiger2-16m.",
            "– not predicted: on A pilatus-6m: no rate of making files was measured.",
        ] {
            assert!(text.contains(part), "{part} is missing in: {text}");
        }
    }
}

#[test]
fn invalid_repeats_are_named_in_every_report_for_people() {
    let mut results = results(1, vec![writes("one", "1048576 B", 1)], &[Phase::Read], 3);
    results.samples[0].sample.invalid = Some(Invalid::WarmRead);
    let study = studied(&results);
    for text in
        [terminal(&study, Detail::Full, TextLayout::plain()), html(&study), markdown(&study, Detail::Full)]
    {
        assert!(text.contains("INVALID in 1 of 3 repeats: the read came from the page cache"), "{text}");
    }
}

/// A lower bound on a missing figure is above zero.
#[test]
fn where_the_tool_waited_in_every_repeat_a_lower_bound_is_given() {
    let mut results = results(1, vec![writes("one", "1048576 B", 1)], &[Phase::Write], 3);
    for (measured, millis) in results.samples.iter_mut().zip([300, 700, 400]) {
        let [waited, of, allowed] = [millis, 1000, 200].map(Nanos::from_millis);
        let sample = &mut measured.sample;
        (sample.bytes, sample.wall) = (412_000_000, Nanos(SECOND));
        sample.invalid = Some(Invalid::Starved(Some(Waited { waited, of, allowed, throttled: Nanos(0) })));
    }
    let study = studied(&results);
    let why = "INVALID in 3 of 3 repeats: the tool itself waited for a processor: at worst 700 ms of 1 s, allowed 200 ms";
    for text in
        [terminal(&study, Detail::Full, TextLayout::plain()), html(&study), markdown(&study, Detail::Full)]
    {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("at least 412 MB/s") && text.contains(why), "{text}");
    }
    let document: serde_json::Value = serde_json::from_str(&json(&study)).expect("JSON");
    let figure = &document["figures"][0];
    assert_eq!(figure["bytes_per_second_at_least"], 412e6);
    assert_eq!(
        (&figure["invalid"][0]["code"], &figure["invalid"][0]["repeats"]),
        (&"starved".into(), &3.into())
    );
    assert!(figure["bytes_per_second"].is_null(), "a bound is no figure");
    results.samples[0].sample.invalid = None;
    let text = terminal(&studied(&results), Detail::Full, TextLayout::plain());
    assert!(!text.contains("at least"), "a valid repeat says more: {text}");
}

#[test]
fn a_copy_shows_where_its_time_went() {
    let mut results = results(1, vec![writes("one", "1048576 B", 1)], &[Phase::Source, Phase::Write], 2);
    for measured in results.samples.iter_mut().filter(|measured| measured.key.phase == Phase::Write) {
        let Sample { wall, user, system, .. } = &mut measured.sample;
        [*wall, *user, *system] = [8000, 1100, 2300].map(Nanos::from_millis);
        measured.sample.workers.truncate(1);
    }
    let study = studied(&results);
    for (text, row) in [
        (terminal(&study, Detail::Full, TextLayout::plain()), " A 8 s 1.1 s 2.3 s 4.6 s"),
        (markdown(&study, Detail::Full), " | 8 s | 1.1 s | 2.3 s | 4.6 s |"),
        (html(&study), "<td class=\"f\">8 s</td><td class=\"f\">1.1 s</td><td class=\"f\">2.3 s</td>"),
    ] {
        let spaced = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(spaced.contains(row), "{text}");
    }
    let document: serde_json::Value = serde_json::from_str(&json(&study)).expect("JSON");
    let fields =
        ["real_s", "user_s", "system_s", "wait_s"].map(|field| document["figures"][1][field].as_f64());
    let off =
        fields.iter().zip([8.0, 1.1, 2.3, 4.6]).map(|(field, time)| field.map(|field| (field - time).abs()));
    assert!(off.clone().all(|off| off.is_some_and(|off| off < 1e-9)), "{fields:?}");
    results.samples.retain(|measured| measured.key.phase == Phase::Write);
    let text = terminal(&studied(&results), Detail::Short, TextLayout::plain());
    assert!(!text.contains("  TIME"), "only where data are copied: {text}");
}

#[test]
fn the_terminal_gives_a_reason_once() {
    let mut results = results(2, vec![writes("one", "1048576 B", 1)], &[Phase::Read, Phase::Write], 3);
    results.samples.iter_mut().for_each(|m| m.sample.invalid = Some(Invalid::WarmRead));
    let text = terminal(&studied(&results), Detail::Full, TextLayout::plain());
    let stage = text.split("KEEP IN MIND").next().unwrap_or_default();
    let count = |part: &str| stage.matches(part).count();
    let counts = [count("the read came from the page cache"), count("INVALID in 3 of 3 repeats: as above")];
    assert_eq!(counts, [1, 3], "{text}");
}

#[test]
fn json_is_json_and_csv_is_a_table() {
    for specimen in zoo() {
        let name = specimen.name;
        let results = &specimen.results;
        let study = specimen.study();
        let document: serde_json::Value = serde_json::from_str(&json(&study)).expect("JSON");
        let count = |field: &str| document[field].as_array().map_or(0, Vec::len);
        let outcomes: usize = study.stages.iter().map(|stage| stage.figures.outcomes.len()).sum();
        assert_eq!((count("figures"), document["format_version"].as_u64()), (outcomes, Some(2)), "{name}");
        let trials: usize = results.network.iter().map(|stage| stage.results.samples.len()).sum();
        let both = [csv(&study), figures_csv(&study)].concat().replace("\r\n", "");
        assert!(!both.contains(char::is_control), "{name}: {both:?}");
        assert_eq!(csv(&study).matches("\r\n").count(), results.samples.len() + trials + 1, "{name}");
        let figures = figures_csv(&study);
        let patterns: usize = results.network.iter().map(|stage| stage.results.cells.len()).sum();
        assert_eq!(figures.matches("\r\n").count(), outcomes + patterns + 1, "{name}");
        let rows = markdown(&study, Detail::Full).lines().filter(|line| line.starts_with('|')).count();
        assert!(rows >= outcomes && !markdown(&study, Detail::Full).contains("<script"), "{name}");
    }
}

#[test]
fn json_says_what_is_faster() {
    let results = results(2, vec![writes("one", "1048576 B", 1)], &[Phase::Write], 6);
    let document: serde_json::Value = serde_json::from_str(&json(&studied(&results))).expect("JSON");
    let pair = &document["comparisons"][0];
    let fields = [&pair["first"], &pair["second"], &pair["answer"], &pair["phase"]];
    assert_eq!(fields.map(|field| field.as_str().expect("a word")), ["A", "B", "faster", "write"]);
    let (low, high) = (pair["low"].as_f64().expect("bounded"), pair["high"].as_f64().expect("bounded"));
    assert!(low < 1.3 && 1.3 < high && low > 1.2 && high < 1.4, "{pair}");
    assert_eq!(document["figures"][0]["parameters"]["block_size_bytes"], 1 << 20);
}
