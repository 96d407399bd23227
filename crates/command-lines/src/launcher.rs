//! The front of a line: the words before the program. Reads wrappers (`time`, `sudo`, `env`, `numactl` ..)
//! and launchers (`mpirun`, `srun`, `aprun`, `jsrun` ..). Takes over the number of processes, and lists
//! options that only place processes.

use std::path::Path;

use crate::{
    amount::count,
    error::LineError,
    launcher_options::{LAUNCHERS, WRAPPERS},
    options::{LeftOutOptions, ReadOption, ReadWords},
    reach::{LinePath, LineReach},
};

/// The words of a line before its program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineFront {
    /// Processes that a launcher starts.
    pub processes: u32,
    /// The words before the program with which the line runs: without `time` and the like, which may be words
    /// of the shell.
    pub command: Vec<String>,
    /// The wrappers that our cells get too: `numactl`, `taskset`, `nice`, variables.
    pub around_ours: Vec<String>,
    /// The launcher with its options; empty without one.
    pub launcher: Vec<String>,
    /// The number of words of the line before the program.
    pub words: usize,
    /// Files that launchers write.
    pub reach: LineReach,
    /// Options of launchers and wrappers without a counterpart in the cell.
    pub left_out: LeftOutOptions,
}

/// Words of a shell that are no programs, or change nothing.
const SHELL_WORDS: [&str; 5] = ["time", "exec", "command", "nohup", "builtin"];

impl LineFront {
    /// Reads a line up to its program.
    pub(crate) fn read(line: &[String]) -> Result<Self, LineError> {
        let mut front = LineFront { processes: 1, ..LineFront::default() };
        loop {
            let rest = &line[front.words..];
            let word = rest.first().ok_or_else(|| LineError::whole("write the line behind `--`"))?;
            let name = name_of(word);
            if is_variable(word) {
                front.take_variable(word);
            } else if let Some((_, table)) = WRAPPERS.iter().find(|(names, _)| is_one_of(names, &name)) {
                let read = table.read(&rest[1..], front.words + 2)?;
                front.add_reach(&name, &read);
                front.take_wrapper(&name, rest, read.count)?;
            } else if let Some((_, table)) = LAUNCHERS.iter().find(|(names, _)| is_one_of(names, &name)) {
                let read = table.read(&rest[1..], front.words + 2)?;
                let words = 1 + read.count;
                front.add_reach(&name, &read);
                let taken = read.taken(&mut front.left_out)?;
                front.take_launcher(&name, &taken)?;
                front.launcher = rest[..words].to_vec();
                front.take_words(rest, words);
            } else {
                return Ok(front);
            }
        }
    }

    /// Notes output of a launcher, and another directory in which the line starts.
    fn add_reach(&mut self, name: &str, read: &ReadWords) {
        let moving: &[&str] = match name {
            "sudo" | "doas" => &["D", "chdir", "i", "login"],
            "env" => &["C", "S", "chdir"],
            "srun" => &["D", "chdir"],
            "jsrun" | "lrun" => &["h", "chdir"],
            _ => &["wdir", "wd"],
        };
        for option in read.named(moving) {
            self.reach.moved_by = Some(option.written.clone());
        }
        let output: &[&str] = match name {
            "srun" | "jsrun" | "lrun" => &["o", "e", "output", "error", "stdio_stdout", "stdio_stderr"],
            _ => &["output-filename", "outfile-pattern", "errfile-pattern"],
        };
        for option in read.named(output) {
            let begin = option.value.split('%').next().unwrap_or_default();
            self.reach.add(LinePath::FilesFrom(begin.into()));
        }
    }

    fn take_words(&mut self, rest: &[String], words: usize) {
        self.command.extend(rest[..words].iter().cloned());
        self.words += words;
    }

    /// `VAR=value` before a program, which only a shell understands.
    fn take_variable(&mut self, word: &str) {
        if self.around_ours.is_empty() {
            self.around_ours.push("env".to_owned());
        }
        self.around_ours.push(word.to_owned());
        self.command.extend(["env".to_owned(), word.to_owned()]);
        self.words += 1;
        self.left_out.without_effect.push(format!("{word} (our cells have it too)"));
    }

    /// A wrapper with `options` words of options behind it. `timeout` and `taskset` have an operand as well.
    fn take_wrapper(&mut self, name: &str, rest: &[String], options: usize) -> Result<(), LineError> {
        let mut words = 1 + options;
        let is_mask = name == "taskset"
            && !rest[1..words].iter().any(|option| option.starts_with("-c") || option.starts_with("--cpu"));
        let has_operand = name == "timeout" || name == "chrt" || is_mask;
        words += usize::from(has_operand);
        if name == "env" {
            words += rest[words..].iter().take_while(|word| is_variable(word)).count();
        }
        if words >= rest.len() {
            return Err(LineError::whole(format!("`{}`: no program follows it", rest.join(" "))));
        }
        let written = rest[..words].join(" ");
        match name {
            _ if SHELL_WORDS.contains(&name) => {
                self.left_out.without_effect.push(written);
                self.words += words;
                return Ok(());
            }
            "sudo" | "doas" | "stdbuf" | "setsid" | "unbuffer" => self.left_out.without_effect.push(written),
            "timeout" => self.left_out.leave(&written, "it ends the program after that time"),
            _ => {
                self.around_ours.extend(rest[..words].iter().cloned());
                self.left_out.without_effect.push(format!("{written} (our cells run in it too)"));
            }
        }
        self.take_words(rest, words);
        Ok(())
    }

