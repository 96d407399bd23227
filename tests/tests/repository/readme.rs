//! The documents against the program: commands in `sh` blocks of the README are accepted as they stand, and files that
//! the documents name exist. Everything is taken from the documents themselves.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command, time::Duration};

use nilometer_model::{Invalid, Nanos, Phase, Sample};
use nilometer_plan::{Key, Results, TargetEntry};
use nilometer_record::Record;
use nilometer_tests::{nilometer, one_cell, root, start};

const DOCUMENTS: [&str; 12] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "docs/commands.md",
    "docs/features.md",
    "docs/install.md",
    "docs/new-code.md",
    "docs/plans.md",
    "docs/report.md",
    "docs/service.md",
    "docs/sizing.md",
    "docs/words.md",
];

/// Pages whose commands are tried.
const PAGES_OF_COMMANDS: [&str; 5] =
    ["README.md", "docs/commands.md", "docs/dumps.md", "docs/tutorial.md", "docs/recording.md"];

/// Arguments of each `nilometer` command in the document's `sh` blocks.
fn commands(document: &str) -> Vec<Vec<String>> {
    let mut commands = Vec::new();
    let mut shell = false;
    let mut joined = String::new();
    for line in document.lines() {
        if let Some(fence) = line.trim_start().strip_prefix("```") {
            shell = !shell && matches!(fence.trim(), "sh" | "console" | "bash" | "shell");
            continue;
        }
        joined += line.trim_start().trim_start_matches("$ ");
        if !shell || joined.ends_with('\\') {
            joined = joined.trim_end_matches('\\').to_owned();
            if !shell {
                joined.clear();
            }
            continue;
        }
        commands.extend(joined.split("&&").filter_map(command));
        joined.clear();
    }
    commands
}

/// The arguments, if the program is ours: quotes are undone, comments and redirections left out.
fn command(text: &str) -> Option<Vec<String>> {
    let mut words = words(text).into_iter().skip_while(|word| word == "sudo" || word.contains('='));
    let program = words.next()?;
    let ours = Path::new(&program).file_name()?.to_str()? == "nilometer";
    let stops = |word: &String| word.starts_with(['#', '>', '|', ';']) || word.starts_with("2>");
    ours.then(|| words.take_while(|word| !stops(word)).collect())
}

/// Splits as a shell does, as far as documents need it.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut quote) = (vec![None::<String>], None);
    for letter in text.chars() {
        let word = words.last_mut().expect("never empty");
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, ' ' | '\t') => words.push(None),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.into_iter().flatten().collect()
}

/// Why the argument parser does not take a command, if so. It runs in an empty directory; only what would measure gets a
/// target that does not exist as well, which is refused later, and in other words.
fn refusal(arguments: &[String]) -> Option<String> {
    let empty = tempfile::tempdir().expect("a temporary directory");
    let mut arguments = arguments.to_vec();
    if arguments.first().is_some_and(|first| first == "evaluate") {
        arguments.push("/nonexistent/target".into());
    }
    let ended = start(empty.path(), &arguments).end(Duration::from_mins(1));
    ended.stderr.contains("Usage:").then_some(ended.stderr)
}

/// What is wrong with a command, if anything.
fn complaint(arguments: &[String]) -> Option<String> {
    let shown = format!("nilometer {}", arguments.join(" "));
    let refusal = refusal(arguments).map(|why| format!("{shown}\n{why}"));
    refusal.or_else(|| (!plan_is_known(arguments)).then(|| format!("{shown}\nno such plan")))
}

/// A built-in plan that a command names can be shown; a path may be the reader's own.
fn plan_is_known(arguments: &[String]) -> bool {
    let Some(at) = arguments.iter().position(|word| word == "--plan") else { return true };
    let Some(name) = arguments.get(at + 1) else { return false };
    let own =
        name == "none" || name.contains('/') || Path::new(name).extension().is_some_and(|end| end == "toml");
    own || Command::new(nilometer())
        .args(["plan", "show", name])
        .output()
        .is_ok_and(|shown| shown.status.success())
}

/// Names in backquotes or links that look like files of the repository and are none.
///
/// A link is relative to the document, a name in backquotes to the repository.
fn missing_files(document: &str, text: &str) -> Vec<String> {
    let quoted = text.split('`').skip(1).step_by(2).map(|name| (root(), name));
    let beside = root().join(document).parent().map(Path::to_path_buf).unwrap_or_default();
    let linked = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let linked = linked.map(|name| (beside.clone(), name));
    let names = quoted.chain(linked).filter(|(_, name)| is_in_repository(name));
    names.filter(|(from, name)| !is_there(from, name)).map(|(_, name)| name.to_owned()).collect()
}

