//! Files of HDF5 without a journal of which one object is damaged: it is named with the reason, and all else is read.

use std::{
    fs,
    path::{Path, PathBuf},
};

use nilometer_tests::{Ended, python, root, run};
use tempfile::TempDir;

/// A file, the object of it that is damaged, and how many of its ten frames are left.
struct BrokenFile {
    name: String,
    object: String,
    readable: u64,
}

/// Those that the script makes in a directory; none without h5py.
fn broken_files(home: &TempDir) -> Option<Vec<BrokenFile>> {
    let script = root().join("tests/tests/recording/hdf5/broken.py");
    let output = python(&["h5py", "numpy"])?.arg(script).arg(home.path()).output().expect("it can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("names");
    let file = |line: &str| {
        let mut words = line.split('\t').map(str::to_owned);
        let mut word = || words.next().expect("three words");
        BrokenFile { name: word(), object: word(), readable: word().parse().expect("a number") }
    };
    Some(text.lines().map(file).collect())
}

fn verify(file: &Path, more: &[&str]) -> Ended {
    let arguments = [PathBuf::from("verify"), file.to_owned()].into_iter();
    run(&arguments.chain(more.iter().map(PathBuf::from)).collect::<Vec<_>>())
}

/// The lines of what was said that name an object which can't be read.
fn named(ended: &Ended) -> Vec<&str> {
    ended.stdout.lines().filter_map(|line| line.strip_prefix("broken      ")).collect()
}

#[test]
fn a_broken_object_is_named_with_the_reason_and_all_else_is_read() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let Some(files) = broken_files(&home) else { return };
    assert_eq!(files.len(), 11);
    for BrokenFile { name, object, readable } in files {
        let at = |suffix: &str| home.path().join(format!("{name}.{suffix}"));
        let verified = verify(&at("h5"), &[]);
        assert_eq!(verified.code, Some(1), "{name}: {verified:?}");
        assert!(verified.stderr.contains("1 object can't be read\n"), "{name}: {verified:?}");
        let broken = named(&verified);
        let [line] = broken[..] else { panic!("{name}: one object is broken, not {broken:?}") };
        let why = line.strip_prefix(&format!("{object}: HDF5 can't "));
        assert!(why.is_some_and(|why| why.contains(": ")), "{name}: the reason is said: {line}");
        let count = format!("readable    {readable} of 10 frames of ");
        assert!(verified.stdout.contains(&count), "{name}: {verified:?}");
        let back = at("back");
        let exported = run(&["export".into(), at("h5"), "--to".into(), back.clone()]);
        assert_eq!(exported.code, Some(1), "{name}: {exported:?}");
        assert_eq!(named(&exported), broken, "{name}");
        let [truth, back] = [at("raw"), back].map(|path| fs::read(path).expect("it was written"));
        let there = truth.len() / 10 * readable as usize;
        assert!(back[..there] == truth[..there], "{name}: frames that can be read are what they were");
        assert!(back.len() == truth.len() && back[there..].iter().all(|byte| *byte == 0), "{name}");
    }
}

#[test]
fn frames_that_are_hidden_by_a_broken_object_are_not_taken_from_elsewhere() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let script = "import sys, h5py, numpy as np\npath = sys.argv[1]\n\
                  with h5py.File(path, 'w', libver='latest') as f:\n\
                  \x20   f['entry/data/data'] = np.ones((3, 4, 5)); f['entry/other'] = np.ones((3, 4, 5))\n\
                  \x20   at = h5py.h5o.get_info(f['entry/data'].id).addr\n\
                  with open(path, 'r+b') as f: f.seek(at + 12); f.write(b'\\xff' * 20)";
    let file = home.path().join("hidden.h5");
    let Some(mut python) = python(&["h5py", "numpy"]) else { return };
    let output = python.args(["-c", script]).arg(&file).output().expect("it can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let refused = verify(&file, &[]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{refused:?}");
    for words in ["/entry/data: HDF5 can't open /entry/data: ", "--dataset", "/entry/other"] {
        assert!(refused.stderr.contains(words), "`{words}`: {refused:?}");
    }
    let other = verify(&file, &["--dataset", "/entry/other"]);
    assert!(other.code == Some(1) && other.stdout.contains("readable    3 of 3 frames"), "{other:?}");
    assert_eq!(named(&other).len(), 1, "{other:?}");
    let broken = verify(&file, &["--dataset", "/entry/data/data"]);
    assert!(broken.code == Some(1) && broken.stderr.contains("incorrect metadata checksum"), "{broken:?}");
    let absent = verify(&file, &["--dataset", "/entry/nowhere"]);
    assert!(absent.code == Some(2) && absent.stderr.contains("can't find /entry/nowhere"), "{absent:?}");
}
