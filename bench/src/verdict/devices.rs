//! Verdicts on real file systems over disks with a known rate and known stalls.

use nilometer_tests::{KNOWN_DEVICES, KnownDevice, Stated, may_have_faulty_disks};

use crate::contest::Stop;

/// How far the stated rate may be off: the loop device and the file system are between it and the disk.
const RATE_OFF_MOST: f64 = 0.1;
/// And the longest stall.
const STALL_OFF_MOST: f64 = 0.1;

/// Prints the table; whether every answer is right.
pub(super) fn run(stop: &Stop) -> anyhow::Result<bool> {
    println!("### verdicts against truths, on real devices\n");
    if !may_have_faulty_disks() {
        println!("not measured: this needs root, nbdkit and nbdfuse (scripts/bootstrap test)\n");
        return Ok(false);
    }
    println!(
        "| device | true margin | stated margin | decision | frames lost | true stall | stated stall | stated buffer |\n\
         |---|---|---|---|---|---|---|---|"
    );
    let mut met = true;
    for device in &KNOWN_DEVICES {
        // Between two: a disk is removed when its evaluation is over.
        stop.check()?;
        let stated = device.evaluate();
        println!("{}", row(device, &stated));
        met &= is_right(device, &stated);
    }
    println!();
    Ok(met)
}

fn row(device: &KnownDevice, stated: &Stated) -> String {
    let recording = &stated.verdict["recording"];
    let number = |key: &str| recording[key].as_f64().unwrap_or(f64::NAN);
    let margin = stated
        .margin()
        .map_or("-".into(), |(margin, [low, high])| format!("{margin:.2} ({low:.2} to {high:.2})"));
    format!(
        "| {} | {:.2} | {margin} | {} | {} of {} | {:.2} s | {:.2} s | {:.0} MB |",
        device.name,
        device.margin(),
        stated.decision(),
        number("frames_lost"),
        number("frames_due"),
        stated.longest_stall.as_secs_f64(),
        number("longest_stall_s"),
        number("covering_buffer_bytes") / 1e6,
    )
}

fn is_right(device: &KnownDevice, stated: &Stated) -> bool {
    let truth = device.margin();
    let decided = stated.decision() == if truth >= 1.0 { "carries" } else { "does not carry" };
    let near = stated.margin().is_some_and(|(margin, _)| (margin / truth - 1.0).abs() <= RATE_OFF_MOST);
    let stall = stated.verdict["recording"]["longest_stall_s"].as_f64().unwrap_or(f64::NAN);
    let off = stall / stated.longest_stall.as_secs_f64() - 1.0;
    decided && near && (device.stalls.is_none() || off.abs() <= STALL_OFF_MOST)
}
