//! The mailbox in which an engine served by other threads finds their news, and waits for it.

use std::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, Ordering},
};

use nilometer_model::Nanos;

use super::{Wait, Wake, pause::AWAKE_BEFORE};
use crate::Clock;

/// News for one reader from any thread, in order of arrival. The mailbox has no limit of its own; the senders
/// must count.
#[derive(Debug)]
pub struct Mailbox<M> {
    news: Mutex<Post<M>>,
    came: Condvar,
    /// True if there is news; readable without the lock.
    any: AtomicBool,
}

#[derive(Debug)]
struct Post<M> {
    letters: Vec<M>,
    woken: bool,
}

impl<M> Post<M> {
    fn is_silent(&self) -> bool {
        self.letters.is_empty() && !self.woken
    }
}

const HELD: &str = "nothing panics under this lock";

impl<M> Mailbox<M> {
    /// Creates a mailbox with room for `capacity` messages before it has to grow.
    pub fn with_capacity(capacity: usize) -> Self {
        Mailbox {
            news: Mutex::new(Post { letters: Vec::with_capacity(capacity), woken: false }),
            came: Condvar::new(),
            any: AtomicBool::new(false),
        }
    }

    fn news(&self) -> MutexGuard<'_, Post<M>> {
        self.news.lock().expect(HELD)
    }

    /// Adds a message, from any thread.
    pub fn post(&self, letter: M) {
        self.tell(|post| post.letters.push(letter));
    }

    fn tell(&self, change: impl FnOnce(&mut Post<M>)) {
        let mut news = self.news();
        change(&mut news);
        self.any.store(true, Ordering::Release);
        drop(news);
        self.came.notify_all();
    }

    /// Appends all news and waits as `wait` says; a wake ends `News` and `Until` with nothing.
    pub fn take(&self, wait: Wait, clock: &Clock, into: &mut Vec<M>) {
        let mut news = match wait {
            Wait::Poll if !self.any.load(Ordering::Acquire) => return,
            Wait::Poll => self.news(),
            Wait::ForOne => self.came.wait_while(self.news(), |post| post.letters.is_empty()).expect(HELD),
            Wait::News => self.came.wait_while(self.news(), |post| post.is_silent()).expect(HELD),
            Wait::Until(time) => self.until(time, clock),
        };
        if matches!(wait, Wait::News | Wait::Until(_)) {
            news.woken = false;
        }
        into.append(&mut news.letters);
        self.any.store(news.woken, Ordering::Relaxed);
    }

    /// Sleeps until shortly before `time`, then spins.
    fn until(&self, time: Nanos, clock: &Clock) -> MutexGuard<'_, Post<M>> {
        let left = time.since(clock.now());
        if left > AWAKE_BEFORE {
            let limit = (left - AWAKE_BEFORE).duration();
            let silent = |post: &mut Post<M>| post.is_silent();
            let (news, _) = self.came.wait_timeout_while(self.news(), limit, silent).expect(HELD);
            if !news.is_silent() {
                return news;
            }
        }
        while clock.now() < time && !self.any.load(Ordering::Acquire) {
            std::hint::spin_loop();
        }
        self.news()
    }
}

impl<M: Send> Wake for Mailbox<M> {
    fn wake(&self) {
        self.tell(|post| post.woken = true);
    }
}
