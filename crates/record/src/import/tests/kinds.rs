//! The forms in which programs write results, old and new, in texts of the same form that were written for
//! these tests; and figures that contradict each other.

use super::*;

/// Makes a job of fio. `more` are members of the job, and `direction` is its writes.
fn fio(version: &str, head: &str, jobs: &[String]) -> String {
    format!("{{\"fio version\": \"{version}\", {head} \"jobs\": [{}]}}\n", jobs.join(", "))
}

fn writes(more: &str, direction: &str) -> String {
    format!(
        "{{\"jobname\": \"w\", \"groupid\": 0, {more} \"job options\": {{\"rw\": \"write\", \"bs\": \"64k\"}}, \
         \"read\": {{}}, \"write\": {{{direction}}}}}"
    )
}

fn fault(text: &str) -> String {
    imported(text, &ImportOptions::default()).expect_err("it is refused").to_string()
}

/// Cells with their targets.
fn cells(results: &Results) -> std::collections::BTreeSet<(usize, usize)> {
    results.samples.iter().map(|measured| (measured.key.target, measured.key.cell)).collect()
}

fn left_out(text: &str) -> String {
    let imported = imported(text, &ImportOptions::default()).expect("valid");
    let each = imported.left_out().iter().map(|(what, count)| format!("{count} x {what}"));
    each.collect::<Vec<_>>().join("; ")
}

#[test]
fn fio_before_version_3_counts_kibibytes_and_microseconds() {
    let direction = "\"io_bytes\": 1024000, \"bw\": 102400, \"iops\": 1600.0, \"runtime\": 10000, \"total_ios\": 16000, \
                     \"clat\": {\"max\": 900, \"percentile\": {\"50.000000\": 100, \"0.00\": 0}}";
    let text = fio("fio-2.17", "", &[writes("", direction)]);
    let results = plain(&text);
    assert!(near(&rates(&results, Phase::Write), &[100.0]), "{:?}", results.samples);
    let latency = results.latencies.values().next().expect("a distribution");
    assert_eq!(latency.count(), 16_000);
    assert!((latency.quantile(0.4) as f64 / 100e3 - 1.0).abs() < 0.04, "nanoseconds: {latency:?}");
    let new = plain(&text.replace("2.17", "3.17").replace("1024000,", "1048576000,"));
    assert!(near(&rates(&new, Phase::Write), &[100.0]));
    // Version 2.1 had no count of operations, and none had options.
    let old = direction.replace(", \"total_ios\": 16000", "");
    let old = fio("fio-2.1.4", "", &[writes("", &old)]).replace("\"rw\": \"write\", \"bs\": \"64k\"", "");
    let old = plain(&old);
    assert_eq!(old.samples[0].sample.operations, 16_000);
    assert_eq!(old.cells[0].to_string(), "operations of 64 KiB");
}

#[test]
fn fios_rates_follow_from_its_counts_or_are_refused() {
    let good = "\"io_bytes\": 1048576000, \"bw\": 102400, \"bw_bytes\": 104857600, \"iops\": 1600.5, \"runtime\": 10000, \
                \"total_ios\": 16005, \"io_kbytes\": 1024000";
    let text = fio("fio-3.33", "", &[writes("", good)]);
    assert!(near(&rates(&plain(&text), Phase::Write), &[100.0]));
    for (from, to, part) in [
        ("\"bw\": 102400", "\"bw\": 100", "bw is 100 KiB/s, and 102400 KiB/s by its counts and `runtime`"),
        ("\"bw_bytes\": 104857600", "\"bw_bytes\": 204857600", "bw_bytes is 204857600 B/s"),
        ("1600.5", "3200", "iops is 3200 1/s"),
        ("1024000", "1000", "io_kbytes is 1000 KiB"),
        ("1048576000", "1024000", "io_kbytes is 1024000 KiB, and 1000 KiB by io_bytes"),
        ("\"runtime\": 10000", "\"runtime\": 100", "bw is 102400 KiB/s"),
    ] {
        let error = fault(&text.replace(from, to));
        assert!(error.contains(part) && error.contains("results:1: "), "`{part}` is missing in: {error}");
    }
}

