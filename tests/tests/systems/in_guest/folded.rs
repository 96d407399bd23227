//! File systems for which names that differ in case are one.

use std::fs;

use nilometer_tests::{Testbed, nilometer};

const OF_USERS: &str = r#"
title = "what users do"
repeats = 1
reserve = "0 B"
[[stage]]
name = "untar"
[stage.workload.unpack]
directories = 10
files = 100
size = "1 MB"
[[stage]]
name = "ls"
[stage.workload.walk]
directories = 10
total_files = 100
total_size = "1 MB"
command = ["ls", "du"]
cold = false
[[stage]]
name = "make"
workers = 2
[stage.workload.build]
directories = 10
files = 100
size = "1 MB"
units = 20
headers = 5
cold = false
[[stage]]
name = "mdtest"
[stage.workload.tree]
levels = 1
branching = 2
items = 10
"#;

/// vfat has no hard links, no owners and names that differ in case are one; the JFS of the guest is made so that it folds case.
pub(crate) fn file_systems_that_fold_case_and_have_no_hard_links_are_measured(testbed: &Testbed) {
    for folds in ["/mnt/vfat", "/mnt/jfs-folded"] {
        let other_case = format!("echo one >{folds}/Name && cat {folds}/nAME && rm {folds}/NAME");
        assert_eq!(testbed.must("guest", &["sh", "-c", &other_case]), "one\n", "{folds} folds case");
    }
    let link = testbed.verb("guest", &["sh", "-c", "echo >/mnt/vfat/a; ln /mnt/vfat/a /mnt/vfat/b"]);
    assert!(link.code == Some(1) && link.stderr.contains("not permitted"), "{link:?}");
    testbed.must("guest", &["rm", "/mnt/vfat/a"]);
    let home = tempfile::tempdir().expect("a temporary directory");
    // The guest reads the files of this machine, and writes only below /mnt: the record too lies on vfat.
    let program = nilometer().to_str().expect("plain letters");
    let plan = home.path().join("plan.toml");
    fs::write(&plan, OF_USERS).expect("space");
    let plan = plan.display().to_string();
    let targets = ["/mnt/vfat/measured", "/mnt/jfs-folded/measured"];
    testbed.must("guest", &["mkdir", targets[0], targets[1]]);
    let record = "/mnt/vfat/r.sqlite";
    let ended = testbed
        .verb("guest", &[&[program, "evaluate", "--plan", &plan, "--record", record][..], &targets].concat());
    assert!(ended.has_answered(), "{ended:?}");
    let check = testbed.verb("guest", &[program, "check", record]);
    assert_eq!(check.code, Some(0), "{check:?}");
    let copy = testbed.must("guest", &[program, "report", record, "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&copy).expect("JSON");
    let figures = report["figures"].as_array().expect("figures");
    for target in ["A", "B"] {
        assert!(figures.iter().any(|figure| figure["target"] == target), "{report}");
    }
    for target in targets {
        assert_eq!(testbed.must("guest", &["ls", "-A", target]), "", "something is left behind");
    }
}
