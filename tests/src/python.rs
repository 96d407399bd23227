//! Programs that no one here wrote, to read what we write and to write what we read: libraries of Python.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Mutex, PoisonError},
};

use crate::root;

/// Debian's Python first: that is where `scripts/bootstrap test` puts its packages; what Debian does not package is in the last.
fn interpreters() -> [PathBuf; 3] {
    ["/usr/bin/python3".into(), "python3".into(), root().join("target/python/bin/python3")]
}

/// An interpreter that has these modules. If there is none, the test is skipped with a word, or fails where everything
/// must be tested.
pub fn python(modules: &[&str]) -> Option<Command> {
    let modules = modules.join(", ");
    if let Some(interpreter) = interpreter(&modules) {
        let mut command = Command::new(interpreter);
        // Threads of a library for matrices, which no test multiplies, take as much processor time as the rest of a script.
        command.env("OPENBLAS_NUM_THREADS", "1");
        return Some(command);
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "this test needs Python with {modules}: scripts/bootstrap test"
    );
    eprintln!("skipped: this test needs Python with {modules}: scripts/bootstrap test");
    None
}

/// The first that imports them. It is looked for once: to import takes a good part of a second.
fn interpreter(modules: &str) -> Option<PathBuf> {
    static FOUND: Mutex<BTreeMap<String, Option<PathBuf>>> = Mutex::new(BTreeMap::new());
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    let first = || interpreters().into_iter().find(|interpreter| imports(interpreter, modules));
    found.entry(modules.to_owned()).or_insert_with(first).clone()
}

fn imports(interpreter: &Path, modules: &str) -> bool {
    let mut command = Command::new(interpreter);
    command.args(["-c", &format!("import {modules}")]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
