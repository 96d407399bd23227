//! Where the figures come from: machine, kernel, versions of the peers.

use std::process::Command;

/// A few lines for the head of the output.
pub(crate) fn description() -> String {
    let name = rustix::system::uname();
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    let lines = [
        format!("- machine: {}, {processors} processors", processor()),
        format!("- kernel: {} {}", name.release().to_string_lossy(), name.machine().to_string_lossy()),
        format!("- peers: {}; {}", version("fio"), version("dd")),
    ];
    lines.join("\n")
}

fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    model.map_or_else(|| "unknown processor".into(), |(_, model)| model.trim().to_owned())
}

fn version(program: &str) -> String {
    let output = Command::new(program).arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let first = text.ok().and_then(|text| text.lines().next().map(str::to_owned));
    first.unwrap_or_else(|| format!("{program} is missing"))
}
