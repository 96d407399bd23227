//! Processors: their speed when packets come, and the memory that the recorder may lock.

use std::{collections::BTreeMap, fs};

use nilometer_model::Bytes;
use nilometer_report::{MachineFinding, Sufficiency};
use nilometer_storage::network::kernel_text;
use rustix::process::{Resource, getrlimit};

/// The usual memory of the recorder.
const BUFFER: Bytes = Bytes(1 << 30);

pub(super) fn findings() -> Vec<MachineFinding> {
    let limit = getrlimit(Resource::Memlock).current;
    vec![governor(&governors()), memory(limit.map(Bytes))]
}

/// The number of processors with each governor.
fn governors() -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir("/sys/devices/system/cpu").into_iter().flatten().flatten() {
        if let Some(name) = kernel_text(entry.path().join("cpufreq/scaling_governor")) {
            *found.entry(name).or_insert(0) += 1;
        }
    }
    found
}

fn governor(found: &BTreeMap<String, usize>) -> MachineFinding {
    const WHAT: &str = "processors";
    if found.is_empty() {
        return MachineFinding::new(
            WHAT,
            Sufficiency::Good,
            "no governor: this system does not set their speed",
        );
    }
    let text: Vec<_> = found.iter().map(|(name, count)| format!("{count} with governor {name}")).collect();
    let only = found.keys().all(|name| name == "performance");
    MachineFinding::holds(WHAT, only, text.join(", ")).by("cpupower frequency-set --governor performance")
}

/// The memory that this user may lock. Without it, writes past the cache cost more.
fn memory(limit: Option<Bytes>) -> MachineFinding {
    const WHAT: &str = "memory to lock";
    match limit {
        None => MachineFinding::new(WHAT, Sufficiency::Good, "unlimited"),
        Some(limit) => {
            let sufficiency = if limit >= BUFFER { Sufficiency::Good } else { Sufficiency::Note };
            MachineFinding::new(
                WHAT,
                sufficiency,
                format!("{limit} for this user; the recorder's buffer has {BUFFER}"),
            )
            .by("ulimit -l unlimited, or LimitMEMLOCK=infinity in the unit of the service")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_that_save_power_are_found() {
        let governors = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), 4)).collect();
        assert_eq!(governor(&BTreeMap::new()).sufficiency, Sufficiency::Good);
        assert_eq!(governor(&governors(&["performance"])).sufficiency, Sufficiency::Good);
        let mixed = governor(&governors(&["performance", "powersave"]));
        assert!(
            mixed.sufficiency == Sufficiency::Bad && mixed.found.contains("4 with governor powersave"),
            "{mixed:?}"
        );
    }

    #[test]
    fn memory_that_can_not_be_locked_is_told() {
        assert_eq!(memory(None).sufficiency, Sufficiency::Good);
        assert_eq!(memory(Some(BUFFER)).sufficiency, Sufficiency::Good);
        assert_eq!(memory(Some(Bytes(8 << 20))).sufficiency, Sufficiency::Note);
    }
}
