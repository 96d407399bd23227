//! `nilometer advise chunking`: it measures on the storage that is named, and leaves nothing there.

use std::fs;

use nilometer_tests::start;

use crate::hdf5::lab::{LIMIT, Lab};

#[test]
fn each_choice_is_written_and_read_and_nothing_stays() {
    // A machine that is busy writes that much too.
    let lab = Lab::new("256, 384", "uint16", "1 Hz", "");
    let to = lab.to[0].to_str().expect("a plain name");
    let asked = ["advise", "chunking", "detector.toml", "--to", to, "--size", "4 MiB", "--repeats", "2"];
    let ended = start(lab.home.path(), &asked).end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for part in
        ["256x384", "64x384", "16x384", "64x96", "bslz4", "written fastest", "pixel fastest", "advised"]
    {
        assert!(ended.stdout.contains(part), "{part}: {ended:?}");
    }
    assert_eq!(fs::read_dir(to).expect("it is there").count(), 0, "{ended:?}");
    let weighed =
        [&asked[..], &["--read", "line:20", "--read", "frames", "--chunk", "8x384", "--compression", "zstd"]];
    let ended = start(lab.home.path(), &weighed.concat()).end(LIMIT);
    assert!(ended.code == Some(0) && ended.stdout.contains("20 x line, 1 x frames"), "{ended:?}");
    assert!(!ended.stdout.contains("64x96") && !ended.stdout.contains("pixel"), "{ended:?}");
}

#[test]
fn what_can_not_be_measured_is_refused() {
    let lab = Lab::small("");
    let to = lab.to[0].to_str().expect("a plain name");
    for (more, part) in [
        (&["--read", "lines"][..], "region, line, pixel"),
        (&["--read", "line:0"], "above 0"),
        (&["--read", "line", "--read", "line:2"], "twice"),
        (&["--chunk", "65x96"], "larger than a frame"),
        (&["--size", "900 PB"], "are free"),
    ] {
        let asked = [&["advise", "chunking", "detector.toml", "--to", to][..], more].concat();
        let ended = start(lab.home.path(), &asked).end(LIMIT);
        assert!(ended.code == Some(2) && ended.stderr.contains(part), "{more:?}: {ended:?}");
        assert_eq!(fs::read_dir(to).expect("it is there").count(), 0);
    }
}
