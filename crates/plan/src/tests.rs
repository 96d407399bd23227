//! Tests of valid plans, and of refused ones.

use nilometer_model::StripeControl;

use super::*;

const STREAM: &str = r#"
title = "a test"
repeats = 2
[[stage]]
name = "large files"
workers = [1, 2]
[stage.workload.stream]
file_size = "64 MiB"
block_size = ["64 KiB", "1 MiB"]
access = "direct"
"#;

fn refusal(text: &str) -> String {
    parse(text, "my.toml", 1.0).expect_err("must be refused").to_string()
}

#[test]
fn pools_are_a_parameter_like_others_and_no_options_of_a_tool() {
    let of = |pools: &str| STREAM.replace("workers = [1, 2]", &format!("pool = {pools}"));
    let plan = parse(&of("[\"flash\", \"2\"]"), "my.toml", 1.0).expect("a valid plan");
    let pools: Vec<_> = plan.workloads().map(|(_, _, run)| run.layout().pool).collect();
    assert_eq!(pools, ["flash", "2", "flash", "2"].map(|pool| Some(pool.to_owned())));
    assert!(plan.cells[0].to_string().ends_with(", pool flash"), "{}", plan.cells[0]);
    // Without pools, the cells that differ only in the pool are one.
    let without = (0..4).filter(|&cell| plan.applies(cell, None)).count();
    let with = (0..4).filter(|&cell| plan.applies(cell, Some(StripeControl::Lustre))).count();
    assert_eq!([without, with], [2, 4]);
    for wrong in ["\"\"", "\"-d\"", "\"a b\"", "\"a/b\"", "\"a\\nb\""] {
        assert!(refusal(&of(wrong)).contains("write the name of a pool"), "{wrong}");
    }
}

#[test]
fn lists_make_a_matrix() {
    let plan = parse(STREAM, "my.toml", 1.0).expect("a valid plan");
    let keys: Vec<String> =
        plan.workloads().map(|(_, _, run)| format!("{} x{}", run.workload, run.workers)).collect();
    assert_eq!(
        keys,
        [
            "64 MiB by 64 KiB, direct x1",
            "64 MiB by 64 KiB, direct x2",
            "64 MiB by 1 MiB, direct x1",
            "64 MiB by 1 MiB, direct x2"
        ]
    );
}

#[test]
fn several_plans_are_one_campaign() {
    let plan = |text: &str| parse(text, "my.toml", 1.0).expect("a valid plan");
    let (one, other) = (plan(STREAM), plan(&STREAM.replace("repeats = 2", "repeats = 5")));
    let joined =
        ResolvedPlan::joined(vec![("a".into(), one.clone()), ("b".into(), other)]).expect("two plans");
    assert_eq!((joined.repeats, joined.cells.len()), (5, 2 * one.cells.len()));
    assert_eq!(joined.cells[0].stage, "a: large files");
    assert_eq!(joined.cells[4].stage, "b: large files");
    assert_eq!(ResolvedPlan::joined(vec![("a".into(), one.clone())]), Some(one), "one plan stays as it is");
    assert_eq!(ResolvedPlan::joined(Vec::new()), None);
}

#[test]
fn a_typo_is_refused_at_its_own_line_with_the_valid_names() {
    let message = refusal(&STREAM.replace("block_size", "blok_size"));
    for part in ["my.toml", "line 9", "blok_size", "`block_size`", "`file_size`", "`access`"] {
        assert!(message.contains(part), "{part} is missing in: {message}");
    }
    let message = refusal(&STREAM.replace("workload.stream", "workload.straem"));
    assert!(
        message.contains("straem") && message.contains("`walk`") && message.contains("line 7"),
        "{message}"
    );
    let message = refusal(&STREAM.replace("\"direct\"", "\"dirct\""));
    assert!(
        message.contains("dirct") && message.contains("`buffered`") && message.contains("line 10"),
        "{message}"
    );
}

