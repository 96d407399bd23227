//! What is in frames and into which files they go: simulated, verified, and read by others.

use std::os::unix::fs::FileExt;

use super::*;

#[test]
fn frames_of_a_pool_are_verified_from_the_seed_and_the_user_s_own_by_checksums() {
    let kept = tempfile::tempdir().expect("a temporary directory");
    let own = kept.path().join("own.raw");
    fs::write(&own, vec![7; 2 << 20]).expect("space");
    let pool = "[data]\nkind = \"tomography\"\ncompressibility = 2.0\ndistinct = 3".to_owned();
    let files = format!("data = \"files:{}\"", own.display());
    for (case, (data, against)) in
        [(pool, "the frames of the simulated instrument"), (files, "the checksums of the journal")]
            .iter()
            .enumerate()
    {
        let to = kept.path().join(case.to_string());
        fs::create_dir(&to).expect("space");
        let recording = Recording::new(&[&to]);
        fs::write(recording.directory.path().join("camera.toml"), format!("{CAMERA}{data}\n"))
            .expect("space");
        let ended = recording.start(&["--frames", "10", "--rate", "200 Hz"]).end(LIMIT);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let verified = recording.verify(&[]);
        assert_whole(&verified, 10);
        assert!(verified.stdout.contains(&format!("compared with {against}")), "{verified:?}");
        turn_bits(&recording.lanes()[0].join("scan.0.00000000.raw"), (4 << 21) + 12_345);
        let verified = recording.verify(&[]);
        assert_eq!((verified.code, number(&verified, "right")), (Some(1), 9), "{verified:?}");
        assert!(verified.stdout.contains("damaged     frame 4 "), "{verified:?}");
    }
}

#[test]
fn one_file_grows_or_is_shared_and_is_verified_as_many_files_are() {
    for (storing, files) in [("growing", &["scan.0.raw", "scan.1.raw"][..]), ("shared", &["scan.raw"])] {
        let kept = tempfile::tempdir().expect("a temporary directory");
        let recording = Recording::new(&[kept.path()]);
        fs::write(recording.directory.path().join("camera.toml"), CAMERA.replace("50 Hz", "200 Hz"))
            .expect("space");
        let ended = recording.start(&["--frames", "50", "--storing", storing, "--writers", "2"]).end(LIMIT);
        assert_eq!((ended.code, number(&ended, "stored")), (Some(0), 50), "{ended:?}");
        assert!(ended.stdout.contains("(writer 2): "), "{ended:?}");
        assert_whole(&recording.verify(&["--durable"]), 50);
        let names = fs::read_dir(&recording.lanes()[0])
            .expect("listed")
            .map(|entry| entry.expect("listed").file_name());
        let raw = names.filter(|name| name.to_string_lossy().ends_with(".raw")).count();
        assert_eq!(raw, if storing == "shared" { 1 } else { 2 });
        // Of two writers one may get hardly any frames on a busy machine.
        let length = |path: &PathBuf| fs::metadata(path).expect("it is there").len();
        let paths = files.iter().map(|file| recording.lanes()[0].join(file));
        let path = paths.max_by_key(length).expect("one at least");
        assert!(length(&path).is_multiple_of(1 << 21), "whole frames");
        turn_bits(&path, (2 << 21) + 12_345);
        let verified = recording.verify(&[]);
        assert_eq!((verified.code, number(&verified, "right")), (Some(1), 49), "{verified:?}");
        assert!(
            verified
                .stdout
                .contains(&format!("from byte 12288 on: it begins at byte 4194304 of {}", path.display())),
            "{verified:?}"
        );
    }
}

