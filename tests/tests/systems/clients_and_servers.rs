//! The network between clients and servers, all at once, with settings of the flows: on nodes of the testbed, each
//! with a network of its own.

use std::{collections::BTreeSet, fs, path::Path, time::Duration};

use nilometer_model::{NetworkResults, NetworkSample, TrafficPattern};
use nilometer_plan::Results;
use nilometer_tests::{Ended, Mpi, MpiKind, Running, Testbed};
use serde_json::Value;

/// Two processes on each of three nodes.
const TWICE: [u32; 6] = [1, 1, 2, 2, 3, 3];
/// The buffer of each socket.
const BUFFER: u64 = 64 << 10;
/// Measurements until a busy machine gives each sender a processor.
const TRIES: usize = 3;

const PLAN: &str = r#"
title = "clients and servers"
repeats = 2
reserve = "0 B"
[[stage]]
name = "between"
[stage.network]
pattern = "clients_to_servers"
clients = 2
flows = 2
processes = [1, 2]
congestion = "reno"
buffer = "64 KiB"
duration = "100 ms"
[[stage]]
name = "trees"
[stage.workload.walk]
levels = 1
branching = 2
files = 3
"#;

/// Starts the program on all nodes, twice each.
fn started(mpi: &Mpi, testbed: &Testbed, home: &Path, arguments: &[&str]) -> Ended {
    Running::of(mpi.command_on(testbed, &TWICE, home, arguments)).end(Duration::from_mins(5))
}

/// The same until no sender lacks a processor.
fn answered(mpi: &Mpi, testbed: &Testbed, home: &Path, arguments: &[&str]) -> Ended {
    for _ in 0..TRIES {
        let ended = started(mpi, testbed, home, arguments);
        if ended.code == Some(0) {
            return ended;
        }
        assert!(ended.stderr.contains("a pattern has no figure"), "{ended:?}");
    }
    panic!("a sender had no processor in each of {TRIES} measurements");
}

#[test]
fn clients_and_servers_exchange_data_at_once_with_settings_of_their_flows() {
    let Some(testbed) = Testbed::of(&["nodes"]) else { return };
    let Some(mpi) = Mpi::of(MpiKind::OpenMpi) else { return };
    let home = tempfile::tempdir().expect("a temporary directory");
    of_the_command(&mpi, &testbed, home.path());
    in_a_campaign(&mpi, &testbed, home.path());
    for (arguments, parts) in [
        (&["--clients", "3"][..], &["clients = 3 and servers = 1 need 4 machines, and there are 3"][..]),
        (
            &["--congestion", "no_such"],
            &["congestion = \"no_such\": this process may use", "reno", "on node-1"],
        ),
        (&["--buffer", "1 GiB"], &["buffer = \"1 GiB\": at most", "net.core.wmem_max", "on node-1"]),
        (&["--flows", "4", "--processes", "3"], &["processes = 3: node-1 has 2; start 3 on each machine"]),
    ] {
        let all = [&["network", "--pattern", "clients_to_servers"][..], arguments].concat();
        let refused = started(&mpi, &testbed, home.path(), &all);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(parts.iter().all(|part| refused.stderr.contains(part)), "{arguments:?}: {refused:?}");
        assert!(refused.stdout.is_empty(), "{refused:?}");
    }
}

/// One process of each machine, then both; the first two machines are clients.
fn of_the_command(mpi: &Mpi, testbed: &Testbed, home: &Path) {
    let patterns = ["network", "--pattern", "clients_to_servers,client_server_pairs", "--clients", "2"];
    let settings = ["--flows", "2", "--processes", "1,2", "--congestion", "reno", "--buffer", "64 KiB"];
    let trials = ["--duration", "100 ms", "--repeats", "2", "--json"];
    let ended = answered(mpi, testbed, home, &[&patterns[..], &settings, &trials].concat());
    let said: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let figures = said["figures"].as_array().expect("a list");
    assert_eq!(figures.len(), 2 * (2 + 4), "{figures:?}");
    for figure in figures.iter().filter(|figure| !figure["groups"].is_null()) {
        adds_up(figure);
    }
    let patterns: Vec<&str> = figures.iter().filter_map(|figure| figure["pattern"].as_str()).collect();
    assert_eq!(patterns[..3], ["2 clients to 1 server", "1 server to 2 clients", "node-1 to node-3"]);
    let cells = said["cells"].as_array().expect("a list");
    for sample in said["samples"].as_array().expect("a list") {
        let number = sample["cell"].as_u64().expect("a number") as usize;
        has_its_settings(sample, &cells[number]["settings"]);
    }
}

