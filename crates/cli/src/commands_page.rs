//! The page docs/reference/commands.md: all commands with their arguments, from the definition that parses them.

use clap::{Arg, ArgAction, Command, builder::PossibleValue};

use crate::help;

/// The page, in Markdown.
pub(crate) fn commands_page() -> String {
    let mut program = help::command();
    program.build();
    let groups = help::GROUPS.iter().map(|(title, names)| {
        let commands = names.iter().filter_map(|name| program.find_subcommand(name));
        format!("## {title}\n\n{}", commands.map(section).collect::<String>())
    });
    format!("{HEAD}{}", groups.collect::<String>())
}

const HEAD: &str = "# Commands

`nilometer generate commands` prints this page, from the definition that parses the command line. \
`nilometer COMMAND --help` prints the same for one command. All commands have `-h` and `--help`, and the program has \
`-V` and `--version`. [Exit codes](exit-codes.md) have a page of their own.

Write a time, a size or a rate with its unit and without a blank, such as `10s`, `64GiB` or `8Gbps`. With a blank it \
needs quotes: `\"10 s\"`. An option with `...` takes several values.

";

/// The section of a command, with those of its subcommands.
fn section(command: &Command) -> String {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string);
    let about = paragraphs(&about.unwrap_or_default());
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim().to_owned();
    let mut text = format!("### `{name}`\n\n{about}\n\n```text\n{usage}\n```\n\n");
    for (title, arguments) in headings(command) {
        text += &table(title, arguments);
    }
    text += &examples(command);
    let subcommands = command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help");
    text + &subcommands.map(section).collect::<String>()
}

/// The arguments under their headings, in the order of the help.
fn headings(command: &Command) -> Vec<(&str, Vec<&Arg>)> {
    let mut headings: Vec<(&str, Vec<&Arg>)> = Vec::new();
    let is_common = |argument: &Arg| {
        matches!(argument.get_action(), ArgAction::Help | ArgAction::HelpLong | ArgAction::HelpShort)
    };
    for argument in command.get_arguments().filter(|one| !one.is_hide_set() && !is_common(one)) {
        let usual = if argument.is_positional() { "argument" } else { "option" };
        let title = argument.get_help_heading().unwrap_or(usual);
        match headings.iter_mut().find(|(known, _)| *known == title) {
            Some((_, arguments)) => arguments.push(argument),
            None => headings.push((title, vec![argument])),
        }
    }
    headings
}

/// The table of the arguments under a heading.
fn table(title: &str, arguments: Vec<&Arg>) -> String {
    let rows: String = arguments.into_iter().map(row).collect();
    format!("| {title} | | default |\n|---|---|---|\n{rows}\n")
}

/// The line of an argument in its table.
fn row(argument: &Arg) -> String {
    let short = argument.get_short().filter(|_| argument.get_long().is_some());
    let short = short.map(|letter| format!("-{letter}, ")).unwrap_or_default();
    let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
    let (help, stated) = without_default(&help);
    let mut sentences: Vec<String> = help.split("\n\n").map(sentence).collect();
    if argument.get_action().takes_values() {
        sentences.extend(values(&argument.get_possible_values()));
    }
    let name = format!("`{short}{argument}`").replace('|', "\\|");
    let default = stated.unwrap_or_else(|| default(argument));
    format!("| {name} | {} | {} |\n", cell(&sentences.join(" ")), cell(&default))
}

/// A help text without its `[default: ...]`, and that default.
fn without_default(help: &str) -> (String, Option<String>) {
    let split = help.split_once(" [default: ").and_then(|(before, rest)| {
        let (default, after) = rest.split_once(']')?;
        Some((format!("{before}{after}"), Some(default.to_owned())))
    });
    split.unwrap_or_else(|| (help.to_owned(), None))
}

/// The values that an argument takes, each with its meaning.
fn values(possible: &[PossibleValue]) -> Vec<String> {
    let shown: Vec<_> = possible.iter().filter(|value| !value.is_hide_set()).collect();
    if shown.iter().all(|value| value.get_help().is_none()) {
        let names: Vec<_> = shown.iter().map(|value| format!("`{}`", value.get_name())).collect();
        return if names.is_empty() { names } else { vec![format!("Values: {}.", names.join(", "))] };
    }
    let explained = |value: &&PossibleValue| {
        let meaning = value.get_help().map(|help| format!(": {}", sentence(&help.to_string())));
        format!("`{}`{}", value.get_name(), meaning.unwrap_or_else(|| ".".into()))
    };
    shown.iter().map(explained).collect()
}

