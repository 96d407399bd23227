//! The figures that the programs themselves print, and the command line that makes them print it.

use nilometer_command_lines::{FIO_OUTPUT_OPTIONS, ForeignLine, ForeignProgram, LineAccess, ReadLine};
use serde_json::Value;

/// The command line of the run: the line as written, except that fio prints its figures as JSON, and nothing
/// else.
pub(super) fn command(read: &ReadLine, words: &[String]) -> Vec<String> {
    let own = &words[read.front.words..];
    let mut command = read.front.command.clone();
    if read.line.program != ForeignProgram::Fio {
        command.extend(own.iter().cloned());
        return command;
    }
    let mut own = own.iter().peekable();
    while let Some(word) = own.next() {
        let (name, has_value) = match word.trim_start_matches('-').split_once('=') {
            Some((name, _)) => (name, true),
            None => (word.trim_start_matches('-'), false),
        };
        if !word.starts_with('-') || !FIO_OUTPUT_OPTIONS.contains(&name) {
            command.push(word.clone());
        } else if !has_value && !["minimal", "append-terse"].contains(&name) {
            own.next();
        }
    }
    command.push("--output-format=json".to_owned());
    command
}

/// The output of a program.
pub(super) struct PrintedOutput<'a> {
    pub(super) stdout: &'a str,
    pub(super) stderr: &'a str,
}

/// The figures of a line in bytes or operations a second, one for each name in `figures` (of mdtest). `None`
/// if it gives no rate.
pub(super) fn rates(line: &ForeignLine, figures: &[&str], output: &PrintedOutput<'_>) -> Vec<Option<f64>> {
    let PrintedOutput { stdout, stderr } = output;
    match line.program {
        ForeignProgram::Fio => vec![rate_of_fio(stdout, line)],
        ForeignProgram::Dd => vec![rate_of_dd(stderr)],
        ForeignProgram::Ior => vec![rate_of_ior(stdout)],
        ForeignProgram::Elbencho => vec![rate_of_elbencho(stdout, line.writes())],
        ForeignProgram::Iozone => vec![rate_of_iozone(stdout, line)],
        ForeignProgram::Mdtest => figures.iter().map(|name| rate_of_mdtest(stdout, name)).collect(),
    }
}

/// The rate of the jobs of a line together. A job that writes may read its data back to compare them: only the
/// directions of the line count.
fn rate_of_fio(stdout: &str, line: &ForeignLine) -> Option<f64> {
    let names = &line.jobs;
    let directions: &[&str] = match line.way {
        LineAccess::Write | LineAccess::RandomWrite => &["write", "mixed"],
        LineAccess::Read | LineAccess::RandomRead => &["read", "mixed"],
        LineAccess::RandomMix(_) => &["read", "write", "mixed"],
    };
    let document: Value = serde_json::from_str(&stdout[stdout.find('{')?..]).ok()?;
    let is_meant = |job: &&Value| {
        names.is_empty() || job["jobname"].as_str().is_some_and(|name| names.iter().any(|of| of == name))
    };
    let of = |job: &Value, way: &str| job[way]["bw_bytes"].as_f64().unwrap_or(0.0);
    let jobs = document["jobs"].as_array()?.iter().filter(is_meant);
    let sum: f64 = jobs.map(|job| directions.iter().map(|way| of(job, way)).sum::<f64>()).sum();
    (sum > 0.0).then_some(sum)
}

/// `67108864 bytes (67 MB, 64 MiB) copied, 0.0406 s, 1.7 GB/s`.
pub(super) fn rate_of_dd(stderr: &str) -> Option<f64> {
    let line = stderr.lines().rfind(|line| line.contains(" copied, "))?;
    let bytes: f64 = line.split(' ').next()?.parse().ok()?;
    let (_, behind) = line.split_once(" copied, ")?;
    let seconds: f64 = behind.split(' ').next()?.replace(',', ".").parse().ok()?;
    (seconds > 0.0).then(|| bytes / seconds)
}

const MEBIBYTE: f64 = (1 << 20) as f64;
const KIBIBYTE: f64 = 1024.0;

/// `Max Write: 1234.56 MiB/sec (1294.54 MB/sec)`; of both directions, the writes.
fn rate_of_ior(stdout: &str) -> Option<f64> {
    let of = |what: &str| {
        let line = stdout.lines().find(|line| line.trim_start().starts_with(what))?;
        let (_, figure) = line.split_once(':')?;
        figure.trim().split(' ').next()?.parse::<f64>().ok()
    };
    let mebibytes = of("Max Write").filter(|rate| *rate > 0.0).or_else(|| of("Max Read"))?;
    Some(mebibytes * MEBIBYTE)
}

