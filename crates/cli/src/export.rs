//! `nilometer export`: a recording into one file, or onto a central store.

use std::{
    fs::File,
    io::Read,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, anyhow, ensure};
use clap::Args;
use nilometer_acquisition::{
    OVERWRITTEN,
    export::{self, Exporting, SLOTS},
    reader::{Recording, Trust},
    whole::{Extent, Whole},
};
use nilometer_model::{ByteRate, Bytes, plan::EngineKind};
use nilometer_storage::{
    Clock, Drive,
    engine::{EngineError, Options, on_directory},
    target::Description,
};

use crate::{Blame, Failure, Outcome, describe::described, share::Share, signals::stop_on_signal, tell};

/// Writes a recording into one new file: all frames in order, and ones that are marked as invalid where some are missing
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The directories of the recording, those of all lanes
    #[arg(required = true)]
    directories: Vec<PathBuf>,
    /// The file, which must not exist, or a directory that is there, in which it gets the recording's name
    #[arg(long, value_name = "FILE|DIRECTORY")]
    to: PathBuf,
    /// Write no faster than this
    #[arg(long)]
    rate: Option<ByteRate>,
    /// Read the file back when it is written, and compare its checksum
    #[arg(long)]
    verify: bool,
}

/// Writes in flight.
const DEPTH: u32 = 4;

impl Export {
    pub(crate) fn execute(&self) -> Outcome {
        let recording = Recording::open(&self.directories, Trust::Acknowledged).input()?;
        let whole = Arc::new(Whole::new(recording, Extent::All));
        let (directory, name) = self.place(&whole).input()?;
        let description = described(&directory).input()?;
        self.check(&whole, &description, &name).input()?;
        let path = description.path.join(&name);
        let stop = stop_on_signal().run()?;
        let direct = description.direct_alignment().is_some();
        let exporting = Exporting { name, direct, at_most: self.rate, depth: DEPTH as usize };
        let mut export = export::Export::new(whole.clone(), exporting, stop);
        let mut share = Share::new("written", Bytes(whole.length()));
        write(&mut export, &description, &mut share).run()?;
        share.clear();
        ended(&export, &path).run()?;
        tell::result(summary(&whole, export.checksum(), &path));
        if self.verify {
            compare(&path, export.checksum(), Bytes(whole.length())).run()?;
        }
        match whole.faults().first {
            Some(why) => Err(Failure::Run(anyhow!(
                "written, with frames marked as invalid for what can't be read: {why}"
            ))),
            None => Ok(()),
        }
    }

    /// The directory and the name of the file.
    fn place(&self, whole: &Whole) -> anyhow::Result<(PathBuf, String)> {
        if self.to.is_dir() {
            return Ok((self.to.clone(), format!("{}.{}", whole.name(), whole.format().name())));
        }
        let name = self.to.file_name().and_then(|name| name.to_str());
        let name = name.with_context(|| format!("--to {}: name a file or a directory", self.to.display()))?;
        let above = self.to.parent().filter(|above| !above.as_os_str().is_empty());
        Ok((above.map_or_else(|| ".".into(), Path::to_owned), name.into()))
    }

    fn check(&self, whole: &Whole, description: &Description, name: &str) -> anyhow::Result<()> {
        let path = description.path.join(name);
        ensure!(!path.exists(), "{} exists: name a new file", path.display());
        ensure!(
            description.writable,
            "{}: can't be written: name a directory that this user may write to",
            description.path.display()
        );
        ensure!(self.rate.is_none_or(|rate| rate.0 > 0.0), "--rate 0: write more than 0");
        let (needed, free) = (Bytes(whole.length()), description.space.free);
        ensure!(needed.0 > 0, "{}: nothing is recorded there yet", whole.name());
        ensure!(
            needed <= free,
            "{} has {free} free, and the recording needs {needed}",
            description.path.display()
        );
        Ok(())
    }
}

/// Writes it, as far as it goes.
fn write(export: &mut export::Export, description: &Description, share: &mut Share) -> anyhow::Result<()> {
    let directory = || File::open(&description.path).context("can't open the directory");
    let options = Options { kind: EngineKind::IoUring, depth: DEPTH, slots: SLOTS, clock: Clock::start() };
    let mut engine = match on_directory(std::os::fd::OwnedFd::from(directory()?), &options) {
        Err(EngineError::NotPermitted { .. }) => {
            let options = Options { kind: EngineKind::Sync, depth: 1, ..options };
            on_directory(std::os::fd::OwnedFd::from(directory()?), &options)?
        }
        engine => engine?,
    };
    let mut written = 0;
    Drive::new(export, engine.as_mut()).run_while(|completion| {
        if completion.operation.kind.is_data() {
            written += u64::from(completion.result.unwrap_or(0));
            share.tell(Bytes(written));
        }
        ControlFlow::Continue(())
    });
    Ok(())
}

/// What was not finished is removed.
fn ended(export: &export::Export, path: &Path) -> anyhow::Result<()> {
    if export.is_whole() {
        return Ok(());
    }
    let (made, fault) = export.ending();
    let removed = made && std::fs::remove_file(path).is_ok();
    let removed = if removed { ", which is removed again" } else { "" };
    match fault {
        _ if export.is_overwritten() => Err(anyhow!("{}{removed}: {OVERWRITTEN}", path.display())),
        Err(errno) => Err(anyhow!("can't write {}{removed}: {errno}", path.display())),
        Ok(()) => Err(anyhow!("interrupted: it is not in {}{removed}", path.display())),
    }
}

fn summary(whole: &Whole, checksum: u32, path: &Path) -> String {
    let filled = whole.filled(0..u64::MAX).iter().map(|range| range.end - range.start).sum();
    let mut lines = vec![
        format!("written     {}", path.display()),
        format!(
            "frames      {} of {}, {} in all",
            whole.frames(),
            Bytes(whole.frame_size()),
            Bytes(whole.length())
        ),
        format!("checksum    CRC-32 {checksum:08x}"),
    ];
    if filled > 0 {
        lines.push(format!("missing     {} of blocks that are not here: marked as invalid", Bytes(filled)));
    }
    lines.join("\n") + "\n"
}

/// Reads it back from the storage.
fn compare(path: &Path, checksum: u32, length: Bytes) -> anyhow::Result<()> {
    let mut file = File::open(path)?;
    // What is in the cache need not be what is on the storage.
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
    let (mut hasher, mut buffer) = (crc32fast::Hasher::new(), vec![0; 4 << 20]);
    let (mut share, mut done) = (Share::new("read back", length), 0);
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            count => {
                hasher.update(&buffer[..count]);
                done += count as u64;
                share.tell(Bytes(done));
            }
        }
    }
    share.clear();
    let found = hasher.finalize();
    ensure!(found == checksum, "{} differs when it is read back: CRC-32 {found:08x}", path.display());
    tell::result_line("verified    read back: its checksum is the same");
    Ok(())
}
