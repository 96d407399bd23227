//! The queues between the owner of a pool and its threads. Both are bounded: the caller counts, so neither
//! queue ever holds more than `depth` entries.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex},
    time::Duration,
};

use crate::{
    Clock, Completion,
    engine::{Mailbox, SubmittedOperation, Wait, Wake},
};

/// Carries jobs to the threads and news back.
#[derive(Debug)]
pub(super) struct Exchange {
    work: Mutex<Work>,
    given: Condvar,
    news: Mailbox<ThreadNews>,
    threads: Mutex<usize>,
    left: Condvar,
}

#[derive(Debug)]
struct Work {
    jobs: VecDeque<SubmittedOperation>,
    ended: bool,
}

/// News from a thread.
#[derive(Debug)]
pub(super) enum ThreadNews {
    Done(Completion),
    /// The thread panicked and lost its operation.
    Panicked,
}

const HELD: &str = "nothing panics under this lock";

impl Exchange {
    pub(super) fn new(depth: usize) -> Self {
        Exchange {
            work: Mutex::new(Work { jobs: VecDeque::with_capacity(depth), ended: false }),
            given: Condvar::new(),
            news: Mailbox::with_capacity(depth),
            threads: Mutex::new(0),
            left: Condvar::new(),
        }
    }

    /// Queues a job for the next free thread.
    pub(super) fn give(&self, job: SubmittedOperation) {
        self.work.lock().expect(HELD).jobs.push_back(job);
        self.given.notify_one();
    }

    /// Returns the next job for a thread; `None` once the pool ends.
    pub(super) fn next(&self) -> Option<SubmittedOperation> {
        let work = self.work.lock().expect(HELD);
        let mut work = self.given.wait_while(work, |work| work.jobs.is_empty() && !work.ended).expect(HELD);
        if work.ended { None } else { work.jobs.pop_front() }
    }

    /// Reports a finished job to the owner.
    pub(super) fn report(&self, completion: Completion) {
        self.news.post(ThreadNews::Done(completion));
    }

    /// Counts a new thread.
    pub(super) fn enter(&self) {
        *self.threads.lock().expect(HELD) += 1;
    }

    /// Counts off a thread that ends.
    pub(super) fn leave(&self) {
        if std::thread::panicking() {
            self.news.post(ThreadNews::Panicked);
        }
        *self.threads.lock().expect(HELD) -= 1;
        self.left.notify_all();
    }

    /// Appends all news and waits as `wait` says.
    pub(super) fn take(&self, wait: Wait, clock: &Clock, came: &mut Vec<ThreadNews>) {
        self.news.take(wait, clock, came);
    }

    /// Ends the threads, drops jobs that none has begun, and waits for the threads up to `limit`.
    pub(super) fn end(&self, limit: Duration) {
        let mut work = self.work.lock().expect(HELD);
        work.ended = true;
        work.jobs.clear();
        drop(work);
        self.given.notify_all();
        let threads = self.threads.lock().expect(HELD);
        drop(self.left.wait_timeout_while(threads, limit, |threads| *threads > 0).expect(HELD));
    }
}

impl Wake for Exchange {
    fn wake(&self) {
        self.news.wake();
    }
}
