//! Made-up campaigns beside made-up servers, with known limits and one server that does less than its equals.

use nilometer_model::{Invalid, Nanos, Phase, Sample};
use nilometer_plan::{Key, Measured, Results, TargetEntry};

use super::{CorrectedLog, ObservedCell, ObservedRun, UseKind};
use crate::{
    Study,
    made_up::{MadeUpServer, measured_in_turn, writes},
};

/// Three repeats of writing, `seconds` each, a second apart, from the hundredth second on.
fn results(seconds: u64) -> Results {
    let sample = |repeat| {
        let key = Key { target: 0, cell: 0, repeat, phase: Phase::Write };
        Measured { key, sample: Sample { bytes: 1 << 30, operations: 1024, ..Sample::new(Nanos(0)) } }
    };
    let mut results = Results {
        cells: vec![writes("files", "1 MiB", 1)],
        targets: vec![TargetEntry { path: "/data".into(), ..TargetEntry::default() }],
        samples: (0..3).map(sample).collect(),
        repeats: 3,
        environment: vec![
            ("host".into(), "client".into()),
            ("clock".into(), "synchronised to within 1 ms".into()),
        ],
        ..Results::default()
    };
    measured_in_turn(&mut results.samples, seconds);
    results
}

fn run(results: &Results, servers: &[MadeUpServer]) -> ObservedRun {
    let logs: Vec<CorrectedLog> =
        servers.iter().map(|server| CorrectedLog { log: server.log(90, 200), offset: 0 }).collect();
    Study::of(results).with_observed(&logs).observed.expect("something was observed")
}

fn only(run: &ObservedRun) -> (&ObservedCell, Vec<String>) {
    assert_eq!(run.cells.len(), 1);
    (&run.cells[0], run.sentences(&run.cells[0]))
}

#[test]
fn the_disk_that_was_busy_all_the_time_is_the_limit_and_what_is_made_of_it_is_not_named() {
    let run = run(
        &results(5),
        &[MadeUpServer::new("oss1", 150_000_000, 990), MadeUpServer::new("oss2", 140_000_000, 600)],
    );
    let (cell, said) = only(&run);
    assert_eq!(cell.what, "files, write");
    let limit = "at its limit: disk sda of oss1: busy 99 % of the time, 2.0 requests at once, read 0 B/s, written 150 MB/s";
    assert_eq!(said, [limit]);
    let seen = &cell.seen[0];
    assert_eq!((seen.repeats, seen.spans, cell.repeats.len()), (3, 15, 3));
    let written = seen.of(UseKind::DiskWritten, "sda").expect("it wrote");
    assert!((written.mean - 150e6).abs() < 1.0 && (written.most - 150e6).abs() < 1.0, "{written:?}");
    assert_eq!(
        run.machines[0].clock,
        "joined by the machines' clocks, which agree within 1.5 ms, as their time services say"
    );
}

#[test]
fn a_full_link_and_a_full_processor_are_limits_too() {
    let server = MadeUpServer { busy: 990, ..MadeUpServer::new("oss1", 950_000_000, 500) };
    let run = run(&results(5), &[server]);
    let (_, said) = only(&run);
    let limits = "at their limits: link eth0 of oss1: 95 % of 8 Gbit/s, received 7.6 Gbit/s, sent 0 bit/s; a processor of oss1: \
                  99 % busy, all 2 of them 50 %";
    assert_eq!(said, [limits]);
}

#[test]
fn where_nothing_was_full_the_nearest_is_named() {
    let run = run(&results(5), &[MadeUpServer::new("oss1", 100_000_000, 700)]);
    let (_, said) = only(&run);
    let none = "nothing observed was at its limit; nearest was disk sda of oss1: busy 70 % of the time, 2.0 requests";
    assert!(said[0].starts_with(&none.replace("2.0", "1.4")), "{said:?}");
}

