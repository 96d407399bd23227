//! What HDF5 refused, in its own words.

use std::ffi::{CStr, c_uint, c_void};

use crate::ffi::{H5E_DEFAULT, H5E_WALK_UPWARD, H5E_error2_t, H5Eset_auto2, H5Ewalk2, herr_t};

/// The library refused something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Hdf5Error {
    /// Of a call.
    #[error("HDF5 can't {what}: {why}")]
    Refused {
        /// What was asked of it.
        what: String,
        /// The innermost of its messages.
        why: String,
    },
    /// A name with a zero byte, or an empty one.
    #[error("{name:?} can't be a name in HDF5")]
    Name {
        /// As given.
        name: String,
    },
    /// A description that contradicts itself.
    #[error("{what}")]
    Description {
        /// What is wrong with it.
        what: String,
    },
}

impl Hdf5Error {
    /// Of the call that failed last in this thread.
    pub(crate) fn last(what: impl Into<String>) -> Self {
        let mut why = String::new();
        // SAFETY: the walk calls `innermost` with the messages of this thread's stack and the string, before it returns.
        unsafe { H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, innermost, (&raw mut why).cast()) };
        Hdf5Error::Refused { what: what.into(), why }
    }
}

/// The library's messages are asked for, not printed: for the thread that calls.
pub(crate) fn do_not_print() {
    std::thread_local!(static TOLD: std::cell::Cell<bool> = const { std::cell::Cell::new(false) });
    if !TOLD.replace(true) {
        // SAFETY: without a function nothing is called.
        unsafe { H5Eset_auto2(H5E_DEFAULT, std::ptr::null(), std::ptr::null_mut()) };
    }
}

unsafe extern "C" fn innermost(number: c_uint, message: *const H5E_error2_t, into: *mut c_void) -> herr_t {
    if number == 0 {
        // SAFETY: the library hands over a message with a text that ends with zero, and what `last` gave it.
        unsafe {
            let text = CStr::from_ptr((*message).desc).to_string_lossy();
            (*into.cast::<String>()).push_str(&text);
        }
    }
    0
}
