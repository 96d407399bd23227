//! Tests the index with journal entries in orders that occur, and in some that should not.

use nilometer_model::{FileNames, Format, Storing};

use super::*;
use crate::{Due, journal::RECORD};

fn head(lane: u32) -> Head {
    Head {
        recording: 1,
        lane,
        lanes: 2,
        frame_size: 8,
        stride: 8,
        frames_per_file: 2,
        storing: Storing::Files,
        format: Format::Raw,
        names: FileNames::default(),
    }
}

fn frame(number: u64, file: u64) -> Entry {
    let extent = head(0).extent(file, number % 2 * 8, 8);
    Entry::Frame { number, extent, due: 10 * number, checksum: None }
}

fn gap(number: u64, count: u64, filled: bool) -> Entry {
    Entry::Gap { number, gap: Gap { at: 0, count, filled, sender: None } }
}

fn added(number: u64, left_out: u64) -> Change {
    Change::Added { number, due: Nanos(10 * number), left_out }
}

fn removed(number: u64) -> Change {
    Change::Removed { number }
}

/// Feeds records to an index that has these lanes, and returns the changes.
fn follow(index: &mut Index, lane: usize, entries: &[Entry]) -> Vec<Change> {
    let from = index.records(lane);
    let mut changes = Vec::new();
    assert_eq!(index.follow(lane, from, entries, &mut |change| changes.push(change)), entries.len());
    changes
}

fn numbers(index: &Index) -> Vec<u64> {
    index.frames.numbers(0..u64::MAX).collect()
}

#[test]
fn each_record_changes_what_it_says() {
    let mut index = Index::default();
    index.add_lane(head(0));
    for (entry, changes, frames) in [
        (Entry::Head(head(0)), vec![], vec![]),
        (frame(0, 0), vec![added(0, 0)], vec![0]),
        (frame(1, 0), vec![added(1, 0)], vec![0, 1]),
        (gap(2, 3, false), vec![], vec![0, 1]),
        (gap(2, 4, true), vec![], vec![0, 1]),
        (frame(2, 1), vec![added(2, 3)], vec![0, 1, 2]),
        (Entry::Removed { file: 0 }, vec![removed(0), removed(1)], vec![2]),
        (Entry::Durable { file: 1 }, vec![], vec![2]),
        (frame(3, 1), vec![added(3, 0)], vec![2, 3]),
        (Entry::End { due: Some(Due { frames: 4, last: None }) }, vec![], vec![2, 3]),
    ] {
        assert_eq!(follow(&mut index, 0, &[entry]), changes, "{entry:?}");
        assert_eq!(numbers(&index), frames, "{entry:?}");
    }
    assert_eq!((index.gaps[&2].len(), index.first(), index.due, index.ended), (2, 2, Some(4), 1));
}

#[test]
fn what_another_lane_has_too_stays_when_a_file_is_removed() {
    let mut index = Index::default();
    index.add_lane(head(0));
    index.add_lane(head(1));
    follow(&mut index, 0, &[frame(0, 0), frame(1, 0)]);
    follow(&mut index, 1, &[frame(1, 5)]);
    assert_eq!(follow(&mut index, 0, &[Entry::Removed { file: 0 }]), [removed(0)]);
    let location = index.frames.get(1).expect("the other lane has it");
    assert_eq!((location.lane, location.file(), index.is_gone(location)), (1, 5, false));
    assert_eq!(follow(&mut index, 0, &[frame(1, 0), Entry::Removed { file: 0 }]), [added(1, 0)]);
    assert_eq!(numbers(&index), [1]);
    assert_eq!(follow(&mut index, 1, &[Entry::Removed { file: 5 }]), [removed(1)], "and in no lane any more");
    assert_eq!((numbers(&index), index.first()), (vec![], 2));
}

#[test]
fn records_that_come_a_few_at_once_say_the_same() {
    let mut entries = vec![Entry::Head(head(0))];
    for number in 0..200 {
        entries.extend((0..number % 7).map(|_| gap(number, 1, number % 2 == 0)));
        entries.extend([frame(number, number / 2), Entry::Chunk { file: number / 2, number: None }]);
        entries.extend((number % 20 == 19).then(|| Entry::Removed { file: (number - 10) / 2 }));
        let number = Some(number as u32);
        entries.extend((entries.len() % 5 == 0).then_some(Entry::Chunk { file: 3, number }));
    }
    let mut journal = vec![0; entries.len() * RECORD];
    for (sequence, (entry, record)) in (0..).zip(entries.iter().zip(journal.chunks_exact_mut(RECORD))) {
        entry.put(sequence, record);
    }
    let once = Index::unite([journal.as_slice()], Trust::Acknowledged);
    for count in [1, 2, 3, 64, entries.len()] {
        let mut index = Index::default();
        index.add_lane(head(0));
        for (part, from) in entries.chunks(count).zip((0..).step_by(count)) {
            index.follow(0, from, part, &mut |_| {});
            // Records that the index already has change nothing.
            assert_eq!(index.follow(0, from, part, &mut |_| panic!("nothing is new")), 0);
        }
        assert_eq!(numbers(&index), numbers(&once), "{count} at once");
        let said = |index: &Index| {
            let (removed, records) = (index.removed.count(), index.records(0));
            (removed, records, index.first(), index.gaps.clone(), index.chunks.clone())
        };
        assert_eq!(said(&index), said(&once), "{count} at once");
    }
}
