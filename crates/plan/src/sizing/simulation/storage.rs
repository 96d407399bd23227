//! The storage servers of the simulation. Each does one piece at a time, and the askers take turns by their
//! needs.

use std::ops::Range;

use super::Agenda;

/// A piece of work for a server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job<T> {
    /// The asker: an index into the shares.
    pub(super) asker: usize,
    /// Seconds of a server.
    pub(super) work: f64,
    /// Its purpose.
    pub(super) purpose: T,
}

/// Servers with a common queue. The turns are those of start-time fair queueing (Goyal, Vin and Cheng,
/// IEEE/ACM Transactions on Networking 5, 1997). If all wait, each gets servers in proportion to its share.
#[derive(Debug)]
pub(super) struct Storage<T> {
    idle: u64,
    waiting: Agenda<Job<T>>,
    /// The tag of the job that was begun last.
    turn: f64,
    askers: Vec<Asker>,
    /// The interval without any work, in seconds.
    stall: Range<f64>,
    /// Seconds of servers that were worked.
    pub(super) worked: f64,
}

#[derive(Debug)]
struct Asker {
    /// Servers it needs in the long run.
    share: f64,
    /// The tag that its next job has at least.
    next: f64,
}

impl<T> Storage<T> {
    pub(super) fn new(servers: u64, shares: impl Iterator<Item = f64>, stall: Range<f64>) -> Self {
        let askers = shares.map(|share| Asker { share: share.max(1e-12), next: 0.0 }).collect();
        Storage { idle: servers, waiting: Agenda::new(), turn: 0.0, askers, stall, worked: 0.0 }
    }

    pub(super) fn ask(&mut self, job: Job<T>) {
        let asker = &mut self.askers[job.asker];
        let tag = asker.next.max(self.turn);
        asker.next = tag + job.work / asker.share;
        self.waiting.add(tag, job);
    }

    /// The next job that a server begins now, if one is idle, and when it will be done.
    pub(super) fn begin(&mut self, now: f64) -> Option<(f64, Job<T>)> {
        if self.idle == 0 {
            return None;
        }
        let (tag, job) = self.waiting.next()?;
        self.turn = tag;
        self.idle -= 1;
        self.worked += job.work;
        Some((self.after(now, job.work), job))
    }

    pub(super) fn end(&mut self) {
        self.idle += 1;
    }

    /// The end of work that begins at `begun`: the storage does nothing in the stall.
    pub(super) fn after(&self, begun: f64, work: f64) -> f64 {
        let Range { start, end } = self.stall;
        let begun = if self.stall.contains(&begun) { end } else { begun };
        let interrupted = begun < start && begun + work > start;
        begun + work + if interrupted { end - start } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::float_cmp, reason = "these numbers are exact in binary")]
    #[test]
    fn who_waits_gets_servers_in_proportion_to_its_share() {
        let mut storage = Storage::new(2, [3.0, 1.0].into_iter(), 0.0..0.0);
        for _ in 0..400 {
            for asker in 0..2 {
                storage.ask(Job { asker, work: 0.5, purpose: () });
            }
        }
        let mut done = [0; 2];
        for turn in 0..200 {
            while let Some((until, job)) = storage.begin(f64::from(turn)) {
                assert_eq!(until, f64::from(turn) + 0.5);
                done[job.asker] += 1;
            }
            storage.end();
            storage.end();
        }
        assert_eq!(done, [300, 100]);
        assert_eq!(storage.worked, 200.0);
    }

    #[expect(clippy::float_cmp, reason = "these numbers are exact in binary")]
    #[test]
    fn nothing_is_done_in_a_stall() {
        let storage = Storage::<()>::new(1, [1.0].into_iter(), 10.0..12.0);
        let after = |begun| storage.after(begun, 1.0);
        assert_eq!([8.0, 9.5, 10.0, 11.5, 12.0].map(after), [9.0, 12.5, 13.0, 13.0, 13.0]);
    }
}
