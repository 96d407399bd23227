//! A configuration file of IOR, `ior -f FILE`: tests of `key=value` lines between `IOR START` and `IOR STOP`,
//! each ended by `RUN`. The keys of the first test count as options of the line.

use std::{fs, path::Path};

use crate::{error::LineError, options::ReadOption};

/// The option that a key stands for. Keys are compared without regard to case.
const KEYS: [(&str, &str); 44] = [
    ("api", "a"),
    ("testFile", "o"),
    ("blockSize", "b"),
    ("transferSize", "t"),
    ("segmentCount", "s"),
    ("repetitions", "i"),
    ("numTasks", "N"),
    ("writeFile", "w"),
    ("readFile", "r"),
    ("filePerProc", "F"),
    ("fsync", "e"),
    ("fsyncPerWrite", "Y"),
    ("useO_DIRECT", "B"),
    ("collective", "c"),
    ("randomOffset", "z"),
    ("reorderTasks", "C"),
    ("reorderTasksConstant", "C"),
    ("reorderTasksRandom", "Z"),
    ("reorderTasksRandomSeed", "X"),
    ("taskPerNodeOffset", "Q"),
    ("deadlineForStonewalling", "D"),
    ("maxTimeDuration", "T"),
    ("outlierThreshold", "j"),
    ("interTestDelay", "d"),
    ("checkWrite", "W"),
    ("checkRead", "R"),
    ("keepFile", "k"),
    ("keepFileWithError", "K"),
    ("multiFile", "m"),
    ("quitOnError", "q"),
    ("singleXferAttempt", "x"),
    ("intraTestBarriers", "g"),
    ("memoryPerNode", "M"),
    ("useExistingTestFile", "E"),
    ("uniqueDir", "u"),
    ("verbose", "v"),
    ("setTimeStampSignature", "G"),
    ("setAlignment", "J"),
    ("preallocate", "p"),
    ("useFileView", "V"),
    ("useSharedFilePointer", "P"),
    ("useStridedDatatype", "S"),
    ("hintsFileName", "U"),
    ("testNum", "A"),
];

/// Keys that no option has, with their effects.
const OTHERS: [(&str, &str); 11] = [
    ("lustreStripeCount", "how files are striped; here as the directory has it"),
    ("lustreStripeSize", "how files are striped; here as the directory has it"),
    ("lustreStartOST", "how files are striped; here as the directory has it"),
    ("lustreIgnoreLocks", "it works without the locks of Lustre"),
    ("storeFileOffset", ""),
    ("summaryFormat", ""),
    ("summaryFile", ""),
    ("nodes", ""),
    ("debug", ""),
    ("platform", ""),
    ("showHints", ""),
];

/// A file of IOR.
#[derive(Debug, Default)]
pub(crate) struct IorFile {
    /// Options of its first test.
    pub(crate) options: Vec<ReadOption>,
    /// Keys that are no options, each with its effect; an empty text is no effect.
    pub(crate) others: Vec<(ReadOption, &'static str)>,
    /// Lines of further tests.
    pub(crate) further: Vec<String>,
}

/// Reads a file.
pub(crate) fn read(path: &Path) -> Result<IorFile, LineError> {
    let name = path.display().to_string();
    match fs::read_to_string(path) {
        Ok(text) => parse(&text, &name),
        Err(source) => Err(LineError::File { file: name, source }),
    }
}

fn parse(text: &str, name: &str) -> Result<IorFile, LineError> {
    let mut file = IorFile::default();
    let lines = text.lines().enumerate().map(|(number, line)| (number + 1, without_comment(line)));
    let begun = lines.skip_while(|(_, line)| !line.eq_ignore_ascii_case("ior start")).skip(1);
    let mut is_run = false;
    let mut is_begun = false;
    for (number, line) in begun {
        is_begun = true;
        if line.is_empty() {
            continue;
        }
        if line.eq_ignore_ascii_case("ior stop") {
            break;
        }
        if line.eq_ignore_ascii_case("run") {
            is_run = true;
        } else if is_run {
            file.further.push(format!("{line} ({name}, line {number})"));
        } else {
            for directive in line.split(',') {
                take(&mut file, directive.trim(), &format!("{name}, line {number}"))?;
            }
        }
    }
    if !is_begun {
        return Err(LineError::whole(format!(
            "{name}: no line `IOR START`: write the tests between it and `IOR STOP`"
        )));
    }
    Ok(file)
}

fn without_comment(line: &str) -> &str {
    line.split('#').next().unwrap_or_default().trim()
}

fn take(file: &mut IorFile, directive: &str, place: &str) -> Result<(), LineError> {
    let Some((key, value)) = directive.split_once('=') else {
        return Err(LineError::word(directive, place, "write key=value"));
    };
    let key = key.trim();
    let value = value.trim();
    let option = ReadOption {
        name: key.to_owned(),
        value: value.to_owned(),
        written: format!("{key}={value}"),
        place: place.to_owned(),
    };
    if let Some((_, letter)) = KEYS.iter().find(|(known, _)| known.eq_ignore_ascii_case(key)) {
        file.options.push(ReadOption { name: (*letter).to_owned(), ..option });
    } else if let Some((_, what)) = OTHERS.iter().find(|(known, _)| known.eq_ignore_ascii_case(key)) {
        file.others.push((option, what));
    } else {
        let known: Vec<&str> = KEYS.iter().map(|(known, _)| *known).collect();
        return Err(option.wrong(format!("IOR has no such key: write one of {}", known.join(", "))));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_test_is_read_and_the_others_are_named() {
        let text = "# a comment\nIOR START\n api=POSIX\n\tTestFile = /x/f # there\nblocksize=64m, transferSize=4m\nRUN\n\
                    blockSize=1g\nRUN\nIOR STOP\napi=HDF5\n";
        let file = parse(text, "c.ior").expect("valid");
        let options: Vec<(&str, &str)> =
            file.options.iter().map(|option| (option.name.as_str(), option.value.as_str())).collect();
        assert_eq!(options, [("a", "POSIX"), ("o", "/x/f"), ("b", "64m"), ("t", "4m")]);
        assert_eq!(file.options[3].place, "c.ior, line 5");
        assert_eq!(file.further, ["blockSize=1g (c.ior, line 7)"]);
    }

    #[test]
    fn what_ior_would_not_read_is_refused_at_its_line() {
        for (text, part) in [
            ("api=POSIX\n", "no line `IOR START`"),
            (
                "IOR START\nblocksise=1m\n",
                "`blocksise=1m` (c.ior, line 2): IOR has no such key: write one of api",
            ),
            ("ior start\n\nstripes\n", "`stripes` (c.ior, line 3): write key=value"),
        ] {
            let error = parse(text, "c.ior").expect_err(text).to_string();
            assert!(error.contains(part), "{part} in {error}");
        }
    }
}
