//! The service reads, removes and opens nothing for those who command it that they could not do themselves, and none of
//! their orders stops it: whoever reaches its port is any user of this machine.

use std::{fs, os::unix::fs::symlink, path::Path, process::Command};

use nilometer_tests::{FileSystem, may_mount};
use serde_json::json;

use crate::service::{commanded::Service, instrument, sender::Sender};

/// A service that may be configured with files below `instruments`, in a directory of its own.
fn service() -> (tempfile::TempDir, Service) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::create_dir(directory.path().join("instruments")).expect("a directory");
    fs::create_dir(directory.path().join("data")).expect("a directory");
    let allowed = directory.path().join("instruments");
    let service = Service::allowing(&allowed, directory.path(), "mode = \"VDIF_8000-4096-16-2\"\n");
    (directory, service)
}

#[test]
fn no_file_is_read_for_those_who_command_it() {
    let (directory, service) = service();
    let secret = directory.path().join("secret.toml");
    fs::write(&secret, "TOKEN = \"hunter2\"\n").expect("space");
    symlink(&secret, directory.path().join("instruments/link.toml")).expect("a link");
    fs::write(directory.path().join("instruments/bad.toml"), "TOKEN = \"hunter2\"\n").expect("space");
    let below = |name: &str| directory.path().join("instruments").join(name).display().to_string();
    let outside = ["/etc/shadow".into(), "/proc/self/environ".into(), secret.display().to_string()];
    let inside = [below("link.toml"), below("../secret.toml"), below("bad.toml")];
    for path in outside.into_iter().chain(inside) {
        for order in ["/configure", "/arm"] {
            let (status, body) = service.ask("POST", order, &json!({ "instrument": path }).to_string());
            assert_eq!(status, 400, "{order} {path}: {body}");
            for quoted in ["hunter2", "TOKEN", "root:", "PATH="] {
                assert!(!body.contains(quoted), "{order} {path}: {body}");
            }
        }
    }
    assert_eq!(service.end(), Some(0));
}

#[test]
fn a_fifo_in_the_place_of_an_instrument_stops_nothing() {
    let (directory, service) = service();
    let fifo = directory.path().join("instruments/fifo.toml");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("it starts").success());
    service.json(400, "POST", "/configure", &json!({ "instrument": fifo }).to_string());
    let sender = Sender::new();
    let good = instrument(&directory.path().join("instruments"), sender.port());
    service.json(200, "POST", "/configure", &json!({ "instrument": good }).to_string());
    assert_eq!(service.end(), Some(0));
}

#[test]
fn storage_that_does_not_answer_holds_up_neither_questions_nor_the_end() {
    if !may_mount() {
        return;
    }
    let (_directory, service) = service();
    let frozen = FileSystem::ext4(64);
    frozen.freeze();
    let armed = json!({ "to": frozen.path(), "name": "scan" }).to_string();
    // Whoever waits for it is told after ten seconds that it is still being tried; refused if it was given up by then.
    let (status, body) = service.ask("POST", "/arm", &armed);
    assert!([202, 400, 500].contains(&status), "{status}: {body}");
    service.json(200, "GET", "/status", "");
    // It ends within a minute, or this panics.
    assert_eq!(service.end(), Some(0));
    frozen.thaw();
}

#[test]
fn what_is_given_up_takes_only_its_own_with_it() {
    let (directory, service) = service();
    let data = directory.path().join("data");
    let victim = directory.path().join("victim");
    fs::create_dir(&victim).expect("a directory");
    fs::write(victim.join("resolv.conf"), "nameserver 192.0.2.1\n").expect("space");
    let arm = |name: &str| {
        let listen = format!("udp://127.0.0.1:{}", Sender::new().port());
        let order = json!({ "to": data, "name": name, "listen": listen }).to_string();
        service.json(200, "POST", "/arm", &order);
    };
    arm("resolv");
    fs::rename(data.join("resolv"), data.join("away")).expect("whoever may write above");
    symlink(&victim, data.join("resolv")).expect("a link");
    service.json(200, "POST", "/stop", "");
    assert!(victim.join("resolv.conf").exists() && data.join("resolv").symlink_metadata().is_ok());

    arm("scan");
    fs::write(data.join("scan/scan.observers-notes.txt"), "PI: please keep\n").expect("space");
    service.json(200, "POST", "/stop", "");
    assert_eq!(
        names(&data.join("scan")),
        ["scan.observers-notes.txt"],
        "only what the recorder had made is gone"
    );

    arm("other");
    service.json(200, "POST", "/stop", "");
    assert!(!data.join("other").exists(), "nothing foreign was in it");
    assert_eq!(service.end(), Some(0));
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn nothing_is_opened_beyond_this_machine_by_command() {
    let (directory, service) = service();
    let data = directory.path().join("data");
    for listen in ["udp://0.0.0.0:15580", "udp://239.255.0.1:15580", "udp://[::]:15580"] {
        for order in ["/configure", "/arm"] {
            let wished = json!({ "to": data, "listen": listen }).to_string();
            let told = service.json(400, "POST", order, &wished);
            let why = told["error"].as_str().unwrap_or_default();
            assert!(why.contains("--listen-beyond-loopback"), "{order} {listen}: {why}");
        }
    }
    let never = json!({ "to": data, "hang_after": "0 s" }).to_string();
    service.json(400, "POST", "/arm", &never);
    assert_eq!(service.end(), Some(0));
}