#[test]
fn the_last_document_of_a_run_counts_and_further_runs_are_repeats() {
    let document = |written: u64, elapsed: u64, bytes: u64, runtime: u64| {
        let direction =
            format!("\"io_bytes\": {bytes}, \"runtime\": {runtime}, \"total_ios\": {}", bytes >> 16);
        let job = writes(&format!("\"elapsed\": {elapsed},"), &direction);
        fio("fio-3.33", &format!("\"timestamp\": {written},"), &[job])
    };
    let first = document(1000, 11, 100 << 20, 1000);
    let last = document(1010, 21, 500 << 20, 10_000);
    let found = plain(&format!("{first}{last}"));
    assert!(near(&rates(&found, Phase::Write), &[50.0]), "{:?}", found.samples);
    assert!(left_out(&format!("{first}{last}")).contains("1 x interim states of a run of fio"));
    // It was started when the first had ended: two runs of the same jobs.
    let again = document(1025, 11, 100 << 20, 1000);
    let both = plain(&format!("{first}note of a shell\n{again}"));
    assert!(near(&rates(&both, Phase::Write), &[100.0, 100.0]) && cells(&both).len() == 1);
    // A counter that falls is one of another run, whatever the times say.
    let fewer = document(1000, 11, 50 << 20, 1000);
    assert_eq!(plain(&format!("{first}{fewer}")).samples.len(), 2);
}

#[test]
fn hosts_of_fio_are_workers_of_one_sample() {
    let host = |name: &str, job: &str, bytes: u64| {
        let direction = format!("\"io_bytes\": {bytes}, \"runtime\": 1000, \"total_ios\": 1600");
        writes(&format!("\"hostname\": \"{name}\","), &direction).replace("\"jobname\": \"w\"", job)
    };
    let jobs = |sum: u64| {
        let own = "\"jobname\": \"w\"";
        let sum = host("b", "\"jobname\": \"All clients\"", sum);
        fio("fio-3.33", "", &[host("a", own, 100 << 20), host("b", own, 200 << 20), sum])
            .replace("\"jobs\"", "\"client_stats\"")
    };
    let results = plain(&jobs(300 << 20));
    assert!(near(&rates(&results, Phase::Write), &[300.0]), "{:?}", results.samples);
    assert_eq!(results.cells[0].to_string(), "write, block size 64k, hosts 2");
    assert!(left_out(&jobs(300 << 20)).contains("1 x sums over all clients"));
    assert!(fault(&jobs(200 << 20)).contains("io_bytes of `All clients` is 209715200 bytes"));
    let alone = fio("fio-2.6", "", &[host("", "\"jobname\": \"All clients\"", 1024)]);
    let alone = plain(&alone.replace("\"jobs\"", "\"client_stats\""));
    assert!(near(&rates(&alone, Phase::Write), &[1.0]));
}

#[test]
fn reads_and_writes_in_one_figure_are_a_mix() {
    let direction = "{\"io_bytes\": 104857600, \"runtime\": 1000, \"total_ios\": 1600}";
    let mixed = fio("fio-3.33", "", &[format!("{{\"jobname\": \"m\", \"mixed\": {direction}}}")]);
    assert!(near(&rates(&plain(&mixed), Phase::Mix), &[100.0]));
    let sum = direction.replace("104857600", "209715200");
    let both =
        format!("{{\"jobname\": \"m\", \"read\": {direction}, \"write\": {direction}, \"mixed\": {sum}}}");
    let text = fio("fio-3.33", "", std::slice::from_ref(&both));
    let results = plain(&text);
    assert_eq!(results.samples.len(), 2, "the sum is no third sample");
    assert!(left_out(&text).contains("unified_rw_reporting=both"));
    assert!(
        fault(&fio("fio-3.33", "", &[both.replace("209715200", "1048576")]))
            .contains("`mixed` is 1048576 bytes")
    );
    assert!(
        fault(&fio("fio-3.33", "", &["{\"jobname\": \"m\"}".into()]))
            .contains("no `read`, `write` or `mixed`")
    );
}

