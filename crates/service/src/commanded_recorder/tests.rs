//! Tests of orders that fail, come too early or wait, without a recording.

use std::sync::mpsc::sync_channel;

use super::*;

/// A recorder with these options, and its published reports.
fn commanded(wishes: RecordOptions) -> (CommandedRecorder, Publisher) {
    let published = Publisher::default();
    let permission = CommandPermission {
        beyond: false,
        instruments: Vec::new(),
        file: wishes,
        has_preview: false,
        log: |_| {},
    };
    (CommandedRecorder::new(permission, published.clone()), published)
}

/// Waits until the order is done.
fn await_done(recorder: &mut CommandedRecorder) {
    while recorder.background.is_some() {
        std::thread::sleep(LOOK.duration());
        recorder.look();
    }
}

/// The answer to an order.
fn told(recorder: &mut CommandedRecorder, order: RecorderOrder) -> OrderAnswer {
    let (answer, answered) = sync_channel(1);
    recorder.hear(QueuedOrder { order, answer });
    await_done(recorder);
    answered.try_recv().expect("an answer")
}

fn nowhere() -> RecordOptions {
    let mode = "VDIF_8000-4096-16-2".parse().ok();
    RecordOptions { mode, to: vec!["/no/such/directory".into()], ..RecordOptions::default() }
}

/// A recorder whose directory vanished after it was configured.
fn without_directory() -> (CommandedRecorder, Publisher) {
    let place = tempfile::tempdir().expect("a directory");
    let both = commanded(RecordOptions { to: vec![place.path().into()], ..nowhere() });
    place.close().expect("it is empty");
    both
}

#[test]
fn what_fails_when_nobody_waits_for_it_any_more_is_a_fault() {
    let (mut recorder, published) = without_directory();
    let report = || published.read(|published| published.report.clone());
    let Err(RefusedOrder::AskedWrongly(why)) =
        told(&mut recorder, RecorderOrder::Record("scan".into(), None))
    else {
        panic!("there is no such directory")
    };
    assert_eq!((report().state, report().fault), (ServiceState::Configured, None), "it was told");
    let (answer, answered) = sync_channel(1);
    drop(answered);
    recorder.hear(QueuedOrder { order: RecorderOrder::Record("scan".into(), None), answer });
    await_done(&mut recorder);
    assert_eq!((report().state, report().fault), (ServiceState::Failed, Some(why)));
}

#[test]
fn an_order_that_comes_too_early_is_told_what_is_missing() {
    let (mut recorder, _) = commanded(RecordOptions { mode: None, ..nowhere() });
    let Err(RefusedOrder::WrongState(why)) = told(&mut recorder, RecorderOrder::Start) else {
        panic!("nothing is armed")
    };
    assert!(why.starts_with("it is idle: ") && why.contains("no instrument"), "{why}");
}

#[test]
fn no_more_than_so_many_wait_for_an_end() {
    let (mut recorder, published) = commanded(nowhere());
    published.changing().report.state = ServiceState::Recording;
    let mut all = Vec::new();
    for _ in 0..WAITING {
        let (answer, answered) = sync_channel(1);
        recorder.hear(QueuedOrder { order: RecorderOrder::Stop, answer });
        all.push(answered);
    }
    assert!(all.iter().all(|answered| answered.try_recv().is_err()), "they wait");
    assert_eq!(told(&mut recorder, RecorderOrder::Stop).expect_err("too many"), RefusedOrder::Busy);
}

#[test]
fn a_stop_during_the_preparation_is_answered_at_its_end() {
    let (mut recorder, published) = without_directory();
    let (on, begun) = sync_channel(1);
    recorder.hear(QueuedOrder { order: RecorderOrder::Record("scan".into(), None), answer: on });
    let mut stops = Vec::new();
    for _ in 0..WAITING {
        let (off, stopped) = sync_channel(1);
        recorder.hear(QueuedOrder { order: RecorderOrder::Stop, answer: off });
        stops.push(stopped);
    }
    let (off, refused) = sync_channel(1);
    recorder.hear(QueuedOrder { order: RecorderOrder::Stop, answer: off });
    assert_eq!(refused.try_recv().expect("an answer").expect_err("too many"), RefusedOrder::Busy);
    await_done(&mut recorder);
    assert!(matches!(begun.try_recv().expect("an answer"), Err(RefusedOrder::AskedWrongly(_))));
    for stopped in stops {
        let report = stopped.try_recv().expect("an answer").expect("nothing records");
        assert_eq!((report.state, report.recordings), (ServiceState::Configured, 0));
    }
    assert!(published.read(|published| published.scans.is_empty()) && !recorder.is_arming());
}
