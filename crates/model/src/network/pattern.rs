//! Patterns of simultaneous senders and receivers.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// A pattern of simultaneous senders and receivers, by the numbers of machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrafficPattern {
    /// One machine to another.
    Pair {
        /// The sender.
        from: usize,
        /// The receiver.
        to: usize,
    },
    /// Two machines to each other.
    BothWays {
        /// The one with the smaller number.
        one: usize,
        /// The other.
        other: usize,
    },
    /// One machine to all others.
    OneToMany {
        /// The sender.
        from: usize,
    },
    /// All others to one machine (incast).
    ManyToOne {
        /// The receiver.
        to: usize,
    },
    /// Each machine to each other.
    AllToAll,
    /// Each client to each server.
    ClientsToServers(MachineGroups),
    /// Each server to each client.
    ServersToClients(MachineGroups),
}

/// The division of machines into clients and servers, in the order of their numbers. Further machines do
/// nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MachineGroups {
    /// Number of clients: the first machines.
    pub clients: usize,
    /// Number of servers: the machines behind the clients.
    pub servers: usize,
}

impl MachineGroups {
    /// One client, and as many servers as there are other machines.
    pub const fn one_client(machines: usize) -> Self {
        MachineGroups { clients: 1, servers: machines.saturating_sub(1) }
    }

    /// The numbers of the clients.
    pub fn clients(self) -> Range<usize> {
        0..self.clients
    }

    /// The numbers of the servers.
    pub fn servers(self) -> Range<usize> {
        self.clients..self.clients.saturating_add(self.servers)
    }

    /// Returns true if both groups have machines, all among the first `machines`.
    pub fn is_among(self, machines: usize) -> bool {
        let all = self.clients.checked_add(self.servers);
        self.clients > 0 && self.servers > 0 && all.is_some_and(|all| all <= machines)
    }

    /// The same groups, limited to this number of machines.
    #[must_use]
    pub fn limited_to(self, machines: usize) -> Self {
        let clients = self.clients.min(machines);
        MachineGroups { clients, servers: self.servers.min(machines - clients) }
    }

    /// Returns true for one client and one server.
    const fn is_pair(self) -> bool {
        self.clients == 1 && self.servers == 1
    }

    /// Each client with each server, the client first.
    fn each(self) -> impl Iterator<Item = (usize, usize)> {
        self.clients().flat_map(move |client| self.servers().map(move |server| (client, server)))
    }

    /// `2 clients` and `9 servers`.
    fn words(self) -> [String; 2] {
        let counted = |count: usize, of: &str| format!("{count} {of}{}", if count == 1 { "" } else { "s" });
        [counted(self.clients, "client"), counted(self.servers, "server")]
    }
}

/// The patterns of plans, by their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PatternKind {
    /// Each machine to each other, alone; of more than [`EACH_PAIR_MAX`] machines, as `ring`.
    Pairs,
    /// Each machine to the next, alone, and the last one to the first.
    Ring,
    /// Two machines to each other, for each pair of `pairs`.
    BothWays,
    /// One machine to all others, each in turn; of more than [`EACH_PAIR_MAX`] machines the first.
    OneToMany,
    /// All others to one machine, each in turn; of more than [`EACH_PAIR_MAX`] machines the first.
    ManyToOne,
    /// Each machine to each other at the same time.
    AllToAll,
    /// All clients to all servers at the same time, then all servers to all clients.
    ClientsToServers,
    /// Each client to each server, alone, and back; the first [`GROUP_PAIRS_MAX`] pairs.
    ClientServerPairs,
}

impl PatternKind {
    /// All of them.
    pub const ALL: [PatternKind; 8] = [
        PatternKind::Pairs,
        PatternKind::Ring,
        PatternKind::BothWays,
        PatternKind::OneToMany,
        PatternKind::ManyToOne,
        PatternKind::AllToAll,
        PatternKind::ClientsToServers,
        PatternKind::ClientServerPairs,
    ];

