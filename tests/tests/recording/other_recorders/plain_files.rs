//! Plain files of VDIF and Mark5B.

use std::fs::{self, File};

use super::{FRAME, Station, about, assert_read_by_all, json, over_tcp, text};

#[test]
fn a_file_of_frames_is_read_by_all_commands() {
    let station = Station::new();
    for (frames, more, header) in [
        ("1000", &["1"][..], "EDV 0"),
        ("600", &["4"], "threads 0 1 2 3"),
        ("500", &["1", "legacy"], "legacy header"),
    ] {
        let (path, bytes) = station.vdif(frames, more);
        let scan = about("scan", &[&path], &[]);
        assert!(scan.code == Some(0) && scan.stdout.contains(header), "{scan:?}");
        assert!(scan.stdout.contains("first       2026-01-01T00:16:40"), "{scan:?}");
        assert!(scan.stdout.contains("50 frames/s"), "{scan:?}");
        assert!(scan.stdout.contains("missing     not known without a journal"), "{scan:?}");
        assert_read_by_all(&[path], "all.vdif", &bytes, &station);
    }
    station.write(&["mark5b", "all.m5b", "200"]);
    let path = station.path("all.m5b");
    let bytes = fs::read(&path).expect("it was written");
    assert_read_by_all(&[path], "all.m5b", &bytes, &station);
}

#[test]
fn the_name_of_a_file_does_not_say_what_it_is() {
    let station = Station::new();
    let (path, bytes) = station.vdif("300", &[]);
    let other = station.path("data.m5b");
    fs::rename(path, &other).expect("one file system");
    let link = station.path("link");
    std::os::unix::fs::symlink(&other, &link).expect("space");
    for path in [other, link] {
        assert_eq!(json("scan", std::slice::from_ref(&path), &[])["format"], "vdif");
        let copy = station.path("copy");
        assert_eq!(about("export", &[path], &["--to", text(&copy)]).code, Some(0));
        assert!(fs::read(&copy).expect("it was written") == bytes);
        fs::remove_file(copy).expect("it is ours");
    }
}

#[test]
fn a_part_is_taken_by_time_and_by_number() {
    let station = Station::new();
    let (path, bytes) = station.vdif("500", &["2"]);
    // 100 frames a second.
    let by_time = ["--begin", "2026-01-01T00:16:42", "--end", "+3s"];
    let by_number = ["--begin", "200", "--end", "300"];
    for limits in [by_time, by_number] {
        let (replayed, sent) = over_tcp(std::slice::from_ref(&path), &limits);
        assert_eq!(replayed.code, Some(0), "{replayed:?}");
        assert!(sent == bytes[200 * FRAME..300 * FRAME], "{replayed:?}");
    }
    let outside =
        about("export", &[&path], &["--to", text(&station.path("no")), "--begin", "2027-01-01T00:00:00"]);
    assert!(
        outside.code == Some(2) && outside.stderr.contains("lies outside all; it has frames 0 to 499"),
        "{outside:?}"
    );
}

