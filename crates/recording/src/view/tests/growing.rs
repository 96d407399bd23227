//! Recordings in progress, on disks that appear, vanish and hang.

use std::{sync::mpsc, thread, time::Duration};

use super::*;
use crate::{recording_file::RecordingFile, view::files};

/// A call that takes this long hangs.
const LIMIT: Duration = Duration::from_secs(30);

fn block(number: u64) -> Vec<u8> {
    let format = sender(PACKET_CASES[0].0);
    let first = number * FRAMES_OF_BLOCK;
    (first..first + FRAMES_OF_BLOCK)
        .flat_map(|number| frame(&*format, PACKET_CASES[0].2, number, false))
        .collect()
}

fn lanes(count: usize, storing: Storing) -> LaidOut {
    LaidOut::new(count, storing, &stream(PACKET_CASES[0], &known(PACKET_CASES[0].1)))
}

fn read_all(whole: &RecordingView) -> Vec<u8> {
    let mut bytes = vec![0xee; whole.length() as usize];
    assert_eq!(whole.read_at(0, &mut bytes), bytes.len());
    bytes
}

#[test]
fn a_recording_that_grows_is_shown_up_to_the_mark() {
    let course = PACKET_CASES[0];
    let format = sender(course.0);
    let mut lanes = LaidOut::new(2, Storing::Growing, &stream(course, &known(course.1)));
    let bytes = |block: u64| -> Vec<u8> {
        let first = block * FRAMES_OF_BLOCK;
        (first..first + 4).flat_map(|number| frame(&*format, course.2, number, false)).collect()
    };
    lanes.publish(2);
    let hidden = lanes.paths()[1].join("n.1.journal");
    fs::remove_file(&hidden).expect("it was there");
    let whole = lanes.whole(Extent::Mark);
    let size = lanes.head.frame_size;
    assert_eq!((whole.length(), whole.refresh()), (0, false));
    lanes.store(0, 0, &bytes(0), 0, &[]);
    lanes.store(1, 2, &bytes(2), 1, &[Gap { at: 0, count: 1, filled: true, sender: None }]);
    lanes.publish(1);
    assert_eq!((whole.refresh(), whole.length()), (false, 0), "nothing was noted yet");
    lanes.publish(0);
    assert_eq!((whole.refresh(), whole.length()), (true, size), "the second is on its way");
    assert_eq!((whole.refresh(), whole.length()), (false, size));
    lanes.store(0, 1, &bytes(1), 1, &[]);
    lanes.store(1, 3, &bytes(3), 2, &[Gap { at: 1, count: 1, filled: true, sender: None }]);
    lanes.publish(0);
    assert_eq!((whole.refresh(), whole.length()), (true, 4 * size));
    assert!(whole.recording(|recording| recording.index.gaps.keys().copied().eq([2, 3])));
    let mut read = vec![0; 4 * size as usize];
    whole.read_at(0, &mut read);
    assert!(read == [0, 1, 2, 3].map(bytes).concat());
    lanes.store(0, 5, &bytes(5), 3, &[]);
    lanes.publish(0);
    assert_eq!((whole.refresh(), whole.length(), whole.is_over()), (true, 4 * size, false));
    lanes.end(7);
    lanes.publish(0);
    assert_eq!((whole.refresh(), whole.length(), whole.is_over()), (true, 7 * size, true));
    assert_eq!(whole.filled(0..u64::MAX), [4 * size..5 * size, 6 * size..7 * size]);
}

#[test]
fn the_first_lane_may_turn_up_last() {
    let mut lanes = lanes(2, Storing::Files);
    (0..2).for_each(|number| lanes.store(1, number, &block(number), 0, &[]));
    lanes.publish(0);
    let hidden = lanes.paths()[0].join("n.0.journal");
    fs::remove_file(&hidden).expect("it was there");
    let whole = Arc::new(lanes.whole(Extent::Mark));
    let ahead = ReadAhead::small(whole.clone());
    let expected = [0, 1].map(block).concat();
    assert!(read_all(&whole) == expected);
    read_in_order(&ahead, &expected, &[1000]);
    (2..4).for_each(|number| lanes.store(0, number, &block(number), 0, &[]));
    lanes.publish(0);
    assert!(whole.refresh());
    let expected = [0, 1, 2, 3].map(block).concat();
    assert!(read_all(&whole) == expected, "its blocks are read from its own files");
    let mut rest = vec![0; expected.len() / 2];
    ahead.read_at(rest.len() as u64, &mut rest);
    assert!(rest == expected[rest.len()..]);
    read_in_order(&ReadAhead::small(whole.clone()), &expected, &[1000]);
    assert_eq!(whole.faults().count, 0);
}

