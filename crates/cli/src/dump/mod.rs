//! `nilometer dump`: asks a running recorder to save a part of its recording, and waits for the file.

mod summary;

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use anyhow::{anyhow, ensure};
use clap::Args;
use nilometer_model::{ByteRate, Bytes, Nanos};
use nilometer_recording::view::PartLimit;
use nilometer_service::{
    DUMP_SUMMARY_SUFFIX, DumpReport, DumpRequest, DumpState, HTTP_ADDRESS, RecorderAddress, RecorderClient,
    ServiceError,
};
use nilometer_storage::{Clock, user_file};

use crate::{Blame, Failure, Outcome, signals::stop_on_signal, status_line::StatusLine, tell};
use summary::{outcome, summary};

/// Ask a running recorder to save a part of its recording as a file, and wait for the file. The recording goes
/// on meanwhile, and goes first. Ctrl-C ends the dump, and no file stays
#[derive(Debug, Args)]
pub(crate) struct DumpCommand {
    /// The recorder: the address that `serve --http` or `record --http` prints, or https://HOST:PORT
    #[arg(long, value_name = "ADDRESS", default_value = HTTP_ADDRESS)]
    http: RecorderAddress,
    /// The directory for the file, on the recorder's machine: one of the recorder's --dumps, or one below it
    #[arg(long, value_name = "DIRECTORY")]
    to: PathBuf,
    /// Save the last part on storage of this length, such as 10s
    #[arg(long, value_name = "TIME", conflicts_with_all = ["begin", "end"])]
    last: Option<Nanos>,
    /// Begin with the first frame at or after this time in UTC (2026-11-28T18:00:00 or 2026y332d18h00m00s). Or
    /// write a time after the oldest frame (+30s) or before the newest (-30s). A frame (1200) and a packet
    /// (packet:1200) are possible too [default: the oldest frame]
    #[arg(long, alias = "from", value_name = "TIME|NUMBER", allow_hyphen_values = true, value_parser = limit)]
    begin: Option<String>,
    /// End before the first frame at or after this, written as for --begin. It may lie in the future: the dump
    /// waits for it [default: the end of the recording]
    #[arg(long, value_name = "TIME|NUMBER", allow_hyphen_values = true, value_parser = limit)]
    end: Option<String>,
    /// The name of the file, without its suffix [default: the name of the recording and the number of the dump]
    #[arg(long)]
    name: Option<String>,
    /// Dump only the data stream with this label [default: all, each into a file of its own]
    #[arg(long, value_name = "LABEL")]
    data_stream: Option<String>,
    /// Write at most at this rate, over all data streams
    #[arg(long)]
    rate: Option<ByteRate>,
    /// Identify this client by the token in this file, which has nothing else [default: the variable
    /// `NILOMETER_TOKEN`]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The PEM file with the authority of the recorder's certificate, for https
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Print the recorder's reports as JSON
    #[arg(long)]
    json: bool,
}

/// The variable that has the token.
const TOKEN: &str = "NILOMETER_TOKEN";
/// The interval between two looks at a dump.
const LOOK: Nanos = Nanos::from_millis(200);
/// The longest time without an answer of the recorder, and the requests that must have failed in it. An answer may take
/// longer than that without a failure.
const PATIENCE: Nanos = Nanos::from_millis(5_000);
const FAILURES: u32 = 3;

/// Checks a limit, and keeps it as the user wrote it.
fn limit(text: &str) -> Result<String, String> {
    text.parse::<PartLimit>().map(|_| text.to_owned()).map_err(|error| error.to_string())
}

impl DumpCommand {
    pub(crate) fn execute(&self) -> Outcome {
        let request = self.request().input()?;
        let client = RecorderClient::new(self.http.clone(), self.token()?, self.ca.as_deref())?;
        let stop = stop_on_signal().run()?;
        let begun = client.begin_dump(&request)?;
        let reports = DumpWatch { client: &client, reports: begun }.wait(&stop)?;
        self.tell(&reports).run()?;
        outcome(&reports)
    }

