//! A line of IOR: files of all processes, or one that they share.

use std::path::Path;

use nilometer_model::Bytes;

use crate::{
    amount::{BINARY, count, size, time},
    error::LineError,
    ior_file,
    line::{ForeignLine, LineAccess, LineFiles, LineMpiIo, LineSync, directory_of},
    options::{
        OptionTable,
        OptionValues::{None, One},
        ReadOption, changes, nothing, taken,
    },
    reach::LinePath,
};

const TABLE: OptionTable = OptionTable {
    program: "ior",
    ends_at_word: false,
    rows: &[
        taken("a|api|t|transferSize|b|blockSize|s|segmentCount|o|testFile|D|f|N|i|O|Q", One),
        taken(
            "w|writeFile|r|readFile|z|randomOffset|e|fsync|Y|B|posix.odirect|F|filePerProc|c|collective|C",
            None,
        ),
        nothing("k|K|v|verbose|q|H|h|x|g|warningAsErrors|showHints|totalPerformance", None),
        nothing("A|j|G|X|reorderTasksRandomSeed|T|maxTimeDuration|M|memoryPerNode|random-offset-seed", One),
        changes("d|interTestDelay", One, "it waits between its phases"),
        changes("R|W|checkRead|checkWrite", None, "it reads its data back and compares them"),
        changes("Z|reorderTasksRandom", None, "each process reads the data of another one"),
        changes("E|useExistingFile", None, "it works on files that are there; here each file is new"),
        changes("m|multiFile|u|uniqueDir", None, "the names and directories of its files"),
        changes("l|dataPacketType", One, "the content of its data"),
        changes("J|setAlignment|U|hintsFileName|y", One, "how its files are laid out and opened"),
        changes("p|P|S|V|I|n|L", None, "how its library places data in files"),
        changes(
            "mpiio.useFileView|mpiio.useStridedDatatype|mpiio.preallocate|mpiio.showHints",
            None,
            "how MPI-IO works",
        ),
        changes(
            "mpiio.hintsFileName|lustre.stripe_count|posix.lustre.stripecount|posix.lustre.stripesize",
            One,
            "how files are laid out",
        ),
        changes(
            "posix.gpfs.hintaccess|posix.gpfs.releasetoken|posix.lustre.ignorelocks",
            None,
            "locks of the file system",
        ),
        changes("hdf5.collectiveMetadata|hdf5.setAlignment", One, "how HDF5 works"),
        changes(
            "dfs.pool|dfs.cont|dfs.group|dfs.oclass|dfs.chunk_size|dfs.dir_oclass",
            One,
            "how DAOS keeps it",
        ),
    ],
};

/// Phases and files of a line, which together make its cell.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
struct IorFiles {
    segments: u64,
    writes: bool,
    reads: bool,
    is_random: bool,
    is_collective: bool,
    is_shared: bool,
    is_reordered: bool,
    /// Paths of files, each perhaps several with `@` between them; the last is that of the first test.
    paths: Vec<String>,
    has_own_directories: bool,
}

/// The file of IOR if the line names none.
const FILE: &str = "testFile";

impl IorFiles {
    /// Notes the files that IOR writes, and removes when it ends.
    fn add_reach(&self, line: &mut ForeignLine) {
        let default = [FILE.to_owned()];
        let named = if self.paths.is_empty() { &default[..] } else { &self.paths };
        for path in named.iter().flat_map(|paths| paths.split('@')).map(without_scheme) {
            line.reach.add(if path.ends_with('/') {
                LinePath::Directory(path.into())
            } else {
                LinePath::FilesFrom(path.into())
            });
            let name = Path::new(path).file_name().unwrap_or_default();
            // With -u each process has a directory of its own, named by its number.
            for process in (0..line.workers).filter(|_| self.has_own_directories) {
                let directory = crate::line::parent_of(Path::new(path)).join(process.to_string());
                line.reach.add(LinePath::FilesFrom(directory.join(name)));
            }
        }
    }
}

