//! Tips for arguments that the program does not know: options of fio, IOR and elbencho, words for its commands, and
//! values whose unit stands apart.

mod foreign_words;

use std::{error::Error as _, path::Path};

use clap::{
    Command, Error,
    builder::StyledStr,
    error::{ContextKind, ContextValue, ErrorKind},
};
use nilometer_model::{Bytes, Frequency, LinkRate, Nanos, catalogue};

use crate::help;
use foreign_words::{BY_COMMAND, COMMANDS, DIRECTORIES, IN_A_PLAN, SYNONYMS};

const OWN_PLAN: &str =
    "`nilometer plan show quick --toml > mine.toml` begins a plan of your own, `--plan mine.toml` runs it";

/// The error as it is shown: with a tip of ours in place of a misleading one.
pub(crate) fn with_tip(mut error: Error, arguments: &[String]) -> Error {
    if let Some(split) = split_unit(arguments) {
        return Error::raw(ErrorKind::InvalidValue, split);
    }
    let kind = match error.kind() {
        ErrorKind::InvalidSubcommand => ContextKind::InvalidSubcommand,
        ErrorKind::UnknownArgument | ErrorKind::ValueValidation | ErrorKind::InvalidValue => {
            ContextKind::InvalidArg
        }
        _ => return error,
    };
    let Some(ContextValue::String(named)) = error.get(kind) else { return error };
    let tip = match error.kind() {
        ErrorKind::InvalidSubcommand => unknown_command(named, arguments),
        ErrorKind::ValueValidation | ErrorKind::InvalidValue => {
            wrong_value(named, arguments, &error).or_else(|| out_of_range(&error))
        }
        _ => TypedLine::of(arguments).unknown_argument(named),
    };
    let is_close = suggested(&error).is_some_and(|suggested| is_close(named, &suggested));
    if tip.is_some() || !is_close {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::Suggested);
    }
    if let Some(tip) = tip {
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    }
    if error.kind() == ErrorKind::UnknownArgument {
        error.insert(ContextKind::Usage, ContextValue::StyledStr(usage(arguments)));
    }
    error
}

/// The usage of the command that the user typed. The usage that clap shows has only an option with a similar name.
fn usage(arguments: &[String]) -> StyledStr {
    let mut root = help::command();
    root.build();
    let mut command = &mut root;
    for word in arguments.iter().skip(1) {
        if command.find_subcommand(word).is_none() {
            break;
        }
        command = command.find_subcommand_mut(word).expect("it was found");
    }
    command.render_usage()
}

/// A value that its option refused, and another option that takes it.
fn wrong_value(named: &str, arguments: &[String], error: &Error) -> Option<String> {
    let is_name = |text: &String| text.starts_with(char::is_alphabetic);
    let is_scan_name = named.starts_with("--scan ") && value_of("--scan", arguments).is_some_and(is_name);
    if is_scan_name {
        return Some("`--name NAME` names the recording of a scan".into());
    }
    let option = named.split(' ').next()?;
    let value = value_of(option, arguments)?;
    match option {
        "--duration" | "--time-limit" | "--silence" if is_clock_time(value) => {
            Some(format!("write a time with its unit: `{option} 90s`, `{option} 10min` or `{option} 1h`"))
        }
        "--format" if ["nexus", "h5", "nxs", "hdf"].contains(&value.as_str()) && takes(error, "hdf5") => {
            Some("`--format hdf5` writes HDF5 with NeXus".into())
        }
        "--listen" => listening(value),
        _ => None,
    }
}

/// Returns true unless the error lists the option's values without this one.
fn takes(error: &Error, value: &str) -> bool {
    match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(values)) => values.iter().any(|valid| valid == value),
        _ => true,
    }
}

/// The address that the user may mean by an address without its scheme, or by the name of an interface.
fn listening(value: &str) -> Option<String> {
    let has_port = value.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if has_port && !value.contains("://") {
        return Some(format!("`--listen udp://{value}`"));
    }
    let is_interface = !value.contains('/') && Path::new("/sys/class/net").join(value).exists();
    is_interface.then(|| {
        format!("`{value}` is an interface: write its address, as in `--listen udp://10.0.2.1:46227`")
    })
}

