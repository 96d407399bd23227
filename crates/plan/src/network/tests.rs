//! A network stage becomes the trials that its table names, and nonsense is refused.

use super::super::{ResolvedPlan, parse};
use super::*;

const PLAN: &str = "title = \"a test\"\nrepeats = 2\n[[stage]]\nname = \"network\"\n[stage.network]\n";

fn plan(lines: &str) -> ResolvedPlan {
    parse(&format!("{PLAN}{lines}"), "my.toml", 1.0).expect("a valid plan")
}

#[test]
fn settings_that_stand_there_twice_are_measured_once() {
    let plan = plan(
        "processes = [2, 1, 2]\nflows = [2]\ncongestion = [\"cubic\", \"reno\", \"cubic\"]\nbuffer = [\"1 MiB\", \"1 MiB\"]",
    );
    let run = &plan.network[0];
    assert_eq!((run.processes.as_slice(), run.buffers.len()), (&[2, 1][..], 1));
    assert_eq!(run.congestion.iter().map(ToString::to_string).collect::<Vec<_>>(), ["cubic", "reno"]);
}

#[test]
fn a_network_is_no_cell_and_has_its_usual_values() {
    let plan = plan("");
    assert_eq!((plan.cells.len(), &plan.network), (0, &vec![NetworkRun::usual("network")]));
    assert_eq!(plan.network[0].cells(2).len(), 2 * 3);
    assert_eq!(plan.network[0].cells(3).len(), 2 * 16);
    let on_three = ResolvedPlan { ranks: 3, node_ranks: vec![1, 1, 1], ..plan };
    assert_eq!(on_three.network_time(), Nanos::from_millis(2 * 32 * 1000));
}

#[test]
fn the_time_of_a_stage_is_that_of_its_clients_servers_and_settings_before_they_are_started() {
    let usual = plan("");
    assert_eq!(usual.network_time(), Nanos::from_millis(2 * 6 * 1000), "two machines");
    let lines = "pattern = [\"clients_to_servers\", \"client_server_pairs\"]\nclients = 2\nservers = 3\nflows = 1\n\
                 congestion = [\"cubic\", \"reno\"]\n";
    let grouped = plan(lines);
    assert_eq!(grouped.network_machines(&grouped.network[0]), 5);
    assert_eq!(
        grouped.network_time(),
        Nanos::from_millis(2 * 2 * (2 + 2 * 6) * 1000),
        "rounds, controls, patterns"
    );
}

#[test]
fn trials_that_are_left_out_are_named() {
    let lines = "pattern = \"client_server_pairs\"\nclients = 40\nflows = [1, 2, 6]\nprocesses = [1, 6]\n";
    let run = plan(lines).network.remove(0);
    assert_eq!(
        run.left_out(60),
        ["processes = 6 with flows = 1 and 2: each process needs a flow of its own"]
    );
    assert_eq!(run.cells(60).len(), 2 * 40 * 20 * 4);
    assert_eq!(
        run.left_out(80)[1],
        "client_server_pairs: 576 of 1600 pairs, since only the first 1024 are measured"
    );
    assert_eq!(run.cells(80).len(), 2 * 1024 * 4);
    assert_eq!(NetworkRun::usual("network").left_out(60), Vec::<String>::new());
    assert_eq!(run.check_machines(41), Ok(()));
    let few = run.check_machines(40).expect_err("no server is left");
    assert!(few.starts_with("clients = 40 and servers = 1 need 41 machines, and there are 40"), "{few}");
}

#[test]
fn what_is_written_is_measured_and_nothing_else() {
    let lines = "protocol = [\"udp\", \"tcp\"]\npattern = [\"ring\", \"all_to_all\"]\nflows = [4, 1, 4]\n\
                 duration = \"100 ms\"\nnetwork = \"10.1.0.0/16\"\n";
    let run = plan(lines).network.remove(0);
    let words = "TCP and UDP, ring, all_to_all, 1 and 4 flows, 100 ms each, in 10.1.0.0/16";
    assert_eq!(run.to_string(), words);
    let cells = run.cells(3);
    assert_eq!(cells.len(), 2 * 4 + 3, "and a search of each pair of the ring");
    assert!(cells[8..].iter().all(|cell| cell.protocol == NetworkProtocol::Udp && cell.flows == 1));
}

