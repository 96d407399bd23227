//! The state that the recorder's thread publishes, and the wait for its next change. Readers copy the state, so they
//! never hold up the recorder.

use std::{
    ops::{Deref, DerefMut},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use nilometer_acquisition::Status;
use nilometer_model::{Moment, Nanos};
use nilometer_storage::Calendar;

use crate::{
    history::StatusHistory,
    latest_frame::PictureSource,
    preview::PreviewSource,
    state::{EndedScan, ServiceReport, ServiceState},
};

/// The most ended recordings that the recorder remembers.
const SCANS: usize = 10_000;
/// The ended recordings whose lists of files it remembers. A page shows as many.
pub(crate) const LAST_SCANS: usize = 8;

/// The state that the recorder's thread publishes for clients.
#[derive(Debug, Default)]
pub(crate) struct Published {
    pub(crate) report: ServiceReport,
    /// The recordings that have ended, oldest first.
    pub(crate) scans: Vec<EndedScan>,
    /// The last minutes.
    pub(crate) history: StatusHistory,
    /// The source of pictures: the running recording, or the last one.
    pub(crate) pictured: Option<Arc<PictureSource>>,
    /// The source of the preview: the running recording, or the last one.
    pub(crate) previewed: Option<Arc<PreviewSource>>,
    /// True if the recorder ends, and nothing will change any more.
    is_over: bool,
    /// The number of clients that follow the changes.
    followers: usize,
    /// The number of changes of anything, and of the state.
    revision: u64,
    entered: u64,
}

/// The published state of one recorder. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Publisher(Arc<PublishedCell>);

#[derive(Debug, Default)]
struct PublishedCell {
    published: Mutex<Published>,
    changed: Condvar,
}

/// A client that follows the changes. The end of the recorder waits for it.
#[derive(Debug)]
pub(crate) struct NewsFollower(Publisher);

/// Access to the published state for a change.
#[derive(Debug)]
pub(crate) struct PublishedChange<'a> {
    published: MutexGuard<'a, Published>,
    changed: &'a Condvar,
}

/// The changes that a client has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SeenChanges {
    revision: u64,
    entered: u64,
    recordings: u64,
}

/// The changes since a client last looked.
#[derive(Debug)]
pub(crate) struct ServiceNews {
    pub(crate) report: ServiceReport,
    /// The recordings that ended meanwhile, oldest first: the latest [`LAST_SCANS`] of them.
    pub(crate) ended: Vec<EndedScan>,
    pub(crate) seen: SeenChanges,
    /// True if these are the last changes.
    pub(crate) are_last: bool,
}

/// The limits of a wait for changes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewsPace {
    /// The time in which only a new state or an ended recording counts as a change.
    pub(crate) pause: Duration,
    /// The longest wait behind that time.
    pub(crate) patience: Duration,
}

impl Published {
    /// Publishes the current figures of the running recording.
    pub(crate) fn tell(&mut self, now: Nanos, status: Status) {
        self.history.see(now, Moment(Calendar::now().time), &status);
        self.report.show(Some(status));
    }

    /// Publishes a new state, which begins now.
    pub(crate) fn enter(&mut self, state: ServiceState) {
        self.entered += 1;
        self.report.state = state;
        self.report.since = Moment(Calendar::now().time);
        self.report.version = env!("CARGO_PKG_VERSION");
    }

    /// Publishes a recording that has ended.
    pub(crate) fn end(&mut self, scan: EndedScan) {
        self.report.recordings += 1;
        self.report.last = Some(scan.clone());
        self.scans.push(scan);
        let excess = self.scans.len().saturating_sub(SCANS);
        self.scans.drain(..excess);
        let older = self.scans.iter_mut().rev().nth(LAST_SCANS);
        if let Some(scan) = older {
            scan.file.forget_files();
        }
    }

    fn changes(&self) -> SeenChanges {
        SeenChanges { revision: self.revision, entered: self.entered, recordings: self.report.recordings }
    }

    /// Returns true if the state is another, or a recording has ended.
    fn is_urgent(&self, seen: SeenChanges) -> bool {
        let now = self.changes();
        now.entered != seen.entered || now.recordings != seen.recordings || self.is_over
    }

    fn news(&self, seen: Option<SeenChanges>) -> ServiceNews {
        let now = self.changes();
        let new = seen.map_or(0, |seen| now.recordings - seen.recordings);
        let first = self.scans.len().saturating_sub(LAST_SCANS.min(new as usize));
        ServiceNews {
            report: self.report.clone(),
            ended: self.scans[first..].to_vec(),
            seen: now,
            are_last: self.is_over,
        }
    }
}

impl Deref for PublishedChange<'_> {
    type Target = Published;

    fn deref(&self) -> &Published {
        &self.published
    }
}

impl DerefMut for PublishedChange<'_> {
    fn deref_mut(&mut self) -> &mut Published {
        &mut self.published
    }
}

impl Drop for PublishedChange<'_> {
    /// Clients wake up and wait for the lock, which is free a moment later.
    fn drop(&mut self) {
        self.changed.notify_all();
    }
}

