//! What a line of mdtest asks of the storage, as a tree of ours.

use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use nilometer_model::{Bytes, plan::Phase};

use super::line::{count, size};

/// A tree of directories with items in each.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TreeLine {
    pub(super) directory: PathBuf,
    pub(super) levels: u32,
    pub(super) branching: u32,
    /// In each directory.
    pub(super) items: u32,
    /// `both`, `files` or `directories`.
    pub(super) kind: &'static str,
    /// Each worker has a tree of its own.
    pub(super) is_unique: bool,
    /// Written into each file.
    pub(super) file_size: Bytes,
    /// Phases work on what another worker made.
    pub(super) shift: u32,
    /// The phases that the line measures; all, if it names none.
    pub(super) phases: Vec<&'static str>,
}

/// A phase as mdtest prints it, with the option that asks for it alone.
const PHASES: [(&str, &str, Phase); 7] = [
    ("-C", "Directory creation", Phase::MakeDirectories),
    ("-T", "Directory stat", Phase::StatDirectories),
    ("-r", "Directory removal", Phase::RemoveDirectories),
    ("-C", "File creation", Phase::CreateFiles),
    ("-T", "File stat", Phase::StatFiles),
    ("-E", "File read", Phase::ReadFiles),
    ("-r", "File removal", Phase::RemoveFiles),
];

impl TreeLine {
    /// Reads the options; what has no counterpart goes to `not_taken`.
    pub(super) fn parse(arguments: &[String], not_taken: &mut Vec<String>) -> anyhow::Result<Self> {
        let mut read = TreeLine {
            directory: PathBuf::from("."),
            levels: 0,
            branching: 1,
            items: 0,
            kind: "both",
            is_unique: false,
            file_size: Bytes(0),
            shift: 0,
            phases: Vec::new(),
        };
        let mut all = 0;
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let name = argument.as_str();
            let mut value =
                || arguments.next().cloned().with_context(|| format!("`{argument}`: its value is missing"));
            match name {
                "-d" => read.directory = place(&value()?)?,
                "-n" => all = count(name, &value()?, ITEMS_MOST)?,
                "-I" => read.items = count(name, &value()?, ITEMS_MOST)?,
                "-z" => read.levels = count(name, &value()?, 64)?,
                "-b" => read.branching = count(name, &value()?, ITEMS_MOST)?,
                "-w" => read.file_size = size(&value()?, 1024)?,
                "-N" => read.shift = count(name, &value()?, 4096)?,
                "-F" => read.kind = "files",
                "-D" => read.kind = "directories",
                "-u" => read.is_unique = true,
                "-V" => drop(value()?),
                "-i" | "-e" | "-f" | "-l" | "-s" | "-p" => not_taken.push(format!("{name} {}", value()?)),
                "-v" | "-P" => {}
                _ => match PHASES.iter().find(|(option, ..)| *option == name) {
                    Some((option, ..)) => read.phases.push(option),
                    None => not_taken.push(argument.clone()),
                },
            }
        }
        read.take_items(all, not_taken)?;
        Ok(read)
    }

    /// `-n` is of the whole tree, `-I` of each directory.
    fn take_items(&mut self, all: u32, not_taken: &mut Vec<String>) -> anyhow::Result<()> {
        let directories = u32::try_from(self.tree_directories()).unwrap_or(u32::MAX);
        if self.items == 0 && all > 0 {
            self.items = (all / directories).max(1);
            let odd = all % directories;
            if odd != 0 && all > directories {
                not_taken.push(format!("the last {odd} items, which are not in every directory"));
            }
        }
        ensure!(self.items > 0, "the line does not say how many: write mdtest -n or -I");
        Ok(())
    }

    /// The first one included.
    fn tree_directories(&self) -> u64 {
        (0..=self.levels)
            .map(|level| u64::from(self.branching).saturating_pow(level))
            .fold(0, u64::saturating_add)
    }

    /// Everything in one directory.
    pub(super) fn flat(&self) -> Self {
        let items = self.tree_directories().saturating_mul(u64::from(self.items));
        let items = u32::try_from(items).unwrap_or(ITEMS_MOST).min(ITEMS_MOST);
        TreeLine { levels: 0, branching: 1, items, ..self.clone() }
    }

    /// The same items in a directory with sixteen below it.
    pub(super) fn spread(&self) -> Self {
        TreeLine { levels: 1, branching: SPREAD, items: (self.items / (SPREAD + 1)).max(1), ..self.clone() }
    }

    /// It is in one directory.
    pub(super) const fn is_flat(&self) -> bool {
        self.levels == 0
    }

    /// There are enough items to be spread.
    pub(super) const fn can_spread(&self) -> bool {
        self.items > SPREAD
    }

    /// What is measured, as the program prints it.
    pub(super) fn figures(&self) -> Vec<(&'static str, Phase)> {
        let of_kind = |name: &str| match self.kind {
            "files" => name.starts_with("File"),
            "directories" => name.starts_with("Directory"),
            _ => true,
        };
        let is_asked = |option: &&str| self.phases.is_empty() || self.phases.contains(option);
        let asked = PHASES.iter().filter(|(option, name, _)| of_kind(name) && is_asked(option));
        asked.map(|(_, name, phase)| (*name, *phase)).collect()
    }

    /// The keys of the workload.
    pub(super) fn keys(&self) -> Vec<String> {
        let directories = if self.is_unique { "unique" } else { "shared" };
        let mut keys = vec![
            "[stage.workload.tree]".to_owned(),
            format!("levels = {}", self.levels),
            format!("branching = {}", self.branching),
            format!("items = {}", self.items),
            format!("kind = \"{}\"", self.kind),
            format!("directories = \"{directories}\""),
            format!("file_size = \"{} B\"", self.file_size.0),
        ];
        keys.extend((self.shift > 0).then(|| format!("shift = {}", self.shift)));
        keys
    }
}

