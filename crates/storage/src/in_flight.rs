//! What its issuer must know of an operation when it completes, kept meanwhile.

/// A place for each operation in flight. The place's number is the operation's [`tag`](crate::Operation::tag).
///
/// It takes as many places as there ever were in flight at once.
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
    /// Keeps this for an operation that is issued now; the tag for it.
    pub fn insert(&mut self, what: T) -> u64 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.places[place] = Some(what);
        place as u64
    }

    /// What was kept for the operation with this tag, which is done.
    ///
    /// # Panics
    ///
    /// If none with this tag is in flight: an engine completes an operation once, and brings its tag back as it was.
    pub fn remove(&mut self, tag: u64) -> T {
        let kept = usize::try_from(tag).ok().and_then(|place| self.places.get_mut(place)?.take());
        let kept = kept.unwrap_or_else(|| panic!("no operation with tag {tag} is in flight"));
        self.free.push(tag as usize);
        kept
    }

    /// How many operations are in flight.
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Whether none is in flight.
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