fn is_there(from: &Path, name: &str) -> bool {
    from.join(name.split('#').next().unwrap_or(name)).exists()
}

/// Begins with a directory of the repository, or is a document's name.
fn is_in_repository(name: &str) -> bool {
    let plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || "/._-#".contains(letter));
    let first = name.split('/').next().unwrap_or_default();
    let folders = [
        "crates",
        "plans",
        "instruments",
        "facilities",
        "tests",
        "bench",
        "scripts",
        "testbed",
        "contrib",
        "packaging",
        "docs",
        ".ci",
    ];
    let file = Path::new(name.split('#').next().unwrap_or(name));
    let document = !name.contains('/') && file.extension().is_some_and(|end| end == "md");
    plain && (document || (name.contains('/') && folders.contains(&first)))
}

/// The documents that are there, without the code blocks for the names of files.
fn documents() -> Vec<(&'static str, String)> {
    let read = |name| fs::read_to_string(root().join(name)).ok().map(|text| (name, text));
    DOCUMENTS.into_iter().filter_map(read).collect()
}

#[test]
fn commands_of_the_readme_the_examples_and_the_guides_are_accepted() {
    let text = |page| fs::read_to_string(root().join(page)).expect("it is there");
    let commands = PAGES_OF_COMMANDS.map(|page| commands(&text(page))).concat();
    assert!(commands.len() > 50, "{} commands", commands.len());
    let complaints: Vec<_> = commands.iter().filter_map(|arguments| complaint(arguments)).collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n\n"));
}

/// The SQL of the `sqlite3` command in a document.
fn query(document: &str) -> &str {
    let command = document.split("sqlite3 ").nth(1).expect("a command");
    command.split('"').nth(1).expect("a query in quotes")
}

/// A record of two targets: one of 1 GB/s with a repeat that must not be used, and one of 100 MB/s.
fn record_with_an_invalid_sample(path: &Path) {
    let target = |path: &str| TargetEntry { path: path.into(), ..TargetEntry::default() };
    let head = Results {
        targets: vec![target("/fast"), target("/slow")],
        cells: one_cell("frames"),
        repeats: 2,
        ..Results::default()
    };
    let mut record = Record::create(path, &head, 0).expect("space");
    for (target, repeat, bytes, invalid) in [
        (0, 0, 1_000_000_000, None),
        (0, 1, 5_000_000, Some(Invalid::Starved(None))),
        (1, 0, 100_000_000, None),
    ] {
        let wall = Nanos::from_millis(1000);
        let sample = Sample { bytes, operations: 1, wall, invalid, ..Sample::new(Nanos(0)) };
        let key = Key { target, cell: 0, repeat, phase: Phase::Write };
        record.add(key, &sample).expect("space");
    }
}

/// Path and megabytes a second of each row.
fn answer(record: &Path, query: &str) -> Vec<(String, f64)> {
    let connection = rusqlite::Connection::open(record).expect("a record");
    let mut statement = connection.prepare(query).expect("valid SQL");
    let last = statement.column_count() - 1;
    let rows = statement.query_map([], |row| Ok((row.get("path")?, row.get(last)?))).expect("rows");
    rows.collect::<Result<_, _>>().expect("a path and a number")
}

#[test]
fn the_sql_that_is_handed_out_keeps_targets_apart_and_leaves_out_what_must_not_be_used() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let record = home.path().join("evaluation.sqlite");
    record_with_an_invalid_sample(&record);
    let page = home.path().join("evaluation.html");
    let ended =
        start(home.path(), &["report", "evaluation.sqlite", "--format", "html"]).end(Duration::from_mins(1));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let page = fs::read_to_string(page).expect("it was written").replace("&quot;", "\"");
    let readme = fs::read_to_string(root().join("README.md")).expect("it is there");
    let expected = [("/fast".to_owned(), 1000.0), ("/slow".to_owned(), 100.0)];
    for document in [&readme, &page] {
        assert_eq!(answer(&record, query(document)), expected, "{}", query(document));
    }
}

#[test]
fn files_that_the_documents_name_exist() {
    let complaints: Vec<_> = documents()
        .into_iter()
        .flat_map(|(document, text)| {
            missing_files(document, &text).into_iter().map(move |name| format!("{document}: {name}"))
        })
        .collect();
    assert!(complaints.is_empty(), "named, but not there:\n{}", complaints.join("\n"));
}

