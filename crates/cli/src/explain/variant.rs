//! The cell of a line, and the same cell with one assumption changed at a time, as stages of a plan.

use nilometer_command_lines::{ForeignLine, LineAccess, LineFiles, LineMpiIo, LineRate, LineSync, TreeLine};
use nilometer_model::Bytes;

use super::tree_variant::{can_spread, flat, is_flat, keys, spread};

/// A cell beside the line's own.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LineVariant {
    /// Its difference from the line; the stage's name.
    pub(super) name: &'static str,
    pub(super) line: ForeignLine,
}

/// The line's own cell.
pub(super) const AS_THE_LINE_SAYS: &str = "as the line says";
/// All changes that make a figure one of the storage.
pub(super) const ALL: &str = "all of these";

/// The operations in flight if the line has one at a time.
const DEPTH: u32 = 16;
/// More operations a second than any storage completes: a time limit ends them.
const OPERATIONS_A_SECOND: f64 = 1e7;

/// The line's cell, each assumption changed alone, and all of them.
pub(super) fn variants(line: &ForeignLine) -> Vec<LineVariant> {
    let mut variants = vec![LineVariant { name: AS_THE_LINE_SAYS, line: line.clone() }];
    let mut all = line.clone();
    for (name, turn) in assumptions(line) {
        let mut turned = line.clone();
        turn(&mut turned);
        turn(&mut all);
        variants.push(LineVariant { name, line: turned });
    }
    if variants.len() > 2 {
        variants.push(LineVariant { name: ALL, line: all });
    }
    variants
}

type Turn = fn(&mut ForeignLine);

