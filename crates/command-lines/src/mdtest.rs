//! A line of mdtest, as a tree of ours.

use std::path::PathBuf;

use nilometer_model::Bytes;

use crate::{
    amount::{BINARY, count, size, time},
    error::LineError,
    line::{ForeignLine, parent_of},
    options::{
        OptionTable,
        OptionValues::{Attached, None, One},
        ReadOption, ReadWords, changes, nothing, taken,
    },
    reach::LinePath,
    tree_line::{ITEMS_MOST, TreeLine},
};

const TABLE: OptionTable = OptionTable {
    program: "mdtest",
    ends_at_word: false,
    rows: &[
        taken("d|n|I|z|b|w|e|N|a|i|W", One),
        taken("F|D|u|C|T|E|r|L", None),
        nothing("V|random-seed|x|G", One),
        nothing("v|P|Z|q|t|h|print-all-procs|warningAsErrors|showRankStatistics", None),
        nothing("saveRankPerformanceDetails|savePerOpDataCSV", One),
        changes("R", Attached, "it looks at its items in random order"),
        changes("B", None, "its processes do not wait for each other between phases"),
        changes("c", None, "the first process makes all items"),
        changes("S", None, "all processes have one file"),
        changes("k", None, "it makes files by mknod"),
        changes("M", None, "every process is its own in the summary"),
        changes("U", None, "it renames directories"),
        changes("X|verify-read|verify-write", None, "it compares the data that it reads"),
        changes("y", None, "it syncs each file when it is written"),
        changes("Y", None, "it syncs the file system after each phase"),
        changes("f|l|s", One, "it begins again with more processes each time"),
        changes("p", One, "it waits before each iteration"),
        changes("dataPacketType", One, "the content of its data"),
        changes("g", None, "how directories are laid out"),
        changes("posix.odirect", None, "its files are opened with O_DIRECT"),
        changes("dfs.pool|dfs.cont|dfs.chunk_size|dfs.oclass|dfs.dir_oclass", One, "how DAOS keeps them"),
        changes(
            "run-cmd-before-phase|run-cmd-after-phase|allocateBufferOnGPU",
            One,
            "it runs something beside",
        ),
    ],
};

/// Options of a line that count only together with the shape of its tree.
#[derive(Debug, Default)]
struct MdtestItems {
    /// Items of the whole tree.
    all: u32,
    /// Bytes that it reads from each file; `None` without the option.
    read_size: Option<Bytes>,
    only_leaves: bool,
    has_files: bool,
    has_directories: bool,
}

/// Reads the options; the first word has number `first` in the line.
pub(crate) fn take(line: &mut ForeignLine, words: &[String], first: usize) -> Result<(), LineError> {
    let mut tree = TreeLine { branching: 1, ..TreeLine::default() };
    let mut items = MdtestItems::default();
    let read = TABLE.read(words, first)?;
    for operand in &read.operands {
        line.leave(operand, "no option of mdtest");
    }
    add_reach(line, &read);
    for option in read.taken(&mut line.left_out)? {
        take_option(line, &mut tree, &mut items, &option)?;
    }
    tree.kind = match (items.has_files, items.has_directories) {
        (true, false) => "files",
        (false, true) => "directories",
        _ => "both",
    };
    take_items(line, &mut tree, &items)?;
    name_deadline(line, &tree);
    line.tree = Some(tree);
    Ok(())
}

/// The directory of mdtest without `-d`.
const DIRECTORY: &str = "out";

/// Notes the places that mdtest fills and writes, and the programs that it starts besides.
fn add_reach(line: &mut ForeignLine, read: &ReadWords) {
    let directory = read.named(&["d"]).last().map_or(DIRECTORY, |option| option.value.as_str());
    line.reach.add(LinePath::Directory(directory.into()));
    for option in read.named(&["saveRankPerformanceDetails", "savePerOpDataCSV", "x"]) {
        line.reach.add(LinePath::FilesFrom(option.value.as_str().into()));
    }
    for option in read.named(&["run-cmd-before-phase", "run-cmd-after-phase"]) {
        line.reach.add_unbounded(&option.written, "it runs another program");
    }
    let is_local = |option: &&ReadOption| ["POSIX", "MPIIO"].contains(&option.value.to_uppercase().as_str());
    for option in read.named(&["a"]).filter(|option| !is_local(option)) {
        line.reach.add_unbounded(&option.written, "it works on storage that no path names");
    }
}

/// The parts of mdtest's command line that its output repeats, and that make a test.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MdtestCommand {
    /// The options that make the test, without those of its places and its printing.
    pub options: String,
    /// A limit of time, or the number of items that another run reached, makes fewer items than the options say.
    pub is_limited: bool,
}

/// Options of places, of a number that differs from run to run, and of printing. They make no other test.
const SAME_TEST: [&str; 7] = ["d", "x", "G", "P", "v", "saveRankPerformanceDetails", "savePerOpDataCSV"];

