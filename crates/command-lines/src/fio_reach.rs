//! The files and devices that jobs of fio work on, by fio's rules. These are `--filename` in each
//! `--directory`, or names made from the job's name.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    fio_jobs::FioJob,
    options::ReadOption,
    reach::{LinePath, LineReach},
};

/// Engines that work on files of this machine, or on nothing.
const LOCAL_ENGINES: [&str; 11] = [
    "sync", "psync", "vsync", "pvsync", "pvsync2", "libaio", "io_uring", "posixaio", "mmap", "splice", "null",
];

/// Options with an effect beyond the paths of the line.
const UNBOUNDED: [(&[&str], &str); 4] = [
    (
        &[
            "read_iolog",
            "replay_redirect",
            "profile",
            "filename_format",
            "opendir",
            "aux-path",
            "merge_blktrace_file",
        ],
        "the line does not say which files it works on",
    ),
    (
        &["exec_prerun", "exec_postrun", "trigger", "trigger-file", "trigger-remote"],
        "it runs another program",
    ),
    (&["verify_state_save", "bandwidth-log"], "it writes files whose names the line does not say"),
    (&["ioscheduler"], "it changes a setting of the device"),
];

/// Options with the first part of a log's name.
const LOGS: [&str; 5] = ["write_bw_log", "write_lat_log", "write_iops_log", "write_hist_log", "write_iolog"];

/// The name of a job without one.
const NAME: &str = "fio";

/// Adds all files and devices that a job works on.
pub(crate) fn add_reach(reach: &mut LineReach, job: &FioJob) {
    let options: Vec<&ReadOption> = job.options.iter().chain(&job.without_effect).collect();
    let last = |name: &str| options.iter().rfind(|option| option.name == name).map(|of| of.value.as_str());
    let name = if job.name.is_empty() { NAME } else { &job.name };
    let directories = separated(last("directory").unwrap_or("."));
    match last("filename") {
        Some(files) => {
            for file in separated(files) {
                add_file(reach, &directories, &file);
            }
        }
        None => add_named_files(reach, &directories, name),
    }
    for option in &options {
        add_option(reach, option, name);
    }
}

/// `a:b`, in which `\:` is a colon of a name.
fn separated(text: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut part = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ':' => parts.push(std::mem::take(&mut part)),
            '\\' => part.extend(letters.next()),
            _ => part.push(letter),
        }
    }
    parts.push(part);
    parts
}

/// A file of the line, in each directory. By its version, fio puts the directory in front of a whole path
/// too, or does not.
fn add_file(reach: &mut LineReach, directories: &[String], file: &str) {
    reach.add(LinePath::File(file.into()));
    for directory in directories {
        reach.add(LinePath::File(PathBuf::from(format!("{directory}/{file}"))));
    }
}

/// Files `NAME.JOB.FILE` in each directory; a job that has the name of a device, pipe or link works on that.
fn add_named_files(reach: &mut LineReach, directories: &[String], name: &str) {
    let is_special = |found: fs::Metadata| !found.is_file() && !found.is_dir();
    if fs::symlink_metadata(name).is_ok_and(is_special) || Path::new(name).is_absolute() {
        reach.add(LinePath::File(name.into()));
    }
    for directory in directories {
        for name in [name.to_owned(), name.replace('/', "_")] {
            reach.add(LinePath::FilesFrom(PathBuf::from(format!("{directory}/{name}."))));
        }
    }
}

fn add_option(reach: &mut LineReach, option: &ReadOption, name: &str) {
    let is_named = |names: &[&str]| names.contains(&option.name.as_str());
    if let Some((_, effect)) = UNBOUNDED.iter().find(|(names, _)| is_named(names) && option.is_set()) {
        reach.add_unbounded(&option.written, effect);
    }
    if is_named(&LOGS) {
        let begin = if option.value.is_empty() { name } else { &option.value };
        reach.add(LinePath::FilesFrom(begin.into()));
    }
    let engine = option.value.split(':').next().unwrap_or_default();
    if option.name == "ioengine" && !LOCAL_ENGINES.contains(&engine) {
        reach.add_unbounded(&option.written, "it works on storage that no path names");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_colons_between_them_and_within_them() {
        assert_eq!(separated("/a:/b"), ["/a", "/b"]);
        assert_eq!(separated("foo@3,0\\:c:x"), ["foo@3,0:c", "x"]);
    }
}