    /// The patterns that a plan measures by default.
    pub const USUAL: [PatternKind; 5] = [
        PatternKind::Pairs,
        PatternKind::BothWays,
        PatternKind::OneToMany,
        PatternKind::ManyToOne,
        PatternKind::AllToAll,
    ];

    /// Its word in plans.
    pub const fn name(self) -> &'static str {
        match self {
            PatternKind::Pairs => "pairs",
            PatternKind::Ring => "ring",
            PatternKind::BothWays => "both_ways",
            PatternKind::OneToMany => "one_to_many",
            PatternKind::ManyToOne => "many_to_one",
            PatternKind::AllToAll => "all_to_all",
            PatternKind::ClientsToServers => "clients_to_servers",
            PatternKind::ClientServerPairs => "client_server_pairs",
        }
    }

    /// The opposite of [`PatternKind::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        PatternKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns true if it tells clients from servers.
    pub const fn has_groups(self) -> bool {
        matches!(self, PatternKind::ClientsToServers | PatternKind::ClientServerPairs)
    }

    /// All its patterns among `machines` machines.
    fn patterns(self, machines: usize, groups: MachineGroups) -> Vec<TrafficPattern> {
        let roots = 0..if machines <= EACH_PAIR_MAX { machines } else { 1 };
        let alone = |pairs: Vec<MachinePair>| pairs.into_iter().map(MachinePair::alone).collect();
        match self {
            PatternKind::Pairs => alone(pairs_alone(machines)),
            PatternKind::Ring => alone(ring(machines)),
            PatternKind::BothWays => {
                let mut both: Vec<TrafficPattern> =
                    pairs_alone(machines).into_iter().map(MachinePair::both_ways).collect();
                both.sort_unstable();
                both.dedup();
                both
            }
            PatternKind::OneToMany => roots.map(|from| TrafficPattern::OneToMany { from }).collect(),
            PatternKind::ManyToOne => roots.map(|to| TrafficPattern::ManyToOne { to }).collect(),
            PatternKind::AllToAll => vec![TrafficPattern::AllToAll],
            PatternKind::ClientsToServers => {
                vec![TrafficPattern::ClientsToServers(groups), TrafficPattern::ServersToClients(groups)]
            }
            PatternKind::ClientServerPairs => {
                let alone = |(from, to)| TrafficPattern::Pair { from, to };
                let back = |(from, to)| TrafficPattern::Pair { from: to, to: from };
                let some = || groups.each().take(GROUP_PAIRS_MAX);
                some().map(alone).chain(some().map(back)).collect()
            }
        }
    }
}

/// The most machines of which each pair is measured.
pub const EACH_PAIR_MAX: usize = 8;

/// The most pairs of a client and a server that are measured alone.
pub const GROUP_PAIRS_MAX: usize = 1024;

/// One machine that sends to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct MachinePair {
    from: usize,
    to: usize,
}

impl MachinePair {
    fn alone(self) -> TrafficPattern {
        TrafficPattern::Pair { from: self.from, to: self.to }
    }

    /// The pattern for both directions.
    fn both_ways(self) -> TrafficPattern {
        TrafficPattern::BothWays { one: self.from.min(self.to), other: self.from.max(self.to) }
    }
}

fn ring(machines: usize) -> Vec<MachinePair> {
    (0..machines).map(|from| MachinePair { from, to: (from + 1) % machines }).collect()
}

/// Each pair; for many machines only neighbours in a ring, since all pairs of a hundred would take hours.
fn pairs_alone(machines: usize) -> Vec<MachinePair> {
    if machines > EACH_PAIR_MAX {
        return ring(machines);
    }
    let pairs = TrafficPattern::AllToAll.pairs(machines).into_iter();
    pairs.map(|(from, to)| MachinePair { from, to }).collect()
}