/// Reads the options; the first word has number `first` in the line.
pub(crate) fn take(line: &mut ForeignLine, words: &[String], first: usize) -> Result<(), LineError> {
    line.block = Bytes(256 << 10);
    line.size = Bytes(1 << 20);
    let mut files = IorFiles { segments: 1, is_shared: true, ..IorFiles::default() };
    let read = TABLE.read(words, first)?;
    for operand in &read.operands {
        line.leave(operand, "no option of ior");
    }
    files.has_own_directories = read.named(&["u", "uniqueDir"]).next().is_some();
    let options = read.taken(&mut line.left_out)?;
    // The keys of a file come after the options of the line, as IOR has them.
    for option in options.iter().filter(|option| option.name != "f") {
        take_option(line, &mut files, option)?;
    }
    for option in options.iter().filter(|option| option.name == "f") {
        take_file(line, &mut files, option)?;
    }
    files.add_reach(line);
    complete(line, &files);
    Ok(())
}

/// The parts of IOR's command line that its output repeats, and that its tables depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IorCommand {
    /// The line asks for a phase that writes.
    pub writes: bool,
    /// The line asks for a phase that reads.
    pub reads: bool,
    /// A limit of time ends a phase: its own, or that of an earlier run whose data this one reads.
    pub is_time_limited: bool,
    /// Options that make a test and that no other line of the output has, with their values.
    pub told: Vec<(String, String)>,
}

/// Options that make a test, and words for them.
const TOLD: [(&[&str], &str); 9] = [
    (&["B", "posix.odirect"], "direct"),
    (&["e", "fsync"], "fsync"),
    (&["Y"], "fsync after each write"),
    (&["c", "collective"], "collective"),
    (&["C"], "reads of the next node's data"),
    (&["Z", "reorderTasksRandom"], "reads of another task's data"),
    (&["E", "useExistingFile"], "existing file"),
    (&["D"], "deadline"),
    (&["l", "dataPacketType"], "data"),
];

impl IorCommand {
    /// Reads a line that IOR printed.
    pub fn read(line: &str) -> Self {
        let options = TABLE.read_repeated(line);
        let is_asked = |names: [&str; 2]| {
            options.iter().any(|option| names.contains(&option.name.as_str()) && option.is_set())
        };
        let [writes, reads] = [is_asked(["w", "writeFile"]), is_asked(["r", "readFile"])];
        // IOR does both if its line asks for no phase, unless a file of its own does.
        let is_silent = !writes && !reads && !is_asked(["W", "checkWrite"]) && !is_asked(["R", "checkRead"]);
        let has_file = options.iter().any(|option| option.name == "f");
        let both = is_silent && !has_file && !line.trim().is_empty();
        IorCommand {
            writes: writes || both,
            reads: reads || both,
            is_time_limited: options.iter().any(limits_time),
            told: TOLD.iter().filter_map(|(names, word)| told(&options, names, word)).collect(),
        }
    }
}

/// The last option with one of these names as a parameter of a test; `None` if it is not set.
fn told(options: &[ReadOption], names: &[&str], word: &str) -> Option<(String, String)> {
    let option = options.iter().rfind(|option| names.contains(&option.name.as_str()))?;
    let parameter = match option.value.as_str() {
        "" | "1" if word != "deadline" => (String::new(), word.to_owned()),
        value => (word.to_owned(), value.to_owned()),
    };
    option.is_set().then_some(parameter)
}

fn limits_time(option: &ReadOption) -> bool {
    match option.name.as_str() {
        "D" => option.value != "0",
        "O" => option.value.to_ascii_lowercase().contains("stonewalling"),
        _ => false,
    }
}

fn take_file(line: &mut ForeignLine, files: &mut IorFiles, option: &ReadOption) -> Result<(), LineError> {
    let file =
        ior_file::read(Path::new(&option.value)).map_err(|error| option.wrong(format!("{error:#}")))?;
    files.has_own_directories |= file.options.iter().any(|option| option.name == "u");
    for option in &file.options {
        let effect = TABLE.of_file(option)?;
        line.left_out.file(option, effect)?;
        take_option(line, files, option)?;
    }
    for (option, what) in &file.others {
        if option.name.eq_ignore_ascii_case("summaryFile") {
            line.reach.add(LinePath::File(option.value.as_str().into()));
        }
        match *what {
            "" => line.left_out.without_effect.push(option.written.clone()),
            what => line.leave_option(option, what),
        }
    }
    add_further_reach(line, files, &file.further);
    if !file.further.is_empty() {
        line.leave(&file.further.join(", "), "tests behind the first RUN; the first test is taken over");
    }
    Ok(())
}

