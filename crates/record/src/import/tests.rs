//! Replays outputs from the programs' documentation and from their users, and tests invalid files.

mod doubts;
mod kinds;

use super::*;
use nilometer_model::Phase;
use nilometer_plan::Results;

/// A replay: the run of IOR 4.0.0 that the documentation of DAOS 2.6 shows ("Run IOR & mdtest"), shortened.
const IOR: &str = "\
IOR-4.0.0: MPI Coordinated Test of Parallel I/O
Began               : Thu Mar 19 17:42:44 2026
TestID              : 0
StartTime           : Thu Mar 19 17:42:44 2026
Path                : /tmp/daos_dfuse_test/testfile

Options:
api                 : POSIX
access              : single-shared-file
ordering in a file  : sequential
tasks               : 10
xfersize            : 1 MiB
blocksize           : 2 GiB

Results:

access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter
------    ---------  ----       ----------  ---------- ---------  --------   --------   --------   --------   ----
Commencing write performance test: Thu Mar 19 17:42:44 2026
write     101.04     101.04     0.098970    2097152    1024.00    0.005258   202.69     0.003326   202.70     0
read      30912      30992      0.000321    2097152    1024.00    0.004187   0.660818   0.003185   0.662533   0
Max Write: 101.04 MiB/sec (105.95 MB/sec)

Summary of all tests:
Operation   Max(MiB)   Min(MiB)  Mean(MiB)     StdDev
write         101.04     101.04     101.04       0.00
";

/// A replay of the table that IOR's own tutorial shows (version 3.2, doc/sphinx/userDoc/tutorial.rst), with the
/// lines around it that the program prints.
const IOR_3: &str = "\
IOR-3.2.1: MPI Coordinated Test of Parallel I/O
access    bw(MiB/s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter
------    ---------  ---------- ---------  --------   --------   --------   --------   ----
write     2937.89    16384      1024.00    0.011841   5.56       4.93       5.58       0
read      2712.55    16384      1024.00    0.005214   6.04       5.08       6.04       3
remove    -          -          -          -          -          -          0.037706   0
Max Write: 2937.89 MiB/sec
";

/// A replay: mdtest 3.3.0 over three iterations, as the documentation of `EXAScaler` Cloud shows it.
const MDTEST: &str = "\
-- started at 07/11/2022 12:11:32 --

mdtest-3.3.0 was launched with 64 total task(s) on 4 node(s)
Command line used: /usr/bin/mdtest '-n' '2048' '-i' '3' '-d' '/mnt/exacloud/5a7b7a42728be0b5'
Path: /mnt/exacloud
64 tasks, 131072 files/directories

SUMMARY rate: (of 3 iterations)
   Operation                      Max            Min           Mean        Std Dev
   ---------                      ---            ---           ----        -------
   Directory creation        :       7345.338       3211.453       5963.545       1945.909
   File creation             :       6342.026       3364.939       5258.577       1343.513
   Tree removal              :          0.000          0.000          0.000          0.000
-- finished at 07/11/2022 12:12:32 --
";

/// A replay: mdtest 4.0.0, from the documentation of DAOS 2.6, and an operation that this version added.
const MDTEST_4: &str = "\
mdtest-4.0.0 was launched with 10 total task(s) on 2 node(s)
Command line used: ${HOME}/software/ior/bin/mdtest '-a' 'POSIX' '-F' '-d' '/tmp/daos_dfuse' '-w' '4096'
Path                : /tmp/daos_dfuse_test
10 tasks, 33340 files

SUMMARY rate: (of 1 iterations)
   Operation                     Max            Min           Mean        Std Dev
   File creation                2568.636       2568.636       2568.636          0.000
   Directory rename            37823.868      37823.868      37823.868          0.000
-- finished at 03/19/2026 17:55:20 --
";

/// A replay: rows that elbencho 3.1 wrote, from the tests of a program that reads them (`elbencho_harness`).
const ELBENCHO: &str = "\
ISO date,label,path type,paths,hosts,threads,dirs,files,file size,block size,direct IO,random,random aligned,IO depth,\
shared paths,truncate,operation,time ms [first],time ms [last],entries/s [first],entries/s [last],IOPS [first],IOPS [last],\
MiB/s [first],MiB/s [last],CPU% [first],CPU% [last],entries [first],entries [last],MiB [first],MiB [last],\
Ent lat us [min],Ent lat us [avg],Ent lat us [max],IO lat us [min],IO lat us [avg],IO lat us [max]
2026-05-22T16:09:38,,dir,1,1,8,1,4,268435456,1048576,1,0,,4,1,0,MKDIRS,2,5,3277,1466,,,,,8,7,8,8,,,812,1068,1378,,,
2026-05-22T16:09:38,,dir,1,1,8,1,4,268435456,1048576,1,0,,4,1,0,WRITE,2134,2784,11,11,3494,2941,3494,2941,10,9,25,32,7460,8192,\
290635,609112,867164,1661,9383,120903
2026-05-22T16:09:41,,dir,1,1,8,1,4,268435456,1048576,1,0,,4,1,0,SYNC,1,1,,,,,,,9,8,,,,,,,,,,
";

const HEADER: &str = "source,table,system,test,params,metric,value,value_min,value_max,sem,n,unit,note\n";

fn imported(text: &str, options: &ImportOptions) -> Result<ImportedResults, ImportError> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("results");
    std::fs::write(&path, text).expect("space");
    import(&[path], options)
}

