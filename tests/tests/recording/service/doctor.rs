//! `nilometer doctor`: it says what is enough and what is not, and changes nothing.

use nilometer_tests::run;

#[test]
fn what_any_machine_can_do_is_enough_and_what_none_can_is_not() {
    let before = settings();
    let easy = run(&["doctor", "--rate", "1 kbit/s", "--packet", "100 B", "--interface", "lo"]);
    assert!(easy.stdout.contains("ok   socket buffer"), "{easy:?}");
    assert!(easy.stdout.contains("ok   lo mtu"), "{easy:?}");
    let bad = easy.stdout.lines().filter(|line| line.starts_with("NOT")).count();
    assert_eq!(easy.code, Some(i32::from(bad > 0)), "{easy:?}");
    let hard = run(&["doctor", "--rate", "100000 Gbit/s", "--packet", "65507 B", "--interface", "lo"]);
    assert_eq!(hard.code, Some(1), "{hard:?}");
    assert!(hard.stdout.contains("NOT  socket buffer"), "{hard:?}");
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
