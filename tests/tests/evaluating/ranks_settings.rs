//! Settings on several machines: one process of each applies them and takes them back, also when the campaign is ended,
//! when a process dies, and afterwards.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use nilometer_model::{Nanos, TargetAddress};
use nilometer_plan::AppliedSetting;
use nilometer_tests::{Ended, Mpi, Running, await_some, may_mount, nilometer, start};
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
undo = "echo undone >> HOME/log.$(hostname); rm -f HOME/mode.$(hostname)"
"#;

fn lab(repeats: u32, applied: &str) -> RankLab {
    lab_with(repeats, applied, "")
}

/// The same with more settings.
fn lab_with(repeats: u32, applied: &str, more: &str) -> RankLab {
    let lab = RankLab::new("");
    let home = lab.at().to_str().expect("a plain name");
    let plan = [PLAN, more].concat().replace("APPLIED", applied).replace("HOME", home);
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

/// An end of a campaign before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EarlyEnd {
    /// A signal to the launcher, which passes it on.
    Interrupted,
    /// A signal that ends a batch job.
    Terminated,
    /// The death of the process that applied the setting on the second machine. The launcher ends the others.
    ProcessKilled,
    /// The death of the launcher.
    LauncherKilled,
}

impl EarlyEnd {
    const ALL: [Self; 4] =
        [EarlyEnd::Interrupted, EarlyEnd::Terminated, EarlyEnd::ProcessKilled, EarlyEnd::LauncherKilled];

    fn happens(self, mpi: &Mpi, home: &Path, running: &Running) {
        match self {
            EarlyEnd::Interrupted => running.signal(Signal::INT),
            EarlyEnd::Terminated => running.signal(Signal::TERM),
            EarlyEnd::LauncherKilled => running.signal(Signal::KILL),
            EarlyEnd::ProcessKilled => {
                let victim = mpi.worker_of(2, home).expect("it runs");
                kill_process(victim, Signal::KILL).expect("it runs");
            }
        }
    }
}

/// Waits until no process of the campaign in this directory runs any more.
fn await_end_of_processes(mpi: &Mpi, home: &Path) {
    let runs = || (0..RANKS).any(|rank| mpi.worker_of(rank, home).is_some());
    await_some("the end of all processes", || (!runs()).then_some(()));
}

/// A second setting, which must be taken back before the first. Settings apply in the order of their names.
const NESTED: &str = r#"
[stage.setting.then]
values = ["on"]
apply = "touch HOME/inner.$(hostname)"
undo = "test -e HOME/mode.$(hostname) || touch HOME/disorder; rm -f HOME/inner.$(hostname)"
"#;

#[test]
fn after_every_early_end_each_machine_takes_its_settings_back_the_last_one_first() {
    if !may_mount() {
        return;
    }
    for mpi in Mpi::all() {
        for early in EarlyEnd::ALL {
            let lab = lab_with(50, "", NESTED);
            let running = started(&mpi, &lab, &EVALUATE);
            let is_inner = |machine: &String| lab.at().join(format!("inner.{machine}")).exists();
            let both = || machines().iter().all(is_inner).then_some(());
            await_some("the settings on both machines", both);
            early.happens(&mpi, lab.at(), &running);
            let ended = running.end(Duration::from_mins(2));
            // MPICH's launcher ends with 0 after ctrl-C, and processes outlive a launcher that was killed.
            await_end_of_processes(&mpi, lab.at());
            await_some("the guards", || (noted(lab.at()) == 0).then_some(()));
            for machine in machines() {
                let left = is_in_force(lab.at(), &machine) || is_inner(&machine);
                assert!(!left, "{early:?}: {machine}: {ended:?}");
            }
            assert!(!lab.at().join("disorder").exists(), "{early:?}: {ended:?}");
        }
    }
}

