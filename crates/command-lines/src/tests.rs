//! Whole lines, from their words to the plan of their cells.

use std::fs;

use nilometer_model::Bytes;

use crate::{
    line::{ForeignLine, LineAccess, LineFiles, LineMpiIo, LineRate, LineSync},
    parse::{ReadLine, parse},
    public_lines::{DD, ELBENCHO, FIO, IOR, IOZONE, LineCase, MDTEST},
    tree_line::TreeLine,
};

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn short(bytes: Bytes) -> String {
    let units = [(30, "G"), (20, "M"), (10, "k")];
    let found = units.into_iter().find(|(power, _)| bytes.0 > 0 && bytes.0.is_multiple_of(1 << power));
    found.map_or_else(|| bytes.0.to_string(), |(power, unit)| format!("{}{unit}", bytes.0 >> power))
}

/// A line as its cell: `write 1G by 1M x4, depth 16, direct, synced at close, 60 s in /data`.
fn cell(line: &ForeignLine) -> String {
    let mut parts = match &line.tree {
        Some(tree) => [tree_parts(tree), time_part(line)].concat(),
        None => data_parts(line),
    };
    if line.workers > 1 {
        parts[0] = format!("{} x{}", parts[0], line.workers);
    }
    format!("{} in {}", parts.join(", "), line.directory.display())
}

fn data_parts(line: &ForeignLine) -> Vec<String> {
    let way = match line.way {
        LineAccess::Write => "write".to_owned(),
        LineAccess::Read => "read".to_owned(),
        LineAccess::RandomWrite => "random write".to_owned(),
        LineAccess::RandomRead => "random read".to_owned(),
        LineAccess::RandomMix(percent) => format!("mix {percent}"),
    };
    let mut parts = vec![format!("{way} {} by {}", short(line.size), short(line.block))];
    parts.extend((line.depth > 1).then(|| format!("depth {}", line.depth)));
    let flags = [
        (line.direct, "direct"),
        (line.durable == LineSync::AtClose, "synced at close"),
        (line.durable == LineSync::Every(1), "synced each"),
        (line.zeros, "zeros"),
        (line.is_uniform, "uniform"),
        (line.files == LineFiles::Segmented, "segmented"),
        (line.files == LineFiles::Strided, "strided"),
        (line.mpi_io == Some(LineMpiIo::Independent), "MPI-IO"),
        (line.mpi_io == Some(LineMpiIo::Collective), "MPI-IO together"),
    ];
    parts.extend(flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name.to_owned()));
    parts.extend((line.file_count > 1).then(|| format!("{} files", line.file_count)));
    parts.extend(line.rate.map(|rate| match rate {
        LineRate::Operations(count) => format!("{count}/s"),
        LineRate::Bytes(bytes) => format!("{}B/s", short(Bytes(bytes))),
    }));
    parts.extend(time_part(line));
    parts
}

/// `60 s`, or `60 s based` if the cell goes on until then; nothing without a time.
fn time_part(line: &ForeignLine) -> Vec<String> {
    let based = if line.is_time_based { " based" } else { "" };
    line.time.iter().map(|time| format!("{:.0} s{based}", time.seconds())).collect()
}

/// `tree 2/3 of 76 files, unique, 3901 each, shift 1, C T`.
fn tree_parts(tree: &TreeLine) -> Vec<String> {
    let TreeLine { levels, branching, items, kind, .. } = tree;
    let mut parts = vec![format!("tree {levels}/{branching} of {items} {kind}")];
    parts.extend(tree.is_unique.then(|| "unique".to_owned()));
    parts.extend((tree.file_size.0 > 0).then(|| format!("{} each", short(tree.file_size))));
    parts.extend((tree.shift > 0).then(|| format!("shift {}", tree.shift)));
    parts.extend((!tree.phases.is_empty()).then(|| tree.phases.join(" ")));
    parts
}

/// The options that a cell lacks, without their effects.
fn left_out(line: &ForeignLine) -> String {
    let names: Vec<&str> = line
        .left_out
        .not_taken
        .iter()
        .map(|left| left.split_once(": ").map_or(left.as_str(), |(name, _)| name))
        .collect();
    names.join(" | ")
}

const RANDOM_SYNC: &str = "when random writes are synced";

fn check(cases: &[LineCase]) {
    for (line, expected, left) in cases {
        let ReadLine { line: read, .. } = parse(&words(line)).expect(line);
        assert_eq!(cell(&read), *expected, "{line}");
        assert_eq!(left_out(&read), left.replace("SYNC", RANDOM_SYNC), "{line}");
        let left = &read.left_out.not_taken;
        assert!(left.iter().all(|left| left.contains(": ")), "each says what it changes: {left:?}");
    }
}

#[test]
fn lines_of_fio_become_cells() {
    check(FIO);
}

#[test]
fn lines_of_dd_and_ior_become_cells() {
    check(DD);
    check(IOR);
}

