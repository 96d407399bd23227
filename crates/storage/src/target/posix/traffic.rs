//! Traffic of the block device below a path, from the kernel's counters (Documentation/block/stat.rst).

use std::{fs, path::Path};

use nilometer_model::{DeviceTraffic, DeviceUse, Nanos};

/// Returns the traffic of the device of this name since it was attached.
pub(super) fn of_device(sys: &Path, name: &str) -> Option<DeviceTraffic> {
    let device = fs::canonicalize(sys.join("class/block").join(name)).ok()?;
    let stat = counts(&device)?;
    let sectors = |field: usize| stat.get(field).map(|count| count * 512);
    let millis = |field: usize| stat.get(field).copied().map(Nanos::from_millis);
    let used = millis(9).zip(millis(10)).map(|(busy, queue)| DeviceUse { busy, queue });
    let flushes = flushes(&device);
    Some(DeviceTraffic { read: sectors(2)?, written: sectors(6)?, flushes, use_of: used })
}

/// Returns the flush requests that a device has completed. The whole disk counts those of its partitions,
/// where others may flush too. Devices that only pass requests on (device mapper, md) never count them; a
/// device that does has a queue of requests, `mq`.
fn flushes(device: &Path) -> Option<u64> {
    let keeps = fs::read_to_string(device.join("queue/write_cache")).ok()?;
    let counts_them = device.join("mq").is_dir() && keeps.trim() == "write back";
    if counts_them { counts(device)?.get(15).copied() } else { None }
}

fn counts(device: &Path) -> Option<Vec<u64>> {
    let stat = fs::read_to_string(device.join("stat")).ok()?;
    stat.split_whitespace().map(|count| count.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device with these files, below a directory that replaces `/sys`.
    fn device(cache: &str, has_queue: bool) -> tempfile::TempDir {
        let sys = tempfile::tempdir().expect("a directory");
        let disk = sys.path().join("class/block/sda");
        fs::create_dir_all(disk.join("queue")).expect("space");
        fs::create_dir_all(disk.join("sda1")).expect("space");
        if has_queue {
            fs::create_dir(disk.join("mq")).expect("space");
        }
        fs::write(disk.join("queue/write_cache"), cache).expect("space");
        let stat = "   10 0 8 5 20 0 16 7 0 9 9 0 0 0 0   33 44\n";
        for place in [disk.clone(), disk.join("sda1")] {
            fs::write(place.join("stat"), stat).expect("space");
        }
        fs::write(disk.join("sda1/partition"), "1\n").expect("space");
        std::os::unix::fs::symlink(disk.join("sda1"), sys.path().join("class/block/sda1")).expect("space");
        sys
    }

    #[test]
    fn flushes_are_counted_where_a_cache_can_be_lost_and_the_kernel_counts_them() {
        let use_of = Some(DeviceUse { busy: Nanos::from_millis(9), queue: Nanos::from_millis(9) });
        let whole = |flushes| Some(DeviceTraffic { read: 8 * 512, written: 16 * 512, flushes, use_of });
        for (cache, has_queue, flushes) in
            [("write back\n", true, Some(33)), ("write through\n", true, None), ("write back\n", false, None)]
        {
            let sys = device(cache, has_queue);
            assert_eq!(of_device(sys.path(), "sda"), whole(flushes), "{cache:?}, {has_queue}");
            assert_eq!(of_device(sys.path(), "sda1"), whole(None), "others may flush the disk too");
        }
        assert_eq!(of_device(device("write back", true).path(), "sdb"), None);
    }
}
