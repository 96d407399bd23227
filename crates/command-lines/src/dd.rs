//! A line of dd: one file from end to end.

use std::path::{Path, PathBuf};

use nilometer_model::Bytes;

use crate::{
    amount::{DD, size},
    error::LineError,
    line::{ForeignLine, LineAccess, LineSync, directory_of},
    reach::LinePath,
};

/// Operands of dd, for messages.
const KEYS: [&str; 13] =
    ["if", "of", "bs", "count", "conv", "oflag", "iflag", "ibs", "obs", "cbs", "seek", "skip", "status"];

/// The files and the number of blocks of a line, which together make its size.
#[derive(Debug, Default)]
struct DdOperands {
    from: Option<PathBuf>,
    /// Bytes of a block of both.
    block: Option<Bytes>,
    to: Option<PathBuf>,
    count: Option<u64>,
    /// Bytes of a block that it reads, which `count` counts, and of one that it writes.
    read_block: Option<Bytes>,
    written_block: Option<Bytes>,
    /// Flags of the source and of the destination, with the name of their operand.
    flags: Vec<(String, String)>,
    /// True if `count` counts bytes, not blocks.
    counts_bytes: bool,
}

/// Reads the operands; the first has number `first` in the line.
pub(crate) fn take(line: &mut ForeignLine, words: &[String], first: usize) -> Result<(), LineError> {
    let mut operands = DdOperands::default();
    for (index, word) in words.iter().enumerate() {
        let place =
            |what: LineError| LineError::word(word, &format!("word {}", first + index), what.to_string());
        let (key, value) = word
            .split_once('=')
            .ok_or_else(|| LineError::whole(format!("dd has key=value: write one of {}", KEYS.join(", "))))
            .map_err(place)?;
        take_operand(line, &mut operands, key, value).map_err(place)?;
    }
    take_files(line, &operands)
}

fn take_operand(
    line: &mut ForeignLine,
    operands: &mut DdOperands,
    key: &str,
    value: &str,
) -> Result<(), LineError> {
    match key {
        "if" => operands.from = Some(PathBuf::from(value)),
        "of" => operands.to = Some(PathBuf::from(value)),
        "bs" => operands.block = Some(product(value)?),
        "ibs" | "obs" => {
            let block = if key == "ibs" { &mut operands.read_block } else { &mut operands.written_block };
            *block = Some(product(value)?);
            line.leave(
                &format!("{key}={value}"),
                "it reads and writes blocks of different sizes; here they are alike",
            );
        }
        "count" => {
            let is_bytes = value.ends_with('B') && !value.ends_with("KB") && !value.ends_with("iB");
            operands.counts_bytes |=
                is_bytes && value.trim_end_matches('B').chars().all(|digit| digit.is_ascii_digit());
            operands.count = Some(product(value)?.0);
        }
        "conv" => take_conversions(line, value),
        "oflag" | "iflag" => {
            operands.flags.extend(value.split(',').map(|name| (key.to_owned(), name.to_owned())));
        }
        "status" => line.left_out.without_effect.push(format!("status={value}")),
        "seek" | "skip" | "oseek" | "iseek" => {
            line.leave(&format!("{key}={value}"), "it begins inside of the file; here at its start");
        }
        "cbs" => line.leave(&format!("cbs={value}"), "it converts records"),
        _ => {
            let keys = KEYS.join(", ");
            return Err(LineError::whole(format!("dd has no such operand: write one of {keys}")));
        }
    }
    Ok(())
}

/// `conv=`. Our cells have their own way to open files and to treat errors.
fn take_conversions(line: &mut ForeignLine, names: &str) {
    for name in names.split(',') {
        match name {
            "fsync" | "fdatasync" => line.durable = line.durable.or(LineSync::AtClose),
            "notrunc" => line.leave("conv=notrunc", "it writes over an existing file; here each file is new"),
            "nocreat" | "excl" | "noerror" => line.left_out.without_effect.push(format!("conv={name}")),
            "sparse" => line.leave("conv=sparse", "it writes no blocks of zeros"),
            _ => line.leave(&format!("conv={name}"), "it changes data on their way"),
        }
    }
}