/// The numbers that an option takes, in place of `0 is not in 1..=1000`.
fn out_of_range(error: &Error) -> Option<String> {
    let why = error.source()?.to_string();
    if why.starts_with("invalid digit") {
        return Some("write a whole number".into());
    }
    if why.starts_with("invalid float") {
        return Some("write a number, such as 8 or 1.5".into());
    }
    let (_, range) = why.split_once(" is not in ")?;
    let (least, most) = range.split_once("..")?;
    // The type of the number bounds the others: nobody needs such a number.
    let is_open = most == u64::MAX.to_string();
    let most = most.trim_start_matches('=');
    Some(if is_open {
        format!("write a whole number, {least} or more")
    } else {
        format!("write a whole number from {least} to {most}")
    })
}

/// Hours, minutes and seconds as a clock shows them: `00:10:00`.
fn is_clock_time(text: &str) -> bool {
    text.contains(':') && text.split(':').all(|part| part.parse::<u32>().is_ok())
}

/// The last value of this option that the user typed.
fn value_of<'a>(option: &str, arguments: &'a [String]) -> Option<&'a String> {
    let at = arguments.iter().rposition(|argument| argument == option)?;
    arguments.get(at + 1)
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

/// The arguments of a user, and the command that they name.
struct TypedLine<'a> {
    arguments: &'a [String],
    name: &'a str,
    command: Command,
}

impl<'a> TypedLine<'a> {
    fn of(arguments: &'a [String]) -> Self {
        let mut command = help::command();
        let words = arguments.get(1..).unwrap_or_default();
        for word in words {
            let Some(sub) = command.find_subcommand(word) else { break };
            command = sub.clone();
        }
        TypedLine { arguments, name: words.first().map_or("", String::as_str), command }
    }

    /// The tip for an argument that the command does not take.
    fn unknown_argument(&self, named: &str) -> Option<String> {
        if self.name == "explain" {
            let is_line = !named.starts_with('-');
            return is_line.then(|| "write `--` before the line: `nilometer explain -- dd ...`".to_owned());
        }
        let option = named.split('=').next().unwrap_or(named);
        if option.starts_with('-') {
            return self.other_option(option);
        }
        self.misplaced(named)
    }

    /// The option of this command, or the command, with the meaning of an unknown option.
    fn other_option(&self, option: &str) -> Option<String> {
        if self.name == "evaluate" {
            if DIRECTORIES.contains(&option) || option == "--to" {
                return Some("name the directory without an option: `nilometer evaluate /data`".into());
            }
            if let Some((_, ours)) = IN_A_PLAN.iter().find(|(flags, _)| flags.contains(&option)) {
                let explain =
                    "a command line of fio, IOR or elbencho as a whole: `nilometer explain -- fio ...`";
                return Some(format!("{ours}; {OWN_PLAN}; {explain}"));
            }
        }
        let mut by_command = BY_COMMAND.iter().filter(|(commands, ..)| commands.contains(&self.name));
        if let Some((.., ours)) = by_command.find(|(_, flags, _)| flags.contains(&option)) {
            return Some((*ours).to_owned());
        }
        if DIRECTORIES.contains(&option) {
            return self.as_written("--to").filter(|to| to.contains("DIRECTORY")).map(|to| format!("`{to}`"));
        }
        let synonyms = SYNONYMS.iter().filter(|(flags, _)| flags.contains(&option));
        let mut ours = synonyms.flat_map(|(_, ours)| *ours).filter_map(|ours| self.as_written(ours));
        ours.next().map(|ours| format!("`{ours}`"))
    }

    /// An option with its value, or with the name of its value. `None` if the command has no such option, or the
    /// option does not take this value.
    fn as_written(&self, text: &str) -> Option<String> {
        let (option, value) =
            text.split_once(' ').map_or((text, None), |(option, value)| (option, Some(value)));
        let known =
            self.command.get_arguments().find(|known| known.get_long() == option.strip_prefix("--"))?;
        if let Some(value) = value {
            let values = known.get_possible_values();
            return values.iter().any(|known| known.matches(value, false)).then(|| text.to_owned());
        }
        let takes_value = known.get_action().takes_values();
        let name = known.get_value_names().and_then(|names| names.first()).filter(|_| takes_value);
        Some(name.map_or(option.to_owned(), |name| format!("{option} {name}")))
    }

