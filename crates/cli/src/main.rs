//! The `nilometer` command: one file a subcommand.
//!
//! Exit codes: [`EXIT_CODES`].

#![forbid(unsafe_code)]

mod acceptance;
mod advise;
mod census;
mod check;
mod clean;
mod commands_page;
mod compare;
mod compared_frames;
mod completion_values;
mod copy;
mod demo;
mod describe;
mod doctor;
mod document_options;
mod dry_run;
mod dump;
mod ended;
mod evaluate;
mod evaluation;
mod explain;
mod export;
mod facility;
mod foreign_mode;
mod foreign_text;
mod generate;
mod help;
mod import;
mod instrument;
mod instrument_changes;
mod json_list;
mod lone_file;
mod mount;
mod network;
mod network_line;
mod observe;
mod observed;
mod occupied;
mod page_file;
mod panics;
mod part;
mod percentage;
mod plan;
mod progress;
mod ranks;
mod ready_campaign;
mod recall;
mod record;
mod recorded;
mod recording_json;
mod recording_listing;
mod recording_text;
mod recordings;
mod repair;
mod replay;
mod report;
mod resume;
mod scan;
mod screen;
mod serve;
mod share;
mod show;
mod signals;
mod signature;
mod simulate;
mod size;
mod status_line;
mod stored_at;
mod target_argument;
mod tell;
mod tidied;
mod tips;
mod together;
mod trusted;
mod verify;
mod version;
mod watch;

use std::process::ExitCode;

use anyhow::anyhow;
use clap::{FromArgMatches, Parser, Subcommand};
use nilometer_recording::reader::OpenError;
use nilometer_service::{ServiceError, with_causes};

/// Finds out whether a storage system can carry an instrument.
#[derive(Debug, Parser)]
#[command(name = "nilometer", version = version::SHORT, long_version = version::LONG, max_term_width = 100, after_help = EXIT_CODES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// The text that `--help` prints about exit codes.
const EXIT_CODES: &str = "\
Exit codes:
  0  carried, or measured, or done
  1  a fault; frames missing or damaged (verify); wrong setting (doctor)
  2  wrong input: nothing was started
  3  not carried, or FAIL (evaluate); changed (check); got worse (compare)
  4  not decided, or all INVALID (evaluate); no seal (check); nothing to compare
     (compare, verify)
  5  incomplete: the copy lacks a part of the recording (export --verify, copy,
     dump)";

#[derive(Debug, Subcommand)]
enum Command {
    Evaluate(evaluate::Evaluate),
    Compare(compare::Compare),
    Explain(explain::Explain),
    Import(import::Import),
    Export(export::Export),
    Replay(replay::Replay),
    Copy(copy::CopyCommand),
    Dump(dump::DumpCommand),
    Report(report::Report),
    Check(check::Check),
    Demo(demo::Demo),
    Describe(describe::Describe),
    Census(census::CensusCommand),
    Recall(recall::RecallCommand),
    Network(network::Network),
    Observe(observe::Observe),
    Plan(plan::Plan),
    Instrument(instrument::Command),
    Facility(facility::Command),
    Simulate(Box<simulate::Simulate>),
    Record(Box<record::Record>),
    Mount(mount::Mount),
    Serve(serve::Serve),
    Doctor(doctor::Doctor),
    Advise(advise::Advise),
    Scan(scan::Scan),
    Size(size::Size),
    Verify(verify::Verify),
    Repair(repair::Repair),
    Clean(clean::Clean),
    Generate(generate::Generate),
    Version(version::Version),
}

/// How a command ended without success.
#[derive(Debug)]
enum Failure {
    /// Wrong input: the command can't do this, and started nothing.
    Input(anyhow::Error),
    /// The command started and failed.
    Run(anyhow::Error),
    /// The command succeeded, and the answer is no.
    NotCarried(anyhow::Error),
    /// The command succeeded, and the data do not decide the question.
    NotDecided(anyhow::Error),
    /// The command wrote the copy, and the copy is incomplete.
    NotWhole(anyhow::Error),
}

impl Failure {
    /// The cause of the failure.
    fn error(&self) -> &anyhow::Error {
        let (Failure::Input(error)
        | Failure::Run(error)
        | Failure::NotCarried(error)
        | Failure::NotDecided(error)
        | Failure::NotWhole(error)) = self;
        error
    }
}

type Outcome = Result<(), Failure>;

impl From<ServiceError> for Failure {
    fn from(error: ServiceError) -> Self {
        match error {
            ServiceError::AskedWrongly(_) => Failure::Input(error.into()),
            ServiceError::Failed(_) => Failure::Run(error.into()),
        }
    }
}

/// Marks an error as wrong input or as a failure of the run.
trait Blame<T> {
    /// Marks the error as wrong input.
    fn input(self) -> Result<T, Failure>;
    /// Marks the error as a failure of a run that started.
    fn run(self) -> Result<T, Failure>;
}

