//! Run directories of a temporary directory: made, marked, locked, removed, and found again after a crash.

use std::ffi::OsStr;

use super::{
    marker::{PROCESS, held_marker},
    *,
};

const NAME: &str = "nilometer-0123456789abcdef";

/// A run directory with its marker as if its process had ended.
fn left_behind(parent: &Path) -> PathBuf {
    let run = RunDirectory::create(parent, 0x0123_4567_89ab_cdef).expect("space");
    let held = RunDirectory::adopt(parent, NAME).expect_err("it is held");
    let ours = Some(std::process::id());
    assert!(matches!(held, TargetError::InUse { process, .. } if process == ours), "{held}");
    *run.marker.lock().expect("not poisoned") = None;
    run.path().join(MARKER)
}

#[test]
fn a_marker_names_its_process_and_nothing_else_may_stand_at_its_end() {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let marker = left_behind(parent.path());
    let ours = std::fs::read_to_string(&marker).expect("a text");
    let (identity, _) = ours.rsplit_once(PROCESS).expect("it names its process");
    for foreign in ["process \n", "process 12\nmore\n", "process x\n", "process 12", "more\n"] {
        std::fs::write(&marker, format!("{identity}{foreign}")).expect("space");
        let refused = RunDirectory::adopt(parent.path(), NAME);
        assert!(matches!(refused, Err(TargetError::NotOurs { .. })), "{foreign}: {refused:?}");
    }
    // The format of older versions.
    std::fs::write(&marker, identity).expect("space");
    RunDirectory::adopt(parent.path(), NAME).expect("it is ours").remove().expect("and can be removed");
    assert!(!marker.exists());
}

fn shared(parent: &Path) -> (RunDirectory, SharedRun) {
    let run = RunDirectory::create(parent, 0x0123_4567_89ab_cdef).expect("space");
    let shared = run.share().expect("space");
    (run, shared)
}

fn is_in_use<T: std::fmt::Debug>(result: &Result<T, TargetError>) {
    assert!(matches!(result, Err(TargetError::InUse { .. })), "{result:?}");
}

/// Locks belong to descriptors, so two descriptors of one process stand for two processes.
#[test]
fn who_joins_keeps_the_directory_from_being_removed_and_removes_nothing() {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let (run, shared) = shared(parent.path());
    let [one, other] = [(); 2].map(|()| RunDirectory::join(parent.path(), &shared).expect("it is ours"));
    std::fs::write(run.path().join("n_w0"), "data").expect("space");
    one.clear().expect("nothing to do");
    one.remove().expect("it is left");
    drop(one);
    assert!(run.path().join("n_w0").exists(), "who joined removes nothing");
    is_in_use(&run.remove());
    is_in_use(&RunDirectory::adopt(parent.path(), NAME));
    run.clear().expect("its maker may clear it between cells");
    assert!(!run.path().join("n_w0").exists() && run.path().join(MARKER).exists());
    // The maker dies and another process lives on: `clean` must not remove its directory.
    *run.marker.lock().expect("not poisoned") = None;
    is_in_use(&RunDirectory::adopt(parent.path(), NAME));
    assert!(held_marker(&run.parent, NAME).is_some(), "a campaign still runs there");
    drop(other);
    let adopted = loop {
        // A child of another test has a copy of each descriptor until it runs its program.
        if let (None, Ok(adopted)) =
            (held_marker(&run.parent, NAME), RunDirectory::adopt(parent.path(), NAME))
        {
            break adopted;
        }
        std::thread::yield_now();
    };
    adopted.remove().expect("all are gone");
    assert_eq!(std::fs::read_dir(parent.path()).expect("listed").count(), 0);
}

