//! Tests of replies against the command set.

use super::*;

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
    assert_eq!(word(&report(ServiceState::Configured)), 0x0030_0001);
    assert_eq!(word(&report(ServiceState::Recording)), 0x0030_0059);
    let failed = ServiceReport { fault: Some("gone".into()), ..report(ServiceState::Failed) };
    assert_eq!(word(&failed), 0x0030_0003);
}
