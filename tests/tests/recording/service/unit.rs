//! What is delivered for systemd: the configuration is one, and the unit starts what there is.

use std::{fs, path::Path, process::Command};

use nilometer_tests::{root, run, start};
use rustix::process::Signal;
use std::time::Duration;

#[test]
fn the_configuration_that_is_delivered_is_one() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let config = root().join("contrib/nilometer.toml");
    let options = ["--http", "127.0.0.1:0", "--mark5", "127.0.0.1:0"];
    let serve = ["serve", "--config", config.to_str().expect("plain")];
    let mut running = start(directory.path(), &[&serve[..], &options].concat());
    // A machine without its directory says so, and waits for another.
    let is_there = Path::new("/data").is_dir();
    running.await_said(if is_there { "ready: configured" } else { "ready: idle: /data: can't write there" });
    running.signal(Signal::TERM);
    assert_eq!(running.end(Duration::from_mins(1)).code, Some(0));
}

#[test]
fn the_unit_starts_what_there_is() {
    let unit = fs::read_to_string(root().join("contrib/nilometer.service")).expect("a unit");
    let started = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).expect("it starts something");
    let words: Vec<&str> = started.split(' ').collect();
    assert_eq!(words, ["/usr/local/bin/nilometer", "serve", "--config", "/etc/nilometer.toml"]);
    let help = run(&["serve", "--help"]);
    assert!(help.code == Some(0) && help.stdout.contains("--config <FILE>"), "{help:?}");
    // systemd wants the program to be there.
    let directory = tempfile::tempdir().expect("a temporary directory");
    let copy = directory.path().join("nilometer.service");
    fs::write(&copy, unit.replace(words[0], "/bin/true")).expect("space");
    let Ok(verified) = Command::new("systemd-analyze").arg("verify").arg(&copy).output() else {
        eprintln!("skipped: no systemd-analyze here");
        return;
    };
    let said = String::from_utf8_lossy(&verified.stderr);
    assert!(verified.status.success() && !said.contains("nilometer.service"), "{said}");
    // In tenths of what systemd calls exposure, of which a unit that restricts nothing has 96.
    let options = ["security", "--offline=true", "--threshold=30"];
    let rated = Command::new("systemd-analyze").args(options).arg(&copy).output().expect("it is there");
    assert!(rated.status.success(), "{}", String::from_utf8_lossy(&rated.stdout));
}
