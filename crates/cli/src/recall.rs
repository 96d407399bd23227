//! `nilometer recall`: how long files on tape take to come back.

use std::{
    collections::HashSet,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
};

use anyhow::{Context, anyhow, ensure};
use clap::Args;
use nilometer_model::{Bytes, RecalledFile};
use nilometer_report::{in_line, recall_html, recall_json, recall_markdown, recall_text};
use nilometer_storage::recall::{FileToRecall, OfflineFiles, offline_files, recall};

use crate::{
    Blame, Outcome,
    document_options::{DocumentFormat, DocumentOptions},
    page_file,
    report::layout,
    signals::stop_on_signal,
    tell,
};

/// Read files that are on tape, and measure the time to their first and last bytes
///
/// It reads each file once, and changes nothing, except that the storage brings the file back to disk. Before it
/// begins, it prints how many bytes that is.
#[derive(Debug, Args)]
pub(crate) struct RecallCommand {
    /// Files to read, or directories: in these, files whose blocks show that they are offline
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Read this many files at a time. Several numbers, such as 1,4, share the files among them and run one after
    /// the other
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1024))]
    at_once: Vec<u32>,
    /// Read at most this many offline files of each directory, evenly spaced in the order of their paths
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u32).range(1..))]
    files: u32,
    /// Begin even if more than 10 GB come back
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    document: DocumentOptions,
}

/// More bytes need `--yes`.
const BYTES_MOST: Bytes = Bytes(10_000_000_000);

impl RecallCommand {
    pub(crate) fn execute(&self) -> Outcome {
        self.document.check().input()?;
        let stop = stop_on_signal().run()?;
        let OfflineFiles { files, unread } = self.named(&stop).input()?;
        self.announce(&files).input()?;
        let mut read: Vec<RecalledFile> = Vec::new();
        for (files, at_once) in self.shared_out(files) {
            recall(files, at_once, &stop, &mut |file| read.push(file)).run()?;
        }
        self.tell(&read);
        page_file::write_option(self.document.html(), || recall_html(&read)).run()?;
        let failed = read.iter().filter(|file| file.times.is_err()).count();
        if stop.load(Ordering::Relaxed) {
            return Err(anyhow!("it was interrupted: other files were not read")).run();
        }
        if failed > 0 {
            return Err(anyhow!("{failed} of {} files could not be read", read.len())).run();
        }
        if unread > 0 {
            return Err(anyhow!("{}", unread_words(unread))).run();
        }
        Ok(())
    }

    /// The files that the user named, and those found in directories, each once.
    fn named(&self, stop: &AtomicBool) -> anyhow::Result<OfflineFiles> {
        let mut named = OfflineFiles::default();
        for path in &self.paths {
            let shown = in_line(path.display());
            if !path.is_dir() {
                named.files.push(FileToRecall::at(path).context(shown)?);
                continue;
            }
            let OfflineFiles { files, unread } = offline_files(path, stop).with_context(|| shown.clone())?;
            let but = if unread > 0 { format!("; {}", unread_words(unread)) } else { String::new() };
            ensure!(
                !files.is_empty(),
                "{shown}: no file in it is offline, as far as blocks show: name files{but}"
            );
            named.files.extend(spaced(files, self.files as usize));
            named.unread += unread;
        }
        // A second reading would find the file on disk.
        let mut seen = HashSet::new();
        named.files.retain(|file| seen.insert(file.identity));
        Ok(named)
    }

    /// Prints the bytes that come back, before it begins. Refuses much without --yes.
    fn announce(&self, files: &[FileToRecall]) -> anyhow::Result<()> {
        let sum = |of: &dyn Fn(&&FileToRecall) -> bool| {
            Bytes(files.iter().filter(of).fold(0, |all: u64, file| all.saturating_add(file.bytes.0)))
        };
        let all = sum(&|_| true);
        let back = sum(&|file| file.is_offline);
        let offline = files.iter().filter(|file| file.is_offline).count();
        tell::note(format_args!(
            "reading {} of {all}: {offline} offline, so that {back} come back to disk",
            if files.len() == 1 { "1 file".to_owned() } else { format!("{} files", files.len()) }
        ));
        ensure!(self.yes || all <= BYTES_MOST, "more than {BYTES_MOST}: add --yes, or name fewer files");
        Ok(())
    }

    /// The files in turn for each number at a time, in the order of the command line.
    fn shared_out(&self, files: Vec<FileToRecall>) -> Vec<(Vec<FileToRecall>, u32)> {
        let mut shares: Vec<(Vec<FileToRecall>, u32)> =
            self.at_once.iter().map(|at_once| (Vec::new(), *at_once)).collect();
        let count = shares.len();
        for (number, file) in files.into_iter().enumerate() {
            shares[number % count].0.push(file);
        }
        shares
    }

    fn tell(&self, read: &[RecalledFile]) {
        match self.document.format() {
            DocumentFormat::Text => tell::result_unchanged(recall_text(read, layout())),
            DocumentFormat::Markdown => tell::result_to_copy(recall_markdown(read)),
            DocumentFormat::Json => tell::json_result(format_args!("{}\n", recall_json(read))),
        }
    }
}

fn unread_words(unread: u64) -> String {
    let noun = if unread == 1 { "entry" } else { "entries" };
    format!("{unread} {noun} of the directories can't be read, with the files below")
}

/// At most `most` of these, evenly spaced.
fn spaced(files: Vec<FileToRecall>, most: usize) -> Vec<FileToRecall> {
    let all = files.len();
    let count = all.min(most);
    let is_chosen = |number: usize| number * count / all != (number + 1) * count / all;
    files.into_iter().enumerate().filter(|(number, _)| is_chosen(*number)).map(|(_, file)| file).collect()
}

#[cfg(test)]
mod tests {
    use nilometer_storage::recall::FileIdentity;

    use super::*;

    #[test]
    fn chosen_files_are_evenly_spaced() {
        let file = |number: usize| FileToRecall {
            path: number.to_string().into(),
            bytes: Bytes(1),
            is_offline: true,
            identity: FileIdentity::default(),
        };
        let chosen = |all: usize, most: usize| -> Vec<String> {
            let files = spaced((0..all).map(file).collect(), most);
            files.into_iter().map(|file| file.path.display().to_string()).collect()
        };
        assert_eq!(chosen(9, 3), ["2", "5", "8"]);
        assert_eq!(chosen(2, 10), ["0", "1"]);
        assert_eq!(chosen(100, 10).len(), 10);
    }
}
