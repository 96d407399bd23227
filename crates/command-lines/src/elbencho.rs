//! A line of elbencho: threads on shared files, or with directories of files of their own.

use std::path::Path;

use nilometer_model::Bytes;

use crate::{
    amount::{BINARY, count, size, time},
    error::LineError,
    line::{ForeignLine, LineAccess, LineFiles, LineRate, LineSync, directory_of, is_device},
    options::{
        OptionTable,
        OptionValues::{None, One},
        ReadOption, ReadWords, changes, nothing, refused, taken,
    },
    reach::LinePath,
};

const TABLE: OptionTable = OptionTable {
    program: "elbencho",
    ends_at_word: false,
    rows: &[
        taken(
            "t|threads|b|block|s|size|n|dirs|N|files|iodepth|timelimit|rwmixpct|limitread|limitwrite|path|randamount",
            One,
        ),
        taken("w|write|r|read|direct|rand|sync|infloop", None),
        nothing(
            "d|mkdirs|D|deldirs|F|delfiles|dropcache|nodelerr|no0usecerr|lat|latpercent|lathisto|allelapsed",
            None,
        ),
        nothing(
            "nosvcshare|foreground|opsloglock|cpu|nolive|live1|live1n|livecsvex|nocsvlabels|nodiocheck|dryrun|base10|dirstats|stat",
            None,
        ),
        nothing(
            "resfile|csvfile|jsonfile|label|log|livecsv|liveint|latpercent9s|opslog|configfile|c|start",
            One,
        ),
        changes(
            "trunc|trunctosize|preallocfile|nofdsharing|dirsharing|norandalign|nopathexp",
            None,
            "how its files are made and shared",
        ),
        changes("backward|randalign|strided", None, "the order of its blocks"),
        changes("fadv|madv|flock", One, "its advice and its locks for the kernel"),
        changes(
            "mmap|cufile|gds|gdsbufreg|cuhostbufreg|cufiledriveropen|gpuperservice",
            None,
            "its data go through memory that is mapped, or of GPUs",
        ),
        changes("gpuids", One, "its data go through the memory of GPUs"),
        changes("verify", One, "it checks its data"),
        changes("verifydirect|readinline|statinline", None, "it reads each block or file at once"),
        changes(
            "blockvarpct|blockvaralgo|randalgo",
            One,
            "the content of its data and the order of its blocks",
        ),
        changes(
            "cores|zones|rankoffset|phasedelay|sharesize",
            One,
            "the processors of its threads, and the times at which they work",
        ),
        changes(
            "rwmixthr|rwmixthrpct|i|iterations",
            One,
            "threads that read meanwhile, and how often all is done",
        ),
        changes("treefile|treerand|treeroundup", One, "its files are those of a list"),
        refused(
            "hosts|hostsfile|numhosts|service|port|quit|interrupt|netbench|servers|clients|hdfs",
            One,
            "write the line that one machine runs by itself",
        ),
        refused(
            "s3endpoints|s3key|s3secret|s3region",
            One,
            "write a line on files; to measure S3 run `nilometer evaluate s3://..`",
        ),
        refused(
            "help|h|help-all|help-bdev|help-dist|help-large|help-multi|help-s3|version",
            None,
            "write a line that measures",
        ),
    ],
};

/// Phases, limits and paths of a line, which together make its cell.
#[derive(Debug, Default)]
struct ElbenchoFiles {
    writes: bool,
    reads: bool,
    is_random: bool,
    reads_percent: Option<u32>,
    /// Directories of each thread, and files in each directory.
    directories: Option<u32>,
    files: Option<u32>,
    read_limit: Option<Bytes>,
    write_limit: Option<Bytes>,
    paths: Vec<String>,
}

/// Reads the options; the first word has number `first` in the line.
pub(crate) fn take(line: &mut ForeignLine, words: &[String], first: usize) -> Result<(), LineError> {
    line.block = Bytes(1 << 20);
    let read = TABLE.read(words, first)?;
    let mut files = ElbenchoFiles { paths: read.operands.clone(), ..ElbenchoFiles::default() };
    add_reach(line, &read);
    for option in read.taken(&mut line.left_out)? {
        take_option(line, &mut files, &option)?;
    }
    let has_trees = files.directories.is_some() || files.files.is_some();
    for path in &files.paths {
        line.reach.add(worked_on(path, has_trees));
    }
    if !files.writes && !files.reads {
        return Err(LineError::whole(
            "elbencho: write -w or -r: Nilometer has no cell for directories and files that it only makes or removes",
        ));
    }
    take_way(line, &files);
    take_limit(line, &files)?;
    take_paths(line, &files)
}

