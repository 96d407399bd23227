//! `nilometer mount`: what others read through it.

use std::{
    fs::{self, File, OpenOptions},
    io::{Read, Seek},
    os::unix::fs::FileExt,
    path::Path,
    sync::mpsc,
    thread,
    time::{Duration, SystemTime},
};

use nilometer_tests::{FaultyDisk, Mounted, await_some, may_have_faulty_disks, may_show, run, start};
use rustix::process::Signal;

use super::lab::{FRAME, FRAMES_OF_BLOCK, LIMIT, Lab, await_length, open};

#[test]
fn a_mounted_recording_is_one_plain_file() {
    if !may_show() {
        return;
    }
    let (lab, frames) = (Lab::new(2000, 3), 5120);
    lab.recorded(frames);
    let mounted = Mounted::of(&lab.to);
    let path = mounted.file("scan.vdif");
    let names = fs::read_dir(mounted.path()).expect("listed").map(|entry| entry.expect("listed").file_name());
    assert!(names.eq(["scan.vdif"]));
    let status = fs::metadata(&path).expect("it is there");
    assert_eq!((status.len(), status.permissions().readonly()), (frames * FRAME as u64, true));
    let age = SystemTime::now().duration_since(status.modified().expect("it has one")).expect("it is past");
    assert!(age < Duration::from_mins(5), "{age:?}");
    lab.assert_sent(open(&path), frames);
    lab.assert_baseband_finds(&path, frames, 0);

    let (sent, file) = (lab.sent(frames), open(&path));
    for (offset, length) in
        [(0, 1), (4_000_000, 300_000), (8_031, 2), (sent.len() - 5, 5), (12_345_678, 4_096)]
    {
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, offset as u64).expect("it is there");
        assert!(bytes == sent[offset..offset + length], "{length} bytes at {offset}");
    }
    assert_eq!(file.read_at(&mut [0; 10], sent.len() as u64).expect("its end"), 0);
    let refused = |error: std::io::Error| error.kind() == std::io::ErrorKind::ReadOnlyFilesystem;
    assert!(OpenOptions::new().write(true).open(&path).is_err_and(refused));
    assert!(fs::remove_file(&path).is_err_and(refused));
    drop(file);
    let (ended, undone) = mounted.end();
    assert_eq!((ended.code, undone), (Some(0), true), "{ended:?}");
}

#[test]
fn a_recording_of_one_file_may_be_read_by_many_at_once_and_while_it_ends() {
    if !may_show() {
        return;
    }
    let (lab, frames) = (Lab::new(2000, 1), 5000);
    let running = lab.record(&["--packets", &frames.to_string()]);
    let mut parts = lab.in_parts();
    parts.send_up_to(frames / 2);
    await_frames(&lab);
    let mounted = Mounted::of(&lab.to);
    let path = mounted.file("scan.vdif");
    let early = open(&path);
    let mut first = vec![0; fs::metadata(&path).expect("it is there").len() as usize];
    early.read_exact_at(&mut first, 0).expect("what is there");
    assert!(!first.is_empty() && lab.sent(frames / 2).starts_with(&first));
    parts.send_up_to(frames);
    assert_eq!(running.end(LIMIT).code, Some(0));
    await_length(&path, frames * FRAME as u64);
    // One was opened while it grew: as long as it is open, others are read as that one is.
    for _ in 0..2 {
        let others = [(); 2].map(|()| open(&path));
        for file in others.iter().chain([&early]) {
            lab.assert_sent(file, frames);
            (&*file).rewind().expect("it is a file");
        }
    }
    drop(early);
    let others = [(); 3].map(|()| open(&path));
    for file in &others {
        lab.assert_sent(file, frames);
    }
    drop(others);
    assert_eq!(mounted.end().0.code, Some(0));
}

#[test]
fn the_kernel_reads_a_recording_that_is_one_file_by_itself() {
    if !may_show() {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root may have the kernel read a file by itself");
        return;
    }
    let (lab, frames) = (Lab::new(2000, 1), 2500);
    lab.recorded(frames);
    let mounted = Mounted::of(&lab.to);
    let file = open(&mounted.file("scan.vdif"));
    // Nobody is there to be asked.
    mounted.signal(Signal::STOP);
    let (told, read) = mpsc::sync_channel(1);
    thread::spawn(move || {
        let mut bytes = vec![0; frames as usize * FRAME];
        told.send(file.read_exact_at(&mut bytes, 0).map(|()| bytes))
    });
    let read = read.recv_timeout(LIMIT);
    mounted.signal(Signal::CONT);
    let bytes = read.expect("it is not asked for").expect("it is there");
    assert!(bytes == lab.sent(frames));
}

#[test]
fn it_grows_while_it_is_recorded_and_has_what_was_sent() {
    if !may_show() {
        return;
    }
    let (lab, part, parts) = (Lab::new(4000, 3), 2000, 8);
    let frames = parts * part;
    let running = lab.record(&["--packets", &frames.to_string()]);
    let (sent, total) = (lab.sent(frames), frames * FRAME as u64);
    let mut stream = lab.in_parts();
    stream.send_up_to(part);
    await_frames(&lab);
    let mounted = Mounted::of(&lab.to);
    let path = mounted.file("scan.vdif");
    let (mut file, mut read) = (open(&path), Vec::new());
    for number in 2..=parts {
        read_more(&path, &mut file, &mut read, &sent);
        stream.send_up_to(number * part);
    }
    while (read.len() as u64) < total {
        read_more(&path, &mut file, &mut read, &sent);
    }
    assert_eq!(running.end(LIMIT).code, Some(0));
    assert_eq!(fs::metadata(&path).expect("it is there").len(), total);
    lab.assert_baseband_finds(&path, frames, 0);
    assert_eq!(mounted.end().0.code, Some(0));
}