#[test]
fn all_faults_of_a_plan_are_named_at_once() {
    let text = STREAM.replace("title = \"a test\"\n", "");
    let text = text.replace("block_size = [\"64 KiB\", \"1 MiB\"]\naccess = \"direct\"\n", "blocks = 2\n");
    let text = text.replace("workers = [1, 2]", "workers = \"many\"\ndepht = 2").replace("64 MiB", "64 X");
    let message = refusal(&text);
    for part in [
        "my.toml: a key is missing (`nilometer plan keys` shows all that a table needs): ",
        "the key `title` is missing",
        "unknown key `depht`",
        "unknown key `blocks`",
        "the keys `block_size` and `access` are missing",
        "`64 X`",
        "many",
    ] {
        assert!(message.contains(part), "{part} is missing in: {message}");
    }
    assert_eq!(message.matches("TOML parse error at line ").count(), 6, "{message}");
}

#[test]
fn impossible_values_are_refused_with_their_place() {
    let message = refusal(&STREAM.replace("64 MiB", "-64 MiB"));
    assert!(message.contains("`-64 MiB` is negative") && message.contains("line 8"), "{message}");
    let message = refusal(&STREAM.replace("\"1 MiB\"", "\"1 X\""));
    assert!(message.contains("KiB") && message.contains("line 9"), "{message}");
    let message = refusal(&STREAM.replace("1 MiB", "3 MiB"));
    assert!(message.contains("my.toml:5") && message.contains("whole number of blocks"), "{message}");
    let message = refusal(&STREAM.replace("[1, 2]", "0"));
    assert!(message.contains("my.toml:5") && message.contains("1 to 1024"), "{message}");
    let message = refusal(&STREAM.replace("workers = [1, 2]", "depth = 8"));
    assert!(message.contains("io_uring"), "{message}");
    assert!(refusal("title = \"x\"").contains("no stage"));
}

/// The workload of the only stage as written in these lines.
fn of(workload: &str) -> String {
    refusal(&format!("title = \"a test\"\n[[stage]]\nname = \"s\"\nworkers = 4\n[stage.workload.{workload}"))
}

#[test]
fn a_stream_s_parameters_are_refused_with_what_would_do() {
    let stream = "stream]\nfile_size = \"8 MiB\"\nblock_size = \"1 MiB\"\naccess = \"best\"\n";
    for (line, parts) in [
        ("layout = \"stripes\"", &["line 9", "`stripes`", "`own`", "`segmented`", "`strided`"][..]),
        ("sync = \"often\"", &["line 9", "`often`", "`none`", "`close`", "`every`"]),
        ("sync = { every = 0 }", &["my.toml:3", "at least 1 block"]),
        ("files = 0", &["my.toml:3", "1 to 1000000"]),
        ("files = 3\nlayout = \"strided\"", &["my.toml:3", "files = 1"]),
        ("source = \"tape\"", &["line 9", "`tape`", "`memory`", "`disk`"]),
        ("preallocate = 1", &["line 9", "`true` or `false`"]),
    ] {
        let message = of(&format!("{stream}{line}\n"));
        assert!(parts.iter().all(|part| message.contains(part)), "{line}: {parts:?} in: {message}");
    }
    let far = stream.replace("8 MiB", "4194304 TiB");
    let message = of(&format!("{far}layout = \"segmented\"\n"));
    assert!(message.contains("8 EiB") && message.contains("4 workers"), "{message}");
}

#[test]
fn a_random_s_parameters_are_refused_with_what_would_do() {
    let random = "random]\nfile_size = \"8 MiB\"\nblock_size = \"4 KiB\"\naccess = \"best\"\n";
    for (lines, parts) in [
        ("operations = 0", &["my.toml:3", "at least 1"][..]),
        ("operations = 9\nmode = \"both\"", &["line 10", "`both`", "`read`", "`write`", "`mix`"]),
        ("operations = 9\nmode = \"mix\"\nreads = 101", &["my.toml:3", "0 to 100 percent"]),
        ("operations = 9\ncoverage = \"all\"", &["line 10", "`all`", "`uniform`", "`full`"]),
    ] {
        let message = of(&format!("{random}{lines}\n"));
        assert!(parts.iter().all(|part| message.contains(part)), "{lines}: {parts:?} in: {message}");
    }
}

