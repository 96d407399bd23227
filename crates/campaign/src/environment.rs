//! The environment of the measurement: facts that explain a figure years later. Facts that this machine does
//! not reveal are left out.

use nilometer_model::{TargetDescription, observed::ClockState, shell_word};
use nilometer_plan::{Onto, PlannedCampaign};
use nilometer_storage::{
    clock::{clock_source, clock_state},
    network::{interfaces, interrupts::InterruptSpread},
    process::{self, BootId},
};
use std::{fs, path::Path};

use crate::ingest::Shape;

use rustix::process::{Resource, getrlimit};

/// Key and value.
type Fact = (String, String);

/// Facts of this machine and of the targets' devices, for the record.
pub fn environment(targets: &[TargetDescription]) -> Vec<Fact> {
    let mut facts: Vec<Fact> = Vec::new();
    let groups = [program(), system(), processors(), memory(), limits()];
    facts.extend(groups.into_iter().flatten().map(|(key, value)| (key.to_owned(), value)));
    facts.extend(interrupts());
    let mut seen = Vec::new();
    for device in targets.iter().filter_map(|target| target.device.as_ref()) {
        if !seen.contains(&device) {
            seen.push(device);
            facts.extend(block_device(device));
        }
    }
    facts.retain(|(_, value)| !value.is_empty());
    facts
}

/// How recordings are laid out on the targets, for the record: see [`nilometer_plan::RecordingRun::layout_key`].
pub(crate) fn layouts(campaign: &PlannedCampaign) -> Vec<Fact> {
    let mut facts: Vec<Fact> = Vec::new();
    for (cell, run) in campaign.plan.recordings().filter(|(_, run)| run.onto == Onto::Target) {
        for target in campaign.asked().filter(|&target| campaign.applies(cell, target)) {
            let key = run.layout_key(&campaign.targets[target].address.to_string());
            if facts.iter().all(|(known, _)| *known != key) {
                let recorders = campaign.plan.recorders_of(run);
                let each =
                    if recorders > 1 { format!("{recorders} processes, each: ") } else { String::new() };
                let plan = Shape::over(&run.part(0, recorders), &campaign.described(target)).plan;
                facts.push((key, format!("{each}{plan}")));
            }
        }
    }
    facts
}

/// The processors that the queues of each card interrupt.
fn interrupts() -> impl Iterator<Item = Fact> {
    let of = |name: String| Some((format!("interrupts of {name}"), InterruptSpread::of(&name)?.to_string()));
    interfaces().into_iter().filter_map(of)
}

fn program() -> Vec<(&'static str, String)> {
    vec![
        ("command", arguments().collect::<Vec<_>>().join(" ")),
        ("nilometer", env!("CARGO_PKG_VERSION").into()),
        ("build", if cfg!(debug_assertions) { "debug" } else { "release" }.into()),
    ]
}

/// The command line. A path that is not UTF-8 is given as far as possible.
fn arguments() -> impl Iterator<Item = String> {
    std::env::args_os().map(|argument| shell_word(&argument.to_string_lossy()))
}

fn system() -> Vec<(&'static str, String)> {
    let uname = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    vec![
        ("host", text(uname.nodename())),
        ("kernel", format!("{} {}", text(uname.sysname()), text(uname.release()))),
        ("kernel build", text(uname.version())),
        ("kernel command line", line("/proc/cmdline")),
        ("machine", text(uname.machine())),
        ("operating system", field("/etc/os-release", "PRETTY_NAME", '=').trim_matches('"').to_owned()),
        ("clock source", clock_source()),
        (ClockState::FACT, clock_state().map_or_else(String::new, |state| state.to_string())),
        ("boot id", BootId::now().map_or_else(String::new, |id| id.to_string())),
    ]
}

fn processors() -> Vec<(&'static str, String)> {
    let processor = Path::new("/sys/devices/system/cpu");
    let flags = field("/proc/cpuinfo", "flags", ':');
    let virtual_machine = flags.split_whitespace().any(|flag| flag == "hypervisor");
    vec![
        ("processors", std::thread::available_parallelism().map_or(1, Into::into).to_string()),
        ("processor", field("/proc/cpuinfo", "model name", ':')),
        ("governor", line(processor.join("cpu0/cpufreq/scaling_governor"))),
        ("hyper-threading", hyper_threading(&line(processor.join("smt/control"))).into()),
        ("mitigations", mitigations(&processor.join("vulnerabilities"))),
        ("NUMA nodes", line("/sys/devices/system/node/online")),
        ("virtual machine", if virtual_machine { hypervisor() } else { String::new() }),
    ]
}

/// The meaning of the kernel's word for hyper-threading.
fn hyper_threading(control: &str) -> &str {
    match control {
        "forceoff" => "off, and can't be turned on",
        "notsupported" => "the processor has none",
        "notimplemented" => "not known",
        other => other,
    }
}

fn hypervisor() -> String {
    let product = line("/sys/class/dmi/id/product_name");
    if product.is_empty() { "yes".into() } else { format!("yes: {product}") }
}

/// The mitigations that cost processor time: `name: mitigation`, for each that is in force.
fn mitigations(directory: &Path) -> String {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<String> = entries
        .filter_map(|entry| {
            let done = line(entry.path());
            let done = done.strip_prefix("Mitigation: ")?;
            Some(format!("{}: {done}", entry.file_name().to_string_lossy()))
        })
        .collect();
    found.sort();
    found.join("; ")
}

