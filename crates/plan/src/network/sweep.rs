//! `[stage.network]` as written in a plan.

use nilometer_model::{Bytes, CongestionControl, Nanos, NetworkProtocol, PatternKind, Subnet};

use super::{DURATION, NetworkRun, UnavailableSetting};
use crate::{Sweep, plan_table::plan_table};

plan_table! {
    /// Measures the network between machines.
    #[derive(Debug, Clone, PartialEq)]
    NetworkSweep {
        /// Measure streams at full speed, or search for the highest rate of packets without loss. Both go
        /// from each machine to each other.
        protocol: Sweep<NetworkProtocol> = Sweep::default(),
        /// The senders and receivers at the same time. Default: all patterns except the ring and those of clients
        /// and servers. Pairs of more than 8 machines are a ring.
        pattern: Option<Sweep<PatternKind>>,
        /// Number of clients, for the patterns with clients: the first machines.
        clients: u32 = 1,
        /// Number of servers: the machines behind the clients. Default: all of them.
        servers: Option<u32>,
        /// Streams from a machine to another, shared out among its processes. Default: 1 and 4.
        flows: Option<Sweep<u32>>,
        /// The most processes of a machine that share its flows to another. Default: all processes. Numbers of
        /// flows below it are left out, and `plan show` and reports say so.
        processes: Option<Sweep<u32>>,
        /// The congestion control of TCP, such as cubic, reno, bic, htcp. Default: the kernel's.
        congestion: Option<Sweep<CongestionControl>>,
        /// The buffer of the sockets of TCP at both ends. Default: the kernel adapts it.
        buffer: Option<Sweep<Bytes>>,
        /// Send for this time in each trial.
        duration: Nanos = DURATION,
        /// Use this network, if machines are in several.
        network: Option<Subnet>,
        /// The answer to a number of processes or a congestion control that a machine does not have.
        unavailable: UnavailableSetting = UnavailableSetting::default(),
    }
}

impl NetworkSweep {
    /// The run of this table at a scale, for the stage of this name.
    pub(crate) fn run(&self, stage: &str, scale: f64) -> Result<NetworkRun, String> {
        let values = |sweep: Option<&Sweep<u32>>| sweep.map_or_else(Vec::new, |sweep| sweep.values().into());
        let mut run = NetworkRun {
            protocols: self.protocol.values().into(),
            clients: (self.clients != 1).then_some(self.clients),
            servers: self.servers,
            processes: values(self.processes.as_ref()),
            congestion: self.congestion.as_ref().map_or_else(Vec::new, |all| all.values().into()),
            buffers: self.buffer.as_ref().map_or_else(Vec::new, |all| all.values().into()),
            duration: self.duration,
            network: self.network,
            unavailable: self.unavailable,
            ..NetworkRun::usual(stage)
        };
        if let Some(patterns) = &self.pattern {
            run.patterns = patterns.values().into();
        }
        if let Some(flows) = &self.flows {
            run.flows = flows.values().into();
        }
        Ok(run.checked()?.at_scale(scale))
    }
}
