//! Connections from outside, so many at the most. One more takes the place of the one that said nothing sensible yet, or was
//! silent longest: neither a flood nor clients that never leave keep others out.

use std::{
    io,
    net::{Shutdown, TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use nilometer_model::Nanos;
use nilometer_storage::Clock;

/// Those of one listener.
#[derive(Debug)]
pub(super) struct Visitors {
    most: usize,
    clock: Clock,
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    next: u64,
    visitors: Vec<Entry>,
    /// Also those that were let out, as long as somebody works for them.
    served: usize,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    stream: TcpStream,
    /// Whether it said something sensible, and when it said something last.
    spoke: bool,
    heard: Nanos,
}

/// A connection; it leaves when this is dropped.
#[derive(Debug)]
pub(super) struct Visitor {
    visitors: Arc<Visitors>,
    number: u64,
    pub(super) stream: TcpStream,
}

/// A thread that only reads, asks and writes needs little.
const STACK: usize = 512 << 10;
/// After an error of the listener, such as too many open files.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a client may take to read an answer.
const PATIENCE: Duration = Duration::from_secs(5);

impl Visitors {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Visitors { most, clock: Clock::start(), inside: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether so many are still worked for that no other one is let in: twice as many as may be inside.
    fn is_crowded(&self) -> bool {
        self.lock().served >= 2 * self.most
    }

    /// Lets a connection in, and another out if there are too many.
    fn admit(self: &Arc<Self>, stream: TcpStream) -> io::Result<Visitor> {
        stream.set_write_timeout(Some(PATIENCE))?;
        // Answers are short, and each is sent whole.
        stream.set_nodelay(true)?;
        let entry = stream.try_clone()?;
        let mut inside = self.lock();
        if inside.visitors.len() >= self.most {
            inside.remove_one();
        }
        let number = inside.next;
        inside.next += 1;
        inside.served += 1;
        inside.visitors.push(Entry { number, stream: entry, spoke: false, heard: self.clock.now() });
        Ok(Visitor { visitors: self.clone(), number, stream })
    }

    /// Serves each connection on a thread of its own, for ever.
    pub(super) fn receive(
        self: &Arc<Self>,
        name: &str,
        listener: &TcpListener,
        serve: impl Fn(&Visitor) -> io::Result<()> + Clone + Send + 'static,
    ) {
        loop {
            let Ok((stream, _)) = listener.accept() else {
                thread::sleep(PAUSE);
                continue;
            };
            if self.is_crowded() {
                // Threads of those that were let out end soon, unless what they ordered takes long.
                thread::sleep(PAUSE);
                if self.is_crowded() {
                    continue;
                }
            }
            let Ok(visitor) = self.admit(stream) else { continue };
            let serve = serve.clone();
            let work = move || {
                // A client that is gone, or too slow, is its own affair.
                drop(serve(&visitor));
            };
            if thread::Builder::new().name(name.into()).stack_size(STACK).spawn(work).is_err() {
                thread::sleep(PAUSE);
            }
        }
    }
}

impl Inside {
    /// The least wanted goes: its reads and writes end.
    fn remove_one(&mut self) {
        let least = self.visitors.iter().enumerate().min_by_key(|(_, entry)| (entry.spoke, entry.heard));
        if let Some(at) = least.map(|(at, _)| at) {
            let entry = self.visitors.swap_remove(at);
            drop(entry.stream.shutdown(Shutdown::Both));
        }
    }
}

impl Visitor {
    /// It said something; whether that was sensible.
    pub(super) fn heard(&self, sensible: bool) {
        let now = self.visitors.clock.now();
        let mut inside = self.visitors.lock();
        if let Some(entry) = inside.visitors.iter_mut().find(|entry| entry.number == self.number) {
            entry.spoke |= sensible;
            entry.heard = now;
        }
    }
}

impl Drop for Visitor {
    fn drop(&mut self) {
        let mut inside = self.visitors.lock();
        inside.visitors.retain(|entry| entry.number != self.number);
        inside.served -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{io::Read, net::Ipv4Addr};

    /// A client and its visitor.
    fn enter(visitors: &Arc<Visitors>, listener: &TcpListener) -> (TcpStream, Visitor) {
        let client = TcpStream::connect(listener.local_addr().expect("an address")).expect("it listens");
        let (stream, _) = listener.accept().expect("a client");
        (client, visitors.admit(stream).expect("a connection"))
    }

    #[test]
    fn who_said_nothing_sensible_gives_way_first_and_then_who_was_silent_longest() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let visitors = Visitors::new(3);
        let mut inside: Vec<_> = (0..3).map(|_| enter(&visitors, &listener)).collect();
        inside[0].1.heard(true);
        inside[2].1.heard(true);
        inside[1].1.heard(false);
        let is_out = |client: &mut TcpStream| client.read(&mut [0]).expect("no error") == 0;
        let fourth = enter(&visitors, &listener);
        assert!(is_out(&mut inside[1].0), "the one that said nothing sensible, though it spoke last");
        fourth.1.heard(true);
        let fifth = enter(&visitors, &listener);
        assert!(is_out(&mut inside[0].0), "the one that was silent longest");
        assert_eq!(visitors.lock().visitors.len(), 3);
        assert!(!visitors.is_crowded());
        let sixth = enter(&visitors, &listener);
        assert!(visitors.is_crowded(), "three inside, and three that were let out are still worked for");
        drop(sixth);
        assert!(!visitors.is_crowded());
        drop((fourth, fifth, inside));
        assert_eq!(visitors.lock().visitors.len(), 0);
    }
}
