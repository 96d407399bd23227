//! Recordings that somebody else made, who wants to read what is not his, or to keep others from reading.

use std::{
    fs,
    os::unix::{
        fs::{PermissionsExt, chown, symlink},
        process::CommandExt,
    },
    path::Path,
    process::{Command, Output},
};

use nilometer_tests::{Mounted, may_show};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::{about, frames_in, names, recorded, text};

/// Not root, and nobody's.
const USER: u32 = 54_321;

fn pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("space");
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_a_fault_of_its_recording_alone() {
    let disk = tempfile::tempdir().expect("a temporary directory");
    let lane = recorded(&[disk.path()], 8, &[]).swap_remove(0);
    let evil = lane.join("evil.0.journal");
    pipe(&evil);
    let verified = about("verify", &[&lane], &[]);
    assert!(
        verified.code == Some(0) && verified.stdout.contains("evil.0.journal: it is a named pipe"),
        "{verified:?}"
    );
    let scan = about("scan", &[disk.path()], &[]);
    assert_eq!(scan.code, Some(1), "{scan:?}");
    assert!(scan.stdout.contains("frames      8 of") && scan.stderr.contains("evil.0.journal"), "{scan:?}");
    let to = disk.path().join("copy");
    let export = about("export", &[&lane], &["--to", text(&to), "--verify"]);
    assert_eq!(export.code, Some(0), "{export:?}");
    if may_show() {
        let mounted = Mounted::of(&[disk.path().to_owned()]);
        assert_eq!(names(mounted.path()), ["scan.raw"]);
    }
    fs::remove_file(evil).expect("it is ours");

    let frames = frames_in(&lane);
    for kind in ["pipe", "link", "directory"] {
        fs::rename(&frames, disk.path().join("kept")).expect("one file system");
        match kind {
            "pipe" => pipe(&frames),
            "link" => symlink(disk.path().join("kept"), &frames).expect("space"),
            _ => fs::create_dir(&frames).expect("space"),
        }
        let export = about("export", &[&lane], &["--to", text(&disk.path().join(kind))]);
        assert!(export.code == Some(1) && export.stderr.contains(kind), "{kind} {export:?}");
        let verified = about("verify", &[&lane], &[]);
        assert!(verified.code == Some(1) && verified.stdout.contains(kind), "{kind} {verified:?}");
        assert_eq!(about("scan", &[disk.path()], &["--all"]).code, Some(1), "{kind}");
        fs::remove_dir(&frames).or_else(|_| fs::remove_file(&frames)).expect("it is ours");
        fs::rename(disk.path().join("kept"), &frames).expect("one file system");
    }
}

/// What this user reads with `cat`, and whether he may.
fn read_as(user: u32, path: &Path) -> Output {
    Command::new("cat").arg(path).uid(user).gid(user).output().expect("cat")
}

/// A user's recording of which the frames are somebody else's file.
#[test]
fn nobody_reads_what_he_may_not_read_through_a_mount_of_root() {
    if !rustix::process::geteuid().is_root() || !may_show() {
        eprintln!("skipped: it is root who is to be tricked");
        return;
    }
    let disk = tempfile::tempdir().expect("a temporary directory");
    let lane = recorded(&[disk.path()], 8, &["--storing", "growing"]).swap_remove(0);
    let (frames, secret, all) = (frames_in(&lane), disk.path().join("secret"), disk.path().join("all"));
    assert_eq!(about("export", &[&lane], &["--to", text(&all)]).code, Some(0));
    fs::rename(&frames, &secret).expect("one file system");
    for path in [disk.path(), &lane] {
        fs::set_permissions(path, PermissionsExt::from_mode(0o755)).expect("it is ours");
    }
    fs::set_permissions(&secret, PermissionsExt::from_mode(0o600)).expect("it is ours");
    for path in [&lane, &lane.join("scan.0.journal")] {
        chown(path, Some(USER), Some(USER)).expect("root may");
    }
    for trick in ["link", "hard link", "root's own file"] {
        match trick {
            "link" => symlink(&secret, &frames).expect("space"),
            "hard link" => fs::hard_link(&secret, &frames).expect("one file system"),
            _ => fs::rename(&secret, &frames).expect("one file system"),
        }
        let mounted = Mounted::with(&[disk.path().to_owned()], &["--allow-other"]);
        let shown = read_as(USER, &mounted.path().join("scan.raw"));
        assert!(shown.status.success() && shown.stdout.iter().all(|byte| *byte == 0), "{trick}");
        drop(mounted);
        let export = about("export", &[&lane], &["--to", text(&disk.path().join(trick))]);
        assert_eq!(export.code, Some(1), "{trick}: {export:?}");
        let copy = fs::read(disk.path().join(trick)).expect("it was written");
        assert!(copy.iter().all(|byte| *byte == 0), "{trick}");
        if trick != "root's own file" {
            fs::remove_file(&frames).expect("it is there");
        }
    }
    // His own file is his to show, and what only he may read is shown to him alone.
    chown(&frames, Some(USER), Some(USER)).expect("root may");
    for path in [&frames, &lane.join("scan.0.journal")] {
        fs::set_permissions(path, PermissionsExt::from_mode(0o600)).expect("root may");
    }
    let mounted = Mounted::with(&[disk.path().to_owned()], &["--allow-other"]);
    let shown = mounted.path().join("scan.raw");
    assert!(read_as(USER, &shown).stdout == fs::read(all).expect("it was written"));
    assert!(!read_as(USER + 1, &shown).status.success(), "another user may not read the files it is made of");
}

#[test]
fn a_directory_that_may_not_be_read_is_not_one_without_a_recording() {
    let disk = tempfile::tempdir().expect("a temporary directory");
    let file = disk.path().join("file");
    fs::write(&file, "no directory").expect("space");
    let ended = about("verify", &[&file], &[]);
    let why = "it is neither the directory of a recording nor a file of HDF5";
    assert!(ended.code == Some(2) && ended.stderr.contains(why), "{ended:?}");
    if rustix::process::geteuid().is_root() {
        let locked = disk.path().join("locked");
        fs::create_dir(&locked).expect("space");
        fs::set_permissions(&locked, PermissionsExt::from_mode(0o700)).expect("it is ours");
        fs::set_permissions(disk.path(), PermissionsExt::from_mode(0o755)).expect("it is ours");
        let program = disk.path().join("nilometer");
        fs::copy(nilometer_tests::nilometer(), &program).expect("space");
        fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("it is ours");
        let output = Command::new(program).arg("verify").arg(&locked).uid(USER).gid(USER).output();
        let output = output.expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains("Permission denied"), "{output:?}");
    }
}
