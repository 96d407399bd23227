//! `nilometer observe`: logs this machine's counters until you stop it, one line of JSON a look, for a later
//! report.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use anyhow::{Context, anyhow, bail};
use clap::Args;
use nilometer_cluster::node_name;
use nilometer_model::{
    Nanos, UnitError,
    observed::{ObservedLine, ObserverEnd},
};
use nilometer_storage::{
    Calendar, Clock,
    observer::{MachineObserver, device_of},
    process::Usage,
};
use serde::Serialize;

use crate::{Blame, Outcome, signals::stop_on_signal, tell};

/// Log this machine's load during a measurement on another machine
///
/// Run it on each server of the storage. It reads the kernel's counters of processors, network, disks, memory
/// and pressure, at even times of the clock. It touches none of the disks, mounts and files that it observes.
/// `nilometer report RECORD OBSERVED...` shows the log beside the results.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Observe {
    /// Write looks to this new file, a line of JSON a look. %h in it becomes this machine's name; `-` is
    /// standard output
    #[arg(long, short, value_name = "FILE")]
    out: String,
    /// Look at this interval: 100 ms to 1 h
    #[arg(long, value_name = "TIME", default_value = "1 s", value_parser = interval)]
    interval: Nanos,
    /// Stop after this time [default: at ctrl-C or SIGTERM]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    duration: Option<Nanos>,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  observed until the end of --duration, ctrl-C or SIGTERM
  1  the output took no more lines
  2  wrong input, such as a file that exists: nothing was observed";

const INTERVAL_LEAST: Nanos = Nanos::from_millis(100);
const INTERVAL_MOST: Nanos = Nanos::from_millis(3_600_000);
/// The longest delay until the program reacts to a signal.
const PATIENCE: Nanos = Nanos::from_millis(200);

fn interval(text: &str) -> Result<Nanos, String> {
    let interval: Nanos = text.parse().map_err(|error: UnitError| error.to_string())?;
    let is_possible = (INTERVAL_LEAST..=INTERVAL_MOST).contains(&interval);
    is_possible.then_some(interval).ok_or_else(|| format!("write {INTERVAL_LEAST} to {INTERVAL_MOST}"))
}

fn duration(text: &str) -> Result<Nanos, String> {
    let duration: Nanos = text.parse().map_err(|error: UnitError| error.to_string())?;
    (duration > Nanos(0)).then_some(duration).ok_or_else(|| "write more than 0".into())
}

impl Observe {
    pub(crate) fn execute(&self) -> Outcome {
        let host = node_name();
        let path = named(&self.out, &host).input()?;
        let stop = stop_on_signal().run()?;
        let mut output = ObservedOutput::open(&path).input()?;
        let mut observer = MachineObserver::default();
        output.line(&observer.header(host.clone(), self.interval)).run()?;
        self.tell_begin(&host, &output);
        let end = self.look_until_stopped(&mut observer, &mut output, &stop).run()?;
        output.line(&ObservedLine::Ended(end)).run()?;
        tell_end(&host, &end);
        Ok(())
    }

    fn tell_begin(&self, host: &str, output: &ObservedOutput) {
        let until = self.duration.map_or_else(|| "until ctrl-C".into(), |duration| format!("for {duration}"));
        tell::note(format_args!("Observing {host} every {} into {}, {until}", self.interval, output.name));
        if let Some(device) = output.file.as_ref().and_then(device_of) {
            tell::note(format_args!(
                "The file lies on {device} of this machine, so the observer writes to this disk: use `--out -` over \
                 ssh to keep it elsewhere"
            ));
        }
    }

    /// Looks at once, then at whole multiples of the interval by this machine's clock. Observers whose clocks
    /// agree look at the same times. A time that has passed is skipped.
    fn look_until_stopped(
        &self,
        observer: &mut MachineObserver,
        output: &mut ObservedOutput,
        stop: &AtomicBool,
    ) -> anyhow::Result<ObserverEnd> {
        let clock = Clock::start();
        let before = Usage::of_process();
        let begin = clock.now();
        let over = self.duration.map_or(Nanos::MAX, |duration| begin + duration);
        let mut times = LookTimes { due: begin + until_even(self.interval), interval: self.interval };
        let mut end = ObserverEnd::default();
        loop {
            output.line(&ObservedLine::Look(Box::new(observer.look())))?;
            end.looks += 1;
            end.missed += times.leave_out(clock.now());
            if !waited(&clock, times.due.min(over), stop) || clock.now() >= over || output.left {
                break;
            }
            times.due += self.interval;
        }
        // The counts since the last look belong to the log too.
        output.line(&ObservedLine::Look(Box::new(observer.look())))?;
        end.looks += 1;
        end.time_us = Calendar::now().time.0 / 1000;
        end.observed_s = clock.now().since(begin).seconds();
        end.own_processor_s = Usage::of_process().since(before).total().seconds();
        Ok(end)
    }
}

/// The times of looks.
struct LookTimes {
    due: Nanos,
    interval: Nanos,
}

impl LookTimes {
    /// Skips the times that have passed, and returns their number.
    fn leave_out(&mut self, now: Nanos) -> u64 {
        if now < self.due {
            return 0;
        }
        let gone = now.since(self.due).0 / self.interval.0 + 1;
        self.due += Nanos(gone * self.interval.0);
        gone
    }
}