/// Waits until a file has grown beyond what was read of it, and reads up to its end: what was sent.
fn read_more(path: &Path, file: &mut File, read: &mut Vec<u8>, sent: &[u8]) {
    let before = read.len() as u64;
    let size = await_some("a file that grows", || {
        Some(fs::metadata(path).expect("it is there").len()).filter(|size| *size > before)
    });
    file.by_ref().take(size - before).read_to_end(read).expect("it can be read");
    assert!(read.len() as u64 >= size && sent.starts_with(read), "{} bytes, {size} were said", read.len());
}

/// Waits until some frames are recorded.
fn await_frames(lab: &Lab) {
    let scan = || run(&[&["scan".into()], &lab.lanes()[..]].concat());
    await_some("the first frames", || scan().stdout.contains("2025-05-08").then_some(()));
}

#[test]
fn frames_of_a_directory_that_is_gone_are_marked() {
    if !may_show() {
        return;
    }
    let (lab, frames) = (Lab::new(2000, 3), 5120);
    lab.recorded(frames);
    fs::rename(lab.to[2].join("scan"), lab.path().join("elsewhere")).expect("one file system");
    let mounted = Mounted::of(&lab.to);
    let path = mounted.file("scan.vdif");
    let invalid = lab.invalid(open(&path), frames);
    assert!(invalid.len() >= FRAMES_OF_BLOCK, "{} frames", invalid.len());
    lab.assert_baseband_finds(&path, frames, invalid.len() as u64);
}

#[test]
fn a_recording_whose_disk_stands_still_keeps_no_other_waiting() {
    if !may_show() || !may_have_faulty_disks() {
        return;
    }
    let mut disk = FaultyDisk::ext4(300, Duration::ZERO);
    let lanes = [0, 1].map(|lane| disk.path().join(format!("disk{lane}")));
    for lane in &lanes {
        fs::create_dir(lane).expect("space");
    }
    let (lab, still, frames) = (Lab::new(2000, 2), Lab::onto(2000, lanes.to_vec()), 2000);
    lab.recorded(frames);
    still.recorded(frames);
    for entry in still.lanes().iter().flat_map(|lane| fs::read_dir(lane).expect("listed")) {
        let path = entry.expect("listed").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("plain names");
        fs::rename(&path, path.with_file_name(name.replace("scan", "still"))).expect("one directory");
    }
    disk.remount();
    let mounted = Mounted::of(&[&lab.to[..], &still.to].concat());
    disk.pause();
    let (path, hangs) = (mounted.path().to_owned(), mounted.file("still.vdif"));
    let waiting: Vec<_> = (0..8)
        .map(|_| {
            let path = hangs.clone();
            thread::spawn(move || fs::read(path).map(|bytes| bytes.len()))
        })
        .collect();
    let (told, read) = mpsc::sync_channel(1);
    thread::spawn(move || {
        // They are asked for by then.
        thread::sleep(Duration::from_millis(500));
        let names = fs::read_dir(&path).expect("listed").count();
        told.send((names, fs::read(path.join("scan.vdif"))))
    });
    let read = read.recv_timeout(LIMIT);
    let waited = waiting.iter().filter(|thread| !thread.is_finished()).count();
    disk.resume();
    let (names, bytes) = read.expect("nobody waits for the other");
    assert_eq!((names, waited), (2, waiting.len()));
    lab.assert_sent(&bytes.expect("it can be read")[..], frames);
    for thread in waiting {
        let read = thread.join().expect("it ends").expect("it can be read");
        assert_eq!(read, frames as usize * FRAME);
    }
    assert_eq!(mounted.end().0.code, Some(0));
}

#[test]
fn ctrl_c_unmounts_while_a_file_is_open() {
    if !may_show() {
        return;
    }
    let lab = Lab::new(2000, 2);
    lab.recorded(1000);
    let point = lab.path().join("point");
    fs::create_dir(&point).expect("space");
    let arguments = ["mount", "disk0", "disk1/scan", "--at", "point"];
    let mut running = start(lab.path(), &arguments);
    running.await_said("mounted on");
    let open = open(&point.join("scan.vdif"));
    running.signal(Signal::INT);
    let ended = running.end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(fs::read_dir(&point).expect("a plain directory again").count(), 0);
    drop(open);
}

#[test]
fn what_can_t_be_mounted_is_refused_with_one_message() {
    let lab = Lab::new(2000, 1);
    lab.recorded(300);
    let (empty, file) = (lab.path().join("empty"), lab.path().join("telescope.toml"));
    fs::create_dir(&empty).expect("space");
    let missing = lab.path().join("missing");
    for (what, at, part) in [
        (&lab.to[0], lab.path(), "not empty"),
        (&lab.to[0], &file, "empty directory to mount on"),
        (&lab.to[0], &missing, "missing"),
        (&empty, &lab.path().join("empty"), "no recording"),
        (&missing, &empty, "missing"),
    ] {
        let ended = run(&[Path::new("mount"), what, Path::new("--at"), at]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        assert_eq!(ended.stderr.matches("nilometer: ").count(), 1, "{}", ended.stderr);
        assert!(ended.stderr.contains(part), "`{part}` is missing in: {}", ended.stderr);
    }
    assert_eq!(fs::read_dir(&empty).expect("a plain directory").count(), 0);
}
