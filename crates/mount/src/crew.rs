//! A few threads for jobs that may have to wait for a disk, so that no other thread does. They exist while
//! there is work.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

/// A job to be done.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// A pool of threads.
#[derive(Debug)]
pub(crate) struct Crew {
    most: usize,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    /// Waiting jobs, in order of arrival. Their number is limited by the kernel's callers, each of which
    /// waits for its job.
    jobs: VecDeque<Job>,
    threads: usize,
    /// Number of threads without a job.
    idle: usize,
    /// No more jobs will arrive.
    over: bool,
}

impl std::fmt::Debug for State {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{} jobs wait for {} threads", self.jobs.len(), self.threads)
    }
}

/// A thread without a job ends after this time.
const IDLE: Duration = Duration::from_secs(5);

impl Crew {
    /// Makes a pool of at most `most` threads. There is none before the first job.
    pub(crate) fn new(most: usize) -> Self {
        Crew { most, shared: Arc::default() }
    }

    /// Has the next free thread do this job. If there is no thread and none can be started, it does all
    /// waiting jobs at once.
    pub(crate) fn ask(&self, job: Job) {
        let mut state = self.shared.lock();
        state.jobs.push_back(job);
        if state.idle >= state.jobs.len() {
            self.shared.work.notify_one();
            return;
        }
        if state.threads == self.most {
            return;
        }
        state.threads += 1;
        drop(state);
        let member = Member(self.shared.clone());
        let begun = thread::Builder::new().name("answer".into()).spawn(move || member.work());
        if begun.is_err() && self.shared.lock().threads == 0 {
            while let Some(job) = self.shared.job() {
                job();
            }
        }
    }

    /// Returns true if all jobs are done.
    pub(crate) fn is_done(&self) -> bool {
        let state = self.shared.lock();
        state.jobs.is_empty() && state.idle == state.threads
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.shared.lock().over = true;
        self.shared.work.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn job(&self) -> Option<Job> {
        self.lock().jobs.pop_front()
    }
}

/// A thread, counted while it exists.
struct Member(Arc<Shared>);

impl Member {
    fn work(self) {
        while let Some(job) = self.next() {
            // A bug in one job must not affect the others: its caller gets an error.
            drop(catch_unwind(AssertUnwindSafe(job)));
        }
    }

    /// The next job. `None` if there was none for a while, or no more will arrive.
    fn next(&self) -> Option<Job> {
        let mut state = self.0.lock();
        let mut waited = false;
        loop {
            let job = state.jobs.pop_front();
            if job.is_some() || state.over || waited {
                return job;
            }
            state.idle += 1;
            let (next, result) =
                self.0.work.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner);
            state = next;
            state.idle -= 1;
            waited = result.timed_out();
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.0.lock().threads -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    #[test]
    fn a_job_that_panics_takes_no_other_with_it() {
        let (crew, (told, done)) = (Crew::new(1), mpsc::sync_channel(1));
        crew.ask(Box::new(|| panic!("a test of what a panic does")));
        crew.ask(Box::new(move || told.send(()).expect("it is waited for")));
        done.recv_timeout(LIMIT).expect("it is done");
    }

    #[test]
    fn some_work_while_others_wait_and_what_came_is_done_though_nobody_asks_any_more() {
        let (crew, (told, done)) = (Crew::new(2), mpsc::sync_channel(100));
        let (release, wait) = mpsc::sync_channel::<()>(0);
        crew.ask(Box::new(move || wait.recv().unwrap_or_default()));
        for number in 0..100 {
            let told = told.clone();
            crew.ask(Box::new(move || told.send(number).expect("it is waited for")));
        }
        for number in 0..100 {
            assert_eq!(done.recv_timeout(LIMIT), Ok(number), "one thread goes on");
        }
        assert!(!crew.is_done(), "one waits");
        let (last_told, last) = mpsc::sync_channel(1);
        for _ in 0..3 {
            let last_told = last_told.clone();
            crew.ask(Box::new(move || last_told.send(()).expect("it is waited for")));
        }
        drop(crew);
        drop(release);
        (0..3).for_each(|_| last.recv_timeout(LIMIT).expect("it was asked for"));
    }
}
