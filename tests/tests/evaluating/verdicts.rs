//! Verdicts on real file systems over disks with a known rate and known stalls. `nilometer-bench verdict` has the table and
//! the strict bounds; here a busy machine may leave a question open, but no answer may be wrong.

use nilometer_tests::{KNOWN_DEVICES, KnownDevice, Stated, may_have_faulty_disks};

/// A disk can't be faster than it is: what the first seconds put into its burst is little against a recording.
const FASTER_MOST: f64 = 1.1;

#[expect(clippy::print_stdout, reason = "the figure stands in the output of the test")]
fn check(device: &KnownDevice, stated: &Stated) {
    let (decision, truth) = (stated.decision(), device.margin());
    let case = format!("{}: {truth:.2} times, stated {}", device.name, stated.verdict);
    println!("{case}");
    assert!(stated.ended.has_answered(), "{case}\n{}", stated.ended.stderr);
    let wrong = if truth < 1.0 { "carries" } else { "does not carry" };
    // A machine that is busy with other things may lose frames in earnest: then its own slowness is what was measured.
    let was_slower = stated.margin().is_some_and(|(margin, _)| margin < 1.1);
    assert!(decision != wrong || truth > 1.0 && was_slower, "{case}");
    let code = match decision {
        "carries" => 0,
        "does not carry" => 3,
        _ => 4,
    };
    assert_eq!(stated.ended.code, Some(code), "the exit code is the answer: {case}");
    if let Some((_, [low, _])) = stated.margin() {
        assert!(low <= FASTER_MOST * truth, "no disk is faster than it is: {case}");
    }
}

/// By index into the known devices.
fn holds(index: usize) {
    if may_have_faulty_disks() {
        let device = &KNOWN_DEVICES[index];
        check(device, &device.evaluate());
    }
}

#[test]
fn a_disk_that_is_fast_enough_under_xfs() {
    holds(0);
}

#[test]
fn a_disk_that_is_fast_enough_under_ext4() {
    holds(1);
}

#[test]
fn a_disk_that_is_too_slow() {
    holds(2);
}

#[test]
fn a_disk_that_stands_still_now_and_then() {
    holds(3);
}
