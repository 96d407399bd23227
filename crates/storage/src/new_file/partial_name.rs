//! Names of unfinished files. A name identifies the process that makes the file, so that others can tell if
//! it still runs.
//!
//! ```text
//! .frames.raw.4711.0.88123.1f0a4c55.0c7f3a9b.5e1d22a0.partial
//!  NAME       |    | |     |        |        checksum of all before it: no other program makes such a name
//!             |    | |     |        this start of the machine
//!             |    | |     machine and PID namespace
//!             |    | start of the process, in ticks since the machine started
//!             |    number of the file
//!             process
//! ```

use std::{fmt, fs};

use rustix::system::uname;

use crate::process::BootId;

/// The bytes of the final name kept in the temporary one, which has at most 255.
const NAME_KEPT: usize = 180;
const SUFFIX: &str = ".partial";
/// The number of fields after the name, without the checksum.
const FIELDS: usize = 5;

/// The name of a file that a process makes and has not finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartialName {
    /// The beginning of the file's final name.
    stem: String,
    process: u32,
    number: u32,
    /// The start of the process, in ticks since the machine started.
    started: u64,
    place: WritersPlace,
}

/// The machine, namespace and boot in which a process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WritersPlace {
    /// The machine, and the PID namespace of the process number.
    machine: u32,
    /// The start of the machine.
    boot: u32,
}

impl WritersPlace {
    fn here() -> Self {
        let machine = fs::read_to_string("/etc/machine-id").unwrap_or_default();
        let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let named = uname().nodename().to_string_lossy().into_owned();
        let boot = BootId::now().map_or_else(String::new, |boot| boot.to_string());
        let all = format!("{}\n{named}\n{}", machine.trim(), namespace.display());
        WritersPlace { machine: crc32fast::hash(all.as_bytes()), boot: crc32fast::hash(boot.as_bytes()) }
    }
}

impl PartialName {
    /// Returns a name for a file of this process.
    pub fn of_this_process(name: &str, number: u32) -> Self {
        let process = std::process::id();
        let started = start_of(process).unwrap_or(0);
        PartialName { stem: stem(name), process, number, started, place: WritersPlace::here() }
    }

    /// Parses a name; `None` if this program did not make it.
    pub fn read(text: &str) -> Option<Self> {
        let (signed, checksum) = text.strip_suffix(SUFFIX)?.rsplit_once('.')?;
        if checksum != checksum_of(signed) {
            return None;
        }
        let mut fields: Vec<&str> = signed.rsplitn(FIELDS + 1, '.').collect();
        fields.reverse();
        let [stem, process, number, started, machine, boot] = fields[..] else { return None };
        let hexadecimal = |text| u32::from_str_radix(text, 16).ok();
        Some(PartialName {
            stem: stem.strip_prefix('.')?.to_owned(),
            process: process.parse().ok()?,
            number: number.parse().ok()?,
            started: started.parse().ok()?,
            place: WritersPlace { machine: hexadecimal(machine)?, boot: hexadecimal(boot)? },
        })
    }

    /// Returns true if a temporary name belongs to a file of this final name. It also accepts names by older
    /// versions of this program: `.NAME.PROCESS.NUMBER.partial`.
    pub fn is_of(partial: &str, name: &str) -> bool {
        if let Some(read) = PartialName::read(partial) {
            return read.stem == stem(name);
        }
        let numbers = partial.strip_prefix(&format!(".{name}.")).and_then(|rest| rest.strip_suffix(SUFFIX));
        let is_number = |part: &str| !part.is_empty() && part.chars().all(|letter| letter.is_ascii_digit());
        numbers.is_some_and(|numbers| numbers.split('.').count() == 2 && numbers.split('.').all(is_number))
    }

    /// Returns true if the process that made the name has ended; `None` if this process can't know that.
    pub fn is_dead(&self) -> Option<bool> {
        let here = WritersPlace::here();
        if self.place.machine != here.machine {
            return None;
        }
        // Another process may have the same number by now.
        Some(self.place.boot != here.boot || start_of(self.process) != Some(self.started))
    }

