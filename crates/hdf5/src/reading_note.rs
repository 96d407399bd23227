//! The object that the library reads next. A file of a stranger may end the process, or keep it for ever: whoever watches that
//! process then knows at which object.

use std::{fmt::Display, sync::OnceLock};

/// Takes the name of the object that is read next; `None` while the library still reads the last one.
pub type ReadingNote = fn(Option<&str>);

static NOTE: OnceLock<ReadingNote> = OnceLock::new();

/// Has all objects noted, from now on, in this process.
pub fn note_reading(note: ReadingNote) {
    NOTE.set(note).ok();
}

/// The library reads this object next.
pub fn reads_next(object: impl Display) {
    if let Some(note) = NOTE.get() {
        note(Some(&object.to_string()));
    }
}

/// The library goes on with the last object.
pub fn still_reads() {
    if let Some(note) = NOTE.get() {
        note(None);
    }
}