    /// The place of an argument that stands behind too many others.
    fn misplaced(&self, named: &str) -> Option<String> {
        if self.name == "demo" {
            let is_one = is_place(named);
            return is_one
                .then(|| format!("`nilometer evaluate {named}` measures this storage; a demo needs none"));
        }
        let to = self.as_written("--to").filter(|to| to.contains("DIRECTORY"))?;
        let takes_instrument = ["record", "simulate"].contains(&self.name);
        if takes_instrument && catalogue::has_instrument(named) {
            let place = self.arguments.iter().skip(2).find(|argument| !argument.starts_with('-'));
            let place = place.filter(|place| *place != named).map_or("DIRECTORY", String::as_str);
            let name = self.name;
            return Some(format!(
                "the instrument comes first, a directory follows --to: `nilometer {name} {named} --to {place}`"
            ));
        }
        if let Some(first) = value_of("--to", self.arguments) {
            return Some(format!(
                "write each directory behind an option of its own: `--to {first} --to {named}`"
            ));
        }
        let is_wanted = takes_instrument || is_place(named);
        is_wanted.then(|| format!("write `--to {named}`: {} follow that option", plural(&to)))
    }
}

/// The values of an option such as `--to DIRECTORY`, in words.
fn plural(option: &str) -> &'static str {
    if option.contains("ADDRESS") { "directories and addresses" } else { "directories" }
}

