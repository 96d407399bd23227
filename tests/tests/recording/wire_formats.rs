//! VDIF and Mark5B against a program that no one here wrote: the package baseband.

use std::{collections::BTreeSet, fmt::Write, fs, path::Path};

use nilometer_model::{Instrument, packets::Station};
use nilometer_tests::{python, root};
use nilometer_wire::{Known, Near, Packet, Part, WireFormat, mark5b, vdif};

/// Has the other side do its part in this directory; what it printed. Nothing if it is not here.
fn other_side(part: &str, directory: &Path) -> Option<String> {
    let script = root().join("tests/tests/recording/wire_formats.py");
    let output = python(&["baseband"])?.arg(script).arg(part).arg(directory).output().expect("it can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).expect("words and numbers"))
}

fn is_mark5b(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|end| end == "m5b")
}

/// What we say of the header at the beginning of these bytes, as the other side says it.
fn said(file: &str, bytes: &[u8]) -> String {
    if is_mark5b(file) {
        let header = mark5b::Mark5bHeader::parse(bytes).expect("it was recorded");
        let mark5b::Mark5bHeader { user, frame, day, second, fraction, checked } = header;
        let checked = u8::from(checked);
        return format!("{} {} {frame} {day} {second} {fraction} {checked}", user >> 16, user >> 15 & 1);
    }
    let header = vdif::VdifHeader::parse(bytes).expect("it was recorded");
    let vdif::VdifHeader { epoch, second, frame, version, length, bits, thread, .. } = header;
    let (edv, rate) = (header.edv().map_or(-1, i16::from), header.frames_per_second().unwrap_or(0));
    let (invalid, channels, complex) =
        (u8::from(header.invalid), 1 << header.channels_log2, u8::from(header.complex));
    let station = Station(header.station);
    format!(
        "{edv} {invalid} {epoch} {second} {frame} {version} {channels} {length} {complex} {bits} {thread} {station} {rate}"
    )
}

#[test]
fn every_header_of_recorded_files_is_read_as_baseband_reads_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let Some(theirs) = other_side("samples", directory.path()) else { return };
    let mut files = BTreeSet::new();
    for line in theirs.lines() {
        let mut words = line.splitn(3, ' ');
        let (Some(name), Some(offset), Some(fields)) = (words.next(), words.next(), words.next()) else {
            panic!("{line}");
        };
        let data = fs::read(directory.path().join(name)).expect("the other side wrote it");
        let bytes = &data[offset.parse().expect("an offset")..];
        assert_eq!(said(name, bytes), fields, "{name} at {offset}");
        assert_eq!(
            again(name, bytes),
            bytes[..again(name, bytes).len()],
            "{name} at {offset} is written as it was"
        );
        files.insert(name);
    }
    assert!(theirs.lines().count() >= 60 && files.len() == 7, "only {files:?}");
}

/// The header at the beginning of these bytes, read and written again.
fn again(file: &str, bytes: &[u8]) -> Vec<u8> {
    let mut again = vec![0; 32];
    if is_mark5b(file) {
        again.truncate(mark5b::Mark5bHeader::SIZE);
        mark5b::Mark5bHeader::parse(bytes).expect("it was read").write(&mut again);
    } else {
        let header = vdif::VdifHeader::parse(bytes).expect("it was read");
        again.truncate(header.size());
        header.write(&mut again);
    }
    again
}

