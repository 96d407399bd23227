//! Facts about the machine that measured, from the environment in the record.

use nilometer_plan::Results;

/// A fact about the machine that measured, if the record contains it.
pub(crate) fn fact<'a>(results: &'a Results, key: &str) -> Option<&'a str> {
    results.environment.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
}

/// Bytes that may wait in this machine's memory to be written; `None` if the record does not contain the limit.
pub(crate) fn dirty_limit(results: &Results) -> Option<u64> {
    let number = |name: &str| fact(results, name)?.trim_end_matches("kB").trim().parse::<u64>().ok();
    let share = || Some(number("memory")? * 1024 / 100 * number("dirty_ratio")?);
    number("dirty_bytes").filter(|bytes| *bytes > 0).or_else(share)
}
