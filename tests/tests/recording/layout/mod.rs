//! Files by a layout of the user's own, from outside: what is wrong in one is refused before anything is made; h5py finds what
//! the layout says; values that come by frame number stand beside their frames; damage is repaired, a kill leaves a file.

mod datasets;
mod exported;
mod joined;
mod lab;
mod refused;
mod texts;
mod watched_texts;

use std::{fs, os::unix::fs::FileExt, path::Path};

use nilometer_tests::{await_some, run};
use rustix::process::{Signal, kill_process};

use crate::layout::lab::{FRAMES, FoundTree, LIMIT, LayoutLab, example, tree_of};

const ATTRIBUTES: &str = "/entry/instrument/NDAttributes";

fn known_of_frames(tree: &FoundTree, group: &str) {
    let count = FRAMES as f64;
    let numbers = |name: &str| tree.numbers(&format!("{group}/{name}"));
    let ids: Vec<_> = (0..FRAMES).map(|frame| Some(frame as f64)).collect();
    assert_eq!(numbers("NDArrayUniqueId"), ids);
    assert!(numbers("flag").iter().all(|flag| *flag == Some(0.0)));
    let times: Vec<f64> =
        numbers("NDArrayTimeStamp").into_iter().map(|time| time.expect("it is known")).collect();
    assert!(times.is_sorted() && times[0] > 1.1e9 && times[times.len() - 1] - times[0] < count, "{times:?}");
    let seconds = numbers("NDArrayEpicsTSSec");
    let nanoseconds = numbers("NDArrayEpicsTSnSec");
    for (frame, time) in times.iter().enumerate() {
        let epics = seconds[frame].expect("known") + nanoseconds[frame].expect("known") * 1e-9;
        assert!((epics - time).abs() < 1e-6, "{epics} {time}");
    }
    assert!(numbers("durable").iter().all(|moment| moment.is_some_and(|moment| moment > 0.0)));
    assert_eq!(tree.value(&format!("{group}/frames_whole")), FRAMES);
    assert_eq!(tree.attribute(&format!("{group}/flag"), "NDAttrSource"), "nilometer");
}

#[test]
fn the_default_of_areadetector_is_made_by_both_forms() {
    let mut trees = Vec::new();
    for name in ["default.xml", "default.toml"] {
        let lab = LayoutLab::new("");
        let layout = example(name);
        let layout = layout.to_str().expect("a plain name");
        let more = ["--format", "hdf5", "--compression", "bslz4", "--frames", "20", "--layout", layout];
        let ended = lab.simulate(&more).end(LIMIT);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(
            ended.stderr.contains("left out: /entry/instrument/detector/NDAttributes/ColorMode"),
            "{ended:?}"
        );
        lab.assert_verified(FRAMES);
        let Some(tree) = tree_of(&lab.file()) else { return };
        assert_eq!(tree.kind("/entry/instrument/detector/data"), "[20,64,96] <u2");
        assert!(tree.is_same("/entry/data/data", "/entry/instrument/detector/data"), "{tree:?}");
        assert_eq!(tree.attribute("/entry/data/data", "signal"), 1);
        assert_eq!(tree.attribute("/entry", "NX_class"), "NXentry");
        known_of_frames(&tree, ATTRIBUTES);
        assert_eq!(tree.value(&format!("{ATTRIBUTES}/detector_name")), "detector");
        assert!(!tree.has("/entry/instrument/nilometer"));
        trees.push(tree.paths().into_iter().map(String::from).collect::<Vec<_>>());
    }
    assert_eq!(trees[0], trees[1]);
}

/// Constants, links, values of the first frame and the last, and what is known at the end alone.
const VALUES: &str = r#"
auto_ndattr_default = false
[groups]
"/scan" = { attributes = { NX_class = "NXentry", last = { ndattribute = "NDArrayUniqueId", when = "OnFileClose" } } }
[datasets]
"/scan/frames" = { detector = true, attributes = { signal = 1 } }
"/scan/exposure" = { ndattribute = "frame_time", attributes = { units = "s" } }
"/scan/first" = { ndattribute = "NDArrayUniqueId", when = "OnFileOpen", attributes = { of = "the first frame" } }
"/scan/whole" = { ndattribute = "frames_whole", when = "OnFileClose" }
"/scan/flag" = { ndattribute = "flag" }
"/scan/size" = { constant = [0.5, 1.5] }
[links]
"/images" = "/scan/frames"
"#;

