//! Values that a shell completes: names of instruments, plans, facilities and network interfaces. Only the scripts
//! for shells know them; the program itself also takes the path of a file.

use clap::{Command, builder::PossibleValuesParser};
use clap_complete::Shell;
use nilometer_model::catalogue::{BuiltIn, FACILITIES, INSTRUMENTS, TEMPLATE};
use nilometer_plan::PLANS;

/// A kind of value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    /// Instruments to record. The template is none.
    Instruments,
    /// Instruments to show, with the template.
    ShownInstruments,
    Plans,
    /// Facilities to show, with the template.
    Facilities,
    /// Instruments and facilities, without their templates.
    Sized,
    /// The interfaces of the machine on which the shell runs.
    Interfaces,
}

/// Each argument with such a value: the commands that lead to it, and its name.
const ARGUMENTS: [(&[&str], &str, Names); 10] = [
    (&["evaluate"], "instruments", Names::Instruments),
    (&["evaluate"], "plans", Names::Plans),
    (&["plan", "show"], "name", Names::Plans),
    (&["instrument", "show"], "name", Names::ShownInstruments),
    (&["facility", "show"], "name", Names::Facilities),
    (&["simulate"], "instrument", Names::Instruments),
    (&["record"], "instrument", Names::Instruments),
    (&["size"], "name", Names::Sized),
    (&["advise", "compression"], "instrument", Names::Instruments),
    (&["doctor"], "interface", Names::Interfaces),
];

/// A list that bash makes itself when it completes.
const INTERFACES_IN_BASH: &str = "$(ls /sys/class/net 2>/dev/null)";

impl Names {
    /// The values in a script for this shell. `None` if it can't have them.
    fn values(self, shell: Shell) -> Option<Vec<&'static str>> {
        let names = |known: &[BuiltIn]| known.iter().map(|built_in| built_in.name).collect::<Vec<_>>();
        let real = |known: &[BuiltIn]| {
            let all = names(known).into_iter();
            all.filter(|name| *name != TEMPLATE).collect::<Vec<_>>()
        };
        match self {
            Names::Instruments => Some(real(&INSTRUMENTS)),
            Names::ShownInstruments => Some(names(&INSTRUMENTS)),
            Names::Plans => Some(names(&PLANS)),
            Names::Facilities => Some(names(&FACILITIES)),
            Names::Sized => Some([real(&INSTRUMENTS), real(&FACILITIES)].concat()),
            Names::Interfaces => (shell == Shell::Bash).then(|| vec![INTERFACES_IN_BASH]),
        }
    }
}

/// The command with the values that this shell completes.
pub(crate) fn with_values(command: Command, shell: Shell) -> Command {
    ARGUMENTS.iter().fold(command, |command, (path, argument, names)| match names.values(shell) {
        Some(values) => with_argument(command, path, argument, values),
        None => command,
    })
}

fn with_argument(command: Command, path: &[&str], argument: &str, values: Vec<&'static str>) -> Command {
    match path.split_first() {
        Some((first, rest)) => {
            command.mut_subcommand(first, |inner| with_argument(inner, rest, argument, values))
        }
        None => with_own_argument(command, argument, &values),
    }
}

/// Changes an argument of this command in its place: positional arguments count by their order.
fn with_own_argument(command: Command, argument: &str, values: &[&'static str]) -> Command {
    command.mut_args(|arg| {
        if arg.get_id() == argument {
            arg.value_parser(PossibleValuesParser::new(values.to_vec()))
        } else {
            arg
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::help;

    #[test]
    fn a_template_is_offered_only_to_be_shown() {
        for (path, argument, names) in ARGUMENTS {
            let values = names.values(Shell::Bash).expect("bash has all values");
            assert_eq!(
                values.contains(&TEMPLATE),
                path.last() == Some(&"show") && path[0] != "plan",
                "{path:?} {argument}"
            );
        }
    }

    #[test]
    fn every_argument_with_names_is_found_in_each_script() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut command = with_values(help::command(), shell);
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut command, "nilometer", &mut script);
            let script = String::from_utf8(script).expect("a script is text");
            for (path, argument, _) in ARGUMENTS {
                let of =
                    path.iter().fold(&command, |of, name| of.find_subcommand(name).expect("it is there"));
                assert!(of.get_arguments().any(|known| known.get_id() == argument), "{path:?} {argument}");
            }
            for name in ["eiger2-16m", "pandata", "wa105"] {
                assert!(script.contains(name), "{shell}: {name}");
            }
            assert_eq!(script.contains(INTERFACES_IN_BASH), shell == Shell::Bash);
        }
    }
}
