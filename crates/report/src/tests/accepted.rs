//! The page of an acceptance.

use super::{results, studied};
use crate::{AcceptanceProof, acceptance_page};
use nilometer_analysis::{AcceptanceVerdict, CriterionAnswer, JudgedCriterion, Study, made_up::writes};
use nilometer_model::{Nanos, Phase};
use nilometer_plan::{Criterion, Requirement};

fn judged(answer: CriterionAnswer, found: &str) -> JudgedCriterion {
    let demand = Requirement::Latency { share: 0.99, most: Nanos::from_millis(20) };
    let criterion = Criterion { stage: "one".into(), phase: Some(Phase::Write), demand };
    JudgedCriterion { criterion, answer, found: found.into() }
}

/// Two offers: the first with these criteria, the second meets its only one.
fn page(first: Vec<JudgedCriterion>, is_whole: Option<bool>) -> String {
    page_with(first, &AcceptanceProof { is_whole, ..proof() })
}

fn proof() -> AcceptanceProof {
    AcceptanceProof {
        record: "0123".into(),
        name: "r.sqlite".into(),
        is_whole: Some(true),
        signature: None,
        details: None,
    }
}

fn page_with(first: Vec<JudgedCriterion>, proof: &AcceptanceProof) -> String {
    let mut results = results(2, vec![writes("one", "1048576 B", 1)], &[Phase::Write], 6);
    results.environment =
        vec![("program, sha256".into(), "abc".into()), ("kernel".into(), "6.1 <rc>".into())];
    let verdict =
        |target, criteria, price: &str| AcceptanceVerdict { target, price: Some(price.into()), criteria };
    let second = vec![judged(CriterionAnswer::Met, "1 ms")];
    let acceptance = vec![verdict(0, first, "100 EUR"), verdict(1, second, "90 EUR")];
    let study = Study { acceptance, ..studied(&results) };
    acceptance_page(&study, proof)
}

#[test]
fn a_signed_record_names_its_signature_and_the_command_that_checks_it() {
    let met = || vec![judged(CriterionAnswer::Met, "2 ms")];
    let unsigned = page(met(), Some(true));
    assert!(unsigned.contains("A seal is no signature") && unsigned.contains(">nilometer check r.sqlite<"));
    let signature = Some("r.sqlite.sig".into());
    let details = Some("r.html".into());
    let signed = page_with(met(), &AcceptanceProof { signature, details, ..proof() });
    for part in [">r.sqlite.sig<", ">r.html<", "nilometer check r.sqlite --signed-by SIGNERS<"] {
        assert!(signed.contains(part), "{part}: {signed}");
    }
    assert!(!signed.contains("A seal is no signature"), "{signed}");
}

/// A phone shows a row's cells below each other, each behind the heading of its column.
#[test]
fn criteria_name_their_columns_for_narrow_screens() {
    let page = page(vec![judged(CriterionAnswer::Met, "2 ms")], Some(true));
    assert!(page.contains("<table class=\"stack\">"), "{page}");
    for column in ["demanded", "answer", "found"] {
        assert!(page.contains(&format!(" data-heading=\"{column}\">")), "{column}: {page}");
    }
    assert!(!page.contains("data-heading=\"what\""), "the first cell names the row: {page}");
}

#[test]
fn each_offer_has_its_answer_with_the_reason_and_all_its_criteria() {
    let (met, violated) = (CriterionAnswer::Met, CriterionAnswer::Violated);
    let page = page(vec![judged(met, "2 ms"), judged(violated, "40 ms & more")], Some(true));
    for part in [
        "<div class=\"answer no\"><h2 class=\"reply\">✗ FAIL</h2>",
        "<div class=\"answer yes\"><h2 class=\"reply\">✓ PASS</h2>",
        "(100 EUR)",
        "(90 EUR)",
        "2 ms",
        "40 ms &amp; more",
        "0123",
        "record r.sqlite, sha256",
        "program, sha256",
        "6.1 &lt;rc&gt;",
        "consistent with the seal",
    ] {
        assert!(page.contains(part), "{part} is missing: {page}");
    }
    assert_eq!(page.matches("<tr><th scope=\"row\" class=\"one\">one, write</th>").count(), 3, "{page}");
}

#[test]
fn a_changed_record_and_an_open_criterion_are_said() {
    let page = page(vec![judged(CriterionAnswer::Undecided, "one repeat")], Some(false));
    assert!(page.contains("? NOT DECIDED</h2>") && page.contains("WAS CHANGED AFTER"), "{page}");
}

#[test]
fn a_criterion_names_the_samples_behind_its_finding() {
    let page = page(vec![judged(CriterionAnswer::Met, "2 ms")], Some(true));
    for target in ["A", "B"] {
        let samples =
            format!("title=\"from 6 samples: nilometer report RECORD --why &#39;one/write/{target}&#39;\"");
        assert!(page.contains(&samples), "{samples}: {page}");
    }
}
