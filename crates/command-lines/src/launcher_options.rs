//! Options of wrappers and launchers. Options that only place processes change nothing here: all workers of
//! ours are on this machine.

use crate::options::{
    OptionRow, OptionTable,
    OptionValues::{Attached, None, One, Two},
    changes, nothing, refused, taken,
};

/// A program by its names, with `|` between them, and its options.
pub(crate) type FrontTable = (&'static str, OptionTable);

const fn table(program: &'static str, rows: &'static [OptionRow]) -> OptionTable {
    OptionTable { program, rows, ends_at_word: true }
}

/// Programs and words of shells that start another one.
pub(crate) const WRAPPERS: &[FrontTable] = &[
    (
        "time",
        table(
            "time",
            &[nothing("p|v|a|portability|verbose|append|q|quiet", None), nothing("f|o|format|output", One)],
        ),
    ),
    ("exec|command|nohup|builtin|unbuffer", table("a shell", &[])),
    ("setsid", table("setsid", &[nothing("c|f|w|ctty|fork|wait", None)])),
    (
        "sudo|doas",
        table(
            "sudo",
            &[
                nothing("E|n|H|b|k|S|i|s|preserve-env|non-interactive|set-home|login|shell", Attached),
                nothing("u|g|C|D|h|p|user|group|chdir|prompt", One),
            ],
        ),
    ),
    ("env", table("env", &[nothing("i|ignore-environment", None), nothing("u|C|S|unset|chdir", One)])),
    ("nice", table("nice", &[nothing("n|adjustment", One), nothing("1|2|3|4|5|6|7|8|9|0", Attached)])),
    ("ionice", table("ionice", &[nothing("c|n|class|classdata", One), nothing("t|ignore", None)])),
    (
        "timeout",
        table(
            "timeout",
            &[nothing("k|s|kill-after|signal", One), nothing("v|foreground|preserve-status|verbose", None)],
        ),
    ),
    (
        "numactl",
        table(
            "numactl",
            &[
                nothing(
                    "N|m|C|i|p|P|w|cpunodebind|membind|physcpubind|interleave|preferred|preferred-many|weighted-interleave|cpubind",
                    One,
                ),
                nothing("l|a|b|localalloc|all|balancing", None),
            ],
        ),
    ),
    ("taskset", table("taskset", &[nothing("c|cpu-list", One), nothing("a|all-tasks", None)])),
    (
        "chrt",
        table("chrt", &[nothing("f|r|o|b|i|a|R|fifo|rr|other|batch|idle|all-tasks|reset-on-fork", None)]),
    ),
    ("stdbuf", table("stdbuf", &[nothing("i|o|e|input|output|error", One)])),
];

/// Launchers of MPI and of schedulers.
pub(crate) const LAUNCHERS: &[FrontTable] = &[
    (
        "mpirun|mpiexec|orterun|prterun|mpiexec.hydra|mpirun_rsh|mpiexec.mpich|mpiexec.openmpi|mpirun.openmpi|mpirun.mpich",
        table("mpirun", MPIRUN),
    ),
    ("srun", table("srun", SRUN)),
    ("aprun", table("aprun", APRUN)),
    ("jsrun|lrun", table("jsrun", JSRUN)),
    ("ibrun", table("ibrun", &[taken("n|np", One), nothing("o", One)])),
];

/// Options of Open MPI, MPICH and Intel MPI.
const MPIRUN: &[OptionRow] = &[
    taken("n|np|c|npernode|N|ppn|perhost", One),
    nothing(
        "hostfile|machinefile|f|host|hosts|H|default-hostfile|map-by|rank-by|bind-to|cpu-set|cpu-list",
        One,
    ),
    nothing(
        "cpus-per-proc|cpus-per-rank|mem-bind|rankfile|rf|slot-list|wdir|wd|path|prefix|display|output",
        One,
    ),
    nothing(
        "output-filename|timeout|rmk|launcher|launcher-exec|bootstrap|bootstrap-exec|iface|x|genvlist",
        One,
    ),
    nothing("envlist|outfile-pattern|errfile-pattern|stdin|s|personality|runtime-options|pmi-port", One),
    nothing("mca|gmca|omca|prtemca|genv|env", Two),
    nothing("allow-run-as-root|oversubscribe|nooversubscribe|use-hwthread-cpus|quiet|q|v|verbose|V|l", None),
    nothing(
        "tag-output|timestamp-output|report-bindings|display-map|display-allocation|display-devel-map",
        None,
    ),
    nothing("bynode|byslot|bycore|bysocket|bind-to-core|bind-to-socket|bind-to-none|pernode|nolocal", None),
    nothing(
        "prepend-rank|print-rank-map|envall|genvall|envnone|genvnone|do-not-launch|merge-stderr-to-stdout|xml",
        None,
    ),
    refused("am|tune|configfile|app", One, "write its options in the line"),
];

const SRUN: &[OptionRow] = &[
    taken("n|ntasks|N|nodes|ntasks-per-node|tasks-per-node", One),
    nothing(
        "c|cpus-per-task|ntasks-per-core|ntasks-per-socket|ntasks-per-gpu|threads-per-core|cores-per-socket",
        One,
    ),
    nothing(
        "p|partition|A|account|t|time|w|nodelist|x|exclude|J|job-name|o|output|e|error|i|input|m|distribution",
        One,
    ),
    nothing(
        "cpu-bind|cpu_bind|mem-bind|mem_bind|accel-bind|mem|mem-per-cpu|mem-per-gpu|mpi|hint|C|constraint",
        One,
    ),
    nothing(
        "q|qos|D|chdir|gres|gpus|G|gpus-per-task|gpus-per-node|gpu-bind|reservation|B|extra-node-info|L",
        One,
    ),
    nothing(
        "licenses|d|dependency|network|bcast|profile|acctg-freq|comment|W|wait|export|jobid|r|relative",
        One,
    ),
    nothing(
        "cpu-freq|tmp|signal|slurmd-debug|task-prolog|task-epilog|prolog|epilog|nodefile|F|switches|het-group",
        One,
    ),
    nothing(
        "l|label|u|unbuffered|Q|quiet|v|verbose|s|oversubscribe|H|pty|exact|O|overcommit|no-kill|k",
        Attached,
    ),
    nothing(
        "exclusive|overlap|immediate|I|K|kill-on-bad-exit|X|disable-status|contiguous|spread-job",
        Attached,
    ),
    refused("multi-prog", Attached, "write the line of one program"),
];

const APRUN: &[OptionRow] = &[
    taken("n|pes", One),
    nothing("N|d|S|j|m|L|F|D|r|e|p|cp|sn|sl|mpmd-env|pes-per-node|depth|cc|cpu-binding|ss-list", One),
    nothing("b|q|B|T|R|ss|bypass-app-transfer|quiet", Attached),
];

const JSRUN: &[OptionRow] = &[
    taken("n|nrs|np|p|a|tasks_per_rs", One),
    nothing(
        "c|g|r|l|d|b|K|m|E|D|e|o|h|i|k|t|cpu_per_rs|gpu_per_rs|rs_per_host|latency_priority|rs_per_socket",
        One,
    ),
    nothing(
        "launch_distribution|bind|env|chdir|stdio_mode|stdio_stdout|stdio_stderr|smpiargs|memory_per_rs",
        One,
    ),
    nothing("M|X|exit_on_error|T|N", One),
    changes("U|erf_input", One, "a file that places each process"),
];