/// Seen: each frame of 1 KiB was a write of a page by itself, and took four times its space.
#[test]
fn a_scan_has_a_file_for_each_position() {
    let (one, other) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let recording = Recording::new(&[one.path(), other.path()]);
    let camera = CAMERA
        .replace("recording.frames_per_file = 32", "recording.frames_per_file = 8")
        .replace("50 Hz", "200 Hz");
    fs::write(recording.directory.path().join("camera.toml"), camera).expect("space");
    let ended = recording.start(&["--frames", "50", "--storing", "positions"]).end(LIMIT);
    assert_eq!((ended.code, number(&ended, "stored")), (Some(0), 50), "{ended:?}");
    assert_whole(&recording.verify(&[]), 50);
    for position in 0..7_u64 {
        let name = format!("scan.{position:08}.raw");
        let files = recording.lanes().into_iter().map(|lane| lane.join(&name));
        let there: Vec<_> = files.filter_map(|path| fs::metadata(path).ok()).collect();
        let frames = if position == 6 { 2 } else { 8 };
        assert!(there.len() == 1 && there[0].len() == frames << 21, "{name}: {there:?}");
    }
    let all = CAMERA.replace("recording.frames_per_file = 32\n", "");
    fs::write(recording.directory.path().join("camera.toml"), all).expect("space");
    let refused = recording.start(&["--frames", "50", "--storing", "positions"]).end(LIMIT);
    assert!(refused.code == Some(2) && refused.stderr.contains("frames_per_file"), "{refused:?}");
}

#[test]
fn small_frames_take_no_more_space_than_they_have_bytes() {
    for storing in ["files", "growing", "shared", "scattered"] {
        let kept = tempfile::tempdir().expect("a temporary directory");
        let recording = Recording::new(&[kept.path()]);
        let camera = CAMERA.replace("1024, 1024", "512").replace("50 Hz", "10 kHz");
        let camera = camera.replace("recording.frames_per_file = 32", "recording.frames_per_file = 900");
        fs::write(recording.directory.path().join("camera.toml"), camera).expect("space");
        let ended =
            recording.start(&["--frames", "2000", "--storing", storing, "--buffer", "64 MiB"]).end(LIMIT);
        assert_eq!((ended.code, number(&ended, "stored")), (Some(0), 2000), "{storing}: {ended:?}");
        assert_whole(&recording.verify(&[]), 2000);
        let entries =
            fs::read_dir(&recording.lanes()[0]).expect("listed").map(|entry| entry.expect("listed"));
        let frames = entries.filter(|entry| !entry.file_name().to_string_lossy().ends_with(".journal"));
        let bytes: u64 = frames.map(|entry| entry.metadata().expect("it is there").len()).sum();
        assert_eq!(bytes, 2000 << 10, "{storing}");
    }
}

#[test]
fn frames_in_cbf_are_verified_and_read_by_others() {
    let kept = tempfile::tempdir().expect("a temporary directory");
    let recording = Recording::new(&[kept.path()]);
    let data = "[data]\nkind = \"diffraction\"\n[cbf]\ndetector_distance = \"200 mm\"\nwavelength = \"1.0332 A\"\n\
                exposure_time = \"18 ms\"\n";
    let camera = CAMERA.replace("1024, 1024", "407, 487").replace("uint16", "int32");
    let camera = camera.replace("recording.frames_per_file = 32", "recording.format = \"cbf\"") + data;
    fs::write(recording.directory.path().join("camera.toml"), camera).expect("space");
    let ended = recording.start(&["--frames", "20", "--writers", "2"]).end(LIMIT);
    assert_eq!((ended.code, number(&ended, "stored")), (Some(0), 20), "{ended:?}");
    assert!(ended.stdout.contains(" of CBF files, ") && ended.stdout.contains("times smaller"), "{ended:?}");
    assert_whole(&recording.verify(&[]), 20);
    fabio_reads(&recording.lanes()[0]);
    let scan = run(&[Path::new("scan"), &recording.lanes()[0]]);
    assert!(scan.code == Some(0) && scan.stdout.contains("recording   scan, cbf\n"), "{scan:?}");
    let file = recording.lanes()[0].join("scan_00001.cbf");
    turn_bits(&file, 50_000);
    let verified = recording.verify(&[]);
    assert_eq!((verified.code, number(&verified, "right")), (Some(1), 19), "{verified:?}");
    assert!(verified.stdout.contains("can't be read: is damaged: its MD5 is another"), "{verified:?}");
}

