//! Files of HDF5 without a journal made others, with other chunks and compressions: frames are what they were, and so is all else.

use std::{
    fs,
    path::{Path, PathBuf},
};

use nilometer_tests::{Ended, python, root, run};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::hdf5::lab::Lab;

fn rewrite(file: &Path, to: &Path, more: &[&str]) -> Ended {
    let arguments = ["export".into(), file.to_owned(), "--to".into(), to.to_owned()].into_iter();
    let more = ["--format", "hdf5"].iter().chain(more).map(PathBuf::from);
    run(&arguments.chain(more).collect::<Vec<_>>())
}

/// What h5py finds of two files; nothing without it.
fn compared(one: &Path, other: &Path, dataset: &str) -> Option<Value> {
    let script = root().join("tests/tests/recording/hdf5/same.py");
    let mut python = python(&["h5py", "hdf5plugin", "numpy"])?;
    let output = python.arg(script).args([one, other]).arg(dataset).output().expect("it can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).expect("JSON"))
}

fn assert_same(found: &Value, what: &str) {
    assert_eq!(found["different"], json!([]), "{what}: {found}");
    assert_eq!(found["aliases"][0], found["aliases"][1], "{what}: names of one object stay its names");
    assert!(found["count"].as_u64() > Some(5), "{what}: {found}");
}

#[test]
fn a_file_gets_other_chunks_and_another_compression_and_all_else_stays() {
    let lab = Lab::small("data = \"diffraction\"\n");
    lab.record("bslz4", &["--frames", "40"]);
    let one = lab.home.path().join("one.h5");
    fs::copy(lab.file(), &one).expect("space");
    for (chunk, compression, stored, filters) in [
        ("7x32x40", "bszstd", 36, json!([32008])),
        ("64x96", "zstd", 40, json!([32015])),
        ("40x8x8", "none", 96, json!([])),
        ("3x64x96", "lz4", 14, json!([32004])),
    ] {
        let other = lab.home.path().join("other.h5");
        let made = rewrite(&one, &other, &["--chunk", chunk, "--compression", compression, "--verify"]);
        assert_eq!(made.code, Some(0), "{chunk}: {made:?}");
        assert!(
            made.stdout.contains("verified    read back: the checksum of its frames is the same\n"),
            "{made:?}"
        );
        let verified = run(&[PathBuf::from("verify"), other.clone()]);
        assert!(verified.stdout.contains("readable    40 of 40 frames of "), "{chunk}: {verified:?}");
        let Some(found) = compared(&one, &other, "/entry/data/data") else { return };
        assert_same(&found, chunk);
        let sides: Vec<u64> = chunk.split('x').map(|side| side.parse().expect("a number")).collect();
        let sides = if sides.len() == 2 { [vec![1], sides].concat() } else { sides };
        assert_eq!(
            [&found["chunk"], &found["filters"], &found["stored"], &found["maxshape"]],
            [&json!(sides), &filters, &json!(stored), &json!([null, 64, 96])],
            "{chunk}"
        );
        fs::remove_file(&other).expect("it is there");
    }
}

/// A file of several kinds of objects, links and attributes beside frames of a scan; nothing without h5py.
fn of_everything(home: &TempDir) -> Option<PathBuf> {
    let file = home.path().join("everything.h5");
    let script = "import sys, h5py, numpy as np\nwith h5py.File(sys.argv[1], 'w') as f:\n\
                  \x20   d = f.create_dataset('scan/images', (4, 5, 6, 8), '>i4', chunks=(1, 5, 6, 8), compression='gzip')\n\
                  \x20   d[...] = np.arange(960).reshape(4, 5, 6, 8); d.attrs['units'] = 'counts'\n\
                  \x20   f['again'] = d; f['soft'] = h5py.SoftLink('/scan/images'); f['away'] = h5py.ExternalLink('x.h5', '/y')\n\
                  \x20   f['scan/text'] = ['a', 'ä'] ; f['kind'] = np.dtype([('x', 'f8'), ('y', 'S3')])\n\
                  \x20   f['scan/table'] = np.zeros(3, [('x', 'f8'), ('y', 'S3')])\n\
                  \x20   f['scan/packed'] = np.arange(1000); f.attrs['about'] = ['one', 'two']; f.attrs['empty'] = h5py.Empty('f')\n\
                  \x20   f.create_dataset('scan/small', data=np.ones((30, 40)), compression='gzip', shuffle=True)\n\
                  \x20   f['scan'].attrs['matrix'] = np.eye(3); f.create_group('none')\n";
    let mut python = python(&["h5py", "hdf5plugin", "numpy"])?;
    let output = python.args(["-c", script]).arg(&file).output().expect("it can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(file)
}

#[test]
fn whatever_else_is_in_a_file_of_others_is_copied_as_it_is() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let Some(one) = of_everything(&home) else { return };
    let other = home.path().join("other.h5");
    let refused = rewrite(&one, &other, &["--chunk", "6x8"]);
    assert!(refused.code == Some(2) && refused.stderr.contains("--compression: "), "{refused:?}");
    let made = rewrite(&one, &other, &["--chunk", "2x2x3x8", "--compression", "bslz4", "--verify"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let found = compared(&one, &other, "/scan/images").expect("h5py is there");
    assert_same(&found, "everything");
    assert_eq!([&found["chunk"], &found["stored"]], [&json!([2, 2, 3, 8]), &json!(12)]);
}

#[test]
fn chunks_that_are_missing_stay_so_and_what_is_not_copied_is_named() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let one = home.path().join("one.h5");
    let script = "import sys, h5py, numpy as np\npath = sys.argv[1]\n\
                  with h5py.File(path, 'w', libver='latest') as f:\n\
                  \x20   d = f.create_dataset('images', (12, 6, 8), 'u2', chunks=(1, 6, 8), fillvalue=7); d[0:4] = 1; d[9] = 2\n\
                  \x20   f['broken'] = np.ones((3, 4)); d.attrs['about'] = f['broken'].ref\n\
                  \x20   at = h5py.h5o.get_info(f['broken'].id).addr\n\
                  with open(path, 'r+b') as f: f.seek(at + 12); f.write(b'\\xff' * 20)";
    let Some(mut python) = python(&["h5py", "hdf5plugin", "numpy"]) else { return };
    let output = python.args(["-c", script]).arg(&one).output().expect("it can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let other = home.path().join("other.h5");
    let made = rewrite(&one, &other, &["--chunk", "2x6x8", "--compression", "bslz4"]);
    assert_eq!(made.code, Some(1), "{made:?}");
    for line in [
        "in chunks   3 of 2 x 6 x 8, compressed as bslz4: ",
        "not copied  /images, attribute about: it refers to objects",
        "not copied  /broken: HDF5 can't ",
        "missing     7 frames: 4-8, 10-11\n",
    ] {
        assert!(made.stdout.contains(line), "`{line}`: {made:?}");
    }
    let asked = rewrite(&one, &home.path().join("again.h5"), &["--chunk", "2x6x8", "--verify"]);
    assert_eq!(asked.code, Some(5), "{asked:?}");
    let [first, second] = [&one, &other].map(|file| {
        let raw = file.with_extension("raw");
        run(&[
            "export".into(),
            file.clone(),
            "--to".into(),
            raw.clone(),
            "--dataset".into(),
            "images".into(),
        ]);
        fs::read(raw).expect("it was written")
    });
    assert!(first == second && first.len() == 12 * 6 * 8 * 2, "what is missing is filled alike");
}

#[test]
fn what_makes_no_sense_for_a_file_is_refused_with_what_does() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let Some(one) = of_everything(&home) else { return };
    let to = home.path().join("other.h5");
    let images = ["--dataset", "/scan/images"];
    for (more, why) in [
        (&["--journal"][..], "takes --compression and --chunk"),
        (&["--instrument", "eiger-4m"], "takes --compression and --chunk"),
        (&["--chunk", "1x1x1x1x1"], "has 4 dimensions"),
        (&["--chunk", "9x8", "--compression", "none"], "write at most that"),
        (&["--compression", "gzip"], "bszstd"),
        (&["--compression", "none", "--rate", "0 B/s"], "write more than 0"),
    ] {
        let refused = rewrite(&one, &to, &[&images[..], more].concat());
        assert!(refused.code == Some(2) && refused.stderr.contains(why), "{more:?}: {refused:?}");
        assert!(!to.exists());
    }
    let at = home.path().join("empty");
    fs::create_dir(&at).expect("space");
    for (command, more, instead) in [
        ("mount", &["--at", at.to_str().expect("a plain name")][..], "`nilometer export FILE --to FILE.raw`"),
        ("replay", &["--to", "udp://127.0.0.1:5"], "has no packets"),
        ("scan", &[], "`nilometer verify FILE`"),
        ("repair", &[], "`nilometer export FILE --to FILE.raw`"),
    ] {
        let arguments =
            [PathBuf::from(command), one.clone()].into_iter().chain(more.iter().map(PathBuf::from));
        let refused = run(&arguments.collect::<Vec<_>>());
        assert!(refused.code == Some(2) && refused.stderr.contains(instead), "{command}: {refused:?}");
    }
}

#[test]
fn frames_are_written_no_faster_than_is_said_and_read_back_if_that_is_asked() {
    let lab = Lab::small("");
    lab.record("bslz4", &["--frames", "10"]);
    let one = lab.home.path().join("one.h5");
    fs::copy(lab.file(), &one).expect("space");
    let to = lab.home.path().join("one.raw");
    // 120 KiB.
    let clock = nilometer_storage::Clock::start();
    let more = ["--to", to.to_str().expect("a plain name"), "--rate", "100 kB/s", "--verify"];
    let arguments = [PathBuf::from("export"), one.clone()].into_iter().chain(more.iter().map(PathBuf::from));
    let made = run(&arguments.collect::<Vec<_>>());
    let took = clock.now();
    assert_eq!(made.code, Some(0), "{made:?}");
    assert!(made.stdout.contains("verified    read back: its checksum is the same\n"), "{made:?}");
    assert!(took.seconds() >= 1.2, "{took}");
    assert!(fs::read(&to).expect("it was written") == fs::read(lab.truth(10)).expect("it was written"));
}
