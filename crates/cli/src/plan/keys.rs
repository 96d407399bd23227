//! `nilometer plan keys`: what a plan may say.

use nilometer_plan::{PlanKey, WorkloadCell};

/// Key, value, what it is for.
type Row = (&'static str, &'static str, &'static str);

/// At the head of a plan.
const HEAD: [Row; 13] = [
    ("title", "a text", "What the plan is for, in a line."),
    ("repeats", "a whole number [3]", "Rounds in which each cell is measured once."),
    (
        "precision",
        "percent",
        "Cells are repeated until half of the 95 % interval of each figure is no more than that.",
    ),
    ("repeats_most", "a whole number [30]", "But no more often than this."),
    ("warm_up", "a whole number [0]", "Rounds before those, which count for nothing."),
    ("margin", "percent [5]", "No difference smaller than this counts as one."),
    ("seed", "a whole number [0]", "The seed of all random decisions."),
    ("reserve", "a size [\"1 GiB\"]", "Space that stays free on each target."),
    ("space_limit", "a size", "No cell may need more."),
    ("time_limit", "a time [\"24 h\"]", "The campaign ends then at the latest, with what there is."),
    ("hang_after", "a time [\"1 min\"]", "A target that completes nothing for so long is given up."),
    (
        "expect",
        "a type of file system",
        "All targets have to be on such; \"lustre\" refuses a missing mount.",
    ),
    ("source", "a directory", "Where copies come from."),
];

/// In a stage.
const STAGE: [Row; 18] = [
    ("name", "a text", "Its name in reports."),
    ("workers", "a whole number [1]", "Threads of each process, each with an engine of its own."),
    (
        "processes",
        "a whole number, or \"all\"",
        "Processes on each node, the first so many of those that a launcher started; all if it is not written.",
    ),
    (
        "nodes",
        "a whole number, or \"all\"",
        "Machines, the first so many; all if it is not written (docs/cluster.md).",
    ),
    ("engine", "\"sync\", \"io_uring\", \"pool\", \"mpi_io\" [\"sync\"]", "How operations are issued."),
    ("depth", "a whole number [1]", "Operations in flight a worker."),
    (
        "time_limit",
        "a time",
        "No phase is measured for longer. What later phases need is then made whole, or removed, without being measured.",
    ),
    ("stonewall", "true or false [false]", "A phase ends for all workers when the first has done its part."),
    (
        "volumes",
        "\"alone\", \"together\", or a whole number from 2 on [\"alone\"]",
        "Each target by itself, all at the same time, or so many of the first; of an ingest one recording over them.",
    ),
    (
        "siblings",
        "\"targets\", \"workers\"",
        "What should be alike: measured alone and together, and the odd one is named; no list (docs/siblings.md).",
    ),
    ("stripe_count", "a whole number", "Storage devices a file is spread over, where the target can."),
    ("stripe_size", "a size", "In turns of so many bytes, where the target can."),
    ("replicas", "a whole number", "Copies of all data, where the target can."),
    ("pool", "a text", "On the devices of the pool of this name, where the target has pools."),
    (
        "data",
        "\"random\", \"zeros\" [\"random\"]",
        "What is in buffers that are written; zeros but for a few bytes a page.",
    ),
    (
        "rate",
        "a rate",
        "What all workers move at the most: open loop, and latency counts from when an operation is due.",
    ),
    ("rate_iops", "a whole number", "The same as operations a second."),
    (
        "setting.NAME",
        "{ values = [\"128\", \"4096\"], apply = \"...\", read_back = \"...\", undo = \"...\" }",
        "Something outside of the program that your commands set around each repeat (NILOMETER_VALUE, NILOMETER_TARGET).",
    ),
];

/// How the engine `mpi_io` of a stage is called.
const MPI_IO: [Row; 3] = [
    (
        "calls",
        "\"independent\", \"collective\" [\"independent\"]",
        "Each process by itself, or all together: MPI_File_write_at and MPI_File_read_at, or the same with _all.",
    ),
    (
        "implementation",
        "\"ompio\", \"romio\"",
        "By the processes that have this one, the first so many of them as `processes` says; by what there is, if none.",
    ),
    (
        "hints",
        "{ cb_nodes = \"4\", romio_cb_write = \"enable\" }",
        "What files are opened with; which are in force is in the record's environment.",
    ),
];

/// In the background of a stage.
const BACKGROUND: [Row; 7] = [
    (
        "workers",
        "a whole number [1]",
        "Threads of the load on each target; 0: no load, which others are compared with.",
    ),
    ("rate", "a rate", "What all of them move at the most; \"0 MB/s\": no load."),
    ("rate_iops", "a whole number", "Their operations a second at the most; 0: no load."),
    (
        "phase",
        "a phase, such as \"write\"",
        "The one that is done over and over; all that are measured, if none; no list.",
    ),
    ("workload", "as [stage.workload]", "What they do: [stage.background.workload.NAME]."),
    (
        "count",
        "a whole number [1]",
        "Of an instrument, so many of it, each with a recorder of its own; 0: no load.",
    ),
    (
        "ingest",
        "as [stage.ingest]",
        "Or what is recorded meanwhile: [stage.background.ingest], without frames, duration, route, network, readers, read, onto.",
    ),
];

/// In the ingest of a stage.
const INGEST: [Row; 21] = [
    ("instrument", "a text", "What delivers frames: a name of the catalogue, or the path of a .toml file."),
    (
        "rate",
        "a frequency, such as \"50 Hz\"",
        "Frames a second of each stream, instead of the instrument's.",
    ),
    ("streams", "a whole number", "Streams in step, instead of the instrument's."),
    (
        "shape",
        "numbers of pixels, slowest dimension first",
        "Of a frame, instead of the instrument's; no list of shapes.",
    ),
    ("format", "\"raw\", \"cbf\", \"hdf5\"", "How a frame is written, instead of what the instrument says."),
    (
        "encoders",
        "a whole number",
        "Threads that encode frames, where the format asks for it, instead of what the instrument says.",
    ),
    (
        "compression",
        "\"none\", \"bslz4\", \"bszstd\", \"lz4\", \"zstd\"",
        "How frames in HDF5 are compressed, instead of what the instrument says.",
    ),
    (
        "chunk",
        "pixels, slowest dimension first, such as \"512x512\"",
        "Of a chunk of an HDF5 dataset, instead of what the instrument says.",
    ),
    ("writers", "a whole number", "Lanes, instead of as many as suit the storage."),
    (
        "read",
        "\"frames\", \"frame\", \"region\", \"line\", \"pixel\"",
        "How what was recorded in HDF5 is read behind it, from a cold cache: a phase of its own.",
    ),
    (
        "goal",
        "\"pace\", \"limit\" [\"pace\"]",
        "Frames come when they are due, or as fast as they are taken; no list.",
    ),
    (
        "storing",
        "\"files\", \"growing\", \"shared\", \"scattered\", \"positions\"",
        "Into which files frames go, instead of what the instrument says.",
    ),
    (
        "payload",
        "a size",
        "Bytes of samples or pixels in a packet, instead of the instrument's, where any size is possible.",
    ),
    (
        "route",
        "\"loopback\", \"network\", \"in_place\"",
        "Packets over this machine's own network, or from another machine, or frames in place; no list.",
    ),
    (
        "network",
        "a subnet, as in \"10.1.0.0/16\"",
        "Which packets come over, where route = \"network\"; no list.",
    ),
    (
        "onto",
        "\"target\", \"nothing\" [\"target\"]",
        "Nothing: writes do nothing, and what is left is what the recorder costs; no list.",
    ),
    ("frames", "a whole number", "How many come, over all streams; no list."),
    ("duration", "a time", "How long frames come, if it is not said how many; no list."),
    ("buffer", "a size [\"1 GiB\"]", "Memory between the instrument and the storage."),
    (
        "keep",
        "a size [\"2 GiB\"]",
        "Older frames are removed when a recording is larger, before compression; no list.",
    ),
    (
        "readers",
        "{ count = 2, distance = \"1 s\", rate = \"100 MB/s\" }",
        "Who reads it meanwhile, how far behind, how fast; no list.",
    ),
];

/// In the network of a stage.
const NETWORK: [Row; 5] = [
    (
        "protocol",
        "\"tcp\", \"udp\" [\"tcp\"]",
        "Streams as fast as they go; or the search for the highest rate of packets without loss, from each machine to each other.",
    ),
    (
        "pattern",
        "\"pairs\", \"ring\", \"both_ways\", \"one_to_many\", \"many_to_one\", \"all_to_all\"",
        "Who sends to whom at the same time; all but the ring if it is not written. Pairs of more than 8 machines are a ring.",
    ),
    (
        "flows",
        "a whole number [[1, 4]]",
        "Streams from a machine to another, shared out among its processes.",
    ),
    ("duration", "a time [\"1 s\"]", "How long data are sent in each trial; no list."),
    (
        "network",
        "an address and its bits, such as \"10.1.0.0/16\"",
        "Which network, where machines are in several; no list.",
    ),
];

/// In `[accept]`.
const ACCEPT: [Row; 1] = [("price", "texts, one for each target", "What each costs, for the page.")];

/// In `[[accept.instrument]]`.
const ACCEPT_INSTRUMENT: [Row; 16] = [
    ("name", "a text", "What delivers frames: a name of the catalogue, or the path of a .toml file."),
    ("count", "a whole number [1]", "So many of it at the same time."),
    ("duration", "a time", "How long it is recorded."),
    ("repeats", "a whole number [1]", "How often."),
    ("buffer", "a size [\"1 GiB\"]", "Memory between the instrument and the storage."),
    ("keep", "a size", "Older frames are removed when a recording is larger."),
    ("fill", "a share, such as \"80 %\"", "Instead of keep: up to which level the target is filled."),
    (
        "readers",
        "{ count = 2, distance = \"1 s\", rate = \"100 MB/s\", copy = true }",
        "Who reads it meanwhile; a copy goes to --copy-to.",
    ),
    ("condition", "a table, as `nilometer plan condition` shows it", "In which state the target is."),
    ("route", "\"loopback\", \"network\", \"in_place\"", "As in [stage.ingest]."),
    ("lost", "\"none\", or as in \"1 a day\", \"3 in 10 h\" [\"none\"]", "How much may be lost."),
    ("rate", "a rate", "What it must take in the long run: the lower end of the 95 % interval."),
    ("longest_stall", "a time", "In which frames wait and none is acknowledged."),
    ("durable", "a time", "In which 99 % of frames must be durable."),
    ("cores", "{ process = 1.5, client = 1, machine = 2 }", "Processors kept busy, at the most."),
    ("sync_flushes", "true or false [false]", "A sync must make the device flush its cache."),
];

/// In `[[accept.stage]]`.
const ACCEPT_STAGE: [Row; 7] = [
    ("name", "a text", "A stage of the plan with a workload; what is demanded holds in each of its cells."),
    ("phase", "a phase, such as \"write\" or \"read\"", "All that are measured, if it is not written."),
    ("rate", "a rate", "At least: the lower end of the 95 % interval."),
    ("operations", "a number", "A second, at least: the lower end of the 95 % interval."),
    ("p99", "a time", "99 % of operations take no longer."),
    ("p99_9", "a time", "99.9 % of operations take no longer."),
    ("cores", "{ process = 1.5, client = 1, machine = 2 }", "Processors kept busy, at the most."),
];

/// The whole reference; that of the workloads comes from the types that read them.
pub(super) fn reference() -> String {
    let mut lines = vec!["At the head of a plan:".to_owned()];
    lines.extend(HEAD.iter().flat_map(row));
    let lists = "Any parameter of a stage may be a list: it is then the matrix of all combinations.";
    lines.extend([String::new(), format!("[[stage]]  {lists}")]);
    lines.extend(STAGE.iter().flat_map(row));
    let recording = "[stage.ingest]  Records an instrument, in place of a workload.";
    lines.extend([String::new(), recording.to_owned()]);
    lines.extend(INGEST.iter().flat_map(row));
    let network =
        "[stage.network]  Measures the network between machines, in place of a workload (docs/cluster.md).";
    lines.extend([String::new(), network.to_owned()]);
    lines.extend(NETWORK.iter().flat_map(row));
    for (table, rows) in [
        ("[stage.mpi_io]  How engine = \"mpi_io\" is called (docs/cluster.md).", &MPI_IO[..]),
        ("[stage.background]  What works beside a workload or a recording (docs/load.md).", &BACKGROUND),
        ("[accept]  What must be found for a target to be accepted (docs/acceptance.md).", &ACCEPT),
        ("[[accept.instrument]]  Of an instrument, which is recorded for it.", &ACCEPT_INSTRUMENT),
        ("[[accept.stage]]  Of a stage.", &ACCEPT_STAGE),
    ] {
        lines.extend([String::new(), table.to_owned()]);
        lines.extend(rows.iter().flat_map(row));
    }
    for (name, about, keys) in WorkloadCell::reference() {
        lines.extend([String::new(), format!("[stage.workload.{name}]  {about}")]);
        for PlanKey { name, value, default, about } in keys {
            let default = default.map_or_else(String::new, |default| format!(" [{default}]"));
            lines.push(format!("  {name} = {value}{default}"));
            lines.extend(about.iter().map(|line| format!("      {line}")));
        }
    }
    lines.join("\n")
}

fn row(row: &Row) -> [String; 2] {
    let (name, value, about) = row;
    [format!("  {name} = {value}"), format!("      {about}")]
}

#[cfg(test)]
mod tests {
    use nilometer_plan::parse;

    use super::*;

    /// What the parser says that it would have taken instead of an unknown key.
    fn expected(plan: &str) -> Vec<String> {
        let said = parse(plan, "p.toml", 1.0).expect_err("an unknown key").to_string();
        let (_, words) = said.split_once("expected one of ").expect("the valid names");
        words.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    /// What a stage has tables for.
    const KINDS: [&str; 5] = ["workload", "ingest", "network", "background", "mpi_io"];

    fn sorted<T: ToString>(names: impl IntoIterator<Item = T>) -> Vec<String> {
        let mut names: Vec<String> = names.into_iter().map(|name| name.to_string()).collect();
        names.sort();
        names
    }

    /// What stands between these marks.
    fn marked(text: &str, mark: char) -> Vec<&str> {
        text.split(mark).skip(1).step_by(2).collect()
    }

    /// The rows whose value is a choice of words, each with these words.
    fn choices(rows: &[Row]) -> Vec<(&'static str, Vec<&'static str>)> {
        let words = |value: &'static str| marked(value.split(" [").next().unwrap_or(value), '"');
        let rows = rows.iter().filter(|(_, value, _)| value.starts_with('"'));
        rows.map(|(name, value, _)| (*name, words(value))).collect()
    }

    /// What the parser takes where one of these words stands.
    fn taken(table: &str, key: &str) -> Vec<String> {
        let plan = format!("title = \"x\"\n[[stage]]\nname = \"y\"\n{table}\n{key} = \"no such word\"");
        let said = parse(&plan, "p.toml", 1.0).expect_err("an unknown word").to_string();
        let words = said.split_once("expected ").or_else(|| said.split_once("write one of "));
        let (_, words) = words.unwrap_or_else(|| panic!("{key}: {said}"));
        // A plug-in is named by its number, and not by a word.
        let words = marked(words, '`').into_iter().filter(|word| !word.starts_with("filter:"));
        words.map(str::to_owned).collect()
    }

    #[test]
    fn every_choice_has_the_words_that_the_parser_takes() {
        let mut checked = 0;
        for (table, rows) in [
            ("", &STAGE[..]),
            ("[stage.ingest]\ninstrument = \"i\"", &INGEST[..]),
            ("[stage.network]", &NETWORK[..]),
            ("[stage.mpi_io]", &MPI_IO[..]),
        ] {
            for (key, words) in choices(rows) {
                assert_eq!(sorted(taken(table, key)), sorted(words), "{key}");
                checked += 1;
            }
        }
        assert_eq!(
            checked, 15,
            "engine, volumes, siblings, data, format, compression, read, goal, storing, route, onto, protocol, pattern, calls, implementation"
        );
    }

    #[test]
    fn every_key_is_explained_and_no_other() {
        let head = expected("title = \"x\"\nunknown = 1");
        assert_eq!(
            sorted(head.iter().filter(|name| !["stage", "accept"].contains(&name.as_str()))),
            sorted(HEAD.map(|(name, ..)| name))
        );
        let stage = expected("title = \"x\"\n[[stage]]\nunknown = 1");
        assert_eq!(
            sorted(stage.iter().filter(|name| !KINDS.contains(&name.as_str()))),
            sorted(STAGE.map(|(name, ..)| name.split('.').next().unwrap_or(name)))
        );
        let ingest = expected("title = \"x\"\n[[stage]]\nname = \"y\"\n[stage.ingest]\nunknown = 1");
        assert_eq!(sorted(ingest), sorted(INGEST.map(|(name, ..)| name)));
        let load = expected("title = \"x\"\n[[stage]]\nname = \"y\"\n[stage.background]\nunknown = 1");
        assert_eq!(sorted(load), sorted(BACKGROUND.map(|(name, ..)| name)));
        let network = expected("title = \"x\"\n[[stage]]\nname = \"y\"\n[stage.network]\nunknown = 1");
        assert_eq!(sorted(network), sorted(NETWORK.map(|(name, ..)| name)));
        let mpi_io = expected("title = \"x\"\n[[stage]]\nname = \"y\"\n[stage.mpi_io]\nunknown = 1");
        assert_eq!(sorted(mpi_io), sorted(MPI_IO.map(|(name, ..)| name)));
        for (table, rows) in [("instrument", &ACCEPT_INSTRUMENT[..]), ("stage", &ACCEPT_STAGE)] {
            let known = expected(&format!("title = \"x\"\n[[accept.{table}]]\nunknown = 1"));
            assert_eq!(sorted(known), sorted(rows.iter().map(|(name, ..)| name)), "accept.{table}");
        }
    }
}
