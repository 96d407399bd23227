//! Streams of TCP from a node of the testbed to another, against iperf3 and nuttcp, as Debian has them, and packets of UDP at the
//! same rate and of the same size against iperf3: what a GiB costs in processor time at both ends together. Each says itself what its threads or processes spent while data were sent, by the
//! kernel's account; what the kernel does for a connection on behalf of nobody is counted for none of them.

use std::{
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use anyhow::{Context, ensure};
use nilometer_storage::Clock;
use nilometer_tests::Testbed;
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    contest::{Bound, Contest, Contestant, Cost, Limit, Outcome, Quantity, Stop},
    measure, place,
    ranks::make_adapter,
};

const OURS: &str = "nilometer network";
const IPERF: &str = "iperf3";
const NUTTCP: &str = "nuttcp";
/// How long data are sent in each run.
const SECONDS: u32 = 2;
const UDP_RATE: &str = "1 Gbit/s";
/// What a packet holds where the longest has 1500 bytes, as in the testbed.
const UDP_SIZE: usize = 1472;
const GIB: f64 = (1_u64 << 30) as f64;

/// One stream.
pub(crate) fn one(stop: &Stop) -> anyhow::Result<Outcome> {
    compare(1, stop)
}

/// Four at once.
pub(crate) fn four(stop: &Stop) -> anyhow::Result<Outcome> {
    compare(4, stop)
}

fn compare(flows: u32, stop: &Stop) -> anyhow::Result<Outcome> {
    let nodes = Nodes::up()?;
    let bound = |peer| Bound { subject: OURS, peer, limit: Limit::Times(1.0) };
    let contest = Contest {
        title: format!("network: TCP from node to node, {flows} at once, {SECONDS} s"),
        quantity: Quantity::CpuPerGib,
        phases: &["both ends"],
        rounds: 5,
        contestants: vec![
            Contestant::new(IPERF, || nodes.iperf(flows)),
            Contestant::new(NUTTCP, || nodes.nuttcp(flows)),
            Contestant::new(OURS, || nodes.ours(flows)),
        ],
        bounds: vec![bound(IPERF), bound(NUTTCP)],
    };
    contest.run(stop)
}

/// Packets of UDP at a rate that both carry here. A GiB is one that came.
pub(crate) fn udp(stop: &Stop) -> anyhow::Result<Outcome> {
    let nodes = Nodes::up()?;
    let contest = Contest {
        title: format!(
            "network: UDP from node to node, {UDP_RATE}, packets of {UDP_SIZE} bytes, {SECONDS} s"
        ),
        quantity: Quantity::CpuPerGib,
        phases: &["both ends"],
        rounds: 5,
        contestants: vec![
            Contestant::new(IPERF, || nodes.iperf_udp()),
            Contestant::new(OURS, || nodes.ours_udp()),
        ],
        bounds: vec![Bound { subject: OURS, peer: IPERF, limit: Limit::Times(1.0) }],
    };
    contest.run(stop)
}

/// Two nodes, with servers of the peers on the first.
struct Nodes {
    testbed: Testbed,
    home: TempDir,
    program: PathBuf,
    address: String,
    servers: Vec<Child>,
}

/// How long a server may take until it listens, in seconds.
const PATIENCE: f64 = 10.0;

