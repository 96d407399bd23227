//! The jobs of fio, from its command line and its job files. Options before the first job hold for all jobs;
//! `--name=a` and `[a]` begin one.

use std::{env, fs, path::Path};

use crate::{
    error::LineError,
    fio_options::TABLE,
    options::{LeftOutOptions, OptionEffect, ReadOption},
};

/// A job with its own options behind those of all jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FioJob {
    pub(crate) name: String,
    pub(crate) options: Vec<ReadOption>,
    /// Options without an effect on its figure; some of them write files.
    pub(crate) without_effect: Vec<ReadOption>,
}

/// All jobs of a line.
#[derive(Debug, Default)]
pub(crate) struct FioJobs {
    global: FioJob,
    pub(crate) jobs: Vec<FioJob>,
    /// Jobs that `--section` names; all if empty.
    sections: Vec<String>,
    /// True inside a job that is not yet in a list.
    is_in_job: bool,
}

impl FioJob {
    /// True if it begins only when all jobs before it have ended.
    pub(crate) fn waits(&self) -> bool {
        let waits = |option: &&ReadOption| ["stonewall", "wait_for_previous"].contains(&option.name.as_str());
        self.options.iter().rfind(waits).is_some_and(ReadOption::is_set)
    }
}

impl FioJobs {
    /// Reads a command line and the files that it names; the first word has number `first` in the line.
    pub(crate) fn read(
        words: &[String],
        first: usize,
        left_out: &mut LeftOutOptions,
    ) -> Result<Self, LineError> {
        let read = TABLE.read(words, first)?;
        let files = read.operands.clone();
        let mut jobs = FioJobs::default();
        for (option, effect) in read.options {
            jobs.take(option, effect, left_out)?;
        }
        // Options of a job on the command line are not those of jobs in files.
        jobs.is_in_job = false;
        for file in &files {
            let text = fs::read_to_string(file)
                .map_err(|source| LineError::File { file: format!("{file}: a job file"), source })?;
            jobs.take_file(&text, file, left_out)?;
        }
        if jobs.jobs.is_empty() {
            jobs.jobs.push(jobs.global.clone());
        }
        if !jobs.sections.is_empty() {
            let sections = jobs.sections.clone();
            jobs.jobs.retain(|job| sections.contains(&job.name));
            if jobs.jobs.is_empty() {
                let sections = sections.join(", ");
                return Err(LineError::whole(format!("--section={sections}: no job has this name")));
            }
        }
        Ok(jobs)
    }

    fn take(
        &mut self,
        option: ReadOption,
        effect: OptionEffect,
        left_out: &mut LeftOutOptions,
    ) -> Result<(), LineError> {
        match option.name.as_str() {
            "name" => self.begin(&option.value),
            "section" => self.sections.push(option.value),
            // The effect of a job's option counts only if that job is taken over.
            _ if matches!(effect, OptionEffect::Taken | OptionEffect::Changes(_)) => {
                self.job().options.push(option);
            }
            _ => {
                left_out.file(&option, effect)?;
                self.job().without_effect.push(option);
            }
        }
        Ok(())
    }

    fn begin(&mut self, name: &str) {
        self.is_in_job = name != "global";
        if self.is_in_job {
            self.jobs.push(FioJob { name: name.to_owned(), ..self.global.clone() });
        }
    }

    /// The present job, or the options of all jobs.
    fn job(&mut self) -> &mut FioJob {
        match self.jobs.last_mut().filter(|_| self.is_in_job) {
            Some(job) => job,
            None => &mut self.global,
        }
    }

    fn take_file(&mut self, text: &str, name: &str, left_out: &mut LeftOutOptions) -> Result<(), LineError> {
        let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line.trim()));
        for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with(['#', ';'])) {
            let place = format!("{}, line {number}", file_name(name));
            if let Some(section) = line.strip_prefix('[') {
                let section = section.split(']').next().unwrap_or_default();
                self.begin(section);
                continue;
            }
            if line.starts_with("include ") {
                return Err(LineError::word(line, &place, "write the options of that file in this one"));
            }
            let (key, value) = line.split_once('=').unwrap_or((line, ""));
            let option = ReadOption {
                name: key.trim().to_owned(),
                value: expanded(without_comment(value), &place)?,
                written: without_comment(line).to_owned(),
                place,
            };
            let effect = TABLE.of_file(&option)?;
            self.take(option, effect, left_out)?;
        }
        Ok(())
    }
}