/// The mean of a phase, `   File creation    46448.5   46448.5   46448.5   0.000`. Before version 4, a colon
/// followed the name. `-Z` prints a table of times in place of rates: it has no figure.
fn rate_of_mdtest(stdout: &str, name: &str) -> Option<f64> {
    let mut is_of_times = false;
    let rest = stdout.lines().map(str::trim_start).find_map(|line| {
        if line.starts_with("SUMMARY") {
            is_of_times = line.starts_with("SUMMARY time");
        }
        line.strip_prefix(name).filter(|_| !is_of_times)
    })?;
    let mut figures = rest.trim_start_matches([' ', ':']).split_whitespace();
    figures.nth(2)?.parse().ok().filter(|rate| *rate > 0.0)
}

/// `Throughput MiB/s :   33395   33352` below `WRITE` or `READ`: the rate of all threads until the last one
/// ended.
fn rate_of_elbencho(stdout: &str, is_written: bool) -> Option<f64> {
    let phase = if is_written { ["WRITE", "RWMIX"] } else { ["READ", "READ"] };
    let from_phase = stdout.lines().skip_while(|line| !phase.iter().any(|name| line.starts_with(name)));
    let of_phase = from_phase.take_while(|line| !line.starts_with("---"));
    let line = of_phase.filter(|line| line.contains("Throughput MiB/s")).last()?;
    let (_, figures) = line.split_once(':')?;
    let last: f64 = figures.split_whitespace().last()?.parse().ok()?;
    (last > 0.0).then_some(last * MEBIBYTE)
}

/// The rate of iozone. Several threads have a line `Children see throughput for 4 initial writers = 1234.5
/// kB/sec`. One thread has a row in a table. With `-O` figures are operations a second, with `-N` microseconds
/// of an operation, of which no rate of several threads follows.
fn rate_of_iozone(stdout: &str, line: &ForeignLine) -> Option<f64> {
    let name = match line.way {
        LineAccess::Write => "initial writers",
        LineAccess::Read => "readers",
        LineAccess::RandomRead => "random readers",
        LineAccess::RandomWrite => "random writers",
        LineAccess::RandomMix(_) => "mixed workload",
    };
    let of_threads = rate_of_threads(stdout, name);
    let figure = of_threads.or_else(|| rate_of_table(stdout)).filter(|figure| *figure > 0.0)?;
    let block = line.block.0 as f64;
    if stdout.contains("OPS Mode.") {
        Some(figure * block)
    } else if stdout.contains("Microseconds/op Mode.") {
        of_threads.is_none().then(|| block / figure * 1e6)
    } else {
        Some(figure * KIBIBYTE)
    }
}

fn rate_of_threads(stdout: &str, name: &str) -> Option<f64> {
    let mut lines =
        stdout.lines().map(str::trim).filter_map(|line| line.strip_prefix("Children see throughput for"));
    let line = lines.find(|line| {
        let of = line.trim().trim_start_matches(|letter: char| letter.is_ascii_digit()).trim_start();
        of.starts_with(name)
    })?;
    line.split_once('=')?.1.split_whitespace().next()?.parse().ok()
}

/// The first figure of the first row, which is that of the first test: size and record in kB stand before it.
fn rate_of_table(stdout: &str) -> Option<f64> {
    let mut lines = stdout.lines().skip_while(|line| !line.contains("reclen"));
    let rows = lines.by_ref().skip(1);
    let figures =
        rows.map(|line| line.split_whitespace().map_while(|word| word.parse().ok()).collect::<Vec<f64>>());
    let row = figures.into_iter().find(|row| row.len() > 2)?;
    row.get(2).copied()
}

#[cfg(test)]
mod tests {
    use nilometer_command_lines::parse;

    use super::*;

    fn line(text: &str) -> ForeignLine {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        parse(&words).expect("valid").line
    }

    #[test]
    fn figures_are_those_of_the_directions_and_units_of_a_line() {
        let fio = "{\"jobs\": [{\"jobname\": \"a\", \"write\": {\"bw_bytes\": 1000}, \"read\": {\"bw_bytes\": 700}}]}";
        let verified = line("fio --rw=write --bs=4k --size=1m --verify=md5");
        assert_eq!(rate_of_fio(fio, &verified), Some(1000.0));
        assert_eq!(rate_of_fio(fio, &line("fio --rw=randrw --bs=4k --size=1m")), Some(1700.0));
        let times = "SUMMARY time: (of 1 iterations)\n   File creation   0.5   0.5   0.5   0.0\n";
        assert_eq!(rate_of_mdtest(times, "File creation"), None);
        let rates = "SUMMARY rate: (of 1 iterations)\n   File creation   200.0   200.0   200.0   0.0\n";
        assert_eq!(rate_of_mdtest(&format!("{times}{rates}"), "File creation"), Some(200.0));
        let table = "kB  reclen    write  rewrite\n 1024   4     500   600\n";
        let iozone = line("iozone -s 1m -r 4k -i 0");
        assert_eq!(
            rate_of_iozone(&format!("OPS Mode. Output is in operations per second.\n{table}"), &iozone),
            Some(2_048_000.0)
        );
        let slow = format!("Microseconds/op Mode. Output is in microseconds per operation.\n{table}");
        assert_eq!(rate_of_iozone(&slow, &iozone), Some(8_192_000.0));
    }