#[test]
fn all_files_of_a_job_are_its_target_and_trims_are_named() {
    let options = "\"filename\": \"/dev/a\", \"filename\": \"/dev/b\", \"bs\": \"4k\", \"bs\": \"8k\"";
    let job = format!(
        "{{\"jobname\": \"r\", \"job options\": {{{options}}}, \"read\": {{\"io_bytes\": 8192, \"runtime\": 10, \
         \"total_ios\": 1}}, \"write\": {{}}, \"trim\": {{\"io_bytes\": 4096, \"total_ios\": 1}}, \
         \"sync\": {{\"total_ios\": 3}}}}"
    );
    let text = fio("fio-3.33", "", &[job]);
    let results = plain(&text);
    assert_eq!(results.targets[0].path, "/dev/a:/dev/b");
    assert_eq!(results.cells[0].to_string(), "block size 8k", "fio uses the last one");
    assert_eq!(left_out(&text), "1 x latencies of fio's syncs; 1 x trims of fio");
}

/// mdtest with `-P`; times follow from 1000 items of each of 8 tasks.
const MDTEST_BOTH: &str = "\
-- started at 01/31/2026 10:00:00 --

mdtest-4.1.0+dev was launched with 8 total task(s) on 2 node(s)
Command line used: mdtest '-n' '1000' '-F' '-P' '-G=42' '-x' '/tmp/stone' '-d' '/p/md'
Path                : /p/md
8 tasks, 8000 files

SUMMARY rate: (of 1 iterations)
   Operation                     Max            Min           Mean        Std Dev
   ---------                     ---            ---           ----        -------
   File creation                4000.000       4000.000       4000.000          0.000
   File rename                  1000.000       1000.000       1000.000          0.000

SUMMARY time: (of 1 iterations)
   Operation                     Max            Min           Mean        Std Dev
   ---------                     ---            ---           ----        -------
   File creation                   2.000          2.000          2.000          0.000
   File rename                     8.000          8.000          8.000          0.000
-- finished at 01/31/2026 10:00:10 --
";

#[test]
fn mdtests_rates_are_taken_and_held_against_its_times() {
    let results = plain(MDTEST_BOTH);
    assert!(near(&rates(&results, Phase::CreateFiles), &[4000.0]));
    assert!(near(&rates(&results, Phase::Given), &[1000.0]), "file rename");
    assert_eq!(results.cells[0].to_string(), "tasks 8, nodes 2, options -n 1000 -F");
    assert_eq!(results.started, "2026-01-31T10:00:00Z");
    let error = fault(
        &MDTEST_BOTH.replace("2.000          2.000          2.000", "4.000          4.000          4.000"),
    );
    assert!(error.contains("results:17: the number of items is 8000 items"), "{error}");
    let (rates, times) = MDTEST_BOTH.split_once("SUMMARY rate").expect("both");
    let times = times.split_once("SUMMARY time").expect("both").1;
    assert!(fault(&format!("{rates}SUMMARY time{times}")).contains("times without rates"));
    let one = MDTEST_BOTH.replace("SUMMARY time:", "SUMMARY time (in ms/op):").replace("2.000", "0.250");
    assert_eq!(plain(&one).samples.len(), 2, "version 4.1 gives times of an operation");
}

/// IOR within IO500: no summary behind the table.
const IOR_QUIET: &str = "\
IOR-4.1.0+dev: MPI Coordinated Test of Parallel I/O
Began               : Sat Jan 31 10:00:00 2026
Command line        : ior -w -t 47008 -b 1g -F -o /p/f
StartTime           : Sat Jan 31 10:00:00 2026
Path                : /p/f.00000000

Options:
api                 : POSIX
test filename       : /p/f
access              : file-per-process
nodes               : 2
tasks               : 8
repetitions         : 1
xfersize            : 47008 bytes
blocksize           : 1 GiB
aggregate filesize  : 8 GiB