#[test]
fn lines_of_mdtest_elbencho_and_iozone_become_cells() {
    check(MDTEST);
    check(ELBENCHO);
    check(IOZONE);
    let all = [FIO, DD, IOR, MDTEST, ELBENCHO, IOZONE].map(<[LineCase]>::len);
    assert!(all.iter().sum::<usize>() >= 60, "{all:?}");
}

#[test]
fn lines_that_have_no_cell_are_refused_with_their_place_and_a_choice() {
    for (line, part) in [
        (
            "gdsio -f /x",
            "`gdsio` (word 1): write a line of fio, dd, ior, mdtest, elbencho, iozone, also behind mpirun",
        ),
        ("mpirun -n 2 ./a.out", "`./a.out` (word 4): write a line of fio"),
        ("srun -n 1536 ./ior -t 2m", "srun with 1536 processes: write 1024 at the most"),
        (
            "fio --name=a --filename=/dev/vdb --rw=read --size=1g",
            "/dev/vdb is a device: Nilometer measures files",
        ),
        (
            "fio --name=a --rw=trim --size=1m",
            "`--rw=trim` (word 3): Nilometer has no such job: write one of read, write",
        ),
        (
            "fio --name=a --rw=write --iodeph=4",
            "`--iodeph=4` (word 4): fio has no such option: write --iodepth",
        ),
        ("fio --name=a --size=50%", "write bytes, such as 4g"),
        ("fio --name=a --rw=write", "does not say how much"),
        ("fio --rw=write --size=1x", "`--size=1x` (word 3): `1x`: write a size"),
        ("fio --rw=write --size=1m --numjobs=99999", "1024 at the most"),
        ("fio --bsrange=64k-4k --size=1m", "write the smaller size first"),
        ("fio --client=host job.fio", "write the line that one machine runs by itself"),
        ("fio gone.fio", "gone.fio: a job file"),
        ("dd if=image.iso of=/dev/sdb bs=4M count=1", "/dev/sdb is a device"),
        ("dd bs=1M count=1", "write of=FILE"),
        ("dd if=/dev/zero of", "`of` (word 3): dd has key=value: write one of if, of, bs"),
        ("dd if=/dev/zero of=/x/f bz=1M", "`bz=1M` (word 4): dd has no such operand"),
        ("dd if=/dev/zero of=/x/f bs=1M count=-1", "`count=-1` (word 5): `-1`: write a size"),
        ("ior -t", "`-t` (word 2): its value is missing"),
        ("ior -f gone.ior", "`-f gone.ior` (word 2): gone.ior"),
        ("ior --posix.odirekt", "write --posix.odirect"),
        ("mdtest -F", "write mdtest -n or -I"),
        ("mdtest -d /a@/b -n 1", "`-d /a@/b` (word 2): write one directory"),
        ("mdtest -n 99999999999", "10000000 at the most"),
        (
            "elbencho --hosts a,b -w -s 1g /x/f",
            "`--hosts a,b` (word 2): write the line that one machine runs",
        ),
        ("elbencho -w -s 1g /dev/nvme0n1", "/dev/nvme0n1 is a device"),
        ("elbencho -d -t 4 -n 2 /x", "write -w or -r"),
        ("elbencho -w -s 1g", "write the directory or the file"),
        ("iozone -a", "iozone without -s, the size of its file"),
        ("iozone -a -s 4G -q 256 -y 4", "iozone without -r, the size of its records"),
        ("iozone -s 1g -r 1m -i 3", "no counterpart here: write one of 0, 1, 2"),
        ("iozone -s 1g -r 1m -i 99", "-i 99: iozone has no such test"),
    ] {
        let error = format!("{:#}", parse(&words(line)).expect_err(line));
        assert!(error.contains(part), "{part} in {error}");
    }
}

#[test]
fn files_of_fio_and_ior_are_read() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let file = |name: &str, text: &str| {
        let path = place.path().join(name);
        fs::write(&path, text).expect("space");
        path.display().to_string()
    };
    let jobs = file(
        "jobs.fio",
        "[global]\nioengine=libaio\nbs=4k\niodepth=256\nsize=2g\nruntime=30s\ntime_based\ndirect=1\ndirectory=/w\nstonewall\n\n[random_read]\nrw=randread\n\n[random_write]\nrw=randwrite\n",
    );
    let line = parse(&words(&format!("fio --output=log {jobs}"))).expect("valid").line;
    assert_eq!(cell(&line), "random read 2G by 4k, depth 256, direct, 30 s based in /w");
    assert_eq!(
        (left_out(&line).as_str(), line.jobs.as_slice()),
        ("job `random_write`", &["random_read".to_owned()][..])
    );
    let second = parse(&words(&format!("fio --section=random_write {jobs}"))).expect("valid").line;
    assert_eq!(cell(&second), "random write 2G by 4k, depth 256, direct, synced at close, 30 s based in /w");
    let config = file(
        "c.ior",
        "IOR START\n api=MPIIO\n testFile=/w/f\n blockSize=64m\n transferSize=4m\n writeFile=1\n readFile=0\n collective=1\n lustreStripeCount=4\nRUN\n blockSize=1g\nRUN\nIOR STOP\n",
    );
    let line = parse(&words(&format!("mpirun -n 2 ior -t 1m -f {config}"))).expect("valid").line;
    assert_eq!(cell(&line), "write 64M by 4M x2, segmented, MPI-IO together in /w");
    assert_eq!(left_out(&line), format!("lustreStripeCount=4 | blockSize=1g ({config}, line 11)"));
}

