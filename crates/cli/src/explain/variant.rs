//! The cell that a line asks for, and the same with one assumption turned round at a time, as stages of a plan.

use nilometer_model::Bytes;

use super::{
    line::{Durable, ForeignLine, Way},
    tree_line::TreeLine,
};

/// A cell beside the line's own.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LineVariant {
    /// What is other than in the line; the stage's name.
    pub(super) name: &'static str,
    pub(super) line: ForeignLine,
}

/// The line's own cell.
pub(super) const AS_THE_LINE_SAYS: &str = "as the line says";
/// All that makes a figure that of the storage.
pub(super) const ALL: &str = "all of these";

/// In flight where the line has one at a time.
const DEPTH: u32 = 16;

/// The line's cell, each assumption turned round by itself, and all of them.
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

/// What the line takes for granted, and another might not.
fn assumptions(line: &ForeignLine) -> Vec<(&'static str, Turn)> {
    if let Some(tree) = &line.tree {
        return of_tree(line, tree);
    }
    let writes = matches!(line.way, Way::Write | Way::RandomWrite);
    let mut found: Vec<(&'static str, Turn)> = Vec::new();
    match line.durable {
        Durable::Never if line.way == Way::Write => {
            found.push(("synced when it is closed", |line| line.durable = Durable::AtClose));
        }
        Durable::Every(_) if line.way == Way::Write => {
            found.push(("synced when it is closed, and not meanwhile", |line| {
                line.durable = Durable::AtClose;
            }));
        }
        Durable::Never | Durable::AtClose | Durable::Every(_) => {}
    }
    if line.direct {
        found.push(("through the page cache", |line| line.direct = false));
    } else {
        found.push(("past the page cache", |line| line.direct = true));
    }
    if writes && line.zeros {
        found.push(("data that do not compress", |line| line.zeros = false));
    }
    if line.depth > 1 {
        found.push(("one operation at a time", |line| line.depth = 1));
    } else {
        found.push(("16 operations in flight", |line| line.depth = DEPTH));
    }
    if line.workers > 1 {
        found.push(("one worker", |line| line.workers = 1));
    }
    found
}

/// What a line of mdtest takes for granted.
fn of_tree(line: &ForeignLine, tree: &TreeLine) -> Vec<(&'static str, Turn)> {
    let mut found: Vec<(&'static str, Turn)> = Vec::new();
    if tree.kind != "directories" {
        found.push(if tree.file_size.0 == 0 {
            ("4 KiB in each file", |line| turn_tree(line, |tree| TreeLine { file_size: Bytes(4096), ..tree }))
        } else {
            ("empty files", |line| turn_tree(line, |tree| TreeLine { file_size: Bytes(0), ..tree }))
        });
    }
    if !tree.is_flat() {
        found.push(("all in one directory", |line| turn_tree(line, |tree| tree.flat())));
    } else if tree.can_spread() {
        found.push(("spread over 17 directories", |line| turn_tree(line, |tree| tree.spread())));
    }
    if line.workers > 1 {
        let turned: (&'static str, Turn) = if tree.is_unique {
            ("all workers in one tree", |line| turn_tree(line, |tree| TreeLine { is_unique: false, ..tree }))
        } else {
            ("a tree for each worker", |line| turn_tree(line, |tree| TreeLine { is_unique: true, ..tree }))
        };
        found.push(turned);
        found.push(if tree.shift == 0 {
            ("what another worker made", |line| turn_tree(line, |tree| TreeLine { shift: 1, ..tree }))
        } else {
            ("what the worker made itself", |line| turn_tree(line, |tree| TreeLine { shift: 0, ..tree }))
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

/// All of them as a plan of one round: rounds are made by running it again.
pub(super) fn plan(variants: &[LineVariant]) -> String {
    let mut text =
        "title = \"what a line of another program comes to\"\nrepeats = 1\nreserve = \"0 B\"\n".to_owned();
    for variant in variants {
        text.push_str(&stage(variant));
    }
    text
}

fn stage(variant: &LineVariant) -> String {
    let LineVariant { name, line } = variant;
    let ForeignLine { workers, depth, zeros, .. } = line;
    let mut keys =
        vec!["\n[[stage]]".to_owned(), format!("name = \"{name}\""), format!("workers = {workers}")];
    if *depth > 1 {
        keys.extend(["engine = \"io_uring\"".to_owned(), format!("depth = {depth}")]);
    }
    if *zeros {
        keys.push("data = \"zeros\"".to_owned());
    }
    keys.extend(workload(line));
    keys.join("\n") + "\n"
}

fn workload(line: &ForeignLine) -> Vec<String> {
    if let Some(tree) = &line.tree {
        return tree.keys();
    }
    let ForeignLine { block, size, .. } = line;
    let access = if line.direct { "direct" } else { "buffered" };
    let (kind, own) = match line.way {
        Way::Write => ("stream", vec![synced(line.durable), "read_back = false".to_owned()]),
        Way::Read => ("stream", Vec::new()),
        Way::RandomRead | Way::RandomWrite => {
            let mode = if line.way == Way::RandomRead { "read" } else { "write" };
            let operations = (size.0 / block.0).max(1);
            let operations = format!("operations = {operations}");
            ("random", vec![operations, format!("mode = \"{mode}\""), "coverage = \"full\"".to_owned()])
        }
    };
    let mut keys = vec![
        format!("[stage.workload.{kind}]"),
        format!("file_size = \"{} B\"", size.0),
        format!("block_size = \"{} B\"", block.0),
        format!("access = \"{access}\""),
    ];
    keys.extend(own);
    keys.extend((line.is_shared && line.workers > 1).then(|| "layout = \"segmented\"".to_owned()));
    keys
}

fn synced(durable: Durable) -> String {
    match durable {
        Durable::Never => "sync = \"none\"".to_owned(),
        Durable::AtClose => "sync = \"close\"".to_owned(),
        Durable::Every(count) => format!("sync = {{ every = {count} }}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nilometer_model::plan::parse;

    fn names(line: &str) -> Vec<&'static str> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let variants = variants(&ForeignLine::parse(&words).expect("valid"));
        let plan = parse(&plan(&variants), "explain.toml", 1.0).expect("a valid plan");
        let stages: Vec<&str> = plan.workloads().map(|(_, stage, _)| stage).collect();
        let names: Vec<&'static str> = variants.iter().map(|variant| variant.name).collect();
        assert_eq!(stages, names);
        names
    }

    #[test]
    fn each_assumption_is_turned_round_by_itself_and_all_together() {
        assert_eq!(
            names("dd if=/dev/zero of=/data/file bs=1M count=64"),
            [
                AS_THE_LINE_SAYS,
                "synced when it is closed",
                "past the page cache",
                "data that do not compress",
                "16 operations in flight",
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
                "what another worker made",
                "one worker",
                ALL
            ]
        );
    }
}
