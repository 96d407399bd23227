//! A line of fio: its first job becomes the cell, with other jobs that do the same at the same time.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use nilometer_model::Bytes;

use crate::{
    amount::{BINARY, FIO, FIO_DECIMAL, UnitBases, count, size, time},
    error::LineError,
    fio_jobs::{FioJob, FioJobs},
    fio_options::TABLE,
    fio_reach::add_reach,
    line::{ForeignLine, LineAccess, LineFiles, LineRate, LineSync, directory_of},
    options::{OptionEffect, ReadOption},
    reach::LineReach,
};

/// Options of a job that count only together with others.
#[derive(Debug)]
struct FioOptions {
    /// Without the option, fio waits for each operation.
    engine: String,
    file: Option<PathBuf>,
    bases: UnitBases,
    reads_percent: Option<u32>,
    /// The bytes to move, if other than the size.
    moved: Option<Bytes>,
    /// The delay between the starts of two jobs.
    increment: Option<ReadOption>,
    /// The option with the rates of each job.
    rate: Option<ReadOption>,
    /// Syncs by the names of their options.
    syncs: BTreeMap<String, LineSync>,
}

/// Reads jobs; the first word has number `first` in the line.
pub(crate) fn take(line: &mut ForeignLine, words: &[String], first: usize) -> Result<(), LineError> {
    let jobs = FioJobs::read(words, first, &mut line.left_out)?.jobs;
    let common = line.clone();
    let mut reach = LineReach::default();
    for job in &jobs {
        add_reach(&mut reach, job);
    }
    let mut jobs_left = jobs.iter();
    let Some(job) = jobs_left.next() else { return Ok(()) };
    *line = of_job(&common, job)?;
    if jobs.len() > 1 {
        line.jobs.push(job.name.clone());
    }
    let mut is_later = false;
    for job in jobs_left {
        is_later |= job.waits();
        add_job(line, &common, job, is_later);
    }
    line.reach = reach;
    Ok(())
}

/// A job beside the first one: more workers, if it does the same at the same time.
fn add_job(line: &mut ForeignLine, common: &ForeignLine, job: &FioJob, is_later: bool) {
    let name = format!("job `{}`", job.name);
    if is_later {
        line.leave(&name, "it begins when the jobs before it have ended; only the first ones are compared");
        return;
    }
    match of_job(common, job) {
        Ok(other) if is_alike(line, &other) => {
            line.workers += other.workers;
            line.jobs.push(job.name.clone());
        }
        _ => line
            .leave(&name, "it runs at the same time and asks for something else; here nothing runs beside"),
    }
}

/// True if a job does the same as the first one. Jobs with a rate of their own are each held to it.
fn is_alike(line: &ForeignLine, other: &ForeignLine) -> bool {
    let as_first = ForeignLine {
        workers: line.workers,
        jobs: line.jobs.clone(),
        left_out: line.left_out.clone(),
        ..other.clone()
    };
    as_first == *line && line.rate.is_none()
}

fn of_job(common: &ForeignLine, job: &FioJob) -> Result<ForeignLine, LineError> {
    let mut line = ForeignLine { way: LineAccess::Read, ..common.clone() };
    let mut options = FioOptions {
        engine: "psync".to_owned(),
        file: None,
        bases: FIO,
        reads_percent: None,
        moved: None,
        increment: None,
        rate: None,
        syncs: BTreeMap::new(),
    };
    line.way = way_of(&line, job)?;
    for option in &job.options {
        match TABLE.effect(&option.name) {
            Some(OptionEffect::Taken) | None => take_option(&mut line, &mut options, option)?,
            Some(effect) => line.left_out.file(option, effect)?,
        }
    }
    options.complete(&mut line)?;
    Ok(line)
}

/// The direction of a job. The meaning of other options depends on it, in any order.
fn way_of(line: &ForeignLine, job: &FioJob) -> Result<LineAccess, LineError> {
    let mut tried = line.clone();
    let option = job.options.iter().rfind(|option| ["rw", "readwrite"].contains(&option.name.as_str()));
    option.map_or(Ok(()), |option| take_way(&mut tried, option))?;
    Ok(tried.way)
}

