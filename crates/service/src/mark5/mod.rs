//! The port for the commands of Mark 5 recorders and jive5ab: TCP 2620. Several clients can connect at once,
//! each for any time.

mod absent_commands;
mod commands;
mod data_stream;
mod directory_groups;
mod disk_commands;
mod exchange_commands;
mod file_copy;
mod free_space;
mod monitor_commands;
mod net_port;
mod noted;
mod peer;
mod receiving_commands;
mod runtime_commands;
mod runtimes;
mod scan;
mod scan_commands;
mod scan_range;
mod selected_scan;
mod sending_commands;
mod station_state;
mod stored_scan;
mod stream_commands;
mod stream_form;
mod syntax;
mod transfer;

use std::{
    io::{self, Read, Write},
    sync::Arc,
};

use crate::{
    connections::{Connection, Connections},
    console::Console,
    listener::ServiceListener,
};
use commands::Mark5Session;
pub(crate) use station_state::StationState;
use syntax::{CommandReader, Mark5Reply};

/// The most connections at once.
const MOST: usize = 64;

/// Serves connections forever.
pub(super) fn serve(listener: &ServiceListener, console: &Console, stations: StationState) {
    let console = console.clone();
    let shared = Arc::new(stations);
    let session = move || Mark5Session::new(console.clone(), shared.clone());
    Connections::new(MOST).receive("mark5", listener, move |connection| answer(connection, session()));
}

fn answer(connection: &mut Connection, mut session: Mark5Session) -> io::Result<()> {
    let mut heard = CommandReader::default();
    let mut piece = [0; 4096];
    loop {
        let count = match connection.stream.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let line = match heard.add(&piece[..count]) {
            Ok(line) => line,
            Err(why) => return writeln!(connection.stream, "{}", Mark5Reply::no_command(why)),
        };
        let Some(line) = line else { continue };
        let mut sensible = false;
        let text = line.answer(|command| {
            let reply = session.reply(command);
            sensible |= reply.is_some();
            let reply = reply.unwrap_or_else(|| commands::unknown(command));
            if !command.query {
                let said = format!("{} = {}", command.keyword, command.fields.join(" : "));
                connection.note_command(&said, &reply.to_string());
            }
            reply
        });
        connection.heard(sensible);
        connection.stream.write_all(text.as_bytes())?;
    }
}
