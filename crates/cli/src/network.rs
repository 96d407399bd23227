//! `nilometer network`: measures the network between the machines of a launcher's processes.

use std::sync::atomic::Ordering;

use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use nilometer_cluster::{Cluster, ClusterDecision};
use nilometer_model::{
    ByteRate, Bytes, CongestionControl, Nanos, NetworkProtocol, PatternKind, Seed, Subnet, UnitError,
};
use nilometer_network::{NetworkProgress, follow_network, lead_network};
use nilometer_plan::{NetworkRun, NetworkTrials, UnavailableSetting};
use nilometer_report::{network_json, network_text};

use crate::{
    Blame, Outcome, network_line::last_measured, ranks, report::layout, signals::stop_on_signal, tell,
};

/// Measure the network between the machines on which mpirun starts it
///
/// Start it with a launcher of MPI: `mpirun --host a,b,c -n 3 nilometer network` or `srun --nodes 3 nilometer
/// network`. It sends flows from each machine to each other alone, both ways, one to all others, all others
/// to one, all to all.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Network {
    /// Send COUNT flows of TCP from each machine to each other at the same time, shared out among its
    /// processes. Several numbers run one after the other
    #[arg(long, value_name = "COUNT", value_delimiter = ',', default_values_t = [1, 4],
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    flows: Vec<u32>,
    /// Measure these patterns of senders and receivers [default: all but the ring and those of clients; with --clients
    /// or --servers, all clients to all servers]
    #[arg(long, value_name = "PATTERN", value_delimiter = ',', value_parser = pattern_kinds())]
    pattern: Vec<PatternKind>,
    /// The first COUNT machines are clients, for the patterns with clients [default: 1]
    #[arg(long, value_name = "COUNT", value_parser = machine_count)]
    clients: Option<u32>,
    /// COUNT machines behind the clients are servers [default: all others]
    #[arg(long, value_name = "COUNT", value_parser = machine_count)]
    servers: Option<u32>,
    /// Share the flows from a machine to another among COUNT processes at the most [default: all of them]
    #[arg(long, value_name = "COUNT", value_delimiter = ',')]
    processes: Vec<u32>,
    /// Use these congestion controls of TCP, such as cubic,reno,bic,htcp [default: the kernel's]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    congestion: Vec<CongestionControl>,
    /// Give each socket of TCP a buffer of this size [default: the kernel adapts it]
    #[arg(long, value_name = "SIZE", value_delimiter = ',')]
    buffer: Vec<Bytes>,
    /// Send for this time in each trial
    #[arg(long, value_name = "TIME", default_value = "1 s", value_parser = at_least_some)]
    duration: Nanos,
    /// Run COUNT rounds, each in another order
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeats: u32,
    /// Find the highest rate of UDP without loss, from each machine to each other
    #[arg(long)]
    udp: bool,
    /// Send UDP at this rate in each round, such as "2 Gbit/s", instead of the search
    #[arg(long, value_name = "RATE", requires = "udp")]
    udp_rate: Option<ByteRate>,
    /// Use this network if machines are in several: an address and the number of its bits, such as
    /// 10.1.0.0/16
    #[arg(long = "network", value_name = "NETWORK")]
    subnet: Option<Subnet>,
    /// Seed the order of the trials with this number
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Print JSON with every sample
    #[arg(long)]
    json: bool,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  measured
  1  flows failed in every repeat of a pattern, or you interrupted it
  2  wrong input, or only one machine: nothing was measured";

impl Network {
    pub(crate) fn execute(&self) -> Outcome {
        let stop = stop_on_signal().run()?;
        let cluster = ranks::cluster()?;
        if cluster.rank() > 0 {
            follow_network(cluster.as_ref());
            return Ok(());
        }
        let trials = self.trials().map_err(anyhow::Error::msg).input();
        // The other processes wait for a decision.
        let trials = trials.inspect_err(|_| drop(cluster.broadcast(Some(ClusterDecision::End))))?;
        let led = lead_network(cluster.as_ref(), &trials, &stop, &mut tell_progress);
        let results =
            led.map_err(|why| anyhow::anyhow!("{}{why}", self.how_to_start(cluster.as_ref()))).input()?;
        let left_out = trials.run.left_out(results.machines.len());
        if self.json {
            tell::json_result(format_args!("{}\n", network_json(&results, &left_out)));
        } else {
            tell::result_unchanged(network_text(&results, &left_out, layout()));
        }
        if stop.load(Ordering::Relaxed) {
            return Err(anyhow::anyhow!("it was interrupted: rounds are missing")).run();
        }
        let unknown =
            nilometer_analysis::network_outcomes(&results).into_iter().find(|known| known.rate.is_none());
        let why = unknown.map(|known| known.failed.unwrap_or_default());
        why.map_or(Ok(()), |why| Err(anyhow::anyhow!("a pattern has no figure: {why}")).run())
    }

