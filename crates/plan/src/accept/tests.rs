//! Tests of `[accept]`: valid terms, their effects, and refused ones.

use nilometer_model::{Goal, Instrument};

use super::*;
use crate::{Cell, ResolvedPlan, parse_with};

const PLAN: &str = r#"
title = "an offer"
repeats = 3
[[stage]]
name = "files"
[stage.workload.stream]
file_size = "64 MiB"
block_size = "1 MiB"
access = "best"
[accept]
price = ["184 000 EUR", "152 000 EUR"]
[[accept.stage]]
name = "files"
phase = "write"
rate = "200 MB/s"
p99 = "20 ms"
[[accept.instrument]]
name = "camera"
duration = "10 s"
rate = "300 MB/s"
longest_stall = "500 ms"
cores = { process = 1.5, machine = 2 }
[[accept.instrument]]
name = "camera"
duration = "10 s"
fill = "80 %"
condition = { name = "one disk lost", enter = "true", leave = "true" }
sync_flushes = true
"#;

/// 250 MB/s.
fn camera(name: &str) -> Result<Instrument, String> {
    let text = "name = \"camera\"\ntitle = \"t\"\nsource = \"s\"\nshape = [1000, 1000]\npixel = \"uint8\"\n\
                frame_rate = \"250 Hz\"\n";
    if name != "camera" {
        return Err(format!("no instrument `{name}`: write camera"));
    }
    Instrument::parse(text, name).map_err(|error| error.to_string())
}

fn read(text: &str) -> Result<ResolvedPlan, String> {
    parse_with(text, "offer.toml", 1.0, &camera).map_err(|error| error.to_string())
}

#[test]
fn criteria_bring_the_recordings_that_they_need() {
    let plan = read(PLAN).expect("a valid plan");
    let told: Vec<String> = plan.accept.criteria.iter().map(ToString::to_string).collect();
    let (free, hurt) = ("camera for 10 s", "camera for 10 s, filled to 80 %, one disk lost");
    let expected = [
        "files, write: at least 200 MB/s".to_owned(),
        "files, write: 99 % of operations within 20 ms".into(),
        format!("{free}: nothing is lost"),
        format!("{free}: at least 300 MB/s"),
        format!("{free}: no stall longer than 500 ms"),
        format!("{free}: at most 1.5 cores of this program"),
        format!("{free}: at most 2 cores of the whole machine"),
        format!("{hurt}: nothing is lost"),
        format!("{hurt}: the device flushes synced data"),
    ];
    assert_eq!(told, expected);
    let recordings: Vec<_> = plan.cells.iter().filter_map(Cell::as_recording).collect();
    let goals: Vec<_> = recordings.iter().map(|run| (run.goal, run.repeats)).collect();
    assert_eq!(goals, [(Goal::Pace, 1), (Goal::Limit, 3), (Goal::Pace, 1)]);
    assert!(recordings[2].condition.is_some() && recordings[2].fill.is_some());
    assert_eq!(plan.accept.price.len(), 2);
}

#[test]
fn a_record_gives_the_criteria_back() {
    let text = PLAN.replace("longest_stall = \"500 ms\"", "lost = \"30 in 1 min\"\nrepeats = 2");
    let accept = read(&text).expect("a valid plan").accept;
    let recorded = serde_json::to_string(&accept).expect("it can be written");
    assert_eq!(serde_json::from_str::<Acceptance>(&recorded).expect("it can be read"), accept);
    assert!(
        accept
            .criteria
            .iter()
            .any(|criterion| matches!(criterion.demand, Requirement::Lost(LossLimit::AtMost { .. })))
    );
}

#[test]
fn a_plan_of_criteria_needs_no_stage_of_its_own_and_several_are_one() {
    let text = "title = \"t\"\n[accept]\n[[accept.instrument]]\nname = \"camera\"\nduration = \"1 s\"\n";
    let plan = read(text).expect("a valid plan");
    assert_eq!((plan.cells.len(), plan.accept.criteria.len()), (1, 1));
    let joined = ResolvedPlan::joined(vec![("a".into(), plan), ("b".into(), read(PLAN).expect("valid"))]);
    let joined = joined.expect("two plans");
    let stages: Vec<&str> = joined.accept.criteria.iter().map(|criterion| criterion.stage.as_str()).collect();
    assert_eq!((stages[0], stages[1]), ("a: camera for 1 s", "b: files"));
    assert!(joined.accept.criteria.iter().all(|of| joined.cells.iter().any(|cell| cell.stage == of.stage)));
}

