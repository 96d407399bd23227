//! The page of an instrument's recordings.

use nilometer_model::{
    Bytes, Goal, Histogram, Ingest, Invalid, Levels, Nanos, Phase, ReaderTotals, Seed, Series, Stall,
};
use nilometer_plan::{Cell, Key, Measured, Results};

use nilometer_analysis::made_up::camera;

use super::{
    super::{TextLayout, html, markdown, terminal, why_markdown},
    Detail, SECOND, WICKED, results, sample, studied,
};

/// A recording with all that a record can hold of one.
fn ingest(goal: Goal, readers: usize, company: &str) -> Ingest {
    let late = |nanos: u64| {
        let mut histogram = Histogram::default();
        (1..500_u64).for_each(|number| histogram.add(number * nanos));
        histogram
    };
    let mut levels = Levels::new(Nanos(0));
    // The trials of searches fill the ring from their beginning to their end.
    let in_use = |at: u64| if goal.searches() { at / 20 } else { at % 50 };
    (0..1000).for_each(|at| levels.set(Nanos::from_millis(at), in_use(at)));
    if goal == Goal::Pace {
        levels.lose(Nanos::from_millis(700), 50);
    }
    let reader =
        ReaderTotals { frames: 499, bytes: 499_000_000, wall: Nanos(SECOND), ..ReaderTotals::default() };
    Ingest {
        goal,
        count: 1,
        frame_size: Bytes(1_000_000),
        period: Nanos::from_millis(2),
        due: 500,
        stored: 499,
        lost: u64::from(goal == Goal::Pace),
        slots: 50,
        slots_high: 30,
        longest_stall: Nanos::from_millis(30),
        late: 7,
        stalls: vec![Stall { at: Nanos::from_millis(600), length: Nanos::from_millis(30) }],
        stall_count: 1,
        stalled: Nanos::from_millis(30),
        slowest_second: Some(Bytes(321_000_000)),
        durable: late(30_000),
        readable: late(20_000),
        read: if readers > 0 { late(90_000) } else { Histogram::default() },
        levels,
        company: company.into(),
        readers: vec![reader; readers],
        ..Ingest::default()
    }
}

/// Adds recordings as fast as it goes and at its pace: by themselves, with readers, in company, and trials.
pub(super) fn recorded(mut results: Results) -> Results {
    let alone = [(Goal::Limit, 0, ""), (Goal::Limit, 0, ""), (Goal::Pace, 0, "")];
    let others = [(Goal::Limit, 2, ""), (Goal::Pace, 2, ""), (Goal::Pace, 0, WICKED)];
    let trials = [(Goal::Search, 0, ""), (Goal::Search, 0, ""), (Goal::Buffer, 0, "")];
    for (repeat, (goal, readers, company)) in (0..).zip(alone.into_iter().chain(others).chain(trials)) {
        let mut sample = sample(&mut Seed(u64::from(repeat)).stream(), 5e8, 500);
        (1..500_u64).for_each(|number| sample.lateness.add(number * 10_000));
        sample.ingest = Some(ingest(goal, readers, company));
        sample.invalid = (repeat == 7).then_some(Invalid::Starved(None));
        let key = Key { target: 0, cell: results.cells.len(), repeat, phase: Phase::Ingest };
        results.samples.push(Measured { key, sample });
    }
    results.cells.push(Cell::recording(WICKED, camera(WICKED)));
    results
}

/// A section of a page: the text between two headings, from the first one that begins this way.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let at = page.find(&format!("<h3>{heading}")).unwrap_or_else(|| panic!("{heading} is missing"));
    let rest = &page[at + 4..];
    &rest[..rest.find("<h3>").unwrap_or(rest.len())]
}

#[test]
fn a_recording_is_shown_by_itself_beside_readers_and_in_company() {
    let results = recorded(results(1, Vec::new(), &[], 0));
    let page = html(&studied(&results));
    for heading in [
        "At the instrument&#39;s rate, by itself",
        "At the instrument&#39;s rate, beside 2 readers",
        "At the instrument&#39;s rate, together with",
    ] {
        let part = section(&page, heading);
        for shown in [
            "rate over time",
            "buffer in use over time",
            "class=\"stall\"",
            "a stall of 30 ms after 600 ms",
            "1 frame lost after",
            ">durable<",
        ] {
            assert!(part.contains(shown), "{heading}: {shown} is missing in {part}");
        }
        assert!(part.contains("The simulated source itself was late"), "{heading}");
        assert_eq!(part.contains(">read<"), heading.contains("2 readers"), "{heading}");
    }
    let limits = section(&page, "Full speed");
    assert!(limits.contains("read together, ") && limits.contains("beside 2 readers: "), "{limits}");
    assert!(limits.contains("Drawn: of each target, the slowest pass: A pass "), "{limits}");
    let trials = section(&page, "Search for the highest rate");
    assert_eq!(
        ["trial 1 at", ": lost frames", ": invalid"].map(|part| trials.matches(part).count()),
        [1, 1, 1]
    );
    let table = section(&page, "All recordings");
    let names = table.matches("<th scope=\"row\" class=\"one\">A</th>").count();
    assert_eq!(names, 6 + 3, "recordings and trials");
    assert!(
        page.contains("<div class=\"screen\"><h3>All recordings</h3>"),
        "on paper it would be many sheets"
    );
    assert!(!page.contains("id=\"numbers\""), "no stage, no table of its numbers");
    for cell in [
        ">7<",
        ">321 MB/s<",
        ">1 of 2<",
        ">2 of 2<",
        "together with the others (",
        "3 trials of searches",
        "lost: the ring was still filling",
        "invalid: the tool",
    ] {
        assert!(table.contains(cell), "{cell} is missing in {table}");
    }
}

