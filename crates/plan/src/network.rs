//! Network measurements in a stage of a plan, as written and resolved. They are no cells: no target takes
//! part, and each round measures them once.

mod sweep;

use std::fmt;

use nilometer_model::{
    Bytes, CongestionControl, FlowSettings, GROUP_PAIRS_MAX, MachineGroups, Nanos, NetworkCell,
    NetworkProtocol, PatternKind, Subnet, TrafficPattern,
};
use serde::{Deserialize, Serialize};

pub use sweep::NetworkSweep;

/// The answer to settings of flows that a machine does not have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnavailableSetting {
    /// Nothing begins.
    #[default]
    Refuse,
    /// The campaign leaves the trials out, and reports name the machine and the setting.
    LeaveOut,
}

impl UnavailableSetting {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_default(&self) -> bool {
        *self == UnavailableSetting::default()
    }
}

/// The default duration.
const DURATION: Nanos = Nanos::from_millis(1000);
/// The least duration; shorter streams consist of their start only.
const DURATION_LEAST: Nanos = Nanos::from_millis(10);
/// The most streams: more would measure threads.
const FLOWS_MAX: u32 = 1024;

/// The least and the most bytes of a socket's buffer that a plan may ask for.
const BUFFER_LEAST: Bytes = Bytes(4 << 10);
const BUFFER_MAX: Bytes = Bytes(1 << 30);

/// The flows from a machine to another, with their settings.
#[derive(Debug, Clone, Copy)]
struct FlowLoad {
    flows: u32,
    settings: FlowSettings,
}

impl Default for FlowLoad {
    fn default() -> Self {
        FlowLoad { flows: 1, settings: FlowSettings::default() }
    }
}

/// Removes values that stand there already.
fn keep_first<T: Copy + PartialEq>(values: &mut Vec<T>) {
    let mut seen = Vec::new();
    for value in values.iter().copied() {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    *values = seen;
}

/// Each value, or `None` if there is none.
fn each_or_none<T: Copy>(values: &[T]) -> Vec<Option<T>> {
    if values.is_empty() { vec![None] } else { values.iter().copied().map(Some).collect() }
}

/// A measurement of the network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkRun {
    /// The stage's name.
    pub stage: String,
    /// The protocols, each once.
    pub protocols: Vec<NetworkProtocol>,
    /// The patterns of senders and receivers, each once.
    pub patterns: Vec<PatternKind>,
    /// Number of clients, the first machines; `None` for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// Number of servers behind the clients; `None` for all other machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<u32>,
    /// Streams between two machines; each of these numbers.
    pub flows: Vec<u32>,
    /// Numbers of processes that share the streams between two machines; empty for all processes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<u32>,
    /// Congestion controls of TCP; empty for the kernel's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub congestion: Vec<CongestionControl>,
    /// Buffers of sockets of TCP; empty for the kernel's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buffers: Vec<Bytes>,
    /// The time for which each trial sends.
    pub duration: Nanos,
    /// The network to measure, if machines are in several.
    pub network: Option<Subnet>,
    /// The answer to settings that a machine does not have.
    #[serde(default, skip_serializing_if = "UnavailableSetting::is_default")]
    pub unavailable: UnavailableSetting,
}

impl NetworkRun {
    /// The default measurement.
    pub fn usual(stage: &str) -> Self {
        NetworkRun {
            stage: stage.into(),
            protocols: vec![NetworkProtocol::Tcp],
            patterns: PatternKind::USUAL.into(),
            clients: None,
            servers: None,
            flows: vec![1, 4],
            processes: Vec::new(),
            congestion: Vec::new(),
            buffers: Vec::new(),
            duration: DURATION,
            network: None,
            unavailable: UnavailableSetting::default(),
        }
    }

    /// Returns the run if it makes sense; else a message that says how to correct it.
    ///
    /// # Errors
    /// It is too short, has no flows or too many, no clients or servers, or settings that fit no flow.
    pub fn checked(mut self) -> Result<Self, String> {
        let NetworkRun { duration, .. } = self;
        if duration < DURATION_LEAST {
            return Err(format!("duration = \"{duration}\": at least {DURATION_LEAST} are needed"));
        }
        if let Some(wrong) = self.flows.iter().find(|count| !(1..=FLOWS_MAX).contains(*count)) {
            return Err(format!("flows = {wrong}: write 1 to {FLOWS_MAX}"));
        }
        self.check_groups()?;
        self.check_settings()?;
        self.flows.sort_unstable();
        self.flows.dedup();
        self.protocols.sort_unstable();
        self.protocols.dedup();
        // Settings keep their order, in which the reader expects them.
        keep_first(&mut self.processes);
        keep_first(&mut self.congestion);
        keep_first(&mut self.buffers);
        Ok(self)
    }

