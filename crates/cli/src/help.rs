//! The parts of `--help` beside the options: the commands in the groups of docs/commands.md, and examples of
//! each.

use std::fmt::Write;

use clap::{Command, CommandFactory};

use crate::Arguments;

/// Commands by purpose, in the order in which you would use them.
pub(crate) const GROUPS: [(&str, &[&str]); 3] = [
    (
        "Evaluate storage",
        &[
            "demo", "evaluate", "report", "check", "compare", "explain", "import", "plan", "size",
            "facility", "describe", "census", "recall", "network", "observe", "clean",
        ],
    ),
    (
        "Simulate an instrument, and record one",
        &["instrument", "simulate", "record", "serve", "doctor", "advise"],
    ),
    ("Read recordings", &["verify", "repair", "scan", "mount", "export", "replay", "copy", "dump"]),
];

/// The line in front of the examples.
pub(crate) const EXAMPLES_HEADING: &str = "Examples:";

/// Three examples of each command, from the usual to the special. The program accepts each of them.
const EXAMPLES: [(&str, [&str; 3]); 30] = [
    (
        "evaluate",
        [
            "nilometer evaluate /data --for pco-edge",
            "nilometer evaluate /data /scratch --plan pandata --scale 1/20 --repeats 5",
            "nilometer evaluate /data --plan none --for 2*pco-edge+small-files --readers 0,1,2 --dry-run",
        ],
    ),
    (
        "report",
        [
            "nilometer report evaluation.sqlite",
            "nilometer report evaluation.sqlite --format html -o page.html",
            "nilometer report evaluation.sqlite oss1.jsonl oss2.jsonl",
        ],
    ),
    (
        "check",
        [
            "nilometer check evaluation.sqlite",
            "nilometer check /media/offer-a.sqlite",
            "nilometer check offer-a.sqlite --sha256 ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        ],
    ),
    (
        "compare",
        [
            "nilometer compare before.sqlite after.sqlite",
            "nilometer compare after.sqlite --against before.sqlite --threshold \"5 %\"",
            "nilometer compare monday.sqlite tuesday.sqlite wednesday.sqlite --html trend.html",
        ],
    ),
    (
        "explain",
        [
            "nilometer explain -- dd if=/dev/zero of=/data/f bs=1M count=1024",
            "nilometer explain -- fio --rw=randread --bs=4k --size=4G --directory=/data",
            "nilometer explain --rounds 12 -- ior -w -t 1m -b 1g -F -o /data/f",
        ],
    ),
    (
        "import",
        [
            "nilometer import run1.json run2.json run3.json --record fio.sqlite",
            "nilometer import ior.txt mdtest.txt elbencho.csv --record others.sqlite",
            "nilometer import reference/uci-2014.csv --record uci.sqlite",
        ],
    ),
    ("plan", ["nilometer plan show wa105", "nilometer plan show quick --toml", "nilometer plan keys"]),
    (
        "size",
        [
            "nilometer size pilatus-6m --record evaluation.sqlite",
            "nilometer size wa105 --write-rate \"1.1 GB/s\" --link 100G",
            "nilometer size ./my-facility.toml --record evaluation.sqlite --format json",
        ],
    ),
    (
        "facility",
        [
            "nilometer facility list",
            "nilometer facility show wa105",
            "nilometer facility show template --toml",
        ],
    ),
    ("demo", ["nilometer demo", "nilometer demo --format markdown", "nilometer demo --format html"]),
    (
        "describe",
        ["nilometer describe /data", "nilometer describe /data /scratch", "nilometer describe /data --json"],
    ),
    (
        "census",
        [
            "nilometer census /data",
            "nilometer census /data --format markdown",
            "nilometer census /data --format json",
        ],
    ),
    (
        "recall",
        [
            "nilometer recall /archive/run1.h5 /archive/run2.h5",
            "nilometer recall /archive --files 20 --at-once 1,4 --yes",
            "nilometer recall /archive --format json",
        ],
    ),
    (
        "network",
        [
            "nilometer network --flows 1,4,16 --network 10.1.0.0/16",
            "nilometer network --pattern clients_to_servers --clients 2 --congestion cubic,reno",
            "nilometer network --udp --json",
        ],
    ),
    (
        "observe",
        [
            "nilometer observe --out server1.jsonl",
            "nilometer observe --out /shared/%h.jsonl --duration \"10 min\"",
            "nilometer observe --out - --interval \"200 ms\"",
        ],
    ),
    ("clean", ["nilometer clean /data", "nilometer clean /data /scratch", "nilometer clean ."]),
    (
        "instrument",
        [
            "nilometer instrument list",
            "nilometer instrument show pilatus-6m",
            "nilometer instrument show template --toml",
        ],
    ),
    (
        "simulate",
        [
            "nilometer simulate pco-edge --to /disk1 --to /disk2 --duration \"10 s\"",
            "nilometer simulate pilatus-6m --to /data --rate 8Gbps",
            "nilometer simulate fila10g-1g --to udp://127.0.0.1:46227 --loss \"0.1 %\" --seed 7",
        ],
    ),
    (
        "record",
        [
            "nilometer record fila10g-1g --to /data --duration \"1 h\"",
            "nilometer record --mode VDIF_8000-4096-16-2 --listen udp://192.0.2.7:46227 --to /disk1 --to /disk2",
            "nilometer record fila10g-4g --to /data --keep \"1 TB\" --http 127.0.0.1:9620",
        ],
    ),
    (
        "serve",
        [
            "nilometer serve --config contrib/nilometer.toml",
            "nilometer serve --http 127.0.0.1:9620 --mark5 off",
            "nilometer serve --instruments /etc/nilometer/instruments",
        ],
    ),
    (
        "advise",
        [
            "nilometer advise compression eiger2-16m",
            "nilometer advise compression pilatus-6m /data/*.cbf",
            "nilometer advise chunking eiger2-16m --to /data --read frames --read line:20",
        ],
    ),
    (
        "doctor",
        [
            "nilometer doctor",
            "nilometer doctor --rate 10Gbps --interface eth0",
            "nilometer doctor --rate \"8 Gbit/s\" --packet \"8040 B\"",
        ],
    ),
    (
        "verify",
        [
            "nilometer verify /data/NAME",
            "nilometer verify /disk1/NAME /disk2/NAME",
            "nilometer verify /data/NAME --durable",
        ],
    ),
    (
        "repair",
        [
            "nilometer repair /data/NAME",
            "nilometer repair /disk1/NAME /disk2/NAME",
            "nilometer repair /data/NAME --dry-run",
        ],
    ),
    (
        "scan",
        ["nilometer scan /data", "nilometer scan /disk1 /disk2 --all", "nilometer scan scan.vdif --json"],
    ),
    (
        "mount",
        [
            "nilometer mount /data --at /mnt",
            "nilometer mount /disk1 /disk2 --at /mnt",
            "nilometer mount /data --at /mnt --allow-other",
        ],
    ),
    (
        "export",
        [
            "nilometer export /data/NAME --to /store",
            "nilometer export /disk1/NAME /disk2/NAME --to /store/NAME.vdif --verify",
            "nilometer export /data/NAME --format hdf5 --to /store --compression bslz4",
        ],
    ),
    (
        "replay",
        [
            "nilometer replay /data/NAME --to udp://192.0.2.1:46227",
            "nilometer replay /disk1/NAME /disk2/NAME --to udp://192.0.2.1:46227 --rate 1Gbps",
            "nilometer replay /data/NAME --to udp://192.0.2.1:46227 --begin 2026-11-28T18:00:00 --end +30s",
        ],
    ),
    (
        "copy",
        [
            "nilometer copy /data/NAME --to /store",
            "nilometer copy /disk1/NAME /disk2/NAME --to /media/a --to /media/b",
            "nilometer copy /data/NAME --to /store --rate \"200 MB/s\"",
        ],
    ),
    (
        "dump",
        [
            "nilometer dump --last 10s --to /store",
            "nilometer dump --begin 2026-11-28T18:00:00 --end 2026-11-28T18:00:30 --to /store --name event",
            "nilometer dump --http https://10.0.2.1:9620 --ca ca.pem --token-file token --last 1min --to /store",
        ],
    ),
];

/// The program's arguments, with the groups of commands and the examples.
pub(crate) fn command() -> Command {
    let mut command = Arguments::command();
    for (name, examples) in EXAMPLES {
        command = command.mut_subcommand(name, |sub| {
            let codes = sub.get_after_help().map(|help| format!("\n\n{help}")).unwrap_or_default();
            sub.after_help(format!("{EXAMPLES_HEADING}\n  {}{codes}", examples.join("\n  ")))
        });
    }
    let groups = groups(&command);
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}Options:\n{{options}}{{after-help}}"
    ))
}

