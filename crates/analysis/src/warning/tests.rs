//! Tests that each warning appears if it should, and only then.

use nilometer_model::{Invalid, Sample, Waited};
use nilometer_plan::{Event, Key, TargetEntry};

use super::*;
use crate::{
    Study,
    made_up::{stage, writes},
};

const SECOND: Nanos = Nanos(1_000_000_000);

fn measured(repeat: u32, phase: Phase, bytes: u64) -> Measured {
    let key = Key { target: 0, cell: 0, repeat, phase };
    let sample = Sample { bytes, operations: 10, wall: SECOND, ..Sample::new(Nanos(0)) };
    Measured { key, sample }
}

fn results(samples: Vec<Measured>) -> Results {
    let cell = writes("copies", "1 MiB", 1);
    let targets = vec![TargetEntry { path: "/a".into(), ..TargetEntry::default() }];
    Results { cells: vec![cell], targets, repeats: 3, samples, ..Results::default() }
}

fn three(phase: Phase, bytes: u64) -> Vec<Measured> {
    (0..3).map(|repeat| measured(repeat, phase, bytes)).collect()
}

fn told(results: &Results) -> Vec<String> {
    Study::of(results).warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn a_clean_campaign_warns_of_nothing() {
    assert_eq!(told(&results(three(Phase::Write, 1 << 20))), [""; 0]);
    assert_eq!(told(&Results::default()), [""; 0]);
}

#[test]
fn what_is_missing_or_invalid_comes_first() {
    let mut samples = three(Phase::Write, 1 << 20);
    samples[1].sample.invalid = Some(Invalid::WarmRead);
    samples.truncate(2);
    let mut results = results(samples);
    results.events.push(Event { at: SECOND, what: "the clock was set".into() });
    results.targets[0].left_out = Some("hung".into());
    let told = told(&results);
    assert_eq!(told.len(), 4, "{told:?}");
    assert_eq!(told[0], "A was left out: hung");
    assert_eq!(told[1], "1 of 2 samples are INVALID: the read came from the page cache");
    assert!(told[2].contains("1 of 1 figures rest on fewer than the 3 planned"), "{told:?}");
    assert_eq!(told[3], "the clock was set");
    let reason = Reason::of(&Sample::invalid(Invalid::WarmRead)).expect("invalid");
    let warning = Warning::Invalid { reason, of: 2 };
    assert!(warning.advice().is_some_and(|advice| advice.contains("direct")));
}

#[test]
fn a_source_that_limits_is_told_and_one_that_does_not_is_not() {
    let copy = |rate: u64| [three(Phase::Source, 1000), three(Phase::Write, rate)].concat();
    let told_of = told(&results(copy(600)));
    let text = "copies, A: the source takes 60 % of the time in 1 of 1 copies: this figure says more about the source";
    assert!(told_of.len() == 1 && told_of[0].starts_with(text), "{told_of:?}");
    assert_eq!(told(&results(copy(400))), [""; 0]);
}

#[test]
fn neighbours_hosts_caches_and_spread_are_told() {
    let mut samples = three(Phase::Read, 1 << 20);
    samples[0].sample.before = Activity {
        over: Nanos(SECOND.0 / 10),
        busy: Nanos(SECOND.0 / 5),
        disk_written: 5_000_000,
        ..Activity::default()
    };
    samples[1].sample.during = Activity { over: SECOND, stolen: Nanos(SECOND.0 / 4), ..Activity::default() };
    samples[2].sample.coldness = Some(Coldness::NotProvable);
    samples[2].sample.operations = 100;
    let mut results = results(samples);
    let never = "[stage.workload.stream]\nfile_size = \"1 MiB\"\nblock_size = \"1 MiB\"\naccess = \"buffered\"\nsync = \"none\"\n";
    results.cells = stage("copies", never);
    let told = told(&results);
    for part in [
        "on average 2.0 cores, 50 MB/s on disks, 0 B/s on the network",
        "during 1 of 3 samples, on average 0.25 cores",
        "reads on A: this machine can't prove",
        "1 of 1 figures vary by more than 25 %, at worst by 130 % (copies, read, A)",
        "copies: data were never synced",
    ] {
        assert!(told.iter().any(|line| line.contains(part)), "{part} is missing in {told:?}");
    }
    assert_eq!(told.len(), 5);
}

#[test]
fn writes_on_disks_alone_may_be_late_ones_of_earlier_samples() {
    let before = |activity: Activity| {
        let mut samples = three(Phase::Write, 1000);
        samples[1].sample.before = Activity { over: SECOND, ..activity };
        told(&results(samples)).into_iter().find(|said| said.contains("just before samples"))
    };
    let late = before(Activity { disk_written: 20_000_000, ..Activity::default() }).expect("a warning");
    assert!(late.contains("by the kernel") && late.contains("20 MB/s") && !late.contains("cores"), "{late}");
    let others = Activity { disk_written: 20_000_000, busy: SECOND, ..Activity::default() };
    let others = before(others).expect("a warning");
    assert!(others.starts_with("the machine was busy") && others.contains("1.0 cores"), "{others}");
    assert_eq!(before(Activity { disk_written: 9_000_000, ..Activity::default() }), None);
}

#[test]
fn a_target_that_is_memory_is_told() {
    for (file_system, volatile) in [("tmpfs", true), ("ramfs", true), ("xfs", false), ("nfs4", false)] {
        let mut results = results(three(Phase::Write, 1 << 20));
        results.targets[0].file_system = file_system.into();
        let told = told(&results);
        assert_eq!(told.len(), usize::from(volatile), "{file_system}: {told:?}");
        assert!(told.iter().all(|line| line.starts_with("A: memory of this machine")), "{told:?}");
    }
}

#[test]
fn one_repeat_gives_no_interval() {
    let mut results = results(vec![measured(0, Phase::Write, 1)]);
    results.repeats = 1;
    assert!(told(&results)[0].starts_with("a single repeat"));
}

#[test]
fn invalid_samples_are_counted_by_kind_with_the_worst_figure() {
    let mut samples = three(Phase::Write, 1 << 20);
    for (sample, waited) in samples.iter_mut().zip([300, 700, 400]) {
        let [waited, of, allowed] = [waited, 1000, 200].map(Nanos::from_millis);
        sample.sample.invalid =
            Some(Invalid::Starved(Some(Waited { waited, of, allowed, throttled: Nanos(0) })));
    }
    let told = told(&results(samples));
    let text = "3 of 3 samples are INVALID: the tool itself waited for a processor: at worst 700 ms of 1 s, allowed 200 ms";
    assert_eq!(told, [text]);
}

#[test]
fn repetitions_are_counted_and_other_events_told() {
    let mut results = results(three(Phase::Write, 1 << 20));
    for what in
        ["measured again: /a: c, round 1: busy", "the clock was set", "measured again: /a: c, round 2: busy"]
    {
        results.events.push(Event { at: SECOND, what: what.into() });
    }
    let again = "2 measurements spoilt by this machine, not by the storage, repeated in the same round";
    assert_eq!(told(&results), [again, "the clock was set"]);
}