impl MdtestCommand {
    /// Reads a line that mdtest printed.
    pub fn read(line: &str) -> Self {
        let options = TABLE.read_repeated(line);
        let is_limit = |option: &ReadOption| ["W", "x"].contains(&option.name.as_str());
        let makes_test = |option: &&ReadOption| !SAME_TEST.contains(&option.name.as_str());
        let told: Vec<&str> =
            options.iter().filter(makes_test).map(|option| option.written.as_str()).collect();
        MdtestCommand { options: told.join(" "), is_limited: options.iter().any(is_limit) }
    }
}

fn take_option(
    line: &mut ForeignLine,
    tree: &mut TreeLine,
    items: &mut MdtestItems,
    option: &ReadOption,
) -> Result<(), LineError> {
    let wrong = |error: LineError| option.wrong(error);
    let number = |most: u32| count(&option.value, most).map_err(wrong);
    match option.name.as_str() {
        "d" => line.directory = place(&option.value).map_err(wrong)?,
        "n" => items.all = number(ITEMS_MOST)?,
        "I" => tree.items = number(ITEMS_MOST)?,
        "z" => tree.levels = number(64)?,
        "b" => tree.branching = number(ITEMS_MOST)?,
        "N" => tree.shift = number(4096)?,
        "w" => tree.file_size = size(&option.value, BINARY).map_err(wrong)?,
        "e" => items.read_size = Some(size(&option.value, BINARY).map_err(wrong)?),
        "F" => items.has_files = true,
        "D" => items.has_directories = true,
        "u" => tree.is_unique = true,
        "L" => items.only_leaves = true,
        "W" => take_deadline(line, option)?,
        "a" if option.value != "POSIX" => {
            line.leave_option(option, "it has another interface; here calls of POSIX");
        }
        "i" if option.value != "1" => {
            line.leave_option(option, "its figure is the mean of all iterations; here of all rounds");
        }
        "a" | "i" => {}
        phase => tree.phases.push(phase.to_owned()),
    }
    Ok(())
}

/// The cell ends each phase after that time; the phases after creation find the items made until then.
fn take_deadline(line: &mut ForeignLine, option: &ReadOption) -> Result<(), LineError> {
    let after = time(&option.value).map_err(|error| option.wrong(error))?;
    line.time = Some(after).filter(|after| after.0 > 0);
    Ok(())
}

/// Notes the differences between the time limit of a cell and the deadline of mdtest.
fn name_deadline(line: &mut ForeignLine, tree: &TreeLine) {
    let Some(after) = line.time else { return };
    let option = format!("-W {:.0}", after.seconds());
    if tree.shift > 0 {
        line.time.take();
        line.leave(
            &option,
            "with -N processes would look for items that others had no time to make; here all are made",
        );
    } else if line.workers > 1 {
        line.leave(
            &option,
            "after it mdtest lets all processes create as many items as the fastest; here each stops then",
        );
    }
}

/// `-n` counts items of the whole tree, `-I` those of each directory.
fn take_items(line: &mut ForeignLine, tree: &mut TreeLine, items: &MdtestItems) -> Result<(), LineError> {
    let directories = u32::try_from(tree.tree_directories()).unwrap_or(u32::MAX);
    let all = items.all;
    if tree.items > 0 && all > tree.items && !tree.is_unique {
        line.leave(&format!("-n {all} beside -I"), "it adds directories until they hold all items; here one");
    } else if tree.items == 0 && all > 0 {
        tree.items = (all / directories).max(1);
        let odd = all % directories;
        if odd != 0 && all > directories {
            line.leave(&format!("the last {odd} items"), "they are not in every directory");
        }
    }
    if items.only_leaves && tree.levels > 0 {
        line.leave("-L", "items are in the lowest directories only; here in every one");
    } else if items.only_leaves {
        line.left_out.without_effect.push("-L".to_owned());
    }
    if let Some(read_size) = items.read_size.filter(|size| *size != tree.file_size) {
        line.leave(
            &format!("-e {}", read_size.0),
            "it reads other than it writes; here each file to its end",
        );
    }
    if tree.items == 0 {
        return Err(LineError::whole("the line does not say how many: write mdtest -n or -I"));
    }
    Ok(())
}

/// mdtest makes the directory of the line; ours lies beside it.
fn place(text: &str) -> Result<PathBuf, LineError> {
    if text.contains('@') {
        return Err(LineError::whole("write one directory"));
    }
    let path = PathBuf::from(text);
    Ok(if path.is_dir() { path } else { parent_of(&path) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_lines_say_what_makes_a_test() {
        let command = |options: &str, is_limited| MdtestCommand { options: options.to_owned(), is_limited };
        for (line, expected) in [
            ("mdtest '-n' '2048' '-i' '3' '-d' '/mnt/x'", command("-n 2048 -i 3", false)),
            ("/bin/mdtest -F -P -v -d=/mnt/x -G=-153 -N 1", command("-F -N 1", false)),
            ("mdtest -n 10 -W 300", command("-n 10 -W 300", true)),
            ("mdtest -n 10 -W300 -x /mnt/stone", command("-n 10 -W 300", true)),
            ("mdtest --new 3 -d /mnt/-W -u", command("--new 3 -u", false)),
            ("", command("", false)),
        ] {
            assert_eq!(MdtestCommand::read(line), expected, "{line}");
        }
    }
}
