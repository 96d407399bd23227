//! Texts of frames, as h5py reads them: beside the numbers, in one file or several, whenever they come, and in what is made of them.

use std::{fs, io::Write, path::PathBuf};

use nilometer_tests::{await_some, run};
use rustix::fs::{CWD, Mode, mkfifoat};

use crate::layout::lab::{FRAMES, LIMIT, LayoutLab, tree_of};

const ATTRIBUTES: &str = "/entry/instrument/NDAttributes";

/// What is said of a frame: of every fifth nothing, and of one more than there is room for.
fn said(frame: u64) -> String {
    match frame {
        7 => "ä".repeat(200),
        frame if frame % 5 == 4 => String::new(),
        frame => format!("Probe {frame} äöü"),
    }
}

fn lines(frames: std::ops::Range<u64>) -> String {
    let line =
        |frame| format!("{{\"frame\": {frame}, \"Sample\": \"{}\", \"Angle\": {frame}}}\n", said(frame));
    frames.filter(|frame| frame % 5 != 4).map(line).collect()
}

fn texts() -> Vec<String> {
    let fitting = |text: String| text.chars().take(128).collect();
    (0..FRAMES).map(|frame| if frame == 7 { fitting(said(frame)) } else { said(frame) }).collect()
}

const LAYOUT: &str = "<hdf5_layout>
  <group name=\"exchange\">
    <dataset name=\"data\" source=\"detector\" det_default=\"true\"/>
    <dataset name=\"sample\" source=\"ndattribute\" ndattribute=\"Sample\" type=\"string\"/>
    <dataset name=\"first\" source=\"ndattribute\" ndattribute=\"Sample\" when=\"OnFileOpen\"/>
    <dataset name=\"last\" source=\"ndattribute\" ndattribute=\"Sample\" when=\"OnFileClose\"/>
  </group>
  <group name=\"others\" ndattr_default=\"true\"/>
</hdf5_layout>
";

/// The file that is made of the recording.
fn exported(lab: &LayoutLab, more: &[&str]) -> PathBuf {
    let to = lab.home.path().join("made.h5");
    let mut arguments = vec![PathBuf::from("export"), lab.recording(), "--to".into(), to.clone()];
    arguments.extend([&["--format", "hdf5"], more].concat().iter().map(PathBuf::from));
    let ended = run(&arguments);
    assert!(ended.code == Some(0) && !ended.stdout.contains("left out"), "{ended:?}");
    to
}

#[test]
fn texts_that_a_layout_names_are_in_each_file_and_in_the_one_over_them_also_those_that_come_late() {
    let lab = LayoutLab::new("recording.format = \"hdf5\"\n");
    lab.write("layout.xml", LAYOUT);
    lab.write("samples.jsonl", "");
    let options = ["--layout", "layout.xml", "--metadata", "samples.jsonl", "--frames-per-file", "6"];
    let recorder = lab.record(FRAMES, &options);
    await_some("all frames", || (lab.acknowledged() == FRAMES).then_some(()));
    let path = lab.home.path().join("samples.jsonl");
    let mut file = fs::OpenOptions::new().append(true).open(path).expect("it is there");
    file.write_all(lines(0..FRAMES).as_bytes()).expect("space");
    let ended = recorder.end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("; cut to 256 B: 1; refused: "), "{ended:?}");
    lab.assert_verified(FRAMES);
    let Some(tree) = tree_of(&lab.recording().join("scan_master.h5")) else { return };
    assert_eq!(tree.texts("/exchange/sample"), texts());
    assert_eq!(tree.text_type("/exchange/sample"), "utf-8 256");
}

#[test]
fn the_first_text_of_a_name_makes_its_dataset_one_of_texts_and_files_that_are_made_keep_it() {
    let lab = LayoutLab::new("recording.format = \"hdf5\"\n");
    lab.write("layout.xml", &LAYOUT.replace(" type=\"string\"", ""));
    lab.write("samples.jsonl", &lines(0..FRAMES));
    let ended = lab.record(FRAMES, &["--layout", "layout.xml", "--metadata", "samples.jsonl"]).end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("metadata    32 values of "), "{ended:?}");
    assert!(ended.stdout.contains("; cut to 256 B: 1\n"), "{ended:?}");
    lab.assert_verified(FRAMES);
    let made = exported(&lab, &["--verify"]);
    lab.change_flag();
    let repaired = lab.about("repair");
    assert!(repaired.code == Some(0) && repaired.stdout.starts_with("repaired"), "{repaired:?}");
    for file in [made, lab.file()] {
        let Some(tree) = tree_of(&file) else { return };
        assert_eq!(tree.texts("/exchange/sample"), texts(), "{}", file.display());
        assert_eq!(tree.text_type("/exchange/sample"), "utf-8 256", "{}", file.display());
        let ends = ["first", "last"].map(|name| tree.value(&format!("/exchange/{name}")));
        assert_eq!(ends, [&said(0), &said(FRAMES - 2)], "{}", file.display());
        assert_eq!(tree.numbers("/others/Angle")[..2], [Some(0.0), Some(1.0)], "{}", file.display());
    }
}

#[test]
fn texts_that_nobody_announced_are_in_the_file_and_in_what_is_made_of_it() {
    let lab = LayoutLab::new("recording.format = \"hdf5\"\n");
    let pipe = lab.home.path().join("pipe");
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).expect("a pipe");
    let recorder = lab.record(FRAMES, &["--metadata", "pipe"]);
    let mut writer = fs::OpenOptions::new().write(true).open(&pipe).expect("the recorder reads it");
    writer.write_all(lines(0..FRAMES).as_bytes()).expect("it is read");
    drop(writer);
    let ended = recorder.end(LIMIT);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let made = exported(&lab, &["--chunk", "3x32x96"]);
    lab.change_flag();
    let repaired = lab.about("repair");
    assert!(repaired.code == Some(0) && repaired.stdout.starts_with("repaired"), "{repaired:?}");
    let sample = format!("{ATTRIBUTES}/Sample");
    for file in [made, lab.file()] {
        let Some(tree) = tree_of(&file) else { return };
        assert_eq!(tree.texts(&sample), texts(), "{}", file.display());
        assert_eq!(tree.text_type(&sample), "utf-8 256", "{}", file.display());
    }
}
