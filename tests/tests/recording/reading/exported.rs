//! `nilometer export`: what has the name is whole, and `--verify` answers for all that was recorded.

use std::{
    fs::{self, File},
    os::unix::fs::{FileExt, PermissionsExt},
    slice,
    time::Duration,
};

use nilometer_model::Seed;
use nilometer_tests::{await_some, kills, start};
use rustix::process::Signal;

use super::{LIMIT, about, frames_in, has_frames, names, recorded, text};

#[test]
fn what_is_not_whole_is_told_by_an_exit_code_of_its_own() {
    let disks = [(); 2].map(|()| tempfile::tempdir().expect("a temporary directory"));
    let [first, second] = disks.each_ref().map(tempfile::TempDir::path);
    let mut lanes = recorded(&[first, second], 60, &["--storing", "growing"]);
    // A lane that a busy machine keeps from writing has none.
    while !lanes.iter().all(|lane| has_frames(lane)) {
        for lane in &lanes {
            fs::remove_dir_all(lane).expect("it was written");
        }
        lanes = recorded(&[first, second], 60, &["--storing", "growing"]);
    }
    let to = tempfile::tempdir().expect("a temporary directory");
    let [all, half, torn] = ["all", "half", "torn"].map(|name| to.path().join(name));
    let ended = about("export", &lanes, &["--to", text(&all), "--verify"]);
    assert!(
        ended.code == Some(0) && ended.stdout.contains("60 frames equal those of the simulated"),
        "{ended:?}"
    );

    let ended = about("export", &lanes[..1], &["--to", text(&half), "--verify"]);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    for part in ["of 60 frames are not here", "not here: scan.1.journal"] {
        assert!(ended.stdout.contains(part), "`{part}` is missing in {ended:?}");
    }
    let line = ended.stdout.lines().find(|line| line.starts_with("missing")).expect("some are");
    let count = line.split_whitespace().nth(1).expect("how many");
    assert!(ended.stderr.contains(&format!("{count} are missing")), "{ended:?}");
    let missing = |line: &str| line.starts_with("missing  ");
    fs::remove_file(&half).expect("it was written");
    let ended = about("export", &lanes[..1], &["--to", text(&half)]);
    assert!(ended.code == Some(1) && ended.stdout.lines().any(missing), "{ended:?}");
    let told = format!("written, but {count} of 60 frames are missing from the recording");
    assert!(ended.stderr.contains(&told) && half.exists(), "{ended:?}");

    let file = File::options().write(true).open(frames_in(&lanes[0])).expect("it is ours");
    file.write_all_at(&[0x55; 8], 1000).expect("space");
    let ended = about("export", &lanes, &["--to", text(&torn), "--verify"]);
    assert!(ended.code == Some(5) && ended.stdout.contains("damaged     frame "), "{ended:?}");
    assert!(ended.stderr.contains("1 are damaged") && torn.exists(), "{ended:?}");
}

#[test]
fn a_checksum_that_is_another_is_found_in_the_copy() {
    let disk = tempfile::tempdir().expect("a temporary directory");
    let lanes = recorded(&[disk.path()], 8, &["--checksums"]);
    let journal = lanes[0].join("scan.0.journal");
    // Without its origin only checksums tell what is right: its records, of kind 6, become notes of files that are durable.
    let mut bytes = fs::read(&journal).expect("it is there");
    for record in bytes.chunks_exact_mut(64).filter(|record| record[4] == 6) {
        record[4] = 3;
        record[16..].fill(0);
        record[16..24].copy_from_slice(&1_000_000_u64.to_le_bytes());
        let checksum = crc32(&record[4..]);
        record[..4].copy_from_slice(&checksum.to_le_bytes());
    }
    fs::write(&journal, bytes).expect("space");
    let [right, torn] = ["right", "torn"].map(|name| disk.path().join(name));
    let ended = about("export", &lanes, &["--to", text(&right), "--verify"]);
    assert!(ended.code == Some(0) && ended.stdout.contains("8 frames are right by their"), "{ended:?}");
    let file = File::options().write(true).open(frames_in(&lanes[0])).expect("it is ours");
    file.write_all_at(&[0x55; 8], 1000).expect("space");
    let ended = about("export", &lanes, &["--to", text(&torn), "--verify"]);
    assert!(ended.code == Some(5) && ended.stdout.contains("its checksum is another"), "{ended:?}");
}

