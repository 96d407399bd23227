//! `nilometer export --headers`: a table of the headers that the recorder kept, a row for each packet.

use std::{
    io::{self, BufWriter, Write},
    ops::Range,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use anyhow::{Context, anyhow, ensure};
use nilometer_model::Bytes;
use nilometer_recording::{Gap, view::RecordingView};
use nilometer_report::in_line;
use nilometer_storage::new_file::NewFile;
use nilometer_wire::{Geometry, numbered::HeaderTable};

use super::{Export, lacking::lacks_blocks, not_here};
use crate::{
    Blame, Outcome, describe::directory_of, part::part_line, share::Share, signals::stop_on_signal, tell,
};

/// Bytes of frames to read at once, at least a frame.
const AT_ONCE: usize = 4 << 20;

/// Rows of a table, and those of packets that did not come.
#[derive(Debug, Default)]
struct WrittenTable {
    rows: u64,
    missing: u64,
}

/// The frames of a recording, and the columns of their headers.
#[derive(Debug)]
struct HeaderSource<'a> {
    whole: &'a RecordingView,
    table: HeaderTable,
    geometry: Geometry,
}

/// The table that is being written.
struct TableWriter<'a, W> {
    source: &'a HeaderSource<'a>,
    file: W,
    written: WrittenTable,
}

/// Frames of one block that the view shows.
#[derive(Debug)]
struct ShownFrames {
    /// Their bytes in the view.
    bytes: Range<u64>,
    /// The number of the first one in the recording.
    number: u64,
    /// The number of the first one in its block.
    in_block: u64,
    /// True if the block is in the recording.
    is_there: bool,
    gaps: Vec<Gap>,
}

/// Writes the table into a new file.
pub(super) fn export(export: &Export, whole: &RecordingView) -> Outcome {
    export.check_plain().input()?;
    let source = HeaderSource::of(whole).input()?;
    let named = export.place(whole, "headers.csv").input()?;
    let description = named.described(export.expect).input()?;
    export.check(whole, &description, &named.name, Bytes(0)).input()?;
    let directory = directory_of(&description);
    let path = directory.join(&named.name);
    let stop = stop_on_signal().run()?;
    let new = NewFile::create(directory, &named.name);
    let new = new.with_context(|| format!("can't make {}", path.display())).run()?;
    let written = source.write(&new, &stop).run()?;
    new.finish(whole.access().mode_in_group(0o666))
        .with_context(|| format!("can't name it {}", path.display()))
        .run()?;
    tell::result(tell::visible(&summary(whole, &written, &path)));
    match whole.faults().first {
        Some(why) => Err(anyhow!("written, but rows of unreadable frames have no header: {why}")).run(),
        None => lacks_blocks(whole),
    }
}

impl<'a> HeaderSource<'a> {
    fn of(whole: &'a RecordingView) -> anyhow::Result<Self> {
        let wire = whole.wire();
        let table = wire.as_ref().and_then(|wire| HeaderTable::of(&wire.packets));
        let (Some(wire), Some(table)) = (wire, table) else {
            let why = "the recorder kept no described header of these packets: record packets of the format numbered with \
                       keep = \"all\", and name the fields";
            return Err(anyhow!("--headers: {}: {why}", whole.name()));
        };
        let format = nilometer_wire::of(&wire.packets, &wire.known()).map_err(|why| anyhow!(why))?;
        Ok(HeaderSource { whole, table, geometry: format.geometry().clone() })
    }

    fn write(&self, new: &NewFile, stop: &AtomicBool) -> anyhow::Result<WrittenTable> {
        let file = BufWriter::with_capacity(1 << 20, new.file());
        let mut writer = TableWriter { source: self, file, written: WrittenTable::default() };
        let mut share = Share::new("written", Bytes(self.whole.length()));
        writer.names()?;
        for block in self.whole.shown_blocks() {
            ensure!(!stop.load(Ordering::Relaxed), "interrupted: nothing is left there");
            let shown = self.shown(block);
            writer.block(&shown)?;
            share.tell(Bytes(shown.bytes.end));
        }
        share.clear();
        writer.file.flush()?;
        Ok(writer.written)
    }

    fn shown(&self, block: u64) -> ShownFrames {
        let bytes = self.whole.range_of(block);
        let before = bytes.start / self.geometry.frame_size() as u64;
        let number = self.whole.shown_frames().start + before;
        // Only the first block of a part may begin in the middle.
        let in_block = if before == 0 { number % self.whole.frames_of_block() } else { 0 };
        self.whole.recording(|recording| ShownFrames {
            bytes,
            number,
            in_block,
            is_there: recording.index.frames.get(block).is_some(),
            gaps: recording.index.gaps.get(&block).cloned().unwrap_or_default(),
        })
    }
}

impl<W: Write> TableWriter<'_, W> {
    fn names(&mut self) -> io::Result<()> {
        let names: Vec<_> =
            ["frame", "packet", "came"].into_iter().chain(self.source.table.names()).collect();
        writeln!(self.file, "{}", names.join(","))
    }

    /// Writes the rows of a block.
    fn block(&mut self, shown: &ShownFrames) -> io::Result<()> {
        let size = self.source.geometry.frame_size();
        let mut bytes = vec![0; (AT_ONCE / size).max(1) * size];
        let mut at = shown.bytes.start;
        while at < shown.bytes.end {
            let length = bytes.len().min((shown.bytes.end - at) as usize);
            let read = self.source.whole.read_at(at, &mut bytes[..length]);
            let first = (at - shown.bytes.start) / size as u64;
            for (frame, bytes) in (first..).zip(bytes[..read].chunks_exact(size)) {
                self.frame(shown, frame, bytes)?;
            }
            at += length as u64;
        }
        Ok(())
    }

    /// Writes the rows of a frame. `frame` is its number among the shown ones of its block.
    fn frame(&mut self, shown: &ShownFrames, frame: u64, mut bytes: &[u8]) -> io::Result<()> {
        let number = shown.number + frame;
        let parts = &self.source.geometry.parts;
        let first = (shown.in_block + frame) * parts.len() as u64;
        for (part, size) in (0..).zip(parts) {
            let came = shown.has(first + part);
            let (packet, behind) = bytes.split_at(*size);
            bytes = behind;
            write!(self.file, "{number},{part},{}", u8::from(came))?;
            for value in self.source.table.values(packet) {
                match value {
                    Some(value) => write!(self.file, ",{value}")?,
                    None => write!(self.file, ",")?,
                }
            }
            writeln!(self.file)?;
            self.written.rows += 1;
            self.written.missing += u64::from(!came);
        }
        Ok(())
    }
}

impl ShownFrames {
    /// Returns true if this packet of the block came.
    fn has(&self, packet: u64) -> bool {
        let is_in = |gap: &Gap| (u64::from(gap.at)..u64::from(gap.at) + gap.count).contains(&packet);
        self.is_there && !self.gaps.iter().any(|gap| gap.filled && is_in(gap))
    }
}

fn summary(whole: &RecordingView, written: &WrittenTable, path: &Path) -> String {
    let WrittenTable { rows, missing } = written;
    let mut lines = vec![format!("written     {}", in_line(path.display()))];
    lines.extend(part_line(whole).map(|part| format!("part        {part}")));
    lines.push(format!("headers     of {rows} packets, {missing} of which did not come"));
    lines.extend(not_here(whole, "in rows with came = 0"));
    lines.join("\n") + "\n"
}
