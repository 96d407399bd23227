//! A recording that is there, exported into a file of HDF5 and back: h5py reads every frame, and what comes back is what was
//! there, bit for bit.

use std::{
    fs::{self, OpenOptions},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use nilometer_recording::reader::{Recording, Trust};
use nilometer_tests::{Ended, run};

use crate::hdf5::lab::{self, Found, Lab, found, found_in};

/// Records so many raw frames, or in whichever format.
pub(crate) fn recorded(lab: &Lab, format: &[&str], frames: u64) {
    let count = frames.to_string();
    let ended = lab.simulate(format, &["--frames", &count]).end(lab::LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

pub(crate) fn export(from: &[PathBuf], to: &Path, more: &[&str]) -> Ended {
    let mut arguments = vec![PathBuf::from("export")];
    arguments.extend(from.iter().cloned());
    arguments.extend(["--to".into(), to.to_owned()]);
    arguments.extend(more.iter().map(PathBuf::from));
    run(&arguments)
}

/// What comes of it in HDF5, which must go well.
pub(crate) fn exported(lab: &Lab, name: &str, more: &[&str]) -> PathBuf {
    let to = lab.home.path().join(name);
    let ended = export(&lab.lanes(), &to, &[&["--format", "hdf5"], more].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    to
}

/// h5py finds all of so many frames, and those of another type of pixels nowhere.
pub(crate) fn assert_whole(found: &Found, frames: u64, said: &str) {
    found.assert_whole(frames);
    assert_eq!(found.said("type"), format!("\"{said}\""));
    for name in ["arrived", "encoded", "durable"] {
        assert!(found.column(name).iter().all(|moment| *moment == -1), "{name}: nobody saw it");
    }
    let due = found.column("due");
    assert!(due.windows(2).all(|pair| pair[0] < pair[1]), "{due:?}");
}

/// As instruments name them, and `NumPy`.
pub(crate) const PIXELS: [(&str, &str); 10] = [
    ("uint8", "|u1"),
    ("int8", "|i1"),
    ("uint16", "<u2"),
    ("int16", "<i2"),
    ("uint32", "<u4"),
    ("int32", "<i4"),
    ("uint64", "<u8"),
    ("int64", "<i8"),
    ("float32", "<f4"),
    ("float64", "<f8"),
];

#[test]
fn every_type_of_pixels_is_read_by_h5py_and_comes_back() {
    for (pixel, said) in PIXELS {
        let lab = Lab::new("33, 50", pixel, "500 Hz", "data = \"diffraction\"\n");
        recorded(&lab, &["--format", "raw"], 30);
        let file = exported(&lab, "made.h5", &["--compression", "bszstd", "--journal", "--verify"]);
        let back = lab.home.path().join("back.raw");
        let copy = lab.made("copy");
        for name in ["made.h5", "made.0.journal"] {
            fs::rename(lab.home.path().join(name), copy.join(name)).expect("it was left there");
        }
        assert!(!file.exists());
        let ended = export(std::slice::from_ref(&copy), &back, &["--verify"]);
        assert_eq!(ended.code, Some(0), "{pixel}: {ended:?}");
        let truth = lab.truth(30);
        assert!(fs::read(&back).expect("it is there") == fs::read(&truth).expect("it is there"), "{pixel}");
        let verified = run(&["verify".as_ref(), copy.as_os_str()]);
        assert_eq!(verified.code, Some(0), "{pixel}: {verified:?}");
        let Some(found) = found_in(&truth, &copy.join("made.h5")) else { return };
        assert_whole(&found, 30, said);
        assert_eq!(found.said("filters"), "[32008]");
    }
}

#[test]
fn recordings_of_every_way_of_storing_and_of_several_directories_become_one_file() {
    let positions = "recording = { storing = \"positions\", frames_per_file = 16 }\n";
    let cases: [(&str, &[&str], bool); 8] = [
        ("", &["--format", "raw", "--storing", "files"], true),
        ("", &["--format", "raw", "--storing", "growing", "--writers", "2"], true),
        ("", &["--format", "raw", "--storing", "shared"], false),
        ("", &["--format", "raw", "--storing", "scattered"], true),
        (positions, &["--format", "raw"], true),
        ("", &["--format", "hdf5"], false),
        ("", &["--format", "hdf5", "--compression", "bslz4"], true),
        ("", &["--format", "hdf5", "--compression", "zstd", "--checksums"], true),
    ];
    for (more, format, several) in cases {
        let lab = Lab::small(more);
        let (one, two) = (lab.made("one"), lab.made("two"));
        let lab = if several { lab.into(&[&one, &two]) } else { lab };
        recorded(&lab, format, 100);
        let instrument = lab.home.path().join("detector.toml");
        let instrument = instrument.to_str().expect("a plain path");
        let files = ["none", "bslz4"].map(|compression| {
            let more = ["--compression", compression, "--instrument", instrument];
            (exported(&lab, &format!("{compression}.h5"), &more), 0)
        });
        let Some(all) = found(&lab.truth(100), &files) else { return };
        for found in &all {
            found.assert_whole(100);
        }
    }
}

#[test]
fn pictures_in_cbf_become_one_file() {
    let lab = Lab::new("120, 130", "int32", "200 Hz", "data = \"diffraction\"\n");
    recorded(&lab, &["--format", "cbf"], 20);
    let file = exported(&lab, "made.h5", &["--compression", "lz4"]);
    let Some(found) = found_in(&lab.truth(20), &file) else { return };
    assert_whole(&found, 20, "<i4");
}

#[test]
fn chunks_that_are_compressed_alike_go_in_as_they_are() {
    let lab = Lab::small("data = \"diffraction\"\nrecording.frames_per_file = 20\n");
    recorded(&lab, &["--format", "hdf5", "--compression", "bslz4"], 60);
    let file = exported(&lab, "made.h5", &[]);
    let first = lab.lanes()[0].join("scan.00000000.h5");
    let truth = lab.truth(60);
    let (Some(made), Some(there)) = (found_in(&truth, &file), found_in(&truth, &first)) else { return };
    assert_whole(&made, 60, "<u2");
    assert_eq!(made.said("filters"), "[32008]");
    let bytes = |path: &Path, found: &Found, frame: u64| {
        let chunk = found.chunk(frame);
        let mut bytes = vec![0; chunk.1 as usize];
        let file = fs::File::open(path).expect("it is there");
        file.read_exact_at(&mut bytes, chunk.0).expect("it is there");
        bytes
    };
    for frame in 0..20 {
        assert_eq!(bytes(&file, &made, frame), bytes(&first, &there, frame), "frame {frame}");
    }
}

/// Where the frame of a raw recording is.
pub(crate) fn place_of(lab: &Lab, number: u64) -> (PathBuf, u64) {
    let recording = Recording::open(&lab.lanes(), Trust::Acknowledged).expect("it is there");
    let place = recording.index.frames.get(number).expect("it is there");
    (recording.path(place), place.extent.offset)
}

#[test]
fn a_damaged_frame_is_blank_and_named() {
    for checksums in [&["--format", "raw"][..], &["--format", "raw", "--checksums"]] {
        let lab = Lab::small("data = \"diffraction\"\n");
        recorded(&lab, checksums, 50);
        let (path, offset) = place_of(&lab, 7);
        let file = OpenOptions::new().write(true).open(path).expect("it is there");
        file.write_all_at(&[0x5a; 100], offset + 5000).expect("it can be written");
        let to = lab.home.path().join("made.h5");
        let ended = export(&lab.lanes(), &to, &["--format", "hdf5", "--compression", "bslz4"]);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stdout.contains("damaged     frame 7: "), "{ended:?}");
        assert!(ended.stderr.contains("of which frame 7 is the first"), "{ended:?}");
        let Some(found) = found_in(&lab.truth(50), &to) else { return };
        assert_eq!((found.frames("blank"), found.frames("right").len()), (vec![7], 49));
        let flags = found.column("flag");
        assert!(flags.iter().zip(0..).all(|(flag, frame)| *flag == i64::from(frame == 7)), "{flags:?}");
        assert_eq!(found.total("frames_blank"), Some(1));
    }
}

#[test]
fn a_directory_that_is_lost_leaves_blank_frames() {
    let lab = Lab::small("data = \"diffraction\"\n");
    let (one, two) = (lab.made("one"), lab.made("two"));
    let lab = lab.into(&[&one, &two]);
    recorded(&lab, &["--format", "raw", "--storing", "files"], 60);
    let recording = Recording::open(&lab.lanes(), Trust::Acknowledged).expect("it is there");
    let there: Vec<u64> = recording
        .index
        .frames
        .iter()
        .filter(|(_, place)| place.lane == 0)
        .map(|(number, _)| number)
        .collect();
    let to = lab.home.path().join("made.h5");
    let ended = export(&lab.lanes()[..1], &to, &["--format", "hdf5"]);
    assert!(ended.code == Some(1) && ended.stdout.contains("are not here and are blank"), "{ended:?}");
    let Some(found) = found_in(&lab.truth(60), &to) else { return };
    assert_eq!(found.frames("right"), there);
    assert_eq!(found.frames("blank").len(), 60 - there.len());
    let again = lab.home.path().join("again.h5");
    let ended = export(&lab.lanes()[..1], &again, &["--format", "hdf5", "--verify"]);
    assert_eq!(ended.code, Some(5), "it is not all of the recording: {ended:?}");
}

#[test]
fn what_can_not_be_is_refused_before_anything_is_made() {
    let lab = Lab::small("data = \"diffraction\"\n");
    recorded(&lab, &["--format", "raw"], 20);
    let there = lab.home.path().join("there.h5");
    fs::write(&there, "mine").expect("space");
    let to = lab.home.path().join("new.h5");
    let plain = lab.home.path().join("new.raw");
    let refused: [(&Path, &[&str], &str); 5] = [
        (&there, &["--format", "hdf5"], "exists: name a new file"),
        (&to, &["--format", "hdf5", "--compression", "gzip"], "bslz4"),
        (
            &to,
            &["--format", "hdf5", "--instrument", "eiger2-16m"],
            "--instrument eiger2-16m: its frames have",
        ),
        (&plain, &["--compression", "bslz4"], "--compression: only for a file of HDF5"),
        (&plain, &["--format", "hdf5", "--journal"], "--journal: it names files with the suffix .h5"),
    ];
    for (to, more, why) in refused {
        let ended = export(&lab.lanes(), to, more);
        assert!(ended.code == Some(2) && ended.stderr.contains(why), "{why}: {ended:?}");
    }
    let noise = Lab::small("");
    recorded(&noise, &["--format", "raw"], 20);
    let ended = export(&noise.lanes(), &to, &["--format", "hdf5"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("--instrument NAME"), "{ended:?}");
    let packed = Lab::new("4000", "uint2", "500 Hz", "data = \"vlbi\"\n");
    recorded(&packed, &["--format", "raw"], 20);
    let ended = export(&packed.lanes(), &to, &["--format", "hdf5"]);
    assert!(ended.code == Some(2) && ended.stderr.contains("pixels of uint2 are packed"), "{ended:?}");
    assert_eq!(fs::read(&there).expect("it is there"), b"mine");
    let names: Vec<_> = fs::read_dir(lab.home.path()).expect("it is there").flatten().collect();
    assert!(!names.iter().any(|entry| entry.file_name().to_string_lossy().contains("new")), "{names:?}");
}

#[test]
fn frames_that_are_cut_into_chunks_stay_so_whatever_they_are_compressed_by() {
    for compression in ["none", "bslz4"] {
        let lab = Lab::new("33, 50", "uint16", "500 Hz", "data = \"diffraction\"\n");
        let format = ["--format", "hdf5", "--chunk", "20x33", "--compression", compression];
        recorded(&lab, &format, 40);
        let wishes = ["none", "bslz4", "zstd"];
        let files = wishes.map(|wished| {
            (exported(&lab, &format!("{wished}.h5"), &["--compression", wished, "--verify"]), 0)
        });
        let Some(all) = found(&lab.truth(40), &files) else { return };
        for (found, wished) in all.iter().zip(wishes) {
            found.assert_whole(40);
            assert_eq!(found.said("chunk"), "[1,20,33]", "{compression} {wished}");
        }
    }
}
