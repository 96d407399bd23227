//! Answers of a library that calls back. Each request passes its waiter through the library; the callback
//! returns it once.

use std::ffi::{c_char, c_void};

use nilometer_storage::{Errno, listing};

use crate::client::NamedEntry;

/// The callback that a shim calls once for each request. It passes the context, an error number or 0, a number,
/// and a text with its length.
pub(crate) type Done = unsafe extern "C" fn(*mut c_void, i32, u64, *const c_char, usize);

/// The library's answer to a request.
#[derive(Debug)]
pub(crate) enum LibraryAnswer<'a> {
    /// Success. The request defines the meaning of the number and the text.
    Done(u64, &'a [u8]),
    /// The error, and the library's text about it.
    Failed(Errno, &'a [u8]),
}

/// Waits for an answer. Any thread of the library may call `answered`, once.
pub(crate) trait Answered {
    fn answered(self: Box<Self>, answer: LibraryAnswer<'_>);
}

/// Passes an answer to its waiter.
///
/// # Safety
/// `context` must come from [`begun`] for the same type, and each context may be used only once. `text` must
/// have `length` bytes.
pub(crate) unsafe extern "C" fn done<A: Answered>(
    context: *mut c_void,
    error: i32,
    number: u64,
    text: *const c_char,
    length: usize,
) {
    // SAFETY: `begun` made the context with `Box::into_raw`, and a shim calls back once for each request.
    let waiting = unsafe { Box::from_raw(context.cast::<A>()) };
    let text = if length == 0 {
        &[][..]
    } else {
        // SAFETY: a shim passes a text of this length, which lives until this function returns.
        unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length) }
    };
    waiting.answered(match error {
        0 => LibraryAnswer::Done(number, text),
        error => LibraryAnswer::Failed(Errno(error), text),
    });
}

/// Turns a waiter into the context that a library carries through a request.
pub(crate) fn begun<A: Answered>(waiting: Box<A>) -> *mut c_void {
    Box::into_raw(waiting).cast()
}

/// Splits a listing as shims encode it: for each entry `d`, `f` or `?`, then the name, then a zero byte.
pub(crate) fn entries(text: &[u8]) -> Vec<NamedEntry> {
    text.split(|byte| *byte == 0).filter_map(entry).collect()
}

fn entry(text: &[u8]) -> Option<NamedEntry> {
    let (kind, name) = text.split_first()?;
    let kind = match kind {
        b'd' => listing::DIRECTORY,
        b'f' => listing::FILE,
        _ => listing::UNKNOWN,
    };
    Some((name.to_vec(), kind))
}

/// Modes in which a shim opens a file.
pub(crate) mod how {
    use nilometer_storage::Open;

    pub(crate) const READ: i32 = 0;
    pub(crate) const WRITE: i32 = 1;
    pub(crate) const READ_WRITE: i32 = 2;
    pub(crate) const CREATE: i32 = 3;

    /// Returns the mode of the first try. If a file can't be created, because it may exist, the caller opens
    /// it.
    pub(crate) fn of(open: Open) -> i32 {
        match (open.creates(), open.reads(), open.writes()) {
            (true, ..) => CREATE,
            (_, true, true) => READ_WRITE,
            (_, _, true) => WRITE,
            _ => READ,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_listing_are_taken_apart() {
        let expected = [(b"sub".to_vec(), listing::DIRECTORY), (b"a b".to_vec(), listing::FILE)];
        assert_eq!(entries(b"dsub\0fa b\0"), expected);
        assert_eq!(entries(b""), []);
    }
}