/// The last second of the first half of 2026.
const BEGINS: u64 = 1_782_863_999 - 946_684_800;
/// 1 MB/s: name, packets, frames a second of each thread, stations and threads in the order in which they come.
type Stream = (&'static str, &'static str, u64, &'static [(&'static str, u16)]);
const STREAMS: [Stream; 9] = [
    ("plain.vdif", "format.vdif = { threads = [0], stations = [\"Mc\"] }", 125, &[("Mc", 0)]),
    (
        "threads.vdif",
        "format.vdif = { payload = \"5000 B\", threads = [1, 3, 0, 2], stations = [\"On\"], edv = 3 }",
        50,
        &[("On", 1), ("On", 3), ("On", 0), ("On", 2)],
    ),
    (
        "stations.vdif",
        "serial = \"none\"\nformat.vdif = { payload = \"1000 B\", threads = [5, 4], stations = [\"Mc\", 77], header = \"legacy\" }",
        250,
        &[("Mc", 5), ("Mc", 4), ("77", 5), ("77", 4)],
    ),
    (
        "nict.vdif",
        "format.vdif = { payload = \"2000 B\", threads = [1023], stations = [\"Ka\"], edv = 1, bits = 4, channels = 2 }",
        500,
        &[("Ka", 1023)],
    ),
    ("alma.vdif", "format.vdif = { threads = [0], stations = [\"Aa\"], edv = 2 }", 125, &[("Aa", 0)]),
    (
        "multiplexed.vdif",
        "format.vdif = { threads = [0], stations = [\"Pt\"], edv = 4, channels = 16 }",
        125,
        &[("Pt", 0)],
    ),
    (
        "inside.vdif",
        "format.vdif = { payload = \"10000 B\", threads = [0], stations = [\"Wb\"], edv = 171 }",
        100,
        &[("Wb", 0)],
    ),
    ("halves.m5b", "format.mark5b = {}", 100, &[("", 0)]),
    ("whole.m5b", "serial = \"none\"\nformat.mark5b = { frame = \"whole\" }", 100, &[("", 0)]),
];

fn made(packets: &str) -> Box<dyn WireFormat> {
    let text = format!(
        "name = \"t\"\ntitle = \"t\"\nsource = \"t\"\nshape = [40_000]\npixel = \"uint2\"\nframe_rate = \"100 Hz\"\n[packets]\n{packets}\n"
    );
    let instrument = Instrument::parse(&text, "t.toml").unwrap_or_else(|error| panic!("{error}"));
    let known = Known { begins: BEGINS, serial: 1 << 20, ..Known::of(&instrument) };
    nilometer_wire::of(&instrument.packets.expect("it has some"), &known).expect("it can be made")
}

/// Frames that are lost.
fn is_lost(number: u64) -> bool {
    number % 7 == 3 || (120..135).contains(&number)
}

/// A frame as it is recorded: as it is made, or as it is filled from the one that came last.
fn recorded(format: &mut dyn WireFormat, number: u64, last: &mut Vec<u8>, came: &mut u64) -> Vec<u8> {
    let parts = format.geometry().parts.clone();
    let mut frame = Vec::new();
    for (part, size) in parts.into_iter().enumerate() {
        let (mut prefix, mut body) = (vec![0; format.geometry().prefix], vec![0x5a; size]);
        if is_lost(number) {
            let ahead = (number - *came).cast_signed();
            format.fill(Some(Near { bytes: last, ahead }), part, &mut body);
        } else {
            format.make(number, part, &mut prefix, &mut body);
            let place = format.place(Packet { prefix: &prefix, body: &body });
            assert!(matches!(place, Ok(Part { part: placed, .. }) if placed == part), "{number}: {place:?}");
            if part == 0 {
                (*last, *came) = (body[..64].to_vec(), number);
            }
        }
        frame.extend(body);
    }
    frame
}

#[test]
fn baseband_reads_the_true_time_thread_and_station_of_what_is_made_and_filled() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut expected = String::new();
    let mut streams = STREAMS.to_vec();
    streams.sort_by_key(|stream| stream.0);
    for (name, packets, rate, lanes) in streams {
        let mut format = made(packets);
        let (mut file, mut last, mut came) = (Vec::new(), Vec::new(), 0);
        // Over two seconds, the second of which begins a half-year.
        for number in 0..2 * rate * lanes.len() as u64 + 20 {
            file.extend(recorded(&mut *format, number, &mut last, &mut came));
            let (time, lane) = (number / lanes.len() as u64, number % lanes.len() as u64);
            write!(expected, "{name} {time} {}", u8::from(!is_lost(number))).expect("memory");
            if !is_mark5b(name) {
                let (station, thread) = lanes[lane as usize];
                write!(expected, " {thread} {station}").expect("memory");
            }
            expected.push('\n');
        }
        fs::write(directory.path().join(name), file).expect("room");
        fs::write(directory.path().join(name).with_extension("rate"), rate.to_string()).expect("room");
    }
    let Some(theirs) = other_side("written", directory.path()) else { return };
    for (ours, theirs) in expected.lines().zip(theirs.lines()) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(expected.lines().count(), theirs.lines().count());
}