fn take_option(
    line: &mut ForeignLine,
    options: &mut FioOptions,
    option: &ReadOption,
) -> Result<(), LineError> {
    let value = option.value.as_str();
    let wrong = |error: LineError| option.wrong(error);
    let number = |most: u32| count(value, most).map_err(wrong);
    match option.name.as_str() {
        "rw" | "readwrite" => take_way(line, option)?,
        "numjobs" => line.workers = number(1024)?.max(1),
        "iodepth" => line.depth = number(4096)?.max(1),
        "direct" => line.direct = option.is_set(),
        "buffered" => line.direct = !option.is_set(),
        "fsync" | "fdatasync" => options.sync(option, every(number(u32::MAX)?)),
        "end_fsync" | "fsync_on_close" => options.sync(option, at_close(option)),
        "sync" => options.sync(option, every(u32::from(!["0", "none"].contains(&value)))),
        "zero_buffers" => line.zeros = option.is_set(),
        "norandommap" => line.is_uniform = option.is_set(),
        "directory" => take_directory(line, option),
        "filename" => options.file = Some(PathBuf::from(value)),
        "ioengine" => value.clone_into(&mut options.engine),
        "rwmixread" => options.reads_percent = Some(number(100)?),
        "rwmixwrite" => options.reads_percent = Some(100 - number(100)?),
        "runtime" | "timeout" => line.time = Some(time(value).map_err(wrong)?).filter(|time| time.0 > 0),
        "time_based" => line.is_time_based = option.is_set(),
        "offset_increment" => options.increment = Some(option.clone()),
        "kb_base" if value == "1000" => options.bases = FIO_DECIMAL,
        "rate" | "rate_iops" => options.rate = Some(option.clone()),
        _ => take_amount(line, options, option)?,
    }
    Ok(())
}

/// Sizes of blocks and files.
fn take_amount(
    line: &mut ForeignLine,
    options: &mut FioOptions,
    option: &ReadOption,
) -> Result<(), LineError> {
    let one = || size(&option.value, options.bases).map_err(|error| option.wrong(error));
    match option.name.as_str() {
        "bs" | "blocksize" => take_blocks(line, option, options.bases)?,
        "bsrange" | "blocksize_range" => take_range(line, option, options.bases)?,
        "bssplit" => take_split(line, option, options.bases)?,
        "size" | "filesize" if option.value.ends_with('%') => {
            return Err(option.wrong("a share of the free space differs each time: write bytes, such as 4g"));
        }
        "size" => line.size = one()?,
        // The size of a job has precedence.
        "filesize" if line.size.0 == 0 => take_range_of_sizes(line, option, options.bases)?,
        "io_size" | "io_limit" if !option.value.ends_with('%') => options.moved = Some(one()?),
        "io_size" | "io_limit" => line.leave_option(option, "how much of its file it moves; here all of it"),
        "nrfiles" | "nr_files" if option.value != "1" => {
            line.leave_option(option, "a job goes round several files; here one");
        }
        "loops" if option.value != "1" => {
            line.leave_option(option, "it repeats the whole job; here once");
        }
        "fallocate" if option.value != "none" => {
            line.leave_option(option, "it reserves space before it writes; here space is not reserved");
        }
        "nrfiles" | "nr_files" | "loops" | "fallocate" => {
            line.left_out.without_effect.push(option.written.clone());
        }
        _ => {}
    }
    Ok(())
}

fn take_range_of_sizes(
    line: &mut ForeignLine,
    option: &ReadOption,
    bases: UnitBases,
) -> Result<(), LineError> {
    let first = option.value.split('-').next().unwrap_or_default();
    line.size = size(first, bases).map_err(|error| option.wrong(error))?;
    if first != option.value {
        line.leave_option(option, "its files differ in size; here all have the smallest");
    }
    Ok(())
}

/// Takes directories, perhaps several with `:` between them.
fn take_directory(line: &mut ForeignLine, option: &ReadOption) {
    let mut all = option.value.split(':');
    line.directory = PathBuf::from(all.next().unwrap_or_default());
    if all.next().is_some() {
        line.leave_option(option, "its jobs are spread over these directories; here all are in the first");
    }
}

/// `randread`, and `write:8k`, which leaves gaps.
fn take_way(line: &mut ForeignLine, option: &ReadOption) -> Result<(), LineError> {
    let (way, gap) = option.value.split_once(':').unwrap_or((option.value.as_str(), ""));
    line.way = match way {
        "write" => LineAccess::Write,
        "read" => LineAccess::Read,
        "randwrite" => LineAccess::RandomWrite,
        "randread" => LineAccess::RandomRead,
        "randrw" => LineAccess::RandomMix(50),
        "rw" | "readwrite" => {
            line.leave_option(option, "it reads and writes in sequence; here at random places");
            LineAccess::RandomMix(50)
        }
        _ => {
            return Err(option.wrong(
                "Nilometer has no such job: write one of read, write, rw, randread, randwrite, randrw",
            ));
        }
    };
    if !gap.is_empty() {
        line.leave_option(option, "it leaves gaps, or takes several blocks in a row");
    }
    Ok(())
}

