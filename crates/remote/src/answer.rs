//! Answers of a library that calls back: each request goes into it with what waits for its answer, which comes back once.

use std::ffi::{c_char, c_void};

use nilometer_storage::{Errno, listing};

use crate::client::NamedEntry;

/// What the shims call once for each request: the context, an error number or 0, a number, and a text with its length.
pub(crate) type Done = unsafe extern "C" fn(*mut c_void, i32, u64, *const c_char, usize);

/// What a library says when a request is done.
#[derive(Debug)]
pub(crate) enum LibraryAnswer<'a> {
    /// A number and a text, whose meaning the request says.
    Done(u64, &'a [u8]),
    /// The error, and what the library says of it.
    Failed(Errno, &'a [u8]),
}

/// What waits for an answer: it is given it once, by any thread that the library has.
pub(crate) trait Answered {
    fn answered(self: Box<Self>, answer: LibraryAnswer<'_>);
}

/// Has what waits for an answer called with it.
///
/// # Safety
/// `context` comes from [`begun`] for the same type, and this is called once for it; `text` has `length` bytes.
pub(crate) unsafe extern "C" fn done<A: Answered>(
    context: *mut c_void,
    error: i32,
    number: u64,
    text: *const c_char,
    length: usize,
) {
    // SAFETY: it was made by `Box::into_raw` in `begun`, and a shim calls once for each request.
    let waiting = unsafe { Box::from_raw(context.cast::<A>()) };
    let text = if length == 0 {
        &[][..]
    } else {
        // SAFETY: a shim gives a text of this length, which lives until this returns.
        unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length) }
    };
    waiting.answered(match error {
        0 => LibraryAnswer::Done(number, text),
        error => LibraryAnswer::Failed(Errno(error), text),
    });
}

/// What goes through a library as the context of a request.
pub(crate) fn begun<A: Answered>(waiting: Box<A>) -> *mut c_void {
    Box::into_raw(waiting).cast()
}

/// The names of a listing, as shims put them together: of each `d`, `f` or `?`, the name, and a zero.
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

/// How a shim opens a file.
pub(crate) mod how {
    use nilometer_storage::Open;

    pub(crate) const READ: i32 = 0;
    pub(crate) const WRITE: i32 = 1;
    pub(crate) const READ_WRITE: i32 = 2;
    pub(crate) const CREATE: i32 = 3;

    /// The first try: what may be there is opened when it could not be made.
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
