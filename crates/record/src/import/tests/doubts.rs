//! Results that would be counted twice, mixed with others, or lost without a word.

use super::*;

const IOR_4: &str = "IOR-4.0.0: MPI Coordinated Test of Parallel I/O
Began               : Mon Jan  5 10:00:00 2026
Command line        : ior -a POSIX -t 1m -b 1g -w -F -o /data/f
StartTime           : Mon Jan  5 10:00:00 2026
Path                : /data/f.00000000

Options:
api                 : POSIX
access              : file-per-process
tasks               : 8
xfersize            : 1 MiB
blocksize           : 1 GiB

Results:

access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter
------    ---------  ----       ----------  ---------- ---------  --------   --------   --------   --------   ----
write     1024.00    1024.10    0.000977    1048576    1024.00    0.000200   8.00       0.000100   8.00       0
";

const IOR_4_JSON: &str = r#"{"Version": "4.0.0", "Began": "Mon Jan  5 10:00:00 2026",
 "Command line": "ior -a POSIX -t 1m -b 1g -w -F -o /data/f", "tests": [{"StartTime": "Mon Jan  5 10:00:00 2026",
 "Path": "/data/f.00000000", "Options": {"api": "POSIX", "access": "file-per-process", "tasks": 8,
 "xfersize": "1 MiB", "blocksize": "1 GiB"}, "Results": [[{"access": "write", "bwMiB": 1024.0042,
 "blockKiB": 1048576.0, "xferKiB": 1024.0, "iops": 1024.1, "wrRdTime": 8.0, "totalTime": 7.99997}]]}]}"#;

/// Imports several files, of which those with the same text and place in `names` are one file.
fn together(files: &[(&str, &str)]) -> ImportedResults {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name);
    for (name, text) in files {
        std::fs::write(path(name), text).expect("space");
    }
    let paths: Vec<_> = files.iter().map(|(name, _)| path(name)).collect();
    import(&paths, &ImportOptions::default()).expect("valid")
}

fn fio(options: &str, written: u64) -> String {
    format!(
        r#"{{"fio version": "fio-3.34", "timestamp_ms": {written}, "jobs": [{{"jobname": "test", "elapsed": 11,
        "job options": {{"rw": "write", "size": "1g", "directory": "/data", {options}}}, "write":
        {{"io_bytes": 10485760, "runtime": 10000, "total_ios": 2560}}}}]}}"#
    )
}

fn cells_of(texts: &[String]) -> Vec<String> {
    let names: Vec<String> = (0..texts.len()).map(|index| format!("f{index}")).collect();
    let files: Vec<(&str, &str)> =
        names.iter().zip(texts).map(|(name, text)| (name.as_str(), text.as_str())).collect();
    together(&files).head.cells.iter().map(ToString::to_string).collect()
}