/// Notes files with results, and the files that elbencho works on.
fn add_reach(line: &mut ForeignLine, read: &ReadWords) {
    for option in read.named(&["resfile", "csvfile", "jsonfile", "livecsv", "opslog", "log"]) {
        line.reach.add(LinePath::File(option.value.as_str().into()));
    }
    for option in read.named(&["configfile", "c", "treefile"]) {
        line.reach.add_unbounded(&option.written, "it reads the names of its files from a file");
    }
}

/// The last whole path that a repeated line of elbencho works on; `None` if it names none.
pub fn elbencho_path(line: &str) -> Option<String> {
    let options = TABLE.read_repeated(line);
    let path = |option: &ReadOption| match option.name.as_str() {
        "" => Some(option.written.clone()),
        "path" => Some(option.value.clone()),
        _ => Option::None,
    };
    options.iter().rev().filter_map(path).find(|path| path.starts_with('/'))
}

/// The limits of a repeated line of elbencho in bytes a second, each with the name of its option.
pub fn elbencho_limits(line: &str) -> Vec<(String, Bytes)> {
    let options = TABLE.read_repeated(line);
    let limits = options.iter().filter(|option| ["limitread", "limitwrite"].contains(&option.name.as_str()));
    let limits = limits.filter_map(|option| Some((option.name.clone(), size(&option.value, BINARY).ok()?)));
    limits.filter(|(_, limit)| limit.0 > 0).collect()
}

/// A directory that elbencho fills, a file, or several files: `file[1-16]`.
fn worked_on(path: &str, has_trees: bool) -> LinePath {
    if let Some((begin, _)) = path.split_once('[') {
        return LinePath::FilesFrom(begin.into());
    }
    let is_tree = has_trees || Path::new(path).is_dir();
    if is_tree { LinePath::Directory(path.into()) } else { LinePath::File(path.into()) }
}

fn take_option(
    line: &mut ForeignLine,
    files: &mut ElbenchoFiles,
    option: &ReadOption,
) -> Result<(), LineError> {
    let value = option.value.as_str();
    let wrong = |error: LineError| option.wrong(error);
    let number = |most: u32| count(value, most).map_err(wrong);
    let bytes = || size(value, BINARY).map_err(wrong);
    match option.name.as_str() {
        "t" | "threads" => line.workers = number(1024)?.max(1),
        "b" | "block" => line.block = bytes()?,
        "s" | "size" => line.size = bytes()?,
        "n" | "dirs" => files.directories = Some(number(1_000_000)?),
        "N" | "files" => files.files = Some(number(1_000_000)?),
        "iodepth" => line.depth = number(4096)?.max(1),
        "timelimit" => line.time = Some(time(value).map_err(wrong)?).filter(|time| time.0 > 0),
        "infloop" => line.is_time_based = true,
        "rwmixpct" => files.reads_percent = Some(number(100)?),
        "limitread" => files.read_limit = Some(bytes()?),
        "limitwrite" => files.write_limit = Some(bytes()?),
        "path" => files.paths.push(value.to_owned()),
        "w" | "write" => files.writes = true,
        "r" | "read" => files.reads = true,
        "direct" => line.direct = true,
        "rand" => files.is_random = true,
        // A phase of its own, whose time is not in the figure of the writes.
        "sync" => line.left_out.without_effect.push(option.written.clone()),
        _ => line.leave_option(option, "how much it moves at random"),
    }
    Ok(())
}

