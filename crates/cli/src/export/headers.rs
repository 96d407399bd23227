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
use nilometer_storage::new_file::NewFile;
use nilometer_wire::{Geometry, numbered::HeaderTable};

use super::{Export, not_here};
use crate::{
    Blame, Outcome, describe::directory_of, part::part_line, recording_text::in_line, share::Share,
    signals::stop_on_signal, tell,
};

/// Bytes of frames to read at once, at least a frame.
const AT_ONCE: usize = 4 << 20;

/// Rows and packets of a table.
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

/// Frames of one block that the view shows.
#[derive(Debug)]
struct ShownFrames {
    /// Their bytes in the view.
    bytes: Range<u64>,
    /// The number of the first one in its block.
    first: u64,
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
        None => Ok(()),
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
        let mut file = BufWriter::with_capacity(1 << 20, new.file());
        let mut written = WrittenTable::default();
        let mut share = Share::new("written", Bytes(self.whole.length()));
        let names: Vec<_> = ["frame", "packet", "came"].into_iter().chain(self.table.names()).collect();
        writeln!(file, "{}", names.join(","))?;
        let first = self.whole.shown_frames().start;
        for block in self.whole.shown_blocks() {
            let shown = self.shown(block);
            ensure!(!stop.load(Ordering::Relaxed), "interrupted: nothing is left there");
            self.block(&mut file, first, &shown, &mut written)?;
            share.tell(Bytes(shown.bytes.end));
        }
        share.clear();
        file.flush()?;
        Ok(written)
    }

    fn shown(&self, block: u64) -> ShownFrames {
        let bytes = self.whole.range_of(block);
        // Only the first block of a part may begin in the middle.
        let hidden = self.whole.shown_frames().start % self.whole.frames_of_block();
        let first = if bytes.start == 0 { hidden } else { 0 };
        self.whole.recording(|recording| ShownFrames {
            bytes,
            first,
            is_there: recording.index.frames.get(block).is_some(),
            gaps: recording.index.gaps.get(&block).cloned().unwrap_or_default(),
        })
    }

    /// Writes the rows of a block. `first` is the number of the first frame of the view.
    fn block(
        &self,
        file: &mut impl Write,
        first: u64,
        shown: &ShownFrames,
        written: &mut WrittenTable,
    ) -> io::Result<()> {
        let size = self.geometry.frame_size();
        let mut bytes = vec![0; (AT_ONCE / size).max(1) * size];
        let mut at = shown.bytes.start;
        while at < shown.bytes.end {
            let length = bytes.len().min((shown.bytes.end - at) as usize);
            let read = self.whole.read_at(at, &mut bytes[..length]);
            for (frame, bytes) in (at / size as u64..).zip(bytes[..read].chunks_exact(size)) {
                let in_block = shown.first + frame - shown.bytes.start / size as u64;
                self.frame(file, [first + frame, in_block], shown, bytes, written)?;
            }
            at += length as u64;
        }
        Ok(())
    }

    /// Writes the rows of a frame, of which the numbers in the recording and in the block are known.
    fn frame(
        &self,
        file: &mut impl Write,
        [frame, in_block]: [u64; 2],
        shown: &ShownFrames,
        mut bytes: &[u8],
        written: &mut WrittenTable,
    ) -> io::Result<()> {
        let parts = self.geometry.parts.len() as u64;
        for (part, size) in (0..).zip(&self.geometry.parts) {
            let came = shown.has(in_block * parts + part);
            let (packet, behind) = bytes.split_at(*size);
            bytes = behind;
            write!(file, "{frame},{part},{}", u8::from(came))?;
            for value in self.table.values(packet) {
                match value {
                    Some(value) => write!(file, ",{value}")?,
                    None => write!(file, ",")?,
                }
            }
            writeln!(file)?;
            written.rows += 1;
            written.missing += u64::from(!came);
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