fn has_values(tree: &FoundTree, frames: u64) {
    let paths = [
        "/images",
        "/scan",
        "/scan/exposure",
        "/scan/first",
        "/scan/flag",
        "/scan/frames",
        "/scan/size",
        "/scan/whole",
    ];
    assert_eq!(tree.paths(), paths);
    assert_eq!(tree.attribute("/scan", "last"), frames - 1);
    assert_eq!(tree.attribute("/scan/first", "of"), "the first frame");
    assert_eq!((tree.value("/scan/first"), tree.value("/scan/whole")), (&0.into(), &frames.into()));
    assert_eq!(tree.value("/scan/exposure"), 0.0025);
    assert_eq!(tree.numbers("/scan/size"), [Some(0.5), Some(1.5)]);
    assert_eq!(tree.kind("/scan/flag"), format!("[{frames}] |u1"));
    assert!(tree.is_same("/images", "/scan/frames"));
}

#[test]
fn values_are_written_when_the_layout_says_and_repair_makes_them_again() {
    let lab = LayoutLab::new("recording = { format = \"hdf5\", layout = \"values.toml\" }\n");
    lab.write("values.toml", VALUES);
    let ended = lab.simulate(&["--frames", "20"]).end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    lab.assert_verified(FRAMES);
    let Some(tree) = tree_of(&lab.file()) else { return };
    has_values(&tree, FRAMES);
    let file = fs::OpenOptions::new().write(true).open(lab.file()).expect("it is there");
    file.write_all_at(&[0; 4096], 0).expect("space");
    let verified = lab.about("verify");
    assert!(verified.code == Some(1) && verified.stderr.contains("nilometer repair"), "{verified:?}");
    let repaired = lab.about("repair");
    assert_eq!(repaired.code, Some(0), "{repaired:?}");
    has_values(&tree_of(&lab.file()).expect("h5py was there before"), FRAMES);
    lab.assert_verified(FRAMES);
    let whole = lab.about("repair");
    assert!(whole.code == Some(0) && whole.stdout.starts_with("whole"), "{whole:?}");
}

#[test]
fn the_file_over_several_has_the_layout_too() {
    let lab = LayoutLab::new("recording = { format = \"hdf5\", frames_per_file = 6, storing = \"files\" }\n");
    lab.write("values.toml", VALUES);
    let ended = lab.simulate(&["--frames", "20", "--layout", "values.toml"]).end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    lab.assert_verified(FRAMES);
    let Some(tree) = tree_of(&lab.recording().join("scan_master.h5")) else { return };
    assert_eq!(tree.kind("/scan/frames"), "[20,64,96] <u2");
    assert!(tree.numbers("/scan/flag").iter().all(|flag| *flag == Some(0.0)), "{tree:?}");
    assert!(tree.is_same("/images", "/scan/frames"));
    let part = tree_of(&lab.recording().join("scan.00000001.h5")).expect("h5py was there before");
    assert_eq!((part.value("/scan/first"), part.attribute("/scan", "last")), (&6.into(), &11.into()));
    let exported = lab.home.path().join("exported.raw");
    let ended = run(&["export".as_ref(), lab.recording().as_os_str(), "--to".as_ref(), exported.as_os_str()]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(fs::metadata(exported).expect("it was made").len(), FRAMES * 64 * 96 * 2);
    fs::remove_file(lab.recording().join("scan_master.h5")).expect("it is there");
    let made = lab.about("repair");
    assert_eq!(made.code, Some(0), "{made:?}");
    let again = tree_of(&lab.recording().join("scan_master.h5")).expect("h5py was there before");
    assert_eq!(again.paths(), tree.paths());
}

#[test]
fn a_recorder_that_is_killed_leaves_a_file_with_the_layout() {
    let lab = LayoutLab::new("");
    lab.write("values.toml", VALUES);
    let running = lab.simulate(&["--format", "hdf5", "--layout", "values.toml", "--duration", "1 min"]);
    let begun = |path: &Path| fs::metadata(path).is_ok_and(|file| file.len() > 200_000).then_some(());
    await_some("some frames", || begun(&lab.file()));
    kill_process(running.worker(), Signal::KILL).expect("it runs");
    assert_eq!(running.end(LIMIT).code, Some(1));
    let Some(tree) = tree_of(&lab.file()) else { return };
    // What is written at the end is not there; all else is.
    assert_eq!(
        tree.paths(),
        ["/images", "/scan", "/scan/exposure", "/scan/flag", "/scan/frames", "/scan/size"]
    );
    assert!(tree.numbers("/scan/flag").contains(&Some(0.0)), "{tree:?}");
    assert!(tree.is_same("/images", "/scan/frames"));
}
