//! Independent programs, written by others, that read files we write and write files we read: libraries of
//! Python.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Mutex, PoisonError},
};

use crate::root;

/// Interpreters to try. Debian's Python comes first, because `scripts/bootstrap test` installs packages for it.
/// The last one has the packages that Debian lacks.
fn interpreters() -> [PathBuf; 3] {
    ["/usr/bin/python3".into(), "python3".into(), root().join("target/python/bin/python3")]
}

/// An interpreter with these modules. If there is none, it says that the test is skipped, or panics in CI.
pub fn python(modules: &[&str]) -> Option<Command> {
    let modules = modules.join(", ");
    if let Some(interpreter) = interpreter(&modules) {
        let mut command = Command::new(interpreter);
        // The threads of a matrix library take as much processor time as the rest of a script, and no test
        // multiplies matrices.
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

/// The first interpreter that imports the modules. The result is kept, because an import takes a good part of a
/// second.
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