impl Nodes {
    fn up() -> anyhow::Result<Self> {
        for peer in [IPERF, NUTTCP] {
            let found = Command::new(peer).arg("-v").output();
            found.with_context(|| format!("`{peer}` is missing: scripts/bootstrap bench"))?;
        }
        let testbed = Testbed::of(&["nodes"]).context("no nodes: scripts/bootstrap testbed, as root")?;
        let home = tempfile::tempdir()?;
        let program = place::program()?;
        make_adapter(&program, &home.path().join("adapter.so"))?;
        let said = testbed.must("node", &["1", "hostname", "--all-ip-addresses"]);
        let address = said.split_whitespace().next().context("node-1 has no address")?.to_owned();
        let mut nodes = Nodes { testbed, home, program, address, servers: Vec::new() };
        for server in [&["1", IPERF, "--server"][..], &["1", NUTTCP, "-S", "--nofork"]] {
            let mut command = nodes.testbed.command("node", server);
            nodes.servers.push(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
        }
        nodes.await_server(|nodes| nodes.iperf(1))?;
        nodes.await_server(|nodes| nodes.nuttcp(1))?;
        Ok(nodes)
    }

    /// A peer's client fails until its server listens.
    fn await_server(&self, client: impl Fn(&Self) -> anyhow::Result<Vec<Cost>>) -> anyhow::Result<()> {
        let clock = Clock::start();
        loop {
            match client(self) {
                Ok(_) => return Ok(()),
                Err(error) if clock.now().seconds() > PATIENCE => return Err(error),
                Err(_) => std::thread::sleep(std::time::Duration::from_millis(100)),
            }
        }
    }

    /// A program on the second node; what it says on stdout.
    fn said(&self, words: &[&str]) -> anyhow::Result<String> {
        let mut command = self.testbed.command("node", &[&["2"], words].concat());
        let (_, output) = measure::child(1.0, &mut command)?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn iperf(&self, flows: u32) -> anyhow::Result<Vec<Cost>> {
        let [seconds, flows] = [SECONDS, flows].map(|number| number.to_string());
        let words = [IPERF, "--client", &self.address, "--time", &seconds, "--parallel", &flows, "--json"];
        let said: Value =
            serde_json::from_str(&self.said(&words)?).context("iperf3 did not answer in JSON")?;
        Ok(vec![iperf_cost(&said).context("iperf3's answer lacks a figure")?])
    }

    fn nuttcp(&self, flows: u32) -> anyhow::Result<Vec<Cost>> {
        let words = [NUTTCP, "-fparse", &format!("-T{SECONDS}"), &format!("-N{flows}"), &self.address];
        let said = self.said(&words)?;
        Ok(vec![nuttcp_cost(&said).with_context(|| format!("nuttcp's answer lacks a figure: {said}"))?])
    }

    fn iperf_udp(&self) -> anyhow::Result<Vec<Cost>> {
        let [seconds, size] = [SECONDS as usize, UDP_SIZE].map(|number| number.to_string());
        let words = [IPERF, "--client", &self.address, "--time", &seconds, "--json"];
        let of_packets = ["--udp", "--bitrate", "1G", "--length", &size];
        let said = self.said(&[&words[..], &of_packets].concat())?;
        let said: Value = serde_json::from_str(&said).context("iperf3 did not answer in JSON")?;
        Ok(vec![iperf_cost(&said).context("iperf3's answer lacks a figure")?])
    }

    /// Both ways, one after the other.
    fn ours(&self, flows: u32) -> anyhow::Result<Vec<Cost>> {
        let said = self.we_say(&["--flows", &flows.to_string()])?;
        let figures = said["figures"].as_array().context("no figures")?;
        ensure!(figures.len() == 2, "there is one way and the other: {figures:?}");
        both_ways(figures.iter().map(our_cost).collect())
    }

    fn ours_udp(&self) -> anyhow::Result<Vec<Cost>> {
        let said = self.we_say(&["--flows", "1", "--udp", "--udp-rate", UDP_RATE])?;
        let samples = said["samples"].as_array().context("no samples")?;
        let packets: Vec<&Value> = samples.iter().filter(|sample| !sample["asked"].is_null()).collect();
        ensure!(packets.len() == 2, "there is one way and the other: {samples:?}");
        both_ways(packets.into_iter().map(our_udp_cost).collect())
    }

    /// What our program finds between the nodes.
    fn we_say(&self, of_flows: &[&str]) -> anyhow::Result<Value> {
        let duration = format!("{SECONDS} s");
        let program = self.program.to_str().context("a path in plain letters")?;
        let launch = ["1", "mpirun.openmpi", "--host", "node-1,node-2", "-x", "NILOMETER_MPI", "-n", "2"];
        let asked = ["network", "--pattern", "pairs", "--repeats", "1", "--json", "--duration", &duration];
        let words = [&launch[..], &[program], &asked, of_flows].concat();
        let mut command = self.testbed.command("node", &words);
        command.current_dir(self.home.path()).env("NILOMETER_MPI", self.home.path().join("adapter.so"));
        let (_, output) = measure::child(1.0, &mut command)?;
        serde_json::from_slice(&output.stdout).context("no JSON")
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for server in &mut self.servers {
            // One that has ended is gone already.
            drop(server.kill());
            drop(server.wait());
        }
    }
}

fn both_ways(costs: Option<Vec<Cost>>) -> anyhow::Result<Vec<Cost>> {
    let both = costs.context("a figure is missing")?.into_iter().reduce(|one, other| Cost {
        amount: one.amount + other.amount,
        cpu: one.cpu + other.cpu,
        wall: one.wall + other.wall,
    });
    Ok(both.into_iter().collect())
}

fn our_cost(figure: &Value) -> Option<Cost> {
    let number = |key: &str| figure[key].as_f64();
    let wall = f64::from(SECONDS);
    let bytes = number("bytes_per_second")? * wall;
    let for_gigabyte = number("sending_processor_seconds_per_gigabyte")?
        + number("receiving_processor_seconds_per_gigabyte")?;
    Some(Cost { amount: bytes / GIB, cpu: for_gigabyte * bytes / 1e9, wall })
}

/// A trial of one flow of packets.
fn our_udp_cost(sample: &Value) -> Option<Cost> {
    let end = |side: &str| &sample["flows"][0][side];
    let amount = end("received")["bytes"].as_f64()? / GIB;
    let cpu = end("sent")["processor_s"].as_f64()? + end("received")["processor_s"].as_f64()?;
    Some(Cost { amount, cpu, wall: f64::from(SECONDS) })
}

/// Percent of a processor at both ends, over the time of the test.
fn iperf_cost(said: &Value) -> Option<Cost> {
    let end = &said["end"];
    let percent = |of: &str| end["cpu_utilization_percent"][of].as_f64();
    let wall = end["sum_received"]["seconds"].as_f64()?;
    let amount = end["sum_received"]["bytes"].as_f64()? / GIB;
    Some(Cost { amount, cpu: (percent("host_total")? + percent("remote_total")?) / 100.0 * wall, wall })
}

/// `megabytes=... real_seconds=... rate_Mbps=... tx_cpu=... rx_cpu=...`: its megabytes are 2^20 bytes.
fn nuttcp_cost(said: &str) -> Option<Cost> {
    let number = |key: &str| {
        let word = said.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        word?.parse::<f64>().ok()
    };
    let wall = number("real_seconds")?;
    let amount = number("megabytes")? / 1024.0;
    Some(Cost { amount, cpu: (number("tx_cpu")? + number("rx_cpu")?) / 100.0 * wall, wall })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn assert_cost(found: Option<Cost>, expected: Cost) {
        let found = found.expect("all figures are there");
        for (one, other) in
            [(found.amount, expected.amount), (found.cpu, expected.cpu), (found.wall, expected.wall)]
        {
            assert!((one - other).abs() < 1e-6, "{found:?}");
        }
    }

    #[test]
    fn what_each_says_of_itself_is_a_cost() {
        let iperf = json!({ "end": { "cpu_utilization_percent": { "host_total": 60.0, "remote_total": 40.0 },
                                     "sum_received": { "seconds": 2.0, "bytes": GIB } } });
        assert_cost(iperf_cost(&iperf), Cost { amount: 1.0, cpu: 2.0, wall: 2.0 });
        assert_eq!(iperf_cost(&json!({})), None);
        let nuttcp = "megabytes=2048.0 real_seconds=2.00 rate_Mbps=8589.9 tx_cpu=30 rx_cpu=45 retrans=0\n";
        assert_cost(nuttcp_cost(nuttcp), Cost { amount: 2.0, cpu: 1.5, wall: 2.0 });
        let ours = json!({ "bytes_per_second": GIB, "sending_processor_seconds_per_gigabyte": 0.1,
                           "receiving_processor_seconds_per_gigabyte": 0.2 });
        assert_cost(our_cost(&ours), Cost { amount: 2.0, cpu: 0.6 * GIB / 1e9, wall: 2.0 });
        let packets = json!({ "asked": 5, "flows": [{ "sent": { "processor_s": 0.25 },
                              "received": { "processor_s": 0.5, "bytes": 2.0 * GIB } }] });
        assert_cost(our_udp_cost(&packets), Cost { amount: 2.0, cpu: 0.75, wall: 2.0 });
    }
}