/// The commands with their purposes, group by group.
fn groups(command: &Command) -> String {
    let mut text = String::new();
    for (title, names) in GROUPS {
        writeln!(text, "{title}:").expect("writing to a string does not fail");
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            writeln!(text, "  {name:<11} {}", beginning(&about)).expect("writing to a string does not fail");
        }
        text.push('\n');
    }
    text
}

/// The beginning of a purpose: as much as fits beside a command in 80 columns, up to a comma, a colon or a
/// semicolon.
fn beginning(about: &str) -> &str {
    if about.chars().count() <= ABOUT_MOST {
        return about;
    }
    let ends = about.char_indices().take(ABOUT_MOST).filter(|(_, letter)| matches!(letter, ',' | ':' | ';'));
    ends.last().map_or(about, |(end, _)| &about[..end])
}

/// The most characters of a purpose beside a command.
const ABOUT_MOST: usize = 66;

#[cfg(test)]
mod tests {
    use super::*;

    /// Splits a line like a shell: words in double quotes stay together.
    fn words(line: &str) -> Vec<String> {
        let parts = line.split('"').enumerate();
        let of_part = |(number, part): (usize, &str)| {
            if number % 2 == 1 {
                vec![part.to_owned()]
            } else {
                part.split_whitespace().map(str::to_owned).collect()
            }
        };
        parts.flat_map(of_part).collect()
    }

    #[test]
    fn every_command_is_in_one_group_and_has_examples_that_it_takes() {
        let command = command();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let mut shown: Vec<&str> = EXAMPLES.iter().map(|(name, _)| *name).collect();
        let visible = command.get_subcommands().filter(|sub| !sub.is_hide_set());
        let mut there: Vec<&str> = visible.map(Command::get_name).filter(|name| *name != "help").collect();
        grouped.sort_unstable();
        shown.sort_unstable();
        there.sort_unstable();
        assert_eq!((&grouped, &shown), (&there, &there));
        for (name, examples) in EXAMPLES {
            for example in examples {
                let line = words(example);
                assert_eq!(line[1], name, "{example}");
                super::command()
                    .try_get_matches_from(&line)
                    .unwrap_or_else(|error| panic!("{example}: {error}"));
            }
        }
    }

    #[test]
    fn nothing_shown_is_wider_than_a_terminal() {
        let help = command().render_help().to_string();
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
        assert!(help.contains("Evaluate storage:\n  demo "), "{help}");
    }
}
