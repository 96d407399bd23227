//! Files of HDF5 without a journal: those that an export made with several frames in a chunk, and those that h5py wrote. Every chunk
//! is read; frames that are missing or can't be read are named; and the frames come back, bit for bit.

use std::{
    fs,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use nilometer_tests::{Ended, python, root, run};

use crate::hdf5::lab::Lab;

fn verify(file: &Path, more: &[&str]) -> Ended {
    let arguments = [PathBuf::from("verify"), file.to_owned()].into_iter();
    run(&arguments.chain(more.iter().map(PathBuf::from)).collect::<Vec<_>>())
}

fn export(file: &Path, to: &Path, more: &[&str]) -> Ended {
    let arguments = ["export".into(), file.to_owned(), "--to".into(), to.to_owned()].into_iter();
    run(&arguments.chain(more.iter().map(PathBuf::from)).collect::<Vec<_>>())
}

/// A file of 40 frames in chunks of seven, that an export made.
fn exported(lab: &Lab, compression: &str) -> PathBuf {
    let to = lab.home.path().join("stacks.h5");
    let more = ["--format", "hdf5", "--chunk", "7x32x40", "--compression", compression];
    let ended = export(&lab.lanes()[0], &to, &more);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    to
}

fn lab() -> Lab {
    let lab = Lab::small("data = \"diffraction\"\n");
    lab.record("bslz4", &["--frames", "40"]);
    lab
}

#[test]
fn a_file_with_several_frames_a_chunk_is_read_whole_and_back() {
    let lab = lab();
    let truth = fs::read(lab.truth(40)).expect("it was written");
    for compression in ["none", "bslz4", "bszstd", "lz4", "zstd"] {
        let file = exported(&lab, compression);
        let verified = verify(&file, &[]);
        assert_eq!(verified.code, Some(0), "{compression}: {verified:?}");
        for line in [
            "dataset     /entry/data/data: 40 x 64 x 96 of uint16\n",
            "chunks      36 of 36, each 7 x 32 x 40, ",
            "readable    40 of 40 frames of ",
            "without a journal there are no checksums to compare them with\n",
            "missing     none\n",
        ] {
            assert!(verified.stdout.contains(line), "{compression}: `{line}`: {verified:?}");
        }
        let back = lab.home.path().join("back.raw");
        let written = export(&file, &back, &[]);
        assert_eq!(written.code, Some(0), "{compression}: {written:?}");
        assert!(
            fs::read(&back).expect("it was written") == truth,
            "{compression}: every frame is what it was"
        );
        fs::remove_file(&back).expect("it is there");
        fs::remove_file(&file).expect("it is there");
    }
}

#[test]
fn chunks_that_are_damaged_or_missing_are_named_with_their_frames() {
    let lab = lab();
    let file = exported(&lab, "bslz4");
    let Some(chunk) = chunk_of(&file, "14,32,40") else { return };
    let opened = fs::OpenOptions::new().write(true).open(&file).expect("it is there");
    opened.write_all_at(&[0xff; 64], chunk).expect("space");
    let verified = verify(&file, &[]);
    assert_eq!(verified.code, Some(1), "{verified:?}");
    for line in [
        "readable    33 of 40 frames of ",
        "damaged     chunk at (14, 32, 40), frame 14 on: the chunk ",
        "damaged     7 frames: 14-20\n",
        "missing     none\n",
    ] {
        assert!(verified.stdout.contains(line), "`{line}`: {verified:?}");
    }
    assert_eq!(verified.stderr, "nilometer: the file is not whole: 7 frames are damaged\n");
    let back = lab.home.path().join("back.raw");
    let written = export(&file, &back, &[]);
    assert!(written.code == Some(1) && written.stderr.contains("7 frames are damaged"), "{written:?}");
    let (frame, truth) = (64 * 96 * 2, fs::read(lab.truth(40)).expect("it was written"));
    let back = fs::read(&back).expect("it was written");
    assert_eq!(back.len(), truth.len());
    let same = |number: usize| back[number * frame..][..frame] == truth[number * frame..][..frame];
    assert!((0..40).all(|number| same(number) != (14..21).contains(&number)));
}

#[test]
fn frames_that_are_blank_in_a_chunk_are_missing_as_the_file_says() {
    let lab = lab();
    let Some(chunk) = chunk_of(&lab.file(), "7,0,0") else { return };
    let opened = fs::OpenOptions::new().write(true).open(lab.file()).expect("it is there");
    opened.write_all_at(&[0xff; 64], chunk).expect("space");
    let to = lab.home.path().join("stacks.h5");
    let made = export(&lab.lanes()[0], &to, &["--format", "hdf5", "--chunk", "7x32x40"]);
    assert_eq!(made.code, Some(1), "{made:?}");
    let verified = verify(&to, &[]);
    assert_eq!(verified.code, Some(1), "{verified:?}");
    for line in ["chunks      36 of 36, ", "readable    39 of 40 frames of ", "missing     1 frames: 7\n"] {
        assert!(verified.stdout.contains(line), "`{line}`: {verified:?}");
    }
}

/// Where a chunk begins in a file, by h5py; nothing without it.
fn chunk_of(file: &Path, begin: &str) -> Option<u64> {
    let script = "import sys, h5py\nbegin = tuple(map(int, sys.argv[2].split(',')))\n\
                  print(h5py.File(sys.argv[1])['entry/data/data'].id.get_chunk_info_by_coord(begin).byte_offset)";
    let mut python = python(&["h5py", "hdf5plugin"])?;
    let output = python.args(["-c", script]).arg(file).arg(begin).output().expect("it can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("a number");
    Some(text.trim().parse().expect("a number"))
}

#[test]
fn files_that_h5py_wrote_are_read_whole_and_back() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let Some(mut python) = python(&["h5py", "hdf5plugin", "numpy"]) else { return };
    let script = root().join("tests/tests/recording/hdf5/written.py");
    let output = python.arg(script).arg(home.path()).output().expect("it can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let names = String::from_utf8(output.stdout).expect("names");
    assert_eq!(names.lines().count(), 11, "{names}");
    for name in names.lines() {
        let file = home.path().join(format!("{name}.h5"));
        let verified = verify(&file, &[]);
        assert!(
            verified.code == Some(0) && verified.stdout.contains("missing     none\n"),
            "{name}: {verified:?}"
        );
        let back = home.path().join("back.raw");
        let written = export(&file, &back, &["--dataset", "images"]);
        assert_eq!(written.code, Some(0), "{name}: {written:?}");
        let truth = fs::read(home.path().join(format!("{name}.raw"))).expect("it was written");
        assert!(fs::read(&back).expect("it was written") == truth, "{name}: every frame is what it was");
        fs::remove_file(&back).expect("it is there");
    }
}

#[test]
fn what_can_not_be_meant_is_refused_with_the_choices() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| home.path().join(name);
    let Some(mut python) = python(&["h5py", "hdf5plugin", "numpy"]) else { return };
    let script = "import sys, h5py, numpy as np\nwith h5py.File(sys.argv[1], 'w') as f:\n\
                  \x20   f['a/one'] = np.zeros((3, 4, 5), 'u2'); f['b/two'] = np.ones((3, 4, 5), 'u2')\n\
                  \x20   f['line'] = np.zeros(7); f.create_dataset('holes', (6, 4), 'i2', chunks=(2, 4))[2:4] = 1\n\
                  \x20   f['again'] = f['a/one']; f['away'] = h5py.ExternalLink('other.h5', '/x')";
    let output = python.args(["-c", script]).arg(at("many.h5")).output().expect("it can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let many = verify(&at("many.h5"), &[]);
    let choices = "several datasets may have the frames: add --dataset with one of /again, /b/two\n";
    assert!(many.code == Some(2) && many.stderr.ends_with(choices), "{many:?}");
    let holes = verify(&at("many.h5"), &["--dataset", "/holes"]);
    assert!(holes.code == Some(1) && holes.stdout.contains("missing     4 frames: 0-1, 4-5\n"), "{holes:?}");
    assert!(holes.stdout.contains("chunks      1 of 3, each 2 x 4, no filter\n"), "{holes:?}");
    for (dataset, why) in
        [("/line", "no frames"), ("/none", "can't find /none"), ("/away", "leads out of the file")]
    {
        let refused = verify(&at("many.h5"), &["--dataset", dataset]);
        assert!(refused.code == Some(2) && refused.stderr.contains(why), "{dataset}: {refused:?}");
    }
    fs::write(at("text.h5"), "no HDF5").expect("space");
    assert_eq!(verify(&at("text.h5"), &[]).code, Some(2));
    std::os::unix::fs::symlink(at("many.h5"), at("link.h5")).expect("space");
    assert_eq!(verify(&at("link.h5"), &[]).code, Some(2), "links are not followed");
    let durable = verify(&at("many.h5"), &["--durable"]);
    assert!(durable.code == Some(2) && durable.stderr.contains("--durable"), "{durable:?}");
    for more in [&["--rate", "0 B/s"][..], &["--compression", "lz4"], &["--chunk", "2x2"]] {
        let refused = export(&at("many.h5"), &at("out.raw"), more);
        assert!(refused.code == Some(2) && refused.stderr.contains(more[0]), "{refused:?}");
    }
    let directory = verify(home.path(), &["--dataset", "/x"]);
    assert!(directory.code == Some(2) && directory.stderr.contains("--dataset"), "{directory:?}");
    assert!(!at("out.raw").exists());
}
