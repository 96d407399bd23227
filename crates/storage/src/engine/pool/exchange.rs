//! What the owner of a pool and its threads hand to each other. Bounded both ways: the caller counts, so there is never
//! more than `depth` in either queue.

use std::{
    collections::VecDeque,
    sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use nilometer_model::Nanos;

use super::order::Job;
use crate::{
    Clock, Completion,
    engine::{Wait, Wake, pause::AWAKE_BEFORE},
};

/// Jobs one way, news the other.
#[derive(Debug)]
pub(super) struct Exchange {
    work: Mutex<Work>,
    given: Condvar,
    news: Mutex<News>,
    came: Condvar,
    /// Something is in the news: to be read without the lock.
    any: AtomicBool,
}

#[derive(Debug)]
struct Work {
    jobs: VecDeque<Job>,
    ended: bool,
}

#[derive(Debug)]
struct News {
    done: Vec<Completion>,
    woken: bool,
    threads: usize,
    panicked: bool,
}

const HELD: &str = "nothing panics under this lock";

impl Exchange {
    pub(super) fn new(depth: usize) -> Self {
        Exchange {
            work: Mutex::new(Work { jobs: VecDeque::with_capacity(depth), ended: false }),
            given: Condvar::new(),
            news: Mutex::new(News {
                done: Vec::with_capacity(depth),
                woken: false,
                threads: 0,
                panicked: false,
            }),
            came: Condvar::new(),
            any: AtomicBool::new(false),
        }
    }

    fn news(&self) -> MutexGuard<'_, News> {
        self.news.lock().expect(HELD)
    }

    /// Gives a job to whichever thread is free.
    pub(super) fn give(&self, job: Job) {
        self.work.lock().expect(HELD).jobs.push_back(job);
        self.given.notify_one();
    }

    /// The next job, for a thread; none at the end.
    pub(super) fn next(&self) -> Option<Job> {
        let work = self.work.lock().expect(HELD);
        let mut work = self.given.wait_while(work, |work| work.jobs.is_empty() && !work.ended).expect(HELD);
        if work.ended { None } else { work.jobs.pop_front() }
    }

    /// A thread has done its job.
    pub(super) fn report(&self, completion: Completion) {
        self.tell(|news| news.done.push(completion));
    }

    /// There is one thread more.
    pub(super) fn enter(&self) {
        self.news().threads += 1;
    }

    /// A thread ends.
    pub(super) fn leave(&self) {
        let panicked = std::thread::panicking();
        self.tell(|news| {
            news.threads -= 1;
            news.panicked |= panicked;
        });
    }

    fn tell(&self, change: impl FnOnce(&mut News)) {
        let mut news = self.news();
        change(&mut news);
        self.any.store(true, Ordering::Release);
        drop(news);
        self.came.notify_all();
    }

    /// Takes what is done, waiting as told.
    pub(super) fn take(&self, wait: Wait, clock: &Clock, done: &mut Vec<Completion>) {
        let mut news = match wait {
            Wait::Poll if !self.any.load(Ordering::Acquire) => return,
            Wait::Poll => self.news(),
            Wait::ForOne => {
                self.came.wait_while(self.news(), |news| news.done.is_empty() && !news.panicked).expect(HELD)
            }
            Wait::News => self.came.wait_while(self.news(), |news| news.silent()).expect(HELD),
            Wait::Until(time) => self.until(time, clock),
        };
        if matches!(wait, Wait::News | Wait::Until(_)) {
            news.woken = false;
        }
        done.append(&mut news.done);
        self.any.store(news.woken || news.panicked, Ordering::Relaxed);
        let panicked = news.panicked;
        drop(news);
        assert!(!panicked, "a thread of the pool panicked: its operation is lost");
    }

    /// Asleep until shortly before the time, then awake.
    fn until(&self, time: Nanos, clock: &Clock) -> MutexGuard<'_, News> {
        let left = time.since(clock.now());
        if left > AWAKE_BEFORE {
            let limit = (left - AWAKE_BEFORE).duration();
            let silent = |news: &mut News| news.silent();
            let (news, _) = self.came.wait_timeout_while(self.news(), limit, silent).expect(HELD);
            if !news.silent() {
                return news;
            }
        }
        while clock.now() < time && !self.any.load(Ordering::Acquire) {
            std::hint::spin_loop();
        }
        self.news()
    }

    /// Tells the threads to end, drops what none has begun, and waits for them, but not longer than the limit.
    pub(super) fn end(&self, limit: Duration) {
        let mut work = self.work.lock().expect(HELD);
        work.ended = true;
        work.jobs.clear();
        drop(work);
        self.given.notify_all();
        let outcome = self.came.wait_timeout_while(self.news(), limit, |news| news.threads > 0);
        drop(outcome.expect(HELD));
    }
}

impl News {
    fn silent(&self) -> bool {
        self.done.is_empty() && !self.woken && !self.panicked
    }
}

impl Wake for Exchange {
    fn wake(&self) {
        self.tell(|news| news.woken = true);
    }
}