    /// The number of processes, in the words of each launcher.
    fn take_launcher(&mut self, name: &str, options: &[ReadOption]) -> Result<(), LineError> {
        let number = |names: &[&str]| number_of(options, names);
        let all = number(&["n", "np", "c", "ntasks", "p", "nrs"])?;
        let times = number(match name {
            "jsrun" => &["a", "tasks_per_rs"],
            "srun" => &["ntasks-per-node", "tasks-per-node"],
            _ => &["N", "npernode", "ppn", "perhost"],
        })?;
        let nodes = number(&["N", "nodes"])?;
        let processes = match (name, all, times, nodes) {
            ("jsrun", all, times, _) => all.unwrap_or(1).saturating_mul(times.unwrap_or(1)),
            ("srun", None, times, Some(nodes)) => nodes.saturating_mul(times.unwrap_or(1)),
            (_, Some(all), ..) => all,
            (_, None, Some(times), _) => times,
            (_, None, None, _) => {
                let many = "the line does not have the number of processes; here there is 1";
                self.left_out.leave(&format!("{name} without a number"), many);
                1
            }
        };
        if processes > WORKERS_MOST {
            return Err(LineError::whole(format!(
                "{name} with {processes} processes: write {WORKERS_MOST} at the most: all our workers are on this machine"
            )));
        }
        self.processes = processes.max(1);
        Ok(())
    }
}

/// The last of the options with these names; `None` if the line has none of them.
fn number_of(options: &[ReadOption], names: &[&str]) -> Result<Option<u32>, LineError> {
    let Some(option) = options.iter().rfind(|option| names.contains(&option.name.as_str())) else {
        return Ok(None);
    };
    count(&option.value, 1 << 20).map(Some).map_err(|error| option.wrong(error))
}

/// The most workers of a cell.
const WORKERS_MOST: u32 = 1024;

fn is_one_of(names: &str, name: &str) -> bool {
    names.split('|').any(|known| known == name)
}

/// The last part of a path.
pub(crate) fn name_of(command: &str) -> String {
    Path::new(command).file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// `NAME=value`.
fn is_variable(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    !name.is_empty()
        && name.chars().all(is_letter)
        && !name.starts_with(|letter: char| letter.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<LineFront, LineError> {
        LineFront::read(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn launchers_say_the_number_of_processes_each_in_its_way() {
        for (line, processes) in [
            ("mpirun -np 4 ior", 4),
            ("mpirun -n=4 ior", 4),
            ("/opt/bin/mpiexec.hydra -ppn 2 -n 8 -f hosts ior", 8),
            (
                "mpirun --mca btl self,tcp -x LD_PRELOAD --hostfile h --map-by node --bind-to core -np 2 ior",
                2,
            ),
            ("srun -N 2 --ntasks-per-node=4 --cpu-bind=cores ior", 8),
            ("srun -n6 -N2 ior", 6),
            ("mpirun -N 3 ior", 3),
            ("srun ior", 1),
            ("aprun -n 16 -N 8 -d 2 -cc depth ior", 16),
            ("jsrun -n 2 -a 3 -c 4 -r 1 ior", 6),
            ("jsrun -n6 -a1 -c42 -g1 ior", 6),
            ("ibrun -n 4 -o 0 ior", 4),
            ("ior", 1),
        ] {
            assert_eq!(read(line).expect(line).processes, processes, "{line}");
        }
    }

    #[test]
    fn wrappers_are_taken_off_and_those_that_place_a_process_hold_ours_too() {
        let front =
            read("time -p sudo -E env A=1 numactl -N 0 -m 0 mpirun -n 2 taskset -c 0-3 ior").expect("valid");
        assert_eq!(
            front.around_ours,
            ["env", "A=1", "numactl", "-N", "0", "-m", "0", "taskset", "-c", "0-3"]
        );
        assert_eq!((front.words, front.processes), (17, 2));
        assert_eq!(front.launcher, ["mpirun", "-n", "2"]);
        assert_eq!(front.command[0], "sudo", "a shell has its own time");
        let bare = read("LD_PRELOAD=/x.so timeout -k 5 60 nice -n 10 dd").expect("valid");
        assert_eq!(bare.command[..2], ["env", "LD_PRELOAD=/x.so"]);
        assert_eq!(bare.left_out.not_taken, ["timeout -k 5 60: it ends the program after that time"]);
        assert_eq!(bare.words, 8);
        assert_eq!(read("taskset 0xf nice -10 fio").expect("valid").words, 4);
    }

    #[test]
    fn fronts_that_make_no_sense_are_refused() {
        for (line, part) in [
            ("mpirun -n x ior", "`-n x` (word 2): `x`: write a number"),
            ("mpirun --oversubscripe ior", "write --oversubscribe"),
            ("mpirun -n", "its value is missing"),
            ("mpirun -np 4096 ior", "write 1024 at the most"),
            ("timeout 60", "no program follows it"),
            ("time", "`time`: no program follows it"),
        ] {
            let error = read(line).expect_err(line).to_string();
            assert!(error.contains(part), "{part} in {error}");
        }
    }
}
