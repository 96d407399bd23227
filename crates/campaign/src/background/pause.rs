//! The time in which a load did something else than its work: a copy that begins again first removes the files of
//! the one before.

use std::sync::Mutex;

use nilometer_model::Nanos;

/// The clock of a load's work.
#[derive(Debug, Default)]
pub(super) struct WorkClock(Mutex<Pauses>);

#[derive(Debug, Default)]
struct Pauses {
    /// The time of all that have ended.
    ended: Nanos,
    /// The start of the one that has not.
    since: Option<Nanos>,
}

impl WorkClock {
    /// The load begins to do something else.
    pub(super) fn pause(&self, now: Nanos) {
        self.pauses().since = Some(now);
    }

    /// The load works again.
    pub(super) fn go_on(&self, now: Nanos) {
        let mut pauses = self.pauses();
        let lasted = pauses.since.take().map_or(Nanos(0), |since| now.since(since));
        pauses.ended += lasted;
    }

    /// The time at the clock `now` without all pauses. It never goes back.
    pub(super) fn worked(&self, now: Nanos) -> Nanos {
        let pauses = self.pauses();
        pauses.since.unwrap_or(now).since(pauses.ended)
    }

    fn pauses(&self) -> std::sync::MutexGuard<'_, Pauses> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_no_work_while_they_last_and_after() {
        let clock = WorkClock::default();
        assert_eq!(clock.worked(Nanos(10)), Nanos(10));
        clock.pause(Nanos(20));
        assert_eq!(clock.worked(Nanos(25)), Nanos(20));
        clock.go_on(Nanos(30));
        assert_eq!(clock.worked(Nanos(31)), Nanos(21));
        clock.pause(Nanos(41));
        clock.go_on(Nanos(46));
        assert_eq!(clock.worked(Nanos(50)), Nanos(35));
    }
}
