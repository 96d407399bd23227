//! A record that somebody else wrote is read or refused, whatever its bytes are.

use std::{fs, sync::Mutex};

use nilometer_fuzz::fuzz;
use nilometer_model::{Invalid, Nanos, Phase, Sample};
use nilometer_plan::{Event, Key, PlannedCampaign, Results, TargetEntry, parse};
use nilometer_record::{Record, read};

/// A small record with some of everything.
fn record() -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("r.sqlite");
    let targets = vec![TargetEntry { path: "/a".into(), ..TargetEntry::default() }];
    let text = "title = \"t\"\n[[stage]]\nname = \"s\"\n[stage.workload.walk]\nlevels = 1\nbranching = 2\nfiles = 10\n";
    let plan = parse(text, "t.toml", 1.0).expect("a valid plan");
    let cells = plan.cells.clone();
    let campaign = Some(PlannedCampaign::new(plan, Vec::new()));
    let environment = vec![("host".into(), "here".into())];
    let head = Results { campaign, targets, cells, environment, repeats: 2, ..Results::default() };
    let mut record = Record::create(&path, &head, 0).expect("a new record");
    for (repeat, invalid) in [(0, None), (1, Some(Invalid::Hung))] {
        let key = Key { target: 0, cell: 0, repeat, phase: Phase::Write };
        let mut sample =
            Sample { bytes: 1 << 20, operations: 9, wall: Nanos(5), invalid, ..Sample::new(Nanos(0)) };
        sample.latency.add(77);
        record.add(key, &sample).expect("space");
    }
    record.note(&Event { at: Nanos(1), what: "x".into() }).expect("space");
    drop(record);
    fs::read(&path).expect("the record")
}

#[test]
fn any_record_is_read_or_refused() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let place = Mutex::new(directory.path().join("r.sqlite"));
    fuzz("record", vec![record()], move |input| {
        let path = place.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // In memory: tmpfs or not, it is a small file.
        fs::write(&*path, input).expect("space");
        drop(read(&path));
    });
    drop(directory);
}
