//! What storage is, as the program says it: recognised on real file systems, and refused where another is expected. Systems
//! that can't run here are replayed by tools of their names that say what was recorded, in the tests of the storage crate.

use std::path::{Path, PathBuf};

use nilometer_model::{BlockLayerKind, FileSystemKind, StorageFeature, TargetDescription};
use nilometer_storage::target::probe;
use nilometer_tests::{Ended, FileSystem, may_mount, run};
use serde_json::Value;

fn described(arguments: &[&str], path: &Path) -> Ended {
    let words = std::iter::once("describe").chain(arguments.iter().copied()).map(PathBuf::from);
    run(&words.chain([path.to_owned()]).collect::<Vec<_>>())
}

fn answer(description: &TargetDescription, feature: StorageFeature) -> &str {
    &description.profile.finding(feature).expect("it was tried").answer
}

#[test]
fn real_file_systems_are_recognised_with_what_is_below() {
    if !may_mount() {
        return;
    }
    let systems = [
        (FileSystem::ext4(64), FileSystemKind::Ext4),
        (FileSystem::xfs(300), FileSystemKind::Xfs),
        (FileSystem::btrfs(128), FileSystemKind::Btrfs),
    ];
    for (system, kind) in &systems {
        let found = probe(system.path()).expect("it can be described");
        assert_eq!(found.profile.kind, *kind);
        let [layer] = found.profile.layers.as_slice() else {
            panic!("one device: {:?}", found.profile.layers)
        };
        let BlockLayerKind::Loop { file: Some(file) } = &layer.kind else { panic!("a loop device: {layer}") };
        assert!(file.ends_with("image"), "{file}");
        assert!(
            !found.is_remote() && found.has_a_cache_of_its_own(),
            "the page cache of the file below is another"
        );
        for feature in [StorageFeature::Rename, StorageFeature::Locks, StorageFeature::Append] {
            assert_eq!(answer(&found, feature), "yes", "{kind}: {}", feature.name());
        }
        assert_eq!(
            std::fs::read_dir(system.path())
                .expect("a directory")
                .flatten()
                .filter(|entry| { entry.file_name().to_string_lossy().contains("nilometer") })
                .count(),
            0,
            "nothing is left of what was tried"
        );
    }
    let memory = FileSystem::tmpfs("size=16m");
    let found = probe(memory.path()).expect("it can be described");
    assert_eq!(found.profile.kind, FileSystemKind::Tmpfs);
    assert!(found.profile.layers.is_empty() && found.has_a_cache_of_its_own());
}

#[test]
fn options_that_change_figures_are_said() {
    if !may_mount() {
        return;
    }
    let system = FileSystem::ext4(64);
    let remounted =
        std::process::Command::new("mount").args(["-o", "remount,sync"]).arg(system.path()).status();
    assert!(remounted.is_ok_and(|status| status.success()));
    let said = described(&[], system.path());
    assert_eq!(said.code, Some(0), "{said:?}");
    for (name, value) in [
        ("sync", "every write waits for the storage"),
        ("fallocate", "yes (measured)"),
        ("snapshots", "no (published)"),
    ] {
        let row =
            |line: &str| line.trim().strip_prefix(name).is_some_and(|rest| rest.trim().starts_with(value));
        assert!(said.stdout.lines().any(row), "{name}: {}", said.stdout);
    }
}

/// A mount that is missing leaves a directory of the file system below.
#[test]
fn a_path_on_another_file_system_than_expected_is_refused() {
    let missing = tempfile::tempdir().expect("a temporary directory");
    let path = missing.path().to_owned();
    let is = probe(&path).expect("it can be described").profile.kind;
    let record = path.join("r.sqlite");
    let to = path.to_string_lossy().into_owned();
    let elsewhere = tempfile::tempdir().expect("a temporary directory");
    let other = elsewhere.path().to_string_lossy().into_owned();
    let made = run(&[
        "simulate",
        "pco-edge",
        "--to",
        &other,
        "--duration",
        "1 s",
        "--rate",
        "10 Hz",
        "--name",
        "scan",
        "--reserve",
        "0 B",
    ]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let scan = format!("{other}/scan");
    let commands: [&[&str]; 6] = [
        &["describe", "--expect", "lustre", &to],
        &["evaluate", "--expect", "lustre", "--record", &record.to_string_lossy(), &to],
        &["record", "fila10g-4g", "--expect", "lustre", "--to", &to],
        &["simulate", "pco-edge", "--expect", "lustre", "--to", &to, "--duration", "1 s"],
        &["export", &scan, "--expect", "lustre", "--to", &to],
        &["advise", "chunking", "pco-edge", "--expect", "lustre", "--to", &to],
    ];
    for arguments in commands {
        let refused = run(arguments);
        assert_eq!(refused.code, Some(2), "{arguments:?}: {refused:?}");
        for part in [&format!("is on {is}"), "not on the expected lustre", "mount it", "moosefs"] {
            assert!(refused.stderr.contains(part), "{arguments:?}: {part} in {}", refused.stderr);
        }
    }
    assert_eq!(std::fs::read_dir(&path).expect("a directory").count(), 0, "nothing was begun");
    let wrong = run(&["describe", "--expect", "lustr", &to]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("lustre") && wrong.stderr.contains("`lustr`"), "{}", wrong.stderr);
    let right = run(&["describe", "--expect", is.name(), &to]);
    assert_eq!(right.code, Some(if is == FileSystemKind::Unknown { 2 } else { 0 }), "{right:?}");
}

#[test]
fn a_description_as_json_has_what_was_recognised() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let said = described(&["--json"], directory.path());
    let json: Value = serde_json::from_str(&said.stdout).expect("JSON");
    let found = probe(directory.path()).expect("it can be described");
    assert_eq!(json["profile"]["kind"], found.profile.kind.name());
    let features = json["profile"]["features"].as_array().expect("a list");
    assert!(features.iter().any(|cell| cell["feature"] == "rename" && cell["basis"] == "measured"), "{json}");
}