/// Assumptions of the line that another might not make.
fn assumptions(line: &ForeignLine) -> Vec<(&'static str, Turn)> {
    if let Some(tree) = &line.tree {
        return of_tree(line, tree);
    }
    let mut found: Vec<(&'static str, Turn)> = Vec::new();
    if line.rate.is_some() {
        found.push(("without the limit of its rate", |line| line.rate = None));
    }
    found.extend(of_sync(line));
    found.extend(of_calls(line));
    if line.writes() && line.zeros {
        found.push(("data that do not compress", |line| line.zeros = false));
    }
    if line.workers > 1 {
        found.push(("one worker", |line| {
            line.workers = 1;
            line.files = LineFiles::Own;
            line.mpi_io = line.mpi_io.map(|_| LineMpiIo::Independent);
        }));
    }
    found
}

/// The other choice about when written data are synced.
fn of_sync(line: &ForeignLine) -> Option<(&'static str, Turn)> {
    if line.way != LineAccess::Write {
        return None;
    }
    match line.durable {
        LineSync::Never => Some(("synced when it is closed", |line| line.durable = LineSync::AtClose)),
        LineSync::Every(_) => Some(("synced when it is closed, and not meanwhile", |line| {
            line.durable = LineSync::AtClose;
        })),
        LineSync::AtClose => None,
    }
}

/// The other ways to move data. MPI-IO opens no file past the page cache, and makes one call after the other.
fn of_calls(line: &ForeignLine) -> Vec<(&'static str, Turn)> {
    if line.mpi_io.is_some() {
        return vec![("by calls of POSIX", |line| line.mpi_io = None)];
    }
    let cache: (&'static str, Turn) = if line.direct {
        ("through the page cache", |line| line.direct = false)
    } else {
        ("past the page cache", |line| line.direct = true)
    };
    let depth: (&'static str, Turn) = if line.depth > 1 {
        ("one operation at a time", |line| line.depth = 1)
    } else {
        ("16 operations in flight", |line| line.depth = DEPTH)
    };
    if line.is_by_processes { vec![cache] } else { vec![cache, depth] }
}

/// Assumptions of a line of mdtest.
fn of_tree(line: &ForeignLine, tree: &TreeLine) -> Vec<(&'static str, Turn)> {
    let mut found: Vec<(&'static str, Turn)> = Vec::new();
    if tree.kind != "directories" {
        found.push(if tree.file_size.0 == 0 {
            ("4 KiB in each file", |line| turn_tree(line, |tree| TreeLine { file_size: Bytes(4096), ..tree }))
        } else {
            ("empty files", |line| turn_tree(line, |tree| TreeLine { file_size: Bytes(0), ..tree }))
        });
    }
    if !is_flat(tree) {
        found.push(("all in one directory", |line| turn_tree(line, flat)));
    } else if can_spread(tree) {
        found.push(("spread over 17 directories", |line| turn_tree(line, spread)));
    }
    if line.workers > 1 {
        let turned: (&'static str, Turn) = if tree.is_unique {
            ("all workers in one tree", |line| turn_tree(line, |tree| TreeLine { is_unique: false, ..tree }))
        } else {
            ("a tree for each worker", |line| turn_tree(line, |tree| TreeLine { is_unique: true, ..tree }))
        };
        found.push(turned);
        found.push(if tree.shift == 0 {
            ("files of another worker", |line| turn_tree(line, |tree| TreeLine { shift: 1, ..tree }))
        } else {
            ("files of the worker itself", |line| turn_tree(line, |tree| TreeLine { shift: 0, ..tree }))
        });
        found.push(("one worker", |line| {
            line.workers = 1;
            turn_tree(line, |tree| TreeLine { shift: 0, ..tree });
        }));
    } else {
        found.push(("4 workers at once", |line| line.workers = 4));
    }
    found
}

fn turn_tree(line: &mut ForeignLine, turn: fn(TreeLine) -> TreeLine) {
    line.tree = line.tree.take().map(turn);
}

/// All variants as a plan of one round: `explain` runs it again for each round.
pub(super) fn plan(variants: &[LineVariant]) -> String {
    let mut text =
        "title = \"a line of another program\"\nrepeats = 1\nreserve = \"0 B\"\ntime_limit = \"10000 h\"\n"
            .to_owned();
    for variant in variants {
        text.push_str(&stage(variant));
    }
    text
}

fn stage(variant: &LineVariant) -> String {
    let LineVariant { name, line } = variant;
    let mut keys = vec!["\n[[stage]]".to_owned(), format!("name = \"{name}\"")];
    // Behind a launcher each worker of the line is a process here too.
    let workers = if line.is_by_processes { "processes" } else { "workers" };
    keys.push(format!("{workers} = {}", line.workers));
    if line.mpi_io.is_some() {
        keys.push("engine = \"mpi_io\"".to_owned());
    } else if line.depth > 1 {
        keys.extend(["engine = \"io_uring\"".to_owned(), format!("depth = {}", line.depth)]);
    }
    if line.zeros {
        keys.push("data = \"zeros\"".to_owned());
    }
    keys.extend(line.rate.map(|rate| match rate {
        LineRate::Operations(count) => format!("rate_iops = {count}"),
        LineRate::Bytes(bytes) => format!("rate = \"{bytes} B/s\""),
    }));
    keys.extend(line.time.map(|time| format!("time_limit = \"{} ms\"", time.0.div_ceil(1_000_000))));
    if line.mpi_io == Some(LineMpiIo::Collective) {
        keys.extend(["[stage.mpi_io]".to_owned(), "calls = \"collective\"".to_owned()]);
    }
    keys.extend(workload(line));
    keys.join("\n") + "\n"
}

fn workload(line: &ForeignLine) -> Vec<String> {
    if let Some(tree) = &line.tree {
        return keys(tree);
    }
    let ForeignLine { block, size, .. } = line;
    let access = if line.direct { "direct" } else { "buffered" };
    let (kind, own) = match line.way {
        LineAccess::Write => ("stream", vec![synced(line.durable), "read_back = false".to_owned()]),
        LineAccess::Read => ("stream", Vec::new()),
        LineAccess::RandomRead => ("random", random(line, "read")),
        LineAccess::RandomWrite => ("random", random(line, "write")),
        LineAccess::RandomMix(percent) => {
            ("random", [random(line, "mix"), vec![format!("reads = {percent}")]].concat())
        }
    };
    let mut keys = vec![
        format!("[stage.workload.{kind}]"),
        format!("file_size = \"{} B\"", size.0),
        format!("block_size = \"{} B\"", block.0),
        format!("access = \"{access}\""),
    ];
    keys.extend(own);
    if kind == "stream" {
        keys.extend((line.file_count > 1).then(|| format!("files = {}", line.file_count)));
        keys.extend(layout(line));
    }
    keys
}

/// A file that several workers share.
fn layout(line: &ForeignLine) -> Option<String> {
    let name = match line.files {
        LineFiles::Own => return None,
        LineFiles::Segmented => "segmented",
        LineFiles::Strided => "strided",
    };
    (line.workers > 1).then(|| format!("layout = \"{name}\""))
}

fn random(line: &ForeignLine, mode: &str) -> Vec<String> {
    let moved = line.moved.unwrap_or(line.size);
    let blocks = (moved.0 / line.block.0).max(1);
    let operations = match line.time.filter(|_| line.is_time_based) {
        #[expect(clippy::cast_sign_loss, reason = "a time has no sign")]
        Some(time) => ((time.seconds() * OPERATIONS_A_SECOND) as u64).max(blocks),
        None => blocks,
    };
    let coverage = if line.is_uniform { "uniform" } else { "full" };
    vec![
        format!("operations = {operations}"),
        format!("mode = \"{mode}\""),
        format!("coverage = \"{coverage}\""),
    ]
}

fn synced(durable: LineSync) -> String {
    match durable {
        LineSync::Never => "sync = \"none\"".to_owned(),
        LineSync::AtClose => "sync = \"close\"".to_owned(),
        LineSync::Every(count) => format!("sync = {{ every = {count} }}"),
    }
}

#[cfg(test)]
mod tests {
    use nilometer_command_lines::{parse as parse_line, public_lines};
    use nilometer_plan::parse;

    use super::*;

    fn names(line: &str) -> Vec<&'static str> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let variants = variants(&parse_line(&words).expect("valid").line);
        let plan = parse(&plan(&variants), "explain.toml", 1.0).expect("a valid plan");
        let stages: Vec<&str> = plan.workloads().map(|(_, stage, _)| stage).collect();
        let names: Vec<&'static str> = variants.iter().map(|variant| variant.name).collect();
        assert_eq!(stages, names);
        names
    }

    #[test]
    fn cells_of_all_public_lines_make_a_valid_plan() {
        let lines = public_lines::ALL.concat();
        assert!(lines.len() >= 60, "{}", lines.len());
        for (line, ..) in lines {
            assert_eq!(names(line)[0], AS_THE_LINE_SAYS, "{line}");
        }
    }

    #[test]
    fn each_assumption_is_turned_round_by_itself_and_all_together() {
        assert_eq!(
            names("dd if=/dev/zero of=/data/file bs=1M count=64"),
            [
                AS_THE_LINE_SAYS,
                "synced when it is closed",
                "past the page cache",
                "16 operations in flight",
                "data that do not compress",
                ALL
            ]
        );
        assert_eq!(
            names(
                "fio --rw=randread --bs=4k --size=1m --iodepth=8 --direct=1 --numjobs=2 --ioengine=io_uring"
            ),
            [AS_THE_LINE_SAYS, "through the page cache", "one operation at a time", "one worker", ALL]
        );
        assert_eq!(
            names("mpirun -n 4 ior -w -t 64k -b 1m -e -o /data/file"),
            [AS_THE_LINE_SAYS, "past the page cache", "16 operations in flight", "one worker", ALL]
        );
        assert_eq!(
            names("fio --rw=write --bs=4k --size=1m --fsync=1"),
            [
                AS_THE_LINE_SAYS,
                "synced when it is closed, and not meanwhile",
                "past the page cache",
                "16 operations in flight",
                ALL
            ]
        );
        assert_eq!(
            names("mdtest -n 100 -F -u -d /data/x"),
            [AS_THE_LINE_SAYS, "4 KiB in each file", "spread over 17 directories", "4 workers at once", ALL]
        );
        assert_eq!(
            names("mpirun -n 2 mdtest -I 5 -z 1 -b 2 -D -d /data/x"),
            [
                AS_THE_LINE_SAYS,
                "all in one directory",
                "a tree for each worker",
                "files of another worker",
                "one worker",
                ALL
            ]
        );
    }

    /// A rate limits every cell except the one without it: other changes show nothing, and do not count.
    #[test]
    fn a_limit_and_another_interface_are_assumptions_too() {
        assert_eq!(
            names("fio --rw=randwrite --bs=4k --size=1m --rate_iops=300 --runtime=2 --time_based"),
            [
                AS_THE_LINE_SAYS,
                "without the limit of its rate",
                "past the page cache",
                "16 operations in flight",
                ALL
            ]
        );
        assert_eq!(
            names("mpirun -n 4 ior -a MPIIO -c -w -t 64k -b 1m -o /data/file"),
            [AS_THE_LINE_SAYS, "synced when it is closed", "by calls of POSIX", "one worker", ALL]
        );
    }

    #[test]
    fn times_rates_and_processes_become_keys() {
        let text = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            plan(&variants(&parse_line(&words).expect("valid").line)[..1])
        };
        let mix = text(
            "fio --rw=randrw --rwmixread=75 --bs=4k --size=1m --rate_iops=300 --numjobs=2 --runtime=2 --time_based",
        );
        for key in [
            "rate_iops = 1200\n",
            "time_limit = \"2000 ms\"\n",
            "reads = 75\n",
            "operations = 20000000\n",
            "workers = 2\n",
        ] {
            assert!(mix.contains(key), "{key} in {mix}");
        }
        let together = text("mpirun -n 4 ior -a MPIIO -c -w -t 64k -b 1m -o /data/file");
        for key in [
            "processes = 4\n",
            "engine = \"mpi_io\"\n",
            "calls = \"collective\"\n",
            "layout = \"segmented\"\n",
        ] {
            assert!(together.contains(key), "{key} in {together}");
        }
        assert!(!together.contains("workers ="), "{together}");
    }
}