fn unknown_command(named: &str, arguments: &[String]) -> Option<String> {
    let parent = arguments.get(1).filter(|word| *word != named).map_or("", String::as_str);
    if named == "keys" && ["instrument", "facility"].contains(&parent) {
        return Some(format!("`nilometer {parent} show template --toml` explains each key"));
    }
    if !parent.is_empty() {
        return None;
    }
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

/// They begin alike, or differ in two letters at most.
fn is_close(named: &str, suggested: &str) -> bool {
    let [named, suggested] = [named, suggested].map(|option| option.trim_start_matches('-'));
    let longest = named.len().max(suggested.len());
    let front = named.bytes().zip(suggested.bytes()).take_while(|(one, other)| one == other).count();
    let back =
        named.bytes().rev().zip(suggested.bytes().rev()).take_while(|(one, other)| one == other).count();
    front >= ALIKE_LEAST || (front > 0 && longest >= ALIKE_LEAST && front + back + 2 >= longest)
}

/// Words with fewer letters in common are not alike.
const ALIKE_LEAST: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

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
            ("nilometer evaluate /data --html", "--format html"),
            ("nilometer evaluate /data --quick", "`--plan quick`"),
            ("nilometer report a.sqlite --for pco-edge", "`nilometer evaluate /data --for INSTRUMENT`"),
            ("nilometer demo /data", "`nilometer evaluate /data`"),
            ("nilometer evaluate --instrument pco-edge /data", "--for INSTRUMENT"),
            ("nilometer evaluate --runtime=60 /data", "--time-limit"),
            ("nilometer evaluate --directory /data", "without an option"),
            ("nilometer record fila10g-4g /data", "--to /data"),
            ("nilometer record fila10g-4g --to disk1 disk2", "`--to disk1 --to disk2`"),
            ("nilometer run /data", "nilometer evaluate /data"),
            ("nilometer /data", "nilometer evaluate /data"),
            ("nilometer man", "nilometer generate man --to DIRECTORY"),
            ("nilometer completions", "nilometer generate completions --to DIRECTORY"),
            ("nilometer instrument keys", "nilometer instrument show template --toml"),
        ] {
            let text = shown(line);
            assert!(text.contains("tip: ") && text.contains(ours), "{line}: {text}");
            assert!(!text.contains("as a value") && !text.contains("similar"), "{line}: {text}");
        }
    }

    #[test]
    fn a_wrong_value_names_the_right_one() {
        for (line, ours) in [
            ("nilometer evaluate /data --duration 00:10:00", "`--duration 10min`"),
            ("nilometer simulate pco-4000 --to /data --format nexus", "`--format hdf5`"),
            ("nilometer evaluate /data --repeats 0", "a whole number from 1 to 1000"),
            ("nilometer evaluate /data --repeats x", "write a whole number"),
            ("nilometer evaluate /data --for pilatus-6m --compressibility x", "write a number, such as 8"),
            ("nilometer record fila10g-4g --to /data --listen 0.0.0.0:46227", "udp://0.0.0.0:46227`"),
            ("nilometer record fila10g-4g --to /data --listen lo", "`lo` is an interface"),
        ] {
            let text = shown(line);
            assert!(text.contains("tip: ") && text.contains(ours), "{line}: {text}");
        }
        assert!(!shown("nilometer evaluate /data --duration 5").contains("10min`"));
        assert!(!shown("nilometer report r.sqlite --format hdf").contains("hdf5"), "a report is no HDF5");
    }

    /// A usage that consists of a similar option misleads.
    #[test]
    fn the_usage_is_that_of_the_command() {
        for line in ["nilometer evaluate /data --threads 4", "nilometer plan show quick --json"] {
            let text = shown(line);
            assert!(text.contains("Usage: nilometer ") && text.contains(" [OPTIONS] "), "{text}");
            assert!(!text.contains("--readers <N>"), "{text}");
        }
    }

    #[test]
    fn the_tip_of_a_command_names_its_own_option_or_none() {
        for (line, ours) in [
            ("nilometer simulate /data pco-4000", "`nilometer simulate pco-4000 --to /data`"),
            ("nilometer simulate pco-4000 --output /data", "`--to DIRECTORY|ADDRESS`"),
            ("nilometer export a b --dir /data", "`--to FILE|DIRECTORY`"),
            ("nilometer compare a --baseline b", "`--against RECORD`"),
            ("nilometer evaluate /data --baseline b", "`nilometer compare RECORD --against BASELINE`"),
            ("nilometer report a --baseline b", "`nilometer compare RECORD --against BASELINE`"),
            ("nilometer evaluate /data --rate 1G", "`--frame-rate "),
            ("nilometer size pco-4000 --rate 1G", "`--write-rate RATE`"),
            ("nilometer size --for pco-4000", "without an option"),
            ("nilometer size pco-4000 --json", "`--format json`"),
            ("nilometer evaluate -t 4 /data", "elbencho's -t is `workers`"),
            ("nilometer record fila10g-4g --to /data --scan n1", "`--name NAME`"),
        ] {
            let text = shown(line);
            assert!(text.contains("tip: ") && text.contains(ours), "{line}: {text}");
        }
        for line in [
            "nilometer instrument list --json",
            "nilometer demo --json",
            "nilometer plan list --json",
            "nilometer simulate pco-4000 --to /data -t 4",
            "nilometer record fila10g-4g --to /data --rate 1G",
            "nilometer verify /data --scan n1",
            "nilometer record fila10g-4g --to /data --scan 0x0",
        ] {
            assert!(!shown(line).contains("tip:"), "{line}: {}", shown(line));
        }
    }

    /// Each option that a tip names, of the command that it names, or of the user's own.
    #[test]
    fn no_tip_names_an_option_that_the_command_lacks() {
        let options = BY_COMMAND.iter().flat_map(|(_, flags, _)| *flags);
        let options = options.chain(SYNONYMS.iter().flat_map(|(flags, _)| *flags)).chain(&DIRECTORIES);
        let options: Vec<&str> = options.copied().collect();
        for command in help::command().get_subcommands() {
            for option in &options {
                let arguments = ["nilometer", command.get_name()].map(str::to_owned);
                let Some(tip) = TypedLine::of(&arguments).other_option(option) else { continue };
                for quoted in tip.split('`').skip(1).step_by(2) {
                    let mut words = quoted.split(' ').peekable();
                    let own = words.next_if_eq(&"nilometer").and_then(|_| words.next());
                    let line = ["nilometer", own.unwrap_or(command.get_name())].map(str::to_owned);
                    let line = TypedLine::of(&line);
                    for option in words.filter(|word| word.starts_with("--")) {
                        assert!(line.as_written(option).is_some(), "{} {option}: {tip}", command.get_name());
                    }
                }
            }
        }
    }

    #[test]
    fn only_close_suggestions_stay() {
        assert!(shown("nilometer evaluate /data --repeat-all").contains("--repeats"));
        let far = shown("nilometer evaluate /data --colour");
        assert!(!far.contains("tip:"), "{far}");
        assert!(shown("nilometer size pco-4000 --formt json").contains("--format"));
        assert!(!shown("nilometer census /data --for x").contains("tip:"));
        assert!(shown("nilometer evaluat /data").contains("evaluate"));
    }
}