fn file_name(path: &str) -> String {
    Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A comment behind a value begins with a space.
fn without_comment(value: &str) -> &str {
    let ends = [" #", "\t#", " ;", "\t;"].iter().filter_map(|begin| value.find(begin)).min();
    value[..ends.unwrap_or(value.len())].trim()
}

/// `${NAME}` in job files is a variable of the environment.
fn expanded(value: &str, place: &str) -> Result<String, LineError> {
    let mut text = value.to_owned();
    while let Some(begin) = text.find("${") {
        let Some(length) = text[begin..].find('}') else {
            return Err(LineError::word(value, place, "write the closing brace"));
        };
        let name = text[begin + 2..begin + length].to_owned();
        let found = env::var(&name).map_err(|_| {
            LineError::word(value, place, format!("{name} is not in the environment: set it"))
        })?;
        text.replace_range(begin..=begin + length, &found);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "; two jobs\n[global]\nioengine=libaio # its engine\ndirect=1\n\n[fill]\nrw=write\nsize=1g\n\n[read]\nstonewall\nrw=randread\n";

    fn of_file(text: &str) -> Result<(FioJobs, LeftOutOptions), LineError> {
        let mut jobs = FioJobs::default();
        let mut left_out = LeftOutOptions::default();
        jobs.take_file(text, "/x/jobs.fio", &mut left_out)?;
        Ok((jobs, left_out))
    }

    #[test]
    fn a_file_and_a_line_have_the_same_jobs() {
        let (jobs, _) = of_file(FILE).expect("valid");
        let of = |job: &FioJob| -> Vec<String> {
            job.options.iter().map(|option| format!("{}={}", option.name, option.value)).collect()
        };
        assert_eq!(of(&jobs.jobs[0]), ["ioengine=libaio", "direct=1", "rw=write", "size=1g"]);
        assert_eq!(of(&jobs.jobs[1]), ["ioengine=libaio", "direct=1", "stonewall=", "rw=randread"]);
        assert!(jobs.jobs[1].waits() && !jobs.jobs[0].waits());
        assert_eq!(jobs.jobs[1].options[3].place, "jobs.fio, line 12");
        let words: Vec<String> = "-ioengine libaio --direct=1 --name=fill --rw=write --size 1g --name read --stonewall --rw=randread"
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        let line = FioJobs::read(&words, 2, &mut LeftOutOptions::default()).expect("valid");
        let names: Vec<&str> = line.jobs.iter().map(|job| job.name.as_str()).collect();
        assert_eq!(names, ["fill", "read"]);
        assert_eq!(of(&line.jobs[1]), of(&jobs.jobs[1]));
    }

    #[test]
    fn files_that_fio_would_not_read_are_refused_at_their_line() {
        for (text, part) in [
            ("[a]\nbss=4k\n", "`bss=4k` (jobs.fio, line 2): fio has no such option: write bs"),
            ("[a]\nsize=${NILOMETER_UNSET}\n", "NILOMETER_UNSET is not in the environment"),
            ("include other.fio\n", "(jobs.fio, line 1): write the options of that file"),
            ("[a]\nsize=${X\n", "write the closing brace"),
        ] {
            let error = format!("{:#}", of_file(text).expect_err(text));
            assert!(error.contains(part), "{part} in {error}");
        }
        let words = ["--section=b".to_owned(), "--name=a".to_owned()];
        let error =
            FioJobs::read(&words, 2, &mut LeftOutOptions::default()).expect_err("no such job").to_string();
        assert!(error.contains("--section=b: no job has this name"), "{error}");
    }
}