#[test]
fn a_directory_that_was_made_for_another_process_alone_is_cleared_by_it_and_removed_by_the_maker() {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let (run, shared) = shared(parent.path());
    let own = RunDirectory::join(parent.path(), &shared).expect("it is ours").for_itself();
    std::fs::write(run.path().join("n_w0"), "data").expect("space");
    own.clear().expect("its content is of this process");
    assert!(!run.path().join("n_w0").exists() && run.path().join(MARKER).exists());
    own.remove().expect("it is left");
    drop(own);
    run.remove().expect("nobody has it any more");
    assert_eq!(std::fs::read_dir(parent.path()).expect("listed").count(), 0);
}

#[test]
fn only_what_the_maker_shares_is_joined_and_only_by_its_marker() {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let refused = |shared: &SharedRun| {
        let refused = RunDirectory::join(parent.path(), shared);
        assert!(matches!(refused, Err(TargetError::NotOurs { .. })), "{shared:?}: {refused:?}");
    };
    let alone = RunDirectory::create(parent.path(), 7).expect("space");
    let marker = std::fs::read_to_string(alone.path().join(MARKER)).expect("a marker");
    refused(&SharedRun { name: name(7), marker });
    let (run, shared) = shared(parent.path());
    refused(&SharedRun { name: name(8), ..shared.clone() });
    refused(&SharedRun { name: format!("../{NAME}"), ..shared.clone() });
    let others = shared.marker.replace("process ", "process 1");
    refused(&SharedRun { marker: others, ..shared.clone() });
    // A copy of the directory has the marker's text, but another inode.
    let copy = parent.path().join(name(9));
    std::fs::create_dir(&copy).expect("space");
    for file in [MARKER, JOINED] {
        std::fs::copy(run.path().join(file), copy.join(file)).expect("space");
    }
    refused(&SharedRun { name: name(9), ..shared.clone() });
    RunDirectory::join(parent.path(), &shared).expect("as its maker says");
}

#[test]
fn a_removed_file_that_a_process_still_has_open_over_nfs_is_waited_for() {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let run = RunDirectory::create(parent.path(), 5).expect("a run directory");
    let [ours, open] = ["n_file", ".nfs0001"].map(|name| run.path().join(name));
    for file in [&ours, &open] {
        std::fs::write(file, "").expect("space");
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while ours.exists() {
                std::thread::yield_now();
            }
            std::fs::remove_file(&open).expect("it is there until it is closed");
        });
        run.remove().expect("nothing of others is in it");
    });
    assert!(!run.path().exists());
}

/// The parent with a cleared directory in it that still holds an entry of this name.
fn cleared_but_for(entry: &str) -> (tempfile::TempDir, [OwnedFd; 2]) {
    let parent = tempfile::tempdir().expect("a temporary directory");
    let path = parent.path().join(NAME);
    std::fs::create_dir(&path).expect("space");
    std::fs::write(path.join(entry), "1").expect("space");
    let opened =
        [parent.path(), &path].map(|path| OwnedFd::from(std::fs::File::open(path).expect("it is there")));
    (parent, opened)
}

#[test]
fn a_directory_is_removed_as_soon_as_removed_files_in_it_are_closed() {
    for entry in [".nfs0001", ".smb0001", ".__smb0001", MARKER, JOINED] {
        let (parent, [at, root]) = cleared_but_for(entry);
        let entry = parent.path().join(NAME).join(entry);
        std::thread::scope(|scope| {
            let removing = scope.spawn(|| remove_when_closed(&at, OsStr::new(NAME), &root));
            std::fs::remove_file(&entry).expect("as when it is closed");
            removing.join().expect("no panic").unwrap_or_else(|errno| panic!("{}: {errno}", entry.display()));
        });
        assert!(!parent.path().join(NAME).exists());
    }
    let (parent, [at, root]) = cleared_but_for("notes of somebody");
    assert_eq!(
        remove_when_closed(&at, OsStr::new(NAME), &root),
        Err(Errno::NOTEMPTY),
        "it waits for nothing"
    );
    assert!(parent.path().join(NAME).exists());
}
