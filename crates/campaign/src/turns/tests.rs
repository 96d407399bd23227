//! Tests the order of recordings.

use super::*;
use nilometer_model::{Bytes, Ingest, Instrument, Nanos};
use nilometer_plan::{Cell, Condition, parse};

const PLAN: &str = r#"
title = "a test"
repeats = 2
warm_up = 1
seed = 7
[[stage]]
name = "files"
volumes = ["alone", "together"]
[stage.workload.stream]
file_size = ["1 MiB", "2 MiB"]
block_size = "1 MiB"
access = "buffered"
"#;

/// The targets of each turn of the first round, without those of cells whose files are larger.
fn at_once(volumes: &str, targets: usize) -> Vec<Vec<usize>> {
    let text =
        PLAN.replace("[\"alone\", \"together\"]", volumes).replace("[\"1 MiB\", \"2 MiB\"]", "\"1 MiB\"");
    let plan = parse(&text, "test.toml", 1.0).expect("a valid plan");
    let target = nilometer_storage::target::probe(std::path::Path::new(".")).expect("a directory");
    let campaign = PlannedCampaign::new(plan, vec![target; targets]);
    let mut groups: Vec<Vec<usize>> =
        turns(&campaign).into_iter().filter(|turn| turn.repeat == 0).map(|turn| turn.targets).collect();
    groups.sort();
    groups
}

#[test]
fn the_first_so_many_are_measured_together_as_far_as_there_are_as_many() {
    let all = "[\"alone\", 2, 3, 4, 8, \"together\"]";
    assert_eq!(at_once(all, 3), [vec![0], vec![0, 1], vec![0, 1, 2], vec![1], vec![2]], "three are all");
    assert_eq!(at_once("[2, 3]", 3), [vec![0, 1], vec![0, 1, 2]]);
    assert_eq!(at_once("[2, 4]", 3), [vec![0, 1]]);
    assert_eq!(at_once(all, 1), [vec![0], vec![0]], "alone, and all of one");
}

#[test]
fn the_ceiling_of_several_at_once_is_measured_apart_from_them() {
    let text = PLAN.replace("\"alone\", \"together\"", "2, 8");
    let plan = parse(&text, "test.toml", 1.0).expect("a valid plan");
    let target = nilometer_storage::target::probe(std::path::Path::new(".")).expect("a directory");
    let campaign = crate::with_ceiling(PlannedCampaign::new(plan, vec![target; 3]));
    let round = turns(&campaign).into_iter().filter(|turn| turn.repeat == 1);
    let groups: Vec<Vec<usize>> = round.map(|turn| turn.targets).collect();
    // Two sizes of files. For eight targets at once there is neither a figure nor a ceiling.
    assert_eq!(groups, [vec![0, 1], vec![0, 1], vec![3], vec![3]]);
}

fn recording(company: Option<u32>) -> RecordingRun {
    let text = include_str!("../../../../instruments/pilatus-6m.toml");
    let instrument = Instrument::parse(text, "pilatus-6m").expect("a valid instrument");
    RecordingRun { repeats: 2, company, ..RecordingRun::new(instrument) }
}

/// A plan with only these recordings.
fn recordings(runs: impl IntoIterator<Item = RecordingRun>) -> ResolvedPlan {
    ResolvedPlan { cells: runs.into_iter().map(|run| Cell::recording("images", run)).collect(), ..plan() }
}

fn plan() -> ResolvedPlan {
    let mut plan = parse(PLAN, "test.toml", 1.0).expect("a valid plan");
    plan.cells.push(Cell::recording("images", recording(None)));
    plan
}

#[test]
fn every_repeat_is_there_once_in_rounds_and_in_an_order_of_the_seed() {
    let target = nilometer_storage::target::probe(std::path::Path::new(".")).expect("a directory");
    let turns = turns(&PlannedCampaign::new(plan(), vec![target; 3]));
    // Two cells on each of three targets and two on all at once, in three rounds; two recordings on each.
    assert_eq!(turns.len(), 3 * (2 * 3 + 2) + 2 * 3);
    let mut keys: Vec<_> = turns.iter().map(|turn| (turn.cell, turn.targets.clone(), turn.repeat)).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), turns.len());
    assert!(turns[..24].is_sorted_by_key(|turn| turn.repeat));
    assert!(!turns[..8].is_sorted_by_key(|turn| turn.cell));
    let order =
        |round: usize| turns[8 * round..8 * (round + 1)].iter().map(|turn| turn.cell).collect::<Vec<_>>();
    assert_ne!(order(0), order(1));
    assert!(turns[24..].iter().all(|turn| turn.cell == 4 && turn.repeat >= 1), "no recording is a warm-up");
}

#[test]
fn what_is_recorded_at_the_same_time_is_one_turn() {
    let plan = recordings([None, Some(0), Some(1), Some(0), Some(1)].map(recording));
    let target = nilometer_storage::target::probe(std::path::Path::new(".")).expect("a directory");
    let turns = turns(&PlannedCampaign::new(plan.clone(), vec![target]));
    let cells: Vec<usize> = turns.iter().map(|turn| turn.cell).collect();
    let mut sorted = cells.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, [0, 0, 1, 1, 2, 2]);
    let first = turns.iter().find(|turn| turn.cell == 1).expect("the first company");
    let mut done = Done::new();
    done.insert(first.key(0, Phase::Ingest), None);
    assert!(!first.is_done(&plan, &done, &Trials::default()), "the other one of the company has no sample");
    done.insert(ScheduledRepeat { cell: 3, ..first.clone() }.key(0, Phase::Ingest), None);
    assert!(first.is_done(&plan, &done, &Trials::default()));
}

