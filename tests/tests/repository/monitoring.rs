//! Dashboards and alerts in `contrib/`: every metric that they name exists, and promtool accepts every expression.

use std::{collections::BTreeSet, fs, path::PathBuf, process::Output};

use nilometer_tests::{assert_none, files, read, root, tool};
use serde_json::Value;

/// Words in a text that have the form of a metric of ours.
fn metrics_in(text: &str) -> BTreeSet<String> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let words = text.split(|letter| !is_part(letter));
    words.filter(|word| word.starts_with("nilometer_")).map(str::to_owned).collect()
}

/// The metrics that the reference lists. For a series over TCP, `packets` in a name is `frames`.
fn documented() -> BTreeSet<String> {
    let page = read(&root().join("docs/reference/metrics.md"));
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let names: BTreeSet<String> = rows.map(str::to_owned).collect();
    let of_frames = names.iter().map(|name| name.replace("packets", "frames"));
    of_frames.chain(names.iter().cloned()).collect()
}

/// Metrics in a text that the reference does not list.
fn unknown(text: &str) -> Vec<String> {
    metrics_in(text).difference(&documented()).cloned().collect()
}

fn dashboards() -> Vec<(PathBuf, Value)> {
    let paths = files(&root().join("contrib/grafana"), "json");
    let parsed = paths.into_iter().map(|path| {
        let board = serde_json::from_str(&read(&path)).expect("JSON");
        (path, board)
    });
    parsed.collect()
}

/// The expressions of a dashboard, with values in the place of Grafana's variables.
fn expressions(board: &Value) -> Vec<String> {
    let panels = board["panels"].as_array().expect("panels");
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().expect("queries"));
    let written = targets.map(|target| target["expr"].as_str().expect("an expression"));
    written.map(filled).collect()
}

fn filled(expression: &str) -> String {
    let filled = expression.replace("$__rate_interval", "1m");
    let names = ["instance", "title", "target"];
    names.iter().fold(filled, |text, name| text.replace(&format!("${name}"), ".*"))
}

/// Runs promtool in the directory of the alerts, and asserts that it has nothing to say against them.
fn promtool(arguments: &[&str]) {
    let Some(mut promtool) = tool("promtool") else { return };
    let Output { status, stdout, stderr } =
        promtool.args(arguments).current_dir(root().join("contrib/prometheus")).output().expect("it starts");
    let said = [stdout, stderr].map(|said| String::from_utf8_lossy(&said).into_owned()).concat();
    assert!(status.success(), "{said}");
}

#[test]
fn every_metric_of_a_dashboard_or_an_alert_is_in_the_reference() {
    let folders = [("contrib/grafana", "json"), ("contrib/prometheus", "yml")];
    let files: Vec<_> = folders.iter().flat_map(|(folder, end)| files(&root().join(folder), end)).collect();
    assert!(files.len() >= 6, "{files:?}");
    let complaints = files.iter().flat_map(|file| {
        let unknown = unknown(&read(file)).into_iter();
        unknown.map(move |name| format!("{}: no metric {name}", file.display()))
    });
    assert_none(&complaints.collect::<Vec<_>>());
}

#[test]
fn a_metric_that_was_renamed_is_found() {
    let text =
        "rate(nilometer_lost_frames_total{cause=~\"$x\"}[1m]) > nilometer_room_second and nilometer-weekly";
    assert_eq!(unknown(text), ["nilometer_room_second"]);
}

#[test]
fn every_panel_has_a_description_a_unit_and_expressions_that_prometheus_reads() {
    let boards = dashboards();
    assert_eq!(boards.len(), 2);
    let all: Vec<String> = boards.iter().flat_map(|(_, board)| expressions(board)).collect();
    assert!(all.len() > 30 && all.iter().all(|text| !text.contains('$')), "{all:?}");
    let rules = all
        .iter()
        .enumerate()
        .map(|(at, text)| format!("  - record: panel:{at}\n    expr: {}\n", Value::from(text.as_str())));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("panels.yml");
    fs::write(&path, format!("groups:\n- name: panels\n  rules:\n{}", rules.collect::<String>()))
        .expect("space");
    promtool(&["check", "rules", path.to_str().expect("plain")]);
    let mut complaints = Vec::new();
    for (path, board) in &boards {
        let panels = board["panels"].as_array().expect("panels");
        let is_told = |panel: &&Value| {
            panel["description"].as_str().is_some_and(|text| text.ends_with('.'))
                && panel["fieldConfig"]["defaults"]["unit"].is_string()
        };
        let silent = panels.iter().filter(|panel| !is_told(panel));
        complaints.extend(silent.map(|panel| format!("{}: {}", path.display(), panel["title"])));
        let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64()).collect();
        assert_eq!(ids.len(), panels.len(), "{}: every panel has a number of its own", path.display());
    }
    assert_none(&complaints);
}

#[test]
fn alerts_fire_when_they_should() {
    promtool(&["check", "config", "prometheus.yml"]);
    promtool(&["test", "rules", "recorder.rules.test.yml", "evaluation.rules.test.yml"]);
    let rules = read(&root().join("contrib/prometheus/nilometer.rules.yml"));
    let tests = ["recorder", "evaluation"]
        .map(|name| read(&root().join(format!("contrib/prometheus/{name}.rules.test.yml"))));
    let tests = tests.concat();
    let alerts = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: "));
    let untested = alerts.filter(|alert| !tests.contains(&format!("alertname: {alert}\n")));
    assert_none(&untested.map(|alert| format!("{alert}: no test in which it fires")).collect::<Vec<_>>());
}
