//! Units of rates and times as other programs and publications write them.

/// The quantity and the scale of a unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum GivenUnit {
    /// Seconds for a task, times this.
    Time(f64),
    /// Bytes a second, times this.
    ByteRate(f64),
    /// Operations a second.
    Operations,
}

/// Returns a unit by its name, or `None` if it is neither a rate nor a time. A bit is an eighth of a byte.
/// `KB/s` and the like are decimal, as the studies that used them say.
pub(super) fn unit(name: &str) -> Option<GivenUnit> {
    const MEBI: f64 = 1024.0 * 1024.0;
    Some(match name.trim() {
        "s" => GivenUnit::Time(1.0),
        "min" => GivenUnit::Time(60.0),
        "ms" => GivenUnit::Time(1e-3),
        "B/s" => GivenUnit::ByteRate(1.0),
        "kB/s" | "KB/s" => GivenUnit::ByteRate(1e3),
        "MB/s" => GivenUnit::ByteRate(1e6),
        "GB/s" => GivenUnit::ByteRate(1e9),
        "TB/s" => GivenUnit::ByteRate(1e12),
        "KiB/s" => GivenUnit::ByteRate(1024.0),
        "MiB/s" => GivenUnit::ByteRate(MEBI),
        "GiB/s" => GivenUnit::ByteRate(1024.0 * MEBI),
        "kbit/s" => GivenUnit::ByteRate(1e3 / 8.0),
        "Mbit/s" => GivenUnit::ByteRate(1e6 / 8.0),
        "Gbit/s" => GivenUnit::ByteRate(1e9 / 8.0),
        "op/s" | "ops/s" | "1/s" | "IOPS" | "files/s" => GivenUnit::Operations,
        _ => return None,
    })
}