    fn request(&self) -> anyhow::Result<DumpRequest> {
        ensure!(self.rate.is_none_or(|rate| rate.0 > 0.0), "--rate 0: write more than 0");
        ensure!(self.last != Some(Nanos(0)), "--last 0s: write more than 0");
        let last = self.last.map(|time| PartLimit::BeforeEnd(time).to_string());
        let newest = self.last.map(|_| PartLimit::BeforeEnd(Nanos(0)).to_string());
        Ok(DumpRequest {
            begin: last.or_else(|| self.begin.clone()),
            end: newest.or_else(|| self.end.clone()),
            to: self.to.clone(),
            name: self.name.clone(),
            data_stream: self.data_stream.clone(),
            rate: self.rate,
        })
    }

    fn token(&self) -> Result<Option<String>, ServiceError> {
        match &self.token_file {
            Some(file) => RecorderClient::token_from(file).map(Some),
            None => Ok(std::env::var(TOKEN).ok().filter(|token| !token.is_empty())),
        }
    }

    fn tell(&self, reports: &[DumpReport]) -> serde_json::Result<()> {
        if self.json {
            let value = serde_json::json!({ "dumps": reports });
            tell::json_result(format_args!("{}\n", serde_json::to_string_pretty(&value)?));
        } else {
            tell::result(summary(reports));
        }
        Ok(())
    }
}

/// The dumps of one request, watched until all have ended.
#[derive(Debug)]
struct DumpWatch<'a> {
    client: &'a RecorderClient,
    reports: Vec<DumpReport>,
}

impl DumpWatch<'_> {
    /// Waits until all have ended. The first signal ends them without files.
    fn wait(mut self, stop: &AtomicBool) -> Result<Vec<DumpReport>, Failure> {
        let clock = Clock::start();
        let mut line = StatusLine::default();
        let mut is_ended = false;
        let mut answered = clock.now();
        let mut failures = 0;
        while self.runs() {
            if stop.load(Ordering::Relaxed) && !is_ended {
                is_ended = self.end();
            }
            thread::sleep(LOOK.duration());
            match self.client.dumps() {
                Ok(all) => {
                    self.take(&all).run()?;
                    answered = clock.now();
                    failures = 0;
                }
                Err(_) if failures + 1 < FAILURES => failures += 1,
                // A recorder waits for its dumps before it ends, and its last answer may come before the last file.
                Err(_) if self.take_summaries() => {}
                Err(error) if clock.now().since(answered) > PATIENCE => {
                    line.clear();
                    return Err(Failure::Run(self.unknown(&error)));
                }
                Err(_) => {}
            }
            line.rewrite(|_| self.progress());
        }
        line.clear();
        Ok(self.reports)
    }

    fn runs(&self) -> bool {
        self.reports.iter().any(|report| report.state == DumpState::Running)
    }

    /// Asks the recorder to end all. One that is complete stays, and one that the recorder forgot has ended. Returns
    /// true if the recorder answered for all.
    fn end(&self) -> bool {
        let mut are_ended = true;
        for report in self.reports.iter().filter(|report| report.state == DumpState::Running) {
            if let Err(error) = self.client.end_dump(report.id) {
                tell::note(format_args!("can't end dump {}: {error}", report.id));
                are_ended = false;
            }
        }
        are_ended
    }

    /// Takes the new reports out of all that the recorder has.
    fn take(&mut self, all: &[DumpReport]) -> anyhow::Result<()> {
        for report in &mut self.reports {
            let Some(now) = all.iter().find(|other| is_same(report, other)) else {
                return Err(anyhow!(
                    "the recorder no longer knows dump {}: was it started again?",
                    report.id
                ));
            };
            *report = now.clone();
        }
        Ok(())
    }

    /// Takes the reports beside complete files, if the recorder's directory is one of this machine. Returns true if
    /// that decides all.
    fn take_summaries(&mut self) -> bool {
        for report in self.reports.iter_mut().filter(|report| report.state == DumpState::Running) {
            if let Some(summary) = summaries(&report.path).into_iter().find(|other| is_same(report, other)) {
                *report = summary;
            }
        }
        !self.runs()
    }

    fn unknown(&self, error: &ServiceError) -> anyhow::Error {
        let files: Vec<_> = self.reports.iter().map(|report| report.path.display().to_string()).collect();
        anyhow!(
            "{error}; the dump may be complete: look for {}, with the suffix of its format; a complete file has its \
             report beside it",
            files.join(", ")
        )
    }

    fn progress(&self) -> String {
        let bytes = self.reports.iter().map(|report| report.bytes).sum();
        let waits = self.reports.iter().find_map(|report| report.waits_for);
        let waits = waits.map_or("", summary::reason);
        format!("{} dumped{waits}", Bytes(bytes))
    }
}

