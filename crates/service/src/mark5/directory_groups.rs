//! Selects a station's directories by path, with the wild cards of a shell, or by group. There is no I/O here.
//!
//! A recorder's directories stand for the disks of a `FlexBuff` or a Mark 6. The groups built into jive5ab
//! (`mk_builtins` in src/mk6info.cc) exist here too. `flexbuf`, `flexbuff` and `mk6` are all directories of the
//! configuration. One or several of the digits 1 to 4 are those below /mnt/disks/1 to /mnt/disks/4, where a Mark
//! 6 mounts its modules.
//!
//! `null`, which selects no disk in jive5ab, is no group here: the recorder always stores received data.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use glob::{MatchOptions, Pattern};

/// The groups that stations defined.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct DirectoryGroups(BTreeMap<String, Vec<String>>);

/// An error about a group, in words for the station.
pub(super) type GroupError = &'static str;

/// The most groups, since any client of the port may define some.
const GROUPS_MAX: usize = 100;
/// The groups that stand for all directories.
const ALL: [&str; 3] = ["flexbuf", "flexbuff", "mk6"];
/// The groups that stand for modules of a Mark 6.
const MODULES: [&str; 4] = ["1", "2", "3", "4"];
/// Matches like a shell: an asterisk does not match a slash.
const SHELL: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

/// Returns true for a name of modules: digits from 1 to 4, such as `12`.
fn names_modules(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|digit| (b'1'..=b'4').contains(&digit))
}

fn is_built_in(name: &str) -> bool {
    ALL.contains(&name) || name == "null" || names_modules(name)
}

impl DirectoryGroups {
    /// `group_def = define : <group> : <pattern> [: <pattern>]`.
    pub(super) fn define(&mut self, name: &str, patterns: &[String]) -> Result<(), GroupError> {
        let patterns: Vec<_> = patterns.iter().filter(|pattern| !pattern.is_empty()).cloned().collect();
        if is_built_in(name) {
            return Err("this group is always there, choose another name");
        }
        if name.is_empty() || name.starts_with(['/', '^']) {
            return Err("write a name of a group and patterns");
        }
        if patterns.is_empty() {
            return Err("write patterns behind the name");
        }
        if !self.0.contains_key(name) && self.0.len() >= GROUPS_MAX {
            return Err("there are too many groups, delete one");
        }
        self.0.insert(name.to_owned(), patterns);
        Ok(())
    }

    /// `group_def = delete : <group>`.
    pub(super) fn delete(&mut self, name: &str) -> Result<(), GroupError> {
        if is_built_in(name) {
            return Err("this group is always there");
        }
        self.0.remove(name).map(drop).ok_or("no such group")
    }

    /// All groups: those that stations defined, and the built-in ones that select directories.
    pub(super) fn names(&self) -> Vec<String> {
        let built_in = MODULES.into_iter().chain(ALL).map(str::to_owned);
        self.0.keys().cloned().chain(built_in).collect()
    }

    /// The patterns of a group, among these directories.
    pub(super) fn patterns(&self, name: &str, among: &[PathBuf]) -> Result<Vec<String>, GroupError> {
        if let Some(patterns) = self.0.get(name) {
            return Ok(patterns.clone());
        }
        if !is_built_in(name) || name == "null" {
            return Err("no such group");
        }
        let chosen = among.iter().filter(|directory| built_in_has(name, directory));
        Ok(chosen.map(|directory| directory.display().to_string()).collect())
    }

    /// The directories that match one of the patterns or groups, in their own order.
    pub(super) fn select(&self, asked: &[String], among: &[PathBuf]) -> Result<Vec<PathBuf>, GroupError> {
        let mut left: Vec<&str> = asked.iter().map(String::as_str).collect();
        let mut seen = BTreeSet::new();
        let mut chosen = BTreeSet::new();
        while let Some(pattern) = left.pop() {
            // A group may contain itself through others.
            if pattern.is_empty() || !seen.insert(pattern) {
                continue;
            }
            match self.0.get(pattern) {
                Some(patterns) => left.extend(patterns.iter().map(String::as_str)),
                None => chosen.extend(meant(pattern, among)?),
            }
        }
        Ok(among.iter().filter(|directory| chosen.contains(*directory)).cloned().collect())
    }
}

