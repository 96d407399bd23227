//! What the measurement ran on: facts that explain a figure years later.

use std::fs;

/// Key and value, for the record.
pub fn environment() -> Vec<(String, String)> {
    let uname = rustix::system::uname();
    let line = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let mut facts = vec![
        ("host".into(), uname.nodename().to_string_lossy().into_owned()),
        (
            "kernel".into(),
            format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy()),
        ),
        ("machine".into(), uname.machine().to_string_lossy().into_owned()),
        ("processors".into(), std::thread::available_parallelism().map_or(1, Into::into).to_string()),
        ("processor".into(), field("/proc/cpuinfo", "model name")),
        ("memory".into(), field("/proc/meminfo", "MemTotal")),
        (
            "operating system".into(),
            field_of("/etc/os-release", "PRETTY_NAME", '=').trim_matches('"').to_owned(),
        ),
        ("command".into(), std::env::args().collect::<Vec<_>>().join(" ")),
        ("dirty_ratio".into(), line("/proc/sys/vm/dirty_ratio")),
        ("clock source".into(), line("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
    ];
    facts.retain(|(_, value): &(String, String)| !value.is_empty());
    facts
}

fn field(path: &str, name: &str) -> String {
    field_of(path, name, ':')
}

/// The value of the first line `name<separator>value` of a file; empty if there is none.
fn field_of(path: &str, name: &str, separator: char) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let found =
        text.lines().filter_map(|line| line.split_once(separator)).find(|(key, _)| key.trim() == name);
    found.map_or_else(String::new, |(_, value)| value.trim().to_owned())
}
