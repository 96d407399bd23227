//! `net_port`: the addresses for packets, `[<host>@]<port>` each, as the command set of jive5ab has it. A recording
//! with several listens at all of them.

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

    /// `net_port = [<host>@]<port> [: [<host>@]<port> ...]`. Without a host the current one stays.
    pub(super) fn set_ports(&mut self, command: &Mark5Command) -> Mark5Reply {
        let wrong = |why: &str| Mark5Reply::to(command, ReturnCode::Parameter).field(why);
        let ports: Vec<&String> = command.fields.iter().filter(|field| !field.is_empty()).collect();
        if ports.is_empty() {
            return wrong("write a port, or host@port");
        }
        if ports.iter().any(|port| port.contains('@')) && !self.shared.beyond {
            return wrong("start the service with --listen-beyond-loopback to allow other hosts");
        }
        let now = self.console.report().configuration.listen.unwrap_or_default();
        let first = now.split(", ").next().filter(|address| address.starts_with(SCHEME));
        let usual = first.map_or("127.0.0.1", |address| host_and_port(address).0);
        let addresses: Option<Vec<_>> = ports.into_iter().map(|port| address(port, usual)).collect();
        let Some(listen) = addresses else { return wrong("write a port from 1 to 65535") };
        let changed = RecordOptions { listen, ..RecordOptions::default() };
        self.order(command, RecorderOrder::Change(changed))
    }
}

/// The host and the port of an address, without the scheme.
fn host_and_port(address: &str) -> (&str, &str) {
    let bare = address.strip_prefix(SCHEME).unwrap_or(address);
    bare.rsplit_once(':').unwrap_or(("", bare))
}

/// The address of `[<host>@]<port>`; `None` if that is none.
fn address(text: &str, usual: &str) -> Option<ListenAddress> {
    let (host, port) = text.rsplit_once('@').unwrap_or((usual, text));
    let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| format!("{SCHEME}{host}:{port}").parse().ok()).flatten()
}