/// The directories that match a pattern or a built-in group.
fn meant<'a>(pattern: &str, among: &'a [PathBuf]) -> Result<Vec<&'a PathBuf>, GroupError> {
    if pattern.starts_with('^') {
        return Err("no regular expressions here, write a path with * and ?");
    }
    if is_built_in(pattern) {
        return Ok(among.iter().filter(|directory| built_in_has(pattern, directory)).collect());
    }
    if !pattern.starts_with('/') {
        return Err("no such group");
    }
    if pattern.matches('*').count() > STARS_MOST {
        return Err("too many * in a pattern");
    }
    let path = pattern.trim_end_matches('/');
    let Ok(shell) = Pattern::new(path) else { return Err("no valid pattern") };
    let fits = |directory: &&PathBuf| {
        directory.to_str().is_some_and(|text| shell.matches_with(text.trim_end_matches('/'), SHELL))
    };
    Ok(among.iter().filter(fits).collect())
}

/// The most asterisks in a pattern. The time to match grows with the length of a name to the power of their
/// number.
const STARS_MOST: usize = 4;

/// Returns true if a built-in group has this directory.
fn built_in_has(name: &str, directory: &Path) -> bool {
    let mut modules = name.chars().map(|module| format!("/mnt/disks/{module}"));
    ALL.contains(&name) || names_modules(name) && modules.any(|module| directory.starts_with(module))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directories() -> Vec<PathBuf> {
        ["/mnt/disks/1/0/data", "/mnt/disks/1/1/data", "/mnt/disks/2/0/data", "/data"].map(Into::into).into()
    }

    fn fields(text: &str) -> Vec<String> {
        text.split(':').map(str::to_owned).collect()
    }

    fn chosen(groups: &DirectoryGroups, asked: &str) -> Vec<usize> {
        let all = directories();
        let chosen = groups.select(&fields(asked), &all).expect(asked);
        chosen.iter().map(|one| all.iter().position(|other| one == other).expect("one of all")).collect()
    }

    #[test]
    fn directories_are_chosen_by_path_wild_card_and_group_and_no_others_are() {
        let mut groups = DirectoryGroups::default();
        for (asked, expected) in [
            ("mk6", &[0, 1, 2, 3][..]),
            ("flexbuff", &[0, 1, 2, 3]),
            ("flexbuf", &[0, 1, 2, 3]),
            ("1", &[0, 1]),
            ("12", &[0, 1, 2]),
            ("4", &[]),
            ("null", &[]),
            ("/mnt/disks/*/0/data", &[0, 2]),
            ("/mnt/disks/[1-4]/?/data", &[0, 1, 2]),
            ("/mnt/*", &[]),
            ("/data/", &[3]),
            ("/data:2::/data", &[2, 3]),
            ("/etc", &[]),
            ("/data/../etc", &[]),
        ] {
            assert_eq!(chosen(&groups, asked), expected, "{asked}");
        }
        groups.define("first", &fields("/mnt/disks/*/0/*:")).expect("a group");
        groups.define("both", &fields("first:/data:both")).expect("a group of groups, and of itself");
        assert_eq!(chosen(&groups, "both"), [0, 2, 3]);
        for wrong in ["^/data$", "data", "Both", "/data:nowhere", "13x", "/[", "5"] {
            assert!(groups.select(&fields(wrong), &directories()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn groups_are_defined_told_and_deleted() {
        let mut groups = DirectoryGroups::default();
        let always = ["1", "2", "3", "4", "flexbuf", "flexbuff", "mk6"];
        assert_eq!(groups.names(), always);
        groups.define("disks", &fields("/data:1")).expect("a group");
        assert_eq!(groups.names()[0], "disks");
        assert_eq!(groups.patterns("disks", &directories()), Ok(fields("/data:1")));
        assert_eq!(groups.patterns("2", &directories()), Ok(fields("/mnt/disks/2/0/data")));
        assert_eq!(groups.patterns("mk6", &directories()).map(|all| all.len()), Ok(4));
        assert!(groups.patterns("other", &directories()).is_err());
        for (name, patterns) in
            [("mk6", "/data"), ("13", "/data"), ("", "/data"), ("/x", "/data"), ("^x$", "/data"), ("x", "")]
        {
            assert!(groups.define(name, &fields(patterns)).is_err(), "{name}");
        }
        assert!(groups.delete("mk6").is_err() && groups.delete("other").is_err());
        assert_eq!(groups.delete("disks"), Ok(()));
        assert_eq!(groups.names(), always);
        for number in 0..GROUPS_MAX {
            groups.define(&format!("g{number}"), &fields("/data")).expect("there is room");
        }
        assert!(groups.define("more", &fields("/data")).is_err());
        assert!(groups.define("g7", &fields("/data")).is_ok(), "it is there");
    }
}
