//! Hand-made recordings that appear, grow, stand still and end.

use std::{fs::File, io::Write};

use nilometer_recording::journal::JOURNAL_VERSION;
use tempfile::TempDir;

use super::*;

const FRAME: u64 = 1000;
/// Number of looks without news after which a recorder counts as dead.
const QUIET: usize = 1200;

/// A record of a journal.
fn record(sequence: u64, kind: u32, numbers: [u64; 6]) -> Vec<u8> {
    let numbers = numbers.iter().flat_map(|number| number.to_le_bytes());
    let rest: Vec<u8> = kind.to_le_bytes().into_iter().chain(sequence.to_le_bytes()).chain(numbers).collect();
    let crc = rest.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ (0xedb8_8320 * (crc & 1)))
    });
    [&(!crc).to_le_bytes()[..], &rest].concat()
}

/// A lane with one growing file.
struct Lane {
    directory: PathBuf,
    name: String,
    index: u64,
    records: u64,
    frames: u64,
}

impl Lane {
    fn new(directory: PathBuf, recording: u64, name: &str, (lane, lanes): (u64, u64)) -> Self {
        fs::create_dir_all(&directory).expect("room");
        let mut made = Lane { directory, name: name.to_owned(), index: lane, records: 0, frames: 0 };
        // Growing files, bytes of frames.
        let version = u64::from(JOURNAL_VERSION) | 1 << 32;
        made.note(1, [recording, lane | lanes << 32, FRAME, FRAME, 8, version]);
        made
    }

    fn append(&self, end: &str, bytes: &[u8]) {
        let path = self.directory.join(format!("{}.{}.{end}", self.name, self.index));
        let file = File::options().create(true).append(true).open(path);
        file.and_then(|mut file| file.write_all(bytes)).expect("room");
    }

    fn note(&mut self, kind: u32, numbers: [u64; 6]) {
        self.append("journal", &record(self.records, kind, numbers));
        self.records += 1;
    }

    fn store(&mut self, numbers: &[u64]) {
        for number in numbers {
            self.append("raw", &frame(*number));
            self.note(12, [*number, 0, self.frames * FRAME, 0, 0, FRAME | FRAME << 32]);
            self.frames += 1;
        }
    }

    fn end(&mut self, due: u64) {
        self.note(5, [1, due, 0, 0, 0, 0]);
    }
}

fn frame(number: u64) -> [u8; FRAME as usize] {
    [number as u8 + 1; FRAME as usize]
}

fn frames(numbers: Range<u64>) -> Vec<u8> {
    numbers.flat_map(frame).collect()
}

fn read(entry: &Entry) -> Vec<u8> {
    let mut bytes = vec![0; entry.whole.length() as usize];
    entry.whole.read_at(0, &mut bytes);
    bytes
}

fn disks(count: usize) -> (TempDir, Vec<PathBuf>) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let disks: Vec<_> = (0..count).map(|disk| directory.path().join(format!("disk{disk}"))).collect();
    for disk in &disks {
        fs::create_dir(disk).expect("room");
    }
    (directory, disks)
}

#[test]
fn a_lane_whose_journal_comes_after_its_recording_was_found_is_part_of_it() {
    let (_directory, disks) = disks(2);
    let mut first = Lane::new(disks[0].join("n"), 7, "n", (0, 2));
    first.store(&[0, 2]);
    let catalogue = Catalogue::new(&disks, Limits::default(), MountReaders::Owner).expect("they are there");
    let entry = catalogue.entry(0).expect("it has a frame");
    assert!(read(&entry) == frames(0..1), "the second is on its way");
    let mut second = Lane::new(disks[1].join("n"), 7, "n", (1, 2));
    second.store(&[1, 3]);
    catalogue.find().expect("they are there");
    entry.look(&|_| {});
    assert!(read(&entry) == frames(0..4));
    assert_eq!(catalogue.names(), ["n.raw"]);
}

#[test]
fn a_lane_that_comes_after_the_end_is_part_of_it_too() {
    let (_directory, disks) = disks(2);
    let mut first = Lane::new(disks[0].join("n"), 7, "n", (0, 2));
    first.store(&[0, 2]);
    first.end(4);
    let catalogue = Catalogue::new(&disks, Limits::default(), MountReaders::Owner).expect("they are there");
    let entry = catalogue.entry(0).expect("it has a frame");
    let expected = [frames(0..1), vec![0; FRAME as usize], frames(2..3), vec![0; FRAME as usize]].concat();
    assert!(entry.is_over() && read(&entry) == expected);
    Lane::new(disks[1].join("n"), 7, "n", (1, 2)).store(&[1, 3]);
    catalogue.find().expect("they are there");
    let forgotten = Mutex::new(Vec::new());
    entry.look(&|range| forgotten.lock().expect("one thread").push(range));
    assert!(read(&entry) == frames(0..4));
    assert!(forgotten.lock().expect("one thread").contains(&(0..i64::MAX as u64)));
}

