//! A stream whose headers say 1 Gbit/s onto four disks, of which one is lost: what is there, what is not, and what is there again
//! when the disk is.

use std::{fs, io::Read, path::Path};

use nilometer_tests::{FileSystem, Mounted, await_some, may_mount, may_show, run};

use super::lab::{FRAME, FRAMES_OF_BLOCK, LIMIT, Lab, open};

const RATE: u64 = 15_625;
const FRAMES: u64 = 4 * RATE;
/// So many of them, in whole blocks, are sent before the disk is lost.
const BEFORE: u64 = FRAMES * 2 / 5 / FRAMES_OF_BLOCK as u64 * FRAMES_OF_BLOCK as u64;
/// A disk that is cut off keeps what is synced: all but the chunk that is being closed and the one that is being written.
const NOT_DURABLE: usize = 2 * 4_000_000 / FRAME;

#[test]
fn a_stream_survives_the_loss_of_one_of_four_disks() {
    if !may_mount() || !may_show() {
        return;
    }
    let mut disks = [(); 4].map(|()| FileSystem::xfs(400));
    let lab = Lab::onto(RATE, disks.iter().map(|disk| disk.path().to_owned()).collect());
    let recording = lab.record(&["--packets", &FRAMES.to_string(), "--buffer", "256 MiB"]);
    let mut parts = lab.in_parts();
    parts.send_up_to(BEFORE);
    await_some("chunks on the disk that will be lost", || (chunks(&lab.to[1]) > 3).then_some(()));
    let mounted = Mounted::of(&lab.to);
    let there = fs::metadata(mounted.file("scan.vdif")).expect("it is there").len() / FRAME as u64;
    lab.assert_sent(open(&mounted.file("scan.vdif")).take(there * FRAME as u64), there);
    disks[1].shut_down();
    parts.send_up_to(FRAMES);
    let ended = recording.end(LIMIT);
    assert!(ended.code == Some(1) && ended.stderr.contains("1 of 4 directories dropped out"), "{ended:?}");
    assert!(ended.stdout.contains("missing     none"), "the network lost nothing: {ended:?}");
    let path = mounted.file("scan.vdif");
    await_some("the end of the file", || {
        (fs::metadata(&path).expect("it is there").len() == FRAMES * FRAME as u64).then_some(())
    });
    let lost = lab.invalid(open(&path), FRAMES);
    assert!(!lost.is_empty() && lost.iter().all(|frame| *frame < BEFORE), "{} frames", lost.len());
    lab.assert_baseband_finds(&path, FRAMES, lost.len() as u64);
    let verified = run(&[&["verify".into()], &lab.lanes()[..]].concat());
    let named = format!("missing     {} blocks", lost.len() / FRAMES_OF_BLOCK);
    assert!(verified.code == Some(1) && verified.stdout.contains(&named), "{named}: {verified:?}");
    let (ended, undone) = mounted.end();
    assert!(undone && ended.stderr.contains("can't be read"), "{ended:?}");

    disks[1].remount_after(|| {});
    let mounted = Mounted::of(&lab.to);
    let path = mounted.file("scan.vdif");
    let still = lab.invalid(open(&path), FRAMES);
    assert!(still.iter().all(|frame| lost.contains(frame)) && still.len() < lost.len());
    assert!(still.len() <= NOT_DURABLE, "what was durable is back: {} frames are not", still.len());
    lab.assert_baseband_finds(&path, FRAMES, still.len() as u64);
    assert_eq!(mounted.end().0.code, Some(0));
}

/// How many chunks there are on a disk.
fn chunks(disk: &Path) -> usize {
    let names =
        fs::read_dir(disk.join("scan")).into_iter().flatten().flatten().map(|entry| entry.file_name());
    names
        .filter(|name| name.to_string_lossy().rsplit_once('.').is_some_and(|(_, number)| number.len() == 8))
        .count()
}
