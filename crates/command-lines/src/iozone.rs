//! A line of iozone: its first test becomes the cell.

use std::path::PathBuf;

use nilometer_model::Bytes;

use crate::{
    amount::{BINARY, count, size},
    error::LineError,
    line::{ForeignLine, LineAccess, LineSync, directory_of},
    options::{
        OptionTable,
        OptionValues::{Many, None, One},
        ReadOption, ReadWords, changes, nothing, taken,
    },
    reach::LinePath,
};

const TABLE: OptionTable = OptionTable {
    program: "iozone",
    ends_at_word: false,
    rows: &[
        taken("s|r|i|t|f|g|n|q|y|l|u", One),
        taken("F", Many),
        taken("I|e|o|a|z|A", None),
        nothing("R|w|c|v|E|C|M|x|Q|h|+n|+T|+d|+u|N|O", None),
        nothing("b|S|L|+z|+N", One),
        changes("B|G|D|Z", None, "it works through mapped memory"),
        changes("k|H", One, "operations that it does not wait for"),
        changes("K|p|m|T|V|W|X|Y", None, "how it issues operations and places its threads"),
        changes("j|J|P|d|U", One, "strides, pauses, processors and mounts between its tests"),
        changes(
            "+m|+c|+h|+w|+y|+C|+B|+p|+S|+r|+s|+l|+t|+x|+k|+q",
            One,
            "other machines, and the content of its data",
        ),
        changes(
            "+D|+r|+A|+E|+F|+f|+W|+K|+L|+M|+Q|+i|+o|+a|+b|+e|+g|+j|+v|+V|+X|+Z|+I",
            None,
            "a mode of its own",
        ),
    ],
};

/// Tests of iozone by number, with their names and directions; a test without a direction has no counterpart here.
const TESTS: [(&str, &str, Option<LineAccess>); 13] = [
    ("0", "write and rewrite", Some(LineAccess::Write)),
    ("1", "read and reread", Some(LineAccess::Read)),
    ("2", "random read and write", Some(LineAccess::RandomRead)),
    ("3", "read backwards", Option::None),
    ("4", "rewrite a record", Option::None),
    ("5", "read in strides", Option::None),
    ("6", "fwrite", Option::None),
    ("7", "fread", Option::None),
    ("8", "random mix", Some(LineAccess::RandomMix(50))),
    ("9", "pwrite", Some(LineAccess::Write)),
    ("10", "pread", Some(LineAccess::Read)),
    ("11", "pwritev", Some(LineAccess::Write)),
    ("12", "preadv", Some(LineAccess::Read)),
];

/// Tests and sizes of a line, of which the first become its cell.
#[derive(Debug, Default)]
struct IozoneTests {
    tests: Vec<String>,
    sizes: Vec<Bytes>,
    records: Vec<Bytes>,
    is_automatic: bool,
    file: Option<PathBuf>,
}

/// Reads the options; the first word has number `first` in the line.
pub(crate) fn take(line: &mut ForeignLine, words: &[String], first: usize) -> Result<(), LineError> {
    let mut tests = IozoneTests::default();
    let read = TABLE.read(words, first)?;
    let operands = read.operands.clone();
    add_reach(line, &read);
    for option in read.taken(&mut line.left_out)? {
        take_option(line, &mut tests, &option)?;
    }
    for operand in operands {
        line.leave(&operand, "iozone reads no such word");
    }
    take_sizes(line, &tests)?;
    take_tests(line, &tests)?;
    if let Some(file) = &tests.file {
        line.directory = directory_of(file)?;
    }
    Ok(())
}

/// Files of iozone if it names none: of one process, and of several.
const FILES: [&str; 2] = ["iozone.tmp", "iozone.DUMMY"];
/// Files of `-Q` and the first part of their names.
const OFFSET_FILES: [&str; 4] = ["rol.dat", "wol.dat", "rrol.dat", "rwol.dat"];

