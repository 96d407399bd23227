//! Programs that no one here wrote, to read what we write and to write what we read: libraries of Python.

use std::process::{Command, Stdio};

/// Debian's Python first: that is where `scripts/bootstrap test` puts its packages.
const INTERPRETERS: [&str; 2] = ["/usr/bin/python3", "python3"];

/// An interpreter that has these modules. If there is none, the test is skipped with a word, or fails where everything
/// must be tested.
pub fn python(modules: &[&str]) -> Option<Command> {
    let modules = modules.join(", ");
    let script = format!("import {modules}");
    let imports = |interpreter: &str| {
        let mut command = Command::new(interpreter);
        command.args(["-c", &script]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    if let Some(interpreter) = INTERPRETERS.into_iter().find(|interpreter| imports(interpreter)) {
        return Some(Command::new(interpreter));
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "this test needs Python with {modules}: scripts/bootstrap test"
    );
    eprintln!("skipped: this test needs Python with {modules}: scripts/bootstrap test");
    None
}
