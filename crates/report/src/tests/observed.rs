//! Observed machines in every report.

use nilometer_model::Phase;

use super::{
    super::{Palette, TextLayout, html, json, markdown, terminal},
    Detail, WICKED, malformed, results, studied,
};
use nilometer_analysis::{
    made_up::{MadeUpServer, measured_in_turn, writes},
    observed::CorrectedLog,
};

#[test]
fn observed_machines_are_in_every_report_whatever_they_are_called() {
    let servers = [MadeUpServer::new(WICKED, 150_000_000, 990), MadeUpServer::new("oss2", 50_000_000, 300)];
    let logs = servers.map(|server| CorrectedLog { log: server.log(90, 200), offset: 0 });
    let mut results = results(2, vec![writes("one", "1048576 B", 1)], &[Phase::Write], 3);
    measured_in_turn(&mut results.samples, 5);
    let study = studied(&results).with_observed(&logs);
    let limit = "busy 99 % of the time, 2.0 requests at once, read 0 B/s, written 150 MB/s";
    let page = html(&study);
    assert_eq!(malformed(&page), None);
    assert!(!page.contains("<script>alert") && !page.contains("NaN") && page.contains("#observed"));
    assert_eq!(page.matches("over the time of the run</title>").count(), 9, "a chart of the run, and eight");
    for text in [
        page,
        markdown(&study, Detail::Full),
        json(&study),
        terminal(&study, Detail::Full, TextLayout::plain()),
    ] {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(limit), "{text}");
        assert!(text.contains("one, write, on A"), "{text}");
    }
    for width in [60, 72, 80, 100] {
        let text = terminal(&study, Detail::Full, TextLayout::new(Palette::Plain, width));
        let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > width).collect();
        assert_eq!(wide, [""; 0], "{width} columns");
        assert!(text.chars().all(|letter| letter == '\n' || !letter.is_control()), "{text:?}");
    }
    let document: serde_json::Value = serde_json::from_str(&json(&study)).expect("JSON");
    let cell = &document["observed"]["cells"][0];
    assert_eq!((&cell["repeats"], &cell["machines"][0]["repeats_seen"]), (&3.into(), &3.into()));
    assert_eq!(cell["resources"][0]["is_at_limit"], true);
    assert!(
        serde_json::from_str::<serde_json::Value>(&json(&studied(&results))).expect("JSON")["observed"]
            .is_null()
    );
}