#[test]
fn everything_that_is_no_frame_is_counted_with_its_place() {
    let station = Station::new();
    let (path, bytes) = station.vdif("100", &[]);
    let frame = |number: usize| &bytes[number * FRAME..][..FRAME];
    let (other, zeroes, junk) =
        ([&frame(10)[..8], &[30, 0, 0, 0x20], &frame(10)[12..240]].concat(), [0; 3 * FRAME], [0x55; 77]);
    let fill = 0x1122_3344_u32.to_le_bytes().repeat(FRAME / 4);
    let mut damaged = bytes[..10 * FRAME].to_vec();
    damaged.extend(&other);
    damaged.extend(&bytes[10 * FRAME..20 * FRAME]);
    damaged.extend(zeroes);
    damaged.extend(&bytes[23 * FRAME..40 * FRAME]);
    damaged.extend(junk);
    damaged.extend(&bytes[40 * FRAME..55 * FRAME]);
    damaged.extend(&fill);
    damaged.extend(&bytes[56 * FRAME..60 * FRAME]);
    // Three frames are gone.
    damaged.extend(&bytes[63 * FRAME..70 * FRAME]);
    damaged.extend(&frame(70)[..500]);
    fs::write(&path, &damaged).expect("space");
    let odd = |frames: usize| frames * FRAME + 240;
    let verified = about("verify", &[&path], &[]);
    assert_eq!(verified.code, Some(1), "{verified:?}");
    for line in [
        format!("other size  a frame of 240 B at byte {}", 10 * FRAME),
        format!("no frame    3.1 kB from byte {} on, all of them zero", odd(20)),
        format!("no frame    77 B from byte {} on", odd(40)),
        format!(
            "fill        1 frames replace missing ones, without a time: the first at byte {}",
            odd(55) + 77
        ),
        "gaps by numbering: 1 times time does not go on".into(),
        format!("cut         the last frame has 500 B of 1.03 kB: it begins at byte {}", odd(67) + 77),
    ] {
        assert!(verified.stdout.contains(&line), "{line}: {verified:?}");
    }
    assert!(verified.stderr.contains("1 times time does not go on; 1 frames replace"), "{verified:?}");
    let scanned = json("scan", std::slice::from_ref(&path), &["--all"]);
    assert_eq!(scanned["walk"]["first_strange"][0]["bytes"], 3 * FRAME);
    // Its bytes are still those of the file.
    let copy = station.path("copy");
    let exported = about("export", &[&path], &["--to", text(&copy)]);
    assert!(exported.code == Some(0) && exported.stdout.contains("fault       "), "{exported:?}");
    assert!(fs::read(copy).expect("it was written") == damaged);
    let replayed = about("replay", &[&path], &["--to", "udp://127.0.0.1:9"]);
    assert!(
        replayed.code == Some(2) && replayed.stderr.contains("not all of its frames have one size"),
        "{replayed:?}"
    );
}

#[test]
fn a_file_that_begins_in_a_frame_begins_with_the_next_one() {
    let station = Station::new();
    for (name, size) in [("all.vdif", FRAME), ("all.m5b", 10_016)] {
        station.write(&[if size == FRAME { "vdif" } else { "mark5b" }, name, "60"]);
        let path = station.path(name);
        let bytes = fs::read(&path).expect("it was written");
        fs::write(&path, &bytes[700..]).expect("space");
        let scan = about("scan", &[&path], &["--all"]);
        let note = format!("note        the first frame begins at byte {}", size - 700);
        assert!(scan.code == Some(0) && scan.stdout.contains(&note), "{scan:?}");
        let copy = station.path("copy");
        assert_eq!(about("export", &[&path], &["--to", text(&copy)]).code, Some(0));
        assert!(fs::read(&copy).expect("it was written") == bytes[size..]);
        fs::remove_file(copy).expect("it is ours");
    }
}

#[test]
fn a_huge_file_is_opened_by_a_few_headers() {
    let station = Station::new();
    let (path, bytes) = station.vdif("100", &[]);
    // Ten terabytes, of which nothing but the beginning takes space.
    let length = 10_000_000_000_000 / FRAME as u64 * FRAME as u64;
    File::options().write(true).open(&path).and_then(|file| file.set_len(length)).expect("a sparse file");
    let scanned = json("scan", std::slice::from_ref(&path), &[]);
    assert_eq!(scanned["bytes"], length);
    assert!(
        scanned["without_journal"]["faults"][0]
            .as_str()
            .is_some_and(|fault| fault.contains("no frame begins at"))
    );
    let copy = station.path("copy");
    assert_eq!(about("export", &[&path], &["--to", text(&copy), "--end", "100"]).code, Some(0));
    assert!(fs::read(copy).expect("it was written") == bytes);
}

