//! `datastream`: the command that defines data streams for all connections. [`super::data_stream`] has its rules.

use super::{
    commands::Mark5Session,
    syntax::{Mark5Command, Mark5Reply, ReturnCode},
};
use crate::state::ServiceState;

impl Mark5Session {
    /// `datastream?`: the number of data streams and their names. `datastream? <name>`: its specifications.
    pub(super) fn streams(&self, command: &Mark5Command) -> Mark5Reply {
        let streams = self.shared.streams();
        let reply = Mark5Reply::to(command, ReturnCode::Done);
        let name = command.fields.first().map_or("", String::as_str);
        if name.is_empty() {
            let names = streams.names();
            return names.iter().fold(reply.field(names.len()), Mark5Reply::field);
        }
        match streams.specifications(name) {
            Some(all) => all.iter().fold(reply.field(name), Mark5Reply::field),
            None => Mark5Reply::to(command, ReturnCode::Parameter)
                .field(format!("the data stream {name} is not defined")),
        }
    }

    /// `datastream = add : <name> : <specification> ..`, `remove : <name>`, `reset`, `clear`.
    pub(super) fn set_streams(&self, command: &Mark5Command) -> Mark5Reply {
        if self.console.report().state == ServiceState::Recording {
            return Mark5Reply::to(command, ReturnCode::Conflict).field("not while it records");
        }
        match self.shared.streams().change(&command.fields) {
            Ok(()) => Mark5Reply::to(command, ReturnCode::Done),
            Err((code, why)) => Mark5Reply::to(command, code).field(why),
        }
    }
}