/// Further tests of a file run as well: `testFile=/data/b (name, line 12)`.
fn add_further_reach(line: &mut ForeignLine, files: &mut IorFiles, further: &[String]) {
    for directive in further.iter().flat_map(|line| line.split(',')) {
        let (key, value) = directive.split_once('=').unwrap_or((directive, ""));
        let value = value.split(" (").next().unwrap_or_default().trim();
        match key.trim().to_ascii_lowercase().as_str() {
            "testfile" => files.paths.push(value.to_owned()),
            "api" if !is_local(value) => line.reach.add_unbounded(directive, ELSEWHERE),
            "uniquedir" => files.has_own_directories = true,
            "summaryfile" => line.reach.add(LinePath::File(value.into())),
            _ => {}
        }
    }
}

/// The effect of an interface that opens no files.
const ELSEWHERE: &str = "it works on storage that no path names";

/// True if an interface of IOR works on files.
fn is_local(interface: &str) -> bool {
    ["POSIX", "MPIIO", "MMAP", "HDF5", "NCMPI"].contains(&interface.to_ascii_uppercase().as_str())
}

fn take_option(line: &mut ForeignLine, files: &mut IorFiles, option: &ReadOption) -> Result<(), LineError> {
    let wrong = |error: LineError| option.wrong(error);
    let value = option.value.as_str();
    match option.name.as_str() {
        "t" | "transferSize" => line.block = size(value, BINARY).map_err(wrong)?,
        "b" | "blockSize" => line.size = size(value, BINARY).map_err(wrong)?,
        "s" | "segmentCount" => files.segments = size(value, BINARY).map_err(wrong)?.0,
        "N" => line.workers = count(value, 1024).map_err(wrong)?.max(1).min(line.workers.max(1)),
        "o" | "testFile" => {
            files.paths.push(value.to_owned());
            take_path(line, value).map_err(wrong)?;
        }
        "w" | "writeFile" => files.writes = option.is_set(),
        "r" | "readFile" => files.reads = option.is_set(),
        "z" | "randomOffset" => files.is_random = option.is_set(),
        "c" | "collective" => files.is_collective = option.is_set(),
        "C" => files.is_reordered = option.is_set(),
        "F" | "filePerProc" => files.is_shared = !option.is_set(),
        "B" | "posix.odirect" => line.direct = option.is_set(),
        "e" | "fsync" if option.is_set() => line.durable = line.durable.or(LineSync::AtClose),
        "Y" if option.is_set() => line.durable = LineSync::Every(1),
        "a" | "api" => take_interface(line, option),
        "D" if value != "0" => line.time = Some(time(value).map_err(wrong)?),
        "i" if value != "1" => {
            line.leave_option(
                option,
                "its figure is the best of all repetitions; here the mean of all rounds",
            );
        }
        "Q" => line.left_out.without_effect.push(option.written.clone()),
        "O" => take_directives(line, option),
        _ => {}
    }
    Ok(())
}

/// Takes paths of files, perhaps several with `@` between them.
fn take_path(line: &mut ForeignLine, value: &str) -> Result<(), LineError> {
    let mut paths = value.split('@');
    let first = without_scheme(paths.next().unwrap_or_default());
    // A path that ends in a slash is a directory, in which files have numbers for names.
    line.directory = if first.len() > 1 && first.ends_with('/') {
        Path::new(first).to_owned()
    } else {
        directory_of(Path::new(first))?
    };
    if paths.next().is_some() {
        line.leave(&format!("-o {value}"), "its files lie in several places; here in the first one");
    }
    Ok(())
}

/// MPI-IO may have the kind of a file system in front: `ufs:/scratch/file`.
fn without_scheme(path: &str) -> &str {
    match path.split_once(':') {
        Some((scheme, rest)) if rest.starts_with('/') && !scheme.contains('/') => rest,
        _ => path,
    }
}

fn take_interface(line: &mut ForeignLine, option: &ReadOption) {
    if !is_local(&option.value) {
        line.reach.add_unbounded(&option.written, ELSEWHERE);
    }
    match option.value.to_ascii_uppercase().as_str() {
        "POSIX" => {}
        "MPIIO" => line.mpi_io = Some(LineMpiIo::Independent),
        "MMAP" => line.leave_option(option, "it writes through mapped memory; here by calls of POSIX"),
        _ => line.leave_option(option, "it has another interface; here calls of POSIX"),
    }
}

