//! Recordings scattered over directories in chunks, read as others read them: whatever matches, in the order of the
//! numbers, one behind the other.

use std::{collections::BTreeMap, os::unix::fs::PermissionsExt};

use super::*;

/// What matches `^.+/[^/\.]+\.([0-9]{8})$` in these directories, by number. A number that is there twice is refused.
fn chunks(directories: &[PathBuf]) -> BTreeMap<u32, PathBuf> {
    let mut chunks = BTreeMap::new();
    for directory in directories {
        let Ok(entries) = fs::read_dir(directory) else { continue };
        for entry in entries {
            let path = entry.expect("listed").path();
            let name = path.file_name().expect("it has one").to_string_lossy();
            let Some((recording, number)) = name.split_once('.') else { continue };
            if recording.is_empty()
                || number.len() != 8
                || !number.bytes().all(|digit| digit.is_ascii_digit())
            {
                continue;
            }
            let other = chunks.insert(number.parse().expect("eight digits"), path.clone());
            assert_eq!(other, None, "chunk {number} is there twice");
        }
    }
    chunks
}

/// All bytes, as such readers give them.
fn united(directories: &[PathBuf]) -> Vec<u8> {
    chunks(directories).values().flat_map(|path| fs::read(path).expect("it can be read")).collect()
}

/// All frames of a recording in order, as its journals have them.
fn recorded(directories: &[PathBuf]) -> Vec<u8> {
    let recording =
        reader::Recording::open(directories, reader::Trust::Acknowledged).expect("journals are there");
    let (mut bytes, mut frames) = (Vec::new(), recording.frames());
    for number in recording.index.frames.numbers(0..u64::MAX) {
        bytes.extend_from_slice(frames.get(number).expect("readable").expect("recorded"));
    }
    bytes
}

/// Whether the journals have the first so many frames, also while it is recorded.
fn has_first(directories: &[PathBuf], count: u64) -> bool {
    let opened = reader::Recording::open(directories, reader::Trust::Acknowledged);
    opened.is_ok_and(|recording| recording.index.frames.numbers(0..count).count() as u64 == count)
}

#[test]
fn chunks_in_three_directories_are_one_stream_for_others() {
    let kept = tempfile::tempdir().expect("a temporary directory");
    let to = ["a", "b", "c"].map(|name| kept.path().join(name));
    for path in &to {
        fs::create_dir(path).expect("space");
    }
    let recording = Recording::new(&to.each_ref().map(PathBuf::as_path));
    let chunk = CAMERA.replace("recording.frames_per_file = 32", "recording.frames_per_file = 8");
    fs::write(recording.directory.path().join("camera.toml"), chunk).expect("space");
    let ended =
        recording.start(&["--frames", "100", "--storing", "scattered", "--rate", "200 Hz"]).end(LIMIT);
    assert_eq!((ended.code, number(&ended, "stored")), (Some(0), 100), "{ended:?}");
    let verified = recording.verify(&["--durable"]);
    assert!(verified.stdout.contains("chunks      13\n"), "{verified:?}");
    assert_whole(&recording.verify(&[]), 100);
    let chunks = chunks(&recording.lanes());
    assert!(chunks.keys().copied().eq(0..13), "{chunks:?}");
    for path in chunks.values() {
        let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        assert_eq!((mode(path), mode(path.parent().expect("a directory"))), (0o644, 0o755));
    }
    let (united, recorded) = (united(&recording.lanes()), recorded(&recording.lanes()));
    assert_eq!(united.len(), 100 << 21);
    assert!(united == recorded, "byte for byte");
}

#[test]
fn a_disk_that_vanishes_leaves_a_hole_where_its_chunks_were_and_nothing_else() {
    if !may_mount() {
        return;
    }
    let (mut lost, tmpfs) = (FileSystem::xfs(600), [(); 2].map(|()| FileSystem::tmpfs("size=700m")));
    let recording = Recording::new(&[lost.path(), tmpfs[0].path(), tmpfs[1].path()]);
    let running = recording.start(&["--frames", "350", "--storing", "scattered"]);
    let lanes = recording.lanes();
    // Its second chunk is begun.
    await_some("two chunks", || (chunks(&lanes[..1]).len() == 2).then_some(()));
    lost.shut_down();
    let ended = running.end(LIMIT);
    assert_eq!((ended.code, number(&ended, "stored")), (Some(1), 350), "{ended:?}");
    assert!(ended.stderr.contains("1 of 3 directories dropped out"), "{ended:?}");
    let gone = recording.verify(&[]);
    assert_eq!((gone.code, number(&gone, "expected")), (Some(1), 350), "{gone:?}");
    let elsewhere = number(&gone, "right");
    assert_eq!(elsewhere + missing(&gone), 350, "every frame is there or named: {gone:?}");
    assert!(united(&lanes[1..]) == recorded(&lanes[1..]), "what is left is in order");
    lost.remount_after(|| {});
    let back = recording.verify(&["--durable"]);
    assert!(!back.stdout.contains("damaged") && number(&back, "right") > elsewhere, "{back:?}");
    assert!(
        chunks(&lanes).len() > chunks(&lanes[1..]).len(),
        "each number is there once, and the lost ones too"
    );
}

#[test]
fn after_a_kill_others_find_each_number_once() {
    let kept = tempfile::tempdir().expect("a temporary directory");
    let to = ["a", "b"].map(|name| kept.path().join(name));
    for path in &to {
        fs::create_dir(path).expect("space");
    }
    let recording = Recording::new(&to.each_ref().map(PathBuf::as_path));
    let running = recording.start(&["--duration", "1 min", "--storing", "scattered"]);
    let lanes = recording.lanes();
    await_some("two whole chunks and a third", || {
        (chunks(&lanes).len() >= 3 && has_first(&lanes, 64)).then_some(())
    });
    kill_process(running.worker(), Signal::KILL).expect("it runs");
    assert_eq!(running.end(LIMIT).code, Some(1));
    let verified = recording.verify(&[]);
    assert!(!verified.stdout.contains("damaged"), "{verified:?}");
    let (expected, right) = (number(&verified, "expected"), number(&verified, "right"));
    assert_eq!(right + missing(&verified), expected, "{verified:?}");
    assert!(right >= 64, "{verified:?}");
    assert!(united(&lanes).starts_with(&recorded(&lanes)[..64 << 21]), "two chunks are whole");
}

#[test]
fn a_name_that_others_could_not_read_is_refused() {
    let kept = tempfile::tempdir().expect("a temporary directory");
    let recording = Recording::new(&[kept.path()]);
    let to = kept.path().to_str().expect("plain names");
    let arguments = ["simulate", "./camera.toml", "--to", to, "--name", "a.b", "--storing", "scattered"];
    let ended = start(recording.directory.path(), &arguments).end(LIMIT);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("no name with a dot"), "{ended:?}");
    assert_eq!(fs::read_dir(kept.path()).expect("listed").count(), 0, "nothing was made");
}