Results:

access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter
------    ---------  ----       ----------  ---------- ---------  --------   --------   --------   --------   ----
write     1024       22841      0.000070    1048576    45.91      0.016175   8.00       0.014280   8.00       0
";

#[test]
fn ior_is_whole_without_a_summary_if_no_row_is_missing() {
    let results = plain(IOR_QUIET);
    assert!(near(&rates(&results, Phase::Write), &[1024.0]));
    assert!(
        results.cells[0].to_string().ends_with("tasks 8, transfer size 47 kB, block size 1 GiB"),
        "{}",
        results.cells[0]
    );
    assert_eq!(results.started, "2026-01-31T10:00:00Z");
    for (from, to, part) in [
        ("ior -w", "ior -w -r", "cut off: 0 of 1 rows of read"),
        ("repetitions         : 1", "repetitions         : 3", "cut off: 1 of 3 rows of write"),
        ("   8.00       0\n", "", "cut off: a row of 9 figures, and the table has 11"),
        (
            "aggregate filesize  : 8 GiB",
            "aggregate filesize  : 16 GiB",
            "2048 MiB/s by the bytes moved and total(s)",
        ),
        (
            "aggregate filesize  : 8 GiB",
            "segments            : 4",
            "4096 MiB/s by the bytes moved and total(s)",
        ),
        ("22841", "1024 ", "IOPS is 1024 1/s"),
    ] {
        let error = fault(&IOR_QUIET.replace(from, to));
        assert!(error.contains(part), "`{part}` is missing in: {error}");
    }
    // A test that a limit of time ended moved fewer bytes, and says how many.
    let limited = IOR_QUIET.replace("ior -w", "ior -w -D 8").replace(": 8 GiB", ": 80 GiB");
    assert_eq!(plain(&limited).samples.len(), 1);
    let moved = |bytes: u64| {
        let warning = format!("WARNING: Using actual aggregate bytes moved = {bytes}\nwrite     1024");
        limited.replace("write     1024", &warning)
    };
    assert_eq!(plain(&moved(8 << 30)).samples.len(), 1);
    assert!(fault(&moved(4 << 30)).contains("512 MiB/s by the bytes moved"));
}

/// IOR 3.0 writes options with `=`.
const IOR_3_0: &str = "\
IOR-3.0.1: MPI Coordinated Test of Parallel I/O

Began: Sat Jan 31 10:00:00 2015
Command line used: ior -w -o /p/f
Machine: Linux node1

Test 0 started: Sat Jan 31 10:00:00 2015
Summary:
\tapi                = POSIX
\ttest filename      = /p/f
\taccess             = single-shared-file
\tpattern            = strided (16 segments)
\tordering in a file = sequential offsets
\tclients            = 16 (8 per node)
\trepetitions        = 2
\txfersize           = 1 MiB
\tblocksize          = 4 MiB
\taggregate filesize = 1 GiB