/// Imports a text and reads the record as a report would.
fn recorded(text: &str, options: &ImportOptions) -> Results {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("r.sqlite");
    imported(text, options).expect("valid").write(&path).expect("space");
    crate::read(&path).expect("a valid record")
}

fn plain(text: &str) -> Results {
    recorded(text, &ImportOptions::default())
}

fn rates(results: &Results, phase: Phase) -> Vec<f64> {
    let of = results.samples.iter().filter(|measured| measured.key.phase == phase);
    of.map(|measured| {
        let sample = &measured.sample;
        if sample.bytes > 0 { sample.rate().0 / f64::from(1 << 20) } else { sample.operation_rate() }
    })
    .collect()
}

fn near(found: &[f64], wanted: &[f64]) -> bool {
    found.len() == wanted.len() && found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-4 * b)
}

#[test]
fn iors_tables_are_read() {
    let results = plain(IOR);
    assert!(
        near(&rates(&results, Phase::Write), &[101.04]) && near(&rates(&results, Phase::Read), &[30_912.0])
    );
    let name = results.cells[0].to_string();
    assert_eq!(
        name,
        "api POSIX, single-shared-file, order sequential, tasks 10, transfer size 1 MiB, block size 2 GiB"
    );
    assert_eq!(
        (results.targets[0].path.as_str(), results.title.as_str()),
        ("/tmp/daos_dfuse_test/testfile", "IOR 4.0.0")
    );
    let old = plain(IOR_3);
    assert!(near(&rates(&old, Phase::Write), &[2937.89]) && near(&rates(&old, Phase::Read), &[2712.55]));
    let csv = "access,bw(MiB/s),IOPS,Latency,block(KiB),xfer(KiB),open(s),wr/rd(s),close(s),total(s),numTasks,iter\n\
               write,2937.8900,2938.0,0.1,16384.0,1024.0,0.01,5.56,4.93,5.58,64,0\n";
    assert!(near(&rates(&plain(csv), Phase::Write), &[2937.89]));
    let json = r#"{"Version": "4.0.0", "tests": [{"TestID": 0, "Path": "/p/file", "Options": {"api": "POSIX", "tasks": 4},
                   "Results": [[{"access": "write", "bwMiB": 500.5, "blockKiB": 1024.0, "xferKiB": 256.0, "iops": 2002.0,
                   "totalTime": 0.25}]]}]}"#;
    assert!(near(&rates(&plain(json), Phase::Write), &[500.5]));
}

#[test]
fn mdtests_iterations_are_what_its_figures_say() {
    let results = plain(MDTEST);
    let made = rates(&results, Phase::MakeDirectories);
    assert!(near(&made, &[3211.453, 7345.338, 7333.844]), "{made:?}");
    assert!(rates(&results, Phase::RemoveTree).is_empty(), "it was not done");
    assert_eq!(results.cells[0].to_string(), "tasks 64, nodes 4, options -n 2048 -i 3");
    let four = plain(MDTEST_4);
    assert!(near(&rates(&four, Phase::CreateFiles), &[2568.636]));
    assert!(near(&rates(&four, Phase::Given), &[37_823.868]));
    assert_eq!(four.cells[1].to_string(), "tasks 10, nodes 2, options -a POSIX -F -w 4096, directory rename");
}

#[test]
fn elbenchos_rows_are_read() {
    let results = plain(ELBENCHO);
    assert!(near(&rates(&results, Phase::MakeDirectories), &[1466.0]));
    let written = rates(&results, Phase::Write);
    assert!((written[0] - 8192.0 / 2.784).abs() < 0.1, "{written:?}");
    assert_eq!(
        results.cells[0].to_string(),
        "hosts 1, threads 8, dirs 1, files 4, io depth 4, file size 256 MiB, block size 1 MiB, direct"
    );
    assert_eq!(results.started, "2026-05-22T16:09:38Z");
    let left = imported(ELBENCHO, &ImportOptions::default()).expect("valid");
    assert_eq!(left.left_out(), [("rows of SYNC".to_owned(), 1)]);
}