fn take_way(line: &mut ForeignLine, files: &ElbenchoFiles) {
    line.durable = LineSync::Never;
    line.way = match (files.writes, files.is_random) {
        (true, false) => LineAccess::Write,
        (false, false) => LineAccess::Read,
        (true, true) => LineAccess::RandomWrite,
        (false, true) => LineAccess::RandomRead,
    };
    if let (Some(percent), true) = (files.reads_percent, files.writes) {
        if !files.is_random {
            line.leave("--rwmixpct without --rand", "it reads and writes in sequence; here at random places");
        }
        line.way = LineAccess::RandomMix(percent);
    }
    if files.writes && files.reads {
        line.leave("reading", "it reads as well; compared is its writing");
    }
}

/// Takes a limit, which holds for each thread.
fn take_limit(line: &mut ForeignLine, files: &ElbenchoFiles) -> Result<(), LineError> {
    let limit = if line.way == LineAccess::Read || line.way == LineAccess::RandomRead {
        files.read_limit
    } else {
        files.write_limit
    };
    let Some(limit) = limit.filter(|limit| limit.0 > 0) else { return Ok(()) };
    let threads = line.workers;
    let all = limit.0.checked_mul(threads.into()).ok_or_else(|| {
        LineError::whole(format!("elbencho: a limit of {limit} for {threads} threads is too large"))
    })?;
    line.rate = Some(LineRate::Bytes(all));
    Ok(())
}

/// With directories each thread has its own files; without, all threads share all files of the line.
fn take_paths(line: &mut ForeignLine, files: &ElbenchoFiles) -> Result<(), LineError> {
    let Some(first) = files.paths.first().map(Path::new) else {
        return Err(LineError::whole("elbencho: write the directory or the file that it works on"));
    };
    let is_tree = files.directories.is_some() || files.files.is_some() || first.is_dir();
    if is_tree {
        first.clone_into(&mut line.directory);
        if is_device(first) {
            return Err(LineError::whole(format!("{} is a device: name a directory", first.display())));
        }
        let count = files.directories.unwrap_or(1).max(1).saturating_mul(files.files.unwrap_or(1).max(1));
        line.file_count = count;
        if line.is_random() && count > 1 {
            line.leave(&format!("{count} files of each thread"), "here each has one for random access");
        }
        if files.directories.is_some_and(|count| count > 1) {
            line.leave("directories of each thread", "here all files of a run lie in one");
        }
        if files.paths.len() > 1 {
            line.leave(&files.paths[1..].join(" "), "further directories; here all files lie in the first");
        }
        return Ok(());
    }
    line.directory = directory_of(first)?;
    let count = expanded(&files.paths)?;
    line.block = line.block.min(line.size.max(Bytes(1)));
    let all = line.size.0.saturating_mul(count);
    let threads = u64::from(line.workers);
    if count > 1 && count != threads {
        line.leave(
            &format!("{count} files that {threads} threads share"),
            "here each thread has one of its own",
        );
    } else if count == 1 && threads > 1 {
        line.files = LineFiles::Segmented;
    }
    line.size = Bytes((all / threads / line.block.0.max(1)).max(1) * line.block.0);
    Ok(())
}

/// The number of files that paths name: `file[1-256]` is 256, which elbencho expands itself.
fn expanded(paths: &[String]) -> Result<u64, LineError> {
    paths.iter().try_fold(0_u64, |sum, path| {
        let all = expanded_path(path).and_then(|count| sum.checked_add(count));
        all.ok_or_else(|| LineError::whole(format!("elbencho: `{path}` names too many files")))
    })
}

/// `Option::None` if they are more than a number can hold.
fn expanded_path(path: &str) -> Option<u64> {
    let behind = path.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    let Some((inner, _)) = behind else { return Some(1) };
    let ends = inner.split_once('-').map(|(low, high)| [low, high].map(str::parse::<u64>));
    match ends {
        Some([Ok(low), Ok(high)]) if high >= low => (high - low).checked_add(1),
        _ => Some(inner.split(',').count() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_lines_say_their_path() {
        for (line, expected) in [
            ("elbencho \"-w\" \"-t\" \"4\" \"/m/a\" \"/m/b\"", Some("/m/b")),
            ("/usr/bin/elbencho -w /m/a --csvfile /tmp/rows.csv", Some("/m/a")),
            ("elbencho --path /m/a -w -s 1g", Some("/m/a")),
            ("/usr/bin/elbencho -w file", Option::None),
        ] {
            assert_eq!(elbencho_path(line).as_deref(), expected, "{line}");
        }
    }
}
