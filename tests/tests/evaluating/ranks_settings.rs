//! Settings on several machines: one process of each applies them and takes them back, also when the campaign is ended,
//! when a process dies, and afterwards.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use nilometer_tests::{Ended, Mpi, Running, await_some, may_mount, nilometer};
use rustix::process::{Signal, kill_process};

use super::ranks::{EVALUATE, RankLab, on_two_nodes};

const RANKS: u32 = 4;

/// A setting of each machine, with a log of each.
const PLAN: &str = r#"
title = "settings"
repeats = REPEATS
reserve = "0 B"
[[stage]]
name = "files"
[stage.workload.stream]
file_size = "256 KiB"
block_size = "64 KiB"
access = "buffered"
[stage.setting.mode]
values = ["slow", "fast"]
apply = "echo $NILOMETER_VALUE >> HOME/log.$(hostname); echo $NILOMETER_VALUE > HOME/mode.$(hostname)APPLIED"
read_back = "cat HOME/mode.$(hostname)"
undo = "echo undone >> HOME/log.$(hostname); rm HOME/mode.$(hostname)"
"#;

fn lab(repeats: u32, applied: &str) -> RankLab {
    let lab = RankLab::new("");
    let home = lab.at().to_str().expect("a plain name");
    let plan = PLAN.replace("APPLIED", applied).replace("HOME", home);
    fs::write(lab.at().join("plan.toml"), plan.replace("REPEATS", &repeats.to_string())).expect("space");
    lab
}

/// A campaign on two machines whose notes are in a directory of the test's own.
fn started(mpi: &Mpi, lab: &RankLab, arguments: &[&str]) -> Running {
    let script = on_two_nodes(mpi);
    let mut command = mpi.command(RANKS, lab.at(), &[&["sh", "-c", &script, "sh"], arguments].concat());
    command.env("NILOMETER_STATE", notes(lab.at()));
    Running::of(command)
}

fn notes(home: &Path) -> PathBuf {
    home.join("notes")
}

/// The number of settings that are noted as in force.
fn noted(home: &Path) -> usize {
    fs::read_dir(notes(home)).map_or(0, Iterator::count)
}

/// The names of the two machines.
fn machines() -> [String; 2] {
    let here = rustix::system::uname().nodename().to_string_lossy().into_owned();
    [here, "other".into()]
}

fn log(home: &Path, machine: &str) -> Vec<String> {
    let text = fs::read_to_string(home.join(format!("log.{machine}"))).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn is_in_force(home: &Path, machine: &str) -> bool {
    home.join(format!("mode.{machine}")).exists()
}

/// Each machine has taken back each value that it applied, one after the other.
fn assert_taken_back(home: &Path, ended: &Ended) {
    for machine in machines() {
        let log = log(home, &machine);
        assert!(log.len() >= 2, "{machine}: {log:?}: {ended:?}");
        assert!(
            log.chunks(2).all(|pair| pair.len() == 2 && pair[1] == "undone"),
            "{machine}: {log:?}: {ended:?}"
        );
        assert!(!is_in_force(home, &machine), "{machine}: {ended:?}");
    }
}

#[test]
fn one_process_of_each_machine_applies_a_setting_and_takes_it_back() {
    if !may_mount() {
        return;
    }
    for mpi in Mpi::all() {
        let lab = lab(2, "");
        let ended = started(&mpi, &lab, &EVALUATE).end(Duration::from_mins(3));
        assert!(ended.has_answered(), "{ended:?}");
        assert_taken_back(lab.at(), &ended);
        let [here, other] = machines().map(|machine| log(lab.at(), &machine));
        assert_eq!(here, other, "the same values at the same time: {ended:?}");
        let events = lab.results().events;
        assert!(events.iter().any(|event| event.what.ends_with("on 2 machines")), "{events:?}");
        assert_eq!(noted(lab.at()), 0);
        lab.assert_target_is_empty();
    }
}

#[test]
fn a_value_that_is_not_in_force_on_one_machine_is_measured_on_none_and_the_machine_is_named() {
    if !may_mount() {
        return;
    }
    for mpi in Mpi::all() {
        let home_of_other = "; if [ $(hostname) = other ]; then echo wrong > HOME/mode.other; fi";
        let lab = lab(1, home_of_other);
        let ended = started(&mpi, &lab, &EVALUATE).end(Duration::from_mins(3));
        assert_eq!(ended.code, Some(1), "{ended:?}");
        let said =
            format!("{}{}", ended.stdout, ended.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains("other: ") && said.contains("\"wrong"), "{ended:?}");
        assert_taken_back(lab.at(), &ended);
        assert_eq!(noted(lab.at()), 0);
    }
}

#[test]
fn after_a_signal_and_after_the_death_of_a_process_each_machine_takes_it_back() {
    if !may_mount() {
        return;
    }
    for mpi in Mpi::all() {
        for dies in [false, true] {
            let lab = lab(50, "");
            let running = started(&mpi, &lab, &EVALUATE);
            let both = || machines().iter().all(|machine| is_in_force(lab.at(), machine)).then_some(());
            await_some("the setting on both machines", both);
            if dies {
                let victim = mpi.worker_of(2, lab.at()).expect("it runs");
                kill_process(victim, Signal::KILL).expect("it runs");
            } else {
                running.signal(Signal::INT);
            }
            let ended = running.end(Duration::from_mins(2));
            assert_ne!(ended.code, Some(0), "{ended:?}");
            let none = || (noted(lab.at()) == 0).then_some(());
            await_some("the guards", none);
            for machine in machines() {
                assert!(!is_in_force(lab.at(), &machine), "{machine}: {ended:?}");
            }
        }
    }
}

#[test]
fn what_a_machine_still_has_in_force_is_taken_back_by_clean_there_and_by_the_next_campaign() {
    if !may_mount() {
        return;
    }
    let Some(mpi) = Mpi::all().next() else { return };
    let lab = lab(1, "");
    // As a process and a guard left it that were killed together.
    let home = lab.at();
    fs::create_dir(notes(home)).expect("space");
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    fs::set_permissions(notes(home), private).expect("its owner");
    for machine in machines() {
        let [log, mode] = ["log", "mode"].map(|name| home.join(format!("{name}.{machine}")));
        fs::write(&mode, "fast\n").expect("space");
        fs::write(&log, "fast\n").expect("space");
        let undo = format!("echo undone >> {}; rm {}", log.display(), mode.display());
        let note = serde_json::json!({
            "setting": {
                "name": "mode", "value": "fast", "apply": "true", "read_back": null, "undo": undo, "time_limit": "1 min"
            },
            "target": home.join("target"),
        });
        fs::write(notes(home).join(format!("{machine}.1.0.setting")), note.to_string()).expect("space");
    }
    let clean = || {
        let mut command = Command::new(nilometer());
        command.args(["clean", "--settings"]).current_dir(home).env("NILOMETER_STATE", notes(home));
        Running::of(command).end(Duration::from_mins(1))
    };
    let cleaned = clean();
    assert_eq!(cleaned.code, Some(0), "{cleaned:?}");
    assert!(cleaned.stdout.contains("setting `mode`") && cleaned.stdout.contains(": undone"), "{cleaned:?}");
    let [here, other] = machines();
    assert!(!is_in_force(home, &here) && is_in_force(home, &other), "only of this machine: {cleaned:?}");
    assert!(clean().stdout.contains("nothing to take back"));
    let ended = started(&mpi, &lab, &EVALUATE).end(Duration::from_mins(3));
    assert!(ended.has_answered(), "{ended:?}");
    assert_taken_back(home, &ended);
    assert_eq!(noted(home), 0);
}