#[test]
fn fios_jobs_of_a_group_are_one_sample_and_percentiles_become_a_distribution() {
    let job = |bytes: u64| {
        format!(
            r#"{{"jobname": "w", "groupid": 0, "error": 0, "job options": {{"rw": "write", "bs": "64k", "directory": "/d"}},
            "usr_cpu": 25.0, "sys_cpu": 50.0, "read": {{}}, "write": {{"io_bytes": {bytes}, "total_ios": 1000, "runtime": 2000,
            "clat_ns": {{"N": 1000, "max": 9000, "percentile": {{"50.000000": 1000, "99.000000": 4000}}}}}}}}"#
        )
    };
    let [one, other] = [job(1 << 30), job(3 << 30)];
    let text = format!(
        "fio: this platform does not support something\n{{\n\"fio version\": \"fio-3.33\", \"timestamp_ms\": 1795660678079, \
         \"jobs\": [{one}, {other}]}}\n"
    );
    let results = plain(&text);
    assert!(
        near(&rates(&results, Phase::Write), &[2048.0]) && results.samples.len() == 1,
        "{:?}",
        results.samples
    );
    assert_eq!(results.samples[0].sample.user, nilometer_model::Nanos::from_millis(1000));
    let latency = results.latencies.values().next().expect("a distribution");
    assert_eq!(latency.count(), 2000);
    let near = |fraction: f64, wanted: f64| (latency.quantile(fraction) as f64 / wanted - 1.0).abs() < 0.04;
    assert!(near(0.5, 1000.0) && near(0.99, 4000.0) && near(1.0, 9000.0), "{latency:?}");
    let broken = text.replace("\"total_ios\": 1000", "\"total_ios\": -1000");
    let error = imported(&broken, &ImportOptions::default()).expect_err("no count").to_string();
    assert!(error.contains("results:4: ") || error.contains("results:5: "), "{error}");
}

#[test]
fn tidy_rows_are_runs_and_a_spread_over_nodes_is_none_of_runs() {
    let rows = "u,dd,A,dd write,180 GB,time,94,,,5.7,9,s,\nu,dd,A,dd write,180 GB,time,128,,,0.1,9,s,\n\
                u,dd,A,dd write,180 GB,time,128,,,0.1,9,s,printed twice in the source: count it once\n\
                u,dd,B,dd write,180 GB,throughput,2,,,,,GB/s,\nu,dd,B,capacity,,required,1,,,,,PB,\n\
                u,dd,B,dd write,,throughput,,1,2,,,GB/s,\n";
    let text = format!("{HEADER}{rows}");
    let results = plain(&text);
    assert_eq!(results.samples.len(), 3);
    assert_eq!(results.samples[0].sample.wall, nilometer_model::Nanos::from_millis(94_000));
    let runs = ImportOptions { errors_of_runs: true, ..ImportOptions::default() };
    assert_eq!(recorded(&text, &runs).samples.len(), 19, "nine for each row with an error");
    let left = imported(&text, &ImportOptions::default()).expect("valid");
    assert_eq!(left.left_out().iter().map(|(_, count)| count).sum::<u64>(), 3);
}

#[test]
fn what_belongs_together_in_several_rows_is_put_together() {
    let row =
        |metric: &str, value: f64, unit: &str| format!("n,2,GPFS,copy,4GB,{metric},{value},,,,,{unit},\n");
    let times = [("real", 161.46), ("user", 5.48), ("sys", 80.83), ("wait", 75.15)];
    let text: String = times.iter().map(|(metric, value)| row(metric, *value, "s")).collect();
    let results = plain(&format!("{HEADER}{text}"));
    let sample = &results.samples[0].sample;
    assert_eq!(results.samples.len(), 1);
    assert_eq!(
        (sample.user.0, sample.system.0, sample.wait().0),
        (5_480_000_000, 80_830_000_000, 75_150_000_000)
    );
    let extremes = [("max", 2742.0), ("min", 1896.0), ("mean", 2254.1)];
    let text: String = extremes.iter().map(|(metric, value)| row(metric, *value, "op/s")).collect();
    let found = rates(&plain(&format!("{HEADER}{text}")), Phase::Given);
    assert!(near(&found, &[1896.0, 2742.0, 2124.3]), "the fewest that have them: {found:?}");
}