impl TrafficPattern {
    /// The pairs of machines, sender first, among `machines` machines.
    pub fn pairs(self, machines: usize) -> Vec<(usize, usize)> {
        let others = |of: usize| (0..machines).filter(move |other| *other != of);
        match self {
            TrafficPattern::Pair { from, to } => vec![(from, to)],
            TrafficPattern::BothWays { one, other } => vec![(one, other), (other, one)],
            TrafficPattern::OneToMany { from } => others(from).map(|to| (from, to)).collect(),
            TrafficPattern::ManyToOne { to } => others(to).map(|from| (from, to)).collect(),
            TrafficPattern::AllToAll => {
                (0..machines).flat_map(|from| others(from).map(move |to| (from, to))).collect()
            }
            TrafficPattern::ClientsToServers(groups) => groups.each().collect(),
            TrafficPattern::ServersToClients(groups) => {
                groups.each().map(|(client, server)| (server, client)).collect()
            }
        }
    }

    /// The patterns of these kinds among `machines` machines, each once: between two machines some kinds are
    /// the same.
    pub fn all_of(kinds: &[PatternKind], machines: usize, groups: MachineGroups) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for pattern in kinds.iter().flat_map(|kind| kind.patterns(machines, groups)) {
            let pattern = pattern.simplest(machines);
            if !all.contains(&pattern) {
                all.push(pattern);
            }
        }
        all
    }

    /// The simplest pattern with the same flows: one client and one server are a pair, and so is each pattern of two
    /// machines.
    fn simplest(self, machines: usize) -> Self {
        match self {
            TrafficPattern::ClientsToServers(groups) if groups.is_pair() => {
                TrafficPattern::Pair { from: 0, to: 1 }
            }
            TrafficPattern::ServersToClients(groups) if groups.is_pair() => {
                TrafficPattern::Pair { from: 1, to: 0 }
            }
            TrafficPattern::OneToMany { from } if machines == 2 => {
                TrafficPattern::Pair { from, to: 1 - from }
            }
            TrafficPattern::ManyToOne { to } if machines == 2 => TrafficPattern::Pair { from: 1 - to, to },
            TrafficPattern::AllToAll if machines == 2 => TrafficPattern::BothWays { one: 0, other: 1 },
            other => other,
        }
    }

    /// Returns true if all its machines are among the first `machines`.
    pub fn is_among(self, machines: usize) -> bool {
        match self {
            TrafficPattern::Pair { from: one, to: other } | TrafficPattern::BothWays { one, other } => {
                one.max(other) < machines
            }
            TrafficPattern::OneToMany { from: root } | TrafficPattern::ManyToOne { to: root } => {
                root < machines
            }
            TrafficPattern::AllToAll => true,
            TrafficPattern::ClientsToServers(groups) | TrafficPattern::ServersToClients(groups) => {
                groups.is_among(machines)
            }
        }
    }

    /// A description in words, with the names of machines.
    pub fn words(self, names: &[String]) -> String {
        match self {
            TrafficPattern::Pair { from, to } => format!("{} to {}", names[from], names[to]),
            TrafficPattern::BothWays { one, other } => {
                format!("{} and {}, both ways", names[one], names[other])
            }
            TrafficPattern::OneToMany { from } => format!("{} to all others", names[from]),
            TrafficPattern::ManyToOne { to } => format!("all others to {}", names[to]),
            TrafficPattern::AllToAll => "all to all".into(),
            TrafficPattern::ClientsToServers(groups) => {
                let [clients, servers] = groups.words();
                format!("{clients} to {servers}")
            }
            TrafficPattern::ServersToClients(groups) => {
                let [clients, servers] = groups.words();
                format!("{servers} to {clients}")
            }
        }
    }

    /// The clients and servers, if the pattern tells them apart.
    pub fn groups(self) -> Option<MachineGroups> {
        match self {
            TrafficPattern::ClientsToServers(groups) | TrafficPattern::ServersToClients(groups) => {
                Some(groups)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_of_few_machines_and_neighbours_of_many() {
        let of = |machines| {
            TrafficPattern::all_of(&PatternKind::USUAL, machines, MachineGroups::one_client(machines))
        };
        assert_eq!(of(2).len(), 3, "there and back, and both");
        let three = of(3);
        let pairs = three.iter().filter(|pattern| matches!(pattern, TrafficPattern::Pair { .. })).count();
        assert_eq!((pairs, three.len()), (6, 6 + 3 + 3 + 3 + 1));
        assert!(three.contains(&TrafficPattern::AllToAll));
        let many = of(100);
        assert_eq!(many.len(), 100 + 100 + 3);
        let closing =
            [TrafficPattern::Pair { from: 99, to: 0 }, TrafficPattern::BothWays { one: 0, other: 99 }];
        assert!(closing.iter().all(|pattern| many.contains(pattern)), "the ring is closed");
    }

    #[test]
    fn only_what_is_asked_for_is_measured_and_nothing_twice() {
        let of = |kinds: &[PatternKind], machines| {
            TrafficPattern::all_of(kinds, machines, MachineGroups::one_client(machines))
        };
        let ring = of(&[PatternKind::Ring, PatternKind::Pairs], 3);
        assert_eq!(ring.len(), 6, "pairs are in the ring, too");
        assert_eq!(ring[2], TrafficPattern::Pair { from: 2, to: 0 });
        let both = TrafficPattern::BothWays { one: 0, other: 1 };
        assert_eq!(of(&[PatternKind::AllToAll, PatternKind::BothWays], 2), [both]);
        let there = TrafficPattern::Pair { from: 0, to: 1 };
        assert!(of(&[PatternKind::ManyToOne], 2).contains(&there));
    }

    #[test]
    fn a_pattern_is_pairs_and_none_with_itself() {
        assert_eq!(TrafficPattern::ManyToOne { to: 1 }.pairs(3), [(0, 1), (2, 1)]);
        assert_eq!(TrafficPattern::OneToMany { from: 2 }.pairs(3), [(2, 0), (2, 1)]);
        assert_eq!(TrafficPattern::BothWays { one: 0, other: 2 }.pairs(3), [(0, 2), (2, 0)]);
        assert!([1, 3].map(|to| TrafficPattern::Pair { from: 0, to }.is_among(3)) == [true, false]);
        assert!(!TrafficPattern::ManyToOne { to: 3 }.is_among(3) && TrafficPattern::AllToAll.is_among(3));
        let all = TrafficPattern::AllToAll.pairs(5);
        assert!(all.len() == 20 && all.iter().all(|(from, to)| from != to));
    }

    #[test]
    fn clients_send_to_servers_at_once_and_back_and_each_alone() {
        let groups = MachineGroups { clients: 2, servers: 2 };
        let of = |kind: PatternKind, machines| TrafficPattern::all_of(&[kind], machines, groups);
        let at_once = of(PatternKind::ClientsToServers, 5);
        assert_eq!(at_once[0].pairs(5), [(0, 2), (0, 3), (1, 2), (1, 3)], "the fifth machine does nothing");
        assert_eq!(at_once[1].pairs(5), [(2, 0), (3, 0), (2, 1), (3, 1)]);
        let words: Vec<String> = at_once.iter().map(|pattern| pattern.words(&[])).collect();
        assert_eq!(words, ["2 clients to 2 servers", "2 servers to 2 clients"]);
        assert_eq!(of(PatternKind::ClientServerPairs, 5).len(), 8);
        assert!([4, 3].map(|machines| at_once[0].is_among(machines)) == [true, false]);
        let endless = MachineGroups { clients: 1, servers: usize::MAX };
        assert!(!TrafficPattern::ServersToClients(endless).is_among(5), "a record may have any number");
        let many = MachineGroups { clients: 1000, servers: 1000 };
        let pairs = TrafficPattern::all_of(&[PatternKind::ClientServerPairs], 2000, many);
        assert_eq!(pairs.len(), 2 * GROUP_PAIRS_MAX);
        assert_eq!(many.limited_to(1500), MachineGroups { clients: 1000, servers: 500 });
        let one = MachineGroups::one_client(2);
        let two = TrafficPattern::all_of(&[PatternKind::Pairs, PatternKind::ClientsToServers], 2, one);
        assert_eq!(two.len(), 2, "there and back");
    }
}
