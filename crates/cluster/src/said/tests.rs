//! Decisions that all processes share, on made-up reports.

use super::*;

#[test]
fn a_load_is_the_sum_of_all_ranks_and_fails_with_any() {
    let share = |wall, bytes, failed: Option<&str>| LoadReport {
        done: Some(BackgroundDone { wall: Nanos(wall), bytes, ..BackgroundDone::default() }),
        failed: failed.map(|why| Invalid::NoBackground(why.into())),
    };
    let measured = |loads: Vec<LoadReport>| RankReport::Measured { whole: true, samples: Vec::new(), loads };
    let reports = [
        measured(vec![share(9, 100, None), share(9, 1, None)]),
        measured(vec![share(8, 20, Some("it hangs")), LoadReport::default()]),
    ];
    let all = loads_of_all(&reports);
    assert_eq!(all, [share(9, 120, Some("it hangs")), share(9, 1, None)]);
    let mut sample = Sample::new(Nanos(0));
    all[0].clone().put(&mut sample);
    assert_eq!(sample.background.map(|done| done.bytes), Some(120));
    assert_eq!(sample.invalid, Some(Invalid::NoBackground("it hangs".into())));
}

#[test]
fn a_setting_that_fails_on_one_machine_fails_and_the_machine_is_named() {
    let settled =
        |node: &str, done: Result<(), String>| RankReport::Settled(SettingsReport::from(done).on(node));
    let all = SettingsReport::of_all(vec![settled("a", Ok(())), settled("b", Ok(()))]);
    assert_eq!(all.outcome(), Ok(()));
    let failed = vec![settled("a", Err("no".into())), settled("b", Ok(())), settled("c", Err("n".into()))];
    assert_eq!(SettingsReport::of_all(failed).outcome(), Err("a: no; c: n".into()));
}

#[test]
fn a_target_that_fails_on_one_rank_is_measured_by_none() {
    let ready = |failed: [Option<Invalid>; 2]| RankReport::Ready(failed.into());
    let refused = || Some(Invalid::Refused("no space".into()));
    assert_eq!(failed_on_any(vec![ready([None, None]), ready([None, refused()])]), [None, refused()]);
    let both = vec![ready([refused(), None]), ready([Some(Invalid::Hung), None])];
    assert_eq!(failed_on_any(both), [Some(Invalid::Hung), None], "the gravest");
}

#[test]
fn ranks_read_one_dataset_only_if_all_find_the_same() {
    let opened = |dimensions: &[u64]| RankReport::Opened(Ok(Some(dimensions.to_vec())));
    let asleep = || RankReport::Opened(Ok(None));
    assert_eq!(dataset_fault(&[asleep(), opened(&[20, 5, 6]), opened(&[20, 5, 6])]), None);
    let Some(Invalid::Refused(why)) =
        dataset_fault(&[asleep(), opened(&[20, 5, 6]), asleep(), opened(&[19, 5, 6])])
    else {
        panic!("one of them sees an older file")
    };
    assert_eq!(why, "process 1 finds a dataset of 20x5x6, and process 3 one of 19x5x6");
    let hung = [opened(&[20, 5, 6]), RankReport::Opened(Err(Invalid::Hung)), opened(&[1])];
    assert_eq!(dataset_fault(&hung), Some(Invalid::Hung), "the gravest");
}

#[test]
fn what_is_cut_short_anywhere_is_no_sample() {
    let report = |rank, whole| {
        let node = String::from("a");
        let sample = Sample { bytes: u64::from(rank), ..Sample::new(Nanos(0)) };
        let (clock_offset, clock_uncertainty, began) = (0, 0, Nanos(0));
        let of_rank = RankSample { rank, node, clock_offset, clock_uncertainty, began, sample };
        RankReport::Measured { whole, samples: vec![of_rank.clone(), of_rank], loads: Vec::new() }
    };
    assert!(measured_by_all(vec![report(0, true), report(1, false)]).is_none());
    let by_target = measured_by_all(vec![report(0, true), report(1, true)]).expect("both are whole");
    let ranks: Vec<Vec<u32>> = by_target.iter().map(|of| of.iter().map(|one| one.rank).collect()).collect();
    assert_eq!(ranks, [[0, 1], [0, 1]]);
    let asleep = RankReport::Measured { whole: true, samples: Vec::new(), loads: Vec::new() };
    let by_target = measured_by_all(vec![report(0, true), asleep]).expect("the one that worked");
    assert!(by_target.iter().all(|of_target| of_target.len() == 1));
}

#[test]
fn a_recording_is_of_those_that_have_a_part_of_it() {
    let of_rank = |rank| RankSample {
        rank,
        node: "a".into(),
        clock_offset: 0,
        clock_uncertainty: 0,
        began: Nanos(0),
        sample: Sample::new(Nanos(0)),
    };
    let recorded = |whole, samples: [Option<RankSample>; 2]| RankReport::Recorded {
        whole,
        samples: samples.into(),
        load: LoadReport::default(),
    };
    let both =
        vec![recorded(true, [Some(of_rank(0)), None]), recorded(true, [Some(of_rank(1)), Some(of_rank(1))])];
    let by_cell = recorded_by_all(both).expect("all are whole");
    let ranks: Vec<Vec<u32>> = by_cell.iter().map(|of| of.iter().map(|one| one.rank).collect()).collect();
    assert_eq!(ranks, [vec![0, 1], vec![1]]);
    let cut = vec![recorded(true, [Some(of_rank(0)), None]), recorded(false, [None, None])];
    assert!(recorded_by_all(cut).is_none());
}

#[test]
fn nodes_are_apart_where_no_two_reach_a_target_by_the_same_client() {
    let nodes = RankNodes::of(&["a", "a", "b"].map(String::from));
    let said = |clients: [[&str; 2]; 3]| {
        let of_rank = |of: [&str; 2]| of.map(|client| Some(client.to_owned()).filter(|id| !id.is_empty()));
        let all: Vec<Vec<_>> = clients.into_iter().map(|of| of_rank(of).into()).collect();
        CampaignRanks::of(nodes.clone(), &all).apart
    };
    assert_eq!(said([["1", "x"], ["1", "y"], ["2", "z"]]), [true, true], "processes of a node may share one");
    assert_eq!(said([["1", "x"], ["2", "y"], ["2", "x"]]), [false, false]);
    assert_eq!(said([["1", ""], ["1", "y"], ["2", "z"]]), [true, false], "one is not known");
}
