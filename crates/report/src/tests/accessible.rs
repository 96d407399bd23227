//! Pages for readers who do not see them, or who use a keyboard.

use super::{recorded::recorded, results, studied, zoo::zoo};
use crate::{AcceptanceProof, acceptance_page, html};
use nilometer_analysis::made_up::writes;
use nilometer_model::Phase;

/// The opening tags of this name.
fn tags<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let pieces = page.split('<').filter_map(|piece| piece.strip_prefix(name).map(|_| piece));
    let tags = pieces.filter(|rest| rest[name.len()..].starts_with([' ', '>']));
    tags.map(|rest| &rest[..=rest.find('>').expect("its end")]).collect()
}

fn assert_tables_are_named(name: &str, page: &str) {
    for table in page.split("<table").skip(1) {
        let (_, inner) = table.split_once('>').expect("its end");
        assert!(inner.starts_with("<caption"), "{name}: a table without a caption: {inner:.200}");
    }
    let bare: Vec<&str> = tags(page, "th").into_iter().filter(|tag| !tag.contains("scope=")).collect();
    assert_eq!(bare, [""; 0], "{name}: headers must say what they head");
}

#[test]
fn tables_have_captions_and_headers_say_what_they_head() {
    for specimen in zoo() {
        let name = specimen.name;
        let study = specimen.study();
        assert_tables_are_named(name, &html(&study));
        let proof = AcceptanceProof {
            record: "0".into(),
            name: "r".into(),
            is_whole: None,
            signature: None,
            details: None,
        };
        assert_tables_are_named(name, &acceptance_page(&study, &proof));
    }
}

#[test]
fn answers_are_headings_and_the_first_link_skips_to_them() {
    let recorded = recorded(results(1, vec![writes("one", "1048576 B", 1)], &[Phase::Write], 6));
    let alone = results(1, vec![writes("one", "1048576 B", 1)], &[Phase::Write], 6);
    for (results, answer) in [(recorded, "✗ No</h2>"), (alone, " MB/s</h2>")] {
        let page = html(&studied(&results));
        let body = page.split("<body>").nth(1).expect("a body");
        assert!(body.starts_with("<a class=\"skip\" href=\"#main\">"), "{body:.100}");
        assert_eq!([tags(&page, "h1").len(), tags(&page, "main").len()], [1, 1]);
        assert!(page.contains("<main id=\"main\""), "the link leads somewhere");
        assert!(page.contains(answer), "{answer} is no heading");
        assert!(
            tags(&page, "nav").iter().all(|nav| nav.contains("aria-label=")),
            "a list of links has a name"
        );
    }
}