/// The value without the argument; `needed` if there is none.
fn default(argument: &Arg) -> String {
    if argument.is_required_set() {
        return "needed".into();
    }
    if !argument.get_action().takes_values() {
        return String::new();
    }
    let values = argument.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy()));
    values.collect::<Vec<_>>().join(", ")
}

/// The examples of a command as a block of code.
fn examples(command: &Command) -> String {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let Some(examples) = help.strip_prefix(help::EXAMPLES_HEADING) else { return String::new() };
    let lines = examples.lines().skip(1).take_while(|line| !line.is_empty());
    format!("```sh\n{}\n```\n\n", lines.map(str::trim).collect::<Vec<_>>().join("\n"))
}

/// Texts with an empty line between them, each on one line.
fn paragraphs(text: &str) -> String {
    let each = text.split("\n\n").map(|paragraph| marks_escaped(&sentence(paragraph)));
    each.collect::<Vec<_>>().join("\n\n")
}

/// A text on one line that ends like a sentence.
fn sentence(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_whole = text.is_empty() || text.ends_with(['.', '!', '?']);
    if is_whole { text } else { text + "." }
}

/// A text as a cell of a table.
fn cell(text: &str) -> String {
    marks_escaped(text).replace('|', "\\|")
}

/// A text that Markdown shows unchanged, except code between backquotes.
fn marks_escaped(text: &str) -> String {
    let pieces = text.split('`').enumerate().map(|(number, piece)| {
        let is_code = number % 2 == 1;
        if is_code { piece.to_owned() } else { piece.replace('*', "\\*").replace('<', "\\<") }
    });
    pieces.collect::<Vec<_>>().join("`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[derive(Debug, Clone, Copy, ValueEnum)]
    enum Form {
        /// For people
        Text,
        Json,
    }

    fn argument(name: &'static str) -> Arg {
        Arg::new(name).long(name)
    }

    /// The row of an option of a command.
    fn row_of(option: Arg) -> String {
        let mut command = Command::new("test").disable_help_flag(true).arg(option);
        command.build();
        row(command.get_arguments().next().expect("it has one"))
    }

    #[test]
    fn a_row_has_the_values_and_the_default_of_its_option() {
        let form = argument("form").short('f').value_parser(clap::value_parser!(Form)).default_value("text");
        let form = form.value_name("FORM").help("Print in this form");
        let expected = "| `-f, --form <FORM>` | Print in this form. `text`: For people. `json`. | `text` |\n";
        assert_eq!(row_of(form), expected);
        let worded = argument("to").value_name("PLACE").help("Go there [default: home]. Never back\n\nTwice");
        assert_eq!(row_of(worded), "| `--to <PLACE>` | Go there. Never back. Twice. | home |\n");
        let plain = argument("at").value_name("A|B").required(true).help("`x|y` or *z*.");
        assert_eq!(row_of(plain), "| `--at <A\\|B>` | `x\\|y` or \\*z\\*. | needed |\n");
        let flag = argument("quiet").action(ArgAction::SetTrue).help("Print nothing");
        assert_eq!(row_of(flag), "| `--quiet` | Print nothing. |  |\n");
    }

    #[test]
    fn every_option_of_every_command_is_on_the_page() {
        let page = commands_page();
        let mut program = help::command();
        program.build();
        let mut commands: Vec<&Command> =
            program.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help").collect();
        let mut count = 0;
        while let Some(command) = commands.pop() {
            commands.extend(command.get_subcommands().filter(|sub| sub.get_name() != "help"));
            let name = command.get_bin_name().expect("it is built");
            let begin = page.find(&format!("### `{name}`\n")).unwrap_or_else(|| panic!("{name}"));
            let section = page[begin + 1..].split("\n###").next().expect("its text");
            for argument in command.get_arguments().filter(|one| !one.is_hide_set()) {
                let Some(long) = argument.get_long().filter(|long| *long != "help") else { continue };
                assert!(section.contains(&format!("--{long}")), "{name}: --{long}");
                count += 1;
            }
        }
        assert!(count > 200, "{count} options");
    }
}
