//! `net_port`: the addresses for packets, `[<host>@]<port>` each, as the command set of jive5ab has it. A recording
//! with several listens at all of them. With `=<label>` behind each, every label has a recording of its own, as in
//! jive5ab (`src/mk5command/net_port.cc` in its repository at 971c3d6).

use super::{
    commands::Mark5Session,
    syntax::{Mark5Command, Mark5Reply, ReturnCode},
};
use crate::{
    recording::{addresses::ListenAddress, options::RecordOptions},
    state::RecorderOrder,
};

/// The beginning of an address for packets.
const SCHEME: &str = "udp://";

impl Mark5Session {
    /// Replies with all addresses. The hosts that a recorder has without any `<host>@` are left out.
    pub(super) fn ports(&self, command: &Mark5Command) -> Mark5Reply {
        let reply = Mark5Reply::to(command, ReturnCode::Done);
        let listens = self.console.report().configuration.listen.unwrap_or_default();
        let addresses = listens.split(", ").filter(|address| !address.is_empty());
        addresses.fold(reply, |reply, address| match host_and_port(address) {
            ("127.0.0.1" | "0.0.0.0", port) => reply.field(port),
            (host, port) => reply.field(format!("{host}@{port}")),
        })
    }

    /// `net_port = [<host>@]<port>[=<label>] [: [<host>@]<port>[=<label>] ...]`. Without a host the current one stays.
    /// Labels make a recording for each, if there are several ports, and all ports have one.
    pub(super) fn set_ports(&mut self, command: &Mark5Command) -> Mark5Reply {
        let wrong = |why: &str| Mark5Reply::to(command, ReturnCode::Parameter).field(why);
        let ports: Vec<&String> = command.fields.iter().filter(|field| !field.is_empty()).collect();
        if ports.is_empty() {
            return wrong("write a port, or host@port");
        }
        let labelled = ports.iter().filter(|port| port.contains('=')).count();
        if labelled > 0 && ports.len() == 1 {
            return wrong("write no label if there is one port");
        }
        if labelled > 0 && labelled < ports.len() {
            return wrong("write a label for each port, or none");
        }
        if ports.iter().any(|port| port.contains('@')) && !self.shared.beyond {
            return wrong("start the service with --listen-beyond-loopback to allow other hosts");
        }
        let now = self.console.report().configuration.listen.unwrap_or_default();
        let first = now.split(", ").next().filter(|address| address.starts_with(SCHEME));
        let usual = first.map_or("127.0.0.1", |address| host_and_port(address).0);
        let addresses: Option<Vec<_>> = ports.into_iter().map(|port| address(port, usual)).collect();
        let Some(listen) = addresses else {
            return wrong(if labelled > 0 {
                "write ports from 1 to 65535, and labels of letters, digits, - and +"
            } else {
                "write a port from 1 to 65535"
            });
        };
        let changed = RecordOptions { listen, ..RecordOptions::default() };
        self.order(command, RecorderOrder::Change(changed))
    }
}

/// The host and the port of an address, without the scheme.
fn host_and_port(address: &str) -> (&str, &str) {
    let bare = address.strip_prefix(SCHEME).unwrap_or(address);
    bare.rsplit_once(':').unwrap_or(("", bare))
}

/// The address of `[<host>@]<port>[=<label>]`; `None` if that is none.
fn address(text: &str, usual: &str) -> Option<ListenAddress> {
    let (host, rest) = text.rsplit_once('@').unwrap_or((usual, text));
    let port = rest.split_once('=').map_or(rest, |(port, _)| port);
    let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| format!("{SCHEME}{host}:{rest}").parse().ok()).flatten()
}