#[test]
fn blocks_that_cannot_be_read_are_counted() {
    let disk = tempfile::tempdir().expect("a temporary directory");
    let lanes = recorded(&[disk.path()], 8, &["--storing", "growing"]);
    let file = File::options().write(true).open(frames_in(&lanes[0])).expect("it is ours");
    // Each frame has 320 kB; the writer may begin it at a multiple of a page.
    file.set_len(900_000).expect("it shrinks");
    let to = disk.path().join("out");
    let ended = about("export", &lanes, &["--to", text(&to)]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.contains("unreadable  6 of 8 frames are marked as invalid"), "{ended:?}");
    assert!(ended.stderr.contains("6 frames can't be read and are marked as invalid"), "{ended:?}");
    assert_eq!(fs::metadata(&to).expect("it is there").len(), 8 * 320_000);
}

/// CRC-32 (ISO-HDLC).
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ (0xedb8_8320 * (crc & 1)))
    })
}

#[test]
fn who_is_killed_leaves_nothing_under_the_name_and_who_is_asked_to_end_nothing_at_all() {
    let disk = tempfile::tempdir().expect("a temporary directory");
    // More than is written at once.
    let lanes = recorded(&[disk.path()], 60, &[]);
    let to = tempfile::tempdir().expect("a temporary directory");
    let whole = to.path().join("whole.raw");
    let arguments = ["export", text(&lanes[0]), "--to", text(&whole)];
    let slowly = || {
        let running = start(to.path(), &[&arguments[..], &["--rate", "1 kB/s"]].concat());
        // What the place can do is found out before, with a file of its own.
        await_some("the temporary file", || {
            names(to.path()).iter().find(|name| name.ends_with(".partial")).cloned()
        });
        running
    };
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let running = slowly();
        running.signal(signal);
        let ended = running.end(LIMIT);
        assert!(ended.code == Some(1) && ended.stderr.contains("interrupted"), "{signal:?} {ended:?}");
        assert!(names(to.path()).is_empty(), "{signal:?} {:?}", names(to.path()));
    }
    let running = slowly();
    assert_eq!(running.killed().code, None);
    assert!(!whole.exists() && names(to.path()).len() == 1, "{:?}", names(to.path()));
    let ended = start(to.path(), &arguments).end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains(".partial, of an export that was killed"), "{ended:?}");
    assert_eq!(names(to.path()), ["whole.raw"]);
    assert_eq!(fs::metadata(&whole).expect("it is there").len(), 60 * 320_000);
}

#[test]
fn clean_removes_what_killed_exports_left_and_nothing_else() {
    let disk = tempfile::tempdir().expect("a temporary directory");
    let lanes = recorded(&[disk.path()], 60, &[]);
    let to = tempfile::tempdir().expect("a temporary directory");
    let partials =
        || names(to.path()).into_iter().filter(|name| name.ends_with(".partial")).collect::<Vec<_>>();
    let begun = |name: &str, more: &[&str]| {
        let path = to.path().join(name);
        let arguments = ["export", text(&lanes[0]), "--to", text(&path), "--rate", "1 kB/s"];
        let running = start(to.path(), &[&arguments[..], more].concat());
        let is_of = |partial: &&String| partial.starts_with(&format!(".{name}."));
        await_some("the temporary file", || partials().iter().find(is_of).cloned());
        running
    };
    for (name, more) in [("a.raw", &[][..]), ("b.h5", &["--format", "hdf5"])] {
        let killed = begun(name, more);
        assert_eq!(killed.killed().code, None);
    }
    let live = begun("c.raw", &[]);
    fs::write(to.path().join(".d.raw.4711.0.partial"), "somebody else's").expect("space");
    assert_eq!(partials().len(), 4, "{:?}", partials());
    let cleaned = start(to.path(), &["clean", "."]).end(LIMIT);
    assert_eq!(cleaned.code, Some(0), "{cleaned:?}");
    assert_eq!(cleaned.stdout.matches("removed ").count(), 2, "{cleaned:?}");
    let left = partials();
    assert!(
        left.len() == 2 && left[0].starts_with(".c.raw.") && left[1].starts_with(".d.raw.4711"),
        "{left:?}"
    );
    live.signal(Signal::INT);
    assert_eq!(live.end(LIMIT).code, Some(1));
}