access    bw(MiB/s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter
------    ---------  ---------- ---------  --------   --------   --------   --------   ----
write     100.00     4096       1024.00    0.003322   1.47       20.06      10.24      0
write     200.00     4096       1024.00    0.003322   1.47       20.06      5.12       1

Max Write: 200.00 MiB/sec (209.72 MB/sec)

Summary of all tests:
Operation   Max(MiB)   Min(MiB)  Mean(MiB)     StdDev    Mean(s) Test#
write         200.00     100.00     150.00      50.00    7.68 0

Finished: Sat Jan 31 10:00:42 2015
";

#[test]
fn older_iors_write_options_otherwise_and_summaries_alone() {
    let results = plain(IOR_3_0);
    assert!(near(&rates(&results, Phase::Write), &[100.0, 200.0]));
    let name = "api POSIX, single-shared-file, segments 16, order sequential, nodes 2, tasks 16, transfer size 1 MiB, \
                block size 4 MiB";
    assert_eq!(results.cells[0].to_string(), name);
    assert!(
        fault(&IOR_3_0.replace("Max Write: 200", "Max Write: 300"))
            .contains("the greatest rate is 300 MiB/s")
    );
    assert!(fault(&IOR_3_0.replace("150.00 ", "170.00 ")).contains("the mean rate is 170 MiB/s"));
    let (options, rest) = IOR_3_0.split_once("access    bw").expect("a table");
    let summary = rest.split_once("Summary of all tests:").expect("one").1;
    let summary = summary.replace("Max(MiB)   Min(MiB)", "Max (MiB)  Min (MiB)");
    let two = format!("{options}{summary}").replace("IOR-3.0.1", "IOR-2.10.3");
    let found = plain(&two);
    assert!(near(&rates(&found, Phase::Write), &[100.0, 200.0]), "{:?}", found.samples);
    assert_eq!(found.samples[0].sample.operations, 100_000, "of 1 MiB in 1000 s");
}

#[test]
fn two_tests_of_ior_are_two_cells_and_their_forms_are_one() {
    let other = IOR_3_0.replace("= 1 MiB", "= 2048.00").replace("1024.00 ", "2048.00 ");
    let json = r#"{"Version": "3.0.1", "Began": "Sat Jan 31 10:00:00 2015", "tests": [{"TestID": 0, "Path": "/p/f.00000000",
        "Options": {"blocksize": "4 MiB", "xfersize": "1 MiB", "tasks": 16, "nodes": 2, "ordering in a file": "sequential",
        "segments": 16, "access": "single-shared-file", "test filename": "/p/f", "api": "POSIX", "aggregate filesize": "1 GiB"},
        "Results": [[{"access": "write", "bwMiB": 100.0, "blockKiB": 4096.0, "xferKiB": 1024.0, "iops": 100.0,
        "wrRdTime": 10.24, "totalTime": 10.24}]]}], "summary": [{"operation": "write", "bwMaxMIB": 100.0, "bwMinMIB": 100.0,
        "bwMeanMIB": 100.0}]}"#;
    let both = format!("{IOR_3_0}{other}{json}\n");
    let results = plain(&both);
    assert_eq!((results.samples.len(), cells(&results).len()), (5, 2));
    let names: Vec<String> = results.cells.iter().map(ToString::to_string).collect();
    assert!(
        names[0].contains("transfer size 1 MiB") && names[1].contains("transfer size 2 MiB"),
        "{names:?}"
    );
    assert!(fault(&json.replace("\"iops\": 100.0", "\"iops\": 900.0")).contains("IOPS is 900 1/s"));
    assert!(
        fault(&json.replace("bwMaxMIB\": 100.0", "bwMaxMIB\": 90.0")).contains("the greatest rate is 90")
    );
}

#[test]
fn every_program_of_a_log_is_taken_or_named() {
    let dd = "1048576 bytes (1.0 MB, 1.0 MiB) copied, 0.5 s, 2.1 MB/s\n";
    let log = format!("module load ior\n{IOR_QUIET}+ echo done\n{MDTEST_BOTH}{dd}{ELBENCHO}");
    let results = plain(&log);
    assert_eq!(results.title, "IOR 4.1.0+dev, mdtest 4.1.0+dev, elbencho");
    assert_eq!(results.samples.len(), 1 + 2 + 2);
    assert!(left_out(&log).contains("1 x results of dd, which import does not read"), "{}", left_out(&log));
    assert!(fault(dd).contains("results of dd: none of these"));
    // A fault has its line in the log, and nothing of it is taken.
    let broken = log.replace("4000.000       4000.000       4000.000", "4000.000       4000.000       inf");
    assert!(fault(&broken).contains("results:35: "), "{}", fault(&broken));
}

/// A phase of elbencho that reads beside writing, in both forms.
const MIX_HEADER: &str = "ISO date,label,path type,paths,hosts,threads,file size,block size,direct IO,operation,\
time ms [first],time ms [last],entries [last],MiB/s [last],IOPS [last],MiB [last],rwmix read MiB/s [last],\
rwmix read IOPS [last],rwmix read MiB [last],tail us\n";
const MIX: &str =
    "2026-01-31T10:00:00,,file,1,1,8,1073741824,1048576,1,RWMIX70,10000,10000,,300,300,3000,700,700,7000,5\n";
