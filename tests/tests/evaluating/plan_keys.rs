//! The reference of a plan's keys, as the program prints it: the page of the documentation, and the schema by which an editor
//! checks a plan while it is written.

use std::fs;

use nilometer_tests::{python, root, run};

fn printed(format: &str) -> String {
    let ended = run(&["plan", "keys", "--format", format]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.stdout
}

#[test]
fn the_page_of_the_documentation_is_what_the_program_prints() {
    let page = fs::read_to_string(root().join("docs/plan-keys.md")).expect("the page");
    assert!(
        page == printed("markdown"),
        "make it anew: nilometer plan keys --format markdown > docs/plan-keys.md"
    );
}

/// Prints for each plan what the schema says of it: nothing, or the place and the first complaint.
const VALIDATE: &str = r#"
import json, sys, tomllib
from jsonschema import Draft202012Validator
schema = json.load(open(sys.argv[1]))
Draft202012Validator.check_schema(schema)
for path in sys.argv[2:]:
    errors = list(Draft202012Validator(schema).iter_errors(tomllib.load(open(path, "rb"))))
    said = "".join(f" {'.'.join(map(str, error.path))}: {error.message[:60]}" for error in errors[:1])
    print(path.split("/")[-1] + ":" + said)
"#;

#[test]
fn editors_find_in_the_schema_what_the_parser_takes_and_refuses() {
    let Some(mut python) = python(&["jsonschema", "tomllib"]) else { return };
    let home = tempfile::tempdir().expect("a temporary directory");
    fs::write(home.path().join("schema.json"), printed("json-schema")).expect("space");
    let plans = fs::read_dir(root().join("plans")).expect("plans").map(|entry| entry.expect("one").path());
    let mut paths: Vec<_> = plans.chain([root().join("acceptance/template.toml")]).collect();
    let right = paths.len();
    let stage = "title = \"x\"\n[[stage]]\nname = \"y\"\n";
    let stream =
        "[stage.workload.stream]\nfile_size = \"1 MB\"\nblock_size = \"1 MB\"\naccess = \"direct\"\n";
    for (name, text) in [
        ("head", "title = \"x\"\nrepeat = 3\n".to_owned()),
        ("untitled", "repeats = 3\n".into()),
        ("engine", format!("{stage}engine = \"async\"\n{stream}")),
        ("listed", format!("{stage}siblings = [\"workers\"]\n{stream}")),
        ("workload", format!("{stage}[stage.workload.streams]\nfile_size = \"1 MB\"\n")),
        ("incomplete", format!("{stage}[stage.workload.stream]\nfile_size = \"1 MB\"\n")),
        ("ingest", format!("{stage}[stage.ingest]\ninstrument = \"i\"\nframe = 3\n")),
        ("number", format!("{stage}workers = \"2\"\n{stream}")),
    ] {
        let path = home.path().join(format!("{name}.toml"));
        fs::write(&path, text).expect("space");
        paths.push(path);
    }
    let schema = home.path().join("schema.json");
    let said = python.args(["-c", VALIDATE]).arg(schema).args(&paths).output().expect("it starts");
    let lines = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let complaints = lines.lines().filter(|line| !line.ends_with(':')).count();
    assert_eq!((lines.lines().count(), complaints), (paths.len(), paths.len() - right), "{lines}");
    assert!(lines.lines().take(right).all(|line| line.ends_with(':')), "the plans of the catalogue: {lines}");
}