/// `-O key=value,key=value`.
fn take_directives(line: &mut ForeignLine, option: &ReadOption) {
    for directive in option.value.split(',') {
        let (key, value) = directive.split_once('=').unwrap_or((directive, "1"));
        match key.to_ascii_lowercase().as_str() {
            "testfile" => {
                line.reach.add(LinePath::FilesFrom(without_scheme(value).into()));
                line.leave(&format!("-O {directive}"), "another file than that of -o");
            }
            "useo_direct" => line.direct = value != "0",
            "summaryfile" | "savepervarfile" | "saverankperformancedetailscsv" | "stonewallingstatusfile" => {
                line.reach.add(LinePath::FilesFrom(value.into()));
                line.left_out.without_effect.push(format!("-O {directive}"));
            }
            "summaryformat" => {
                line.left_out.without_effect.push(format!("-O {directive}"));
            }
            "stonewallingwearout" | "stonewallingwearoutiterations" | "mintimeduration" => {
                line.leave(&format!("-O {directive}"), "how a phase ends that has a deadline");
            }
            _ => line.leave(&format!("-O {directive}"), "a setting without a counterpart here"),
        }
    }
}

fn complete(line: &mut ForeignLine, files: &IorFiles) {
    line.way = match (files.reads && !files.writes, files.is_random) {
        (false, false) => LineAccess::Write,
        (true, false) => LineAccess::Read,
        (false, true) => LineAccess::RandomWrite,
        (true, true) => LineAccess::RandomRead,
    };
    if files.writes == files.reads {
        line.leave("reading", "it reads as well; compared is its writing");
    }
    if files.is_reordered && line.way == LineAccess::Read {
        line.leave("-C", "each process reads the data of one on the next node; here its own data, cold");
    } else if files.is_reordered {
        line.left_out.without_effect.push("-C".to_owned());
    }
    share_one_file(line, files);
    line.size = Bytes(line.size.0.saturating_mul(files.segments));
    complete_mpi_io(line, files);
}

/// One process has the file to itself. Blocks of one transfer that take turns are the layout that we call
/// strided.
fn share_one_file(line: &mut ForeignLine, files: &IorFiles) {
    if !files.is_shared || line.workers == 1 {
        return;
    }
    line.files = LineFiles::Segmented;
    if files.segments > 1 && line.size == line.block {
        line.files = LineFiles::Strided;
    } else if files.segments > 1 {
        line.leave(&format!("-s {}", files.segments), "each process writes several pieces; here one");
    }
}

fn complete_mpi_io(line: &mut ForeignLine, files: &IorFiles) {
    if files.is_collective && line.mpi_io.is_some() && line.files != LineFiles::Own {
        line.mpi_io = Some(LineMpiIo::Collective);
    } else if files.is_collective {
        line.leave("-c", "collective calls need MPI-IO and one file of several processes");
    }
    if line.mpi_io.is_some() && line.direct {
        line.direct = false;
        line.leave("O_DIRECT", "MPI-IO opens files without it");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_lines_say_phases_and_limits_of_time() {
        let command = |writes, reads, is_time_limited| (writes, reads, is_time_limited);
        for (line, expected) in [
            ("ior -w -r", command(true, true, false)),
            ("/opt/ior -wrF -t 1m", command(true, true, false)),
            ("ior -w=0 -r", command(false, true, false)),
            ("ior -w -D 60", command(true, false, true)),
            ("ior -w -D60", command(true, false, true)),
            ("ior -r -D 0", command(false, true, false)),
            ("ior -r -O stoneWallingStatusFile=/x/s", command(false, true, true)),
            ("ior -o /x/-D", command(true, true, false)),
            ("ior -W -o /x", command(false, false, false)),
            ("ior -f script", command(false, false, false)),
            ("", command(false, false, false)),
        ] {
            let IorCommand { writes, reads, is_time_limited, .. } = IorCommand::read(line);
            assert_eq!((writes, reads, is_time_limited), expected, "{line}");
        }
    }

    #[test]
    fn repeated_lines_tell_options_that_make_a_test() {
        let told = |line: &str| -> Vec<String> {
            let told = IorCommand::read(line).told.into_iter();
            told.map(|(name, value)| format!("{name} {value}").trim().to_owned()).collect()
        };
        assert_eq!(told("ior -w -e -Y -D 60"), ["fsync", "fsync after each write", "deadline 60"]);
        assert_eq!(
            told("ior -w -e -e=0 --posix.odirect -cC"),
            ["direct", "collective", "reads of the next node's data"]
        );
        assert_eq!(told("ior -w -D 0 -k"), [""; 0]);
    }
}
