//! Recordings of which only the latest stays.

use std::{fs, os::unix::fs::FileExt, path::Path, thread};

use nilometer_tests::{Mounted, await_some, may_show};

use rustix::io::Errno;

use super::{
    exported::about,
    lab::{FRAME, FRAMES_OF_BLOCK, LIMIT, Lab, open},
};

const BLOCK: usize = FRAMES_OF_BLOCK * FRAME;

#[test]
fn what_is_kept_is_the_end_of_what_was_sent_whatever_the_disks() {
    for lanes in [1, 2] {
        let (lab, frames, keep) = (Lab::new(2000, lanes), 9000, 16_000_000);
        let running = lab.record(&["--packets", &frames.to_string(), "--keep", &format!("{keep} B")]);
        lab.send(frames, 10.0);
        let ended = running.end(LIMIT);
        assert!(ended.code == Some(0) && ended.stdout.contains("kept        the latest 16 MB"), "{ended:?}");
        let verified = about(&lab, "verify", &[]);
        assert!(verified.code == Some(0) && verified.stdout.contains("to make room"), "{verified:?}");
        for (number, lane) in lab.lanes().iter().enumerate() {
            let file = lane.join(format!("scan.{number}.vdif"));
            let (size, share) = (fs::metadata(&file).expect("it is there").len(), keep / lanes);
            assert!(size as usize <= (share.div_ceil(BLOCK) + 3) * BLOCK, "{size} bytes");
        }
        let path = lab.path().join("kept.vdif");
        let export = about(&lab, "export", &["--to", path.to_str().expect("plain names"), "--verify"]);
        assert_eq!(export.code, Some(0), "{export:?}");
        let (kept, sent) = (fs::read(&path).expect("it is there"), lab.sent(frames));
        assert!(sent.ends_with(&kept), "{} bytes", kept.len());
        // With several directories it begins behind the last that any of them overwrote.
        assert!(kept.len() >= keep / lanes, "{} bytes", kept.len());
    }
}

/// How many frames are missing before the first that a mount shows: those that had been overwritten when it was made.
fn left_out(path: &Path, sent: &[u8]) -> Option<usize> {
    let (file, mut frame) = (open(path), vec![0; FRAME]);
    let shown = fs::metadata(path).expect("it is there").len() as usize / FRAME;
    let is_read = |number: &usize| file.read_exact_at(&mut frame, (number * FRAME) as u64).is_ok();
    let first = (0..shown).find(is_read)?;
    let place = sent.chunks_exact(FRAME).position(|one| one == frame).expect("it was sent");
    Some(place - first)
}

/// How many of so many frames can be read, and the first from which on all can. Each is as it was sent.
fn read_each(path: &Path, sent: &[u8], frames: usize) -> (usize, usize) {
    let (file, mut frame, mut read, mut first) = (open(path), vec![0; FRAME], 0, 0);
    for (number, expected) in sent.chunks_exact(FRAME).take(frames).enumerate() {
        match file.read_exact_at(&mut frame, (number * FRAME) as u64) {
            Ok(()) => {
                assert!(frame == expected, "frame {number} of {frames} differs");
                read += 1;
            }
            Err(error) => {
                assert_eq!(error.raw_os_error(), Some(Errno::IO.raw_os_error()), "frame {number}");
                first = number + 1;
            }
        }
    }
    (read, first)
}

#[test]
fn while_it_is_overwritten_a_mount_shows_what_was_sent_or_nothing() {
    if !may_show() {
        return;
    }
    let (lab, frames) = (Lab::new(4000, 1), 12_000);
    let running = lab.record(&["--packets", &frames.to_string(), "--keep", "4 MB"]);
    let sent = lab.sent(frames);
    thread::scope(|scope| {
        scope.spawn(|| lab.send(frames, 1.0));
        let journal = lab.lanes()[0].join("scan.0.journal");
        await_some("a block", || fs::metadata(&journal).is_ok_and(|file| file.len() > 1000).then_some(()));
        let mounted = Mounted::of(&lab.to);
        let path = mounted.file("scan.vdif");
        let left_out = await_some("a frame that can be read", || left_out(&path, &sent));
        let sent = &sent[left_out * FRAME..];
        let mut read = 0;
        let mut shown = 0;
        while shown < frames as usize - left_out {
            shown = fs::metadata(&path).expect("it is there").len() as usize / FRAME;
            read += read_each(&path, sent, shown).0;
        }
        assert!(read > FRAMES_OF_BLOCK, "{read} frames");
        assert_eq!(running.end(LIMIT).code, Some(0));
        let stay = shown - read_each(&path, sent, shown).1;
        assert!((4..=7).contains(&(stay / FRAMES_OF_BLOCK)), "the last {stay} frames stay");
        assert_eq!(mounted.end().0.code, Some(0));
    });
}