/// The report lists words that change nothing too: no word of a line disappears without a note.
#[test]
fn what_changes_nothing_is_named() {
    let line =
        "time mpirun --hostfile hosts --map-by node --bind-to core -np 2 ior -w -t 64k -b 1m -F -k -o /x/f";
    let read = parse(&words(line)).expect("valid");
    let expected = ["time", "--hostfile hosts", "--map-by node", "--bind-to core", "-k"];
    assert_eq!(read.line.left_out.without_effect, expected);
}

/// Checks cells of lines, without the options that they lack.
fn cells(cases: &[(&str, &str)]) {
    for (line, expected) in cases {
        assert_eq!(cell(&parse(&words(line)).expect(line).line), *expected, "{line}");
    }
}

#[test]
fn the_strongest_sync_counts_in_any_order() {
    cells(&[
        (
            "dd if=/dev/zero of=/x/f bs=1M count=4 oflag=dsync conv=fdatasync",
            "write 4M by 1M, synced each, zeros in /x",
        ),
        (
            "fio --rw=write --bs=4k --size=1m --fdatasync=1 --end_fsync=1 --directory=/x",
            "write 1M by 4k, synced each in /x",
        ),
        ("fio --rw=write --bs=4k --size=1m --fsync=1 --fsync=0 --directory=/x", "write 1M by 4k in /x"),
        ("ior -w -t 1m -b 4m -Y -e -o /x/f", "write 4M by 1M, synced each in /x"),
    ]);
}

#[test]
fn operands_of_dd_count_at_their_end() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let small = place.path().join("small");
    fs::write(&small, [0; 2048]).expect("space");
    fs::write(place.path().join("old"), [0; 8192]).expect("space");
    let there = place.path().display();
    for (line, expected) in [
        (
            "dd if=/dev/zero of=/x/f bs=1M count=4 iflag=direct".to_owned(),
            "write 4M by 1M, zeros in /x".to_owned(),
        ),
        ("dd if=/x/f of=/dev/null bs=1M count=4 oflag=direct".to_owned(), "read 4M by 1M in /x".to_owned()),
        (
            "dd if=/dev/zero of=/x/f obs=1M ibs=1k count=2048".to_owned(),
            "write 2M by 1M, zeros in /x".to_owned(),
        ),
        (format!("dd if={there}/small of=/x/f bs=1k count=4000000"), "write 2k by 1k in /x".to_owned()),
        (format!("dd if={there}/small of={there}/old bs=1k"), format!("write 2k by 1k in {there}")),
    ] {
        assert_eq!(cell(&parse(&words(&line)).expect(&line).line), expected, "{line}");
    }
}

#[test]
fn values_of_fio_for_two_directions_count_by_direction() {
    cells(&[
        ("fio --rate=2m,20m --rw=write --bs=4k --size=1m --directory=/x", "write 1M by 4k, 20MB/s in /x"),
        ("fio --rate=2m,20m --rw=read --bs=4k,64k --size=1m --directory=/x", "read 1M by 4k, 2MB/s in /x"),
        ("fio --rate=,1m --rw=write --bs=4k,64k --size=1m --directory=/x", "write 1M by 64k, 1MB/s in /x"),
        ("fio --rate=,1m --rw=read --blocksize=4k-64k --size=1m --directory=/x", "read 1M by 4k in /x"),
        ("fio --rw=write --blocksize=4k-64k --size=1m --directory=/x", "write 1M by 64k in /x"),
        (
            "fio --rate_iops=300 --rw=randrw --bs=4k --size=1m --directory=/x",
            "mix 50 1M by 4k, synced at close, 600/s in /x",
        ),
    ]);
}

#[test]
fn options_with_values_take_them_and_blocks_are_no_larger_than_files() {
    cells(&[
        (
            "elbencho -w -r --rand --randamount 1g --fadv seq --madv seq -s 4m -b 1m /x/f",
            "random write 4M by 1M, synced at close in /x",
        ),
        (
            "elbencho -w --flock range --rwmixthrpct 50 --nosvcshare --foreground --opsloglock -s 1m /x/f",
            "write 1M by 1M in /x",
        ),
        ("elbencho -w -s 64k -b 1m /x/f", "write 64k by 64k in /x"),
        ("ior -w -G 7 -t 4Mi -b 1Mi -o /x/f", "write 1M by 1M in /x"),
    ]);
    let line = "mdtest --dataPacketType incompressible -n 4 -F -d /x";
    assert_eq!(left_out(&parse(&words(line)).expect(line).line), "--dataPacketType incompressible");
    let line = "elbencho -w -s 1m /x/f[0-18446744073709551615]";
    let error = parse(&words(line)).expect_err(line).to_string();
    assert!(error.contains("names too many files"), "{error}");
}