#[test]
fn what_is_overwritten_in_a_ring_is_never_taken_for_what_was_there() {
    let mut lanes = lanes(1, Storing::Ring);
    (0..8).for_each(|number| lanes.store(0, number, &block(number), 0, &[]));
    lanes.publish(0);
    let whole = Arc::new(lanes.whole(Extent::Mark));
    let size = block(0).len();
    assert!(read_all(&whole) == (0..8).map(block).collect::<Vec<_>>().concat());
    lanes.remove(0, 0);
    (8..11).for_each(|number| lanes.store(0, number, &block(number), 0, &[]));
    lanes.publish(0);
    // The view does not know of the new records yet.
    let read = read_all(&whole);
    let (overwritten, stays) = read.split_at(3 * size);
    assert!(stays == (3..8).map(block).collect::<Vec<_>>().concat());
    let frame_size = whole.frame_size() as usize;
    assert!(overwritten.chunks(frame_size).all(|frame| frame[3] & 0x80 != 0), "all are marked as invalid");
    assert!(whole.refresh());
    let read = read_all(&whole);
    assert!(
        read[..3 * size] == *overwritten
            && read[8 * size..] == (8..11).map(block).collect::<Vec<_>>().concat()
    );
    read_in_order(&ReadAhead::small(whole.clone()), &read, &[1000]);
    assert_eq!((whole.faults().count, whole.first_block()), (0, 0));
    // A new view lacks the overwritten blocks. One that follows the recording also lacks those overwritten
    // next.
    assert_eq!(lanes.whole(Extent::Mark).first_block(), 9);
    let whole = lanes.whole(Extent::All);
    assert_eq!((whole.first_block(), whole.frames()), (3, 8 * FRAMES_OF_BLOCK));
    assert!(read_all(&whole) == (3..11).map(block).collect::<Vec<_>>().concat());
    assert_eq!(whole.stamp(0), whole.read_stamp(&block(3)[..frame_size]));
    lanes.end(11);
    lanes.publish(0);
    assert!(whole.refresh() && whole.only_file().is_none());
}

#[test]
fn where_nobody_can_say_whether_a_ring_was_overwritten_what_was_read_does_not_count() {
    let mut lanes = lanes(1, Storing::Ring);
    (0..8).for_each(|number| lanes.store(0, number, &block(number), 0, &[]));
    lanes.publish(0);
    let (whole, size) = (lanes.whole(Extent::Mark), block(0).len());
    let mut one = vec![0; size];
    whole.read_at(0, &mut one);
    assert!(one == block(0));
    let journal = lanes.paths()[0].join("n.0.journal");
    fs::rename(&journal, journal.with_extension("away")).expect("it was there");
    whole.read_at(0, &mut one);
    assert!(one != block(0) && whole.faults().count == 1, "{:?}", whole.faults());
}

#[test]
fn a_lane_that_turns_up_elsewhere_is_taken_in_when_that_is_known() {
    let mut lanes = lanes(2, Storing::Files);
    lanes.store(0, 0, &block(0), 0, &[]);
    lanes.store(1, 1, &block(1), 0, &[]);
    lanes.publish(0);
    let first = Recording::open(&lanes.paths()[..1], Trust::Acknowledged).expect("a recording");
    let whole = RecordingView::new(first, Extent::Mark);
    assert_eq!((whole.refresh(), read_all(&whole) == block(0)), (false, true));
    whole.look_in(&lanes.paths());
    assert!(whole.refresh() && read_all(&whole) == [0, 1].map(block).concat());
}

#[test]
fn what_was_read_ahead_in_place_of_a_lane_is_forgotten_when_it_turns_up() {
    let mut lanes = lanes(2, Storing::Files);
    (0..4).for_each(|number| lanes.store(number as usize % 2, number, &block(number), 0, &[]));
    lanes.end(4);
    lanes.publish(0);
    let first = Recording::open(&lanes.paths()[..1], Trust::Acknowledged).expect("a recording");
    let whole = Arc::new(RecordingView::new(first, Extent::All));
    let (ahead, size) = (ReadAhead::small(whole.clone()), block(0).len());
    let read = |begin: usize, end: usize| {
        let mut bytes = vec![0; end - begin];
        ahead.read_at(begin as u64, &mut bytes);
        bytes
    };
    // The window ends after the missing block.
    assert!(read(0, 100) == block(0)[..100] && read(100, size + 100)[..size - 100] == block(0)[100..]);
    assert!(read(size + 100, size + 200) != block(1)[100..200], "something stands for it");
    whole.look_in(&lanes.paths());
    assert!(whole.refresh());
    assert!(read(size, size + 300) == block(1)[..300]);
}