const MIX_JSON: &str = r#"{"phase_type":"RWMIX70","phase_id":"1","iso_start_date":"2026-01-31T10:00:00.123+0100","config":
{"path_type":"file","hosts":"1","threads":"8","file_size":"1073741824","block_size":"1048576","direct_io":"true"},"first_done":
{"elapsed_time_ms":"10000"},"last_done":{"elapsed_time_ms":"10000","iops":"300","bytes/s":"314572800","bytes":"3145728000",
"rwmix_read":{"iops":"700","bytes/s":"734003200","bytes":"7340032000"},"cpu%":"5"}}"#;

#[test]
fn elbenchos_reads_beside_writes_are_reads_of_the_same_cell() {
    let table = format!("{MIX_HEADER}{MIX}");
    let both = plain(&format!("{MIX_JSON}\n{table}"));
    assert!(near(&rates(&both, Phase::Write), &[300.0, 300.0]), "{:?}", both.samples);
    assert!(near(&rates(&both, Phase::Read), &[700.0, 700.0]));
    assert_eq!(cells(&both).len(), 1);
    let name = "hosts 1, threads 8, file size 1 GiB, block size 1 MiB, direct, rwmix70";
    assert_eq!(both.cells[0].to_string(), name);
    assert_eq!(both.started, "2026-01-31T10:00:00Z");
    assert_eq!(left_out(&table), "1 x values of the column `tail us`");
    let plainly = plain(&table.replace("RWMIX70", "WRITE"));
    assert!(plainly.cells[0].to_string().ends_with("reads beside writes"), "{}", plainly.cells[0]);
    assert!(
        fault(&table.replace(",7000,", ",700,")).contains("MiB/s [last] is 700 MiB/s, and 70.0000 MiB/s by")
    );
    assert!(fault(&MIX_JSON.replace("\"3145728000\"", "\"-1\"")).contains("bytes `-1`: write a number"));
}

#[test]
fn rows_of_a_table_have_dates_and_ranges_and_no_column_is_lost() {
    let header = HEADER.replace("note", "date,load,note");
    let rows = "s,t,A,dd,,time,3,2,4,,,s,2026-01-31,0.5,\ns,t,A,dd,,time,5,,,,,s,2026-02-28T12:00:00,,\n";
    let text = format!("{header}{rows}");
    let results = plain(&text);
    assert_eq!((results.samples.len(), results.started.as_str()), (2, "2026-01-31T00:00:00Z"));
    assert_eq!(left_out(&text), "1 x values of the column `load`");
    let day = "2026-02-28T00:00:00Z".parse().expect("a moment");
    let options = ImportOptions { day: Some(day), ..ImportOptions::default() };
    let one = recorded(&text, &options);
    assert_eq!((one.samples.len(), one.started.as_str()), (1, "2026-02-28T12:00:00Z"));
    let date = ImportOptions { date: Some(day), ..ImportOptions::default() };
    let dated = recorded(&text.replace("2026-01-31", ""), &date);
    assert_eq!(dated.started, "2026-02-28T00:00:00Z");
    assert!(
        fault(&text.replace("2026-01-31", "31.1.26")).contains("results:2: date `31.1.26`: write 2026-01-31")
    );
    assert!(fault(&text.replace("3,2,4", "5,2,4")).contains("results:2: a value of 5 in the range 2 to 4"));
}

