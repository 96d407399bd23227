//! Many recordings at once: the memory that is taken of all of them.

use std::{
    io::Read,
    path::Path,
    process::{Command, Stdio},
};

use nilometer_model::Bytes;
use nilometer_recording::journal::{JOURNAL_VERSION, RECORD};
use nilometer_tests::{command_of, nilometer, peak_memory};

use super::*;

const FRAME: u64 = 64;
/// Memory that a recording may cost while others are scanned: its name, its directory and the head of its journal.
const EACH_MAX: u64 = 1500;

/// A record of a journal: kind, sequence and numbers, behind their CRC-32.
fn record(kind: u32, sequence: u64, numbers: [u64; 6]) -> [u8; RECORD] {
    let mut record = [0; RECORD];
    record[4..8].copy_from_slice(&kind.to_le_bytes());
    record[8..16].copy_from_slice(&sequence.to_le_bytes());
    for (number, bytes) in numbers.iter().zip(record[16..].chunks_exact_mut(8)) {
        bytes.copy_from_slice(&number.to_le_bytes());
    }
    let checksum = crc32fast::hash(&record[4..]);
    record[..4].copy_from_slice(&checksum.to_le_bytes());
    record
}

/// A recording of three frames in one growing file, in a directory of its own.
fn make(above: &Path, number: u64) {
    let name = format!("r{number:06}");
    let directory = above.join(&name);
    fs::create_dir(&directory).expect("space");
    let version = u64::from(JOURNAL_VERSION) | 1 << 32;
    let mut journal = record(1, 0, [number + 1, 1 << 32, FRAME, FRAME, 8, version]).to_vec();
    for frame in 0..3 {
        journal.extend(record(12, 1 + frame, [frame, 0, frame * FRAME, 0, 0, FRAME | FRAME << 32]));
    }
    journal.extend(record(5, 4, [1, 3, 0, 0, 0, 0]));
    fs::write(directory.join(format!("{name}.0.journal")), journal).expect("space");
    fs::write(directory.join(format!("{name}.0.raw")), [7; 3 * FRAME as usize]).expect("space");
}

/// What `scan` of these directories says, and the memory that it had taken when it said the last of it.
fn scanned(above: &[&Path], more: &[&str]) -> (String, Bytes) {
    let mut command = Command::new(command_of(nilometer()).get_program());
    command.args(command_of(nilometer()).get_args()).arg("scan").args(above).args(more);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut stdout = child.stdout.take().expect("a pipe");
    // It waits for room in the pipe, and is there to be looked at until little is left to be read.
    let mut said = Vec::new();
    let mut peak = Bytes(0);
    let mut page = [0; 4096];
    loop {
        peak = peak_memory(child.id()).unwrap_or(Bytes(0)).max(peak);
        match stdout.read(&mut page).expect("it can be read") {
            0 => break,
            length => said.extend_from_slice(&page[..length]),
        }
    }
    assert!(child.wait().expect("a child of ours").success());
    (String::from_utf8(said).expect("text"), peak)
}

#[test]
fn the_memory_of_a_scan_does_not_grow_with_the_square_of_the_recordings() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let few = home.path().join("few");
    let many = home.path().join("many");
    for (above, numbers) in [(&few, 0..500), (&many, 500..4000)] {
        fs::create_dir(above).expect("space");
        numbers.for_each(|number| make(above, number));
    }
    let page = home.path().join("page.html");
    let documents = ["--format", "markdown", "--html", text(&page)];
    for (more, begin) in [(&[][..], "recording   "), (&documents, "\n## ")] {
        let (_, of_few) = scanned(&[&few], more);
        let (said, of_all) = scanned(&[&few, &many], more);
        assert_eq!(said.matches("3 of 64 B").count(), 4000);
        assert!(said.contains(&format!("{begin}r000000")) && said.contains(&format!("{begin}r003999")));
        let each = of_all.0.saturating_sub(of_few.0) / 3500;
        assert!(each <= EACH_MAX, "{more:?}: {each} B a recording: {of_few} of 500, {of_all} of 4000");
    }
    let page = fs::read_to_string(page).expect("a page");
    assert_eq!(page.matches("3 of 64 B").count(), 4000, "each recording is on the page");
}

#[test]
fn a_list_of_many_is_one_valid_text_of_json() {
    let home = tempfile::tempdir().expect("a temporary directory");
    (0..50).for_each(|number| make(home.path(), number));
    let (said, _) = scanned(&[home.path()], &["--json"]);
    let list: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    let names: Vec<_> = list.as_array().expect("a list").iter().map(|one| one["name"].clone()).collect();
    assert_eq!(
        names,
        (0..50).map(|number| format!("r{number:06}").into()).collect::<Vec<serde_json::Value>>()
    );
    assert_eq!(said, serde_json::to_string_pretty(&list).expect("JSON") + "\n", "as one list is written");
}
