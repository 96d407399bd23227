//! Tips for arguments that the program does not know: options of fio, IOR and elbencho, words for its commands, and
//! values whose unit stands apart.

use clap::{
    Error,
    builder::StyledStr,
    error::{ContextKind, ContextValue, ErrorKind},
};
use nilometer_model::{Bytes, Frequency, LinkRate, Nanos};

const OWN_PLAN: &str =
    "`nilometer plan show quick --toml > mine.toml` begins a plan of your own, `--plan mine.toml` runs it";

/// Options of other programs, and their counterparts in Nilometer.
const FOREIGN: [(&[&str], &str); 12] = [
    (
        &["--bs", "--block", "--blocksize", "--block-size", "--transfersize", "-b", "-t"],
        "set `block_size` in a plan",
    ),
    (
        &["--size", "--filesize", "--file-size", "-s"],
        "set `file_size` in a plan, or `--scale 1/10` for all sizes",
    ),
    (&["--threads", "--numjobs", "--jobs", "-j"], "set `workers` in a plan"),
    (&["--iodepth", "--depth", "--qd"], "set `depth` in a plan"),
    (&["--direct", "--odirect"], "set `access = \"direct\"` in a plan"),
    (&["--ioengine", "--engine", "--io-engine"], "set `engine` in a plan"),
    (
        &["--rw", "--readwrite", "--rwmixread", "--rwmixpct", "-w", "-r"],
        "set `mode` of `[stage.workload.random]` in a plan",
    ),
    (&["--iterations", "--loops", "--repeat", "-i"], "`--repeats 5`"),
    (
        &["--runtime", "--timelimit", "--time", "--timeout"],
        "`--time-limit \"10 min\"`; for a recording `--duration \"1 h\"`",
    ),
    (
        &["--json", "--output-format", "--csv", "--html"],
        "`nilometer report RECORD --format json`; while it runs `--progress json`",
    ),
    (&["--output", "--outfile", "-o"], "`--record FILE`"),
    (&["--hosts", "--hostfile", "--client"], "start the program with `mpirun`: docs/cluster.md"),
];

/// Words that other programs have for a command.
const COMMANDS: [(&[&str], &str); 6] = [
    (&["run", "benchmark", "bench", "test", "start", "measure", "fio", "ior"], "evaluate /data"),
    (&["capture", "receive", "rec", "listen"], "record"),
    (&["server", "daemon", "service"], "serve"),
    (&["tune", "sysinfo", "checkhost"], "doctor"),
    (&["ls", "list"], "scan"),
    (&["instruments", "detectors"], "instrument list"),
];

/// The error as it is shown: with a tip of ours in place of a misleading one.
pub(crate) fn with_tip(mut error: Error, arguments: &[String]) -> Error {
    if let Some(split) = split_unit(arguments) {
        return Error::raw(ErrorKind::InvalidValue, split);
    }
    let (kind, tip) = match error.kind() {
        ErrorKind::UnknownArgument => (ContextKind::InvalidArg, unknown_argument as fn(&str, &str) -> _),
        ErrorKind::InvalidSubcommand => (ContextKind::InvalidSubcommand, unknown_command as _),
        _ => return error,
    };
    let Some(ContextValue::String(named)) = error.get(kind) else { return error };
    let command = arguments.get(1).map_or("", String::as_str);
    let tip: Option<String> = tip(named, command);
    let is_close = suggested(&error).is_some_and(|suggested| is_close(named, &suggested));
    if tip.is_some() || !is_close {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::Suggested);
    }
    if let Some(tip) = tip {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    }
    error
}

/// A number and its unit that came as two arguments.
fn split_unit(arguments: &[String]) -> Option<String> {
    let pair = arguments.windows(2).find(|pair| is_number(&pair[0]) && is_unit(&pair[1]))?;
    let [number, unit] = pair else { return None };
    Some(format!(
        "`{number} {unit}` are two words here: write {number}{unit}, or quote it: \"{number} {unit}\"\n"
    ))
}

/// A number without a unit, by itself or behind an option and `=`.
fn is_number(text: &str) -> bool {
    text.rsplit('=').next().is_some_and(|text| text.parse::<f64>().is_ok())
}

fn is_unit(word: &str) -> bool {
    let text = format!("1{word}");
    let is_word = word.chars().all(|letter| letter.is_alphabetic() || letter == '/');
    let known = [
        text.parse::<Bytes>().is_ok(),
        text.parse::<LinkRate>().is_ok(),
        text.parse::<Nanos>().is_ok(),
        text.parse::<Frequency>().is_ok(),
    ];
    is_word && known.contains(&true)
}

