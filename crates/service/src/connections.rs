//! Client connections, limited in number. A new one takes the place of one that has sent nothing sensible yet,
//! or else of the one that was silent longest. Neither a flood nor clients that never leave keep others out.

use std::{
    io,
    net::{Shutdown, SocketAddr, TcpStream},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use nilometer_model::{Moment, Nanos};
use nilometer_storage::{Calendar, Clock};

use crate::{
    access::AccessSecrets,
    client_stream::{ClientStream, TimedSocket},
    error::OperatorLog,
    listener::ServiceListener,
};

/// The connections of one listener, at most `most`.
#[derive(Debug)]
pub(crate) struct Connections {
    most: usize,
    clock: Clock,
    open: Mutex<OpenConnections>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    next: u64,
    connections: Vec<Entry>,
    /// Connections being served. Includes evicted ones whose thread still works.
    served: usize,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    stream: TcpStream,
    /// True if it sent something sensible. `heard` is the time of its last message.
    spoke: bool,
    heard: Nanos,
}

/// The place of a connection among the others. Dropping it frees the place.
#[derive(Debug)]
struct ConnectionPlace {
    connections: Arc<Connections>,
    number: u64,
}

/// A connection being served.
#[derive(Debug)]
pub(crate) struct Connection {
    place: ConnectionPlace,
    from: io::Result<SocketAddr>,
    pub(crate) stream: ClientStream,
    /// The name of the client's token, if the service requires tokens.
    pub(crate) client: Option<String>,
    log: OperatorLog,
}

/// The most characters of a command that the log shows.
const COMMAND_SHOWN: usize = 300;
/// The stack of a connection's thread, which only reads, queries and writes.
const STACK: usize = 512 << 10;
/// The pause after an error of the listener, such as too many open files.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a client may take to read an answer.
const PATIENCE: Duration = Duration::from_secs(5);

impl Connections {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Connections { most, clock: Clock::start(), open: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if twice as many connections as may be open are still being served; then no other gets in.
    fn is_crowded(&self) -> bool {
        self.lock().served >= 2 * self.most
    }

    /// Admits a connection, and evicts another if there are too many.
    fn admit(self: &Arc<Self>, stream: &TcpStream) -> io::Result<ConnectionPlace> {
        stream.set_write_timeout(Some(PATIENCE))?;
        // Answers are short, and each is sent whole.
        stream.set_nodelay(true)?;
        let entry = stream.try_clone()?;
        let mut open = self.lock();
        if open.connections.len() >= self.most {
            open.remove_one();
        }
        let number = open.next;
        open.next += 1;
        open.served += 1;
        open.connections.push(Entry { number, stream: entry, spoke: false, heard: self.clock.now() });
        Ok(ConnectionPlace { connections: self.clone(), number })
    }

    /// Serves each connection on a thread of its own, for ever.
    pub(crate) fn receive(
        self: &Arc<Self>,
        name: &str,
        listener: &ServiceListener,
        serve: impl Fn(&mut Connection) -> io::Result<()> + Clone + Send + 'static,
    ) {
        loop {
            let Ok(stream) = listener.accept() else {
                thread::sleep(PAUSE);
                continue;
            };
            if self.is_crowded() {
                // Threads of evicted connections end soon, unless their orders take long.
                thread::sleep(PAUSE);
                if self.is_crowded() {
                    continue;
                }
            }
            let Ok(place) = self.admit(&stream) else { continue };
            let serve = serve.clone();
            let secrets = listener.secrets().clone();
            let log = listener.log();
            // On the connection's thread, since it may read files: storage that hangs must not block other
            // clients.
            let work = move || {
                let connection = Connection::open(place, stream, &secrets, log);
                // Ignore errors: the client has gone or is too slow.
                drop(connection.and_then(|mut connection| serve(&mut connection)));
            };
            if thread::Builder::new().name(name.into()).stack_size(STACK).spawn(work).is_err() {
                thread::sleep(PAUSE);
            }
        }
    }
}

impl OpenConnections {
    /// Evicts the connection that was silent longest, first among those without a sensible message. Its reads and
    /// writes end.
    fn remove_one(&mut self) {
        let least = self.connections.iter().enumerate().min_by_key(|(_, entry)| (entry.spoke, entry.heard));
        if let Some(at) = least.map(|(at, _)| at) {
            let entry = self.connections.swap_remove(at);
            drop(entry.stream.shutdown(Shutdown::Both));
        }
    }
}

impl Connection {
    fn open(
        place: ConnectionPlace,
        stream: TcpStream,
        secrets: &AccessSecrets,
        log: OperatorLog,
    ) -> io::Result<Self> {
        let from = stream.peer_addr();
        let stream = secrets.stream(TimedSocket::new(stream)).map_err(io::Error::other)?;
        Ok(Connection { place, from, stream, client: None, log })
    }

    /// Logs a command with its time, sender and outcome. Do not call it for queries.
    pub(crate) fn note_command(&self, command: &str, outcome: &str) {
        let from = self.from.as_ref().map_or_else(|_| "a client that left".to_owned(), SocketAddr::to_string);
        let certificate = || Some(format!("certificate {}", self.stream.client_certificate()?));
        let client = self.client.clone().or_else(certificate);
        let from = client.map_or_else(|| from.clone(), |client| format!("{from} ({client})"));
        let now = Moment(Calendar::now().time);
        let [command, outcome] = [command, outcome].map(shown);
        (self.log)(&format!("command at {now} from {from}: {command} -> {outcome}"));
    }

    /// Records that the client sent something, and if that was sensible.
    pub(crate) fn heard(&self, sensible: bool) {
        self.place.heard(sensible);
    }
}

impl ConnectionPlace {
    fn heard(&self, sensible: bool) {
        let now = self.connections.clock.now();
        let mut open = self.connections.lock();
        if let Some(entry) = open.connections.iter_mut().find(|entry| entry.number == self.number) {
            entry.spoke |= sensible;
            entry.heard = now;
        }
    }
}

/// The beginning of a client's text, escaped to one line for the log.
fn shown(text: &str) -> String {
    text.trim().chars().take(COMMAND_SHOWN).flat_map(char::escape_debug).collect()
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        let mut open = self.connections.lock();
        open.connections.retain(|entry| entry.number != self.number);
        open.served -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listener::{ClientReach, listen};
    use std::io::Read;

    /// A client and the place of its connection.
    fn enter(connections: &Arc<Connections>, listener: &ServiceListener) -> (TcpStream, ConnectionPlace) {
        let client = TcpStream::connect(listener.local_addr().expect("an address")).expect("it listens");
        let stream = listener.accept().expect("a client");
        (client, connections.admit(&stream).expect("a connection"))
    }

    #[test]
    fn who_said_nothing_sensible_gives_way_first_and_then_who_was_silent_longest() {
        let listener = listen("http", "127.0.0.1:0", ClientReach::default(), |_| {}).expect("a port");
        let connections = Connections::new(3);
        let mut open: Vec<_> = (0..3).map(|_| enter(&connections, &listener)).collect();
        open[0].1.heard(true);
        open[2].1.heard(true);
        open[1].1.heard(false);
        let is_out = |client: &mut TcpStream| client.read(&mut [0]).expect("no error") == 0;
        let fourth = enter(&connections, &listener);
        assert!(is_out(&mut open[1].0), "the one that said nothing sensible, though it spoke last");
        fourth.1.heard(true);
        let fifth = enter(&connections, &listener);
        assert!(is_out(&mut open[0].0), "the one that was silent longest");
        assert_eq!(connections.lock().connections.len(), 3);
        assert!(!connections.is_crowded());
        let sixth = enter(&connections, &listener);
        assert!(connections.is_crowded(), "three inside, and three that were let out are still worked for");
        drop(sixth);
        assert!(!connections.is_crowded());
        drop((fourth, fifth, open));
        assert_eq!(connections.lock().connections.len(), 0);
    }
}
