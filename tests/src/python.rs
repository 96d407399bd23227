//! Programs that no one here wrote, to read what we write and to write what we read: libraries of Python.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
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
    let script = format!("import {modules}");
    let imports = |interpreter: &Path| {
        let mut command = Command::new(interpreter);
        command.args(["-c", &script]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    if let Some(interpreter) = interpreters().into_iter().find(|interpreter| imports(interpreter)) {
        return Some(Command::new(interpreter));
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "this test needs Python with {modules}: scripts/bootstrap test"
    );
    eprintln!("skipped: this test needs Python with {modules}: scripts/bootstrap test");
    None
}
