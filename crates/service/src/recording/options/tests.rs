//! A file may have every option that the command line has, and options win over the file.

use super::*;
use clap::Parser;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    wishes: RecordOptions,
}

fn line(words: &[&str]) -> RecordOptions {
    let words = std::iter::once("record").chain(words.iter().copied());
    Line::try_parse_from(words).expect("valid").wishes
}

#[test]
fn a_file_names_a_format_that_the_recorder_writes() {
    let read = |text: &str| toml::from_str::<RecordOptions>(text).map_err(|error| error.to_string());
    assert_eq!(read("format = \"raw\"").expect("valid").format, Some(Format::Raw));
    let refused = read("format = \"cbf\"").expect_err("simulations only");
    assert!(refused.contains("writes no cbf: write \"raw\" or \"hdf5\""), "{refused}");
}

const FILE: &str = r#"
        instrument = "fila10g-4g"
        mode = "VDIF_8000-4096-16-2"
        from = ["tcp://h:7", "tcp://h:8"]
        frames_per_file = 9
        to = "/data"
        expect = "lustre"
        format = "hdf5"
        compression = "bslz4"
        layout = "a.xml"
        metadata = ["tcp://h:9", "a.jsonl"]
        scan = [20, 30]
        chunk = "256x512"
        align = "1 MiB"
        stripe_count = 4
        stripe_size = "4 MiB"
        chunk_size = "64 MB"
        keep = "1 TB"
        name = "scan"
        listen = ["udp://10.0.0.7@232.1.1.1:5=A", "udp://10.0.0.7@232.1.1.2:5=B"]
        interface = "10.0.0.1"
        allow = ["10.0.0.2", "10.0.0.3"]
        data_stream = ["A=10.0.0.2", "B=10.0.0.3"]
        start = "2026y326d18h00m00s"
        stop = "2026-11-22T19:00:00Z"
        duration = "5 s"
        packets = 7
        silence = "6 s"
        series = "every"
        missing = "leave-out"
        window = 8
        buffer = "1 MiB"
        memory = "4 MiB"
        receive_buffer = "2 MiB"
        busy_poll = 9
        receive_threads = 2
        cpus = [0, 1]
        reserve = "3 MiB"
        engine = "pool"
        checksums = true
        hang_after = "10 s"
    "#;
const OPTIONS: [&str; 78] = [
    "other",
    "--mode",
    "Mark5B-2048-16-2",
    "--from",
    "tcp://h:9",
    "--frames-per-file",
    "19",
    "--to",
    "/x",
    "--expect",
    "xfs",
    "--format",
    "raw",
    "--compression",
    "zstd",
    "--layout",
    "b.toml",
    "--metadata",
    "b.jsonl",
    "--scan",
    "21x7",
    "--chunk",
    "128x128",
    "--align",
    "2 MiB",
    "--stripe-count",
    "5",
    "--stripe-size",
    "5 MiB",
    "--chunk-size",
    "128 MB",
    "--keep",
    "2 TB",
    "--name",
    "y",
    "--listen",
    "udp://10.0.0.8@h:6=C",
    "--interface",
    "10.0.0.9",
    "--allow",
    "10.0.0.8",
    "--data-stream",
    "C=10.0.0.8",
    "--start",
    "2027-01-01T00:00:00Z",
    "--stop",
    "2027-01-02T00:00:00Z",
    "--duration",
    "15 s",
    "--packets",
    "17",
    "--silence",
    "16 s",
    "--series",
    "next",
    "--missing",
    "fill",
    "--window",
    "18",
    "--buffer",
    "11 MiB",
    "--memory",
    "14 MiB",
    "--receive-buffer",
    "12 MiB",
    "--busy-poll",
    "19",
    "--receive-threads",
    "3",
    "--cpus",
    "1,2",
    "--reserve",
    "13 MiB",
    "--engine",
    "sync",
    "--checksums",
    "--hang-after",
    "20 s",
];

#[test]
fn a_file_may_have_every_option_and_options_win_over_it() {
    let file: RecordOptions = toml::from_str(FILE).expect("valid");
    let options = line(&OPTIONS);
    assert_eq!(RecordOptions::default().over(file.clone()), file);
    assert_eq!(options.clone().over(file.clone()), options);
    // Both have every key: an option that was not given would differ from one that was.
    let nothing = format!("{:?}", RecordOptions::default());
    // Samples of a mode may be complex, which is no option.
    let said = format!("{file:?}{options:?}").replace("complex: false", "");
    assert!(!said.contains("None") && !said.contains("false") && nothing.contains("None"), "{said}");
}

#[test]
fn a_key_that_is_none_is_refused_with_those_that_are() {
    let error = toml::from_str::<RecordOptions>("bufer = \"1 GiB\"").expect_err("a typo").to_string();
    assert!(error.contains("bufer") && error.contains("receive_buffer"), "{error}");
    for wrong in
        ["listen = \"h:5\"", "missing = \"drop\"", "start = \"soon\"", "packets = -1", "engine = \"mpi_io\""]
    {
        assert!(toml::from_str::<RecordOptions>(wrong).is_err(), "{wrong}");
    }
}