/// The values for reads and for writes: `4k`, or `4k,64k`. Without a comma fio also divides at `:` and `-`.
/// A part is `None` if the option says nothing of the direction, as `,64k` of reads.
fn of_directions(value: &str) -> [Option<&str>; 2] {
    let separator = [',', ':', '-'].into_iter().find(|separator| value.contains(*separator));
    let Some(separator) = separator else { return [Some(value); 2] };
    let mut parts = value.split(separator).map(|part| Some(part).filter(|part| !part.is_empty()));
    [parts.next().flatten(), parts.next().flatten()]
}

/// The ranges or shares for the direction of a line; those for reads hold for all if they are alone.
fn part_of_direction<'a>(line: &ForeignLine, value: &'a str) -> &'a str {
    let mut parts = value.split(',').filter(|part| !part.is_empty());
    let of_reads = parts.next().unwrap_or_default();
    if line.writes() { parts.next().unwrap_or(of_reads) } else { of_reads }
}

/// The blocks of the direction of the line. A mix has the blocks that it writes.
fn take_blocks(line: &mut ForeignLine, option: &ReadOption, bases: UnitBases) -> Result<(), LineError> {
    let parse = |text: &str| size(text, bases).map_err(|error| option.wrong(error));
    let parts = of_directions(&option.value);
    let [of_reads, of_writes] = parts.map(|part| part.map_or(Ok(line.block), parse));
    let [of_reads, of_writes] = [of_reads?, of_writes?];
    if !line.writes() {
        line.block = of_reads;
        return Ok(());
    }
    let is_mix = matches!(line.way, LineAccess::RandomMix(_));
    if is_mix && of_reads != of_writes {
        line.leave_option(
            option,
            "blocks that are read and written differ in size; here those that are written count",
        );
    }
    line.block = of_writes;
    Ok(())
}

/// `4k-64k`: sizes are drawn from a range; the cell has their mean, in whole multiples of the smallest.
fn take_range(line: &mut ForeignLine, option: &ReadOption, bases: UnitBases) -> Result<(), LineError> {
    let parse = |text: &str| size(text, bases).map_err(|error| option.wrong(error));
    let range = part_of_direction(line, &option.value);
    let (low, high) = range.split_once('-').ok_or_else(|| option.wrong("write a range such as 4k-64k"))?;
    let low = parse(low)?;
    let high = parse(high)?;
    if low.0 == 0 || high < low {
        return Err(option.wrong("write the smaller size first"));
    }
    take_mean(line, option, low, u128::from(low.0) + u128::from(high.0), 2);
    Ok(())
}

/// `4k/60:64k/40`: sizes with the share of each in percent.
fn take_split(line: &mut ForeignLine, option: &ReadOption, bases: UnitBases) -> Result<(), LineError> {
    let mut least = Bytes(u64::MAX);
    let mut sum: u128 = 0;
    let mut weights: u128 = 0;
    let entries = part_of_direction(line, &option.value);
    for entry in entries.split(':') {
        let (text, share) = entry.split_once('/').unwrap_or((entry, ""));
        let of = size(text, bases).map_err(|error| option.wrong(error))?;
        let share =
            if share.is_empty() { 1 } else { count(share, 100).map_err(|error| option.wrong(error))? };
        least = least.min(of);
        sum += u128::from(of.0) * u128::from(share);
        weights += u128::from(share);
    }
    if weights == 0 || least.0 == 0 {
        return Err(option.wrong("write sizes with their shares, such as 4k/60:64k/40"));
    }
    take_mean(line, option, least, sum, weights);
    Ok(())
}

/// The mean of sizes as the block of the cell.
fn take_mean(line: &mut ForeignLine, option: &ReadOption, least: Bytes, sum: u128, weights: u128) {
    let mean = u64::try_from(sum / weights).unwrap_or(least.0);
    line.block = Bytes((mean / least.0).max(1) * least.0);
    let words = format!("its blocks differ in size; here all have {} B, their mean", line.block.0);
    line.leave_option(option, &words);
}

/// The rate of a job in the direction of its line, of both directions together for a mix. `None` if the option
/// leaves one of them without a limit.
fn rate_of_job(line: &ForeignLine, option: &ReadOption, bases: UnitBases) -> Result<Option<u64>, LineError> {
    let parse = |text: &str| size(text, bases).map_err(|error| option.wrong(error)).map(|size| size.0);
    let [reads, writes] = of_directions(&option.value).map(|part| part.map(parse).transpose());
    let [reads, writes] = [reads?, writes?];
    let too_large =
        || option.wrong("the rates of reads and writes together are too large: write smaller ones");
    match line.way {
        LineAccess::RandomMix(_) => {
            let both = reads.zip(writes);
            both.map(|(reads, writes)| reads.checked_add(writes).ok_or_else(too_large)).transpose()
        }
        _ => Ok(if line.writes() { writes } else { reads }),
    }
}