/// Notes the files that iozone makes, and its effects on other machines and on mounts.
fn add_reach(line: &mut ForeignLine, read: &ReadWords) {
    let named = read.named(&["f", "F", "b"]).flat_map(|option| option.value.split(' '));
    let mut files: Vec<&str> = named.collect();
    if read.named(&["f", "F"]).next().is_none() {
        files.extend(FILES);
    }
    if read.named(&["Q"]).next().is_some() {
        files.extend(OFFSET_FILES);
    }
    for file in files {
        line.reach.add(LinePath::FilesFrom(file.into()));
    }
    for option in read.named(&["+m", "+c"]) {
        line.reach.add_unbounded(&option.written, "it starts processes on other machines");
    }
    for option in read.named(&["U"]) {
        line.reach.add_unbounded(&option.written, "it unmounts a file system");
    }
}

fn take_option(
    line: &mut ForeignLine,
    tests: &mut IozoneTests,
    option: &ReadOption,
) -> Result<(), LineError> {
    let value = option.value.as_str();
    let wrong = |error: LineError| option.wrong(error);
    match option.name.as_str() {
        "s" => tests.sizes.push(kibibytes(value).map_err(wrong)?),
        "r" => tests.records.push(kibibytes(value).map_err(wrong)?),
        "i" => tests.tests.push(value.to_owned()),
        "t" | "u" => line.workers = count(value, 1024).map_err(wrong)?.max(1),
        "l" => line.left_out.without_effect.push(option.written.clone()),
        "f" => tests.file = Some(PathBuf::from(value)),
        "F" => tests.file = value.split(' ').next().map(PathBuf::from),
        "I" => line.direct = true,
        "e" => line.durable = LineSync::AtClose,
        "o" => line.durable = LineSync::Every(1),
        "a" | "z" | "A" => tests.is_automatic = true,
        _ => line.leave_option(option, "further sizes of files and records; here one of each"),
    }
    Ok(())
}

/// A number without a unit is of KiB.
fn kibibytes(text: &str) -> Result<Bytes, LineError> {
    if text.parse::<u64>().is_ok() { size(&format!("{text}k"), BINARY) } else { size(text, BINARY) }
}

fn take_sizes(line: &mut ForeignLine, tests: &IozoneTests) -> Result<(), LineError> {
    let (Some(size), Some(record)) = (tests.sizes.first(), tests.records.first()) else {
        let what =
            if tests.sizes.is_empty() { "-s, the size of its file" } else { "-r, the size of its records" };
        return Err(LineError::whole(format!(
            "iozone without {what}, goes through many: write the one of your figure, such as -s 1g -r 1m"
        )));
    };
    line.size = *size;
    line.block = *record;
    for (name, all) in [("-s", &tests.sizes), ("-r", &tests.records)] {
        let others: Vec<String> = all[1..].iter().map(|of| format!("{name} {} B", of.0)).collect();
        if !others.is_empty() {
            line.leave(&others.join(", "), "further sizes; the first is compared");
        }
    }
    if tests.is_automatic {
        line.left_out.without_effect.push("-a".to_owned());
    }
    Ok(())
}

/// The test with the lowest number that has a counterpart here: iozone begins with it, and prints its figure first.
fn take_tests(line: &mut ForeignLine, tests: &IozoneTests) -> Result<(), LineError> {
    let known = |test: &String| TESTS.iter().find(|(number, ..)| number == test);
    if let Some(test) = tests.tests.iter().find(|test| known(test).is_none()) {
        return Err(LineError::whole(format!("-i {test}: iozone has no such test: write one of 0 to 12")));
    }
    let is_named = |number: &str| tests.tests.iter().any(|test| test == number);
    let taken = TESTS.iter().filter(|(number, ..)| is_named(number)).find_map(|(_, _, way)| *way);
    if taken.is_none() && !tests.tests.is_empty() {
        let named = tests.tests.join(", -i ");
        return Err(LineError::whole(format!(
            "-i {named}: no counterpart here: write one of 0, 1, 2, 8, 9, 10, 11, 12"
        )));
    }
    line.way = taken.unwrap_or(LineAccess::Write);
    let is_taken = |test: &&String| known(test).is_some_and(|(_, _, way)| *way == taken);
    let others = tests.tests.iter().filter(|test| !is_taken(test)).filter_map(known);
    for (number, name, _) in others {
        line.leave(&format!("-i {number}"), &format!("its test `{name}`; another one is compared"));
    }
    Ok(())
}
