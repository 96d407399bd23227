//! Programs of the system with which a test checks the output of others.

use std::process::{Command, Stdio};

/// A program of the system. If it is not installed, this says that the test is skipped, or panics in CI.
pub fn tool(name: &str) -> Option<Command> {
    let mut look = Command::new("sh");
    look.args(["-c", &format!("command -v {name}")]).stdout(Stdio::null());
    if look.status().is_ok_and(|status| status.success()) {
        return Some(Command::new(name));
    }
    assert!(std::env::var_os("CI").is_none(), "this test needs {name}: scripts/bootstrap test");
    eprintln!("skipped: this test needs {name}: scripts/bootstrap test");
    None
}