/// More would be hours.
const ITEMS_MOST: u32 = 10_000_000;
/// Directories that items are spread over, the first one apart.
const SPREAD: u32 = 16;

/// Where mdtest works it makes the directory that is named; ours lies beside it.
fn place(text: &str) -> anyhow::Result<PathBuf> {
    if text.contains('@') {
        bail!("-d {text}: write one directory");
    }
    let path = PathBuf::from(text);
    Ok(if path.is_dir() { path } else { super::line::parent_of(&path) })
}

/// The mean of a phase, `   File creation    46448.5   46448.5   46448.5   0.000`; a colon stood behind the name before version 4.
pub(super) fn rate_of_mdtest(stdout: &str, name: &str) -> Option<f64> {
    let rest = stdout.lines().find_map(|line| line.trim_start().strip_prefix(name))?;
    let mut figures = rest.trim_start_matches([' ', ':']).split_whitespace();
    figures.nth(2)?.parse().ok().filter(|rate| *rate > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> anyhow::Result<(TreeLine, Vec<String>)> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let mut not_taken = Vec::new();
        Ok((TreeLine::parse(&words, &mut not_taken)?, not_taken))
    }

    #[test]
    fn a_line_is_a_tree_with_its_items() {
        let (line, not_taken) = read("-d /gone/md -n 1000 -z 2 -b 3 -F -u -w 3901 -i 5 -y").expect("valid");
        assert_eq!((line.levels, line.branching, line.items, line.is_unique), (2, 3, 76, true));
        assert_eq!((line.directory, line.file_size), (PathBuf::from("/gone"), Bytes(3901)));
        assert_eq!(not_taken, ["-i 5", "-y", "the last 12 items, which are not in every directory"]);
        let (both, _) = read("-I 10 -C -T").expect("valid");
        let names: Vec<&str> = both.figures().iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["Directory creation", "Directory stat", "File creation", "File stat"]);
        let (flat, _) = read("-I 170 -D").expect("valid");
        assert!(flat.is_flat() && flat.can_spread() && flat.spread().items == 10, "{flat:?}");
        assert_eq!(both.spread().flat().items, 17);
    }

    #[test]
    fn what_can_not_be_read_is_refused() {
        for (line, part) in [
            ("-d /a@/b -n 1", "write one directory"),
            ("-F", "write mdtest -n or -I"),
            ("-n", "its value is missing"),
            ("-n 99999999999", "10000000 at the most"),
        ] {
            let error = read(line).expect_err(line).to_string();
            assert!(error.contains(part), "{part} in {error}");
        }
    }

    /// Output that was recorded, of versions 4.1 and 1.9.
    #[test]
    fn figures_of_both_versions_are_read() {
        let new = "   Operation                     Max            Min           Mean        Std Dev\n   File creation               46448.549      46448.549      46448.549          0.000\n";
        let old = "   File creation     :      17350.120      16350.120      16850.120         12.000\n";
        assert_eq!(rate_of_mdtest(new, "File creation"), Some(46448.549));
        assert_eq!(rate_of_mdtest(old, "File creation"), Some(16850.12));
        assert_eq!(rate_of_mdtest(new, "File stat"), None);
    }
}
