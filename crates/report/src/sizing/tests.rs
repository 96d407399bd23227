//! The words of a sizing: within the width, complete, and the same as the numbers for programs.

use nilometer_model::{Burst, ByteRate, Bytes, Nanos, Schedule, Seed};
use nilometer_plan::sizing::{
    Demand, Figure, Kind, LimitOrigin, Limits, Place,
    simulation::{Phases, SizingTrial},
    size,
};

use super::{Checked, Sized, sizing_json};
use crate::{TextLayout, sizing_html, sizing_markdown, sizing_text};

const WICKED: &str =
    "a facility \u{1b}[31m\nwith a name that goes on and on and on and on and on and on and on and on and on";

fn demand() -> Demand {
    let burst = Some(Burst { frames: 100, pause: Nanos::from_millis(1000) });
    let kind = |name: &str, streams, burst| Kind {
        name: name.into(),
        streams,
        in_step: 2,
        frame: Bytes(1_000_000),
        packing: Figure::assumed(1.0, ""),
        cost: Figure { value: 0.25, from: measured() },
        schedule: Schedule { period: Nanos::from_millis(10), streams: 1, burst },
        duty: 0.5,
        assumed: Vec::new(),
        reading: ByteRate(2e8),
    };
    let retention = Some(Nanos(2 * 86_400_000_000_000));
    let kinds = vec![kind("steady", 20, None), kind("bursts", 8, burst)];
    Demand { kinds, copy_out: Some(ByteRate(1e9)), retention, capacity: Some(Bytes(100_000_000_000_000)) }
}

fn measured() -> LimitOrigin {
    LimitOrigin::Measured("evaluation.sqlite: /data, pilatus-6m, at full speed".into())
}

fn limits() -> Limits {
    let measured = measured();
    Limits {
        link: Figure::given(ByteRate(1.25e9), "--link"),
        links: Figure::assumed(1, "one for the instruments"),
        cores: Figure::given(16.0, "--cores"),
        memory: Figure::given(Bytes(16_000_000_000), "--memory"),
        stall: Figure { value: Nanos::from_millis(310), from: measured.clone() },
        writer: Figure { value: ByteRate(1.1e9), from: measured.clone() },
        writers: Figure::assumed(4, "one a lane"),
        write: Figure { value: ByteRate(1.1e9), from: measured.clone() },
        read: Figure { value: ByteRate(1.1e9), from: measured },
        space: Some(Figure::given(Bytes(100_000_000_000_000), "--space")),
        headroom: Figure::given(0.2, "--headroom"),
        spare: Figure::given(1, "--spare"),
    }
}

/// Writes a simulated sizing.
fn written(write: impl Fn(&Sized<'_>) -> String) -> String {
    let (demand, limits) = (demand(), limits());
    let sizing = size(&demand, &limits).expect("it can be");
    let trial =
        SizingTrial::suited(&demand, &limits, Some(Nanos::from_millis(8000)), Phases::Random(Seed(1)));
    let found = trial.run(&demand, &limits, &sizing);
    let fewer = sizing.one_fewer(&demand, &limits).expect("there are several");
    let fewer = Some(trial.run(&demand, &limits.without_headroom(), &fewer));
    let days = Some((5, Bytes(170_000_000_000_000), None));
    let checked = Some(Checked { trial, found, fewer, days });
    write(&Sized { title: WICKED, demand: &demand, limits: &limits, sizing: &sizing, remarks: &[], checked })
}

#[test]
fn the_text_is_narrow_and_has_the_answer_and_every_assumption() {
    let text = written(|sized| sizing_text(sized, TextLayout::plain()));
    for line in text.lines() {
        assert!(line.chars().count() <= 100 && !line.contains('\u{1b}'), "{line}");
    }
    for part in [
        "28 streams bring 2.8 GB/s (22.4 Gbit/s), 2.4 GB/s with their pauses; 1.4 GB/s are read meanwhile",
        "and 1 of each to spare.",
        "A buffer of 207 TB for data that comes in 2 days: 259 TB with 20 % free.",
        "The existing 100 TB may be full after",
        "longest stall          310 ms (measured: evaluation.sqlite: /data, pilatus-6m",
        "links of a recorder    1 (assumed: one for the instruments)",
        "one kind of instrument; shared by all, at least",
        "With one recorder fewer, and nothing kept free, the streams are too much: the network loses",
        "8 s of 28 streams at random phases, with a stall of 310 ms: nothing was lost.",
    ] {
        assert!(text.contains(part), "{part} is missing in:\n{text}");
    }
    assert_eq!(text.matches("<- limits").count(), 1, "{text}");
    for place in Place::ALL {
        assert!(
            text.contains(&format!("\n  {:<16} ", place.what())),
            "{} is missing in:\n{text}",
            place.what()
        );
    }
}

#[test]
fn markdown_and_a_page_have_the_answer_the_stages_and_every_assumption() {
    for text in [written(sizing_markdown), written(sizing_html)] {
        for part in [
            "A buffer of 207 TB for data that comes in 2 days: 259 TB with 20 % free.",
            "This rests on",
            "given: ",
            "Checked in a simulation",
        ] {
            assert!(text.contains(part), "{part} is missing in:\n{text}");
        }
        assert!(Place::ALL.iter().all(|place| text.contains(place.what())), "{text}");
    }
}

#[test]
fn programs_read_the_same_numbers() {
    let json: serde_json::Value = serde_json::from_str(&written(sizing_json)).expect("valid JSON");
    let (demand, limits) = (demand(), limits());
    let sizing = size(&demand, &limits).expect("it can be");
    assert_eq!(json["format"], "nilometer-sizing");
    assert_eq!(json["servers"], sizing.servers);
    assert_eq!(json["recorders"], sizing.recorder_count());
    assert_eq!(json["limiting"], sizing.limiting().place.what());
    assert_eq!(json["stages"].as_array().map(Vec::len), Some(6));
    assert_eq!(json["kinds"][1]["instrument"], "bursts");
    assert_eq!(json["buffer"]["needed_bytes"], 207_360_000_000_000_u64);
    assert_eq!(json["simulation"]["lost"], 0);
    assert_eq!(json["assumptions"][5]["from"], "measured");
}