#[test]
fn the_answer_comes_first_and_drift_hits_all_limits_alike() {
    let cell = |goal, repeats| RecordingRun { goal, repeats, ..recording(None) };
    let condition = Condition::parse("name = \"c\"\nenter = \"true\"\nleave = \"true\"\n", "c.toml");
    let in_condition = RecordingRun { condition: condition.ok(), ..cell(Goal::Pace, 1) };
    // In the worst order: three levels of readers at the limit, a search, and then the instrument's own pace.
    let limits = [0; 3].map(|_| cell(Goal::Limit, 3));
    let all = [vec![in_condition], limits.into(), vec![cell(Goal::Search, 1), cell(Goal::Pace, 1)]];
    let plan = recordings(all.concat());
    let target = nilometer_storage::target::probe(std::path::Path::new(".")).expect("a directory");
    let turns = turns(&PlannedCampaign::new(plan, vec![target; 2]));
    let order: Vec<(usize, usize)> = turns.iter().map(|turn| (turn.cell, turn.targets[0])).collect();
    assert_eq!(order[..2], [(5, 0), (5, 1)], "the answer on each target");
    assert_eq!(order[20..], [(4, 0), (4, 1), (0, 0), (0, 1)], "searches, and conditions last");
    let rounds: Vec<_> = turns[2..20].chunks(6).collect();
    for (number, round) in rounds.iter().enumerate() {
        assert!(round.iter().all(|turn| turn.repeat as usize == 1 + number), "{round:?}");
        let mut all: Vec<_> = round.iter().map(|turn| (turn.cell, turn.targets[0])).collect();
        all.sort_unstable();
        assert_eq!(all, [(1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1)], "each once in a round");
    }
    let order = |round: usize| rounds[round].iter().map(|turn| turn.cell).collect::<Vec<_>>();
    assert!(order(0) != order(1) || order(1) != order(2), "drawn anew");
}

#[test]
fn a_turn_is_done_when_all_is_there_or_something_broke() {
    let plan = plan();
    let all_at_once = ScheduledRepeat { targets: vec![0, 1], cell: 1, repeat: 2 };
    let mut done = Done::new();
    for phase in [Phase::Write, Phase::Read] {
        assert!(!all_at_once.is_done(&plan, &done, &Trials::default()));
        done.insert(all_at_once.key(0, phase), None);
    }
    assert!(!all_at_once.is_done(&plan, &done, &Trials::default()), "the other target is missing");
    done.insert(all_at_once.key(1, Phase::Write), Some(Invalid::Starved(None)));
    assert!(!all_at_once.is_done(&plan, &done, &Trials::default()), "its read is missing");
    done.insert(all_at_once.key(1, Phase::Write), Some(Invalid::Errors));
    assert!(all_at_once.is_done(&plan, &done, &Trials::default()), "nothing can be read");
    let recording = ScheduledRepeat { targets: vec![0], cell: 4, repeat: 1 };
    assert!(!recording.is_done(&plan, &done, &Trials::default()));
    done.insert(recording.key(0, Phase::Ingest), None);
    assert!(recording.is_done(&plan, &done, &Trials::default()));
}

#[test]
fn a_search_begins_at_the_limit_that_was_measured_and_ends_where_a_trial_can_not_begin() {
    let cell = RecordingRun { goal: Goal::Search, ..recording(None) };
    let plan = recordings([cell.clone()]);
    let search = ScheduledRepeat { targets: vec![0], cell: 0, repeat: 1 };
    let (mut trials, mut done) = (Trials::default(), Done::new());
    let key = |cell, repeat| Key { target: 0, cell, repeat, phase: Phase::Ingest };
    let sample = |goal, invalid| {
        let ingest = Ingest {
            goal,
            count: 1,
            period: Nanos::from_millis(1),
            frame_size: Bytes(7 << 20),
            ..Ingest::default()
        };
        let (bytes, wall) = (7 << 30, Nanos::from_millis(1000));
        Sample { bytes, wall, invalid, ingest: Some(ingest), ..Sample::new(Nanos(0)) }
    };
    trials.add(&cell, key(7, 0), &sample(Goal::Limit, None));
    let (before, first) = trials.next(&done, &cell, search.cell, 0).expect("nothing was tried");
    assert_eq!(before, 0);
    let ratio = first.rate().0 / (7_u64 << 30) as f64;
    assert!((0.9..1.1).contains(&ratio), "it begins at {ratio} of the limit");
    let starved = sample(Goal::Search, Some(Invalid::Starved(None)));
    trials.add(&cell, key(search.cell, 1), &starved);
    done.insert(key(search.cell, 1), starved.invalid);
    assert_eq!(trials.next(&done, &cell, search.cell, 0).map(|(before, _)| before), Some(1));
    assert!(!search.is_done(&plan, &done, &trials));
    let refused = Sample::invalid(Invalid::Refused("no memory".into()));
    trials.add(&cell, key(search.cell, 2), &refused);
    done.insert(key(search.cell, 2), refused.invalid);
    assert!(trials.next(&done, &cell, search.cell, 0).is_none());
    assert!(search.is_done(&plan, &done, &trials));
}
