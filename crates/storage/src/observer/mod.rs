//! Observes a whole machine through the kernel's counters, for `nilometer observe`. It touches no file, disk
//! or mount, and reads only `/proc` and `/sys`.

mod described;
mod temperatures;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use nilometer_model::{
    Nanos,
    observed::{ClockState, DiskCounters, ObservedHeader, ObservedLook, ProcessorCounters},
};

use crate::{
    clock::{Calendar, clock_state},
    network::kernel_text,
    process::proc_text,
};
use described::described;
use temperatures::Thermometers;

/// Reads the counters of this machine.
#[derive(Debug)]
pub struct MachineObserver {
    thermometers: Thermometers,
    looks: u64,
    /// Names in `/proc/diskstats`, each a whole device or a partition.
    devices: BTreeMap<String, DeviceExtent>,
}

/// The kind of a name in `/proc/diskstats`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeviceExtent {
    Whole,
    Partition,
}

/// Sensors are read at every Nth look: some take a moment, and their values change slowly.
const TEMPERATURES_EVERY: u64 = 10;

impl Default for MachineObserver {
    fn default() -> Self {
        MachineObserver { thermometers: Thermometers::found(), looks: 0, devices: BTreeMap::new() }
    }
}

impl MachineObserver {
    /// Describes this machine, for an observer with this interval.
    pub fn header(&self, host: String, interval: Nanos) -> ObservedHeader {
        described(host, interval)
    }

    /// Reads all counters now. Counters that the kernel does not report are absent, or zero.
    pub fn look(&mut self) -> ObservedLook {
        let text = |path: &str| kernel_text(path).unwrap_or_default();
        let Calendar { time, running } = Calendar::now();
        let error = clock_state().and_then(ClockState::error);
        let has_temperatures = self.looks.is_multiple_of(TEMPERATURES_EVERY);
        self.looks += 1;
        let [cpu, io, memory] = ["cpu", "io", "memory"].map(|what| text(&format!("/proc/pressure/{what}")));
        let links = text("/proc/self/net/dev");
        let links = proc_text::interfaces(&links).map(|(name, counters)| (name.to_owned(), counters));
        ObservedLook {
            time_us: time.0 / 1000,
            running_us: running.0 / 1000,
            clock_error_us: error.map(|error| error.0 / 1000),
            processors: processors(&text("/proc/stat")),
            memory: proc_text::memory(&text("/proc/meminfo")),
            pressure: proc_text::pressure(&cpu, &io, &memory),
            links: links.collect(),
            disks: self.disks(&text("/proc/diskstats")),
            nfs_server: proc_text::nfs_server(&text("/proc/net/rpc/nfsd")),
            temperatures_celsius: if has_temperatures { self.thermometers.read() } else { BTreeMap::new() },
        }
    }

    /// Returns the counters of whole disks, which include their partitions. Devices that never did anything
    /// are left out.
    fn disks(&mut self, text: &str) -> BTreeMap<String, DiskCounters> {
        let mut disks = BTreeMap::new();
        for (name, counters) in proc_text::disks(text) {
            if counters != DiskCounters::default() && self.is_whole(name) {
                disks.insert(name.to_owned(), counters);
            }
        }
        disks
    }

    fn is_whole(&mut self, name: &str) -> bool {
        if let Some(extent) = self.devices.get(name) {
            return *extent == DeviceExtent::Whole;
        }
        let is_whole = Path::new("/sys/block").join(name.replace('/', "!")).exists();
        let extent = if is_whole { DeviceExtent::Whole } else { DeviceExtent::Partition };
        self.devices.insert(name.to_owned(), extent);
        is_whole
    }
}

fn processors(stat: &str) -> ProcessorCounters {
    let mut times = proc_text::processors(stat);
    let all = times.next().unwrap_or_default();
    ProcessorCounters { all, each_busy_ms: times.map(|times| times.busy_ms).collect() }
}

/// Returns the block device of a file, by name; `None` if it is on no device of this machine.
pub fn device_of(file: &fs::File) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let device = file.metadata().ok()?.dev();
    let numbers = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    let path = fs::canonicalize(Path::new("/sys/dev/block").join(numbers)).ok()?;
    let disk = if path.join("partition").exists() { path.parent()? } else { &path };
    Some(disk.file_name()?.to_string_lossy().into_owned())
}

/// Returns the names of whole block devices.
fn whole_devices() -> BTreeSet<String> {
    let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_looks_at_this_machine_go_forward() {
        let mut observer = MachineObserver::default();
        let header = observer.header("here".into(), Nanos::from_millis(1000));
        let before = observer.look();
        let until = before.running() + Nanos::from_millis(50);
        let mut spun = 0_u64;
        while Calendar::now().running < until {
            spun += 1;
        }
        let after = observer.look();
        assert!(after.running() >= until && spun > 0, "{after:?}");
        assert!(after.processors.all.busy_ms > before.processors.all.busy_ms, "{before:?} {after:?}");
        assert!(after.processors.each_busy_ms.len() >= header.processors && header.processors > 0);
        assert!(after.memory.available_bytes > 0 && header.memory_bytes > after.memory.available_bytes);
        assert!(!after.links.contains_key("lo"), "{:?}", after.links);
        let known = whole_devices();
        assert!(after.disks.keys().all(|name| known.contains(name)), "{:?} of {known:?}", after.disks.keys());
    }

    #[test]
    fn a_partition_is_no_device_of_its_own() {
        let known =
            [("sda", DeviceExtent::Whole), ("sda1", DeviceExtent::Partition), ("sdb", DeviceExtent::Whole)];
        let devices = known.map(|(name, extent)| (name.to_owned(), extent)).into();
        let mut observer = MachineObserver { devices, ..MachineObserver::default() };
        let text = " 8 0 sda 1 0 8 5 0 0 0 0 0 9 9\n 8 1 sda1 1 0 8 5 0 0 0 0 0 9 9\n 8 16 sdb 0 0 0 0 0 0 0 0 0 0 0\n";
        let disks = observer.disks(text);
        assert_eq!(disks.keys().collect::<Vec<_>>(), ["sda"]);
        assert_eq!((disks["sda"].read_bytes, disks["sda"].busy_ms), (4096, 9));
    }

    #[test]
    fn a_file_in_memory_lies_on_no_device() {
        let file = fs::File::open("/proc/self/stat").expect("it is there");
        assert_eq!(device_of(&file), None);
    }
}