/// What the clients receive or send is what the servers send or receive. The nodes' links are no cards.
fn adds_up(figure: &Value) {
    let sum = |group: &str| {
        let machines = figure["groups"][group].as_array().expect("a list");
        machines.iter().map(|machine| machine["bytes_per_second"].as_f64().expect("a rate")).sum::<f64>()
    };
    let all = figure["bytes_per_second"].as_f64().expect("a rate");
    for group in ["clients", "servers"] {
        assert!((sum(group) / all - 1.0).abs() < 1e-6, "{figure}");
    }
    let names: Vec<&str> = figure["groups"]["clients"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|client| client["name"].as_str())
        .collect();
    assert_eq!(names, ["node-1", "node-2"]);
    assert!(figure["groups"]["server_links_share"].is_null(), "{figure}");
}

/// Each socket has the congestion control and twice the buffer, as the kernel counts; and no further process takes
/// part.
fn has_its_settings(sample: &Value, settings: &Value) {
    let flows = sample["flows"].as_array().expect("a list");
    for flow in flows {
        let connection = &flow["sent"]["connection"];
        assert_eq!(connection["congestion"], "reno", "{flow}");
        assert_eq!(connection["send_buffer"].as_u64(), Some(2 * BUFFER), "{flow}");
    }
    let pairs = flows.len() / 2;
    let mut ways: Vec<String> = flows.iter().map(|flow| format!("{} {}", flow["from"], flow["to"])).collect();
    ways.sort();
    ways.dedup();
    let processes = settings["processes"].as_u64().expect("a number") as usize;
    assert_eq!(ways.len(), pairs * processes, "{sample}");
}

/// The record has the cells with their settings, and reports name them.
fn in_a_campaign(mpi: &Mpi, testbed: &Testbed, home: &Path) {
    fs::create_dir(home.join("target")).expect("space");
    fs::write(home.join("plan.toml"), PLAN).expect("space");
    let ended =
        started(mpi, testbed, home, &["evaluate", "target", "--plan", "plan.toml", "--record", "r.sqlite"]);
    let what = "2 clients to 1 server, 2 flows, 1 process, reno, buffer 64 KiB";
    assert!(ended.stdout.contains(what), "{ended:?}");
    assert!(ended.stdout.contains("The speed of a server's link is unknown"), "{ended:?}");
    let record = home.join("r.sqlite");
    let results = nilometer_record::read(&record).expect("a record");
    let network = &results.network[0].results;
    assert_eq!(words(network).len(), 4, "{network:?}");
    assert_eq!(words(network)[3], "1 server to 2 clients, TCP, 2 flows, 2 processes, reno, buffer 64 KiB");
    let has_groups = |pattern: TrafficPattern| pattern.groups().is_some_and(|groups| groups.clients == 2);
    assert!(network.cells.iter().all(|cell| has_groups(cell.pattern)));
    assert_eq!(network.samples.len(), 2 * 4);
    no_trial_is_a_load_of_others(&results);
    nothing_begins_that_machines_can_not_make(mpi, testbed, home);
    let checked = nilometer_tests::run(&["check", record.to_str().expect("a plain name")]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let csv = nilometer_tests::run(&[
        "report",
        record.to_str().expect("a plain name"),
        "--format",
        "csv",
        "--output",
        "-",
    ]);
    let header = csv.stdout.lines().next().expect("a header");
    assert!(header.contains(",network_processes,network_congestion,network_buffer_bytes,"), "{header}");
    let rows = csv.stdout.lines().filter(|line| line.contains(",1,reno,65536,")).count();
    assert_eq!(rows, 2 * 2, "two ways in two rounds: {}", csv.stdout);
}

/// The traffic of a trial does not stand beside the phase after it. Messages of the processes do, and are short.
fn no_trial_is_a_load_of_others(results: &Results) {
    let received = |sample: &NetworkSample| sample.flows.iter().map(|flow| flow.received.bytes).sum::<u64>();
    let most = results.network[0].results.samples.iter().map(received).max().expect("some");
    let starts = results.samples.iter().flat_map(|measured| &measured.sample.node_starts);
    let before: Vec<u64> = starts.map(|start| start.before.received + start.before.sent).collect();
    assert!(!before.is_empty() && before.iter().all(|bytes| *bytes < most / 2), "{before:?}, {most}");
}

/// Neither a record nor a directory on the target is made.
fn nothing_begins_that_machines_can_not_make(mpi: &Mpi, testbed: &Testbed, home: &Path) {
    let target = home.join("target");
    let entries = || {
        let all = fs::read_dir(&target).expect("a directory");
        all.map(|entry| entry.expect("readable").file_name()).collect::<BTreeSet<_>>()
    };
    let before = entries();
    for (written, other, why) in [
        ("clients = 2", "clients = 3", "stage `between`: clients = 3 and servers = 1 need 4 machines"),
        ("\"reno\"", "\"no_such\"", "congestion = \"no_such\": this process may use"),
        ("[1, 2]", "[1, 2, 3]", "processes = 3: write 1 to 2, the most flows"),
    ] {
        fs::write(home.join("wrong.toml"), PLAN.replace(written, other)).expect("space");
        let plan = ["evaluate", "target", "--plan", "wrong.toml", "--record", "wrong.sqlite"];
        let refused = started(mpi, testbed, home, &plan);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(why), "{refused:?}");
        assert!(!home.join("wrong.sqlite").exists() && entries() == before, "{refused:?}");
    }
}

