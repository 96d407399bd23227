//! Recordings that are read back with the program: broken ones, hostile ones, ones of somebody else, and copies of them.

mod copied;
mod copied_by_ssh;
mod documents;
mod exported;
mod foreign;
mod many;
mod part;
mod shown;
mod told_as_json;

use std::{fs, path::Path, path::PathBuf, time::Duration};

use nilometer_tests::{Ended, run, start};

/// What takes longer waits for something that never comes.
const LIMIT: Duration = Duration::from_mins(1);

/// Records so many frames of 320 kB, named `scan`, in these directories; the directories of its lanes.
fn recorded(to: &[&Path], frames: u32, more: &[&str]) -> Vec<PathBuf> {
    let frames = frames.to_string();
    let mut arguments = vec!["simulate", "pco-edge", "--name", "scan", "--frames", &frames];
    arguments.extend(["--duration", "2 s", "--reserve", "0 B", "--buffer", "64 MiB", "--shape", "400 x 400"]);
    arguments.extend(more);
    for to in to {
        arguments.extend(["--to", to.to_str().expect("plain names")]);
    }
    let ended = run(&arguments);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    to.iter().map(|to| to.join("scan")).collect()
}

/// A command about recordings in these directories, which ends in time.
fn about<P: AsRef<Path>>(command: &str, directories: &[P], more: &[&str]) -> Ended {
    let mut arguments = vec![PathBuf::from(command)];
    arguments.extend(directories.iter().map(|directory| directory.as_ref().to_owned()));
    arguments.extend(more.iter().map(PathBuf::from));
    start(&std::env::temp_dir(), &arguments).end(LIMIT)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("plain names")
}

/// The names in a directory.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("it is there");
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("it is read").file_name().into_string().expect("plain names"))
        .collect();
    names.sort();
    names
}

/// Whether a frame was stored in this lane, whose file grows.
fn has_frames(lane: &Path) -> bool {
    first_file(lane).is_some_and(|file| fs::metadata(file).expect("it is there").len() > 0)
}

/// The first file of frames in the directory of a lane, which has some.
fn frames_in(lane: &Path) -> PathBuf {
    first_file(lane).expect("it has frames")
}

fn first_file(lane: &Path) -> Option<PathBuf> {
    let is_frames = |path: &PathBuf| path.extension().is_some_and(|suffix| suffix == "raw");
    names(lane).into_iter().map(|name| lane.join(name)).find(is_frames)
}
