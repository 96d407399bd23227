//! Server-sent events (HTML Living Standard, section 9.2): the state at once, then each change of it. A client gets the
//! newest state whenever it has read the one before, so a slow client misses states, and nothing waits for it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde::Serialize;
use serde_json::json;

use crate::{
    console::Console,
    publisher::{NewsFollower, NewsPace, SeenChanges},
};

/// The event with the whole state.
pub(super) const STATUS_EVENT: &str = "status";
/// The event with the summary of a recording that has ended.
pub(super) const ENDED_EVENT: &str = "recording_ended";

/// The most clients that follow events at once. Other requests must find a free connection.
const STREAMS_MAX: usize = 32;
/// A line that clients ignore. It shows proxies that the connection is alive, and shows the service that the client is.
const KEEP_ALIVE: &str = ": keep-alive\n\n";
/// Counts change at most ten times a second, and a client hears something every five seconds.
const PACE: NewsPace = NewsPace { pause: Duration::from_millis(100), patience: Duration::from_secs(5) };

/// The clients that follow events, limited in number.
#[derive(Debug, Clone, Default)]
pub(super) struct EventStreams(Arc<AtomicUsize>);

/// The place of a client among them. Dropping it frees the place.
#[derive(Debug)]
pub(super) struct StreamPlace(Arc<AtomicUsize>);

/// The events for one client.
#[derive(Debug)]
pub(super) struct EventQueue<'a> {
    console: &'a Console,
    seen: Option<SeenChanges>,
    /// True if the client has the last change.
    is_over: bool,
    /// The end of the recorder waits until this client has the last events.
    _follower: NewsFollower,
}

impl EventStreams {
    /// A place for another client; `None` if too many follow.
    pub(super) fn enter(&self) -> Option<StreamPlace> {
        let count = self.0.fetch_add(1, Ordering::Relaxed);
        // Dropping the place takes the count back.
        let place = StreamPlace(self.0.clone());
        (count < STREAMS_MAX).then_some(place)
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<'a> EventQueue<'a> {
    /// The events of this recorder from now on.
    pub(super) fn new(console: &'a Console) -> Self {
        EventQueue { console, seen: None, is_over: false, _follower: console.follow() }
    }

    /// The text of the next events, or `None` if the recorder ends and the client has all. It waits for a change, at
    /// most five seconds.
    pub(super) fn next(&mut self) -> Option<String> {
        if self.is_over {
            return None;
        }
        let Some(news) = self.console.await_news(self.seen, PACE) else { return Some(KEEP_ALIVE.into()) };
        self.seen = Some(news.seen);
        self.is_over = news.are_last;
        let ended = news.ended.iter().map(|scan| event(ENDED_EVENT, scan));
        Some(ended.chain([event(STATUS_EVENT, &news.report)]).collect())
    }
}

/// An event with this name. JSON has no line end, so its data are one line.
fn event(name: &str, data: &impl Serialize) -> String {
    format!("event: {name}\ndata: {}\n\n", json!(data))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{EndedScan, ServiceState};

    #[test]
    fn a_client_gets_the_status_at_once_and_each_end_before_the_new_status() {
        let (console, publisher) = Console::without_orders(Vec::new());
        let mut events = EventQueue::new(&console);
        let first = events.next().expect("the state");
        assert!(first.starts_with("event: status\ndata: {") && first.ends_with("}\n\n"), "{first}");
        publisher.changing().end(EndedScan { name: "scan\n1".into(), ..EndedScan::default() });
        publisher.changing().enter(ServiceState::Configured);
        let text = events.next().expect("a change");
        let names: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
        assert_eq!(names, [ENDED_EVENT, STATUS_EVENT]);
        assert_eq!(text.lines().count(), 6, "two events of two lines, and a blank line behind each: {text}");
        assert!(
            text.contains("\"name\":\"scan\\n1\"") && text.contains("\"state\":\"configured\""),
            "{text}"
        );
        publisher.end_news(Duration::ZERO);
        assert!(events.next().expect("the last state").starts_with("event: status"));
        assert_eq!(events.next(), None);
    }

    #[test]
    fn no_more_clients_follow_than_it_has_places() {
        let streams = EventStreams::default();
        let mut places: Vec<_> = (0..STREAMS_MAX).map(|_| streams.enter().expect("a place")).collect();
        assert!(streams.enter().is_none());
        assert!(streams.enter().is_none());
        places.pop();
        assert!(streams.enter().is_some());
    }
}