/// The pixels of an exported detector: in such small counts two headers of VDIF seem to follow each other.
#[test]
fn pixels_of_a_detector_are_no_damaged_frames() {
    let station = Station::new();
    let recorded = station.path("recorded");
    fs::create_dir(&recorded).expect("space");
    let simulated = about("simulate", &["pilatus-2m"], &["--frames", "3", "--to", text(&recorded)]);
    assert_eq!(simulated.code, Some(0), "{simulated:?}");
    let inside =
        fs::read_dir(&recorded).and_then(Iterator::collect::<Result<Vec<_>, _>>).expect("it is there");
    let [scan] = inside.as_slice() else { panic!("one recording: {inside:?}") };
    let plain = station.path("plain.raw");
    let exported = about("export", &[&scan.path()], &["--to", text(&plain), "--format", "plain"]);
    assert_eq!(exported.code, Some(0), "{exported:?}");
    for command in ["verify", "scan"] {
        let ended = about(command, &[&plain], &[]);
        assert_eq!(ended.code, Some(2), "{command}: {ended:?}");
        assert!(ended.stderr.contains("plain.raw"), "{command}: {ended:?}");
    }
    let verified = about("verify", &[&plain], &[]);
    assert!(verified.stderr.contains("no format that Nilometer knows"), "{verified:?}");
    assert!(verified.stderr.contains("--mode VDIF_8000-4096-16-2"), "{verified:?}");
}

#[test]
fn a_path_that_is_not_there_is_named_before_its_options() {
    let station = Station::new();
    let absent = station.path("absent");
    let [copy, at] = ["copy", "at"].map(|name| station.path(name));
    fs::create_dir(&at).expect("space");
    let reads = ["--port", "1", "--mode", "CODIF_8000-512-16-2"];
    for (command, more) in [
        ("scan", &reads[..2]),
        ("scan", &reads[2..]),
        ("verify", &["--port", "1", "--dataset", "/data"]),
        ("verify", &reads[2..]),
        ("export", &["--port", "1", "--fill-missing", "--to", text(&copy)]),
        ("replay", &["--mode", "CODIF_8000-512-16-2", "--to", "udp://127.0.0.1:9"]),
        ("mount", &["--begin", "+1s", "--at", text(&at)]),
    ] {
        let ended = about(command, &[&absent], more);
        assert_eq!(ended.code, Some(2), "{command}: {ended:?}");
        let why = format!("{}: No such file or directory", absent.display());
        assert!(ended.stderr.contains(&why) && !ended.stderr.contains("leave it"), "{command}: {ended:?}");
    }
}

#[test]
fn a_file_that_nobody_knows_is_refused_with_the_choices() {
    let station = Station::new();
    let path = station.path("notes.txt");
    fs::write(&path, "no frames, ".repeat(1000)).expect("space");
    let copy = station.path("copy");
    let at = station.path("at");
    fs::create_dir(&at).expect("space");
    for (command, more) in [
        ("scan", &[][..]),
        ("replay", &["--to", "udp://127.0.0.1:9"]),
        ("mount", &["--at", text(&at)]),
        ("verify", &[]),
        ("export", &["--to", text(&copy)]),
    ] {
        let ended = about(command, &[&path], more);
        assert_eq!(ended.code, Some(2), "{command}: {ended:?}");
        assert!(ended.stderr.contains("notes.txt"), "{command}: {ended:?}");
    }
    assert!(!copy.exists());
    let (good, _) = station.vdif("10", &[]);
    let durable = about("verify", &[&good], &["--durable"]);
    assert!(durable.code == Some(2) && durable.stderr.contains("--durable"), "{durable:?}");
    let form = about("export", &[&good], &["--to", text(&copy), "--format", "hdf5"]);
    assert!(form.code == Some(2) && form.stderr.contains("--format plain"), "{form:?}");
    let two = about("export", &[&good, &station.path("notes.txt")], &["--to", text(&copy)]);
    assert!(two.code == Some(2) && two.stderr.contains("different recordings"), "{two:?}");
}