/// A directory as IO500 leaves it.
fn io500(parent: &std::path::Path, name: &str, rate: &str) -> PathBuf {
    let directory = parent.join(name);
    std::fs::create_dir(&directory).expect("space");
    let place = format!("/p/{name}");
    let write = |file: &str, text: &str| {
        std::fs::write(directory.join(file), text.replace("/p/", &format!("{place}/"))).expect("space");
    };
    write("ior-easy-write.txt", IOR_QUIET);
    write("mdtest-easy-write.txt", MDTEST_BOTH);
    write("ior-hard-read.txt", "");
    write("config.ini", "[global]\n");
    write(
        "result_summary.txt",
        &format!(
            "IO500 version io500-sc24_v1 (standard)\n[RESULT]       ior-easy-write        {rate} GiB/s : time 8.1 seconds \
             [INVALID]\n[RESULT]    mdtest-easy-write        4.000000 kIOPS : time 2.1 seconds\n\
             [      ]            timestamp        0.000000 kIOPS : time 0.001 seconds\n\
             [RESULT]                 find       12.500000 kIOPS : time 1.2 seconds\n"
        ),
    );
    directory
}

#[test]
fn a_directory_of_io500_is_one_target_and_its_runs_are_repeats() {
    let parent = tempfile::tempdir().expect("a directory");
    let names = ["2026.01.30-10.00.00", "2026.01.31-10.00.00"];
    let runs = names.map(|name| io500(parent.path(), name, "1.000000"));
    let options = ImportOptions::default();
    let imported = import(&runs, &options).expect("valid");
    let left = imported.left_out().to_vec();
    let record = parent.path().join("r.sqlite");
    imported.write(&record).expect("space");
    let results = crate::read(&record).expect("a valid record");
    assert_eq!(results.targets.iter().map(|target| target.path.as_str()).collect::<Vec<_>>(), ["/p"]);
    let stages: Vec<&str> = results.cells.iter().map(|cell| cell.stage.as_str()).collect();
    assert_eq!(stages, ["ior-easy", "mdtest-easy", "mdtest-easy", "find"], "{:?}", results.cells);
    assert!(near(&rates(&results, Phase::Write), &[1024.0, 1024.0]), "the summary is not a third");
    assert!(near(&rates(&results, Phase::CreateFiles), &[4000.0, 4000.0]));
    assert!(near(&rates(&results, Phase::Given), &[1000.0, 1000.0, 12_500.0, 12_500.0]));
    for part in ["files of IO500 (.ini)", "INVALID by its rules", "empty outputs"] {
        assert!(left.iter().any(|(what, count)| what.contains(part) && *count == 2), "{part}: {left:?}");
    }
    let other = io500(parent.path(), "other", "2.000000");
    let error = import(&[other], &options).expect_err("they contradict each other").to_string();
    let wanted = "ior-easy-write in IO500's summary is 2.0000 GiB/s, and 1.0000 GiB/s by this output";
    assert!(error.contains("ior-easy-write.txt: ") && error.contains(wanted), "{error}");
}

#[test]
fn the_summary_of_io500_alone_has_its_phases() {
    let text = "IO500 version io500-isc23 (standard)\n[RESULT]       ior-hard-read        2.000000 GiB/s : time 31.2 seconds\n\
                [RESULT]    mdtest-hard-stat        8.500000 kIOPS : time 2.0 seconds\n";
    let results = plain(text);
    assert!(
        near(&rates(&results, Phase::Read), &[2048.0]) && near(&rates(&results, Phase::StatFiles), &[8500.0])
    );
    assert_eq!(results.title, "IO500 io500-isc23");
    assert!(fault(&text.replace("GiB/s", "kIOPS")).contains("results:2: `kIOPS` is no unit of IO500"));
}

#[test]
fn almost_valid_outputs_of_every_form_never_panic() {
    let direction = "\"io_bytes\": 1048576, \"bw\": 1024, \"runtime\": 1000, \"total_ios\": 16";
    let document = fio("fio-3.33", "\"timestamp\": 9,", &[writes("", direction)]);
    let texts = [IOR_QUIET, IOR_3_0, MDTEST_BOTH, MIX_JSON, &document, &format!("{document}{document}")];
    let valid = texts.map(|text| text.as_bytes().to_vec()).to_vec();
    nilometer_fuzz::fuzz("import of every form", valid, |bytes: &[u8]| {
        let Ok(text) = std::str::from_utf8(bytes) else { return };
        let options = ImportOptions::default();
        drop(parse(text, &mut Gathered::new(&options)));
    });
}
