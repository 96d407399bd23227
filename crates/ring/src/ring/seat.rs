//! Seats: threads that wait for the ring, and their wakers.

use std::sync::Arc;

use nilometer_storage::Wake;

/// The waker of the source or of a writer, and whether it waits.
#[derive(Default)]
pub(super) struct Seat {
    pub(super) waker: Option<Arc<dyn Wake>>,
    pub(super) waits: bool,
    pub(super) left: bool,
}

impl Seat {
    /// Wakes the thread if it waits. Returns true if it did.
    pub(super) fn wake(&mut self) -> bool {
        let waited = std::mem::take(&mut self.waits);
        if let (true, Some(waker)) = (waited, &self.waker) {
            waker.wake();
        }
        waited
    }
}

/// The seats of all writers.
pub(super) struct WriterSeats {
    pub(super) seats: Vec<Seat>,
    /// The writer that is woken first.
    first: usize,
}

impl WriterSeats {
    pub(super) fn new(writers: usize) -> Self {
        WriterSeats { seats: (0..writers).map(|_| Seat::default()).collect(), first: 0 }
    }

    /// Wakes all waiting writers, since storage may hold up any of them. The first one woken often gets the
    /// frames, so the order rotates. Otherwise one disk would get nearly all frames of a slow instrument.
    pub(super) fn wake(&mut self) {
        let count = self.seats.len();
        let mut woken = None;
        for writer in (self.first..count).chain(0..self.first) {
            if self.seats[writer].wake() {
                woken.get_or_insert(writer);
            }
        }
        if let Some(writer) = woken {
            self.first = (writer + 1) % count;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Records its number in a list on each wake.
    struct Noted(usize, Arc<Mutex<Vec<usize>>>);

    impl Wake for Noted {
        fn wake(&self) {
            self.1.lock().expect("no test panics with it").push(self.0);
        }
    }

    #[test]
    fn another_writer_is_woken_first_each_time_and_all_that_wait_are() {
        let woken = Arc::default();
        let mut writers = WriterSeats::new(3);
        for (writer, seat) in writers.seats.iter_mut().enumerate() {
            seat.waker = Some(Arc::new(Noted(writer, Arc::clone(&woken))));
        }
        let mut wake = |waiting: &[usize]| {
            for writer in waiting {
                writers.seats[*writer].waits = true;
            }
            writers.wake();
            assert!(writers.seats.iter().all(|seat| !seat.waits));
            std::mem::take(&mut *woken.lock().expect("no test panics with it"))
        };
        assert_eq!(wake(&[0, 1, 2]), [0, 1, 2]);
        assert_eq!(wake(&[0, 1, 2]), [1, 2, 0]);
        assert_eq!(wake(&[1]), [1]);
        assert_eq!(wake(&[]), Vec::<usize>::new(), "and whose turn it is stays");
        assert_eq!(wake(&[0, 1, 2]), [2, 0, 1]);
    }
}