#[test]
fn a_file_that_fails_is_opened_again() {
    let mut lanes = lanes(1, Storing::Growing);
    (0..3).for_each(|number| lanes.store(0, number, &block(number), 0, &[]));
    lanes.end(3);
    lanes.publish(0);
    let whole = Arc::new(lanes.whole(Extent::Mark));
    let expected = [0, 1, 2].map(block).concat();
    assert!(read_all(&whole) == expected);
    read_in_order(&ReadAhead::small(whole.clone()), &expected, &[1000]);
    // Like a remounted disk: the open files are of no use any more.
    let (path, old) = (lanes.paths()[0].join("n.0.vdif"), lanes.paths()[0].join("old"));
    fs::rename(&path, &old).expect("one directory");
    fs::copy(&old, &path).expect("room");
    File::options().write(true).open(&old).expect("it is there").set_len(0).expect("it is ours");
    assert!(read_all(&whole) == expected);
    read_in_order(&ReadAhead::small(whole.clone()), &expected, &[1000]);
    assert_eq!(whole.faults().count, 0);
}

#[test]
fn a_chunk_that_is_renamed_while_it_is_opened_is_found() {
    let mut lanes = lanes(1, Storing::Scattered);
    let chunk = |number: u32| lanes.directories[0].path().join(format!("n.{number:08}"));
    let (zero, one) = (chunk(0), chunk(1));
    fs::write(&zero, block(0)).expect("room");
    let head = lanes.head;
    let frame = |number| {
        let extent = head.extent(number, 0, head.frame_size as u32);
        Entry::Frame { number, extent, due: 0, checksum: None }
    };
    let frames = [frame(0), frame(1)];
    lanes.journals[0].extend([Entry::Chunk { file: 0, number: Some(0) }, frames[0]]);
    lanes.publish(0);
    let whole = lanes.whole(Extent::Mark);
    let place = whole.recording(|recording| recording.index.frames.get(0)).expect("it is there");
    fs::rename(&zero, &one).expect("one directory");
    fs::write(&zero, block(1)).expect("room");
    let names = [(0, 1), (1, 0)].map(|(file, number)| Entry::Chunk { file, number: Some(number) });
    lanes.journals[0].extend(names.into_iter().chain([frames[1]]));
    lanes.publish(0);
    // Another thread takes in the records between the name and the file.
    let opened = files::open(&whole, place, |path| {
        whole.refresh();
        crate::recording_file::open(path).map(RecordingFile::stored)
    });
    let mut bytes = vec![0; lanes.head.frame_size as usize];
    opened.expect("it is there").read_exact_at(&mut bytes, 0).expect("it is whole");
    assert!(bytes == block(0));
}

#[test]
fn a_journal_whose_disk_stands_still_keeps_nobody_from_reading() {
    let mut lanes = lanes(2, Storing::Growing);
    lanes.store(0, 0, &block(0), 0, &[]);
    lanes.store(1, 1, &block(1), 0, &[]);
    lanes.publish(0);
    let whole = Arc::new(lanes.whole(Extent::Mark));
    let expected = [0, 1].map(block).concat();
    // From now on its files are open.
    assert!(read_all(&whole) == expected);
    let ((asks, asked), (answer, answered)) = (mpsc::sync_channel(1), mpsc::sync_channel::<()>(0));
    let looks = whole.clone();
    let look = thread::spawn(move || {
        looks.gain_by(Recording::look, |look| {
            asks.send(()).expect("it is waited for");
            // The disk does not answer.
            answered.recv().unwrap_or_default();
            look.read()
        })
    });
    asked.recv_timeout(LIMIT).expect("it asks");
    let (told, read) = mpsc::sync_channel(1);
    thread::spawn(move || {
        whole.look_in(&[]);
        told.send(read_all(&whole))
    });
    let read = read.recv_timeout(LIMIT);
    assert!(!look.is_finished());
    drop(answer);
    look.join().expect("it ends");
    assert!(read.expect("nobody waits for it") == expected);
}