/// Takes the flags of the file that the line is about. The other end is a device, or a source that has no
/// counterpart.
fn take_flags(line: &mut ForeignLine, operands: &DdOperands) {
    let own = if line.way == LineAccess::Read { "iflag" } else { "oflag" };
    for (key, name) in &operands.flags {
        match name.as_str() {
            "count_bytes" => {}
            "fullblock" | "noatime" | "nofollow" | "binary" => {
                line.left_out.without_effect.push(format!("{key}={name}"));
            }
            _ if key != own => line.leave(&format!("{key}={name}"), "it is for the other end of dd"),
            "direct" => line.direct = true,
            "sync" | "dsync" => line.durable = LineSync::Every(1),
            "nocache" => line.leave(&format!("{key}=nocache"), "it drops its file from the cache meanwhile"),
            "append" => line.leave(&format!("{key}=append"), "it writes behind an existing file"),
            _ => line.leave(&format!("{key}={name}"), "a flag that Nilometer does not use to open files"),
        }
    }
}

fn take_files(line: &mut ForeignLine, operands: &DdOperands) -> Result<(), LineError> {
    let DdOperands { from, to, .. } = operands;
    line.way = if is_stream(to.as_deref()) && !is_stream(from.as_deref()) {
        LineAccess::Read
    } else {
        LineAccess::Write
    };
    take_flags(line, operands);
    if line.way == LineAccess::Write {
        take_source(line, from.as_deref());
        line.reach.add(LinePath::File(to.clone().unwrap_or_default()));
    }
    let file = if line.way == LineAccess::Read { from } else { to };
    let file = file
        .as_deref()
        .filter(|file| !is_stream(Some(*file)))
        .ok_or_else(|| LineError::whole("dd: write of=FILE, or if=FILE of=/dev/null"))?;
    line.directory = directory_of(file)?;
    operands.take_sizes(line);
    Ok(())
}

impl DdOperands {
    /// `count` counts blocks that are read, and dd ends with its source.
    fn take_sizes(&self, line: &mut ForeignLine) {
        let read_block = self.block.or(self.read_block).unwrap_or(BLOCK);
        let written_block = self.block.or(self.written_block).unwrap_or(BLOCK);
        line.block = if line.way == LineAccess::Read { read_block } else { written_block };
        let is_counted_by_flag = self.flags.iter().any(|(key, name)| key == "iflag" && name == "count_bytes");
        let unit = if self.counts_bytes || is_counted_by_flag { 1 } else { read_block.0 };
        let asked = self.count.map(|count| count.saturating_mul(unit));
        let source = self.from.as_deref().and_then(|from| std::fs::metadata(from).ok());
        let there = source.filter(std::fs::Metadata::is_file).map(|source| source.len());
        line.size = Bytes(asked.into_iter().chain(there).min().unwrap_or(0));
    }
}

/// The bytes of a block without `bs`, `ibs` and `obs`.
const BLOCK: Bytes = Bytes(512);

/// True if the path is no file: a pipe, or a device that takes or makes any data.
fn is_stream(path: Option<&Path>) -> bool {
    const STREAMS: [&str; 7] =
        ["/dev/null", "/dev/zero", "/dev/urandom", "/dev/random", "/dev/full", "/dev/stdin", "/dev/stdout"];
    path.is_none_or(|path| STREAMS.iter().any(|stream| path == Path::new(stream)))
}

/// Takes the source of written data. Nilometer fills its buffers before the clock starts.
fn take_source(line: &mut ForeignLine, from: Option<&Path>) {
    let Some(from) = from else {
        line.leave("data from a pipe", "dd waits for them; here they are in memory before");
        return;
    };
    let name = format!("if={}", from.display());
    if from == Path::new("/dev/zero") {
        line.zeros = true;
    } else if from.starts_with("/dev") {
        line.source = Some(from.to_owned());
        if !is_stream(Some(from)) {
            line.reach.add_unbounded(&name, "it is a device");
        }
        line.leave(
            &name,
            "dd waits for this source, which may be slower than the storage; here data are in memory before",
        );
    } else {
        line.leave(&name, "dd reads it between its writes; here data are in memory before");
    }
}

/// `2x512`, and units that only dd has: `c` is a byte, `w` two, `b` 512.
fn product(text: &str) -> Result<Bytes, LineError> {
    let mut all: u64 = 1;
    for factor in text.split('x') {
        let bytes = match factor.char_indices().last() {
            Some((at, 'c')) => size(&factor[..at], DD)?.0,
            Some((at, 'w')) => size(&factor[..at], DD)?.0.saturating_mul(2),
            Some((at, 'b')) => size(&factor[..at], DD)?.0.saturating_mul(512),
            _ => size(factor, DD)?.0,
        };
        all = all.saturating_mul(bytes);
    }
    Ok(Bytes(all))
}