#[test]
fn the_stage_that_a_recording_is_of_is_said_where_its_user_named_it() {
    let mut results = recorded(results(1, Vec::new(), &[], 0));
    let told = |results: &Results| {
        let study = studied(results);
        [html(&study), markdown(&study, Detail::Full), terminal(&study, Detail::Full, TextLayout::plain())]
            .map(|text| text.contains("my stage"))
    };
    assert_eq!(told(&results), [false; 3], "it is called by the instrument");
    for cell in &mut results.cells {
        cell.stage = "my stage".into();
    }
    assert_eq!(told(&results), [true; 3]);
}

#[test]
fn what_has_nothing_to_say_is_not_drawn() {
    let mut results = recorded(results(1, Vec::new(), &[], 0));
    results.samples.retain(|measured| {
        let ingest = measured.sample.ingest.as_ref().expect("a recording");
        !ingest.goal.searches() && ingest.readers.is_empty()
    });
    for measured in &mut results.samples {
        let ingest = measured.sample.ingest.as_mut().expect("a recording");
        (ingest.levels, ingest.stalls, ingest.durable) = Default::default();
        measured.sample.series = Series::new(Nanos(0));
        (0..5).for_each(|bin| measured.sample.series.add(Nanos(bin << 20), 1000));
    }
    let page = html(&studied(&results));
    for part in [
        "buffer in use over time",
        "rate over time",
        ">durable<",
        "Search for",
        "read together",
        "a stall of",
        "trials",
    ] {
        assert!(!page.contains(part), "{part} says nothing");
    }
    assert!(page.contains("from due until") && page.contains("All recordings"));
}

#[test]
fn a_recording_that_must_not_be_used_says_so_in_the_first_column() {
    let mut results = recorded(results(1, Vec::new(), &[], 0));
    for measured in results.samples.iter_mut().take(2) {
        measured.sample.invalid = Some(Invalid::Starved(None));
    }
    let page = html(&studied(&results));
    let table = section(&page, "All recordings");
    let rows: Vec<&str> = table.split("<tr>").filter(|row| row.contains(">full speed<")).collect();
    let marked =
        rows.iter().filter(|row| row.starts_with("<td><span class=\"toned no\">INVALID</span></td>"));
    assert_eq!((marked.count(), rows.len()), (2, 3), "{table}");
    assert_eq!(
        table.matches("<li class=\"no\">A: INVALID: the tool").count(),
        1,
        "each reason once: {table}"
    );
}

/// The texts under the pointer in a part of a page.
fn tooltips(part: &str) -> Vec<String> {
    let after = part.split(" title=\"").skip(1);
    after.map(|rest| rest.split('"').next().expect("one piece").replace("&#39;", "'")).collect()
}

#[test]
fn figures_of_recordings_and_verdicts_name_their_samples_under_the_pointer() {
    let mut results = recorded(results(1, Vec::new(), &[], 0));
    results.cells[0] = Cell { stage: "ingest".into(), ..Cell::recording("camera", camera("camera")) };
    let study = studied(&results);
    let page = html(&study);
    let command = "nilometer report RECORD --why 'camera/A'";
    let mut of_table = tooltips(section(&page, "All recordings"));
    of_table.retain(|tooltip| tooltip.starts_with("from the recording of "));
    let [recordings, trials] = [6 * 12, 3 * 5];
    assert_eq!(of_table.len(), recordings + trials, "each figure has its samples");
    assert_eq!(of_table[0], format!("from the recording of ingest, round 1: {command}"));
    let of_all = format!("from 9 recordings of ingest, rounds 1 to 9: {command}");
    let verdicts = tooltips(&page).into_iter().filter(|tooltip| *tooltip == of_all);
    assert_eq!(verdicts.count(), 2, "the answer above and the verdict below: {page}");
}

#[test]
fn the_samples_behind_a_verdict_have_their_stage_their_company_and_the_calculation() {
    let mut results = recorded(results(1, Vec::new(), &[], 0));
    results.cells[0] = Cell { stage: "ingest".into(), ..Cell::recording("camera", camera("camera")) };
    for measured in &mut results.samples {
        let ingest = measured.sample.ingest.as_mut().expect("a recording");
        ingest.lost = 0;
        ingest.stored = ingest.due;
        ingest.levels = Levels::new(Nanos(0));
    }
    let text = why_markdown(&studied(&results), "camera/A").expect("it was recorded");
    for part in [
        "| ingest | 1 | full speed | by itself |",
        "| ingest | 3 | its own | by itself |",
        "| ingest | 4 | full speed | beside 2 readers |",
        "bound on losses = 3.00 events / ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