fn memory() -> Vec<(&'static str, String)> {
    let setting = |name: &str| line(Path::new("/proc/sys/vm").join(name));
    vec![
        ("memory", field("/proc/meminfo", "MemTotal", ':')),
        ("swap", field("/proc/meminfo", "SwapTotal", ':')),
        ("transparent huge pages", chosen(&line("/sys/kernel/mm/transparent_hugepage/enabled")).into()),
        ("swappiness", setting("swappiness")),
        ("dirty_ratio", setting("dirty_ratio")),
        ("dirty_background_ratio", setting("dirty_background_ratio")),
        ("dirty_bytes", setting("dirty_bytes")),
        ("dirty_expire_centisecs", setting("dirty_expire_centisecs")),
    ]
}

fn limits() -> Vec<(&'static str, String)> {
    let limit = |resource| getrlimit(resource).current.map_or("unlimited".into(), |limit| limit.to_string());
    let memory = process::group_memory().map(|memory| memory.limit.to_string());
    let quota = process::processor_quota().map(|quota| format!("{quota:.2} processors"));
    vec![
        ("open files", limit(Resource::Nofile)),
        ("locked memory", limit(Resource::Memlock)),
        ("memory limit", memory.unwrap_or_default()),
        ("processor quota", quota.unwrap_or_default()),
    ]
}

/// The kernel's settings for a block device, by its name in `/sys/class/block`. A partition has the queue of
/// its disk.
fn block_device(name: &str) -> Vec<Fact> {
    // Resolve the link: it leads to the device, and `..` behind it to the disk of a partition.
    let device = Path::new("/sys/class/block").join(name).canonicalize().unwrap_or_default();
    let queue = [device.join("queue"), device.join("../queue")].into_iter().find(|queue| queue.exists());
    let queue = queue.unwrap_or_default();
    let setting = |name: &str| line(queue.join(name));
    let rotational = match setting("rotational").as_str() {
        "1" => "yes".into(),
        "0" => "no".into(),
        other => other.to_owned(),
    };
    let facts = [
        ("model", line(queue.join("../device/model"))),
        ("scheduler", chosen(&setting("scheduler")).to_owned()),
        ("rotational", rotational),
        ("write cache", setting("write_cache")),
        ("requests", setting("nr_requests")),
        ("read ahead KiB", setting("read_ahead_kb")),
        ("largest request KiB", setting("max_sectors_kb")),
        ("logical block", setting("logical_block_size")),
        ("physical block", setting("physical_block_size")),
    ];
    facts.into_iter().map(|(key, value)| (format!("{name}: {key}"), value)).collect()
}

/// The word in brackets, which is the one in force; the whole line if there is none.
fn chosen(line: &str) -> &str {
    let inside = line.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(line, |(word, _)| word)
}

fn line(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// The value of the first line `name<separator>value` of a file; empty if there is none.
fn field(path: &str, name: &str, separator: char) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    let found =
        text.lines().filter_map(|line| line.split_once(separator)).find(|(key, _)| key.trim() == name);
    found.map_or_else(String::new, |(_, value)| value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fact_says_something_and_the_ones_that_every_linux_has_are_there() {
        let target = nilometer_storage::target::probe(Path::new(".")).expect("a directory");
        let facts = environment(&[target.clone(), target.clone()]);
        for (key, value) in &facts {
            assert!(!value.is_empty() && !value.contains('\n'), "{key}: {value:?}");
        }
        let keys: Vec<&str> = facts.iter().map(|(key, _)| key.as_str()).collect();
        for key in ["host", "kernel", "kernel command line", "processors", "memory", "swap", "dirty_ratio"] {
            assert!(keys.contains(&key), "{key} is missing: {keys:?}");
        }
        for key in ["nilometer", "command", "open files", "locked memory"] {
            assert!(keys.contains(&key), "{key} is missing: {keys:?}");
        }
        if let Some(device) = target.device {
            for key in ["scheduler", "rotational", "write cache", "requests", "read ahead KiB"] {
                assert!(keys.contains(&format!("{device}: {key}").as_str()), "{key} is missing: {keys:?}");
            }
        }
        let mut distinct = keys.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), keys.len(), "a fact stands once: {keys:?}");
    }

    #[test]
    fn the_layout_of_a_recording_is_a_fact_of_each_target() {
        let plan = "title = \"t\"\n[[stage]]\nname = \"one\"\n[stage.ingest]\ninstrument = \"pilatus-2m\"\nframes = 100\n";
        let known =
            |name: &str| nilometer_storage::user_file::instrument(name).map_err(|why| why.to_string());
        let plan = nilometer_plan::parse_with(plan, "t.toml", 1.0, &known).expect("a plan");
        let here = nilometer_storage::target::probe(Path::new(".")).expect("a directory");
        let targets =
            ["/a", "/b"].map(|path| TargetDescription { address: Path::new(path).into(), ..here.clone() });
        let facts = layouts(&PlannedCampaign::new(plan, targets.to_vec()));
        assert_eq!(facts.len(), 2, "{facts:?}");
        assert!(facts.iter().all(|(key, value)| !key.is_empty() && !value.is_empty()), "{facts:?}");
    }

    #[test]
    fn words_of_the_kernel_that_only_it_understands_are_put_into_others() {
        let words = ["on", "off", "notsupported", ""].map(hyper_threading);
        assert_eq!(words, ["on", "off", "the processor has none", ""]);
    }

    #[test]
    fn the_setting_in_force_is_the_one_in_brackets() {
        assert_eq!(chosen("always [madvise] never"), "madvise");
        assert_eq!((chosen("none"), chosen("")), ("none", ""));
    }
}