    #[test]
    fn figures_of_each_program_are_read() {
        let only = ForeignLine { jobs: vec!["b".to_owned()], ..line("fio --rw=write --size=1m") };
        let fio = "note: both\n{\"jobs\": [{\"jobname\": \"a\", \"write\": {\"bw_bytes\": 1000}, \"read\": {\"bw_bytes\": 0}}, {\"jobname\": \"b\", \"write\": {\"bw_bytes\": 500}}]}";
        assert_eq!(rate_of_fio(fio, &line("fio --rw=write --size=1m")), Some(1500.0));
        assert_eq!(rate_of_fio(fio, &only), Some(500.0));
        let dd =
            "64+0 records in\n64+0 records out\n67108864 bytes (67 MB, 64 MiB) copied, 0,5 s, 1.7 GB/s\n";
        assert_eq!(rate_of_dd(dd), Some(134_217_728.0));
        let ior = "Max Write: 100.00 MiB/sec (104.86 MB/sec)\nMax Read:  200.00 MiB/sec (209.72 MB/sec)\n";
        assert_eq!(rate_of_ior(ior), Some(104_857_600.0));
        assert_eq!((rate_of_fio("none", &only), rate_of_dd(""), rate_of_ior("")), (None, None, None));
    }

    /// Output that was recorded, of versions 4.1 and 1.9.
    #[test]
    fn figures_of_both_versions_of_mdtest_are_read() {
        let new = "   Operation                     Max            Min           Mean        Std Dev\n   File creation               46448.549      46448.549      46448.549          0.000\n";
        let old = "   File creation     :      17350.120      16350.120      16850.120         12.000\n";
        assert_eq!(rate_of_mdtest(new, "File creation"), Some(46448.549));
        assert_eq!(rate_of_mdtest(old, "File creation"), Some(16850.12));
        assert_eq!(rate_of_mdtest(new, "File stat"), None);
    }

    /// The text has the form that elbencho's documentation shows.
    #[test]
    fn figures_of_elbencho_are_those_until_the_last_thread() {
        let text = "OPERATION   RESULT TYPE         FIRST DONE   LAST DONE\n\
                    WRITE       Elapsed time     :    2m3.241s    2m5.755s\n            \
                    Throughput MiB/s :       33395       33352\n---\n\
                    READ        Elapsed time     :    1m3.241s    1m5.755s\n            \
                    Throughput MiB/s :       100         90\n---\n";
        assert_eq!(rate_of_elbencho(text, true), Some(33352.0 * MEBIBYTE));
        assert_eq!(rate_of_elbencho(text, false), Some(90.0 * MEBIBYTE));
        assert_eq!(rate_of_elbencho("", true), None);
    }

    #[test]
    fn figures_of_iozone_are_read_of_threads_and_of_its_table() {
        let threads = "\tChildren see throughput for  4 initial writers \t=  2048.00 kB/sec\n\
                       \tParent sees throughput for  4 initial writers \t=  1000.00 kB/sec\n\
                       \tChildren see throughput for  4 readers \t\t=  4096.00 kB/sec\n";
        assert_eq!(rate_of_iozone(threads, &line("iozone -s 1g -r 4k -i 0")), Some(2048.0 * 1024.0));
        assert_eq!(rate_of_iozone(threads, &line("iozone -s 1g -r 4k -i 1")), Some(4096.0 * 1024.0));
        let table = "                                    random    random\n\
                     kB  reclen    write  rewrite    read    reread    read     write\n\
                     102400       4     2738   2800     9000   9100   8000   700\n";
        assert_eq!(rate_of_iozone(table, &line("iozone -s 1g -r 4k -i 0")), Some(2738.0 * 1024.0));
        assert_eq!(rate_of_iozone("", &line("iozone -s 1g -r 4k -i 0")), None);
    }

    #[test]
    fn fio_is_run_so_that_its_figures_can_be_read() {
        let words = |line: &str| -> Vec<String> { line.split_whitespace().map(str::to_owned).collect() };
        let of = |line: &str| command(&parse(&words(line)).expect("valid"), &words(line)).join(" ");
        assert_eq!(
            of("time fio --output=x -name=a --size=1m --output-format terse --minimal --eta=never -rw=write"),
            "fio -name=a --size=1m -rw=write --output-format=json"
        );
        assert_eq!(of("sudo dd if=/dev/zero of=/x/f count=1"), "sudo dd if=/dev/zero of=/x/f count=1");
    }
}
