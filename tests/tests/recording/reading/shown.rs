//! `nilometer mount`: how it ends, and what it says of names that would command a terminal.

use std::fs;

use nilometer_tests::{Mounted, may_show};

use super::{about, names, recorded};

#[test]
fn to_be_unmounted_by_somebody_else_is_a_normal_end() {
    if !may_show() {
        return;
    }
    let disk = tempfile::tempdir().expect("a temporary directory");
    recorded(&[disk.path()], 8, &[]);
    let ended = Mounted::of(&[disk.path().to_owned()]).unmounted();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn a_name_with_a_line_of_its_own_forges_none() {
    let disk = tempfile::tempdir().expect("a temporary directory");
    let lane = recorded(&[disk.path()], 8, &[]).swap_remove(0);
    for name in names(&lane) {
        let forged = name.replace("scan", "scan\nmissing     none\u{1b}[31m");
        fs::rename(lane.join(&name), lane.join(forged)).expect("one directory");
    }
    for command in ["scan", "verify"] {
        let ended = about(command, &[&lane], &[]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(!ended.stdout.contains('\u{1b}'), "{ended:?}");
        let lines = ended.stdout.lines().filter(|line| line.starts_with("missing"));
        assert_eq!(lines.count(), 1, "{ended:?}");
    }
}