/// True if both are reports of one dump.
fn is_same(report: &DumpReport, other: &DumpReport) -> bool {
    let [one, other] =
        [report, other].map(|report| (report.id, &report.recording, &report.begin, &report.end));
    one == other
}

/// The reports of complete files at this path. A recorder that ended early may not have told the suffix yet.
fn summaries(path: &Path) -> Vec<DumpReport> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let entries = path.parent().and_then(|directory| directory.read_dir().ok());
    let is_summary = |path: &PathBuf| {
        let found = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let suffix = found.strip_prefix(name).and_then(|rest| rest.strip_suffix(DUMP_SUMMARY_SUFFIX));
        suffix.is_some_and(|suffix| suffix.is_empty() || suffix.starts_with('.'))
    };
    let paths = entries.into_iter().flatten().flatten().map(|entry| entry.path()).filter(is_summary);
    let texts = paths.filter_map(|path| user_file::read(&path, "summary of a dump").ok());
    texts.filter_map(|text| serde_json::from_str(&text).ok()).collect()
}

#[cfg(test)]
mod tests {
    use clap::{FromArgMatches, Parser};

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        command: DumpCommand,
    }

    fn request(arguments: &[&str]) -> Result<DumpRequest, String> {
        let line = [&["dump", "--to", "/store"], arguments].concat();
        let matches = <Line as clap::CommandFactory>::command().try_get_matches_from(line);
        let matches = matches.map_err(|error| error.to_string())?;
        let line = Line::from_arg_matches(&matches).map_err(|error| error.to_string())?;
        line.command.request().map_err(|error| error.to_string())
    }

    #[test]
    fn the_last_seconds_are_those_before_the_newest_frame() {
        let last = request(&["--last", "10s"]).expect("valid");
        assert_eq!((last.begin.as_deref(), last.end.as_deref()), (Some("-10 s"), Some("-0 ns")));
        for limit in [last.begin, last.end] {
            let limit = limit.expect("it is set");
            assert!(matches!(limit.parse(), Ok(PartLimit::BeforeEnd(_))), "{limit}");
        }
        let part = request(&["--from", "-2s", "--end", "packet:7", "--rate", "5 MB/s"]).expect("valid");
        assert_eq!((part.begin.as_deref(), part.end.as_deref()), (Some("-2s"), Some("packet:7")));
        assert_eq!(part.rate, Some(ByteRate(5e6)));
    }

    #[test]
    fn wrong_options_are_refused_before_the_recorder_is_asked() {
        for (arguments, part) in [
            (&["--begin", "soon"][..], "packet:1200"),
            (&["--last", "0s"], "--last"),
            (&["--last", "1s", "--end", "5"], "--end"),
            (&["--rate", "0 B/s"], "--rate"),
            (&["--http", "host"], "HOST:PORT"),
        ] {
            let why = request(arguments).expect_err(part);
            assert!(why.contains(part), "{arguments:?}: {why}");
        }
    }
    #[test]
    fn the_report_of_a_complete_file_is_found_with_or_without_its_suffix() {
        let home = tempfile::tempdir().expect("space");
        let path = home.path().join("rest");
        let whole = home.path().join("rest.vdif");
        let report =
            DumpReport { id: 3, recording: "scan".into(), path: whole.clone(), ..DumpReport::default() };
        let text = serde_json::to_string(&report).expect("JSON");
        for name in ["rest.vdif.dump.json", "rest2.vdif.dump.json", "other.vdif.dump.json"] {
            std::fs::write(home.path().join(name), &text).expect("space");
        }
        std::fs::write(home.path().join("rest.2.dump.json"), "no report").expect("space");
        assert_eq!([summaries(&path), summaries(&whole)], [vec![report.clone()], vec![report.clone()]]);
        assert!(summaries(&home.path().join("none/rest")).is_empty());
        assert!(is_same(&report, &report));
        let others = [
            DumpReport { id: 4, ..report.clone() },
            DumpReport { begin: Some("7".into()), ..report.clone() },
        ];
        assert!(others.iter().all(|other| !is_same(&report, other)));
    }
}