#[test]
fn an_export_that_is_killed_at_any_moment_leaves_nothing_that_looks_whole() {
    let disk = tempfile::tempdir().expect("a temporary directory");
    let lanes = recorded(&[disk.path()], 60, &[]);
    let to = tempfile::tempdir().expect("a temporary directory");
    let raw = disk.path().join("whole.raw");
    assert_eq!(about("export", &lanes, &["--to", text(&raw)]).code, Some(0));
    let raw = fs::read(raw).expect("it was written");
    let seed = u64::from(std::process::id());
    let mut moments = Seed(seed).stream();
    for kill in 0..kills(10, 200) {
        let (name, format) = if kill % 2 == 0 { ("e.raw", "raw") } else { ("e.h5", "hdf5") };
        let path = to.path().join(name);
        let running = start(to.path(), &["export", text(&lanes[0]), "--to", text(&path), "--format", format]);
        std::thread::sleep(Duration::from_millis(moments.below(200)));
        running.killed();
        if path.exists() {
            let is_whole = match format {
                "raw" => fs::read(&path).expect("it is there") == raw,
                _ => about("verify", slice::from_ref(&path), &[]).code == Some(0),
            };
            assert!(is_whole, "seed {seed}, kill {kill}");
            fs::remove_file(&path).expect("it is there");
        }
        // Until its own children have seen that it is gone, `clean` calls what they hold in use.
        await_some("a directory with nothing in it", || {
            let cleaned = start(to.path(), &["clean", "."]).end(LIMIT);
            (cleaned.code == Some(0) && names(to.path()).is_empty()).then_some(())
        });
    }
}

#[test]
fn a_limit_of_file_sizes_is_an_error_and_leaves_nothing() {
    let disk = tempfile::tempdir().expect("a temporary directory");
    let lanes = recorded(&[disk.path()], 60, &[]);
    let to = tempfile::tempdir().expect("a temporary directory");
    let script = format!("ulimit -f 100; exec \"$0\" export {} --to {}", text(&lanes[0]), text(to.path()));
    let program = nilometer_tests::nilometer();
    let output = std::process::Command::new("sh").args(["-c", &script]).arg(program).output().expect("sh");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && said.contains("can't write to"), "{output:?}");
    assert!(names(to.path()).is_empty(), "{:?}", names(to.path()));
}

#[test]
fn a_copy_can_be_read_by_nobody_who_could_not_read_the_recording() {
    let disk = tempfile::tempdir().expect("a temporary directory");
    let lanes = recorded(&[disk.path()], 8, &[]);
    let exported = |name: &str| {
        let path = disk.path().join(name);
        let ended = about("export", &lanes, &["--to", text(&path)]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        fs::metadata(path).expect("it was written").permissions().mode() & 0o777
    };
    let mode = |path: &std::path::Path, mode: u32| {
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("it is ours");
    };
    for name in names(&lanes[0]) {
        mode(&lanes[0].join(name), 0o644);
    }
    mode(&lanes[0], 0o755);
    let open = exported("open");
    assert_eq!(open & 0o200, 0o200);
    mode(&lanes[0], 0o700);
    assert_eq!(exported("closed directory"), 0o600);
    mode(&lanes[0], 0o755);
    mode(&frames_in(&lanes[0]), 0o600);
    assert_eq!(exported("closed frames"), 0o600);
}
