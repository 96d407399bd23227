//! Notes the object that the library reads next. A foreign file may end the process or keep it busy for ever; a
//! watching process then knows which object did it.

use std::{fmt::Display, sync::OnceLock};

/// Takes the name of the next object read; `None` while the library is still reading the last one.
pub type ReadingNote = fn(Option<&str>);

static NOTE: OnceLock<ReadingNote> = OnceLock::new();

/// Sets the function that receives all notes from now on, in this process.
pub fn note_reading(note: ReadingNote) {
    NOTE.set(note).ok();
}

/// Notes that the library reads this object next.
pub fn reads_next(object: impl Display) {
    if let Some(note) = NOTE.get() {
        note(Some(&object.to_string()));
    }
}

/// Notes that the library is still reading the last object.
pub fn still_reads() {
    if let Some(note) = NOTE.get() {
        note(None);
    }
}
