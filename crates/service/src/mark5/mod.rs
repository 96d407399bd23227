//! The port on which stations command Mark 5 recorders, and jive5ab: TCP 2620. A connection lasts as long as its
//! client likes; several at once.

mod commands;
mod noted;
mod scan;
mod syntax;

use std::{
    io::{self, Read, Write},
    net::TcpListener,
    sync::{Arc, Mutex},
};

use crate::{
    connections::{Connection, Connections},
    console::Console,
};
use commands::Mark5Session;
use noted::NotedSettings;
use syntax::{CommandReader, Mark5Reply};

/// Connections at once.
const MOST: usize = 64;

/// Answers for ever. `beyond` says whether commands may have data from beyond this machine.
pub(super) fn serve(listener: &TcpListener, console: &Console, beyond: bool) {
    let console = console.clone();
    let noted = Arc::<Mutex<NotedSettings>>::default();
    let session = move || Mark5Session::new(console.clone(), noted.clone(), beyond);
    Connections::new(MOST).receive("mark5", listener, move |connection| answer(connection, session()));
}

fn answer(connection: &Connection, mut session: Mark5Session) -> io::Result<()> {
    let mut heard = CommandReader::default();
    let mut piece = [0; 4096];
    let mut stream = &connection.stream;
    loop {
        let count = match stream.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let line = match heard.add(&piece[..count]) {
            Ok(line) => line,
            Err(why) => return writeln!(stream, "{}", Mark5Reply::no_command(why)),
        };
        let Some(line) = line else { continue };
        let mut sensible = false;
        let text = line.answer(|command| {
            let reply = session.reply(command);
            sensible |= reply.is_some();
            reply.unwrap_or_else(|| commands::unknown(command))
        });
        connection.heard(sensible);
        stream.write_all(text.as_bytes())?;
    }
}