fn unknown_argument(named: &str, command: &str) -> Option<String> {
    let option = named.split('=').next().unwrap_or(named);
    if command == "evaluate" && ["--instrument", "--detector"].contains(&option) {
        return Some("`--for INSTRUMENT` asks whether the storage carries it".into());
    }
    if is_place(named) && ["record", "simulate"].contains(&command) {
        return Some(format!("write `--to {named}`: directories follow that option"));
    }
    if ["--to", "--target", "--dir", "--path", "--filename", "--directory", "-d"].contains(&option) {
        return (command == "evaluate")
            .then(|| "name the directory without an option: `nilometer evaluate /data`".into());
    }
    if !named.starts_with('-') && ["record", "simulate"].contains(&command) {
        return Some(format!("write each directory behind an option of its own: `--to A --to {named}`"));
    }
    if command == "explain" {
        return None;
    }
    let (_, ours) = FOREIGN.iter().find(|(flags, _)| flags.contains(&option))?;
    let plan = if ours.contains("in a plan") { format!("; {OWN_PLAN}") } else { String::new() };
    let explain = "a command line of fio, IOR or elbencho as a whole: `nilometer explain -- fio ...`";
    Some(format!("{ours}{plan}; {explain}"))
}

fn unknown_command(named: &str, _: &str) -> Option<String> {
    if is_place(named) {
        return Some(format!(
            "`nilometer evaluate {named}` measures this storage, `nilometer scan {named}` lists its recordings"
        ));
    }
    let (_, ours) = COMMANDS.iter().find(|(words, _)| words.contains(&named))?;
    Some(format!("write `nilometer {ours}`"))
}

/// A directory or a URL.
fn is_place(text: &str) -> bool {
    text.starts_with(['/', '.', '~']) || text.contains("://") || text == "null:"
}

/// The option that clap takes for a similar one.
fn suggested(error: &Error) -> Option<String> {
    match error.get(ContextKind::SuggestedArg).or_else(|| error.get(ContextKind::SuggestedSubcommand))? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(texts) => texts.first().cloned(),
        _ => None,
    }
}

/// One of them begins as the other does, or contains it.
fn is_close(named: &str, suggested: &str) -> bool {
    let [named, suggested] = [named, suggested].map(|option| option.trim_start_matches('-'));
    let same = named.chars().zip(suggested.chars()).take_while(|(one, other)| one == other).count();
    same >= 3 || named.contains(suggested) || suggested.contains(named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::help;

    fn shown(line: &str) -> String {
        let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let error = help::command().try_get_matches_from(&arguments).expect_err(line);
        with_tip(error, &arguments).to_string()
    }

    #[test]
    fn a_unit_that_stands_apart_is_named() {
        for line in [
            "nilometer size eiger2-16m --link 10 Gbit/s",
            "nilometer evaluate /data --for pco-edge --duration=10 min",
            "nilometer record fila10g-4g --to /data --buffer 64 GiB",
        ] {
            let text = shown(line);
            assert!(text.starts_with("error: `") && text.contains("or quote it: \""), "{text}");
        }
        assert_eq!(split_unit(&["--frames".into(), "10".into(), "/data".into()]), None);
    }

    #[test]
    fn options_of_other_programs_name_ours() {
        for (line, ours) in [
            ("nilometer evaluate /data --bs 4k", "block_size"),
            ("nilometer evaluate -t 1m /data", "block_size"),
            ("nilometer evaluate --threads 4 /data", "workers"),
            ("nilometer evaluate /data --json", "--format json"),
            ("nilometer evaluate --instrument pco-edge /data", "--for INSTRUMENT"),
            ("nilometer evaluate --runtime=60 /data", "--time-limit"),
            ("nilometer evaluate --directory /data", "without an option"),
            ("nilometer record fila10g-4g /data", "--to /data"),
            ("nilometer record fila10g-4g --to disk1 disk2", "`--to A --to disk2`"),
            ("nilometer run /data", "nilometer evaluate /data"),
            ("nilometer /data", "nilometer evaluate /data"),
        ] {
            let text = shown(line);
            assert!(text.contains("tip: ") && text.contains(ours), "{line}: {text}");
            assert!(!text.contains("as a value") && !text.contains("similar"), "{line}: {text}");
        }
    }

    #[test]
    fn only_close_suggestions_stay() {
        assert!(shown("nilometer evaluate /data --repeat-all").contains("--repeats"));
        let far = shown("nilometer evaluate /data --colour");
        assert!(!far.contains("tip:"), "{far}");
        assert!(shown("nilometer evaluat /data").contains("evaluate"));
    }
}
