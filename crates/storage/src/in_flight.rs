//! Data that the issuer of an operation keeps until it completes.

/// A table with a place for each operation in flight. The place's number is the operation's
/// [`tag`](crate::Operation::tag).
///
/// It grows to the largest number of operations that were in flight at once.
#[derive(Debug)]
pub struct InFlightTable<T> {
    places: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Default for InFlightTable<T> {
    fn default() -> Self {
        InFlightTable { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> InFlightTable<T> {
    /// Stores `what` for an operation that is issued now and returns its tag.
    pub fn insert(&mut self, what: T) -> u64 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.places[place] = Some(what);
        place as u64
    }

    /// Removes and returns the value of the operation with this tag, which has completed.
    ///
    /// # Panics
    ///
    /// If no operation with this tag is in flight: an engine completes an operation once and returns its tag
    /// unchanged.
    pub fn remove(&mut self, tag: u64) -> T {
        let kept = usize::try_from(tag).ok().and_then(|place| self.places.get_mut(place)?.take());
        let kept = kept.unwrap_or_else(|| panic!("no operation with tag {tag} is in flight"));
        self.free.push(tag as usize);
        kept
    }

    /// Returns the number of operations in flight.
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Returns true if no operation is in flight.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_and_tags_in_flight_are_never_the_same() {
        let mut table = InFlightTable::default();
        let [first, second] = ["first", "second"].map(|what| table.insert(what));
        assert_ne!(first, second);
        assert_eq!((table.remove(first), table.len()), ("first", 1));
        assert_eq!(table.insert("third"), first, "its place is free");
        assert_eq!((table.remove(second), table.remove(first), table.is_empty()), ("second", "third", true));
    }

    #[test]
    #[should_panic(expected = "no operation with tag 0 is in flight")]
    fn what_completes_twice_is_a_fault_of_the_engine() {
        let mut table = InFlightTable::default();
        let tag = table.insert(());
        table.remove(tag);
        table.remove(tag);
    }
}
