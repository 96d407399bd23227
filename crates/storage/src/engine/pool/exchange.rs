//! What the owner of a pool and its threads hand to each other. Bounded both ways: the caller counts, so there is never
//! more than `depth` in either queue.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex},
    time::Duration,
};

use crate::{
    Clock, Completion,
    engine::{Mailbox, SubmittedOperation, Wait, Wake},
};

/// Jobs one way, news the other.
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

/// What a thread has to say.
#[derive(Debug)]
pub(super) enum ThreadNews {
    Done(Completion),
    /// It took an operation with it.
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

    /// Gives a job to whichever thread is free.
    pub(super) fn give(&self, job: SubmittedOperation) {
        self.work.lock().expect(HELD).jobs.push_back(job);
        self.given.notify_one();
    }

    /// The next job, for a thread; none at the end.
    pub(super) fn next(&self) -> Option<SubmittedOperation> {
        let work = self.work.lock().expect(HELD);
        let mut work = self.given.wait_while(work, |work| work.jobs.is_empty() && !work.ended).expect(HELD);
        if work.ended { None } else { work.jobs.pop_front() }
    }

    /// A thread has done its job.
    pub(super) fn report(&self, completion: Completion) {
        self.news.post(ThreadNews::Done(completion));
    }

    /// There is one thread more.
    pub(super) fn enter(&self) {
        *self.threads.lock().expect(HELD) += 1;
    }

    /// A thread ends.
    pub(super) fn leave(&self) {
        if std::thread::panicking() {
            self.news.post(ThreadNews::Panicked);
        }
        *self.threads.lock().expect(HELD) -= 1;
        self.left.notify_all();
    }

    /// Appends what came, waiting as told.
    pub(super) fn take(&self, wait: Wait, clock: &Clock, came: &mut Vec<ThreadNews>) {
        self.news.take(wait, clock, came);
    }

    /// Tells the threads to end, drops what none has begun, and waits for them, but not longer than the limit.
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