#[test]
fn exit_codes_are_in_the_help_and_options_stand_under_their_own_heading() {
    let help = |arguments: &[&str]| start(&root(), arguments).end(Duration::from_mins(1)).stdout;
    for text in [help(&["--help"]), help(&["evaluate", "--help"])] {
        for code in
            ["  0  carried", "  1  a fault", "  2  wrong input", "  3  not carried", "  4  not decided"]
        {
            assert!(text.contains(code), "`{code}` in {text}");
        }
    }
    let evaluate = help(&["evaluate", "--help"]);
    let (options, recordings) = evaluate.split_once("\nRecordings:\n").expect("a heading");
    for option in ["--record <", "      --resume\n", "--seed <", "--time-limit <"] {
        assert!(options.contains(option) && !recordings.contains(option), "{option} in {evaluate}");
    }
    assert!(recordings.contains("--find-limit"), "{evaluate}");
}

#[test]
fn make_evaluate_takes_an_answer_for_no_error() {
    let home = tempfile::tempdir().expect("a temporary directory");
    fs::create_dir(home.path().join("scripts")).expect("space");
    for file in ["Makefile", "scripts/evaluate"] {
        fs::copy(root().join(file), home.path().join(file)).expect("space");
    }
    let program = home.path().join("target/release/nilometer");
    fs::create_dir_all(home.path().join("target/release")).expect("space");
    for (code, well) in [(0, true), (1, false), (2, false), (3, true), (4, true)] {
        // The list names two instruments; what is asked is noted.
        let listed = "camera-2 2 GB/s\\ncamera-1 1 GB/s\\n";
        let script = format!(
            "#!/bin/sh\necho \"$@\" >> asked\n[ \"$1\" = instrument ] && {{ printf '{listed}'; exit 0; }}\nexit {code}\n"
        );
        fs::write(&program, script).expect("space");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("ours");
        // Without the build.
        let make = Command::new("make").args(["-o", "build", "evaluate"]).current_dir(home.path()).output();
        assert_eq!(make.expect("make").status.success(), well, "exit code {code}");
    }
    let asked = fs::read_to_string(home.path().join("asked")).expect("it was asked");
    let first = asked.lines().take(3).collect::<Vec<_>>();
    let expected = [
        "evaluate . --record first-look.sqlite",
        "instrument list --carried-by first-look.sqlite",
        "evaluate . --plan none --for camera-2",
    ];
    assert_eq!(first, expected, "{asked}");
}

#[test]
fn commands_are_found_as_a_shell_would_read_them() {
    let document = "nilometer not this\n```sh\n$ sudo target/release/nilometer evaluate 'a b' \\\n    --plan quick # why\nls\n\
                    A=1 nilometer clean /x > out && nilometer plan list\n```\n```toml\nnilometer nor this\n```\n";
    let expected: [&[&str]; 3] =
        [&["evaluate", "a b", "--plan", "quick"], &["clean", "/x"], &["plan", "list"]];
    assert_eq!(commands(document), expected);
}

#[test]
fn a_command_that_is_wrong_is_found() {
    for (text, wrong) in [
        ("nilometer evaluate . --plan quick --record r.sqlite", false),
        ("nilometer evaluate . --plan my.toml", false),
        ("nilometer plan show quick", false),
        ("nilometer --help", false),
        ("nilometer evaluat .", true),
        ("nilometer evaluate . --plam quick", true),
        ("nilometer evaluate . --plan quik", true),
        ("nilometer clean", true),
    ] {
        let arguments = command(text).expect("ours");
        assert_eq!(complaint(&arguments).is_some(), wrong, "{text}: {:?}", complaint(&arguments));
    }
}

#[test]
fn a_file_that_is_missing_is_found() {
    let text = "See `crates/model/src/lib.rs`, `crates/model/src/gone.rs`, [this](GONE.md#part), [that](plans/quick.toml), \
                `a/b`, `cargo test`, <https://example.org/tests/x.md> and `evaluation.sqlite`.";
    assert_eq!(missing_files("README.md", text), ["crates/model/src/gone.rs", "GONE.md#part"]);
    let beside = "[here](hdf5.md#who-is-heard), [not](GONE.md)";
    assert_eq!(missing_files("docs/service.md", beside), ["GONE.md"]);
    assert_eq!(missing_files("README.md", beside), ["hdf5.md#who-is-heard", "GONE.md"]);
}
