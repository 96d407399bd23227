//! The workspace's own sources, for the tests that check them against limits.

use std::{
    fs,
    path::{Path, PathBuf},
};

use syn::{Attribute, Ident};

use crate::root;

/// All files below a directory with this extension, in order.
pub fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|end| end == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The directories of `crates/`.
pub fn crates() -> Vec<String> {
    let entries = fs::read_dir(root().join("crates")).expect("crates/").map(|entry| entry.expect("an entry"));
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The text of a file of the repository.
pub fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns true if an item with these attributes is compiled for tests only.
pub fn is_for_tests(attributes: &[Attribute]) -> bool {
    let is_test =
        |attribute: &Attribute| attribute.parse_args::<Ident>().is_ok_and(|argument| argument == "test");
    attributes.iter().any(|attribute| attribute.path().is_ident("cfg") && is_test(attribute))
}

/// Fails the test with these complaints, if there are any.
pub fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}
