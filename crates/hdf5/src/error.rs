//! Errors that HDF5 returns, with its own messages.

use std::ffi::{CStr, c_uint, c_void};

use crate::ffi::{H5E_DEFAULT, H5E_WALK_UPWARD, H5E_error2_t, H5Eset_auto2, H5Ewalk2, herr_t};

/// The library refused something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Hdf5Error {
    /// A call of the library failed.
    #[error("HDF5 can't {what}: {why}")]
    Refused {
        /// The operation attempted.
        what: String,
        /// The library's innermost message.
        why: String,
    },
    /// A name with a zero byte, or an empty one.
    #[error("{name:?} can't be a name in HDF5")]
    Name {
        /// The name as given.
        name: String,
    },
    /// A description that contradicts itself.
    #[error("{what}")]
    Description {
        /// The contradiction.
        what: String,
    },
}

impl Hdf5Error {
    /// The error of the call that failed last in this thread.
    pub(crate) fn last(what: impl Into<String>) -> Self {
        let mut why = String::new();
        // SAFETY: before it returns, the walk calls `innermost` with the messages of this thread's stack and the
        // string.
        unsafe { H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, innermost, (&raw mut why).cast()) };
        Hdf5Error::Refused { what: what.into(), why }
    }
}

/// Stops the library from printing its errors in the calling thread; we fetch them instead.
pub(crate) fn do_not_print() {
    std::thread_local!(static TOLD: std::cell::Cell<bool> = const { std::cell::Cell::new(false) });
    if !TOLD.replace(true) {
        // SAFETY: with a null function the library calls nothing.
        unsafe { H5Eset_auto2(H5E_DEFAULT, std::ptr::null(), std::ptr::null_mut()) };
    }
}

unsafe extern "C" fn innermost(number: c_uint, message: *const H5E_error2_t, into: *mut c_void) -> herr_t {
    if number == 0 {
        // SAFETY: the library passes a message with a zero-terminated text, and the pointer that `last` gave it.
        unsafe {
            let text = CStr::from_ptr((*message).desc).to_string_lossy();
            (*into.cast::<String>()).push_str(&text);
        }
    }
    0
}
