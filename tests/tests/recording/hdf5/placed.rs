//! Which frame is in which file, and at which place there: its own number says so, whatever was lost before it.

use std::time::Duration;

use nilometer_tests::{FileSystem, may_mount};

use crate::hdf5::lab::{LIMIT, Lab, assert_verified, found, found_in, number};

#[test]
fn files_of_many_frames_have_consecutive_ones() {
    for compression in ["none", "bslz4"] {
        let lab = Lab::small("recording.frames_per_file = 32\n");
        lab.record(compression, &["--frames", "100"]);
        assert_verified(&lab, 100);
        let files: Vec<_> =
            (0..4).map(|file| (lab.lanes()[0].join(format!("scan.{file:08}.h5")), file * 32)).collect();
        let Some(found) = found(&lab.truth(100), &files) else { return };
        for (file, (_, first)) in found.iter().zip(&files) {
            // The last has as many places as frames were due.
            let frames: Vec<_> = (*first..(first + 32).min(100)).collect();
            assert_eq!(file.frames("right"), frames, "{compression}");
            assert_eq!(file.column("flag"), vec![0; frames.len()], "{compression}");
            assert_eq!(
                (file.total("frames_whole"), file.total("frames_blank")),
                (Some(frames.len() as u64), Some(0))
            );
        }
        assert!(!lab.lanes()[0].join("scan.00000004.h5").exists());
    }
}

#[test]
fn a_file_over_those_of_two_directories_has_all_frames() {
    let lab = Lab::small("recording.frames_per_file = 32\n");
    let to = ["a", "b"].map(|name| lab.made(name));
    let lab = lab.into(&[&to[0], &to[1]]);
    lab.record("bslz4", &["--frames", "300"]);
    assert_verified(&lab, 300);
    let master = lab.lanes()[0].join("scan_master.h5");
    let Some(found) = found(&lab.truth(300), &[(master, 0)]) else { return };
    let [file] = &found[..] else { panic!("one was asked for") };
    assert!(file.frames("right").into_iter().eq(0..300), "{:?}", file.frames("wrong"));
    assert_eq!(file.column("flag"), vec![0; 300]);
    let other = |lane: usize| lab.lanes()[lane].read_dir().expect("it is there").count();
    assert!(other(0) > 2 && other(1) > 1, "both directories have files");
}

#[test]
fn a_frame_that_found_no_room_is_blank_and_those_behind_it_have_their_own_places() {
    if !may_mount() {
        return;
    }
    for compression in ["none", "bslz4"] {
        let frozen = FileSystem::ext4(900);
        let lab = Lab::small("").into(&[frozen.path()]);
        let running =
            lab.start(compression, &["--frames", "3000", "--buffer", "240 KiB", "--full", "drop-newest"]);
        lab.await_file("scan.h5");
        frozen.freeze();
        // Twenty frames are 40 ms.
        std::thread::sleep(Duration::from_millis(500));
        frozen.thaw();
        let ended = running.end(LIMIT);
        let stored = number(&ended, "stored");
        assert!(ended.code == Some(1) && stored < 3000, "{ended:?}");
        let acknowledged = lab.acknowledged();
        assert_eq!(acknowledged.len() as u64, stored);
        let Some(found) = found_in(&lab.truth(3000), &lab.file()) else { return };
        assert_eq!((found.frames("right"), found.frames("wrong")), (acknowledged.clone(), vec![]));
        let last = acknowledged.last().copied().expect("some were stored");
        assert!(last + 1 > stored, "some were lost before others came: {ended:?}");
        let blank: Vec<_> = (0..=last).filter(|frame| acknowledged.binary_search(frame).is_err()).collect();
        assert_eq!(found.frames("blank")[..blank.len()], blank);
        for (flag, frame) in found.column("flag").into_iter().zip(0..) {
            assert_eq!(flag, i64::from(acknowledged.binary_search(&frame).is_err()), "frame {frame}");
        }
        assert_eq!(found.total("frames_whole"), Some(stored));
        assert_eq!(found.total("frames_blank"), Some(found.frames("blank").len() as u64));
    }
}
