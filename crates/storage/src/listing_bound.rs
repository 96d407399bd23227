//! Bounds of what a server may list of one directory. A server that lies, or is broken, lists for ever; whoever asked it is
//! to go on, and to say which bound was reached.

/// Names of a directory, at the most: some 300 MB.
pub const LISTED_MAX: u64 = 4_000_000;
/// Bytes of all answers, at the most.
pub const LISTED_BYTES_MAX: u64 = 2 << 30;
/// A listing may take as many answers.
pub const ANSWERS_MAX: u64 = 1000;
/// It may take one more for so many names: servers give a thousand at once.
pub const NAMES_OF_ANSWER: u64 = 10;
/// Seconds that a listing may take.
pub const LISTING_SECONDS: u64 = 60;
/// It may take a second more for so many names.
pub const NAMES_OF_SECOND: u64 = 1000;

/// A bound of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListingBound {
    /// Of names.
    Names,
    /// Of bytes.
    Bytes,
    /// Of answers.
    Answers,
    /// Of time.
    Time,
    /// Of directories within directories.
    Depth,
}

/// Directories within directories that are removed, at the most.
pub const DEPTH_MAX: u64 = 256;
/// Error numbers of the kernel are below (`MAX_ERRNO` is 4095).
const FIRST: i32 = 1 << 20;

impl ListingBound {
    const ALL: [ListingBound; 5] = [
        ListingBound::Names,
        ListingBound::Bytes,
        ListingBound::Answers,
        ListingBound::Time,
        ListingBound::Depth,
    ];

    /// Its number among those of errors: the kernel has none of these.
    pub(crate) const fn number(self) -> i32 {
        FIRST + self as i32
    }

    /// The bound of this number.
    pub(crate) fn of_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|bound| bound.number() == number)
    }

    /// Which bound was reached, and how large it is.
    pub fn text(self) -> String {
        match self {
            ListingBound::Names => {
                format!("the server's listing has no end: more than {LISTED_MAX} names in one directory")
            }
            ListingBound::Bytes => {
                let gib = LISTED_BYTES_MAX >> 30;
                format!("the server's listing has no end: more than {gib} GiB of one directory")
            }
            ListingBound::Answers => format!(
                "the server's listing has no end: more than {ANSWERS_MAX} answers with fewer than {NAMES_OF_ANSWER} names each"
            ),
            ListingBound::Time => format!(
                "the server's listing has no end: it took {LISTING_SECONDS} s, and a second more for every \
                 {NAMES_OF_SECOND} names"
            ),
            ListingBound::Depth => {
                format!("the server lists more than {DEPTH_MAX} directories within each other")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bound_has_a_number_that_the_kernel_has_not_and_says_how_large_it_is() {
        for bound in ListingBound::ALL {
            assert!(bound.number() > 4095);
            assert_eq!(ListingBound::of_number(bound.number()), Some(bound));
            assert!(bound.text().contains(char::is_numeric), "{}", bound.text());
        }
        assert_eq!((ListingBound::of_number(libc::EIO), ListingBound::of_number(FIRST + 5)), (None, None));
    }
}