    /// The same run with shorter or longer trials, at the least the shortest that a plan may have.
    fn at_scale(mut self, scale: f64) -> Self {
        if (scale - 1.0).abs() > f64::EPSILON {
            self.duration = Nanos::from_seconds(self.duration.seconds() * scale).max(DURATION_LEAST);
        }
        self
    }

    fn check_groups(&self) -> Result<(), String> {
        for (key, count) in [("clients", self.clients), ("servers", self.servers)] {
            match count {
                Some(0) => return Err(format!("{key} = 0: write 1 or more")),
                Some(_) if !self.has_groups() => {
                    let patterns = "\"clients_to_servers\" or \"client_server_pairs\"";
                    return Err(format!(
                        "{key}: only patterns of clients have them: add {patterns} to pattern"
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn check_settings(&self) -> Result<(), String> {
        let most = self.flows.iter().copied().max().unwrap_or(0);
        if let Some(wrong) = self.processes.iter().find(|count| !(1..=most).contains(*count)) {
            return Err(format!("processes = {wrong}: write 1 to {most}, the most flows"));
        }
        let range = BUFFER_LEAST..=BUFFER_MAX;
        if let Some(wrong) = self.buffers.iter().find(|bytes| !range.contains(*bytes)) {
            return Err(format!("buffer = \"{wrong}\": write {BUFFER_LEAST} to {BUFFER_MAX}"));
        }
        let has_settings =
            !(self.processes.is_empty() && self.congestion.is_empty() && self.buffers.is_empty());
        if has_settings && !self.protocols.contains(&NetworkProtocol::Tcp) {
            return Err(
                "processes, congestion and buffer are settings of TCP: add \"tcp\" to protocol".into()
            );
        }
        Ok(())
    }

    /// Returns true if a pattern tells clients from servers.
    pub fn has_groups(&self) -> bool {
        self.patterns.iter().any(|pattern| pattern.has_groups())
    }

    /// The clients and servers among this many machines.
    pub fn groups(&self, machines: usize) -> MachineGroups {
        let clients = self.clients.map_or(1, |count| count as usize);
        let rest = machines.saturating_sub(clients);
        MachineGroups { clients, servers: self.servers.map_or(rest, |count| count as usize) }
    }

    /// The least number of machines that have all its clients and servers, or two.
    pub fn machines_least(&self) -> usize {
        let servers = self.servers.map_or(1, |count| count as usize);
        let clients = self.clients.map_or(1, |count| count as usize);
        if self.has_groups() { clients.saturating_add(servers).max(2) } else { 2 }
    }

    /// Checks that this many machines have all its clients and servers.
    ///
    /// # Errors
    /// In words, if there are too few machines.
    pub fn check_machines(&self, machines: usize) -> Result<(), String> {
        let groups = self.groups(machines);
        if !self.has_groups() || groups.is_among(machines) {
            return Ok(());
        }
        let MachineGroups { clients, .. } = groups;
        let servers = groups.servers.max(1);
        Err(format!(
            "clients = {clients} and servers = {servers} need {} machines, and there are {machines}: start it on more, or \
             select fewer",
            clients.saturating_add(servers)
        ))
    }

    /// The trials between this many machines that its keys seem to ask for and that it leaves out, a sentence for
    /// each kind.
    pub fn left_out(&self, machines: usize) -> Vec<String> {
        let has = |kind| self.patterns.contains(&kind);
        let mut left_out = Vec::new();
        for processes in &self.processes {
            let few: Vec<String> =
                self.flows.iter().filter(|flows| *flows < processes).map(ToString::to_string).collect();
            if !few.is_empty() {
                let flows = few.join(" and ");
                left_out.push(format!(
                    "processes = {processes} with flows = {flows}: each process needs a flow of its own"
                ));
            }
        }
        let MachineGroups { clients, servers } = self.groups(machines).limited_to(machines);
        let pairs = clients.saturating_mul(servers);
        if has(PatternKind::ClientServerPairs) && pairs > GROUP_PAIRS_MAX {
            left_out.push(format!(
                "client_server_pairs: {} of {pairs} pairs, since only the first {GROUP_PAIRS_MAX} are measured",
                pairs - GROUP_PAIRS_MAX
            ));
        }
        left_out
    }

    /// The cells for this many machines: streams by their settings and number of flows, then a search for each
    /// pair.
    pub fn cells(&self, machines: usize) -> Vec<NetworkCell> {
        // A plan may name more machines than there are.
        let groups = self.groups(machines).limited_to(machines);
        let mut cells = Vec::new();
        for &protocol in &self.protocols {
            let (patterns, loads) = match protocol {
                NetworkProtocol::Tcp => (self.patterns.as_slice(), self.stream_loads()),
                NetworkProtocol::Udp => (self.searched(), vec![FlowLoad::default()]),
            };
            let patterns = TrafficPattern::all_of(patterns, machines, groups);
            for FlowLoad { flows, settings } in loads {
                cells.extend(patterns.iter().map(|&pattern| NetworkCell {
                    pattern,
                    protocol,
                    flows,
                    settings,
                }));
            }
        }
        cells
    }

    /// Each number of flows with each combination of settings. Fewer flows than processes would be the same as
    /// one process a flow, and are left out, as [`NetworkRun::left_out`] says.
    fn stream_loads(&self) -> Vec<FlowLoad> {
        let mut loads = Vec::new();
        for congestion in each_or_none(&self.congestion) {
            for buffer in each_or_none(&self.buffers) {
                for processes in each_or_none(&self.processes) {
                    let settings = FlowSettings { processes, congestion, buffer };
                    let flows = self.flows.iter().copied();
                    let fitting = flows.filter(|flows| processes.is_none_or(|count| count <= *flows));
                    loads.extend(fitting.map(|flows| FlowLoad { flows, settings }));
                }
            }
        }
        loads
    }

    /// The patterns of searches: from one machine to another.
    fn searched(&self) -> &[PatternKind] {
        let has = |kind| self.patterns.contains(&kind);
        match self.patterns.as_slice() {
            _ if has(PatternKind::Pairs) => &[PatternKind::Pairs],
            _ if has(PatternKind::Ring) => &[PatternKind::Ring],
            _ if self.has_groups() => &[PatternKind::ClientServerPairs],
            _ => &[PatternKind::Pairs],
        }
    }

    /// The least time of this many rounds between this many machines, with a single trial for each search.
    pub(super) fn least_time(&self, machines: usize, rounds: u32) -> Nanos {
        let all = self.cells(machines);
        let (streams, searches): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|cell| cell.protocol == NetworkProtocol::Tcp);
        let trials = streams.len() as u64 * u64::from(rounds) + searches.len() as u64;
        Nanos(self.duration.0.saturating_mul(trials))
    }
}

impl fmt::Display for NetworkRun {
    /// `TCP, pairs and all_to_all, 1 and 4 flows, 1 s each`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |all: Vec<String>| all.join(" and ");
        let protocols = words(self.protocols.iter().map(ToString::to_string).collect());
        let patterns: Vec<&str> = self.patterns.iter().map(|pattern| pattern.name()).collect();
        write!(f, "{protocols}, {}", patterns.join(", "))?;
        if self.has_groups() {
            write!(f, ", clients {}", self.clients.unwrap_or(1))?;
            self.servers.map_or(Ok(()), |servers| write!(f, ", servers {servers}"))?;
        }
        let flows = words(self.flows.iter().map(ToString::to_string).collect());
        write!(f, ", {flows} flows")?;
        for (what, values) in [
            ("processes", self.processes.iter().map(ToString::to_string).collect()),
            ("congestion control", self.congestion.iter().map(ToString::to_string).collect()),
            ("buffers", self.buffers.iter().map(ToString::to_string).collect::<Vec<_>>()),
        ] {
            if !values.is_empty() {
                write!(f, ", {what} {}", words(values))?;
            }
        }
        write!(f, ", {} each", self.duration)?;
        self.network.map_or(Ok(()), |network| write!(f, ", in {network}"))
    }
}

#[cfg(test)]
mod tests;