#[test]
fn several_processes_of_one_machine_have_a_guard_too() {
    for mpi in Mpi::all() {
        let lab = lab(50, "");
        let program = nilometer().to_str().expect("a plain name");
        let mut command = mpi.command(2, lab.at(), &[&[program], &EVALUATE[..]].concat());
        command.env("NILOMETER_STATE", notes(lab.at()));
        let running = Running::of(command);
        let [here, _] = machines();
        await_some("the setting", || is_in_force(lab.at(), &here).then_some(()));
        let victim = mpi.worker_of(0, lab.at()).expect("it runs");
        kill_process(victim, Signal::KILL).expect("it runs");
        let ended = running.end(Duration::from_mins(2));
        await_some("the guard", || (noted(lab.at()) == 0).then_some(()));
        assert!(!is_in_force(lab.at(), &here), "{ended:?}");
        let events = lab.results().events;
        assert!(events.iter().any(|event| event.what.ends_with("on 1 machine")), "{events:?}");
        let options = ["clean", "--record", "r.sqlite", "--trust-record"];
        let cleaned = start(lab.at(), &options).end(Duration::from_mins(1));
        assert_eq!(cleaned.code, Some(0), "{cleaned:?}");
        let said = cleaned.stderr.contains("run `nilometer clean --settings` there");
        assert!(said && cleaned.stdout.contains("nothing to take back"), "{cleaned:?}");
    }
}

/// A command that applies a value only after its process was killed.
const LATE: &str = "touch HOME/begun.$(hostname); while [ -d HOME ] && [ ! -e HOME/go ]; do sleep 0.05; done; echo \
                    $NILOMETER_VALUE > HOME/mode.$(hostname)";

#[test]
fn a_command_that_outlives_its_process_has_ended_before_its_value_is_taken_back() {
    for mpi in Mpi::all() {
        let lab = lab(1, "");
        let plan = fs::read_to_string(lab.at().join("plan.toml")).expect("a plan");
        let apply = LATE.replace("HOME", lab.at().to_str().expect("a plain name"));
        let is_apply = |line: &str| line.starts_with("apply = ");
        let late = |line| if is_apply(line) { format!("apply = \"{apply}\"") } else { line.to_owned() };
        let plan: Vec<String> = plan.lines().map(late).collect();
        fs::write(lab.at().join("plan.toml"), plan.join("\n")).expect("space");
        let program = nilometer().to_str().expect("a plain name");
        let mut command = mpi.command(2, lab.at(), &[&[program], &EVALUATE[..]].concat());
        command.env("NILOMETER_STATE", notes(lab.at()));
        let running = Running::of(command);
        let [here, _] = machines();
        let begun = lab.at().join(format!("begun.{here}"));
        await_some("the command", || begun.exists().then_some(()));
        let victim = mpi.worker_of(0, lab.at()).expect("it runs");
        kill_process(victim, Signal::KILL).expect("it runs");
        await_some("the end of the process", || mpi.worker_of(0, lab.at()).is_none().then_some(()));
        assert_eq!(noted(lab.at()), 1, "the guard waits for the command");
        let held = clean(lab.at());
        assert_eq!(held.code, Some(0), "{held:?}");
        assert!(held.stderr.contains("a running campaign or its guard undoes it"), "{held:?}");
        fs::write(lab.at().join("go"), "").expect("space");
        // MPICH's launcher ends the other process only now: the command and the guard had descriptors of it.
        let ended = running.end(Duration::from_mins(2));
        await_some("the guard", || (noted(lab.at()) == 0).then_some(()));
        assert!(!is_in_force(lab.at(), &here), "{ended:?}");
        assert_eq!(log(lab.at(), &here), ["undone"]);
    }
}

/// Runs `clean --settings` on this machine.
fn clean(home: &Path) -> Ended {
    let mut command = Command::new(nilometer());
    command.args(["clean", "--settings"]).current_dir(home).env("NILOMETER_STATE", notes(home));
    Running::of(command).end(Duration::from_mins(1))
}

