//! Codecs against programs that no one here wrote: HDF5 with its bitshuffle filter.

use std::{fs, path::Path};

use nilometer_codec::{Bitshuffle, ElementSize, Method};
use nilometer_model::Seed;
use nilometer_tests::{python, root};

/// Has the other side do its part in this directory; what it printed. Nothing if it is not here.
fn other_side(part: &str, modules: &[&str], directory: &Path) -> Option<String> {
    let script = root().join("tests/tests/codec.py");
    let output = python(modules)?.arg(script).arg(part).arg(directory).output().expect("it can be run");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    Some(String::from_utf8(output.stdout).expect("names"))
}

/// Elements as a detector counts them: small numbers, a few large ones, all ones in between as gaps.
fn elements(seed: u64, size: ElementSize, count: usize) -> Vec<u8> {
    let mut stream = Seed(seed).stream();
    let element = |_| match stream.below(40) {
        0 => u64::MAX,
        1 => stream.next(),
        _ => stream.below(4),
    };
    (0..count).map(element).flat_map(|value| value.to_le_bytes()[..size.bytes()].to_vec()).collect()
}

#[test]
fn hdf5_reads_our_chunks_and_we_read_its() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = |count: usize, size: ElementSize, suffix: &str| {
        directory.path().join(format!("{count}.{}.{suffix}", size.bytes()))
    };
    // Less than a group, one group, not quite and more than a block, several blocks with groups and elements over.
    let counts = [1, 7, 8, 9, 1023, 8192, 8195, 30_013];
    let cases = || ElementSize::ALL.into_iter().flat_map(|size| counts.map(|count| (count, size)));
    for (count, size) in cases() {
        let raw = elements(count as u64, size, count);
        let mut chunk = Vec::new();
        Bitshuffle::new(size).encode(&raw, &mut chunk).expect("whole elements");
        fs::write(path(count, size, "raw"), &raw).expect("room");
        fs::write(path(count, size, "ours"), chunk).expect("room");
    }
    let Some(read) = other_side("bitshuffle", &["h5py", "bitshuffle"], directory.path()) else { return };
    assert_eq!(read.lines().count(), cases().count(), "{read}");
    for (count, size) in cases() {
        let raw = fs::read(path(count, size, "raw")).expect("written above");
        let chunk = fs::read(path(count, size, "theirs")).expect("the other side wrote it");
        for method in Method::all() {
            let mut back = vec![0; raw.len()];
            let decoded = Bitshuffle::with_method(size, method).decode(&chunk, &mut back);
            assert_eq!(decoded, Ok(()), "{count} elements of {size:?}");
            assert!(back == raw, "{count} elements of {size:?} by {method:?}");
        }
    }
}