#[test]
fn what_is_none_of_these_is_refused_with_its_line() {
    let row = "u,t,A,dd,p,time,1,,,,,s,\n";
    for (text, part) in [
        (String::new(), "none of these: JSON of fio"),
        ("hello\n".into(), "none of these"),
        (format!("{HEADER}{row}u,t,A,dd,p,time,1\n"), "results:3: 7 columns, and the header has 13"),
        (format!("{HEADER}{row}u,t,A,dd,p,time,NaN,,,,,s,\n"), "results:3: value `NaN`: write a number"),
        (format!("{HEADER}{row}u,t,A,dd,p,time,-1,,,,,s,\n"), "results:3: value `-1`"),
        (format!("{HEADER}{row}u,t,A,dd,p,time,1e300,,,,,s,\n"), "results:3: "),
        (format!("{HEADER}{row}u,t,A,dd,p,time,0,,,,,s,\n"), "results:3: a task of 0 s"),
        (format!("{HEADER}u,t,A,dd,p,throughput,1e40,,,,,GB/s,\n"), "results:2: "),
        (format!("{HEADER}u,t,\"A,dd,p,time,1,,,,,s,\n"), "results:2: "),
        (format!("{HEADER}u,t,{},dd,p,time,1,,,,,s,\n", "A".repeat(5000)), "results:2: a text of 5000 bytes"),
        (format!("{HEADER}u,t,A,dd,p,time,1,,,,,PB,\n"), "it has no usable result"),
        (HEADER.replace("params,", ""), "results:1: the column `params` is missing"),
        (
            IOR.split("read      30912")
                .next()
                .expect("a part")
                .replace("api  ", "Command line : ior -w -r\napi  "),
            "cut off: 0 of 1 rows of read",
        ),
        (
            IOR.split("      0.000321").next().expect("a part").into(),
            "results:21: cut off: a row of 3 figures",
        ),
        (
            IOR.split("write     101.04").next().expect("a part").into(),
            "cut off: IOR's table of results is missing",
        ),
        (
            IOR.replace("101.04     101.04     0.0", "-101.04     101.04     0.0"),
            "results:20: bw(MiB/s) is no number",
        ),
        (MDTEST.split("-- finished").next().expect("a part").into(), "cut off: `-- finished at`"),
        (
            MDTEST.replace("5963.545", "9963.545"),
            "results:11: a mean of 9963.545 between 3211.453 and 7345.338",
        ),
        (MDTEST.replace("5963.545", "inf"), "results:11: "),
        (
            "{\"fio version\": \"fio-3.33\", \"jobs\": [{\"jobname\":\n".into(),
            "cut off: the document does not end",
        ),
        ("{\"fio version\": 3,\n \"jobs\": []}".into(), "results:1: invalid type"),
        ("{\"fio version\": \"fio-9\", \"jobs\": []}".into(), "it has no usable result"),
        (ELBENCHO.replace(",2784,", ",99999999999999999999,"), "results:3: "),
    ] {
        let error = imported(&text, &ImportOptions::default()).expect_err("it is refused").to_string();
        assert!(error.contains(part), "`{part}` is missing in: {error}");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("results");
    std::fs::write(&path, b"source\n\xff\xfe").expect("space");
    let error = import(&[path], &ImportOptions::default()).expect_err("no text").to_string();
    assert!(error.contains("results:2: not UTF-8 text"), "{error}");
    let mut table = format!("{HEADER}u,t,A,dd,p,time,1,,,,,s,\n").into_bytes();
    table.extend(b"u,t,\xff,dd,p,time,1,,,,,s,\n");
    let path = directory.path().join("table");
    std::fs::write(&path, table).expect("space");
    let error = import(&[path], &ImportOptions::default()).expect_err("no text").to_string();
    assert!(error.contains("table:3: not UTF-8 text"), "{error}");
    let error = import(&[directory.path().into()], &ImportOptions::default()).expect_err("a directory");
    assert!(error.to_string().contains("a directory without results of IO500"), "{error}");
}

#[test]
fn a_table_may_begin_with_a_byte_order_mark_and_have_a_long_header() {
    let more: Vec<String> = (0..2000).map(|column| format!("more{column}")).collect();
    let header = format!("{},{}", HEADER.trim_end(), more.join(","));
    let table = format!("\u{feff}{header}\nu,t,A,dd,p,time,2,,,,,s,{}\n", ",".repeat(2000));
    let results = plain(&table);
    assert_eq!(results.samples[0].sample.wall, nilometer_model::Nanos::from_millis(2000));
    assert_eq!(results.title, "u", "the first column is read too");
}

#[test]
fn almost_valid_files_never_panic() {
    let valid = [IOR, MDTEST, MDTEST_4, ELBENCHO].map(|text| text.as_bytes().to_vec()).to_vec();
    nilometer_fuzz::fuzz("import", valid, |bytes: &[u8]| {
        let Ok(text) = std::str::from_utf8(bytes) else { return };
        let options = ImportOptions::default();
        let mut gathered = Gathered::new(&options);
        drop(parse(text, &mut gathered));
    });
    let table = format!("{HEADER}u,t,A,dd,p,max,3,,,,,s,\nu,t,B,dd,p,real,1,,,,,s,\n").into_bytes();
    nilometer_fuzz::fuzz("import of a table", vec![table], |bytes: &[u8]| {
        let options = ImportOptions::default();
        drop(tidy::parse(bytes, &mut Gathered::new(&options)));
    });
}