#[test]
fn small_writes_parameters_are_refused_with_what_would_do() {
    for (lines, parts) in [
        ("total = \"1 MB\"\nwrite_size = \"0 B\"", &["my.toml:3", "1 B to 64 KiB"][..]),
        ("total = \"1 MB\"\nwrite_size = \"1 MB\"", &["my.toml:3", "1 B to 64 KiB"]),
        ("total = \"0 B\"", &["my.toml:3", "at least one"]),
        ("total = \"1001 B\"", &["my.toml:3", "whole number of writes of \"100 B\""]),
        ("total = \"1 MB\"\nway = \"collected\"\nbuffer = \"2 MB\"", &["my.toml:3", "buffer", "to 1 MiB"]),
        ("total = \"1 MB\"\nway = \"collected\"\nbuffer = \"99 B\"", &["my.toml:3", "100 B (a write_size)"]),
        ("total = \"1 MB\"\nway = \"slowly\"", &["line 7", "`slowly`", "`each`", "`collected`", "`at_once`"]),
        ("totl = \"1 MB\"", &["line 6", "`totl`", "`total`", "`write_size`", "`way`"]),
    ] {
        let message = of(&format!("small_writes]\n{lines}\n"));
        assert!(parts.iter().all(|part| message.contains(part)), "{lines}: {parts:?} in: {message}");
    }
}

#[test]
fn trees_that_make_no_sense_are_refused_with_what_would_do() {
    const TREE: &str = "directories = 10\nfiles = 100\nsize = \"1 MB\"\n";
    for (text, parts) in [
        ("walk]\ntotal_files = 7\n".to_owned(), &["my.toml:3", "write directories too"][..]),
        ("walk]\ndirectories = 7\n".to_owned(), &["my.toml:3", "files = 0: write at least 1"]),
        ("walk]\nfiles = 7\ncommand = \"find\"\n".to_owned(), &["`find`", "`ls`", "`du`"]),
        (
            "unpack]\nfiles = 7\nsize = \"1 MB\"\n".to_owned(),
            &["`directories` is missing: write it", "`nilometer plan keys` shows all"],
        ),
        (format!("unpack]\n{}", TREE.replace("100", "40000000")), &["my.toml:3", "entries: at most"]),
        (format!("build]\n{TREE}units = 46\n"), &["my.toml:3", "units = 46: write 1 to 45"]),
        (format!("open_files]\n{TREE}operations = 0\n"), &["my.toml:3", "write at least 1"]),
    ] {
        let message = of(&text);
        assert!(parts.iter().all(|part| message.contains(part)), "{text}: {parts:?} in: {message}");
    }
}

#[test]
fn combinations_of_a_workload_have_different_names() {
    let text = STREAM.replace("stream]\nfile_size = \"64 MiB\"\nblock_size = [\"64 KiB\", \"1 MiB\"]", "random]\nfile_size = [\"64 MiB\", \"1 GiB\"]\nblock_size = \"4 KiB\"\noperations = 10\nmode = [\"read\", \"write\", \"mix\"]\nreads = [10, 90]\ncoverage = [\"uniform\", \"full\"]");
    let plan = parse(&text, "my.toml", 1.0).expect("a valid plan");
    let names: std::collections::BTreeSet<_> =
        plan.workloads().map(|(_, _, run)| (run.to_string(), format!("{:?}", run.phases()))).collect();
    // The share of reads matters in a mix only.
    assert_eq!((plan.cells.len(), names.len()), (48, 2 * 2 * (1 + 1 + 2) * 2));
}

#[test]
fn cells_that_a_scale_makes_one_are_left_out_and_named() {
    let text = STREAM.replace("\"64 MiB\"", "[\"4 MiB\", \"8 MiB\", \"1 GiB\"]").replace("[1, 2]", "1");
    let plan =
        parse(&text.replace("[\"64 KiB\", \"1 MiB\"]", "\"1 MiB\""), "my.toml", 0.01).expect("a valid plan");
    assert_eq!(plan.cells.len(), 2);
    let same = "large files: 8 MiB by 1 MiB, direct, 1 worker: the same as 1 MiB by 1 MiB, direct, 1 worker";
    assert_eq!(plan.merged, [same]);
    assert!(parse(STREAM, "my.toml", 1.0).expect("a valid plan").merged.is_empty());
}
