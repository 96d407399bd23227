//! Collects the names of one remote listing, answer by answer, within bounds. Pure: the caller passes the time.

use nilometer_model::Nanos;
use nilometer_storage::{
    Errno,
    listing_bound::{
        ANSWERS_MAX, LISTED_BYTES_MAX, LISTED_MAX, LISTING_SECONDS, ListingBound, NAMES_OF_ANSWER,
        NAMES_OF_SECOND,
    },
};

use crate::client::NamedEntry;

/// The names received so far, with the counts that the bounds limit.
#[derive(Debug)]
pub(crate) struct NamesListing {
    pub(crate) entries: Vec<NamedEntry>,
    bytes: u64,
    answers: u64,
    begun: Nanos,
}

impl NamesListing {
    /// Starts an empty listing at this time.
    pub(crate) fn new(now: Nanos) -> Self {
        NamesListing { entries: Vec::new(), bytes: 0, answers: 0, begun: now }
    }

    /// Adds an answer of `bytes` bytes.
    ///
    /// # Errors
    /// The listing exceeds a bound, which the error names.
    pub(crate) fn add(
        &mut self,
        now: Nanos,
        bytes: usize,
        entries: impl IntoIterator<Item = NamedEntry>,
    ) -> Result<(), Errno> {
        self.entries.extend(entries);
        self.bytes += bytes as u64;
        self.answers += 1;
        self.bound(now).map_or(Ok(()), |bound| Err(bound.into()))
    }

    /// Returns the first bound that the listing exceeds, if any.
    fn bound(&self, now: Nanos) -> Option<ListingBound> {
        let names = self.entries.len() as u64;
        let seconds = LISTING_SECONDS + names / NAMES_OF_SECOND;
        let beyond = [
            (names > LISTED_MAX, ListingBound::Names),
            (self.bytes > LISTED_BYTES_MAX, ListingBound::Bytes),
            (self.answers > ANSWERS_MAX + names / NAMES_OF_ANSWER, ListingBound::Answers),
            (now.since(self.begun) > Nanos::from_millis(1000 * seconds), ListingBound::Time),
        ];
        beyond.into_iter().find_map(|(is_beyond, bound)| is_beyond.then_some(bound))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> NamedEntry {
        (b"n".to_vec(), 8)
    }

    /// Adds equal answers until a bound ends the listing; returns the error and the number of answers.
    fn ends(names: usize, bytes: usize, millis: u64) -> (Errno, u64) {
        let mut listing = NamesListing::new(Nanos(7));
        for answer in 1.. {
            let now = Nanos(7) + Nanos::from_millis(millis * answer);
            if let Err(bound) = listing.add(now, bytes, vec![entry(); names]) {
                return (bound, answer);
            }
        }
        unreachable!("it ends")
    }

    #[test]
    fn a_listing_without_end_ends_at_a_bound() {
        assert_eq!(ends(10_000, 1000, 0), (ListingBound::Names.into(), 401));
        assert_eq!(ends(1000, 16 << 20, 0), (ListingBound::Bytes.into(), 129));
        assert_eq!(ends(1, 200, 0), (ListingBound::Answers.into(), 1112));
        assert_eq!(ends(0, 200, 0), (ListingBound::Answers.into(), 1001));
        assert_eq!(ends(1, 200, 900), (ListingBound::Time.into(), 67));
    }

    #[test]
    fn a_directory_of_a_slow_store_is_listed() {
        let mut listing = NamesListing::new(Nanos(0));
        for answer in 1..=2000 {
            let now = Nanos::from_millis(900 * answer);
            listing.add(now, 400_000, vec![entry(); 1000]).expect("900 ms for a thousand names");
        }
        assert_eq!(listing.entries.len(), 2_000_000);
    }
}
