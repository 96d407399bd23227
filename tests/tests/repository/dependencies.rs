//! The crates that the program is built from: none has a known vulnerability, and few are there in two versions.
//!
//! `packaging/advisories.toml` is the part of the database of `RustSec` (<https://github.com/rustsec/advisory-db>, advisory format of its
//! README.md) that concerns the crates of `Cargo.lock`, so that the test needs no network. To look again, clone the database and run
//! `NILOMETER_ADVISORY_DB=DIRECTORY cargo test -p nilometer-tests --test repository dependencies::`, which writes the file anew.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::Path,
    process::Command,
};

use nilometer_tests::{assert_none, root};
use semver::{Version, VersionReq};
use toml::{Table, Value};

const STORED: &str = "packaging/advisories.toml";
const FOR_WINDOWS: &str = "for Windows only; it is never built here";

/// Crates that `Cargo.lock` has in more than one version. A third version, or another crate, needs a reason in this list.
const IN_TWO_VERSIONS: [(&str, &str); 12] = [
    ("getrandom", "ring, under rustls, has 0.2, others 0.4"),
    (
        "glam",
        "nalgebra, under the statistics, has an optional dependency on each release of it; none is built",
    ),
    ("syn", "derive macros move from 2 to 3 one by one; it is in no program"),
    ("windows-sys", FOR_WINDOWS),
    ("windows-targets", FOR_WINDOWS),
    ("windows_aarch64_gnullvm", FOR_WINDOWS),
    ("windows_aarch64_msvc", FOR_WINDOWS),
    ("windows_i686_gnu", FOR_WINDOWS),
    ("windows_i686_msvc", FOR_WINDOWS),
    ("windows_x86_64_gnu", FOR_WINDOWS),
    ("windows_x86_64_gnullvm", FOR_WINDOWS),
    ("windows_x86_64_msvc", FOR_WINDOWS),
];

/// Name and version of each crate of `Cargo.lock` that comes from a registry.
fn locked() -> BTreeSet<(String, Version)> {
    let lock: Table =
        fs::read_to_string(root().join("Cargo.lock")).expect("Cargo.lock").parse().expect("it is TOML");
    let packages = lock["package"].as_array().expect("it has packages");
    let foreign = packages.iter().filter(|package| package.get("source").is_some());
    foreign
        .map(|package| (text(package, "name"), text(package, "version").parse().expect("a version")))
        .collect()
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_else(|| panic!("{value} has no {key}")).to_owned()
}

fn stored() -> Table {
    fs::read_to_string(root().join(STORED)).expect(STORED).parse().expect("it is TOML")
}

/// Requirements such as `>= 1.2.3, < 2`, any of which a version may meet.
fn meets_any(version: &Version, requirements: Option<&Value>) -> bool {
    let requirements = requirements.and_then(Value::as_array).into_iter().flatten();
    requirements
        .map(|one| one.as_str().expect("a text").parse::<VersionReq>().expect("a requirement"))
        .any(|one| one.matches(version))
}

fn concerns(advisory: &Value, version: &Version) -> bool {
    !meets_any(version, advisory.get("patched")) && !meets_any(version, advisory.get("unaffected"))
}

/// Advisories of the database about one of these crates, as they go into the stored file: what was withdrawn is left out.
fn looked_up(database: &Path, names: &BTreeSet<String>) -> Vec<Value> {
    let mut found = Vec::new();
    for name in names {
        let Ok(entries) = fs::read_dir(database.join("crates").join(name)) else { continue };
        let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
        files.sort();
        found.extend(files.iter().filter_map(|file| reduced(file)));
    }
    found
}

/// The parts of an advisory that the test needs. Its TOML stands at the top of a Markdown file, in a fenced block.
fn reduced(file: &Path) -> Option<Value> {
    let markdown = fs::read_to_string(file).expect("an advisory");
    let block =
        markdown.split("```").nth(1).and_then(|block| block.strip_prefix("toml")).expect("a block of TOML");
    let whole: Table = block.parse().expect("it is TOML");
    let (advisory, versions) = (&whole["advisory"], whole.get("versions"));
    if advisory.get("withdrawn").is_some() {
        return None;
    }
    let mut kept = Table::new();
    for key in ["id", "package", "informational"] {
        kept.extend(advisory.get(key).map(|value| (key.to_owned(), value.clone())));
    }
    for key in ["patched", "unaffected"] {
        kept.extend(versions.and_then(|all| all.get(key)).map(|value| (key.to_owned(), value.clone())));
    }
    Some(Value::Table(kept))
}

/// Writes the stored file anew from a clone of the database.
fn look_again(database: &Path, names: &BTreeSet<String>) {
    let shown = Command::new("git")
        .arg("-C")
        .arg(database)
        .args(["log", "-1", "--format=%cs"])
        .output()
        .expect("git");
    let date = String::from_utf8(shown.stdout).expect("a date").trim().to_owned();
    assert!(!date.is_empty(), "{} is no clone of the advisory database", database.display());
    let mut table = Table::new();
    table.insert("date".to_owned(), date.into());
    table.insert("crates".to_owned(), names.iter().cloned().collect::<Vec<_>>().into());
    table.insert("advisory".to_owned(), looked_up(database, names).into());
    let heading = "# Advisories of RustSec about the crates of Cargo.lock. tests/tests/repository/dependencies.rs writes and checks it.\n";
    fs::write(
        root().join(STORED),
        format!("{heading}{}", toml::to_string_pretty(&table).expect("it is a table")),
    )
    .expect(STORED);
}

#[test]
fn no_crate_has_a_known_vulnerability() {
    let locked = locked();
    let names: BTreeSet<String> = locked.iter().map(|(name, _)| name.clone()).collect();
    if let Some(database) = env::var_os("NILOMETER_ADVISORY_DB") {
        look_again(Path::new(&database), &names);
    }
    let stored = stored();
    let seen: BTreeSet<_> =
        stored["crates"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    let unseen = names.iter().filter(|name| !seen.contains(name.as_str()));
    assert_none(
        &unseen.map(|name| format!("{name}: not looked up yet, see dependencies.rs")).collect::<Vec<_>>(),
    );

    let advisories = stored["advisory"].as_array().expect("a list");
    assert!(!advisories.is_empty(), "the stored database is empty");
    let mut found = Vec::new();
    for (name, version) in &locked {
        let about = advisories.iter().filter(|advisory| text(advisory, "package") == *name);
        found.extend(
            about
                .filter(|one| concerns(one, version))
                .map(|one| format!("{name} {version}: {}", text(one, "id"))),
        );
    }
    assert_none(&found);
}

#[test]
fn an_advisory_concerns_the_versions_that_it_names() {
    let advisory: Value =
        toml::from_str::<Table>("patched = ['>= 1.4.2, < 2', '>= 2.1']\nunaffected = ['< 1']")
            .expect("TOML")
            .into();
    let concerned = |version: &str| concerns(&advisory, &version.parse().expect("a version"));
    for (version, expected) in
        [("0.9.9", false), ("1.4.1", true), ("1.4.2", false), ("2.0.5", true), ("2.1.0", false)]
    {
        assert_eq!(concerned(version), expected, "{version}");
    }
}

#[test]
fn few_crates_are_there_in_two_versions() {
    let mut versions: BTreeMap<String, usize> = BTreeMap::new();
    for (name, _) in locked() {
        *versions.entry(name).or_default() += 1;
    }
    let several: BTreeSet<_> =
        versions.iter().filter(|(_, count)| **count > 1).map(|(name, _)| name.as_str()).collect();
    assert_eq!(several, IN_TWO_VERSIONS.map(|(name, _)| name).into());
}