    /// Returns true if an option tells clients from servers.
    fn has_groups(&self) -> bool {
        let has_pattern = self.pattern.iter().any(|pattern| pattern.has_groups());
        has_pattern || self.clients.is_some() || self.servers.is_some()
    }

    /// The command that starts it on several machines; empty if there are several processes.
    fn how_to_start(&self, cluster: &dyn Cluster) -> String {
        if cluster.size() > 1 {
            return String::new();
        }
        if !self.has_groups() {
            return "start it on several machines, as `mpirun --host a,b -n 2 nilometer network`: ".into();
        }
        let clients = self.clients.unwrap_or(1);
        let servers = self.servers.unwrap_or(SERVERS_SHOWN);
        let hosts = [machine_names("client", clients), machine_names("server", servers)].concat().join(",");
        let count = u64::from(clients) + u64::from(servers);
        let options = self.groups_as_written();
        format!(
            "start a process on each machine, the clients first, as `mpirun --host {hosts} -n {count} nilometer \
             network{options}`: "
        )
    }

    /// ` --clients 2 --servers 3`: the numbers of machines that the user gave, or else one client.
    fn groups_as_written(&self) -> String {
        let written = |option: &str, count: Option<u32>| count.map(|count| format!(" --{option} {count}"));
        let groups = [written("clients", self.clients), written("servers", self.servers)];
        let options: String = groups.into_iter().flatten().collect();
        if options.is_empty() { " --clients 1".into() } else { options }
    }

    fn trials(&self) -> Result<NetworkTrials, String> {
        let mut protocols = vec![NetworkProtocol::Tcp];
        protocols.extend(self.udp.then_some(NetworkProtocol::Udp));
        let usual = NetworkRun::usual("network");
        let patterns = match self.pattern.as_slice() {
            [] if self.has_groups() => vec![PatternKind::ClientsToServers],
            [] => usual.patterns.clone(),
            written => written.into(),
        };
        let run = NetworkRun {
            stage: usual.stage,
            protocols,
            patterns,
            clients: self.clients,
            servers: self.servers,
            flows: self.flows.clone(),
            processes: self.processes.clone(),
            congestion: self.congestion.clone(),
            buffers: self.buffer.clone(),
            duration: self.duration,
            network: self.subnet,
            unavailable: UnavailableSetting::Refuse,
        };
        #[expect(clippy::cast_sign_loss, reason = "a rate is not negative")]
        let packet_rate = self.udp_rate.map(|rate| rate.0 as u64);
        Ok(NetworkTrials { run: run.checked()?, rounds: self.repeats, seed: Seed(self.seed), packet_rate })
    }
}

/// Accepts the patterns by their names.
fn pattern_kinds() -> impl TypedValueParser<Value = PatternKind> {
    let kind = |name: String| PatternKind::from_name(&name).expect("one of the names");
    PossibleValuesParser::new(PatternKind::ALL.map(PatternKind::name)).map(kind)
}

/// A shorter trial contains nothing but its start.
const DURATION_LEAST: Nanos = Nanos::from_millis(10);

fn at_least_some(text: &str) -> Result<Nanos, String> {
    let duration: Nanos = text.parse().map_err(|error: UnitError| error.to_string())?;
    let is_long = duration >= DURATION_LEAST;
    is_long.then_some(duration).ok_or_else(|| format!("at least {DURATION_LEAST} are needed"))
}

/// Servers in an example, if nobody said how many there are.
const SERVERS_SHOWN: u32 = 2;
/// The most machines of a kind in an example; dots stand for the others.
const NAMES_MOST: u32 = 3;

/// `client1`, `client2`, and dots for those behind the first ones.
fn machine_names(kind: &str, count: u32) -> Vec<String> {
    let shown = (1..=count.min(NAMES_MOST)).map(|number| format!("{kind}{number}"));
    shown.chain((count > NAMES_MOST).then(|| "...".to_owned())).collect()
}

/// Accepts a number of machines.
fn machine_count(text: &str) -> Result<u32, String> {
    let count = text.parse::<u32>().ok().filter(|count| *count > 0);
    count.ok_or_else(|| "write a number of machines, 1 or more".to_owned())
}

fn tell_progress(progress: &NetworkProgress<'_>) {
    let NetworkProgress { results, done, of } = progress;
    if let Some(line) = last_measured(results) {
        tell::note(format!("[{done}/{of}] {line}"));
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct NetworkLine {
        #[command(flatten)]
        network: Network,
    }

    #[test]
    fn the_command_for_several_machines_repeats_the_numbers_as_written() {
        let written = |line: &str| {
            let words = ["network"].into_iter().chain(line.split_whitespace());
            NetworkLine::try_parse_from(words).expect(line).network.groups_as_written()
        };
        assert_eq!(written("--clients 2 --servers 9"), " --clients 2 --servers 9");
        assert_eq!(written("--servers 3"), " --servers 3");
        assert_eq!(written("--clients 4"), " --clients 4");
        assert_eq!(written("--pattern clients_to_servers"), " --clients 1");
    }
}