impl<T, E: Into<anyhow::Error>> Blame<T> for Result<T, E> {
    fn input(self) -> Result<T, Failure> {
        self.map_err(|error| {
            let error = error.into();
            // The user gave the right directory, and it holds no recording: a fault, not wrong input.
            let is_empty = matches!(error.downcast_ref(), Some(OpenError::Empty { .. }));
            if is_empty { Failure::Run(error) } else { Failure::Input(error) }
        })
    }

    fn run(self) -> Result<T, Failure> {
        self.map_err(|error| Failure::Run(error.into()))
    }
}

fn main() -> ExitCode {
    panics::watch();
    let parsed = help::command().try_get_matches().and_then(|matches| Arguments::from_arg_matches(&matches));
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(error) => {
            let help = !error.use_stderr();
            let arguments: Vec<_> =
                std::env::args_os().map(|one| one.to_string_lossy().into_owned()).collect();
            drop(if help { error.print() } else { tips::with_tip(error, &arguments).print() });
            return if help { ExitCode::SUCCESS } else { ExitCode::from(2) };
        }
    };
    if let Err(error) = signals::report_file_size_limit() {
        return ExitCode::from(told(&error, 1));
    }
    if let Command::Evaluate(evaluate) = &arguments.command {
        // Before any process prints progress: with JSON, each line must be an object.
        evaluate.progress.apply();
    }
    ExitCode::from(match &arguments.command {
        Command::Evaluate(evaluate) => {
            watch::watched(|| code(evaluate.execute())).unwrap_or_else(|error| told(&error, 1))
        }
        Command::Simulate(simulate) => {
            watch::watched(|| code(simulate.execute())).unwrap_or_else(|error| told(&error, 1))
        }
        Command::Record(record) => {
            watch::watched(|| code(record.execute())).unwrap_or_else(|error| told(&error, 1))
        }
        Command::Serve(serve) => {
            watch::watched(|| code(serve.execute())).unwrap_or_else(|error| told(&error, 1))
        }
        Command::Doctor(doctor) => code(doctor.execute()),
        Command::Advise(advise) => code(advise.execute()),
        Command::Verify(verify) => lone_file::guarded(verify.lone_file(), None, || code(verify.execute())),
        Command::Repair(verify) => code(verify.execute()),
        Command::Export(export) => {
            lone_file::guarded(export.lone_file(), Some(&export.to), || code(export.execute()))
        }
        Command::Mount(mount) => code(mount.execute()),
        Command::Replay(replay) => code(replay.execute()),
        Command::Copy(copy) => code(copy.execute()),
        Command::Dump(dump) => code(dump.execute()),
        Command::Scan(scan) => code(scan.execute()),
        Command::Size(size) => code(size.execute()),
        Command::Instrument(instrument) => code(instrument.execute()),
        Command::Facility(facility) => code(facility.execute()),
        Command::Report(report) => code(report.execute()),
        Command::Check(check) => code(check.execute()),
        Command::Explain(explain) => code(explain.execute()),
        Command::Compare(compare) => code(compare.execute()),
        Command::Import(import) => code(import.execute()),
        Command::Demo(demo) => code(demo.execute()),
        Command::Describe(describe) => code(describe.execute()),
        Command::Census(census) => code(census.execute()),
        Command::Recall(recall) => code(recall.execute()),
        Command::Network(network) => code(network.execute()),
        Command::Observe(observe) => code(observe.execute()),
        Command::Plan(plan) => code(plan.execute()),
        Command::Clean(clean) => code(clean.execute()),
        Command::Generate(generate) => code(generate.execute()),
        Command::Version(_) => {
            version::tell();
            code(Ok(()))
        }
    })
}

/// The exit code of an outcome. Prints the reason of a failure on stderr.
fn code(outcome: Outcome) -> u8 {
    // If stdout took no results, nobody has them: a fault, unless the command failed anyway.
    let lost = tell::lost_results().map(|error| anyhow!("can't write the results to stdout: {error}"));
    match outcome.and(lost.map_or(Ok(()), |error| Err(Failure::Run(error)))) {
        Ok(()) if panics::happened() => {
            told(&anyhow!("internal error (see above): do not trust the results of this run"), 1)
        }
        Ok(()) => 0,
        Err(Failure::Run(error)) => told(&error, 1),
        Err(Failure::Input(error)) => told(&error, 2),
        Err(Failure::NotCarried(error)) => told(&error, 3),
        Err(Failure::NotDecided(error)) => told(&error, 4),
        Err(Failure::NotWhole(error)) => told(&error, 5),
    }
}

fn told(error: &anyhow::Error, code: u8) -> u8 {
    tell::last_note(explained(error));
    code
}

/// An error with its causes, on one line.
fn explained(error: &anyhow::Error) -> String {
    with_causes(error.as_ref())
}
