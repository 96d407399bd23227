//! `nilometer census` counts a tree, shows no name of it, and changes nothing in it.

use std::{
    fs::{self, File},
    os::unix::fs::symlink,
    path::Path,
};

use nilometer_tests::run;
use serde_json::Value;

/// Names that must not be in the output.
const SECRETS: [&str; 3] = ["secret-project", "secret-file", "secret-link"];

/// 100 files of 3000 bytes in a directory with a link to itself.
fn tree(home: &Path) {
    let project = home.join(SECRETS[0]);
    fs::create_dir(&project).expect("space");
    for number in 0..100 {
        let file = File::create(project.join(format!("{}-{number}", SECRETS[1]))).expect("space");
        file.set_len(3000).expect("space");
    }
    symlink(&project, project.join(SECRETS[2])).expect("space");
}

#[test]
fn a_tree_is_counted_in_every_form_and_none_has_a_name_of_it() {
    let home = tempfile::tempdir().expect("a temporary directory");
    tree(home.path());
    let path = home.path().to_str().expect("a plain name");
    let of = |format: &str| {
        let ended = run(&["census", path, "--format", format]);
        assert!(ended.code == Some(0) && ended.stderr.is_empty(), "{ended:?}");
        assert!(SECRETS.iter().all(|name| !ended.stdout.contains(name)), "{ended:?}");
        assert!(!ended.stdout.contains(path), "{ended:?}");
        ended.stdout
    };
    let json: Value = serde_json::from_str(&of("json")).expect("JSON");
    assert_eq!([&json["directories"], &json["files"], &json["symlinks"]], [2, 100, 1]);
    assert_eq!([&json["bytes"], &json["users"], &json["unreadable"]], [300_000, 1, 0]);
    assert_eq!(json["sizes"], serde_json::json!([{ "from": 2048, "count": 100, "sum": 300_000 }]));
    assert_eq!(json["depths"], serde_json::json!([1, 101]));
    assert!(of("markdown").contains("## Files by size"));
    let text = of("text");
    assert!(text.contains("100 files of 300 kB in 2 directories"), "{text}");
    makes_a_plan(home.path(), &text);
}

/// The lines for a plan are those of a workload.
fn makes_a_plan(home: &Path, text: &str) {
    assert!(text.contains("like = \"census.json\""), "{text}");
    let (_, keys) = text.rsplit_once("[stage.workload.unpack]").expect("keys of a workload");
    let keys: Vec<&str> = keys.lines().map(str::trim).filter(|line| line.contains(" = ")).collect();
    assert_eq!(keys, ["directories = 2", "files = 100", "size = \"300000 B\""]);
    let plan = home.join("plan.toml");
    let head = "title = \"t\"\n[[stage]]\nname = \"like it\"\n[stage.workload.unpack]\n";
    fs::write(&plan, format!("{head}{}\n", keys.join("\n"))).expect("space");
    let shown = run(&["plan", "show", plan.to_str().expect("a plain name")]);
    assert!(
        shown.code == Some(0) && shown.stdout.contains("100 files of 300 kB in 2 directories"),
        "{shown:?}"
    );
}

#[test]
fn what_is_no_directory_is_refused_with_its_name() {
    let home = tempfile::tempdir().expect("a temporary directory");
    File::create(home.path().join("file")).expect("space");
    for (name, why) in [("file", "Not a directory"), ("none", "No such file")] {
        let path = home.path().join(name);
        let ended = run(&["census", path.to_str().expect("a plain name")]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(name) && ended.stderr.contains(why), "{ended:?}");
        assert!(ended.stdout.is_empty(), "{ended:?}");
    }
}