/// The cells of each line of the tables in a Markdown document.
fn table_rows(markdown: &str) -> Vec<Vec<String>> {
    let lines = markdown.lines().filter(|line| line.starts_with('|'));
    let cells =
        |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().replace('\\', "")).collect();
    lines.map(cells).collect()
}

/// The line of a table with this name, on this system or record.
fn table_row<'a>(rows: &'a [Vec<String>], name: &str, on: &str) -> &'a [String] {
    let is_it = |row: &&Vec<String>| row.len() > 2 && row[0] == name && row[1] == on;
    rows.iter().find(is_it).unwrap_or_else(|| panic!("no line `{name}` on `{on}` in {rows:#?}"))
}

fn is_figure(cell: &str) -> bool {
    cell.split(' ').next().is_some_and(|first| first.parse::<f64>().is_ok())
}

/// Lines of the study's network tables: the name, the system, and a published figure with its remark.
const PUBLISHED: [[&str; 4]; 9] = [
    ["TCP, 1 process, 1 flow", "40 GbE between 2 clients", "34746", "0 retransmissions"],
    ["UDP, 1 process, 1 flow", "40 GbE between 2 clients", "38561", "2.74 % of packets lost"],
    ["TCP, 6 processes, 1 flow each", "40 GbE between 2 clients", "39532", "0 retransmissions"],
    ["6 processes over 1 process", "40 GbE between 2 clients", "12.7", ""],
    [
        "TCP, client to server",
        "9 servers on 10 GbE one at a time",
        "87561.23",
        "7k to 8k retransmissions a server",
    ],
    [
        "UDP, client to server",
        "9 servers on 10 GbE one at a time",
        "52761.45",
        "83 to 93 % of packets dropped",
    ],
    ["client 1", "2 clients to 9 servers", "37.49", ""],
    ["client 2", "2 clients to 9 servers", "45.7", ""],
    ["sum", "2 clients to 9 servers", "83.19", "92.4 % of 9 x 10 Gbit/s"],
];

