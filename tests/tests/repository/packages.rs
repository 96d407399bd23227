//! What is installed: man pages, completions, the version, the files of `make install`, the list of what the program is
//! made of, and that it gets on with the system calls of Linux 3.10. `make test-packages` installs the packages themselves.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use nilometer_tests::{RECORDINGS_ONLY, assert_none, clients, nilometer, root, run, tool};
use serde_json::Value;
use tempfile::TempDir;

/// What a command said, if it ended well.
fn said(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().expect("it starts");
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}: {stdout}{stderr}");
    stdout.into_owned()
}

fn generated(what: &str) -> TempDir {
    let to = tempfile::tempdir().expect("a temporary directory");
    let ended = run(&[Path::new("generate"), Path::new(what), Path::new("--to"), to.path()]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    to
}

/// Under what a help lists commands: that of the program has groups.
const COMMANDS: [&str; 4] =
    ["Commands:", "Evaluate storage:", "Simulate an instrument, and record one:", "Read recordings:"];

/// The commands that a help lists.
fn listed(help: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_list = false;
    for line in help.lines() {
        if !line.is_empty() && !line.starts_with(' ') {
            is_list = COMMANDS.contains(&line);
        }
        // A description goes on where the line is indented further.
        if is_list && line.starts_with("  ") && !line.starts_with("   ") {
            names.extend(line.split_whitespace().next().filter(|name| *name != "help").map(str::to_owned));
        }
    }
    names
}

/// Each command of the program, as the words that it is called by; the program itself has none.
fn commands() -> Vec<Vec<String>> {
    let (mut found, mut to_ask) = (Vec::new(), vec![Vec::new()]);
    while let Some(words) = to_ask.pop() {
        let help = run(&[&words[..], &["--help".to_owned()]].concat()).stdout;
        to_ask.extend(listed(&help).into_iter().map(|name| [&words[..], &[name]].concat()));
        found.push(words);
    }
    found
}

/// The long options that a help explains.
fn options(help: &str) -> BTreeSet<String> {
    let lines = help.lines().filter(|line| line.trim_start().starts_with('-'));
    let words = lines.filter_map(|line| line.split_whitespace().find(|word| word.starts_with("--")));
    words.map(|word| word.trim_end_matches("...").trim_end_matches(',').to_owned()).collect()
}

#[test]
fn every_command_has_a_page_that_names_its_options() {
    let pages = generated("man");
    let commands = commands();
    assert!(commands.len() > 15, "{commands:?}");
    for words in &commands {
        let name = [&["nilometer".to_owned()], &words[..]].concat().join("-");
        let page = fs::read_to_string(pages.path().join(format!("{name}.1"))).unwrap_or_default();
        assert!(page.starts_with(".ie ") && page.contains(".SH NAME"), "no page of {name}");
        let page = page.replace("\\-", "-");
        let help = run(&[&words[..], &["--help".to_owned()]].concat()).stdout;
        let missing = options(&help).into_iter().filter(|option| !page.contains(option));
        assert_none(&missing.map(|option| format!("{name}.1 has no {option}")).collect::<Vec<_>>());
    }
    assert_eq!(fs::read_dir(pages.path()).expect("it is there").count(), commands.len(), "pages of nothing");
}

#[test]
fn man_has_nothing_to_say_against_the_pages() {
    let pages = generated("man");
    let mut pages: Vec<_> = fs::read_dir(pages.path())
        .expect("it is there")
        .map(|entry| entry.expect("one").path())
        .map(|path| (path.clone(), fs::read_to_string(path).expect("a text")))
        .collect();
    pages.sort();
    if let Some(mut mandoc) = tool("mandoc") {
        let lint = mandoc.args(["-T", "lint", "-W", "warning"]).args(pages.iter().map(|(path, _)| path));
        let complaints = String::from_utf8(lint.output().expect("it starts").stdout).expect("a text");
        // The generator breaks a line before and after a space, which costs nothing.
        let complaints = complaints.lines().filter(|line| !line.contains("skipping paragraph macro: br"));
        assert_none(&complaints.map(str::to_owned).collect::<Vec<_>>());
    }
    let (_, first) = &pages[0];
    let title = first.lines().find(|line| line.starts_with(".TH ")).expect("a title");
    // Name, section, date, source and manual: one that is empty would shift those behind it.
    assert!(title.split('"').next().is_some_and(|start| start.split_whitespace().count() == 4), "{title}");
}

#[test]
fn shells_read_the_completions() {
    let files = generated("completions");
    for (shell, options, file) in [
        ("bash", ["-n"], "nilometer.bash"),
        ("zsh", ["-n"], "_nilometer"),
        ("fish", ["--no-execute"], "nilometer.fish"),
    ] {
        let path = files.path().join(file);
        assert!(path.exists(), "{file} is missing");
        if let Some(mut shell) = tool(shell) {
            said(shell.args(options).arg(path));
        }
    }
    let script = format!(
        "source {}; COMP_WORDS=(nilometer evalu); COMP_CWORD=1; _nilometer nilometer evalu nilometer; \
         echo \"${{COMPREPLY[@]}}\"",
        files.path().join("nilometer.bash").display()
    );
    assert_eq!(said(Command::new("bash").args(["-c", &script])).trim(), "evaluate");
}

#[test]
fn the_version_says_which_commit_it_is() {
    let long = run(&["--version"]).stdout;
    assert_eq!(long, run(&["version"]).stdout);
    let line = |word: &str| long.lines().find(|line| line.starts_with(word)).unwrap_or_default().to_owned();
    assert!(long.starts_with(&format!("nilometer {}\n", env!("CARGO_PKG_VERSION"))), "{long}");
    let head = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).current_dir(root()).output();
    let head = head.ok().filter(|head| head.status.success());
    let commit =
        head.map_or_else(|| "unknown".into(), |head| String::from_utf8_lossy(&head.stdout).trim().to_owned());
    assert!(line("commit").contains(&commit), "{commit}: {long}");
    let clients = clients();
    let features = if clients.is_empty() { vec!["none"] } else { clients };
    assert!(features.into_iter().all(|feature| line("features").contains(feature)), "{long}");
    assert!(line("target").contains("linux"), "{long}");
    assert!(line("kernel").contains("Linux 3.10"), "{long}");
    assert!(run(&["-V"]).stdout.contains(&format!("({commit})")));
}