#[test]
fn losses_in_a_time_are_read_and_shown_as_they_are_written() {
    for (text, shown) in
        [("none", "none"), ("1 a day", "1 a day"), (" 2 an hour ", "2 an hour"), ("3 in 10 h", "3 in 10 h")]
    {
        assert_eq!(text.parse::<LossLimit>().expect(text).to_string(), shown);
    }
    for wrong in
        ["", "1", "one a day", "-1 a day", "0 a day", "1 a month", "1 in 0 s", "1 in 5", "1 an", "nan a day"]
    {
        let error = wrong.parse::<LossLimit>().expect_err(wrong);
        assert!(error.contains("\"1 a day\""), "{error}");
    }
    // Three without a loss: the rule of three.
    let least = "1 a day".parse::<LossLimit>().expect("valid").least_duration().expect("a time");
    assert_eq!(least, Nanos::from_seconds((2.995_732_273_554 * 86_400.0_f64).ceil()));
}

#[test]
fn what_can_not_be_decided_or_contradicts_itself_is_refused_with_its_place() {
    let stall = "longest_stall = \"500 ms\"";
    for (from, to, parts) in [
        (stall, "lost = \"1 a day\"", &["offer.toml:18", "10 s can't prove it", "3 days", "95 %"][..]),
        (stall, "lost = \"often\"", &["line 21", "\"1 a day\""]),
        ("\"300 MB/s\"", "\"100 MB/s\"", &["offer.toml:18", "less than the 250 MB/s"]),
        ("\"500 ms\"", "\"5 s\"", &["offer.toml:18", "covers 4.29 s", "a larger buffer"]),
        (
            "name = \"camera\"\nduration = \"10 s\"\nrate",
            "name = \"camra\"\nduration = \"10 s\"\nrate",
            &["offer.toml:18", "no instrument `camra`"],
        ),
        ("duration = \"10 s\"\nrate", "duration = \"1 ms\"\nrate", &["offer.toml:18", "too short"]),
        ("fill = \"80 %\"\n", "fill = \"180 %\"\n", &["line 26", "at most 100 %"]),
        ("fill = \"80 %\"\n", "fill = \"80 %\"\nkeep = \"1 GB\"\n", &["offer.toml:24", "one of them"]),
        ("leave = \"true\"", "leave = \" \"", &["offer.toml:24", "condition: leave is empty"]),
        ("process = 1.5", "process = 0", &["offer.toml:18", "cores.process = 0: write more than 0"]),
        ("process = 1.5", "proces = 1.5", &["line 22", "`process`"]),
        (
            "[[accept.stage]]\nname = \"files\"",
            "[[accept.stage]]\nname = \"file\"",
            &["offer.toml:13", "write files"],
        ),
        ("phase = \"write\"", "phase = \"walk\"", &["offer.toml:13", "no phase `ls -lR`: write write, read"]),
        ("phase = \"write\"", "phase = \"wirte\"", &["line 14", "wirte"]),
        ("repeats = 3", "repeats = 1", &["offer.toml:13", "repeats = 2 or more"]),
        ("rate = \"200 MB/s\"\np99 = \"20 ms\"", "", &["offer.toml:13", "nothing is demanded of `files`"]),
        ("fill = \"80 %\"\ncondition", "#", &["offer.toml:24", "in one place"]),
    ] {
        let text = PLAN.replace(from, to);
        assert_ne!(text, PLAN, "{from}");
        let error = read(&text).expect_err(to);
        assert!(parts.iter().all(|part| error.contains(part)), "{parts:?} in {error}");
    }
    let nothing = PLAN.split("[[accept.stage]]").next().expect("a head");
    assert!(read(nothing).expect_err("no criteria").contains("offer.toml: accept: nothing is demanded"));
}