/// Own figures of the study's plan, in a comparison with the published record.
fn compared_with_the_study(mpi: &Mpi, testbed: &Testbed, home: &Path) -> String {
    for number in 0..TRIES {
        let record = home.join(format!("own-{number}.sqlite"));
        let own = record.to_str().expect("a plain name");
        let plan = ["--plan", "wa105-network", "--scale", "1/50", "--repeats", "1", "--record", own];
        let ended = started(mpi, testbed, home, &[&["evaluate", "target"][..], &plan].concat());
        assert!(record.exists(), "{ended:?}");
        let compared = nilometer_tests::run(&[
            "compare",
            own,
            &format!("{}/published.sqlite", home.display()),
            "--format",
            "markdown",
        ]);
        assert_eq!(compared.code, Some(0), "{compared:?}");
        if !compared.stdout.contains("FAILED") {
            return compared.stdout;
        }
    }
    panic!("a sender had no processor in each of {TRIES} campaigns");
}

#[test]
fn the_network_of_wa105_stands_in_its_own_tables_and_what_no_machine_has_says_why() {
    let Some(testbed) = Testbed::of(&["nodes"]) else { return };
    let Some(mpi) = Mpi::of(MpiKind::OpenMpi) else { return };
    let home = tempfile::tempdir().expect("a temporary directory");
    fs::create_dir(home.path().join("target")).expect("space");
    let published = nilometer_tests::root().join("reference/wa105-2016.csv").display().to_string();
    let record = home.path().join("published.sqlite").display().to_string();
    let imported = nilometer_tests::run(&["import", &published, "--record", &record]);
    assert_eq!(imported.code, Some(0), "{imported:?}");

    let compared = compared_with_the_study(&mpi, &testbed, home.path());
    let rows = table_rows(&compared);
    for [name, on, value, remark] in PUBLISHED {
        let row = table_row(&rows, name, on);
        assert!(
            row.iter().any(|cell| cell == value) && row.iter().any(|cell| cell.contains(remark)),
            "{row:?}"
        );
    }
    let heads = |name: &str| rows.iter().any(|row| row.iter().any(|cell| cell == name));
    for unit in ["rate [Mbit/s]", "gain [%]", "sum [Mbit/s]", "rate [Gbit/s]", "share of the servers' links"]
    {
        assert!(heads(unit), "{unit}: {rows:#?}");
    }
    for name in ["TCP, 1 process, 1 flow", "TCP, 1 process, 6 flows", "UDP, 1 process, 1 flow"] {
        assert!(is_figure(&table_row(&rows, name, "A")[2]), "{name}: {rows:#?}");
    }
    for (name, client) in [("TCP, client to server", "1"), ("UDP, server to client", "2")] {
        let row = table_row(&rows, name, &format!("A, client {client}"));
        assert!(is_figure(&row[2]) && is_figure(&row[3]), "{row:?}");
    }
    // The links of the nodes are no cards, so that nobody knows their speed.
    for name in ["client 1", "client 2", "sum"] {
        let row = table_row(&rows, name, "A, congestion cubic");
        assert!(is_figure(&row[2]) && row[3] == "unknown", "{row:?}");
    }
    is_left_out_with_its_reason(&compared, &rows);
}

/// Each node has two processes of six, and the congestion controls of this kernel.
fn is_left_out_with_its_reason(compared: &str, rows: &[Vec<String>]) {
    assert_eq!(table_row(rows, "TCP, 6 processes, 1 flow each", "A")[2], "left out");
    assert_eq!(table_row(rows, "6 processes over 1 process", "A")[3], "left out");
    assert!(compared.contains("left out: node-1 has 2 of 6 processes"), "{compared}");
    let there = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").expect("a kernel");
    let there: Vec<&str> = there.split_whitespace().collect();
    for control in ["reno", "bic", "htcp"] {
        let figure = &table_row(rows, "sum", &format!("A, congestion {control}"))[2];
        if there.contains(&control) {
            assert!(is_figure(figure), "{control}: {figure}");
        } else {
            assert_eq!(figure, "left out", "{control}");
            assert!(
                compared.contains(&format!("node-1 has no congestion control {control}, but")),
                "{compared}"
            );
        }
    }
    assert!(compared.contains("bonding modes, hashes and MTUs"), "{compared}");
    assert!(compared.contains("links of the machines: MTU 1500, no bond"), "{compared}");
}

fn words(network: &NetworkResults) -> Vec<String> {
    network.cells.iter().map(|cell| cell.words(&network.names())).collect()
}