#[test]
fn settings_are_dimensions_and_clients_and_servers_are_groups() {
    let lines = "pattern = \"clients_to_servers\"\nclients = 2\nflows = [1, 6]\nprocesses = [1, 6]\n\
                 congestion = [\"cubic\", \"reno\"]\nbuffer = [\"1 MiB\", \"4 MiB\"]\n";
    let run = plan(lines).network.remove(0);
    let words = "TCP, clients_to_servers, clients 2, 1 and 6 flows, processes 1 and 6, congestion control cubic and reno, \
                 buffers 1 MiB and 4 MiB, 1 s each";
    assert_eq!(run.to_string(), words);
    assert_eq!(run.groups(11), MachineGroups { clients: 2, servers: 9 });
    let cells = run.cells(11);
    assert_eq!(
        cells.len(),
        2 * 2 * 2 * 3,
        "ways, controls, buffers; and 1 of 1, 1 of 6 and 6 of 6 processes"
    );
    let last = cells.last().expect("one").words(&[]);
    assert_eq!(last, "9 servers to 2 clients, TCP, 6 flows, 6 processes, reno, buffer 4 MiB");
    let again: NetworkRun =
        serde_json::from_str(&serde_json::to_string(&run).expect("JSON")).expect("the same");
    assert_eq!(again, run);
}

#[test]
fn a_scale_shortens_trials_to_the_shortest_at_the_least() {
    let text = format!("{PLAN}duration = \"2 s\"\nunavailable = \"leave_out\"");
    let run = |scale| parse(&text, "my.toml", scale).expect("valid").network.remove(0);
    let durations = [1.0, 0.5, 1e-6].map(|scale| run(scale).duration);
    assert_eq!(durations, [Nanos::from_millis(2000), Nanos::from_millis(1000), DURATION_LEAST]);
    assert_eq!(run(1.0).unavailable, UnavailableSetting::LeaveOut);
}

#[test]
fn what_makes_no_sense_is_refused_with_what_would() {
    for (lines, parts) in [
        ("duration = \"1 ms\"", &["my.toml:4", "at least 10 ms"][..]),
        ("flows = 0", &["my.toml:4", "flows = 0: write 1 to 1024"]),
        ("pattern = \"star\"", &["line 6", "`star`", "`ring`", "`all_to_all`"]),
        ("protocol = \"sctp\"", &["line 6", "`sctp`", "`tcp`", "`udp`"]),
        ("network = \"here\"", &["line 6", "`here` is no network"]),
        ("flow = 1", &["line 6", "`flow`", "`flows`"]),
    ] {
        let refused = parse(&format!("{PLAN}{lines}"), "my.toml", 1.0).expect_err(lines).to_string();
        assert!(parts.iter().all(|part| refused.contains(part)), "{lines}: {refused}");
    }
    let with_workers = PLAN.replace("[stage.network]", "workers = 2\n[stage.network]");
    let refused = parse(&with_workers, "my.toml", 1.0).expect_err("no workers").to_string();
    assert!(refused.contains("workers: the network has none, leave it out"), "{refused}");
    for (lines, parts) in [
        ("clients = 2", &["only patterns of clients", "\"clients_to_servers\""][..]),
        ("clients = 0", &["clients = 0: write 1 or more"]),
        ("processes = 6", &["processes = 6: write 1 to 4, the most flows"]),
        ("processes = [1, 6]", &["processes = 6: write 1 to 4, the most flows"]),
        ("processes = 0", &["processes = 0: write 1 to 4, the most flows"]),
        ("congestion = \"not one\"", &["`not one` is no congestion control"]),
        ("buffer = \"1 KiB\"", &["buffer = \"1 KiB\": write 4 KiB to 1 GiB"]),
        ("protocol = \"udp\"\nbuffer = \"1 MiB\"", &["settings of TCP: add \"tcp\""]),
    ] {
        let refused = parse(&format!("{PLAN}{lines}"), "my.toml", 1.0).expect_err(lines).to_string();
        assert!(parts.iter().all(|part| refused.contains(part)), "{lines}: {refused}");
    }
    let both = format!("{PLAN}[stage.workload.walk]\nlevels = 1\nbranching = 1\nfiles = 1\n");
    let refused = parse(&both, "my.toml", 1.0).expect_err("two kinds").to_string();
    assert!(refused.contains("has a workload and a network: write one of them"), "{refused}");
}