/// All files below a directory, by their paths in it.
fn below(directory: &Path) -> BTreeSet<String> {
    let found = said(Command::new("find").args([".", "-type", "f"]).current_dir(directory));
    found.lines().map(|line| line.trim_start_matches("./").to_owned()).collect()
}

fn make(target: &str, variables: &[String]) {
    let mut make = Command::new("make");
    make.arg(target).args(variables).current_dir(root()).env("PROGRAM", nilometer());
    said(&mut make);
}

#[test]
fn make_install_puts_everything_in_its_place_and_uninstall_takes_it_away() {
    let to = tempfile::tempdir().expect("a temporary directory");
    let variables = [format!("DESTDIR={}", to.path().display()), "PREFIX=/opt/nm".to_owned()];
    make("install", &variables);
    let prefix = to.path().join("opt/nm");
    let installed = below(&prefix);
    for file in [
        "bin/nilometer",
        "lib/systemd/system/nilometer.service",
        "lib/sysusers.d/nilometer.conf",
        "share/bash-completion/completions/nilometer",
        "share/doc/nilometer/LICENSE",
        "share/doc/nilometer/contrib/grafana/recorder.json",
        "share/doc/nilometer/docs/drawings/two-ways.svg",
        "share/doc/nilometer/docs/tutorial.md",
        "share/doc/nilometer/nilometer.toml",
        "share/doc/nilometer/bench/README.md",
        "share/doc/nilometer/instruments/pilatus-6m.toml",
        "share/doc/nilometer/plans/uci.toml",
        "share/fish/vendor_completions.d/nilometer.fish",
        "share/man/man1/nilometer-plan-show.1.gz",
        "share/man/man1/nilometer.1.gz",
        "share/zsh/site-functions/_nilometer",
    ] {
        assert!(installed.contains(file), "{file} is missing: {installed:?}");
    }
    let pages = installed.iter().filter(|file| file.contains("man1")).count();
    let directories = ["docs", "contrib", "facilities", "instruments", "plans", "reference"];
    let documented: usize = directories.iter().map(|name| below(&root().join(name)).len()).sum();
    // Six pages outside of these directories, and the eight files above that are no documents.
    assert_eq!((pages, installed.len()), (commands().len(), commands().len() + documented + 6 + 8));
    let weekly = prefix.join("share/doc/nilometer/contrib/weekly/nilometer-weekly");
    let mode = fs::metadata(weekly).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o111, 0o111, "a program stays one");
    let program = prefix.join("bin/nilometer");
    assert!(size(&program) < size(nilometer()), "it is not stripped");
    assert_eq!(said(Command::new(program).arg("--version")), run(&["--version"]).stdout);
    let unit = fs::read_to_string(prefix.join("lib/systemd/system/nilometer.service")).expect("a unit");
    assert!(unit.contains("ExecStart=/opt/nm/bin/nilometer serve") && !unit.contains("/usr/local"), "{unit}");
    // What is somebody else's stays.
    let other = prefix.join("share/man/man1/nilo.1.gz");
    fs::write(&other, "").expect("room");
    make("uninstall", &variables);
    assert_eq!(below(&prefix), BTreeSet::from(["share/man/man1/nilo.1.gz".to_owned()]));
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).expect("it is there").len()
}

