//! Other tools as contestants: fio and dd, as Debian has them.

use std::{path::Path, process::Command};

use anyhow::Context;
use serde_json::Value;

use crate::{contest::Cost, measure};

/// Random 4 KiB reads of a laid-out file by one fio thread. The cost is what fio says of its job's thread (user and
/// system time over the job's runtime), so that fio's own start, which is hundreds of milliseconds, is not held against it.
pub(crate) fn fio(path: &Path, size: u64, operations: u64, options: &[&str]) -> anyhow::Result<Cost> {
    let mut command = Command::new("fio");
    command
        .args(["--name=peer", "--thread=1", "--rw=randread", "--bs=4k", "--norandommap=1"])
        .args(["--allow_file_create=0", "--output-format=json"])
        .arg(format!("--filename={}", path.display()))
        .arg(format!("--size={size}"))
        .arg(format!("--io_size={}", operations * 4096))
        .args(options);
    let (_, output) = measure::child(operations as f64, &mut command)?;
    let told: Value = serde_json::from_slice(&output.stdout).context("fio did not answer in JSON")?;
    job_cost(&told).context("fio's answer lacks a figure")
}

/// The cost that fio states for its only job.
fn job_cost(told: &Value) -> Option<Cost> {
    let job = told.get("jobs")?.get(0)?;
    let number = |value: &Value, key: &str| value.get(key)?.as_f64();
    let wall = number(job, "job_runtime")? * 1e-3;
    let cpu = (number(job, "usr_cpu")? + number(job, "sys_cpu")?) / 100.0 * wall;
    Some(Cost { amount: number(job.get("read")?, "total_ios")?, cpu, wall })
}

/// A dd of so many GiB in blocks of so many MiB. The cost is the whole process's.
pub(crate) fn dd((gib, block): (f64, u32), from: &Path, to: &Path, options: &[&str]) -> anyhow::Result<Cost> {
    let mut command = Command::new("dd");
    command
        .arg("status=none")
        .arg(format!("bs={block}M"))
        .arg(format!("count={}", gib * 1024.0 / f64::from(block)))
        .arg(format!("if={}", from.display()))
        .arg(format!("of={}", to.display()))
        .args(options);
    measure::child(gib, &mut command).map(|(cost, _)| cost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fios_figures_are_a_cost() {
        let told = serde_json::json!({"jobs": [{
            "job_runtime": 2000, "usr_cpu": 10.0, "sys_cpu": 40.0, "read": {"total_ios": 1000, "runtime": 1999}
        }]});
        assert_eq!(job_cost(&told), Some(Cost { amount: 1000.0, cpu: 1.0, wall: 2.0 }));
        assert_eq!(job_cost(&serde_json::json!({"jobs": []})), None);
    }
}