    /// Returns the name as another process, which ends or has ended, would have made it.
    #[cfg(test)]
    pub(super) fn of_process(self, process: u32) -> Self {
        PartialName { process, started: 1, ..self }
    }

    /// Returns true if it was made since this machine started.
    pub(super) fn is_of_this_boot(&self) -> bool {
        self.place.boot == WritersPlace::here().boot
    }
}

impl fmt::Display for PartialName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PartialName { stem, process, number, started, place } = self;
        let WritersPlace { machine, boot } = place;
        let signed = format!(".{stem}.{process}.{number}.{started}.{machine:08x}.{boot:08x}");
        write!(f, "{signed}.{}{SUFFIX}", checksum_of(&signed))
    }
}

fn checksum_of(signed: &str) -> String {
    format!("{:08x}", crc32fast::hash(signed.as_bytes()))
}

/// Returns the beginning of a name.
fn stem(name: &str) -> String {
    name.char_indices().map_while(|(at, letter)| (at < NAME_KEPT).then_some(letter)).collect()
}

/// Returns the start of a process, in ticks since the machine started (`starttime` of `proc_pid_stat(5)`).
/// `None` if it does not exist, or has ended and nobody has waited for it.
fn start_of(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The program's name is in brackets and may contain any characters.
    let (_, behind) = text.rsplit_once(") ")?;
    let mut fields = behind.split(' ');
    let state = fields.next()?;
    (!["Z", "X"].contains(&state)).then(|| fields.nth(18)?.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_name_of_a_process_that_runs_is_not_dead_and_that_of_one_that_ended_is() {
        let own = PartialName::of_this_process("frames.0.raw", 3);
        assert_eq!(PartialName::read(&own.to_string()), Some(own.clone()));
        assert_eq!(own.is_dead(), Some(false));
        assert!(PartialName::is_of(&own.to_string(), "frames.0.raw"));
        assert!(!PartialName::is_of(&own.to_string(), "frames"));
        assert!(PartialName::is_of(".frames.4711.0.partial", "frames"));
        assert!(!PartialName::is_of(".frames.0.4711.0.partial", "frames"));
        let earlier = PartialName { started: own.started - 1, ..own.clone() };
        assert_eq!(earlier.is_dead(), Some(true), "another process had this number");
        let before = WritersPlace { boot: !own.place.boot, ..own.place };
        assert_eq!(PartialName { place: before, ..own.clone() }.is_dead(), Some(true));
        let elsewhere = WritersPlace { machine: !own.place.machine, ..own.place };
        assert_eq!(PartialName { place: elsewhere, ..own }.is_dead(), None, "another machine may run it");
    }

    #[test]
    fn a_process_that_has_ended_and_that_nobody_waited_for_is_dead() {
        let mut child = std::process::Command::new("true").spawn().expect("true is everywhere");
        let started = start_of(child.id());
        while start_of(child.id()).is_some() {
            std::thread::yield_now();
        }
        let own = PartialName::of_this_process("a", 0);
        let of_child = PartialName { process: child.id(), started: started.unwrap_or(1), ..own };
        assert_eq!(of_child.is_dead(), Some(true));
        child.wait().expect("it is ours");
    }

    #[test]
    fn names_that_others_made_are_none_of_ours() {
        let own = PartialName::of_this_process("frames.raw", 0).to_string();
        for name in [
            ".frames.raw.4711.0.partial".to_owned(),
            "download.partial".to_owned(),
            own.replace("frames", "others"),
            own.replace(".partial", ".part"),
        ] {
            assert_eq!(PartialName::read(&name), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn every_name_comes_back_and_fits(name in "[^/\0]{1,255}", number in 0_u32..1000) {
            let made = PartialName::of_this_process(&name, number);
            prop_assert!(made.to_string().len() <= 255);
            prop_assert_eq!(PartialName::read(&made.to_string()), Some(made));
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,300}") {
            drop(PartialName::read(&format!("{text}.partial")));
        }
    }
}