#[test]
fn a_run_that_is_given_twice_is_no_repeat() {
    let run = fio(r#""bs": "4k""#, 1_700_000_000_000);
    let table = format!("{HEADER}u,t,A,dd,p,time,1,,,,,s,\nu,t,A,dd,p,time,1,,,,,s,\n");
    for files in [
        [("a", run.as_str()), ("a", run.as_str())],
        [("a", run.as_str()), ("copy", run.as_str())],
        [("a", IOR_4), ("a.json", IOR_4_JSON)],
    ] {
        let found = together(&files);
        assert_eq!(found.samples(), 1, "{files:?}");
        assert_eq!(found.left_out(), [("the same run, given twice".to_owned(), 1)]);
    }
    let found = together(&[("t", &table), ("t", &table)]);
    assert_eq!((found.samples(), found.left_out()[0].1), (2, 2), "rows of one table are repeats");
    let later = fio(r#""bs": "4k""#, 1_700_000_100_000);
    assert_eq!(together(&[("a", &run), ("b", &later)]).samples(), 2, "another run");
}

#[test]
fn options_of_fio_make_tests_and_their_spelling_does_not() {
    let of = |options: &str| fio(options, 1_700_000_000_000);
    let texts =
        [of(r#""bs": "4k""#), of(r#""bs": "4k", "rate": "10m""#), of(r#""bs": "4k", "verify": "md5""#)];
    assert_eq!(
        cells_of(&texts),
        [
            "write, block size 4k, size 1G",
            "write, block size 4k, size 1G, rate 10M",
            "write, block size 4k, size 1G, verify md5"
        ]
    );
    let texts =
        [of(r#""bs": "4096""#), of(r#""bs": "4K", "randseed": "3", "write_bw_log": "x", "filename": "y""#)];
    assert_eq!(cells_of(&texts), ["write, block size 4k, size 1G"]);
}

#[test]
fn options_that_only_the_command_line_of_ior_has_make_tests() {
    let synced = IOR_4.replace("-w -F", "-w -F -e -B");
    let cells = cells_of(&[IOR_4.to_owned(), synced]);
    assert_eq!(cells.len(), 2);
    assert!(cells[1].ends_with("block size 1 GiB, direct, fsync"), "{cells:?}");
}

#[test]
fn limits_of_elbencho_make_tests() {
    let row = |command: &str| format!("WRITE,900,1000,1024,1024,{command}\n");
    let header = "operation,time ms [first],time ms [last],MiB [last],entries [last],command\n";
    let text = format!("{header}{}{}", row("elbencho -w /d/f"), row("elbencho -w --limitwrite 1m /d/f"));
    assert_eq!(cells_of(&[text]).len(), 2);
}

#[test]
fn tables_of_mdtest_for_other_numbers_of_tasks_are_other_tests() {
    let table = |tasks: u32| {
        format!(
            "{tasks} tasks, {tasks}000 files\n\nSUMMARY rate: (of 1 iterations)\n   Operation  Max  Min  Mean  Std Dev\n   \
             File creation             :       1000.000       1000.000       1000.000          0.000\n\n"
        )
    };
    let text = format!(
        "-- started at 01/01/2026 10:00:00 --\n\nmdtest-3.3.0 was launched with 4 total task(s) on 1 node(s)\n\
         Command line used: mdtest '-n' '1000' '-F' '-f' '1' '-l' '4' '-s' '3'\nPath: /data\n{}{}\
         -- finished at 01/01/2026 10:00:05 --\n",
        table(1),
        table(4)
    );
    let cells = cells_of(&[text]);
    assert!(
        cells.len() == 2 && cells[0].starts_with("tasks 1,") && cells[1].starts_with("tasks 4,"),
        "{cells:?}"
    );
}

#[test]
fn a_time_and_a_rate_of_one_test_are_two_figures() {
    let text = format!("{HEADER}s,1,A,copy,4GB,time,40,,,,,s,\ns,1,A,copy,4GB,throughput,100,,,,,MB/s,\n");
    let cells = cells_of(&[text]);
    assert_eq!(cells.len(), 2, "{cells:?}");
    assert!(cells[1].contains("throughput"), "{cells:?}");
}

#[test]
fn rows_that_make_no_figure_alone_are_counted() {
    let rows = "s,1,A,w,x,max,120,,,,,MB/s,\ns,1,A,w,x,min,80,,,,,MB/s,\ns,1,A,v,x,user,1,,,,,s,\n\
                s,1,A,v,x,sys,2,,,,,s,\ns,1,A,u,x,real,3,,,,,s,\ns,1,A,u,x,real,3,,,,,s,\ns,1,A,u,x,user,1,,,,,s,\n";
    let found = together(&[("t", &format!("{HEADER}{rows}"))]);
    let left: Vec<String> = found.left_out().iter().map(|(why, count)| format!("{count} x {why}")).collect();
    assert_eq!(
        left,
        [
            "2 x `max` and `min` of a test without its `mean`",
            "1 x rows of `sys`, which are not as many as those of `real`",
            "2 x rows of `user`, which are not as many as those of `real`"
        ]
    );
    assert_eq!(found.samples(), 2);
}

#[test]
fn complaints_of_ior_are_told_and_wrong_data_are_refused() {
    let with = |line: &str| IOR_4.replace("write     1024.00", &format!("{line}\nwrite     1024.00"));
    let found = together(&[("a", &with("ior ERROR: write() returned -1, errno 28 (aiori-POSIX.c:500)"))]);
    let why = "`ior ERROR: write() returned -1, errno 28 (aiori-POSIX.c:500)` of IOR";
    assert_eq!(found.left_out(), [(why.to_owned(), 1)]);
    let wrong = with("WARNING: incorrect data on read (5 errors found).");
    let error = imported(&wrong, &ImportOptions::default()).expect_err("refused").to_string();
    assert!(error.contains("results:18: IOR found wrong data"), "{error}");
}

#[test]
fn a_killed_ior_without_a_phase_on_its_line_should_have_read_too() {
    let text = IOR_4.replace("-w -F", "-F");
    let error = imported(&text, &ImportOptions::default()).expect_err("refused").to_string();
    assert!(error.contains("cut off: 0 of 1 rows of read"), "{error}");
}

#[test]
fn a_file_without_a_result_says_what_it_has() {
    let text = format!("{HEADER}u,t,A,dd,p,time,1,,,,,PB,\n");
    let error = imported(&text, &ImportOptions::default()).expect_err("refused").to_string();
    assert!(
        error.ends_with("no usable result; left out: 1 x rows in `PB`, which is no time and no rate"),
        "{error}"
    );
}

#[test]
fn results_of_other_programs_beside_ior_are_counted() {
    for (line, program) in [
        ("Timing buffered disk reads: 600 MB in  3.00 seconds = 200.00 MB/sec", "hdparm"),
        ("sent 1,073 bytes  received 35 bytes  214,748,371.80 bytes/sec", "rsync"),
        ("11219.1250 MB /  10.00 sec = 9411.1234 Mbps 20 %TX 45 %RX 0 retrans 0.10 msRTT", "nuttcp"),
        ("sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)", "sysbench"),
        ("1073741824 bytes transferred in 0.512345 secs (2095739772 bytes/sec)", "dd"),
        ("iperf Done.", "iperf3"),
    ] {
        let found = together(&[("log", &format!("{IOR_4}{line}\n"))]);
        assert_eq!(found.left_out(), [(format!("results of {program}, which import does not read"), 1)]);
    }
}

#[test]
fn targets_that_one_name_makes_one_are_named() {
    let row = |system: &str| format!("u,t,{system},dd,p,time,1,,,,,s,\n");
    let options = ImportOptions { target: Some("/x".into()), ..ImportOptions::default() };
    let left = |text: &str| imported(text, &options).expect("valid").left_out().to_vec();
    let both = left(&format!("{HEADER}{}{}", row("A"), row("B")));
    let wanted = ["A", "B"].map(|name| (format!("the name of `{name}`, now a part of `/x` (--target)"), 1));
    assert_eq!(both, wanted);
    assert!(left(&format!("{HEADER}{}{}", row("A"), row("A"))).is_empty(), "one target has another name");
}
