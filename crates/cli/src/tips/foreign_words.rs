//! Words of other programs for options and commands, and the words of this program with the same meaning.

/// Options of fio, IOR and elbencho, and their counterparts in a plan, which `evaluate` runs.
pub(super) const IN_A_PLAN: [(&[&str], &str); 8] = [
    (&["--bs", "--block", "--blocksize", "--block-size", "--transfersize"], "set `block_size` in a plan"),
    (&["-t"], "in a plan, IOR's -t is `block_size`, and elbencho's -t is `workers`"),
    (&["-b"], "in a plan, elbencho's -b is `block_size`, and IOR's -b is `file_size`"),
    (
        &["--size", "--filesize", "--file-size", "-s"],
        "set `file_size` in a plan, or `--scale 1/10` for all sizes",
    ),
    (&["--threads", "--numjobs", "--jobs", "-j"], "set `workers` in a plan"),
    (&["--iodepth", "--depth", "--qd"], "set `depth` in a plan"),
    (&["--direct", "--odirect"], "set `access = \"direct\"` in a plan"),
    (
        &["--rw", "--readwrite", "--rwmixread", "--rwmixpct"],
        "set `mode` of `[stage.workload.random]` in a plan",
    ),
];

/// Tips of some commands only: the commands, the options that users type, and the tip.
pub(super) const BY_COMMAND: [(&[&str], &[&str], &str); 14] = [
    (
        &["evaluate"],
        &["--json", "--output-format"],
        "`nilometer report RECORD --format json`; while it runs `--progress json`",
    ),
    (&["evaluate"], &["--csv"], "`nilometer report RECORD --format csv`"),
    (
        &["evaluate"],
        &["--html"],
        "`evaluate` makes a page beside the record; `nilometer report RECORD --format html` makes it again",
    ),
    (&["evaluate"], &["--quick", "--fast", "--short"], "`--plan quick`, which is the default"),
    (
        &["report"],
        &["--for", "--instrument", "--detector"],
        "`nilometer evaluate /data --for INSTRUMENT` records it; `--predict` predicts all instruments",
    ),
    (
        &["demo"],
        &["--for", "--instrument", "--detector"],
        "`nilometer evaluate /data --for INSTRUMENT` asks it of your storage",
    ),
    (&["evaluate"], &["--output", "--outfile", "-o"], "`--record FILE`"),
    (
        &["evaluate", "report"],
        &["-v", "--verbose", "--full"],
        "`nilometer report RECORD --all` prints everything; `nilometer --version` prints the version",
    ),
    (
        &["evaluate"],
        &["--runtime", "--timelimit", "--time", "--timeout"],
        "`--time-limit \"10 min\"`; for a recording `--duration \"1 h\"`",
    ),
    (
        &["evaluate"],
        &["--instrument", "--detector"],
        "`--for INSTRUMENT` asks whether the storage carries it",
    ),
    (
        &["evaluate", "record", "network"],
        &["--hosts", "--hostfile", "--client"],
        "start the program with `mpirun`: docs/cluster.md",
    ),
    (
        &["evaluate", "report", "check"],
        &["--baseline", "--against"],
        "`nilometer compare RECORD --against BASELINE`",
    ),
    (
        &["size"],
        &["--rate"],
        "`--frame-rate FREQUENCY` of the instrument, or `--write-rate RATE` of a storage server",
    ),
    (
        &["size", "record", "simulate"],
        &["--for", "--instrument", "--detector"],
        "write the instrument's name without an option",
    ),
];

/// Other words for options. A tip names the first of the options that the command has, with this value.
pub(super) const SYNONYMS: [(&[&str], &[&str]); 8] = [
    (&["--json", "--output-format"], &["--json", "--format json"]),
    (&["--csv"], &["--format csv"]),
    (&["--html"], &["--html", "--format html"]),
    (&["--output", "--outfile", "--out", "-o"], &["--output", "--out", "--to", "--html"]),
    (&["--runtime", "--timelimit", "--time", "--timeout"], &["--duration"]),
    (&["--iterations", "--loops", "--repeat", "-i"], &["--repeats"]),
    (&["--rate", "--fps", "--framerate"], &["--frame-rate"]),
    (&["--baseline"], &["--against"]),
];

/// Words for the option `--to`.
pub(super) const DIRECTORIES: [&str; 7] =
    ["--target", "--dir", "--path", "--directory", "--filename", "--destination", "-d"];

/// Words that other programs have for a command.
pub(super) const COMMANDS: [(&[&str], &str); 8] = [
    (&["run", "benchmark", "bench", "test", "start", "measure", "fio", "ior"], "evaluate /data"),
    (&["capture", "receive", "rec", "listen"], "record"),
    (&["server", "daemon", "service"], "serve"),
    (&["tune", "sysinfo", "checkhost"], "doctor"),
    (&["ls", "list"], "scan"),
    (&["instruments", "detectors"], "instrument list"),
    (&["man", "manual", "manpage"], "generate man --to DIRECTORY"),
    (&["completion", "completions"], "generate completions --to DIRECTORY"),
];
