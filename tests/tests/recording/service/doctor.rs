//! `nilometer doctor`: it says what is enough and what is not, and changes nothing.

use std::process::Command;

use nilometer_tests::{may_mount, nilometer, run};

#[test]
fn what_any_machine_can_do_is_enough_and_what_none_can_is_not() {
    let before = settings();
    let easy = run(&["doctor", "--rate", "1 kbit/s", "--packet", "100 B", "--interface", "lo"]);
    assert!(has_row(&easy.stdout, "ok socket buffer "), "{easy:?}");
    assert!(has_row(&easy.stdout, "ok lo mtu "), "{easy:?}");
    let bad = rows(&easy.stdout).iter().filter(|row| row.starts_with("NOT ")).count();
    assert_eq!(easy.code, Some(i32::from(bad > 0)), "{easy:?}");
    let hard = run(&["doctor", "--rate", "100000 Gbit/s", "--packet", "65507 B", "--interface", "lo"]);
    assert_eq!(hard.code, Some(1), "{hard:?}");
    assert!(has_row(&hard.stdout, "NOT socket buffer "), "{hard:?}");
    assert!(hard.stdout.contains("sysctl -w net.core.rmem_max="), "{hard:?}");
    assert_eq!(settings(), before, "it changed something");
    let json =
        run(&["doctor", "--rate", "100000 Gbit/s", "--packet", "65507 B", "--interface", "lo", "--json"]);
    assert_eq!(json.code, Some(1), "{json:?}");
    let document: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(document["bytes_per_second"], 1.25e13);
    let findings = document["findings"].as_array().expect("findings");
    let buffer = findings.iter().find(|finding| finding["what"] == "socket buffer").expect("a finding");
    assert_eq!(buffer["verdict"], "not enough", "{buffer}");
    assert!(
        buffer["command"].as_str().is_some_and(|command| command.contains("net.core.rmem_max")),
        "{buffer}"
    );
}

/// The lines of a text with single spaces.
fn rows(text: &str) -> Vec<String> {
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn has_row(text: &str, begin: &str) -> bool {
    rows(text).iter().any(|row| row.starts_with(begin))
}

/// Runs `doctor` for a link of two virtual interfaces in a network of its own, before and after this command.
fn about_virtual_link(change: &str) -> [String; 2] {
    let doctor = "\"$0\" doctor --rate '1 kbit/s' --packet '100 B' --interface q0 || true";
    let script = format!(
        "set -e; mount -t sysfs sysfs /sys; ip link add q0 type veth peer name q1; ip link set q0 up; \
         ip link set q1 up; {doctor}; echo ----; {change}; {doctor}"
    );
    let mut command = Command::new("unshare");
    let output = command.args(["--net", "--mount", "sh", "-c", &script]).arg(nilometer()).output();
    let output = output.expect("unshare is installed");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (before, after) = text.split_once("----").unwrap_or_else(|| panic!("{output:?}"));
    [before, after].map(str::to_owned)
}

#[test]
fn an_interface_whose_packets_come_singly_is_noted_until_its_settings_join_them() {
    if !may_mount() {
        return;
    }
    let change =
        "echo 200000 > /sys/class/net/q0/gro_flush_timeout; echo 2 > /sys/class/net/q0/napi_defer_hard_irqs";
    let [before, after] = about_virtual_link(change);
    assert!(has_row(&before, "note q0 joining gro_flush_timeout 0 ns, napi_defer_hard_irqs 0"), "{before}");
    for command in change.split("; ") {
        assert!(before.contains(command), "{before}");
    }
    assert!(has_row(&after, "ok q0 joining gro_flush_timeout 200000 ns, napi_defer_hard_irqs 2"), "{after}");
}

#[test]
fn every_form_has_the_same_findings() {
    let place = tempfile::tempdir().expect("a directory");
    let page = place.path().join("machine.html");
    let page = page.to_str().expect("UTF-8");
    let asked = ["doctor", "--rate", "100000 Gbit/s", "--packet", "65507 B", "--interface", "lo"];
    let markdown = run(&[&asked[..], &["--format", "markdown", "--html", page]].concat());
    assert_eq!(markdown.code, Some(1), "{markdown:?}");
    assert!(markdown.stdout.contains("| **NOT** | socket buffer | "), "{markdown:?}");
    let html = std::fs::read_to_string(page).expect("a page");
    assert!(html.contains("socket buffer") && html.contains("sysctl -w net.core.rmem_max="), "{html}");
    let as_json = |options: &[&str]| -> serde_json::Value {
        let ended = run(&[&asked[..], options].concat());
        serde_json::from_str(&ended.stdout).expect("JSON")
    };
    let [one, other] = [as_json(&["--json"]), as_json(&["--format", "json"])];
    assert_eq!(one["findings"].as_array().map(Vec::len), other["findings"].as_array().map(Vec::len));
    let both = run(&["doctor", "--json", "--format", "json"]);
    assert_eq!(both.code, Some(2), "{both:?}");
}

fn settings() -> Vec<String> {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/sys/net/core/{name}")).unwrap_or_default();
    ["rmem_max", "rmem_default", "netdev_max_backlog", "netdev_budget"].map(read).to_vec()
}

#[test]
fn what_there_is_not_is_refused_with_what_there_is() {
    for (options, words) in [
        (["--interface", "nowhere0"], ["nowhere0", "lo"]),
        (["--rate", "fast"], ["fast", "--rate"]),
        (["--packet", "0 B"], ["--packet", "65507"]),
        (["--rate", "0 B/s"], ["--rate", "more than 0"]),
    ] {
        let ended = run(&[&["doctor"][..], &options].concat());
        assert_eq!(ended.code, Some(2), "{options:?}: {ended:?}");
        assert!(words.iter().all(|word| ended.stderr.contains(word)), "{options:?}: {}", ended.stderr);
    }
}