/// The time until the next whole multiple of the interval, by the calendar's clock.
fn until_even(interval: Nanos) -> Nanos {
    Nanos(interval.0 - Calendar::now().time.0 % interval.0)
}

/// Waits; true if the time came before a signal.
fn waited(clock: &Clock, until: Nanos, stop: &AtomicBool) -> bool {
    loop {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        let left = until.since(clock.now());
        if left == Nanos(0) {
            return true;
        }
        std::thread::sleep(left.min(PATIENCE).duration());
    }
}

fn tell_end(host: &str, end: &ObserverEnd) {
    let observed = Nanos::from_seconds(end.observed_s);
    let own = Nanos::from_seconds(end.own_processor_s);
    let share = 100.0 * end.own_processor_s / end.observed_s.max(1e-9);
    let missed = if end.missed > 0 { format!(", {} missed", end.missed) } else { String::new() };
    tell::note(format_args!(
        "Observed {host} for {observed}: {} looks{missed}; the observer used {own} of processor time, {share:.2} % \
         of one processor",
        end.looks
    ));
}

/// Puts this machine's name into the file's name.
fn named(out: &str, host: &str) -> anyhow::Result<PathBuf> {
    let mut name = String::new();
    let mut rest = out;
    while let Some((before, behind)) = rest.split_once('%') {
        name.push_str(before);
        let (put, behind) = match behind.chars().next() {
            Some('h') => (host, &behind[1..]),
            Some('%') => ("%", &behind[1..]),
            _ => bail!("--out {out}: behind % stands h, for this machine's name, or another %"),
        };
        name.push_str(put);
        rest = behind;
    }
    name.push_str(rest);
    Ok(name.into())
}

/// The output of lines. One write takes a whole line: after a kill, at most the last line is torn.
struct ObservedOutput {
    name: String,
    /// `None` for standard output.
    file: Option<File>,
    /// True if the reader of standard output has closed it.
    left: bool,
}

impl ObservedOutput {
    /// Makes a new file that others may read, and holds a lock on it while writing.
    fn open(path: &Path) -> anyhow::Result<Self> {
        let name = path.display().to_string();
        if name == "-" {
            return Ok(ObservedOutput { name: "standard output".into(), file: None, left: false });
        }
        let file = match File::options().append(true).create_new(true).mode(0o644).open(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(taken(path)),
            file => file.with_context(|| format!("can't make {name}"))?,
        };
        file.try_lock().with_context(|| format!("can't lock {name}"))?;
        Ok(ObservedOutput { name, file: Some(file), left: false })
    }

    fn line(&mut self, value: &impl Serialize) -> anyhow::Result<()> {
        let mut text = serde_json::to_vec(value)?;
        text.push(b'\n');
        let written = self.write_whole(&text);
        if self.file.is_none()
            && written.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
        {
            self.left = true;
            return Ok(());
        }
        written.with_context(|| format!("can't write {}", self.name))
    }

    fn write_whole(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            return file.write_all(bytes);
        }
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes)?;
        stdout.flush()
    }
}

/// The refusal of a file that exists: an observer overwrites no file, least of all another observer's.
fn taken(path: &Path) -> anyhow::Error {
    let shown = path.display();
    let is_held = || File::open(path).is_ok_and(|file| file.try_lock_shared().is_err());
    let is_file = fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    if is_file && is_held() {
        return anyhow!(
            "{shown}: another observer writes it: start one on each machine, with %h in --out where they share a directory"
        );
    }
    anyhow!("{shown}: exists already: choose another --out, or move it away")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_called_by_its_machine() {
        let name = |out: &str| named(out, "oss1").map(|path| path.display().to_string());
        assert_eq!(name("/run/%h.jsonl").expect("valid"), "/run/oss1.jsonl");
        assert_eq!(name("%h/a-%h-100%%").expect("valid"), "oss1/a-oss1-100%");
        for wrong in ["%H", "a%", "%d-%h", "%\u{fc}"] {
            let error = name(wrong).expect_err(wrong).to_string();
            assert!(error.contains("behind % stands h"), "{error}");
        }
    }

    #[test]
    fn looks_that_are_late_are_left_out_and_the_next_is_due_at_its_time() {
        let mut times = LookTimes { due: Nanos(100), interval: Nanos(10) };
        assert_eq!((times.leave_out(Nanos(99)), times.due), (0, Nanos(100)));
        assert_eq!((times.leave_out(Nanos(100)), times.due), (1, Nanos(110)));
        assert_eq!((times.leave_out(Nanos(137)), times.due), (3, Nanos(140)));
    }

    #[test]
    fn intervals_are_what_a_machine_can_keep_and_a_report_can_use() {
        assert_eq!(interval("250 ms"), Ok(Nanos::from_millis(250)));
        for wrong in ["0 s", "10 ms", "2 h", "1", "-1 s"] {
            assert!(interval(wrong).is_err(), "{wrong}");
        }
        assert!(duration("0 s").is_err() && duration("5 min").is_ok());
        assert!(until_even(Nanos::from_millis(1000)) <= Nanos::from_millis(1000));
    }
}
