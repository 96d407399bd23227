//! Programs of the system that a test has others' work judged by.

use std::process::{Command, Stdio};

/// A program that is there. If it is not, what needs it is skipped with a word, or fails where everything must be tested.
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