/// Writes the note of a setting, as a process and a guard left it that were killed together.
fn leave_note(home: &Path, machine: &str, undo: &str) {
    let setting = AppliedSetting {
        name: "mode".into(),
        value: "fast".into(),
        apply: "true".into(),
        read_back: None,
        undo: undo.into(),
        time_limit: Nanos::from_millis(60_000),
    };
    let target = TargetAddress::from(home.join("target").as_path());
    let note = serde_json::json!({ "setting": setting, "target": target });
    fs::write(notes(home).join(format!("{machine}.1.0.setting")), note.to_string()).expect("space");
}

/// The directory of notes, with these permissions.
fn make_notes(home: &Path, mode: u32) {
    fs::create_dir(notes(home)).expect("space");
    fs::set_permissions(notes(home), PermissionsExt::from_mode(mode)).expect("its owner");
}

#[test]
fn clean_without_a_setting_in_force_has_nothing_to_take_back() {
    let lab = lab(1, "");
    let nothing = clean(lab.at());
    assert_eq!(nothing.code, Some(0), "{nothing:?}");
    let said = format!("nothing to take back: {} has no note of a setting", notes(lab.at()).display());
    assert!(nothing.stdout.contains(&said), "{nothing:?}");
    assert!(!notes(lab.at()).exists(), "it makes no directory");
}

#[test]
fn notes_that_others_may_write_are_not_run_and_an_undo_that_fails_keeps_its_note() {
    let lab = lab(1, "");
    let home = lab.at();
    let [here, _] = machines();
    make_notes(home, 0o777);
    leave_note(home, &here, &format!("touch {}", home.join("ran").display()));
    let refused = clean(home);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("is not a directory of this user alone"), "{refused:?}");
    assert!(!home.join("ran").exists(), "{refused:?}");
    fs::set_permissions(notes(home), PermissionsExt::from_mode(0o700)).expect("its owner");
    leave_note(home, &here, "echo no way back >&2; exit 3");
    let failed = clean(home);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(failed.stderr.contains("setting `mode`") && failed.stderr.contains("no way back"), "{failed:?}");
    assert_eq!(noted(home), 1, "{failed:?}");
    leave_note(home, &here, "true");
    assert_eq!(clean(home).code, Some(0));
    assert_eq!(noted(home), 0);
}

#[test]
fn what_a_machine_still_has_in_force_is_taken_back_by_clean_there_and_by_the_next_campaign() {
    if !may_mount() {
        return;
    }
    for mpi in Mpi::all() {
        let lab = lab(1, "");
        let home = lab.at();
        make_notes(home, 0o700);
        for machine in machines() {
            let [log, mode] = ["log", "mode"].map(|name| home.join(format!("{name}.{machine}")));
            fs::write(&mode, "fast\n").expect("space");
            fs::write(&log, "fast\n").expect("space");
            let undo = format!("echo undone >> {}; rm {}", log.display(), mode.display());
            leave_note(home, &machine, &undo);
        }
        let cleaned = clean(home);
        assert_eq!(cleaned.code, Some(0), "{cleaned:?}");
        let said = cleaned.stdout.contains("setting `mode`") && cleaned.stdout.contains(": undone");
        assert!(said, "{cleaned:?}");
        let [here, other] = machines();
        let is_left = !is_in_force(home, &here) && is_in_force(home, &other);
        assert!(is_left, "only of this machine: {cleaned:?}");
        assert!(clean(home).stdout.contains("nothing to take back"));
        let ended = started(&mpi, &lab, &EVALUATE).end(Duration::from_mins(3));
        assert!(ended.has_answered(), "{ended:?}");
        assert_taken_back(home, &ended);
        assert_eq!(noted(home), 0);
        let events = lab.results().events;
        let restored = events.iter().find(|event| event.what.starts_with("other: setting `mode`"));
        assert!(restored.is_some_and(|event| event.what.ends_with(": undone")), "{events:?}");
    }
}