/// Every frame of a recording in one directory is what fabio reads from its file, if fabio is here.
fn fabio_reads(lane: &Path) {
    let recording =
        reader::Recording::open(&[lane.to_owned()], reader::Trust::Acknowledged).expect("it is there");
    let (beside, mut frames) = (tempfile::tempdir().expect("a temporary directory"), recording.frames());
    for (number, place) in recording.index.frames.iter() {
        let path = |suffix: &str| beside.path().join(format!("{number:05}.{suffix}"));
        fs::write(path("raw"), frames.get(number).expect("readable").expect("recorded")).expect("space");
        fs::copy(recording.path(place), path("ours.cbf")).expect("space");
    }
    let script = root().join("tests/tests/recording/codec.py");
    let Some(mut python) = python(&["fabio"]) else { return };
    let output = python.arg(script).arg("cbf").arg(beside.path()).output().expect("it can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = String::from_utf8(output.stdout).expect("names");
    let said = ", 407, 487, Detector: PILATUS simulated, Pixel_size 0.000172 m x 0.000172 m, Exposure_time 0.018 s, \
                Exposure_period 0.02 s, Count_cutoff 1048575 counts, Wavelength 1.0332 A, Detector_distance 0.2 m\n";
    assert_eq!(read.matches(said).count(), recording.index.frames.len(), "{read}");
}

#[test]
fn after_a_kill_every_acknowledged_frame_of_a_shared_file_is_there() {
    let kept = tempfile::tempdir().expect("a temporary directory");
    let recording = Recording::new(&[kept.path()]);
    let running = recording.start(&["--duration", "1 min", "--storing", "shared", "--writers", "3"]);
    let file = recording.lanes()[0].join("scan.raw");
    await_some("twenty frames", || (fs::metadata(&file).ok()?.len() > 20 << 21).then_some(()));
    kill_process(running.worker(), Signal::KILL).expect("it runs");
    assert_eq!(running.end(LIMIT).code, Some(1));
    let verified = recording.verify(&[]);
    assert!(!verified.stdout.contains("damaged"), "{verified:?}");
    let (expected, right) = (number(&verified, "expected"), number(&verified, "right"));
    assert_eq!(right + missing(&verified), expected, "{verified:?}");
    assert!(right > 10 && missing(&verified) < 16, "{verified:?}");
}

/// Damages a byte of a file.
pub(crate) fn turn_bits(file: &Path, at: u64) {
    let file = fs::OpenOptions::new().read(true).write(true).open(file).expect("it is there");
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("it is there");
    file.write_all_at(&[byte[0] ^ 2], at).expect("it can be written");
}

#[test]
fn every_instrument_of_the_catalogue_simulates_and_verifies() {
    let kept = tempfile::tempdir().expect("a temporary directory");
    let to = kept.path().to_str().expect("plain names");
    let list = run(&["instrument", "list"]);
    let names: Vec<_> =
        list.stdout.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() >= 31, "{list:?}");
    for name in names {
        let arguments = ["simulate", name, "--to", to, "--name", name, "--reserve", "0 B", "--rate", "20 Hz"];
        let simulated = |buffer| {
            run(&[&arguments[..], &["--streams", "1", "--frames", "2", "--buffer", buffer]].concat())
        };
        // Two frames of most instruments need little: a larger buffer takes processor time.
        let small = simulated("64 MiB");
        let ended = if small.code == Some(2) { simulated("300 MiB") } else { small };
        assert_eq!((ended.code, number(&ended, "stored")), (Some(0), 2), "{name}: {ended:?}");
        let path = kept.path().join(name);
        assert_whole(&run(&[Path::new("verify"), &path]), 2);
        fs::remove_dir_all(path).expect("it is ours");
    }
}