fn licences() -> (TempDir, Value, String) {
    let to = tempfile::tempdir().expect("a temporary directory");
    said(Command::new("python3").arg(root().join("packaging/licences")).arg("--to").arg(to.path()));
    let bill = fs::read_to_string(to.path().join("nilometer.cdx.json")).expect("a bill of materials");
    let texts = fs::read_to_string(to.path().join("THIRD-PARTY.txt")).expect("licences");
    (to, serde_json::from_str(&bill).expect("JSON"), texts)
}

/// The crates that the program is made of, as `name version`.
fn crates_of_the_program() -> BTreeSet<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments =
        ["tree", "--locked", "--package", "nilometer-cli", "--edges", "normal", "--prefix", "none"];
    let tree = said(Command::new(cargo).args(arguments).args(["--format", "{p}"]).current_dir(root()));
    let crates = tree.lines().filter_map(|line| line.split_once(" v"));
    crates.map(|(name, rest)| format!("{name} {}", rest.split(' ').next().unwrap_or_default())).collect()
}

/// The crates that a bill of materials leaves out.
fn left_out(bill: &Value) -> Vec<String> {
    let listed = bill["components"].as_array().into_iter().flatten().chain([&bill["metadata"]["component"]]);
    let listed: BTreeSet<String> = listed
        .map(|each| {
            format!("{} {}", each["name"].as_str().unwrap_or(""), each["version"].as_str().unwrap_or(""))
        })
        .collect();
    let needed = crates_of_the_program().into_iter();
    needed
        .map(|each| each.replace("nilometer-cli ", "nilometer "))
        .filter(|each| !listed.contains(each))
        .collect()
}

#[test]
fn the_bill_of_materials_is_complete_and_every_licence_is_there() {
    let (_first, mut bill, texts) = licences();
    assert_none(&left_out(&bill));
    let theirs = crates_of_the_program().into_iter().filter(|each| !each.starts_with("nilometer-"));
    // Once with its licence, and once among those that a text is for; as a whole name and version.
    let words = |line: &str| {
        line.split([',', ':'])
            .map(|part| part.trim().trim_start_matches("For ").to_owned())
            .collect::<Vec<_>>()
    };
    let named: Vec<String> = texts.lines().flat_map(words).collect();
    let missing = theirs.filter(|each| named.iter().filter(|name| *name == each).count() < 2);
    assert_none(&missing.map(|each| format!("{each}: no licence")).collect::<Vec<_>>());
    for part in ["sqlite", "lz4", "rust", "zig"] {
        assert!(bill.to_string().contains(&format!("pkg:generic/{part}@")), "{part} is not listed");
    }
    let (_second, again, same_texts) = licences();
    assert!(again == bill && same_texts == texts, "the same sources give something else");
    let components = bill["components"].as_array_mut().expect("a list");
    components.retain(|each| each["name"] != "rustix");
    assert_eq!(left_out(&bill).len(), 1, "one that is left out is found");
}

/// The program, or another, as if the kernel were Linux 3.10.
fn on_linux_3_10(program: &Path) -> Command {
    let mut command = Command::new(root().join("packaging/linux-3.10"));
    command.arg(program).stdin(Stdio::null());
    command
}

#[test]
fn the_system_calls_of_linux_3_10_are_enough() {
    let python = PathBuf::from("python3");
    // That the later ones are gone.
    let later = on_linux_3_10(&python).args(["-c", "import os; os.memfd_create('a')"]).output();
    assert!(String::from_utf8_lossy(&later.expect("it starts").stderr).contains("Function not implemented"));
    let place = tempfile::tempdir().expect("a temporary directory");
    fs::create_dir(place.path().join("target")).expect("a directory");
    fs::write(place.path().join("plan.toml"), RECORDINGS_ONLY).expect("room");
    let arguments = ["evaluate", "target", "--plan", "plan.toml"];
    let ended =
        on_linux_3_10(nilometer()).args(arguments).current_dir(place.path()).output().expect("it starts");
    // On a busy machine figures may be INVALID, which is 4.
    let stderr = String::from_utf8_lossy(&ended.stderr);
    assert!(matches!(ended.status.code(), Some(0 | 4)), "{stderr}");
    let simulate =
        ["simulate", "pco-edge", "--to", "target", "--name", "s", "--frames", "3", "--buffer", "64 MiB"];
    said(on_linux_3_10(nilometer()).args(simulate).current_dir(place.path()));
    said(on_linux_3_10(nilometer()).args(["verify", "target/s"]).current_dir(place.path()));
}