impl Publisher {
    fn lock(&self) -> MutexGuard<'_, Published> {
        self.0.published.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the published state. Other threads wait meanwhile, so only copy from it.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Published) -> T) -> T {
        read(&self.lock())
    }

    /// Gives access to the published state for a change. When the access ends, the clients that wait for a change
    /// wake up.
    pub(crate) fn changing(&self) -> PublishedChange<'_> {
        let mut published = self.lock();
        published.revision += 1;
        PublishedChange { published, changed: &self.0.changed }
    }

    /// Counts a client that follows the changes.
    pub(crate) fn follow(&self) -> NewsFollower {
        self.lock().followers += 1;
        NewsFollower(self.clone())
    }

    /// Ends the changes, and waits until all clients that follow them have the last one, at most `patience`.
    pub(crate) fn end_news(&self, patience: Duration) {
        self.changing().is_over = true;
        let follows = |published: &mut Published| published.followers > 0;
        let waited = self.0.changed.wait_timeout_while(self.lock(), patience, follows);
        drop(waited);
    }

    /// Waits for a change since the client last looked; `None` if nothing changes in time. A client that has seen
    /// nothing gets the state at once.
    pub(crate) fn await_news(&self, seen: Option<SeenChanges>, pace: NewsPace) -> Option<ServiceNews> {
        let published = self.lock();
        let Some(last) = seen else { return Some(published.news(None)) };
        let rests = |published: &mut Published| !published.is_urgent(last);
        let paused = self.0.changed.wait_timeout_while(published, pace.pause, rests);
        let published = paused.unwrap_or_else(PoisonError::into_inner).0;
        let is_same = |published: &mut Published| published.revision == last.revision;
        let waited = self.0.changed.wait_timeout_while(published, pace.patience, is_same);
        let waited = waited.unwrap_or_else(PoisonError::into_inner);
        (!waited.1.timed_out()).then(|| waited.0.news(seen))
    }
}

impl Drop for NewsFollower {
    fn drop(&mut self) {
        self.0.lock().followers -= 1;
        self.0.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: Duration = Duration::from_mins(10);
    const NOW: Duration = Duration::ZERO;

    fn scan(name: &str) -> EndedScan {
        let mut scan = EndedScan { name: name.into(), ..EndedScan::default() };
        scan.file.files = vec![name.into()];
        scan
    }

    #[test]
    fn a_client_gets_the_state_at_once_and_then_each_change() {
        let publisher = Publisher::default();
        let pace = NewsPace { pause: NOW, patience: NOW };
        let seen = publisher.await_news(None, pace).expect("at once").seen;
        assert!(publisher.await_news(Some(seen), pace).is_none(), "nothing changed");
        publisher.changing().report.stopping = true;
        let news = publisher.await_news(Some(seen), pace).expect("a change");
        assert!(news.report.stopping && news.ended.is_empty());
        assert!(publisher.await_news(Some(news.seen), pace).is_none());
    }

    #[test]
    fn a_new_state_ends_the_pause_and_new_counts_wait_for_it() {
        let publisher = Publisher::default();
        let seen = publisher.await_news(None, NewsPace { pause: NOW, patience: NOW }).expect("at once").seen;
        publisher.changing().tell(Nanos(0), Status::default());
        let reader = publisher.clone();
        let wait = move || reader.await_news(Some(seen), NewsPace { pause: NEVER, patience: NOW });
        let waiting = std::thread::spawn(wait);
        publisher.changing().enter(ServiceState::Armed);
        let news = waiting.join().expect("no panic").expect("a new state");
        assert_eq!(news.report.state, ServiceState::Armed);
    }

    #[test]
    fn the_end_waits_for_clients_and_gives_them_the_last_change() {
        let publisher = Publisher::default();
        let pace = NewsPace { pause: NEVER, patience: NEVER };
        let follower = publisher.follow();
        let first = publisher.await_news(None, pace).expect("at once");
        assert!(!first.are_last);
        let reader = publisher.clone();
        let following = std::thread::spawn(move || {
            let news = reader.await_news(Some(first.seen), pace).expect("the end");
            drop(follower);
            news.are_last
        });
        publisher.end_news(NEVER);
        assert!(following.join().expect("no panic"));
        let slow = publisher.follow();
        publisher.end_news(NOW);
        drop(slow);
    }

    #[test]
    fn ended_recordings_are_told_once_and_only_the_last_keep_their_files() {
        let publisher = Publisher::default();
        let pace = NewsPace { pause: NEVER, patience: NOW };
        let seen = publisher.await_news(None, pace).expect("at once").seen;
        for number in 0..=LAST_SCANS {
            publisher.changing().end(scan(&number.to_string()));
        }
        let news = publisher.await_news(Some(seen), pace).expect("recordings");
        let names: Vec<_> = news.ended.iter().map(|scan| scan.name.as_str()).collect();
        assert_eq!(names, ["1", "2", "3", "4", "5", "6", "7", "8"]);
        publisher.changing().end(scan("last"));
        let news = publisher.await_news(Some(news.seen), pace).expect("a recording");
        assert_eq!(news.ended, [scan("last")]);
        let listed = publisher
            .read(|published| published.scans.iter().filter(|scan| !scan.file.files.is_empty()).count());
        assert_eq!(listed, LAST_SCANS);
    }
}