#[test]
fn a_recording_without_frames_is_read_again_when_it_has_changed_and_not_before() {
    let (_directory, disks) = disks(1);
    let mut empty = Lane::new(disks[0].join("empty"), 7, "n", (0, 1));
    fs::write(disks[0].join("other.0.journal"), "not one").expect("room");
    let catalogue = Catalogue::new(&disks, Limits::default(), MountReaders::Owner).expect("they are there");
    let news = || {
        let there = journals_below(&with_below(&disks).expect("they are there"));
        assert_eq!(there.len(), 2);
        catalogue.journals.lock().expect("one thread").news(there).into_keys().collect::<Vec<_>>()
    };
    assert!(catalogue.is_empty() && news().is_empty());
    empty.store(&[0]);
    assert_eq!(news(), [disks[0].join("empty/n.0.journal")]);
    catalogue.find().expect("they are there");
    assert_eq!((catalogue.names(), news()), (vec!["n.raw".to_owned()], vec![]));
}

#[test]
fn what_goes_on_after_a_pause_never_becomes_shorter_and_has_no_zeroes() {
    let (_directory, disks) = disks(1);
    let mut lane = Lane::new(disks[0].clone(), 7, "n", (0, 1));
    lane.store(&[0, 1, 2, 3, 4]);
    let catalogue = Catalogue::new(&disks, Limits::default(), MountReaders::Owner).expect("they are there");
    let (entry, forgotten) = (catalogue.entry(0).expect("it has frames"), Mutex::new(Vec::new()));
    let look = |times: usize| {
        let forget = |range| forgotten.lock().expect("one thread").push((range, entry.length()));
        (0..times).for_each(|_| entry.look(&forget));
        (entry.length(), std::mem::take(&mut *forgotten.lock().expect("one thread")))
    };
    assert_eq!(look(1), (4096, vec![]));
    assert_eq!(look(QUIET), (5000, vec![]), "it is shown to its end");
    lane.store(&[5]);
    assert_eq!(look(1), (5000, vec![]), "the page in which it ended is not full");
    lane.store(&[6, 7, 8, 9]);
    assert_eq!(look(1), (8192, vec![(4096..8192, 5000)]), "the page is forgotten before more is shown");
    assert_eq!(look(QUIET + 1), (10_000, vec![]));
    lane.store(&[10]);
    lane.end(11);
    assert_eq!(look(1), (11_000, vec![(8192..12_288, 10_000)]));
    assert!(entry.is_over());
}

#[test]
fn the_first_fault_of_each_recording_is_told_once_whichever_comes_first() {
    let (_directory, disks) = disks(1);
    for name in ["a", "b"] {
        let mut lane = Lane::new(disks[0].join(name), 1 + u64::from(name == "b"), name, (0, 1));
        lane.store(&[0, 1]);
        lane.end(2);
        fs::remove_file(disks[0].join(name).join(format!("{name}.0.raw"))).expect("it was there");
    }
    let catalogue = Catalogue::new(&disks, Limits::default(), MountReaders::Owner).expect("they are there");
    assert_eq!((catalogue.names().len(), catalogue.news_of_faults().len()), (2, 0));
    for name in ["b", "a"] {
        let (_, entry) = catalogue.named(&format!("{name}.raw")).expect("it is shown");
        read(&entry);
        let told = catalogue.news_of_faults();
        assert!(told.len() == 1 && told[0].contains(&format!("{name}.0.raw")), "{told:?}");
        assert!(catalogue.news_of_faults().is_empty());
    }
}

#[test]
fn a_part_of_each_recording_is_shown_and_one_without_it_is_reported_once() {
    let (_directory, disks) = disks(2);
    let mut first = Lane::new(disks[0].clone(), 7, "n", (0, 1));
    first.store(&[0, 1, 2, 3, 4]);
    first.end(5);
    let limits = Limits { begin: "2".parse().ok(), end: "4".parse().ok() };
    let catalogue = Catalogue::new(&disks, limits, MountReaders::Owner).expect("it has the part");
    assert!(read(&catalogue.entry(0).expect("it is shown")) == frames(2..4));
    let mut second = Lane::new(disks[1].clone(), 8, "m", (0, 1));
    second.store(&[0]);
    catalogue.find_more();
    let news = catalogue.news_of_faults();
    assert!(news.len() == 1 && news[0].contains("frame 2 lies outside m"), "{news:?}");
    second.store(&[1, 2, 3, 4]);
    catalogue.find_more();
    assert_eq!(
        (catalogue.names(), catalogue.news_of_faults()),
        (vec!["n.raw".into(), "m.raw".into()], vec![])
    );
    let refused = Catalogue::new(&disks, Limits { end: "9".parse().ok(), ..limits }, MountReaders::Owner);
    assert!(refused.is_err_and(|error| error.to_string().contains("frame 9 lies outside")));
}
