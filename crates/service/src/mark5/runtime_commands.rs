//! `runtime`, and the commands inside of a runtime that copies from or to another recorder. All commands that it does
//! not have go to the recorder.
//!
//! Sources in the repository of jive5ab at 971c3d6: `process_runtime_command` in `src/test.cc`, and "jive5ab
//! command set" (doc/source/jive5ab-commands-sets.rst).

use std::path::PathBuf;

use nilometer_model::packets::VlbiMode;

use super::{
    commands::{Mark5Session, note},
    runtimes::{CopyRuntime, RECORDER, RuntimeRefusal},
    syntax::{Mark5Command, Mark5Reply, ReturnCode},
};

/// The commands that only a runtime beside `0` takes.
const COPIES: [&str; 5] = ["disk2net", "file2net", "net2file", "net2vbs", "vbs2net"];

impl Mark5Session {
    /// The reply of a runtime, or `None` if the command goes to the recorder.
    pub(super) fn about_runtimes(&mut self, command: &Mark5Command) -> Option<Mark5Reply> {
        match command.keyword.as_str() {
            "runtime" if command.query => return Some(self.runtimes(command)),
            "runtime" => return Some(self.set_runtime(command)),
            // Nothing is printed, so nothing can be turned off.
            "echo" if command.query => return Some(Mark5Reply::to(command, ReturnCode::Done).field("off")),
            "echo" => return Some(Mark5Reply::to(command, ReturnCode::Done)),
            _ => {}
        }
        let Some((name, runtime)) = &self.runtime.current else {
            let is_copy = COPIES.contains(&command.keyword.as_str());
            let why = "copies need a runtime of their own, write runtime = NAME : transient";
            return is_copy.then(|| Mark5Reply::to(command, ReturnCode::Conflict).field(why));
        };
        if !self.shared.runtimes().has(name, runtime) {
            let why = format!("the runtime {name} was deleted");
            return Some(Mark5Reply::to(command, ReturnCode::Failed).field(why));
        }
        let runtime = runtime.clone();
        let mut runtime = runtime.lock();
        let reply = self.of_settings(command, &mut runtime);
        reply.or_else(|| self.of_transfers(command, &mut runtime))
    }

    /// `<current> : <number of all> [: <another> ..]`
    fn runtimes(&self, command: &Mark5Command) -> Mark5Reply {
        let current = self.runtime.current.as_ref().map_or(RECORDER, |(name, _)| name.as_str());
        let known = self.shared.runtimes();
        let all: Vec<&str> = std::iter::once(RECORDER).chain(known.names()).collect();
        let reply = Mark5Reply::to(command, ReturnCode::Done).field(current).field(all.len());
        all.iter().filter(|name| **name != current).fold(reply, Mark5Reply::field)
    }

    /// `runtime = <name> [: <new, transient, exists or delete>]`. Without a second field a missing runtime is made. A
    /// transient one ends with this connection.
    fn set_runtime(&mut self, command: &Mark5Command) -> Mark5Reply {
        let field = |at: usize| command.fields.get(at).map_or("", String::as_str);
        // jive5ab calls the same one so.
        let name = if field(0) == "default" { RECORDER } else { field(0) };
        let outcome = match field(1) {
            "delete" => self.delete_runtime(name),
            "" | "exists" if name == RECORDER => {
                self.runtime.current = None;
                Ok(())
            }
            "" | "exists" | "new" | "transient" => self.use_runtime(name, field(1)),
            _ => Err((ReturnCode::Parameter, "write new, transient, exists or delete".into())),
        };
        match outcome {
            Ok(()) => Mark5Reply::to(command, ReturnCode::Done),
            Err((code, why)) => Mark5Reply::to(command, code).field(why),
        }
    }

    fn use_runtime(&mut self, name: &str, how: &str) -> Result<(), RuntimeRefusal> {
        let mut all = self.shared.runtimes();
        let known = all.find(name).filter(|_| matches!(how, "" | "exists"));
        let runtime = match (known, how) {
            (Some(known), _) => known,
            (None, "exists") => return Err((ReturnCode::Conflict, format!("{name} does not exist"))),
            (None, _) => all.create(name)?,
        };
        if how == "transient" {
            self.runtime.transient.push(name.to_owned());
        }
        self.runtime.current = Some((name.to_owned(), runtime));
        Ok(())
    }

    fn delete_runtime(&mut self, name: &str) -> Result<(), RuntimeRefusal> {
        let deleted = self.shared.runtimes().delete(name);
        let refused = || (ReturnCode::Conflict, format!("no runtime {name} that can be deleted"));
        deleted.ok_or_else(refused)?.lock().end_any();
        self.runtime.transient.retain(|transient| transient != name);
        if self.runtime.current.as_ref().is_some_and(|(current, _)| current == name) {
            self.runtime.current = None;
        }
        Ok(())
    }