#[test]
fn what_no_two_looks_lie_within_is_said_and_so_is_what_nobody_saw() {
    let mut short = results(1);
    for measured in &mut short.samples {
        measured.sample.started += Nanos::from_millis(200);
        measured.sample.wall = Nanos::from_millis(400);
    }
    let run = run(&short, &[MadeUpServer::new("oss1", 1, 1)]);
    let (cell, said) = only(&run);
    assert!(cell.seen.is_empty());
    let why =
        "no two looks lie within a repeat: the longest took 400 ms, and looks are 1 s apart (--interval)";
    assert_eq!(said, [why]);
    let results = results(5);
    let log = CorrectedLog { log: MadeUpServer::new("oss1", 1, 1).log(300, 400), offset: 0 };
    let run = Study::of(&results).with_observed(&[log]).observed.expect("a run");
    assert_eq!(run.sentences(&run.cells[0]), ["no machine was observed at that time"]);
}

#[test]
fn a_server_that_does_less_than_its_equals_is_named_and_the_client_is_none_of_them() {
    let rates = [("oss1", 150), ("oss2", 150), ("oss3", 50), ("client", 900)];
    let servers = rates.map(|(host, rate)| MadeUpServer::new(host, rate * 1_000_000, 300));
    let run = run(&results(5), &servers);
    let (cell, said) = only(&run);
    let odd: Vec<(&str, &str)> = cell.uneven.iter().map(|one| (one.what, one.who.as_str())).collect();
    assert_eq!(odd, [("received", "oss3"), ("written to disks", "oss3")]);
    assert_eq!(said[2], "uneven, written to disks: oss3 50 MB/s, its 2 equals, on average, 150 MB/s");
    let alike = rates.map(|(host, _)| MadeUpServer::new(host, 150_000_000, 300));
    assert!(self::run(&results(5), &alike).cells[0].uneven.is_empty());
}

#[test]
fn repeats_count_by_their_median_and_an_offset_moves_what_is_seen() {
    // The disk is busy from the 106th second on, the start of the second repeat.
    let idle = MadeUpServer::new("oss1", 1_000_000, 0).log(90, 106);
    let mut log = MadeUpServer::new("oss1", 1_000_000, 1000).log(106, 200);
    log.looks.splice(0..0, idle.looks.into_iter().filter(|look| look.time_us < 106_000_000));
    for look in log.looks.iter_mut().filter(|look| look.time_us < 106_000_000) {
        for disk in look.disks.values_mut() {
            disk.busy_ms = 106_000;
        }
    }
    let results = results(5);
    let busy = |offset: i64| {
        let log = CorrectedLog { log: log.clone(), offset };
        let run = Study::of(&results).with_observed(&[log]).observed.expect("a run");
        run.cells[0].seen[0].of(UseKind::DiskBusy, "sda").map(|of| (of.mean, of.most)).expect("it is there")
    };
    assert_eq!(busy(0), (1.0, 1.0), "two of three repeats");
    assert_eq!(busy(7_000_000_000), (0.0, 1.0), "one of three");
}

#[test]
fn what_machines_did_is_said_of_figures_that_can_not_be_used_too() {
    let mut results = results(5);
    let server = [MadeUpServer::new("oss1", 100_000_000, 990)];
    results.samples[0].sample.invalid = Some(Invalid::Hung);
    let one = run(&results, &server);
    assert_eq!((one.cells[0].what.as_str(), one.cells[0].repeats.len()), ("files, write", 2));
    for measured in &mut results.samples {
        measured.sample.invalid = Some(Invalid::Hung);
    }
    let all = run(&results, &server);
    assert_eq!((all.cells[0].what.as_str(), all.cells[0].repeats.len()), ("files, write, INVALID", 3));
    assert!(only(&all).1[0].starts_with("at its limit: disk sda of oss1"));
}

#[test]
fn what_is_missing_of_a_file_is_noted() {
    let mut log = MadeUpServer::new("oss1", 1, 1).log(105, 110);
    log.looks.remove(3);
    log.is_torn = true;
    let results = results(5);
    let run = Study::of(&results).with_observed(&[CorrectedLog { log, offset: 0 }]).observed.expect("a run");
    let notes = run.machines[0].notes.join("\n");
    for part in [
        "the last line of its file is not whole",
        "looks are missing: 1; the longest time between two was 2 s",
        "it was not observed for the first 5 s and for the last 7 s of the run",
    ] {
        assert!(notes.contains(part), "{part} is missing in: {notes}");
    }
}
