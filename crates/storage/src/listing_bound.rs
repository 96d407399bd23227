//! Limits on a server's listing of one directory. A broken or dishonest server lists for ever; the caller
//! must go on, and report the limit it reached.

/// The most names in a directory: some 300 MB.
pub const LISTED_MAX: u64 = 4_000_000;
/// The most bytes of all answers.
pub const LISTED_BYTES_MAX: u64 = 2 << 30;
/// The answers a listing may take, however few its names.
pub const ANSWERS_MAX: u64 = 1000;
/// The names that allow one further answer: servers return a thousand at once.
pub const NAMES_OF_ANSWER: u64 = 10;
/// The seconds a listing may take, however few its names.
pub const LISTING_SECONDS: u64 = 60;
/// The names that allow one further second.
pub const NAMES_OF_SECOND: u64 = 1000;

/// The limit of a listing that was exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListingBound {
    /// The number of names.
    Names,
    /// The number of bytes.
    Bytes,
    /// The number of answers.
    Answers,
    /// The time.
    Time,
    /// The depth of nested directories.
    Depth,
}

/// The most levels of nested directories that are removed.
pub const DEPTH_MAX: u64 = 256;
/// The first number above the kernel's error numbers (`MAX_ERRNO` is 4095).
const FIRST: i32 = 1 << 20;

impl ListingBound {
    const ALL: [ListingBound; 5] = [
        ListingBound::Names,
        ListingBound::Bytes,
        ListingBound::Answers,
        ListingBound::Time,
        ListingBound::Depth,
    ];

    /// Returns its number as an error: the kernel uses none of these.
    pub(crate) const fn number(self) -> i32 {
        FIRST + self as i32
    }

    /// Returns the bound of this number.
    pub(crate) fn of_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|bound| bound.number() == number)
    }

    /// Describes the bound and its size.
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