    /// Deletes the runtimes that end with this connection.
    pub(super) fn end_transient_runtimes(&mut self) {
        for name in std::mem::take(&mut self.runtime.transient) {
            let deleted = self.shared.runtimes().delete(&name);
            if let Some(runtime) = deleted {
                runtime.lock().end_any();
            }
        }
    }

    /// The reply to a setting of a runtime, or `None` if it is none.
    fn of_settings(&self, command: &Mark5Command, runtime: &mut CopyRuntime) -> Option<Mark5Reply> {
        let reply = Mark5Reply::to(command, ReturnCode::Done);
        Some(match (command.keyword.as_str(), command.query) {
            ("mode", true) => match &runtime.mode {
                Some(mode) => reply.field(mode),
                None => reply.field("none"),
            },
            ("mode", false) => set_mode(command, runtime),
            ("net_protocol", true) => {
                let (protocol, buffers) = runtime.noted.protocol();
                buffers.into_iter().fold(reply.field(protocol), Mark5Reply::field)
            }
            ("net_protocol", false) => note(command, runtime.noted.set_protocol(&command.fields)),
            ("mtu", true) => reply.field(runtime.noted.mtu()),
            ("mtu", false) => note(command, runtime.noted.set_mtu(&command.fields)),
            ("ipd", true) => reply.field(runtime.noted.ipd()),
            ("ipd", false) => note(command, runtime.noted.set_ipd(&command.fields)),
            ("net_port", true) => reply.field(runtime.port),
            ("net_port", false) => note(command, set_port(runtime, &command.fields)),
            ("set_disks", true) => {
                let disks = self.disks_of(runtime);
                disks.iter().fold(reply.field(disks.len()), |reply, disk| reply.field(disk.display()))
            }
            ("set_disks", false) => self.set_disks_of(command, runtime),
            _ => return None,
        })
    }

    /// The reply to a transfer of a runtime, or `None` if the command is none.
    fn of_transfers(&self, command: &Mark5Command, runtime: &mut CopyRuntime) -> Option<Mark5Reply> {
        let query = command.query;
        Some(match command.keyword.as_str() {
            "disk2net" | "file2net" if query => Self::sending(command, runtime),
            "disk2net" | "file2net" => self.send(command, runtime),
            "net2file" if query => Self::receiving(command, runtime),
            "net2file" => self.receive_file(command, runtime),
            "record" if query => Self::copied_scan(command, runtime),
            "record" => self.copy_scan(command, runtime),
            "net2vbs" if query => Self::chunks_taken(command, runtime),
            "net2vbs" => self.take_chunks(command, runtime),
            "vbs2net" if query => Self::chunks_given(command, runtime),
            "vbs2net" => self.give_chunks(command, runtime),
            "tstat" => Self::moved(command, runtime),
            "reset" if !query && runtime.end_any() => Mark5Reply::to(command, ReturnCode::Done),
            _ => return None,
        })
    }

    /// The directories of a runtime: those that a station selected, or all of the configuration.
    pub(super) fn disks_of(&self, runtime: &CopyRuntime) -> Vec<PathBuf> {
        runtime.disks.clone().unwrap_or_else(|| self.shared.directories.clone())
    }

    fn set_disks_of(&self, command: &Mark5Command, runtime: &mut CopyRuntime) -> Mark5Reply {
        match self.shared.groups().select(&command.fields, &self.shared.directories) {
            Ok(disks) if disks.is_empty() => Mark5Reply::to(command, ReturnCode::Parameter)
                .field(0)
                .field("no directory of the configuration fits"),
            Ok(disks) => {
                let count = disks.len();
                runtime.disks = Some(disks);
                Mark5Reply::to(command, ReturnCode::Done).field(count)
            }
            Err(why) => Mark5Reply::to(command, ReturnCode::Failed).field(why),
        }
    }
}

impl Drop for Mark5Session {
    fn drop(&mut self) {
        self.end_transient_runtimes();
    }
}

/// `mode = <mode or none>`
fn set_mode(command: &Mark5Command, runtime: &mut CopyRuntime) -> Mark5Reply {
    let text = command.fields.join(":");
    if text == "none" {
        runtime.mode = None;
        return Mark5Reply::to(command, ReturnCode::Done);
    }
    match text.parse::<VlbiMode>() {
        Ok(mode) => {
            runtime.mode = Some(mode);
            Mark5Reply::to(command, ReturnCode::Done)
        }
        Err(why) => Mark5Reply::to(command, ReturnCode::Parameter).field(why),
    }
}

fn set_port(runtime: &mut CopyRuntime, fields: &[String]) -> Result<(), &'static str> {
    let port = match fields {
        [text] => text.parse().ok().filter(|port| *port > 0),
        _ => None,
    };
    runtime.port = port.ok_or("write one port from 1 to 65535")?;
    Ok(())
}
