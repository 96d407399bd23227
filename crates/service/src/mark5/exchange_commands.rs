//! `vbs2net` sends the chunks of a recording that another recorder does not have; `net2vbs` takes such chunks.
//! In this way m5copy copies from one `FlexBuff` to another.
//!
//! Sources in the repository of jive5ab at 971c3d6: `src/mk5command/{vbs2net,net2vbs,tstat}.cc` for order and
//! codes. `scripts/m5copy` shows the replies that it needs.

use nilometer_storage::Calendar;

use super::{
    commands::{Mark5Session, note},
    peer::chunk_exchange,
    receiving_commands::closed,
    runtimes::{CopyRuntime, RuntimeRefusal, RuntimeTransfer},
    syntax::{Mark5Command, Mark5Reply, ReturnCode},
};

/// The keywords of the commands here.
const GIVES: &str = "vbs2net";
const TAKES: &str = "net2vbs";

impl Mark5Session {
    /// `connect : <recording> : <address>`, `disconnect`, `nthread`.
    pub(super) fn give_chunks(&self, command: &Mark5Command, runtime: &mut CopyRuntime) -> Mark5Reply {
        let field = |at: usize| command.fields.get(at).map_or("", String::as_str);
        match field(0) {
            "connect" => replied(command, self.begin_giving(field(1), field(2), runtime)),
            "disconnect" => closed(command, runtime.end(GIVES)),
            "nthread" => note(command, runtime.noted.set_threads(&command.fields[1..])),
            _ => Mark5Reply::to(command, ReturnCode::Parameter).field("write connect or disconnect"),
        }
    }

    fn begin_giving(&self, name: &str, host: &str, runtime: &mut CopyRuntime) -> Result<(), RuntimeRefusal> {
        runtime.check_free()?;
        let to = self.peer_address(host, runtime.port)?;
        let chunks = self.store_of(runtime)?.chunks(name);
        let chunks = chunks.map_err(|error| (ReturnCode::Failed, error.to_string()))?;
        if chunks.is_empty() {
            let why = format!("{name} has no chunks here, copy it to a file instead");
            return Err((ReturnCode::Failed, why));
        }
        let work = move |progress: &_| chunk_exchange::send_chunks(&chunks, to, progress);
        let peer = self.begin(format!("{GIVES} {name} to {to}"), work)?;
        let about = to.ip().to_string();
        runtime.transfer = Some(RuntimeTransfer { keyword: GIVES, about, peer, sending: None });
        Ok(())
    }

    /// `<active or inactive> : <address> : <bytes>`. If the transfer failed, the code is 4, with the reason.
    pub(super) fn chunks_given(command: &Mark5Command, runtime: &mut CopyRuntime) -> Mark5Reply {
        exchanged(command, runtime, GIVES)
    }

    /// `open`, `close`, `nthread`.
    pub(super) fn take_chunks(&self, command: &Mark5Command, runtime: &mut CopyRuntime) -> Mark5Reply {
        match command.fields.first().map_or("", String::as_str) {
            "open" => replied(command, self.begin_taking(runtime)),
            "close" => closed(command, runtime.end(TAKES)),
            "nthread" => note(command, runtime.noted.set_threads(&command.fields[1..])),
            _ => Mark5Reply::to(command, ReturnCode::Parameter).field("write open or close"),
        }
    }

    fn begin_taking(&self, runtime: &mut CopyRuntime) -> Result<(), RuntimeRefusal> {
        runtime.check_free()?;
        let store = self.store_of(runtime)?;
        let listener = self.listen(runtime)?;
        let senders = self.shared.senders.clone();
        let work = move |progress: &_| chunk_exchange::take_chunks(&listener, &senders, store, progress);
        let peer = self.begin(TAKES.into(), work)?;
        runtime.transfer =
            Some(RuntimeTransfer { keyword: TAKES, about: String::new(), peer, sending: None });
        Ok(())
    }

    /// `<active or inactive> : <bytes>`. If the transfer failed, the code is 4, with the reason.
    pub(super) fn chunks_taken(command: &Mark5Command, runtime: &mut CopyRuntime) -> Mark5Reply {
        exchanged(command, runtime, TAKES)
    }

    /// `<UNIX time> : <transfer> : network : <bytes>`, or `0.0 : no_transfer`. If the transfer failed, the code is 4.
    pub(super) fn moved(command: &Mark5Command, runtime: &mut CopyRuntime) -> Mark5Reply {
        let reply = Mark5Reply::to(command, ReturnCode::Done);
        let Some(transfer) = &mut runtime.transfer else { return reply.field("0.0").field("no_transfer") };
        match transfer.peer.outcome() {
            Some(Err(why)) => Mark5Reply::to(command, ReturnCode::Failed).field(transfer.keyword).field(why),
            Some(Ok(())) => reply.field("0.0").field("no_transfer"),
            None => {
                let time = Calendar::now().time.seconds();
                let reply = reply.field(format!("{time:.3}")).field(transfer.keyword);
                reply.field("network").field(transfer.peer.progress().moved())
            }
        }
    }
}

fn replied(command: &Mark5Command, outcome: Result<(), RuntimeRefusal>) -> Mark5Reply {
    match outcome {
        Ok(()) => Mark5Reply::to(command, ReturnCode::Done),
        Err((code, why)) => Mark5Reply::to(command, code).field(why),
    }
}

/// The reply to a query about the exchange of chunks.
fn exchanged(command: &Mark5Command, runtime: &mut CopyRuntime, keyword: &str) -> Mark5Reply {
    let reply = Mark5Reply::to(command, ReturnCode::Done);
    if command.fields.first().is_some_and(|asked| asked == "nthread") {
        return runtime.noted.threads().into_iter().fold(reply, Mark5Reply::field);
    }
    let Some(transfer) = runtime.transfer_of(keyword) else { return reply.field("inactive") };
    let state = match transfer.peer.outcome() {
        Some(Err(why)) => {
            return Mark5Reply::to(command, ReturnCode::Failed).field("inactive").field(why);
        }
        Some(Ok(())) => "inactive",
        None => "active",
    };
    let named = [transfer.about.as_str()].into_iter().filter(|about| !about.is_empty());
    let reply = named.fold(reply.field(state), Mark5Reply::field);
    reply.field(transfer.peer.progress().moved())
}
