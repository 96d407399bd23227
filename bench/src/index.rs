//! How much memory it takes to read a recording: `nilometer-bench index`. Recordings of a million blocks and of five million
//! are laid out, with journals as the recorder writes them and files that are holes; the real program scans and verifies them.
//! What grows with the blocks is bounded, so that a recording of tens of terabytes can be read on a small machine.

use std::{
    fmt,
    fs::File,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::Context;
use nilometer_model::{FileNames, Format, Seed, Storing};
use nilometer_recording::{
    Due,
    journal::{Entry, Head, RECORD},
};

use crate::{contest::Stop, place};

/// What chooses this instead of comparisons.
pub(crate) const NAME: &str = "index";

/// Small blocks, since none is stored.
const BLOCK: u64 = 1024;
const FRAMES_PER_FILE: u64 = 64;
/// Blocks of a small recording, and of a large one.
const BLOCKS: [u64; 2] = [1_000_000, 5_000_000];
/// Bytes a block that the large one may take more.
const MOST: f64 = 3.0;
const COMMANDS: [&str; 2] = ["scan", "verify"];

/// Peaks of memory in bytes, by command, of both recordings.
#[derive(Debug)]
struct Peaks {
    lanes: u32,
    of: [[u64; 2]; COMMANDS.len()],
}

impl Peaks {
    fn of_block(&self, command: usize) -> f64 {
        let [small, large] = self.of[command];
        large.saturating_sub(small) as f64 / (BLOCKS[1] - BLOCKS[0]) as f64
    }

    fn is_met(&self) -> bool {
        (0..COMMANDS.len()).all(|command| self.of_block(command) <= MOST)
    }
}

impl fmt::Display for Peaks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, command) in COMMANDS.iter().enumerate() {
            let [small, large] = self.of[at].map(|peak| peak as f64 / 1e6);
            let each = self.of_block(at);
            writeln!(f, "| {} | `{command}` | {small:.1} MB | {large:.1} MB | {each:.2} B |", self.lanes)?;
        }
        Ok(())
    }
}

/// Prints what is found; whether the bound is met.
pub(crate) fn check(stop: &Stop) -> anyhow::Result<bool> {
    println!("### index: peak memory of one process that reads a recording\n");
    println!("| directories | command | {} blocks | {} blocks | each more |", BLOCKS[0], BLOCKS[1]);
    println!("|---|---|---|---|---|");
    let mut met = true;
    for lanes in [1, 2, 16] {
        let peaks = peaks(lanes, stop)?;
        print!("{peaks}");
        met &= peaks.is_met();
    }
    println!("\nAt most {MOST} B a block: {}.\n", if met { "met" } else { "MISSED" });
    Ok(met)
}

fn peaks(lanes: u32, stop: &Stop) -> anyhow::Result<Peaks> {
    let mut of = [[0; 2]; COMMANDS.len()];
    for (size, blocks) in BLOCKS.into_iter().enumerate() {
        let home = place::in_memory()?;
        let directories = recorded(home.path(), lanes, blocks)?;
        for (at, command) in COMMANDS.into_iter().enumerate() {
            stop.check()?;
            of[at][size] = peak(command, &directories)?;
        }
    }
    Ok(Peaks { lanes, of })
}

/// Lays out a recording: the blocks are in lanes at random, as they are where each takes the next one when it has time.
fn recorded(home: &Path, lanes: u32, blocks: u64) -> anyhow::Result<Vec<PathBuf>> {
    let mut stream = Seed(1).stream();
    let mut writers =
        (0..lanes).map(|lane| Lane::new(home, lane, lanes)).collect::<anyhow::Result<Vec<_>>>()?;
    for number in 0..blocks {
        writers[stream.below(lanes.into()) as usize].frame(number)?;
    }
    writers.into_iter().map(|lane| lane.end(blocks)).collect()
}

struct Lane {
    directory: PathBuf,
    head: Head,
    journal: BufWriter<File>,
    records: u64,
    frames: u64,
    checksum: u32,
}

impl Lane {
    fn new(home: &Path, lane: u32, lanes: u32) -> anyhow::Result<Self> {
        let head = Head {
            recording: 1,
            lane,
            lanes,
            frame_size: BLOCK,
            stride: BLOCK,
            frames_per_file: FRAMES_PER_FILE,
            storing: Storing::Growing,
            format: Format::Raw,
            names: FileNames::default(),
        };
        let directory = home.join(lane.to_string());
        std::fs::create_dir(&directory)?;
        let journal = BufWriter::new(File::create(directory.join(head.journal_name("n")))?);
        let checksum = crc32fast::hash(&[0; BLOCK as usize]);
        let mut lane = Lane { directory, head, journal, records: 0, frames: 0, checksum };
        lane.put(Entry::Head(head))?;
        Ok(lane)
    }

    fn put(&mut self, entry: Entry) -> anyhow::Result<()> {
        let mut record = [0; RECORD];
        entry.put(self.records, &mut record);
        self.records += 1;
        Ok(self.journal.write_all(&record)?)
    }

    fn frame(&mut self, number: u64) -> anyhow::Result<()> {
        let file = self.frames / FRAMES_PER_FILE;
        let extent = self.head.extent(file, self.frames * BLOCK, BLOCK as u32);
        let (checksum, due) = (Some(self.checksum), number * 1_000_000);
        self.frames += 1;
        self.put(Entry::Frame { number, extent, due, checksum })?;
        if self.frames.is_multiple_of(FRAMES_PER_FILE) { self.put(Entry::Durable { file }) } else { Ok(()) }
    }

    fn end(mut self, blocks: u64) -> anyhow::Result<PathBuf> {
        self.put(Entry::End { due: Some(Due { frames: blocks, last: None }) })?;
        self.journal.flush()?;
        File::create(self.directory.join(self.head.file_name("n", 0)))?.set_len(self.frames * BLOCK)?;
        Ok(self.directory)
    }
}

/// The most memory that the program had, in bytes. It must succeed.
fn peak(command: &str, directories: &[PathBuf]) -> anyhow::Result<u64> {
    let program = place::program()?;
    let mut child = Command::new(&program);
    child.arg(command).args(directories).stdin(Stdio::null()).stdout(Stdio::null());
    let child = child.spawn().with_context(|| format!("can't run `{}`", program.display()))?;
    let (mut status, pid) = (0, libc::pid_t::try_from(child.id())?);
    // SAFETY: all zeroes is a valid rusage, and the kernel writes only into these two; nobody else waits for this child.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        let waited = libc::wait4(pid, &raw mut status, 0, &raw mut usage);
        anyhow::ensure!(waited == pid, "{}", std::io::Error::last_os_error());
        usage
    };
    anyhow::ensure!(status == 0, "`{} {command}` failed ({status})", program.display());
    Ok(usage.ru_maxrss.cast_unsigned() * 1024)
}