fn at_close(option: &ReadOption) -> LineSync {
    if option.is_set() { LineSync::AtClose } else { LineSync::Never }
}

fn every(count: u32) -> LineSync {
    if count == 0 { LineSync::Never } else { LineSync::Every(u64::from(count)) }
}

impl FioOptions {
    /// Takes over the options that count together with others.
    fn complete(self, line: &mut ForeignLine) -> Result<(), LineError> {
        if let (LineAccess::RandomMix(_), Some(percent)) = (line.way, self.reads_percent) {
            line.way = LineAccess::RandomMix(percent);
        }
        line.durable = self.syncs.values().fold(LineSync::Never, |all, sync| all.or(*sync));
        self.take_file(line)?;
        self.take_moved(line);
        self.take_engine(line);
        self.take_rate(line)
    }

    fn sync(&mut self, option: &ReadOption, sync: LineSync) {
        self.syncs.insert(option.name.clone(), sync);
    }

    fn take_rate(&self, line: &mut ForeignLine) -> Result<(), LineError> {
        let Some(option) = &self.rate else { return Ok(()) };
        let is_of_bytes = option.name == "rate";
        let rate = rate_of_job(line, option, if is_of_bytes { self.bases } else { BINARY })?;
        let Some(rate) = rate else {
            line.leave_option(option, "it leaves a direction of the line without a limit");
            return Ok(());
        };
        let rate = if is_of_bytes {
            LineRate::Bytes(rate)
        } else {
            let count = u32::try_from(rate);
            LineRate::Operations(count.map_err(|_| option.wrong("write 4294967295 at the most"))?)
        };
        line.rate = Some(of_all(rate, line.workers)?);
        Ok(())
    }

    fn take_file(&self, line: &mut ForeignLine) -> Result<(), LineError> {
        let Some(file) = &self.file else {
            self.take_increment(line, false);
            return Ok(());
        };
        let text = file.to_string_lossy();
        let first = text.split(':').next().unwrap_or_default();
        if first != text {
            line.leave(&format!("filename={text}"), "it goes round several files; here one");
        }
        line.directory = directory_of(&line.directory.join(Path::new(first)))?;
        self.take_increment(line, line.workers > 1);
        Ok(())
    }

    /// Jobs that name one file have all of it, or a part each if each begins where the one before ends.
    fn take_increment(&self, line: &mut ForeignLine, is_one_file: bool) {
        let increment = self.increment.as_ref();
        let step = increment.and_then(|option| size(&option.value, self.bases).ok());
        if is_one_file && step == Some(line.size) && line.size.0 > 0 {
            line.files = LineFiles::Segmented;
            return;
        }
        if let Some(option) = increment {
            line.leave_option(option, "each job begins further behind in the file; here at its start");
        }
        if is_one_file {
            line.leave("one file of all jobs", "here each has one of its own");
        }
    }

    fn take_moved(&self, line: &mut ForeignLine) {
        let Some(moved) = self.moved else { return };
        if line.is_random() {
            line.moved = Some(moved);
        } else if moved <= line.size || line.size.0 == 0 {
            line.size = moved;
        } else {
            line.leave(
                &format!("io_size of {} B", moved.0),
                "it goes over its file more than once; here once",
            );
        }
    }

    /// Engines that wait for each operation have depth 1, even if the line has another.
    fn take_engine(&self, line: &mut ForeignLine) {
        let name = self.engine.as_str();
        if ["libaio", "io_uring", "posixaio", "io_uring_cmd"].contains(&name) {
            if name == "libaio" && !line.direct && line.depth > 1 {
                line.leave(
                    "libaio without --direct=1",
                    "it waits for each operation; here --iodepth are in flight",
                );
            }
            return;
        }
        line.depth = 1;
        if !["sync", "psync", "pvsync", "pvsync2", "vsync"].contains(&name) {
            line.leave(&format!("--ioengine={name}"), "it moves data in another way; here by calls of POSIX");
        }
    }
}

/// fio holds each job to a rate; a stage of ours all workers together.
fn of_all(rate: LineRate, workers: u32) -> Result<LineRate, LineError> {
    let wrong =
        || LineError::whole(format!("the rate of all {workers} jobs is too large: write a smaller one"));
    Ok(match rate {
        LineRate::Operations(0) | LineRate::Bytes(0) => {
            return Err(LineError::whole("a rate of 0: leave it out"));
        }
        LineRate::Operations(of_one) => LineRate::Operations(of_one.checked_mul(workers).ok_or_else(wrong)?),
        LineRate::Bytes(of_one) => LineRate::Bytes(of_one.checked_mul(workers.into()).ok_or_else(wrong)?),
    })
}
