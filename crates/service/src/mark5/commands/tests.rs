//! Tests of replies against the command set.

use super::*;
use crate::state::ReportedRecording;

#[test]
fn a_label_is_put_together_and_is_a_plain_name() {
    assert_eq!(label(["", "", "n11m2_ef_no0001"]).as_deref(), Some("n11m2_ef_no0001"));
    assert_eq!(label(["n11m2", "ef", "no0001"]).as_deref(), Some("n11m2_ef_no0001"));
    let long = "x".repeat(LABEL_MAX + 1);
    for wrong in ["", ".", "../x", "a/b", "a b", &long] {
        assert_eq!(label(["", "", wrong]), None, "{wrong}");
    }
    assert_eq!(label(["n11m2", "ef", ""]), None);
}

#[test]
fn the_figures_of_evlbi_are_those_that_were_counted() {
    let lost = Lost { packets: 8, unfilled: 2, late: 1, ..Lost::default() };
    let came = Came { packets: 90, ..Came::default() };
    let status = Status {
        came,
        lost,
        reordered_packets: 4,
        reordering_sum: 10,
        duplicate_packets: 3,
        ..Status::default()
    };
    let text = formatted("%t %l (%L) %o (%O) %d %D %r %R %x", &status);
    assert_eq!(text, "90 10 (10.00%) 4 ( 4.00%) 4  4.00% 10 2.5seqnr/pkt %x");
}

#[test]
fn the_figures_of_a_sender_are_its_own() {
    let sender = SenderStatus {
        received_packets: 45,
        missing_packets: 5,
        late_packets: 1,
        reordered_packets: 2,
        reordering_sum: 5,
        duplicate_packets: 1,
        ..SenderStatus::default()
    };
    let text = formatted_of_sender("%t %l (%L) %o (%O) %d %r %R", &sender);
    assert_eq!(text, "45 5 (10.00%) 2 ( 4.00%) 2 5 2.5seqnr/pkt");
}

#[test]
fn the_status_word_has_the_bits_of_the_command_set() {
    let report = |state| ServiceReport { state, ..ServiceReport::default() };
    assert_eq!(word(&report(ServiceState::Configured), false), 0x0030_0001);
    assert_eq!(word(&report(ServiceState::Recording), false), 0x0030_0059);
    let failed = ServiceReport { fault: Some("gone".into()), ..report(ServiceState::Failed) };
    assert_eq!(word(&failed, true), 0x0030_0003);
}

#[test]
fn the_status_word_tells_of_missing_and_of_discarded_packets() {
    let of = |lost, ignored_packets| {
        let status = Status { lost, ignored_packets, ..Status::default() };
        let recording = Some(ReportedRecording { status, ..ReportedRecording::default() });
        word(&ServiceReport { state: ServiceState::Recording, recording, ..ServiceReport::default() }, false)
    };
    assert_eq!(of(Lost::default(), vec![("not-allowed", 5)]), 0x0030_0059);
    assert_eq!(of(Lost { packets: 1, ..Lost::default() }, vec![]), 0x0030_0459);
    assert_eq!(of(Lost { unfilled: 1, ..Lost::default() }, vec![]), 0x0030_0459);
    assert_eq!(of(Lost::default(), vec![("odd-sized", 1)]), 0x0030_0459);
}

#[test]
fn discarded_packets_are_lost_for_evlbi_and_count_once() {
    let of = |packets, discarded| {
        let came = Came { packets: 100, ..Came::default() };
        let lost = Lost { packets, ..Lost::default() };
        let ignored_packets = vec![("odd-sized", discarded), ("not-allowed", 7)];
        formatted("%t %l (%L)", &Status { came, lost, ignored_packets, ..Status::default() })
    };
    assert_eq!(of(0, 100), "100 100 (100.00%)");
    assert_eq!(of(100, 25), "100 100 (50.00%)");
}

#[test]
fn faults_of_the_last_recording_are_errors_behind_those_of_the_recorder() {
    let last = EndedScan {
        begun: Moment(Nanos::from_millis(5000)),
        seconds: 2.0,
        fault: Some("9 packets are missing".into()),
        ..EndedScan::default()
    };
    let mut report = ServiceReport { last: Some(last), ..ServiceReport::default() };
    let of = |report: &ServiceReport| errors(report).map(|error| error.why).collect::<Vec<_>>();
    assert_eq!(of(&report), ["9 packets are missing"]);
    assert_eq!(errors(&report).next().expect("one").at, Moment(Nanos::from_millis(7000)));
    report.fault = Some("gone".into());
    assert_eq!(of(&report), ["gone", "9 packets are missing"]);
}
